"""The rules of the cluster's security groups as data: who may reach whom on which port, and why.

Templates make resources of the rules of groups that cfngen creates. The rules of existing groups, which cfngen does not
change, are listed for the user, and compared with the rules that a group has.

EC2 limits the rules of a security group in each direction (a prefix list counts as its maximum number of entries) and
the security groups of a network interface; groups times rules must not exceed 1,000 ("Amazon VPC quotas", Amazon VPC
User Guide, and "Security group rules limits" of prefix lists there, November 2026). Rules for sources (CIDRs and prefix
lists) that do not fit into the first security group of masters, nodes or the load balancer go into additional ones, in
the order of the cluster file, so that sources added at the end of a list do not move the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.id_form import pascal
from cfngen.cluster.naming.network_ids import (
    SECURITY_GROUP_ROLES,
    NodeGroupRuleId,
    RuleId,
    SecurityGroupRole,
    source_id,
)
from cfngen.cluster.network.endpoints import interface_endpoints
from cfngen.cluster.network.existing_parts import GROUP_ROLES, GroupRole, existing_group, is_one_group_for_instances
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import (
    availability_zones,
    has_api_load_balancer,
    has_both_endpoints,
    has_internal_load_balancer,
    is_private,
    public_subnets,
    vpc_ranges,
)
from cfngen.cluster.sections.bastion import Bastion
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.cluster.sections.network import Api, PrefixList, Ssh
from cfngen.cluster.security_groups import addon_ports
from cfngen.cluster.security_groups.sources import ALL_PROTOCOLS, Origin, Source, ingress_sources, origin_text

LOAD_BALANCER_ROLES: tuple[SecurityGroupRole, ...] = ("ApiLoadBalancer", "InternalApiLoadBalancer")
SSH_PORT = 22
ANY_IPV4 = "0.0.0.0/0"
"""The range of all addresses."""
# The most that AWS grants.
MAX_RULES_PER_INTERFACE = 1000
# cfngen's own rules in the first security group of a role, between masters, nodes and the load balancer, including
# those for add-ons.
CFNGEN_RULES = 14
# Rules that every security group keeps free for updates, in which CloudFormation adds new rules before it removes old
# ones.
RESERVED_RULES = 10
ANYWHERE = IPv4Network(ANY_IPV4)
_KUBELET_PORT = 10250
_HTTPS_PORT = 443
_ICMP_FRAGMENTATION_NEEDED = (3, 4)
# How logical ids of rules name the group of a role as the source.
_SOURCE_NAMES: Mapping[GroupRole, str] = {
    "Master": "Masters",
    "Node": "Nodes",
    "ApiLoadBalancer": "LoadBalancer",
    "InternalApiLoadBalancer": "InternalLoadBalancer",
}


def sources(cluster: Cluster, role: SecurityGroupRole) -> Iterator[Source]:
    """Yield the sources for which the security groups of a role have rules.

    Masters and nodes have rules for SSH; the load balancers, or a single master, have rules for the API; masters also
    those of `controlPlane.ingress`. The range of the stack parameter ApiAllowedCidr is not yielded, although it needs a
    rule. Neither are the sources of a node group, which has a security group of its own.
    """
    api_role = "ApiLoadBalancer" if has_api_load_balancer(cluster) else "Master"
    api_origins = _origins(cluster.api) if role == api_role else []
    yield from (_api_source(cluster, origin) for origin in api_origins)
    if role not in LOAD_BALANCER_ROLES:
        yield from map(ssh_source, _origins(cluster.ssh))
    internal_role = "InternalApiLoadBalancer" if has_internal_load_balancer(cluster) else "Master"
    if has_both_endpoints(cluster) and role == internal_role:
        for cidr in internal_cidrs(cluster):
            # A single master has one rule for a range that may reach both endpoints.
            if cidr not in api_origins:
                yield _api_source(cluster, cidr)
    if role == "Master":
        yield from ingress_sources(cluster.control_plane.ingress)


def _api_source(cluster: Cluster, origin: Origin) -> Source:
    ports = (cluster.api.port, cluster.api.port)
    return Source("Api", origin, "tcp", ports, f"Kubernetes API from {origin_text(origin)}")


def ssh_source(origin: Origin) -> Source:
    """Return the source of SSH connections from an origin."""
    return Source("Ssh", origin, "tcp", (SSH_PORT, SSH_PORT), f"SSH from {origin_text(origin)}")


def bastion_sources(bastion: Bastion) -> Iterator[Source]:
    """Yield the sources for which the security group of the bastion has rules."""
    yield from map(ssh_source, _origins(bastion))
    yield from ingress_sources(bastion.ingress)


def internal_cidrs(cluster: Cluster) -> tuple[IPv4Network, ...]:
    """Return the ranges that may reach the internal endpoint beside a public one: by default all of the VPC's."""
    return cluster.api.internal_cidrs or vpc_ranges(cluster)


