"""The impact of changes of the network: addresses, load balancer, subnets, routes, security groups and flow logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from cfngen.cluster.naming.network_ids import (
    NodeGroupRuleId,
    RouteId,
    RuleId,
    RuleRole,
    SecurityGroupId,
    SubnetId,
    VpcRangeId,
    traffic_of_purpose,
)
from cfngen.cluster.network.existing_parts import existing_group
from cfngen.cluster.sections.ingress import IngressRule
from cfngen.cluster.security_groups.rules import ANY_IPV4
from cfngen.cluster.security_groups.sources import ingress_sources, origin_text
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact.context import ChangeContext, number_if_decimal
from cfngen.text import join_and, pluralize

# Properties of a rule that name who may connect.
_SOURCES = ("CidrIp", "SourcePrefixListId", "SourceSecurityGroupId")
# Which instances, or which load balancer, use each security group of the cluster.
_ROLE_NAMES: Mapping[RuleRole, str] = {
    "Master": "masters",
    "Node": "nodes",
    "ApiLoadBalancer": "API's load balancer",
    "InternalApiLoadBalancer": "API's internal load balancer",
    "Bastion": "bastion",
}


def _network_interface_impact(context: ChangeContext) -> Impact | None:
    owner = context.owner or "a master"
    if context.disappears:
        old_address, new_address = context.before("PrivateIpAddress"), context.after("PrivateIpAddress")
        is_moved = old_address and new_address and old_address != new_address
        move_text = f" from {old_address} to {new_address}" if is_moved else ""
        text = f"the private address of {owner} (its network interface) {context.verb}{move_text}"
        keeps_address = old_address and old_address == new_address and not context.touches("SubnetId")
        if context.change.action != "remove" and keeps_address:
            text += "; the new interface cannot get the address while the old one uses it, so the update may fail"
        return Impact(f"API address changes: {text}; existing nodes can no longer reach the API", Danger.DANGEROUS)
    if context.touches("GroupSet"):
        return Impact(f"other security groups apply to {owner} at once", Danger.DISRUPTIVE)
    return None


def _elastic_ip_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a new public address; the address of a single master is the API's, too."""
    if not context.disappears:
        return None
    if context.has_api_load_balancer:
        return Impact(
            f"the public address by which {context.owner or 'a master'} reaches the internet {context.verb}",
            Danger.DISRUPTIVE,
        )
    return Impact(
        f"API address changes: its public address {context.verb}; existing kubeconfigs stop working, and its "
        "certificate names the old address until the master is replaced",
        Danger.DANGEROUS,
    )


def _elastic_ip_association_impact(context: ChangeContext) -> Impact | None:
    if not context.disappears:
        return None
    if context.has_api_load_balancer:
        owner = context.owner or "a master"
        return Impact(f"{owner} reaches the internet from another public address", Danger.DISRUPTIVE)
    if context.change.action == "remove" or context.certainly_touches("AllocationId"):
        return Impact(
            "API address changes: the master is reached by another public address, or by none; existing kubeconfigs "
            "stop working",
            Danger.DANGEROUS,
        )
    verb = "might move" if context.might_be_replaced else "moves"
    return Impact(f"the API's public address {verb} to another network interface", Danger.DISRUPTIVE)


def _load_balancer_impact(context: ChangeContext) -> Impact | None:
    is_internal = context.change.logical_id == "InternalApiLoadBalancer"
    if is_internal and context.cluster.api.public:
        return _internal_load_balancer_impact(context)
    if context.disappears:
        return Impact(
            f"API address changes: its load balancer {context.verb}; existing kubeconfigs stop working, and its "
            "certificate names the old address until the masters are replaced",
            Danger.DANGEROUS,
        )
    if context.change.action == "add":
        return Impact(
            "the API is reached through a load balancer from now on: fetch kubeconfigs again", Danger.DISRUPTIVE
        )
    if context.touches("Subnets"):
        return Impact("the API's load balancer gets an address in other zones, or loses one", Danger.DISRUPTIVE)
    if context.touches("SecurityGroups"):
        return Impact("who may reach the API changes at once", Danger.DISRUPTIVE)
    return None


