"""Patches moto's Auto Scaling groups: launches and terminations take time, and policies and settings are kept.

The functions of `scaling_activities` define the behaviour; the patches here make moto call them.

moto 5.2.5 forgets a mixed instances policy in every update that does not name one, describes a launch template beside
it, and drops CapacityRebalance in updates and the settings of `group_lifetime_and_reservation` always
(moto/autoscaling/models.py, `FakeAutoScalingGroup.update` and `launch_template`; moto/autoscaling/responses.py).
"""

from __future__ import annotations

import functools

from moto.autoscaling.models import AutoScalingBackend, FakeAutoScalingGroup, TerminateInstanceActivity
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult, EmptyResult

from cfngen.sandbox.moto_patches.registry import patches, patches_property, replaces, sets
from cfngen.sandbox.services import group_lifetime_and_reservation
from cfngen.sandbox.services.group_zones import launch_evenly
from cfngen.sandbox.services.mixed_instances_launches import (
    active_count,
    distribution_of,
    launch_missing,
    surplus_states,
)
from cfngen.sandbox.services.mixed_instances_policies import merged_policy
from cfngen.sandbox.services.replacements import advance, check_health, match_purchase_options, watch_lifetime
from cfngen.sandbox.services.rules import time_in
from cfngen.sandbox.services.scaling_activities import (
    GROUP_LISTENERS,
    complete_held_action,
    fill_later,
    fill_to_desired_capacity,
    held_state,
    hold_of,
    is_replaced,
    is_suspended,
    is_terminating,
    record_activity,
    record_heartbeat,
    schedule_retry,
    state_of,
    terminate,
)
from cfngen.sandbox.untyped import JsonDict, JsonObject, MotoBackend, MotoModel, MotoResponse, Original

GROUP_LISTENERS.append(advance)


@replaces(FakeAutoScalingGroup, "active_instances")
def _active_instances(self: MotoModel) -> list[MotoModel]:
    """Return the instances that count towards the capacity."""
    return [
        instance_state
        for instance_state in self.instance_states
        if instance_state.lifecycle_state == "InService" and not is_replaced(instance_state)
    ]


@patches(FakeAutoScalingGroup, "replace_autoscaling_group_instances")
def _launch(original: Original, self: MotoModel, count_needed: int, propagated_tags: JsonObject) -> None:
    """Launch as many instances as EC2 would, record the activities, and retry the rest."""
    if is_suspended(self, "Launch"):
        return

    def on_launched(state: MotoModel) -> None:
        state.launched_at = time_in(self.region)
        record_activity(self, instance_id=state.instance.id)
        watch_lifetime(self, state)

    if self.mixed_instances_policy:
        launch_error = launch_missing(self, int(self.desired_capacity or 0), on_launched)
    else:
        previous_states = {id(instance_state) for instance_state in self.instance_states}
        launch_error = launch_evenly(self, count_needed, functools.partial(original, self, 1, propagated_tags))
        for state in self.instance_states:
            if id(state) not in previous_states:
                on_launched(state)
    if launch_error:
        record_activity(self, launch_error=launch_error)
        schedule_retry(self)


@patches(AutoScalingBackend, "resume_processes")
def _resume_processes(original: Original, self: MotoBackend, group_name: str, scaling_processes: list[str]) -> None:
    """Let a group catch up once processes are resumed.

    "When you resume the Launch process, Amazon EC2 Auto Scaling immediately replaces any instances that it terminated
    during the time that Launch was suspended" ("How suspended processes affect other processes", Auto Scaling user
    guide); that the same goes for Terminate is an assumption. moto 5.2 only records this and the next two.
    """
    original(self, group_name, scaling_processes)
    group = self.autoscaling_groups[group_name]
    check_health(group)
    fill_to_desired_capacity(group)
    advance(group)


@patches(AutoScalingBackend, "set_instance_protection")
def _set_instance_protection(
    original: Original,
    self: MotoBackend,
    group_name: str,
    instance_ids: list[str],
    protected_from_scale_in: bool | None,
) -> None:
    """Let a group catch up once instances are no longer protected.

    "The Auto Scaling group can't terminate the required number of instances until their instance scale in protection
    settings are disabled" ("Use instance scale-in protection", Auto Scaling user guide).
    """
    original(self, group_name, instance_ids, protected_from_scale_in)
    if not protected_from_scale_in:
        fill_to_desired_capacity(self.autoscaling_groups[group_name])


