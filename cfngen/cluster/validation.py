"""Validation: from plain values to a cluster with the origin of each value, or to a list of all problems."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cfngen.cluster import checks
from cfngen.cluster.defaults import complete
from cfngen.cluster.error_messages import message
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, dotted, leaves, lookup, within
from cfngen.cluster.problems import ClusterFileError, Problem, Source

# Each round drops the values that pydantic refused and validates the rest, until nothing is refused.
_MAX_ROUNDS = 8
_ENVIRONMENT_HINT = "unset the variables, or leave out the whole environment with --no-env"


@dataclass(frozen=True)
class Origin:
    """Where a value in effect came from.

    Attributes:
        kind: `default`, `derived`, `file`, `environment` or `flag`.
        where: file and line, the variable, the flag, or what it was derived from; empty for a default.
    """

    kind: str
    where: str = ""


class ValidationResult:
    """The validation of one set of values.

    Args:
        data: the values, without nulls.
        file: the cluster file, for problems that have no line.
        sources: where each value was written, by path.
    """

    def __init__(
        self, data: Mapping[str, object], *, file: Source | None = None, sources: Mapping[Path, Source] | None = None
    ) -> None:
        self._data = data
        self._file = file
        self._sources = sources or {}
        self._refused: set[Path] = set()
        self._completed = complete(data)

    def cluster(self, problems: Iterable[Problem] = ()) -> Cluster:
        """Return the cluster.

        Args:
            problems: problems found before, e.g. in the environment.

        Raises:
            ClusterFileError: with all problems: refused values, and what the cross-checks find in the others.
        """
        problems = list(problems)
        cluster = self._validate(problems)
        if cluster is not None:
            problems += self._root_causes(checks.problems(cluster))
        if problems or cluster is None:
            located = [self.located(problem) for problem in problems]
            kinds = {problem.source.kind for problem in located if problem.source}
            raise ClusterFileError(located, hint=_ENVIRONMENT_HINT if "environment" in kinds else "")
        return cluster

    def _validate(self, problems: list[Problem]) -> Cluster | None:
        """Return the cluster, or None; add a problem for each refused value to `problems`."""
        data = copy.deepcopy(self._completed.data)
        accepted = self._data
        for _ in range(_MAX_ROUNDS):
            try:
                return Cluster.model_validate(data)
            except ValidationError as error:
                errors = [details for details in error.errors(include_url=False) if not _is_miscounted(details)]
            refused_now = {details["loc"] for details in errors}
            problems += [
                _problem_of_error(details)
                for details in errors
                if not self._is_missing_because_refused(details)
                and not self._is_derived_from_refused(details["loc"], refused_now)
            ]
            for details in errors:
                accepted = _remove_value(accepted, _path_to_drop(details), self._refused)
            data = complete(accepted).data
        return None

    def _is_missing_because_refused(self, error: ErrorDetails) -> bool:
        """Return whether a value is missing only because it, or its section, was refused and dropped."""
        path = error["loc"]
        return error["type"] == "missing" and not self._refused.isdisjoint((path, path[:-1]))

    def _is_derived_from_refused(self, path: Path, refused: set[Path]) -> bool:
        """Return whether the value at a path was derived from a refused one."""
        source = self._derivation_source(path)
        return bool(source) and any(_overlaps(source, refused_path) for refused_path in (*refused, *self._refused))

    def _root_causes(self, problems: Iterable[Problem]) -> list[Problem]:
        """Return the problems that are no consequence of a refused value or of an earlier problem."""
        causes: list[Problem] = []
        for problem in problems:
            wrong_paths = {*self._refused, *(cause.path for cause in causes)}
            sources = [self._derivation_source(path) for path in (problem.path, *problem.related_paths)]
            depends_on = [*problem.related_paths, *filter(None, sources)]
            is_consequence = any(_overlaps(path, wrong_path) for path in depends_on for wrong_path in wrong_paths)
            is_refused = any(_overlaps(problem.path, refused_path) for refused_path in self._refused)
            if not is_consequence and not is_refused:
                causes.append(problem)
        return causes

    def _derivation_source(self, path: Path) -> Path:
        """Return the path that the value at `path`, or a section around it, is derived from; empty if there is none."""
        for length in range(len(path), 0, -1):
            derivation = self._completed.derived.get(path[:length])
            if derivation:
                return derivation.source
        return ()

    def located(self, problem: Problem) -> Problem:
        """Return the problem with the place where its value, or the value it is derived from, was written."""
        if problem.source:
            return problem
        return Problem(
            problem.path, problem.message, related_paths=problem.related_paths, source=self._source(problem.path)
        )

    def _source(self, path: Path) -> Source | None:
        """Return where a value, the value it is derived from, or else the section around it was written."""
        visited: set[Path] = set()
        while path not in self._sources and path not in visited and (source := self._derivation_source(path)):
            visited.add(path)
            path = source
        for length in range(len(path), 0, -1):
            if path[:length] in self._sources:
                return self._sources[path[:length]]
        return self._file

    def origins(self, cluster: Cluster) -> dict[str, Origin]:
        """Return the origin of every leaf of the cluster, by its dotted key path."""
        dump = cluster.model_dump(mode="json", by_alias=True)
        return {dotted(path): self._origin(path) for path, _ in leaves(dump)}

    def _origin(self, path: Path) -> Origin:
        derived = self._completed.derived
        for length in range(len(path), 0, -1):
            if path[:length] in derived:
                return Origin("derived", derived[path[:length]].reason)
        source = self._sources.get(path)
        if source is None or lookup(self._data, path) is None:
            return Origin("default")
        location = {"flag": f"--set {source.name}", "environment": source.name}.get(source.kind, str(source))
        return Origin(source.kind, location)


def _problem_of_error(error: ErrorDetails) -> Problem:
    path = error["loc"]
    return Problem(path[:-2] if path[-1:] == ("[key]",) else path, message(error))


def _is_miscounted(error: ErrorDetails) -> bool:
    """Return whether pydantic reports a list as too short only because it did not count refused items."""
    return error["type"] == "too_short" and len(error["input"]) >= int(error["ctx"]["min_length"])


def _overlaps(first: Path, second: Path) -> bool:
    """Return whether two paths are equal, or one is below the other."""
    return within(first, second) or within(second, first)


def _path_to_drop(error: ErrorDetails) -> Path:
    """Return the path of the value to drop because of an error."""
    path = error["loc"]
    return path[:-1] if path[-1:] == ("[key]",) or error["type"] == "missing" else path


def _remove_value(data: Mapping[str, object], path: Path, refused: set[Path]) -> Mapping[str, object]:
    """Return `data` without the value at `path`, and add the path to `refused`.

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
    """Return a copy of `data` with the value at `path` replaced, or without it if `value` is None."""
    copied, key = dict(data), str(path[0])
    if len(path) == 1 and value is None:
        copied.pop(key, None)
    elif path[0] in copied:
        copied[key] = _replace_value(copied[key], path[1:], value)
    return copied


def _replace_value(data: object, path: Path, value: object) -> object:
    """Return a copy of `data`, of whatever kind, with the value at `path` replaced."""
    if not path:
        return value
    if isinstance(data, Mapping):
        return _replace_in_mapping(data, path, value)
    if isinstance(data, (list, tuple)) and isinstance(path[0], int) and path[0] < len(data):
        return [_replace_value(item, path[1:], value) if index == path[0] else item for index, item in enumerate(data)]
    return data
