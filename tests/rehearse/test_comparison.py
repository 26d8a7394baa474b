"""What counts as a surprise: each way in which AWS could differ from what was recorded."""

from __future__ import annotations

import dataclasses

import pytest

from cfngen.rehearse import clusters, expectations
from cfngen.rehearse.comparison import find_remarks, find_surprises
from cfngen.rehearse.operations import NameNormalizer, Operation, OperationEvent
from cfngen.templates.document import Document

NAMES = NameNormalizer(clusters.DEFAULT_ZONES)
ROOT = Document(
    "cluster",
    {
        "Resources": {
            "NetStack": {
                "Type": "AWS::CloudFormation::Stack",
                "Properties": {"TemplateURL": {"Fn::Sub": "https://${TemplateBucket}/net.json"}},
            }
        }
    },
    "",
    ("net",),
)
NET = Document(
    "net",
    {
        "Resources": {
            "Vpc": {"Type": "AWS::EC2::VPC"},
            "Gateway": {"Type": "AWS::EC2::InternetGateway"},
            "Route": {"Type": "AWS::EC2::Route", "DependsOn": ["Gateway"], "Properties": {"VpcId": {"Ref": "Vpc"}}},
        }
    },
    "",
)


def event(resource: str, status: str, seconds: float, reason: str = "") -> OperationEvent:
    return OperationEvent(f"NetStack/{resource}", f"AWS::EC2::{resource}", status, reason, seconds)


def operation(*events: OperationEvent, **changes: object) -> Operation:
    usual = Operation("create", "CREATE_COMPLETE", 60.0, events, ("add NetStack/Vpc (AWS::EC2::VPC)",), {"shells": "0"})
    return dataclasses.replace(usual, **changes)  # type: ignore[arg-type]


USUAL = operation(
    event("Vpc", "CREATE_IN_PROGRESS", 0),
    event("Gateway", "CREATE_IN_PROGRESS", 0),
    event("Vpc", "CREATE_IN_PROGRESS", 2, "Resource creation Initiated"),
    event("Gateway", "CREATE_COMPLETE", 5),
    event("Vpc", "CREATE_COMPLETE", 9),
    event("Route", "CREATE_IN_PROGRESS", 9),
    event("Route", "CREATE_COMPLETE", 11),
)
EXPECTED = expectations.expectation_of(USUAL)


def found(seen: Operation) -> list[str]:
    return list(map(str, find_surprises(EXPECTED, seen, (ROOT, NET), NAMES)))


def without(*resources: str) -> tuple[OperationEvent, ...]:
    return tuple(each for each in USUAL.events if each.resource.rpartition("/")[2] not in resources)


def test_the_same_again_is_no_surprise_whatever_else_is_said_of_it() -> None:
    more = (*USUAL.events, event("Route", "CREATE_COMPLETE", 12))
    early = (*without("Route"), event("Route", "CREATE_IN_PROGRESS", 5, "Eventual consistency check initiated"))
    assert found(operation(*more)) == []
    # CloudFormation continues once what is referred to is configured, and only waits for what DependsOn names.
    assert found(operation(*early, event("Route", "CREATE_COMPLETE", 6))) == []


@pytest.mark.parametrize(
    ("seen", "surprise"),
    [
        (
            operation(*USUAL.events, status="ROLLBACK_COMPLETE"),
            "create: expected CREATE_COMPLETE; seen ROLLBACK_COMPLETE",
        ),
        (operation(*USUAL.events, error="denied"), "create: expected CREATE_COMPLETE; seen denied"),
        (operation(*without("Route")), "NetStack/Route: expected CREATE_IN_PROGRESS → CREATE_COMPLETE; seen no event"),
        (
            operation(*USUAL.events, event("Other", "CREATE_COMPLETE", 9)),
            "NetStack/Other: expected no event; seen CREATE_COMPLETE",
        ),
        (
            operation(
                *without("Vpc"), event("Vpc", "CREATE_IN_PROGRESS", 0), event("Vpc", "CREATE_FAILED", 1, "limit")
            ),
            (
                "NetStack/Vpc: expected CREATE_IN_PROGRESS → CREATE_COMPLETE; "
                "seen CREATE_IN_PROGRESS → CREATE_FAILED (limit)"
            ),
        ),
        (
            operation(*without("Route"), event("Route", "CREATE_IN_PROGRESS", 3), event("Route", "CREATE_COMPLETE", 9)),
            "NetStack/Route: expected begins once NetStack/Gateway is complete; seen began before",
        ),
        (
            operation(*USUAL.events, changes=()),
            "the change set: expected add NetStack/Vpc (AWS::EC2::VPC); seen nothing of it",
        ),
        (
            operation(*USUAL.events, changes=(*USUAL.changes, "add Other (T)")),
            "the change set: expected nothing of it; seen add Other (T)",
        ),
        (operation(*USUAL.events, facts={"shells": "1"}), "shells: expected 0; seen 1"),
        (operation(*USUAL.events, facts={}), "shells: expected 0; seen nothing"),
    ],
)
def test_whatever_differs_is_a_surprise(seen: Operation, surprise: str) -> None:
    assert found(seen) == [surprise]


def test_what_is_only_referred_to_must_have_begun() -> None:
    late = (*without("Vpc"), event("Vpc", "CREATE_IN_PROGRESS", 20), event("Vpc", "CREATE_COMPLETE", 21))
    assert found(operation(*late)) == ["NetStack/Route: expected begins once NetStack/Vpc has begun; seen began before"]


def test_the_first_surprise_is_what_failed_first() -> None:
    seen = operation(
        event("Gateway", "CREATE_IN_PROGRESS", 0),
        event("Vpc", "CREATE_IN_PROGRESS", 1),
        event("Vpc", "CREATE_FAILED", 3, "limit"),
        event("Gateway", "CREATE_FAILED", 4, "Resource creation cancelled"),
    )
    first, *_ = found(seen)
    assert first.startswith("NetStack/Vpc: ")


def test_other_words_and_times_are_remarked_on() -> None:
    said = (*USUAL.events, event("Vpc", "CREATE_COMPLETE", 9, "took 3 tries of <vpc-1>"))
    assert find_remarks(EXPECTED, operation(*USUAL.events), 1) == []
    assert find_remarks(EXPECTED, operation(*said, seconds=600.0), 1) == [
        "create took 10 minutes; it was estimated to take 1",
        "NetStack/Vpc CREATE_COMPLETE says 'took 3 tries of <vpc-1>'; the emulator says nothing",
    ]
    known = dataclasses.replace(EXPECTED, reasons={"NetStack/Vpc CREATE_COMPLETE": ("took # tries of <vpc>",)})
    assert find_remarks(known, operation(*said), 1) == []


def test_names_are_those_of_every_region_and_program() -> None:
    names = NameNormalizer(("eu-central-1c", "eu-central-1a", "eu-central-1b"))
    ids = ["SubnetC", "SubnetARouteTableAssociation", "SubnetB", "MasterA", "MasterProgram0123456789ab", "SubnetsC"]
    assert [names(each) for each in ids] == [
        "SubnetA",
        "SubnetBRouteTableAssociation",
        "SubnetC",
        "MasterA",
        "MasterProgram",
        "SubnetsC",
    ]


def test_expectations_are_read_as_they_were_written(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(expectations, "files", lambda package: tmp_path)
    (tmp_path / expectations.EXPECTATIONS_FILE).write_text(expectations.format_expectations({"one: create": EXPECTED}))
    assert expectations.read_recorded_expectations() == {"one: create": EXPECTED}
