"""Calls of AWS and the policies of those who make them: neither without the other.

`calls.json` has what the boot program and each program of others calls in the releases that cfngen installs, from their
sources; and of operators, pipelines and CloudFormation a call for each statement. For every golden cluster, example and
a few others, each call that its options can cause is allowed, with all conditions, to who makes it; and each action of
each statement of instances and pods is called.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from account_resources import REGION
from botocore import xform_name
from call_table import CONTROLLERS, OPTIONS, Caller, callers, is_allowed, table

from cfngen.permissions.explanations import component_version, explanation_table, section_of
from cfngen.releases import patches_by_minor

ROOT = Path(__file__).parents[2]
# Statements that nothing in the table needs, with the reason why they are granted.
NOT_CALLED: dict[str, str] = {}
# Of these components cfngen installs no chart, image or package of a version of its own.
WITHOUT_VERSION = ("boot program", "flow logs", "cfngen", "pipeline", "CloudFormation")


def roles() -> list[Caller]:
    """The roles of instances, pods and flow logs, and of who pushes images."""
    return [caller for caller in callers() if section_of(caller.name) == "roles"]


def test_everybody_may_make_his_calls() -> None:
    refused = [
        (caller.cluster, caller.name, call)
        for caller in callers()
        for _, call in caller.calls
        if not is_allowed(caller.statements, call)
    ]
    assert refused == []


USES_OF_KEYS = ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncrypt", "kms:CreateGrant")
SERVICE_HOST = re.compile(rf"(\w+)\.{REGION}\.(?:amazonaws\.com|\*)")
# The service that sends an encryption context, by the context's key; volumes are EC2's.
SENDERS_OF_CONTEXT = {"kms:EncryptionContext:SecretARN": "secretsmanager", "kms:EncryptionContext:aws:s3:arn": "s3"}


def test_keys_are_used_through_the_service_that_keeps_the_data_and_in_the_clusters_region() -> None:
    """Decrypting is not permitted to callers themselves, and a service that does not exist permits it to nobody."""
    uses = [
        (role.name, statement)
        for role in callers()
        for statement in role.statements
        if any(action.startswith(USES_OF_KEYS) for action in statement["Action"])
    ]
    services = set()
    for name, statement in uses:
        conditions = {key: value for test in statement["Condition"].values() for key, value in test.items()}
        hosts = conditions["kms:ViaService"]
        matches = [SERVICE_HOST.fullmatch(host) for host in ([hosts] if isinstance(hosts, str) else hosts)]
        through = {match[1] if match else "" for match in matches}
        senders = {sender for key, sender in SENDERS_OF_CONTEXT.items() if key in conditions}
        # CloudFormation has volumes and secrets made with the same keys.
        assert through == (senders or ({"ec2", "secretsmanager"} if name == "execution" else {"ec2"})), statement
        services |= through
    assert services == {"ec2", "s3", "secretsmanager"}


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


def test_every_statement_of_those_who_deploy_is_for_a_call() -> None:
    unused = [
        (caller.cluster, caller.name, statement["Sid"])
        for caller in callers()
        for statement in caller.statements
        if statement["Effect"] == "Allow" and not statement["Sid"].startswith("ClusterFile")
        if not any(is_allowed([statement], call) for _, call in caller.calls)
    ]
    assert unused == []


def test_what_programs_call_only_in_other_circumstances_is_refused() -> None:
    # On the masters' role another component may call it.
    left_out = [(role, *each) for role in roles() if role.name != "master" for each in role.left_out]
    assert [(role.name, call) for role, _, call in left_out if is_allowed(role.statements, call)] == []
    assert {component for _, component, _ in left_out} == CONTROLLERS.keys()


def test_every_row_is_a_call_of_some_cluster() -> None:
    used = {json.dumps(row) for caller in callers() for row, _ in caller.calls}
    assert [row for entry in table().values() for row in entry["calls"] if json.dumps(row) not in used] == []


def test_options_are_those_of_rows() -> None:
    rows = [row for entry in table().values() for part in ("calls", "refused") for row in entry.get(part, ())]
    named = {row["when"] for row in rows if "when" in row}
    assert named == OPTIONS.keys()


@pytest.mark.parametrize("component", [*table()])
def test_the_table_is_of_the_releases_that_clusters_install(component: str) -> None:
    """Whoever raises a version reads what the release calls: its sources, and the difference to the former."""
    entry = table()[component]
    if component in WITHOUT_VERSION:
        assert "versions" not in entry
    else:
        assert entry["versions"] == sorted({component_version(component, each) for each in patches_by_minor()})


def test_every_component_of_an_explanation_is_in_the_table() -> None:
    explained = {row["component"] for row in explanation_table()["roles"].values()} - {"cluster file"}
    assert explained <= table().keys()
    assert CONTROLLERS.keys() <= explained


def test_calls_of_the_boot_program_are_where_the_table_says() -> None:
    operations = {"s3:ListBucket": "list_objects_v2"}
    for row in table()["boot program"]["calls"]:
        if row["source"].startswith("cfngen/"):
            text = (ROOT / row["source"]).read_text()
            names = [
                operations.get(action) or xform_name(action.partition(":")[2]) for action in row["actions"].split()
            ]
            assert any(f'"{name}"' in text for name in names), row
