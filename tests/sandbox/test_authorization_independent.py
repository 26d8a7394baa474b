"""The evaluator of IAM's policies against an independent one: Principal Mapper, on cases by chance that stay the same.

Where Principal Mapper is known to be wrong, `KNOWN` says so with the page of AWS's documentation; a case without any of
that has to be decided alike.
"""

from __future__ import annotations

import collections
import collections.abc
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest

from cfngen.sandbox.services.authorization import Caller, Policies, Request, authorize
from cfngen.sandbox.services.rules import Refused

# Principal Mapper imports what Python 3.10 moved.
with (
    mock.patch.object(collections, "Mapping", collections.abc.Mapping, create=True),
    mock.patch.object(collections, "MutableMapping", collections.abc.MutableMapping, create=True),
):
    from principalmapper.common import Node, Policy
    from principalmapper.querying.query_interface import local_check_authorization_full

SEED, CASES = 30, 1_000
ACCOUNT = "123456789012"
USER, ROLE = (f"arn:aws:iam::{ACCOUNT}:{name}" for name in ("user/ada", "role/nodes"))
SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/nodes/i-1"
REQUESTS = (
    ("s3:GetObject", "arn:aws:s3:::documents/ada/1"),
    ("s3:PutObject", "arn:aws:s3:::documents/bob/2"),
    ("ec2:DeleteVolume", f"arn:aws:ec2:us-west-2:{ACCOUNT}:volume/vol-1"),
    ("kms:Decrypt", f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1-2"),
    ("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:us-west-2:{ACCOUNT}:secret:ca-abcdef"),
)
ACTIONS = ("*", "s3:*", "s3:Get*", "s3:?utObject", "ec2:*", "ec2:deletevolume", "kms:Decrypt", "secretsmanager:*Value")
RESOURCES = (
    "*", "arn:aws:s3:::documents/*", "arn:aws:s3:::documents/${aws:username}/*", f"arn:aws:ec2:*:{ACCOUNT}:volume/*",
    f"arn:aws:kms:us-west-2:{ACCOUNT}:key/*", f"arn:aws:secretsmanager:*:{ACCOUNT}:secret:ca-??????",
)  # fmt: skip
ODD_RESOURCES = {
    "default of a variable": "arn:aws:s3:::documents/${aws:user, 'ada'}/*",
    "case of a resource": "arn:aws:s3:::DOCUMENTS/*",
}
# For each operator: values of a policy, and values of a request.
VALUES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "StringEquals": (("ada", "bob"), ("ada", "eve")),
    "StringEqualsIgnoreCase": (("Ada", "bob"), ("ada", "BOB", "eve")),
    "StringLike": (("a*", "b?b"), ("ada", "bob", "eve")),
    "NumericEquals": (("1", "10"), ("1", "2")),
    "NumericLessThan": (("5", "10"), ("1", "10")),
    "NumericGreaterThanEquals": (("5", "10"), ("1", "5")),
    "DateEquals": (("2026-01-01T00:00:00Z",), ("2026-01-01T00:00:00Z", "1767225600", "1767225601")),
    "DateLessThan": (("2026-01-01T00:00:00Z",), ("2025-12-31T00:00:00Z", "1767225600")),
    "DateGreaterThan": (("2026-01-01T00:00:00Z",), ("2026-01-02T00:00:00Z", "1767225600")),
    "Bool": (("true", "false"), ("true", "false")),
    "BinaryEquals": (("YWRh", "Ym9i"), ("YWRh", "ZXZl")),
    "IpAddress": (("203.0.113.0/24", "2001:db8::/32"), ("203.0.113.9", "198.51.100.1", "2001:db8::1")),
    "ArnEquals": ((f"arn:aws:iam::{ACCOUNT}:role/*", USER), (ROLE, USER, "arn:aws:iam::aws:policy/a")),
}
NEGATED = {
    "StringEquals": "StringNotEquals", "StringEqualsIgnoreCase": "StringNotEqualsIgnoreCase",
    "StringLike": "StringNotLike", "NumericEquals": "NumericNotEquals", "DateEquals": "DateNotEquals",
    "IpAddress": "NotIpAddress", "ArnEquals": "ArnNotEquals",
}  # fmt: skip
OPERATORS_PAGE = "IAM JSON policy elements: Condition operators"
SETS_PAGE = "Set operators for multivalued context keys"
DECISION_PAGE = "Policy evaluation for requests within a single account"
KNOWN = {
    "StringNotLike, no key": f"{OPERATORS_PAGE}: a negated operator is met without the key",
    "IfExists, of values that are parsed": f"{OPERATORS_PAGE}: IfExists can be added to any operator but Null",
    "set operator, not of strings": f"{SETS_PAGE}: they can be added to any operator",
    "ForAnyValue with IfExists, no key": f"{OPERATORS_PAGE}: without the key, IfExists is met",
    "default of a variable": "IAM policy elements: Variables and tags: specifying default values",
    "case of a resource": "IAM JSON policy elements: Resource: ARNs are case-sensitive",
    "role beyond its limits": f"{DECISION_PAGE}: what names a role is limited by boundary and session policies",
    "AWS *": "AWS JSON policy elements: Principal: as a principal, * and AWS: * are the same",
}
"""Why Principal Mapper decides otherwise, by what a case has."""
OF_CONDITIONS = [row for row, page in KNOWN.items() if page.startswith((OPERATORS_PAGE, SETS_PAGE))]


