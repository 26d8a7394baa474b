"""The evaluator of IAM's policies, by what AWS's documentation says; each table names the page that its rows are of."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from cfngen.sandbox.services.authorization import ANONYMOUS, Caller, Policies, Request, authorize, decision
from cfngen.sandbox.services.rules import Refused

ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/kubernetes/nodes"
SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/nodes/i-1"
USER = f"arn:aws:iam::{ACCOUNT}:user/ada"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
OBJECT = "arn:aws:s3:::documents/ada/letter.txt"
BUCKET = "arn:aws:s3:::documents/*"
KEY = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1"
SECRET = f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:ca-AbCdEf"
QUEUE = f"arn:aws:sqs:us-east-2:999999999999:store/abc:{ACCOUNT}:finance/document.txt"
INSTANCE = f"arn:aws:ec2:us-west-2:{ACCOUNT}:instance/i-1"
VOLUME = f"arn:aws:ec2:us-west-2:{ACCOUNT}:volume/vol-1"


def document(*statements: dict[str, Any], version: str = "2012-10-17") -> dict[str, Any]:
    return {"Version": version, "Statement": list(statements)}


def allow(action: Any = "*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def deny(action: Any = "*", resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {**allow(action, resource, **more), "Effect": "Deny"}


def met(operator: str, expected: Any, *values: str, key: str = "aws:x") -> bool:
    """Whether the values of a key meet a condition; without values the request lacks the key."""
    statement = allow(Condition={operator: {key.upper(): expected}})
    return decision([document(statement)], "s3:GetObject", OBJECT, {key: [*values]} if values else {}) == "allowed"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


# "IAM JSON policy elements: Condition operators". Operator, values of the policy, and values of the request that meet
# it and that do not.
OPERATORS: list[tuple[str, Any, list[str], list[str]]] = [
    ("StringEquals", ["ada", "bob"], ["ada", "bob"], ["Ada", "ad", "adaa", "a*"]),
    ("StringEquals", "a*", ["a*"], ["ab"]),
    ("StringNotEquals", ["ada", "bob"], ["Ada", "eve"], ["ada", "bob"]),
    ("StringEqualsIgnoreCase", "Ada", ["ada", "ADA"], ["bob"]),
    ("StringNotEqualsIgnoreCase", "Ada", ["bob"], ["ada"]),
    ("StringLike", ["a*z", "b?"], ["az", "a b z", "bc"], ["A z", "b", "bcd", "aza"]),
    ("StringLike", "[a-z].(x)", ["[a-z].(x)"], ["a.(x)", "[a-z]:(x)"]),
    ("StringNotLike", ["a*z", "b?"], ["A z", "b"], ["az", "bc"]),
    ("NumericEquals", "10", ["10", "10.0"], ["11", "-10"]),
    ("NumericNotEquals", ["10", "12"], ["11"], ["10", "12.0"]),
    ("NumericLessThan", "10", ["9", "9.99", "-100"], ["10", "11"]),
    ("NumericLessThanEquals", "10", ["10", "9"], ["10.5"]),
    ("NumericGreaterThan", 10, ["11", "100"], ["10", "9"]),
    ("NumericGreaterThanEquals", "10", ["10"], ["9"]),
    ("DateEquals", "2026-01-01T00:00:00Z", ["2026-01-01T00:00:00Z", "1767225600"], ["2026-01-01T00:00:01Z"]),
    ("DateNotEquals", "2026-01-01", ["2026-01-02"], ["2026-01-01T00:00:00+00:00"]),
    ("DateLessThan", "2026-01-01T00:00:00Z", ["2025-12-31T23:59:59Z"], ["2026-01-01T00:00:00Z"]),
    ("DateLessThanEquals", "1767225600", ["2026-01-01T01:00:00+01:00"], ["2026-01-01T01:00:00Z"]),
    ("DateGreaterThan", "2026-01-01T00:00:00Z", ["2026-01-02"], ["2026-01-01"]),
    ("DateGreaterThanEquals", "2026-01-01T00:00:00Z", ["2026-01-01"], ["2025-12-31"]),
    ("Bool", "true", ["true", "True"], ["false"]),
    ("Bool", False, ["false"], ["true"]),
    ("BinaryEquals", encoded("ab"), [encoded("ab")], [encoded("AB")]),
    ("IpAddress", ["203.0.113.0/24", "2001:DB8:1234:5678::/64"], ["203.0.113.9", "2001:db8:1234:5678::1"],
     ["203.0.114.9", "2001:db8:1234:5679::1"]),
    ("IpAddress", "203.0.113.9", ["203.0.113.9"], ["203.0.113.8"]),
    ("NotIpAddress", "203.0.113.0/24", ["198.51.100.1"], ["203.0.113.9"]),
    ("ArnEquals", VOLUME, [VOLUME], [VOLUME.upper(), f"{VOLUME}0"]),
    ("ArnLike", "arn:aws:ec2:*:*:volume/vol-?", [VOLUME], [f"{VOLUME}0", "volume/vol-1"]),
    ("ArnEquals", "arn:aws:ec2:*:*:volume/*", [VOLUME], ["arn:aws:ec2:us-west-2::snapshot/1"]),
    # The example of the page: what StringLike matches, and an operator of ARNs does not.
    ("ArnLike", f"arn:aws:sqs:*:{ACCOUNT}:finance/*", [f"arn:aws:sqs:us-east-2:{ACCOUNT}:finance/x"], [QUEUE]),
    ("StringLike", f"arn:aws:sqs:*:{ACCOUNT}:finance/*", [QUEUE], ["arn:aws:sqs:us-east-2:1:finance/x"]),
    ("ArnNotEquals", VOLUME, [f"{VOLUME}0"], [VOLUME]),
    ("ArnNotLike", "arn:aws:ec2:*:*:volume/*", [ROLE], [VOLUME]),
    ("Null", "false", ["", "x"], []),
    ("Null", "true", [], ["x"]),
]  # fmt: skip
NEGATED = tuple(sorted({row[0] for row in OPERATORS if "Not" in row[0]}))
POSITIVE = tuple(sorted({row[0] for row in OPERATORS if "Not" not in row[0]} - {"Null"}))


@pytest.mark.parametrize(("operator", "expected", "meeting", "others"), OPERATORS)
def test_operators_compare(operator: str, expected: Any, meeting: list[str], others: list[str]) -> None:
    assert [value for value in meeting if not met(operator, expected, value)] == []
    assert [value for value in others if met(operator, expected, value)] == []


@pytest.mark.parametrize(("operator", "expected", "meeting", "others"), [row for row in OPERATORS if row[0] != "Null"])
def test_set_operators_ask_for_all_or_any_value(
    operator: str, expected: Any, meeting: list[str], others: list[str]
) -> None:
    """ "Set operators for multivalued context keys"."""
    assert met(f"ForAllValues:{operator}", expected, *meeting)
    assert met(f"ForAnyValue:{operator}", expected, *others, meeting[0])
    assert not met(f"ForAllValues:{operator}", expected, *meeting, others[0])
    assert not met(f"ForAnyValue:{operator}", expected, *others)


def expected_of(operator: str) -> Any:
    return next(row[1] for row in OPERATORS if row[0] == operator)


def test_a_key_that_the_request_lacks() -> None:
    """ "Condition operators", the box, IfExists and Null; "Set operators", the notes on empty sets."""
    for operator in (*POSITIVE, *NEGATED):
        expected = expected_of(operator)
        assert met(operator, expected) is (operator in NEGATED), operator
        assert met(f"{operator}IfExists", expected), operator
        assert met(f"ForAllValues:{operator}", expected), operator
        assert not met(f"ForAnyValue:{operator}", expected), operator
        assert met(f"ForAnyValue:{operator}IfExists", expected), operator
    assert met("ForAllValues:StringEquals", "ada", "")
    assert not met("ForAnyValue:StringLike", "*", "")
    assert met("Null", "true")
    assert not met("Null", "false")


@pytest.mark.parametrize(("operator", "expected", "meeting", "others"), [row for row in OPERATORS if row[0] != "Null"])
def test_with_if_exists_a_key_that_is_there_counts(
    operator: str, expected: Any, meeting: list[str], others: list[str]
) -> None:
    assert all(met(f"{operator}IfExists", expected, value) for value in meeting)
    assert not any(met(f"{operator}IfExists", expected, value) for value in others)


def test_all_keys_of_all_operators_have_to_be_met() -> None:
    """ "Conditions with multiple context keys or values"."""
    condition = {"StringEquals": {"aws:a": "1", "aws:b": ["2", "3"]}, "Bool": {"aws:c": "true"}}
    policy = [document(allow(Condition=condition))]
    context = {"aws:a": ["1"], "aws:b": ["3"], "aws:c": ["true"]}
    assert decision(policy, "s3:GetObject", OBJECT, context) == "allowed"
    for key in context:
        assert decision(policy, "s3:GetObject", OBJECT, {**context, key: ["false"]}) == "implicitDeny"


# "IAM JSON policy elements reference": Action, NotAction, Resource and NotResource. A statement, and requests that it
# covers and that it does not.
ON_VOLUME = ("ec2:AttachVolume", VOLUME)
STATEMENTS: list[tuple[dict[str, Any], list[tuple[str, str]], list[tuple[str, str]]]] = [
    (allow("EC2:attach*"), [ON_VOLUME], [("ec2:DetachVolume", VOLUME), ("elasticec2:AttachVolume", VOLUME)]),
    (allow(["ec2:?ttachVolume", "s3:*"]), [ON_VOLUME, ("s3:GetObject", OBJECT)], [("sts:AssumeRole", ROLE)]),
    ({"Effect": "Allow", "NotAction": ["ec2:*", "s3:Get*"], "Resource": "*"}, [("s3:PutObject", OBJECT)],
     [ON_VOLUME, ("s3:GetObject", OBJECT)]),
    (allow("ec2:*", "arn:aws:ec2:*:*:volume/*"), [ON_VOLUME], [("ec2:AttachVolume", INSTANCE)]),
    (allow("sqs:*", f"arn:aws:sqs:*:{ACCOUNT}:finance/*"), [("sqs:SendMessage", QUEUE)], [("sqs:ListQueues", "*")]),
    (allow("ec2:*", VOLUME), [ON_VOLUME], [("ec2:AttachVolume", VOLUME.upper()), ("ec2:DescribeVolumes", "*")]),
    (allow("s3:*", "arn:aws:s3:::doc*s"), [("s3:ListBucket", "arn:aws:s3:::documents")], [("s3:GetObject", OBJECT)]),
    (allow("s3:*", "arn:aws:s3:::*/ada/*"), [("s3:GetObject", OBJECT)], [("s3:GetObject", BUCKET)]),
    ({"Effect": "Allow", "Action": "*", "NotResource": [BUCKET]}, [ON_VOLUME, ("s3:ListAllMyBuckets", "*")],
     [("s3:GetObject", OBJECT)]),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "covered", "others"), STATEMENTS)
def test_statements_cover(
    statement: dict[str, Any], covered: list[tuple[str, str]], others: list[tuple[str, str]]
) -> None:
    policy = [document(statement)]
    assert [request for request in covered if decision(policy, *request, {}) != "allowed"] == []
    assert [request for request in others if decision(policy, *request, {}) != "implicitDeny"] == []
    denied = [document(allow(), {**statement, "Effect": "Deny"})]
    assert {decision(denied, *request, {}) for request in covered} == {"explicitDeny"}
    assert {decision(denied, *request, {}) for request in others} == {"allowed"}


# "IAM policy elements: Variables and tags". A resource, a context, and whether OBJECT is covered.
VARIABLES: list[tuple[str, dict[str, list[str]], bool]] = [
    ("arn:aws:s3:::documents/${aws:username}/*", {"aws:username": ["ada"]}, True),
    ("arn:aws:s3:::documents/${AWS:UserName}/*", {"aws:username": ["ada"]}, True),
    ("arn:aws:s3:::documents/${aws:username}/*", {"aws:username": ["bob"]}, False),
    ("arn:aws:s3:::documents/${aws:username}/*", {}, False),
    ("arn:aws:s3:::documents/${aws:username, 'ada'}/*", {}, True),
    ("arn:aws:s3:::documents/${aws:username, 'ada'}/*", {"aws:username": ["bob"]}, False),
    ("arn:aws:s3:::documents/${aws:PrincipalTag/team}/*", {"aws:principaltag/team": ["ada"]}, True),
    ("arn:aws:s3:::documents/ada/${*}", {}, False),
    ("arn:aws:s3:::documents/${aws:username}/*", {"aws:username": ["."]}, False),
]


@pytest.mark.parametrize(("resource", "context", "is_covered"), VARIABLES)
def test_variables_in_resources(resource: str, context: dict[str, list[str]], is_covered: bool) -> None:
    decided = decision([document(allow("s3:*", resource))], "s3:GetObject", OBJECT, context)
    assert decided == ("allowed" if is_covered else "implicitDeny")


@pytest.mark.parametrize(
    ("operator", "pattern", "value", "is_met"),
    [
        ("StringEquals", "${aws:username}-x", "ada-x", True),
        ("StringEquals", "${aws:username}-x", "bob-x", False),
        ("StringNotEquals", "${aws:username}", "bob", True),
        ("StringEqualsIgnoreCase", "X-${aws:UserName}", "x-ADA", True),
        ("StringLike", "${aws:username}/*", "ada/1", True),
        ("StringLike", "a${*}", "a*", True),
        ("StringLike", "a${*}", "ab", False),
        ("StringLike", "a${?}b${$}", "a?b$", True),
        ("StringEquals", "a${?}", "a?", True),
        ("ArnLike", "arn:aws:iam::*:user/${aws:username}", USER, True),
        ("ArnLike", "arn:aws:iam::*:user/${aws:PrincipalTag/x:y}", USER, False),
        ("StringLike", "${aws:missing}", "x", False),
    ],
)
def test_variables_in_conditions(operator: str, pattern: str, value: str, is_met: bool) -> None:
    context = {"aws:x": [value], "aws:username": ["ada"]}
    statement = allow(Condition={operator: {"aws:x": pattern}})
    assert (decision([document(statement)], "s3:GetObject", OBJECT, context) == "allowed") is is_met


@pytest.mark.parametrize("version", ["2008-10-17", None])
def test_earlier_versions_know_no_variables(version: str | None) -> None:
    statement = allow(Condition={"StringEquals": {"aws:x": "${aws:username}"}})
    policy = {"Statement": statement, **({"Version": version} if version else {})}
    context = {"aws:username": ["ada"]}
    assert decision([policy], "s3:GetObject", OBJECT, {**context, "aws:x": ["ada"]}) == "implicitDeny"
    assert decision([policy], "s3:GetObject", OBJECT, {**context, "aws:x": ["${aws:username}"]}) == "allowed"


GET = Request("s3:GetObject", OBJECT)
NOTHING, EVERYTHING, NONE_OF_S3 = document(), document(allow()), document(deny("s3:*"))
BY_SESSION, BY_USER = Caller(SESSION, role=ROLE), Caller(USER)


def to(principal: Any, effect: str = "Allow", element: str = "Principal", resource: str = "*") -> dict[str, Any]:
    return document({"Effect": effect, element: principal, "Action": "*", "Resource": resource})


# "Policy evaluation for requests within a single account", "How AWS enforcement code logic evaluates requests". Who
# asks for what, the identity's policies, the boundary, the session policies and the resource's policy.
YES, NO, DENIED = "allowed", "implicitDeny", "explicitDeny"
DECISIONS: list[tuple[Caller, Policies, str]] = [
    (BY_USER, Policies([NOTHING]), NO),
    (BY_USER, Policies([EVERYTHING]), YES),
    (BY_USER, Policies([EVERYTHING, NONE_OF_S3]), DENIED),
    (BY_USER, Policies([EVERYTHING], boundary=NOTHING), NO),
    (BY_USER, Policies([NOTHING], boundary=EVERYTHING), NO),
    (BY_USER, Policies([EVERYTHING], boundary=EVERYTHING), YES),
    (BY_USER, Policies([NOTHING], boundary=NONE_OF_S3), DENIED),
    (BY_SESSION, Policies([EVERYTHING], session=[NOTHING]), NO),
    (BY_SESSION, Policies([EVERYTHING], session=[NOTHING, EVERYTHING]), YES),
    (BY_SESSION, Policies([EVERYTHING], session=[]), NO),
    (BY_SESSION, Policies([NOTHING], session=[EVERYTHING]), NO),
    (BY_SESSION, Policies([EVERYTHING], session=[EVERYTHING, NONE_OF_S3]), DENIED),
    # The resource's policy names the account: it delegates.
    (BY_USER, Policies([NOTHING], resource=to({"AWS": ROOT})), NO),
    (BY_USER, Policies([NOTHING], resource=to({"AWS": ACCOUNT})), NO),
    (BY_USER, Policies([EVERYTHING], resource=to({"AWS": ACCOUNT})), YES),
    (BY_USER, Policies([EVERYTHING], resource=NOTHING), YES),
    # The user, or the session: nothing limits that.
    (BY_USER, Policies([NOTHING], resource=to({"AWS": USER})), YES),
    (BY_USER, Policies([NOTHING], boundary=NOTHING, resource=to({"AWS": USER})), YES),
    (BY_SESSION, Policies([NOTHING], boundary=NOTHING, session=[NOTHING], resource=to({"AWS": SESSION})), YES),
    # The role: limited by the boundary and the session policies.
    (BY_SESSION, Policies([NOTHING], resource=to({"AWS": ROLE})), YES),
    (BY_SESSION, Policies([NOTHING], boundary=NOTHING, resource=to({"AWS": ROLE})), NO),
    (BY_SESSION, Policies([NOTHING], session=[NOTHING], resource=to({"AWS": ROLE})), NO),
    (BY_SESSION, Policies([NOTHING], boundary=EVERYTHING, session=[EVERYTHING], resource=to({"AWS": ROLE})), YES),
    (BY_SESSION, Policies([NOTHING], resource=to({"AWS": ROLE.replace("/kubernetes", "")})), NO),
    (BY_SESSION, Policies([NOTHING], resource=to({"AWS": SESSION + "2"})), NO),
    # Everybody.
    (BY_USER, Policies([NOTHING], resource=to("*")), YES),
    (BY_USER, Policies([NOTHING], resource=to({"AWS": "*"})), YES),
    (ANONYMOUS, Policies(resource=to("*")), YES),
    (ANONYMOUS, Policies(resource=to({"AWS": ACCOUNT})), NO),
    (ANONYMOUS, Policies(), NO),
    # A denial prevails.
    (BY_USER, Policies([EVERYTHING], resource=to({"AWS": USER}, "Deny")), DENIED),
    (BY_SESSION, Policies([EVERYTHING], resource=to({"AWS": ROLE}, "Deny")), DENIED),
    (BY_SESSION, Policies([EVERYTHING], resource=to({"AWS": ROOT}, "Deny")), DENIED),
    (BY_USER, Policies([NONE_OF_S3], resource=to({"AWS": USER})), DENIED),
    (BY_USER, Policies([EVERYTHING], resource=to({"AWS": ROLE}, "Deny")), YES),
    (BY_USER, Policies([EVERYTHING], resource=to("*", "Deny", resource="arn:aws:s3:::others/*")), YES),
    # Services, and who bears a token.
    (Caller(service="cloudfront.amazonaws.com"), Policies(resource=to({"Service": "cloudfront.amazonaws.com"})), YES),
    (Caller(service="cloudfront.amazonaws.com"), Policies(resource=to({"Service": "ec2.amazonaws.com"})), NO),
    (Caller(service="cloudfront.amazonaws.com"), Policies(resource=to({"AWS": ROOT})), NO),
    # "NotPrincipal": the account has to be named, of a session the role too; a boundary is always denied.
    (BY_USER, Policies([EVERYTHING], resource=to({"AWS": [USER, ROOT]}, "Deny", "NotPrincipal")), YES),
    (BY_USER, Policies([EVERYTHING], resource=to({"AWS": USER}, "Deny", "NotPrincipal")), DENIED),
    (
        BY_USER,
        Policies([EVERYTHING], boundary=EVERYTHING, resource=to({"AWS": [USER, ROOT]}, "Deny", "NotPrincipal")),
        DENIED,
    ),
    (BY_SESSION, Policies([EVERYTHING], resource=to({"AWS": [SESSION, ROLE, ROOT]}, "Deny", "NotPrincipal")), YES),
    (BY_SESSION, Policies([EVERYTHING], resource=to({"AWS": [ROLE, ROOT]}, "Deny", "NotPrincipal")), DENIED),
    (ANONYMOUS, Policies(resource=to({"AWS": ROOT}, "Deny", "NotPrincipal")), DENIED),
]


@pytest.mark.parametrize(("caller", "policies", "expected"), DECISIONS)
def test_all_policies_together_decide(caller: Caller, policies: Policies, expected: str) -> None:
    assert authorize(GET, caller, policies) == expected


@pytest.mark.parametrize(
    ("identity", "principal", "expected"),
    [(NOTHING, ROLE, YES), (NOTHING, ROOT, NO), (EVERYTHING, ROOT, YES), (EVERYTHING, USER, YES), (NOTHING, USER, NO)],
)
def test_the_policy_of_a_secret_suffices(identity: dict[str, Any], principal: str, expected: str) -> None:
    policies = Policies([identity], resource=to({"AWS": principal}))
    assert authorize(Request("secretsmanager:GetSecretValue", SECRET), BY_SESSION, policies) == expected


# "Key policies in AWS KMS": "no AWS principal … has any permissions to a KMS key unless they are explicitly allowed …
# in a key policy, IAM policy, or grant", and IAM policies count only if the key policy lets the account use them.
# "IAM JSON policy elements: Principal" and the page on evaluation: the same of trust policies.
@pytest.mark.parametrize(
    ("identity", "resource_policy", "expected"),
    [
        (EVERYTHING, NOTHING, NO),
        (EVERYTHING, to({"AWS": ROOT}), YES),
        (NOTHING, to({"AWS": ROOT}), NO),
        (NOTHING, to({"AWS": USER}), YES),
        (NOTHING, to("*"), YES),
        (EVERYTHING, to({"AWS": ROLE}), NO),
        (EVERYTHING, to({"AWS": ROOT}, "Deny"), DENIED),
    ],
)
def test_keys_and_roles_have_to_be_granted_by_their_own_policy(
    identity: dict[str, Any], resource_policy: dict[str, Any], expected: str
) -> None:
    policies = Policies([identity], resource=resource_policy)
    assert authorize(Request("kms:Decrypt", KEY), BY_USER, policies) == expected
    [statement] = resource_policy["Statement"] or [None]
    trust = {key: value for key, value in (statement or {}).items() if key != "Resource"}
    trusting = Policies([identity], resource=document(*([trust] if trust else [])))
    assert authorize(Request("sts:AssumeRole", ROLE), BY_USER, trusting) == expected


def test_a_token_is_trusted_by_its_provider_and_claims() -> None:
    provider = f"arn:aws:iam::{ACCOUNT}:oidc-provider/issuer.example.com"
    trust = {"Effect": "Allow", "Principal": {"Federated": provider}, "Action": "sts:AssumeRoleWithWebIdentity",
             "Condition": {"StringEquals": {"issuer.example.com:sub": "system:serviceaccount:a:b"}}}  # fmt: skip
    for bearer, subject, expected in (
        (provider, "system:serviceaccount:a:b", YES),
        (provider, "system:serviceaccount:a:c", NO),
        (provider + "/other", "system:serviceaccount:a:b", NO),
    ):
        request = Request("sts:AssumeRoleWithWebIdentity", ROLE, {"issuer.example.com:sub": [subject]})
        assert authorize(request, Caller(provider=bearer), Policies(resource=document(trust))) == expected


MISSING = "arn:aws:s3:::documents/${aws:missing}/*"
NOT_MODELLED: list[tuple[dict[str, Any], dict[str, list[str]]]] = [
    ({"Version": "2020-01-01", "Statement": allow()}, {}),
    (document({**allow(), "Effect": "allow"}), {}),
    (document({"Effect": "Allow", "Resource": "*"}), {}),
    (document({**allow(), "NotAction": "s3:*"}), {}),
    (document({"Effect": "Allow", "Action": "*"}), {}),
    (document({**allow(), "NotResource": "*"}), {}),
    (document(allow(Condition={"StringSounds": {"aws:x": "a"}})), {}),
    (document(allow(Condition={"NullIfExists": {"aws:x": "true"}})), {}),
    (document(allow(Condition={"ForSomeValues:StringEquals": {"aws:x": "a"}})), {}),
    (document(allow(Condition={"StringEquals": {"aws:x": "a"}})), {"aws:x": ["a", "b"]}),
    (document(allow(Condition={"NumericEquals": {"aws:x": "1"}})), {"aws:x": ["one"]}),
    (document(allow(Condition={"NumericEquals": {"aws:x": "one"}})), {"aws:x": ["1"]}),
    (document(allow(Condition={"DateEquals": {"aws:x": "2026"}})), {"aws:x": ["2026-01-01"]}),
    (document(allow(Condition={"Bool": {"aws:x": "yes"}})), {"aws:x": ["true"]}),
    (document(allow(Condition={"Null": {"aws:x": "no"}})), {}),
    (document(allow(Condition={"BinaryEquals": {"aws:x": "?"}})), {"aws:x": ["YQ=="]}),
    (document(allow(Condition={"IpAddress": {"aws:x": "10.0.0.0/33"}})), {"aws:x": ["10.0.0.1"]}),
    (document(allow(Condition={"ArnLike": {"aws:x": "*"}})), {"aws:x": [ROLE]}),
    (document(allow("*", "arn:aws:s3")), {}),
    (document(allow("*", "arn:aws:${aws:x}:::documents/*")), {"aws:x": ["s3"]}),
    (document(allow("*", "arn:aws:s3:::documents/${aws:x}/*")), {"aws:x": ["ada", "bob"]}),
    (document(allow("*", "arn:aws:s3:::documents/${aws:x}/*")), {"aws:x": ["a*"]}),
    (document(allow("*", "arn:a*3:::documents/*")), {}),
    (document(allow(), deny("*", MISSING)), {}),
]


@pytest.mark.parametrize(("policy", "context"), NOT_MODELLED)
def test_what_is_not_modelled_is_no_decision(policy: dict[str, Any], context: dict[str, list[str]]) -> None:
    with pytest.raises(Refused, match="NotModelled"):
        decision([policy], "s3:GetObject", OBJECT, context)


@pytest.mark.parametrize(
    ("request_", "caller", "policies"),
    [
        (Request("kms:Decrypt", KEY), BY_USER, Policies([EVERYTHING])),
        (Request("sts:AssumeRole", ROLE), BY_USER, Policies([EVERYTHING])),
        (GET, Caller(ROOT), Policies([EVERYTHING])),
        (GET, Caller(f"arn:aws:sts::{ACCOUNT}:federated-user/ada"), Policies([EVERYTHING])),
        (Request("kms:Decrypt", KEY.replace(ACCOUNT, "1" * 12)), BY_USER, Policies([EVERYTHING], resource=to("*"))),
        (GET, BY_USER, Policies([EVERYTHING], resource=to({"AWS": "arn:aws:iam::123456789012:user/*"}))),
        (GET, BY_USER, Policies([EVERYTHING], resource=to({"AWS": "AIDACKCEVSQ6C2EXAMPLE"}))),
        (GET, BY_USER, Policies([EVERYTHING], resource=to({"AWS": ROLE}, element="NotPrincipal"))),
        (GET, BY_USER, Policies([EVERYTHING], boundary=NOTHING, resource=to("*"))),
    ],
)
def test_callers_and_resources_that_are_not_modelled_get_no_decision(
    request_: Request, caller: Caller, policies: Policies
) -> None:
    with pytest.raises(Refused, match="NotModelled"):
        authorize(request_, caller, policies)
