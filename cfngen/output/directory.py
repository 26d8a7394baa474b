"""An output directory: the files in it that cfngen wrote, and the error if something cannot be read or written."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path

from cfngen.bounded_files import check_nesting, parse_json, read_bytes
from cfngen.errors import CfngenError
from cfngen.output.readme import MARKER, README, files_listed_in

# What the user can do about an error of the operating system, by its error number.
_HINTS = {
    errno.ENOSPC: "Free space on that file system, or choose another directory.",
    errno.EDQUOT: "Your disk quota is used up; free space, or choose another directory.",
    errno.EROFS: "The file system is read-only; choose another directory.",
    errno.EACCES: "Check the directory's owner and permissions, or choose another directory.",
    errno.EPERM: "Check the directory's owner and permissions, or choose another directory.",
    errno.ENOTDIR: "A part of the path is a file; choose another directory.",
    errno.ENAMETOOLONG: "Choose a directory with a shorter path.",
}


class OutputError(CfngenError):
    """The files could not be written; all files are unchanged.

    Attributes:
        path: the file or directory that caused it.
    """

    code = "output-not-written"

    def __init__(self, path: Path, problem: str, *, hint: str = "") -> None:
        self.path = path
        super().__init__(f"{path}: {problem}; nothing was changed", hint=hint)

    @classmethod
    def of(cls, error: OSError, path: Path, action: str = "written") -> OutputError:
        """Return the OutputError for an error of the operating system; the action is `written` or `read`."""
        reason = (error.strerror or str(error)).lower()
        hint = _HINTS.get(error.errno or 0, "Choose another directory, or check the system's message.")
        return cls(path, f"cannot be {action}: {reason}", hint=hint)


_TEMPLATE_SUFFIXES = (".json", ".yaml")


def read(path: Path) -> bytes | None:
    """Return a file's content, or None if there is no such file."""
    try:
        return read_bytes(path)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise OutputError(
            path, "is a directory, but cfngen must write a file of this name", hint="Move it away."
        ) from None
    except NotADirectoryError:
        parent = next(ancestor for ancestor in path.parents if ancestor.exists())
        raise OutputError(
            parent, "is a file, but cfngen needs a directory of this name", hint="Move it away."
        ) from None
    except OSError as error:
        raise OutputError.of(error, path, "read") from error


def files_by_cfngen(directory: Path) -> frozenset[str]:
    """Return the paths of cfngen's files: README.md, what it lists, and templates with cfngen's entry in metadata."""
    readme_content = read(directory / README) or b""
    listed_files = {
        name for name in files_listed_in(readme_content.decode("utf-8", "replace")) if (directory / name).is_file()
    }
    if readme_content.startswith(MARKER.encode()):
        listed_files.add(README)
    templates_by_cfngen = {
        name for name in _template_names(directory) if name in listed_files or _has_cfngen_metadata(directory / name)
    }
    return frozenset(listed_files | templates_by_cfngen)


def _template_names(directory: Path) -> Iterator[str]:
    try:
        paths = list(directory.iterdir()) if directory.is_dir() else []
    except OSError as error:
        raise OutputError.of(error, directory, "read") from error
    for path in paths:
        if path.suffix in _TEMPLATE_SUFFIXES and path.is_file():
            yield path.name


def _has_cfngen_metadata(path: Path) -> bool:
    content = read(path) or b""
    # Parsing is slow; most files that cfngen did not write can be ruled out without it.
    if b"cfngen" not in content or b"Resources" not in content:
        return False
    try:
        text = content.decode("utf-8-sig")
        body = parse_json(text) if path.suffix == ".json" else _parse_yaml(text)
    except ValueError:
        return False
    metadata = body.get("Metadata") if isinstance(body, Mapping) else None
    return isinstance(metadata, Mapping) and isinstance(metadata.get("cfngen"), Mapping)


def _parse_yaml(text: str) -> object:
    """Return the content of a YAML file, or raise ValueError, as `json.loads` does for a malformed JSON file."""
    import yaml

    check_nesting(text)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def stale_files(directory: Path, files: Mapping[str, bytes], written_by_cfngen: frozenset[str]) -> tuple[str, ...]:
    """Return the paths of the files that an earlier run wrote and that are no longer generated.

    Args:
        files: contents of the generated files by path. With `--only`, README.md is not among them, since they are only
            a part of the output; then no file counts as stale.
    """
    if README not in files:
        return ()
    return tuple(sorted(written_by_cfngen - files.keys()))