@patches(AutoScalingBackend, "set_instance_health")
def _set_instance_health(original: Original, self: MotoBackend, instance_id: str, health_status: str) -> None:
    original(self, instance_id, health_status)
    if state := state_of(self.region_name, instance_id):
        check_health(state.auto_scaling_group)


@patches(FakeAutoScalingGroup, "set_desired_capacity")
def _set_desired_capacity(original: Original, self: MotoModel, new_capacity: int | None) -> None:
    """Terminate surplus instances as EC2 does: hooks hold them, and it takes time."""
    desired = int((self.min_size if new_capacity is None else new_capacity) or 0)
    if self.mixed_instances_policy:
        self.desired_capacity = desired
        if (missing := desired - active_count(self)) > 0:
            self.replace_autoscaling_group_instances(missing, self.get_propagated_tags())
    else:
        if len(self.active_instances()) <= desired:
            original(self, new_capacity)
            return
        self.desired_capacity = desired
    if is_suspended(self, "Terminate"):
        return
    for state in surplus_states(self, desired):
        terminate(self, state)
    if self.name in self.autoscaling_backend.autoscaling_groups:
        self.autoscaling_backend.update_attached_elbs(self.name)
        self.autoscaling_backend.update_attached_target_groups(self.name)


@replaces(AutoScalingBackend, "terminate_instance")
def _terminate_instance(self: MotoBackend, instance_id: str, should_decrement: bool) -> MotoModel:
    """Terminate an instance (API, TerminateInstanceInAutoScalingGroup), and launch another one in its place."""
    state: MotoModel = state_of(self.region_name, instance_id)
    group = state.auto_scaling_group
    previous_capacity = group.desired_capacity
    if should_decrement and not is_terminating(state):
        group.desired_capacity = previous_capacity - 1
    terminate(group, state)
    fill_later(group)
    return TerminateInstanceActivity(state.instance, previous_capacity)


@patches(AutoScalingBackend, "delete_auto_scaling_group")
def _delete_auto_scaling_group(original: Original, self: MotoBackend, group_name: str) -> None:
    """Delete a group by force, including instances that a hook holds (API, DeleteAutoScalingGroup)."""
    group = self.autoscaling_groups.get(group_name)
    hooks = [key for key, hook in self.lifecycle_hooks.items() if hook.auto_scaling_group_name == group_name]
    for key in hooks:
        del self.lifecycle_hooks[key]
    for state in list(group.instance_states) if group else ():
        state.protected_from_scale_in = False
        state.replacement = None
        if hold_of(state):
            complete_held_action(group, state)
    original(self, group_name)


@patches(AutoScalingBackend, "delete_lifecycle_hook")
def _delete_lifecycle_hook(original: Original, self: MotoBackend, as_name: str, name: str) -> None:
    """Complete the hook's actions."""
    original(self, as_name, name)
    group = self.autoscaling_groups.get(as_name)
    for state in list(group.instance_states) if group else ():
        hold = hold_of(state)
        if hold and hold.hook.name == name:
            complete_held_action(group, state)


@patches(AutoScalingResponse, "create_auto_scaling_group")
def _create_auto_scaling_group(original: Original, self: MotoResponse) -> ActionResult:
    """Keep a group's settings, and create its hooks before its instances are launched (API, CreateAutoScalingGroup)."""
    parameters = self._get_params()
    backend, name = self.autoscaling_backend, parameters["AutoScalingGroupName"]
    group_lifetime_and_reservation.forget(backend, name)
    group_lifetime_and_reservation.keep(backend, name, parameters)
    for specification in parameters.get("LifecycleHookSpecificationList", []):
        backend.create_lifecycle_hook(
            specification["LifecycleHookName"],
            name,
            specification["LifecycleTransition"],
            int(specification.get("HeartbeatTimeout", 3600)),
            specification.get("DefaultResult", "ABANDON"),
        )
    created: ActionResult = original(self)
    return created


