"""`cfngen config`: every value in effect, and where it came from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from cfngen.cli.source import Source, source_options
from cfngen.cli.terminal import columns, examples
from cfngen.cli.typography import verbatim
from cfngen.cluster.paths import dotted, leaves

if TYPE_CHECKING:
    from cfngen.cluster.load import Origin
    from cfngen.cluster.paths import Path


@click.command(
    "config",
    short_help="Show every value in effect and where it came from.",
    epilog=examples(
        "cfngen config",
        "cfngen config | grep -v ' default$'        only what you set, and what is derived from it",
        "NUM_NODES=6 cfngen config -f prod.yaml",
        "cfngen config --output yaml > complete.yaml",
    ),
)
@source_options
@click.option(
    "--output",
    "-o",
    "style",
    type=click.Choice(("text", "yaml", "json")),
    default="text",
    show_default=True,
    help="text: one line for each value. yaml: a complete cluster file. json: for programs.",
)
def command(source: Source, style: str) -> None:
    """Show the complete configuration: every value in effect, and where each came from.

    A value is kube-up's default, is derived from another value, or is set in the cluster file, by an environment
    variable or by --set; each of these overrides those named before it. The YAML output is itself a cluster file, with
    the origins as comments.
    """
    loaded = source.load()
    data = loaded.cluster.model_dump(mode="json", by_alias=True)
    if style == "json":
        origins = {key: {"kind": origin.kind, "where": origin.where} for key, origin in loaded.origins.items()}
        answer = {"cluster": data, "origins": origins, "warnings": loaded.warnings}
        verbatim(json.dumps(answer, indent=2, ensure_ascii=False))
        return
    origin_texts = {key: _origin_text(origin) for key, origin in loaded.origins.items()}
    if style == "yaml":
        verbatim("\n".join([f"# {source.description}", *_yaml_lines(data, origin_texts, ())]))
    else:
        click.echo(f"# {source.description}")
        rows = [(dotted(path), _inline(value), origin_texts[dotted(path)]) for path, value in leaves(data)]
        click.echo("\n".join(columns(rows, indent="")))


def _origin_text(origin: Origin) -> str:
    """Return the origin of a value: `default`, `derived: …`, `cluster.yaml:12`, `environment NUM_NODES`, `--set …`."""
    if origin.kind == "derived":
        return f"derived: {origin.where}"
    return f"environment {origin.where}" if origin.kind == "environment" else origin.where or origin.kind


def _inline(value: object) -> str:
    """Return a scalar, or an empty list or mapping, as YAML on one line."""
    import yaml

    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=1_000_000)
    return text.removesuffix("...\n").strip()


def _yaml_lines(
    data: Mapping[str, object] | list[object], origin_texts: Mapping[str, str], path: Path
) -> Iterator[str]:
    """Yield lines of YAML in block style; each value is followed by its origin as a comment."""
    indent = "  " * len(path)
    for key, value in enumerate(data) if isinstance(data, list) else data.items():
        inner = (*path, key)
        head = indent + ("-" if isinstance(data, list) else f"{_inline(key)}:")
        if isinstance(value, (dict, list)) and value:
            yield head
            yield from _yaml_lines(value, origin_texts, inner)
        else:
            yield f"{head} {_inline(value)}  # {origin_texts[dotted(inner)]}"
