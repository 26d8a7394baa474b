"""Every example deploys as it is shipped: in an empty sandbox it is planned, created, changed and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pages_account import PagesAccount
from shell import Ran, Shell

from cfngen.cli.input.cluster_files import read_cluster_files
from cfngen.cluster.load import load

pytestmark = pytest.mark.drill

EXAMPLES = Path(__file__).parents[2] / "examples"
# The clusters of a folder share an account.
LIVES = {
    **{path.stem: [path] for path in sorted(EXAMPLES.glob("*.yaml"))},
    **{
        path.name: [file.path for file in read_cluster_files([path], (), no_env=True)]
        for path in sorted(EXAMPLES.iterdir())
        if path.is_dir()
    },
}


@pytest.fixture
def account(cfngen: Shell, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[PagesAccount]:
    regions = {load(path, environ={}).cluster.region for path in LIVES[request.node.callspec.params["name"]]}
    made = PagesAccount(monkeypatch, sorted(regions))
    made.use(sandbox=True)
    yield made
    made.close()


@pytest.mark.parametrize("name", LIVES)
def test_an_example_lives_in_a_sandbox_as_it_is_shipped(
    name: str, account: PagesAccount, cfngen: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())

    def run(command: str, path: Path, *options: str, code: int = 0) -> Ran:
        ran = cfngen(command, "--sandbox", "-f", str(path), *options)
        assert ran.code == code, f"cfngen {command} {options}: {ran.code}\n{ran.out}\n{ran.err}"
        return ran

    for path in LIVES[name]:
        run("plan", path, code=4)
        assert "The cluster is valid." in run("deploy", path, "--yes").out
    for path in LIVES[name]:
        cluster = load(path, environ={}).cluster
        larger = f"nodeGroups[0].maxSize={cluster.node_groups[0].max_size + 1}"
        assert f"{cluster.name}: UPDATE_COMPLETE" in run("deploy", path, "--yes", "--set", larger).out
    for path in reversed(LIVES[name]):
        run("delete", path, "--yes")
    assert [stacks for region in account.worlds for stacks in account.stacks(region)] == []
