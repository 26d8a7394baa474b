"""`cfngen userdata`: the UserData of an instance, unpacked."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import click

from cfngen.cli.display.messages import show_message
from cfngen.cli.display.terminal import echo, examples_epilog
from cfngen.cli.display.typography import print_verbatim
from cfngen.cli.input import shell_completion
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.source import Source, source_options
from cfngen.cli.input.target import output_option
from cfngen.cli.render.layout import table
from cfngen.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cfngen.userdata import UserData


@dataclass(frozen=True)
class RoleUserData:
    """The UserData of the instances of a role.

    Attributes:
        role: `master` or `nodes-<group>`.
        size: bytes of the UserData at most, before base64.
        limit: bytes that EC2 allows.
        files: texts by path: the loader, its configuration, and the boot program; empty with --size, and
            where no role is given.
    """

    kind: ClassVar[str] = "userData"

    role: str
    size: int
    limit: int
    files: Mapping[str, str]


@click.command(
    "userdata",
    short_help="Show what an instance will run, unpacked and readable.",
    epilog=examples_epilog(
        "cfngen userdata",
        "cfngen userdata master | less",
        "cfngen userdata master --file config.json",
        "cfngen userdata master --unpack master/",
        "cfngen userdata --size",
        "cfngen userdata master --output json | jq -r '.files[\"config.json\"]'",
    ),
)
@click.argument("role", required=False, shell_complete=shell_completion.roles)
@source_options
@click.option(
    "--size", "size_only", is_flag=True, help="Show only the size in bytes, EC2's limit and the remaining bytes."
)
@click.option("--file", "file_name", metavar="NAME", help="Show only this file, without headings, e.g. config.json.")
@click.option(
    "--unpack",
    "directory",
    type=PathArgument("give a directory, or . for the current one", directories=True),
    help="Write all files of the program into this new directory, as instances have them in /opt/cfngen.",
)
@output_option
def command(
    role: str | None, source: Source, file_name: str | None, directory: Path | None, output: str, *, size_only: bool
) -> None:
    """Show what instances of ROLE will run at boot: the loader, its configuration, and every module of the program.

    ROLE is `master` or `nodes-<group>`; without ROLE the roles are listed. In a template the same files are packed into
    the launch template's UserData; CloudFormation replaces each ${Name}.
    """
    given = {"--file": file_name is not None, "--size": size_only, "--unpack": directory is not None}
    options = [option for option, is_given in given.items() if is_given]
    if len(options) > 1:
        raise click.UsageError(f"{' and '.join(options)} cannot be used together; remove {len(options) - 1} of them.")
    value = file_name if directory is None else str(directory)
    if value is not None and role is None:
        raise click.UsageError(f"specify a role: `cfngen userdata master {options[0]} {shlex.quote(value)}`")
    from cfngen.userdata import roles

    all_userdata = roles(source.load().cluster)
    selected = [userdata for userdata in all_userdata if role in (None, userdata.role)]
    if not selected:
        raise click.UsageError(
            f"no role {role!r} in this cluster; the roles are {', '.join(userdata.role for userdata in all_userdata)}."
        )
    if file_name is not None and file_name not in selected[0].files:
        names = ", ".join(selected[0].files)
        raise click.UsageError(f"no file {file_name!r} in the UserData of {role}; the files are {names}.")
    if directory is not None:
        from cfngen.output import write

        write(directory, {path: text.encode() for path, text in selected[0].instance_files.items()})
    if output == "json":
        for userdata in selected:
            files = {
                path: text
                for path, text in userdata.files.items()
                if role and not size_only and file_name in (None, path)
            }
            show_message(RoleUserData(userdata.role, userdata.size, userdata.limit, files), json=True)
    elif size_only:
        echo("\n".join(size_lines([(userdata.role, userdata.size, userdata.limit) for userdata in selected])))
    elif directory is not None:
        echo(f"{directory}: {pluralize(len(selected[0].instance_files), 'file')} of the role {role}.")
    elif role is None:
        echo("\n".join(userdata.role for userdata in selected))
    else:
        _print_files(selected[0], file_name)


def _print_files(userdata: UserData, file_name: str | None) -> None:
    if file_name is None:
        for path, text in userdata.files.items():
            click.secho(f"==> {path} <==", bold=True)
            echo(text.rstrip("\n") + "\n", folds=False)
    else:
        print_verbatim(userdata.files[file_name].removesuffix("\n"))


def size_lines(sizes: Sequence[tuple[str, int, int]]) -> list[str]:
    """Return a line for each role, the size of its UserData and EC2's limit, with the remaining bytes."""
    rows = [(role, f"{size:,} of {limit:,} bytes", f"{limit - size:,} left") for role, size, limit in sizes]
    return table((), rows, right_aligned=(1, 2), indent="")
