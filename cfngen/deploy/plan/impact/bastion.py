"""The impact of changes of the bastion: who reaches it, whether it is replaced, and what its address is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import (
    BASTION_ASSOCIATION,
    BASTION_ELASTIC_IP,
    BASTION_GROUP,
    BASTION_NETWORK_INTERFACE,
    BASTION_SECURITY_GROUP,
)
from cfngen.cluster.naming.network_ids import RuleId
from cfngen.cluster.security_groups.rules import ANY_IPV4
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact.context import ChangeContext
from cfngen.deploy.plan.impact.network import new_instances_impact
from cfngen.deploy.plan.plan import Change
from cfngen.text import join_and

_NEW_ADDRESS = "remove the old one from known_hosts and from where others allow it"
_ImpactFunction: TypeAlias = Callable[[ChangeContext], Impact | None]


def stack_impact(cluster: Cluster, action: str) -> Impact:
    """Return the impact of creating or deleting the bastion's stack.

    Args:
        action: `create` or `delete`.
    """
    bastion = cluster.bastion
    if action == "delete" or bastion is None:
        return Impact(
            "the bastion is removed with its public address; nobody reaches instances by SSH through it any more",
            Danger.DISRUPTIVE,
        )
    origins = [*map(str, bastion.allowed_cidrs), *(prefix_list.id for prefix_list in bastion.allowed_prefix_lists)]
    text = f"new bastion: {bastion.instance_type} in {bastion.zone}, reached by SSH from {join_and(origins)}"
    impact = new_instances_impact(text, bastion.ingress)
    if ANY_IPV4 in origins and impact.danger is Danger.NONE:
        return Impact(f"{impact.text}: from the whole internet", Danger.DISRUPTIVE)
    return impact


def _group_impact(context: ChangeContext) -> Impact | None:
    if context.disappears:
        return Impact(f"the bastion {context.verb}; SSH sessions through it break", Danger.DISRUPTIVE)
    if not context.touches("LaunchTemplate", "AvailabilityZones"):
        return None
    verb = "is" if context.certainly_touches("LaunchTemplate", "AvailabilityZones") else "might be"
    return Impact(
        f"the bastion {verb} replaced: SSH sessions through it break, and the new instance has the same address and "
        "other host keys",
        Danger.DISRUPTIVE,
    )


def _interface_impact(context: ChangeContext) -> Impact | None:
    if not context.disappears:
        return None
    text = f"the network interface of the bastion {context.verb}: SSH sessions through it break"
    return Impact(text, Danger.DISRUPTIVE)


def _address_impact(context: ChangeContext) -> Impact | None:
    if not context.disappears:
        return None
    return Impact(f"the public address of the bastion {context.verb}; {_NEW_ADDRESS}", Danger.DISRUPTIVE)


def _association_impact(context: ChangeContext) -> Impact | None:
    if not context.disappears:
        return None
    if context.change.action == "remove" or context.touches("AllocationId"):
        return Impact(f"the bastion has another public address; {_NEW_ADDRESS}", Danger.DISRUPTIVE)
    return Impact("the public address of the bastion moves to another network interface", Danger.DISRUPTIVE)


def _security_group_impact(context: ChangeContext) -> Impact | None:
    if context.disappears:
        return Impact(f"the security group of the bastion {context.verb}, with every rule in it", Danger.DISRUPTIVE)
    if context.touches("SecurityGroupEgress"):
        return Impact("what the bastion may reach changes at once", Danger.DISRUPTIVE)
    return None


def _rule_impact(context: ChangeContext) -> Impact | None:
    rule = RuleId.parse(context.change.logical_id)
    instances = "masters" if rule and rule.role == "Master" else "nodes"
    if context.change.action == "remove":
        return Impact(f"{instances} are no longer reached by SSH from the bastion", Danger.DISRUPTIVE)
    if context.change.action == "add":
        return Impact(f"{instances} are reached by SSH from the bastion")
    return Impact(f"the rule that lets the bastion reach {instances} is recreated") if context.disappears else None


_FUNCTION_BY_ID: Mapping[str, _ImpactFunction] = {
    BASTION_ASSOCIATION: _association_impact,
    BASTION_ELASTIC_IP: _address_impact,
    BASTION_GROUP: _group_impact,
    BASTION_NETWORK_INTERFACE: _interface_impact,
    BASTION_SECURITY_GROUP: _security_group_impact,
}


def bastion_impact(change: Change) -> _ImpactFunction | None:
    """Return the function that describes a change of a part of the bastion; None for any other resource.

    Rules about who reaches the bastion are described as those of masters and nodes are.
    """
    rule = RuleId.parse(change.logical_id)
    if rule and rule.source == "Bastion":
        return _rule_impact
    return _FUNCTION_BY_ID.get(change.logical_id)