def _origins(section: Api | Ssh | Bastion) -> list[IPv4Network | PrefixList]:
    return [*section.allowed_cidrs, *section.allowed_prefix_lists]


def max_rules_for_sources(cluster: Cluster, position: int) -> int:
    """Return how many rules for sources fit into the security group of a role at a position.

    The first group (position 0) also has cfngen's own rules.
    """
    quota = cluster.network.quotas.rules_per_security_group
    return quota - RESERVED_RULES - (CFNGEN_RULES if position == 0 else 0)


def sources_by_group(cluster: Cluster, role: SecurityGroupRole) -> tuple[tuple[Source, ...], ...]:
    """Return the sources of each security group of a role, in order. The first group always exists and may have none.

    A source that is too large for any group gets a group of its own, and `cfngen.cluster.checks.security_groups`
    refuses it. An existing security group has the rules for all sources: the user puts them into it.
    """
    if existing_group(cluster, role):
        return (tuple(sources(cluster, role)),)
    groups: list[list[Source]] = [[]]
    remaining_rules = max_rules_for_sources(cluster, position=0)
    for source in sources(cluster, role):
        # A source that does not fit goes into a new group, unless the last one is an additional group that is still
        # empty: a new group would not be larger.
        if source.rule_count > remaining_rules and (groups[-1] or len(groups) == 1):
            groups.append([])
            remaining_rules = max_rules_for_sources(cluster, position=len(groups) - 1)
        groups[-1].append(source)
        remaining_rules -= source.rule_count
    return tuple(map(tuple, groups))


@dataclass(frozen=True)
class Rule:
    """A rule of a security group.

    Attributes:
        peer: the source of incoming traffic or the destination of outgoing traffic: whose security group, an address
            range, a prefix list, or another security group.
        protocol: `tcp`, `udp` or `icmp`; `-1` for all protocols.
        ports: first and last port, or type and code for `icmp` (-1 for all codes); None for all ports.
        purpose: the part of the rule's logical id that names the opened port; empty if all ports are opened.
        node_group: the name of the node group for whose nodes alone the rule is, which is in the group's own security
            group, or with an existing one in that of all nodes; empty for a rule of the role.
    """

    role: GroupRole
    peer: GroupRole | Origin
    description: str
    protocol: str = ALL_PROTOCOLS
    ports: tuple[int, int] | None = None
    purpose: str = ""
    is_egress: bool = False
    node_group: str = ""

    @property
    def id(self) -> RuleId | NodeGroupRuleId:
        """The logical id of the rule; only for incoming traffic of a role in `SecurityGroupRole`."""
        role = next(role for role in SECURITY_GROUP_ROLES if role == self.role)
        source = _SOURCE_NAMES[self.peer] if isinstance(self.peer, str) else source_id(origin_text(self.peer))
        if self.node_group:
            return NodeGroupRuleId(pascal(self.node_group), purpose=self.purpose, source=source)
        return RuleId(role, purpose=self.purpose, source=source)


