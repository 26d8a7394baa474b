"""`cfngen init`: a cluster file to start from."""

from __future__ import annotations

from pathlib import Path

import click

from cfngen.cli.source import DEFAULT_FILE
from cfngen.cli.terminal import examples
from cfngen.errors import CfngenError


class FileExistsAlreadyError(CfngenError):
    """The file to write exists.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} exists already and is left as it is",
            hint="choose another name, e.g. `cfngen init second.yaml`, or move the old file away.",
        )
        self.path = path


@click.command(
    "init",
    short_help="Write a commented cluster.yaml to start from.",
    epilog=examples(
        "cfngen init",
        "cfngen init staging.yaml && cfngen templates -f staging.yaml --output-dir staging/",
    ),
)
@click.argument("file", type=click.Path(path_type=Path), default=DEFAULT_FILE)
def command(file: Path) -> None:
    """Write a commented cluster file to start from: FILE, or cluster.yaml.

    The file describes kube-up's default cluster, with the values that people change most explained beside them. An
    existing file is never overwritten.
    """
    from cfngen.cluster.starter import TEXT

    write_new(file, TEXT)
    option = "" if file == DEFAULT_FILE else f" -f {file}"
    click.echo(f"Wrote {file}: kube-up's default cluster, with comments.")
    click.echo(
        f"Next: edit it, and run `cfngen templates{option}`; `cfngen config{option}` shows every value in effect."
    )


def write_new(path: Path, text: str) -> None:
    """Write a file that must not exist yet, whole or not at all.

    Raises:
        FileExistsAlreadyError: something of that name exists.
        OSError: the directory does not exist, cannot be written, is full, …
    """
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        raise FileExistsAlreadyError(path) from None
    try:
        with file:
            file.write(text)
    except BaseException:
        path.unlink()
        raise
