"""What earlier runs made of a cluster, which is taken again while all that it was made from is the same.

It was made from options, files, environment variables, cfngen's own files, and the installed packages. The
content of files and the values of variables are compared when a run is looked up, so of each cluster
the last one is kept.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfngen.bounded_files import read_bytes
from cfngen.cli.input.paths import StandardInput
from cfngen.lint.cache import Cache, cache_directory, cache_key, fingerprint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cfngen.cli.input.source import Source
    from cfngen.cluster.load import Loaded

PACKAGE = Path(__file__).parents[1]
_PACKAGE_SUFFIXES = (".dist-info", ".egg-info")


class EarlierRun:
    """The last run for the same cluster with the same options.

    Args:
        source: what the command line and the environment say about the cluster.
        made: what the run made of it, such as the format of templates; each is kept by itself.
    """

    def __init__(self, source: Source, made: str) -> None:
        self._environ = source.environ
        self._cache = Cache(cache_directory(os.environ).with_name("runs"), ".run.zlib")
        command_line = {
            "made": made,
            "directory": os.stat(".").st_ino,  # noqa: PTH116 - where it was deleted, it has no path
            "source": [source.path and str(source.path), source.overrides, source.is_explicit, source.no_env],
        }
        self._key = cache_key(fingerprint(""), [{"program": _program()}, command_line])

    def get(self) -> Mapping[str, Any] | None:
        """Return what it made, or None if there was no such run, or what it was made from has changed since."""
        content = self._cache.content(self._key)
        try:
            stored = json.loads(zlib.decompress(content or b""))
            if stored["environment"] != self._values(stored["variables"]):
                return None
            if any(_digest(Path(path)) != digest for path, digest in stored["digests"].items()):
                return None
            made: Mapping[str, Any] = stored["made"]
        except (OSError, ValueError, zlib.error):
            return None
        return made

    def put(self, made: Mapping[str, Any], loaded: Loaded) -> None:
        """Keep what was made from a cluster, ready for JSON, unless it came from standard input or from a pipe."""
        from cfngen.cluster.kube_up import VARIABLES

        if any(_digest(path) != digest for path, digest in loaded.digests.items()):
            return
        variables = [
            name for variable in VARIABLES.values() for name in (variable.name, *variable.old_names, *variable.patterns)
        ]
        content = {
            "digests": {str(path): digest for path, digest in loaded.digests.items()},
            "variables": variables,
            "environment": self._values(variables),
            "made": made,
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


@cache
def _program() -> tuple[str, ...]:
    """Return what tells this program from one that may make other files of the same cluster.

    Of cfngen's files these are dates and sizes, by which Python knows its bytecode too; to read all takes 40 ms.
    """
    facts = [sys.version]
    for folder, folders, files in os.walk(PACKAGE):
        folders[:] = sorted(set(folders) - {"__pycache__"})
        for file in sorted(files):
            with suppress(OSError):  # an editor's link to nothing
                status = os.stat(f"{folder}/{file}")  # noqa: PTH116 - paths as objects would take twice as long
                facts.append(f"{folder}/{file} {status.st_mtime_ns} {status.st_size}")
    for folder in sys.path:
        # The names of these folders have the versions of the packages.
        with suppress(OSError):
            facts += sorted(name for name in os.listdir(folder) if name.endswith(_PACKAGE_SUFFIXES))  # noqa: PTH208
    return tuple(facts)
