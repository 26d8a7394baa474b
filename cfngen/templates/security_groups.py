"""The security group stack: a group for masters, one for nodes, one for the API's load balancer, and their rules.

Rules between two groups are separate resources, since two groups that refer to each other inline would be a circular
dependency. Exactly one security group of each instance has the tag `kubernetes.io/cluster/<name>`: the cloud controller
manager opens the ports of load balancers in that group, and fails if it finds two. The additional groups and the load
balancer's group therefore do not have the tag.
"""

from __future__ import annotations

from collections.abc import Mapping

from troposphere import GetAtt, ec2

from cfngen.cluster import addon_ports
from cfngen.cluster.allowed_sources import SecurityGroupRole, sources_by_group
from cfngen.cluster.logical_ids import RuleId, SecurityGroupId, source_id
from cfngen.cluster.model import Cluster
from cfngen.cluster.names import load_balancer_name
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.sections.network import PrefixList
from cfngen.templates.network import vpc_id
from cfngen.templates.patterns import CIDR
from cfngen.templates.property_value import Value
from cfngen.templates.stack import ACCESS, Stack
from cfngen.templates.tagging import tags, tags_without_cluster_tag

KUBELET_PORT = 10250
_ROLE_NAMES: Mapping[SecurityGroupRole, str] = {
    "Master": "masters",
    "Node": "nodes",
    "ApiLoadBalancer": "load balancer of the API",
}


def build(cluster: Cluster) -> Stack:
    """Return the security group stack."""
    stack = Stack(
        cluster,
        "security-groups",
        "SecurityGroupsStack",
        __name__,
        f"Security groups of the Kubernetes cluster {cluster.name}: masters, nodes and the rules between them",
    )
    vpc = vpc_id(stack, cluster)
    master = GetAtt(_add_group(stack, cluster, vpc, "Master", "masters"), "GroupId")
    node = GetAtt(_add_group(stack, cluster, vpc, "Node", "nodes"), "GroupId")

    _allow_group(stack, str(RuleId("Node", "", "Nodes")), node, node, "Nodes and pods to nodes and pods")
    _allow_group(stack, str(RuleId("Node", "", "Masters")), node, master, "API server to kubelets, webhooks and pods")
    _allow_group(
        stack, str(RuleId("Master", "", "Masters")), master, master, "Masters to each other: etcd, API server, kubelet"
    )
    # kube-up let nodes reach every port of the master, including etcd's. cfngen opens only the ports that kubeadm
    # documents and those of the network plug-in and the add-ons.
    openings = (*network_plugin(cluster).openings, *addon_ports.openings(cluster))
    for name, protocol, port, purpose in (
        ("Api", "tcp", cluster.api.port, "Nodes and pods to the API server"),
        ("Kubelet", "tcp", KUBELET_PORT, "Metrics collection from the kubelet"),
        *((opening.name, opening.protocol, opening.port, opening.purpose) for opening in openings),
    ):
        # For ICMP, FromPort is the type and ToPort the code; -1 means all codes.
        ports = (port, -1 if protocol == "icmp" else port)
        _allow_group(stack, str(RuleId("Master", name, "Nodes")), master, node, purpose, protocol=protocol, ports=ports)
    _allow_group(
        stack,
        str(RuleId("Master", "PathMtu", "Nodes")),
        master,
        node,
        "Path MTU discovery (fragmentation needed)",
        protocol="icmp",
        ports=(3, 4),
    )
    has_load_balancer = cluster.control_plane.count > 1
    balancer = _add_load_balancer_group(stack, cluster, vpc, master, node) if has_load_balancer else None
    if balancer:
        _allow_range_parameter(stack, cluster, balancer, RuleId("ApiLoadBalancer", "", "AllowedCidr"))
    else:
        _allow_range_parameter(stack, cluster, master, RuleId("Master", "Api", "AllowedCidr"))
    first_groups: dict[SecurityGroupRole, Value] = {"Master": master, "Node": node}
    if balancer:
        first_groups["ApiLoadBalancer"] = balancer
    # The rules for allowed sources; the quota of rules may require additional groups.
    for role, group in first_groups.items():
        _allow_sources(stack, cluster, vpc, role, group, master)

    stack.output("MasterSecurityGroupId", master, "Security group of the masters")
    stack.output("NodeSecurityGroupId", node, "Security group of the nodes")
    if balancer:
        stack.output("ApiLoadBalancerSecurityGroupId", balancer, "Security group of the API's load balancer")
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
            SecurityGroupEgress=[_to_anywhere()],
            Tags=tags(cluster, f"{cluster.name}-{instances}"),
        )
    )


def _to_anywhere() -> ec2.SecurityGroupRule:
    return ec2.SecurityGroupRule(
        CidrIp="0.0.0.0/0", IpProtocol="-1", Description="Images, packages, AWS APIs and whatever pods call"
    )


def _to_masters(cluster: Cluster, master: Value) -> ec2.SecurityGroupRule:
    return ec2.SecurityGroupRule(
        DestinationSecurityGroupId=master,
        IpProtocol="tcp",
        FromPort=cluster.api.port,
        ToPort=cluster.api.port,
        Description="API servers, and their health",
    )


