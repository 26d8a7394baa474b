"""Reads an output directory, and finds the files in it that cfngen wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from cfngen.output.errors import OutputError
from cfngen.output.readme import MARKER, README, listed

_TEMPLATES = (".json", ".yaml")


def read(path: Path) -> bytes | None:
    """Return a file's content, or None if there is no such file.

    Raises:
        OutputError: it is a directory, or cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise OutputError(path, "is a directory, where a file has to go", hint="Move it away.") from None
    except NotADirectoryError:
        parent = next(ancestor for ancestor in path.parents if ancestor.exists())
        raise OutputError(parent, "is a file, where a directory has to go", hint="Move it away.") from None
    except OSError as error:
        raise OutputError.of(error, path, "read") from error


def own_files(directory: Path) -> frozenset[str]:
    """Return the paths of the files that cfngen wrote: the README, the files it lists, and templates with its metadata.

    Raises:
        OutputError: a file with the name of a template cannot be read.
    """
    content = read(directory / README) or b""
    own = {name for name in listed(content.decode("utf-8", "replace")) if (directory / name).is_file()}
    if content.startswith(MARKER.encode()):
        own.add(README)
    return frozenset(own | {name for name in _templates(directory) if name in own or _is_marked(directory / name)})


def _templates(directory: Path) -> Iterator[str]:
    try:
        paths = list(directory.iterdir()) if directory.is_dir() else []
    except OSError as error:
        raise OutputError.of(error, directory, "read") from error
    for path in paths:
        if path.suffix in _TEMPLATES and path.is_file():
            yield path.name


def _is_marked(path: Path) -> bool:
    """Return whether a file is a template with cfngen's entry in its metadata."""
    content = read(path) or b""
    # Most other files are recognised without parsing.
    if b"cfngen" not in content or b"Resources" not in content:
        return False
    try:
        body = json.loads(content) if path.suffix == ".json" else _yaml(content)
    except ValueError:
        return False
    metadata = body.get("Metadata") if isinstance(body, Mapping) else None
    return isinstance(metadata, Mapping) and isinstance(metadata.get("cfngen"), Mapping)


def _yaml(content: bytes) -> object:
    import yaml

    try:
        return yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def stale_files(directory: Path, files: Mapping[str, bytes], own: frozenset[str]) -> tuple[str, ...]:
    """Return the files of an earlier run that are not among `files`.

    Without README.md, `files` is only a part of the output (`--only`), and no other file is stale.
    """
    return tuple(sorted(own - files.keys())) if README in files else ()
