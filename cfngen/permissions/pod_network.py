"""Statements that the network plug-in needs on the roles of masters and nodes."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.permissions.references import (
    References,
    arn,
    if_creating_tagged,
    if_request_tagged,
    if_resource_tagged,
    unless_master,
)
from cfngen.permissions.statements import Statement, allow


def pod_network_statements(cluster: Cluster, references: References, *, for_masters: bool) -> list[Statement]:
    """Return the statements that the cluster's network plug-in needs.

    Args:
        cluster: the cluster.
        references: resources that the statements refer to.
        for_masters: whether the statements are for the masters' role; otherwise they are for nodes.
    """
    plugin = network_plugin(cluster)
    if plugin.gives_pods_vpc_addresses:
        return _pod_address_statements(cluster, references, for_masters=for_masters)
    return _pod_route_statements(cluster, references) if plugin.uses_vpc_routes and for_masters else []


def _pod_route_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements that let the cloud controller manager write pods' routes into the cluster's route table.

    The cloud controller manager also disables the source/destination check of the cluster's instances.
    """
    route_table = arn(references, "ec2", "route-table/${RouteTable}", RouteTable=references.route_table_id)
    return [
        allow(sid="PodRoutes", actions="ec2:CreateRoute ec2:DeleteRoute", resources=[route_table]),
        allow(
            sid="PodRoutesOwnInstances",
            actions="ec2:ModifyInstanceAttribute",
            resources=[arn(references, "ec2", "instance/*")],
            condition=if_resource_tagged(cluster),
        ),
    ]


def _pod_address_statements(cluster: Cluster, references: References, *, for_masters: bool) -> list[Statement]:
    """Return the statements that let the Amazon VPC plug-in assign addresses of network interfaces to pods.

    The managed policy AmazonEKS_CNI_Policy allows this for every interface of the account. These statements require the
    cluster's tag, which the plug-in adds to the interfaces that it creates, and do not let nodes change the interfaces
    that masters boot with. Source: "Scope-down IAM policy" of the plug-in's docs/iam-policy.md.
    """
    interfaces = arn(references, "ec2", "network-interface/*")
    instances = arn(references, "ec2", "instance/*")
    subnets = arn(references, "ec2", "subnet/*")
    security_groups = arn(references, "ec2", "security-group/*")
    # Masters may change all interfaces and instances of the cluster, nodes only those of nodes.
    if_of_this_cluster = if_resource_tagged(cluster)
    if_changeable = if_of_this_cluster if for_masters else {**if_of_this_cluster, **unless_master()}
    in_vpc = {"ArnEquals": {"ec2:Vpc": arn(references, "ec2", "vpc/${Vpc}", Vpc=references.vpc_id)}}
    # The plug-in adds tags with these keys to existing interfaces. The tags of roles are not among them.
    allowed_tag_keys = {
        "aws:TagKeys": [
            "KubernetesCluster",
            f"kubernetes.io/cluster/{cluster.name}",
            "node.k8s.amazonaws.com/createdAt",
            "node.k8s.amazonaws.com/instance_id",
        ]
    }
    return [
        allow(
            sid="PodAddressesRead",
            actions="ec2:DescribeInstanceTypes ec2:DescribeInstances ec2:DescribeNetworkInterfaces",
        ),
        allow(
            sid="PodAddressesOwnInterfaces",
            actions="ec2:AssignPrivateIpAddresses ec2:DeleteNetworkInterface ec2:UnassignPrivateIpAddresses",
            resources=[interfaces],
            condition=if_changeable,
        ),
        allow(
            sid="PodAddressesOwnInstances",
            actions="ec2:AttachNetworkInterface ec2:DetachNetworkInterface ec2:ModifyNetworkInterfaceAttribute",
            resources=[interfaces, instances],
            condition=if_changeable,
        ),
        allow(
            sid="PodAddressesNewInterfaces",
            actions="ec2:CreateNetworkInterface",
            resources=[interfaces],
            condition=if_request_tagged(cluster),
        ),
        # To create an interface, EC2 also requires permission for the subnet and the security groups. These exist
        # already, so tags of the request cannot restrict them.
        allow(
            sid="PodAddressesNewInterfacesInVpc",
            actions="ec2:CreateNetworkInterface",
            resources=[subnets, security_groups],
            condition=in_vpc,
        ),
        allow(
            sid="PodAddressesGroupsInVpc",
            actions="ec2:ModifyNetworkInterfaceAttribute",
            resources=[security_groups],
            condition=in_vpc,
        ),
        allow(
            sid="PodAddressesTagNewInterfaces",
            actions="ec2:CreateTags",
            resources=[interfaces],
            condition=if_creating_tagged(cluster, "ec2", "CreateNetworkInterface"),
        ),
        allow(
            sid="PodAddressesMarkOwnInterfaces",
            actions="ec2:CreateTags",
            resources=[interfaces],
            condition={**if_of_this_cluster, "ForAllValues:StringEquals": allowed_tag_keys},
        ),
    ]
