"""Writing is all or nothing, touches nobody else's files, and says why when it cannot."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cfngen.output import OutputError, differences, write
from cfngen.output.readme import MARKER

REPOSITORY = Path(__file__).parents[2]


def template(text: str = "") -> bytes:
    return json.dumps({"Metadata": {"cfngen": {"stack": "x"}}, "Resources": {}, "Description": text}).encode()


def output(*roles: str, **texts: str) -> dict[str, bytes]:
    """Files as `render` gives them: a template for each keyword, two files for each role, and the README."""
    files = {f"{name}.json": template(text) for name, text in texts.items()}
    for role in roles:
        files |= {f"userdata/{role}/config.json": b"{}", f"userdata/{role}/boot/main.py": role.encode()}
    lines = [MARKER, "<!-- The files of cfngen in this directory:", *files, "-->"]
    return {"README.md": "\n".join(lines).encode(), **files}


OLD = output("master", "nodes-old", vpc="old", iam="same", **{"nodes-old": "old"})
NEW = output("master", "nodes-new", vpc="new", iam="same", **{"nodes-new": "new"})


def state(directory: Path) -> dict[str, Any]:
    """Everything below a directory: content and times of files, and which directories there are."""
    return {
        str(path.relative_to(directory)): (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


def contents(directory: Path) -> dict[str, bytes]:
    return {path: content[0] for path, content in state(directory).items() if content}


def test_a_new_directory_is_made_and_filled(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    report = write(directory, OLD)
    assert contents(directory) == OLD
    assert report.written == tuple(sorted(OLD))
    assert (report.unchanged, report.removed) == ((), ())


def test_what_has_not_changed_is_not_touched(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    for path in (*tmp_path.rglob("*"), tmp_path):
        os.utime(path, (1, 1))
    before = state(tmp_path)
    report = write(tmp_path, OLD)
    assert state(tmp_path) == before
    assert report.unchanged == tuple(sorted(OLD))
    assert tmp_path.stat().st_mtime == 1


def test_changed_files_are_replaced_and_stale_ones_removed(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    report = write(tmp_path, NEW)
    assert contents(tmp_path) == NEW
    assert not (tmp_path / "userdata/nodes-old").exists()
    assert report.written == (
        "README.md",
        "nodes-new.json",
        "userdata/nodes-new/boot/main.py",
        "userdata/nodes-new/config.json",
        "vpc.json",
    )
    assert report.unchanged == ("iam.json", "userdata/master/boot/main.py", "userdata/master/config.json")
    assert report.removed == (
        "nodes-old.json",
        "userdata/nodes-old/boot/main.py",
        "userdata/nodes-old/config.json",
    )


def test_a_part_of_the_output_removes_nothing(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    part = {"vpc.json": template("new")}
    assert write(tmp_path, part).removed == ()
    assert contents(tmp_path) == {**OLD, **part}


def test_files_of_others_stay(tmp_path: Path) -> None:
    others = {
        "notes.md": b"mine",
        "other.json": b'{"Resources": {}, "Description": "made without cfngen"}',
        "list.json": b'["cfngen", "Resources"]',
        "broken.json": b'{"cfngen", "Resources"',
        "other.yaml": b"Resources: {}\nDescription: cfngen\n",
        "short-forms.yaml": b"Resources: !Sub cfngen\n",
        "userdata/nodes-old/notes.txt": b"mine",
        # Copies of what cfngen wrote, made before an upgrade, say.
        "vpc.json.bak": template("old"),
        "cluster.json.orig": template("old"),
        "userdata/nodes-old/config.json.bak": b"{}",
    }
    write(tmp_path, OLD)
    for name, content in others.items():
        (tmp_path / name).write_bytes(content)
    write(tmp_path, NEW)
    assert contents(tmp_path) == {**NEW, **others}


@pytest.mark.parametrize("name", ["nodes-gone.json", "nodes-gone.yaml"])
def test_a_stale_template_is_known_by_its_metadata_too(tmp_path: Path, name: str) -> None:
    tmp_path.joinpath(name).write_bytes(template())
    assert write(tmp_path, NEW).removed == (name,)


def test_permissions_of_a_replaced_file_stay_and_new_ones_follow_the_umask(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    (tmp_path / "vpc.json").chmod(0o600)
    before = os.umask(0o027)
    try:
        write(tmp_path, NEW)
    finally:
        os.umask(before)
    assert (tmp_path / "vpc.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "nodes-new.json").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("README.md", b"# My project\n"),
        ("vpc.json", b'{"Resources": {}}'),
        ("vpc.json", b""),
        ("userdata/master/config.json", b"mine"),
    ],
)
def test_a_file_of_others_is_not_replaced(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(content)
    before = state(tmp_path)
    with pytest.raises(
        OutputError, match="was not written by cfngen and would be replaced; nothing was changed"
    ) as error:
        write(tmp_path, NEW)
    assert error.value.path == tmp_path / name
    assert state(tmp_path) == before


def test_a_cluster_file_is_not_replaced_by_the_root_template(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("name: prod\n")
    with pytest.raises(OutputError, match="was not written by cfngen"):
        write(tmp_path, {"README.md": NEW["README.md"], "cluster.yaml": template()})
    assert contents(tmp_path) == {"cluster.yaml": b"name: prod\n"}


def make_file(path: Path) -> None:
    path.write_text("in the way")


def make_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize(
    ("obstacle", "make", "message"),
    [
        (".", make_file, "out: is not a directory; nothing was changed"),
        ("vpc.json", Path.mkdir, "out/vpc.json: is a directory, but cfngen must write a file of this name"),
        ("userdata", make_file, "out/userdata: is a file, but cfngen needs a directory of this name"),
        ("vpc.json", make_link, "out/vpc.json: is a symbolic link and would be replaced"),
    ],
)
def test_what_is_in_the_way_is_named(tmp_path: Path, obstacle: str, make: Callable[[Path], None], message: str) -> None:
    directory = tmp_path / "out"
    if obstacle != ".":
        directory.mkdir()
    make(directory / obstacle)
    before = state(tmp_path)
    with pytest.raises(OutputError) as error:
        write(directory, NEW)
    assert message in str(error.value)
    assert error.value.hint
    assert state(tmp_path) == before


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="file: is a file, but cfngen needs a directory of this name"):
        write(tmp_path / "file" / "out", NEW)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_to(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(OutputError, match="cannot be written: permission denied; nothing was changed"):
            write(tmp_path, NEW)
        assert contents(tmp_path) == OLD
    finally:
        tmp_path.chmod(0o755)


def test_a_read_only_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, OLD)

    def refuse(path: Path, *_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    before = state(tmp_path)
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OutputError) as error:
        write(tmp_path, NEW)
    assert str(error.value) == f"{tmp_path}: cannot be written: read-only file system; nothing was changed"
    assert error.value.hint == "The file system is read-only; choose another directory."
    assert state(tmp_path) == before


def test_a_file_that_the_system_refuses_to_hold(tmp_path: Path) -> None:
    """A limit on file sizes stands for a full disk: the system itself fails in the middle of a file."""
    write(tmp_path, OLD)
    before = state(tmp_path)
    program = (
        "import resource, sys; from pathlib import Path; from cfngen.output import OutputError, write\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        f"files = {{**{NEW!r}, 'iam.json': b'x' * 10000}}\n"
        "try:\n    write(Path(sys.argv[1]), files)\nexcept OutputError as error:\n    print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", program, str(tmp_path)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout == f"{tmp_path}: cannot be written: file too large; nothing was changed\n"
    assert state(tmp_path) == before


class Failure:
    """Makes one call to the file system fail: the one with the given number, just before or just after it is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException, *, after: bool) -> None:
        self.left = number
        self.error = error
        self.after = after
        self.raised = False
        for owner, name in (
            (Path, "mkdir"),
            (Path, "open"),
            (Path, "replace"),
            (Path, "unlink"),
            (Path, "rmdir"),
            (os, "fsync"),
            (os, "link"),
            (shutil, "copymode"),
        ):
            monkeypatch.setattr(owner, name, self.wrapped(getattr(owner, name)))

    def wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **keywords: Any) -> Any:
            self.left -= 1
            if self.left or self.raised:
                return function(*arguments, **keywords)
            if self.after:
                try:
                    result = function(*arguments, **keywords)
                except OSError:
                    self.left = 1  # a call that fails by itself, say for a file that is not there: take the next
                    raise
                if hasattr(result, "close"):
                    result.close()
            self.raised = True
            raise self.error

        return call


