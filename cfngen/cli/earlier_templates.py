"""What earlier runs of `cfngen templates` made, which is taken again while all that it was made from is the same.

It was made from the command line, files, environment variables, cfngen's own files, and the installed packages. The
content of files and the values of variables are compared when a run is looked up, so each command line has one run,
that of last time.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from cfngen.bounded_files import read_bytes
from cfngen.cli.input.paths import StandardInput
from cfngen.lint.cache import Cache, cache_directory, cache_key, fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfngen.cli.input.source import Source
    from cfngen.cluster.load import Loaded

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class TemplateFiles:
    """The files that `cfngen templates` writes, whose templates passed lint, and what it says about them.

    Attributes:
        warnings: those about the cluster file.
        origin: lines that say which cluster it is, and what it comes from.
        resource_counts: the number of resources in each template, by the template's name.
        sizes: role, size and limit in bytes of each UserData that is nearly too large.
        files: their texts, by the path relative to the output directory.
    """

    warnings: Sequence[str]
    origin: Sequence[str]
    resource_counts: Mapping[str, int]
    sizes: Sequence[tuple[str, int, int]]
    files: Mapping[str, str]


class EarlierTemplates:
    """The files of the last run with the same command line.

    Args:
        source: what the command line and the environment say about the cluster.
        file_format: the format of the templates.
    """

    def __init__(self, source: Source, file_format: str) -> None:
        self._environ = source.environ
        self._cache = Cache(cache_directory(os.environ).with_name("templates"), ".templates.zlib")
        command_line = {
            "directory": os.stat(".").st_ino,  # noqa: PTH116 - where it was deleted, it has no path
            "source": [source.path and str(source.path), source.overrides, source.is_explicit, source.no_env],
            "format": file_format,
        }
        self._key = cache_key(fingerprint(""), [{"program": list(_program())}, command_line])

    def get(self) -> TemplateFiles | None:
        """Return the files, or None if there was no such run, or what they were made from has changed since."""
        content = self._cache.content(self._key)
        try:
            stored = json.loads(zlib.decompress(content or b""))
            if stored["environment"] != self._values(stored["variables"]):
                return None
            if any(_digest(Path(path)) != digest for path, digest in stored["digests"].items()):
                return None
            return TemplateFiles(**stored["made"])
        except (OSError, ValueError, zlib.error):
            return None

    def put(self, made: TemplateFiles, loaded: Loaded) -> None:
        """Keep the files that were made from a cluster, unless it came from standard input or from a pipe."""
        from cfngen.cluster.kube_up import VARIABLES

        if any(_digest(path) != digest for path, digest in loaded.digests.items()):
            return
        variables = [name for each in VARIABLES.values() for name in (each.name, *each.old_names, *each.patterns)]
        content = {
            "digests": {str(path): digest for path, digest in loaded.digests.items()},
            "variables": variables,
            "environment": self._values(variables),
            "made": asdict(made),
        }
        self._cache.store({self._key: zlib.compress(json.dumps(content).encode(), 1)})

    def _values(self, variables: Sequence[str]) -> Mapping[str, str]:
        """Return the values of the variables with these names; an asterisk in a name stands for any text."""
        patterns = [name for name in variables if "*" in name]
        return {
            name: value
            for name, value in self._environ.items()
            if name in variables or any(fnmatchcase(name, pattern) for pattern in patterns)
        }


def _digest(path: Path) -> str | None:
    """Return the digest of a file that can be read again, or None."""
    return sha256(read_bytes(path)).hexdigest() if path.is_file() and not isinstance(path, StandardInput) else None


def _program() -> Iterator[str]:
    """Yield what tells this program from one that may make other files of the same cluster.

    Of cfngen's files these are dates and sizes, by which Python knows its bytecode too; to read all takes 40 ms.
    """
    yield sys.version
    for folder, folders, files in os.walk(PACKAGE):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for file in sorted(files):
            with suppress(OSError):  # an editor's link to nothing
                status = os.stat(f"{folder}/{file}")  # noqa: PTH116 - paths as objects would take twice as long
                yield f"{folder}/{file} {status.st_mtime_ns} {status.st_size}"
    for folder in sys.path:
        # The names of these folders have the versions of the packages.
        names = os.listdir(folder) if os.path.isdir(folder) else []  # noqa: PTH112, PTH208
        yield from sorted(name for name in names if name.endswith((".dist-info", ".egg-info")))
