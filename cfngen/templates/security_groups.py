"""The security group stack: one group for masters, one for nodes, and the rules between them.

Rules that refer to the other group are resources of their own, since two groups cannot refer to each other inline.
Exactly one group of each instance has the cluster tag: the cloud controller manager opens load balancer ports in that
group and fails if it finds two. The security group of the API's load balancer does not have the tag.
"""

from __future__ import annotations

from collections.abc import Mapping

from troposphere import GetAtt, ec2

from cfngen.cluster import addon_ports
from cfngen.cluster.allowed_sources import Holder, sources_by_group
from cfngen.cluster.logical_ids import RuleId, SecurityGroupId, source_id
from cfngen.cluster.model import Cluster
from cfngen.cluster.names import load_balancer
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.sections.network import PrefixList
from cfngen.templates.network import vpc_id
from cfngen.templates.patterns import CIDR
from cfngen.templates.property_value import Value
from cfngen.templates.stack import ACCESS, Stack
from cfngen.templates.tagging import private_tags, tags

KUBELET_PORT = 10250
_HOLDER_NAMES: Mapping[Holder, str] = {
    "Master": "masters",
    "Node": "nodes",
    "ApiLoadBalancer": "load balancer of the API",
}


def build(cluster: Cluster) -> Stack:
    """Return the stack."""
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
    # kube-up let nodes reach every port of the master, including etcd's. Open now are only the ports that kubeadm
    # documents, and those of the network plug-in and the add-ons.
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
    first_groups: dict[Holder, Value] = {"Master": master, "Node": node}
    if balancer:
        first_groups["ApiLoadBalancer"] = balancer
    for holder, group in first_groups.items():
        _allow_sources(stack, cluster, vpc, holder, group, master)

    stack.output("MasterSecurityGroupId", master, "Security group of the masters")
    stack.output("NodeSecurityGroupId", node, "Security group of the nodes")
    if balancer:
        stack.output("ApiLoadBalancerSecurityGroupId", balancer, "Security group of the API's load balancer")
    return stack


def _add_group(stack: Stack, cluster: Cluster, vpc: Value, holder: Holder, plural: str) -> ec2.SecurityGroup:
    return stack.add(
        ec2.SecurityGroup(
            str(SecurityGroupId(holder)),
            GroupDescription=f"Kubernetes cluster {cluster.name}: {plural}",
            VpcId=vpc,
            SecurityGroupEgress=[_to_anywhere()],
            Tags=tags(cluster, f"{cluster.name}-{plural}"),
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
    span = {"FromPort": ports[0], "ToPort": ports[1]} if ports else {}
    stack.add(
        ec2.SecurityGroupIngress(
            name, GroupId=group, SourceSecurityGroupId=source, IpProtocol=protocol, Description=description, **span
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


def access_groups(stack: Stack, cluster: Cluster, holder: Holder) -> list[Value]:
    """Return references to the additional security groups that hold allowed sources; most clusters need none."""
    return [
        stack.wired_parameter(
            str(SecurityGroupId(holder, position + 1, "Id")),
            description=f"Security group {position + 1} of the {_HOLDER_NAMES[holder]}",
        )
        for position in range(1, len(sources_by_group(cluster, holder)))
    ]


def _allow_sources(stack: Stack, cluster: Cluster, vpc: Value, holder: Holder, first: Value, master: Value) -> None:
    """Add rules for the sources that the cluster file allows, in as many security groups as needed.

    The additional groups do not have the cluster's tag, which exactly one group of each instance must have.
    """
    for position, sources in enumerate(sources_by_group(cluster, holder)):
        group = first
        if position:
            further = ec2.SecurityGroup(
                str(SecurityGroupId(holder, position + 1)),
                GroupDescription=f"Kubernetes cluster {cluster.name}: who else may reach the {_HOLDER_NAMES[holder]}",
                VpcId=vpc,
                SecurityGroupEgress=[_to_masters(cluster, master) if holder == "ApiLoadBalancer" else _to_anywhere()],
                Tags=private_tags(cluster, f"{cluster.name}-{_HOLDER_NAMES[holder]}-{position + 1}".replace(" ", "-")),
            )
            group = GetAtt(stack.add(further), "GroupId")
            stack.output(
                str(SecurityGroupId(holder, position + 1, "Id")),
                group,
                f"Security group {position + 1} of the {_HOLDER_NAMES[holder]}",
            )
        for source in sources:
            # Of the balancer every rule is about the API; its rules have always been named without it.
            purpose = "" if holder == "ApiLoadBalancer" else source.purpose
            port_name = "Kubernetes API" if source.purpose == "Api" else "SSH"
            is_list = isinstance(source.origin, PrefixList)
            origin = str(source.origin.id if isinstance(source.origin, PrefixList) else source.origin)
            _allow_source(
                stack,
                str(RuleId(holder, purpose, source_id(origin))),
                group,
                {"SourcePrefixListId" if is_list else "CidrIp": origin},
                source.port,
                f"{port_name} from {origin}",
            )


def _add_load_balancer_group(stack: Stack, cluster: Cluster, vpc: Value, master: Value, node: Value) -> Value:
    """Add the security group of the API's load balancer and the rule that lets it reach masters; return its id.

    Masters see the load balancer's own address, so they need no rules for its clients.
    """
    port = cluster.api.port
    group = stack.add(
        ec2.SecurityGroup(
            str(SecurityGroupId("ApiLoadBalancer")),
            GroupDescription=f"Kubernetes cluster {cluster.name}: load balancer of the API",
            VpcId=vpc,
            SecurityGroupEgress=[_to_masters(cluster, master)],
            Tags=private_tags(cluster, load_balancer(cluster)),
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
        # An internal load balancer sees their private addresses; an internet-facing one sees public addresses.
        for role, source in (("Masters", master), ("Nodes", node)):
            name, purpose = (
                str(RuleId("ApiLoadBalancer", "", role)),
                f"{role} and pods by the address that people use for the API",
            )
            _allow_group(stack, name, balancer, source, purpose, protocol="tcp", ports=(port, port))
    return balancer


def _allow_range_parameter(stack: Stack, cluster: Cluster, group: Value, rule: RuleId) -> None:
    """Add a parameter for the range that may reach the API, and its rule, if the cluster file allows no source."""
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
