"""Makes the plan from a change set: keeps the changes that really happen, sorts them and adds their impact."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.messages import Notice, Report
from cfngen.deploy.preview.change_set_reading import UNKNOWN, ChangeDetail, ChangeSet, ResourceChange
from cfngen.deploy.preview.changes import Change, Counts, Danger, PropertyChange, Replacement, StackPlan
from cfngen.deploy.preview.creation import creation
from cfngen.deploy.preview.impact import ImpactAssessment
from cfngen.deploy.preview.keyed_lists import keyed_list
from cfngen.deploy.preview.plan import Plan
from cfngen.deploy.preview.plan_request import PlanRequest
from cfngen.deploy.preview.replacement import AnalyzedChange, ReplacementAnalysis
from cfngen.deploy.publishing.publish import with_template_urls
from cfngen.deploy.stacks import AUTO_SCALING_GROUP, NESTED_STACK, resources, stack_name, template
from cfngen.userdata import user_data_diff

_ACTIONS = {"Add": "add", "Modify": "update", "Remove": "remove", "Import": "import", "Dynamic": "update"}
_POLICIES = {"Delete": "delete", "Retain": "retain", "Snapshot": "snapshot"}
USER_DATA = "/UserData"
_MASKED_VALUE = re.compile(r"\*{4,}")
_CAUSE_LABELS = {"ParameterReference": "parameter", "ResourceReference": "resource", "ResourceAttribute": "attribute"}


def plan_from_change_set(
    account: Account,
    request: PlanRequest,
    description: ChangeSet,
    *,
    operation: str,
    shell: bool,
    report: Report,
) -> Plan:
    """Return the plan that a change set describes.

    Args:
        account: the account and region.
        request: what is to be deployed.
        description: the root's change set.
        operation: `create` or `update`.
        shell: whether the stack was created for the plan.
        report: receives notices for the user.
    """
    is_update = operation == "update"
    assembly = _Assembly(account, request, description, report, is_update=is_update)
    stacks = sorted(assembly.stacks(), key=_stack_sort_key)
    changes = [change for stack in stacks for change in stack.changes]
    return Plan(
        stack=request.stack,
        stack_id=description.stack_id,
        operation=operation,
        change_set_id=description.id,
        created=description.created,
        stacks=tuple(stacks),
        counts=_count_changes(changes),
        danger=max(
            (*(stack.danger for stack in stacks), *(impact.danger for impact in request.predicted)),
            key=lambda danger: danger.rank,
            default=Danger.NONE,
        ),
        templates_only=not stacks and _templates_differ(account, request, description),
        creation=None if is_update else creation(request.cluster, description),
        quotas=request.quotas,
        quotas_ignored=request.quotas_ignored,
        costs=request.costs,
        on_failure=request.on_failure,
        express=request.express,
        shell=shell,
        predicted=request.predicted,
    )


class _Assembly:
    """Makes the plans of a root and its nested stacks."""

    def __init__(
        self,
        account: Account,
        request: PlanRequest,
        root: ChangeSet,
        report: Report,
        *,
        is_update: bool,
    ) -> None:
        self._account = account
        self._root = root
        self._analysis = ReplacementAnalysis(root, request.documents)
        self._impacts = ImpactAssessment(request.cluster, request.masters)
        self._report = report
        self._is_update = is_update
        self._no_echo_parameters = frozenset(
            name
            for document in request.documents
            for name, parameter in document.body.get("Parameters", {}).items()
            if str(parameter.get("NoEcho", "")).lower() == "true"
        )

    def stacks(self) -> Iterator[StackPlan]:
        """Yield the plan of each stack that changes, nested stacks first."""
        yield from self._plan_stack(self._root, (), "update" if self._is_update else "create")

    def _plan_stack(self, description: ChangeSet, path: tuple[str, ...], action: str) -> Iterator[StackPlan]:
        """Yield the plans of the stacks nested in a stack, then its own if anything in it changes."""
        changes: list[Change] = []
        for entry in description.entries.values():
            if entry.type != NESTED_STACK:
                if self._analysis.changes(description, entry):
                    changes.append(
                        self._plan_change(description, entry, in_update=self._is_update and action == "update")
                    )
                continue
            nested_plans = list(self._plan_nested_stack(description, entry, (*path, entry.logical_id)))
            yield from nested_plans
            # A change such as that of a nested stack's tags is listed once, with the stack's resources.
            if not nested_plans and self._analysis.details(description, entry):
                changes.append(self._plan_change(description, entry, in_update=self._is_update))
        if changes or action == "create":
            is_added = path and self._is_update and action == "create"
            impact = self._impacts.of_stack(description, path, action) if is_added else None
            name = description.stack_name
            yield StackPlan(path, name, action, tuple(sorted(changes, key=_change_sort_key)), impact)

    def _plan_nested_stack(
        self, parent: ChangeSet, entry: ResourceChange, path: tuple[str, ...]
    ) -> Iterator[StackPlan]:
        """Yield the plans of one nested stack and of those in it; nothing if it has no change set and is not added."""
        child = parent.children.get(entry.logical_id)
        if entry.action == "Remove":
            yield self._plan_removed_stack(entry, child, path)
        elif child is not None and not child.failed:
            yield from self._plan_stack(child, path, "create" if entry.action == "Add" else "update")
        elif entry.action == "Add":
            yield StackPlan(path, "", "create", (), self._impacts.of_stack(None, path, "create"))

    def _plan_removed_stack(self, entry: ResourceChange, child: ChangeSet | None, path: tuple[str, ...]) -> StackPlan:
        """Return the plan of a nested stack that is deleted; its resources are listed if the change set has none."""
        entries: list[ResourceChange] = list(child.entries.values()) if child else []
        if not entries and entry.physical_id:
            try:
                with translate_aws_errors():
                    entries = [
                        ResourceChange("Remove", resource.logical_id, resource.physical_id, resource.type)
                        for resource in resources(self._account, entry.physical_id)
                        if not resource.status.startswith("DELETE_")
                    ]
            except AwsError as error:
                self._report(Notice(f"the resources of {'/'.join(path)} cannot be listed: {error}"))
        impact = self._impacts.of_stack(child, path, "delete")
        changes = [self._plan_change(self._root, removed_entry, in_update=True) for removed_entry in entries]
        if impact:
            # The stack's impact includes that of its resources, except of those that are more dangerous.
            changes = [
                change if change.danger.rank > impact.danger.rank else replace(change, impact=None)
                for change in changes
            ]
        name = child.stack_name if child else stack_name(entry.physical_id)
        return StackPlan(path, name, "delete", tuple(sorted(changes, key=_change_sort_key)), impact)

    def _plan_change(self, description: ChangeSet, entry: ResourceChange, *, in_update: bool) -> Change:
        """Return the change of one resource; its impact is described only in an update of an existing stack."""
        analyzed_changes = self._analysis.details(description, entry) if entry.action == "Modify" else ()
        replacement = self._analysis.replacement(description, entry)
        disappears = entry.action == "Remove" or replacement is not Replacement.NO
        change = Change(
            logical_id=entry.logical_id,
            physical_id=entry.physical_id,
            type=entry.type,
            action=_ACTIONS.get(entry.action, "update"),
            replacement=replacement,
            policy=_POLICIES.get(entry.policy.removeprefix("ReplaceAnd"), "") if disappears else "",
            properties=tuple(
                sorted(
                    self._property_changes(entry, analyzed_changes), key=lambda property_change: property_change.path
                )
            ),
        )
        if not in_update:
            return change
        rolls = change.type == AUTO_SCALING_GROUP and change.action == "update"
        instances = self._count_instances(entry.physical_id) if rolls else None
        impact = self._impacts.of_resource(change, entry, instances=instances)
        danger = impact.danger if impact else self._impacts.danger(change)
        return replace(change, impact=impact, danger=danger)

    def _count_instances(self, name: str) -> int | None:
        """Return how many instances an Auto Scaling group has; None if that cannot be read."""
        try:
            with translate_aws_errors():
                scaling = self._account.client("autoscaling")
                response = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        except AwsError:
            return None
        groups = response["AutoScalingGroups"]
        return len(groups[0]["Instances"]) if groups else None

    def _property_changes(
        self, entry: ResourceChange, analyzed_changes: tuple[AnalyzedChange, ...]
    ) -> Iterator[PropertyChange]:
        """Yield the changes of values; of a list whose items have keys, such as tags, one for each changed key."""
        lists: dict[str, tuple[AnalyzedChange, Mapping[str, str], Mapping[str, str]]] = {}
        for analyzed in analyzed_changes:
            if (keyed := keyed_list(entry, analyzed.detail.place)) is None:
                yield self._property_change(analyzed)
            else:
                lists.setdefault(keyed.place, (analyzed, keyed.before, keyed.after))
        for place, (analyzed, before, after) in lists.items():
            for key in sorted(before.keys() | after.keys()):
                if before.get(key) != after.get(key):
                    is_known = UNKNOWN not in (after.get(key) or "")
                    yield PropertyChange(
                        f"{place}[{key}]",
                        before.get(key),
                        after.get(key) if is_known else None,
                        known=is_known,
                        certain=analyzed.certain,
                        replaces=analyzed.replaces,
                    )

    def _property_change(self, analyzed: AnalyzedChange) -> PropertyChange:
        """Return the change of one value; secret values, and those that only a note describes, are left out."""
        detail = analyzed.detail
        is_secret = any(value and _MASKED_VALUE.fullmatch(value) for value in (detail.before, detail.after))
        is_secret = is_secret or (detail.source == "ParameterReference" and detail.cause in self._no_echo_parameters)
        kind = _CAUSE_LABELS.get(detail.source, "")
        note = self._note(detail)
        is_visible = not is_secret and (not note or detail.place.endswith(USER_DATA))
        return PropertyChange(
            path=detail.place,
            before=detail.before if is_visible else None,
            after=detail.after if is_visible and not detail.unknown else None,
            known=detail.has_values and not detail.unknown,
            certain=analyzed.certain,
            sensitive=is_secret,
            replaces=analyzed.replaces,
            cause=f"{kind} {detail.cause}" if kind and detail.cause else "",
            note=note,
        )

    def _note(self, detail: ChangeDetail) -> str:
        """Describe the change if the values themselves are not readable; else return an empty text."""
        if detail.place.endswith(USER_DATA):
            difference = ""
            if detail.before and detail.after and not detail.unknown:
                difference = user_data_diff.difference(detail.before, detail.after)
            return difference or "the boot program or its configuration changes"
        if detail.cause.endswith(".LatestVersionNumber"):
            return "the new version of its launch template"
        return ""


def _count_changes(changes: list[Change]) -> Counts:
    def count(action: str, replacement: Replacement = Replacement.NO) -> int:
        return sum(
            1
            for change in changes
            if change.action == action and change.replacement is replacement and change.type != NESTED_STACK
        )

    return Counts(
        add=count("add") + count("import"),
        update=count("update"),
        replace=count("update", Replacement.WILL),
        might_replace=count("update", Replacement.MIGHT),
        remove=count("remove"),
    )


def _change_sort_key(change: Change) -> tuple[int, int, str]:
    """Sort key for changes: replacements first, then removals, and the most dangerous first among them."""
    if change.replacement is not Replacement.NO:
        kind = 0 if change.replacement is Replacement.WILL else 1
    else:
        kind = {"remove": 2, "update": 3}.get(change.action, 4)
    return kind, -change.danger.rank, change.logical_id


def _stack_sort_key(stack: StackPlan) -> tuple[int, int, tuple[str, ...]]:
    kinds = [_change_sort_key(change)[0] for change in stack.changes]
    return -stack.danger.rank, min(kinds, default=5), stack.path


def _templates_differ(account: Account, request: PlanRequest, description: ChangeSet) -> bool:
    """Return whether templates differ outside of `Resources`, which a change set does not list.

    A nested template that changes gets another TemplateURL, since it is named after its content; the root is compared.
    """
    url_details = (
        detail
        for entry in description.entries.values()
        for detail in entry.details
        if detail.place == "/Properties/TemplateURL"
    )
    if not description.entries or any(detail.has_values and detail.before != detail.after for detail in url_details):
        return True
    root = next((document for document in request.documents if document.children), None)
    if root is None:
        return False
    try:
        with translate_aws_errors():
            deployed = template(account, description.stack_id)
    except AwsError:
        return False
    # The URLs of nested templates are ignored here, since they have been compared above.
    requested = with_template_urls(root, dict.fromkeys(root.children, ""))
    sections = (set(requested) | set(deployed)) - {"Resources"}
    return any(requested.get(section) != deployed.get(section) for section in sections)
