"""The report's masks: what tells whose account it is goes, what tells what happened stays."""

from __future__ import annotations

import pytest

from cfngen.rehearse.masking import Masks, without_numbers

ARN = "arn:aws:iam::123456789012:role/cfngen-rehearsal-IamStack-MasterRole-1ABCDEFGHIJKL"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("account 123456789012", "account <account-1>"),
        (f"role {ARN} is gone", "role <arn-iam-1> is gone"),
        ("Interface: [eni-0123456789abcdef0] in use.", "Interface: [<eni-1>] in use."),
        ("eipalloc-01234567 and ami-0a1b2c3d4e5f60718", "<eipalloc-1> and <ami-1>"),
        ("172.20.0.9 is in 172.20.0.0/24", "<ip-1> is in <ip-2>/24"),
        ("fd00:1:2::7 answers", "<ip-1> answers"),
        ("https://cfngen-123456789012-us-west-2.s3.amazonaws.com/a?X-Amz-Signature=0a", "<url-1>"),
        ("ip-172-20-0-9.us-west-2.compute.internal", "<host-1>"),
        ("stack cfngen-rehearsal-VpcStack-9EC174548918 failed", "stack <name-1> failed"),
        ("bucket cfngen-rehearsal-secretss-backupbucket-0a1b2c3d4e5f", "bucket <name-1>"),
        ("key AKIAIOSFODNN7EXAMPLE", "key <access-key-1>"),
        ("(Request ID: 8c5f6a3e-0a6b-4c1e-9d2f-0123456789ab)", "(Request ID: <uuid-1>)"),
        ("(Request ID: 4442587FB7D0A2F9)", "(Request ID: <token-1>)"),
        (
            "Encoded authorization failure message: aB3" + "x9_-" * 20,
            "Encoded authorization failure message: <token-1>",
        ),
        ("ask jo.doe@example.com", "ask <mail-1>"),
        ("the user jo-doe of trial", "the user <name-1> of <name-2>"),
    ],
)
def test_what_tells_whose_account_it_is_goes(text: str, masked: str) -> None:
    masks = Masks(["jo-doe", "trial"])
    assert masks(text) == masked
    assert masks(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "SecurityGroupsStack/MasterApiFromAllowedCidr AWS::EC2::SecurityGroupIngress",
        "New instance(s) added to autoscaling group - Waiting on 1 resource signal(s) with a timeout of PT15M.",
        "the template of us-west-2a was made by cfngen 1.0 in 2026-11-22T14:33:55Z",
        "cfngen-rehearsal",
        "cloudformation:DescribeStackResource is not allowed",
        "[3/14] downloads: fetched 9 of 9 files (18.6 s)",
    ],
)
def test_what_tells_what_happened_stays(text: str) -> None:
    assert Masks(["", "a", "us"])(text) == text


def test_the_same_thing_has_the_same_mask_in_every_text() -> None:
    masks = Masks()
    assert masks("vpc-01234567 holds subnet-01234567") == "<vpc-1> holds <subnet-1>"
    assert masks("subnet-01234567, subnet-89abcdef") == "<subnet-1>, <subnet-2>"
    assert masks("of vpc-01234567") == "of <vpc-1>"


def test_shapes_of_texts_are_alike_where_only_numbers_differ() -> None:
    assert without_numbers("[<i-3>] in batches of 1") == without_numbers("[<i-12>] in batches of 2")
    assert without_numbers("[<i-3>] in use") != without_numbers("[<eni-3>] in use")
