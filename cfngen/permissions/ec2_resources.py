"""Statements of CloudFormation's service role for resources of EC2 except instances, such as network and volumes.

One call needs permission for each resource that it names: for the new resource, which has no tags yet; for existing
parts of the cluster file, which need not have the cluster's tag; and for resources that the templates create, which
have it. Resources and condition keys: "Actions, resources, and condition keys for Amazon EC2", Service Authorization
Reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import existing_group, existing_groups
from cfngen.cluster.network.topology import (
    created_subnets,
    masters_have_elastic_ips,
    nat_gateway_zones,
    public_subnets,
    uses_internet_gateway,
)
from cfngen.cluster.sections.references import known_id
from cfngen.cluster.security_groups.rules import used_roles
from cfngen.permissions.scope import (
    Scope,
    if_request_claims_untagged,
    if_request_sets_cluster_tag,
    if_resource_has_tag,
    unless_of_another_cluster,
)
from cfngen.permissions.statements import Condition, Statement, allow

# The actions that create resources, by type.
_CREATION = {
    "dhcp-options": "ec2:CreateDhcpOptions",
    "elastic-ip": "ec2:AllocateAddress",
    "internet-gateway": "ec2:CreateInternetGateway",
    "key-pair": "ec2:ImportKeyPair",
    "launch-template": "ec2:CreateLaunchTemplate",
    "network-interface": "ec2:CreateNetworkInterface",
    "route-table": "ec2:CreateRouteTable",
    "security-group": "ec2:CreateSecurityGroup",
    "subnet": "ec2:CreateSubnet",
    "volume": "ec2:CreateVolume",
    "vpc": "ec2:CreateVpc",
}
# What the handlers call for a resource that they have just created, perhaps before they tag it.
_COMPLETION = {
    "network-interface": "ec2:ModifyNetworkInterfaceAttribute",
    "security-group": """ec2:AuthorizeSecurityGroupEgress ec2:AuthorizeSecurityGroupIngress
        ec2:RevokeSecurityGroupEgress ec2:UpdateSecurityGroupRuleDescriptions*""",
    "subnet": "ec2:ModifySubnetAttribute",
    "vpc": "ec2:ModifyVpcAttribute",
}
# What is called for existing parts, by type.
_USE = {
    "dhcp-options": "ec2:AssociateDhcpOptions",
    "elastic-ip": "ec2:AssociateAddress ec2:DisassociateAddress",
    "route-table": "ec2:AssociateRouteTable ec2:DisassociateRouteTable ec2:ReplaceRouteTableAssociation",
    "security-group": "ec2:CreateNetworkInterface ec2:ModifyNetworkInterfaceAttribute",
    "subnet": "ec2:CreateNetworkInterface",
    "vpc": "ec2:CreateRouteTable ec2:CreateSecurityGroup ec2:CreateSubnet",
}
# Their handlers have no call for tags but the one that creates the resource: a key pair's tags cannot be updated
# (`tagUpdatable` in the CloudFormation registry), those of a launch template are "to apply to the launch template on
# creation" (TagSpecifications, reference of AWS::EC2::LaunchTemplate).
_TAGGED_AT_CREATION_ONLY = ("key-pair", "launch-template")


def created_types(cluster: Cluster) -> tuple[str, ...]:
    """Return the types of EC2 resources that CloudFormation creates for a cluster (`Scope.created_types`)."""
    network = cluster.network
    new_public_subnets = [subnet for subnet in public_subnets(cluster).values() if not subnet.id]
    has_new_subnets = bool(created_subnets(cluster) or new_public_subnets)
    has_new_address = (
        (masters_have_elastic_ips(cluster) and not cluster.api.elastic_ip)
        or (cluster.bastion is not None and not cluster.bastion.elastic_ip)
        or any(not subnet.nat_gateway and subnet.zone in nat_gateway_zones(cluster) for subnet in network.subnets)
    )
    is_created = {
        "dhcp-options": not network.vpc.id and network.dhcp_options is None,
        "elastic-ip": has_new_address,
        "internet-gateway": not network.vpc.id and uses_internet_gateway(cluster),
        "key-pair": cluster.ssh.public_key is not None,
        "launch-template": True,
        "network-interface": True,
        "route-table": has_new_subnets,
        "security-group": cluster.bastion is not None
        or any(not existing_group(cluster, role) for role in used_roles(cluster)),
        "subnet": has_new_subnets,
        "volume": True,
        "vpc": not network.vpc.id,
    }
    return tuple(resource_type for resource_type, created in is_created.items() if created)


def existing_parts(cluster: Cluster) -> tuple[str, ...]:
    """Return the existing parts of the network that CloudFormation uses (`Scope.existing_parts`)."""
    return tuple(dict.fromkeys(f"{part_type}/{known_id(part) or '*'}" for part_type, part in _existing_ids(cluster)))


def _existing_ids(cluster: Cluster) -> Iterator[tuple[str, str]]:
    network = cluster.network
    if network.vpc.id:
        yield "vpc", network.vpc.id
    else:
        # When the association is deleted, the VPC of the stack gets the options `default`, which no cluster has.
        yield "dhcp-options", "*"
    for subnet in network.subnets:
        if subnet.id:
            yield "subnet", subnet.id
        elif subnet.route_table:
            yield "route-table", subnet.route_table
        if subnet.public and subnet.public.id:
            yield "subnet", subnet.public.id
    for group_id in existing_groups(cluster).values():
        yield "security-group", group_id
    for elastic_ip in (cluster.api.elastic_ip, cluster.bastion.elastic_ip if cluster.bastion else None):
        if elastic_ip:
            yield "elastic-ip", elastic_ip.allocation_id


def ec2_statements(scope: Scope) -> list[Statement]:
    """Return the statements for resources of EC2 except instances, such as VPC, launch templates and volumes."""
    return [
        *_creation_statements(scope),
        *existing_part_statements(scope, _USE, sid="UseExisting"),
        allow(
            sid="ChangeOwn",
            actions="""
                ec2:AssignPrivateIpAddresses ec2:AssociateAddress ec2:AssociateDhcpOptions ec2:AssociateRouteTable
                ec2:AssociateVpcCidrBlock ec2:AttachInternetGateway ec2:CreateLaunchTemplateVersion
                ec2:CreateNetworkInterface ec2:CreateRoute ec2:CreateRouteTable ec2:CreateSecurityGroup ec2:CreateSubnet
                ec2:CreateTags ec2:DeleteDhcpOptions
                ec2:DeleteInternetGateway ec2:DeleteKeyPair ec2:DeleteLaunchTemplate ec2:DeleteLaunchTemplateVersions
                ec2:DeleteNetworkInterface ec2:DeleteRoute ec2:DeleteRouteTable ec2:DeleteSecurityGroup ec2:DeleteSubnet
                ec2:DeleteTags ec2:DeleteVolume ec2:DeleteVpc ec2:DetachInternetGateway ec2:DetachNetworkInterface
                ec2:DetachVolume ec2:DisassociateAddress ec2:DisassociateRouteTable ec2:DisassociateVpcCidrBlock
                ec2:ModifyLaunchTemplate ec2:ModifyNetworkInterfaceAttribute ec2:ModifyVolume ec2:ModifyVolumeAttribute
                ec2:ReleaseAddress ec2:ReplaceRoute ec2:ReplaceRouteTableAssociation ec2:RevokeSecurityGroupIngress
                ec2:UnassignPrivateIpAddresses""",
            resources=scope.ec2_arns("*"),
            condition=if_resource_has_tag(scope),
        ),
        *_tag_statements(scope),
        *_snapshot_statements(scope),
    ]


def _creation_statements(scope: Scope) -> list[Statement]:
    """Return the statements to create resources and to complete them.

    A subnet and a security group are also resources of the call that creates a network interface, a VPC of those that
    create what is in it; so network interfaces and VPCs have a statement of their own.
    """
    apart = [resource_type for resource_type in scope.created_types if resource_type in ("network-interface", "vpc")]
    others = [resource_type for resource_type in scope.created_types if resource_type not in apart]
    completed = [resource_type for resource_type in scope.created_types if resource_type in _COMPLETION]
    vpc_condition: Condition = {}
    if scope.vpc_id != "*":
        vpc_condition = {"ArnLikeIfExists": {"ec2:Vpc": scope.ec2_arns(f"vpc/{scope.vpc_id}")[0]}}
    return [
        *(
            allow(
                sid=sid,
                actions=" ".join(_CREATION[resource_type] for resource_type in types),
                resources=scope.ec2_arns(*(f"{resource_type}/*" for resource_type in types)),
            )
            for sid, types in (("Make", others), ("MakeInterfaces", apart))
        ),
        allow(
            sid="CompleteNew",
            actions=" ".join(_COMPLETION[resource_type] for resource_type in completed),
            resources=scope.ec2_arns("*"),
            condition={**unless_of_another_cluster(scope), **vpc_condition},
        ),
    ]


def existing_part_statements(scope: Scope, actions_by_type: Mapping[str, str], *, sid: str) -> list[Statement]:
    """Return the statement to use existing parts of the cluster file; empty if there are none of these types."""
    parts = [part for part in scope.existing_parts if part.partition("/")[0] in actions_by_type]
    part_types = dict.fromkeys(part.partition("/")[0] for part in parts)
    actions = " ".join(actions_by_type[part_type] for part_type in part_types)
    return [allow(sid=sid, actions=actions, resources=scope.ec2_arns(*parts))] if parts else []


def _tag_statements(scope: Scope) -> list[Statement]:
    """Return the statements for tags of new resources; those of the cluster's own are among the others."""
    return [
        # A tag of a resource that the same call creates, such as a launch template, or an instance of one.
        allow(
            sid="TagAtCreation",
            actions="ec2:CreateTags",
            resources=scope.ec2_arns("*"),
            condition={**if_request_sets_cluster_tag(scope), "Null": {"ec2:CreateAction": "false"}},
        ),
        *tag_new_statements(
            scope,
            *(resource_type for resource_type in scope.created_types if resource_type not in _TAGGED_AT_CREATION_ONLY),
        ),
    ]


