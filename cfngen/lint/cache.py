"""The cache of lint results (verdicts): one small file per template, named by a digest of all inputs.

The inputs are the template, the interface of the templates it nests, the sources of `cfngen.lint` and of the files that
its rules load, cfn-lint's version, the region and Python's version. So no entry is ever stale, several processes may
write to the cache at the same time, and the directory may be deleted at any time. A file that is not a valid verdict
counts as missing. If the directory cannot be written to, nothing is cached.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RETENTION_DAYS = 30
_SECONDS_PER_DAY = 24 * 60 * 60
_SUFFIX = ".verdict.json"

Verdict = list[dict[str, Any]]
"""Findings as JSON: all fields of `Finding` except the document's name and module, which the caller adds."""


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return the cache directory: `$XDG_CACHE_HOME/cfngen/lint`, or `~/.cache/cfngen/lint`.

    A relative XDG_CACHE_HOME is ignored, as the XDG Base Directory Specification requires. Without HOME the path
    cannot be created, so nothing is cached.
    """
    base = environ.get("XDG_CACHE_HOME", "")
    default = Path(environ.get("HOME") or os.devnull, ".cache")
    user_cache = Path(base) if base and Path(base).is_absolute() else default
    return user_cache / "cfngen" / "lint"


def fingerprint(region: str) -> bytes:
    """Return a digest of all inputs of a verdict except the template, without importing cfn-lint."""
    digest = hashlib.sha256(f"region {region}\npython {sys.version_info[0]}.{sys.version_info[1]}\n".encode())
    package = Path(__file__).parent
    # The rules load two files of other packages by their paths.
    loaded_files = (package.parent / "text_limits.py", package.parent / "templates" / "expressions.py")
    sources = (*package.glob("*.py"), *package.glob("rules/*.py"), *loaded_files)
    for source in sorted(sources):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    for file in _cfn_lint_files():
        digest.update(file.read_bytes() + b"\0")
    return digest.digest()


def _cfn_lint_files() -> Sequence[Path]:
    """Return the files that identify the installed cfn-lint: its version, and the date of its resource schemas.

    `importlib.metadata` has the version too, but takes 50 ms to import; this look-up takes 1 ms.
    """
    spec = importlib.util.find_spec("cfnlint")
    package = Path(spec.origin).parent if spec and spec.origin else Path(os.devnull)
    files = (package / "version.py", package / "data" / "schemas" / "version.json")
    return [file for file in files if file.is_file()]


def cache_key(fingerprint: bytes, bodies: Sequence[Mapping[str, object]]) -> str:
    """Return the cache key for a template, the first of `bodies`, and the other inputs of its verdict."""
    digest = hashlib.sha256(fingerprint)
    for body in bodies:
        digest.update(json.dumps(body, separators=(",", ":")).encode() + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True)
class Cache:
    """A directory of verdicts.

    Attributes:
        directory: path of the directory; it is created when the first verdict is stored.
    """

    directory: Path

    def get(self, name: str) -> Verdict | None:
        """Return the verdict with a cache key, or None if the cache has no valid one."""
        path = self._path(name)
        try:
            stored = json.loads(path.read_bytes())
            # The file's modification time is the last day of use; verdicts that were not used for long are deleted.
            if time.time() - path.stat().st_mtime > _SECONDS_PER_DAY:
                os.utime(path)
        except (OSError, ValueError, RecursionError):
            return None
        return stored["findings"] if _is_verdict(stored, name) else None

    def put(self, verdicts: Mapping[str, Verdict]) -> None:
        """Store verdicts by their cache keys, and delete verdicts that were not used for `KEEP_DAYS` days."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for name, verdict in verdicts.items():
                self._store(name, json.dumps({"key": name, "findings": verdict}).encode())
            self._delete_unused()
        except OSError:
            # Linting succeeds without the cache, e.g. on a full disk or with a read-only home directory.
            return

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}{_SUFFIX}"

    def _store(self, name: str, content: bytes) -> None:
        """Write a file under a temporary name and rename it, so that no process reads an incomplete file."""
        handle, temporary = tempfile.mkstemp(dir=self.directory, prefix=".", suffix=_SUFFIX)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(temporary).replace(self._path(name))
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise

    def _delete_unused(self) -> None:
        cutoff = time.time() - RETENTION_DAYS * _SECONDS_PER_DAY
        for path in self.directory.glob(f"*{_SUFFIX}"):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < cutoff:
                    path.unlink()


def _is_verdict(stored: object, name: str) -> bool:
    """Return whether the content of a cache file is a complete verdict with the cache key `name`."""
    if not isinstance(stored, dict) or stored.get("key") != name or not isinstance(stored.get("findings"), list):
        return False
    field_types = {
        "rule": str,
        "severity": str,
        "message": str,
        "path": list,
        "further": str,
        "line": int,
        "column": int,
    }
    return all(
        isinstance(finding, dict)
        and finding.keys() == field_types.keys()
        and all(isinstance(finding[field], field_type) for field, field_type in field_types.items())
        for finding in stored["findings"]
    )
