"""The golden cases: their clusters, and the files that each of them gives."""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from cfngen import output, userdata
from cfngen.cluster.load import Loaded, load
from cfngen.templates import Document, generate

FOLDER = Path(__file__).parent / "cases"
CASES = sorted(path.name for path in FOLDER.iterdir())
PROGRAM = re.compile(r'(?<=^PROGRAM = ")[^"]*', re.MULTILINE)  # in the loader that UserData is
PACKED = "(packed boot program)"
Files = dict[str, str]


@cache
def load_case(case: str) -> Loaded:
    """The cluster file of a case, read with the environment variables beside it."""
    environment = FOLDER / case / "environment.yaml"
    environ = yaml.safe_load(environment.read_text()) if environment.exists() else {}
    return load(FOLDER / case / "cluster.yaml", environ=environ)


@cache
def rendered(case: str) -> Files:
    """Every template and UserData of a case by path, without the packed boot program."""
    cluster = load_case(case).cluster
    documents = [
        Document(document.name, without_program(document.body), document.module) for document in generate(cluster)
    ]
    files = output.render(documents, userdata.roles(cluster), "json")
    return {path: data.decode() for path, data in files.items() if path != "README.md"}


def without_program(value: Any) -> Any:
    """A template with placeholders for the packed program: in user data, and in the metadata of the second stage."""
    if isinstance(value, dict):
        return {key: PACKED if key == "program" else without_program(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    text = "".join(item for item in value if isinstance(item, str))
    items = joined(value) if PROGRAM.search(text) else value
    return [PROGRAM.sub(PACKED, item) if isinstance(item, str) else without_program(item) for item in items]


def joined(pieces: list[Any]) -> list[Any]:
    """The pieces of a `Fn::Join` in which no text follows another one: a packed program with `${` is divided there."""
    return [
        item
        for is_text, group in groupby(pieces, key=lambda piece: isinstance(piece, str))
        for item in (["".join(group)] if is_text else group)
    ]


def print_digests() -> None:
    """Print a digest of every file of every case, packed programs and all; two Pythons have to print the same."""
    for case in CASES:
        cluster = load_case(case).cluster
        files = output.render(generate(cluster), userdata.roles(cluster), "json")
        for path, data in files.items():
            sys.stdout.write(f"{hashlib.sha256(data).hexdigest()}  {case}/{path}\n")


if __name__ == "__main__":
    print_digests()
