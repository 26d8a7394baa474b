"""What changes of instance types, of shares of Spot Instances, and of reservations mean, also for pods."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cfngen.cluster.instances.group_types import type_list
from cfngen.cluster.instances.instance_types import InstanceTypeFacts, architecture, facts_of
from cfngen.cluster.instances.node_resources import KUBELET_MAX_PODS, NODE_TEMPLATE, pod_limit
from cfngen.cluster.model import Cluster
from cfngen.deploy.messages.message import Impact
from cfngen.deploy.plan.impact.context import ChangeContext, number_if_decimal
from cfngen.permissions.addons import AUTOSCALER_TAG
from cfngen.text import pluralize

_POLICY = "MixedInstancesPolicy"
_RESERVATION = "CapacityReservationSpecification"
_SECONDS_PER_DAY = 86_400


def capacity_texts(context: ChangeContext, owner: str) -> Iterator[str]:
    """Yield sentences about an update of an Auto Scaling group in place."""
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


def override_types(context: ChangeContext) -> tuple[list[str], list[str]]:
    """Return the instance types that a mixed instances policy lists, before and after its change; empty if none."""
    before, after = (_listed_types(_policy(value_of)) for value_of in (context.before, context.after))
    return before, after


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


def _overrides(policy: Mapping[str, object]) -> list[Any] | None:
    source = policy.get("LaunchTemplate")
    overrides = source.get("Overrides") if isinstance(source, Mapping) else None
    return overrides if isinstance(overrides, list) else None


def _listed_types(policy: Mapping[str, object]) -> list[str]:
    return [str(override["InstanceType"]) for override in _overrides(policy) or () if override.get("InstanceType")]


def _types_text(policy: Mapping[str, object]) -> str:
    overrides = _overrides(policy)
    if overrides is None:
        return "the launch template's type"
    if types := _listed_types(policy):
        return type_list(types)
    requirements = overrides[0].get("InstanceRequirements", {}) if overrides else {}
    vcpus = requirements.get("VCpuCount", {}).get("Min", "?")
    return f"types that AWS chooses, with {vcpus} or more vCPUs"


def _shares_text(policy: Mapping[str, object]) -> str:
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


_IF_SOLD_OUT = "if EC2 has no capacity for it, the update fails before an instance is terminated"
# "Capacity Reservations are charged at the equivalent On-Demand rate whether you run instances in reserved capacity or
# not"; an instance in one is charged, and the reservation is not ("Pricing and billing", Amazon EC2 User Guide).
_COST = "it costs as much as the instance while none runs in it"


def _reservation_impact(context: ChangeContext) -> Impact | None:
    owner = context.owner or "a master"
    instance_type = str(context.after("InstanceType") or "its type")
    if context.change.action == "add":
        return Impact(f"EC2 reserves capacity of {instance_type} for {owner}: {_IF_SOLD_OUT}; {_COST}")
    if context.change.action == "remove":
        return Impact(
            f"the capacity reservation of {owner} is cancelled: its next instance starts only if its type is not sold "
            "out in the zone"
        )
    if context.disappears:
        return Impact(
            f"the capacity reservation of {owner} {context.verb} by one of {instance_type}, which is made first: "
            f"{_IF_SOLD_OUT}; the old one is cancelled at the end, and until then both count against the quota of vCPUs"
        )
    return None


IMPACT_BY_TYPE = {"AWS::EC2::CapacityReservation": _reservation_impact}
_SETTINGS_PREFIXES = tuple(f"/Properties/Tags[{NODE_TEMPLATE}/{kind}/" for kind in ("resources", "autoscaling-options"))


def autoscaler_text(context: ChangeContext, owner: str) -> str:
    """Return what changes for cluster-autoscaler with the tags of an Auto Scaling group; empty if nothing does.

    Labels and taints are not mentioned: they change with the nodes' configuration.
    """
    [enabled_key] = AUTOSCALER_TAG
    for property_ in context.change.properties:
        if property_.path == f"/Properties/Tags[{enabled_key}]":
            return (
                f"cluster-autoscaler may change the size of {owner} from now on"
                if property_.after
                else f"cluster-autoscaler leaves {owner} alone from now on: only you change its size"
            )
    if any(property_.path.startswith(_SETTINGS_PREFIXES) for property_ in context.change.properties):
        return f"cluster-autoscaler gets other settings of {owner} within a minute; no instance is replaced for that"
    return ""


def consequences_of_types(cluster: Cluster, owner: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield what instances of other types no longer do for pods, one sentence each; nothing of types that are unknown.

    Args:
        cluster: the cluster as it is to be deployed.
        owner: the master or node group, in words.
        old: the types of the instances that are replaced, the first of which counts; none if they are not known.
        new: the types of the new instances, likewise.
    """
    if not old or not new:
        return
    if architecture(old[0]) != architecture(new[0]):
        yield consequence_of_architecture(owner, architecture(old[0]), architecture(new[0]))
    old_facts, new_facts = facts_of(old[0]), facts_of(new[0])
    if old_facts and new_facts:
        for compare in (_lost_gpus, _lost_disks):
            if text := compare(old_facts, new_facts):
                yield f"{owner}: {text}"
    if cluster.kubernetes.kubelet_configuration.get("maxPods"):
        return
    old_pods, new_pods = (min(pod_limit(cluster, types) or KUBELET_MAX_PODS, KUBELET_MAX_PODS) for types in (old, new))
    if new_pods < old_pods:
        yield f"{owner}: {new_pods} pods at most on an instance instead of {old_pods}; others wait for further nodes"


def consequence_of_architecture(owner: str, old: str, new: str) -> str:
    """Return what another CPU architecture, `amd64` or `arm64`, means for pods."""
    return (
        f"{owner}: CPU architecture {old} becomes {new}; pods whose images are not built for {new} do not start on the "
        "new instances: look for such images first, or add a node group beside this one and move pods to it by the "
        "node label kubernetes.io/arch"
    )


def _lost_gpus(old: InstanceTypeFacts, new: InstanceTypeFacts) -> str:
    if not old.gpu_count or (old.gpu, old.gpu_count) == (new.gpu, new.gpu_count):
        return ""
    before = f"{old.gpu_count} {old.gpu}"
    if not new.gpu_count:
        return f"no GPUs any more ({before} before); pods that request them stay pending"
    return f"GPUs: {new.gpu_count} {new.gpu} instead of {before}"


def _lost_disks(old: InstanceTypeFacts, new: InstanceTypeFacts) -> str:
    if new.local_disk_gb >= old.local_disk_gb:
        return ""
    if not new.local_disk_gb:
        return f"no local disks any more ({old.local_disk_gb} GB before)"
    return f"local disks of {new.local_disk_gb} GB instead of {old.local_disk_gb} GB"
