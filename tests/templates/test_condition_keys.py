"""Policies against the Service Authorization Reference: keys of conditions, and levels of access in statements' names.

Every condition rests on a key that the action has, so that no statement allows nothing.

IAM takes a condition on a key that the request does not carry, and then never grants it. What carries which key is
written in the Service Authorization Reference; parliament brings it along.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import documented_policies as policies
import pytest
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
# These global keys are there only where the action's row of the reference names them; the others are in every request.
OF_TAGS = ("aws:requesttag/", "aws:resourcetag/", "aws:tagkeys")
# Younger than parliament's table: "Grant permission to tag resources during creation", Elastic Load Balancing User
# Guide.
YOUNGER = {("elasticloadbalancing:AddTags", "elasticloadbalancing:createaction")}


# Younger than parliament's table too, with the keys of the other (reference of 2026).
LIKE = {"elasticloadbalancing:ModifyIpPools": "elasticloadbalancing:ModifyCapacityReservation"}
# The tags of a key are in every request on it, though the reference says so with the resource only: "ABAC for AWS KMS",
# AWS KMS Developer Guide. Of IAM's roles it says so with the resource only, too: "Controlling access to and for IAM
# users and roles using tags", IAM User Guide.
BY_RESOURCE = {"kms": {"aws:resourcetag/"}, "iam": {"aws:resourcetag/"}}


# A statement whose name speaks of these only allows nothing else: of looking, nothing that changes; of making, nothing
# that takes away. `And` joins the names of statements that are one.
LOOKING = re.compile(r"(^|[a-z])(Check|Find|List|Look|Read)([A-Z]|$)")
MAKING = re.compile(r"(^|[a-z])(Make|New|Prepare|Upload)([A-Z]|$)")
TAKING_AWAY = ("Delete", "Remove", "Terminate")


@cache
def reference() -> dict[str, Any]:
    """The services of the reference by their prefix, with their actions by name."""
    text = resources.files("parliament").joinpath("iam_definition.json").read_text("utf-8")
    found: dict[str, Any] = {}
    for service in json.loads(text):
        entry = found.setdefault(service["prefix"], {"actions": {}, "resources": {}})
        entry["actions"].update({privilege["privilege"].lower(): privilege for privilege in service["privileges"]})
        entry["resources"].update({resource["resource"]: resource["arn"] for resource in service["resources"]})
    return found


def statements(value: Any) -> Iterator[dict[str, Any]]:
    """The statements of all policies within something."""
    if isinstance(value, list):
        for item in value:
            yield from statements(item)
    elif isinstance(value, dict):
        if "Effect" in value:
            yield value
        else:
            for item in value.values():
                yield from statements(item)


def listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(each) for each in value]


def overlaps(resource: str, form: str) -> bool:
    """Whether what a statement's resource says can be an ARN of a resource type: they agree part by part."""
    pairs = zip(resource.split(":", 5), form.split(":", 5), strict=False)
    return all(_begins_alike(re.split(r"[*]|\$\{", ours)[0], re.split(r"\$\{", theirs)[0]) for ours, theirs in pairs)


def _begins_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def keys(action: str, resource: str) -> set[str]:
    """The keys that requests for an action on a resource carry, in lower case; a tag's name is left out."""
    prefix, _, name = LIKE.get(action, action).partition(":")
    service = reference()[prefix]
    found = set(BY_RESOURCE.get(prefix, ()))
    for row in service["actions"][name.lower()]["resource_types"]:
        kind = row["resource_type"].rstrip("*")
        form = service["resources"].get(kind, "")
        if not kind or resource == "*" or not form or overlaps(resource, form):
            found |= {re.sub(r"\$\{.*", "", key).lower() for key in row["condition_keys"]}
    return found


def unsupported(statement: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """The conditions of a statement that an action of it knows nothing of."""
    for block in statement.get("Condition", {}).values():
        for key in (each.lower() for each in block):
            if key.startswith("aws:") and not key.startswith(OF_TAGS):
                continue
            for action in listed(statement["Action"]):
                if "*" in action or (action, key) in YOUNGER:
                    continue
                for resource in listed(statement.get("Resource", "*")):
                    if not any(
                        key == each or (each[-1] in "/:" and key.startswith(each)) for each in keys(action, resource)
                    ):
                        yield str(statement.get("Sid", "")), action, resource, key


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
    prefix, _, name = action.partition(":")
    found = {
        row["access_level"]
        for row in reference()[prefix]["actions"].values()
        if re.fullmatch(name.replace("*", ".*"), row["privilege"])
    }
    # Younger than parliament's table.
    return found or {"Read" if name.startswith(("Describe", "Get", "List")) else "Write"}


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
