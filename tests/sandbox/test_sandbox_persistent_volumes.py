"""Claims in the sandbox become Bound as with the EBS CSI driver: requests of kubectl, and what EC2 then has."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from cluster_objects import claim, kubectl, pod_with
from sandboxed import NODES, Place, place

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster
from cfngen.sandbox.kubernetes.state import RefusedError
from cfngen.userdata.addons.storage import aws_ebs_csi_driver

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
PODS = "/api/v1/namespaces/default/pods"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
EVENTS = "/api/v1/namespaces/default/events"
REGION = "us-west-2"


@dataclass(frozen=True)
class Tried:
    """A cluster, asked as kubectl asks."""

    where: Place
    cluster: KubernetesCluster

    def __call__(self, method: str, path: str, body: Any = None, *, seconds: float = 0) -> Any:
        """The answer to a request, and what follows from it within some seconds."""
        answered = kubectl(self.cluster, method, path, body)
        self.where.account.advance(seconds)
        return answered

    def phase(self, path: str) -> str:
        return str(self("GET", path)["status"]["phase"])

    def events(self, name: str) -> list[str]:
        """Reasons and messages of the events about an object."""
        events = self("GET", EVENTS)["items"]
        return [f"{each['reason']}: {each['message']}" for each in events if each["involvedObject"]["name"] == name]

    def disks(self) -> list[Any]:
        """The EBS volumes of claims."""
        filters = [{"Name": "tag:ebs.csi.aws.com/cluster", "Values": ["true"]}]
        return client("ec2", REGION).describe_volumes(Filters=filters)["Volumes"]


@pytest.fixture(scope="module")
def created() -> Iterator[Tried]:
    with place() as where:
        assert where.create().status == "CREATE_COMPLETE"
        yield Tried(where, where.account.cluster("kubernetes"))


@pytest.fixture
def tried(created: Tried) -> Iterator[Tried]:
    """The default cluster, for each test without pods, claims and further classes of the other tests."""
    classes = {item["metadata"]["name"] for item in created("GET", CLASSES)["items"]}
    yield created
    for path in (PODS, CLAIMS):
        for item in created("GET", path)["items"]:
            created("DELETE", f"{path}/{item['metadata']['name']}")
    for item in created("GET", CLASSES)["items"]:
        if item["metadata"]["name"] not in classes:
            created("DELETE", f"{CLASSES}/{item['metadata']['name']}")
    created.where.account.advance(200)
    for item in created("GET", EVENTS)["items"]:
        created("DELETE", f"/api/v1/namespaces/default/events/{item['metadata']['name']}")


def test_the_default_class_is_that_of_the_add_on(tried: Tried) -> None:
    [found] = tried("GET", CLASSES)["items"]
    [settings] = aws_ebs_csi_driver(tried.where.cluster).values["storageClasses"]
    metadata = {key: found["metadata"][key] for key in ("name", "annotations")}
    assert {**found, **metadata}.items() >= {**settings, "provisioner": "ebs.csi.aws.com"}.items()


def test_a_claim_waits_for_a_pod_and_then_has_a_volume_beside_it(tried: Tried) -> None:
    tried("POST", CLAIMS, claim(), seconds=120)
    assert tried.phase(f"{CLAIMS}/data") == "Pending"
    assert tried.events("data")[-1:] == [
        "WaitForFirstConsumer: waiting for first consumer to be created before binding"
    ]
    assert tried.disks() == []

    tried("POST", PODS, pod_with("data"), seconds=60)
    bound, pod = tried("GET", f"{CLAIMS}/data"), tried("GET", f"{PODS}/db")
    assert (bound["status"]["phase"], bound["status"]["capacity"]) == ("Bound", {"storage": "4Gi"})
    assert pod["status"]["phase"] == "Running"
    [disk] = tried.disks()
    [instance] = [each for each in tried.where.instances(NODES) if each.id == pod["spec"]["nodeName"]]
    assert (disk["Size"], disk["VolumeType"], disk["Encrypted"]) == (4, "gp3", True)
    assert (disk["AvailabilityZone"], disk["Attachments"][0]["InstanceId"]) == (instance.zone, instance.id)
    [volume] = tried("GET", VOLUMES)["items"]
    assert volume["metadata"]["name"] == bound["spec"]["volumeName"]
    assert volume["spec"]["csi"]["volumeHandle"] == disk["VolumeId"]
    assert {tag["Key"]: tag["Value"] for tag in disk["Tags"]} == {
        "CSIVolumeName": volume["metadata"]["name"],
        "KubernetesCluster": "kubernetes",
        "Name": f"kubernetes-dynamic-{volume['metadata']['name']}",
        "ebs.csi.aws.com/cluster": "true",
        "kubernetes.io/cluster/kubernetes": "owned",
        "kubernetes.io/created-for/pv/name": volume["metadata"]["name"],
        "kubernetes.io/created-for/pvc/name": "data",
        "kubernetes.io/created-for/pvc/namespace": "default",
    }

    tried("DELETE", f"{CLAIMS}/data", seconds=60)
    assert tried("GET", f"{CLAIMS}/data")["metadata"]["deletionTimestamp"]  # it is in use
    tried("DELETE", f"{PODS}/db", seconds=60)
    assert tried("GET", CLAIMS)["items"] == tried("GET", VOLUMES)["items"] == tried.disks() == []


def test_a_volume_to_be_kept_stays_when_its_claim_goes(tried: Tried) -> None:
    kept = {"metadata": {"name": "kept"}, "provisioner": "ebs.csi.aws.com", "reclaimPolicy": "Retain"}
    tried("POST", CLASSES, kept)
    tried("POST", CLAIMS, claim(storageClassName="kept"), seconds=30)
    assert tried.phase(f"{CLAIMS}/data") == "Bound"  # its class does not wait for a pod
    tried("DELETE", f"{CLAIMS}/data", seconds=60)
    [volume] = tried("GET", VOLUMES)["items"]
    assert volume["status"]["phase"] == "Released"
    assert [disk["VolumeId"] for disk in tried.disks()] == [volume["spec"]["csi"]["volumeHandle"]]
    tried("DELETE", f"{VOLUMES}/{volume['metadata']['name']}")
    assert tried("GET", VOLUMES)["items"] == []
    client("ec2", REGION).delete_volume(VolumeId=tried.disks()[0]["VolumeId"])


def test_a_pod_waits_for_its_volume(tried: Tried) -> None:
    tried("POST", PODS, pod_with("data"), seconds=30)
    assert tried.events("db") == ['FailedScheduling: persistentvolumeclaim "data" not found']
    tried("POST", CLAIMS, claim(), seconds=60)
    assert tried.phase(f"{PODS}/db") == "Running"
    node = tried("GET", f"{PODS}/db")["spec"]["nodeName"]
    tried("POST", PODS, pod_with("data", name="other", nodeName=tried.where.instances(NODES)[0].id), seconds=30)
    others = [each.id for each in tried.where.instances(NODES) if each.id != node]
    tried("POST", PODS, pod_with("data", name="elsewhere", nodeSelector={"kubernetes.io/hostname": others[0]}))
    tried.where.account.advance(60)
    assert tried.phase(f"{PODS}/elsewhere") == "Pending"
    assert tried.events("elsewhere")[0].startswith("FailedAttachVolume: Multi-Attach error for volume ")
    for name in ("db", "other"):
        tried("DELETE", f"{PODS}/{name}")
    tried.where.account.advance(60)
    assert tried.phase(f"{PODS}/elsewhere") == "Running"
    assert tried.disks()[0]["Attachments"][0]["InstanceId"] == others[0]


def test_a_pod_does_not_leave_the_zone_of_its_volume(tried: Tried) -> None:
    tried("POST", CLAIMS, claim())
    tried("POST", PODS, pod_with("data"), seconds=60)
    tried("DELETE", f"{PODS}/db", seconds=60)
    labels = [node["metadata"]["labels"] for node in tried.cluster.state.list("nodes")]
    zones = [each["topology.kubernetes.io/zone"] for each in labels]
    for each in labels:
        each["topology.kubernetes.io/zone"] = "us-west-2z"
    tried("POST", PODS, pod_with("data"), seconds=60)
    for each, zone in zip(labels, zones, strict=True):
        each["topology.kubernetes.io/zone"] = zone
    assert tried.phase(f"{PODS}/db") == "Pending"
    [event] = [each for each in tried.events("db") if "volume node affinity conflict" in each]
    assert event.startswith("FailedScheduling: 0/5 nodes are available: ")
    tried.where.account.advance(60)
    assert tried.phase(f"{PODS}/db") == "Running"


def test_without_the_rights_of_the_driver_an_event_says_why(tried: Tried) -> None:
    iam = client("iam", REGION)
    [role] = [each["RoleName"] for each in iam.list_roles()["Roles"] if "MasterRole" in each["RoleName"]]
    [policy] = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    iam.detach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
    tried("POST", CLAIMS, claim())
    tried("POST", PODS, pod_with("data"), seconds=30)
    assert tried.phase(f"{CLAIMS}/data") == tried.phase(f"{PODS}/db") == "Pending"
    [event] = [each for each in tried.events("data") if each.startswith("ProvisioningFailed: ")]
    assert "You are not authorized to perform this operation" in event
    assert f"role/{role} is not authorized to perform: ec2:CreateVolume on resource: arn:aws:ec2:{REGION}:" in event
    iam.attach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
    tried.where.account.advance(60)
    tried.where.account.advance(60)
    assert tried.phase(f"{PODS}/db") == "Running"


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"storageClassName": "fast"}, 'ProvisioningFailed: storageclass.storage.k8s.io "fast" not found'),
        (
            {"storageClassName": ""},
            "FailedBinding: no persistent volumes available for this claim and no storage class",
        ),
        ({"accessModes": ["ReadWriteMany"]}, "ProvisioningFailed: .*Volume capabilities ReadWriteMany not supported"),
        ({"storageClassName": "odd"}, "ProvisioningFailed: .*the sandbox does not model the parameter blockExpress"),
        ({"storageClassName": "foreign"}, "ExternalProvisioning: .*the external provisioner 'example.com/nfs'"),
    ],
)
def test_a_claim_that_nobody_can_serve_says_why(tried: Tried, spec: dict[str, Any], reason: str) -> None:
    odd = {"metadata": {"name": "odd"}, "provisioner": "ebs.csi.aws.com", "parameters": {"blockExpress": "true"}}
    tried("POST", CLASSES, odd)
    tried("POST", CLASSES, {"metadata": {"name": "foreign"}, "provisioner": "example.com/nfs"})
    tried("POST", CLAIMS, claim(**spec))
    tried("POST", PODS, pod_with("data"), seconds=30)
    assert tried.phase(f"{CLAIMS}/data") == tried.phase(f"{PODS}/db") == "Pending"
    assert [each for each in tried.events("data") if re.match(reason, each)]


def workload(template: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {"template": {"spec": template}}}


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (CLAIMS, claim(dataSource={"kind": "VolumeSnapshot", "name": "s"}), "does not model spec.dataSource"),
        (CLAIMS, claim(volumeName="pv"), "does not model spec.volumeName"),
        (CLAIMS, claim(accessModes=[]), "spec.accessModes: Required value"),
        (CLAIMS, claim(resources={}), "spec.resources\\[storage\\]: Required value"),
        (CLAIMS, claim(resources={"requests": {"storage": "much"}}), "Invalid value"),
        (VOLUMES, {"metadata": {"name": "pv"}}, "does not model PersistentVolumes that are made by hand"),
        (CLASSES, {"metadata": {"name": "a"}, "allowedTopologies": [{}]}, "does not model allowedTopologies"),
        (PODS, pod_with("data", affinity={"podAffinity": {}}), "does not model the affinity of a pod with a claim"),
        (PODS, {"metadata": {"name": "p"}, "spec": {"volumes": [{"ephemeral": {}}]}}, "ephemeral volumes"),
        ("/apis/apps/v1/namespaces/default/deployments", workload(pod_with("data")["spec"]), "claims of a Deployment"),
    ],
)
def test_what_is_not_modelled_or_invalid_is_refused_by_name(
    tried: Tried, path: str, body: dict[str, Any], words: str
) -> None:
    with pytest.raises(RefusedError, match=words):
        tried("POST", path, body)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda spec: spec | {"resources": {"requests": {"storage": "8Gi"}}}, "expands no volumes"),
        (lambda spec: spec | {"accessModes": ["ReadWriteMany"]}, "spec is immutable after creation"),
    ],
)
def test_a_claim_does_not_change(tried: Tried, change: Callable[[Any], Any], words: str) -> None:
    made = tried("POST", CLAIMS, claim())
    with pytest.raises(RefusedError, match=words):
        tried("PUT", f"{CLAIMS}/data", {**made, "spec": change(dict(made["spec"]))})
