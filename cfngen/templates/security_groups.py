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
from cfngen.cluster.allowed_sources import SecurityGroupRole, sources_by_group
from cfngen.cluster.model import Cluster
from cfngen.cluster.names import load_balancer_name
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.sections.network import PrefixList
from cfngen.cluster.security_group_ids import RuleId, SecurityGroupId, source_id
from cfngen.templates.network import vpc_id
from cfngen.templates.patterns import CIDR
from cfngen.templates.property_value import Value
from cfngen.templates.stack import ACCESS, Stack
from cfngen.templates.tagging import tags, tags_without_cluster_tag

KUBELET_PORT = 10250
ICMP_FRAGMENTATION_NEEDED = (3, 4)
"""Type and code of the ICMP message, in place of the port range of a rule."""
_ROLE_NAMES: Mapping[SecurityGroupRole, str] = {
    "Master": "masters",
    "Node": "nodes",
    "ApiLoadBalancer": "load balancer of the API",
}


def build(cluster: Cluster) -> Stack:
    """Return the security group stack."""
    stack = Stack(
        cluster,
        name="security-groups",
        logical_id="SecurityGroupsStack",
        module=__name__,
        description=f"Security groups of the Kubernetes cluster {cluster.name}: "
        "masters, nodes and the rules between them",
    )
    vpc = vpc_id(stack, cluster)
    masters_group = GetAtt(_add_group(stack, cluster, vpc, role="Master", instances="masters"), "GroupId")
    nodes_group = GetAtt(_add_group(stack, cluster, vpc, role="Node", instances="nodes"), "GroupId")

    # A rule without a purpose opens all ports.
    _allow_group(
        stack,
        RuleId("Node", purpose="", source="Nodes"),
        target_group=nodes_group,
        source_group=nodes_group,
        description="Nodes and pods to nodes and pods",
    )
    _allow_group(
        stack,
        RuleId("Node", purpose="", source="Masters"),
        target_group=nodes_group,
        source_group=masters_group,
        description="API server to kubelets, webhooks and pods",
    )
    _allow_group(
        stack,
        RuleId("Master", purpose="", source="Masters"),
        target_group=masters_group,
        source_group=masters_group,
        description="Masters to each other: etcd, API server, kubelet",
    )
    # kube-up let nodes reach every port of the master, including etcd's. cfngen opens only the ports that kubeadm
    # documents and those of the network plug-in and the add-ons.
    master_ports = (*network_plugin(cluster).master_ports, *addon_ports.master_ports(cluster))
    for purpose, protocol, port, description in (
        ("Api", "tcp", cluster.api.port, "Nodes and pods to the API server"),
        ("Kubelet", "tcp", KUBELET_PORT, "Metrics collection from the kubelet"),
        *((each.rule_purpose, each.protocol, each.port, each.description) for each in master_ports),
    ):
        # For ICMP, FromPort is the type and ToPort the code; -1 means all codes.
        ports = (port, -1 if protocol == "icmp" else port)
        _allow_group(
            stack,
            RuleId("Master", purpose=purpose, source="Nodes"),
            target_group=masters_group,
            source_group=nodes_group,
            description=description,
            protocol=protocol,
            ports=ports,
        )
    _allow_group(
        stack,
        RuleId("Master", purpose="PathMtu", source="Nodes"),
        target_group=masters_group,
        source_group=nodes_group,
        description="Path MTU discovery (fragmentation needed)",
        protocol="icmp",
        ports=ICMP_FRAGMENTATION_NEEDED,
    )
    first_groups: dict[SecurityGroupRole, Value] = {"Master": masters_group, "Node": nodes_group}
    has_load_balancer = cluster.control_plane.count > 1
    if has_load_balancer:
        balancer_group = _add_load_balancer_group(
            stack, cluster, vpc, masters_group=masters_group, nodes_group=nodes_group
        )
        first_groups["ApiLoadBalancer"] = balancer_group
        _allow_range_parameter(
            stack, cluster, balancer_group, RuleId("ApiLoadBalancer", purpose="", source="AllowedCidr")
        )
    else:
        _allow_range_parameter(stack, cluster, masters_group, RuleId("Master", purpose="Api", source="AllowedCidr"))
    for role, first_group in first_groups.items():
        _allow_sources(stack, cluster, vpc, role, first_group=first_group, masters_group=masters_group)

    stack.output("MasterSecurityGroupId", masters_group, "Security group of the masters")
    stack.output("NodeSecurityGroupId", nodes_group, "Security group of the nodes")
    if has_load_balancer:
        stack.output(
            "ApiLoadBalancerSecurityGroupId",
            first_groups["ApiLoadBalancer"],
            "Security group of the API's load balancer",
        )
    return stack


