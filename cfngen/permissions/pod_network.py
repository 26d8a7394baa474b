"""Statements for pods' network: of the network plug-in, and for routes that the cloud controller manager writes.

A plug-in that assigns addresses of network interfaces to pods has a role of its own, or uses the roles of masters and
nodes.
"""

from __future__ import annotations

from typing import Literal

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import CLUSTER
from cfngen.cluster.network.existing_parts import existing_group
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.permissions.references import (
    MASTER_ROLE_TAG,
    NODE_ROLE_TAG,
    References,
    arn,
    if_creating_tagged,
    if_request_tagged,
    if_resource_tagged,
    unless_master,
)
from cfngen.permissions.statements import Condition, Expression, Statement, allow

# Whose security groups: the instances, the role of their first group, and the tag of the groups that cfngen creates.
_SECURITY_GROUPS: tuple[tuple[Literal["masters", "nodes"], Literal["Master", "Node"], dict[str, str]], ...] = (
    ("masters", "Master", MASTER_ROLE_TAG),
    ("nodes", "Node", NODE_ROLE_TAG),
)


def pod_route_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements that let the cloud controller manager write pods' routes into the cluster's route table.

    The cloud controller manager also disables the source/destination check of the cluster's instances; a request sets
    one attribute only ("ModifyInstanceAttribute", Amazon EC2 API Reference). The result is empty if the network plug-in
    needs no routes of the VPC. A printed policy does not know the id of a route table that cfngen creates, but such a
    table has the cluster's tag; an existing one need not have it.
    """
    if not network_plugin(cluster).uses_vpc_routes:
        return []
    route_table = arn(references, "ec2", "route-table/${RouteTable}", RouteTable=references.route_table_id)
    has_existing_table = any(subnet.id for subnet in cluster.network.subnets)
    return [
        allow(
            sid="PodRoutes",
            actions="ec2:CreateRoute ec2:DeleteRoute",
            resources=[route_table],
            condition=None if has_existing_table else if_resource_tagged(cluster),
        ),
        allow(
            sid="PodRoutesOwnInstances",
            actions="ec2:ModifyInstanceAttribute",
            resources=[arn(references, "ec2", "instance/*")],
            condition={**if_resource_tagged(cluster), "Null": {"ec2:Attribute/SourceDestCheck": "false"}},
        ),
    ]


def instance_type_statements(cluster: Cluster) -> list[Statement]:
    """Return the statement for the boot program to find out how many pods an instance has addresses for.

    The result is empty if pods have no addresses of network interfaces. The statements for changing such addresses
    contain the permission, too.
    """
    if not network_plugin(cluster).gives_pods_vpc_addresses:
        return []
    return [allow(sid="PodAddressesCount", actions="ec2:DescribeInstanceTypes")]


def pod_address_statements(
    cluster: Cluster, references: References, user: Literal["masters", "nodes", "pods"]
) -> list[Statement]:
    """Return the statements that let the Amazon VPC plug-in assign addresses of network interfaces to pods.

    The managed policy AmazonEKS_CNI_Policy allows this for every interface of the account. These statements require the
    cluster's tag, which the plug-in adds to the interfaces that it creates, and do not let nodes change the interfaces
    that masters boot with. Source: "Scope-down IAM policy" of the plug-in's docs/iam-policy.md.

    Args:
        user: whose role has the statements: that of masters, that of nodes, or the one that the plug-in's pods on all
            of them share. The latter may assign addresses everywhere, but change and delete no interface of a master.
    """
    interfaces = arn(references, "ec2", "network-interface/*")
    instances = arn(references, "ec2", "instance/*")
    # Masters may change all interfaces and instances of the cluster, nodes only those of nodes.
    if_of_this_cluster = if_resource_tagged(cluster)
    if_changeable = {**if_of_this_cluster, **unless_master()} if user == "nodes" else if_of_this_cluster
    return [
        allow(
            sid="PodAddressesRead",
            actions="ec2:DescribeInstanceTypes ec2:DescribeInstances ec2:DescribeNetworkInterfaces ec2:DescribeSubnets",
        ),
        *(
            _shared_role_statements(interfaces, instances, if_of_this_cluster)
            if user == "pods"
            else _instance_role_statements(interfaces, instances, if_changeable)
        ),
        *_new_interface_statements(cluster, references),
        *_security_group_statements(cluster, references, user),
        *_interface_tag_statements(cluster, references, if_changeable),
    ]


def _new_interface_statements(cluster: Cluster, references: References) -> list[Statement]:
    return [
        allow(
            sid="PodAddressesNewInterfaces",
            actions="ec2:CreateNetworkInterface",
            resources=[arn(references, "ec2", "network-interface/*")],
            condition=if_request_tagged(cluster),
        ),
        # To create an interface, EC2 also requires permission for the subnet and the security groups. These exist
        # already, so tags of the request cannot restrict them.
        allow(
            sid="PodAddressesNewInterfacesInVpc",
            actions="ec2:CreateNetworkInterface",
            resources=[arn(references, "ec2", "subnet/*")],
            condition={"ArnEquals": {"ec2:Vpc": arn(references, "ec2", "vpc/${Vpc}", Vpc=references.vpc_id)}},
        ),
    ]


def _security_group_statements(
    cluster: Cluster, references: References, user: Literal["masters", "nodes", "pods"]
) -> list[Statement]:
    """Return the statements to give interfaces the security groups that the instances of the user have, and no others.

    The plug-in gives an interface the groups of the instance's first interface. Those that cfngen creates are
    recognized by their tags, existing ones by their ids.
    """
    statements: list[Statement] = []
    existing_ids: list[Expression] = []
    for instances, role, role_tag in _SECURITY_GROUPS:
        if user not in (instances, "pods"):
            continue
        existing_ids += references.existing_security_group_ids(instances)
        if not existing_group(cluster, role):
            statements.append(
                allow(
                    sid=f"PodAddressesGroupsOf{instances.capitalize()}",
                    actions="ec2:CreateNetworkInterface ec2:ModifyNetworkInterfaceAttribute",
                    resources=[arn(references, "ec2", "security-group/*")],
                    condition=if_resource_tagged(cluster, **role_tag),
                )
            )
    if existing_ids:
        unique_ids = [id_ for position, id_ in enumerate(existing_ids) if id_ not in existing_ids[:position]]
        statements.append(
            allow(
                sid="PodAddressesExistingGroups",
                actions="ec2:CreateNetworkInterface ec2:ModifyNetworkInterfaceAttribute",
                resources=[arn(references, "ec2", "security-group/${Group}", Group=id_) for id_ in unique_ids],
            )
        )
    return statements


def _interface_tag_statements(cluster: Cluster, references: References, if_changeable: Condition) -> list[Statement]:
    interfaces = arn(references, "ec2", "network-interface/*")
    # When it starts, the plug-in adds the tags that interfaces lack, such as new ones of the cluster file, and fails
    # unless it may. The tags of roles are not among them.
    allowed_tag_keys = {
        "aws:TagKeys": [
            CLUSTER,
            f"kubernetes.io/cluster/{cluster.name}",
            "node.k8s.amazonaws.com/createdAt",
            "node.k8s.amazonaws.com/instance_id",
            *cluster.tags,
        ]
    }
    return [
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
            condition={
                **if_changeable,
                "ForAllValues:StringEquals": allowed_tag_keys,
                # No interface becomes another cluster's.
                "StringEqualsIfExists": {f"aws:RequestTag/{CLUSTER}": cluster.name},
            },
        ),
    ]


def _instance_role_statements(interfaces: Expression, instances: Expression, condition: Condition) -> list[Statement]:
    """Return the statements for an instance's role to change interfaces and attach them."""
    return [
        allow(
            sid="PodAddressesOwnInterfaces",
            actions="ec2:AssignPrivateIpAddresses ec2:DeleteNetworkInterface ec2:UnassignPrivateIpAddresses",
            resources=[interfaces],
            condition=condition,
        ),
        allow(
            sid="PodAddressesOwnInstances",
            actions="ec2:AttachNetworkInterface ec2:DetachNetworkInterface ec2:ModifyNetworkInterfaceAttribute",
            resources=[interfaces, instances],
            condition=condition,
        ),
    ]


def _shared_role_statements(
    interfaces: Expression, instances: Expression, if_of_this_cluster: Condition
) -> list[Statement]:
    """Return the same for the role that the plug-in's pods on masters and nodes share.

    The interfaces that the plug-in makes for a master do not have the tag of masters, the ones that masters boot with
    do. The plug-in assigns addresses of the latter to pods, and changes nothing else of them.
    """
    return [
        allow(
            sid="PodAddressesOwnInterfaces",
            actions="ec2:AssignPrivateIpAddresses ec2:UnassignPrivateIpAddresses",
            resources=[interfaces],
            condition=if_of_this_cluster,
        ),
        allow(
            sid="PodAddressesChangeInterfaces",
            actions="""
                ec2:AttachNetworkInterface ec2:DeleteNetworkInterface ec2:DetachNetworkInterface
                ec2:ModifyNetworkInterfaceAttribute""",
            resources=[interfaces],
            condition={**if_of_this_cluster, **unless_master()},
        ),
        allow(
            sid="PodAddressesOwnInstances",
            actions="ec2:AttachNetworkInterface ec2:DetachNetworkInterface ec2:ModifyNetworkInterfaceAttribute",
            resources=[instances],
            condition=if_of_this_cluster,
        ),
    ]
