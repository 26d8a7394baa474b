"""The policies of docs/: as narrow as AWS lets them be, accepted by IAM, and enough for what is called."""

from __future__ import annotations

import fnmatch
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import cfnlint.data.schemas.providers
import pytest
from documented_policies import (
    bucket_policy,
    etcd_policy,
    execution_policy,
    operator_policy,
    pause_policy,
    private_cluster_policy,
    roles_and_secrets_policy,
    several_masters_policy,
)
from service_authorization import faults

from cfngen.cluster.load import parse
from cfngen.permissions.operators import command_groups
from cfngen.permissions.scope import Scope
from cfngen.templates import generate

DOCS = Path(__file__).parents[2] / "docs/reference/policies"
DOCUMENTED = {
    "operator-policy.json": operator_policy(),
    "execution-policy.json": execution_policy(),
    "several-masters-policy.json": several_masters_policy(),
    "private-cluster-policy.json": private_cluster_policy(),
    "execution-policy-2.json": roles_and_secrets_policy(),
    "etcd-policy.json": etcd_policy(),
    "pause-policy.json": pause_policy(),
    "bucket-policy.json": bucket_policy(),
}
NARROW = Scope("123456789012", "us-west-2", "kubernetes")
POLICIES = {
    **DOCUMENTED,
    "operator of one cluster": operator_policy(NARROW),
    "execution for one cluster": execution_policy(NARROW),
    "several masters of one cluster": several_masters_policy(NARROW),
    "private network of one cluster": private_cluster_policy(NARROW),
    "roles and secrets of one cluster": roles_and_secrets_policy(NARROW),
    "snapshots of one cluster": etcd_policy(NARROW),
    "pauses of one cluster": pause_policy(NARROW),
    "operator in China": operator_policy(Scope("123456789012", "cn-north-1", "kubernetes", "aws-cn")),
}
EXECUTION = {"Statement": [*execution_policy()["Statement"], *roles_and_secrets_policy()["Statement"]]}
ANY = Scope()
MANAGED, ROLE = 6_144, 10_240  # characters without spaces: "IAM and AWS STS quotas", IAM User Guide

