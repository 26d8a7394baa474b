"""`cfngen init`: write a commented cluster file."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import click

from cfngen.atomic_files import replace_file
from cfngen.bounded_files import parse_json, read_text
from cfngen.cli.display.terminal import echo, examples_epilog, show_warning
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.source import DEFAULT_FILE
from cfngen.cli.render.layout import table
from cfngen.cli.usage import did_you_mean
from cfngen.cluster.documents import examples
from cfngen.cluster.problems import ClusterFileError
from cfngen.errors import CfngenError

SCHEMA_FILE = "cluster.schema.json"
"""Name of the file with the JSON Schema, beside the cluster file."""


class FileExistsAlreadyError(CfngenError):
    """The file to write exists."""

    code = "file-exists"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} already exists and was not changed",
            hint="choose another name, e.g. `cfngen init second.yaml`, or move the old file away.",
        )
        self.path = path


class FileNotWrittenError(CfngenError):
    """The file cannot be written, and has been removed."""

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


_HELP = """Write a commented cluster file to start from: FILE, or cluster.yaml. An existing file is never overwritten.

It begins as one of the examples of cfngen. On a terminal you are asked which one, and for name, region, zones and who
may reach the API, unless an option is given; otherwise it is kube-up. These are the examples:

\b
{examples}

