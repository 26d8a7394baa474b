"""Generating and linting the templates of a cluster, as several commands do."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfngen.cli.display.terminal import progress_line
from cfngen.cli.input.options import Option
from cfngen.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cfngen.cli.input.source import Source
    from cfngen.cluster.model import Cluster
    from cfngen.lint import LintFinding
    from cfngen.templates.document import Document
    from cfngen.userdata import UserData


no_cache_option = Option(
    "--no-cache",
    "use_lint_cache",
    is_flag=True,
    callback=lambda context, parameter, no_cache: not no_cache,
    help="Lint again; ignore the cached results of earlier runs.",
)
"""The option --no-cache.

A command receives it as the argument `use_lint_cache`, which is True without the option: lint then uses the cached
results of earlier runs.
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
    loaded = source.load()
    # Imported only now, since it takes a while, and an error in the cluster file is shown without it.
    from cfngen.templates import generate as generate_templates
    from cfngen.userdata import roles

    variables = {origin.where for origin in loaded.origins.values() if origin.kind == "environment"}
    return GeneratedTemplates(
        cluster=loaded.cluster,
        documents=generate_templates(loaded.cluster),
        userdata=roles(loaded.cluster),
        environment_variables=tuple(sorted(variables)),
    )


def lint_or_fail(documents: Sequence[Document], *, region: str, use_cache: bool) -> None:
    """Lint the templates, and raise an error if there are findings; the arguments are the same as for `lint_documents`.

    Raises:
        LintError: there are findings; the error has all of them.
        LintUnavailableError: lint cannot be run.
    """
    from cfngen.lint import LintError

    findings = lint_documents(documents, region=region, use_cache=use_cache)
    if findings:
        raise LintError(findings)


def lint_documents(
    documents: Sequence[Document], *, region: str, use_cache: bool, texts: Mapping[str, str] | None = None
) -> tuple[LintFinding, ...]:
    """Lint the templates and return the findings; a terminal shows a line of progress meanwhile.

    Args:
        use_cache: whether to use the cached results of earlier runs, and to store the new ones.
        texts: the text of each file, by the name of its document; None if the documents were not read from files.

    Raises:
        LintUnavailableError: lint cannot be run.
    """
    from cfngen.lint import LintUnavailableError, cache_directory, lint

    with progress_line(f"linting {pluralize(len(documents), 'template')}…"):
        directory = cache_directory(os.environ) if use_cache else None
        try:
            return lint(documents, region=region, cache=directory, texts=texts)
        except OSError as error:
            raise LintUnavailableError(
                f"lint cannot write its temporary files: {(error.strerror or str(error)).lower()}",
                hint="free space in the directory for temporary files, or set TMPDIR to another one.",
            ) from error
