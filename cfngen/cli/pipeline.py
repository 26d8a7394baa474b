"""Generating and linting the templates of a cluster, as several commands do."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfngen.cli.display.terminal import progress_line
from cfngen.cli.input.options import Option
from cfngen.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cfngen.cli.input.source import Source
    from cfngen.cluster.load import Loaded
    from cfngen.cluster.model import Cluster
    from cfngen.lint import LintFinding
    from cfngen.lint.process import LintProcess
    from cfngen.templates.document import Document
    from cfngen.userdata import UserData


no_cache_option = Option(
    "--no-cache",
    "use_lint_cache",
    is_flag=True,
    callback=lambda context, parameter, no_cache: not no_cache,
    help="Generate and lint again; ignore what earlier runs have kept.",
)
"""The option --no-cache.

A command receives it as the argument `use_lint_cache`, which is True without the option: what earlier runs have
kept is used then.
"""


@dataclass(frozen=True)
class GeneratedTemplates:
    """The templates and UserData of a cluster.

    Attributes:
        documents: the cluster's templates: the nested stacks' first, then the root's, then standalone.
        environment_variables: names of those environment variables that have set a value of the cluster.
    """

    cluster: Cluster
    documents: tuple[Document, ...]
    userdata: tuple[UserData, ...]
    environment_variables: tuple[str, ...]

    @property
    def template_names(self) -> tuple[str, ...]:
        """The names of the templates; the template of a nested stack has the name of the stack."""
        return tuple(document.name for document in self.documents)


def generate(source: Source) -> GeneratedTemplates:
    """Load the cluster and generate its templates and UserData.

    Raises:
        CfngenError: the cluster file is wrong, or the result exceeds a limit.
    """
    return _generate(source.load())


def generate_and_lint(
    source: Source, *, use_cache: bool, check: Callable[[GeneratedTemplates], None] = lambda generated: None
) -> tuple[GeneratedTemplates, tuple[LintFinding, ...]]:
    """Load the cluster, generate its templates and UserData, and lint the templates.

    It is quicker than to do these one after the other.

    Args:
        use_cache: as `lint_documents` takes it.
        check: called before lint; raises an error if something else is wrong.

    Raises:
        CfngenError: the cluster file is wrong, the result exceeds a limit, or lint cannot be run.
    """
    from cfngen.cli.earlier_runs import EarlierRun
    from cfngen.lint import lint_process

    # The verdicts on this cluster, which are known then.
    earlier = EarlierRun(source, "verdicts") if use_cache else None
    with lint_process(is_needed=earlier is None or earlier.get() is None) as process:
        loaded = source.load()
        generated = _generate(loaded)
        check(generated)
        findings = lint_documents(
            generated.documents, region=loaded.cluster.region, use_cache=use_cache, process=process
        )
    if earlier:
        earlier.put({}, loaded)
    return generated, findings


def _generate(loaded: Loaded) -> GeneratedTemplates:
    # Imported only now, since it takes a while, and an error in the cluster file is shown without it.
    from cfngen.templates import generate as generate_templates
    from cfngen.templates.kept_file import with_cluster_file
    from cfngen.userdata import roles

    variables = {origin.where for origin in loaded.origins.values() if origin.kind == "environment"}
    return GeneratedTemplates(
        cluster=loaded.cluster,
        documents=with_cluster_file(generate_templates(loaded.cluster), loaded.kept_file.content),
        userdata=roles(loaded.cluster),
        environment_variables=tuple(sorted(variables)),
    )


def fail_on_findings(findings: tuple[LintFinding, ...]) -> None:
    """Raise an error if there are findings.

    Raises:
        LintError: there are findings; the error has all of them.
    """
    from cfngen.lint import LintError

    if findings:
        raise LintError(findings)


def lint_documents(
    documents: Sequence[Document],
    *,
    region: str,
    use_cache: bool,
    texts: Mapping[str, str] | None = None,
    process: LintProcess | None = None,
) -> tuple[LintFinding, ...]:
    """Lint the templates and return the findings; a terminal shows a line of progress meanwhile.

    Args:
        use_cache: whether to use the cached results of earlier runs, and to store the new ones.
        texts: the text of each file, by the name of its document; None if the documents were not read from files.
        process: a process that has loaded cfn-lint, or still does.

    Raises:
        LintUnavailableError: lint cannot be run.
    """
    from cfngen.lint import LintUnavailableError, cache_directory, lint

    with progress_line(f"linting {pluralize(len(documents), 'template')}…"):
        cache = cache_directory(os.environ) if use_cache else None
        try:
            return lint(documents, region=region, cache=cache, texts=texts, process=process)
        except OSError as error:
            raise LintUnavailableError(
                f"lint cannot write its temporary files: {(error.strerror or str(error)).lower()}",
                hint="free space in the directory for temporary files, or set TMPDIR to another one.",
            ) from error
