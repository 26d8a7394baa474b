"""Policies that name one cluster match every name that CloudFormation makes up for it, however long its stack's is."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator

import pytest

from cfngen.cli.input.target import MAX_STACK_NAME_LENGTH
from cfngen.permissions.scope import Scope
from cfngen.sandbox.cloudformation.region import generated_name

STACKS = [("production-eu-west-1-" * 5)[:length].rstrip("-") for length in range(1, MAX_STACK_NAME_LENGTH + 1)]
HERE = "us-west-2:123456789012"
RANDOM = ("HDST4OHFVDIF", "1GRP3N0TVA1LD")  # CloudFormation's have twelve characters, and thirteen in earlier years
LONG = "NodeGroupAVeryLongNameOfAGroupIndeed"
# Nested stacks, with what is named after them: property of the scope, form of the name, its longest, logical ids.
NAMED: dict[str, list[tuple[str, str, int, tuple[str, ...]]]] = {
    "IamStack": [
        ("instance_role_arns", "iam::123456789012:role/", 64, ("MasterRole", "NodeRole")),
        ("managed_policy_arns", "iam::123456789012:policy/", 128,
         ("AddonsPolicy", "BackupsKeyPolicy", "BackupsLockPolicy", "CloudControllerPolicy", "NodePodAddressesPolicy",
          "PodAddressesPolicy", "PullImagesPolicy")),
        ("instance_profile_arns", "iam::123456789012:instance-profile/", 128,
         ("MasterExistingRoleProfile", "MasterInstanceProfile", "NodeExistingRoleProfile", "NodeInstanceProfile")),
    ],
    "NodeGroupWorkersStack": [
        ("instance_role_arns", "iam::123456789012:role/", 64, ("NodeGroupWorkersRole", f"{LONG}Role")),
        ("managed_policy_arns", "iam::123456789012:policy/", 128, (f"{LONG}PodAddressesPolicy",)),
        ("instance_profile_arns", "iam::123456789012:instance-profile/", 128, (f"{LONG}InstanceProfile",)),
        ("auto_scaling_group_arns", f"autoscaling:{HERE}:autoScalingGroup:0:autoScalingGroupName/", 255,
         ("NodeGroupWorkersAutoScalingGroup",)),
    ],
    "MasterStack": [
        ("auto_scaling_group_arns", f"autoscaling:{HERE}:autoScalingGroup:0:autoScalingGroupName/", 255,
         ("MasterAAutoScalingGroup",)),
    ],
    "BastionStack": [
        ("auto_scaling_group_arns", f"autoscaling:{HERE}:autoScalingGroup:0:autoScalingGroupName/", 255,
         ("BastionAutoScalingGroup",)),
    ],
    "VpcStack": [
        ("flow_log_role_arns", "iam::123456789012:role/", 64, ("FlowLogRole",)),
        ("log_group_arns", f"logs:{HERE}:log-group:", 512, ("FlowLogGroup",)),
    ],
    "SecretsStack": [
        ("backup_bucket_arns", "s3:::", 63, ("BackupBucket",)),
        ("issuer_bucket_arns", "s3:::", 63, ("IssuerBucket",)),
    ],
    "RegistryStack": [("push_role_arns", "iam::123456789012:role/", 64, ("PushWebRole",))],
    "SecurityGroupsStack": [],
}  # fmt: skip
PROPERTIES = {property_ for named in NAMED.values() for property_, *_ in named} | {"iam_arns", "nested_stack_arns"}


def nested(root: str, logical_id: str, random: str) -> str:
    return generated_name(root, logical_id, random, 128)


def scope(stack: str) -> Scope:
    return Scope("123456789012", "us-west-2", "blue", stack=stack)


def names(stack: str, random: str) -> Iterator[tuple[str, str]]:
    """The ARN of each thing whose name is generated, with the property of the scope that is meant to match it."""
    for nested_id, named in NAMED.items():
        nested_stack = nested(stack, nested_id, random)
        yield f"arn:aws:cloudformation:{HERE}:stack/{nested_stack}/0", "nested_stack_arns"
        for property_, arn, longest, logical_ids in named:
            for parent in (nested_stack, stack):
                for logical_id in logical_ids:
                    name = generated_name(parent, logical_id, random, longest)
                    yield f"arn:aws:{arn}{name.lower() if arn == 's3:::' else name}", property_
                    if arn.startswith("iam") and property_ != "push_role_arns":
                        yield f"arn:aws:{arn}{name}", "iam_arns"


def matches(cluster_scope: Scope, arn: str, property_: str) -> bool:
    return any(fnmatch.fnmatchcase(arn, pattern) for pattern in getattr(cluster_scope, property_))


@pytest.mark.parametrize("random", RANDOM)
def test_every_generated_name_is_matched(random: str) -> None:
    unmatched = [
        arn
        for stack in STACKS
        for arn, property_ in names(stack, random)
        if not (matches(scope(stack), arn, property_) and matches(Scope(), arn, property_))
    ]
    assert unmatched == []


@pytest.mark.parametrize("other", ["blue2", "blue-eu", "blue-green-iamstack", "a-blue"])
def test_names_of_a_cluster_whose_name_begins_alike_are_not_matched(other: str) -> None:
    matched = [
        arn for arn, _ in names(other, RANDOM[0]) for property_ in PROPERTIES if matches(scope("blue"), arn, property_)
    ]
    assert matched == []


@pytest.mark.parametrize("kind", ["role", "instance-profile", "policy"])
def test_without_a_cluster_only_names_of_the_templates_are_matched(kind: str) -> None:
    others = [f"arn:aws:iam::123456789012:{kind}/{name}" for name in ("admin-of-all", "web-WebRole-1AB", "cfngen-eu")]
    assert [arn for arn in others for property_ in PROPERTIES if matches(Scope(), arn, property_)] == []


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
