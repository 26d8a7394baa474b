"""Which of the changes that a change set announces will happen, which might, and which will not.

CloudFormation compares each nested stack by itself. Where a stack takes another's output it reckons with a new value
as soon as the other stack is listed at all, and so announces changes, even replacements, that never come
(aws-cloudformation/cloudformation-coverage-roadmap#759, #2113). Here each announced change is followed back to its
cause: a value made of something that stays is not going to change.

The templates tell what the root hands to its nested stacks, and what their outputs are made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cfngen.deploy.preview.change_set_reading import Description, Detail, Entry
from cfngen.deploy.preview.plan import Replacement
from cfngen.deploy.references import references
from cfngen.deploy.stacks import NESTED
from cfngen.templates.document import Document

# Attributes that change though the resource stays; all others of ours identify it. A reference guide lists them as
# return values: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-launchtemplate.html
_VERSION_ATTRIBUTES = ("LatestVersionNumber", "DefaultVersionNumber")
# What a nested stack is handed; what that changes is listed in its own change set.
_OUTPUTS_PREFIX = "Outputs."
_REFERENCE_SOURCES = ("ParameterReference", "ResourceReference", "ResourceAttribute")
_NESTED_STACK_INPUTS = ("/Properties/Parameters", "/Properties/TemplateURL")


@dataclass(frozen=True)
class AnalyzedChange:
    """A reason for a change that was found to hold.

    Attributes:
        detail: the reason.
        certain: whether the value will change; otherwise it might.
        replaces: whether that makes a new resource.
    """

    detail: Detail
    certain: bool
    replaces: Replacement


class ReplacementAnalysis:
    """The judgement of one change set with those of its nested stacks.

    Args:
        root: the root's change set.
        documents: the new templates.
    """

    def __init__(self, root: Description, documents: Iterable[Document]) -> None:
        self._parents: dict[str, tuple[Description, str]] = {}
        self._relate(root)
        documents = tuple(documents)
        self._sources = _sources(documents)
        self._handed = _handed_parameters(documents)
        self._rolling = _rolling_groups(documents)
        self._verdicts: dict[tuple[str, str, str], Replacement] = {}

    def _relate(self, parent: Description) -> None:
        for logical_id, child in parent.children.items():
            self._parents[child.id] = parent, logical_id
            self._relate(child)

    def details(self, stack: Description, entry: Entry) -> tuple[AnalyzedChange, ...]:
        """Return the reasons for a change that hold, one for each place.

        Args:
            stack: the change set that lists the resource.
            entry: the resource.
        """
        best: dict[str, tuple[int, AnalyzedChange]] = {}
        for detail in entry.details:
            verdict = self._detail(stack, entry, detail)
            if verdict is Replacement.NO:
                continue
            analyzed = AnalyzedChange(detail, verdict is Replacement.WILL, self._makes_new(detail, entry, verdict))
            # The reason that says what the cause is, and is the most certain, stands for all at its place.
            weight = 2 * analyzed.certain + bool(detail.cause)
            if detail.place not in best or weight > best[detail.place][0]:
                best[detail.place] = weight, analyzed
        return tuple(analyzed for _, analyzed in best.values())

    def replacement(self, stack: Description, entry: Entry) -> Replacement:
        """Return whether a resource gives way to a new one."""
        if entry.action != "Modify":
            return Replacement.NO
        if not entry.details:
            return {"True": Replacement.WILL, "Conditional": Replacement.MIGHT}.get(entry.replacement, Replacement.NO)
        return _most(detail.replaces for detail in self.details(stack, entry))

    def changes(self, stack: Description, entry: Entry) -> bool:
        """Return whether anything happens to a resource, apart from what its own change set says of a nested stack."""
        return entry.action != "Modify" or not entry.details or bool(self.details(stack, entry))

    def _detail(self, stack: Description, entry: Entry, detail: Detail) -> Replacement:
        """Return whether a value will, might or will not change."""
        if entry.type == NESTED and (detail.source == "Automatic" or detail.place.startswith(_NESTED_STACK_INPUTS)):
            return Replacement.NO
        if detail.told and not detail.unknown:
            return Replacement.NO if detail.before == detail.after else Replacement.WILL
        if detail.cause and detail.source != "DirectModification":
            return self._cause(stack, detail)
        if any(other.cause for other in entry.details if other is not detail and other.place == detail.place):
            # CloudFormation lists a reference that changes twice, and the other entry knows the cause.
            return Replacement.NO
        return Replacement.MIGHT if detail.unknown or detail.evaluation == "Dynamic" else Replacement.WILL

    def _makes_new(self, detail: Detail, entry: Entry, verdict: Replacement) -> Replacement:
        """Return whether a change that will or might happen makes a new resource."""
        if detail.recreation == "Never" or entry.replacement == "False":
            return Replacement.NO
        if detail.recreation == "Always":
            return verdict
        # Of a group's launch template and subnets, the update policy is the condition.
        return Replacement.NO if entry.logical_id in self._rolling else Replacement.MIGHT

    def _cause(self, stack: Description, detail: Detail) -> Replacement:
        name, _, attribute = detail.cause.partition(".")
        if detail.source == "ParameterReference":
            # A parameter of the root has its value already; without values, all that is told is whether it is certain.
            return self._parameter(stack, detail.cause) if stack.id in self._parents else _of_evaluation(detail)
        if attribute.startswith(_OUTPUTS_PREFIX):
            return self._output(stack, name, attribute.removeprefix(_OUTPUTS_PREFIX))
        return self._resource(stack, name, attribute)

    def _parameter(self, stack: Description, name: str) -> Replacement:
        """Return whether a nested stack's parameter gets another value."""
        parent, logical_id = self._parents[stack.id]
        details = [
            detail for detail in parent.entries[logical_id].details if detail.place == f"/Properties/Parameters/{name}"
        ]
        if any(detail.told and not detail.unknown and detail.before != detail.after for detail in details):
            return Replacement.WILL
        sources = self._handed.get((logical_id, name))
        if sources is None:
            caused_verdicts = [self._cause(parent, detail) for detail in details if detail.source in _REFERENCE_SOURCES]
            return _most(caused_verdicts) if caused_verdicts else Replacement.MIGHT
        verdicts = [
            self._output(parent, source, attribute.removeprefix(_OUTPUTS_PREFIX))
            for source, attribute in sources
            if attribute.startswith(_OUTPUTS_PREFIX)
        ]
        verdicts += [
            _of_evaluation(detail) for detail in details if not detail.told and detail.source == "ParameterReference"
        ]
        return _most(verdicts)

    def _output(self, parent: Description, logical_id: str, output: str) -> Replacement:
        """Return whether an output of a nested stack gets another value."""
        entry = parent.entries.get(logical_id)
        if entry is None:
            return Replacement.NO
        child = parent.children.get(logical_id)
        if entry.action != "Modify":
            return Replacement.MIGHT
        if child is None:
            return _most(self._handed_on(parent, detail) for detail in entry.details)
        if output not in self._sources:
            return _most(self._resource(child, resource_id, "") for resource_id in child.entries)
        return _most(
            self._parameter(child, name) if name in child.parameters else self._resource(child, name, attribute)
            for name, attribute in self._sources[output]
        )

    def _handed_on(self, parent: Description, detail: Detail) -> Replacement:
        """Return whether a nested stack that has no change set of its own is changed by what it is handed."""
        if detail.place == "/Properties/TemplateURL" and detail.told and not detail.unknown:
            # The address ends in the hash of the content and its name; before that only the bucket may differ.
            old_hash, new_hash = (
                str(url).rpartition("/")[0].rpartition("/")[2] for url in (detail.before, detail.after)
            )
            return Replacement.NO if old_hash == new_hash else Replacement.MIGHT
        if detail.place.startswith("/Properties/Parameters/") and detail.source in _REFERENCE_SOURCES and detail.cause:
            return self._cause(parent, detail)
        return Replacement.MIGHT

    def _resource(self, stack: Description, name: str, attribute: str) -> Replacement:
        """Return whether a reference to a resource, or to an attribute of it, gets another value."""
        entry = stack.entries.get(name)
        if entry is None:
            return Replacement.NO
        if entry.action != "Modify":
            return Replacement.WILL
        key = (stack.id, name, attribute)
        if key not in self._verdicts:
            # Templates have no circles; an answer that were asked for while it is being found would be one.
            self._verdicts[key] = Replacement.NO
            verdict = self.replacement(stack, entry)
            if attribute in _VERSION_ATTRIBUTES and verdict is not Replacement.WILL:
                verdict = _most(
                    Replacement.WILL if detail.certain else Replacement.MIGHT
                    for detail in self.details(stack, entry)
                    if detail.detail.attribute == "Properties"
                )
            self._verdicts[key] = verdict
        return self._verdicts[key]