@patches(AutoScalingResponse, "update_auto_scaling_group")
def _update_auto_scaling_group(original: Original, self: MotoResponse) -> ActionResult:
    parameters = self._get_params()
    backend, name = self.autoscaling_backend, parameters["AutoScalingGroupName"]
    group_lifetime_and_reservation.keep(backend, name, parameters)
    group = backend.autoscaling_groups[name]
    if parameters.get("CapacityRebalance") is not None:
        group.capacity_rebalance = str(parameters["CapacityRebalance"]).lower() == "true"
    result: ActionResult = original(self)
    if parameters.get("MaxInstanceLifetime") is not None:
        for state in list(group.instance_states):
            watch_lifetime(group, state)
    return result


def _setting(parameter: str, group: MotoModel) -> object:
    return group_lifetime_and_reservation.settings_of(group.autoscaling_backend, group.name).get(parameter)


for _attribute, _parameter in group_lifetime_and_reservation.KEPT_SETTINGS.items():
    sets(FakeAutoScalingGroup, _attribute, property(functools.partial(_setting, _parameter)))


@replaces(AutoScalingResponse, "complete_lifecycle_action")
def _complete_lifecycle_action(self: MotoResponse) -> ActionResult:
    params = self._get_params()
    state = held_state(self.autoscaling_backend, params["AutoScalingGroupName"], params["InstanceId"])
    complete_held_action(state.auto_scaling_group, state)
    return EmptyResult()


@replaces(AutoScalingResponse, "record_lifecycle_action_heartbeat")
def _record_lifecycle_action_heartbeat(self: MotoResponse) -> ActionResult:
    params = self._get_params()
    record_heartbeat(held_state(self.autoscaling_backend, params["AutoScalingGroupName"], params["InstanceId"]))
    return EmptyResult()


@patches(FakeAutoScalingGroup, "__init__")
def _create_with_policy(original: Original, self: MotoModel, *arguments: MotoModel, **options: MotoModel) -> None:
    """Fill in the defaults of a policy."""
    policy = options.get("mixed_instances_policy")
    if policy:
        options["mixed_instances_policy"] = _with_defaults(merged_policy(None, policy))
    original(self, *arguments, **options)


@patches(FakeAutoScalingGroup, "update")
def _update_policy(original: Original, self: MotoModel, *arguments: MotoModel, **options: MotoModel) -> None:
    """Keep the policy of a group that an update does not name."""
    previous, changes = self.mixed_instances_policy, options.get("mixed_instances_policy")
    policy: JsonObject | None = None
    if changes:
        policy = _with_defaults(merged_policy(previous, changes))
    elif not options.get("launch_template") and not options.get("launch_config_name"):
        policy = merged_policy(previous, {}) if previous else None
    options["mixed_instances_policy"] = policy
    if policy and options.get("desired_capacity") is None:
        # moto compares the sizes with the number of instances, which may be less than the capacity.
        least, greatest = options.get("min_size"), options.get("max_size")
        capacity = int(self.desired_capacity or 0)
        least = capacity if least is None else least
        greatest = capacity if greatest is None else greatest
        options["desired_capacity"] = min(max(capacity, int(least)), max(int(greatest), int(least)))
    previous_shares = _shares(previous)
    original(self, *arguments, **options)
    if policy and _shares(policy) != previous_shares:
        match_purchase_options(self)


@patches_property(FakeAutoScalingGroup, "launch_template")
def _show_no_template_beside_policy(original: Original, self: MotoModel) -> JsonDict | None:
    return None if self.mixed_instances_policy else original(self)


def _with_defaults(policy: JsonObject) -> JsonDict:
    """Return a policy with the defaults of its distribution, as DescribeAutoScalingGroups shows it."""
    template = {"Overrides": [], **policy["LaunchTemplate"]}
    return {"LaunchTemplate": template, "InstancesDistribution": distribution_of(policy)}


def _shares(policy: JsonObject | None) -> tuple[int, int]:
    """Return the base and the percentage of On-Demand capacity; without a policy, everything is On-Demand."""
    distribution = distribution_of(policy or {})
    return int(distribution["OnDemandBaseCapacity"]), int(distribution["OnDemandPercentageAboveBaseCapacity"])
