"""Elastic Load Balancing: load balancers, their subnets, security groups and attributes.

Conditions: API reference of Elastic Load Balancing (CreateLoadBalancer, SetSecurityGroups, LoadBalancerAttribute), user
guide of network load balancers ("Availability Zones", "Security groups", "Quotas").
"""

from __future__ import annotations

from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services.rules import PendingCall, Refused, rule, validation_error

MIN_FREE_ADDRESSES = 8  # of each subnet
MIN_APPLICATION_ZONES = 2  # of an application load balancer
MAX_LOAD_BALANCERS = 50  # of each type in a region
MAX_SECURITY_GROUPS = 5
MAX_TAGS = 50
INVALID_CONFIGURATION = "InvalidConfigurationRequest"


@rule("elbv2", "CreateLoadBalancer")
def check_name_and_quota(call: PendingCall) -> None:
    """Refuse a name in use, a load balancer beyond the quota, and too many tags."""
    name, balancer_type = call.get("Name", ""), call.get("Type") or "application"
    existing = list(call.backend.load_balancers.values())
    if name in [balancer.name for balancer in existing]:
        # With the same settings, AWS returns the existing load balancer (API, CreateLoadBalancer): not emulated.
        raise Refused(
            "DuplicateLoadBalancerName",
            f"A load balancer with the same name '{name}' exists, but with different settings",
        )
    if sum(balancer.type == balancer_type for balancer in existing) >= MAX_LOAD_BALANCERS:
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
    if call.operation == "CreateLoadBalancer":
        balancer_type = call.get("Type") or "application"
    else:
        balancer_type = _get_balancer(call).type
    if balancer_type == "application" and len(subnets) < MIN_APPLICATION_ZONES:
        message = "At least two subnets in two different Availability Zones must be specified"
        raise validation_error(message)
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
        if balancer.type == "network" and group_ids and not balancer.security_groups:
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
    """Refuse a call without attributes, and one for a load balancer that does not exist."""
    _get_balancer(call)
    if not call.get("Attributes"):
        raise validation_error("Attributes cannot be empty")


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