@dataclass
class Case:
    """A case by chance.

    Attributes:
        oddity: the row of `KNOWN` of which it may have something; empty for every other case.
        is_odd: whether it has.
    """

    chance: random.Random
    is_odd: bool = False
    context: dict[str, list[str]] = field(default_factory=lambda: {"aws:username": ["ada"]})

    def __post_init__(self) -> None:
        self.oddity = self.chance.choice([*KNOWN]) if self.chance.random() < 0.5 else ""
        self.action, self.resource = self.chance.choice(REQUESTS)
        if is_about_roles := self.oddity == "role beyond its limits":
            self.action, self.resource = REQUESTS[0]
        self.is_role = is_about_roles or self.chance.random() < 0.5
        self.identity = [self.document() for _ in range(self.chance.randint(1, 2))]
        self.boundary = self.document() if is_about_roles or self.chance.random() < 0.25 else None
        self.session = self.document() if self.is_role and self.chance.random() < 0.4 else None
        has_policy = ":key/" in self.resource or (":ec2:" not in self.resource and self.chance.random() < 0.4)
        self.resource_policy = self.document(of_resource=True) if has_policy else None
        if self.oddity in OF_CONDITIONS:
            self.narrow()

    def narrow(self) -> None:
        """Leave one statement, so that its condition decides."""
        self.boundary = self.session = self.resource_policy = None
        self.action, self.resource = REQUESTS[0]
        condition = None
        while not condition or not self.is_odd:
            self.context = {}
            condition = dict([self.condition()])
        statement = {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": condition}
        self.identity = [{"Version": "2012-10-17", "Statement": statement}]

    def document(self, *, of_resource: bool = False) -> dict[str, Any]:
        statements = [self.statement(of_resource=of_resource) for _ in range(self.chance.randint(1, 3))]
        return {"Version": "2012-10-17", "Statement": statements}

    def statement(self, *, of_resource: bool) -> dict[str, Any]:
        chance = self.chance
        not_action, not_resource = (chance.random() < 0.15 for _ in range(2))
        odd_resource = ODD_RESOURCES.get(self.oddity)
        resources = chance.sample(RESOURCES, chance.randint(1, 3))
        if odd_resource and chance.random() < 0.5:
            resources, self.is_odd = [odd_resource], True
        statement: dict[str, Any] = {
            "Effect": chance.choices(("Allow", "Deny"), (4, 1))[0],
            "NotAction" if not_action else "Action": chance.sample(ACTIONS, chance.randint(1, 3)),
            "NotResource" if not_resource else "Resource": resources,
        }
        if chance.random() < 0.6:
            statement["Condition"] = dict(self.condition() for _ in range(chance.randint(1, 2)))
        if of_resource:
            statement["Principal"] = self.principal()
        return statement

    def principal(self) -> Any:
        principals: list[Any] = [
            {"AWS": ACCOUNT}, {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "*", {"AWS": f"arn:aws:iam::{ACCOUNT}:user/bob"},
            {"Service": "ec2.amazonaws.com"},
        ]  # fmt: skip
        odd_principals = {"AWS *": {"AWS": "*"}}
        if self.is_role and (self.boundary or self.session):
            odd_principals["role beyond its limits"] = {"AWS": ROLE}
        else:
            principals.append({"AWS": ROLE if self.is_role else USER})
        if self.oddity in odd_principals and self.chance.random() < 0.5:
            self.is_odd = True
            return odd_principals[self.oddity]
        return self.chance.choice(principals)

    def condition(self) -> tuple[str, dict[str, Any]]:
        """Draw an operator with its key and values; most often, the context gets a value of the key."""
        chance = self.chance
        base = chance.choice([*VALUES, "Null"])
        if base == "Null":
            key = f"aws:{chance.choice([*VALUES]).lower()}"
            return "Null", {key: chance.choice(("true", "false"))}
        key = f"aws:{base.lower()}"
        is_negated = base in NEGATED and chance.random() < 0.4
        name = NEGATED[base] if is_negated else base
        set_operator = chance.choices(("", "ForAllValues:", "ForAnyValue:"), (6, 1, 1))[0]
        if_exists = "IfExists" if chance.random() < 0.2 else ""
        odd = {
            "StringNotLike, no key": name == "StringNotLike",
            "IfExists, of values that are parsed": if_exists and base.startswith(("Num", "Date", "Ip", "Bin")),
            "set operator, not of strings": set_operator and not base.startswith("String"),
            "ForAnyValue with IfExists, no key": set_operator == "ForAnyValue:" and if_exists,
        }
        if any(is_so for row, is_so in odd.items() if row != self.oddity):
            return self.condition()
        self.is_odd |= bool(odd.get(self.oddity))
        if key not in self.context and chance.random() < 0.7:
            self.context[key] = [chance.choice(VALUES[base][1])]
        expected = chance.sample(VALUES[base][0], chance.randint(1, len(VALUES[base][0])))
        return f"{set_operator}{name}{if_exists}", {key: expected}

    def ours(self) -> bool:
        caller = Caller(SESSION, role=ROLE) if self.is_role else Caller(USER)
        session = None if self.session is None else [self.session]
        policies = Policies(self.identity, self.boundary, session, self.resource_policy)
        return authorize(Request(self.action, self.resource, self.context), caller, policies) == "allowed"

    def theirs(self) -> bool:
        policies = [Policy(f"arn:aws:iam::{ACCOUNT}:policy/{n}", str(n), each) for n, each in enumerate(self.identity)]
        boundary = Policy(f"arn:aws:iam::{ACCOUNT}:policy/bound", "bound", self.boundary) if self.boundary else None
        role = ({}, [], 0) if self.is_role else (None, None, 0)
        arn = ROLE if self.is_role else USER
        node = Node(arn, "AIDA1", policies, None, *role, False, False, boundary, False, {})
        context = {key: value[0] for key, value in self.context.items()}
        return bool(
            local_check_authorization_full(
                node, self.action, self.resource, context, self.resource_policy, ACCOUNT, None, self.session
            )
        )


def cases() -> Iterator[Case]:
    chance = random.Random(SEED)
    for _ in range(CASES):
        yield Case(chance)


@pytest.fixture(scope="module")
def compared() -> list[tuple[Case, bool, bool]]:
    """The cases that both decide, with our decision and theirs; a few of ours are not modelled."""
    found = []
    for case in cases():
        try:
            found.append((case, case.ours(), case.theirs()))
        except Refused as refused:
            if "a grant to everybody" not in str(refused):
                raise
    return found


def test_both_decide_alike(compared: list[tuple[Case, bool, bool]]) -> None:
    plain = [(case, ours, theirs) for case, ours, theirs in compared if not case.is_odd]
    assert len(plain) > 300
    assert 100 < sum(ours for _, ours, _ in plain) < len(plain) - 100
    assert [vars(case) for case, ours, theirs in plain if ours is not theirs] == []


def test_what_is_known_explains_every_other_difference(compared: list[tuple[Case, bool, bool]]) -> None:
    different = [case for case, ours, theirs in compared if ours is not theirs]
    assert all(case.is_odd for case in different)
    assert {case.oddity for case in different} == set(KNOWN)
