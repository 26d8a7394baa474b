"""No secret is in a cluster file: whoever may describe its stacks or launch templates reads each value of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cfngen.cluster.checks.sections import Check
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import leaves
from cfngen.cluster.problems import NO_KEY, Problem, Source

# Of a URL, but for a password that a shell or a program fills in: `$PASSWORD`, `$(PASSWORD)`, `${PASSWORD}`. A token is
# often the user name alone.
_CREDENTIALS = re.compile(r"://[^\s/:@]*:[^\s/@$][^\s/@]*@|\bhttps?://[^\s/:@$]+@")
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_READABLE = "would be readable in templates and in user data; remove"


def _check_no_secret_is_written(cluster: Cluster) -> Iterator[Problem]:
    """Check every text, and repeat none."""
    if not _secret_in(cluster.model_dump_json(by_alias=True)):
        return
    for path, value in leaves(cluster.model_dump(mode="json", by_alias=True)):
        if isinstance(value, str) and (problem := _secret_in(value)):
            yield Problem(path, problem)


def secrets_in_lines(text: str, file_name: str) -> Iterator[Problem]:
    """Yield a problem for each line of a cluster file with a secret: the stack keeps its comments, too."""
    if not _secret_in(text):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if problem := _secret_in(line):
            yield Problem(NO_KEY, problem, source=Source(kind="file", name=file_name, line=number))


def _secret_in(text: str) -> str:
    """Return what is wrong with a text that has a secret; empty if none is recognised."""
    if _CREDENTIALS.search(text):
        return (
            f"a user name and password in a URL {_READABLE} them, and let the server admit the cluster by its "
            "addresses, or read them from where only instances or pods may"
        )
    if _PRIVATE_KEY.search(text):
        return f"a private key {_READABLE} it, and keep it in a secret that only instances or pods may read"
    return ""


PROBLEM_CHECKS: tuple[Check, ...] = (_check_no_secret_is_written,)
