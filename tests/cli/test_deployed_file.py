"""`cfngen config --deployed` and `--diff`, and what `cfngen plan` says of the cluster file: whole lives of stacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployed_cluster import Place, Ran, Shell, operating, place
from json_lines import lines

from cfngen.sandbox.services.quotas import ADDRESSES, INTERNET_GATEWAYS, ON_DEMAND, VPCS

FILE = """\
name: {name}   # größer als gedacht: 100%
api: {{allowedCidrs: [203.0.113.7/32]}}
nodeGroups:
  # sizes are agreed with the team
  - name: nodes
    minSize: 1
    maxSize: 2
"""


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    """An account in which a cluster is deployed as an earlier version did it, which kept no file."""
    with place() as made:
        for quota in (VPCS, ADDRESSES, INTERNET_GATEWAYS, ON_DEMAND):
            made.served.moto_extensions.set_quota(*quota, 1000)
        made.create()
        yield made


@pytest.fixture
def run(where: Place, cfngen: Shell, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs a command in the account; lint, which has tests of its own, finds nothing."""
    operating(where, monkeypatch)
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())
    return cfngen


def deploy(run: Shell, *arguments: str) -> Ran:
    ran = run("deploy", "--yes", "--ignore-quotas", *arguments)
    assert ran.code == 0, ran.err
    return ran


def deployed(run: Shell, *arguments: str) -> str:
    ran = run("config", "--deployed", *arguments)
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def plan_of(run: Shell, *arguments: str) -> tuple[int, dict[str, object]]:
    ran = run("plan", "--create-bucket", "-o", "json", *arguments)
    [plan] = [line for line in lines(ran.out) if line["type"] == "plan"]
    return ran.code, plan


@pytest.mark.drill
def test_the_file_comes_back_and_says_what_has_changed(run: Shell, where: Place, directory: Path) -> None:
    text = FILE.format(name="blue")
    Path("cluster.yaml").write_text(text)
    deploy(run)
    assert deployed(run) == text
    assert plan_of(run)[0] == 0

    # A change of comments alone is deployed, and nothing else with it.
    instances = where.instances("MasterAAutoScalingGroup") + where.instances("NodeGroupNodesAutoScalingGroup")
    text = text.replace("the team", "another team")
    Path("cluster.yaml").write_text(text)
    code, plan = plan_of(run)
    assert (code, plan["fileChange"], plan["stacks"]) == (4, {"keys": [], "first": False}, [])
    assert "only comments or layout differ" in run("plan").out
    deploy(run)
    assert deployed(run) == text
    assert plan_of(run)[0] == 0
    assert instances == where.instances("MasterAAutoScalingGroup") + where.instances("NodeGroupNodesAutoScalingGroup")

    # A key that changes is named beside the resources, and is in the file that comes back after --set.
    larger = ("--set", "nodeGroups[0].maxSize=3")
    code, plan = plan_of(run, *larger)
    assert code == 4
    assert plan["fileChange"] == {
        "keys": [{"key": "nodeGroups[nodes].maxSize", "before": "2", "after": "3"}], "first": False,
    }  # fmt: skip
    assert [change["logicalId"] for stack in plan["stacks"] for change in stack["changes"]] == [  # type: ignore[attr-defined]
        "NodeGroupNodesAutoScalingGroup"
    ]
    assert plan["phases"] == []
    assert "  ~ nodeGroups[nodes].maxSize: 2 -> 3\n" in run("plan", *larger).out
    deploy(run, *larger)
    again = deployed(run)
    assert again == (
        "# cfngen: the cluster file, as deployed\n# --set: nodeGroups[0].maxSize\n"
        + text.replace("maxSize: 2", "maxSize: 3")
    )
    Path("again.yaml").write_text(again)
    assert plan_of(run, "-f", "again.yaml")[0] == 0

    differs = run("config", "--diff")
    assert differs.code == 4
    assert differs.out.startswith("--- blue (deployed)\n+++ cluster.yaml\n")
    assert "\n-    maxSize: 3\n+    maxSize: 2\n" in differs.out
    as_json = json.loads(run("config", "--diff", "-o", "json").out)
    assert (as_json["type"], as_json["keys"]) == (
        "clusterFileDifference",
        [{"key": "nodeGroups[nodes].maxSize", "before": "3", "after": "2"}],
    )
    same = run("config", "--diff", "-f", "again.yaml")
    assert (same.code, same.out) == (0, "The cluster file is the deployed one, byte for byte.\n")

    # Another stack keeps another file; a shell has emptied the file into which it writes the output.
    other = FILE.format(name="green").replace("team", "others")
    Path("other.yaml").write_text(other)
    deploy(run, "-f", "other.yaml", "--stack-name", "second")
    Path("cluster.yaml").write_text("")
    assert deployed(run, "--stack-name", "second") == other
    assert deployed(run, "--stack-name", "blue") == again
    printed = json.loads(deployed(run, "--stack-name", "second", "-o", "json"))
    assert (printed["type"], printed["stack"], printed["cluster"], printed["content"]) == (
        "deployedFile", "second", "green", other,
    )  # fmt: skip


def test_a_stack_of_an_earlier_version_says_what_it_knows(run: Shell) -> None:
    ran = run("config", "--deployed", "--stack-name", "k8s", "-o", "json")
    failure = json.loads(ran.out)
    assert (ran.code, failure["code"]) == (1, "cluster-file-not-kept")
    for fact in ("name: kubernetes", "region: us-west-2", "kubernetesVersion: 1.36.3", "controlPlane.count: 1"):
        assert fact in failure["message"]
    code, plan = plan_of(run, "--defaults", "--stack-name", "k8s", "-p", "ApiAllowedCidr=203.0.113.7/32")
    assert (code, plan["fileChange"]) == (4, {"keys": [], "first": True})


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--deployed", "--stack-name", "nowhere"), "stack-not-found"),
        (("--diff", "--stack-name", "k8s"), "cluster-file-missing"),
        (("--deployed", "--diff"), "usage"),
        (("--deployed", "--egress"), "usage"),
    ],
)
def test_refusals(run: Shell, arguments: tuple[str, ...], code: str) -> None:
    ran = run("config", "-o", "json", *arguments)
    assert json.loads(ran.out.splitlines()[-1])["code"] == code
    assert ran.code == (64 if code == "usage" else 1)


def test_a_file_of_another_cluster_says_nothing_about_the_stack(run: Shell) -> None:
    Path("cluster.yaml").write_text("name: prod\nregion: eu-central-1\nkubernetesVersion: '1.35'\n")
    status = run("status", "--stack-name", "k8s", AWS_REGION="us-west-2")
    assert status.out.startswith("kubernetes  us-west-2, account 123456789012\n")
    assert "1.36.3 in the stack, 1.36.3 running" in status.out
    assert "cluster.yaml is of another cluster than k8s, and not used" in status.err
    kubeconfig = run("kubeconfig", "--print", "--stack-name", "k8s", AWS_REGION="us-west-2")
    assert "current-context: kubernetes\n" in kubeconfig.out
    # Who names the file means it.
    named = run("delete", "--dry-run", "--stack-name", "k8s", "-f", "cluster.yaml", "--set", "region=us-west-2")
    assert "the stack k8s belongs to the cluster kubernetes, not to prod" in named.err
