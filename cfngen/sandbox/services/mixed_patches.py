"""Patches moto's Auto Scaling groups: mixed instances policies, and settings of groups that moto drops.

moto 5.2.5 forgets a mixed instances policy in every update that does not name one, describes a launch template beside
it, and drops CapacityRebalance in updates and the settings of `group_settings` always (moto/autoscaling/models.py,
`FakeAutoScalingGroup.update` and `launch_template`; moto/autoscaling/responses.py).
"""

from __future__ import annotations

import functools

from moto.core.responses import ActionResult

from cfngen.sandbox.json_types import JsonDict, JsonObject
from cfngen.sandbox.moto_types import MotoModel, MotoResponse
from cfngen.sandbox.services import group_settings
from cfngen.sandbox.services.mixed_policies import merged_policy
from cfngen.sandbox.services.mixed_pools import distribution_of
from cfngen.sandbox.services.replacements import advance, match_purchase_options, watch_lifetime
from cfngen.sandbox.services.scaling_activities import GROUP_LISTENERS


@functools.cache
def apply() -> None:
    """Apply the patches, for the rest of the process."""
    from moto.autoscaling.models import FakeAutoScalingGroup
    from moto.autoscaling.responses import AutoScalingResponse

    GROUP_LISTENERS.append(advance)
    _patch_policies(FakeAutoScalingGroup)
    _patch_settings(FakeAutoScalingGroup, AutoScalingResponse)


def _patch_policies(group_model: MotoModel) -> None:
    """Keep the policy of a group in updates, fill in the defaults, and describe no launch template beside it."""
    update_with_moto = group_model.update
    create_with_moto = group_model.__init__
    template_of_moto: MotoModel = vars(group_model)["launch_template"]

    def __init__(self: MotoModel, *arguments: MotoModel, **options: MotoModel) -> None:  # noqa: N807
        policy = options.get("mixed_instances_policy")
        if policy:
            options["mixed_instances_policy"] = _with_defaults(merged_policy(None, policy))
        create_with_moto(self, *arguments, **options)

    def update(self: MotoModel, *arguments: MotoModel, **options: MotoModel) -> None:
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
        update_with_moto(self, *arguments, **options)
        if policy and _shares(policy) != previous_shares:
            match_purchase_options(self)

    def launch_template(self: MotoModel) -> JsonDict | None:
        described: JsonDict | None = None if self.mixed_instances_policy else template_of_moto.fget(self)
        return described

    setattr(group_model, "__init__", __init__)  # noqa: B010
    setattr(group_model, "update", update)  # noqa: B010
    setattr(group_model, "launch_template", property(launch_template))  # noqa: B010


def _with_defaults(policy: JsonObject) -> JsonDict:
    """Return a policy with the defaults of its distribution, as DescribeAutoScalingGroups shows it."""
    template = {"Overrides": [], **policy["LaunchTemplate"]}
    return {"LaunchTemplate": template, "InstancesDistribution": distribution_of(policy)}


def _shares(policy: JsonObject | None) -> tuple[int, int]:
    """Return the base and the percentage of On-Demand capacity; without a policy, everything is On-Demand."""
    distribution = distribution_of(policy or {})
    return int(distribution["OnDemandBaseCapacity"]), int(distribution["OnDemandPercentageAboveBaseCapacity"])


def _patch_settings(group_model: MotoModel, response_model: MotoResponse) -> None:
    create_with_moto = response_model.create_auto_scaling_group
    update_with_moto = response_model.update_auto_scaling_group

    def create_auto_scaling_group(self: MotoResponse) -> ActionResult:
        parameters = self._get_params()
        backend, name = self.autoscaling_backend, parameters["AutoScalingGroupName"]
        group_settings.forget(backend, name)
        group_settings.keep(backend, name, parameters)
        created: ActionResult = create_with_moto(self)
        return created

    def update_auto_scaling_group(self: MotoResponse) -> ActionResult:
        parameters = self._get_params()
        backend, name = self.autoscaling_backend, parameters["AutoScalingGroupName"]
        group_settings.keep(backend, name, parameters)
        group = backend.autoscaling_groups[name]
        if parameters.get("CapacityRebalance") is not None:
            group.capacity_rebalance = str(parameters["CapacityRebalance"]).lower() == "true"
        result: ActionResult = update_with_moto(self)
        if parameters.get("MaxInstanceLifetime") is not None:
            for state in list(group.instance_states):
                watch_lifetime(group, state)
        return result

    setattr(response_model, "create_auto_scaling_group", create_auto_scaling_group)  # noqa: B010
    setattr(response_model, "update_auto_scaling_group", update_auto_scaling_group)  # noqa: B010
    for attribute, parameter in group_settings.KEPT_SETTINGS.items():
        setattr(group_model, attribute, property(functools.partial(_setting, parameter)))


def _setting(parameter: str, group: MotoModel) -> object:
    return group_settings.settings_of(group.autoscaling_backend, group.name).get(parameter)
