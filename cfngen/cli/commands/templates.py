"""`cfngen templates`: generate, lint and write the templates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cfngen.cli import shell_completion
from cfngen.cli.commands.userdata import size_lines
from cfngen.cli.exit_codes import STALE, SUCCESS
from cfngen.cli.paths import PathArgument
from cfngen.cli.pipeline import GeneratedTemplates, generate, lint_or_fail, no_cache_option
from cfngen.cli.source import Source, source_options
from cfngen.cli.suggested_commands import complete_commands
from cfngen.cli.terminal import align_columns, examples_epilog, show_warning
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cfngen.output import Difference, WriteReport

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # generic since click 8.2

STANDALONE_TEMPLATE = "standalone"


class TemplateFormat(_Choice):
    """The format of templates. The error for another value names --output-dir: other tools use -o for a directory."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Convert as click does, but name the option for the directory in the error."""
        if value not in self.choices:
            forms = ", ".join(self.choices)
            self.fail(f"{value!r} is not one of {forms}; --output-dir (-d) chooses the directory.", param, ctx)
        return super().convert(value, param, ctx)


class TooLargeForOneTemplateError(CfngenError):
    """The cluster is too large for one template."""

    code = "standalone-too-large"

    def __init__(self, file_format: str) -> None:
        super().__init__(
            f"{STANDALONE_TEMPLATE} is not generated: "
            "the cluster exceeds the limits of one template (1 MB, 500 resources)",
            hint=f"deploy the nested stacks with cluster.{file_format}",
        )


@click.command(
    "templates",
    short_help="Generate the templates, lint them, write them.",
    epilog=examples_epilog(
        "cfngen templates",
        "cfngen templates -f prod.yaml -d prod/",
        "cfngen templates --set kubernetesVersion=1.35 --set 'nodeGroups[0].maxSize=6'",
        "cfngen templates --only standalone --output yaml",
        "cfngen templates --check        in a pipeline: fail unless output/ is up to date",
    ),
)
@source_options
@click.option(
    "--output-dir",
    "-d",
    "directory",
    type=PathArgument("give a directory, or . for the current one", directories=True),
    default=Path("output"),
    show_default=True,
    help="Output directory; created if it does not exist.",
)
@click.option(
    "--only",
    "stack_names",
    metavar="STACK",
    multiple=True,
    shell_complete=shell_completion.stacks,
    help="Write only this stack's template. Repeatable.",
)
@click.option(
    "--output",
    "-o",
    "--format",
    "style",
    type=TemplateFormat(("json", "yaml")),
    default="json",
    show_default=True,
    help="Format of the templates.",
)
@click.option("--check", is_flag=True, help="Write nothing; exit with 3 if the directory is not up to date.")
@no_cache_option
@click.pass_context
def command(
    context: click.Context,
    *,
    source: Source,
    directory: Path,
    stack_names: tuple[str, ...],
    style: Literal["json", "yaml"],
    check: bool,
    cache: bool,
) -> None:
    """Generate the cluster's CloudFormation templates, lint them, and write them.

    There is one template for each nested stack, one for the root stack (`cluster`), and `standalone`, which contains
    everything; userdata/ contains the programs that the instances run. Nothing is written unless every template passes
    lint. Files of an earlier run that are no longer generated are removed; files that cfngen did not write are never
    touched.
    """
    from cfngen import output

    generated = generate(source)
    if STANDALONE_TEMPLATE not in generated.stacks:
        if STANDALONE_TEMPLATE in stack_names:
            raise TooLargeForOneTemplateError(style)
        if not stack_names:
            error = TooLargeForOneTemplateError(style)
            show_warning(f"{error}; {error.hint}")
    for name in stack_names:
        if name not in generated.stacks:
            raise click.UsageError(f"no stack {name!r} in this cluster; the stacks are {', '.join(generated.stacks)}.")
    lint_or_fail(generated.documents, region=generated.cluster.region, cache=cache)

    files: Mapping[str, bytes] = output.render(generated.documents, generated.userdata, style)
    if stack_names:
        files = {path: files[path] for path in (f"{name}.{style}" for name in stack_names)}
    if check:
        differences = output.differences(directory, files)
        _print_check(differences, files, directory)
        context.exit(STALE if differences else SUCCESS)
    report = output.write(directory, files)
    _print_report(source, generated, files, report, directory, style)


def _print_check(differences: Sequence[Difference], files: Mapping[str, bytes], directory: Path) -> None:
    """Print whether the directory is up to date, and which files differ."""
    if not differences:
        click.echo(f"{directory} is up to date: {pluralize(len(files), 'file')}.")
        return
    for difference in differences:
        click.echo(str(difference))
    click.echo()
    click.echo(
        f"{directory} is not up to date: {pluralize(len(differences), 'file')} would change. Nothing was written."
    )


def _print_report(
    source: Source,
    generated: GeneratedTemplates,
    files: Mapping[str, bytes],
    report: WriteReport,
    directory: Path,
    style: str,
) -> None:
    """Print what was generated, its size, and the next command."""
    cluster = generated.cluster
    click.echo(f"Cluster {cluster.name} in {cluster.region}, Kubernetes {cluster.kubernetes_version}")
    click.echo(f"from {source.description}")
    if generated.variables:
        click.echo(f"with {', '.join(generated.variables)} from the environment")
    click.echo()
    rows = [("template", "resources", "bytes", "")]
    for document in generated.documents:
        path = f"{document.name}.{style}"
        if path in files:
            outcome = "written" if path in report.written else "unchanged"
            rows.append((path, str(len(document.body["Resources"])), f"{len(files[path]):,}", outcome))
    click.echo("\n".join(align_columns(rows, right_aligned=(1, 2))))
    click.echo()
    click.echo("\n".join(f"  UserData of {line}" for line in size_lines(generated.userdata)))
    click.echo()
    click.echo(f"{pluralize(len(generated.documents), 'template')} linted, nothing found.")
    changes = f"{pluralize(len(report.written), 'file')} written, {len(report.unchanged)} unchanged"
    click.echo(f"{directory}: {changes}, {len(report.removed)} removed.")
    next_step = complete_commands(
        CommandText(
            "Next: ",
            suggest("plan"),
            " shows what would change in your account, ",
            suggest("deploy"),
            " makes the changes.",
        ),
        source.options,
    )
    if f"{STANDALONE_TEMPLATE}.{style}" in files:
        click.echo(f"\n{next_step}")
        click.echo(f"Or upload {directory / f'{STANDALONE_TEMPLATE}.{style}'} in the CloudFormation console.")
    elif "README.md" in files:
        click.echo(f"\n{next_step}")
        click.echo(
            f"Or copy the templates of {directory} into an S3 bucket, and create a stack from cluster.{style} there:"
        )
        click.echo("docs/console.md has the steps.")
    if "README.md" in files:
        click.echo(f"{directory / 'README.md'} describes each file.")
