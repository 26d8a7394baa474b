"""`cfngen init`: write a commented cluster file."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from cfngen.cli.paths import PathArgument
from cfngen.cli.source import DEFAULT_FILE
from cfngen.cli.terminal import examples_epilog
from cfngen.errors import CfngenError


class FileExistsAlreadyError(CfngenError):
    """The file to write exists.

    Attributes:
        path: the file.
    """

    code = "file-exists"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} already exists and was not changed",
            hint="choose another name, e.g. `cfngen init second.yaml`, or move the old file away.",
        )
        self.path = path


class FileNotWrittenError(CfngenError):
    """The file cannot be written, and has been removed.

    Attributes:
        path: the file.
    """

    code = "file-not-written"

    def __init__(self, path: Path, failure: OSError) -> None:
        parent = path.parent
        reason = (failure.strerror or str(failure)).lower()
        hint = "choose another directory, e.g. `cfngen init ~/cluster.yaml`"
        if isinstance(failure, FileNotFoundError):
            reason = f"there is no directory {parent}"
            hint = f"create it first: `mkdir -p {shlex.quote(str(parent))}`"
        elif isinstance(failure, NotADirectoryError):
            reason = f"a part of {parent} is a file"
        elif isinstance(failure, PermissionError):
            reason = f"you have no permission to write to {'this directory' if parent == Path() else parent}"
            hint += ", or give yourself permission to write"
        super().__init__(f"{path} cannot be written: {reason}", hint=f"{hint}.")
        self.path = path


@click.command(
    "init",
    short_help="Write a commented cluster.yaml to start from.",
    epilog=examples_epilog(
        "cfngen init",
        "cfngen init staging.yaml && cfngen templates -f staging.yaml --output-dir staging/",
    ),
)
@click.argument("file", type=PathArgument("give a name, or omit it for cluster.yaml"), default=DEFAULT_FILE)
def command(file: Path) -> None:
    """Write a commented cluster file to start from: FILE, or cluster.yaml.

    The file describes kube-up's default cluster, and explains the values that are changed most often. An existing file
    is never overwritten.
    """
    from cfngen.cluster.starter import STARTER_FILE

    write_new_file(file, STARTER_FILE)
    option = "" if file == DEFAULT_FILE else f" -f {file}"
    click.echo(f"Wrote {file}: kube-up's default cluster, with comments.")
    click.echo(
        f"Next: edit it, and run `cfngen templates{option}`; `cfngen config{option}` shows every value in effect."
    )


def write_new_file(path: Path, text: str) -> None:
    """Write a file that does not exist yet; remove it again if it cannot be written completely.

    Raises:
        FileExistsAlreadyError: the path exists.
        FileNotWrittenError: the directory does not exist or cannot be written, the disk is full, …
    """
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        raise FileExistsAlreadyError(path) from None
    except OSError as failure:
        raise FileNotWrittenError(path, failure) from failure
    try:
        with file:
            file.write(text)
    except OSError as failure:
        path.unlink()
        raise FileNotWrittenError(path, failure) from failure
    except BaseException:
        path.unlink()
        raise
