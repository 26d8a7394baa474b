"""ARNs of keys, policies and topics that leave the account's number to CloudFormation mean those with the number."""

from __future__ import annotations

import json
from typing import Any

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.permissions.grants import grants, scope_of
from cfngen.templates import generate
from cfngen.templates.immutable_settings import immutable_settings, recorded_settings

ACCOUNT = "123456789012"
VARIABLES = {"${AWS::Partition}": "aws-cn", "${AWS::AccountId}": ACCOUNT}


def key(number: int) -> str:
    return f"arn:aws-cn:kms:cn-north-1:${{AWS::AccountId}}:key/{number}"


def policy(name: str) -> str:
    return f"arn:aws-cn:iam::${{AWS::AccountId}}:policy/{name}"


GROUP = {"rootVolume": {"kmsKey": key(3)}, "volumes": [{"size": 10, "kmsKey": key(4)}]}
SERVICE_ACCOUNT = {"namespace": "shop", "name": "web", "additionalPolicies": [policy("web")]}
FILE = {
    "region": "cn-north-1",
    "controlPlane": {
        "volume": {"kmsKey": key(1)},
        "rootVolume": {"kmsKey": key(2)},
        "additionalPolicies": [policy("masters")],
    },
    "nodeGroups": [
        {"name": "plain", **GROUP},
        {"name": "own", **GROUP, "additionalPolicies": [policy("nodes")]},
    ],
    "ssh": {"keyName": "laptop"},
    "bastion": {"allowedCidrs": ["203.0.113.0/24"], "rootVolume": {"kmsKey": key(5)}},
    "secrets": {"kmsKey": key(6)},
    "etcd": {"backups": {"kmsKey": key(7)}},
    "notifications": {"topic": "arn:aws-cn:sns:cn-north-1:${AWS::AccountId}:scaling"},
    "iam": {
        "permissionsBoundary": policy("boundary"),
        "serviceAccounts": [SERVICE_ACCOUNT, {**SERVICE_ACCOUNT, "name": "api", "permissionsBoundary": policy("pods")}],
    },
    "network": {"flowLogs": {"destination": "cloudWatchLogs"}},
    "registry": {
        "push": [{"name": "shop", "provider": "github", "project": "example/shop", "ref": "refs/heads/main"}],
        "repositories": [{"name": "web"}],
    },
    "serviceAccountIssuer": {"discovery": "url", "url": "https://tokens.example.com", "bucket": "example-tokens"},
}
OPEN: Cluster = parse(FILE)
CLOSED: Cluster = parse(json.loads(json.dumps(FILE).replace("${AWS::AccountId}", ACCOUNT)))
ARNS = {text for text in json.dumps(FILE).split('"') if text.startswith("arn:")}


def evaluated(value: Any) -> Any:
    """A template in which the ARNs of the file are evaluated, and nothing else."""
    if isinstance(value, list):
        return [evaluated(item) for item in value]
    if not isinstance(value, dict):
        return value
    if (text := value.get("Fn::Sub")) and f"{text}".replace("${AWS::Partition}", "aws-cn") in ARNS:
        for variable, replacement in VARIABLES.items():
            text = text.replace(variable, replacement)
        return text
    return {name: evaluated(item) for name, item in value.items()}


def test_templates_mean_the_same_and_name_no_account() -> None:
    templates, expected = ({each.name: each.body for each in generate(cluster)} for cluster in (OPEN, CLOSED))
    assert ACCOUNT not in json.dumps(templates)
    # For cfn-lint, the variable in metadata would be a forgotten `Fn::Sub`.
    settings = [templates[name]["Metadata"]["cfngen"].pop("immutableSettings") for name in ("cluster", "standalone")]
    assert "${" not in json.dumps(settings)
    for name in ("cluster", "standalone"):
        del expected[name]["Metadata"]["cfngen"]["immutableSettings"]
    for name, template in expected.items():
        assert evaluated(templates[name]) == template, name


def test_what_cannot_change_is_recorded_as_the_file_has_it() -> None:
    *_, standalone = generate(OPEN)
    recorded, settings = recorded_settings(standalone.body), immutable_settings(OPEN)
    assert {name: recorded[name] for name in settings} == settings


def test_printed_policies_name_what_is_in_the_account() -> None:
    printed, expected = (
        {
            grant.name: (grant.statements, grant.managed_policies)
            for grant in grants(cluster, scope_of(cluster, account=ACCOUNT))
        }
        for cluster in (OPEN, CLOSED)
    )
    assert printed == expected
    of_any_account = json.dumps([grant.statements for grant in grants(OPEN, scope_of(OPEN))])
    assert "arn:aws-cn:kms:cn-north-1:*:key/6" in of_any_account
    assert "${" not in of_any_account
