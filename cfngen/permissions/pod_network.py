"""Statements that the network plug-in needs on the roles of masters and nodes."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.permissions.references import (
    References,
    arn,
    if_request_tagged,
    if_resource_tagged,
    only_when_creating,
    unless_master,
)
from cfngen.permissions.statements import Statement, allow


def pod_network(cluster: Cluster, references: References, *, master: bool) -> list[Statement]:
    """Return the statements that the cluster's network plug-in needs.

    Args:
        cluster: the cluster.
        references: what the statements refer to.
        master: whether the statements are for masters.
    """
    plugin = network_plugin(cluster)
    if plugin.interfaces:
        return _pod_addresses(cluster, references, master=master)
    return _pod_routes(cluster, references) if plugin.routes and master else []


def _pod_routes(cluster: Cluster, references: References) -> list[Statement]:
    """Return what the cloud controller manager needs to write pods' routes into one route table.

    It also disables the source/destination check of its instances.
    """
    route_table = arn(references, "ec2", "route-table/${RouteTable}", RouteTable=references.route_table)
    return [
        allow("PodRoutes", "ec2:CreateRoute ec2:DeleteRoute", [route_table]),
        allow(
            "PodRoutesOwnInstances",
            "ec2:ModifyInstanceAttribute",
            [arn(references, "ec2", "instance/*")],
            if_resource_tagged(cluster),
        ),
    ]


def _pod_addresses(cluster: Cluster, references: References, *, master: bool) -> list[Statement]:
    """Return what the Amazon VPC plug-in needs to give pods addresses of network interfaces.

    AmazonEKS_CNI_Policy allows this on every interface of the account. Here interfaces must have the cluster's tag,
    which the plug-in puts on those it creates, and nodes may not change the interfaces that masters boot with. Source:
    "Scope-down IAM policy" of the plug-in's docs/iam-policy.md.
    """
    interfaces, instances = arn(references, "ec2", "network-interface/*"), arn(references, "ec2", "instance/*")
    subnets, groups = arn(references, "ec2", "subnet/*"), arn(references, "ec2", "security-group/*")
    same_cluster = if_resource_tagged(cluster)
    own = same_cluster if master else {**same_cluster, **unless_master()}
    in_vpc = {"ArnEquals": {"ec2:Vpc": arn(references, "ec2", "vpc/${Vpc}", Vpc=references.vpc)}}
    # Tags that the plug-in adds to existing interfaces; role tags are not among them.
    keys = ["KubernetesCluster", f"kubernetes.io/cluster/{cluster.name}", "node.k8s.amazonaws.com/createdAt"]
    allowed_tag_keys = {"aws:TagKeys": [*keys, "node.k8s.amazonaws.com/instance_id"]}
    return [
        allow("PodAddressesRead", "ec2:DescribeInstanceTypes ec2:DescribeInstances ec2:DescribeNetworkInterfaces"),
        allow(
            "PodAddressesOwnInterfaces",
            "ec2:AssignPrivateIpAddresses ec2:DeleteNetworkInterface ec2:UnassignPrivateIpAddresses",
            [interfaces],
            own,
        ),
        allow(
            "PodAddressesOwnInstances",
            "ec2:AttachNetworkInterface ec2:DetachNetworkInterface ec2:ModifyNetworkInterfaceAttribute",
            [interfaces, instances],
            own,
        ),
        allow("PodAddressesNewInterfaces", "ec2:CreateNetworkInterface", [interfaces], if_request_tagged(cluster)),
        # EC2 checks the subnet and the security groups too, which are not being created.
        allow("PodAddressesNewInterfacesInVpc", "ec2:CreateNetworkInterface", [subnets, groups], in_vpc),
        allow("PodAddressesGroupsInVpc", "ec2:ModifyNetworkInterfaceAttribute", [groups], in_vpc),
        allow(
            "PodAddressesTagNewInterfaces",
            "ec2:CreateTags",
            [interfaces],
            only_when_creating(cluster, "ec2", "CreateNetworkInterface"),
        ),
        allow(
            "PodAddressesMarkOwnInterfaces",
            "ec2:CreateTags",
            [interfaces],
            {**same_cluster, "ForAllValues:StringEquals": allowed_tag_keys},
        ),
    ]