def failures(error: BaseException, *, after: bool) -> Iterator[Callable[[pytest.MonkeyPatch], Failure]]:
    for number in range(1, 200):
        yield lambda monkeypatch, number=number: Failure(monkeypatch, number, error, after=after)


@pytest.mark.parametrize("start", [OLD, {}], ids=["update", "first time"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), PermissionError(errno.EACCES, "no"), KeyboardInterrupt()],
    ids=["disk full", "no permission", "interrupt"],
)
def test_a_failure_at_any_step_leaves_everything_as_it_was(
    tmp_path: Path, error: BaseException, after: bool, start: dict[str, bytes]
) -> None:
    refused = 0
    for number, fail in enumerate(failures(error, after=after)):
        directory = tmp_path / str(number) / "out"
        directory.parent.mkdir()
        if start:
            write(directory, start)
        before = state(directory.parent)
        with pytest.MonkeyPatch.context() as monkeypatch:
            failure = fail(monkeypatch)
            try:
                write(directory, NEW)
            except (OutputError, KeyboardInterrupt) as raised:
                refused += 1
                outcome = str(raised)
            else:
                outcome = ""
        if outcome or (isinstance(error, KeyboardInterrupt) and failure.raised):
            assert state(directory.parent) == before, f"step {number + 1}"
        else:
            # The step had a way round: a copy where no link can be made, a directory that stays, no wait for the disk.
            assert contents(directory) == NEW, f"step {number + 1}"
        assert not list(directory.parent.rglob(".cfngen-*"))
        if not failure.raised:
            break
    assert not failure.raised, "the last round ran without a failure"
    assert refused > 10


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError) as error:
        write(tmp_path / "out", NEW)
    assert str(error.value) == f"{tmp_path}/out: cannot be written: no space left on device; nothing was changed"
    assert error.value.hint == "Free space on that file system, or choose another directory."
    assert state(tmp_path) == {}


