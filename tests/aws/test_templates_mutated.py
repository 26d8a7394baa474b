"""Every template ends: right or wrong, modelled or not, an operation is refused or comes to a final status.

Templates of golden cases with one fault, drawn by a seed, are created in the emulator as its server runs it, where
whatever an operation raises fails its resource. Of each template, one resource and what it refers to is left.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError
from wrong_templates import CAPABILITIES, Attempt, upload

from cfngen.sandbox.cloudformation import ApiError, NotModelledError
from cfngen.sandbox.cloudformation.template import parse

CASES = ("default", "private-nat-per-zone", "pod-roles", "api-dns-private", "flow-logs-s3", "spot-mixed")
Body = dict[str, Any]
Place = tuple[Any, Any]  # a mapping or list, and a key or index in it


def places(value: Any) -> Iterator[Place]:
    """Everything within a value, at any depth."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(item, (dict, list)):
            yield from places(item)


def dropped(draw: random.Random, resource: Body) -> None:
    holder, key = draw.choice(list(places(resource["Properties"])))
    del holder[key]


def of_another_type(draw: random.Random, resource: Body) -> None:
    holder, key = draw.choice(list(places(resource["Properties"])))
    holder[key] = draw.choice([[], {}, "", "no-such-value", -1, True, 1.5, ["a", "a"], {"Key": "a"}])


def of_a_missing_type(draw: random.Random, resource: Body) -> None:
    resource["Type"] = draw.choice(["AWS::EC2::NoSuchType", "AWS::DynamoDB::Table", "Custom::Thing"])


def with_an_unknown_property(draw: random.Random, resource: Body) -> None:
    holders = [resource["Properties"], *(holder for holder, _ in places(resource["Properties"]))]
    holder = draw.choice([holder for holder in holders if isinstance(holder, dict)])
    holder["NoSuchProperty"] = "x"


def with_a_function(draw: random.Random, resource: Body) -> None:
    holder, key = draw.choice(list(places(resource["Properties"])))
    holder[key] = draw.choice(
        [
            {"Fn::GetAZs": ""}, {"Ref": "AWS::NoValue"}, {"Fn::Select": [0, []]}, {"Fn::Select": ["x", ["a"]]},
            {"Fn::Length": ["a"]}, {"Fn::Cidr": ["10.0.0.0/16", 300, 8]}, {"Fn::Cidr": ["x", 1, 8]},
            {"Fn::Split": [",", {"Ref": "AWS::StackName"}]}, {"Fn::ImportValue": "nothing"},
        ]
    )  # fmt: skip


def without_attributes(draw: random.Random, resource: Body) -> None:
    for attribute in ("CreationPolicy", "UpdatePolicy", "DependsOn"):
        resource.pop(attribute, None)


MUTATIONS: tuple[Callable[[random.Random, Body], None], ...] = (
    dropped, of_another_type, of_a_missing_type, with_an_unknown_property, with_a_function, without_attributes,
)  # fmt: skip


def needed(body: Mapping[str, Any], logical_id: str) -> Body:
    """The template with one resource and what it depends on, without outputs."""
    resources = parse(json.dumps(body)).resources
    ids, pending = set(), {logical_id}
    while pending:
        ids |= pending
        pending = {name for each in pending for name in resources[each].dependencies} - ids
    left = {key: copy.deepcopy(item) for key, item in body["Resources"].items() if key in ids}
    return {**{key: item for key, item in body.items() if key not in ("Outputs", "Resources")}, "Resources": left}


def outcome(attempt: Attempt, name: str, body: Body, values: dict[str, str], *, in_change_set: bool) -> str:
    """The status in which a creation ends, or "" for a call that is refused; every internal error is told."""
    cloud = attempt.account.cloud
    url = upload(attempt.account, body)
    try:
        if in_change_set:
            change_set = cloud.create_change_set(
                name, "c", kind="CREATE", url=url, parameters=values, capabilities=CAPABILITIES
            )
            cloud.advance(10)
            status, reasons = change_set.status, [change_set.reason]
        else:
            stack = cloud.wait(cloud.create_stack(name, url=url, parameters=values, capabilities=CAPABILITIES))
            status, reasons = stack.status, [event.reason for event in stack.events]
            cloud.wait(cloud.delete_stack(stack.id))
    except (ApiError, NotModelledError, ClientError):
        return ""
    assert not [reason for reason in reasons if "internal error" in reason]
    return status


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 60))])
def test_it_is_refused_or_comes_to_an_end(seed: int) -> None:
    draw = random.Random(seed)
    attempt = Attempt({"base": f"{CASES[seed % len(CASES)]}/standalone", "change": []})
    attempt.account.cloud.resource_errors = (Exception,)
    values = attempt.parameters(attempt.right, {})
    with_properties = [key for key, item in attempt.right["Resources"].items() if item.get("Properties")]
    for number in range(20):
        logical_id, mutate = draw.choice(with_properties), draw.choice(MUTATIONS)
        body = needed(attempt.right, logical_id)
        mutate(draw, body["Resources"][logical_id])
        ended = outcome(attempt, f"s{number}", body, values, in_change_set=number % 4 == 0)
        assert ended in ("", "CREATE_COMPLETE", "ROLLBACK_COMPLETE", "FAILED"), (mutate, logical_id)
