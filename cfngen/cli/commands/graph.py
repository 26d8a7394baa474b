"""`cfngen graph`: draw a cluster from its templates."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfngen.bounded_files import read_bytes
from cfngen.cli.display import pictures
from cfngen.cli.display.terminal import echo, examples_epilog
from cfngen.cli.display.typography import print_verbatim
from cfngen.cli.input.options import FileFormat
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.source import Source, source_options
from cfngen.cli.pipeline import generate
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfngen.cli.display.pictures import PictureFormat
    from cfngen.graph.drawing import View
    from cfngen.templates.document import Document

_TEMPLATE_SUFFIXES = (".json", ".yaml", ".yml", ".template")


class NoTemplatesError(CfngenError):
    """There are no templates to draw where --templates points."""

    code = "no-templates"


@click.command(
    "graph",
    short_help="Draw the cluster from its templates: SVG, HTML, Mermaid, DOT.",
    epilog=examples_epilog(
        "cfngen graph --output-file cluster.svg",
        "cfngen graph -f prod.yaml --output-file prod.html      one page: click a box to see its resource",
        "cfngen graph --show access --output-file access.svg    who may talk to whom, on which port",
        "cfngen graph --show iam --output-file roles.svg        what each role may do",
        "cfngen graph --output mermaid                          text that GitHub and GitLab draw",
        "cfngen graph --templates output/                       templates that somebody has made with cfngen",
        "cfngen graph --output dot | dot -Tpng > cluster.png",
    ),
)
@source_options
@click.option(
    "--templates",
    "templates_path",
    metavar="DIR",
    type=PathArgument("give a folder of templates, or one template"),
    help="Draw the templates in this folder, or this one template, instead of those of the cluster file.",
)
@click.option(
    "--show",
    "view",
    type=click.Choice(("network", "access", "iam", "all")),
    default="network",
    show_default=True,
    help="network: what lies where, and which way is routed where. access: security groups. iam: roles, and what holds "
    "data. all: everything in one picture.",
)
@click.option(
    "--output",
    "-o",
    "--format",
    "picture_format",
    type=FileFormat(pictures.FORMATS, "--output-file chooses the file"),
    help="Format of the picture. Default: what the name of --output-file says, else svg.",
)
@click.option(
    "--output-file",
    "output_path",
    metavar="FILE",
    type=PathArgument("give a file, or leave the option out for standard output"),
    help="Write the picture to this file, whose suffix says the format: .svg, .html, .mmd, .dot. Default: standard "
    "output, unless it is a terminal.",
)
def command(
    source: Source,
    templates_path: Path | None,
    view: View,
    picture_format: PictureFormat | None,
    output_path: Path | None,
) -> None:
    """Draw the cluster from its CloudFormation templates.

    The picture shows what the templates say and nothing else: the same templates give the same picture, byte for byte,
    so it can be committed beside them. Nothing is asked of AWS. Parts that exist already, such as your own VPC, are
    drawn as existing. To see what a deployment would change, use `cfngen plan --graph FILE`.
    """
    if output_path is not None:
        if str(output_path) in pictures.FORMATS:
            raise click.UsageError(f"--output-file is the file to write; the format {output_path} goes to --output.")
        pictures.require_writable(output_path)
        picture_format = picture_format or pictures.format_of(output_path)
    elif picture_format is None and sys.stdout.isatty():
        raise click.UsageError(
            "a terminal does not show SVG; --output-file cluster.svg writes a file, and --output mermaid prints text "
            "that GitHub and GitLab draw."
        )
    if templates_path is not None and (source.is_explicit or source.overrides):
        raise click.UsageError("--templates draws templates as they are; leave out --cluster, --defaults and --set.")
    documents = generate(source).documents if templates_path is None else _read_templates(templates_path)
    from cfngen.graph.drawing import draw_documents

    text = pictures.render(draw_documents(documents, view), picture_format or "svg")
    if output_path is None:
        print_verbatim(text.removesuffix("\n"))
        return
    pictures.write(output_path, text)
    echo(f"{output_path}: written.")


def _read_templates(path: Path) -> Sequence[Document]:
    """Read the templates in a folder, or one template."""
    from cfngen.cli.input.template_file import read_template_files

    if not path.exists():
        raise NoTemplatesError(
            f"{path} does not exist", hint="give the folder into which `cfngen templates` has written, e.g. output."
        )
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if _may_be_template(file))
    if not files:
        raise NoTemplatesError(
            f"there is no template in {path}: no JSON or YAML file has Resources",
            hint="give the folder into which `cfngen templates` has written, e.g. output.",
        )
    return [template.document for template in read_template_files(files)]


def _may_be_template(path: Path) -> bool:
    """Return whether a file of a folder may be a template; others, such as a cluster file, may lie beside them."""
    return path.suffix.lower() in _TEMPLATE_SUFFIXES and path.is_file() and b"Resources" in read_bytes(path)