# Of the registry's permissions, what the templates never make CloudFormation do, and the role is better without.
NOT_NEEDED = {
    "cloudformation:GetStackPolicy": "nested stacks get their policies from cfngen",
    "cloudformation:ListStacks": "only to list resources of the type",
    "cloudformation:SetStackPolicy": "likewise",
    "cloudformation:UpdateTerminationProtection": "the root's, by cfngen",
    "ec2:AcceptAddressTransfer": "no address is transferred",
    "ec2:AssignIpv6Addresses": "IPv4 only",
    "ec2:AssociateSubnetCidrBlock": "IPv4 only",
    "ec2:AttachVpnGateway": "internet gateways only",
    "ec2:CopyVolumes": "volumes are made empty",
    "ec2:CreateKeyPair": "key pairs are imported",
    "ec2:CreateVpcEncryptionControl": "not in the templates",
    "ec2:DetachVpnGateway": "internet gateways only",
    "ec2:DisassociateSubnetCidrBlock": "IPv4 only",
    "ec2:Get*": "only GetLaunchTemplateData concerns groups with a launch template",
    "ec2:ModifyPublicIpDnsNameOptions": "not in the templates",
    "ec2:ModifyVpcTenancy": "not in the templates",
    "ec2:UnassignIpv6Addresses": "IPv4 only",
    "iam:AttachGroupPolicy": "the only managed policy is a role's",
    "iam:AttachUserPolicy": "likewise",
    "iam:DeleteRolePermissionsBoundary": "who asks for a boundary does not want it removed",
    "iam:DetachGroupPolicy": "the only managed policy is a role's",
    "iam:DetachUserPolicy": "likewise",
    "iam:ListInstanceProfiles": "only to list resources of the type",
    "iam:ListPolicies": "likewise",
    "iam:ListRoles": "likewise",
    "s3:DeleteBucketPolicy": "it goes with the bucket, or stays with it",
    "s3:DeleteObject": "CloudFormation puts nothing into the bucket",
    "s3:ListAllMyBuckets": "only to list resources of the type",
    "kms:ListKeys": "likewise",
    "kms:ReEncryptFrom": "no volume is made of an encrypted snapshot",
    "kms:ReEncryptTo": "likewise",
    "secretsmanager:GetRandomPassword": "secrets are made empty",
    "secretsmanager:GetSecretValue": "nobody but masters and administrators reads them",
    "secretsmanager:ListSecrets": "only to list resources of the type",
    "secretsmanager:RemoveRegionsFromReplication": "no secret is replicated",
    "secretsmanager:ReplicateSecretToRegions": "likewise",
    "ssm:DeleteParameter": "key pairs are imported",
    "ssm:Get*": "images are looked up by parameters of the stack",
    "ssm:PutParameter": "key pairs are imported",
}
# Of Auto Scaling groups, what the templates do not use.
OF_OTHER_GROUPS = (
    "autoscaling:*LoadBalancer*",
    "autoscaling:*TrafficSources",
    "autoscaling:*MetricsCollection",
    "autoscaling:*NotificationConfiguration",
    "autoscaling:*LifecycleHook",
    "autoscaling:*InstanceRefresh",
    "cloudwatch:*",
    "elasticloadbalancing:*",
    "managed-fleets:*",
    "vpc-lattice:*",
)
# Of buckets, what the templates do not use.
OF_OTHER_BUCKETS = (
    "s3:*Abac",
    "s3:*Accelerate*",
    "s3:*Analytics*",
    "s3:*Cors",
    "s3:*CORS",
    "s3:*IntelligentTiering*",
    "s3:*Inventory*",
    "s3:*Logging",
    "s3:*Metadata*",
    "s3:*Metrics*",
    "s3:*Notification",
    "s3:*ObjectLock*",
    "s3:*Replication*",
    "s3:*Versioning",
    "s3:*Website",
    "s3:DeleteBucketEncryption",
    "s3:DeleteBucketLifecycle",
    "s3:PutBucketAcl",
    "s3:PutObjectAcl",
    "s3tables:*",
)
CONFIGURATIONS: list[dict[str, Any]] = [
    {},
    {"ssh": {"publicKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJHTbzZcuvW3z/1TyGSzBW7sBVsjlVd6VvBq8Tt2JGbX a"}},
    {"nodeGroups": [{"name": "batch", "additionalPolicies": ["arn:aws:iam::aws:policy/ReadOnlyAccess"]}]},
]


def actions(policy: dict[str, Any]) -> set[str]:
    return {action for statement in policy["Statement"] for action in statement["Action"]}


def allows(policy: dict[str, Any], action: str) -> bool:
    return any(fnmatch.fnmatchcase(action, pattern) for pattern in actions(policy))


def on_what(policy: dict[str, Any], action: str, resource: str) -> bool:
    """Whether an action is allowed on a resource, as far as its ARN decides."""
    return any(
        action in statement["Action"] and any(fnmatch.fnmatchcase(resource, pattern) for pattern in named)
        for statement in policy["Statement"]
        for named in [[statement["Resource"]] if isinstance(statement["Resource"], str) else statement["Resource"]]
    )


def schema(kind: str) -> dict[str, Any]:
    """The registry's schema of a resource type, as bundled by cfn-lint."""
    [directory] = cfnlint.data.schemas.providers.__path__
    name = json.loads((Path(directory) / "us-west-2.json").read_text())[kind]
    resource_schema: dict[str, Any] = json.loads((Path(directory).parent / "resources" / f"{name}.json").read_text())
    return resource_schema


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_files_are_what_the_code_says(name):
    text = json.dumps(DOCUMENTED[name], indent=2) + "\n"
    file = DOCS / name
    if os.environ.get("CFNGEN_UPDATE_GOLDEN"):
        file.write_text(text)
        pytest.fail(f"{file} rewritten: review it, then run without CFNGEN_UPDATE_GOLDEN")
    assert file.read_text() == text


