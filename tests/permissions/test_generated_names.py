"""Policies that name one cluster match every name that CloudFormation makes up for it, however long its stack's is."""

from __future__ import annotations

import fnmatch
import re

import pytest

from cfngen.cli.input.target import MAX_STACK_NAME_LENGTH
from cfngen.permissions.scope import Scope
from cfngen.sandbox.cloudformation.region import generated_name

STACKS = [("production-eu-west-1-" * 5)[:length].rstrip("-") for length in range(1, MAX_STACK_NAME_LENGTH + 1)]
RANDOM = ("HDST4OHFVDIF", "1GRP3N0TVA1LD")  # CloudFormation's have twelve characters, and thirteen in earlier years
LOGICAL_IDS = ("MasterRole", "NodeGroupWorkersRole", "NodeGroupAVeryLongNameOfAGroupIndeedRole")


def nested(root: str, logical_id: str, random: str) -> str:
    return generated_name(root, logical_id, random, 128)


def scope(stack: str) -> Scope:
    return Scope("123456789012", "us-west-2", "blue", stack=stack)


def names(stack: str, random: str) -> list[tuple[str, list[str]]]:
    """The ARN of each thing whose name is generated, and the patterns that are meant to match it."""
    cluster_scope = scope(stack)
    iam = nested(stack, "IamStack", random)
    bucket = generated_name(nested(stack, "SecretsStack", random), "BackupBucket", random, 63).lower()
    masters = nested(stack, "MasterStack", random)
    group = generated_name(masters, "MasterAAutoScalingGroup", random, 255)
    arns_and_patterns = [
        (f"arn:aws:cloudformation:us-west-2:123456789012:stack/{iam}/0", cluster_scope.nested_stack_arns),
        (f"arn:aws:s3:::{bucket}", [cluster_scope.backup_bucket_arn]),
        (
            f"arn:aws:autoscaling:us-west-2:123456789012:autoScalingGroup:0:autoScalingGroupName/{group}",
            cluster_scope.auto_scaling_group_arns,
        ),
    ]
    for logical_id in LOGICAL_IDS:
        for kind, longest in (("role", 64), ("instance-profile", 128), ("policy", 128)):
            arn = f"arn:aws:iam::123456789012:{kind}/{generated_name(iam, logical_id, random, longest)}"
            arns_and_patterns.append((arn, cluster_scope.role_arns))
    return arns_and_patterns


@pytest.mark.parametrize("random", RANDOM)
def test_every_generated_name_is_matched(random: str) -> None:
    unmatched = [
        arn
        for stack in STACKS
        for arn, patterns in names(stack, random)
        if not any(fnmatch.fnmatchcase(arn, pattern) for pattern in patterns)
    ]
    assert unmatched == []


def test_short_names_match_no_cluster_whose_name_only_begins_alike() -> None:
    mine, theirs = scope("blue"), [arn for arn, _ in names("blue2", RANDOM[0])]
    patterns = [*mine.nested_stack_arns, *mine.role_arns, *mine.auto_scaling_group_arns, mine.backup_bucket_arn]
    assert [arn for arn in theirs for pattern in patterns if fnmatch.fnmatchcase(arn, pattern)] == []


# The names are CloudFormation's own, as people have shown them.
@pytest.mark.parametrize(
    ("stack", "logical_id", "limit", "name"),
    [
        ("ChineseboostAnalyticsStack", "RainlyticsLogsBucket8DF4", 63,
         "ChineseboostAnalyticsStac-RainlyticsLogsBucket8DF4-hdst4ohfvdif"),
        ("mylongerapp-playground-new", "InstancesLifecycleHandler", 64,
         "mylongerapp-playground-ne-InstancesLifecycleHandle-1GRP3N0TVA1LD"),
        ("kubernetes", "MasterRole", 64, "kubernetes-MasterRole-UjecjFhpdr1d"),
    ],
)  # fmt: skip
def test_names_are_cut_as_cloudformation_was_seen_to(stack: str, logical_id: str, limit: int, name: str) -> None:
    random = re.split("-", name)[-1]
    assert generated_name(stack, logical_id, random, limit) == name


def test_what_one_part_does_not_need_is_the_other_ones() -> None:
    assert generated_name("s" * 60, "Id", "x" * 12, 64) == f"{'s' * 48}-Id-{'x' * 12}"
    assert generated_name("s", "I" * 80, "x" * 12, 64) == f"s-{'I' * 49}-{'x' * 12}"
    assert len(generated_name("s" * 60, "I" * 60, "x" * 12, 63)) == 63
