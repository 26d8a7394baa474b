"""The impact of changes of the network: addresses, load balancer, subnets, routes and security groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.cluster.allowed_sources import SecurityGroupRole
from cfngen.cluster.logical_ids import RuleId, SecurityGroupId, SubnetId
from cfngen.deploy.preview.changes import Danger, Impact
from cfngen.deploy.preview.impact.subject import ChangeContext

_ANY_IPV4 = "0.0.0.0/0"
# Rules for the API between the cluster's own security groups.
_ROLE_NAMES: Mapping[SecurityGroupRole, str] = {
    "Master": "masters",
    "Node": "nodes",
    "ApiLoadBalancer": "API's load balancer",
}


def _network_interface_impact(subject: ChangeContext) -> Impact | None:
    owner = subject.owner or "a master"
    if subject.disappears:
        old, new = subject.before("PrivateIpAddress"), subject.after("PrivateIpAddress")
        move_text = f" from {old} to {new}" if old and new and old != new else ""
        text = f"the private address of {owner} (its network interface) {subject.verb}{move_text}"
        if subject.change.action != "remove" and old and old == new and not subject.touches("SubnetId"):
            text += "; the new interface cannot get the address while the old one uses it, so the update may fail"
        return Impact(f"API address changes: {text}; existing nodes can no longer reach the API", Danger.DANGEROUS)
    if subject.touches("GroupSet"):
        return Impact(f"other security groups apply to {owner} at once", Danger.DISRUPTIVE)
    return None


def _elastic_ip_impact(subject: ChangeContext) -> Impact | None:
    if not subject.disappears:
        return None
    if _has_several_masters(subject):
        return Impact(
            f"the public address by which {subject.owner or 'a master'} reaches the internet {subject.verb}",
            Danger.DISRUPTIVE,
        )
    return Impact(
        f"API address changes: its public address {subject.verb}; existing kubeconfigs stop working, and its "
        "certificate names the old address until the master is replaced",
        Danger.DANGEROUS,
    )


def _elastic_ip_association_impact(subject: ChangeContext) -> Impact | None:
    if not subject.disappears:
        return None
    if _has_several_masters(subject):
        owner = subject.owner or "a master"
        return Impact(f"{owner} reaches the internet from another public address", Danger.DISRUPTIVE)
    if subject.change.action == "remove" or subject.certainly_touches("AllocationId"):
        return Impact(
            "API address changes: the master is reached by another public address, or by none; existing kubeconfigs "
            "stop working",
            Danger.DANGEROUS,
        )
    return Impact(f"the API's public address {_move_verb(subject)} to another network interface", Danger.DISRUPTIVE)


def _move_verb(subject: ChangeContext) -> str:
    return "might move" if subject.might_be_replaced else "moves"


def _load_balancer_impact(subject: ChangeContext) -> Impact | None:
    if subject.disappears:
        return Impact(
            f"API address changes: its load balancer {subject.verb}; existing kubeconfigs stop working, and its "
            "certificate names the old address until the masters are replaced",
            Danger.DANGEROUS,
        )
    if subject.change.action == "add":
        return Impact(
            "the API is reached through a load balancer from now on: fetch kubeconfigs again", Danger.DISRUPTIVE
        )
    if subject.touches("Subnets"):
        return Impact("the API's load balancer gets an address in other zones, or loses one", Danger.DISRUPTIVE)
    if subject.touches("SecurityGroups"):
        return Impact("who may reach the API changes at once", Danger.DISRUPTIVE)
    return None


def _target_group_impact(subject: ChangeContext) -> Impact | None:
    if subject.disappears:
        return Impact(
            f"the target group of the API's load balancer {subject.verb}; the API is unavailable until the masters are "
            "healthy again",
            Danger.DISRUPTIVE,
        )
    if subject.change.action == "add":
        return None
    if subject.touches("Targets"):
        return Impact("the API's load balancer forwards to other masters, to each as soon as it is healthy")
    return Impact("the settings of the API's load balancer's target group change")


def _listener_impact(subject: ChangeContext) -> Impact | None:
    if not subject.disappears:
        return None
    return Impact(
        f"the listener of the API's load balancer {subject.verb}; connections are interrupted", Danger.DISRUPTIVE
    )


def _vpc_impact(subject: ChangeContext) -> Impact | None:
    if not subject.disappears:
        return None
    return Impact(
        f"network: the VPC {subject.verb}, and with it everything in it: all instances, addresses and routes. "
        "Create a new cluster instead",
        Danger.DANGEROUS,
    )


def _subnet_impact(subject: ChangeContext) -> Impact | None:
    if not subject.disappears:
        return None
    subnet = SubnetId.parse(subject.change.logical_id)
    subnet_text = f"the subnet in {subnet.zone_in(subject.cluster.region)}" if subnet else subject.change.logical_id
    return Impact(
        f"network: {subnet_text} {subject.verb}, with every instance and address in it, those of masters too",
        Danger.DANGEROUS,
    )


def _routing_impact(subject: ChangeContext) -> Impact | None:
    if not subject.disappears:
        return None
    if subject.change.type == "AWS::EC2::RouteTable":
        text = f"network: the route table {subject.verb}; pods of different nodes do not reach each other until the "
        return Impact(f"{text}cloud controller manager has written its routes again", Danger.DISRUPTIVE)
    return Impact(f"network: the route to the internet {subject.verb}; connections are interrupted", Danger.DISRUPTIVE)


def _security_group_impact(subject: ChangeContext) -> Impact | None:
    if subject.disappears:
        group = SecurityGroupId.parse(subject.change.logical_id)
        owner = _ROLE_NAMES[group.role if group else "Node"]
        return Impact(f"the security group of the {owner} {subject.verb}, with every rule in it", Danger.DISRUPTIVE)
    if subject.touches("SecurityGroupEgress"):
        return Impact("what instances may reach changes at once", Danger.DISRUPTIVE)
    if subject.touches("SecurityGroupIngress"):
        return Impact("who may reach instances changes at once", Danger.DISRUPTIVE)
    return None


def _rule_impact(subject: ChangeContext) -> Impact | None:
    rule = RuleId.parse(subject.change.logical_id)
    if rule and rule.purpose == "Ssh":
        target = f"SSH of the {_ROLE_NAMES[rule.role]}"
    elif rule and rule.from_outside:
        target = "the API"
        if rule.role == "Master" and subject.change.action == "remove" and _has_several_masters(subject):
            old = subject.before("CidrIp") or rule.origin or "a range"
            return Impact(f"{old} no longer reaches masters directly, but through the API's load balancer")
    else:
        # Rules between masters and nodes.
        if subject.change.action == "remove":
            return Impact("masters and nodes may no longer reach each other by this rule", Danger.DISRUPTIVE)
        if subject.touches("IpProtocol", "FromPort", "ToPort"):
            return Impact("masters and nodes may reach each other on other ports", Danger.DISRUPTIVE)
        return Impact("a rule between masters and nodes is recreated") if subject.disappears else None
    old, new = (read("CidrIp") or read("SourcePrefixListId") for read in (subject.before, subject.after))
    old = old or rule.origin if subject.change.action != "add" else None
    new = new or rule.origin if subject.change.action == "add" else new
    if subject.change.action == "remove":
        return Impact(f"{target} is no longer reachable from {old or 'a range'}", Danger.DISRUPTIVE)
    is_whole_internet = new == _ANY_IPV4
    warning = ": from the whole internet" if is_whole_internet else ""
    if subject.change.action == "add":
        return Impact(
            f"{target} becomes reachable from {new or 'a further range'} in addition{warning}",
            Danger.DISRUPTIVE if is_whole_internet else Danger.NONE,
        )
    if old and new and old != new:
        return Impact(f"{target} becomes reachable from {new}{warning}, and no longer from {old}", Danger.DISRUPTIVE)
    return Impact(f"the rule that lets {old or 'a range'} reach {target} is recreated") if subject.disappears else None


def _has_several_masters(subject: ChangeContext) -> bool:
    return subject.cluster.control_plane.count > 1


RULES: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    "AWS::EC2::EIP": _elastic_ip_impact,
    "AWS::EC2::EIPAssociation": _elastic_ip_association_impact,
    "AWS::EC2::InternetGateway": _routing_impact,
    "AWS::EC2::NetworkInterface": _network_interface_impact,
    "AWS::EC2::Route": _routing_impact,
    "AWS::EC2::RouteTable": _routing_impact,
    "AWS::EC2::SecurityGroup": _security_group_impact,
    "AWS::EC2::SecurityGroupIngress": _rule_impact,
    "AWS::EC2::Subnet": _subnet_impact,
    "AWS::EC2::SubnetRouteTableAssociation": _routing_impact,
    "AWS::EC2::VPC": _vpc_impact,
    "AWS::EC2::VPCGatewayAttachment": _routing_impact,
    "AWS::ElasticLoadBalancingV2::Listener": _listener_impact,
    "AWS::ElasticLoadBalancingV2::LoadBalancer": _load_balancer_impact,
    "AWS::ElasticLoadBalancingV2::TargetGroup": _target_group_impact,
}
