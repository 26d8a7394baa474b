"""Calls of the boot program and of programs of others, and the statements of their roles: neither without the other.

`calls.json` has what each program calls in the releases that cfngen installs, from their sources. For every golden
cluster, example and a few others, each call that its options can cause is allowed, with all conditions, to the role
that makes it; and each action of each statement is called.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from botocore import xform_name
from called_resources import (
    CLUSTER,
    CONTROLLERS,
    OPTIONS,
    Caller,
    callers,
    calls_of,
    clusters,
    is_allowed,
    resources,
    rows_of,
)
from called_resources import table as calls_table

from cfngen.permissions.explanations import component_version, explanation_table
from cfngen.releases import patches_by_minor

ROOT = Path(__file__).parents[2]
# Statements that nothing in the table needs, with the reason why they are granted.
NOT_CALLED: dict[str, str] = {}
# Of these components cfngen installs no chart, image or package of a version of its own.
WITHOUT_VERSION = ("boot program", "flow logs")


def roles() -> list[Caller]:
    """The roles of instances, pods and flow logs."""
    return [caller for caller in callers() if caller.name.startswith(("master", "nodes-", "pod-", "flow-log"))]


def test_every_call_is_allowed_to_the_role_that_makes_it() -> None:
    refused = [
        (role.cluster, role.name, call)
        for role in roles()
        for _, call in role.calls
        if not is_allowed(role.statements, call)
    ]
    assert refused == []


def test_nothing_is_granted_that_is_not_called() -> None:
    unused = [
        (role.cluster, role.name, statement["Sid"], action)
        for role in roles()
        for statement in role.statements
        if not statement["Sid"].startswith("ClusterFile") and statement["Sid"] not in NOT_CALLED
        for action in statement["Action"]
        if not any(call.action == action and is_allowed([statement], call) for _, call in role.calls)
    ]
    assert unused == []


def test_what_programs_call_only_in_other_circumstances_is_refused() -> None:
    allowed, left_out = [], []
    for role in roles():
        cluster = clusters()[role.cluster]
        for component, row in rows_of(cluster, role.name, "left out"):
            # On the masters' role another component may call it.
            if role.name != "master":
                left_out.append(component)
                calls = calls_of(row, cluster, resources(cluster, CLUSTER))
                allowed += [(role.name, call) for call in calls if is_allowed(role.statements, call)]
    assert allowed == []
    assert {*left_out} == CONTROLLERS.keys()


def test_every_row_is_a_call_of_some_cluster() -> None:
    used = {json.dumps(row) for caller in callers() for row, _ in caller.calls}
    assert [row for entry in calls_table().values() for row in entry["calls"] if json.dumps(row) not in used] == []


def test_options_are_those_of_rows() -> None:
    named = {row["when"] for entry in calls_table().values() for row in entry["calls"] if "when" in row}
    assert named == OPTIONS.keys()


@pytest.mark.parametrize("component", [*calls_table()])
def test_the_table_is_of_the_releases_that_clusters_install(component: str) -> None:
    """Whoever raises a version reads what the release calls: its sources, and the difference to the former."""
    entry = calls_table()[component]
    if component in WITHOUT_VERSION:
        assert "versions" not in entry
    else:
        assert entry["versions"] == sorted({component_version(component, each) for each in patches_by_minor()})


def test_every_component_of_an_explanation_is_in_the_table() -> None:
    explained = {row["component"] for row in explanation_table()["roles"].values()} - {"cluster file"}
    assert explained <= calls_table().keys()
    assert CONTROLLERS.keys() <= explained


def test_calls_of_the_boot_program_are_where_the_table_says() -> None:
    operations = {"s3:ListBucket": "list_objects_v2"}
    for row in calls_table()["boot program"]["calls"]:
        if row["source"].startswith("cfngen/"):
            text = (ROOT / row["source"]).read_text()
            names = [
                operations.get(action) or xform_name(action.partition(":")[2]) for action in row["actions"].split()
            ]
            assert any(f'"{name}"' in text for name in names), row
