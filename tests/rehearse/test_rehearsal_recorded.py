"""The recorded expectations are what the emulator does: each step of the rehearsal, from the first to the last.

`CFNGEN_UPDATE_GOLDEN=1` records them anew and still fails, so that a change is always looked at.
"""

from __future__ import annotations

import os

import pytest
from deployed import Place, place
from rehearsing import EXPECTED, Person, left

from cfngen.rehearse import expectations
from cfngen.rehearse.expectations import expectation_key
from cfngen.rehearse.steps import STEPS
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.durations import DURATIONS

pytestmark = pytest.mark.drill


def test_the_emulator_does_what_was_recorded() -> None:
    with place() as where:
        # In the order that times give, as far as there are guesses of them.
        where.world.cloud.durations.update(DURATIONS)
        ended = Person(where.account).rehearse(recording=True)
        assert ended.stop is None
        assert left(where) == []
    recorded = {
        expectation_key(step.stack, each.operation.name): expectations.expectation_of(each.operation)
        for step, done in zip(STEPS, ended.rehearsal.steps, strict=True)
        for each in done.operations
    }
    if os.environ.get("CFNGEN_UPDATE_GOLDEN"):
        EXPECTED.write_text(expectations.format_expectations(recorded), encoding="utf-8")
        pytest.fail("expectations recorded: review them, then run without CFNGEN_UPDATE_GOLDEN")
    assert expectations.format_expectations(recorded) == EXPECTED.read_text("utf-8"), "run `make golden`"


def test_every_operation_ended_well_when_it_was_recorded() -> None:
    recorded = expectations.read_recorded_expectations()
    assert {each.status for each in recorded.values()} == {
        "CREATE_COMPLETE",
        "UPDATE_COMPLETE",
        "DELETE_COMPLETE",
        "planned",
    }
    failed = [
        f"{name}: {resource} {statuses}"
        for name, each in recorded.items()
        for resource, statuses in each.transitions.items()
        if any(status.endswith("_FAILED") or "ROLLBACK" in status for status in statuses)
    ]
    assert failed == []


def test_nothing_of_it_depends_on_the_names_of_zones() -> None:
    with place() as where:
        ended = Person(where.account).rehearse(
            "program", "three-masters", zones=("us-west-2c", "us-west-2a", "us-west-2b")
        )
        assert left(where) == []
    assert ended.rehearsal.surprises == ()
    assert (ended.rehearsal.result, ended.rehearsal.default_vpc) == ("as expected", True)


def test_nothing_of_it_depends_on_a_default_vpc() -> None:
    with place() as where:
        without_default_vpc(where)
        ended = Person(where.account).rehearse("program", "roll")
        assert left(where) == []
    assert ended.rehearsal.surprises == ()
    assert (ended.rehearsal.result, ended.rehearsal.default_vpc) == ("as expected", False)


def without_default_vpc(where: Place) -> None:
    ec2 = client("ec2", where.cluster.region)
    [vpc] = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"]
    for subnet in ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc["VpcId"]]}])["Subnets"]:
        ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    ec2.delete_vpc(VpcId=vpc["VpcId"])
