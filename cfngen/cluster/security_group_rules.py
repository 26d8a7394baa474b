"""The rules of the cluster's security groups as data: who may reach whom on which port, and why.

Templates make resources of the rules of groups that cfngen creates. The rules of existing groups, which cfngen does not
change, are listed for the user, and compared with the rules that a group has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network

from cfngen.cluster import addon_ports
from cfngen.cluster.allowed_sources import (
    LOAD_BALANCER_ROLES,
    SECURITY_GROUP_ROLES,
    SSH_PORT,
    SecurityGroupRole,
    Source,
    sources,
)
from cfngen.cluster.endpoints import interface_endpoints
from cfngen.cluster.existing_security_groups import GROUP_ROLES, GroupRole, existing_group, is_one_group_for_instances
from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.sections.network import PrefixList
from cfngen.cluster.security_group_ids import RuleId, source_id
from cfngen.cluster.topology import (
    availability_zones,
    has_api_load_balancer,
    has_both_endpoints,
    has_internal_load_balancer,
    is_private,
    public_subnets,
    vpc_ranges,
)

ANYWHERE = IPv4Network("0.0.0.0/0")
ALL_PROTOCOLS = "-1"
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


@dataclass(frozen=True)
class Rule:
    """A rule of a security group.

    Attributes:
        peer: the source of incoming traffic or the destination of outgoing traffic: whose security group, an address
            range, or a prefix list.
        protocol: `tcp`, `udp` or `icmp`; `-1` for all protocols.
        ports: first and last port, or type and code for `icmp` (-1 for all codes); None for all ports.
        purpose: the part of the rule's logical id that names the opened port; empty if all ports are opened.
        is_egress: whether the rule is for outgoing traffic.
    """

    role: GroupRole
    peer: GroupRole | IPv4Network | PrefixList
    description: str
    protocol: str = ALL_PROTOCOLS
    ports: tuple[int, int] | None = None
    purpose: str = ""
    is_egress: bool = False

    @property
    def id(self) -> RuleId:
        """The logical id of the rule; only for incoming traffic of a role in `SecurityGroupRole`."""
        role = next(role for role in SECURITY_GROUP_ROLES if role == self.role)
        if isinstance(self.peer, str):
            return RuleId(role, purpose=self.purpose, source=_SOURCE_NAMES[self.peer])
        return RuleId(role, purpose=self.purpose, source=source_id(_text(self.peer)))


def _text(origin: IPv4Network | PrefixList) -> str:
    return origin.id if isinstance(origin, PrefixList) else str(origin)


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
    """Return the rule of a role's security group for a source that the cluster file allows to reach the API or SSH."""
    port_name = "Kubernetes API" if source.purpose == "Api" else "SSH"
    # The load balancers' groups only have rules for the API, so their logical ids omit the purpose.
    purpose = "" if role in LOAD_BALANCER_ROLES else source.purpose
    description = f"{port_name} from {_text(source.origin)}"
    return Rule(role, source.origin, description, "tcp", (source.port, source.port), purpose)


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
    if role in LOAD_BALANCER_ROLES and is_private(cluster) and role == "ApiLoadBalancer" and cluster.api.public:
        known = [subnet.cidr for subnet in public_subnets(cluster).values()]
        ranges = [cidr for cidr in known if cidr]
        # The range of an existing public subnet may be left out in the cluster file.
        return tuple(dict.fromkeys(ranges)) if len(ranges) == len(known) else vpc_ranges(cluster)
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
