"""A cluster with everything in it stays within CloudFormation's limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError

POLICY = "arn:aws:iam::123456789012:policy/organisation/unit/" + "p" * 60
ALLOWED = [f"203.0.113.{index}/32" for index in range(10)]


def group(index: int) -> dict[str, Any]:
    return {
        "name": f"group-{index:03d}",
        "minSize": 0,
        "maxSize": 2,
        "desiredSize": 0,
        "spotPrice": "0.05",
        "additionalPolicies": [POLICY],
        "additionalSecurityGroups": ["sg-0123456789abcdef0"],
        "rootVolume": {"size": 100, "iops": 4000, "throughput": 250},
    }


def maximal(groups: int) -> dict[str, Any]:
    return {
        "name": "a-cluster-of-28-letters-long",
        "region": "eu-central-1",
        "network": {"subnets": [{"zone": f"eu-central-1{letter}"} for letter in "abc"]},
        "controlPlane": {"count": 5},
        "api": {"allowedCidrs": ALLOWED, "additionalNames": [f"api-{index}.example.com" for index in range(20)]},
        "ssh": {"publicKey": "ssh-ed25519 AAAA", "allowedCidrs": ALLOWED},
        "iam": {"permissionsBoundary": POLICY},
        "assets": {"mirror": "https://mirror.example.com/a/rather/long/path"},
        "tags": {f"tag-{index}": "v" * 50 for index in range(20)},
        "nodeGroups": [group(index) for index in range(groups)],
    }


def test_nested_stacks_of_a_maximal_cluster_fit(templates: Any) -> None:
    bodies = templates(maximal(100)).bodies
    assert "standalone" not in bodies, "a hundred groups do not fit into one template"
    for name, body in bodies.items():
        assert len(body["Resources"]) <= 500, name
        assert len(body.get("Parameters", {})) <= 200, name
        assert len(json.dumps(body, indent=2)) < 1_000_000, name


def test_groups_beyond_what_a_template_can_ask_for_are_settled_by_the_cluster_file(templates: Any) -> None:
    few, many = templates(maximal(20)), templates(maximal(21))
    assert "NodeGroupGroup000MinSize" in few["cluster"]["Parameters"]
    assert "NodeGroupGroup000MinSize" not in many["cluster"]["Parameters"]
    group = many["nodes-group-000"]["Resources"]["NodeGroupGroup000AutoScalingGroup"]["Properties"]
    assert (group["MinSize"], group["MaxSize"]) == ("0", "2")


def test_the_flat_template_of_eleven_groups_fits_an_upload(templates: Any) -> None:
    body = templates(maximal(11))["standalone"]
    # As the file is written.
    assert len(json.dumps(body, indent=1)) < 1_000_000
    assert len(body["Resources"]) <= 500
    assert len(body["Parameters"]) <= 200


def with_sources(count: int) -> dict[str, Any]:
    """A cluster whose API so many ranges may reach; each of them is one resource of the flat template."""
    return {
        "api": {"allowedCidrs": [f"10.{index // 256}.{index % 256}.0/24" for index in range(count)]},
        "network": {"quotas": {"rulesPerSecurityGroup": 200}},
    }


def test_the_flat_template_may_have_five_hundred_resources_and_not_one_more(templates: Any) -> None:
    # "Resources: maximum number of resources that you can declare in your template", AWS CloudFormation quotas: 500.
    short = 500 - len(templates(with_sources(400))["standalone"]["Resources"])
    assert short > 0
    full = templates(with_sources(400 + short))
    assert len(full["standalone"]["Resources"]) == 500
    over = templates(with_sources(400 + short + 1)).bodies
    assert "standalone" not in over
    assert "cluster" in over, "nested stacks are left"


ROLE, MANAGED = 10_240, 6_144  # characters without white space: "IAM and AWS STS quotas", IAM User Guide
LONGEST = {
    "${AWS::Partition}": "aws-us-gov",
    "${AWS::Region}": "us-gov-west-1",
    "${AWS::AccountId}": "123456789012",
    "${AWS::URLSuffix}": "amazonaws.com",
    "${AWS::StackName}": "s" * 90,
    "${Bucket}": "b" * 63,
    "${Name}": "s" * 90,
}


def spelled(value: Any) -> Any:
    """A policy with the longest that may come in place of intrinsic functions."""
    if isinstance(value, list):
        return [spelled(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() & {"Ref", "Fn::GetAtt"}:
        return f"arn:aws-us-gov:secretsmanager:us-gov-west-1:123456789012:secret:{'x' * 24}"
    if "Fn::Sub" in value:
        text = value["Fn::Sub"] if isinstance(value["Fn::Sub"], str) else value["Fn::Sub"][0]
        for name, longest in LONGEST.items():
            text = text.replace(name, longest)
        return text
    return {key: spelled(each) for key, each in value.items()}


def service_accounts(count: int) -> list[dict[str, Any]]:
    """Service accounts with long names, and with roles of several statements."""
    statement = {"actions": ["s3:GetObject", "s3:PutObject"], "resources": [f"arn:aws:s3:::{'b' * 63}/*"] * 3}
    return [
        {
            "namespace": f"namespace-{index:04d}",
            "name": f"service-account-{index:04d}-{'a' * 100}",
            "additionalPolicies": [POLICY],
            "policyStatements": [statement] * 4,
            "tags": {f"own-{number}": "v" * 50 for number in range(10)},
        }
        for index in range(count)
    ]


@pytest.mark.parametrize("addon_roles", [True, False])
def test_roles_of_many_service_accounts_fit(templates: Any, addon_roles: bool) -> None:
    configuration = maximal(1)
    iam = {**configuration["iam"], "addonRoles": addon_roles, "serviceAccounts": service_accounts(100)}
    generated = templates({**configuration, "serviceAccountIssuer": {}, "iam": iam})
    for name, body in generated.bodies.items():
        assert len(body["Resources"]) <= 500, name
        assert len(json.dumps(body, indent=2)) < 1_000_000, name
    roles = [resource["Properties"] for resource in generated["iam"]["Resources"].values()]
    named = [properties for properties in roles if "RoleName" in properties]
    assert len({properties["RoleName"] for properties in named}) == len(named) >= 100
    assert max(len(properties["RoleName"]) for properties in named) <= 64
    # Of a trust policy, IAM takes 2,048 characters ("IAM and AWS STS quotas", IAM User Guide).
    assert max(len(properties["AssumeRolePolicyDocument"]["Fn::Sub"][0]) for properties in named) < 1_000


@pytest.mark.parametrize("issuer", [None, {}, {"signTokens": False}], ids=["no issuer", "issuer", "prepared"])
@pytest.mark.parametrize("plugin", ["vpc-routes", "amazon-vpc"])
def test_policies_of_a_maximal_cluster_fit(templates: Any, plugin: str, issuer: dict[str, Any] | None) -> None:
    on = {"enabled": True}
    secret = "arn:aws-us-gov:secretsmanager:us-gov-west-1:123456789012:secret:" + "c" * 80 + "-AbCdEf"
    key = "arn:aws-us-gov:kms:us-gov-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    # As many of the shortest as the cluster file may have: each gets an id, too.
    statement = {"actions": ["s3:List"], "resources": ["*"], "conditions": {"Null": {"aws:x": "true"}}}
    generated = templates(
        {
            "name": "a-cluster-of-28-letters-long",
            "region": "us-gov-west-1",
            "network": {
                "plugin": plugin,
                "subnets": [
                    {"zone": f"us-gov-west-1{letter}", "cidr": f"172.20.{index * 16}.0/20"}
                    for index, letter in enumerate("abc")
                ],
            },
            "controlPlane": {"count": 3, "volume": {"kmsKey": key}, "policyStatements": [statement] * 48},
            "certificateAuthority": {"secret": secret},
            "etcd": {"backups": {"bucket": "b" * 63}},
            "addons": {
                "clusterAutoscaler": on,
                "awsLoadBalancerController": on,
                "externalDns": {**on, "zones": ["Z0123456789ABCDEFGHIJ"]},
            },
            **({"serviceAccountIssuer": issuer} if issuer is not None else {}),
        }
    )
    for name, role in generated.of_type("AWS::IAM::Role").items():
        documents = [policy["PolicyDocument"] for policy in role["Properties"]["Policies"]]
        assert sum(len(json.dumps(spelled(document), separators=(",", ":"))) for document in documents) <= ROLE, name
    for name, policy in generated.of_type("AWS::IAM::ManagedPolicy").items():
        document = policy["Properties"]["PolicyDocument"]
        assert len(json.dumps(spelled(document), separators=(",", ":"))) <= MANAGED, name


def test_every_tag_set_fits_the_limit_of_fifty(templates: Any) -> None:
    body = templates({**maximal(1), "tags": {f"tag-{index}": "v" for index in range(40)}})["standalone"]
    assert all(len(resource.get("Properties", {}).get("Tags", [])) <= 50 for resource in body["Resources"].values())


def test_as_many_roles_of_service_accounts_as_the_cluster_file_may_have_fit_into_their_stack(templates: Any) -> None:
    def with_roles(count: int) -> dict[str, Any]:
        return {
            "network": {"plugin": "amazon-vpc"},
            "serviceAccountIssuer": {},
            "iam": {"serviceAccounts": [{"namespace": f"team-{n}", "name": "web"} for n in range(count)]},
            "addons": {
                "clusterAutoscaler": {"enabled": True},
                "awsLoadBalancerController": {"enabled": True},
                "externalDns": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]},
                "certManager": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]},
            },
            "nodeGroups": [group(index) for index in range(10)],
        }

    bodies = templates(with_roles(450)).bodies
    assert "standalone" not in bodies
    assert len(bodies["iam"]["Resources"]) <= 500
    with pytest.raises(ClusterFileError, match="451 roles are too many for a stack, which has room for 450 of them"):
        parse(with_roles(451))
