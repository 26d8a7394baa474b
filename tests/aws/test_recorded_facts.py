"""What AWS was recorded to answer: the emulated account answers so too, or the fact says how it differs."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from checked_api import session
from recorded_facts import Fact, Trial, facts
from served_api import serving

from cfngen.sandbox.cloudformation import CloudFormation

TRIED = [pytest.param(fact, id=fact.name) for fact in facts() if fact.steps]


@functools.cache
def service(name: str) -> Any:
    return session().client(name)


@pytest.fixture
def trial(cloud: CloudFormation) -> Iterator[Trial]:
    cloud.durations["delete AWS::EC2::InternetGateway"] = 10
    with serving(cloud):
        yield Trial(cloud, service)


@pytest.mark.parametrize("fact", TRIED)
def test_the_emulator_answers_as_aws_did(fact: Fact, trial: Trial) -> None:
    recorded = _sorted(fact.expected)
    try:
        answered = trial.run(fact)
    except ClientError as error:
        answered = {"refused": str(error)}
    if fact.difference:
        assert answered != recorded, "it does not differ any more: remove the difference from the fact"
    else:
        assert answered == recorded


def _sorted(expected: Any) -> dict[str, Any]:
    """What a fact expects, with the details of each change in the order of the alphabet."""
    changes = {
        key: {name: [details[0], *sorted(details[1:])] for name, details in expected[key].items()}
        for key in ("values", "plain")
        if key in expected
    }
    return {**expected, **changes}


def test_cfngen_depends_on_nothing_in_which_the_emulator_differs() -> None:
    differing = [fact for fact in facts() if fact.difference]
    assert [fact.name for fact in differing if fact.entry["emulator"]["cfngen_depends"] is not False] == []
    assert [fact.name for fact in differing if not fact.entry["emulator"]["why"]] == []


def test_every_fact_stands_there_once_with_its_source_and_date() -> None:
    assert [name for name, count in Counter(fact.name for fact in facts()).items() if count > 1] == []
    assert [fact.name for fact in facts() if not fact.source or not fact.entry["recorded"]] == []
    assert len(facts()) >= 150
