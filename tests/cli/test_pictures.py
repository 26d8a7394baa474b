"""`cfngen plan --graph`: the picture of what a deployment adds, changes, replaces and removes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from deployed_cluster import Place, Shell, commanding, place

from cfngen.cli.display.pictures import plan_changes
from cfngen.cluster.load import load
from cfngen.deploy.plan.plan import Change, Plan, Replacement, StackPlan
from cfngen.templates import generate

ALLOWED = ("--parameter", "ApiAllowedCidr=203.0.113.7/32")
TWO_GROUPS = ("--set", "name=drawn", "--set", "nodeGroups[1].name=batch", "--set", "nodeGroups[1].minSize=1")
ONE_LARGER_GROUP = ("--set", "name=drawn", "--set", "nodeGroups[0].instanceType=m5.large")


def test_each_change_of_a_plan_has_its_colour() -> None:
    changes = [
        Change("New", "", "AWS::EC2::Volume", "add"),
        Change("Imported", "vol-1", "AWS::EC2::Volume", "import"),
        Change("Grown", "vol-2", "AWS::EC2::Volume", "update"),
        Change("Other", "vol-3", "AWS::EC2::Volume", "update", Replacement.WILL),
        Change("Perhaps", "vol-4", "AWS::EC2::Volume", "update", Replacement.MIGHT),
        Change("Gone", "vol-5", "AWS::EC2::Volume", "remove"),
    ]
    plan = Plan("drawn", "arn", "update", stacks=(StackPlan((), "drawn", "update", tuple(changes)),))
    assert plan_changes(plan) == {
        "New": "added",
        "Imported": "added",
        "Grown": "changed",
        "Other": "replaced",
        "Perhaps": "replaced",
        "Gone": "removed",
    }


def test_what_is_in_a_new_stack_is_added_even_if_no_change_set_lists_it() -> None:
    documents = generate(load(None, environ={}, overrides=()).cluster)
    plan = Plan("drawn", "arn", "update", stacks=(StackPlan(("NodeGroupNodesStack",), "", "create", ()),))
    changes = plan_changes(plan, documents)
    assert set(changes.values()) == {"added"}
    assert {"NodeGroupNodesAutoScalingGroup", "NodeGroupNodesLaunchTemplate"} <= set(changes)


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    """An account of this module."""
    with place() as made:
        yield made


@pytest.mark.drill
def test_a_group_that_goes_is_drawn_as_it_was(
    where: Place, cfngen: Shell, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())
    run = commanding(where, cfngen, monkeypatch)
    planned = run("plan", *TWO_GROUPS, *ALLOWED, "--graph", "plan.dot", stack="drawn")
    assert planned.code == 4, planned.err
    new = (directory / "plan.dot").read_text()
    # Everything is new, and the value of the parameter is known.
    assert set(colours(new)) == {"#1a7f37"}
    assert "203.0.113.7/32" in new
    assert run("deploy", *TWO_GROUPS, *ALLOWED, "--yes", "--ignore-quotas", stack="drawn").code == 0

    planned = run("plan", *ONE_LARGER_GROUP, *ALLOWED, "--graph", "plan.dot", stack="drawn")
    assert planned.code == 4, planned.err
    drawn = (directory / "plan.dot").read_text()
    [removed] = [line for line in drawn.splitlines() if "node group batch" in line and " -> " not in line]
    assert colours(removed) == ["#cf222e"]
    [changed] = [line for line in drawn.splitlines() if line.lstrip().startswith('"NodeGroupNodes')]
    assert colours(changed) == ["#9a6700"]
    assert not [line for line in drawn.splitlines() if '"MasterAVolume"' in line and "penwidth" in line]


@pytest.mark.drill
def test_several_updates_are_drawn_as_what_they_change_together(
    where: Place, cfngen: Shell, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())
    run = commanding(where, cfngen, monkeypatch)
    one = ("--set", "name=series")
    assert run("deploy", *one, *ALLOWED, "--yes", "--ignore-quotas", stack="series").code == 0
    issuer = ("--set", "serviceAccountIssuer.discovery=bucket", "--set", "iam.addonRoles=true")

    planned = run("plan", *one, *issuer, *ALLOWED, "--graph", "plan.svg", stack="series")
    assert planned.code == 4, planned.err
    assert "what all 3 updates change together" in planned.err
    drawn = ET.fromstring((directory / "plan.svg").read_text())
    boxes = changes_of_boxes(drawn)
    # What only the second and the third update make is there, and has its colour.
    assert boxes["IssuerBucket"] == boxes["OidcProvider"] == "added"
    assert boxes["ServiceAccountRoleKubeSystemCloudControllerManager36747b1f"] == "added"
    assert boxes["Vpc"] == ""
    assert "NodeSecurityGroup" not in boxes
    # The masters' role stays; what it may not do any more is drawn as removed, and what it still may has no colour.
    assert boxes["MasterRole"] == "changed"
    assert boxes["MasterRole:elasticloadbalancing"] == "removed"
    assert boxes["MasterRole:secretsmanager"] == ""
    texts = " ".join(element.text or "" for element in drawn.iter(f"{SVG}text"))
    assert "The deployment takes 3 updates; colours show what they change together" in texts
    assert "3. add-ons use roles of their own." in texts


@pytest.mark.drill
def test_the_end_of_an_issuer_is_drawn_as_what_all_updates_remove(
    where: Place, cfngen: Shell, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())
    run = commanding(where, cfngen, monkeypatch)
    one = ("--set", "name=ending")
    issuer = ("--set", "serviceAccountIssuer.discovery=bucket", "--set", "iam.addonRoles=true")
    assert run("deploy", *one, *issuer, *ALLOWED, "--yes", "--ignore-quotas", stack="ending").code == 0

    for name in ("plan.svg", "plan.mmd"):
        planned = run("plan", *one, *ALLOWED, "--graph", name, stack="ending")
        assert planned.code in (4, 5), planned.err
    boxes = changes_of_boxes(ET.fromstring((directory / "plan.svg").read_text()))
    assert boxes["IssuerBucket"] == boxes["OidcProvider"] == "removed"
    assert boxes["ServiceAccountRoleKubeSystemCloudControllerManager36747b1f"] == "removed"
    assert boxes["MasterRole:elasticloadbalancing"] == "added"
    assert boxes["MasterRole:secretsmanager"] == boxes["Vpc"] == ""
    assert "3. the issuer is removed." in (directory / "plan.mmd").read_text()
    # The change sets that were made for the picture are gone.
    client = where.account.client("cloudformation")
    assert client.list_change_sets(StackName="ending")["Summaries"] == []


SVG = "{http://www.w3.org/2000/svg}"


def changes_of_boxes(drawn: ET.Element) -> dict[str, str]:
    """What a picture says of each box, by the box's id: one of the words of a change, or nothing."""
    changes = {}
    for element in drawn.iter(f"{SVG}g"):
        classes = element.get("class", "").split()
        if "box" in classes:
            words = set(classes) & {"added", "changed", "replaced", "removed"}
            changes[element.get("data-box", "")] = "".join(words)
    return changes


def colours(drawn: str) -> list[str]:
    """The colours of changes in a picture."""
    return [line.partition(' color="')[2].partition('"')[0] for line in drawn.splitlines() if "penwidth" in line]