def _internal_load_balancer_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of the internal load balancer, if the API is or becomes public as well."""
    if context.disappears:
        return Impact(
            f"the API's internal endpoint (its load balancer) {context.verb}; kubeconfigs with its name stop working",
            Danger.DANGEROUS,
        )
    if context.change.action == "add":
        return Impact(
            "the API gets an internal endpoint beside its public one; the masters are replaced one after another, for "
            "its name in their certificate"
        )
    if context.touches("Subnets"):
        return Impact(
            "the API's internal load balancer gets an address in other zones, or loses one", Danger.DISRUPTIVE
        )
    if context.touches("SecurityGroups"):
        return Impact("who may reach the API's internal endpoint changes at once", Danger.DISRUPTIVE)
    return None


def _target_group_impact(context: ChangeContext) -> Impact | None:
    if context.disappears:
        return Impact(
            f"the target group of the API's load balancer {context.verb}; the API is unavailable until the masters are "
            "healthy again",
            Danger.DISRUPTIVE,
        )
    if context.change.action == "add":
        return None
    if context.touches("Targets"):
        return Impact("the API's load balancer forwards to other masters, to each as soon as it is healthy")
    return Impact("the settings of the API's load balancer's target group change")


def _listener_impact(context: ChangeContext) -> Impact | None:
    if not context.disappears:
        return None
    return Impact(
        f"the listener of the API's load balancer {context.verb}; connections are interrupted", Danger.DISRUPTIVE
    )


def _vpc_impact(context: ChangeContext) -> Impact | None:
    if not context.disappears:
        return None
    return Impact(
        f"network: the VPC {context.verb}, and with it everything in it: all instances, addresses and routes. "
        "Create a new cluster instead",
        Danger.DANGEROUS,
    )


def _subnet_impact(context: ChangeContext) -> Impact | None:
    if not context.disappears:
        return None
    subnet = SubnetId.parse(context.change.logical_id)
    subnet_text = f"the subnet in {subnet.zone_in(context.cluster.region)}" if subnet else context.change.logical_id
    return Impact(
        f"network: {subnet_text} {context.verb}, with every instance and address in it, those of masters too",
        Danger.DANGEROUS,
    )


def _vpc_range_impact(context: ChangeContext) -> Impact | None:
    if not context.disappears:
        return None
    vpc_range = VpcRangeId.parse(context.change.logical_id)
    return Impact(
        f"network: the VPC's range {vpc_range.cidr if vpc_range else ''} {context.verb}; EC2 refuses that while a "
        "subnet lies in it",
        Danger.DISRUPTIVE,
    )


def _further_route_impact(context: ChangeContext, route: RouteId) -> Impact | None:
    if context.disappears:
        text = f"network: the route to {route.destination} {context.verb}; connections to it are interrupted"
        return Impact(text, Danger.DISRUPTIVE)
    if context.touches("TransitGatewayId", "VpcPeeringConnectionId", "GatewayId", "NetworkInterfaceId"):
        return Impact(f"network: the way to {route.destination} changes at once", Danger.DISRUPTIVE)
    return None


def _routing_impact(context: ChangeContext) -> Impact | None:
    route = RouteId.parse(context.change.logical_id)
    if route:
        return _further_route_impact(context, route)
    if not context.disappears:
        return None
    if context.change.type == "AWS::EC2::RouteTable":
        text = f"network: the route table {context.verb}; pods of different nodes do not reach each other until the "
        return Impact(f"{text}cloud controller manager has written its routes again", Danger.DISRUPTIVE)
    return Impact(f"network: the route to the internet {context.verb}; connections are interrupted", Danger.DISRUPTIVE)


def _association_impact(context: ChangeContext) -> Impact | None:
    if context.disappears or not context.touches("RouteTableId"):
        return _routing_impact(context)
    subnet = SubnetId.parse(context.change.logical_id)
    zone = subnet.zone_in(context.cluster.region) if subnet else context.change.logical_id
    return Impact(
        f"network: the subnet in {zone} uses another route table at once; open connections may break", Danger.DISRUPTIVE
    )


def _security_group_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change of a security group itself; its ingress rules are resources of their own."""
    if context.owner and context.change.action == "add":
        return Impact(
            f"{context.owner} gets a security group of its own: nodes that run without it are replaced once, and no "
            "rule that is added to it later replaces any"
        )
    if context.disappears:
        group = SecurityGroupId.parse(context.change.logical_id)
        owner = context.owner or _ROLE_NAMES[group.role if group else "Node"]
        existing_id = existing_group(context.cluster, group.role) if group else None
        if existing_id:
            return Impact(
                f"{existing_id} becomes the security group of the {owner}; the present one is removed with its rules "
                "at the end of the update, when nothing uses it any more",
                Danger.DISRUPTIVE,
            )
        return Impact(f"the security group of the {owner} {context.verb}, with every rule in it", Danger.DISRUPTIVE)
    if context.touches("SecurityGroupEgress"):
        return Impact("what instances may reach changes at once", Danger.DISRUPTIVE)
    if context.touches("SecurityGroupIngress"):
        return Impact("who may reach instances changes at once", Danger.DISRUPTIVE)
    return None


