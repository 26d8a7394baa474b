"""The stack with the security groups of masters, nodes and the API's load balancer, and their rules.

Rules between two groups are separate resources, since two groups that refer to each other inline would be a circular
dependency. Exactly one security group of each instance has the tag `kubernetes.io/cluster/<name>`: the cloud controller
manager opens the ports of load balancers in that group, and fails if it finds two. The additional groups and the load
balancer's group therefore do not have the tag.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from troposphere import GetAtt, ec2

from cfngen.cluster import addon_ports
from cfngen.cluster.allowed_sources import LOAD_BALANCER_ROLES, SecurityGroupRole, sources_by_group
from cfngen.cluster.model import Cluster
from cfngen.cluster.names import load_balancer_name
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.sections.network import PrefixList
from cfngen.cluster.security_group_ids import RuleId, SecurityGroupId, source_id
from cfngen.cluster.topology import has_api_load_balancer, has_both_endpoints, has_internal_load_balancer
from cfngen.templates.network import vpc_id
from cfngen.templates.patterns import CIDR_PATTERN
from cfngen.templates.property_value import PropertyValue
from cfngen.templates.security_group_rules import (
    allow_from_address_source,
    allow_from_group,
    egress_to_anywhere,
    egress_to_masters,
)
from cfngen.templates.stack import ACCESS, Stack
from cfngen.templates.tagging import tags, tags_without_kubernetes_io_tag

KUBELET_PORT = 10250
ICMP_FRAGMENTATION_NEEDED = (3, 4)
"""ICMP type and code, which take the place of the first and the last port in a rule."""
# What the security groups of a role protect, for descriptions and Name tags.
_PROTECTED_BY_ROLE: Mapping[SecurityGroupRole, str] = {
    "Master": "masters",
    "Node": "nodes",
    "ApiLoadBalancer": "load balancer of the API",
    "InternalApiLoadBalancer": "internal load balancer of the API",
}


def build(cluster: Cluster) -> Stack:
    """Return the security group stack."""
    stack = Stack(
        cluster,
        name="security-groups",
        logical_id="SecurityGroupsStack",
        source_module=__name__,
        description=f"Security groups of the Kubernetes cluster {cluster.name}: "
        "masters, nodes and the rules between them",
    )
    vpc_reference = vpc_id(stack, cluster)
    masters_group = GetAtt(
        _add_instances_group(stack, cluster, vpc_reference, role="Master", instances="masters"), "GroupId"
    )
    nodes_group = GetAtt(_add_instances_group(stack, cluster, vpc_reference, role="Node", instances="nodes"), "GroupId")

    # `purpose` is the part of a rule's logical id that names the opened port; it is empty if all ports are opened.
    allow_from_group(
        stack,
        RuleId("Node", purpose="", source="Nodes"),
        target_group=nodes_group,
        source_group=nodes_group,
        description="Nodes and pods to nodes and pods",
    )
    allow_from_group(
        stack,
        RuleId("Node", purpose="", source="Masters"),
        target_group=nodes_group,
        source_group=masters_group,
        description="API server to kubelets, webhooks and pods",
    )
    allow_from_group(
        stack,
        RuleId("Master", purpose="", source="Masters"),
        target_group=masters_group,
        source_group=masters_group,
        description="Masters to each other: etcd, API server, kubelet",
    )
    # kube-up let nodes reach every port of the master, including etcd's. On masters, cfngen opens to nodes only the
    # ports that kubeadm documents and those of the network plug-in and the add-ons.
    allow_from_group(
        stack,
        RuleId("Master", purpose="Api", source="Nodes"),
        target_group=masters_group,
        source_group=nodes_group,
        description="Nodes and pods to the API server",
        protocol="tcp",
        ports=(cluster.api.port, cluster.api.port),
    )
    allow_from_group(
        stack,
        RuleId("Master", purpose="Kubelet", source="Nodes"),
        target_group=masters_group,
        source_group=nodes_group,
        description="Metrics collection from the kubelet",
        protocol="tcp",
        ports=(KUBELET_PORT, KUBELET_PORT),
    )
    for opening in (*network_plugin(cluster).master_ports, *addon_ports.master_ports(cluster)):
        # For ICMP, FromPort is the type and ToPort the code; -1 means all codes.
        last_port = -1 if opening.protocol == "icmp" else opening.port
        allow_from_group(
            stack,
            RuleId("Master", purpose=opening.rule_purpose, source="Nodes"),
            target_group=masters_group,
            source_group=nodes_group,
            description=opening.description,
            protocol=opening.protocol,
            ports=(opening.port, last_port),
        )
    allow_from_group(
        stack,
        RuleId("Master", purpose="PathMtu", source="Nodes"),
        target_group=masters_group,
        source_group=nodes_group,
        description="Path MTU discovery (fragmentation needed)",
        protocol="icmp",
        ports=ICMP_FRAGMENTATION_NEEDED,
    )
    first_groups: dict[SecurityGroupRole, PropertyValue] = {"Master": masters_group, "Node": nodes_group}
    has_load_balancer = has_api_load_balancer(cluster)
    if has_load_balancer:
        balancer_group = _add_load_balancer_group(
            stack,
            cluster,
            vpc_reference,
            is_public=cluster.api.public,
            masters_group=masters_group,
            nodes_group=nodes_group,
        )
        first_groups["ApiLoadBalancer"] = balancer_group
        _allow_range_of_parameter(
            stack, cluster, balancer_group, RuleId("ApiLoadBalancer", purpose="", source="AllowedCidr")
        )
    else:
        _allow_range_of_parameter(stack, cluster, masters_group, RuleId("Master", purpose="Api", source="AllowedCidr"))
    if has_both_endpoints(cluster) and has_internal_load_balancer(cluster):
        first_groups["InternalApiLoadBalancer"] = _add_load_balancer_group(
            stack,
            cluster,
            vpc_reference,
            role="InternalApiLoadBalancer",
            is_public=False,
            masters_group=masters_group,
            nodes_group=nodes_group,
        )
    for role, first_group in first_groups.items():
        _allow_listed_sources(stack, cluster, vpc_reference, role, first_group=first_group, masters_group=masters_group)

    stack.output("MasterSecurityGroupId", value=masters_group, description="Security group of the masters")
    stack.output("NodeSecurityGroupId", value=nodes_group, description="Security group of the nodes")
    for role in LOAD_BALANCER_ROLES:
        if role in first_groups:
            stack.output(
                str(SecurityGroupId(role, part="Id")),
                value=first_groups[role],
                description=first_group_description(role),
            )
    return stack


def _add_instances_group(
    stack: Stack, cluster: Cluster, vpc_reference: PropertyValue, role: SecurityGroupRole, instances: str
) -> ec2.SecurityGroup:
    """Add the first security group of masters or nodes, which allows all outgoing traffic.

    Args:
        stack: the stack to add to.
        cluster: the cluster.
        vpc_reference: id of the VPC.
        role: the role in the group's logical id.
        instances: `masters` or `nodes`, for the group's description and Name tag.
    """
    return stack.add(
        ec2.SecurityGroup(
            str(SecurityGroupId(role)),
            GroupDescription=f"Kubernetes cluster {cluster.name}: {instances}",
            VpcId=vpc_reference,
            SecurityGroupEgress=[egress_to_anywhere()],
            Tags=tags(cluster, f"{cluster.name}-{instances}"),
        )
    )


def extra_security_groups(stack: Stack, cluster: Cluster, role: SecurityGroupRole) -> list[PropertyValue]:
    """Return references to the security groups of a role except the first; most clusters have no such groups.

    The first security group of masters, nodes or load balancer always exists. Extra security groups contain the rules
    for allowed sources that would exceed the quota of rules in the first group.
    """
    group_count = len(sources_by_group(cluster, role))
    return [
        stack.parameter_from_other_stack(
            str(SecurityGroupId(role, group_number, "Id")),
            description=f"Security group {group_number} of the {_PROTECTED_BY_ROLE[role]}",
        )
        for group_number in range(2, group_count + 1)
    ]


def first_group_description(role: SecurityGroupRole) -> str:
    """Return the description of the output, and of parameters, with the id of a load balancer's first group."""
    kind = "internal load balancer" if role == "InternalApiLoadBalancer" else "load balancer"
    return f"Security group of the API's {kind}"


