"""Elastic Load Balancing: target groups, their health checks and attributes, and the listeners that forward to them.

Conditions: API reference of Elastic Load Balancing (CreateTargetGroup, ModifyTargetGroupAttributes, RegisterTargets,
CreateListener), user guide of network load balancers ("Target groups", "Health checks", "Listeners", "Quotas").
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from cfngen.sandbox.services.load_balancers import CONFIGURATION, INVALID, SWITCH, check_value, subnets_of
from cfngen.sandbox.services.rules import Attempt, Refused, out_of_range, rule

OF_NETWORK = ("TCP", "TLS", "UDP", "TCP_UDP")
OF_APPLICATION = ("HTTP", "HTTPS")
LISTENERS = 50
PORTS = range(1, 65_536)
# A listener of a network load balancer, and what the target groups it forwards to can speak ("Target groups").
FORWARDS: Mapping[str, tuple[str, ...]] = {
    "TCP": ("TCP", "TCP_UDP"), "TLS": ("TCP", "TLS"), "UDP": ("UDP", "TCP_UDP"), "TCP_UDP": ("TCP_UDP",),
    "HTTP": OF_APPLICATION, "HTTPS": OF_APPLICATION,
}  # fmt: skip
CHECKS = {
    "HealthCheckIntervalSeconds": range(5, 301),
    "HealthCheckTimeoutSeconds": range(2, 121),
    "HealthyThresholdCount": range(2, 11),
    "UnhealthyThresholdCount": range(2, 11),
}
ATTRIBUTES: Mapping[str, tuple[str, ...] | range | None] = {
    "deregistration_delay.timeout_seconds": range(3_601),
    "load_balancing.cross_zone.enabled": ("true", "false", "use_load_balancer_configuration"),
    "stickiness.enabled": SWITCH,
    "stickiness.type": ("lb_cookie", "app_cookie", "source_ip", "source_ip_dest_ip", "source_ip_dest_ip_proto"),
    "target_group_health.dns_failover.minimum_healthy_targets.count": None,
    "target_group_health.dns_failover.minimum_healthy_targets.percentage": None,
    "target_group_health.unhealthy_state_routing.minimum_healthy_targets.count": None,
    "target_group_health.unhealthy_state_routing.minimum_healthy_targets.percentage": None,
}
ATTRIBUTES_OF_NETWORK: Mapping[str, tuple[str, ...] | range | None] = {
    "deregistration_delay.connection_termination.enabled": SWITCH,
    "preserve_client_ip.enabled": SWITCH,
    "proxy_protocol_v2.enabled": SWITCH,
    "target_health_state.unhealthy.connection_termination.enabled": SWITCH,
    "target_health_state.unhealthy.draining_interval_seconds": range(360_001),
}
ATTRIBUTES_OF_APPLICATION: Mapping[str, tuple[str, ...] | range | None] = {
    "load_balancing.algorithm.type": ("round_robin", "least_outstanding_requests", "weighted_random"),
    "load_balancing.algorithm.anomaly_mitigation": ("on", "off"),
    "slow_start.duration_seconds": range(901),
    "stickiness.app_cookie.cookie_name": None,
    "stickiness.app_cookie.duration_seconds": range(1, 604_801),
    "stickiness.lb_cookie.duration_seconds": range(1, 604_801),
}


@rule("elbv2", "CreateTargetGroup")
def target_group(attempt: Attempt) -> None:
    """Refuse a name in use, a port that is none, and a type of targets that the protocol does not have."""
    name, port, kind = attempt.get("Name", ""), attempt.get("Port"), attempt.get("TargetType") or "instance"
    if name in [group.name for group in attempt.backend.target_groups.values()]:
        raise Refused(
            "DuplicateTargetGroupName",
            f"A target group with the same name '{name}' exists, but with different settings",
        )
    if port is not None and (fault := out_of_range("port", port, PORTS)):
        raise Refused(INVALID, fault)
    if kind not in ("instance", "ip", "lambda", "alb"):
        raise Refused(INVALID, f"Target type '{kind}' must be one of [instance, ip, lambda, alb]")
    if kind == "alb" and attempt.get("Protocol") != "TCP":
        raise Refused(CONFIGURATION, f"Protocol '{attempt.get('Protocol')}' is not supported with target type 'alb'")


@rule("elbv2", "CreateTargetGroup", "ModifyTargetGroup")
def health_check(attempt: Attempt) -> None:
    """Refuse health checks that are too rare, too slow, too many, or that cannot be off."""
    group = attempt.backend.target_groups.get(attempt.get("TargetGroupArn"))
    protocol = attempt.get("HealthCheckProtocol") or getattr(group, "health_check_protocol", None)
    for key, allowed in CHECKS.items():
        value = attempt.get(key)
        if value is not None and (fault := out_of_range(f"{key[0].lower()}{key[1:]}", value, allowed)):
            raise Refused(INVALID, fault)
    interval = attempt.get("HealthCheckIntervalSeconds") or getattr(group, "health_check_interval_seconds", None) or 30
    timeout = attempt.get("HealthCheckTimeoutSeconds") or getattr(group, "health_check_timeout_seconds", None)
    if timeout is not None and int(timeout) > int(interval):
        raise Refused(
            INVALID, f"Health check timeout '{timeout}' must be smaller than or equal to the interval '{interval}'"
        )
    if protocol in ("UDP", "TLS", "TCP_UDP"):
        raise Refused(INVALID, f"Health check protocol '{protocol}' must be one of [HTTP, HTTPS, TCP]")
    own = attempt.get("Protocol") or getattr(group, "protocol", None)
    if protocol == "TCP" and own in OF_APPLICATION:
        raise Refused(
            INVALID, f"Health check protocol 'TCP' is not supported for target groups with the {own} protocol"
        )
    if protocol == "TCP" and attempt.get("HealthCheckPath"):
        raise Refused(INVALID, "Health check path cannot be specified for health checks with the TCP protocol")
    path = attempt.get("HealthCheckPath")
    if path is not None and not path.startswith("/"):
        raise Refused(INVALID, f"Health check path '{path}' must begin with a '/' character")
    port = attempt.get("HealthCheckPort")
    if port is not None and port != "traffic-port" and not (port.isdigit() and int(port) in PORTS):
        raise Refused(INVALID, f"Health check port '{port}' must be 'traffic-port' or a number between 1 and 65535")
    kind = attempt.get("TargetType") or getattr(group, "target_type", "instance")
    if str(attempt.get("HealthCheckEnabled")).lower() == "false" and kind != "lambda":
        raise Refused(INVALID, f"Health check enabled must be true for target groups with target type '{kind}'")


@rule("elbv2", "ModifyTargetGroupAttributes")
def attributes(attempt: Attempt) -> None:
    """Refuse attributes that do not exist, that are another protocol's, or that have no such value."""
    group = _group(attempt, attempt.get("TargetGroupArn"))
    protocol_attributes, unsupported = (
        (ATTRIBUTES_OF_NETWORK, ATTRIBUTES_OF_APPLICATION)
        if group.protocol in OF_NETWORK
        else (ATTRIBUTES_OF_APPLICATION, ATTRIBUTES_OF_NETWORK)
    )
    supported = {**ATTRIBUTES, **protocol_attributes}
    for attribute in attempt.get("Attributes") or []:
        key, value = attribute["Key"], str(attribute.get("Value", ""))
        if key in unsupported:
            message = f"is not supported on target groups with the {group.protocol} protocol"
            raise Refused(CONFIGURATION, f"Target group attribute key '{key}' {message}")
        if key not in supported:
            raise Refused(INVALID, f"Target group attribute key '{key}' is not recognized")
        check_value("Target group attribute", key, value, supported[key])
        if key == "preserve_client_ip.enabled" and value == "false" and group.protocol in ("UDP", "TCP_UDP"):
            message = f"Client IP preservation cannot be disabled for target groups with the {group.protocol} protocol"
            raise Refused(CONFIGURATION, message)


