"""What the commands share on the way from a cluster to files: generate, judge."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfngen.cli.terminal import progress
from cfngen.errors import CfngenError
from cfngen.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cfngen.cli.source import Source
    from cfngen.cluster.model import Cluster
    from cfngen.lint import Finding
    from cfngen.templates.document import Document
    from cfngen.userdata import UserData


@dataclass(frozen=True)
class Generated:
    """Everything that one cluster gives.

    Attributes:
        cluster: the complete cluster.
        documents: its templates; children first, then the root, then standalone.
        userdata: what each role runs.
        variables: names of the environment variables that had a part in it.
    """

    cluster: Cluster
    documents: tuple[Document, ...]
    userdata: tuple[UserData, ...]
    variables: tuple[str, ...]

    @property
    def stacks(self) -> tuple[str, ...]:
        """Names of the templates."""
        return tuple(document.name for document in self.documents)


def generate(source: Source) -> Generated:
    """Load the cluster and make its templates and UserData.

    Raises:
        CfngenError: the cluster file is wrong, or what it asks for does not fit.
    """
    loaded = source.load()
    from cfngen.templates import generate as templates_of
    from cfngen.userdata import roles

    return Generated(
        cluster=loaded.cluster,
        documents=templates_of(loaded.cluster),
        userdata=roles(loaded.cluster),
        variables=tuple(sorted({origin.where for origin in loaded.origins.values() if origin.kind == "environment"})),
    )


def judge(documents: Sequence[Document], *, region: str, cache: bool) -> None:
    """Lint the templates; shows that it is at work, since it may take seconds.

    Raises:
        LintError: with everything found.
        CfngenError: lint cannot do its work.
    """
    from cfngen.lint import LintError

    lint_findings = found(documents, region=region, cache=cache)
    if lint_findings:
        raise LintError(lint_findings)


def found(
    documents: Sequence[Document], *, region: str, cache: bool, texts: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """What lint finds in the templates; shows that it is at work.

    Args:
        documents: the templates.
        region: the region they are for.
        cache: whether to use and keep verdicts.
        texts: by name, the text that a document was read from.

    Raises:
        CfngenError: lint cannot do its work.
    """
    from cfngen.lint import cache_directory, lint

    with progress(f"linting {pluralize(len(documents), 'template')}…"):
        directory = cache_directory(os.environ) if cache else None
        try:
            return lint(documents, region=region, cache=directory, texts=texts)
        except OSError as error:
            raise CfngenError(
                f"lint cannot write its temporary files: {(error.strerror or str(error)).lower()}",
                hint="make room in the directory for temporary files, or name another one in TMPDIR.",
            ) from error
