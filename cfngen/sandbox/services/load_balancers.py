"""Elastic Load Balancing: network load balancers, their target groups, and the listeners between them.

Conditions: API reference of Elastic Load Balancing (CreateLoadBalancer, SetSecurityGroups, CreateTargetGroup,
RegisterTargets, CreateListener), user guide of network load balancers ("Availability Zones", "Security groups", "Target
groups", "Listeners", "Quotas").
"""

from __future__ import annotations

import ipaddress

from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.services.rules import PendingCall, Refused, rule, validation_error
from cfngen.sandbox.untyped import MotoBackend, MotoModel

MIN_FREE_ADDRESSES = 8  # of each subnet
MAX_LOAD_BALANCERS = 50  # of each type in a region
MAX_SECURITY_GROUPS = 5
MAX_TAGS = 50
INVALID_CONFIGURATION = "InvalidConfigurationRequest"


@rule("elbv2", "CreateLoadBalancer")
def check_name_and_quota(call: PendingCall) -> None:
    """Refuse a name in use, a load balancer beyond the quota, and too many tags."""
    name, existing = call.get("Name", ""), list(call.backend.load_balancers.values())
    if name in [balancer.name for balancer in existing]:
        # With the same settings, AWS returns the existing load balancer (API, CreateLoadBalancer): not emulated.
        raise Refused(
            "DuplicateLoadBalancerName",
            f"A load balancer with the same name '{name}' exists, but with different settings",
        )
    if sum(balancer.type == call.get("Type") for balancer in existing) >= MAX_LOAD_BALANCERS:
        raise Refused("TooManyLoadBalancers", "The maximum number of load balancers has been reached")
    if len(call.get("Tags") or []) > MAX_TAGS:
        raise Refused("TooManyTags", "The maximum number of tags has been reached")


@rule("elbv2", "CreateLoadBalancer", "SetSubnets")
def check_subnets(call: PendingCall) -> None:
    """Refuse subnets of several VPCs, two subnets in one zone, and subnets with too few free addresses."""
    subnet_ids = call.get("Subnets") or []
    subnets = [subnet for subnet in subnets_of(call) if subnet.id in subnet_ids]
    if missing := sorted(set(subnet_ids) - {subnet.id for subnet in subnets}):
        raise Refused("SubnetNotFound", f"The subnet ID '{missing[0]}' does not exist")
    if len({subnet.vpc_id for subnet in subnets}) > 1:
        raise Refused("InvalidSubnet", "All subnets must belong to the same VPC")
    if len({subnet.availability_zone for subnet in subnets}) < len(subnet_ids):
        raise Refused(
            INVALID_CONFIGURATION,
            "A load balancer cannot be attached to multiple subnets in the same Availability Zone",
        )
    current_ids: set[str] = set()
    if call.operation == "SetSubnets":
        balancer = _get_balancer(call)
        current_ids = {subnet.id for subnet in balancer.subnets}
        if subnets and subnets[0].vpc_id != balancer.vpc_id:
            raise Refused("InvalidSubnet", f"The subnet '{subnets[0].id}' does not belong to VPC '{balancer.vpc_id}'")
    for subnet in subnets:
        if subnet.id not in current_ids and subnet.available_ip_address_count < MIN_FREE_ADDRESSES:
            raise Refused(
                "InvalidSubnet",
                f"Not enough IP space available in {subnet.id}. ELB requires at least {MIN_FREE_ADDRESSES} free IP "
                "addresses in each subnet.",
            )


@rule("elbv2", "CreateLoadBalancer")
def check_internet_gateway(call: PendingCall) -> None:
    """Refuse an internet-facing load balancer in a VPC without an internet gateway."""
    if call.get("Scheme", "internet-facing") == "internal":
        return
    ec2 = _ec2_backend(call)
    subnets = [subnet for subnet in subnets_of(call) if subnet.id in (call.get("Subnets") or [])]
    vpcs_with_gateway = {getattr(gateway.vpc, "id", "") for gateway in ec2.internet_gateways.values()}
    for vpc_id in {subnet.vpc_id for subnet in subnets}:
        if vpc_id not in vpcs_with_gateway:
            raise Refused("InvalidSubnet", f"VPC {vpc_id} has no internet gateway")


@rule("elbv2", "CreateLoadBalancer", "SetSecurityGroups")
def check_security_groups(call: PendingCall) -> None:
    """Refuse too many groups, groups of another VPC, and any for a network load balancer created without groups."""
    group_ids = call.get("SecurityGroups") or []
    ec2 = _ec2_backend(call)
    if call.operation == "SetSecurityGroups":
        balancer = _get_balancer(call)
        vpc_id = balancer.vpc_id
        if group_ids and not balancer.security_groups:
            raise Refused(
                INVALID_CONFIGURATION,
                "You cannot set security groups on a Network Load Balancer which was created without any security "
                "groups.",
            )
        if balancer.security_groups and not group_ids:
            raise Refused(INVALID_CONFIGURATION, "You must specify at least one security group")
    else:
        subnets = [subnet for subnet in subnets_of(call) if subnet.id in (call.get("Subnets") or [])]
        vpc_id = subnets[0].vpc_id if subnets else ""
    if len(group_ids) > MAX_SECURITY_GROUPS:
        message = "The maximum number of security groups per load balancer has been reached."
        raise Refused(INVALID_CONFIGURATION, message)
    for group_id in group_ids:
        group = ec2.get_security_group_from_id(group_id)
        if group is None:
            raise Refused("InvalidSecurityGroup", f"The security group '{group_id}' does not exist")
        if group.vpc_id != vpc_id:
            raise Refused(INVALID_CONFIGURATION, f"Security group '{group_id}' does not belong to VPC '{vpc_id}'")


