"""Decides which of the changes in a change set will happen, which might, and which will not.

CloudFormation compares each nested stack by itself. If a stack takes an output of another stack, CloudFormation expects
a new value as soon as the other stack has any change. So it lists changes, even replacements, that never happen
(aws-cloudformation/cloudformation-coverage-roadmap#759, #2113). Here each listed change is traced back to its cause: a
value that refers only to what stays the same will not change.

The evaluated templates show what a parameter or an output refers to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from cfngen.deploy.aws.change_sets import ChangeDetail, ChangeSet, ResourceChange, Unshown
from cfngen.deploy.aws.stacks import NESTED_STACK
from cfngen.deploy.plan.plan import Replacement
from cfngen.templates.evaluation import EvaluatedTemplate
from cfngen.templates.expressions import Reference, references

# Attributes that change although the resource stays; all other attributes in the templates identify the resource.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-launchtemplate.html
_VERSION_ATTRIBUTES = ("LatestVersionNumber", "DefaultVersionNumber")
# Properties of a nested stack whose effects are listed in its own change set.
_NESTED_STACK_INPUTS = ("/Properties/Parameters", "/Properties/TemplateURL")


class Certainty(IntEnum):
    """Whether a value that a change set lists as changed really changes; the most certain is the highest."""

    NO = 0
    MIGHT = 1
    WILL = 2


@dataclass(frozen=True)
class AnalyzedChange:
    """A change of a value that will or might happen.

    Attributes:
        detail: the change as CloudFormation lists it.
        certain: whether the value will change; otherwise it might.
    """

    detail: ChangeDetail
    certain: bool
    replaces: Replacement


class ReplacementAnalysis:
    """Analyzes a change set with those of its nested stacks.

    Args:
        requested: the new templates of the root (`""`) and of each nested stack, by its logical id.
    """

    def __init__(self, root: ChangeSet, requested: Mapping[str, EvaluatedTemplate]) -> None:
        self._requested = requested
        self._root = root
        # By the id of a change set: the logical id of its stack, "" for the root.
        self._stacks = {root.id: "", **{child.id: logical_id for logical_id, child in root.children.items()}}
        self._change_sets = {"": root, **root.children}
        self._stack_of_resource = {
            logical_id: stack for stack, template in requested.items() for logical_id in template.resources
        }
        self._rolling_update_groups = frozenset(
            logical_id
            for template in requested.values()
            for logical_id, resource in template.resources.items()
            if "AutoScalingRollingUpdate" in resource.get("UpdatePolicy", {})
            # The instances of these groups are replaced, and not the groups themselves.
            and "AutoScalingReplacingUpdate" not in resource["UpdatePolicy"]
        )
        # By the id of a change set, the logical id of a resource in it, and an attribute (or "" for the resource's id).
        self._certainty_by_reference: dict[tuple[str, Reference], Certainty] = {}

    def effective_changes(self, change_set: ChangeSet, resource_change: ResourceChange) -> tuple[AnalyzedChange, ...]:
        """Return the changes of a resource's values that will or might happen, one for each path."""
        # For each path, the change that is shown, and its weight among the changes with this path.
        best_by_path: dict[str, tuple[int, AnalyzedChange]] = {}
        for detail in resource_change.details:
            certainty = self._certainty_of_value(change_set, resource_change, detail)
            if certainty is Certainty.NO:
                continue
            analyzed = AnalyzedChange(
                detail, certain=certainty is Certainty.WILL, replaces=self._replaces(detail, resource_change, certainty)
            )
            # Of several details with the same path, the most certain is used, preferably one that names its cause.
            weight = 2 * analyzed.certain + bool(detail.cause)
            if detail.value_path not in best_by_path or weight > best_by_path[detail.value_path][0]:
                best_by_path[detail.value_path] = weight, analyzed
        return tuple(analyzed for _, analyzed in best_by_path.values())

    def replacement(self, change_set: ChangeSet, resource_change: ResourceChange) -> Replacement:
        """Return whether a resource is replaced."""
        if resource_change.action != "Modify":
            return Replacement.NO
        if not resource_change.details:
            return {"True": Replacement.WILL, "Conditional": Replacement.MIGHT}.get(
                resource_change.replacement, Replacement.NO
            )
        replacements = {analyzed.replaces for analyzed in self.effective_changes(change_set, resource_change)}
        if Replacement.WILL in replacements:
            return Replacement.WILL
        return Replacement.MIGHT if Replacement.MIGHT in replacements else Replacement.NO

    def has_effect(self, change_set: ChangeSet, resource_change: ResourceChange) -> bool:
        """Return whether a resource really changes; changes of the resources in a nested stack do not count."""
        return (
            resource_change.action != "Modify"
            or not resource_change.details
            or bool(self.effective_changes(change_set, resource_change))
        )

    def _certainty_of_value(
        self, change_set: ChangeSet, resource_change: ResourceChange, detail: ChangeDetail
    ) -> Certainty:
        if resource_change.type == NESTED_STACK and (
            detail.source == "Automatic" or detail.value_path.startswith(_NESTED_STACK_INPUTS)
        ):
            # What this changes is listed in the nested stack's own change set.
            return Certainty.NO
        if detail.shows_values:
            return Certainty.NO if detail.before == detail.after else Certainty.WILL
        if detail.cause and detail.source != "DirectModification":
            return self._certainty_of_cause(change_set, detail)
        if detail.evaluation == "Dynamic" and any(
            other_detail.cause
            for other_detail in resource_change.details
            if other_detail is not detail and other_detail.value_path == detail.value_path
        ):
            # CloudFormation lists a changed reference twice, and the other detail names the cause.
            return Certainty.NO
        is_unsure = detail.after in (Unshown.KNOWN_LATER, Unshown.TRUNCATED) or detail.evaluation == "Dynamic"
        return Certainty.MIGHT if is_unsure else Certainty.WILL

    def _replaces(self, detail: ChangeDetail, resource_change: ResourceChange, certainty: Certainty) -> Replacement:
        if detail.recreation == "Never" or resource_change.replacement == "False":
            return Replacement.NO
        if detail.recreation == "Always":
            return Replacement.WILL if certainty is Certainty.WILL else Replacement.MIGHT
        # Whether a new launch template or new subnets replace an Auto Scaling group depends on its update policy.
        return Replacement.NO if resource_change.logical_id in self._rolling_update_groups else Replacement.MIGHT

    def _certainty_of_cause(self, change_set: ChangeSet, detail: ChangeDetail) -> Certainty:
        stack = self._stacks.get(change_set.id, "")
        name, _, attribute = detail.cause.partition(".")
        value: object = {"Fn::GetAtt": [name, attribute]} if attribute else {"Ref": name}
        if stack in self._requested:
            value = self._requested[stack].evaluate(value)
        causes = tuple(references(value))
        is_followed = causes and all(referenced.name in self._stack_of_resource for referenced in causes)
        if detail.source == "ParameterReference" and not is_followed:
            return Certainty.WILL if detail.evaluation == "Static" else Certainty.MIGHT
        return _most_certain(self._certainty_of_reference(change_set, referenced) for referenced in causes)

    def _certainty_of_reference(self, change_set: ChangeSet, referenced: Reference) -> Certainty:
        """Return whether a value changes that refers to a resource, which may be in another stack."""
        if referenced.name not in change_set.resource_changes:
            stack = self._stack_of_resource.get(referenced.name, "")
            if stack and stack in self._root.resource_changes and stack not in self._root.children:
                return Certainty.MIGHT  # CloudFormation does not list what changes in the stack
            change_set = self._change_sets.get(stack, change_set)
        resource_change = change_set.resource_changes.get(referenced.name)
        if resource_change is None:
            return Certainty.NO
        if resource_change.action != "Modify":
            return Certainty.WILL
        if resource_change.type == NESTED_STACK:
            return Certainty.MIGHT  # an output of a stack whose template is not known
        key = (change_set.id, referenced)
        if key not in self._certainty_by_reference:
            # Templates have no circular references; this ends the recursion if there is one nevertheless.
            self._certainty_by_reference[key] = Certainty.NO
            # A new resource has another id, and other attributes.
            certainty = Certainty[self.replacement(change_set, resource_change).name]
            if referenced.attribute in _VERSION_ATTRIBUTES and certainty is not Certainty.WILL:
                certainty = _most_certain(
                    Certainty.WILL if detail.certain else Certainty.MIGHT
                    for detail in self.effective_changes(change_set, resource_change)
                    if detail.detail.attribute == "Properties"
                )
            self._certainty_by_reference[key] = certainty
        return self._certainty_by_reference[key]


def _most_certain(certainties: Iterable[Certainty]) -> Certainty:
    return max(certainties, default=Certainty.NO)