@rule("elbv2", "RegisterTargets")
def targets(attempt: Attempt) -> None:
    """Refuse addresses that are none, or that are neither of the VPC nor private; and instances that do not run."""
    group = _group(attempt, attempt.get("TargetGroupArn"))
    networks = [subnet.cidr for subnet in subnets_of(attempt) if subnet.vpc_id == group.vpc_id]
    for target in attempt.get("Targets") or []:
        identifier, port = target["Id"], target.get("Port")
        if port is not None and int(port) not in PORTS:
            raise Refused(INVALID, f"The port '{port}' is not valid: it must be between 1 and 65535")
        if group.target_type == "ip":
            _check_address(identifier, target.get("AvailabilityZone"), networks)
        elif group.target_type == "instance" and not identifier.startswith("i-"):
            raise Refused(INVALID, f"Instance ID '{identifier}' is not valid")


def _check_address(text: str, zone: str | None, networks: list[Any]) -> None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise Refused(INVALID, f"The IP address '{text}' is not a valid IPv4 address") from None
    inside = any(address in network for network in networks)
    if inside and zone == "all":
        raise Refused(
            INVALID,
            f"The IP address '{text}' is within the VPC, and cannot have its Availability Zone overridden to 'all'",
        )
    if not inside and not address.is_private and address not in ipaddress.ip_network("100.64.0.0/10"):
        raise Refused(INVALID, f"The IP address '{text}' is not within the VPC, nor a private address")
    if not inside and not zone:
        raise Refused(
            INVALID, f"The Availability Zone is required for IP address '{text}' because it is not in the VPC"
        )


