"""The cache of lint results (verdicts): one small file per template, named by a digest of all inputs.

The inputs are the template, the interface of the templates it nests, the sources of `cfngen.lint` and of the files that
its rules load, cfn-lint's version, the region and Python's version. So no entry is ever stale, several processes may
write to the cache at the same time, and the directory may be deleted at any time. A file that is not a valid verdict
counts as missing. If the directory cannot be written to, nothing is cached.

The command line keeps what its runs made in a cache of the same kind.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What was not used for this time is deleted.
RETENTION_DAYS = 30
_SECONDS_PER_DAY = 24 * 60 * 60

Verdict = list[dict[str, Any]]
"""The findings about one template as JSON: all fields of `LintFinding` except `document` and `module`.

The caller adds these two. An empty list is the verdict that a template has no problems."""


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return the cache directory: `$XDG_CACHE_HOME/cfngen/lint`, or `~/.cache/cfngen/lint`.

    A relative XDG_CACHE_HOME is ignored, as the XDG Base Directory Specification requires. Without HOME the path
    cannot be created, so nothing is cached.
    """
    xdg_cache_home = environ.get("XDG_CACHE_HOME", "")
    if xdg_cache_home and Path(xdg_cache_home).is_absolute():
        user_cache = Path(xdg_cache_home)
    else:
        user_cache = Path(environ.get("HOME") or os.devnull, ".cache")
    return user_cache / "cfngen" / "lint"


def fingerprint(region: str) -> bytes:
    """Return a digest of all inputs of a verdict except the template: region, versions, and sources of the rules.

    cfn-lint is not imported, since that would take longer than reading a cached verdict.
    """
    digest = hashlib.sha256(f"region {region}\npython {sys.version_info[0]}.{sys.version_info[1]}\n".encode())
    lint_package = Path(__file__).parent
    # The rules load two files of other packages by their paths.
    files_loaded_by_rules = (
        lint_package.parent / "text_limits.py",
        lint_package.parent / "templates" / "expressions.py",
    )
    sources = (*lint_package.glob("*.py"), *lint_package.glob("rules/*.py"), *files_loaded_by_rules)
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


def cache_key(fingerprint: bytes, template_inputs: Sequence[Mapping[str, object]]) -> str:
    """Return the cache key of a verdict, a digest of everything that affects the verdict.

    Args:
        fingerprint: digest of the inputs that all templates share.
        template_inputs: the inputs of one template as JSON-ready data: the template, and the templates it nests.
    """
    digest = hashlib.sha256(fingerprint)
    for template_input in template_inputs:
        digest.update(json.dumps(template_input, separators=(",", ":")).encode() + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True)
class Cache:
    """A directory of verdicts, or of other files by their cache keys.

    Attributes:
        directory: path of the directory; it is created when the first file is stored.
        suffix: the end of the files' names.
    """

    directory: Path
    suffix: str = ".verdict.json"

    def get(self, cache_key: str) -> Verdict | None:
        """Return the verdict with a cache key, or None if the cache has no valid one."""
        content = self.content(cache_key)
        try:
            stored = json.loads(content or b"")
        except (ValueError, RecursionError):
            return None
        return stored["findings"] if _is_verdict(stored, cache_key) else None

    def put(self, verdicts: Mapping[str, Verdict]) -> None:
        """Store verdicts by their cache keys, as `store` does."""
        self.store({key: json.dumps({"key": key, "findings": verdict}).encode() for key, verdict in verdicts.items()})

    def content(self, cache_key: str) -> bytes | None:
        """Return the bytes that are stored with a cache key, or None."""
        path = self._path(cache_key)
        try:
            content = path.read_bytes()
            # The file's modification time records when it was last used, to the day; see `_delete_unused`.
            if time.time() - path.stat().st_mtime > _SECONDS_PER_DAY:
                os.utime(path)
        except OSError:
            return None
        return content

    def store(self, contents: Mapping[str, bytes]) -> None:
        """Store bytes by their cache keys, and delete files that were not used for `RETENTION_DAYS` days."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            for cache_key, content in contents.items():
                self._store(cache_key, content)
            self._delete_unused()
        except OSError:
            # A command succeeds without the cache, e.g. on a full disk or with a read-only home directory.
            return

    def _path(self, cache_key: str) -> Path:
        return self.directory / f"{cache_key}{self.suffix}"

    def _store(self, cache_key: str, content: bytes) -> None:
        """Write a file under a temporary name and rename it, so that no process reads an incomplete file."""
        # Imported here, since most often nothing is stored.
        import tempfile

        handle, temporary_path = tempfile.mkstemp(dir=self.directory, prefix=".", suffix=self.suffix)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(temporary_path).replace(self._path(cache_key))
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary_path).unlink()
            raise

    def _delete_unused(self) -> None:
        cutoff = time.time() - RETENTION_DAYS * _SECONDS_PER_DAY
        for path in self.directory.glob(f"*{self.suffix}"):
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < cutoff:
                    path.unlink()


def _is_verdict(stored: object, cache_key: str) -> bool:
    """Return whether the content of a cache file is a complete verdict with the cache key `name`."""
    if not isinstance(stored, dict) or stored.get("key") != cache_key or not isinstance(stored.get("findings"), list):
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