def _allow_listed_sources(
    stack: Stack,
    cluster: Cluster,
    vpc_reference: PropertyValue,
    role: SecurityGroupRole,
    *,
    first_group: PropertyValue,
    masters_group: PropertyValue,
) -> None:
    """Add a rule for each source that the cluster file allows to reach the API or SSH.

    Rules that exceed the quota of the first security group go into extra security groups, which are added here.

    Args:
        stack: the stack to add to.
        cluster: the cluster.
        vpc_reference: id of the VPC.
        role: masters, nodes or load balancer; the sources that may reach this role get rules.
        first_group: id of the role's first security group, which was added before.
        masters_group: id of the masters' security group; the load balancer may open connections to this group only.
    """
    for group_number, sources in enumerate(sources_by_group(cluster, role), start=1):
        if group_number == 1:
            target_group = first_group
        else:
            extra_group = ec2.SecurityGroup(
                str(SecurityGroupId(role, group_number)),
                GroupDescription=(
                    f"Kubernetes cluster {cluster.name}: who else may reach the {_PROTECTED_BY_ROLE[role]}"
                ),
                VpcId=vpc_reference,
                SecurityGroupEgress=[
                    egress_to_masters(cluster, masters_group) if role in LOAD_BALANCER_ROLES else egress_to_anywhere()
                ],
                Tags=tags_without_kubernetes_io_tag(
                    cluster, f"{cluster.name}-{_PROTECTED_BY_ROLE[role]}-{group_number}".replace(" ", "-")
                ),
            )
            target_group = GetAtt(stack.add(extra_group), "GroupId")
            stack.output(
                str(SecurityGroupId(role, group_number, "Id")),
                value=target_group,
                description=f"Security group {group_number} of the {_PROTECTED_BY_ROLE[role]}",
            )
        for source in sources:
            # The load balancers' groups only have rules for the API, so their logical ids omit the purpose.
            purpose = "" if role in LOAD_BALANCER_ROLES else source.purpose
            port_name = "Kubernetes API" if source.purpose == "Api" else "SSH"
            # A source is a prefix list or an address range.
            if isinstance(source.origin, PrefixList):
                source_property: Literal["CidrIp", "SourcePrefixListId"] = "SourcePrefixListId"
                cidr_or_list_id = source.origin.id
            else:
                source_property = "CidrIp"
                cidr_or_list_id = str(source.origin)
            allow_from_address_source(
                stack,
                RuleId(role, purpose=purpose, source=source_id(cidr_or_list_id)),
                target_group,
                source_property=source_property,
                source=cidr_or_list_id,
                port=source.port,
                description=f"{port_name} from {cidr_or_list_id}",
            )