@rule("elbv2", "ModifyLoadBalancerAttributes")
def check_attributes(call: PendingCall) -> None:
    """Refuse an attribute that stands twice (assumed: the API names no order in which both would be set)."""
    keys = [attribute["Key"] for attribute in call.get("Attributes") or []]
    if repeated := sorted(key for key in set(keys) if keys.count(key) > 1):
        raise validation_error(f"The load balancer attribute '{repeated[0]}' is specified more than once")


@rule("elbv2", "DeleteLoadBalancer")
def check_deletion_protection(call: PendingCall) -> None:
    """Refuse to delete a protected load balancer."""
    balancer = call.backend.load_balancers.get(call.get("LoadBalancerArn"))
    if balancer is not None and balancer.attrs.get("deletion_protection.enabled") == "true":
        raise Refused(
            "OperationNotPermitted",
            f"Load balancer '{balancer.arn}' cannot be deleted because deletion protection is enabled",
        )


def _get_balancer(call: PendingCall) -> MotoModel:
    balancer = call.backend.load_balancers.get(call.get("LoadBalancerArn"))
    if balancer is None:
        raise Refused("LoadBalancerNotFound", f"Load balancer '{call.get('LoadBalancerArn')}' not found")
    return balancer


def subnets_of(call: PendingCall) -> list[MotoModel]:
    """Return all subnets of the region."""
    return [subnet for zone in _ec2_backend(call).subnets.values() for subnet in zone.values()]


def _ec2_backend(call: PendingCall) -> MotoBackend:
    return get_backend("ec2")[DEFAULT_ACCOUNT_ID][call.region]


@rule("elbv2", "CreateTargetGroup")
def check_target_group(call: PendingCall) -> None:
    """Refuse a name in use."""
    name = call.get("Name", "")
    if name in [group.name for group in call.backend.target_groups.values()]:
        raise Refused(
            "DuplicateTargetGroupName",
            f"A target group with the same name '{name}' exists, but with different settings",
        )


@rule("elbv2", "RegisterTargets")
def check_targets(call: PendingCall) -> None:
    """Refuse instances that are not in the VPC, and addresses outside of it."""
    group = _get_target_group(call, call.get("TargetGroupArn"))
    subnet_ranges = [subnet.cidr for subnet in subnets_of(call) if subnet.vpc_id == group.vpc_id]
    for target in call.get("Targets") or []:
        if group.target_type == "ip":
            _check_target_address(target["Id"], subnet_ranges)
        elif group.target_type == "instance":
            _check_target_instance(call, target["Id"], group.vpc_id)


def _check_target_instance(call: PendingCall, instance_id: str, vpc_id: str) -> None:
    """Refuse an instance that is not in the VPC or is gone."""
    instances = {item.id: item for item in _ec2_backend(call).all_instances()}
    instance = instances.get(instance_id)
    if instance is None or instance.vpc_id != vpc_id or instance.state == "terminated":
        raise Refused(
            "InvalidTarget",
            f"The specified target '{instance_id}' does not exist, is not in the same VPC as the target group, or has "
            "an unsupported instance type.",
        )


def _check_target_address(text: str, subnet_ranges: list[ipaddress.IPv4Network]) -> None:
    """Refuse what is no address, and an address in none of the VPC's subnets.

    AWS takes a private address of another network if the target names an Availability Zone, which is not modelled.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise validation_error(f"The IP address '{text}' is not a valid IPv4 address") from None
    if not any(address in network for network in subnet_ranges):
        raise validation_error(
            f"The Availability Zone is required for IP address '{text}' because it is not in the VPC"
        )


@rule("elbv2", "CreateListener", "ModifyListener")
def check_listener(call: PendingCall) -> None:
    """Refuse a used port, more than one action, and target groups that do not fit."""
    backend = call.backend
    arn = call.get("LoadBalancerArn") or _balancer_of_listener(call)
    balancer = backend.load_balancers.get(arn)
    if balancer is None:
        raise Refused("LoadBalancerNotFound", f"Load balancer '{arn}' not found")
    current = balancer.listeners.get(call.get("ListenerArn"))  # None if the listener is being created
    port = call.get("Port") or getattr(current, "port", None)
    other_listeners = [listener for listener in balancer.listeners.values() if listener is not current]
    if any(str(listener.port) == str(port) for listener in other_listeners):
        raise Refused("DuplicateListener", "A listener already exists on this port for this load balancer")
    if len(call.get("DefaultActions") or [{}]) > 1:
        raise validation_error("A default action of a listener must be exactly one forward action")
    for action in call.get("DefaultActions") or []:
        _check_target_group(call, action["TargetGroupArn"], balancer)


def _check_target_group(call: PendingCall, arn: str, balancer: MotoModel) -> None:
    group = _get_target_group(call, arn)
    if group.vpc_id != balancer.vpc_id:
        raise Refused(
            INVALID_CONFIGURATION,
            f"The target group with targetGroupARN '{arn}' must be in the VPC of the load balancer",
        )
    if other_arns := [other for other in group.load_balancer_arns if other != balancer.arn]:
        message = f"The following target groups cannot be associated with more than one load balancer: {arn}"
        raise Refused("TargetGroupAssociationLimit", f"{message} ({other_arns[0]})")


def _balancer_of_listener(call: PendingCall) -> str:
    for balancer in call.backend.load_balancers.values():
        if call.get("ListenerArn") in balancer.listeners:
            return str(balancer.arn)
    raise Refused("ListenerNotFound", f"Listener '{call.get('ListenerArn')}' not found")


def _get_target_group(call: PendingCall, arn: str) -> MotoModel:
    group = call.backend.target_groups.get(arn)
    if group is None:
        raise Refused("TargetGroupNotFound", f"Target groups '{arn}' not found")
    return group
