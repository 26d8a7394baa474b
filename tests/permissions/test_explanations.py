"""Every statement says which component needs it, why, and for which call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name
from clusters import CASES, golden

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.permissions.explanations import (
    explained_sids,
    explained_statements,
    explanation_page,
    explanation_table,
    section_of,
)
from cfngen.permissions.grants import grants, scope_of
from cfngen.permissions.operators import command_groups
from cfngen.permissions.statements import Statement
from cfngen.releases import CLOUD_CONTROLLER_MANAGER_IMAGE
from cfngen.templates import generate

ROOT = Path(__file__).parents[2]
SECRET = "arn:aws:secretsmanager:us-west-2:123456789012:secret:own-AbCdEf"
# What no golden case has.
OTHERS: list[dict[str, Any]] = [
    {"certificateAuthority": {"secret": SECRET}, "etcd": {"backups": {"bucket": "snapshots-of-ours"}}},
    {
        "network": {
            "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "172.20.0.0/16"},
            "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "172.20.0.0/24"}],
            "routeTable": "rtb-0123456789abcdef0",
            "securityGroups": {"nodes": "sg-0123456789abcdef0"},
        },
        "serviceAccountIssuer": {},
        "addons": {"awsLoadBalancerController": {"enabled": True}},
    },
    {
        "network": {"plugin": "amazon-vpc"},
        "controlPlane": {"additionalSecurityGroups": ["sg-0123456789abcdef0"]},
    },
    {
        "iam": {"permissionsBoundary": "arn:aws:iam::123456789012:policy/boundary"},
        "registry": {
            "repositories": [{"name": "web"}],
            "push": [{"name": "web", "provider": "github", "project": "example/web"}],
        },
    },
]
# Together they have a resource of each type.
CASES_OF_ALL_TYPES = (
    *("three-masters", "private-single-nat", "api-dns-public", "capacity-reservations", "flow-logs-cloudwatch"),
    *("pod-roles", "references", "registry"),
)
CASE_NAMES = sorted(path.parent.name for path in CASES.glob("*/cluster.yaml"))
# Who makes one call needs these as well: another service asks for them, or they have no operation of their own.
DEPENDENT = (
    *("iam:PassRole", "ec2:RunInstances", "ec2:CreateTags", "kms:", "s3:List", "s3:GetAccountPublicAccessBlock"),
    "s3:PutObjectRetention",
)
DRIFT = "cfngen/deploy/aws/drift.py"


def clusters() -> Iterator[Cluster]:
    yield from (golden(case) for case in CASE_NAMES)
    yield from (parse(configuration) for configuration in OTHERS)


@pytest.fixture(scope="module")
def statements() -> dict[tuple[str, str], Statement]:
    """The statements of all clusters before they are merged, by section and id."""
    found: dict[tuple[str, str], Statement] = {}
    for cluster in clusters():
        scope = scope_of(cluster)
        for grant in grants(cluster, scope):
            section = section_of(grant.name)
            for statement in grant.statements:
                for sid in explained_sids(statement["Sid"], explanation_table()[section]):
                    found[section, sid] = statement
        for group in command_groups(scope):
            found.update({("operators", statement["Sid"]): statement for statement in group.statements})
    return found


def test_every_statement_has_an_explanation_and_every_explanation_a_statement(
    statements: dict[tuple[str, str], Statement],
) -> None:
    assert statements.keys() == {(section, sid) for section, rows in explanation_table().items() for sid in rows}


def test_calls_of_cfngen_are_in_the_modules_that_are_named(statements: dict[tuple[str, str], Statement]) -> None:
    for section, rows in explanation_table().items():
        for sid, row in rows.items():
            if row["component"] not in ("cfngen", "boot program"):
                continue
            text = "".join((ROOT / call).read_text() for call in row["calls"])
            actions = statements[section, sid]["Action"]
            called = any(xform_name(action.partition(":")[2]) in text for action in actions)
            dependent = all(action.startswith(DEPENDENT) for action in actions)
            assert called or dependent or DRIFT in row["calls"], sid


def test_resource_types_whose_handlers_call_are_in_templates() -> None:
    types = {
        resource["Type"]
        for case in CASES_OF_ALL_TYPES
        for template in generate(golden(case))
        for resource in template.body["Resources"].values()
    }
    named = {
        call
        for rows in explanation_table().values()
        for row in rows.values()
        for call in row["calls"]
        if row["component"] in ("CloudFormation", "flow logs")
    }
    assert named - types == set()


@pytest.mark.parametrize("case", ["add-ons", "amazon-vpc", "pod-roles", "flow-logs-cloudwatch", "own-permissions"])
def test_explained_statements_are_those_of_the_policies(case: str) -> None:
    cluster = golden(case)
    for grant in grants(cluster, scope_of(cluster)):
        explained = [*explained_statements(cluster, grant)]
        assert [(each.sid, each.effect, list(each.resources)) for each in explained] == [
            (statement["Sid"], statement["Effect"], statement["Resource"]) for statement in grant.statements
        ]
        for each in explained:
            for explanation in each.explanations:
                assert explanation.reason.endswith((".", "?"))
                upstream = not explanation.calls[0].startswith(("cfngen/", "AWS::", "cluster.yaml", "aws "))
                assert bool(explanation.version) == upstream, each.sid


@pytest.mark.parametrize("minor", ["1.35", "1.36"])
def test_versions_are_those_that_the_cluster_installs(minor: str) -> None:
    cluster = parse({"kubernetesVersion": minor, "addons": {"clusterAutoscaler": {"enabled": True}}})
    masters = next(grant for grant in grants(cluster, scope_of(cluster)) if grant.name == "master")
    versions = {
        explanation.component: explanation.version
        for each in explained_statements(cluster, masters)
        for explanation in each.explanations
    }
    assert versions["cluster-autoscaler"].startswith(f"{minor}.")
    assert CLOUD_CONTROLLER_MANAGER_IMAGE.endswith(f":{versions['cloud-controller-manager']}")
    assert versions["boot program"] == ""


def test_a_statement_of_several_has_the_explanations_of_all() -> None:
    table = {"Read": {}, "GatewaysAndEndpoints": {}, "Gateways": {}}
    assert explained_sids("ReadAndGatewaysAndEndpoints", table) == ("Read", "GatewaysAndEndpoints")
    with pytest.raises(KeyError):
        explained_sids("ReadAndWrite", table)


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs/reference/permissions.md").read_text() == explanation_page()
