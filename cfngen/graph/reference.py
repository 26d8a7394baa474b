"""Writes the pictures of docs/pictures: the default cluster, and examples of the folder `examples`.

Run `python -m cfngen.graph.reference docs` after a change; a test fails while the pictures are stale.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from cfngen.cluster.load import load
from cfngen.graph.drawing import View, draw_documents
from cfngen.graph.svg import svg
from cfngen.templates import generate

EXAMPLES: Mapping[str, tuple[str, View]] = {
    "default.svg": ("", "network"),
    "production.svg": ("production.yaml", "network"),
    "fully-private.svg": ("fully-private.yaml", "network"),
    "existing-vpc.svg": ("existing-vpc.yaml", "network"),
    "pod-roles.svg": ("pod-roles.yaml", "iam"),
}
"""The cluster file of each picture and what it shows, by its file name; no file is the built-in default cluster."""


def pictures(examples: Path) -> dict[str, str]:
    """Return the text of each picture, by the name of its file in docs/pictures."""
    return {name: _picture(examples / file if file else None, view) for name, (file, view) in EXAMPLES.items()}


def _picture(cluster_file: Path | None, view: View) -> str:
    cluster = load(cluster_file, environ={}, overrides=()).cluster
    return svg(draw_documents(generate(cluster), view))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pictures into `pictures` in the directory that is named on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m cfngen.graph.reference", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("directory", type=Path, help="the folder of the pages, e.g. docs; `examples` lies beside it")
    directory: Path = parser.parse_args(arguments).directory
    (directory / "pictures").mkdir(exist_ok=True)
    for name, text in pictures(directory.absolute().parent / "examples").items():
        (directory / "pictures" / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
