"""What becomes of given values: a cluster with the origins of its values, or everything that is wrong with them."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from cfngen.cluster import checks
from cfngen.cluster.defaults import complete
from cfngen.cluster.error_messages import message
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, dotted, leaves, lookup, within
from cfngen.cluster.problems import ClusterFileError, Problem, Source

# Each round drops the refused values and looks at what is left, until nothing is refused.
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
    """Validates given values.

    Args:
        data: the values, without keys that have none.
        file: the file they come from, for problems that have no line.
        sources: where each was written, by path.
    """

    def __init__(
        self, data: Mapping[str, Any], *, file: Source | None = None, sources: Mapping[Path, Source] | None = None
    ) -> None:
        self._given = data
        self._file = file
        self._sources = sources or {}
        self._refused: set[Path] = set()
        self._completed = complete(data)

    def cluster(self, problems: Iterable[Problem] = ()) -> Cluster:
        """Return the cluster.

        Args:
            problems: what is wrong already.

        Raises:
            ClusterFileError: with everything that is wrong: refused values, and what the cross-checks find in the rest.
        """
        problems = list(problems)
        cluster = self._validated(problems)
        if cluster is not None:
            problems += self._causes(checks.problems(cluster))
        if problems or cluster is None:
            located = [self.located(problem) for problem in problems]
            kinds = {problem.source.kind for problem in located if problem.source}
            raise ClusterFileError(located, hint=_ENVIRONMENT_HINT if "environment" in kinds else "")
        return cluster

    def _validated(self, problems: list[Problem]) -> Cluster | None:
        """Return the cluster of the values that are accepted, and add to `problems` those that are not."""
        data = copy.deepcopy(self._completed.data)
        accepted: Any = self._given
        for _ in range(_MAX_ROUNDS):
            try:
                return Cluster.model_validate(data)
            except ValidationError as error:
                errors = [details for details in error.errors(include_url=False) if not _is_miscounted(details)]
            refused_now = {tuple(details["loc"]) for details in errors}
            problems += [
                _refusal(details)
                for details in errors
                if not self._dropped(details) and not self._follows(tuple(details["loc"]), refused_now)
            ]
            for details in errors:
                accepted = _without(accepted, _path_to_drop(details), self._refused)
            data = complete(accepted).data
        return None

    def _dropped(self, error: Mapping[str, Any]) -> bool:
        """Say whether a value is missing only because it, or the section that it stands in, was refused before."""
        path = tuple(error["loc"])
        return error["type"] == "missing" and not self._refused.isdisjoint((path, path[:-1]))

    def _follows(self, path: Path, refused: set[Path]) -> bool:
        """Say whether the value at a path was derived from one that is refused."""
        source = self._derivation_source(path)
        return bool(source) and any(_overlaps(source, refused_path) for refused_path in (*refused, *self._refused))

    def _causes(self, problems: Iterable[Problem]) -> list[Problem]:
        """Leave out problems that follow from a refused value or from what an earlier one says."""
        causes: list[Problem] = []
        for problem in problems:
            wrong = {*self._refused, *(cause.path for cause in causes)}
            sources = [self._derivation_source(path) for path in (problem.path, *problem.touches)]
            depends_on = [*problem.touches, *filter(None, sources)]
            follows = any(_overlaps(path, cause) for path in depends_on for cause in wrong)
            if not follows and not any(_overlaps(problem.path, refused) for refused in self._refused):
                causes.append(problem)
        return causes

    def _derivation_source(self, path: Path) -> Path:
        for length in range(len(path), 0, -1):
            derivation = self._completed.derived.get(path[:length])
            if derivation:
                return derivation.source
        return ()

    def located(self, problem: Problem) -> Problem:
        """Return the problem with the place where its value, or what that follows from, was written."""
        if problem.source:
            return problem
        return Problem(problem.path, problem.message, problem.touches, self._source(problem.path))

    def _source(self, path: Path) -> Source | None:
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
                return Origin("derived", derived[path[:length]].why)
        source = self._sources.get(path)
        if source is None or lookup(self._given, path) is None:
            return Origin("default")
        location = {"flag": f"--set {source.name}", "environment": source.name}.get(source.kind, str(source))
        return Origin(source.kind, location)


def _refusal(error: Mapping[str, Any]) -> Problem:
    path = tuple(error["loc"])
    return Problem(path[:-2] if path[-1:] == ("[key]",) else path, message(error))


def _is_miscounted(error: Mapping[str, Any]) -> bool:
    """Say whether pydantic calls a list too short because it did not count the items that it refused."""
    return error["type"] == "too_short" and len(error["input"]) >= int(error["ctx"]["min_length"])


def _overlaps(one: Path, other: Path) -> bool:
    return within(one, other) or within(other, one)


def _path_to_drop(error: Mapping[str, Any]) -> Path:
    """The path to drop so that the refused value is gone."""
    path = tuple(error["loc"])
    return path[:-1] if path[-1:] == ("[key]",) or error["type"] == "missing" else path


def _without(data: Any, path: Path, refused: set[Path]) -> Any:
    """Return `data` without the value at `path`, and add the path to `refused`.

    An item of a list of sections becomes an empty section, so that the others keep their positions; a list of plain
    values goes as a whole.
    """
    if not path:
        return {}
    parent = lookup(data, path[:-1])
    if isinstance(path[-1], int) and isinstance(parent, list):
        if not any(isinstance(item, dict) for item in parent):
            return _without(data, path[:-1], refused)
        refused.add(path)
        return _replaced(data, path, {})
    refused.add(path)
    return _replaced(data, path, None)


def _replaced(data: Any, path: Path, value: Any) -> Any:
    """Return a copy of `data` with the value at `path` replaced, or without it if `value` is None."""
    if not path:
        return value
    if isinstance(data, Mapping):
        copied = dict(data)
        if len(path) == 1 and value is None:
            copied.pop(str(path[0]), None)
        elif path[0] in copied:
            copied[str(path[0])] = _replaced(copied[str(path[0])], path[1:], value)
        return copied
    if isinstance(data, (list, tuple)) and isinstance(path[0], int) and path[0] < len(data):
        return [_replaced(item, path[1:], value) if index == path[0] else item for index, item in enumerate(data)]
    return data