@pytest.mark.parametrize("name", POLICIES)
def test_the_policies_are_sound(name):
    assert faults(POLICIES[name]) == []


@pytest.mark.parametrize("name", POLICIES)
def test_they_fit_where_they_are_attached(name):
    size = len(json.dumps(POLICIES[name], separators=(",", ":")))
    assert size <= (MANAGED if name in DOCUMENTED else ROLE)


@pytest.mark.parametrize("name", POLICIES)
def test_each_statement_has_a_name_of_its_own(name):
    sids = [statement["Sid"] for statement in POLICIES[name]["Statement"]]
    assert len(set(sids)) == len(sids)


@pytest.mark.parametrize("name", POLICIES)
def test_only_reads_are_unbound(name):
    """What changes something is bound to resources, or by a condition."""
    for statement in POLICIES[name]["Statement"]:
        if statement["Resource"] == "*" and "Condition" not in statement:
            changing = [
                action
                for action in statement["Action"]
                if not action.split(":")[1].startswith(("Describe", "Get", "List"))
            ]
            assert changing == [], statement["Sid"]


@pytest.mark.parametrize("name", POLICIES)
def test_wildcards_of_actions_are_reads_alone(name):
    wild = {action for action in actions(POLICIES[name]) if "*" in action}
    assert wild <= {
        "autoscaling:Describe*",
        "ec2:Describe*",
        "elasticloadbalancing:Describe*",
        "ec2:UpdateSecurityGroupRuleDescriptions*",
        "kms:GenerateDataKey*",
        "s3:Get*Configuration",
        "s3:GetBucket*",
    }


def test_nobody_may_hand_a_role_to_anything():
    """Which service gets a role is said, and which role: no pattern of all that have a hyphen, for instance."""
    for name, policy in POLICIES.items():
        for statement in policy["Statement"]:
            if "iam:PassRole" in statement["Action"]:
                assert next(iter(statement["Condition"].values())).keys() == {"iam:PassedToService"}, name
            resources = statement["Resource"]
            for resource in [resources] if isinstance(resources, str) else resources:
                assert resource.partition(":role/")[2].replace("*", "").strip("-") or ":role/" not in resource, name


def test_what_is_destroyed_bears_the_clusters_tag():
    for statement in [*execution_policy(NARROW)["Statement"], *roles_and_secrets_policy(NARROW)["Statement"]]:
        destroyed = [
            action for action in statement["Action"] if action.startswith(("ec2:Delete", "ec2:Release", "kms:Sched"))
        ]
        if destroyed:
            assert statement["Condition"] == {"StringLike": {"aws:ResourceTag/KubernetesCluster": "kubernetes"}}


def test_one_cluster_is_another_ones_business():
    text = json.dumps(operator_policy(NARROW))
    assert "arn:aws:cloudformation:us-west-2:123456789012:stack/kubernetes/*" in text
    assert "arn:aws:cloudformation:us-west-2:123456789012:stack/kubernetes-IamStack-*/*" in text
    assert "stack/*" not in text
    assert "stack/kubernetes-*" not in text
    assert "arn:aws:s3:::cfngen-123456789012-us-west-2/kubernetes/*" in text


@pytest.mark.parametrize("action", ["DescribeChangeSet", "ExecuteChangeSet", "DeleteChangeSet", "DescribeEvents"])
def test_a_change_set_may_be_named_by_its_arn_alone(action):
    for name in ("cfngen-plan-1a2b3c", "cfngen-plan-1a2b3c-VpcStack-1ABCDEF"):
        change_set = f"arn:aws:cloudformation:us-west-2:123456789012:changeSet/{name}/11111111-2222-3333-4444"
        assert on_what(operator_policy(NARROW), f"cloudformation:{action}", change_set)
    others = change_set.replace("cfngen-plan-", "by-hand-")
    assert not on_what(operator_policy(NARROW), f"cloudformation:{action}", others)