def _allow_group(
    stack: Stack,
    name: str,
    group: Value,
    source: Value,
    description: str,
    *,
    protocol: str = "-1",
    ports: tuple[int, int] | None = None,
) -> None:
    port_properties = {"FromPort": ports[0], "ToPort": ports[1]} if ports else {}
    stack.add(
        ec2.SecurityGroupIngress(
            name,
            GroupId=group,
            SourceSecurityGroupId=source,
            IpProtocol=protocol,
            Description=description,
            **port_properties,
        )
    )


def _allow_source(
    stack: Stack, name: str, group: Value, source: Mapping[str, Value], port: int, description: str
) -> None:
    stack.add(
        ec2.SecurityGroupIngress(
            name, GroupId=group, IpProtocol="tcp", FromPort=port, ToPort=port, Description=description, **source
        )
    )


def access_groups(stack: Stack, cluster: Cluster, role: SecurityGroupRole) -> list[Value]:
    """Return references to the additional security groups of masters, nodes or load balancer; most clusters need none.

    Additional groups contain the rules for allowed sources that do not fit into the first group.
    """
    return [
        stack.parameter_from_other_stack(
            str(SecurityGroupId(role, position + 1, "Id")),
            description=f"Security group {position + 1} of the {_ROLE_NAMES[role]}",
        )
        for position in range(1, len(sources_by_group(cluster, role)))
    ]


def _allow_sources(
    stack: Stack, cluster: Cluster, vpc: Value, role: SecurityGroupRole, first_group: Value, master: Value
) -> None:
    """Add a rule for each source that the cluster file allows, and additional security groups if one is too small.

    Args:
        stack: the stack to add to.
        cluster: the cluster.
        vpc: id of the VPC.
        role: whose security groups they are.
        first_group: id of the first security group, which exists already.
        master: id of the masters' security group; the load balancer's groups allow outgoing traffic to it only.
    """
    for position, sources in enumerate(sources_by_group(cluster, role)):
        group = first_group
        if position:
            additional_group = ec2.SecurityGroup(
                str(SecurityGroupId(role, position + 1)),
                GroupDescription=f"Kubernetes cluster {cluster.name}: who else may reach the {_ROLE_NAMES[role]}",
                VpcId=vpc,
                SecurityGroupEgress=[_to_masters(cluster, master) if role == "ApiLoadBalancer" else _to_anywhere()],
                Tags=tags_without_cluster_tag(
                    cluster, f"{cluster.name}-{_ROLE_NAMES[role]}-{position + 1}".replace(" ", "-")
                ),
            )
            group = GetAtt(stack.add(additional_group), "GroupId")
            stack.output(
                str(SecurityGroupId(role, position + 1, "Id")),
                group,
                f"Security group {position + 1} of the {_ROLE_NAMES[role]}",
            )
        for source in sources:
            # The load balancer's groups only have rules for the API, so their logical ids omit the purpose.
            purpose = "" if role == "ApiLoadBalancer" else source.purpose
            port_name = "Kubernetes API" if source.purpose == "Api" else "SSH"
            if isinstance(source.origin, PrefixList):
                source_property, origin = "SourcePrefixListId", source.origin.id
            else:
                source_property, origin = "CidrIp", str(source.origin)
            _allow_source(
                stack,
                str(RuleId(role, purpose, source_id(origin))),
                group,
                {source_property: origin},
                source.port,
                f"{port_name} from {origin}",
            )


def _add_load_balancer_group(stack: Stack, cluster: Cluster, vpc: Value, master: Value, node: Value) -> Value:
    """Add the first security group of the API's load balancer and its rules; return the group's id.

    One rule lets the load balancer reach the masters. They see its address as the source of each connection, so they
    need no rules for its clients.
    """
    port = cluster.api.port
    group = stack.add(
        ec2.SecurityGroup(
            str(SecurityGroupId("ApiLoadBalancer")),
            GroupDescription=f"Kubernetes cluster {cluster.name}: load balancer of the API",
            VpcId=vpc,
            SecurityGroupEgress=[_to_masters(cluster, master)],
            Tags=tags_without_cluster_tag(cluster, load_balancer_name(cluster)),
        )
    )
    balancer = GetAtt(group, "GroupId")
    purpose = "Load balancer to the API servers, and their health"
    _allow_group(
        stack,
        str(RuleId("Master", "Api", "LoadBalancer")),
        master,
        balancer,
        purpose,
        protocol="tcp",
        ports=(port, port),
    )
    if not cluster.api.public:
        # An internal load balancer sees the private addresses of masters and nodes, so rules can name their groups. An
        # internet-facing one sees their public addresses.
        for role, source in (("Masters", master), ("Nodes", node)):
            name, purpose = (
                str(RuleId("ApiLoadBalancer", "", role)),
                f"{role} and pods by the address that people use for the API",
            )
            _allow_group(stack, name, balancer, source, purpose, protocol="tcp", ports=(port, port))
    return balancer


def _allow_range_parameter(stack: Stack, cluster: Cluster, group: Value, rule: RuleId) -> None:
    """Add a parameter for the range that may reach the API, and a rule for it.

    If the cluster file itself lists the allowed sources, nothing is added.
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
    description = "Kubernetes API from the given range"
    _allow_source(stack, str(rule), group, {"CidrIp": cidr}, cluster.api.port, description)