def rules_between_instances(cluster: Cluster) -> tuple[Rule, ...]:
    """Return the rules that let masters and nodes reach each other.

    kube-up let nodes reach every port of the master, including etcd's. On masters, cfngen opens to nodes only the ports
    that kubeadm documents, and of the network plug-in and the add-ons.
    """
    api_port = cluster.api.port
    openings = (*network_plugin(cluster).master_ports, *addon_ports.master_ports(cluster))
    return (
        Rule("Node", "Node", "Nodes and pods to nodes and pods"),
        Rule("Node", "Master", "API server to kubelets, webhooks and pods"),
        Rule("Master", "Master", "Masters to each other: etcd, API server, kubelet"),
        Rule("Master", "Node", "Nodes and pods to the API server", "tcp", (api_port, api_port), "Api"),
        Rule("Master", "Node", "Metrics collection from the kubelet", "tcp", (_KUBELET_PORT, _KUBELET_PORT), "Kubelet"),
        *(
            Rule(
                "Master",
                "Node",
                opening.description,
                opening.protocol,
                # For ICMP, the first number is the type and the second the code; -1 means all codes.
                (opening.port, -1 if opening.protocol == "icmp" else opening.port),
                opening.rule_purpose,
            )
            for opening in openings
        ),
        Rule(
            "Master", "Node", "Path MTU discovery (fragmentation needed)", "icmp", _ICMP_FRAGMENTATION_NEEDED, "PathMtu"
        ),
    )


def load_balancer_roles(cluster: Cluster) -> tuple[SecurityGroupRole, ...]:
    """Return the roles of the API's load balancers: none, one, or a public and an internal one."""
    if not has_api_load_balancer(cluster):
        return ()
    if has_both_endpoints(cluster) and has_internal_load_balancer(cluster):
        return LOAD_BALANCER_ROLES
    return LOAD_BALANCER_ROLES[:1]


def load_balancer_rules(cluster: Cluster, role: SecurityGroupRole) -> tuple[Rule, ...]:
    """Return the rules that let one of the API's load balancers reach the masters, and instances reach it.

    Masters see the load balancer's address as the source of each connection, so their security group needs no rules for
    the clients of the load balancer. An internal load balancer sees the private addresses of masters and nodes, so
    rules can name the security groups of masters and nodes. An internet-facing load balancer sees public addresses,
    which rules for security groups do not match.
    """
    ports = (cluster.api.port, cluster.api.port)
    to_masters = Rule("Master", role, "Load balancer to the API servers, and their health", "tcp", ports, "Api")
    if role == "ApiLoadBalancer" and cluster.api.public:
        return (to_masters,)
    description = "{} and pods by the address that people use for the API"
    from_masters = Rule(role, "Master", description.format("Masters"), "tcp", ports)
    if is_one_group_for_instances(cluster):
        return (to_masters, from_masters)
    return (to_masters, from_masters, Rule(role, "Node", description.format("Nodes"), "tcp", ports))


def source_rule(role: SecurityGroupRole, source: Source) -> Rule:
    """Return the rule of a role's security group for a source that the cluster file allows to reach a port."""
    # The load balancers' groups only have rules for the API, so their logical ids omit the purpose.
    purpose = "" if role in LOAD_BALANCER_ROLES else source.purpose
    return Rule(role, source.origin, source.description, source.protocol, source.ports, purpose)


def node_group_rules(node_group: NodeGroup) -> tuple[Rule, ...]:
    """Return the rules for a node group alone, of its `ingress`."""
    return tuple(
        replace(source_rule("Node", source), node_group=node_group.name)
        for source in ingress_sources(node_group.ingress)
    )


def endpoint_rules(cluster: Cluster) -> tuple[Rule, ...]:
    """Return the rules that let masters and nodes reach the interface endpoints, if there are any."""
    if not interface_endpoints(cluster):
        return ()
    ports = (_HTTPS_PORT, _HTTPS_PORT)
    from_masters = Rule("Endpoints", "Master", "HTTPS from masters", "tcp", ports)
    if is_one_group_for_instances(cluster):
        return (from_masters,)
    return (from_masters, Rule("Endpoints", "Node", "HTTPS from nodes", "tcp", ports))


