"""What IAM's policy simulator is asked about existing roles, what is said of its answers, and of a key's policy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from answers import DENIED, Answers

from cfngen.cluster.load import parse
from cfngen.deploy.preflight.existing import services
from cfngen.deploy.preflight.existing.roles import find_missing_actions, notices, trusts
from cfngen.permissions.grants import Grant
from cfngen.permissions.statements import Condition, allow

ROLE = "arn:aws:iam::123456789012:role/own"


def answer(*denied: str, **of_resources: str) -> Any:
    """An answer that denies some actions, and others, by the part of their name after the service, for a resource."""

    def simulated(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"EvaluationResults": [result(action) for action in arguments["ActionNames"]]}

    def result(action: str) -> dict[str, Any]:
        decision = "implicitDeny" if action in denied else "allowed"
        specific = [
            {"EvalResourceName": "*", "EvalResourceDecision": each}
            for each in ("allowed", of_resources.get(action.partition(":")[2], "allowed"))
        ]
        return {"EvalActionName": action, "EvalDecision": decision, "ResourceSpecificResults": specific}

    return simulated


def asked(aws: Answers, condition: Condition | None = None, resource: str = "*") -> dict[str, Any]:
    """What the simulator is asked about one statement."""
    grant = Grant("master", "", [allow("One", "s3:PutObject ec2:RunInstances", [resource], condition)])
    assert find_missing_actions(aws.account, ROLE, grant) == []
    [sent] = aws.named("iam:SimulatePrincipalPolicy")
    return sent


@pytest.mark.parametrize(("condition", "context"), [
    (None, []),
    ({"StringEquals": {"aws:RequestedRegion": "us-west-2"}}, [("aws:RequestedRegion", "string", ["us-west-2"])]),
    # A key that is not multivalued has one value in a request.
    ({"StringEquals": {"ec2:Vpc": ["one", "two"]}}, [("ec2:Vpc", "string", ["one"])]),
    ({"ForAllValues:StringEquals": {"aws:TagKeys": ["a", "b"]}}, [("aws:TagKeys", "stringList", ["a", "b"])]),
    ({"ForAllValues:StringEquals": {"aws:TagKeys": ("a",)}}, [("aws:TagKeys", "stringList", ["a"])]),
    ({"ForAllValues:StringEquals": {"aws:TagKeys": "a"}}, [("aws:TagKeys", "stringList", ["a"])]),
    ({"NumericLessThanEquals": {"s3:lock": 7}}, [("s3:lock", "numeric", ["7"])]),
    ({"Bool": {"kms:GrantIsForAWSResource": "true"}}, [("kms:GrantIsForAWSResource", "boolean", ["true"])]),
    ({"Null": {"s3:if-none-match": "false"}}, [("s3:if-none-match", "string", ["any"])]),
    ({"Null": {"aws:RequestTag/a": "true"}}, []),
    ({"StringNotEquals": {"aws:ResourceTag/a": "b"}}, []),
    (
        {"Null": {"s3:two": "false", "s3:six": "false"}, "StringNotEquals": {"s3:one": "a"}, "Bool": {"s3:two": "b"}},
        [("s3:two", "boolean", ["b"]), ("s3:six", "string", ["any"])],
    ),
])  # fmt: skip
def test_the_request_of_which_is_asked_meets_the_condition(
    aws: Answers, condition: Condition | None, context: list[tuple[str, str, list[str]]]
) -> None:
    entries = asked(aws, condition)["ContextEntries"]
    assert [tuple(entry[f"ContextKey{part}"] for part in ("Name", "Type", "Values")) for entry in entries] == context


@pytest.mark.parametrize(("resource", "arn"), [
    ("*", "*"),
    ("arn:aws:ec2:*:*:volume/*", "arn:aws:ec2:us-west-2:123456789012:volume/*"),
    ("arn:aws:kms:eu-west-1:210987654321:key/a:b", "arn:aws:kms:eu-west-1:210987654321:key/a:b"),
    ("arn:aws:s3:::own/*", "arn:aws:s3:::own/*"),
])  # fmt: skip
def test_a_resource_is_one_of_the_account_and_region(aws: Answers, resource: str, arn: str) -> None:
    sent = asked(aws, resource=resource)
    assert (sent["PolicySourceArn"], sent["ResourceArns"]) == (ROLE, [arn])
    assert sent["ActionNames"] == ["ec2:RunInstances", "s3:PutObject"]


def said(aws: Answers, file: dict[str, Any] | None = None) -> list[str]:
    cluster = parse({"iam": {"masters": {"role": ROLE}}} | (file or {}))
    return [notice.text for notice in notices(aws.account, cluster, "kubernetes")]


@pytest.mark.parametrize(("answered", "lacks"), [
    (answer(), ""),
    (answer("ec2:AttachVolume"), "ec2:AttachVolume"),
    (answer(AttachVolume="explicitDeny"), "ec2:AttachVolume"),
    (answer("ec2:DescribeVpcs", "ec2:AttachVolume"), "ec2:AttachVolume and ec2:DescribeVpcs"),
    (
        answer(*(f"ec2:{name}" for name in (
            "AttachVolume", "CreateTags", "DescribeVpcs", "DescribeVolumes", "DetachVolume"
        ))),
        "ec2:AttachVolume, ec2:CreateTags, ec2:DescribeVolumes, ec2:DescribeVpcs and ec2:DetachVolume",
    ),
    (
        answer(*(f"ec2:{name}" for name in (
            "AttachVolume", "CreateTags", "DescribeVpcs", "DescribeVolumes", "DetachVolume", "ModifyVolume"
        ))),
        "ec2:AttachVolume, ec2:CreateTags, ec2:DescribeVolumes, ec2:DescribeVpcs, ec2:DetachVolume and 1 more",
    ),
])  # fmt: skip
def test_actions_that_the_simulator_denies_are_named(aws: Answers, answered: Any, lacks: str) -> None:
    aws.given["iam:SimulatePrincipalPolicy"] = answered
    expected = f"iam.masters.role: according to IAM's policy simulator, {ROLE} lacks {lacks} of the actions in master"
    assert [text.startswith(expected) for text in said(aws)] == [True] * bool(lacks)


def test_what_is_asked_of_is_the_stacks_own(aws: Answers) -> None:
    cluster = parse({"name": "one", "iam": {"masters": {"role": ROLE}}})
    assert not list(notices(aws.account, cluster, "blue"))
    asked_of = {arn for sent in aws.named("iam:SimulatePrincipalPolicy") for arn in sent["ResourceArns"]}
    stacks = {arn.split("/")[1] for arn in asked_of if ":stack/" in arn}
    assert stacks
    assert all(stack.startswith("blue") for stack in stacks)


def test_who_may_not_simulate_is_told(aws: Answers) -> None:
    aws.given["iam:SimulatePrincipalPolicy"] = DENIED
    [text] = said(aws)
    assert text.startswith(
        f"iam.masters.role: whether {ROLE} has the permissions that it needs is not known: not allowed"
    )


def test_roles_of_another_account_are_not_simulated(aws: Answers) -> None:
    other = ROLE.replace("123456789012", "210987654321")
    assert said(aws, {"iam": {"masters": {"role": other}, "nodes": {"role": other}}}) == []
    assert not aws.calls


@pytest.mark.parametrize(("trust", "is_trusted"), [
    *(({"Action": action}, True) for action in ("sts:AssumeRole", ["sts:TagSession", "sts:Assume*"], "STS:*Role", "*")),
    *(({"Action": action}, False) for action in ("sts:AssumeRoleWithWebIdentity", "sts:TagSession", [])),
    ({"Principal": {"Service": ["lambda.amazonaws.com", "ec2.amazonaws.com"]}}, True),
    ({"Principal": {"Service": "ec2.amazonaws.com.cn"}}, False),
    ({"Principal": {"AWS": "ec2.amazonaws.com"}}, False),
    ({"Principal": "*"}, False),
    ({"Effect": "Deny"}, False),
])  # fmt: skip
@pytest.mark.parametrize("in_list", [False, True])
def test_a_trust_policy_lets_ec2_assume_the_role(trust: dict[str, Any], is_trusted: bool, in_list: bool) -> None:
    statement = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"} | trust
    policy = {"Version": "2012-10-17", "Statement": [statement] if in_list else statement}
    assert trusts(policy, "ec2.amazonaws.com") is is_trusted


KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
ROOT = "arn:aws:iam::123456789012:root"
OWN = {"iam": {kind: {"role": f"{ROLE}-{kind}"} for kind in ("masters", "nodes")}}
OF_OWN = [f"{ROLE}-masters", f"{ROLE}-nodes"]
SAID = (
    "secrets.kmsKey: the key's policy neither leaves access to the IAM policies of account 123456789012 nor names the "
    "roles of masters and nodes, which must be allowed kms:Decrypt, and masters kms:GenerateDataKey"
)


def of_key(principal: Any, action: Any = "kms:*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": principal, "Action": action, "Resource": "*", **more}


@pytest.mark.parametrize(("statements", "file", "is_said"), [
    ([of_key({"AWS": ROOT})], {}, False),
    ([of_key({"AWS": ["123456789012"]})], {}, False),
    ([of_key("*")], {}, False),
    ([of_key({"AWS": "*"})], {}, False),
    (of_key({"AWS": ROOT}), {}, False),
    ([of_key({"AWS": ROOT}, ["kms:Encrypt", "kms:Decrypt"])], {}, False),
    ([of_key({"AWS": ROOT}, "kms:D*")], {}, False),
    ([of_key({"AWS": ROOT}, "*")], {}, False),
    ([of_key({"AWS": ROOT}, Condition={"Bool": {"aws:SecureTransport": "true"}})], {}, False),
    ([], {}, True),
    ([of_key({"AWS": ROOT}, "kms:Describe*")], {}, True),
    ([of_key({"AWS": ROOT}, Effect="Deny")], {}, True),
    ([of_key({"AWS": "arn:aws:iam::210987654321:root"})], {}, True),
    ([of_key({"Service": "secretsmanager.amazonaws.com"})], {}, True),
    # Roles that exist already may be named themselves, in one statement or in several.
    ([of_key({"AWS": OF_OWN})], OWN, False),
    ([of_key({"AWS": role}) for role in OF_OWN], OWN, False),
    ([of_key({"AWS": [*OF_OWN, "arn:aws:iam::123456789012:user/operator"]})], OWN, False),
    ([of_key({"AWS": OF_OWN[0]})], OWN, True),
    ([of_key({"AWS": OF_OWN[1]})], OWN, True),
    ([of_key({"AWS": OF_OWN[0]}), of_key({"AWS": OF_OWN[1]}, "kms:Encrypt")], OWN, True),
    ([of_key({"AWS": OF_OWN})], {}, True),
])  # fmt: skip
def test_the_policy_of_a_key_lets_instances_decrypt_with_it(
    aws: Answers, statements: Any, file: dict[str, Any], is_said: bool
) -> None:
    aws.given["kms:GetKeyPolicy"] = {"Policy": json.dumps({"Version": "2012-10-17", "Statement": statements})}
    said = list(services.notices(aws.account, parse({"secrets": {"kmsKey": KEY}, **file})))
    assert [notice.text for notice in said] == [SAID] * is_said
    assert aws.named("kms:GetKeyPolicy") == [{"KeyId": KEY, "PolicyName": "default"}]


@pytest.mark.parametrize(
    ("answered", "reason"),
    [
        (DENIED, "not known: "),
        ({"Policy": "[]"}, "not known: AWS's answer to kms:GetKeyPolicy has no JSON object as its Policy"),
        ({"Policy": "{"}, "not known: AWS's answer to kms:GetKeyPolicy has no JSON object as its Policy"),
        # Without a policy, nobody may.
        ({}, "neither leaves access"),
        ({"Policy": "{}"}, "neither leaves access"),
    ],
)
def test_a_policy_of_a_key_that_cannot_be_read_is_not_judged(aws: Answers, answered: Any, reason: str) -> None:
    aws.given["kms:GetKeyPolicy"] = answered
    [notice] = services.notices(aws.account, parse({"secrets": {"kmsKey": KEY}}))
    assert reason in notice.text
    assert str(notice.hint) == 'docs/operate/security.md shows the key policy ("Your own key").'


def test_the_policy_of_a_key_of_the_cluster_is_not_read(aws: Answers) -> None:
    assert (list(services.notices(aws.account, parse({}))), aws.calls) == ([], [])
