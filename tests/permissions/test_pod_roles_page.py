"""What masters and nodes may do before and after components have roles of their own, as docs/ shows it.

The parts between the marks are made of the policies; `CFNGEN_UPDATE_GOLDEN=1` (`make golden`) writes them again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.permissions.addons import addon_statements
from cfngen.permissions.grants import scope_of
from cfngen.permissions.instance_roles import master_statements, node_statements, plugin_statements_of_masters
from cfngen.permissions.service_accounts import made_roles
from cfngen.permissions.statements import Statement, policy_document, policy_size

PAGE = Path(__file__).parents[2] / "docs/reference/pod-roles-permissions.md"
MADE = re.compile(r"(?s)(<!-- Written by `make golden`[^\n]*-->\n).*?(<!-- End -->)")
ACCOUNT = "123456789012"
EVERY_ADDON = {
    "clusterAutoscaler": {"enabled": True},
    "awsLoadBalancerController": {"enabled": True},
    "externalDns": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]},
}
CERT_MANAGER = {"certManager": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]}}
CLUSTERS: dict[str, dict[str, Any]] = {
    "default": {},
    "every add-on that calls AWS": {"addons": EVERY_ADDON},
    "the same with `amazon-vpc`": {"addons": EVERY_ADDON, "network": {"plugin": "amazon-vpc"}},
}


def statements_of_instances(cluster: Cluster) -> Iterator[tuple[str, list[Statement]]]:
    """The statements of all policies of masters, and of nodes."""
    scope = scope_of(cluster, account=ACCOUNT)
    of_plugin = plugin_statements_of_masters(cluster, scope)
    yield "masters", [*master_statements(cluster, scope), *of_plugin, *addon_statements(cluster, scope)]
    yield "nodes", node_statements(cluster, scope)


def with_roles(configuration: dict[str, Any]) -> Cluster:
    return parse({**configuration, "serviceAccountIssuer": {}})


def actions(statements: list[Statement]) -> set[str]:
    return {action for statement in statements for action in statement["Action"]}


def characters(statements: list[Statement]) -> str:
    return f"{policy_size(policy_document(statements)):,}"


def table_of_instances() -> str:
    rows = ["| cluster | role of | actions before | after | characters before | after |", "|---|---|--:|--:|--:|--:|"]
    for name, configuration in CLUSTERS.items():
        after_by_role = dict(statements_of_instances(with_roles(configuration)))
        for role, before in statements_of_instances(parse(configuration)):
            after = after_by_role[role]
            counts = f"{len(actions(before))} | {len(actions(after))}"
            rows.append(f"| {name} | {role} | {counts} | {characters(before)} | {characters(after)} |")
    return "\n".join(rows)


def lists_of_actions() -> str:
    """What is left of each role of instances, in a cluster with everything."""
    configuration = CLUSTERS["the same with `amazon-vpc`"]
    lines: list[str] = []
    for role, statements in statements_of_instances(with_roles(configuration)):
        of_service: dict[str, list[str]] = {}
        for action in sorted(actions(statements)):
            service, _, name = action.partition(":")
            of_service.setdefault(service, []).append(name)
        listed = "; ".join(f"`{service}` {', '.join(names)}" for service, names in of_service.items())
        lines.append(f"- **{role}**: {listed}.")
    return "\n".join(lines)


def table_of_pods() -> str:
    rows = ["| service account | actions | of them changes | characters |", "|---|--:|--:|--:|"]
    for configuration in ({}, {"addons": {**EVERY_ADDON, **CERT_MANAGER}, "network": {"plugin": "amazon-vpc"}}):
        cluster = with_roles(configuration)
        for role in made_roles(cluster, scope_of(cluster, account=ACCOUNT)):
            name = f"{role.account.namespace}/{role.account.name}"
            plugin = " with VPC routes" if name.endswith("cloud-controller-manager") and not configuration else ""
            changing = len([action for action in actions(role.statements) if not is_reading(action)])
            counts = f"{len(actions(role.statements))} | {changing} | {characters(role.statements)}"
            if not any(row.startswith(f"| `{name}`{plugin} |") for row in rows):
                rows.append(f"| `{name}`{plugin} | {counts} |")
    return "\n".join(rows)


def is_reading(action: str) -> bool:
    return action.partition(":")[2].startswith(("Describe", "Get", "List"))


def test_the_page_shows_what_the_policies_say() -> None:
    parts = iter((table_of_instances(), lists_of_actions(), table_of_pods()))
    page = PAGE.read_text()
    current = MADE.sub(lambda match: f"{match[1]}{next(parts)}\n{match[2]}", page)
    assert next(parts, None) is None
    if page != current and os.environ.get("CFNGEN_UPDATE_GOLDEN"):
        PAGE.write_text(current)
        pytest.fail(f"{PAGE} rewritten: review it, then run without CFNGEN_UPDATE_GOLDEN")
    assert page == current


@pytest.mark.parametrize("name", CLUSTERS)
def test_instances_lose_permissions_and_gain_only_the_documents(name: str) -> None:
    after = dict(statements_of_instances(with_roles(CLUSTERS[name])))
    for role, before in statements_of_instances(parse(CLUSTERS[name])):
        assert actions(after[role]) <= actions(before)
        if role == "masters":
            assert len(actions(after[role])) < len(actions(before)) / 2
