"""Validation: from plain values to a cluster with the origin of each value, or to a list of all problems."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cfngen.cluster import checks
from cfngen.cluster.defaults.completion import complete
from cfngen.cluster.file.error_messages import describe_error
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, dotted, leaves, lookup, within
from cfngen.cluster.problems import ClusterFileError, Problem, Source

# Each round drops the values that pydantic refused and validates the rest, until nothing is refused or this many rounds
# have passed.
_MAX_ROUNDS = 8
_ENVIRONMENT_HINT = "unset the variables, or leave out the whole environment with --no-env"


@dataclass(frozen=True)
class Origin:
    """Where a value of the complete cluster came from.

    Attributes:
        kind: `default`, `derived`, `file`, `environment` or `flag`.
        where: file and line, the variable, the flag, or what it was derived from; empty for a default.
    """

    kind: str
    where: str = ""


class ValidationResult:
    """Validates one set of values, and knows where each value of the resulting cluster came from.

    Args:
        data: the values, without nulls.
        file: the cluster file, for problems that have no line.
        sources: where each value was written, by path.
        unreadable: for each value that stands for another one, which cannot be read, its path and the problem.
    """

    def __init__(
        self,
        data: Mapping[str, object],
        *,
        file: Source | None = None,
        sources: Mapping[Path, Source] | None = None,
        unreadable: Mapping[Path, str] | None = None,
    ) -> None:
        self._file = file
        self._sources = sources or {}
        self._unreadable = unreadable or {}
        # Paths of the values that pydantic refused, or that cannot be read.
        self._refused: set[Path] = set()
        for path in self._unreadable:
            data = _remove_value(data, path, self._refused)
        self._data = data
        # The values with those that are derived from others.
        self._completed = complete(data)
        # Leads from the node groups of the cluster, or of the values that are validated, back to those of `data`.
        self._written_groups = self._completed.written_groups

    def warnings(self, cluster: Cluster) -> list[Problem]:
        """Return what is allowed in the cluster but may not be intended, with the places where it was written."""
        return [self.with_source(self._written_groups.problem(problem)) for problem in checks.warnings(cluster)]

    def cluster(self, problems: Iterable[Problem] = ()) -> Cluster:
        """Return the cluster.

        Raises:
            ClusterFileError: with all problems: refused values, and what the cross-checks find in the others.
        """
        problems = [*problems, *(Problem(path, message) for path, message in self._unreadable.items())]
        cluster = self._validate(problems)
        if cluster is not None:
            problems += self._root_causes(map(self._written_groups.problem, checks.problems(cluster)))
        if problems or cluster is None:
            located_problems = [self.with_source(problem) for problem in problems]
            is_from_environment = any(
                problem.source and problem.source.kind == "environment" for problem in located_problems
            )
            raise ClusterFileError(located_problems, hint=_ENVIRONMENT_HINT if is_from_environment else "")
        return cluster

    def _validate(self, problems: list[Problem]) -> Cluster | None:
        """Return the cluster of the values that pydantic accepts, or None if some are refused in every round.

        A problem for each refused value is added to `problems`, unless the refusal only follows from another one.
        """
        data = copy.deepcopy(self._completed.data)
        accepted = self._data
        for _ in range(_MAX_ROUNDS):
            try:
                return Cluster.model_validate(data)
            except ValidationError as error:
                errors = [self._as_written(details) for details in error.errors(include_url=False)]
                errors = [details for details in errors if not _is_miscounted(details)]
            refused_in_round = {details["loc"] for details in errors}
            for details in errors:
                is_consequence = self._is_missing_because_refused(details) or self._is_derived_from_refused(
                    details["loc"], refused_in_round
                )
                if not is_consequence:
                    problems.append(_problem_of_error(details))
            for details in errors:
                accepted = _remove_value(accepted, _path_to_drop(details), self._refused)
            completed = complete(accepted)
            data, self._written_groups = completed.data, completed.written_groups
        return None

    def _as_written(self, error: ErrorDetails) -> ErrorDetails:
        return {**error, "loc": self._written_groups.path(error["loc"])}

    def _is_missing_because_refused(self, error: ErrorDetails) -> bool:
        """Return whether a value is missing only because it, or its section, was refused and dropped."""
        path = error["loc"]
        return error["type"] == "missing" and not self._refused.isdisjoint((path, path[:-1]))

    def _is_derived_from_refused(self, path: Path, refused_in_round: set[Path]) -> bool:
        """Return whether the value at a path was derived from one that was refused, in this round or before."""
        source = self._derivation_source(path)
        all_refused = self._refused | refused_in_round
        return source is not None and any(_overlaps(source, refused_path) for refused_path in all_refused)

    def _root_causes(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return the problems that do not follow from a refused value or from a problem before them."""
        causes: list[Problem] = []
        for problem in problems:
            wrong_paths = {*self._refused, *(cause.path for cause in causes)}
            needed_paths = self._needed_paths(problem)
            is_consequence = any(_overlaps(path, wrong_path) for path in needed_paths for wrong_path in wrong_paths)
            is_refused = any(_overlaps(problem.path, refused_path) for refused_path in self._refused)
            if not is_consequence and not is_refused:
                causes.append(problem)
        return causes

    def _needed_paths(self, problem: Problem) -> list[Path]:
        """Return the paths of the values on which a problem depends, besides the one that it is reported for."""
        sources = [self._derivation_source(path) for path in (problem.path, *problem.related_paths)]
        return [*problem.related_paths, *filter(None, sources)]

    def _derivation_source(self, path: Path) -> Path | None:
        """Return the path that the value at `path`, or a section around it, is derived from; None if there is none."""
        for length in range(len(path), 0, -1):
            derivation = self._completed.derived.get(path[:length])
            if derivation:
                return derivation.source
        return None

    def with_source(self, problem: Problem) -> Problem:
        """Return the problem with the place where its value, or the value it is derived from, was written.

        If a flag sets a value on which the problem depends, that is the place: the file may be right without it.
        """
        if problem.source:
            return problem
        source = self._source_of(problem.path)
        if source is None or source.kind != "flag":
            flags = (flag for path in self._needed_paths(problem) if (flag := self._flag_at(path)))
            source = next(flags, source)
        return replace(problem, source=source)

    def _flag_at(self, path: Path) -> Source | None:
        """Return a flag that sets the value at a path, a section around it or a part of it; None if there is none."""
        flags = (
            source for written, source in self._sources.items() if source.kind == "flag" and _overlaps(written, path)
        )
        return next(flags, None)

    def _source_of(self, path: Path) -> Source | None:
        """Return where a value, the value it is derived from, or else the section around it was written."""
        visited: set[Path] = set()
        while path not in self._sources and path not in visited and (source := self._derivation_source(path)):
            visited.add(path)
            path = source
        for length in range(len(path), 0, -1):
            written = self._sources.get(path[:length]) or self._flag_at(path[:length])
            if written:
                return written
        return self._file

    def origins(self, cluster: Cluster) -> dict[str, Origin]:
        """Return the origin of every value of the cluster that is not a section, by its dotted key path."""
        dump = cluster.model_dump(mode="json", by_alias=True)
        return {dotted(path): self._origin(path) for path, _ in leaves(dump)}

    def _origin(self, path: Path) -> Origin:
        reason = self._completed.written_groups.reason(path)
        if reason:
            return Origin(kind="derived", where=reason)
        path = self._completed.written_groups.path(path)
        derived = self._completed.derived
        for length in range(len(path), 0, -1):
            if path[:length] in derived:
                return Origin(kind="derived", where=derived[path[:length]].reason)
        source = self._sources.get(path)
        if source is None or lookup(self._data, path) is None:
            return Origin(kind="default")
        # A variable is shown by its bare name, since the kind is shown beside it.
        where = source.name if source.kind == "environment" else str(source)
        return Origin(kind=source.kind, where=where)


