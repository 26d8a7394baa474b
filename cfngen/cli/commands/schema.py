"""`cfngen schema`: the JSON Schema of the cluster file."""

from __future__ import annotations

import click

from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.display.typography import print_verbatim


@click.command(
    "schema",
    short_help="Print the JSON Schema of the cluster file.",
    epilog=examples_epilog(
        "cfngen schema > cluster.schema.json  # as `cfngen init` does",
        "# The first line of cluster.yaml, for editors with the YAML language server:",
        "# yaml-language-server: $schema=cluster.schema.json",
    ),
)
def command() -> None:
    """Print the JSON Schema of the cluster file, for editors and for checks in your own pipeline."""
    from cfngen.cluster.documents.schema import schema_text

    print_verbatim(schema_text())
