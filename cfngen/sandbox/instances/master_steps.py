"""The steps of the boot program that only masters run, with their effect on the sandboxed cluster.

The durations are estimates.
"""

from __future__ import annotations

import datetime

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.instances.boot_state import Boot, BootFailure, BootState, StepRun
from cfngen.sandbox.instances.instance import role_of_instance
from cfngen.sandbox.instances.routine_steps import disks
from cfngen.sandbox.kubernetes import certificates
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster
from cfngen.sandbox.kubernetes.ebs_driver import installed_driver
from cfngen.sandbox.kubernetes.state import uid
from cfngen.sandbox.kubernetes.system_objects import (
    addon_pods,
    remove_addon,
    start_addons,
    start_control_plane,
)
from cfngen.sandbox.untyped import JsonObject

RESTORE_SECRET_HINT = "store the secret's previous value (AWSPREVIOUS) as a new version"
FIRST_SLOT = "a"  # the slot whose master alone may make a new cluster
FIRST_MASTER_HINT = f"check the console of master {FIRST_SLOT}: its boot may have failed"
CERTIFICATE_LIFETIME = datetime.timedelta(days=365)
MOUNT_POINT = "/mnt/master"  # where the boot program mounts the data volume
VOLUME_DEVICE = "/dev/sdf"  # the device name under which the boot program attaches the data volume
WEBHOOK = "pod-identity-webhook"  # name of the webhook's DaemonSet
WEBHOOK_HINT = (
    "`kubectl -n kube-system describe pods -l k8s-app=pod-identity-webhook`; `kubectl get events -n kube-system`"
)
WEBHOOK_PORT = 23443
WEBHOOK_WAIT_SECONDS = 180
MODE_RESULTS = {
    "init": "initialised a new cluster",
    "join": "joined the cluster",
    "restore": "restored the cluster",
    "resume": "continued with the etcd data on the volume",
}
"""The boot modes of a master, each with the result that the step `control plane` logs."""
CONTROL_PLANE_SECONDS = {"init": 61.5, "join": 48.0, "restore": 41.0, "resume": 33.0}
"""Seconds until the control plane of a master runs, by boot mode."""


