"""Problems of a cluster file as data, and the error that holds all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cfngen.cluster.paths import Path, dotted
from cfngen.errors import CfngenError
from cfngen.masking import mask_secrets

NO_KEY: Path = ()
"""Path of a problem that is not about a key, but about the whole file, a variable or a flag."""


@dataclass(frozen=True)
class Source:
    """Where a value was written.

    Attributes:
        kind: `file`, `environment` or `flag`.
        name: the file as the user named it, the variable's name, or the whole `--set` text.
        line: line in the file, counted from 1; 0 if it is not known, and for variables and flags.
    """

    kind: str
    name: str
    line: int = 0

    def __str__(self) -> str:
        """Return the start of a message, e.g. `cluster.yaml:12` or `environment variable NUM_NODES`."""
        if self.kind == "environment":
            return f"environment variable {self.name}"
        if self.kind == "flag":
            return f"--set {self.name}"
        return f"{self.name}:{self.line}" if self.line else self.name


@dataclass(frozen=True)
class Problem:
    """One error or warning about the cluster file.

    Attributes:
        path: path of the key with the problem, or `NO_KEY`.
        message: what is wrong and, after a semicolon, what to do.
        related_paths: paths of other keys whose values the problem depends on. If one of these values is refused, the
            problem is not reported, since it may only be a consequence.
        source: where the value was written; None for a default, and before `ValidationResult.with_source` looks it up.
    """

    path: Path
    message: str
    related_paths: tuple[Path, ...] = ()
    source: Source | None = None

    def __str__(self) -> str:
        """Return one line such as `cluster.yaml:12: network.subnets[0].cidr: what is wrong; what to do`.

        What is secret in a value is left out.
        """
        parts = (str(self.source) if self.source else "", dotted(self.path), self.message)
        return mask_secrets(": ".join(part for part in parts if part))


class ClusterFileError(CfngenError):
    """The cluster file, the environment or the flags have errors.

    Attributes:
        problems: all problems: the file's by line, then the environment's, then the flags'.
    """

    code = "invalid-cluster-file"

    def __init__(self, problems: Iterable[Problem], *, hint: str = "") -> None:
        self.problems = ordered(problems)
        super().__init__("\n".join(map(str, self.problems)), hint=hint)


def ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems without duplicates: the file's by line, then the environment's, then the flags'.

    An environment variable that sets a key of several node groups is reported once.
    """
    unique_problems: dict[tuple[object, ...], Problem] = {}
    for problem in problems:
        source = problem.source
        if source is not None and source.kind == "environment":
            unique_problems.setdefault((source, problem.message), problem)
        else:
            unique_problems.setdefault((source, problem.path, problem.message), problem)
    return tuple(sorted(unique_problems.values(), key=_position_in_report))


def _position_in_report(problem: Problem) -> tuple[int, int]:
    """Return a sort key: the rank of the kind of source, and the line in the file. Without a source it comes first."""
    if problem.source is None:
        return (0, 0)
    rank = {"file": 1, "environment": 2, "flag": 3}
    return (rank[problem.source.kind], problem.source.line)
