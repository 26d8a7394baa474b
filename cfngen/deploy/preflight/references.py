"""Resolves the references of a cluster file, as CloudFormation will, before anything is created or changed.

All checks before a deployment look at objects by their ids. Here the references become ids, once: outputs of other
stacks by DescribeStacks, which Fn::GetStackOutput calls too, and parameters of Parameter Store by GetParameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from cfngen.cluster.checks.access import check_no_duplicates
from cfngen.cluster.checks.existing import check_subnets_distinct
from cfngen.cluster.checks.security_groups import check_groups_not_repeated
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import ReferencedPart, referenced_parts
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.references import StackOutput, StoredParameter
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.referenced_values import StackOutputs, StoredValues
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.preflight.findings import Finding, FindingsError, refusal

_T = TypeVar("_T")

_VPC_ID_PATH: Path = ("network", "vpc", "id")
# Checks that no part is named twice: two references, or a reference and an id, may lead to the same part.
_CHECKS_OF_IDS = (check_subnets_distinct, check_groups_not_repeated, check_no_duplicates)


class UnresolvedReferenceError(FindingsError):
    """References of the cluster file lead to nothing, or not to an id of the right kind.

    A reference is refused, too, if it leads to a part that another key names already.
    """

    code = "unresolved-reference"
    advice = "nothing was changed; correct the references, or what they name."
    separator = "\n"


@dataclass(frozen=True)
class ResolvedReferences:
    """A cluster whose references have been resolved.

    Attributes:
        cluster: the cluster, with ids in place of references.
        values: values of the root's parameters, with ids in place of names of stored parameters, and the ids of other
            parts by their logical ids.
        parts: the parts for which the cluster file has references.
    """

    cluster: Cluster
    values: Mapping[str, str] = field(default_factory=dict)
    parts: Sequence[ReferencedPart] = ()

    @property
    def reference_by_name(self) -> dict[str, str]:
        """The references as the cluster file has them, by the logical ids of the parts."""
        return {part.name: str(part.reference) for part in self.parts}


def resolve_references(account: Account, cluster: Cluster, values: Mapping[str, str]) -> ResolvedReferences:
    """Resolve the references of a cluster file.

    Args:
        values: values of the root's parameters; that of a stored parameter is its name.

    Raises:
        UnresolvedReferenceError: a reference leads to nothing, to something else than the key takes, or to a part that
            another key names already.
    """
    parts = referenced_parts(cluster)
    if not parts:
        return ResolvedReferences(cluster, values)
    ids = _find_ids(account, cluster, parts, values)
    resolved_cluster = _with_ids(cluster, ids, ())
    references = {part.path: _describe_reference(part, values) for part in parts}
    repetitions = tuple(
        _describe_repetition(problem, references) for check in _CHECKS_OF_IDS for problem in check(resolved_cluster)
    )
    if repetitions:
        raise UnresolvedReferenceError(repetitions)
    return ResolvedReferences(
        cluster=resolved_cluster, values={**values, **{part.name: ids[part.path] for part in parts}}, parts=parts
    )


def resolve_vpc(account: Account, cluster: Cluster) -> str:
    """Return the id of the existing VPC that the cluster file names, by id or reference; empty if it names none.

    Other references are not resolved: `cfngen delete` needs the VPC even if the other parts do not exist any more.

    Raises:
        UnresolvedReferenceError: the reference leads to nothing, or not to a VPC.
    """
    parts = tuple(part for part in referenced_parts(cluster) if part.path == _VPC_ID_PATH)
    return _find_ids(account, cluster, parts, {})[_VPC_ID_PATH] if parts else cluster.network.vpc.id or ""


def _find_ids(
    account: Account, cluster: Cluster, parts: Sequence[ReferencedPart], values: Mapping[str, str]
) -> dict[Path, str]:
    """Return the ids to which references lead, by the paths of their keys.

    Raises:
        UnresolvedReferenceError: a reference leads to nothing, or to something else than the key takes.
    """
    stacks = {reference.stack for part in parts if isinstance(reference := part.reference, StackOutput)}
    names = {
        part.name: _stored_name(part, part.reference, values)
        for part in parts
        if isinstance(part.reference, StoredParameter)
    }
    outputs_of_stack = StackOutputs(account, cluster.name, stacks)
    stored = StoredValues(account, sorted(set(names.values())))
    problems: list[Finding] = []
    ids: dict[Path, str] = {}
    for part in parts:
        if isinstance(part.reference, StackOutput):
            value, problem = outputs_of_stack.find(part.reference)
        else:
            value, problem = stored.find(names[part.name])
        if not problem and not part.kind.is_id(value):
            problem = f"has the value {value!r}, which is not {part.kind.expected}"
        if problem:
            problems.append(refusal(part.key, f"{_describe_reference(part, values)} {problem}"))
        ids[part.path] = value
    if problems:
        raise UnresolvedReferenceError(tuple(problems))
    return ids


def _stored_name(part: ReferencedPart, reference: StoredParameter, values: Mapping[str, str]) -> str:
    """Return the name of the stored parameter with a part's id: a deployment may choose another one."""
    return values.get(part.name, reference.name)


def _describe_reference(part: ReferencedPart, values: Mapping[str, str]) -> str:
    """Return the reference of a part as the cluster file would have it."""
    if isinstance(part.reference, StoredParameter):
        return str(StoredParameter(_stored_name(part, part.reference, values)))
    return str(part.reference)


def _describe_repetition(problem: Problem, references: Mapping[Path, str]) -> Finding:
    """Return a finding about a part that is named twice; it has both keys, and the references that lead to the part.

    Args:
        problem: the problem of the cluster with ids in place of references.
        references: the references, by the paths of their keys.
    """
    keys = " and ".join(
        f"{dotted(path)} is {references[path]}" if path in references else f"{dotted(path)} is this id"
        for path in (*problem.related_paths, problem.path)
    )
    return refusal(dotted(problem.path), f"{problem.message} ({keys})")


def moved_parts(resolved: ResolvedReferences, deployed_stack: StackView | None) -> tuple[Impact, ...]:
    """Return an impact for each reference that leads to another id than at the last update.

    A change set shows the new id where it is used, but not that nobody has changed the cluster file.

    Args:
        deployed_stack: the root stack; None if it does not exist yet.
    """
    deployed_values = deployed_stack.values if deployed_stack else {}
    impacts = []
    for part in resolved.parts:
        old, new = deployed_values.get(part.name), resolved.values[part.name]
        if old and old != new:
            impacts.append(
                Impact(f"{part.key}: {part.reference} was {old} at the last update and is {new} now", Danger.DISRUPTIVE)
            )
    return tuple(dict.fromkeys(impacts))


def _with_ids(value: _T, ids: Mapping[Path, str], path: Path) -> _T:
    """Return a part of the cluster with ids in place of references.

    Args:
        ids: the ids, by the paths of their keys.
    """
    if path in ids:
        return ids[path]  # type: ignore[return-value]  # there is a reference at this path, which is a text too
    if isinstance(value, BaseModel):
        changes = {
            name: changed
            for name in type(value).model_fields
            if (changed := _with_ids(item := getattr(value, name), ids, (*path, to_camel(name)))) is not item
        }
        return value.model_copy(update=changes) if changes else value
    if isinstance(value, tuple):
        items = tuple(_with_ids(item, ids, (*path, index)) for index, item in enumerate(value))
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else items  # type: ignore[return-value]  # a tuple of the same types
    return value
