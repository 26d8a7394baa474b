"""Decides which of the changes in a change set will happen, which might, and which will not.

CloudFormation compares each nested stack by itself. If a stack takes an output of another stack, CloudFormation expects
a new value as soon as the other stack has any change. So it lists changes, even replacements, that never happen
(aws-cloudformation/cloudformation-coverage-roadmap#759, #2113). Here each listed change is traced back to its cause: a
value that refers only to what stays the same will not change.

The templates show which parameters the root passes to its nested stacks, and what their outputs refer to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from cfngen.deploy.aws.change_sets import ChangeDetail, ChangeSet, ResourceChange, Unshown
from cfngen.deploy.aws.stacks import NESTED_STACK
from cfngen.deploy.plan.plan import Replacement
from cfngen.templates.document import Document
from cfngen.templates.expressions import Reference, references

# Attributes that change although the resource stays; all other attributes in the templates identify the resource.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-launchtemplate.html
_VERSION_ATTRIBUTES = ("LatestVersionNumber", "DefaultVersionNumber")
# Prefix of attributes of nested stacks that are outputs.
_OUTPUTS_PREFIX = "Outputs."
_REFERENCE_SOURCES = ("ParameterReference", "ResourceReference", "ResourceAttribute")
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
        replaces: whether that replaces the resource.
    """

    detail: ChangeDetail
    certain: bool
    replaces: Replacement


class ReplacementAnalysis:
    """Analyzes a change set with those of its nested stacks.

    Args:
        documents: the new templates.
    """

    def __init__(self, root: ChangeSet, documents: Iterable[Document]) -> None:
        # By the id of a nested stack's change set: the change set of its parent, and its logical id in the parent.
        self._parents: dict[str, tuple[ChangeSet, str]] = {}
        self._register_parents(root)
        documents = tuple(documents)
        self._output_references = _find_output_references(documents)
        self._parameter_references = _find_parameter_references(documents)
        self._rolling_update_groups = _find_rolling_update_groups(documents)
        # By the id of a change set, the logical id of a resource in it, and an attribute (or "" for the resource's id).
        self._certainty_by_reference: dict[tuple[str, str, str], Certainty] = {}

    def _register_parents(self, parent: ChangeSet) -> None:
        """Record the parent of each change set below this one."""
        for logical_id, child in parent.children.items():
            self._parents[child.id] = parent, logical_id
            self._register_parents(child)

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
        name, _, attribute = detail.cause.partition(".")
        if detail.source == "ParameterReference":
            # A parameter of the root is not passed by another stack: only CloudFormation's evaluation is known.
            if change_set.id not in self._parents:
                return _certainty_by_evaluation(detail)
            return self._certainty_of_parameter(change_set, detail.cause)
        if attribute.startswith(_OUTPUTS_PREFIX):
            return self._certainty_of_output(change_set, name, attribute.removeprefix(_OUTPUTS_PREFIX))
        return self._certainty_of_reference(change_set, name, attribute)

    def _certainty_of_parameter(self, change_set: ChangeSet, name: str) -> Certainty:
        parent, logical_id = self._parents[change_set.id]
        details = [
            detail
            for detail in parent.resource_changes[logical_id].details
            if detail.value_path == f"/Properties/Parameters/{name}"
        ]
        if any(detail.shows_values and detail.before != detail.after for detail in details):
            return Certainty.WILL
        passed_references = self._parameter_references.get((logical_id, name))
        if passed_references is None:
            # The root's template does not show what it passes, so the causes that CloudFormation names are followed.
            cause_certainties = [
                self._certainty_of_cause(parent, detail) for detail in details if detail.source in _REFERENCE_SOURCES
            ]
            return _most_certain(cause_certainties) if cause_certainties else Certainty.MIGHT
        certainties = [
            self._certainty_of_output(parent, reference.name, reference.attribute.removeprefix(_OUTPUTS_PREFIX))
            for reference in passed_references
            if reference.attribute.startswith(_OUTPUTS_PREFIX)
        ]
        certainties += [
            _certainty_by_evaluation(detail)
            for detail in details
            if not detail.shows_values and detail.source == "ParameterReference"
        ]
        return _most_certain(certainties)

    def _certainty_of_output(self, parent: ChangeSet, logical_id: str, output: str) -> Certainty:
        resource_change = parent.resource_changes.get(logical_id)
        if resource_change is None:
            return Certainty.NO
        child = parent.children.get(logical_id)
        if resource_change.action != "Modify":
            return Certainty.MIGHT
        if child is None:
            return _most_certain(self._certainty_of_input(parent, detail) for detail in resource_change.details)
        if output not in self._output_references:
            # It is not known what the output refers to: perhaps to any of the resources that change.
            return _most_certain(
                self._certainty_of_reference(child, resource_id, "") for resource_id in child.resource_changes
            )
        return _most_certain(
            self._certainty_of_parameter(child, name)
            if name in child.parameters
            else self._certainty_of_reference(child, name, attribute)
            for name, attribute in self._output_references[output]
        )

    def _certainty_of_input(self, parent: ChangeSet, detail: ChangeDetail) -> Certainty:
        """Return whether a new parameter or TemplateURL changes a nested stack without a change set of its own."""
        if detail.value_path == "/Properties/TemplateURL" and detail.shows_values:
            has_same_hash = _hash_in_url(detail.before) == _hash_in_url(detail.after)
            return Certainty.NO if has_same_hash else Certainty.MIGHT
        if (
            detail.value_path.startswith("/Properties/Parameters/")
            and detail.source in _REFERENCE_SOURCES
            and detail.cause
        ):
            return self._certainty_of_cause(parent, detail)
        return Certainty.MIGHT

    def _certainty_of_reference(self, change_set: ChangeSet, name: str, attribute: str) -> Certainty:
        resource_change = change_set.resource_changes.get(name)
        if resource_change is None:
            return Certainty.NO
        if resource_change.action != "Modify":
            return Certainty.WILL
        key = (change_set.id, name, attribute)
        if key not in self._certainty_by_reference:
            # Templates have no circular references; this ends the recursion if there is one nevertheless.
            self._certainty_by_reference[key] = Certainty.NO
            # A new resource has another id, and other attributes.
            certainty = Certainty[self.replacement(change_set, resource_change).name]
            if attribute in _VERSION_ATTRIBUTES and certainty is not Certainty.WILL:
                certainty = _most_certain(
                    Certainty.WILL if detail.certain else Certainty.MIGHT
                    for detail in self.effective_changes(change_set, resource_change)
                    if detail.detail.attribute == "Properties"
                )
            self._certainty_by_reference[key] = certainty
        return self._certainty_by_reference[key]