def tag_new_statements(scope: Scope, *resource_types: str, sid: str = "TagNew") -> list[Statement]:
    """Return the statement to give the cluster's tag to resources that no cluster has; empty without types.

    CloudFormation's handlers of these types may tag in a call of its own: it is not documented which do. That of
    security groups does (aws-cloudformation/cloudformation-coverage-roadmap#714).
    """
    if not resource_types:
        return []
    return [
        allow(
            sid=sid,
            actions="ec2:CreateTags",
            resources=scope.ec2_arns(*(f"{resource_type}/*" for resource_type in resource_types)),
            condition=if_request_claims_untagged(scope),
        )
    ]


def _snapshot_statements(scope: Scope) -> list[Statement]:
    """Return the statements for the snapshot that CloudFormation creates before it deletes a data volume."""
    snapshots = [f"arn:{scope.partition}:ec2:{scope.region}::snapshot/*"]
    return [
        allow(
            sid="SnapshotOwn",
            actions="ec2:CreateSnapshot",
            resources=scope.ec2_arns("volume/*"),
            condition=if_resource_has_tag(scope),
        ),
        allow(sid="NewSnapshots", actions="ec2:CreateSnapshot", resources=snapshots),
        allow(
            sid="TagSnapshots",
            actions="ec2:CreateTags",
            resources=snapshots,
            condition={"StringEquals": {"ec2:CreateAction": "CreateSnapshot"}},
        ),
    ]
