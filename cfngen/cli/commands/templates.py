"""`cfngen templates`: generate, lint and write the templates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cfngen.cli import shell_completion
from cfngen.cli.commands.userdata import size_lines
from cfngen.cli.exit_codes import OUTPUT_IS_STALE, SUCCESS
from cfngen.cli.paths import PathArgument
from cfngen.cli.pipeline import GeneratedTemplates, generate, lint_or_fail, no_cache_option
from cfngen.cli.render.layout import align_columns
from cfngen.cli.source import Source, source_options
from cfngen.cli.suggested_commands import complete_commands
from cfngen.cli.terminal import examples_epilog, show_warning
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cfngen.output import Difference, WriteReport

    _ChoiceOfTexts = click.Choice[str]
else:
    _ChoiceOfTexts = click.Choice  # generic since click 8.2

STANDALONE_TEMPLATE = "standalone"
"""Name of the template that contains everything; its file is standalone.json or standalone.yaml."""


class TemplateFormat(_ChoiceOfTexts):
    """A click parameter type for the file format of templates; the error for another value names --output-dir.

    Other tools use -o for a directory, so a user may mean --output-dir.
    """

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Convert as click does, but name the option for the directory in the error."""
        if value not in self.choices:
            formats = ", ".join(self.choices)
            self.fail(f"{value!r} is not one of {formats}; --output-dir (-d) chooses the directory.", param, ctx)
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
    "file_format",
    type=TemplateFormat(("json", "yaml")),
    default="json",
    show_default=True,
    help="Format of the templates.",
)
@click.option(
    "--check", "check_only", is_flag=True, help="Write nothing; exit with 3 if the directory is not up to date."
)
@no_cache_option
@click.pass_context
def command(
    context: click.Context,
    *,
    source: Source,
    directory: Path,
    stack_names: tuple[str, ...],
    file_format: Literal["json", "yaml"],
    check_only: bool,
    use_lint_cache: bool,
) -> None:
    """Generate the cluster's CloudFormation templates, lint them, and write them.

    There is one template for each nested stack, one for the root stack (`cluster`), and `standalone`, which contains
    everything; userdata/ shows what the instances get at boot. Nothing is written unless every template passes lint.
    Files of an earlier run that are no longer generated are removed; files that cfngen did not write are never
    touched.
    """
    from cfngen import output

    generated = generate(source)
    if STANDALONE_TEMPLATE not in generated.template_names:
        if STANDALONE_TEMPLATE in stack_names:
            raise TooLargeForOneTemplateError(file_format)
        # Without --only, the other templates are still written.
        if not stack_names:
            error = TooLargeForOneTemplateError(file_format)
            show_warning(f"{error}; {error.hint}")
    for name in stack_names:
        if name not in generated.template_names:
            known_names = ", ".join(generated.template_names)
            raise click.UsageError(f"no stack {name!r} in this cluster; the stacks are {known_names}.")
    lint_or_fail(generated.documents, region=generated.cluster.region, use_cache=use_lint_cache)

    files: Mapping[str, bytes] = output.render(generated.documents, generated.userdata, file_format)
    if stack_names:
        paths = [f"{name}.{file_format}" for name in stack_names]
        files = {path: files[path] for path in paths}
    if check_only:
        differences = output.differences(directory, files)
        _print_differences(differences, files, directory)
        context.exit(OUTPUT_IS_STALE if differences else SUCCESS)
    report = output.write(directory, files)
    _print_report(source, generated, files, report, directory, file_format)


def _print_differences(differences: Sequence[Difference], files: Mapping[str, bytes], directory: Path) -> None:
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
    file_format: str,
) -> None:
    """Print what was generated, its size, and the next command."""
    cluster = generated.cluster
    click.echo(f"Cluster {cluster.name} in {cluster.region}, Kubernetes {cluster.kubernetes_version}")
    click.echo(f"from {source.description}")
    if generated.environment_variables:
        click.echo(f"with {', '.join(generated.environment_variables)} from the environment")
    plugin = source.load().origins["network.plugin"]
    if plugin.kind == "derived":
        click.echo(
            f"network.plugin is {generated.cluster.network.plugin} ({plugin.where}), for as long as the cluster "
            "exists; a cluster that has vpc-routes keeps it with `plugin: vpc-routes` below `network`"
        )
    click.echo()
    # The last column says whether the file was written.
    rows = [("template", "resources", "bytes", "")]
    for document in generated.documents:
        path = f"{document.name}.{file_format}"
        if path in files:
            outcome = "written" if path in report.written else "unchanged"
            rows.append((path, str(len(document.body["Resources"])), f"{len(files[path]):,}", outcome))
    number_columns = (1, 2)
    click.echo("\n".join(align_columns(rows, right_aligned=number_columns)))
    click.echo()
    near_limit = [role for role in generated.userdata if role.is_near_limit]
    if near_limit:
        click.echo("\n".join(f"  UserData of {line}" for line in size_lines(near_limit)))
        click.echo()
    click.echo(f"{pluralize(len(generated.documents), 'template')} linted, nothing found.")
    written_files = pluralize(len(report.written), "file")
    click.echo(
        f"{directory}: {written_files} written, {len(report.unchanged)} unchanged, {len(report.removed)} removed."
    )
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
    if f"{STANDALONE_TEMPLATE}.{file_format}" in files:
        click.echo(f"\n{next_step}")
        click.echo(f"Or upload {directory / f'{STANDALONE_TEMPLATE}.{file_format}'} in the CloudFormation console.")
    elif "README.md" in files:
        click.echo(f"\n{next_step}")
        click.echo(
            f"Or copy the templates of {directory} into an S3 bucket, "
            f"and create a stack from cluster.{file_format} there:"
        )
        click.echo("docs/deploy/console.md has the steps.")
    if "README.md" in files:
        click.echo(f"{directory / 'README.md'} describes each file.")
