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

from cfngen.deploy.preview.change_set_reading import ChangeDetail, ChangeSet, ResourceChange
from cfngen.deploy.preview.changes import Replacement
from cfngen.deploy.stacks import NESTED_STACK
from cfngen.templates.document import Document
from cfngen.templates.expressions import references

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
        root: the root's change set.
        documents: the new templates.
    """

    def __init__(self, root: ChangeSet, documents: Iterable[Document]) -> None:
        self._parents: dict[str, tuple[ChangeSet, str]] = {}
        self._register_parents(root)
        documents = tuple(documents)
        self._output_references = _find_output_references(documents)
        self._parameter_references = _find_parameter_references(documents)
        self._rolling_update_groups = _find_rolling_update_groups(documents)
        self._cache: dict[tuple[str, str, str], Certainty] = {}

    def _register_parents(self, parent: ChangeSet) -> None:
        for logical_id, child in parent.children.items():
            self._parents[child.id] = parent, logical_id
            self._register_parents(child)

    def effective_details(self, stack: ChangeSet, entry: ResourceChange) -> tuple[AnalyzedChange, ...]:
        """Return the changes of a resource's values that will or might happen, one for each path.

        Args:
            stack: the change set that contains the resource.
            entry: the change of the resource.
        """
        best_by_path: dict[str, tuple[int, AnalyzedChange]] = {}
        for detail in entry.details:
            certainty = self._certainty_of_value(stack, entry, detail)
            if certainty is Certainty.NO:
                continue
            analyzed = AnalyzedChange(detail, certainty is Certainty.WILL, self._replaces(detail, entry, certainty))
            # Of several details with the same path, the most certain is used, preferably one that names its cause.
            weight = 2 * analyzed.certain + bool(detail.cause)
            if detail.value_path not in best_by_path or weight > best_by_path[detail.value_path][0]:
                best_by_path[detail.value_path] = weight, analyzed
        return tuple(analyzed for _, analyzed in best_by_path.values())

    def replacement(self, stack: ChangeSet, entry: ResourceChange) -> Replacement:
        """Return whether a resource is replaced."""
        if entry.action != "Modify":
            return Replacement.NO
        if not entry.details:
            return {"True": Replacement.WILL, "Conditional": Replacement.MIGHT}.get(entry.replacement, Replacement.NO)
        order = list(Replacement)
        return max(
            (detail.replaces for detail in self.effective_details(stack, entry)),
            key=order.index,
            default=Replacement.NO,
        )

    def has_effect(self, stack: ChangeSet, entry: ResourceChange) -> bool:
        """Return whether a resource really changes; changes of the resources in a nested stack do not count."""
        return entry.action != "Modify" or not entry.details or bool(self.effective_details(stack, entry))

    def _certainty_of_value(self, stack: ChangeSet, entry: ResourceChange, detail: ChangeDetail) -> Certainty:
        """Return whether the value of a detail will, might or will not change."""
        if entry.type == NESTED_STACK and (
            detail.source == "Automatic" or detail.value_path.startswith(_NESTED_STACK_INPUTS)
        ):
            return Certainty.NO
        if detail.has_values and not detail.unknown:
            return Certainty.NO if detail.before == detail.after else Certainty.WILL
        if detail.cause and detail.source != "DirectModification":
            return self._certainty_of_cause(stack, detail)
        if any(
            other_detail.cause
            for other_detail in entry.details
            if other_detail is not detail and other_detail.value_path == detail.value_path
        ):
            # CloudFormation lists a changed reference twice, and the other detail names the cause.
            return Certainty.NO
        return Certainty.MIGHT if detail.unknown or detail.evaluation == "Dynamic" else Certainty.WILL

    def _replaces(self, detail: ChangeDetail, resource_change: ResourceChange, certainty: Certainty) -> Replacement:
        """Return whether a change that will or might happen replaces the resource."""
        if detail.recreation == "Never" or resource_change.replacement == "False":
            return Replacement.NO
        if detail.recreation == "Always":
            return Replacement.WILL if certainty is Certainty.WILL else Replacement.MIGHT
        # Whether a new launch template or new subnets replace an Auto Scaling group depends on its update policy.
        return Replacement.NO if resource_change.logical_id in self._rolling_update_groups else Replacement.MIGHT

    def _certainty_of_cause(self, stack: ChangeSet, detail: ChangeDetail) -> Certainty:
        """Return whether the parameter, resource or attribute that causes a change will change."""
        name, _, attribute = detail.cause.partition(".")
        if detail.source == "ParameterReference":
            # A parameter of the root is not passed by another stack: only CloudFormation's evaluation is known.
            return (
                self._certainty_of_parameter(stack, detail.cause)
                if stack.id in self._parents
                else _certainty_by_evaluation(detail)
            )
        if attribute.startswith(_OUTPUTS_PREFIX):
            return self._certainty_of_output(stack, name, attribute.removeprefix(_OUTPUTS_PREFIX))
        return self._certainty_of_reference(stack, name, attribute)

    def _certainty_of_parameter(self, stack: ChangeSet, name: str) -> Certainty:
        """Return whether a nested stack's parameter will change."""
        parent, logical_id = self._parents[stack.id]
        details = [
            detail
            for detail in parent.entries[logical_id].details
            if detail.value_path == f"/Properties/Parameters/{name}"
        ]
        if any(detail.has_values and not detail.unknown and detail.before != detail.after for detail in details):
            return Certainty.WILL
        sources = self._parameter_references.get((logical_id, name))
        if sources is None:
            cause_certainties = [
                self._certainty_of_cause(parent, detail) for detail in details if detail.source in _REFERENCE_SOURCES
            ]
            return _most_certain(cause_certainties) if cause_certainties else Certainty.MIGHT
        certainties = [
            self._certainty_of_output(parent, source, attribute.removeprefix(_OUTPUTS_PREFIX))
            for source, attribute in sources
            if attribute.startswith(_OUTPUTS_PREFIX)
        ]
        certainties += [
            _certainty_by_evaluation(detail)
            for detail in details
            if not detail.has_values and detail.source == "ParameterReference"
        ]
        return _most_certain(certainties)

    def _certainty_of_output(self, parent: ChangeSet, logical_id: str, output: str) -> Certainty:
        """Return whether an output of a nested stack will change."""
        entry = parent.entries.get(logical_id)
        if entry is None:
            return Certainty.NO
        child = parent.children.get(logical_id)
        if entry.action != "Modify":
            return Certainty.MIGHT
        if child is None:
            return _most_certain(self._certainty_of_input(parent, detail) for detail in entry.details)
        if output not in self._output_references:
            return _most_certain(self._certainty_of_reference(child, resource_id, "") for resource_id in child.entries)
        return _most_certain(
            self._certainty_of_parameter(child, name)
            if name in child.parameters
            else self._certainty_of_reference(child, name, attribute)
            for name, attribute in self._output_references[output]
        )

    def _certainty_of_input(self, parent: ChangeSet, detail: ChangeDetail) -> Certainty:
        """Return whether a new parameter or TemplateURL changes a nested stack without a change set of its own."""
        if detail.value_path == "/Properties/TemplateURL" and detail.has_values and not detail.unknown:
            # The URL ends in the hash of the template and its name; only the bucket before them may differ.
            old_hash, new_hash = (
                str(url).rpartition("/")[0].rpartition("/")[2] for url in (detail.before, detail.after)
            )
            return Certainty.NO if old_hash == new_hash else Certainty.MIGHT
        if (
            detail.value_path.startswith("/Properties/Parameters/")
            and detail.source in _REFERENCE_SOURCES
            and detail.cause
        ):
            return self._certainty_of_cause(parent, detail)
        return Certainty.MIGHT

    def _certainty_of_reference(self, stack: ChangeSet, name: str, attribute: str) -> Certainty:
        """Return whether a reference to a resource, or to an attribute of it, will change."""
        entry = stack.entries.get(name)
        if entry is None:
            return Certainty.NO
        if entry.action != "Modify":
            return Certainty.WILL
        key = (stack.id, name, attribute)
        if key not in self._cache:
            # Templates have no circular references; this ends the recursion if there is one nevertheless.
            self._cache[key] = Certainty.NO
            # A new resource has another id, and other attributes.
            certainty = Certainty[self.replacement(stack, entry).name]
            if attribute in _VERSION_ATTRIBUTES and certainty is not Certainty.WILL:
                certainty = _most_certain(
                    Certainty.WILL if detail.certain else Certainty.MIGHT
                    for detail in self.effective_details(stack, entry)
                    if detail.detail.attribute == "Properties"
                )
            self._cache[key] = certainty
        return self._cache[key]


