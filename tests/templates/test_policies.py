"""IAM: least privilege, and policies that IAM would accept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from requests_of_roles import CLUSTERS
from service_authorization import faults

from cfngen import userdata


def resolved(value: Any) -> Any:
    """A policy with example values in place of intrinsic functions."""
    if isinstance(value, list):
        return [resolved(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "Fn::Sub" in value:
        text = value["Fn::Sub"] if isinstance(value["Fn::Sub"], str) else value["Fn::Sub"][0]
        for name, example in (
            ("AWS::Partition", "aws"),
            ("AWS::Region", "us-west-2"),
            ("AWS::AccountId", "123456789012"),
            ("AWS::StackName", "kubernetes"),
            ("RouteTable", "rtb-0123456789abcdef0"),
        ):
            text = text.replace(f"${{{name}}}", example)
        return text
    if value == {"Ref": "AWS::StackId"}:
        return "arn:aws:cloudformation:us-west-2:123456789012:stack/kubernetes/1-2"
    if "Ref" in value or "Fn::GetAtt" in value:
        name = value.get("Ref") or value["Fn::GetAtt"][0]
        if "Key" in name:
            return "arn:aws:kms:us-west-2:123456789012:key/11111111-2222-3333-4444-555555555555"
        return f"arn:aws:secretsmanager:us-west-2:123456789012:secret:{name}-AbCdEf"
    return {key: resolved(item) for key, item in value.items()}


def policies(templates: Any, configuration: dict[str, Any]) -> dict[str, dict[str, Any]]:
    roles = templates(configuration).of_type("AWS::IAM::Role")
    return {name: role["Properties"]["Policies"][0]["PolicyDocument"] for name, role in roles.items()}


CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"nodeGroups": [{"name": "batch", "additionalPolicies": ["arn:aws:iam::aws:policy/ReadOnlyAccess"]}]},
    {
        "controlPlane": {
            "volume": {"kmsKey": "arn:aws:kms:us-west-2:123456789012:key/11111111-2222-3333-4444-555555555555"}
        }
    },
]


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_policies_are_sound(templates: Any, configuration: dict[str, Any]) -> None:
    for role, policy in policies(templates, configuration).items():
        assert faults(resolved(policy)) == [], role


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_no_action_is_a_wildcard(templates: Any, configuration: dict[str, Any]) -> None:
    for role, policy in policies(templates, configuration).items():
        actions = [action for statement in policy["Statement"] for action in statement["Action"]]
        assert actions
        assert not [action for action in actions if "*" in action], role


READS = ("Describe", "Get", "List")
# What cannot be bound to a resource or tag: EC2 and the agents' own channels name no resource.
UNBOUND = {"ssm:UpdateInstanceInformation", "ecr:GetAuthorizationToken"}


def test_writes_on_everything_are_bound_to_the_clusters_tag(templates: Any) -> None:
    for role, policy in policies(templates, {}).items():
        for statement in policy["Statement"]:
            writes = [
                action
                for action in statement["Action"]
                if not action.split(":")[1].startswith(READS)
                and action not in UNBOUND
                and not action.startswith("ssmmessages:")
            ]
            if writes and statement["Resource"] == ["*"]:
                assert "KubernetesCluster" in json.dumps(statement.get("Condition")), (role, writes)


# What instances do with IAM and STS: Elastic Load Balancing's own role, and a certificate to look at.
IAM_OF_INSTANCES = {"iam:CreateServiceLinkedRole", "iam:GetServerCertificate"}


@pytest.mark.parametrize("configuration", [*CONFIGURATIONS, CLUSTERS["full"]])
def test_instances_make_and_change_no_role(templates: Any, configuration: dict[str, Any]) -> None:
    made = templates(configuration)
    documents = [each["Properties"]["PolicyDocument"] for each in made.of_type("AWS::IAM::ManagedPolicy").values()]
    documents += policies(templates, configuration).values()
    actions = {action for document in documents for each in document["Statement"] for action in each["Action"]}
    assert {action for action in actions if action.startswith(("iam:", "sts:"))} <= IAM_OF_INSTANCES
    assert not [action for action in actions if action.startswith(("organizations:", "lambda:", "ec2:RunInstances"))]


def test_instances_signal_and_read_only_the_stacks_they_are_in(templates: Any) -> None:
    documents = policies(templates, {"name": "prod"})
    nested = {"MasterRole": ["/*", "-MasterStack-*/*"], "NodeRole": ["/*"]}
    for role, names in nested.items():
        [own] = [each for each in documents[role]["Statement"] if "cloudformation:SignalResource" in each["Action"]]
        stacks = [each["Fn::Sub"].rpartition(":stack/")[2] for each in own["Resource"]]
        # The root, where the standalone template has everything; of `prod-eu` none.
        assert stacks == [f"${{AWS::StackName}}{name}" for name in names], role


def test_nodes_signal_no_conditions_of_masters_where_these_are_in_the_root(templates: Any) -> None:
    own_group = {"name": "batch", "policyStatements": [{"actions": ["s3:GetObject"], "resources": ["*"]}]}
    generated = templates({"name": "prod", "nodeGroups": [{"name": "plain"}, own_group]})

    def own_stacks(stack: str, role: str) -> Any:
        [policy] = generated[stack]["Resources"][role]["Properties"]["Policies"]
        statements = policy["PolicyDocument"]["Statement"]
        return next(each["Resource"] for each in statements if each["Sid"] == "OwnStack")

    [shared] = own_stacks("iam", "NodeRole")
    assert shared["Fn::Sub"].endswith(":stack/${NodeStackNames}/*")
    passed = generated["cluster"]["Resources"]["IamStack"]["Properties"]["Parameters"]
    assert passed["NodeStackNames"] == {"Fn::Sub": "${AWS::StackName}-NodeGroup*Stack-*"}
    # A role that is a group's own signals that group's stack.
    assert own_stacks("nodes-batch", "NodeGroupBatchRole") == [{"Ref": "AWS::StackId"}]
    assert "NodeStackNames" not in generated["standalone"]["Parameters"]


def test_session_manager_speaks_for_instances_of_the_account_only(templates: Any) -> None:
    for role, policy in policies(templates, {"ssh": {"sessionManager": True}}).items():
        [own] = [each for each in policy["Statement"] if "ssm:UpdateInstanceInformation" in each["Action"]]
        assert "*" not in own["Resource"], role


def test_nodes_read_the_join_secret_and_no_other(templates: Any) -> None:
    node = policies(templates, {})["NodeRole"]
    secrets = [each for each in node["Statement"] if any("secretsmanager" in action for action in each["Action"])]
    assert [secret["Resource"] for secret in secrets] == [[{"Ref": "JoinSecret"}]]
    assert all("Put" not in action for secret in secrets for action in secret["Action"])


def test_only_masters_encrypt_with_the_key_of_the_secrets_and_only_through_secrets_manager(templates: Any) -> None:
    documents = policies(templates, {})
    rights = {
        "MasterRole": ({"kms:Decrypt", "kms:GenerateDataKey"}, ["CaSecret", "JoinSecret"]),
        "NodeRole": ({"kms:Decrypt"}, ["JoinSecret"]),
    }
    for role, (actions, secrets) in rights.items():
        about = [each for each in documents[role]["Statement"] if "SecretsKey" in json.dumps(each["Resource"])]
        assert {action for each in about for action in each["Action"]} == actions, role
        for each in about:
            via = {"Fn::Sub": "secretsmanager.${AWS::Region}.amazonaws.com"}
            assert each["Condition"] == {
                "StringEquals": {"kms:ViaService": via},
                "StringLike": {"kms:EncryptionContext:SecretARN": [{"Ref": secret} for secret in secrets]},
            }


def test_nobody_writes_with_any_other_key(templates: Any) -> None:
    """What a role may encrypt with, beside the key of the secrets: for the bucket of snapshots alone."""
    for configuration in CONFIGURATIONS:
        for role, policy in policies(templates, configuration).items():
            for statement in policy["Statement"]:
                writes = {"kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"}
                if writes & set(statement["Action"]) and "SecretsKey" not in json.dumps(statement["Resource"]):
                    assert role == "MasterRole"
                    assert "s3." in json.dumps(statement["Condition"]["StringEquals"]["kms:ViaService"])


def test_only_masters_may_write_routes_and_only_to_the_clusters_table(templates: Any) -> None:
    documents = policies(templates, {})
    assert "ec2:CreateRoute" not in json.dumps(documents["NodeRole"])
    routes = next(each for each in documents["MasterRole"]["Statement"] if "ec2:CreateRoute" in each["Action"])
    assert [each["Fn::Sub"].rpartition("/")[2] for each in routes["Resource"]] == ["${RouteTable}"]


def test_load_balancers_can_be_made_and_tagged_with_the_clusters_tag_only(templates: Any) -> None:
    # The controller sends tags when it creates, which Elastic Load Balancing authorizes as AddTags on top.
    master = policies(templates, {"name": "prod"})["MasterRole"]
    tagging = [
        each["Condition"]["StringEquals"]
        for each in master["Statement"]
        if "elasticloadbalancing:AddTags" in each["Action"] and "RequestTag" in json.dumps(each["Condition"])
    ]
    assert [each["aws:RequestTag/KubernetesCluster"] for each in tagging] == ["prod"]
    assert "CreateLoadBalancer" in tagging[0]["elasticloadbalancing:CreateAction"]


# What Elastic Load Balancing asks with the caller's rights: terraform-aws-eks#900, aws-load-balancer-controller#3917.
ASKED_OF_CALLERS = {
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeAddresses",
    "ec2:DescribeInternetGateways",
    "ec2:GetSecurityGroupsForVpc",
}


def test_the_first_load_balancer_of_an_account_can_be_made(templates: Any) -> None:
    master = policies(templates, {})["MasterRole"]
    assert {action for each in master["Statement"] for action in each["Action"]} >= ASKED_OF_CALLERS


def test_the_controller_knows_the_cluster_by_the_tag_that_its_permissions_ask_for(templates: Any) -> None:
    generated = templates({"name": "prod"})
    files = next(role for role in userdata.roles(generated.cluster) if role.role == "master").files
    assert "KubernetesClusterTag = prod" in files["files/etc/kubernetes/cloud.config"].splitlines()
    assert "aws:RequestTag/KubernetesCluster" in json.dumps(policies(templates, {"name": "prod"})["MasterRole"])


def test_inline_policies_fit_iams_limit(templates: Any) -> None:
    # 10,240 characters for all inline policies of a role, white space not counted (IAM quotas).
    for configuration in CONFIGURATIONS:
        for policy in policies(templates, configuration).values():
            assert len(json.dumps(resolved(policy), separators=(",", ":"))) < 10_240


def test_a_permissions_boundary_bounds_every_role(templates: Any) -> None:
    boundary = "arn:aws:iam::123456789012:policy/boundary"
    roles = templates({"iam": {"permissionsBoundary": boundary}}).of_type("AWS::IAM::Role").values()
    assert [role["Properties"]["PermissionsBoundary"] for role in roles] == [boundary, boundary]


def test_a_group_with_policies_of_its_own_gets_a_role_of_its_own(templates: Any) -> None:
    policy = "arn:aws:iam::123456789012:policy/batch"
    generated = templates({"nodeGroups": [{"name": "plain"}, {"name": "batch", "additionalPolicies": [policy]}]})
    assert generated.properties("NodeGroupBatchRole")["ManagedPolicyArns"] == [policy]
    assert "ManagedPolicyArns" not in generated.properties("NodeRole")
    profiles = {
        name: template["Properties"]["LaunchTemplateData"]["IamInstanceProfile"]["Arn"]["Fn::GetAtt"][0]
        for name, template in generated.of_type("AWS::EC2::LaunchTemplate").items()
    }
    assert profiles["NodeGroupPlainLaunchTemplate"] == "NodeInstanceProfile"
    assert profiles["NodeGroupBatchLaunchTemplate"] == "NodeGroupBatchInstanceProfile"


def test_session_manager_can_be_shut(templates: Any) -> None:
    assert "ssmmessages" in json.dumps(policies(templates, {}))
    assert "ssmmessages" not in json.dumps(policies(templates, {"ssh": {"sessionManager": False}}))
