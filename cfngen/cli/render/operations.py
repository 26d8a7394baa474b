"""Formats what all operations on a cluster have in common: the heading and the consequences of their plans."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import click

from cfngen.cli.render.layout import bullets, paragraph, screen_width


class _AboutCluster(Protocol):
    @property
    def cluster(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def account(self) -> str: ...


def cluster_heading(message: _AboutCluster) -> str:
    """Return the name of a cluster, its region and its account."""
    return click.style(message.cluster, bold=True) + f"  {message.region}, account {message.account}"


def operation_plan_lines(
    plan: _AboutCluster,
    sentences: Iterable[str],
    *,
    table: Iterable[str] = (),
    consequences: Iterable[str] = (),
    width: int | None = None,
) -> list[str]:
    """Return what an operation will do.

    Args:
        sentences: what happens, each in lines of its own.
        table: what it happens to.
        consequences: what that means for the cluster.
        width: maximum width of a line in characters; None means that of standard output.
    """
    max_width = width or screen_width()
    lines = [cluster_heading(plan), *(line for text in sentences for line in paragraph(text, max_width, 2))]
    for block in (list(table), list(bullets(consequences, max_width))):
        if block:
            lines += ["", *block]
    return [*lines, ""]
