"""`cfngen lint`: lint the cluster's templates, or template files, without writing anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import click

from cfngen.cli.display.messages import show_message
from cfngen.cli.display.terminal import echo, examples_epilog, show_warning
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.source import Source, source_options
from cfngen.cli.input.target import output_option
from cfngen.cli.pipeline import fail_on_findings, generate_and_lint, lint_documents, no_cache_option
from cfngen.cli.several_clusters.command import SeveralClustersCommand
from cfngen.errors import CfngenError
from cfngen.lint import LintFinding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfngen.cli.input.template_file import TemplateFile


@dataclass(frozen=True)
class Linted:
    """Templates were linted.

    Attributes:
        templates: how many templates there are.
        regions: the regions for which they were linted.
        findings: what was found; empty if the templates pass.
    """

    kind: ClassVar[str] = "lint"

    templates: int
    regions: tuple[str, ...]
    findings: tuple[LintFinding, ...]


FALLBACK_REGION = "us-east-1"
"""The region with the most resource types, for templates whose region is not known."""


@click.command(
    "lint",
    cls=SeveralClustersCommand,
    short_help="Check templates with cfn-lint and cfngen's own rules; write nothing.",
    epilog=examples_epilog(
        "cfngen lint",
        "cfngen lint -f prod.yaml",
        "cfngen lint output/*.json",
        "cfngen lint --region eu-west-1 your-own.yaml",
        "cfngen lint --output json your-own.yaml | jq -r 'select(.type == \"lint\").findings[].rule'",
        'cfn-lint your-own.yaml -a "$(cfngen lint --rules-dir)"',
    ),
)
@click.argument("files", nargs=-1, type=PathArgument("give a name, or omit it"))
@source_options
@click.option(
    "--region",
    metavar="REGION",
    help="Region to lint FILES for. Default: the region in the file's Metadata for cfn-lint, else the "
    "cluster's region.",
)
@no_cache_option
@output_option
@click.option(
    "--rules-dir",
    "print_rules_directory",
    is_flag=True,
    help="Only print the directory of cfngen's own rules, for `cfn-lint -a`.",
)
def command(
    files: tuple[Path, ...],
    source: Source,
    region: str | None,
    output: str,
    *,
    use_lint_cache: bool,
    print_rules_directory: bool,
) -> None:
    """Generate the cluster's templates in memory and lint them; or lint FILES, any CloudFormation templates.

    cfn-lint runs with every rule enabled, and with additional rules of cfngen: UserData over 16 KiB, security group
    rules without description, instances that do not require IMDSv2, unencrypted volumes, and more. Parameters of nested
    stacks are checked against their templates; FILES are linted separately.
    """
    if print_rules_directory:
        from cfngen.lint.linter import RULES

        echo(str(RULES))
        return
    if files:
        template_count, regions, findings = _lint_files(files, source, region, use_cache=use_lint_cache)
    elif region:
        raise click.UsageError(
            "--region applies only to FILES; generated templates are linted for the cluster's region."
        )
    else:
        generated, findings = generate_and_lint(source, use_cache=use_lint_cache)
        template_count, regions = len(generated.documents), (generated.cluster.region,)
    if output == "json" or not findings:
        show_message(Linted(template_count, regions, findings), json=output == "json")
    fail_on_findings(findings)


def _lint_files(
    files: Sequence[Path], source: Source, region: str | None, *, use_cache: bool
) -> tuple[int, tuple[str, ...], tuple[LintFinding, ...]]:
    """Lint template files; return their number, the regions they were linted for, and the findings.

    Args:
        source: the cluster, whose region is used for a template that does not say its region.
    """
    from cfngen.cli.input.template_file import read_template_files

    templates = read_template_files(files)
    templates_by_region: dict[str, list[TemplateFile]] = {}
    # The cluster file is read at most once, and only if a template needs the cluster's region.
    cluster_region: str | None = None
    for template in templates:
        template_region = region or template.region
        if template_region is None:
            cluster_region = cluster_region or _cluster_region(source)
            template_region = cluster_region
        templates_by_region.setdefault(template_region, []).append(template)
    findings: list[LintFinding] = []
    for template_region, region_templates in templates_by_region.items():
        source_texts = {template.document.name: template.text for template in region_templates}
        documents = [template.document for template in region_templates]
        findings += lint_documents(documents, region=template_region, use_cache=use_cache, texts=source_texts)
    return len(templates), tuple(templates_by_region), tuple(findings)


def _cluster_region(source: Source) -> str:
    """Return the cluster's region, for templates without a region; FALLBACK_REGION if ./cluster.yaml is wrong.

    Raises:
        ClusterFileError: the cluster was chosen explicitly, and is wrong.
    """
    try:
        return source.read().cluster.region
    except CfngenError as error:
        if source.is_explicit or source.overrides:
            raise
        reason = str(error).partition("\n")[0]
        show_warning(
            f"linting for {FALLBACK_REGION}, since the cluster's region is not known ({reason}); "
            "use --region for another"
        )
        return FALLBACK_REGION