def _rule_impact(context: ChangeContext) -> Impact | None:
    rule = RuleId.parse(context.change.logical_id) or NodeGroupRuleId.parse(context.change.logical_id)
    existing_id = existing_group(context.cluster, rule.role) if rule else None
    if existing_id and context.change.action == "remove":
        return Impact(f"the rules of {existing_id} decide about this traffic from now on", Danger.DISRUPTIVE)
    if rule and (traffic := traffic_of_purpose(rule.purpose)):
        target = f"{traffic} of {context.owner or f'the {_ROLE_NAMES[rule.role]}'}"
        return _source_impact(context, rule, target=target, danger_of_everybody=Danger.DANGEROUS)
    if rule and rule.purpose == "Ssh":
        return _source_impact(context, rule, target=f"SSH of the {_ROLE_NAMES[rule.role]}")
    if isinstance(rule, RuleId) and rule.from_outside:
        if rule.role == "Master" and context.change.action == "remove" and context.has_api_load_balancer:
            removed_range = context.before("CidrIp") or rule.origin or "a range"
            return Impact(f"{removed_range} no longer reaches masters directly, but through the API's load balancer")
        return _source_impact(context, rule, target="the API")
    # All other rules are between masters and nodes.
    if context.change.action == "remove":
        return Impact("masters and nodes may no longer reach each other by this rule", Danger.DISRUPTIVE)
    if context.touches("IpProtocol", "FromPort", "ToPort"):
        return Impact("masters and nodes may reach each other on other ports", Danger.DISRUPTIVE)
    return Impact("a rule between masters and nodes is recreated") if context.disappears else None


def _source_impact(
    context: ChangeContext,
    rule: RuleId | NodeGroupRuleId,
    *,
    target: str,
    danger_of_everybody: Danger = Danger.DISRUPTIVE,
) -> Impact | None:
    old_source, new_source = (
        next((source for key in _SOURCES if (source := value_of(key))), None)
        for value_of in (context.before, context.after)
    )
    if context.change.action == "remove":
        return Impact(
            f"{target} is no longer reachable from {old_source or rule.origin or 'a range'}", Danger.DISRUPTIVE
        )
    if context.change.action == "add":
        new_source = new_source or rule.origin
    is_whole_internet = new_source == ANY_IPV4
    warning = ": from the whole internet" if is_whole_internet else ""
    if context.change.action == "add":
        return Impact(
            f"{target} becomes reachable from {new_source or 'a further range'} in addition{warning}",
            danger_of_everybody if is_whole_internet else Danger.NONE,
        )
    old_source = old_source or rule.origin
    if old_source and new_source and old_source != new_source:
        return Impact(
            f"{target} becomes reachable from {new_source}{warning}, and no longer from {old_source}",
            danger_of_everybody if is_whole_internet else Danger.DISRUPTIVE,
        )
    if context.disappears:
        return Impact(f"the rule that lets {old_source or 'a range'} reach {target} is recreated")
    return None


