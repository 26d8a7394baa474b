"""An AWS account in memory for each test that asks for one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Clusters and machines are those of the tests of templates; only the directory of a test file is on the path.
sys.path.insert(0, str(Path(__file__).parents[1] / "aws"))

from answers import Answers
from aws_descriptions import NOW, Deletions, arn
from cloud import Cloud, default_cloud
from in_moto import Calls, in_moto

from cfngen.deploy.aws.account import Account
from cfngen.deploy.messages.message import Message
from cfngen.deploy.operations.deletion import stack_removal


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """An account ready for the golden default cluster, in us-west-2."""
    with default_cloud() as made:
        yield made


@pytest.fixture
def place() -> Iterator[tuple[Account, Calls]]:
    """An empty account of moto's, and the calls that its clients make."""
    with in_moto() as made:
        yield made


@pytest.fixture
def account(place: tuple[Account, Calls]) -> Account:
    return place[0]


@pytest.fixture
def calls(place: tuple[Account, Calls]) -> Calls:
    return place[1]


@pytest.fixture
def said() -> list[Message]:
    """What is reported."""
    return []


@pytest.fixture
def aws() -> Answers:
    """An AWS that answers as the test says, and where the test says nothing that there is nothing."""
    made = Answers({}, otherwise=None)
    made.clock.time = NOW
    return made


@pytest.fixture
def deletions(aws: Answers, monkeypatch: pytest.MonkeyPatch) -> Deletions:
    made = Deletions(aws)
    monkeypatch.setattr(stack_removal, "watch", made.watch)
    aws.given["cloudformation:DescribeStackEvents"] = {
        "StackEvents": [
            {
                "StackId": arn("one"),
                "EventId": "before",
                "StackName": "one",
                "Timestamp": NOW,
                "LogicalResourceId": "one",
                "ResourceType": "AWS::CloudFormation::Stack",
                "ResourceStatus": "CREATE_COMPLETE",
            }
        ]
    }
    return made
