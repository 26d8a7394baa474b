"""Objects of a cluster that its users, or a failure, would make: load balancers, volumes, and containers that wait."""

from __future__ import annotations

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.kubernetes.controllers import BALANCER_TYPE_ANNOTATION, Controllers
from cfngen.sandbox.kubernetes.state import SYSTEM, KubernetesState, Object, uid


def add_load_balancer(
    controllers: Controllers, name: str, namespace: str = "default", *, network_load_balancer: bool = False
) -> Object:
    """Add a Service of type LoadBalancer, for which the cloud controller manager creates a load balancer."""
    metadata: Object = {"name": name, "namespace": namespace}
    if network_load_balancer:
        metadata["annotations"] = {BALANCER_TYPE_ANNOTATION: "nlb"}
    ports = [{"port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30080}]
    service = {"metadata": metadata, "spec": {"type": "LoadBalancer", "ports": ports}, "status": {}}
    created = controllers.state.put("services", service)
    controllers.on_created("services", created)
    return created


def add_volume(controllers: Controllers, claim: str, namespace: str = "default", *, retain: bool = False) -> Object:
    """Add a PersistentVolumeClaim, the PersistentVolume bound to it, and its EBS volume.

    Args:
        controllers: the cluster's controllers.
        claim: name of the PersistentVolumeClaim.
        namespace: namespace of the claim.
        retain: use the reclaim policy Retain instead of Delete.
    """
    state, cluster, gib = controllers.state, controllers.cluster, 8
    name = f"pvc-{uid(f'{namespace}/{claim}')}"
    zone = next(node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in state.list("nodes"))
    tags = {
        "CSIVolumeName": name,
        "KubernetesCluster": cluster,
        "Name": f"{cluster}-dynamic-{name}",
        "ebs.csi.aws.com/cluster": "true",
        f"kubernetes.io/cluster/{cluster}": "owned",
        "kubernetes.io/created-for/pv/name": name,
        "kubernetes.io/created-for/pvc/name": claim,
        "kubernetes.io/created-for/pvc/namespace": namespace,
    }
    tag_list = [{"Key": key, "Value": value} for key, value in tags.items()]
    volume_id = client("ec2", controllers.region).create_volume(
        AvailabilityZone=zone,
        Size=gib,
        VolumeType="gp3",
        Encrypted=True,
        TagSpecifications=[{"ResourceType": "volume", "Tags": tag_list}],
    )["VolumeId"]
    capacity = {"storage": f"{gib}Gi"}
    common_spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "gp3", "volumeMode": "Filesystem"}
    state.put(
        "persistentvolumeclaims",
        {
            "metadata": {"name": claim, "namespace": namespace},
            "spec": {**common_spec, "resources": {"requests": capacity}, "volumeName": name},
            "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": capacity},
        },
    )
    zone_requirement = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return state.put(
        "persistentvolumes",
        {
            "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"}},
            "spec": {
                **common_spec,
                "capacity": capacity,
                "claimRef": {"kind": "PersistentVolumeClaim", "name": claim, "namespace": namespace},
                "csi": {"driver": "ebs.csi.aws.com", "fsType": "ext4", "volumeHandle": volume_id},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone_requirement]}]}},
                "persistentVolumeReclaimPolicy": "Retain" if retain else "Delete",
            },
            "status": {"phase": "Bound"},
        },
    )


def set_waiting(state: KubernetesState, pod: str, reason: str, message: str = "") -> None:
    """Set the container of a system pod to waiting for a reason, e.g. CrashLoopBackOff."""
    pod_object = state.get("pods", pod, SYSTEM)
    assert pod_object is not None
    [container] = pod_object["status"]["containerStatuses"]
    waiting = {"waiting": {"reason": reason, "message": message}}
    container |= {"ready": False, "started": False, "restartCount": 5, "state": waiting}
    others = [
        condition
        for condition in pod_object["status"]["conditions"]
        if condition["type"] not in ("Ready", "ContainersReady")
    ]
    common = {"status": "False", "lastTransitionTime": state.time(), "reason": "ContainersNotReady"}
    pod_object["status"]["conditions"] = [*others, {"type": "ContainersReady", **common}, {"type": "Ready", **common}]
