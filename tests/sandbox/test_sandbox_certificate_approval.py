"""Which instances of the sandbox become nodes: masters there ask about an instance what the boot program asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sandboxed import MASTERS, NODES, Place, place, said

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.instances.certificate_approval import why_no_certificate
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster

MASTER = {"Key": "k8s.io/role/master", "Value": "1"}


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    with place() as found:
        found.create()
        yield found


@pytest.fixture
def cluster(where: Place) -> KubernetesCluster:
    return where.account.cluster("kubernetes")


def test_node_that_is_refused_waits_and_joins_once_it_is_one_of_a_group(
    where: Place, cluster: KubernetesCluster
) -> None:
    account, ec2, former = where.account, client("ec2", where.account.region), where.instances(NODES)
    ec2.terminate_instances(InstanceIds=[former[-1].id])
    account.advance(1)
    while len(where.instances(NODES)) == len(former):
        account.advance(5)
    claimant = where.instances(NODES)[-1]
    ec2.create_tags(Resources=[claimant.id], Tags=[MASTER])
    account.advance(400)
    assert cluster.state.get("nodes", claimant.id) is None
    waiting = "no master approves the certificate request: that instance is a master or the bastion"
    assert said(claimant)[-1].endswith(waiting)
    ec2.delete_tags(Resources=[claimant.id], Tags=[MASTER])
    account.advance(120)
    assert cluster.state.get("nodes", claimant.id) is not None


def test_name_of_a_node_is_taken_while_its_kubelet_reports(where: Place, cluster: KubernetesCluster) -> None:
    node = where.instances(NODES)[0].id
    assert why_no_certificate(cluster, node).endswith("a kubelet already reports for the Node of that name")
    cluster.state.set_ready(node, False)
    assert why_no_certificate(cluster, node).endswith("a kubelet already reports for the Node of that name")
    cluster.state.set_ready(node, False, "NodeStatusUnknown", "Kubelet stopped posting node status.")
    assert why_no_certificate(cluster, node) == ""
    cluster.state.set_ready(node, True)


def test_nobody_becomes_a_master(where: Place, cluster: KubernetesCluster) -> None:
    [master] = where.instances(MASTERS)
    cluster.state.set_ready(master.id, False, "NodeStatusUnknown", "Kubelet stopped posting node status.")
    assert why_no_certificate(cluster, master.id).endswith("that instance is a master or the bastion")


def test_instance_without_a_role_is_no_node(where: Place, cluster: KubernetesCluster) -> None:
    ec2 = client("ec2", where.account.region)
    image = where.account.cloud.parameter_store["/aws/service/debian/release/13/latest/amd64"]
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "KubernetesCluster", "Value": "kubernetes"}]}]
    launched = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=tags)
    identifier = launched["Instances"][0]["InstanceId"]
    assert why_no_certificate(cluster, identifier).endswith("that instance is a master or the bastion")


def test_ec2_shows_the_instance_profile_of_a_launch_template(where: Place) -> None:
    """The boot program takes it for the sign of a master or a node."""
    ec2 = client("ec2", where.account.region)
    for group in (MASTERS, NODES):
        [reservation] = ec2.describe_instances(InstanceIds=[where.instances(group)[0].id])["Reservations"]
        assert ":instance-profile/" in reservation["Instances"][0]["IamInstanceProfile"]["Arn"]


def test_only_running_instances_of_the_cluster_become_nodes(where: Place, cluster: KubernetesCluster) -> None:
    ec2 = client("ec2", where.account.region)
    first, second = (instance.id for instance in where.instances(NODES)[:2])
    ec2.create_tags(Resources=[first], Tags=[{"Key": "KubernetesCluster", "Value": "other"}])
    ec2.stop_instances(InstanceIds=[second])
    for identifier in (first, second):
        reason = why_no_certificate(cluster, identifier)
        assert reason.endswith("EC2 has no running instance of this cluster with that id")
    assert why_no_certificate(cluster, "i-0123456789abcdef0").endswith("there is no such instance")