def _problem_of_error(error: ErrorDetails) -> Problem:
    path = error["loc"]
    # Pydantic marks an invalid key of a mapping by two parts: the key and `[key]`. The mapping has the problem.
    problem_path = path[:-2] if path[-1:] == ("[key]",) else path
    return Problem(problem_path, describe_error(error))


def _is_miscounted(error: ErrorDetails) -> bool:
    """Return whether pydantic reports a list as too short only because it did not count refused items."""
    return error["type"] == "too_short" and len(error["input"]) >= int(error["ctx"]["min_length"])


def _overlaps(first: Path, second: Path) -> bool:
    return within(first, second) or within(second, first)


def _path_to_drop(error: ErrorDetails) -> Path:
    """Return the path of the value to drop because of an error.

    For a missing key this is the section that lacks it; for an invalid key (`[key]`) it is that key.
    """
    path = error["loc"]
    if error["type"] == "missing" or path[-1:] == ("[key]",):
        return path[:-1]
    return path


def _remove_value(data: Mapping[str, object], path: Path, refused: set[Path]) -> Mapping[str, object]:
    """Return a copy of `data` without the value at `path`, and add the path of what was removed to `refused`.

    An item of a list of sections becomes an empty section, so that the others keep their positions; a list of plain
    values is removed as a whole.
    """
    if not path:
        return {}
    parent = lookup(data, path[:-1])
    if isinstance(path[-1], int) and isinstance(parent, list):
        if not any(isinstance(item, dict) for item in parent):
            return _remove_value(data, path[:-1], refused)
        refused.add(path)
        return _replace_in_mapping(data, path, {})
    refused.add(path)
    return _replace_in_mapping(data, path, None)


def _replace_in_mapping(data: Mapping[str, object], path: Path, value: object) -> dict[str, object]:
    copied = dict(data)
    key = str(path[0])
    if len(path) == 1 and value is None:
        copied.pop(key, None)
    elif path[0] in copied:
        copied[key] = _replace_value(copied[key], path[1:], value)
    return copied


def _replace_value(data: object, path: Path, value: object) -> object:
    """Return a copy of `data`, which may be a value of any type, with the value at `path` replaced."""
    if not path:
        return value
    if isinstance(data, Mapping):
        return _replace_in_mapping(data, path, value)
    if isinstance(data, (list, tuple)) and isinstance(path[0], int) and path[0] < len(data):
        return [_replace_value(item, path[1:], value) if index == path[0] else item for index, item in enumerate(data)]
    return data
