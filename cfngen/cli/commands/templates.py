"""`cfngen templates`: generate, lint and write the templates."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from cfngen.cli.commands.userdata import size_lines
from cfngen.cli.display.suggested_commands import complete_commands
from cfngen.cli.display.terminal import echo, examples_epilog, show_warning
from cfngen.cli.earlier_runs import EarlierRun
from cfngen.cli.exit_codes import OUTPUT_IS_STALE, SUCCESS
from cfngen.cli.input import shell_completion
from cfngen.cli.input.options import FileFormat
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.source import Source, source_options
from cfngen.cli.pipeline import GeneratedTemplates, fail_on_findings, generate_and_lint, no_cache_option
from cfngen.cli.render.layout import table
from cfngen.cli.several_clusters.command import SeveralClustersCommand
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from cfngen.output import Difference, WriteReport

STANDALONE_TEMPLATE = "standalone"
"""Name of the template that contains everything; its file is standalone.json or standalone.yaml."""


class TooLargeForOneTemplateError(CfngenError):
    """The cluster is too large for one template."""

    code = "standalone-too-large"

    def __init__(self, file_format: str) -> None:
        super().__init__(
            f"{STANDALONE_TEMPLATE} is not generated: "
            "the cluster exceeds the limits of one template (1 MB, 500 resources)",
            hint=f"deploy the nested stacks with cluster.{file_format}",
        )


@dataclass(frozen=True)
class TemplateFiles:
    """The files that `cfngen templates` writes, whose templates passed lint, and what it says about them.

    Attributes:
        origin: lines that say which cluster it is, and what it comes from.
        resource_counts: the number of resources in each template, by the template's name.
        sizes: role, size and limit in bytes of each UserData that is nearly too large.
        files: their texts, by the path relative to the output directory.
    """

    warnings: Sequence[str]
    origin: Sequence[str]
    resource_counts: Mapping[str, int]
    sizes: Sequence[tuple[str, int, int]]
    files: Mapping[str, str]


@click.command(
    "templates",
    cls=SeveralClustersCommand,
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
    type=FileFormat(("json", "yaml"), "--output-dir (-d) chooses the directory"),
    default="json",
    show_default=True,
    help="Format of the templates that are written.",
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

    made = _made(
        source,
        file_format,
        use_cache=use_lint_cache,
        check=lambda template_names: _check_stack_names(template_names, stack_names, file_format),
    )
    files: Mapping[str, bytes] = {path: text.encode() for path, text in made.files.items()}
    if stack_names:
        paths = [f"{name}.{file_format}" for name in stack_names]
        files = {path: files[path] for path in paths}
    if check_only:
        differences = output.differences(directory, files)
        _print_differences(differences, files, directory)
        context.exit(OUTPUT_IS_STALE if differences else SUCCESS)
    report = output.write(directory, files)
    echo("\n".join([*made.origin, ""]))
    echo("\n".join(_size_lines(made, files, report, file_format)))
    echo(f"{pluralize(len(made.resource_counts), 'template')} linted, nothing found.")
    counts = f"{len(report.unchanged)} unchanged, {len(report.removed)} removed."
    echo(f"{directory}: {pluralize(len(report.written), 'file')} written, {counts}")
    for line in _next_lines(source, files, directory, file_format):
        echo(line)


def _made(
    source: Source, file_format: Literal["json", "yaml"], *, use_cache: bool, check: Callable[[Collection[str]], None]
) -> TemplateFiles:
    """Generate and lint the templates, or return what an earlier run made of the same; show the cluster's warnings.

    Args:
        check: called with the names of the templates; raises an error for what else is wrong.
    """
    earlier = EarlierRun(source, file_format) if use_cache else None
    if earlier and (kept := earlier.get()):
        made = TemplateFiles(**kept)
        for text in made.warnings:
            show_warning(text)
        check(made.resource_counts)
        return made
    from cfngen.output import render

    generated, findings = generate_and_lint(
        source, use_cache=use_cache, check=lambda generated: check(generated.template_names)
    )
    fail_on_findings(findings)
    files = render(generated.documents, generated.userdata, file_format)
    made = TemplateFiles(
        warnings=source.load().warnings,
        origin=tuple(_origin_lines(source, generated)),
        resource_counts={document.name: len(document.body["Resources"]) for document in generated.documents},
        sizes=[(role.role, role.size, role.limit) for role in generated.userdata if role.is_near_limit],
        files={path: content.decode() for path, content in files.items()},
    )
    if earlier:
        earlier.put(asdict(made), source.load())
    return made


def _print_differences(differences: Sequence[Difference], files: Mapping[str, bytes], directory: Path) -> None:
    if not differences:
        echo(f"{directory} is up to date: {pluralize(len(files), 'file')}.")
        return
    for difference in differences:
        echo(str(difference))
    echo()
    echo(f"{directory} is not up to date: {pluralize(len(differences), 'file')} would change. Nothing was written.")


def _check_stack_names(template_names: Collection[str], stack_names: Sequence[str], file_format: str) -> None:
    """Check the values of --only; without them, a missing standalone template is only a warning."""
    if STANDALONE_TEMPLATE not in template_names:
        error = TooLargeForOneTemplateError(file_format)
        if STANDALONE_TEMPLATE in stack_names:
            raise error
        if not stack_names:
            show_warning(f"{error}; {error.hint}")
    for name in stack_names:
        if name not in template_names:
            known_names = ", ".join(template_names)
            raise click.UsageError(f"no stack {name!r} in this cluster; the stacks are {known_names}.")


def _origin_lines(source: Source, generated: GeneratedTemplates) -> Iterator[str]:
    cluster = generated.cluster
    yield f"Cluster {cluster.name} in {cluster.region}, Kubernetes {cluster.kubernetes_version}"
    yield f"from {source.description}"
    if generated.environment_variables:
        yield f"with {', '.join(generated.environment_variables)} from the environment"
    plugin = source.load().origins["network.plugin"]
    if plugin.kind == "derived":
        yield (
            f"network.plugin is {cluster.network.plugin} ({plugin.where}), for as long as the cluster "
            "exists; a cluster that has vpc-routes keeps it with `plugin: vpc-routes` below `network`"
        )


def _size_lines(
    made: TemplateFiles, files: Mapping[str, bytes], report: WriteReport, file_format: str
) -> Iterator[str]:
    """Yield the size of each template, whether it was written, and UserData that is nearly too large."""
    rows: list[tuple[str, ...]] = []
    for name, resource_count in made.resource_counts.items():
        path = f"{name}.{file_format}"
        if path in files:
            outcome = "written" if path in report.written else "unchanged"
            rows.append((path, str(resource_count), f"{len(files[path]):,}", outcome))
    yield from table(("template", "resources", "bytes", ""), rows, right_aligned=(1, 2))
    yield ""
    if made.sizes:
        yield from (f"  UserData of {line}" for line in size_lines(made.sizes))
        yield ""


def _next_lines(source: Source, files: Mapping[str, bytes], directory: Path, file_format: str) -> Iterator[str]:
    """Yield what to do with the templates."""
    shows, deploys = " shows what would change in your account, ", " makes the changes."
    next_step = CommandText("Next: ", suggest("plan"), shows, suggest("deploy"), deploys)
    standalone = f"{STANDALONE_TEMPLATE}.{file_format}"
    if standalone in files or "README.md" in files:
        yield f"\n{complete_commands(next_step, source.options)}"
    if standalone in files:
        yield f"Or upload {directory / standalone} in the CloudFormation console."
    elif "README.md" in files:
        yield (
            f"Or copy the templates of {directory} into an S3 bucket, "
            f"and create a stack from cluster.{file_format} there:"
        )
        yield "docs/deploy/console.md has the steps."
    if "README.md" in files:
        yield f"{directory / 'README.md'} describes each file."
