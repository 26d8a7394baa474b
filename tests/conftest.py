"""What all tests share."""

from __future__ import annotations

import builtins
import functools
import gc
import hashlib
import itertools
import os
import pickle
import re
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, cast

import aws_clients  # noqa: F401 - its import is what it is for
import pytest
from hypothesis import HealthCheck, settings
from sampled import SAMPLED_DRILLS, SAMPLED_ROWS

from cfngen import releases, templates
from cfngen.cluster.model import Cluster
from cfngen.deploy.access import certificates
from cfngen.lint.linter import Linter
from cfngen.releases import charts
from cfngen.sandbox.kubernetes import certificates as authorities
from cfngen.userdata import pack

# `make test` tells these to whatever it starts; a make that a test starts would take them for its own.
for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(name, None)

# Drawn examples are the same each time, and a busy machine may take its time for them.
settings.register_profile(
    "same on every machine", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("same on every machine")

# The models of botocore and moto are millions of objects that stay: looking through them after every few hundred new
# ones takes a fifth of the suite's time.
gc.set_threshold(100_000, 50, 100)

# Reading a private key tries whether it is a right one, which takes 40 ms; every look at a cluster does so twice, and
# the keys of tests are the same few.
certificates._load_private_key = functools.cache(certificates._load_private_key)

# Generating the key of a cluster's authority takes 50 ms, and tests create hundreds of clusters. Those of one test have
# different keys, those of different tests the same few.
_generate_key = functools.cache(lambda _number, generate=authorities._new_key: generate())
_KEY_NUMBERS = itertools.cycle(range(16))
authorities._new_key = lambda: _generate_key(next(_KEY_NUMBERS))

_SHARED_FOLDERS: list[Path] = []


@pytest.fixture(scope="session", autouse=True)
def _share_what_is_made(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let the processes of one run (`--numprocesses`) take what another has made."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = tmp_path_factory.getbasetemp().parent / "shared"
        folder.mkdir(exist_ok=True)
        _SHARED_FOLDERS.append(folder)


def _made_once(key: str, make: Callable[[], bytes]) -> bytes:
    """Make something, unless another process of the run has."""
    if not _SHARED_FOLDERS:
        return make()
    file = _SHARED_FOLDERS[0] / key
    if not file.exists():
        written = file.with_suffix(f".{os.getpid()}")
        written.write_bytes(make())
        written.rename(file)
    return file.read_bytes()


# Compressing a boot program takes 25 ms. cfngen keeps the last few, which are enough for one cluster; tests have
# hundreds, most of them again and again.
_compress = pack._compress
_PACKED: dict[str, str] = {}


def _compress_once(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()  # the texts themselves would take 100 MB
    if digest not in _PACKED:
        _PACKED[digest] = _made_once(digest, lambda: _compress(text).encode()).decode()
    return _PACKED[digest]


pack._compress = _compress_once

# Most tests are about the same few clusters: the default one, and those of the golden cases.
_GENERATED: OrderedDict[tuple[object, ...], bytes] = OrderedDict()
_KEPT_CLUSTERS = 300
_CATALOGUES = (releases._components, charts.charts)
_generate = templates.generate


def _generate_for_all(cluster: Cluster, key: tuple[object, ...]) -> bytes:
    """Generate the pickled templates of a cluster, unless another process of the run has."""
    if key[1:] != _CATALOGUES:
        return pickle.dumps(_generate(cluster))
    return _made_once(hashlib.sha256(str(key[0]).encode()).hexdigest(), lambda: pickle.dumps(_generate(cluster)))


@functools.wraps(_generate)
def _generate_once(cluster: Cluster) -> tuple[templates.Document, ...]:
    """Generate the templates of a cluster once, and return a copy of its own to everybody who asks."""
    # The boot test has catalogues of its own, whose digests are those of its stand-ins.
    key = (cluster.model_dump_json(), releases._components, charts.charts)
    if key not in _GENERATED:
        _GENERATED[key] = _generate_for_all(cluster, key)
        if len(_GENERATED) > _KEPT_CLUSTERS:
            _GENERATED.popitem(last=False)
    _GENERATED.move_to_end(key)
    return cast("tuple[templates.Document, ...]", pickle.loads(_GENERATED[key]))


# Where it is recorded which functions each test calls (tests/mutants/calls.py), each test calls them itself.
if not hasattr(builtins, "__cfngen_called__"):
    templates.generate = _generate_once

# cfngen loads the rules of cfn-lint once per command; tests call lint hundreds of times. cfn-lint itself is imported
# by few tests, and by no others.
_make_linter = Linter.__init__


def _share_rules(self: Linter, region: str, workplace: Path) -> None:
    from cfnlint.rules import Rules

    if not isinstance(Rules.create_from_directory, functools._lru_cache_wrapper):
        Rules.create_from_directory = functools.cache(Rules.create_from_directory)
    _make_linter(self, region, workplace)


Linter.__init__ = _share_rules  # type: ignore[method-assign]


def all_of_some(values: Iterable[Any]) -> bool:
    """`all` for tests: of nothing at all everything is true, and a test that says so of nothing tests nothing."""
    __tracebackhide__ = True
    some = False
    for value in values:
        some = True
        if not value:
            return False
    if not some:
        pytest.fail("all() of nothing: what it says things of is not there")
    return True


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file without drills where only drills are asked for: it would be three quarters of them."""
    only_drills = config.option.markexpr.startswith(("drill", "soak")) and collection_path.name.startswith("test_")
    if not only_drills or any(row.startswith(f"{file_name(collection_path)}::") for row in SAMPLED_ROWS):
        return None
    return not re.search(r"\bmark\.(drill|soak)\b", collection_path.read_text("utf-8")) or None


_WORKER_NUMBER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let every other process of a run begin with the last file.

    Each would else rewrite and compile every test module of a fresh clone: it takes what another one has compiled.
    """
    report = yield
    if isinstance(collector, pytest.Dir) and _WORKER_NUMBER % 2:
        report.result.reverse()
    return report


@functools.cache
def file_name(path: Path) -> str:
    """The name of a test file, as the tables of `sampled` have it."""
    return path.relative_to(Path(__file__).parent).as_posix()


@pytest.hookimpl(tryfirst=True)  # before the marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give test modules an `all` that wants something to say it of; mark the drills, and those of `make soak` alone."""
    numbers: Counter[str] = Counter()
    if "PYTEST_XDIST_WORKER" in os.environ:  # they began at different ends, and must have the same order
        items.sort(key=lambda item: item.path.parts)

    def leave_out(item: pytest.Item, key: str, sampled: dict[str, int], mark: str) -> None:
        """Mark an item unless it is one of those of its row or file, each so many-th, that are run more often."""
        if key in sampled:
            if not sampled[key] or numbers[key] % sampled[key]:
                item.add_marker(mark)
            numbers[key] += 1

    for item in items:
        name = file_name(item.path)
        if isinstance(item, pytest.Function):
            leave_out(item, f"{name}::{item.originalname}", SAMPLED_ROWS, "drill")
        if item.get_closest_marker("drill"):
            leave_out(item, name, SAMPLED_DRILLS, "soak")
    for module in {id(module): module for item in items if (module := getattr(item, "module", None))}.values():
        module.__dict__.setdefault("all", all_of_some)


@pytest.hookimpl(tryfirst=True)  # before fixtures open accounts
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let moto draw the same ids in every run of a test: it lists resources in the order of their ids."""
    if "moto" in sys.modules:
        from moto.moto_api._internal import mock_random

        mock_random.seed(item.nodeid)
