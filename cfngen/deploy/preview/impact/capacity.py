"""What changes of a node group's instance types, of its shares of Spot Instances, and of its reservations mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from cfngen.cluster.instances.group_types import type_list
from cfngen.deploy.preview.impact.context import ChangeContext, number_if_decimal
from cfngen.text import pluralize

_POLICY = "MixedInstancesPolicy"
_RESERVATION = "CapacityReservationSpecification"
_SECONDS_PER_DAY = 86_400


def capacity_texts(context: ChangeContext, owner: str) -> Iterator[str]:
    """Yield sentences about an update of an Auto Scaling group in place.

    Args:
        context: the change of the Auto Scaling group.
        owner: its master or node group, in words.
    """
    if context.touches(_POLICY):
        yield from _policy_texts(context, owner)
    if context.touches("CapacityRebalance"):
        is_on = str(context.after("CapacityRebalance")).lower() == "true"
        yield (
            f"from now on Spot Instances of {owner} are replaced "
            f"{'when AWS sees a high risk of an interruption' if is_on else 'only after an interruption'}"
        )
    if context.touches("MaxInstanceLifetime"):
        seconds = number_if_decimal(context.after("MaxInstanceLifetime"))
        if seconds:
            yield f"nodes of {owner} are replaced once they are {pluralize(seconds // _SECONDS_PER_DAY, 'day')} old"
        else:
            yield f"nodes of {owner} are no longer replaced because of their age"
    if context.touches(_RESERVATION):
        yield f"future instances of {owner} {_reservation_text(context)}; none is replaced for that"


def _policy_texts(context: ChangeContext, owner: str) -> Iterator[str]:
    """Yield what the instances of a group with a mixed instances policy, or no longer with one, are.

    Nothing is yielded if only the version of the launch template changes.
    """
    old_policy, policy = (_policy(value_of) for value_of in (context.before, context.after))
    if not policy:
        if old_policy:
            yield f"{owner} has one instance type again, that of its launch template"
        return
    text = f"instances of {owner} are of {_types_text(policy)}, {_shares_text(policy)}"
    if not old_policy or text != f"instances of {owner} are of {_types_text(old_policy)}, {_shares_text(old_policy)}":
        yield text


def _policy(value_of: Callable[..., object]) -> Mapping[str, object]:
    """Return the types and shares of a mixed instances policy; empty without one.

    They are asked for by themselves, since the policy as a whole is not known before the update: it has the version of
    the launch template.

    Args:
        value_of: returns the value at a path, before or after the change.
    """
    overrides = _from_json(value_of(_POLICY, "LaunchTemplate", "Overrides"))
    distribution = _from_json(value_of(_POLICY, "InstancesDistribution"))
    if overrides is None and distribution is None:
        whole = _from_json(value_of(_POLICY))
        return whole if isinstance(whole, Mapping) else {}
    return {"LaunchTemplate": {"Overrides": overrides}, "InstancesDistribution": distribution}


def _from_json(value: object) -> object:
    """Return the value of a property, which a change set may hold as JSON; None if it is not known."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return None


def _types_text(policy: Mapping[str, object]) -> str:
    """Return the instance types of a mixed instances policy, in words."""
    source = policy.get("LaunchTemplate")
    overrides = source.get("Overrides") if isinstance(source, Mapping) else None
    if not isinstance(overrides, list):
        return "the launch template's type"
    types = [str(override["InstanceType"]) for override in overrides if override.get("InstanceType")]
    if types:
        return type_list(types)
    requirements = overrides[0].get("InstanceRequirements", {}) if overrides else {}
    vcpus = requirements.get("VCpuCount", {}).get("Min", "?")
    return f"types that AWS chooses, with {vcpus} or more vCPUs"


def _shares_text(policy: Mapping[str, object]) -> str:
    """Return which instances of a mixed instances policy are On-Demand and which are Spot Instances, in words."""
    distribution = policy.get("InstancesDistribution")
    if not isinstance(distribution, Mapping):
        distribution = {}
    percentage = int(str(distribution.get("OnDemandPercentageAboveBaseCapacity", 100)))
    base = int(str(distribution.get("OnDemandBaseCapacity", 0)))
    if percentage == 100:
        return "all of them On-Demand Instances"
    if percentage == 0 and base == 0:
        return "all of them Spot Instances, which AWS may reclaim at any time"
    above = f" of those above the first {base}" if base else ""
    return f"{100 - percentage} %{above} Spot Instances, which AWS may reclaim at any time"


def _reservation_text(context: ChangeContext) -> str:
    """Return how the future instances of a group use Capacity Reservations, in words."""
    return {
        "capacity-reservations-only": "start in its Capacity Reservations only",
        "capacity-reservations-first": "use its Capacity Reservations first",
        "none": "use no Capacity Reservations",
    }.get(
        str(context.after(_RESERVATION, "CapacityReservationPreference")), "use open Capacity Reservations that match"
    )
