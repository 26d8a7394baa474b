"""`cfngen kind`: a cluster on this machine that is like the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cfngen.cli.display.terminal import echo, examples_epilog
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.source import Source, source_options
from cfngen.text import pluralize

if TYPE_CHECKING:
    from pathlib import Path


@click.command(
    "kind",
    short_help="Write what makes a like cluster on your machine, with kind.",
    epilog=examples_epilog(
        "cfngen kind local/",
        "cfngen kind local/ -f prod.yaml",
        "sh local/create.sh                                creates it: docker, kind, kubectl, helm and curl are needed",
    ),
)
@click.argument("directory", type=PathArgument("give a directory", directories=True))
@source_options
def command(directory: Path, source: Source) -> None:
    """Write kind's configuration, and a script, to DIRECTORY: a cluster in containers, like the one in AWS.

    It has the same minor version of Kubernetes, ranges of pods and services, DNS domain, flags, audit policy and
    feature gates, a node for each node group with its labels and taints, and the same add-ons at the same versions with
    your values, but for those that need AWS. README.md there says what is left out, and what takes its place. Nothing
    is created and AWS is not asked.
    """
    cluster = source.load().cluster
    from cfngen.kind import folder_files
    from cfngen.output import README, marked, to_yaml, write

    texts = {
        path: content if isinstance(content, str) else to_yaml(content)
        for path, content in folder_files(cluster).items()
    }
    readme = texts.pop(README)
    contents = {path: text.encode() for path, text in texts.items()}
    report = write(directory, {**contents, README: marked(readme, texts)})
    files = pluralize(len(report.written), "file")
    echo(f"{directory}: {files} written, {len(report.unchanged)} unchanged. README.md says what is different.")
    echo(f"To create the cluster: sh {directory / 'create.sh'}")
