"""Compares the deployed templates with the requested ones, and completes a change set with what they say.

A change set is only a witness: it leaves out changes that follow from a resource that is updated in place, shows no
large values, and lists changes that never happen. The templates and parameters show which values change. Only the
change set knows which resources have been changed outside of CloudFormation, what a change replaces, and physical ids.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.change_sets import ChangeDetail, ChangeSet, ResourceChange, ShownValue, Unshown
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.stacks import NESTED_STACK, ResourceView, StackResource, StackTree, stack_name
from cfngen.deploy.aws.templates import read_deployed, templates_by_stack
from cfngen.deploy.messages.message import Notice, Report
from cfngen.deploy.plan.keyed_lists import with_tags_in_order_of
from cfngen.deploy.plan.plan import PlanRequest
from cfngen.deploy.plan.publishing.publish import with_template_urls
from cfngen.templates.document import root_of
from cfngen.templates.evaluation import (
    EvaluatedTemplate,
    calls,
    contains_call,
    differences,
    evaluate_stacks,
    is_text,
    value_at,
    with_placeholders,
)
from cfngen.templates.expressions import Reference, references

_RECREATIONS = ("Never", "Conditionally", "Always")


def compare_templates(
    account: Account, request: PlanRequest, change_set: ChangeSet, deployed: StackTree | None, report: Report
) -> TemplateComparison:
    """Return the deployed templates, as far as they can be read, and the requested ones, with their parameters."""
    pseudo_values = {
        "AWS::AccountId": account.id,
        "AWS::Partition": account.partition,
        "AWS::Region": account.region,
        "AWS::URLSuffix": account.url_suffix,
    }
    templates = templates_by_stack(request.documents)
    if root := root_of(request.documents):
        # The deployed root has no parameters for the location of nested templates either.
        templates[""] = with_template_urls(root, dict.fromkeys(root.children, ""))
    looked_up = {stack: child.looked_up for stack, child in change_set.children.items()}
    requested = evaluate_stacks(
        templates,
        {**pseudo_values, **request.values, **change_set.parameters},
        {**looked_up, "": change_set.looked_up},
    )
    resources: tuple[StackResource, ...] = ()
    if deployed is None:
        return TemplateComparison({}, requested, resources)
    try:
        with translate_aws_errors():
            resources = deployed.resources
            read = read_deployed(deployed)
    except AwsError as error:
        report(Notice(f"the deployed templates cannot be read, so the plan relies on the change set: {error}"))
        return TemplateComparison({}, requested, resources)
    deployed_templates = evaluate_stacks(
        {"": read.root_template, **{name: stack.template for name, stack in read.nested_stacks.items()}},
        {**pseudo_values, **deployed.root.parameters},
        {"": deployed.root.looked_up, **{name: stack.values for name, stack in read.nested_stacks.items()}},
    )
    return TemplateComparison(deployed_templates, requested, resources)


@dataclass(frozen=True)
class TemplateComparison:
    """The deployed and the requested templates of the root (`""`) and of each nested stack, by its logical id.

    Attributes:
        resources: the deployed resources; none if they cannot be read.
    """

    deployed: Mapping[str, EvaluatedTemplate]
    requested: Mapping[str, EvaluatedTemplate]
    resources: Sequence[StackResource] = ()

    def resources_of(self, stack_id: str) -> list[ResourceView]:
        """Return the resources that exist in one of the deployed stacks."""
        return [resource.view for resource in self.resources if resource.stack_id == stack_id and resource.exists]

    @cached_property
    def _physical_ids(self) -> dict[str, str]:
        return {resource.view.logical_id: resource.view.physical_id for resource in self.resources if resource.exists}

    @cached_property
    def _logical_ids(self) -> frozenset[str]:
        return frozenset(logical_id for template in self.requested.values() for logical_id in template.resources)

    def complete(self, change_set: ChangeSet, stack: str = "") -> ChangeSet:
        """Return a change set with definitions and details from the templates.

        Stacks whose templates are not known, because they could not be read, stay as CloudFormation lists them.
        """
        old, new = self.deployed.get(stack), self.requested.get(stack)
        changes = {
            logical_id: self._complete_change(change, old, new)
            for logical_id, change in change_set.resource_changes.items()
        }
        if old and new:
            for logical_id in new.template.get("Resources", {}):
                if logical_id not in changes and (change := self._unlisted_change(logical_id, old, new)):
                    changes[logical_id] = change
        children = {logical_id: self.complete(child, logical_id) for logical_id, child in change_set.children.items()}
        for logical_id in () if stack else sorted(self.deployed.keys() & self.requested.keys() - {"", *children}):
            physical_id = self._physical_ids.get(logical_id, "")
            # CloudFormation has created no change set for the nested stack.
            child = ChangeSet(f"{change_set.id}/{logical_id}", "", stack_name(physical_id), "CREATE_COMPLETE")
            children[logical_id] = child = self.complete(child, logical_id)
            if child.resource_changes:
                changes.setdefault(logical_id, ResourceChange("Modify", logical_id, physical_id, NESTED_STACK))
        return replace(change_set, resource_changes=changes, children=children)

    def templates_differ(self, change_set: ChangeSet) -> bool:
        """Return whether templates or their URLs differ outside of `Resources`, which a change set does not list."""
        has_other_url = any(
            detail.shows_values and detail.before != detail.after
            for resource_change in change_set.resource_changes.values()
            for detail in resource_change.details
            if detail.value_path == "/Properties/TemplateURL"
        )
        # CloudFormation fails a change set in which nothing changes, so one that lists no resources changes the rest.
        if not change_set.resource_changes or has_other_url:
            return True
        return any(
            old.template.get(section) != new.template.get(section)
            for stack, old in self.deployed.items()
            if old.template and (new := self.requested.get(stack))
            for section in old.template.keys() | new.template.keys()
            if section != "Resources"
        )

    def _complete_change(
        self, change: ResourceChange, old: EvaluatedTemplate | None, new: EvaluatedTemplate | None
    ) -> ResourceChange:
        before = old.resources.get(change.logical_id, {}) if old else {}
        after = new.resources.get(change.logical_id, {}) if new else {}
        completed = replace(change, before=before, after=after)
        if change.action != "Modify" or not (old and new and before and after):
            return completed
        resource = _Resource(old, new, change.logical_id, self._logical_ids)
        documented = list(resource.details(change))
        documented_paths = {detail.value_path for detail in documented}
        listed = [
            replace(detail, only_in=resource.only_in_change_set(detail))
            for detail in change.details
            if not resource.explains(detail, documented_paths)
        ]
        # If CloudFormation shows what a value that the templates do not know is and will be, that is so.
        shown_paths = {detail.value_path for detail in listed if detail.shows_values}
        documented = [detail for detail in documented if detail.value_path not in shown_paths]
        return replace(completed, details=(*documented, *listed))

    def _unlisted_change(
        self, logical_id: str, old: EvaluatedTemplate, new: EvaluatedTemplate
    ) -> ResourceChange | None:
        """Return the change of a resource that CloudFormation does not list; None if the templates have none either."""
        before, after = old.resources.get(logical_id), new.resources.get(logical_id)
        if not before or not after or after["Type"] == NESTED_STACK:
            return None
        physical_id = self._physical_ids.get(logical_id, "")
        change = ResourceChange("Modify", logical_id, physical_id, after["Type"], before=before, after=after)
        details = tuple(
            detail
            for detail in _Resource(old, new, logical_id, self._logical_ids).details(change)
            # CloudFormation keeps an attribute such as DeletionPolicy, and lists it only with another change.
            if detail.attribute in ("Properties", "Metadata")
        )
        return replace(change, details=details) if details else None


@dataclass(frozen=True)
class _Resource:
    """A resource of a stack, in the deployed and in the requested template.

    Attributes:
        logical_ids: those of all resources in all requested templates, to which its values may refer.
    """

    old: EvaluatedTemplate
    new: EvaluatedTemplate
    logical_id: str
    logical_ids: Collection[str]

    @cached_property
    def _definitions(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The old and the new definition, without what an update does not compare, or lists elsewhere."""
        old, new = self._as_written
        return old, with_tags_in_order_of(old, new)

    @cached_property
    def _as_written(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The same, with tags in the order in which each of the templates has them."""
        old, new = (_compared(template.resources[self.logical_id]) for template in (self.old, self.new))
        return old, new

    def details(self, change: ResourceChange) -> Iterator[ChangeDetail]:
        """Yield what the templates say about the change of the resource, in the form of a description with values.

        What a template refers to may change, or not: for such values all references are listed, each as a possible
        cause.
        """
        changed_paths: list[str] = []
        for path, old_value, new_value in differences(*self._definitions):
            detail = _detail(change, path, before=_shown(old_value), after=_shown(new_value))
            if _is_undecided(old_value, new_value):
                if detail.only_in:
                    continue  # the template says the same in another way
                detail = replace(detail, after=Unshown.KNOWN_LATER)
            changed_paths.append(path)
            causes = () if contains_call(new_value) else self._changed_parameters(path)
            for cause in causes:
                yield replace(detail, source="ParameterReference", cause=cause)
            if not causes:
                yield detail
        for path, call in calls(self._definitions[1]):
            if any(path != changed and _is_within(path, changed) for changed in changed_paths):
                continue
            before = next((listed.before for listed in change.details if listed.path == path), None)
            detail = _detail(change, path, before=before, after=Unshown.KNOWN_LATER)
            for referenced in dict.fromkeys(references(call)):
                if source := self._source(referenced):
                    cause = ".".join(filter(None, referenced))
                    yield replace(detail, evaluation="Dynamic", source=source, cause=cause)

    def explains(self, detail: ChangeDetail, documented_paths: set[str]) -> bool:
        """Return whether the templates say all about a value that CloudFormation lists as changed.

        Args:
            documented_paths: paths of the details that the templates yield.
        """
        if detail.source == "Automatic":
            return False
        if detail.shows_values and detail.before == detail.after:
            return True
        values = self._values_at(detail)
        is_known = not contains_call(values)
        is_documented = any(_is_within(path, detail.value_path) for path in documented_paths)
        if detail.shows_values:
            return is_known and (is_documented or self._is_reordered(detail))
        return is_known or (is_documented and all(map(self._is_judged, references(values))))

    def _is_reordered(self, detail: ChangeDetail) -> bool:
        """Return whether CloudFormation shows at a place what another order of the same tags has put there."""
        path = detail.value_path.split("/")[1:]
        written = [_shown(value_at(definition, path)) for definition in self._as_written]
        return written == [detail.before, detail.after] and not list(differences(*self._values_at(detail)))

    def only_in_change_set(self, detail: ChangeDetail) -> str:
        """Return `change set` if CloudFormation shows a change that the templates deny; else an empty text."""
        # Resources also get the tags of their stack, which are not in the template.
        is_denied = detail.shows_values and detail.source != "Automatic" and not contains_call(self._values_at(detail))
        return "change set" if is_denied and not _is_of(detail, "Properties", "Tags") else ""

    def _values_at(self, detail: ChangeDetail) -> list[Any]:
        return [value_at(definition, detail.value_path.split("/")[1:]) for definition in self._definitions]

    def _changed_parameters(self, path: str) -> tuple[str, ...]:
        """Return the parameters with new values that change the value at a path; none if its expression changes."""
        old_expression, new_expression = (
            value_at(evaluated.template["Resources"][self.logical_id], path.split("/")[1:])
            for evaluated in (self.old, self.new)
        )
        if old_expression != new_expression:
            return ()
        return tuple(
            name
            for name, _ in dict.fromkeys(references(new_expression))
            if self.old.values.get(name) != self.new.values.get(name)
        )

    def _source(self, referenced: Reference) -> str:
        """Return the kind of cause that a reference is; empty for a value that only CloudFormation can compare."""
        if referenced.name not in self.logical_ids:
            return ""
        return "ResourceAttribute" if referenced.attribute else "ResourceReference"

    def _is_judged(self, referenced: Reference) -> bool:
        """Return whether the templates show if a value that they refer to may change; pseudo parameters never do."""
        return referenced.name.startswith("AWS::") or self._source(referenced) != ""


def _compared(definition: Mapping[str, Any]) -> dict[str, Any]:
    compared = {name: value for name, value in definition.items() if name not in ("DependsOn", "Type")}
    if definition.get("Type") == NESTED_STACK:
        # What the template at another URL changes is listed in the nested stack's own change set.
        properties = definition.get("Properties", {})
        compared["Properties"] = {name: value for name, value in properties.items() if name != "TemplateURL"}
    return compared


def _detail(change: ResourceChange, path: str, *, before: ShownValue, after: ShownValue) -> ChangeDetail:
    attribute, _, rest = path.removeprefix("/").partition("/")
    name = rest.partition("/")[0] if attribute == "Properties" else ""
    listed = [detail for detail in change.details if _is_of(detail, attribute, name)]
    # The worst that CloudFormation says of changes of the property.
    listed_recreations = {detail.recreation for detail in listed}
    recreations = [recreation for recreation in _RECREATIONS if recreation in listed_recreations]
    return ChangeDetail(
        attribute,
        name,
        path,
        recreations[-1] if recreations else "Never",
        before=before,
        after=after,
        only_in="" if listed else "templates",
    )


def _is_undecided(old_value: object, new_value: object) -> bool:
    """Return whether two different expressions may have the same value, which only CloudFormation knows."""
    if old_value is None or new_value is None:
        return False
    if not contains_call(old_value) or not contains_call(new_value):
        return contains_call([old_value, new_value])
    return not (is_text(old_value) and is_text(new_value))


def _is_within(path: str, other: str) -> bool:
    """Return whether one of two paths leads into the value at the other."""
    return f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")


def _is_of(detail: ChangeDetail, attribute: str, name: str) -> bool:
    """Return whether a detail is about an attribute or property; tags may be listed as an attribute of their own."""
    return name in (detail.name, detail.attribute) if attribute == "Properties" else detail.attribute == attribute


def _shown(value: object) -> ShownValue:
    """Return an evaluated value as CloudFormation shows it; what is not known is a placeholder."""
    text = with_placeholders(value)
    return text if text is None or isinstance(text, str) else json.dumps(text)