@rule("elbv2", "CreateListener", "ModifyListener")
def listener(attempt: Attempt) -> None:
    """Refuse a port in use or none at all, TLS without a certificate, and target groups that do not fit."""
    backend = attempt.backend
    arn = attempt.get("LoadBalancerArn") or _owner(attempt)
    balancer = backend.load_balancers.get(arn)
    if balancer is None:
        raise Refused("LoadBalancerNotFound", f"Load balancer '{arn}' not found")
    present = balancer.listeners.get(attempt.get("ListenerArn"))
    port = attempt.get("Port") or getattr(present, "port", None)
    protocol = attempt.get("Protocol") or getattr(present, "protocol", None)
    if port is not None and (fault := out_of_range("port", port, PORTS)):
        raise Refused(INVALID, fault)
    if any(str(other.port) == str(port) for other in balancer.listeners.values() if other is not present):
        raise Refused("DuplicateListener", "A listener already exists on this port for this load balancer")
    if attempt.operation == "CreateListener" and len(balancer.listeners) >= LISTENERS:
        raise Refused("TooManyListeners", "The maximum number of listeners has been reached")
    allowed = OF_NETWORK if balancer.type == "network" else OF_APPLICATION
    if protocol not in allowed:
        raise Refused(INVALID, f"Listener protocol '{protocol}' must be one of '{', '.join(allowed)}'")
    secured = protocol in ("TLS", "HTTPS")
    if secured and not attempt.get("Certificates") and not getattr(present, "certificate", None):
        raise Refused(INVALID, f"A certificate must be specified for {protocol} listeners")
    if not secured and (attempt.get("Certificates") or attempt.get("SslPolicy")):
        raise Refused(CONFIGURATION, f"A certificate or an SSL policy cannot be specified for {protocol} listeners")
    for action in attempt.get("DefaultActions") or []:
        _check_action(attempt, action, balancer, str(protocol))


def _check_action(attempt: Attempt, action: Mapping[str, Any], balancer: Any, protocol: str) -> None:
    if balancer.type == "network" and action["Type"] != "forward":
        raise Refused(CONFIGURATION, f"Actions of type '{action['Type']}' are not supported on network load balancers")
    weighted = (action.get("ForwardConfig") or {}).get("TargetGroups") or []
    for arn in {action.get("TargetGroupArn"), *(weight["TargetGroupArn"] for weight in weighted)} - {None}:
        group = _group(attempt, str(arn))
        if group.protocol not in FORWARDS[protocol]:
            raise Refused(
                "IncompatibleProtocols",
                f"The listener and its associated target group '{arn}' have incompatible protocols: {protocol} and "
                f"{group.protocol}",
            )
        if group.vpc_id != balancer.vpc_id:
            raise Refused(
                CONFIGURATION, f"The target group with targetGroupARN '{arn}' must be in the VPC of the load balancer"
            )
        if other_arns := [other for other in group.load_balancer_arns if other != balancer.arn]:
            message = f"The following target groups cannot be associated with more than one load balancer: {arn}"
            raise Refused("TargetGroupAssociationLimit", f"{message} ({other_arns[0]})")


def _owner(attempt: Attempt) -> str:
    for balancer in attempt.backend.load_balancers.values():
        if attempt.get("ListenerArn") in balancer.listeners:
            return str(balancer.arn)
    raise Refused("ListenerNotFound", f"Listener '{attempt.get('ListenerArn')}' not found")


def _group(attempt: Attempt, arn: str) -> Any:
    group = attempt.backend.target_groups.get(arn)
    if group is None:
        raise Refused("TargetGroupNotFound", f"Target groups '{arn}' not found")
    return group