def _add_group(
    stack: Stack, cluster: Cluster, vpc: Value, role: SecurityGroupRole, instances: str
) -> ec2.SecurityGroup:
    """Add the first security group of masters or nodes; it has the cluster's tags and allows all outgoing traffic."""
    return stack.add(
        ec2.SecurityGroup(
            str(SecurityGroupId(role)),
            GroupDescription=f"Kubernetes cluster {cluster.name}: {instances}",
            VpcId=vpc,
            SecurityGroupEgress=[_egress_to_anywhere()],
            Tags=tags(cluster, f"{cluster.name}-{instances}"),
        )
    )


def _egress_to_anywhere() -> ec2.SecurityGroupRule:
    """Return the rule that allows all outgoing traffic."""
    return ec2.SecurityGroupRule(
        CidrIp="0.0.0.0/0", IpProtocol="-1", Description="Images, packages, AWS APIs and whatever pods call"
    )


def _egress_to_masters(cluster: Cluster, masters_group: Value) -> ec2.SecurityGroupRule:
    """Return the rule that allows connections to the API servers only."""
    return ec2.SecurityGroupRule(
        DestinationSecurityGroupId=masters_group,
        IpProtocol="tcp",
        FromPort=cluster.api.port,
        ToPort=cluster.api.port,
        Description="API servers, and their health",
    )


def _allow_group(
    stack: Stack,
    rule: RuleId,
    *,
    target_group: Value,
    source_group: Value,
    description: str,
    protocol: str = "-1",
    ports: tuple[int, int] | None = None,
) -> None:
    """Add a rule to `target_group` that allows traffic from `source_group`, by default on all protocols and ports."""
    port_properties = {"FromPort": ports[0], "ToPort": ports[1]} if ports else {}
    stack.add(
        ec2.SecurityGroupIngress(
            str(rule),
            GroupId=target_group,
            SourceSecurityGroupId=source_group,
            IpProtocol=protocol,
            Description=description,
            **port_properties,
        )
    )


def _allow_source(
    stack: Stack,
    rule: RuleId,
    target_group: Value,
    *,
    source_property: Literal["CidrIp", "SourcePrefixListId"],
    source: Value,
    port: int,
    description: str,
) -> None:
    """Add a rule to `target_group` that allows TCP connections to a port from an address range or a prefix list."""
    stack.add(
        ec2.SecurityGroupIngress(
            str(rule),
            GroupId=target_group,
            IpProtocol="tcp",
            FromPort=port,
            ToPort=port,
            Description=description,
            **{source_property: source},
        )
    )


def overflow_security_groups(stack: Stack, cluster: Cluster, role: SecurityGroupRole) -> list[Value]:
    """Return references to the additional security groups of a role; most clusters need none.

    The first security group of masters, nodes or load balancer always exists. Additional groups contain the rules for
    allowed sources that would exceed the first group's quota of rules.
    """
    return [
        stack.parameter_from_other_stack(
            str(SecurityGroupId(role, position + 1, "Id")),
            description=f"Security group {position + 1} of the {_ROLE_NAMES[role]}",
        )
        for position in range(1, len(sources_by_group(cluster, role)))
    ]


