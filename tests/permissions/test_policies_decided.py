"""Who may do what by the policies of docs/: decided as IAM decides, by action, resource and every condition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
from policy_decisions import allows

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
    "bucket": bucket_policy(NARROW),
}
WIDE = {
    "operator": operator_policy(),
    "machines": execution_policy(),
    "secrets": roles_and_secrets_policy(),
    "masters": several_masters_policy(),
    "private": private_cluster_policy(),
    "etcd": etcd_policy(),
    "pause": pause_policy(),
    "bucket": bucket_policy(),
}

HERE = "us-west-2:123456789012"
STACK = f"arn:aws:cloudformation:{HERE}:stack/kubernetes/1-2"
NESTED = f"arn:aws:cloudformation:{HERE}:stack/kubernetes-VpcStack-1AB/1-2"
CHANGE_SET = f"arn:aws:cloudformation:{HERE}:changeSet/cfngen-plan-1a/1-2"
GROUP = f"arn:aws:autoscaling:{HERE}:autoScalingGroup:1-2:autoScalingGroupName/kubernetes-NodeGroupA-1AB"
BUCKET = "arn:aws:s3:::cfngen-123456789012-us-west-2"
TEMPLATE = f"{BUCKET}/kubernetes/0123.json"
BACKUPS = "arn:aws:s3:::kubernetes-secretsstack-1ab-backupbucket-2cd"
ETCD = f"{BACKUPS}/kubernetes/etcd"
CA, JOIN = (f"arn:aws:secretsmanager:{HERE}:secret:{name}-AbCdEf" for name in ("CaSecret", "JoinSecret"))
KEPT = f"arn:aws:secretsmanager:{HERE}:secret:cfngen/kubernetes/authorities-1-AbCdEf"
KEY = f"arn:aws:kms:{HERE}:key/1-2"
SNAPSHOT = "arn:aws:ec2:us-west-2::snapshot/snap-1"
IMAGE = "arn:aws:ssm:us-west-2::parameter/aws/service/ami"
ROLE, PROFILE, POLICY = (
    f"arn:aws:iam::123456789012:{kind}/kubernetes-IamStack-1AB-{name}-2CD"
    for kind, name in (("role", "NodeRole"), ("instance-profile", "NodeInstanceProfile"), ("policy", "AddonsPolicy"))
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
AT_CREATION = {**PUT, "ec2:CreateAction": "CreateVpc"}
OTHERS = {"aws:ResourceTag/KubernetesCluster": "others"}
TO_EC2 = {"iam:PassedToService": "ec2.amazonaws.com"}
IN_VPC = {"ec2:Vpc": ec2("vpc/vpc-1")}
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
    ("operator", "s3:ListBucket", BUCKET, {}),
    ("operator", "s3:GetBucketPolicy", BUCKET, {}),
    ("operator", "s3:PutObject", TEMPLATE, {}),
    *(("bucket", f"s3:{action}", BUCKET, {}) for action in ("CreateBucket", "PutBucketPolicy", "DeleteBucket")),
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
    ("operator", "ec2:DeleteRoute", ec2("route-table/rtb-1"), IN_VPC),
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
    ("machines", "ec2:CreateTags", ec2("vpc/*"), AT_CREATION),
    ("machines", "ec2:CreateTags", ec2("instance/*"), {**PUT, "ec2:CreateAction": "RunInstances"}),
    ("machines", "ec2:CreateTags", ec2("vpc/vpc-1"), PUT),
    ("machines", "ec2:CreateTags", ec2("vpc/vpc-1"), OWN),
    *(
        ("machines", f"ec2:{action}", ec2(f"{kind}/*"), {})
        for action, kind in (("CreateSubnet", "subnet"), ("CreateSecurityGroup", "security-group"),
                             ("CreateNetworkInterface", "network-interface"), ("AllocateAddress", "elastic-ip"))
    ),
    *(
        ("machines", f"ec2:{action}", ec2(resource), {})
        for action, resource in (("ModifyVpcAttribute", "vpc/vpc-1"), ("ModifySubnetAttribute", "subnet/subnet-1"),
                                 ("AuthorizeSecurityGroupIngress", "security-group/sg-1"),
                                 ("AuthorizeSecurityGroupIngress", "security-group-rule/*"))
    ),
    ("machines", "ec2:CreateTags", SNAPSHOT, {"ec2:CreateAction": "CreateSnapshot"}),
    ("secrets", "autoscaling:CreateAutoScalingGroup", GROUP, {}),
    ("secrets", "ec2:RunInstances", "*", {"ec2:LaunchTemplate": ec2("launch-template/lt-1")}),
    *(
        ("secrets", "iam:CreateServiceLinkedRole", f"{LINKED}/{service}.amazonaws.com/AWSServiceRole", {})
        for service in ("autoscaling", "spot")
    ),
    ("secrets", "iam:CreateRole", ROLE, {}),
    ("secrets", "iam:CreatePolicy", POLICY, {}),
    ("secrets", "iam:CreateInstanceProfile", PROFILE, {}),
    *(("secrets", f"iam:{action}", ROLE, {}) for action in ("PutRolePolicy", "UpdateAssumeRolePolicy", "DeleteRole")),
    ("secrets", "iam:PassRole", ROLE, TO_EC2),
    ("secrets", "secretsmanager:CreateSecret", CA, {}),
    ("secrets", "secretsmanager:CreateSecret", JOIN, {}),
    ("secrets", "secretsmanager:TagResource", CA, PUT),
    *(("secrets", f"secretsmanager:{action}", CA, OWN) for action in ("TagResource", "UpdateSecret", "DeleteSecret")),
    ("secrets", "kms:CreateKey", "*", {}),
    ("secrets", "kms:EnableKeyRotation", KEY, {}),
    ("secrets", "kms:TagResource", KEY, PUT),
    ("secrets", "kms:ScheduleKeyDeletion", KEY, OWN),
    ("secrets", "kms:GenerateDataKey", KEY, BY_SECRETS_MANAGER),
    ("secrets", "kms:Decrypt", KEY, BY_EC2),
    ("secrets", "kms:CreateGrant", KEY, {**BY_EC2, "kms:GrantIsForAWSResource": "true"}),
    ("machines", "s3:CreateBucket", BACKUPS, {}),
    ("masters", "elasticloadbalancing:DescribeLoadBalancers", "*", {}),
    *(("masters", "elasticloadbalancing:AddTags", arn, {}) for arn in (API, INTERNAL, LISTENER, TARGETS)),
    *(("masters", "elasticloadbalancing:RemoveTags", arn, OWN) for arn in (API, INTERNAL, LISTENER, TARGETS)),
    ("masters", "iam:CreateServiceLinkedRole", f"{LINKED}/elasticloadbalancing.amazonaws.com/AWSServiceRole", {}),
    *(("private", "ec2:CreateNatGateway", ec2(f"{resource}/*"), {}) for resource in ("natgateway", "subnet")),
    ("private", "ec2:CreateTags", ec2("natgateway/nat-1"), PUT),
    ("private", "ec2:CreateNatGateway", ec2("elastic-ip/eipalloc-1"), OWN),
    ("private", "ec2:DeleteNatGateway", ec2("natgateway/nat-1"), OWN),
    *(("private", "ec2:CreateVpcEndpoint", ec2(f"{resource}/*"), {}) for resource in ("vpc", "subnet", "vpc-endpoint")),
    *(("private", f"ec2:{action}VpcEndpoint", ec2("route-table/rtb-1"), OWN) for action in ("Create", "Modify")),
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

# What no context allows that another cluster's resource has, or nothing of a cluster.
REFUSED: list[tuple[str, str, str, dict[str, str]]] = [
    ("operator", "secretsmanager:DescribeSecret", CA, OTHERS),
    *(("machines", "ec2:CreateTags", ec2(resource), {**PUT, **OTHERS}) for resource in ("vpc/vpc-1", "volume/vol-1")),
    # A tag of this cluster would make them its own.
    *(("machines", "ec2:CreateTags", ec2(f"{kind}/id-1"), PUT) for kind in ("instance", "image", "natgateway")),
    *(
        ("machines", f"ec2:{action}", ec2(resource), OTHERS)
        for action, resource in (("ModifyVpcAttribute", "vpc/vpc-1"), ("ModifySubnetAttribute", "subnet/subnet-1"),
                                 ("AuthorizeSecurityGroupIngress", "security-group/sg-1"),
                                 ("ModifyNetworkInterfaceAttribute", "network-interface/eni-1"))
    ),
    ("machines", "ec2:AttachInternetGateway", ec2("vpc/vpc-1"), {}),
    ("machines", "ec2:AssociateVpcCidrBlock", ec2("vpc/vpc-1"), {}),
    *(
        ("secrets", f"iam:{action}", ROLE, OTHERS)
        for action in ("PutRolePolicy", "UpdateAssumeRolePolicy", "DeleteRole", "TagRole", "AttachRolePolicy")
    ),
    ("secrets", "iam:PassRole", ROLE, {}),
    ("secrets", "iam:PassRole", ROLE, {"iam:PassedToService": "lambda.amazonaws.com"}),
    *(
        ("secrets", f"secretsmanager:{action}", CA, {**context, **PUT})
        for context in ({}, OTHERS)
        for action in ("UpdateSecret", "DeleteSecret", "UntagResource")
    ),
    *(("secrets", f"secretsmanager:{action}", CA, {**PUT, **OTHERS}) for action in ("TagResource", "DescribeSecret")),
    ("secrets", "secretsmanager:CreateSecret", CA, {"aws:RequestTag/KubernetesCluster": "others"}),
    ("secrets", "kms:CreateKey", "*", {"kms:KeySpec": "RSA_2048"}),
    *(("secrets", f"kms:{action}", KEY, {**PUT, **OTHERS}) for action in ("TagResource", "EnableKeyRotation")),
    *(("masters", f"elasticloadbalancing:{action}", TARGETS, OTHERS) for action in ("AddTags", "CreateListener")),
    *(
        ("operator", action, "*", context)
        for action in ("ec2:DeleteVolume", "ec2:DeleteSnapshot", "ec2:DeleteNetworkInterface")
        for context in (
            {"aws:ResourceTag/ebs.csi.aws.com/cluster": "true"},
            {"aws:ResourceTag/node.k8s.amazonaws.com/instance_id": "i-1"},
        )
    ),
    *(("operator", f"s3:{action}", BUCKET, {}) for action in ("PutBucketPolicy", "CreateBucket", "DeleteBucket")),
    *(("bucket", f"s3:{action}", TEMPLATE, {}) for action in ("PutObject", "GetObject")),
]  # fmt: skip


def ids(value: Any) -> str:
    return ",".join(value) if isinstance(value, dict) else str(value)


@pytest.mark.parametrize(("whose", "action", "resource", "context"), ALLOWED, ids=ids)
def test_what_is_allowed(whose: str, action: str, resource: str, context: dict[str, str]) -> None:
    assert allows([POLICIES[whose]], action, resource, context)


@pytest.mark.parametrize(("whose", "action", "resource", "context"), REFUSED, ids=ids)
def test_what_is_refused(whose: str, action: str, resource: str, context: dict[str, str]) -> None:
    assert not allows([POLICIES[whose]], action, resource, context)


def test_what_a_condition_asks_for_has_to_hold() -> None:
    conditional = [row for row in ALLOWED if row[-1]]
    assert conditional
    for whose, action, resource, context in conditional:
        for key in context:
            without = {name: value for name, value in context.items() if name != key}
            # A tag that is put on a new resource may be set by the call that creates it, or by a later one.
            if key != "ec2:CreateAction" or "instance" in resource:
                assert not allows([POLICIES[whose]], action, resource, without), (whose, action, key)
            if key not in ("ec2:CreateAction", "ec2:Vpc"):  # of whichever call or, in these policies, VPC
                others = {**context, key: "false" if context[key] == "true" else "others"}
                assert not allows([POLICIES[whose]], action, resource, others), (whose, action, key)


@pytest.mark.parametrize(
    ("ours", "others"),
    [("kubernetes", "others"), ("123456789012", "210987654321"), ("us-west-2", "eu-west-1")],
)
def test_what_is_named_is_this_clusters(ours: str, others: str) -> None:
    """Of another cluster, account or region nothing is allowed; where an ARN does not say it, a tag has to."""
    for whose, action, resource, context in ALLOWED:
        if ours in resource:
            assert not allows([POLICIES[whose]], action, resource.replace(ours, others), context), (whose, action)


def test_documents_for_nobody_in_particular_suffice_for_any_cluster() -> None:
    for whose, action, resource, context in ALLOWED:
        if context != OWNED:  # a key of a condition knows no wildcard
            assert allows([WIDE[whose]], action, resource, context), (whose, action, resource)
        for condition in (statement.get("Condition", {}) for statement in WIDE[whose]["Statement"]):
            assert "kubernetes.io/cluster/*" not in str(condition)


def test_a_role_of_another_name_can_be_handed_over() -> None:
    policy = operator_policy(NARROW, service_role="deployer")
    assert allows([policy], "iam:PassRole", SERVICE_ROLE.replace("cfngen-cloudformation", "deployer"), HANDED_OVER)
    assert not allows([policy], "iam:PassRole", SERVICE_ROLE, HANDED_OVER)


@pytest.mark.parametrize("name", ["a-stack-of-name-23chars", "a-stack-of-name-24-chars"], ids=["all of it", "a part"])
def test_the_bucket_of_a_stack_is_known_by_what_cloudformation_leaves_of_its_name(name: str) -> None:
    policy = etcd_policy(replace(NARROW, stack=name))
    # A name of S3 has 63 characters at most; of the stack's at least 24 are left.
    bucket = f"arn:aws:s3:::{name[:24]}-backupbucket-1ab"
    assert allows([policy], "s3:GetObject", f"{bucket}/kubernetes/etcd/1.db", {})
    assert not allows(
        [policy], "s3:GetObject", f"{bucket.replace(name[:20], name[:19] + '-')}/kubernetes/etcd/1.db", {}
    )


def test_statements_about_the_same_resources_are_one() -> None:
    """A managed policy has room for 6,144 characters."""
    statements = POLICIES["operator"]["Statement"]
    about = [(str(statement["Resource"]), str(statement.get("Condition"))) for statement in statements]
    assert len(set(about)) == len(about)
    [templates] = [statement["Action"] for statement in statements if statement["Resource"] == BUCKET]
    assert {"s3:GetBucketPolicy", "s3:ListBucketVersions"} <= set(templates)
    assert templates == sorted(set(templates))
