"""`cfngen lint`: judge the cluster's templates, or templates that exist, without writing anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfngen.cli.pipeline import generate, judge
from cfngen.cli.source import Source, source_options
from cfngen.cli.terminal import counted, examples
from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from cfngen.templates.document import Document


class TemplateFileError(CfngenError):
    """A file to lint is not a CloudFormation template that can be read."""


@click.command(
    "lint",
    short_help="Judge templates with cfn-lint and cfngen's own rules; write nothing.",
    epilog=examples(
        "cfngen lint",
        "cfngen lint -f prod.yaml",
        "cfngen lint output/*.json",
        'cfn-lint -a "$(cfngen lint --rules-dir)" your-own.yaml',
    ),
)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@source_options
@click.option("--region", metavar="REGION", help="Region whose resource types count for FILES. Default: the cluster's.")
@click.option("--no-cache", is_flag=True, help="Judge anew, without the results of earlier runs.")
@click.option("--rules-dir", is_flag=True, help="Only print the directory of cfngen's own rules, for `cfn-lint -a`.")
def command(files: tuple[Path, ...], source: Source, region: str | None, no_cache: bool, rules_dir: bool) -> None:
    """Generate the cluster's templates in memory and judge them; or judge FILES, any CloudFormation templates.

    cfn-lint judges with every rule on, and with rules of cfngen's own for what it does not look at: UserData over
    16 KiB, security-group rules without description, instances that do not require IMDSv2, unencrypted volumes, and
    more. What a nested stack is passed is checked against its template; FILES are judged each for itself.
    """
    if rules_dir:
        from cfngen.lint.judge import RULES

        click.echo(RULES)
        return
    if files:
        documents = tuple(_document(file) for file in files)
        region = region or source.load().cluster.region
    elif region:
        raise click.UsageError("--region is for FILES; the region of generated templates is the cluster's.")
    else:
        made = generate(source)
        documents, region = made.documents, made.cluster.region
    try:
        judge(documents, region=region, cache=not no_cache)
    except CfngenError as error:
        if files:
            error.hint = ""
        raise
    click.echo(f"{counted(len(documents), 'template')} linted for {region}: nothing found.")


def _document(file: Path) -> Document:
    """Read a template in JSON or YAML.

    Raises:
        TemplateFileError: it is not one.
        OSError: it cannot be read.
    """
    from cfnlint.decode import decode_str

    from cfngen.templates.document import Document

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TemplateFileError(f"{file}: is not UTF-8 text (byte {error.start})") from None
    body, problems = decode_str(text)
    if problems:
        raise TemplateFileError("\n".join(f"{file}:{each.linenumber}: {each.message}" for each in problems))
    if not isinstance(body, dict) or "Resources" not in body:
        raise TemplateFileError(f"{file}: is not a CloudFormation template: it has no Resources")
    # cfn-lint's own nodes remember lines; documents are plain data.
    return Document(name=str(file), body=json.loads(json.dumps(body, default=str)), module=str(file))