def _allow_sources(
    stack: Stack, cluster: Cluster, vpc: Value, role: SecurityGroupRole, *, first_group: Value, masters_group: Value
) -> None:
    """Add a rule for each source that the cluster file allows.

    If the rules exceed the quota of the first security group, additional security groups are added for the rest.

    Args:
        stack: the stack to add to.
        cluster: the cluster.
        vpc: id of the VPC.
        role: masters, nodes or load balancer, which the sources may reach.
        first_group: id of the role's first security group, which was added before.
        masters_group: id of the masters' security group; the load balancer's groups allow outgoing traffic to it only.
    """
    for position, sources in enumerate(sources_by_group(cluster, role)):
        if position == 0:
            target_group = first_group
        else:
            additional_group = ec2.SecurityGroup(
                str(SecurityGroupId(role, position + 1)),
                GroupDescription=f"Kubernetes cluster {cluster.name}: who else may reach the {_ROLE_NAMES[role]}",
                VpcId=vpc,
                SecurityGroupEgress=[
                    _egress_to_masters(cluster, masters_group) if role == "ApiLoadBalancer" else _egress_to_anywhere()
                ],
                Tags=tags_without_cluster_tag(
                    cluster, f"{cluster.name}-{_ROLE_NAMES[role]}-{position + 1}".replace(" ", "-")
                ),
            )
            target_group = GetAtt(stack.add(additional_group), "GroupId")
            stack.output(
                str(SecurityGroupId(role, position + 1, "Id")),
                target_group,
                f"Security group {position + 1} of the {_ROLE_NAMES[role]}",
            )
        for source in sources:
            # The load balancer's groups only have rules for the API, so their logical ids omit the purpose.
            purpose = "" if role == "ApiLoadBalancer" else source.purpose
            port_name = "Kubernetes API" if source.purpose == "Api" else "SSH"
            is_prefix_list = isinstance(source.origin, PrefixList)
            cidr_or_list_id = source.origin.id if isinstance(source.origin, PrefixList) else str(source.origin)
            _allow_source(
                stack,
                RuleId(role, purpose=purpose, source=source_id(cidr_or_list_id)),
                target_group,
                source_property="SourcePrefixListId" if is_prefix_list else "CidrIp",
                source=cidr_or_list_id,
                port=source.port,
                description=f"{port_name} from {cidr_or_list_id}",
            )


def _add_load_balancer_group(
    stack: Stack, cluster: Cluster, vpc: Value, *, masters_group: Value, nodes_group: Value
) -> Value:
    """Add the first security group of the API's load balancer and its rules; return the group's id.

    One rule lets the load balancer reach the masters. Masters see the load balancer's address as the source of each
    connection, so they need no rules for the load balancer's clients.
    """
    port = cluster.api.port
    group = stack.add(
        ec2.SecurityGroup(
            str(SecurityGroupId("ApiLoadBalancer")),
            GroupDescription=f"Kubernetes cluster {cluster.name}: load balancer of the API",
            VpcId=vpc,
            SecurityGroupEgress=[_egress_to_masters(cluster, masters_group)],
            Tags=tags_without_cluster_tag(cluster, load_balancer_name(cluster)),
        )
    )
    balancer_group = GetAtt(group, "GroupId")
    _allow_group(
        stack,
        RuleId("Master", purpose="Api", source="LoadBalancer"),
        target_group=masters_group,
        source_group=balancer_group,
        description="Load balancer to the API servers, and their health",
        protocol="tcp",
        ports=(port, port),
    )
    if not cluster.api.public:
        # An internal load balancer sees the private addresses of masters and nodes, so rules can name the security
        # groups of masters and nodes. An internet-facing load balancer sees public addresses, which rules for security
        # groups do not match.
        for source, source_group in (("Masters", masters_group), ("Nodes", nodes_group)):
            _allow_group(
                stack,
                RuleId("ApiLoadBalancer", purpose="", source=source),
                target_group=balancer_group,
                source_group=source_group,
                description=f"{source} and pods by the address that people use for the API",
                protocol="tcp",
                ports=(port, port),
            )
    return balancer_group


def _allow_range_parameter(stack: Stack, cluster: Cluster, target_group: Value, rule: RuleId) -> None:
    """Add a parameter for the address range that may reach the API, and a rule that allows the range.

    If the cluster file lists the allowed sources, the user need not enter a range, so nothing is added.
    """
    if cluster.api.allowed_cidrs or cluster.api.allowed_prefix_lists:
        return
    cidr = stack.parameter(
        "ApiAllowedCidr",
        label="Who may reach the Kubernetes API",
        group=ACCESS,
        description="IPv4 address range that may reach the Kubernetes API server, e.g. 203.0.113.7/32",
        AllowedPattern=CIDR,
        ConstraintDescription="must be an IPv4 CIDR such as 203.0.113.7/32",
    )
    _allow_source(
        stack,
        rule,
        target_group,
        source_property="CidrIp",
        source=cidr,
        port=cluster.api.port,
        description="Kubernetes API from the given range",
    )
