"""The steps of the boot program that only nodes run, with their effect on the sandboxed cluster.

The durations are estimates.
"""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.sandbox.instances.boot_state import BootFailure, BootState, StepRun
from cfngen.sandbox.instances.certificate_approval import why_no_certificate
from cfngen.sandbox.instances.routine_steps import gpus

PAUSE_INTERVAL_SECONDS = 60.0  # between two looks at the group's status
MASTER_UPGRADE_MINUTES = 60  # minutes that a node waits for the masters' upgrade if an older boot program does not say

# The beginnings of the descriptions of the distributions' own images.
IMAGES_WITHOUT_DRIVER = ("Ubuntu", "Debian", "Amazon")
GPU_DRIVER_SECONDS = 120  # for which the boot program waits for the driver
# Of the Deep Learning Base AMIs of October 2026 (their release notes, docs.aws.amazon.com/dlami).
GPU_DRIVER_VERSION = "595.91.07"


@dataclass
class NodeSteps:
    """The steps of a node."""

    boot: BootState

    def await_masters_upgrade(self) -> StepRun:
        """Wait while any master has an older minor version than this node's kubelet."""
        yield from self.boot.await_service("secretsmanager", "get_secret_value")
        started = self.boot.clock.now
        yield from self.boot.wait(
            "masters of this version",
            self._why_masters_too_old,
            "check the stack events for a failed update of the masters; then update the stack again",
            timeout=self.boot.configuration.get("upgradeWait", MASTER_UPGRADE_MINUTES) * 60,
        )
        seconds_waited = self.boot.clock.now - started
        self.boot.deadline += seconds_waited
        if seconds_waited:
            return f"the masters are new enough after {seconds_waited:.0f} s"
        return "the masters are new enough, or not running yet"

    def _why_masters_too_old(self) -> str:
        """Return why this node must not join yet: a master older than its kubelet; empty if there is none."""
        own_version = self.boot.configuration["kubernetesVersion"]
        oldest_version = self.boot.read_join_information().get("kubernetesVersion", "")
        if oldest_version and _minor_version(oldest_version) < _minor_version(own_version):
            return (
                f"this node's kubelet is {own_version} and a master is still {oldest_version}: masters are "
                "updated first"
            )
        return ""

    def prepare_gpu(self) -> StepRun:
        """Check the GPUs and the image's driver; the distributions' own images have none.

        Images of the user are assumed to have a driver.
        """
        yield 2.1
        if self.boot.instance.image.startswith(IMAGES_WITHOUT_DRIVER):
            raise BootFailure(
                "the image has no nvidia-smi: NVIDIA's driver is not installed",
                "remove the group's image.id and image.ssmParameter for AWS's Deep Learning Base AMI, or use an image "
                "with NVIDIA's driver and the NVIDIA Container Toolkit",
            )
        gpu_names = gpus(self.boot.instance)
        yield from self.boot.wait(
            "NVIDIA's driver",
            lambda: "" if gpu_names else "nvidia-smi lists no GPU",
            "`nvidia-smi`; `journalctl -k | grep -i nvrm`; `modinfo nvidia`: is the driver built for this kernel?",
            timeout=GPU_DRIVER_SECONDS,
        )
        return f"{', '.join(gpu_names)} with driver {GPU_DRIVER_VERSION}"

    def join_cluster(self) -> StepRun:
        """Join the cluster, once a master has published the join information and etcd has a quorum."""
        join_secret_arn = self.boot.references["joinSecretArn"]
        yield from self.boot.wait(
            "joining",
            self._why_not_joinable,
            "check the masters' consoles for a failed boot; on a master: `systemctl status cfngen-boot cfngen-join "
            "cfngen-approve`",
        )
        cluster = self.boot.environment.clusters[join_secret_arn]
        if cluster.expires <= cluster.state.time(seconds_from_now=60):
            cluster.publish()
        endpoint = self.boot.read_join_information()["endpoint"]
        yield 5.7
        self.boot.register_node(cluster)
        return f"joined {endpoint}"

    def _why_not_joinable(self) -> str:
        """Return why this node cannot join the cluster yet; empty if it can."""
        cluster = self.boot.environment.clusters.get(self.boot.references["joinSecretArn"])
        if cluster is None or not self.boot.environment.has_quorum(cluster) or not cluster.expires:
            return "no master has published the join information yet"
        return self._why_masters_too_old() or why_no_certificate(cluster, self.boot.instance.id)

    def await_node_ready(self) -> StepRun:
        """Make the node Ready, which lets pending pods run on it, or find that its network plug-in is the user's."""
        yield 13.5 + self.boot.jitter_seconds
        cluster = self.boot.environment.clusters[self.boot.references["joinSecretArn"]]
        if self.boot.make_node_ready(cluster):
            return f"node {self.boot.instance.id} is Ready"
        return f"node {self.boot.instance.id} has joined; it becomes Ready once you install a network plug-in"

    def run_first_pod(self) -> StepRun:
        """Run a pod of the pause image, for which the registry or a mirror of it is needed."""
        if "staticPodPath" in self.boot.configuration["kubeletPatch"]:
            return "skipped: the cluster file sets another staticPodPath"
        image = self.boot.configuration["pause"]
        registry = image.partition("/")[0]
        yield from self.boot.wait(
            "a first pod to run",
            lambda: "" if self.boot.connections.reaches_registry(registry) else "its container is not running yet",
            "`journalctl -u kubelet -u containerd`; check that the instance can reach the registry of the pause image",
        )
        yield 1.6
        return f"a pod of {image} ran"

    def pause_in_update(self) -> StepRun:
        """Wait for some minutes while the group of the instance is being updated."""
        yield from self.boot.await_service("cloudformation", "describe_stack_resource")
        started = self.boot.clock.now
        end = started + self.boot.configuration["updatePause"] * 60
        while self.boot.clock.now < end and self._group_is_updating():
            yield PAUSE_INTERVAL_SECONDS
        seconds = self.boot.clock.now - started
        self.boot.deadline += seconds
        if not seconds:
            return "no pause: the group is not being updated"
        ready = f"node {self.boot.instance.id} is Ready"
        return f"{ready} after a pause of {seconds / 60:.0f} min"

    def _group_is_updating(self) -> bool:
        cloud, references = self.boot.environment.cloud, self.boot.references
        group = cloud.stack(references["stack"]).resources[references["resource"]]
        return group.status == "UPDATE_IN_PROGRESS"


def _minor_version(version: str) -> int:
    """Return 36 for `v1.36.3` or `1.36.3`."""
    return int(version.split(".")[1])