class MasterSteps:
    """The steps of a master."""

    def __init__(self, boot: BootState) -> None:
        self.boot = boot
        self._boot_mode = ""  # a key of MODE_RESULTS; the step `authorities` sets it
        self._ca_bundle: dict[str, str] = {}  # the certificate authorities, PEM texts by file name
        self._restore_request: JsonObject = {}  # the restore request in the bucket; empty if there is none

    @property
    def _volume_id(self) -> str:
        return self.boot.references["volumeId"]

    @property
    def _ca_secret_arn(self) -> str:
        return self.boot.references["caSecretArn"]

    @property
    def _cluster(self) -> KubernetesCluster:
        return self.boot.environment.clusters_by_volume[self._volume_id]

    def attach_volume(self) -> StepRun:
        """Attach the data volume; it is blank until a master with this volume has started its control plane."""
        yield from self.boot.await_service("ec2", "describe_volumes")
        yield 7.5
        client("ec2", self.boot.environment.cloud.region).attach_volume(
            VolumeId=self._volume_id, InstanceId=self.boot.instance.id, Device=VOLUME_DEVICE
        )
        is_blank = self._volume_id not in self.boot.environment.clusters_by_volume
        device = f"/dev/nvme{len(disks(self.boot.instance)) + 1}n1"
        return f"{self._volume_id} is {device}{', formatted' if is_blank else ''}, mounted at {MOUNT_POINT}"

    def prepare_control_plane(self) -> StepRun:
        """Choose the boot mode, and prepare the certificate authorities."""
        yield from self.boot.await_service("secretsmanager", "get_secret_value")
        yield 2.8
        result = yield from self._choose_boot_mode()
        return f"{self._boot_mode}: {result}"

    def _choose_boot_mode(self) -> StepRun:
        """Choose whether this master initialises, joins, restores or resumes a cluster.

        Returns:
            What was done about the certificate authorities, for the log.

        Raises:
            BootFailure: the volume and the secret contradict each other.
        """
        self._ca_bundle = self.boot.read_secret(self._ca_secret_arn)
        if self._volume_id in self.boot.environment.clusters_by_volume:
            if not self._ca_bundle:
                raise BootFailure(
                    f"{self._volume_id} contains a cluster's data, but secret {self._ca_secret_arn} is empty",
                    RESTORE_SECRET_HINT,
                )
            yield from self._read_restore_request()
            self._boot_mode = "restore" if self._restore_request else "resume"
            return "installed the certificate authorities of the secret"
        if self.boot.references["slot"] != FIRST_SLOT:
            yield from self.boot.wait("the first master", self._why_not_initialised, FIRST_MASTER_HINT)
        if self.boot.references.get("bucket"):
            yield from self.boot.await_service("s3", "list_objects_v2")
        self._ca_bundle = self.boot.read_secret(self._ca_secret_arn)
        self._boot_mode = self._mode_of_blank_volume()
        if self._ca_bundle:
            return "installed the certificate authorities of the secret"
        self._ca_bundle = certificates.authorities(self.boot.clock.time)
        self.boot.write_secret(self._ca_secret_arn, self._ca_bundle)
        return "created the certificate authorities"

    def _mode_of_blank_volume(self) -> str:
        """The boot mode of a master without data: `init` or `join`.

        Raises:
            BootFailure: the only master of a cluster that exists already has no data.
        """
        initialised_at = self._ca_bundle.get(certificates.INITIALISED)
        if not initialised_at:
            return "init"
        if self.boot.has_several_masters:
            return "join"
        raise BootFailure(
            f"{self._volume_id} is blank, but the cluster exists since {initialised_at}: continuing would create "
            "a second, empty one",
            "run `cfngen etcd restore latest` (in the folder of the cluster file), or restore the volume from one "
            "of its snapshots; or, to start again with an empty cluster, remove "
            f"{certificates.INITIALISED} from secret {self._ca_secret_arn} and reboot",
        )

    def _read_restore_request(self) -> Boot:
        """Read whether a restore was requested; a master whose volume has data boots even without S3."""
        bucket = self.boot.references.get("bucket", "")
        if bucket:
            try:
                yield from self.boot.await_service("s3", "list_objects_v2")
            except BootFailure as error:
                self.boot.log(f"could not check whether a restore was requested, so the volume's data is used: {error}")
                return
        self._restore_request = self._cluster.backups.pending_restore(bucket, self._volume_id)

    def _why_not_initialised(self) -> str:
        """Return why a master other than the first must wait; empty once the first has initialised the cluster."""
        is_initialised = certificates.INITIALISED in self.boot.read_secret(self._ca_secret_arn)
        return "" if is_initialised else f"slot {FIRST_SLOT} has not initialised the cluster yet"

    def _why_no_quorum(self) -> str:
        """Return why etcd cannot add this member yet; empty if the other members have a quorum."""
        cluster = self.boot.environment.clusters.get(self.boot.references["joinSecretArn"])
        if cluster is not None and self.boot.environment.has_quorum(cluster):
            return ""
        own_address = self.boot.references["privateAddress"]
        master_addresses = [address for _, address in sorted(self.boot.configuration["masters"].items())]
        endpoints = [f"https://{address}:2379" for address in master_addresses if address != own_address]
        return f"etcd has no quorum: none of {', '.join(endpoints)} is healthy"

    @property
    def _quorum_hint(self) -> str:
        return (
            "start the other masters; if the volumes of most of them are lost: `cfngen etcd restore latest` (in the "
            f"folder of the cluster file of {self.boot.configuration['cluster']})"
        )

    def start_control_plane(self) -> StepRun:
        """Start the control plane as the boot mode says, and wait until etcd has a quorum with this master."""
        boot, environment = self.boot, self.boot.environment
        yield from self._await_prerequisites()
        yield CONTROL_PLANE_SECONDS[self._boot_mode]
        details = self._set_up_data()
        cluster = self._cluster
        cluster.start(boot.instance.id, boot.configuration, boot.references, self._ca_bundle)
        environment.clusters[boot.references["joinSecretArn"]] = cluster
        start_control_plane(cluster.state, boot.instance.id)
        boot.register_node(cluster)
        yield 6.0
        if boot.has_several_masters:
            missing = "it does not answer, or most members are down"
            yield from boot.wait(
                "etcd on this master", lambda: "" if environment.has_quorum(cluster) else missing, self._quorum_hint
            )
        bundle = boot.read_secret(self._ca_secret_arn)
        if certificates.INITIALISED not in bundle:
            boot.write_secret(self._ca_secret_arn, {**bundle, certificates.INITIALISED: cluster.state.time()})
        return MODE_RESULTS[self._boot_mode] + details

    def _await_prerequisites(self) -> Boot:
        """Wait until etcd can add this member, and until the images can be pulled that a new master lacks."""
        boot = self.boot
        if self._boot_mode == "join":
            yield from boot.wait("etcd to add this member", self._why_no_quorum, self._quorum_hint)
        if self._boot_mode in ("init", "join"):
            yield from boot.wait(
                "kubeadm's preflight",
                lambda: boot.connections.why_no_control_plane_images(boot.configuration["kubernetesVersion"]),
                "check that the instance can reach registry.k8s.io, or the mirrors in the cluster file",
            )

    def _set_up_data(self) -> str:
        """Give the volume the data that the boot mode says; return the details that the log line ends with."""
        boot, environment = self.boot, self.boot.environment
        if self._boot_mode == "init":
            environment.clusters_by_volume[self._volume_id] = KubernetesCluster(
                boot.configuration,
                boot.references,
                self._ca_bundle,
                now=lambda: boot.clock.time,
                schedule=boot.clock.schedule,
            )
        elif self._boot_mode == "join":
            environment.clusters_by_volume[self._volume_id] = environment.clusters[boot.references["joinSecretArn"]]
            member_id = uid(self._volume_id).replace("-", "")[:16]
            return ": " + f"etcd has promoted this member, {member_id}"
        elif self._boot_mode == "restore":
            self._cluster.backups.restore(boot.references["bucket"], self._volume_id, self._restore_request)
            return ": " + self._restore_details()
        return ""

    def _restore_details(self) -> str:
        request_id, snapshot = self._restore_request["id"], self._restore_request["snapshot"]
        previous_data = f"{MOUNT_POINT}/etcd.before-{request_id}"
        return f"restored {snapshot} for request {request_id}; the previous data is in {previous_data}"

    def apply_addons(self) -> StepRun:
        """Start the essential add-ons; with a network plug-in, the master's node is Ready."""
        yield 9.2
        configuration, instance_id = self.boot.configuration, self.boot.instance.id
        start_addons(self._cluster.state, instance_id, configuration["manifests"])
        region = self.boot.environment.cloud.region
        driver = installed_driver(region, configuration["addons"], role_of_instance(region, instance_id))
        self._cluster.controllers.volumes.install(driver)
        self.boot.make_node_ready(self._cluster)
        essential_charts = [release["name"] for release in configuration["addons"] if release["essential"]]
        components = " and ".join(["the cloud controller manager", *essential_charts])
        return f"{components} running; {len(configuration['addons']) - len(essential_charts)} charts follow"

    def publish_issuer_documents(self) -> StepRun:
        """Write the documents by which AWS verifies tokens of service accounts into the issuer's bucket."""
        yield from self.boot.await_service("s3", "put_object")
        yield 1.1
        bucket, issuer = self.boot.references["issuerBucket"], self.boot.references["issuer"]
        written = self._cluster.token_issuer.publish(self.boot.environment.cloud.region, bucket, issuer)
        if not written:
            return f"the documents of https://{issuer} are published already"
        return f"wrote {' and '.join(written)} into s3://{bucket}"

    def start_pod_identity_webhook(self) -> StepRun:
        """Wait for the pod identity webhook on this master; it is registered once all masters have it."""
        yield 12.0
        boot = self.boot
        try:
            yield from boot.wait("the pod identity webhook", self._why_no_webhook, WEBHOOK_HINT, WEBHOOK_WAIT_SECONDS)
        except BootFailure as error:
            boot.log(f"the boot continues without the pod identity webhook: {error} ({error.hint})")
            return "not working yet; it is retried every ten minutes"
        nodes = {pod["spec"]["nodeName"] for pod in addon_pods(self._cluster.state, WEBHOOK)}
        addresses = {
            address["address"]
            for node in self._cluster.state.list("nodes")
            if node["metadata"]["name"] in nodes
            for address in node["status"]["addresses"]
        }
        for slot, address in sorted(boot.configuration["masters"].items()):
            if address not in addresses:
                reason = f"nothing answers at {address}:{WEBHOOK_PORT} (master {slot})"
                return f"working, not registered yet: {reason}"
        return "working"

    def _why_no_webhook(self) -> str:
        """Return why the webhook does not run on this master; empty if its image can be pulled."""
        [daemon_set] = [
            manifest
            for manifest in self.boot.configuration["manifests"]
            if (manifest["kind"], manifest["metadata"]["name"]) == ("DaemonSet", WEBHOOK)
        ]
        image = daemon_set["spec"]["template"]["spec"]["containers"][0]["image"]
        if self.boot.connections.reaches_registry(image.partition("/")[0]):
            return ""
        loopback_address = "127.0.0.1"
        return f"nothing answers at {loopback_address}:{WEBHOOK_PORT}"

    def remove_former_webhook(self) -> StepRun:
        """Remove the pod identity webhook, if an earlier configuration has installed it."""
        yield 1.6
        return "deleted the pod identity webhook" if remove_addon(self._cluster.state, WEBHOOK) else "there is none"

    def publish_join_information(self) -> StepRun:
        """Publish what nodes need to join the cluster."""
        yield from self.boot.await_service("secretsmanager", "put_secret_value")
        yield 0.9
        return self._cluster.publish()

    def schedule_certificates(self) -> StepRun:
        """Schedule the renewal of the master's certificates."""
        yield 0.7
        end = self.boot.clock.time + CERTIFICATE_LIFETIME
        return f"valid until {end.strftime('%Y-%m-%dT%H:%M:%SZ')}"
