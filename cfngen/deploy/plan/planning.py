"""How a plan is made from a change set: keeps the changes that really happen, sorts them and adds their impact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from cfngen.cluster.naming.logical_ids import ClusterFileId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.change_sets import ChangeDetail, ChangeSet, ResourceChange, ShownValue, Unshown
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.groups import count_instances
from cfngen.deploy.aws.kept_file import find_file_change
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, NESTED_STACK, StackTree, stack_name
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.messages.message import Danger, Impact, Report
from cfngen.deploy.plan.costs.creation import summarize_creation
from cfngen.deploy.plan.impact import ImpactAssessment
from cfngen.deploy.plan.keyed_lists import KeyedList, find_keyed_list
from cfngen.deploy.plan.plan import Change, Counts, Plan, PlanRequest, PropertyChange, Replacement, StackPlan
from cfngen.deploy.plan.replacement import AnalyzedChange, ReplacementAnalysis
from cfngen.deploy.plan.template_comparison import TemplateComparison, compare_templates
from cfngen.templates.evaluation import value_at, with_placeholders
from cfngen.text import join_and
from cfngen.userdata import downloads, user_data_diff
from cfngen.userdata.changed_parts import UNKNOWN_CHANGE

# How a plan calls an action that CloudFormation lists.
_ACTIONS = {"Add": "add", "Modify": "update", "Remove": "remove", "Import": "import", "Dynamic": "update"}
_DELETION_POLICY_VERBS = {"Delete": "delete", "Retain": "retain", "Snapshot": "snapshot"}
USER_DATA = "/UserData"
# Types of what is in a template, but not in AWS, and is not counted: boot programs are metadata of such a handle.
_UNCOUNTED_TYPES = (
    NESTED_STACK,
    "AWS::CloudFormation::WaitCondition",
    "AWS::CloudFormation::WaitConditionHandle",
)
# What a plan calls the kind of cause that CloudFormation gives as the source of a change.
_CAUSE_LABELS = {"ParameterReference": "parameter", "ResourceReference": "resource", "ResourceAttribute": "attribute"}


def plan_from_change_set(
    account: Account,
    request: PlanRequest,
    change_set: ChangeSet,
    *,
    operation: str,
    deployed: StackTree | None,
    is_stack_empty: bool,
    report: Report,
) -> Plan:
    """Return the plan that a change set and the templates describe.

    Args:
        operation: `create` or `update`.
        deployed: the deployed stacks; None if there are none.
        is_stack_empty: whether the stack is empty because CloudFormation created it only to hold this change set.
    """
    is_update = operation == "update"
    comparison = compare_templates(account, request, change_set, deployed if is_update else None, report)
    planner = _StackPlanner(account, request, comparison.complete(change_set), comparison, is_update)
    stacks = sorted(planner.plan_stacks(), key=_stack_sort_key)
    changes_file = any(map(ClusterFileId.parse, change_set.resource_changes))
    return Plan(
        stack=request.stack,
        stack_id=change_set.stack_id,
        operation=operation,
        change_set_id=change_set.id,
        created=change_set.created,
        stacks=tuple(stacks),
        counts=_count_changes([change for stack in stacks for change in stack.changes]),
        danger=_most_dangerous(stacks, request.predicted),
        # If no resource changes, the deployment may still change e.g. descriptions or outputs in the templates.
        templates_only=not stacks and (changes_file or comparison.templates_differ(change_set)),
        creation=None if is_update else summarize_creation(request.cluster, planner.new_resources),
        quotas=request.quotas,
        quotas_ignored=request.quotas_ignored,
        costs=request.costs,
        bill=request.bill,
        on_failure=request.on_failure,
        express=request.express,
        shell=is_stack_empty,
        predicted=request.predicted,
        downloads=downloads.without_internet(request.cluster),
        file_change=find_file_change(comparison.deployed.get(""), comparison.requested.get("")),
    )


@dataclass(frozen=True)
class _StackPlanner:
    """Plans the changes of the root and its nested stacks from their change sets."""

    _account: Account
    _request: PlanRequest
    _root: ChangeSet
    _comparison: TemplateComparison
    _is_update: bool

    @cached_property
    def _analysis(self) -> ReplacementAnalysis:
        return ReplacementAnalysis(self._root, self._comparison.requested)

    @cached_property
    def new_resources(self) -> Mapping[str, TemplatePart]:
        """The evaluated resources of the new templates of nested stacks, by logical id."""
        return {
            logical_id: resource
            for stack, evaluated in self._comparison.requested.items()
            if stack
            for logical_id, resource in evaluated.resources.items()
        }

    @cached_property
    def _programs(self) -> dict[str, str]:
        """The second stages of boot programs, packed, in the deployed and the new templates, by logical id."""
        return {
            logical_id: program
            for evaluated in (*self._comparison.deployed.values(), *self._comparison.requested.values())
            for logical_id, resource in evaluated.template.get("Resources", {}).items()
            if (program := resource.get("Metadata", {}).get("cfngen", {}).get("program"))
        }

    @cached_property
    def _impacts(self) -> ImpactAssessment:
        return ImpactAssessment(self._request.cluster, self._request.master_count, self.new_resources)

    @cached_property
    def _no_echo_parameters(self) -> frozenset[str]:
        return frozenset(
            name
            for document in self._request.documents
            for name, parameter in document.body.get("Parameters", {}).items()
            if str(parameter.get("NoEcho", "")).lower() == "true"
        )

    def plan_stacks(self) -> Iterator[StackPlan]:
        """Yield the plan of each stack that changes, nested stacks first."""
        yield from self._plan_stack(self._root, path=(), action="update" if self._is_update else "create")

    def _plan_stack(self, change_set: ChangeSet, path: tuple[str, ...], action: str) -> Iterator[StackPlan]:
        """Yield the plans of a stack's nested stacks, then the plan of the stack itself if any resource changes.

        Args:
            path: logical ids from the root to the stack; empty for the root.
            action: whether the deployment creates or updates the stack: `create` or `update`.
        """
        changes: list[Change] = []
        for resource_change in change_set.resource_changes.values():
            if ClusterFileId.parse(resource_change.logical_id):
                continue  # `Plan.file_change` says what changes
            if resource_change.type != NESTED_STACK:
                if self._analysis.has_effect(change_set, resource_change):
                    # In a nested stack that the update adds, all resources are new, so no impact is described.
                    stack_exists = self._is_update and action == "update"
                    changes.append(self._plan_change(change_set, resource_change, stack_exists=stack_exists))
                continue
            nested_plans = list(
                self._plan_nested_stack(change_set, resource_change, (*path, resource_change.logical_id))
            )
            yield from nested_plans
            # A change of a nested stack itself, e.g. of its tags, is listed only if no resource in the stack changes.
            if not nested_plans and self._analysis.effective_changes(change_set, resource_change):
                changes.append(self._plan_change(change_set, resource_change, stack_exists=self._is_update))
        if changes or action == "create":
            is_added_by_update = path and self._is_update and action == "create"
            yield StackPlan(
                path=path,
                name=change_set.stack_name,
                action=action,
                changes=tuple(sorted(changes, key=_change_sort_key)),
                impact=self._impacts.of_stack(path, action) if is_added_by_update else None,
            )

    def _plan_nested_stack(
        self, parent: ChangeSet, resource_change: ResourceChange, path: tuple[str, ...]
    ) -> Iterator[StackPlan]:
        """Yield the plans of a nested stack and of all stacks in it; none if no change set says that it changes."""
        child = parent.children.get(resource_change.logical_id)
        if resource_change.action == "Remove":
            yield self._plan_removed_stack(resource_change, child, path)
        elif child is not None and (child.resource_changes or not child.failed):
            yield from self._plan_stack(child, path, "create" if resource_change.action == "Add" else "update")
        elif resource_change.action == "Add":
            # There is no change set for the new stack, so neither its name nor its resources are known.
            impact = self._impacts.of_stack(path, "create")
            yield StackPlan(path=path, name="", action="create", changes=(), impact=impact)

    def _plan_removed_stack(
        self, stack_change: ResourceChange, child: ChangeSet | None, path: tuple[str, ...]
    ) -> StackPlan:
        """Return the plan of a nested stack that is deleted.

        Args:
            child: the nested stack's change set; None if there is none.
        """
        removed = list(child.resource_changes.values()) if child else []
        deployed = self._comparison.deployed.get(path[-1])
        definitions = deployed.resources if deployed else {}
        # CloudFormation may have created no change set for it.
        removed = removed or [
            ResourceChange(
                "Remove",
                resource.logical_id,
                resource.physical_id,
                resource.type,
                before=definitions.get(resource.logical_id, {}),
            )
            for resource in self._comparison.resources_of(stack_change.physical_id)
        ]
        impact = self._impacts.of_stack(path, "delete")
        changes = [self._plan_change(self._root, removed_resource, stack_exists=True) for removed_resource in removed]
        if impact:
            # The stack's impact covers its resources. Only a resource that is more dangerous keeps its own impact.
            changes = [
                change if change.danger.rank > impact.danger.rank else replace(change, impact=None)
                for change in changes
            ]
        return StackPlan(
            path=path,
            name=child.stack_name if child else stack_name(stack_change.physical_id),
            action="delete",
            changes=tuple(sorted(changes, key=_change_sort_key)),
            impact=impact,
        )

    def _plan_change(self, change_set: ChangeSet, resource_change: ResourceChange, *, stack_exists: bool) -> Change:
        analyzed_changes = (
            self._analysis.effective_changes(change_set, resource_change) if resource_change.action == "Modify" else ()
        )
        replacement = self._analysis.replacement(change_set, resource_change)
        is_removed_or_replaced = resource_change.action == "Remove" or replacement is not Replacement.NO
        policy = ""
        if is_removed_or_replaced:
            # CloudFormation spells the policy of a replaced resource e.g. `ReplaceAndSnapshot`.
            policy = _DELETION_POLICY_VERBS.get(resource_change.policy.removeprefix("ReplaceAnd"), "")
        property_changes = sorted(
            self._property_changes(resource_change, analyzed_changes), key=lambda property_change: property_change.path
        )
        change = Change(
            logical_id=resource_change.logical_id,
            physical_id=resource_change.physical_id,
            type=resource_change.type,
            action=_ACTIONS.get(resource_change.action, "update"),
            replacement=replacement,
            policy=policy,
            properties=tuple(property_changes),
        )
        if resource_change.action not in _ACTIONS:
            text = f"CloudFormation calls this change {resource_change.action or 'nothing'}, which cfngen does not know"
            impact = Impact(f"{text}: it may do anything to the resource", Danger.DANGEROUS)
            return replace(change, replacement=Replacement.MIGHT, impact=impact, danger=impact.danger)
        if not stack_exists:
            return change
        is_updated_group = change.type == AUTO_SCALING_GROUP and change.action == "update"
        instance_count = self._count_instances(resource_change.physical_id) if is_updated_group else None
        described = self._impacts.of_resource(change, resource_change, instance_count=instance_count)
        danger = described.danger if described else self._impacts.danger(change)
        return replace(change, impact=described, danger=danger)

    def _count_instances(self, group_name: str) -> int | None:
        try:
            with translate_aws_errors():
                return count_instances(self._account, group_name)
        except AwsError:
            return None

    def _property_changes(
        self, resource_change: ResourceChange, analyzed_changes: tuple[AnalyzedChange, ...]
    ) -> Iterator[PropertyChange]:
        """Yield one change for each property; for a keyed list, such as tags, one for each changed key."""
        # By the path of a keyed list: the first listed change in it, and the list's old and new content.
        changed_lists: dict[str, tuple[AnalyzedChange, KeyedList]] = {}
        for analyzed in analyzed_changes:
            changed_list = find_keyed_list(resource_change, analyzed.detail.value_path)
            if changed_list is None or changed_list.before == changed_list.after:
                yield self._property_change(resource_change, analyzed)
            else:
                # Several listed changes may be in the same list: the list is compared once, as a whole.
                changed_lists.setdefault(changed_list.path, (analyzed, changed_list))
        for list_path, (analyzed, changed_list) in changed_lists.items():
            before, after = changed_list.before, changed_list.after
            for key in sorted(before.keys() | after.keys()):
                if before.get(key) != after.get(key):
                    yield PropertyChange(
                        path=f"{list_path}[{key}]",
                        before=before.get(key),
                        after=after.get(key),
                        certain=analyzed.certain,
                        replaces=analyzed.replaces,
                        only_in=analyzed.detail.only_in,
                    )

    def _property_change(self, resource_change: ResourceChange, analyzed: AnalyzedChange) -> PropertyChange:
        """Return the change of one value; without the values if they are secret, or if a note describes them."""
        detail = _with_user_data(analyzed.detail, resource_change)
        comes_from_no_echo_parameter = (
            detail.source == "ParameterReference" and detail.cause in self._no_echo_parameters
        )
        is_secret = Unshown.MASKED in (detail.before, detail.after) or comes_from_no_echo_parameter
        cause_label = _CAUSE_LABELS.get(detail.source, "")
        note = self._note_on_unreadable_value(detail)
        is_visible = not is_secret and (not note or detail.value_path.endswith(USER_DATA))
        return PropertyChange(
            path=detail.value_path,
            before=_text(detail.before) if is_visible else None,
            after=_text(detail.after) if is_visible else None,
            known=detail.is_after_known,
            certain=analyzed.certain,
            sensitive=is_secret,
            replaces=analyzed.replaces,
            cause=f"{cause_label} {detail.cause}" if cause_label and detail.cause else "",
            only_in=detail.only_in,
            note=note,
        )

    def _note_on_unreadable_value(self, detail: ChangeDetail) -> str:
        """Return in words what changes in a value that users cannot read, such as user data; empty for other values."""
        if detail.value_path.endswith(USER_DATA):
            before, after = _text(detail.before), _text(detail.after)
            if before and after:
                difference = user_data_diff.difference(before, after, self._programs)
            else:
                topics = user_data_diff.topics_of_reference(before or "", detail.cause)
                difference = join_and(topics) if topics else ""
            return difference or UNKNOWN_CHANGE
        if detail.cause.endswith(".LatestVersionNumber"):
            return "the new version of its launch template"
        return ""


def _with_user_data(detail: ChangeDetail, resource_change: ResourceChange) -> ChangeDetail:
    """Return the detail of user data that CloudFormation does not show with that of the templates, if that differs.

    Otherwise at most what it refers to changes, and only its old value is added.
    """
    if (
        not detail.value_path.endswith(USER_DATA)
        or detail.shows_values
        or Unshown.MASKED in (detail.before, detail.after)
    ):
        return detail
    path = detail.value_path.split("/")[1:]
    before, after = (
        with_placeholders(value_at(definition, path)) for definition in (resource_change.before, resource_change.after)
    )
    if not isinstance(before, str) or not isinstance(after, str):
        return detail
    return replace(detail, before=before, after=detail.after if before == after else after)


def _text(value: ShownValue) -> str | None:
    """Return a value that CloudFormation shows; None for any other."""
    return None if isinstance(value, Unshown) else value


def _most_dangerous(stacks: Iterable[StackPlan], predicted: Iterable[Impact]) -> Danger:
    dangers = [*(stack.danger for stack in stacks), *(impact.danger for impact in predicted)]
    return max(dangers, key=lambda danger: danger.rank, default=Danger.NONE)


def _count_changes(changes: list[Change]) -> Counts:
    def count(action: str, replacement: Replacement = Replacement.NO) -> int:
        return sum(
            change.action == action and change.replacement is replacement and change.type not in _UNCOUNTED_TYPES
            for change in changes
        )

    return Counts(
        add=count("add") + count("import"),
        update=count("update"),
        replace=count("update", Replacement.WILL),
        might_replace=count("update", Replacement.MIGHT),
        remove=count("remove"),
    )


def _change_sort_key(change: Change) -> tuple[int, int, str]:
    """Sort key for changes: by `_kind_position`, then the most dangerous first, then by logical id."""
    return _kind_position(change), -change.danger.rank, change.logical_id


def _kind_position(change: Change) -> int:
    """Return the position of a kind of change: replacements first, then removals, updates, and additions."""
    if change.replacement is Replacement.WILL:
        return 0
    if change.replacement is Replacement.MIGHT:
        return 1
    return {"remove": 2, "update": 3}.get(change.action, 4)


def _stack_sort_key(stack: StackPlan) -> tuple[int, int, tuple[str, ...]]:
    """Sort key for stacks: the most dangerous first, then by the kind of their first change, then by path."""
    first_kind_position = min((_kind_position(change) for change in stack.changes), default=5)
    return -stack.danger.rank, first_kind_position, stack.path
