"""Elastic Load Balancing: target groups, their health checks and attributes, and the listeners that forward to them.

Conditions: API reference of Elastic Load Balancing (CreateTargetGroup, ModifyTargetGroupAttributes, RegisterTargets,
CreateListener), user guide of network load balancers ("Target groups", "Health checks", "Listeners", "Quotas").
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.moto_types import MotoModel
from cfngen.sandbox.services.load_balancers import (
    BOOLEAN,
    INVALID_CONFIGURATION,
    VALIDATION_ERROR,
    AllowedValues,
    check_value,
    subnets_of,
)
from cfngen.sandbox.services.rules import PendingCall, Refused, out_of_range, rule

NETWORK_PROTOCOLS = ("TCP", "TLS", "UDP", "TCP_UDP")
APPLICATION_PROTOCOLS = ("HTTP", "HTTPS")
MAX_LISTENERS = 50  # of a load balancer
PORTS = range(1, 65_536)
# By protocol of a listener: the protocols of the target groups that it can forward to ("Target groups").
TARGET_PROTOCOLS: Mapping[str, tuple[str, ...]] = {
    "TCP": ("TCP", "TCP_UDP"), "TLS": ("TCP", "TLS"), "UDP": ("UDP", "TCP_UDP"), "TCP_UDP": ("TCP_UDP",),
    "HTTP": APPLICATION_PROTOCOLS, "HTTPS": APPLICATION_PROTOCOLS,
}  # fmt: skip
HEALTH_CHECK_RANGES = {
    "HealthCheckIntervalSeconds": range(5, 301),
    "HealthCheckTimeoutSeconds": range(2, 121),
    "HealthyThresholdCount": range(2, 11),
    "UnhealthyThresholdCount": range(2, 11),
}
COMMON_ATTRIBUTES: Mapping[str, AllowedValues] = {
    "deregistration_delay.timeout_seconds": range(3_601),
    "load_balancing.cross_zone.enabled": ("true", "false", "use_load_balancer_configuration"),
    "stickiness.enabled": BOOLEAN,
    "stickiness.type": ("lb_cookie", "app_cookie", "source_ip", "source_ip_dest_ip", "source_ip_dest_ip_proto"),
    "target_group_health.dns_failover.minimum_healthy_targets.count": None,
    "target_group_health.dns_failover.minimum_healthy_targets.percentage": None,
    "target_group_health.unhealthy_state_routing.minimum_healthy_targets.count": None,
    "target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage": None,
}
NETWORK_ATTRIBUTES: Mapping[str, AllowedValues] = {
    "deregistration_delay.connection_termination.enabled": BOOLEAN,
    "preserve_client_ip.enabled": BOOLEAN,
    "proxy_protocol_v2.enabled": BOOLEAN,
    "target_health_state.unhealthy.connection_termination.enabled": BOOLEAN,
    "target_health_state.unhealthy.draining_interval_seconds": range(360_001),
}
APPLICATION_ATTRIBUTES: Mapping[str, AllowedValues] = {
    "load_balancing.algorithm.type": ("round_robin", "least_outstanding_requests", "weighted_random"),
    "load_balancing.algorithm.anomaly_mitigation": ("on", "off"),
    "slow_start.duration_seconds": range(901),
    "stickiness.app_cookie.cookie_name": None,
    "stickiness.app_cookie.duration_seconds": range(1, 604_801),
    "stickiness.lb_cookie.duration_seconds": range(1, 604_801),
}


@rule("elbv2", "CreateTargetGroup")
def check_target_group(call: PendingCall) -> None:
    """Refuse a name in use, an invalid port, and a target type that is unknown or does not fit the protocol."""
    name, port, target_type = call.get("Name", ""), call.get("Port"), call.get("TargetType") or "instance"
    if name in [group.name for group in call.backend.target_groups.values()]:
        raise Refused(
            "DuplicateTargetGroupName",
            f"A target group with the same name '{name}' exists, but with different settings",
        )
    if port is not None and (fault := out_of_range("port", port, PORTS)):
        raise Refused(VALIDATION_ERROR, fault)
    if target_type not in ("instance", "ip", "lambda", "alb"):
        raise Refused(VALIDATION_ERROR, f"Target type '{target_type}' must be one of [instance, ip, lambda, alb]")
    if target_type == "alb" and call.get("Protocol") != "TCP":
        raise Refused(
            INVALID_CONFIGURATION, f"Protocol '{call.get('Protocol')}' is not supported with target type 'alb'"
        )


@rule("elbv2", "CreateTargetGroup", "ModifyTargetGroup")
def check_health_check(call: PendingCall) -> None:
    """Refuse invalid intervals, timeouts, thresholds, protocols and ports of health checks, and disabling them."""
    group = call.backend.target_groups.get(call.get("TargetGroupArn"))
    protocol = call.get("HealthCheckProtocol") or getattr(group, "health_check_protocol", None)
    for key, allowed in HEALTH_CHECK_RANGES.items():
        value = call.get(key)
        if value is not None and (fault := out_of_range(f"{key[0].lower()}{key[1:]}", value, allowed)):
            raise Refused(VALIDATION_ERROR, fault)
    interval = call.get("HealthCheckIntervalSeconds") or getattr(group, "health_check_interval_seconds", None) or 30
    timeout = call.get("HealthCheckTimeoutSeconds") or getattr(group, "health_check_timeout_seconds", None)
    if timeout is not None and int(timeout) > int(interval):
        raise Refused(
            VALIDATION_ERROR,
            f"Health check timeout '{timeout}' must be smaller than or equal to the interval '{interval}'",
        )
    if protocol in ("UDP", "TLS", "TCP_UDP"):
        raise Refused(VALIDATION_ERROR, f"Health check protocol '{protocol}' must be one of [HTTP, HTTPS, TCP]")
    group_protocol = call.get("Protocol") or getattr(group, "protocol", None)
    if protocol == "TCP" and group_protocol in APPLICATION_PROTOCOLS:
        raise Refused(
            VALIDATION_ERROR,
            f"Health check protocol 'TCP' is not supported for target groups with the {group_protocol} protocol",
        )
    if protocol == "TCP" and call.get("HealthCheckPath"):
        raise Refused(VALIDATION_ERROR, "Health check path cannot be specified for health checks with the TCP protocol")
    path = call.get("HealthCheckPath")
    if path is not None and not path.startswith("/"):
        raise Refused(VALIDATION_ERROR, f"Health check path '{path}' must begin with a '/' character")
    port = call.get("HealthCheckPort")
    if port is not None and port != "traffic-port" and not (port.isdigit() and int(port) in PORTS):
        raise Refused(
            VALIDATION_ERROR, f"Health check port '{port}' must be 'traffic-port' or a number between 1 and 65535"
        )
    target_type = call.get("TargetType") or getattr(group, "target_type", "instance")
    if str(call.get("HealthCheckEnabled")).lower() == "false" and target_type != "lambda":
        raise Refused(
            VALIDATION_ERROR, f"Health check enabled must be true for target groups with target type '{target_type}'"
        )


@rule("elbv2", "ModifyTargetGroupAttributes")
def check_attributes(call: PendingCall) -> None:
    """Refuse unknown attributes, attributes of other protocols, and invalid values."""
    group = _get_target_group(call, call.get("TargetGroupArn"))
    if group.protocol in NETWORK_PROTOCOLS:
        supported, unsupported = {**COMMON_ATTRIBUTES, **NETWORK_ATTRIBUTES}, APPLICATION_ATTRIBUTES
    else:
        supported, unsupported = {**COMMON_ATTRIBUTES, **APPLICATION_ATTRIBUTES}, NETWORK_ATTRIBUTES
    for attribute in call.get("Attributes") or []:
        key, value = attribute["Key"], str(attribute.get("Value", ""))
        if key in unsupported:
            message = f"is not supported on target groups with the {group.protocol} protocol"
            raise Refused(INVALID_CONFIGURATION, f"Target group attribute key '{key}' {message}")
        if key not in supported:
            raise Refused(VALIDATION_ERROR, f"Target group attribute key '{key}' is not recognized")
        check_value("Target group attribute", key, value, supported[key])
        if key == "preserve_client_ip.enabled" and value == "false" and group.protocol in ("UDP", "TCP_UDP"):
            message = f"Client IP preservation cannot be disabled for target groups with the {group.protocol} protocol"
            raise Refused(INVALID_CONFIGURATION, message)


@rule("elbv2", "RegisterTargets")
def check_targets(call: PendingCall) -> None:
    """Refuse invalid ports and instance ids, and addresses that are neither in the VPC nor private."""
    group = _get_target_group(call, call.get("TargetGroupArn"))
    subnet_ranges = [subnet.cidr for subnet in subnets_of(call) if subnet.vpc_id == group.vpc_id]
    for target in call.get("Targets") or []:
        identifier, port = target["Id"], target.get("Port")
        if port is not None and int(port) not in PORTS:
            raise Refused(VALIDATION_ERROR, f"The port '{port}' is not valid: it must be between 1 and 65535")
        if group.target_type == "ip":
            _check_target_address(identifier, target.get("AvailabilityZone"), subnet_ranges)
        elif group.target_type == "instance" and not identifier.startswith("i-"):
            raise Refused(VALIDATION_ERROR, f"Instance ID '{identifier}' is not valid")


def _check_target_address(text: str, zone: str | None, networks: list[ipaddress.IPv4Network]) -> None:
    """Refuse a target's address that is neither in the VPC nor private, or has the wrong zone.

    Args:
        text: the address.
        zone: the target's `AvailabilityZone`: a zone's name, or `all`; required for an address outside of the VPC.
        networks: ranges of the subnets in the VPC of the target group.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise Refused(VALIDATION_ERROR, f"The IP address '{text}' is not a valid IPv4 address") from None
    is_in_vpc = any(address in network for network in networks)
    if is_in_vpc and zone == "all":
        raise Refused(
            VALIDATION_ERROR,
            f"The IP address '{text}' is within the VPC, and cannot have its Availability Zone overridden to 'all'",
        )
    if not is_in_vpc and not address.is_private and address not in ipaddress.ip_network("100.64.0.0/10"):
        raise Refused(VALIDATION_ERROR, f"The IP address '{text}' is not within the VPC, nor a private address")
    if not is_in_vpc and not zone:
        raise Refused(
            VALIDATION_ERROR, f"The Availability Zone is required for IP address '{text}' because it is not in the VPC"
        )


