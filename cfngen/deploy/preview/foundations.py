"""Refuses updates that would replace the cluster's VPC, or one of the cluster's subnets in a zone.

CloudFormation would try: it creates the new VPC beside the old one and moves what it can. Network interfaces and
volumes of masters cannot move, so the update fails half-way, and the load balancer of several masters would be moved
to subnets without masters. A NAT gateway in a new public subnet cannot have the Elastic IP that the old one still has.

VPC and subnets are parameters of the root. The stack's current values are compared with those of the deployment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from cfngen.cluster.naming.network_ids import SubnetId, ZoneId
from cfngen.deploy.preview.immutable_changes import ImmutableSettingError

_SUBNET_REASON = "the instances and network interfaces in this subnet cannot move"
_PUBLIC_SUBNET_REASON = "the NAT gateway and the load balancers in this subnet cannot move"


class NetworkPart(NamedTuple):
    """A part of the network that cannot be replaced.

    Attributes:
        key: its key in the cluster file.
        range_parameter: name of the parameter with the range (of a zone: the name) of the part.
        id_parameter: name of the parameter with the id of the part, if the stack uses an existing one; empty if there
            is no such parameter.
        reason: why it cannot be replaced.
    """

    key: str
    range_parameter: str
    id_parameter: str
    reason: str


def check(
    current: Mapping[str, str], requested: Mapping[str, str], references: Mapping[str, str] | None = None
) -> None:
    """Refuse a deployment that would replace the VPC, or the subnet of a zone that the cluster keeps using.

    Args:
        current: current values of the root's parameters, with ids in place of references; empty if the stack is new.
        requested: values of the deployment, likewise.
        references: the references of the cluster file that the deployment has resolved, by names of parameters.

    Raises:
        ImmutableSettingError: the deployment would replace the VPC or a subnet.
    """
    references = references or {}
    problems = []
    has_moved_reference = False
    for part in _network_parts(current):
        current_value, requested_value = _value_of(part, current), _value_of(part, requested)
        if current_value is None or requested_value is None or current_value == requested_value:
            continue
        if part.id_parameter in references:
            has_moved_reference = True
            requested_value += f", to which {references[part.id_parameter]} leads now"
        problems.append(f"{part.key}: is {current_value} and cannot be changed to {requested_value}: {part.reason}")
    if problems:
        keep_options = " ".join(
            f"--keep {name}"
            for name in sorted(current)
            if name in requested and name not in references and current[name] != requested[name]
        )
        hint = "restore the old value in the cluster file (and in the parameters), or create a new cluster."
        if has_moved_reference:
            hint = "enter the old id in place of the reference, let it lead there again, or create a new cluster."
        if keep_options:
            hint += f" `{keep_options}` deploys with the stack's current values."
        raise ImmutableSettingError(tuple(problems), hint)


def _value_of(part: NetworkPart, parameters: Mapping[str, str]) -> str | None:
    """Return the range (or zone) or the id of a part of the network; None if there is no parameter for it."""
    for name in (part.range_parameter, part.id_parameter):
        if name and name in parameters:
            return parameters[name]
    return None


def _network_parts(parameters: Mapping[str, str]) -> Iterator[NetworkPart]:
    """Yield the VPC, and the subnet and zone of each zone for which the stack has parameters."""
    yield NetworkPart(
        "network.vpc",
        range_parameter="VpcCidr",
        id_parameter="VpcId",
        reason="all resources of the cluster are in it, and they cannot move",
    )
    for name in sorted(parameters):
        if (subnet := SubnetId.parse(name)) and subnet.part in ("Cidr", "Id"):
            yield NetworkPart(
                f"network.subnets (zone {subnet.zone}{', public' if subnet.is_public else ''})",
                range_parameter=str(replace(subnet, part="Cidr")),
                id_parameter=str(replace(subnet, part="Id")),
                reason=_PUBLIC_SUBNET_REASON if subnet.is_public else _SUBNET_REASON,
            )
        elif parameter := ZoneId.parse(name):
            yield NetworkPart(
                f"network.subnets (zone {parameter.zone})",
                range_parameter=name,
                id_parameter="",
                reason="subnets and volumes stay in their zone",
            )
