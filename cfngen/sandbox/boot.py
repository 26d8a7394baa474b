"""Emulates the boot program on an instance, step by step over simulated time, with its lines on the console.

Steps, order and log lines are those of the program in the user data: a test compares every sentence here with the boot
program's own. The durations are estimates; nothing was timed on EC2. A boot is a generator that yields the seconds to
wait. The first stage reads its configuration from the user data; the rest comes from the stack's metadata in the step
`program`, as on an instance.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Generator, Mapping
from typing import Protocol

from botocore.exceptions import ClientError

from cfngen.sandbox import certificates
from cfngen.sandbox.cloudformation import ApiError, CloudFormation, client
from cfngen.sandbox.cluster import KubernetesCluster
from cfngen.sandbox.instance import BootFault, Instance, kernel
from cfngen.sandbox.kubernetes_objects import (
    NodeFacts,
    register_node,
    schedule_pending_pods,
    start_addons,
    start_control_plane,
)
from cfngen.sandbox.kubernetes_state import uid
from cfngen.sandbox.routine_steps import DRAINING, ROUTINE, certificates_end, disks
from cfngen.sandbox.user_data import JsonObject, ProgramError, substitute, with_second_stage

Boot = Generator[float, None, None]
Step = Callable[[], Generator[float, None, str]]

FIRMWARE_SECONDS = 9.0  # seconds from launch to the kernel
CLOUD_INIT_SECONDS = 11.0  # seconds from the kernel to the boot program
# Seconds to retry a signal until its wait condition exists, by status; and the errors that say it does not exist yet.
SIGNAL_TIMEOUTS = {"SUCCESS": 5 * 3600.0, "FAILURE": 300.0}
NOT_CREATED = re.compile(r"Resource \S+ does not exist|Resource \S+ is in (CREATE_FAILED|DELETE_\w+) state")
DEFAULT_HINT = "check that the resource exists"
RESTORE_SECRET_HINT = "store the secret's previous value (AWSPREVIOUS) as a new version"
MASTER_UPGRADE_MINUTES = 60  # minutes that a node waits for the masters' upgrade if an older boot program does not say
FIRST_SLOT = "a"  # the slot whose master alone may make a new cluster
MOUNT_POINT = "/mnt/master"
MODE_RESULTS = {
    "init": "initialised a new cluster",
    "join": "joined the cluster",
    "restore": "restored the cluster",
    "resume": "continued with the etcd data on the volume",
}
DEVICE = "/dev/sdf"  # the device name under which the boot program attaches the data volume
POLL_SECONDS = 10.0  # the boot program's longest pause between two attempts
FIRST_MASTER_HINT = f"check the console of master {FIRST_SLOT}: its boot may have failed"
LOG_INTERVAL = 60.0  # seconds between two log lines of one wait


class BootFailure(Exception):  # noqa: N818 - the instance's failure, not this program's
    """A step of the boot program failed; the message is the reason that it logs."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


class Environment(Protocol):
    """What the boot needs of the account; `Machines` implements it."""

    cloud: CloudFormation
    disks: dict[str, KubernetesCluster]
    clusters: dict[str, KubernetesCluster]

    def write_console(self, instance: Instance, line: str) -> None:
        """Write a line on an instance's console."""

    def take_fault(self, instance: Instance) -> BootFault | None:
        """Return the fault that this instance's boot is to have, and count it; None for a normal boot."""

    def has_quorum(self, cluster: KubernetesCluster) -> bool:
        """Return whether more than half of the cluster's masters run."""

    def metadata(self, stack: str, resource: str) -> JsonObject:
        """Return the metadata of a stack's resource.

        Raises:
            ApiError: there is no such stack or resource.
        """


