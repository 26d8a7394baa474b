"""The cluster that a command works on: a cluster file or the default cluster, and overrides of its values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfngen.cli.display.terminal import show_warning
from cfngen.cli.input.options import Option, OptionGroup
from cfngen.cli.input.paths import PathArgument, StandardInput
from cfngen.hints import SuggestedOption

if TYPE_CHECKING:
    from cfngen.cluster.load import Loaded


DEFAULT_FILE = Path("cluster.yaml")
STDIN_ARGUMENT = Path("-")


@dataclass(frozen=True)
class Source:
    """Where a cluster comes from.

    Attributes:
        path: the cluster file; None means the built-in default cluster.
        environ: the environment variables to read kube-up's variables from.
        overrides: `key=value` texts of --set, which override everything else.
        is_explicit: whether the user chose this source with --cluster or --defaults.
    """

    path: Path | None
    environ: Mapping[str, str]
    overrides: tuple[str, ...]
    is_explicit: bool
    no_env: bool = False

    @property
    def options(self) -> tuple[SuggestedOption, ...]:
        """The command line options that choose this source, each with its value if it takes one."""
        options: list[SuggestedOption] = []
        if self.is_explicit and self.path is None:
            options.append(("--defaults",))
        elif self.is_explicit:
            options.append(("-f", str(STDIN_ARGUMENT if self.standard_input else self.path)))
        if self.no_env:
            options.append(("--no-env",))
        options += [("--set", override) for override in self.overrides]
        return tuple(options)

    @property
    def is_default(self) -> bool:
        """Whether nothing says anything about the cluster: neither a file, nor an option, nor a variable."""
        if self.path is not None or self.is_explicit or self.overrides:
            return False
        return self.read().cluster == replace(self, environ={}).read().cluster

    @property
    def description(self) -> str:
        """The source in words."""
        if self.path is not None:
            return str(self.path)
        reason = "" if self.is_explicit else f"; there is no {DEFAULT_FILE} here"
        return f"the built-in default cluster{reason}"

    @property
    def file(self) -> Path | None:
        """The cluster file, which can be written too; None for standard input and for the default cluster."""
        return None if self.standard_input else self.path

    @property
    def standard_input(self) -> bool:
        """Whether the cluster file is standard input."""
        return isinstance(self.path, StandardInput)

    def read(self) -> Loaded:
        """Read, complete and check the cluster.

        Raises:
            ClusterFileError: with all problems of the cluster file.
        """
        from cfngen.cluster.load import load

        return load(self.path, environ=self.environ, overrides=self.overrides)

    def load(self) -> Loaded:
        """Read, complete and check the cluster, and show its warnings; only the first call does so.

        Raises:
            ClusterFileError: with all problems of the cluster file.
        """
        return self._loaded

    def reread(self) -> Source:
        """Return the source with its file read anew; the warnings, which were shown before, are not shown again."""
        source = replace(self)
        vars(source)["_loaded"] = source.read()  # where `cached_property` looks for it
        return source

    @cached_property
    def _loaded(self) -> Loaded:
        # Standard input can be read only once, and a warning should be shown only once.
        loaded = self.read()
        for text in loaded.warnings:
            show_warning(text)
        return loaded


def find_source(file: Path | None, overrides: tuple[str, ...], *, no_env: bool, defaults: bool) -> Source:
    """Return the source that the options choose in the current directory and environment."""
    path = file
    if path is None and not defaults and os.path.lexists(DEFAULT_FILE):
        path = DEFAULT_FILE
    if path == STDIN_ARGUMENT:
        path = StandardInput(STDIN_ARGUMENT)
    environ = {} if no_env or defaults else dict(os.environ)
    is_explicit = defaults or file is not None
    return Source(path=path, environ=environ, overrides=overrides, is_explicit=is_explicit, no_env=no_env)


def _make_source(
    file: Path | tuple[Path, ...] | None, overrides: tuple[str, ...], no_env: bool, defaults: bool
) -> Source:
    """Return the source that the options choose, unless they contradict each other."""
    if isinstance(file, tuple):
        if len(file) > 1:
            path = click.get_current_context().command_path
            raise click.UsageError(f"{path} takes one cluster file; name one of them with -f.")
        [file] = file  # a folder, of which it is said that it is none
    if defaults and file is not None:
        raise click.UsageError("--defaults and --cluster cannot be used together; remove one of them.")
    return find_source(file, overrides, no_env=no_env, defaults=defaults)


def _one_or_several(
    context: click.Context, parameter: click.Parameter, files: tuple[Path, ...]
) -> Path | tuple[Path, ...] | None:
    """Return the only cluster file, or several files and folders, which some commands take; a click callback."""
    if len(files) == 1 and not files[0].is_dir():
        return files[0]
    return files or None


source_options = OptionGroup(
    "source",
    _make_source,
    Option(
        "--cluster",
        "-f",
        "file",
        metavar="FILE",
        type=PathArgument("give a file name, or - for standard input"),
        multiple=True,
        callback=_one_or_several,
        help=f"Cluster file; - is standard input. Default: ./{DEFAULT_FILE} if it exists, else kube-up's defaults.",
    ),
    Option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        help="Set one value, overriding file and environment, e.g. --set 'nodeGroups[0].maxSize=6'. Repeatable.",
    ),
    Option("--no-env", is_flag=True, help="Ignore kube-up's environment variables (NUM_NODES, …)."),
    Option(
        "--defaults", is_flag=True, help=f"Use kube-up's default cluster; ignore ./{DEFAULT_FILE} and the environment."
    ),
)
"""The options that choose the cluster; a command receives them as the argument `source`."""