@rule("elbv2", "CreateListener", "ModifyListener")
def check_listener(call: PendingCall) -> None:
    """Refuse an invalid or used port, TLS without a certificate, and target groups that do not fit."""
    backend = call.backend
    arn = call.get("LoadBalancerArn") or _balancer_of_listener(call)
    balancer = backend.load_balancers.get(arn)
    if balancer is None:
        raise Refused("LoadBalancerNotFound", f"Load balancer '{arn}' not found")
    current = balancer.listeners.get(call.get("ListenerArn"))  # None if the listener is being created
    port = call.get("Port") or getattr(current, "port", None)
    protocol = call.get("Protocol") or getattr(current, "protocol", None)
    if port is not None and (fault := out_of_range("port", port, PORTS)):
        raise Refused(VALIDATION_ERROR, fault)
    other_listeners = [listener for listener in balancer.listeners.values() if listener is not current]
    if any(str(listener.port) == str(port) for listener in other_listeners):
        raise Refused("DuplicateListener", "A listener already exists on this port for this load balancer")
    if call.operation == "CreateListener" and len(balancer.listeners) >= MAX_LISTENERS:
        raise Refused("TooManyListeners", "The maximum number of listeners has been reached")
    allowed_protocols = NETWORK_PROTOCOLS if balancer.type == "network" else APPLICATION_PROTOCOLS
    if protocol not in allowed_protocols:
        raise Refused(
            VALIDATION_ERROR, f"Listener protocol '{protocol}' must be one of '{', '.join(allowed_protocols)}'"
        )
    is_secured = protocol in ("TLS", "HTTPS")
    if is_secured and not call.get("Certificates") and not getattr(current, "certificate", None):
        raise Refused(VALIDATION_ERROR, f"A certificate must be specified for {protocol} listeners")
    if not is_secured and (call.get("Certificates") or call.get("SslPolicy")):
        raise Refused(
            INVALID_CONFIGURATION, f"A certificate or an SSL policy cannot be specified for {protocol} listeners"
        )
    for action in call.get("DefaultActions") or []:
        _check_action(call, action, balancer, str(protocol))