def _of_evaluation(detail: Detail) -> Replacement:
    return Replacement.WILL if detail.evaluation == "Static" else Replacement.MIGHT


def _most(verdicts: Iterable[Replacement]) -> Replacement:
    order = list(Replacement)
    return max(verdicts, key=order.index, default=Replacement.NO)


def _sources(documents: Iterable[Document]) -> Mapping[str, tuple[tuple[str, str], ...]]:
    """Return what each output of the nested stacks is made of: names of resources or parameters, with an attribute.

    Names of outputs are unique over the stacks of a cluster (`cfngen.templates.wiring`).
    """
    return {
        name: tuple(references(output.get("Value")))
        for document in documents
        if not document.children and document.name != "standalone"
        for name, output in document.body.get("Outputs", {}).items()
    }


def _handed_parameters(documents: Iterable[Document]) -> Mapping[tuple[str, str], tuple[tuple[str, str], ...]]:
    """Return what each parameter that the root hands on is made of, by the nested stack's logical id and its name."""
    return {
        (logical_id, name): tuple(references(value))
        for document in documents
        if document.children
        for logical_id, resource in document.body["Resources"].items()
        for name, value in resource.get("Properties", {}).get("Parameters", {}).items()
    }


def _rolling_groups(documents: Iterable[Document]) -> frozenset[str]:
    """Return the Auto Scaling groups that stay, and roll their instances, where others would be replaced."""
    return frozenset(
        logical_id
        for document in documents
        for logical_id, resource in document.body["Resources"].items()
        if "AutoScalingRollingUpdate" in resource.get("UpdatePolicy", {})
        and "AutoScalingReplacingUpdate" not in resource["UpdatePolicy"]
    )