def test_without_hard_links_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, OLD)

    def unsupported(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", unsupported)
    write(tmp_path, NEW)
    assert contents(tmp_path) == NEW


def test_stale_tells_what_would_change_and_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    (tmp_path / "notes.md").write_text("mine")
    before = state(tmp_path)
    kinds = {difference.path: difference.kind for difference in differences(tmp_path, NEW)}
    assert kinds == {
        "README.md": "different",
        "nodes-new.json": "missing",
        "nodes-old.json": "stale",
        "userdata/nodes-new/boot/main.py": "missing",
        "userdata/nodes-new/config.json": "missing",
        "userdata/nodes-old/boot/main.py": "stale",
        "userdata/nodes-old/config.json": "stale",
        "vpc.json": "different",
    }
    assert state(tmp_path) == before
    write(tmp_path, NEW)
    assert differences(tmp_path, NEW) == ()


def test_stale_for_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    assert {difference.kind for difference in differences(tmp_path / "out", NEW)} == {"missing"}
    assert not (tmp_path / "out").exists()


def test_stale_for_a_part_of_the_output(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    assert [difference.path for difference in differences(tmp_path, {"vpc.json": template("new")})] == ["vpc.json"]


def test_stale_for_a_file_instead_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputError, match="is not a directory"):
        differences(tmp_path / "out", NEW)


def test_a_difference_shows_a_short_diff(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(100)]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    wanted = [*lines[:50], "changed " + "x" * 1000, *lines[51:]]
    (difference,) = differences(tmp_path, {"a.txt": "\n".join(wanted).encode()})
    assert str(difference).splitlines()[:6] == [
        "a.txt: differs",
        "--- a.txt (present)",
        "+++ a.txt (expected)",
        "@@ -50,3 +50,3 @@",
        " line 49",
        "-line 50",
    ]
    assert max(map(len, difference.diff.splitlines())) == 160
    (long,) = differences(tmp_path, {"a.txt": "\n".join(line.upper() for line in lines).encode()})
    assert len(long.diff.splitlines()) == 21
    assert long.diff.endswith("\n…")
    (missing,) = differences(tmp_path, {"b.txt": b"x"})
    assert str(missing) == "b.txt: is missing"
