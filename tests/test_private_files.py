"""Files that only their owner may read are so from their first byte: whoever makes files is known, and how."""

from __future__ import annotations

import ast
import os
import re
import stat
from pathlib import Path

import pytest

from cfngen.atomic_files import create_private_file, replace_file

ROOT = Path(__file__).parents[1] / "cfngen"
# Who makes files of its own, and why it may. What an instance writes is in tests/boot/instance_files.py, with its mode.
MAKERS = {
    "atomic_files.py": "the one that others call",
    "cli/commands/init.py": "a cluster file, which holds nothing secret",
    "cli/display/json_reference.py": "pages of docs",
    "cluster/documents/reference.py": "pages of docs",
    "deploy/access/api_connection.py": "a folder for its owner alone, in which `create_private_file` writes",
    "deploy/access/kubeconfig_file.py": "an empty lock file",
    "graph/reference.py": "pictures of docs",
    "lint/cache.py": "by `mkstemp`, for its owner alone",
    "lint/linter.py": "templates, in a folder for its owner alone",
    "lint/process.py": "a folder for its owner alone",
    "output/write.py": "templates, which hold nothing secret",
    "permissions/explanations.py": "a page of docs",
    "sandbox/kubernetes/api.py": "by `NamedTemporaryFile`, for its owner alone",
    "sandbox/process/running.py": "the sandbox's log and an empty lock file, for their owner alone",
    "userdata/pack.py": "in user data, after `umask`",
}
MAKING = re.compile(
    r"\b(write_text|write_bytes|touch|chmod|copymode|mkstemp|mkdtemp|\w*TemporaryFile|TemporaryDirectory|umask"
    r"|shutil\.(copy\w*|move))\("
    r"|\bopen\([^()]*['\"][rbt]*[wxa+][bt+]*['\"]|\bO_CREAT\b"
)


def test_who_makes_files_is_known() -> None:
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in ROOT.rglob("*.py")}
    mentions = {name: source for name, source in sources.items() if MAKING.search(source)}
    # What is still there without the comments.
    makers = {name for name, source in mentions.items() if MAKING.search(ast.unparse(ast.parse(source)))}
    assert {name for name in makers if not name.startswith("boot/")} == set(MAKERS)


@pytest.fixture(autouse=True)
def _careless_user() -> object:
    former = os.umask(0)
    yield
    os.umask(former)


def test_a_private_file_is_nobody_elses_from_its_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen where the text is made ready, when the file is there and empty."""
    modes: list[int] = []

    class Watched(str):
        def encode(self, *_: object) -> bytes:
            modes.extend(stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir())
            return super().encode()

    old = tmp_path / "old"
    old.write_text("old")
    old.chmod(0o600)
    replace_file(old, Watched("secret"), private=True)
    create_private_file(tmp_path / "new", Watched("secret"))
    assert len(modes) == 4
    assert set(modes) == {0o600}
    assert {(path.read_text(), stat.S_IMODE(path.stat().st_mode)) for path in tmp_path.iterdir()} == {("secret", 0o600)}


def test_a_private_file_replaces_none_and_is_whole_or_not_there(tmp_path: Path) -> None:
    create_private_file(tmp_path / "key", "one")
    with pytest.raises(FileExistsError):
        create_private_file(tmp_path / "key", "two")
    assert (tmp_path / "key").read_text() == "one"
    with pytest.raises(UnicodeEncodeError):
        create_private_file(tmp_path / "other", "\ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