def _hash_in_url(template_url: object) -> str:
    """Return the hash of the template in a TemplateURL, which ends in `<hash>/<name>.json`; buckets may differ."""
    before_name, _, _ = str(template_url).rpartition("/")
    return before_name.rpartition("/")[2]


def _certainty_by_evaluation(detail: ChangeDetail) -> Certainty:
    """Return whether a value will change by CloudFormation's own evaluation, which is `Static` or `Dynamic`."""
    return Certainty.WILL if detail.evaluation == "Static" else Certainty.MIGHT


def _most_certain(certainties: Iterable[Certainty]) -> Certainty:
    return max(certainties, default=Certainty.NO)


def _find_output_references(documents: Iterable[Document]) -> Mapping[str, tuple[Reference, ...]]:
    """Return what each output of the nested stacks refers to, by the name of the output.

    Names of outputs are unique among the stacks of a cluster (`cfngen.templates.wiring`).
    """
    return {
        output_name: tuple(references(output.get("Value")))
        for document in documents
        if not document.children and document.name != "standalone"
        for output_name, output in document.body.get("Outputs", {}).items()
    }


def _find_parameter_references(documents: Iterable[Document]) -> Mapping[tuple[str, str], tuple[Reference, ...]]:
    """Return what each parameter refers to that the root's template passes to a nested stack.

    The keys are pairs: the logical id of the nested stack, and the name of its parameter.
    """
    return {
        (logical_id, parameter_name): tuple(references(value))
        for document in documents
        if document.children
        for logical_id, resource in document.body["Resources"].items()
        for parameter_name, value in resource.get("Properties", {}).get("Parameters", {}).items()
    }


def _find_rolling_update_groups(documents: Iterable[Document]) -> frozenset[str]:
    """Return the logical ids of the Auto Scaling groups whose instances are replaced, and not the groups themselves."""
    return frozenset(
        logical_id
        for document in documents
        for logical_id, resource in document.body["Resources"].items()
        if "AutoScalingRollingUpdate" in resource.get("UpdatePolicy", {})
        and "AutoScalingReplacingUpdate" not in resource["UpdatePolicy"]
    )
