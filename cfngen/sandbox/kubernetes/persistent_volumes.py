"""PersistentVolumes of a cluster: their controller, and the provisioner and attacher beside the EBS CSI driver.

Words of events are those of kube-controller-manager (`pkg/controller/volume`) and of
kubernetes-csi/external-provisioner. How long each operation takes, and that a failed one is tried again after a minute,
is assumed.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from cfngen.sandbox.kubernetes.admission import DELAYED_BINDING, claim_names, requested_gib
from cfngen.sandbox.kubernetes.ebs_driver import PROVISIONER, DriverError, EbsDriver
from cfngen.sandbox.kubernetes.scheduling import (
    SELECTED_NODE,
    ZONE_LABEL,
    bound_volume,
    is_pending,
    schedule_pending_pods,
    zone_of,
)
from cfngen.sandbox.kubernetes.state import KubernetesState, Object

CREATION_SECONDS, ATTACHMENT_SECONDS, DETACHMENT_SECONDS, DELETION_SECONDS = 5.0, 8.0, 8.0, 15.0
RETRY = datetime.timedelta(seconds=60)


@dataclass
class PersistentVolumes:
    """Makes, attaches, detaches and deletes the volumes of claims.

    Attributes:
        schedule: called with a number of seconds and a function: calls the function after that simulated time.
        driver: the EBS CSI driver; None if it is not installed.
    """

    state: KubernetesState
    schedule: Callable[[float, Callable[[], None]], None]
    driver: EbsDriver | None = None
    _running: set[str] = field(default_factory=set)  # keys of the operations that are in progress
    _not_before: dict[str, datetime.datetime] = field(default_factory=dict)  # by key: when a failed one is tried again

    def install(self, driver: EbsDriver | None) -> None:
        """Install or upgrade the driver with its StorageClasses; None removes both."""
        former_classes = {item["metadata"]["name"] for item in self.driver.storage_classes()} if self.driver else set()
        self.driver = driver
        for storage_class in driver.storage_classes() if driver else ():
            name = storage_class["metadata"]["name"]
            former_classes.discard(name)
            if (existing := self.state.get("storageclasses", name)) is None:
                self.state.put("storageclasses", storage_class)
            else:
                existing |= {**storage_class, "metadata": {**existing["metadata"], **storage_class["metadata"]}}
        for name in former_classes:
            self.state.remove("storageclasses", name)
        self.reconcile()

    def reconcile(self) -> None:
        """Begin what is to be done by now: for pods without node, for claims without volume, for unused volumes."""
        schedule_pending_pods(self.state)
        for claim in self.state.list("persistentvolumeclaims"):
            if "deletionTimestamp" in claim["metadata"]:
                if not self._nodes_using(claim, with_waiting=True):
                    self.state.remove(
                        "persistentvolumeclaims", claim["metadata"]["name"], claim["metadata"]["namespace"]
                    )
            elif bound_volume(self.state, claim) is None:
                self._begin_to_provision(claim)
        for volume in self.state.list("persistentvolumes"):
            self._detach_or_reclaim(volume)
        for pod in self.state.list("pods"):
            # Where a test or a failure lets containers wait, the pod has their statuses.
            if is_pending(pod) and pod["spec"].get("nodeName") and "containerStatuses" not in pod["status"]:
                self._start(pod)

    def delete(self, item: Object) -> None:
        """Begin to delete a claim or a PersistentVolume, which goes once nothing uses it."""
        item["metadata"].setdefault("deletionTimestamp", self.state.time())
        self.reconcile()

    def _begin_to_provision(self, claim: Object) -> None:
        """Begin to provision the volume of a claim, or say in an event what it waits for."""
        name = claim["spec"].get("storageClassName", "")
        storage_class = self.state.get("storageclasses", name)
        record = functools.partial(self.state.record_event, "persistentvolumeclaims", claim)
        if not name:
            record("FailedBinding", "no persistent volumes available for this claim and no storage class is set")
        elif storage_class is None:
            record("ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found', warning=True)
        elif storage_class["volumeBindingMode"] == DELAYED_BINDING and not self._selected_node(claim):
            record("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
        elif self.driver is None or storage_class["provisioner"] != PROVISIONER:
            record(
                "ExternalProvisioning",
                "Waiting for a volume to be created either by the external provisioner "
                f"'{storage_class['provisioner']}' or manually by the system administrator. If volume creation is "
                "delayed, please verify that the provisioner is running and correctly registered.",
            )
        else:
            self._begin("persistentvolumeclaims", claim, CREATION_SECONDS, self._provision)

    def _selected_node(self, claim: Object) -> str:
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE, "")
        return node if self.state.get("nodes", node) else ""

    def _begin(self, plural: str, item: Object, seconds: float, action: Callable[[Object], None]) -> None:
        """Do something about an object after some seconds, unless that is under way, or has failed just now.

        Args:
            plural: the resource of the object, e.g. `pods`.
            action: called with the object if it still exists; a DriverError lets it be tried again.
        """
        metadata = item["metadata"]
        key = f"{action.__name__} {metadata['uid']}"
        if key in self._running or self.state.now() < self._not_before.get(key, self.state.now()):
            return

        def run() -> None:
            self._running.discard(key)
            current = self.state.get(plural, metadata["name"], metadata.get("namespace", ""))
            try:
                if current and current["metadata"]["uid"] == metadata["uid"]:
                    action(current)
            except DriverError:
                self._not_before[key] = self.state.now() + RETRY
            self.reconcile()

        self._running.add(key)
        self.schedule(seconds, run)

    def _provision(self, claim: Object) -> None:
        """Create the volume of a claim, and bind both."""
        metadata, spec = claim["metadata"], claim["spec"]
        storage_class = self.state.get("storageclasses", spec["storageClassName"])
        if self.driver is None or storage_class is None or "deletionTimestamp" in metadata:
            return
        volume_name, gib = f"pvc-{metadata['uid']}", requested_gib(claim)
        record = functools.partial(self.state.record_event, "persistentvolumeclaims", claim)
        nodes = [node["metadata"]["name"] for node in self.state.list("nodes")]
        try:
            if not nodes:
                raise DriverError("error generating accessibility requirements: no available topology found")
            zone = zone_of(self.state, self._selected_node(claim) or nodes[0])
            volume_id = self.driver.create_volume(volume_name, claim, storage_class, zone=zone, gib=gib)
        except DriverError as error:
            message = f'failed to provision volume with StorageClass "{spec["storageClassName"]}": rpc error: {error}'
            record("ProvisioningFailed", message, warning=True)
            raise
        self.state.put(
            "persistentvolumes", _persistent_volume(volume_name, volume_id, claim, storage_class, zone=zone, gib=gib)
        )
        spec["volumeName"] = volume_name
        capacity = {"storage": f"{gib}Gi"}
        claim["status"] = {"phase": "Bound", "accessModes": spec["accessModes"], "capacity": capacity}
        record("ProvisioningSucceeded", f"Successfully provisioned volume {volume_name}")

    def _detach_or_reclaim(self, volume: Object) -> None:
        """Begin to detach a volume that no pod on its node uses, and to reclaim one whose claim is gone."""
        metadata, spec = volume["metadata"], volume["spec"]
        if self.driver is None or "csi" not in spec:
            return
        reference = spec["claimRef"]
        claim = self.state.get("persistentvolumeclaims", reference["name"], reference["namespace"])
        if claim is not None and claim["metadata"]["uid"] != reference["uid"]:
            claim = None
        node = self._attached_to(spec["csi"]["volumeHandle"])
        if node and (claim is None or node not in self._nodes_using(claim)):
            self._begin("persistentvolumes", volume, DETACHMENT_SECONDS, self._detach)
        elif claim is None:
            volume["status"]["phase"] = "Released"
            if spec["persistentVolumeReclaimPolicy"] == "Delete":
                self._begin("persistentvolumes", volume, DELETION_SECONDS, self._delete_volume)
            elif "deletionTimestamp" in metadata:
                self.state.remove("persistentvolumes", metadata["name"])

    def _nodes_using(self, claim: Object, *, with_waiting: bool = False) -> set[str]:
        """Return the nodes of the pods that use a claim; with those that wait for one, which is an empty text."""
        name, namespace = claim["metadata"]["name"], claim["metadata"]["namespace"]
        pods = [pod for pod in self.state.list("pods", namespace) if name in claim_names(pod)]
        nodes = {pod["spec"].get("nodeName", "") for pod in pods}
        return nodes if with_waiting else nodes - {""}

    def _detach(self, volume: Object) -> None:
        volume_id = volume["spec"]["csi"]["volumeHandle"]
        if self.driver and self._attached_to(volume_id):
            self.driver.detach_volume(volume_id)

    def _delete_volume(self, volume: Object) -> None:
        if self.driver is None:
            return
        try:
            self.driver.delete_volume(volume["spec"]["csi"]["volumeHandle"])
        except DriverError as error:
            message = f"rpc error: {error}"
            self.state.record_event("persistentvolumes", volume, "VolumeFailedDelete", message, warning=True)
            raise
        self.state.remove("persistentvolumes", volume["metadata"]["name"])

    def _start(self, pod: Object) -> None:
        """Run a pod on its node once the volumes of its claims are attached; begin to attach those that are not."""
        node = pod["spec"]["nodeName"]
        attachments = {name: self._attached_to(volume_id) for name, volume_id in self._volumes_of(pod).items()}
        if all(attachment == node for attachment in attachments.values()):
            self.state.run_pod(pod, node)
            return
        for name, attachment in attachments.items():
            if attachment not in ("", node):
                message = f'Multi-Attach error for volume "{name}" Volume is already used by pod(s) on another node'
                self.state.record_event("pods", pod, "FailedAttachVolume", message, warning=True)
        if "" in attachments.values():
            self._begin("pods", pod, ATTACHMENT_SECONDS, self._attach)

    def _volumes_of(self, pod: Object) -> dict[str, str]:
        """Return the ids of the EBS volumes of a pod's claims, by name of the PersistentVolume."""
        namespace = pod["metadata"]["namespace"]
        claims = [self.state.get("persistentvolumeclaims", name, namespace) for name in claim_names(pod)]
        volumes = [bound_volume(self.state, claim) for claim in claims if claim]
        return {volume["metadata"]["name"]: volume["spec"]["csi"]["volumeHandle"] for volume in volumes if volume}

    def _attached_to(self, volume_id: str) -> str:
        return self.driver.attached_to(volume_id) if self.driver else ""

    def _attach(self, pod: Object) -> None:
        """Attach the volumes of a pod's claims that are not attached yet."""
        for name, volume_id in self._volumes_of(pod).items():
            if self.driver is None or self.driver.attached_to(volume_id):
                continue
            try:
                self.driver.attach_volume(volume_id, pod["spec"]["nodeName"])
            except DriverError as error:
                message = f'AttachVolume.Attach failed for volume "{name}" : rpc error: {error}'
                self.state.record_event("pods", pod, "FailedAttachVolume", message, warning=True)
                raise
            message = f'AttachVolume.Attach succeeded for volume "{name}" '
            self.state.record_event("pods", pod, "SuccessfulAttachVolume", message)


def _persistent_volume(
    name: str, volume_id: str, claim: Object, storage_class: Object, *, zone: str, gib: int
) -> Object:
    spec, metadata = claim["spec"], claim["metadata"]
    parameters = {key.lower(): value for key, value in (storage_class.get("parameters") or {}).items()}
    zone_requirement = {"key": ZONE_LABEL, "operator": "In", "values": [zone]}
    return {
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": {"storage": f"{gib}Gi"},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                **{key: metadata[key] for key in ("name", "namespace", "uid")},
            },
            "csi": {
                "driver": PROVISIONER,
                "fsType": parameters.get("csi.storage.k8s.io/fstype", "ext4"),
                "volumeHandle": volume_id,
            },
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone_requirement]}]}},
            "persistentVolumeReclaimPolicy": storage_class["reclaimPolicy"],
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": spec["volumeMode"],
        },
        "status": {"phase": "Bound"},
    }