def _check_action(call: PendingCall, action: JsonObject, balancer: MotoModel, protocol: str) -> None:
    """Refuse an action whose target groups do not fit the load balancer, or the protocol of the listener."""
    if balancer.type == "network" and action["Type"] != "forward":
        raise Refused(
            INVALID_CONFIGURATION, f"Actions of type '{action['Type']}' are not supported on network load balancers"
        )
    weighted_groups = (action.get("ForwardConfig") or {}).get("TargetGroups") or []
    for arn in {action.get("TargetGroupArn"), *(group["TargetGroupArn"] for group in weighted_groups)} - {None}:
        group = _get_target_group(call, str(arn))
        if group.protocol not in TARGET_PROTOCOLS[protocol]:
            raise Refused(
                "IncompatibleProtocols",
                f"The listener and its associated target group '{arn}' have incompatible protocols: {protocol} and "
                f"{group.protocol}",
            )
        if group.vpc_id != balancer.vpc_id:
            raise Refused(
                INVALID_CONFIGURATION,
                f"The target group with targetGroupARN '{arn}' must be in the VPC of the load balancer",
            )
        if other_arns := [other for other in group.load_balancer_arns if other != balancer.arn]:
            message = f"The following target groups cannot be associated with more than one load balancer: {arn}"
            raise Refused("TargetGroupAssociationLimit", f"{message} ({other_arns[0]})")


def _balancer_of_listener(call: PendingCall) -> str:
    """Return the ARN of the load balancer of an existing listener."""
    for balancer in call.backend.load_balancers.values():
        if call.get("ListenerArn") in balancer.listeners:
            return str(balancer.arn)
    raise Refused("ListenerNotFound", f"Listener '{call.get('ListenerArn')}' not found")


def _get_target_group(call: PendingCall, arn: str) -> MotoModel:
    """Return moto's target group with an ARN, or refuse the call."""
    group = call.backend.target_groups.get(arn)
    if group is None:
        raise Refused("TargetGroupNotFound", f"Target groups '{arn}' not found")
    return group
