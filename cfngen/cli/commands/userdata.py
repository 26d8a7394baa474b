"""`cfngen userdata`: the UserData of an instance, unpacked."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from cfngen.cli.display.terminal import echo, examples_epilog
from cfngen.cli.display.typography import print_verbatim
from cfngen.cli.input import shell_completion
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.source import Source, source_options
from cfngen.cli.render.layout import align_columns
from cfngen.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cfngen.userdata import UserData


@click.command(
    "userdata",
    short_help="Show what an instance will run, unpacked and readable.",
    epilog=examples_epilog(
        "cfngen userdata",
        "cfngen userdata master | less",
        "cfngen userdata master --file config.json",
        "cfngen userdata master --unpack master/",
        "cfngen userdata --size",
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
def command(role: str | None, source: Source, size_only: bool, file_name: str | None, directory: Path | None) -> None:
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
    if size_only:
        echo("\n".join(size_lines(selected)))
    elif directory is not None:
        from cfngen import output

        output.write(directory, {path: text.encode() for path, text in selected[0].instance_files.items()})
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
    elif file_name in userdata.files:
        print_verbatim(userdata.files[file_name].removesuffix("\n"))
    else:
        names = ", ".join(userdata.files)
        raise click.UsageError(f"no file {file_name!r} in the UserData of {userdata.role}; the files are {names}.")


def size_lines(userdata: Sequence[UserData]) -> list[str]:
    """Return a line for each role: the size of its UserData, EC2's limit, and the remaining bytes."""
    # The numbers are aligned first; then the lines with the numbers are aligned behind the roles.
    size_texts = align_columns(
        [(f"{role_data.size:,}", f"{role_data.limit - role_data.size:,}") for role_data in userdata],
        right_aligned=(0, 1),
        indent="",
        separator=f" of {userdata[0].limit:,} bytes, ",
    )
    return align_columns(
        [(role_data.role, f"{text} left") for role_data, text in zip(userdata, size_texts, strict=True)], indent=""
    )
