"""Several cluster files on one command line: which files a folder stands for, and the clusters that they describe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfngen.cli.input.source import STDIN_ARGUMENT, Source, find_source
from cfngen.cli.input.target import Target
from cfngen.errors import CfngenError
from cfngen.text import join_and

if TYPE_CHECKING:
    from cfngen.cluster.model import Cluster


class EmptyFolderError(CfngenError):
    """A folder that was given in place of cluster files has none."""

    code = "no-cluster-files"


class SameStackError(CfngenError):
    """Two of several cluster files describe clusters that would have the same stack."""

    code = "same-stack"


@dataclass(frozen=True)
class ClusterFile:
    """One of several cluster files.

    Attributes:
        source: the file with the overrides of the command line; it is loaded, and its warnings are not shown.
        label: the cluster's name, by which output names it; with the region, if clusters of one name are in several.
    """

    path: Path
    source: Source
    label: str

    @property
    def cluster(self) -> Cluster:
        """The cluster that the file describes."""
        return self.source.load().cluster


def read_cluster_files(paths: Sequence[Path], overrides: tuple[str, ...], *, no_env: bool) -> tuple[ClusterFile, ...]:
    """Read the cluster files that several paths name, in this order; a file that is named twice counts once.

    Raises:
        EmptyFolderError: a folder has no cluster file.
        ClusterFileError: with all problems of all files.
        SameStackError: two clusters would have the same stack.
    """
    from cfngen.cluster.problems import ClusterFileError, Problem

    sources: list[Source] = []
    problems: list[Problem] = []
    for path in {path.resolve(): path for path in _expanded(paths)}.values():
        try:
            sources.append(find_source(path, overrides, no_env=no_env, defaults=False).reread())
        except ClusterFileError as error:
            problems += error.problems
    if problems:
        raise ClusterFileError(problems)
    _check_stacks(sources)
    clusters = [source.load().cluster for source in sources]
    in_regions = len({cluster.name for cluster in clusters}) < len(clusters)
    return tuple(
        ClusterFile(Path(str(source.path)), source, f"{cluster.name}-{cluster.region}" if in_regions else cluster.name)
        for source, cluster in zip(sources, clusters, strict=True)
    )


def _expanded(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the cluster files that paths of files and folders stand for.

    Of a folder these are its files whose names end in .yaml and do not begin with a dot, without those that others of
    them extend.
    """
    for path in paths:
        if path == STDIN_ARGUMENT:
            raise click.UsageError("- is standard input, which is one cluster file; name files, or a folder.")
        if not path.is_dir():
            yield path
            continue
        files = [file for file in sorted(path.glob("*.yaml")) if file.is_file() and not file.name.startswith(".")]
        extended = {_extended_by(file) for file in files}
        if not files:
            raise EmptyFolderError(
                f"the folder {path} has no cluster files: no name in it ends in .yaml",
                hint="name the folder that has them; files in folders below it do not count.",
            )
        yield from (file for file in files if file.resolve() not in extended)


def _extended_by(file: Path) -> Path | None:
    """Return the file that a cluster file extends, which has no cluster of its own; None without one."""
    from cfngen.cluster.file import yaml_file
    from cfngen.cluster.file.extended_file import extended_path
    from cfngen.cluster.problems import ClusterFileError

    try:
        path = extended_path(file, yaml_file.read(file).data)
    except ClusterFileError:
        return None  # who loads it says what is wrong
    return path.resolve() if path else None


def _check_stacks(sources: Sequence[Source]) -> None:
    path_by_stack: dict[tuple[str, str], Path | None] = {}
    for source in sources:
        target = Target(source)
        stack = (target.stack_name, target.region)
        if stack in path_by_stack:
            files = join_and([str(path_by_stack[stack]), str(source.path)])
            raise SameStackError(
                f"{files} describe clusters with the same stack {stack[0]} in {stack[1]}",
                hint="give each cluster a name of its own, or another region.",
            )
        path_by_stack[stack] = source.path
