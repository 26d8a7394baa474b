"""What changes of the network mean: addresses, subnets, ways and who may reach what."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.cluster.logical_ids import source_in, zone_of_subnet
from cfngen.deploy.preview.impact.subject import Subject
from cfngen.deploy.preview.plan import Danger, Impact

_ANY_IPV4 = "0.0.0.0/0"
# Rules for the API between the cluster's own security groups.
_INTERNAL_API_RULES = (
    "MasterApiFromNodes",
    "MasterApiFromLoadBalancer",
    "ApiLoadBalancerFromMasters",
    "ApiLoadBalancerFromNodes",
)


def _network_interface(subject: Subject) -> Impact | None:
    whose = subject.whose or "a master"
    if subject.goes:
        old, new = subject.before("PrivateIpAddress"), subject.after("PrivateIpAddress")
        moved = f" from {old} to {new}" if old and new and old != new else ""
        text = f"the private address of {whose} (its network interface) {subject.going}{moved}"
        if subject.change.action != "remove" and old and old == new and not subject.touches("SubnetId"):
            text += "; the new interface cannot have the address while the old one holds it, so the update may fail"
        return Impact(f"API address changes: {text}; nodes that have joined stop reaching the API", Danger.DANGEROUS)
    if subject.touches("GroupSet"):
        return Impact(f"other security groups apply to {whose} at once", Danger.DISRUPTIVE)
    return None


def _elastic_ip(subject: Subject) -> Impact | None:
    if not subject.goes:
        return None
    if _several(subject):
        return Impact(
            f"the public address by which {subject.whose or 'a master'} reaches the internet {subject.going}",
            Danger.DISRUPTIVE,
        )
    return Impact(
        f"API address changes: its public address {subject.going}; kubeconfigs stop reaching the API, and its "
        "certificate names the old address until the master is replaced",
        Danger.DANGEROUS,
    )


def _elastic_ip_association(subject: Subject) -> Impact | None:
    if not subject.goes:
        return None
    if _several(subject):
        whose = subject.whose or "a master"
        return Impact(f"{whose} reaches the internet from another public address", Danger.DISRUPTIVE)
    if subject.change.action == "remove" or subject.certain("AllocationId"):
        return Impact(
            "API address changes: the master is reached by another public address, or by none; kubeconfigs stop "
            "reaching the API",
            Danger.DANGEROUS,
        )
    return Impact(f"the API's public address {_moves(subject)} to another network interface", Danger.DISRUPTIVE)


def _moves(subject: Subject) -> str:
    return "might move" if subject.might else "moves"


def _load_balancer(subject: Subject) -> Impact | None:
    if subject.goes:
        return Impact(
            f"API address changes: its load balancer {subject.going}; kubeconfigs stop reaching the API, and its "
            "certificate names the old address until the masters are replaced",
            Danger.DANGEROUS,
        )
    if subject.change.action == "add":
        return Impact("people reach the API by a load balancer from now on: fetch kubeconfigs anew", Danger.DISRUPTIVE)
    if subject.touches("Subnets"):
        return Impact("the API's load balancer gets an address in other zones, or loses one", Danger.DISRUPTIVE)
    if subject.touches("SecurityGroups"):
        return Impact("who may reach the API changes at once", Danger.DISRUPTIVE)
    return None


def _target_group(subject: Subject) -> Impact | None:
    if subject.goes:
        return Impact(
            f"the masters' list behind the API's load balancer {subject.going}; the API is away until they count as "
            "healthy again",
            Danger.DISRUPTIVE,
        )
    if subject.change.action == "add":
        return None
    if subject.touches("Targets"):
        return Impact("the API's load balancer leads to other masters, to each once it is healthy")
    return Impact("how the API's load balancer looks after the masters changes")


def _listener(subject: Subject) -> Impact | None:
    if not subject.goes:
        return None
    return Impact(f"the way through the API's load balancer {subject.going}, and is interrupted", Danger.DISRUPTIVE)


def _vpc(subject: Subject) -> Impact | None:
    if not subject.goes:
        return None
    return Impact(
        f"network: the VPC {subject.going}, and with it everything in it: all instances, addresses and routes. Make a "
        "new cluster instead",
        Danger.DANGEROUS,
    )


def _subnet(subject: Subject) -> Impact | None:
    if not subject.goes:
        return None
    name = subject.change.logical_id
    zone = zone_of_subnet(name, subject.cluster.region)
    place = f"network: the subnet in {zone}" if zone else f"network: {name}"
    return Impact(
        f"{place} {subject.going}, with every instance and address in it, those of masters too", Danger.DANGEROUS
    )


def _routing(subject: Subject) -> Impact | None:
    if not subject.goes:
        return None
    if subject.change.type == "AWS::EC2::RouteTable":
        text = f"network: the route table {subject.going}; pods of different nodes do not reach each other until the "
        return Impact(f"{text}cloud controller manager has written its routes anew", Danger.DISRUPTIVE)
    return Impact(f"network: the way to the internet {subject.going}, and is interrupted", Danger.DISRUPTIVE)


def _security_group(subject: Subject) -> Impact | None:
    if subject.goes:
        kinds = {"Master": "masters", "ApiLoadBalancer": "API's load balancer"}
        whose = next((kinds[kind] for kind in kinds if subject.change.logical_id.startswith(kind)), "nodes")
        return Impact(f"the security group of the {whose} {subject.going}, with every rule in it", Danger.DISRUPTIVE)
    if subject.touches("SecurityGroupEgress"):
        return Impact("what instances may reach changes at once", Danger.DISRUPTIVE)
    if subject.touches("SecurityGroupIngress"):
        return Impact("who may reach instances changes at once", Danger.DISRUPTIVE)
    return None


def _rule(subject: Subject) -> Impact | None:
    name = subject.change.logical_id
    if "SshFrom" in name:
        target = "SSH of the masters" if name.startswith("Master") else "SSH of the nodes"
    elif name.startswith(("MasterApiFrom", "ApiLoadBalancerFrom")) and name not in _INTERNAL_API_RULES:
        target = "the API"
        if name.startswith("MasterApiFrom") and subject.change.action == "remove" and _several(subject):
            old = subject.before("CidrIp") or source_in(name) or "a range"
            return Impact(f"masters are no longer reached from {old} themselves, but by the API's load balancer")
    else:
        # Between masters and nodes: not from anywhere else.
        if subject.change.action == "remove":
            return Impact("masters and nodes may no longer reach each other by this rule", Danger.DISRUPTIVE)
        if subject.touches("IpProtocol", "FromPort", "ToPort"):
            return Impact("masters and nodes may reach each other on other ports", Danger.DISRUPTIVE)
        return Impact("a rule between masters and nodes is made anew") if subject.goes else None
    old, new = (read("CidrIp") or read("SourcePrefixListId") for read in (subject.before, subject.after))
    old = old or source_in(name) if subject.change.action != "add" else None
    new = new or source_in(name) if subject.change.action == "add" else new
    if subject.change.action == "remove":
        return Impact(f"{target} is no longer reachable from {old or 'a range'}", Danger.DISRUPTIVE)
    is_everywhere = new == _ANY_IPV4
    warning = ": from the whole internet" if is_everywhere else ""
    if subject.change.action == "add":
        return Impact(
            f"{target} becomes reachable from {new or 'a further range'} in addition{warning}",
            Danger.DISRUPTIVE if is_everywhere else Danger.NONE,
        )
    if old and new and old != new:
        return Impact(f"{target} becomes reachable from {new}{warning}, and no longer from {old}", Danger.DISRUPTIVE)
    return Impact(f"the rule that lets {old or 'a range'} reach {target} is made anew") if subject.goes else None


def _several(subject: Subject) -> bool:
    return subject.cluster.control_plane.count > 1


RULES: Mapping[str, Callable[[Subject], Impact | None]] = {
    "AWS::EC2::EIP": _elastic_ip,
    "AWS::EC2::EIPAssociation": _elastic_ip_association,
    "AWS::EC2::InternetGateway": _routing,
    "AWS::EC2::NetworkInterface": _network_interface,
    "AWS::EC2::Route": _routing,
    "AWS::EC2::RouteTable": _routing,
    "AWS::EC2::SecurityGroup": _security_group,
    "AWS::EC2::SecurityGroupIngress": _rule,
    "AWS::EC2::Subnet": _subnet,
    "AWS::EC2::SubnetRouteTableAssociation": _routing,
    "AWS::EC2::VPC": _vpc,
    "AWS::EC2::VPCGatewayAttachment": _routing,
    "AWS::ElasticLoadBalancingV2::Listener": _listener,
    "AWS::ElasticLoadBalancingV2::LoadBalancer": _load_balancer,
    "AWS::ElasticLoadBalancingV2::TargetGroup": _target_group,
}
