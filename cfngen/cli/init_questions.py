"""The questions of `cfngen init` on a terminal: which example, and for whom and where the cluster is."""

from __future__ import annotations

import re
from collections.abc import Callable

import click

from cfngen.cluster import examples
from cfngen.cluster.problems import ClusterFileError


def example_lines(*, numbered: bool = False) -> list[str]:
    """Return a line for each example, with its name and what it is for."""
    names = examples.names()
    width = max(map(len, names))
    return [
        f"  {f'{number}  ' if numbered else ''}{name:{width}}  {examples.description_of(name)}"
        for number, name in enumerate(names, start=1)
    ]


def ask_for_cluster_file() -> str:
    """Ask on the terminal for an example and its most important values, and return the text of the cluster file.

    An answer with which the file would not be accepted is refused with the reason, and asked for again.

    Raises:
        click.Abort: the user has pressed Ctrl-C or ended the input.
    """
    click.echo("\n".join(["Start from which example?", *example_lines(numbered=True)]), err=True)
    text = _ask("Number or name", examples.names().index(examples.DEFAULT) + 1, _example_text)
    cluster = examples.cluster_of(text)
    text = _ask("Name of the cluster", cluster.name, lambda answer: examples.with_name(text, answer))
    text = _ask("AWS region", cluster.region, lambda answer: examples.with_region(text, answer))
    cluster = examples.cluster_of(text)
    zones = ", ".join(subnet.zone for subnet in cluster.network.subnets)
    text = _ask("Availability Zones", zones, lambda answer: examples.with_zones(text, _words(answer)))
    cidrs = examples.real_cidrs(cluster)
    click.echo(
        "Who may reach the Kubernetes API? Address ranges such as 203.0.113.7/32, with commas between them"
        + ("." if cidrs else "; press Enter to decide when you deploy."),
        err=True,
    )
    return _ask(
        "Address ranges", ", ".join(map(str, cidrs)), lambda answer: examples.with_allowed_cidrs(text, _ranges(answer))
    )


def _ask(question: str, default: object, text_with: Callable[[str], str]) -> str:
    """Ask until an answer gives a cluster file that is accepted, and return its text.

    Args:
        default: the answer that Enter stands for.
        text_with: returns the text of the cluster file with an answer.
    """

    def check(answer: str) -> str:
        try:
            text = text_with(answer.strip())
            examples.cluster_of(text)
        except ClusterFileError as error:
            # click shows a usage error, and asks again.
            raise click.UsageError(str(error)) from None
        return text

    text: str = click.prompt(question, default=str(default), show_default=default != "", value_proc=check, err=True)
    return text


def _example_text(answer: str) -> str:
    names = examples.names()
    if answer.isdecimal() and 1 <= int(answer) <= len(names):
        return examples.text_of(names[int(answer) - 1])
    if answer not in names:
        raise click.UsageError(f"enter a number from 1 to {len(names)}, or a name")
    return examples.text_of(answer)


def _ranges(answer: str) -> list[str]:
    """Return the ranges of an answer; an address stands for itself alone."""
    return [f"{word}/32" if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", word) else word for word in _words(answer)]


def _words(answer: str) -> list[str]:
    return re.findall(r"[^\s,]+", answer)