class Program:
    """The emulated boot program of one instance.

    Args:
        environment: the account around it.
        instance: the instance.
    """

    def __init__(self, environment: Environment, instance: Instance) -> None:
        self.environment = environment
        self.instance = instance
        self.configuration: JsonObject = substitute(instance.boot_data.configuration, instance.facts)
        self.references = instance.boot_data.references
        self._clock = environment.cloud.clock
        self._ca_bundle: dict[str, str] = {}
        self._boot_mode = ""
        self._restore_request: JsonObject = {}
        self._started = self._deadline = 0.0

    @property
    def steps(self) -> dict[str, Step]:
        """The steps of the instance's role in order, by title."""
        return {
            "identity": self._read_identity,
            **{title: self._emulated_step(title) for title in self.configuration["steps"]},
            "signal": self._signal_success,
        }

    def _emulated_step(self, title: str) -> Step:
        """Return the emulation of the step with this title; older boot programs name its function otherwise."""
        if title in ROUTINE:
            return functools.partial(self._run_routine_step, title)
        return {
            "packages": self._install_packages,
            "program": self._fetch_program,
            "downloads": self._download_files,
            "volume": self._attach_volume,
            "authorities": self._prepare_control_plane,
            "control plane": self._start_control_plane,
            "add-ons": self._apply_addons,
            "join information": self._publish_join_information,
            "certificates": self._schedule_certificates,
            "masters": self._await_masters_upgrade,
            "join": self._join,
            "ready": self._await_node_ready,
        }[title]

    def boot(self) -> Boot:
        """Boot the instance: firmware, kernel, cloud-init, then the steps; yields the seconds to wait."""
        yield FIRMWARE_SECONDS
        for line in kernel(self.instance):
            self.environment.write_console(self.instance, line)
        yield CLOUD_INIT_SECONDS + self._jitter
        fault = self.environment.take_fault(self.instance)
        self._started = self._clock.now
        self._deadline = self._started + self.configuration["timeout"] * 60 - 120.0
        for number, (name, step) in enumerate(self.steps.items(), 1):
            title, started = f"[{number}/{len(self.steps)}] {name}", self._clock.now
            try:
                if fault and fault.step == name:
                    if not fault.message:
                        return
                    yield 5.0
                    raise BootFailure(fault.message, fault.hint)
                outcome = yield from step()
            except (BootFailure, ClientError) as failure:
                hint, elapsed = getattr(failure, "hint", DEFAULT_HINT), self._clock.now - started
                self._log(f"{title} FAILED after {elapsed:.1f} s: {failure}. What to do: {hint}")
                self._log((yield from self._signal_stacks("FAILURE")))
                return
            self._log(f"{title}: {outcome} ({self._clock.now - started:.1f} s)")
        self._log(f"done in {self._clock.now - self._started:.1f} s")

    @property
    def _jitter(self) -> float:
        """A few seconds that differ between instances, but not between runs."""
        return self.instance.number * 7 % 10 / 3

    def _log(self, text: str) -> None:
        seconds = self._clock.now - self.instance.launched - FIRMWARE_SECONDS
        self.environment.write_console(self.instance, f"[{seconds:12.6f}] python3[612]: cfngen: {text}")

    def _signal_stacks(self, status: str) -> Generator[float, None, str]:
        """Signal the Auto Scaling group and, on a master, the wait condition; retry while that does not exist yet."""
        refusals = [self._send_signal(self.references["stack"], self.references["resource"], status)]
        if "condition" in self.references:
            # Older boot programs name no stack for the condition: it is in the same stack.
            stack, name = self.references.get("conditionStack", self.references["stack"]), self.references["condition"]
            end = self._clock.now + SIGNAL_TIMEOUTS[status]
            refusal = self._send_signal(stack, name, status)
            while NOT_CREATED.search(refusal) and self._clock.now < end:
                yield 10.0
                refusal = self._send_signal(stack, name, status)
            refusals.append(refusal)
        return f"signalled {status}" if "" in refusals else "; ".join(refusals)

    def _send_signal(self, stack: str, resource: str, status: str) -> str:
        try:
            self.environment.cloud.signal_resource(stack, resource, self.instance.id, status)
        except ApiError as error:
            return str(error)
        return ""

    def _read_identity(self) -> Generator[float, None, str]:
        yield 0.1
        role = self.configuration["role"]
        return f"{self.instance.id} in {self.instance.zone}, {role} of {self.configuration['cluster']}"

    def _run_routine_step(self, title: str) -> Generator[float, None, str]:
        seconds, message = ROUTINE[title]
        yield seconds
        self.instance.watches = self.instance.watches or title == DRAINING
        return message(self.configuration, self.instance)

    def _install_packages(self) -> Generator[float, None, str]:
        yield 12.4 + self._jitter
        # Amazon Linux images lack iptables as well as boto3.
        missing_programs = ["iptables"] if "amazon" in self.instance.image.lower() else []
        names = [self.configuration["packages"][program][1] for program in missing_programs]
        return "installed " + ", ".join([*names, "python3-boto3"])

    def _fetch_program(self) -> Generator[float, None, str]:
        """Fetch the second stage from the stack's metadata; wait while it is missing or has another digest."""
        resource = self.configuration["program"]["resource"]
        first_stage = self.instance.boot_data

        def blocker() -> str:
            try:
                self.instance.boot_data = with_second_stage(first_stage, self.environment.metadata)
            except (ApiError, ProgramError) as error:
                return str(error)
            return ""

        yield 0.4
        yield from self._wait(f"the program in {resource}", blocker, "check that the stack still has this resource")
        self.configuration = substitute(self.instance.boot_data.configuration, self.instance.facts)
        return f"{resource} unpacked"

    def _download_files(self) -> Generator[float, None, str]:
        yield 18.6 + self._jitter
        files = len(self.configuration["assets"])
        return f"fetched {files} of {files} files"

    def _attach_volume(self) -> Generator[float, None, str]:
        yield 7.5
        volume = self.references["volumeId"]
        client("ec2", self.environment.cloud.region).attach_volume(
            VolumeId=volume, InstanceId=self.instance.id, Device=DEVICE
        )
        is_blank = volume not in self.environment.disks
        device = f"/dev/nvme{len(disks(self.instance)) + 1}n1"
        return f"{volume} is {device}{', formatted' if is_blank else ''}, mounted at {MOUNT_POINT}"

    @property
    def _has_several_masters(self) -> bool:
        """Whether the cluster has several masters: only then each one gets the others' addresses."""
        return "addressB" in self.references

    def _prepare_control_plane(self) -> Generator[float, None, str]:
        yield 2.8
        result = yield from self._choose_boot_mode()
        return f"{self._boot_mode}: {result}"

    def _choose_boot_mode(self) -> Generator[float, None, str]:
        """Decide whether this master initialises, joins, restores or resumes a cluster; return the step's result."""
        secret, volume = self.references["caSecretArn"], self.references["volumeId"]
        self._ca_bundle = self._read_secret(secret)
        if volume in self.environment.disks:
            if not self._ca_bundle:
                raise BootFailure(
                    f"{volume} contains a cluster's data, but secret {secret} is empty", RESTORE_SECRET_HINT
                )
            bucket = self.references.get("bucket", "")
            self._restore_request = self.environment.disks[volume].backups.pending(bucket, volume)
            if self._restore_request:
                self._boot_mode = "restore"
                return "installed the certificate authorities of the secret"
            self._boot_mode = "resume"
            return "installed the certificate authorities of the secret"
        if self.references["slot"] != FIRST_SLOT:
            yield from self._wait("the first master", self._why_not_initialised, FIRST_MASTER_HINT)
        self._ca_bundle = self._read_secret(secret)
        initialised_at = self._ca_bundle.get(certificates.INITIALISED)
        if initialised_at and self._has_several_masters:
            self._boot_mode = "join"
            return "installed the certificate authorities of the secret"
        if initialised_at:
            raise BootFailure(
                f"{volume} is blank, but the cluster exists since {initialised_at}: continuing would create a second, "
                "empty one",
                "run `cfngen etcd restore latest` (in the folder of the cluster file), or restore the volume from one "
                "of its snapshots; or, to start again with an empty cluster, remove "
                f"{certificates.INITIALISED} from secret {secret} and reboot",
            )
        self._boot_mode = "init"
        if self._ca_bundle:
            return "installed the certificate authorities of the secret"
        self._ca_bundle = certificates.authorities(self._clock.time)
        self._write_secret(secret, self._ca_bundle)
        return "created the certificate authorities"

    def _why_not_initialised(self) -> str:
        """Return why a master other than the first must wait; empty once the first has initialised the cluster."""
        is_initialised = certificates.INITIALISED in self._read_secret(self.references["caSecretArn"])
        return "" if is_initialised else f"slot {FIRST_SLOT} has not initialised the cluster yet"

    def _why_no_quorum(self) -> str:
        """Return why etcd cannot add this member yet; empty if the other members have a quorum."""
        cluster = self.environment.clusters.get(self.references["joinSecretArn"])
        if cluster is not None and self.environment.has_quorum(cluster):
            return ""
        own = self.references["privateAddress"]
        addresses = (address for _, address in sorted(self.configuration["masters"].items()) if address != own)
        return f"etcd has no quorum: none of {', '.join(f'https://{address}:2379' for address in addresses)} is healthy"

    @property
    def _quorum_hint(self) -> str:
        return (
            "start the other masters; if the volumes of most of them are lost: `cfngen etcd restore latest` (in the "
            f"folder of the cluster file of {self.configuration['cluster']})"
        )

    def _start_control_plane(self) -> Generator[float, None, str]:
        if self._boot_mode == "join":
            yield from self._wait("etcd to add this member", self._why_no_quorum, self._quorum_hint)
        yield {"init": 61.5, "join": 48.0, "restore": 41.0, "resume": 33.0}[self._boot_mode]
        clusters, volume, details = self.environment.disks, self.references["volumeId"], ""
        if self._boot_mode == "init":
            clusters[volume] = KubernetesCluster(
                self.configuration, self.references, self._ca_bundle, lambda: self._clock.time, self._clock.schedule
            )
        elif self._boot_mode == "join":
            clusters[volume] = self.environment.clusters[self.references["joinSecretArn"]]
            details = ": " + f"etcd has promoted this member, {uid(volume).replace('-', '')[:16]}"
        cluster = clusters[volume]
        if self._boot_mode == "restore":
            cluster.backups.restore(self.references["bucket"], volume, self._restore_request)
            details = ": " + self._restore_details()
        cluster.start(self.instance.id, self.configuration, self.references, self._ca_bundle)
        self.environment.clusters[self.references["joinSecretArn"]] = cluster
        start_control_plane(cluster.state, self.instance.id)
        self._register_node(cluster)
        yield 6.0
        if self._has_several_masters:
            missing = "it does not answer, or most members are down"
            yield from self._wait(
                "etcd on this master",
                lambda: "" if self.environment.has_quorum(cluster) else missing,
                self._quorum_hint,
            )
        secret = self.references["caSecretArn"]
        bundle = self._read_secret(secret)
        if certificates.INITIALISED not in bundle:
            self._write_secret(secret, {**bundle, certificates.INITIALISED: cluster.state.time()})
        return MODE_RESULTS[self._boot_mode] + details

    def _restore_details(self) -> str:
        identity, snapshot = self._restore_request["id"], self._restore_request["snapshot"]
        old = f"{MOUNT_POINT}/etcd.before-{identity}"
        return f"restored {snapshot} for request {identity}; the previous data is in {old}"

    def _apply_addons(self) -> Generator[float, None, str]:
        yield 9.2
        cluster, manifests = self.environment.disks[self.references["volumeId"]], self.configuration["manifests"]
        start_addons(cluster.state, self.instance.id, manifests)
        cluster.state.set_ready(self.instance.id, True)
        charts = [release["name"] for release in self.configuration["addons"] if release["essential"]]
        components = " and ".join(["the cloud controller manager", *charts])
        return f"{components} running; {len(self.configuration['addons']) - len(charts)} charts follow"

    def _publish_join_information(self) -> Generator[float, None, str]:
        yield 0.9
        return self.environment.disks[self.references["volumeId"]].publish()

    def _schedule_certificates(self) -> Generator[float, None, str]:
        yield 0.7
        return f"valid until {certificates_end(self._clock.time)}"

    def _await_masters_upgrade(self) -> Generator[float, None, str]:
        """Wait while any master has an older minor version than this node's kubelet."""
        begin = self._clock.now
        hint = "check the stack events for a failed update of the masters; then update the stack again"
        yield from self._wait(
            "masters of this version",
            self._why_masters_too_old,
            hint,
            self.configuration.get("upgradeWait", MASTER_UPGRADE_MINUTES) * 60,
        )
        waited = self._clock.now - begin
        self._deadline += waited
        return (
            f"the masters are new enough after {waited:.0f} s"
            if waited
            else "the masters are new enough, or not running yet"
        )

    def _why_masters_too_old(self) -> str:
        """Return why this node must not join yet: a master older than its kubelet; empty if there is none."""
        own_version, oldest_version = (
            self.configuration["kubernetesVersion"],
            self._read_join_information().get("kubernetesVersion", ""),
        )
        if oldest_version and _minor(oldest_version) < _minor(own_version):
            return (
                f"this node's kubelet is {own_version} and a master is still {oldest_version}: masters are "
                "updated first"
            )
        return ""

    def _read_join_information(self) -> Mapping[str, str]:
        """Return the join information; empty if no master has published it yet."""
        return self._read_secret(self.references["joinSecretArn"])

    def _join(self) -> Generator[float, None, str]:
        secret = self.references["joinSecretArn"]
        hint = "check the masters' consoles for a failed boot; on a master: `systemctl status cfngen-boot cfngen-join`"

        def blocker() -> str:
            cluster = self.environment.clusters.get(secret)
            can_join = cluster and self.environment.has_quorum(cluster) and cluster.expires
            return self._why_masters_too_old() if can_join else "no master has published the join information yet"

        yield from self._wait("joining", blocker, hint)
        cluster = self.environment.clusters[secret]
        if cluster.expires <= cluster.state.time(60):
            cluster.publish()
        endpoint = self._read_join_information()["endpoint"]
        yield 5.7
        self._register_node(cluster)
        return f"joined {endpoint}"

    def _wait(
        self, goal: str, blocker: Callable[[], str], hint: str, seconds: float | None = None
    ) -> Generator[float, None, None]:
        """Wait until nothing blocks any more, and log the reason every minute.

        Args:
            goal: what the boot waits for, as a phrase of the log line.
            blocker: returns the reason to keep waiting; an empty text ends the wait.
            hint: what to look at after a timeout.
            seconds: the timeout; by default it ends early enough for a failure signal to reach CloudFormation.
        """
        started = last_logged = self._clock.now
        deadline = started + (max(60.0, self._deadline - started) if seconds is None else seconds)
        while reason := blocker():
            now = self._clock.now
            if now >= deadline:
                raise BootFailure(f"waited {now - started:.0f} s for {goal}: {reason}", hint)
            if now - last_logged >= LOG_INTERVAL:
                last_logged = now
                self._log(f"waiting for {goal} ({now - started:.0f} s): {reason}")
            yield POLL_SECONDS

    def _await_node_ready(self) -> Generator[float, None, str]:
        yield 13.5 + self._jitter
        cluster = self.environment.clusters[self.references["joinSecretArn"]]
        cluster.state.set_ready(self.instance.id, True)
        schedule_pending_pods(cluster.state)
        return f"node {self.instance.id} is Ready"

    def _signal_success(self) -> Generator[float, None, str]:
        yield 0.3
        return (yield from self._signal_stacks("SUCCESS"))

    def _register_node(self, cluster: KubernetesCluster) -> None:
        boot_data, instance = self.instance.boot_data, self.instance
        address = self.references.get("privateAddress", instance.address)
        # A single master's public address is the API's; each of several masters has a public address of its own.
        public = "" if self._has_several_masters else self.references.get("publicAddress", "")
        node = NodeFacts(
            name=instance.id,
            zone=instance.zone,
            instance_type=instance.type,
            architecture=boot_data.architecture,
            address=address,
            public_address=public or instance.public_address,
            pod_cidr=cluster.next_pod_range(),
            master=boot_data.master,
            os_image=instance.image,
            versions={
                "containerd": boot_data.version("containerd"),
                "kubelet": boot_data.version("kubelet", cluster.state.version),
            },
        )
        register_node(cluster.state, node)
        cluster.controllers.route(node.name, node.pod_cidr)

    def _read_secret(self, arn: str) -> dict[str, str]:
        try:
            response = client("secretsmanager", self.environment.cloud.region).get_secret_value(SecretId=arn)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            return {}
        content: dict[str, str] = json.loads(response.get("SecretString") or "{}")
        return content

    def _write_secret(self, arn: str, bundle: Mapping[str, str]) -> None:
        client("secretsmanager", self.environment.cloud.region).put_secret_value(
            SecretId=arn, SecretString=json.dumps(bundle)
        )


def _minor(version: str) -> int:
    """Return 36 for `v1.36.3` or `1.36.3`."""
    return int(version.split(".")[1])