def test_all_stacks_may_be_described_to_find_another_of_the_clusters_name():
    assert on_what(operator_policy(NARROW, only_command_groups=["read"]), "cloudformation:DescribeStacks", "*")


def test_a_stack_may_be_named_unlike_its_cluster():
    text = json.dumps(
        [make(replace(NARROW, stack="production")) for make in (execution_policy, roles_and_secrets_policy)]
    )
    assert "stack/production-IamStack-*/*" in text
    assert "role/production-IamStack-*" in text
    assert '"aws:ResourceTag/KubernetesCluster": "kubernetes"' in text


def test_arns_are_those_of_the_partition():
    made = (execution_policy, roles_and_secrets_policy, several_masters_policy, private_cluster_policy, etcd_policy)
    text = json.dumps(
        [
            operator_policy(Scope(partition="aws-cn")),
            *(make_policy(Scope(partition="aws-us-gov")) for make_policy in made),
        ]
    )
    assert "arn:aws:" not in text


def test_groups_can_be_given_alone():
    names = [group.name for group in command_groups(ANY)]
    assert names == ["read", "deploy", "delete", "kubeconfig"]
    assert all(group.purpose for group in command_groups(ANY))
    read = operator_policy(only_command_groups=["read"])
    assert not [
        action for action in actions(read) if action.split(":")[1].startswith(("Create", "Delete", "Put", "Execute"))
    ]
    assert not allows(read, "secretsmanager:GetSecretValue")
    assert allows(operator_policy(only_command_groups=["kubeconfig"]), "secretsmanager:GetSecretValue")


def test_the_operator_does_none_of_what_the_service_role_does():
    for action in ("ec2:CreateVpc", "iam:CreateRole", "ec2:RunInstances", "autoscaling:CreateAutoScalingGroup"):
        assert not allows(operator_policy(), action)
        assert allows(EXECUTION, action)


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=["default", "key pair", "policies"])
def test_cloudformation_may_do_what_its_handlers_do(configuration):
    kinds = {
        resource["Type"]
        for document in generate(parse(configuration))
        for resource in document.body["Resources"].values()
    }
    lacking = {
        f"{kind}: {action}"
        for kind in kinds
        for handler in schema(kind).get("handlers", {}).values()
        for action in handler.get("permissions", ())
        if not allows(EXECUTION, action)
        and action not in NOT_NEEDED
        and not any(fnmatch.fnmatchcase(action, pattern) for pattern in (*OF_OTHER_GROUPS, *OF_OTHER_BUCKETS))
    }
    assert lacking == set()
    assert "AWS::EC2::Volume" in kinds


def test_cloudformation_may_take_back_what_failed():
    for action in ("CancelUpdateStack", "ContinueUpdateRollback", "RollbackStack"):
        assert allows(EXECUTION, f"cloudformation:{action}")


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=["default", "key pair", "policies"])
def test_who_may_look_may_ask_for_drift(configuration):
    """CloudFormation reads every resource with the rights of the one who asks; secrets it does not read."""
    policy = operator_policy(only_command_groups=["read"])
    kinds = {
        resource["Type"]
        for document in generate(parse(configuration))
        for resource in document.body["Resources"].values()
    }
    lacking = {
        f"{kind}: {action}"
        for kind in kinds
        for action in schema(kind).get("handlers", {}).get("read", {}).get("permissions", ())
        if not action.endswith(":Describe*") and not allows(policy, action)
    }
    assert lacking <= {
        "AWS::SecretsManager::Secret: secretsmanager:GetSecretValue",
        "AWS::AutoScaling::AutoScalingGroup: managed-fleets:Get*",
    }


def test_what_is_said_not_to_be_needed_is_not_allowed():
    assert [action for action in NOT_NEEDED if allows(EXECUTION, action)] == []
