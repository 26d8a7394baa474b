"""Elastic Load Balancing: target groups, their health checks, and the listeners that forward to them.

Conditions: API reference of Elastic Load Balancing (CreateTargetGroup, RegisterTargets, CreateListener), user guide of
network load balancers ("Target groups", "Health checks", "Listeners", "Quotas").
"""

from __future__ import annotations

import ipaddress

from cfngen.sandbox.moto_types import MotoModel
from cfngen.sandbox.services.load_balancers import INVALID_CONFIGURATION, subnets_of
from cfngen.sandbox.services.rules import PendingCall, Refused, rule, validation_error

MAX_LISTENERS = 50  # of a load balancer
DRAINING_SECONDS = range(3_601)


@rule("elbv2", "CreateTargetGroup")
def check_target_group(call: PendingCall) -> None:
    """Refuse a name in use."""
    name = call.get("Name", "")
    if name in [group.name for group in call.backend.target_groups.values()]:
        raise Refused(
            "DuplicateTargetGroupName",
            f"A target group with the same name '{name}' exists, but with different settings",
        )


@rule("elbv2", "CreateTargetGroup", "ModifyTargetGroup")
def check_health_check(call: PendingCall) -> None:
    """Refuse health checks with a timeout longer than the interval, or with a path that is not one."""
    group = call.backend.target_groups.get(call.get("TargetGroupArn"))
    interval = call.get("HealthCheckIntervalSeconds") or getattr(group, "health_check_interval_seconds", None) or 30
    timeout = call.get("HealthCheckTimeoutSeconds") or getattr(group, "health_check_timeout_seconds", None)
    if timeout is not None and int(timeout) > int(interval):
        raise validation_error(
            f"Health check timeout '{timeout}' must be smaller than or equal to the interval '{interval}'"
        )
    path = call.get("HealthCheckPath")
    if path is not None and not path.startswith("/"):
        raise validation_error(f"Health check path '{path}' must begin with a '/' character")


@rule("elbv2", "ModifyTargetGroupAttributes")
def check_draining(call: PendingCall) -> None:
    """Refuse targets that are drained for longer than an hour, and a target group that does not exist."""
    _get_target_group(call, call.get("TargetGroupArn"))
    for attribute in call.get("Attributes") or []:
        key, value = attribute["Key"], str(attribute.get("Value", ""))
        if key == "deregistration_delay.timeout_seconds" and int(value) not in DRAINING_SECONDS:
            raise validation_error(f"'{key}' value '{value}' must be between '0-{DRAINING_SECONDS[-1]}' inclusive")


@rule("elbv2", "RegisterTargets")
def check_targets(call: PendingCall) -> None:
    """Refuse invalid ids of instances, and addresses outside of the VPC."""
    group = _get_target_group(call, call.get("TargetGroupArn"))
    subnet_ranges = [subnet.cidr for subnet in subnets_of(call) if subnet.vpc_id == group.vpc_id]
    for target in call.get("Targets") or []:
        if group.target_type == "ip":
            _check_target_address(target["Id"], subnet_ranges)
        elif group.target_type == "instance" and not target["Id"].startswith("i-"):
            raise validation_error(f"Instance ID '{target['Id']}' is not valid")


def _check_target_address(text: str, subnet_ranges: list[ipaddress.IPv4Network]) -> None:
    """Refuse an address in none of the VPC's subnets; with a zone, AWS would take a private one."""
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
    """Refuse a used port, a listener beyond the quota, and target groups that do not fit."""
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
    if call.operation == "CreateListener" and len(balancer.listeners) >= MAX_LISTENERS:
        raise Refused("TooManyListeners", "The maximum number of listeners has been reached")
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
