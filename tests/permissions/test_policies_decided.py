"""Who may do what by the policies of docs/: decided as IAM decides, by action, resource and every condition."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from documented_policies import (
    etcd_policy,
    execution_policy,
    operator_policy,
    pause_policy,
    private_cluster_policy,
    roles_and_secrets_policy,
    several_masters_policy,
)

from cfngen.permissions.scope import Scope

NARROW = Scope("123456789012", "us-west-2", "kubernetes")
POLICIES = {
    "operator": operator_policy(NARROW),
    "machines": execution_policy(NARROW),
    "secrets": roles_and_secrets_policy(NARROW),
    "masters": several_masters_policy(NARROW),
    "private": private_cluster_policy(NARROW),
    "etcd": etcd_policy(NARROW),
    "pause": pause_policy(NARROW),
}
WIDE = {
    "operator": operator_policy(),
    "machines": execution_policy(),
    "secrets": roles_and_secrets_policy(),
    "masters": several_masters_policy(),
    "private": private_cluster_policy(),
    "etcd": etcd_policy(),
    "pause": pause_policy(),
}

HERE = "us-west-2:123456789012"
STACK = f"arn:aws:cloudformation:{HERE}:stack/kubernetes/1-2"
NESTED = f"arn:aws:cloudformation:{HERE}:stack/kubernetes-VpcStack-1AB/1-2"
CHANGE_SET = f"arn:aws:cloudformation:{HERE}:changeSet/cfngen-plan-1a/1-2"
GROUP = f"arn:aws:autoscaling:{HERE}:autoScalingGroup:1-2:autoScalingGroupName/kubernetes-NodeGroupA-1AB"
BUCKET = "arn:aws:s3:::cfngen-123456789012-us-west-2"
TEMPLATE = f"{BUCKET}/kubernetes/0123.json"
BACKUPS = "arn:aws:s3:::kubernetes-s3stack-1ab-backupbucket-2cd"
ETCD = f"{BACKUPS}/kubernetes/etcd"
CA, JOIN = (f"arn:aws:secretsmanager:{HERE}:secret:{name}-AbCdEf" for name in ("CaSecret", "JoinSecret"))
KEPT = f"arn:aws:secretsmanager:{HERE}:secret:cfngen/kubernetes/authorities-1-AbCdEf"
KEY = f"arn:aws:kms:{HERE}:key/1-2"
SNAPSHOT = "arn:aws:ec2:us-west-2::snapshot/snap-1"
IMAGE = "arn:aws:ssm:us-west-2::parameter/aws/service/ami"
ROLE, PROFILE, POLICY = (
    f"arn:aws:iam::123456789012:{kind}/kubernetes-IamStack-1AB-Node-2CD"
    for kind in ("role", "instance-profile", "policy")
)
SERVICE_ROLE = "arn:aws:iam::123456789012:role/cfngen-cloudformation"
LINKED = "arn:aws:iam::123456789012:role/aws-service-role"
BALANCING = f"arn:aws:elasticloadbalancing:{HERE}"
API, INTERNAL = (f"{BALANCING}:loadbalancer/net/kubernetes-{end}/1" for end in ("api", "int"))
LISTENER, TARGETS = f"{BALANCING}:listener/net/kubernetes-api/1/2", f"{BALANCING}:targetgroup/kubern-ApiTa-1AB/1"


def ec2(resource: str) -> str:
    return f"arn:aws:ec2:{HERE}:{resource}"


OWN = {"aws:ResourceTag/KubernetesCluster": "kubernetes"}
PUT = {"aws:RequestTag/KubernetesCluster": "kubernetes"}
OWNED = {"aws:ResourceTag/kubernetes.io/cluster/kubernetes": "owned"}
BY_CONTROLLER = {"aws:ResourceTag/elbv2.k8s.aws/cluster": "kubernetes"}
BY_DRIVER = {"aws:ResourceTag/ebs.csi.aws.com/cluster": "true"}
BY_VPC_CNI = {"aws:ResourceTag/node.k8s.amazonaws.com/instance_id": "i-1"}
BY_SECRETS_MANAGER = {"kms:ViaService": "secretsmanager.us-west-2.amazonaws.com"}
HANDED_OVER = {"iam:PassedToService": "cloudformation.amazonaws.com"}
BY_EC2 = {"kms:ViaService": "ec2.us-west-2.amazonaws.com"}

# Whose policy, which action, on what, and what has to hold besides.
ALLOWED: list[tuple[str, str, str, dict[str, str]]] = [
    *(
        ("operator", f"cloudformation:{action}", resource, {})
        for action in ("DescribeChangeSet", "GetTemplate", "ExecuteChangeSet", "CreateChangeSet")
        for resource in (STACK, NESTED, CHANGE_SET)
    ),
    *(("operator", f"cloudformation:{action}", STACK, {}) for action in ("DeleteStack", "UpdateTerminationProtection")),
    ("operator", "cloudformation:ListStacks", "*", {}),
    ("operator", "ec2:DescribeVolumes", "*", {}),
    ("operator", "ec2:GetConsoleOutput", ec2("instance/i-1"), OWN),
    ("operator", "iam:GetRole", ROLE, {}),
    ("operator", "iam:GetPolicy", POLICY, {}),
    ("operator", "iam:GetInstanceProfile", PROFILE, {}),
    ("operator", "kms:DescribeKey", KEY, OWN),
    ("operator", "secretsmanager:DescribeSecret", CA, {}),
    ("operator", "secretsmanager:DescribeSecret", JOIN, {}),
    ("operator", "s3:GetLifecycleConfiguration", BACKUPS, {}),
    ("operator", "s3:ListBucket", BACKUPS, {}),
    ("operator", "s3:GetObject", f"{ETCD}/restore.json", {}),
    ("operator", "iam:PassRole", SERVICE_ROLE, HANDED_OVER),
    ("operator", "s3:CreateBucket", BUCKET, {}),
    ("operator", "s3:PutObject", TEMPLATE, {}),
    ("operator", "s3:DeleteBucket", BUCKET, {}),
    ("operator", "s3:DeleteObjectVersion", TEMPLATE, {}),
    ("operator", "autoscaling:PutLifecycleHook", GROUP, {}),
    ("operator", "secretsmanager:CreateSecret", KEPT, {}),
    *(
        ("operator", action, "*", tags)
        for tags in (OWN, OWNED)
        for action in (
            "ec2:DeleteNetworkInterface",
            "ec2:DeleteSecurityGroup",
            "ec2:DeleteSnapshot",
            "ec2:DeleteVolume",
            "elasticloadbalancing:DeleteLoadBalancer",
        )
    ),
    ("operator", "elasticloadbalancing:DeleteLoadBalancer", "*", BY_CONTROLLER),
    ("operator", "ec2:DeleteSecurityGroup", "*", BY_CONTROLLER),
    ("operator", "ec2:DeleteVolume", "*", BY_DRIVER),
    ("operator", "ec2:DeleteNetworkInterface", "*", BY_VPC_CNI),
    ("operator", "ec2:DeleteRoute", ec2("route-table/rtb-1"), {}),
    *(("operator", "secretsmanager:GetSecretValue", secret, OWN) for secret in (CA, JOIN)),
    *(
        ("operator", "kms:Decrypt", KEY, {**OWN, **BY_SECRETS_MANAGER, "kms:EncryptionContext:SecretARN": secret})
        for secret in (CA, JOIN)
    ),
    ("machines", "cloudformation:CreateStack", NESTED, {}),
    ("machines", "s3:GetObject", TEMPLATE, {}),
    ("machines", "ec2:DescribeVpcs", "*", {}),
    ("machines", "ssm:GetParameters", IMAGE, {}),
    ("machines", "ec2:CreateVpc", ec2("vpc/*"), {}),
    ("machines", "ec2:DeleteVpc", ec2("vpc/vpc-1"), OWN),
    ("machines", "ec2:CreateSnapshot", ec2("volume/vol-1"), OWN),
    ("machines", "ec2:CreateSnapshot", SNAPSHOT, {}),
    ("machines", "ec2:CreateTags", ec2("vpc/vpc-1"), PUT),
    ("machines", "ec2:CreateTags", ec2("vpc/vpc-1"), OWN),
    ("machines", "ec2:CreateTags", SNAPSHOT, {"ec2:CreateAction": "CreateSnapshot"}),
    ("machines", "autoscaling:CreateAutoScalingGroup", GROUP, {}),
    ("machines", "ec2:RunInstances", "*", {"ec2:LaunchTemplate": ec2("launch-template/lt-1")}),
    *(
        ("machines", "iam:CreateServiceLinkedRole", f"{LINKED}/{service}.amazonaws.com/AWSServiceRole", {})
        for service in ("autoscaling", "spot")
    ),
    ("secrets", "iam:CreateRole", ROLE, {}),
    ("secrets", "iam:CreatePolicy", POLICY, {}),
    ("secrets", "iam:CreateInstanceProfile", PROFILE, {}),
    ("secrets", "secretsmanager:CreateSecret", CA, {}),
    ("secrets", "secretsmanager:CreateSecret", JOIN, {}),
    ("secrets", "kms:CreateKey", "*", {}),
    ("secrets", "kms:TagResource", KEY, PUT),
    ("secrets", "kms:ScheduleKeyDeletion", KEY, OWN),
    ("secrets", "kms:GenerateDataKey", KEY, BY_SECRETS_MANAGER),
    ("secrets", "kms:Decrypt", KEY, BY_EC2),
    ("secrets", "kms:CreateGrant", KEY, {**BY_EC2, "kms:GrantIsForAWSResource": "true"}),
    ("secrets", "s3:CreateBucket", BACKUPS, {}),
    ("masters", "elasticloadbalancing:DescribeLoadBalancers", "*", {}),
    *(("masters", "elasticloadbalancing:AddTags", arn, {}) for arn in (API, INTERNAL, LISTENER, TARGETS)),
    *(("masters", "elasticloadbalancing:RemoveTags", arn, OWN) for arn in (API, INTERNAL, LISTENER, TARGETS)),
    ("masters", "iam:CreateServiceLinkedRole", f"{LINKED}/elasticloadbalancing.amazonaws.com/AWSServiceRole", {}),
    *(("private", "ec2:CreateNatGateway", ec2(f"{resource}/*"), {}) for resource in ("natgateway", "subnet")),
    ("private", "ec2:CreateNatGateway", ec2("elastic-ip/eipalloc-1"), OWN),
    ("private", "ec2:DeleteNatGateway", ec2("natgateway/nat-1"), OWN),
    *(("private", "ec2:CreateVpcEndpoint", ec2(f"{resource}/*"), {}) for resource in ("vpc", "subnet", "vpc-endpoint")),
    *(
        ("private", f"ec2:{action}VpcEndpoint", ec2(resource), OWN)
        for action in ("Create", "Modify")
        for resource in ("route-table/rtb-1", "security-group/sg-1")
    ),
    ("private", "ec2:ModifyVpcEndpoint", ec2("subnet/subnet-1"), {}),
    ("private", "ec2:ModifyVpcEndpoint", ec2("vpc-endpoint/vpce-1"), OWN),
    ("private", "ec2:DeleteVpcEndpoints", ec2("vpc-endpoint/vpce-1"), OWN),
    ("private", "route53:AssociateVPCWithHostedZone", "arn:aws:route53:::hostedzone/Z1", {}),
    ("etcd", "s3:GetObject", f"{ETCD}/snapshots/1.db", {}),
    ("etcd", "s3:PutObject", f"{ETCD}/backup-request.json", {}),
    ("etcd", "s3:DeleteObject", f"{ETCD}/restore.json", {}),
    ("etcd", "autoscaling:TerminateInstanceInAutoScalingGroup", GROUP, OWN),
    ("pause", "autoscaling:UpdateAutoScalingGroup", GROUP, OWN),
    ("pause", "autoscaling:CompleteLifecycleAction", GROUP, OWN),
    ("pause", "s3:PutObject", f"{ETCD}/backup-request.json", {}),
    ("pause", "s3:GetObject", f"{ETCD}/hourly/1.db", {}),
]  # fmt: skip

HOLDS = {
    "StringLike": fnmatch.fnmatchcase,
    "ArnLike": fnmatch.fnmatchcase,
    "StringEquals": str.__eq__,
    "Bool": str.__eq__,
}


def listed(values: Any) -> list[str]:
    return [values] if isinstance(values, str) else list(values)


def allows(policy: Mapping[str, Any], action: str, resource: str, context: Mapping[str, str]) -> bool:
    """Whether some statement names the action and the resource, and everything holds that it asks for besides."""
    return any(
        any(fnmatch.fnmatchcase(action, name) for name in statement["Action"])
        and any(fnmatch.fnmatchcase(resource, arn) for arn in listed(statement["Resource"]))
        and not [
            key
            for operator, keys in statement.get("Condition", {}).items()
            for key, values in keys.items()
            if key not in context or not any(HOLDS[operator](context[key], value) for value in listed(values))
        ]
        for statement in policy["Statement"]
    )


def ids(value: Any) -> str:
    return ",".join(value) if isinstance(value, dict) else str(value)


@pytest.mark.parametrize(("whose", "action", "resource", "context"), ALLOWED, ids=ids)
def test_what_is_allowed(whose: str, action: str, resource: str, context: dict[str, str]) -> None:
    assert allows(POLICIES[whose], action, resource, context)


def test_what_a_condition_asks_for_has_to_hold() -> None:
    conditional = [row for row in ALLOWED if row[-1]]
    assert conditional
    for whose, action, resource, context in conditional:
        for key in context:
            without = {name: value for name, value in context.items() if name != key}
            assert not allows(POLICIES[whose], action, resource, without), (whose, action, key)
            if key != "aws:ResourceTag/node.k8s.amazonaws.com/instance_id":  # any instance's
                assert not allows(POLICIES[whose], action, resource, {**context, key: "others"}), (whose, action, key)


@pytest.mark.parametrize(
    ("ours", "others"),
    [("kubernetes", "others"), ("123456789012", "210987654321"), ("us-west-2", "eu-west-1")],
)
def test_what_is_named_is_this_clusters(ours: str, others: str) -> None:
    """Of another cluster, account or region nothing is allowed; where an ARN does not say it, a tag has to."""
    for whose, action, resource, context in ALLOWED:
        if ours in resource:
            assert not allows(POLICIES[whose], action, resource.replace(ours, others), context), (whose, action)


def test_documents_for_nobody_in_particular_suffice_for_any_cluster() -> None:
    for whose, action, resource, context in ALLOWED:
        if context != OWNED:  # a key of a condition knows no wildcard
            assert allows(WIDE[whose], action, resource, context), (whose, action, resource)
        for condition in (statement.get("Condition", {}) for statement in WIDE[whose]["Statement"]):
            assert "kubernetes.io/cluster/*" not in str(condition)


def test_a_role_of_another_name_can_be_handed_over() -> None:
    policy = operator_policy(NARROW, service_role="deployer")
    assert allows(policy, "iam:PassRole", SERVICE_ROLE.replace("cfngen-cloudformation", "deployer"), HANDED_OVER)
    assert not allows(policy, "iam:PassRole", SERVICE_ROLE, HANDED_OVER)


@pytest.mark.parametrize("name", ["a-stack-of-name-23chars", "a-stack-of-name-24-chars"], ids=["all of it", "a part"])
def test_the_bucket_of_a_stack_is_known_by_what_cloudformation_leaves_of_its_name(name: str) -> None:
    policy = etcd_policy(replace(NARROW, stack=name))
    # A name of S3 has 63 characters at most; of the stack's at least 24 are left.
    bucket = f"arn:aws:s3:::{name[:24]}-backupbucket-1ab"
    assert allows(policy, "s3:GetObject", f"{bucket}/kubernetes/etcd/1.db", {})
    assert not allows(policy, "s3:GetObject", f"{bucket.replace(name[:20], name[:19] + '-')}/kubernetes/etcd/1.db", {})


def test_statements_about_the_same_resources_are_one() -> None:
    """A managed policy has room for 6,144 characters."""
    statements = POLICIES["operator"]["Statement"]
    about = [(str(statement["Resource"]), str(statement.get("Condition"))) for statement in statements]
    assert len(set(about)) == len(about)
    [templates] = [statement["Action"] for statement in statements if statement["Resource"] == BUCKET]
    assert {"s3:CreateBucket", "s3:DeleteBucket"} <= set(templates)
    assert templates == sorted(set(templates))
