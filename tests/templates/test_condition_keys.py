"""Policies against the Service Authorization Reference: keys of conditions, and levels of access in statements' names.

Every condition rests on a key that the action has, so that no statement allows nothing.

IAM takes a condition on a key that the request does not carry, and then never grants it. What carries which key is
written in the Service Authorization Reference (`service_authorization`).
"""

from __future__ import annotations

import re
from typing import Any

import documented_policies as policies
import pytest
from service_authorization import listed, matching, statements, unsupported
from test_addon_ports import ALL as ADDONS
from test_policies import CONFIGURATIONS, resolved

from cfngen.cluster.load import parse
from cfngen.permissions.grants import grants, scope_of
from cfngen.permissions.scope import Scope

CLUSTERS: list[dict[str, Any]] = [
    *CONFIGURATIONS,
    {"addons": ADDONS},
    {"network": {"plugin": "amazon-vpc"}, "addons": ADDONS},
    {"network": {"plugin": "cilium"}},
    {"network": {"topology": "private"}},
    {"etcd": {"backups": {"bucket": "my-backups"}}},
    {"serviceAccountIssuer": {}, "addons": ADDONS},
    {"serviceAccountIssuer": {"discovery": "bucket"}, "network": {"plugin": "amazon-vpc"}, "addons": ADDONS},
    {"certificateAuthority": {"secret": "arn:aws:secretsmanager:us-west-2:123456789012:secret:my-ca-AbCdEf"}},
]
# A statement whose name speaks of these only allows nothing else: of looking, nothing that changes; of making, nothing
# that takes away. `And` joins the names of statements that are one.
LOOKING = re.compile(r"(^|[a-z])(Check|Find|List|Look|Read)([A-Z]|$)")
MAKING = re.compile(r"(^|[a-z])(Make|New|Prepare|Upload)([A-Z]|$)")
TAKING_AWAY = ("Delete", "Remove", "Terminate")


@pytest.mark.parametrize("configuration", CLUSTERS)
def test_conditions_of_instances_rest_on_what_requests_carry(templates: Any, configuration: dict[str, Any]) -> None:
    body = resolved(templates(configuration)["standalone"])
    found = list(statements(body["Resources"]))
    assert any("Condition" in each for each in found)
    assert [each for statement in found for each in unsupported(statement)] == []


@pytest.mark.parametrize(
    "policy",
    [
        policies.operator_policy,
        policies.execution_policy,
        policies.roles_and_secrets_policy,
        policies.several_masters_policy,
        policies.private_cluster_policy,
        policies.etcd_policy,
        policies.bucket_policy,
    ],
)
def test_conditions_of_operators_rest_on_what_requests_carry(policy: Any) -> None:
    found = list(statements(policy(Scope("123456789012", "us-west-2", "prod"))))
    assert found
    assert [each for statement in found for each in unsupported(statement)] == []


def levels(action: str) -> set[str]:
    """The levels of access of an action, or of all that an action with an asterisk matches."""
    return {each.access for each in matching(action)}


def named_falsely(statement: dict[str, Any]) -> list[str]:
    """The actions of a statement that its name hides."""
    names = str(statement["Sid"]).split("And")
    actions = listed(statement["Action"])
    if all(LOOKING.search(name) for name in names):
        return [action for action in actions if not levels(action) <= {"List", "Read"}]
    if all(LOOKING.search(name) or MAKING.search(name) for name in names):
        return [action for action in actions if action.split(":")[1].startswith(TAKING_AWAY)]
    return []


@pytest.mark.parametrize("configuration", CLUSTERS)
def test_names_of_statements_hide_nothing_that_they_allow(configuration: dict[str, Any]) -> None:
    cluster = parse(configuration)
    found = [statement for grant in grants(cluster, scope_of(cluster)) for statement in grant.statements]
    assert any(str(statement["Sid"]).startswith("ReadStacks") for statement in found)
    assert [(statement["Sid"], hidden) for statement in found if (hidden := named_falsely(dict(statement)))] == []