def bastion_rules(cluster: Cluster) -> tuple[Rule, ...]:
    """Return the rules that let the bastion reach masters and nodes in existing security groups.

    The group of the bastion, which groups that cfngen creates have as the source, does not exist before its stack, so
    the source is the range of the bastion's subnet. A rule may name the group later.
    """
    if cluster.bastion is None:
        return ()
    description = "SSH from the subnet of the bastion"
    if is_private(cluster):
        public_subnet = public_subnets(cluster).get(str(cluster.bastion.zone))
        if public_subnet and public_subnet.cidr:
            ranges: tuple[IPv4Network, ...] = (public_subnet.cidr,)
        else:
            ranges = vpc_ranges(cluster)
            description = "SSH from the bastion: from the whole VPC, because public.cidr of its subnet is missing"
    else:
        ranges = tuple(subnet.cidr for subnet in cluster.network.subnets if subnet.zone == cluster.bastion.zone)
    ports = (SSH_PORT, SSH_PORT)
    roles: tuple[GroupRole, ...] = ("Master", "Node")
    return tuple(
        Rule(role, cidr, description, "tcp", ports, "Ssh")
        for role in roles
        if existing_group(cluster, role)
        for cidr in ranges
    )


def egress_rule(cluster: Cluster, role: SecurityGroupRole) -> Rule:
    """Return the rule for outgoing traffic of a role's security groups: a load balancer only reaches the masters."""
    if role in LOAD_BALANCER_ROLES:
        ports = (cluster.api.port, cluster.api.port)
        return Rule(role, "Master", "API servers, and their health", "tcp", ports, is_egress=True)
    return Rule(role, ANYWHERE, "Images, packages, AWS APIs and whatever pods call", is_egress=True)


def used_roles(cluster: Cluster) -> tuple[GroupRole, ...]:
    """Return the roles of which the cluster has a security group, created or existing."""
    used = {"Master", "Node", *load_balancer_roles(cluster), *(rule.role for rule in endpoint_rules(cluster))}
    return tuple(role for role in GROUP_ROLES if role in used)


def all_rules(cluster: Cluster) -> Iterator[Rule]:
    """Yield the rules of all security groups, except the one that a stack parameter names (`ApiAllowedCidr`)."""
    yield from rules_between_instances(cluster)
    balancer_roles = load_balancer_roles(cluster)
    for role in balancer_roles:
        yield from load_balancer_rules(cluster, role)
    roles: tuple[SecurityGroupRole, ...] = ("Master", "Node", *balancer_roles)
    for role in roles:
        yield from (source_rule(role, source) for source in sources(cluster, role))
    for node_group in cluster.node_groups:
        yield from node_group_rules(node_group)
    yield from endpoint_rules(cluster)
    yield from (egress_rule(cluster, role) for role in roles)


def rules_of_existing_groups(cluster: Cluster) -> tuple[Rule, ...]:
    """Return the rules that the existing security groups need, by group: incoming traffic, then outgoing traffic."""
    rules = [rule for rule in all_rules(cluster) if existing_group(cluster, rule.role)]
    rules += bastion_rules(cluster)
    return tuple(sorted(rules, key=lambda rule: (GROUP_ROLES.index(rule.role), rule.is_egress)))


def ranges_of_role(cluster: Cluster, role: GroupRole) -> tuple[IPv4Network, ...]:
    """Return the address ranges that the traffic of a role comes from: of its subnets, and with VPC routes of its pods.

    A rule of an existing group can name these ranges where it cannot name the group of the role, because cfngen creates
    that group later. Endpoints have addresses in the subnets of instances.
    """
    network = cluster.network
    if role == "ApiLoadBalancer" and is_private(cluster) and cluster.api.public:
        cidrs = [subnet.cidr for subnet in public_subnets(cluster).values()]
        given_cidrs = [cidr for cidr in cidrs if cidr]
        # The range of an existing public subnet may be left out in the cluster file.
        return tuple(dict.fromkeys(given_cidrs)) if len(given_cidrs) == len(cidrs) else vpc_ranges(cluster)
    if role == "Master":
        zones = {slot.subnet.zone for slot in cluster.slots}
    elif role == "Node":
        zones = {zone for group in cluster.node_groups for zone in group.zones}
    else:
        zones = set(availability_zones(cluster))
    ranges = [subnet.cidr for subnet in network.subnets if subnet.zone in zones]
    if role in ("Master", "Node") and network_plugin(cluster).uses_vpc_routes:
        ranges.append(network.pod_cidr)
    return tuple(dict.fromkeys(ranges))
