"""The file that a cluster file extends: values that several clusters have in common stand there once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath

from cfngen.cluster.file import yaml_file
from cfngen.cluster.file.yaml_file import YamlFile
from cfngen.cluster.problems import ClusterFileError, Problem, Source

KEY = "extends"
DESCRIPTION = (
    "Path of a file, relative to this one, with values that several cluster files have in common. Values of this file "
    "win: sections are merged key by key, lists and everything else are replaced as a whole. The other file cannot "
    "extend a third one."
)


def extended_path(path: FilePath, data: Mapping[str, object]) -> FilePath | None:
    """Return the path of the file that a cluster file with this path and these values extends; None without one."""
    value = data.get(KEY)
    return path.parent / value if isinstance(value, str) and value else None


def read_extended_file(path: FilePath, file: YamlFile) -> tuple[FilePath, YamlFile] | None:
    """Return the file that a cluster file extends, with its path; None without one.

    Raises:
        ClusterFileError: there is no such file, it is not valid, or it extends another one.
    """
    if file.data.get(KEY) is None:
        return None
    extended = extended_path(path, file.data)
    source = Source(kind="file", name=str(path), line=file.lines.get((KEY,), 0))
    if extended is None or not extended.is_file():
        reason = "must be the path of a file" if extended is None else f"there is no file {extended}"
        message = f"{reason}; write the path of the file with the common values, relative to this file"
        raise ClusterFileError([Problem((KEY,), message, source=source)])
    extended_content = yaml_file.read(extended)
    if KEY in extended_content.data:
        source = Source(kind="file", name=str(extended), line=extended_content.lines.get((KEY,), 0))
        message = f"{path} extends this file, which cannot extend another one; write its values here"
        raise ClusterFileError([Problem((KEY,), message, source=source)])
    return extended, extended_content