def _add_load_balancer_group(
    stack: Stack,
    cluster: Cluster,
    vpc_reference: PropertyValue,
    role: SecurityGroupRole = "ApiLoadBalancer",
    *,
    is_public: bool,
    masters_group: PropertyValue,
    nodes_group: PropertyValue,
) -> PropertyValue:
    """Add the first security group of one of the API's load balancers and its rules; return the group's id.

    One rule lets the load balancer reach the masters. Masters see the load balancer's address as the source of each
    connection, so their security group needs no rules for the clients of the load balancer.
    """
    port = cluster.api.port
    group = stack.add(
        ec2.SecurityGroup(
            str(SecurityGroupId(role)),
            GroupDescription=f"Kubernetes cluster {cluster.name}: {_PROTECTED_BY_ROLE[role]}",
            VpcId=vpc_reference,
            SecurityGroupEgress=[egress_to_masters(cluster, masters_group)],
            Tags=tags_without_kubernetes_io_tag(cluster, load_balancer_name(cluster, is_public=is_public)),
        )
    )
    balancer_group = GetAtt(group, "GroupId")
    allow_from_group(
        stack,
        RuleId("Master", purpose="Api", source=role.replace("Api", "")),
        target_group=masters_group,
        source_group=balancer_group,
        description="Load balancer to the API servers, and their health",
        protocol="tcp",
        ports=(port, port),
    )
    if not is_public:
        # An internal load balancer sees the private addresses of masters and nodes, so rules can name the security
        # groups of masters and nodes. An internet-facing load balancer sees public addresses, which rules for security
        # groups do not match.
        for source, source_group in (("Masters", masters_group), ("Nodes", nodes_group)):
            allow_from_group(
                stack,
                RuleId(role, purpose="", source=source),
                target_group=balancer_group,
                source_group=source_group,
                description=f"{source} and pods by the address that people use for the API",
                protocol="tcp",
                ports=(port, port),
            )
    return balancer_group


def _allow_range_of_parameter(stack: Stack, cluster: Cluster, target_group: PropertyValue, rule_id: RuleId) -> None:
    """Add a parameter for the address range that may reach the API, and a rule that allows this range.

    If the cluster file lists the allowed sources, the user need not enter a range, so nothing is added.
    """
    if cluster.api.allowed_cidrs or cluster.api.allowed_prefix_lists:
        return
    cidr = stack.parameter(
        "ApiAllowedCidr",
        label="Who may reach the Kubernetes API",
        parameter_group=ACCESS,
        description="IPv4 address range that may reach the Kubernetes API server, e.g. 203.0.113.7/32",
        AllowedPattern=CIDR_PATTERN,
        ConstraintDescription="must be an IPv4 CIDR such as 203.0.113.7/32",
    )
    allow_from_address_source(
        stack,
        rule_id,
        target_group,
        source_property="CidrIp",
        source=cidr,
        port=cluster.api.port,
        description="Kubernetes API from the given range",
    )