def _certainty_by_evaluation(detail: ChangeDetail) -> Certainty:
    """Return whether a value will change by CloudFormation's own evaluation, which is `Static` or `Dynamic`."""
    return Certainty.WILL if detail.evaluation == "Static" else Certainty.MIGHT


def _most_certain(certainties: Iterable[Certainty]) -> Certainty:
    """Return the highest of several certainties; `NO` if there are none."""
    return max(certainties, default=Certainty.NO)


def _find_output_references(documents: Iterable[Document]) -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Return the references in each output of the nested stacks: a resource or parameter, and an attribute.

    Names of outputs are unique among the stacks of a cluster (`cfngen.templates.wiring`).
    """
    return {
        name: tuple(references(output.get("Value")))
        for document in documents
        if not document.children and document.name != "standalone"
        for name, output in document.body.get("Outputs", {}).items()
    }


def _find_parameter_references(documents: Iterable[Document]) -> Mapping[tuple[str, str], tuple[tuple[str, str], ...]]:
    """Return the references in each parameter that the root passes, by the nested stack's logical id and its name."""
    return {
        (logical_id, name): tuple(references(value))
        for document in documents
        if document.children
        for logical_id, resource in document.body["Resources"].items()
        for name, value in resource.get("Properties", {}).get("Parameters", {}).items()
    }


def _find_rolling_update_groups(documents: Iterable[Document]) -> frozenset[str]:
    """Return the Auto Scaling groups that are updated by rolling their instances, instead of being replaced."""
    return frozenset(
        logical_id
        for document in documents
        for logical_id, resource in document.body["Resources"].items()
        if "AutoScalingRollingUpdate" in resource.get("UpdatePolicy", {})
        and "AutoScalingReplacingUpdate" not in resource["UpdatePolicy"]
    )