Beside it goes {schema}, by which editors with the YAML language server complete and check the file.
"""


def _complete_example(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in examples.names() if name.startswith(incomplete)]


def _check_example(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if value and value not in examples.names():
        advice = did_you_mean(value, examples.names()) or f"there are {', '.join(examples.names())}."
        raise click.BadParameter(f"there is no example {value!r}; {advice}")
    return value


def example_lines(*, numbered: bool = False) -> list[str]:
    """Return a line for each example, with its name and what it is for."""
    rows = [(name, examples.description_of(name)) for name in examples.names()]
    if numbered:
        return table((), [(str(number), *row) for number, row in enumerate(rows, start=1)])
    return table((), rows, sys.maxsize)  # for --help, whose lines have one width


@click.command(
    "init",
    help=_HELP.format(examples="\n".join(example_lines()), schema=SCHEMA_FILE),
    short_help="Write a commented cluster.yaml to start from.",
    epilog=examples_epilog(
        "cfngen init",
        "cfngen init --from production --name blue --region eu-west-1",
        "cfngen init hardened.yaml --from hardened --iam-path /kubernetes/",
        "cfngen init staging.yaml && cfngen templates -f staging.yaml --output-dir staging/",
    ),
)
@click.argument("file", type=PathArgument("give a name, or omit it for cluster.yaml"), default=DEFAULT_FILE)
@click.option(
    "--from",
    "example",
    metavar="NAME",
    default="",
    callback=_check_example,
    shell_complete=_complete_example,
    help=f"The example to begin with. Without a terminal to ask on: {examples.DEFAULT}.",
)
@click.option("--name", metavar="NAME", default="", help="Name of the cluster. Default: that of the example.")
@click.option("--region", metavar="REGION", default="", help="AWS region. Default: that of the example.")
@click.option(
    "--iam-path",
    metavar="PATH",
    default="",
    help="IAM path of roles and policies, such as /kubernetes/, which cannot change once they exist. Default: that of "
    "the example.",
)
def command(file: Path, example: str, name: str, region: str, iam_path: str) -> None:  # noqa: D103 - see the help above
    # Before any question.
    if file.name == SCHEMA_FILE:
        raise click.UsageError(f"{SCHEMA_FILE} is the name of the schema; choose another name for the cluster file.")
    if os.path.lexists(file):
        raise FileExistsAlreadyError(file)
    if not (example or name or region or iam_path) and sys.stdin and sys.stdin.isatty():
        text = ask_for_cluster_file()
    else:
        text = examples.without_placeholders(examples.text_of(example or examples.DEFAULT))
        text = examples.with_name(text, name) if name else text
        text = examples.with_iam_path(text, iam_path) if iam_path else text
        examples.cluster_of(text)
        if region:
            for instance_type, similar_type in examples.replaced_types(text, region).items():
                echo(f"{region} does not offer {instance_type}: the file has {similar_type} instead.")
            text = examples.with_region(text, region)
            _show_what_to_change(text, region)
    schema = file.with_name(SCHEMA_FILE)
    has_own_schema = _write_with_schema(file, text, schema)
    option = "" if file == DEFAULT_FILE else f" -f {file}"
    echo(f"Wrote {file}" + (f", and {schema} for editors." if has_own_schema else "."))
    echo(f"Next: edit it, and run `cfngen templates{option}`; `cfngen config{option}` shows every value in effect.")


def _show_what_to_change(text: str, region: str) -> None:
    """Say what is to be changed in a file for another region before templates can be made of it."""
    try:
        zones = [subnet.zone for subnet in examples.cluster_of(text).network.subnets]
    except ClusterFileError as error:
        for problem in error.problems:
            show_warning(f"change this in the file: {problem}")
    else:
        echo(f"Its zones are {', '.join(zones)}; not every region has these letters, so check them.")


def _write_with_schema(file: Path, text: str, schema: Path) -> bool:
    """Write a cluster file, and beside it the schema that its first line names; return False for the file alone.

    A schema of an earlier run is written again. Another file of that name stays, with a warning.
    """
    from cfngen.cluster.documents.schema import schema_text

    if os.path.lexists(schema) and not _is_schema(schema):
        show_warning(f"{schema} is not cfngen's and was not changed, so {file} does not name a schema for editors.")
        write_new_file(file, text)
        return False
    write_new_file(file, f"# yaml-language-server: $schema={schema.name}\n{text}")
    try:
        replace_file(schema, f"{schema_text()}\n")
    except OSError as failure:
        file.unlink()
        raise FileNotWrittenError(schema, failure) from failure
    except BaseException:
        file.unlink()
        raise
    return True


def _is_schema(path: Path) -> bool:
    from cfngen.cluster.documents.schema import SCHEMA_ID

    try:
        schema = parse_json(read_text(path))
    except (OSError, ValueError):
        return False
    return isinstance(schema, dict) and schema.get("$id") == SCHEMA_ID


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


def ask_for_cluster_file() -> str:
    """Ask on the terminal for an example and its most important values, and return the text of the cluster file.

    An answer that would make the file invalid is refused with the reason, and asked for again.

    Raises:
        click.Abort: the user has pressed Ctrl-C or ended the input.
    """
    echo("\n".join(["Start from which example?", *example_lines(numbered=True)]), err=True)
    text = _ask("Number or name", examples.names().index(examples.DEFAULT) + 1, _example_text)
    cluster = examples.cluster_of(text)
    text = _ask("Name of the cluster", cluster.name, lambda answer: examples.with_name(text, answer))
    text = _ask("AWS region", cluster.region, lambda answer: examples.with_region(text, answer))
    cluster = examples.cluster_of(text)
    zones = ", ".join(subnet.zone for subnet in cluster.network.subnets)
    text = _ask("Availability Zones", zones, lambda answer: examples.with_zones(text, _words(answer)))
    cidrs = examples.real_cidrs(cluster)
    echo(
        "Who may reach the Kubernetes API? Address ranges such as 203.0.113.7/32, with commas between them"
        + ("." if cidrs else "; press Enter to decide when you deploy."),
        err=True,
    )
    return _ask(
        "Address ranges", ", ".join(map(str, cidrs)), lambda answer: examples.with_allowed_cidrs(text, _ranges(answer))
    )


def _ask(question: str, default: object, text_with: Callable[[str], str]) -> str:
    """Ask until an answer gives a cluster file that is accepted, and return its text.

    Args:
        default: the answer that Enter stands for.
        text_with: returns the text of the cluster file with an answer.
    """

    def check(answer: str) -> str:
        try:
            text = text_with(answer.strip())
            examples.cluster_of(text)
        except ClusterFileError as error:
            # click shows a usage error, and asks again.
            raise click.UsageError(str(error)) from None
        return text

    text: str = click.prompt(question, default=str(default), show_default=default != "", value_proc=check, err=True)
    return text


def _example_text(answer: str) -> str:
    names = examples.names()
    if answer.isdecimal() and 1 <= int(answer) <= len(names):
        return examples.text_of(names[int(answer) - 1])
    if answer not in names:
        raise click.UsageError(f"enter a number from 1 to {len(names)}, or a name")
    return examples.text_of(answer)


def _ranges(answer: str) -> list[str]:
    """Return the ranges of an answer; an address stands for itself alone."""
    return [f"{word}/32" if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", word) else word for word in _words(answer)]


def _words(answer: str) -> list[str]:
    return re.findall(r"[^\s,]+", answer)