def new_instances_impact(text: str, rules: Iterable[IngressRule]) -> Impact:
    """Return the impact of new instances, which a text describes, with the ports that rules of `ingress` open."""
    origins_by_traffic: dict[str, list[str]] = {}
    for source in ingress_sources(rules):
        origins_by_traffic.setdefault(traffic_of_purpose(source.purpose), []).append(origin_text(source.origin))
    for traffic, origins in origins_by_traffic.items():
        text += f"; {traffic} is reachable from {join_and(origins)}"
    if any(ANY_IPV4 in origins for origins in origins_by_traffic.values()):
        return Impact(f"{text}: from the whole internet", Danger.DANGEROUS)
    return Impact(text)


# Two flow logs of one VPC may differ in these ("Publish flow logs to CloudWatch Logs", Amazon VPC User Guide).
_DISTINGUISHING = ("TrafficType", "LogDestination", "LogDestinationType", "LogGroupName", "ResourceId")


def _flow_log_impact(context: ChangeContext) -> Impact | None:
    cluster = context.cluster
    if context.change.action == "add":
        others = ", also those of others in it" if cluster.network.vpc.id else ""
        return Impact(f"connections in the VPC are recorded from now on{others}; each GB of records is billed")
    if context.change.action == "remove":
        return Impact("connections in the VPC are no longer recorded; existing records stay", Danger.DISRUPTIVE)
    if not context.disappears:
        return None
    text = f"the flow log {context.verb}; existing records stay"
    if not context.touches(*_DISTINGUISHING):
        # CloudFormation creates the new one before it deletes the old one.
        return Impact(
            f"{text}. EC2 may refuse the new one while the old one records the same traffic in the same place; then "
            "deploy without network.flowLogs first",
            Danger.DISRUPTIVE,
        )
    return Impact(text)


def _log_group_impact(context: ChangeContext) -> Impact | None:
    if context.disappears:
        verb = "leaves the stack" if context.change.action == "remove" else context.verb
        return Impact(
            f"the log group of the flow log {verb}; the old one is kept with its records, and billed until they expire"
        )
    old_days, new_days = (number_if_decimal(value("RetentionInDays")) for value in (context.before, context.after))
    if context.change.action == "add" or not context.touches("RetentionInDays"):
        return None
    if old_days is not None and new_days is not None and new_days < old_days:
        kept = pluralize(new_days, "day")
        return Impact(f"records of the flow log that are older than {kept} are deleted", Danger.DISRUPTIVE)
    return Impact("records of the flow log are kept for another time from now on")


IMPACT_BY_TYPE: Mapping[str, Callable[[ChangeContext], Impact | None]] = {
    "AWS::EC2::EIP": _elastic_ip_impact,
    "AWS::EC2::EIPAssociation": _elastic_ip_association_impact,
    "AWS::EC2::FlowLog": _flow_log_impact,
    "AWS::EC2::InternetGateway": _routing_impact,
    "AWS::EC2::NetworkInterface": _network_interface_impact,
    "AWS::EC2::Route": _routing_impact,
    "AWS::EC2::RouteTable": _routing_impact,
    "AWS::EC2::SecurityGroup": _security_group_impact,
    "AWS::EC2::SecurityGroupIngress": _rule_impact,
    "AWS::EC2::Subnet": _subnet_impact,
    "AWS::EC2::SubnetRouteTableAssociation": _association_impact,
    "AWS::EC2::VPC": _vpc_impact,
    "AWS::EC2::VPCCidrBlock": _vpc_range_impact,
    "AWS::EC2::VPCGatewayAttachment": _routing_impact,
    "AWS::ElasticLoadBalancingV2::Listener": _listener_impact,
    "AWS::ElasticLoadBalancingV2::LoadBalancer": _load_balancer_impact,
    "AWS::ElasticLoadBalancingV2::TargetGroup": _target_group_impact,
    "AWS::Logs::LogGroup": _log_group_impact,
}
