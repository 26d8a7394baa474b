"""Two clusters in one VPC, one named like the beginning of the other: who belongs to one changes nothing of the other.

Every changing action that a policy of `blue` allows is asked about everything of `blue-eu` that the action can be about
by the Service Authorization Reference, whatever tags the request sets. The same policies get no of the known ways to
raise oneself.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from requests_of_roles import ACCOUNT, REGION
from service_authorization import matching, services
from test_condition_keys import levels
from test_requests import resolved

from cfngen.cluster.load import parse
from cfngen.permissions.grants import grants, scope_of
from cfngen.sandbox.services.authorization import decision
from cfngen.templates import generate

VPC, TABLE, GROUP = "vpc-0123456789abcdef0", "rtb-0123456789abcdef0", "sg-0123456789abcdef0"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/roles-of-clusters"
ON = {"enabled": True}
ADDONS: dict[str, Any] = {
    "clusterAutoscaler": ON,
    "awsLoadBalancerController": ON,
    "externalDns": {**ON, "zones": ["Z0123456789BLUE"]},
}
NETWORK: dict[str, Any] = {
    "vpc": {"id": VPC, "cidr": "10.20.0.0/16"},
    "subnets": [{"zone": f"us-west-2{zone}", "cidr": f"10.20.{16 * index}.0/20"} for index, zone in enumerate("abc")],
    "serviceCidr": "10.250.0.0/16",
    "internetGateway": "igw-0123456789abcdef0",
}  # fmt: skip
BLUE: dict[str, Any] = {
    "name": "blue",
    "network": NETWORK,
    "controlPlane": {"count": 3, "additionalSecurityGroups": [GROUP]},
    "nodeGroups": [
        {"name": "general"},
        {"name": "batch", "policyStatements": [{"actions": ["sqs:SendMessage"], "resources": ["arn:aws:sqs:*:*:a"]}]},
    ],
    "addons": ADDONS,
    "iam": {"permissionsBoundary": BOUNDARY},
}
CLUSTERS: dict[str, dict[str, Any]] = {
    "routes": BLUE,
    "addresses": {**BLUE, "network": {**NETWORK, "plugin": "amazon-vpc"}},
    "pod roles": {
        **BLUE,
        "network": {**NETWORK, "plugin": "amazon-vpc"},
        "serviceAccountIssuer": {},
        "addons": {**ADDONS, "certManager": {**ON, "zones": ["Z0123456789BLUE"]}},
    },
    "pod roles and a bucket": {**BLUE, "serviceAccountIssuer": {"discovery": "bucket"}},
}
HERE = f"{REGION}:{ACCOUNT}"
TAGGED = {"aws:resourcetag/kubernetescluster": ["blue-eu"], "aws:resourcetag/kubernetes.io/cluster/blue-eu": ["owned"]}
MASTERS = {"aws:resourcetag/k8s.io/role/master": ["1"]}
NODES = {"aws:resourcetag/k8s.io/role/node": ["1"]}
BY_CSI = {"aws:resourcetag/ebs.csi.aws.com/cluster": ["true"]}
SCALED = {"aws:resourcetag/k8s.io/cluster-autoscaler/enabled": ["true"]}
IN_VPC = {"ec2:vpc": [f"arn:aws:ec2:{HERE}:vpc/{VPC}"]}
TO_EC2 = {"iam:passedtoservice": ["ec2.amazonaws.com"]}
Context = dict[str, list[str]]


def of(service: str, resource: str, region: str = REGION, account: str = ACCOUNT) -> str:
    return f"arn:aws:{service}:{region}:{account}:{resource}"


SECRET = of("secretsmanager", "secret:CaSecret-1aBcDeFgHiJk-XyZabc")
# Everything of blue-eu, with what requests about it carry.
THEIRS: list[tuple[str, Context]] = [
    *(
        (of("ec2", f"{kind}/{kind[:3]}-0fedcba9876543210"), {**TAGGED, **more})
        for kind, more in (
            *(("instance", MASTERS), ("instance", {}), ("volume", MASTERS), ("volume", BY_CSI), ("elastic-ip", {})),
            *(("network-interface", {**MASTERS, **IN_VPC}), ("network-interface", IN_VPC), ("subnet", IN_VPC)),
            *(("security-group", {**role, **IN_VPC}) for role in (MASTERS, NODES)),
            *(("route-table", IN_VPC), ("launch-template", {}), ("key-pair", {}), ("natgateway", {})),
            *(("vpc-endpoint", {}), ("internet-gateway", {}), ("vpc-flow-log", {}), ("capacity-reservation", {})),
        )
    ),
    *(
        (of("elasticloadbalancing", resource), TAGGED)
        for resource in (
            *("loadbalancer/net/blue-eu-api/1", "listener/net/blue-eu-api/1/2", "targetgroup/blue-eu-Api-1AB/1"),
            *("loadbalancer/app/k8s-shop-web-1ab/1", "listener/app/k8s-shop-web-1ab/1/2", "loadbalancer/a1b2"),
            "listener-rule/app/k8s-shop-web-1ab/1/2/3",
        )
    ),
    (SECRET, TAGGED),
    (of("secretsmanager", "secret:JoinSecret-1aBcDeFgHiJk-XyZabc"), TAGGED),
    (of("secretsmanager", "secret:cfngen/blue-eu/authorities-1-AbCdEf"), {}),
    (
        of("kms", "key/11111111-2222-3333-4444-555555555555"),
        {
            **TAGGED,
            "kms:viaservice": [f"secretsmanager.{REGION}.amazonaws.com"],
            "kms:encryptioncontext:secretarn": [SECRET],
            "kms:grantisforawsresource": ["true"],
        },
    ),
    *(
        (f"arn:aws:s3:::{resource}", {})
        for bucket in ("blue-eu-secretsstack-1ab-backupbucket-2cd", "blue-eu-secretsstack-1ab-issuerbucket-2cd")
        for resource in (bucket, f"{bucket}/blue-eu/etcd/hourly/1.db", f"{bucket}/openid/v1/jwks")
    ),
    (f"arn:aws:s3:::cfngen-{ACCOUNT}-{REGION}/blue-eu/0123.json", {}),
    *(
        (of("autoscaling", f"autoScalingGroup:1:autoScalingGroupName/blue-eu-{name}-1AB"), {**TAGGED, **SCALED, **more})
        for name, more in (("NodeGroupGeneral", {}), ("MasterA", MASTERS))
    ),
    *(
        (of("iam", resource, region=""), {**TAGGED, "iam:permissionsboundary": [BOUNDARY]})
        for resource in (
            *("role/blue-eu-IamStack-1AB-MasterRole-2CD", "role/blue-eu-IamStack-1AB-NodeRole-2CD"),
            *("role/blue-eu.us-west-2.shop.web", "instance-profile/blue-eu-IamStack-1AB-MasterInstanceProfile-2CD"),
            *("policy/blue-eu-IamStack-1AB-AddonsPolicy-2CD", "oidc-provider/d111111abcdef8.cloudfront.net"),
            "oidc-provider/blue-eu-secretsstack-1ab-issuerbucket-2cd.s3.us-west-2.amazonaws.com",
        )
    ),
    *((of("cloudformation", f"stack/{name}/1-2"), {}) for name in ("blue-eu", "blue-eu-MasterStack-1AB")),
    (of("cloudfront", "distribution/E1", region=""), TAGGED),
    (of("cloudfront", "origin-access-control/E1", region=""), {}),
    ("arn:aws:route53:::hostedzone/Z0123456789GREEN", {}),
]  # fmt: skip
# What a request may say of itself, and the services that it may pass a role to.
SAID: list[Context] = [
    {},
    *(
        {"aws:requesttag/kubernetescluster": [cluster], "aws:tagkeys": ["KubernetesCluster"]}
        for cluster in ("blue", "blue-eu")
    ),
    {"ec2:attribute/sourcedestcheck": ["false"], **TO_EC2},
]  # fmt: skip
# What AWS cannot keep apart, by action and type of the resource, with the reason.
VALUES_ONLY_OF_SECRETS = (
    "key/* of a printed policy is any key through Secrets Manager or EC2, which ask for it with a secret or a volume; "
    "both are refused by their tags"
)
NOT_KEPT_APART = {
    (
        "elasticloadbalancing:SetRulePriorities",
        "listener-rule",
    ): "the action has no condition key, and its ARN the name "
    "of a load balancer, which users choose; only the order of rules changes",
    ("ssm:UpdateInstanceInformation", "instance"): "no key of tags; an agent says of itself that it runs",
    ("ec2:CreateNetworkInterface", "subnet"): "bound to the VPC, which both clusters share; takes an address",
    ("kms:Decrypt", "key"): VALUES_ONLY_OF_SECRETS,
    ("kms:GenerateDataKey", "key"): VALUES_ONLY_OF_SECRETS,
    ("kms:GenerateDataKey*", "key"): VALUES_ONLY_OF_SECRETS,
    ("kms:CreateGrant", "key"): VALUES_ONLY_OF_SECRETS,
    (
        "cloudfront:DeleteOriginAccessControl",
        "origin-access-control",
    ): "has neither tags nor a name in its ARN; CloudFront refuses while a distribution uses it",
    ("cloudfront:UpdateOriginAccessControl", "origin-access-control"): "has neither tags nor a name in its ARN",
}
# What a call makes under another name than its type's.
MAKES = {"AllocateAddress": "elastic-ip", "CreateOpenIDConnectProvider": "oidc-provider"}


@cache
def granted(cluster: str) -> dict[str, list[dict[str, Any]]]:
    """The statements of every role of a cluster, and of who deploys it, by name; those of roles from the template."""
    configuration = CLUSTERS[cluster]
    parsed = parse(configuration)
    [body] = [document.body for document in generate(parsed) if document.name == "standalone"]
    resources = body["Resources"]
    found: dict[str, list[dict[str, Any]]] = {}
    for name, role in resources.items():
        if role["Type"] == "AWS::IAM::Role":
            policies = [policy["PolicyDocument"] for policy in role["Properties"].get("Policies", ())]
            policies += [
                resource["Properties"]["PolicyDocument"]
                for resource in resources.values()
                if resource["Type"] == "AWS::IAM::ManagedPolicy" and {"Ref": name} in resource["Properties"]["Roles"]
            ]
            found[name] = [resolved(statement) for policy in policies for statement in policy["Statement"]]
    for grant in grants(parsed, scope_of(parsed, account=ACCOUNT)):
        found[f"printed {grant.name}"] = [dict(statement) for statement in grant.statements]
    return found


def changes(statements: list[dict[str, Any]]) -> Iterator[str]:
    """The actions of statements that do more than look, and those that read what is secret; none has an asterisk."""
    actions = dict.fromkeys(action for statement in statements for action in statement["Action"])
    for action in actions:
        looks = levels(action) <= {"List", "Read"}
        if not looks or action in ("secretsmanager:GetSecretValue", "kms:Decrypt", "s3:GetObject"):
            yield action


@cache
def types_of(action: str, resource: str) -> tuple[str, ...]:
    """The types of resources of an action that an ARN can be of; no types where the call makes the resource."""
    service, _, name = action.partition(":")
    forms = services()[service].resources if service in services() else {}
    return tuple(
        kind
        for each in matching(action)
        for kind in each.types
        if re.fullmatch(re.sub(r"\\\$\\\{\w+\\\}", ".+", re.escape(forms.get(kind, "-"))), resource)
        and not _makes(name, kind)
    )


def _makes(operation: str, kind: str) -> bool:
    """Whether an operation makes resources of a type, as CreateNetworkInterface does `network-interface`."""
    made = operation.removeprefix("Create").lower()
    return kind == MAKES.get(operation) or made.rstrip("s") == kind.replace("-", "").lower().rstrip("s")


def asked(statements: list[dict[str, Any]]) -> Iterator[tuple[str, str, Context]]:
    for action, (resource, context) in itertools.product(changes(statements), THEIRS):
        if types_of(action, resource):
            for said in SAID:
                yield action, resource, {**context, **said}


@cache
def reached(cluster: str) -> frozenset[tuple[str, str, str]]:
    """What the roles of a cluster may do to the other: whose statements, the action, and the type of the resource."""
    found = set()
    for name, statements in granted(cluster).items():
        requests = list(asked(statements))
        assert requests, name
        for action, resource, context in requests:
            if decision([{"Statement": statements}], action, resource, context) == "allowed":
                found.add((name, action, re.split("[/:]", resource.split(":", 5)[5])[0]))
    return frozenset(found)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_nobody_changes_what_is_another_clusters(cluster: str) -> None:
    assert [each for each in sorted(reached(cluster)) if each[1:] not in NOT_KEPT_APART] == []


def test_what_aws_cannot_keep_apart_is_what_is_reached() -> None:
    assert {each[1:] for cluster in CLUSTERS for each in reached(cluster)} == set(NOT_KEPT_APART)


ADMIN, ADMIN_POLICY = of("iam", "role/admin", region=""), of("iam", "policy/admins", region="")
MADE = of("iam", "role/blue-IamStack-1AB-MasterRole-2CD", region="")
STACK = of("cloudformation", "stack/blue/1-2")
OWN: Context = {"aws:resourcetag/kubernetescluster": ["blue"], **MASTERS}
# Known ways to raise oneself, which nobody has: nor operators, nor the service role under a boundary.
FOR_NOBODY: list[tuple[str, str, Context]] = [
    *((f"iam:{action}", policy, {}) for action in ("CreatePolicyVersion", "SetDefaultPolicyVersion")
      for policy in (ADMIN_POLICY, BOUNDARY)),
    *((f"iam:{action}", ADMIN, {"iam:permissionsboundary": [BOUNDARY]}) for action in
      ("UpdateAssumeRolePolicy", "PutRolePolicy", "AttachRolePolicy", "DeleteRolePermissionsBoundary")),
    *(("iam:PassRole", ADMIN, {"iam:passedtoservice": [f"{service}.amazonaws.com"]})
      for service in ("ec2", "lambda", "cloudformation", "ecs-tasks")),
    *(("iam:PassRole", MADE, {"iam:passedtoservice": [f"{service}.amazonaws.com"]}) for service in ("lambda", "glue")),
    # Without the boundary, a role of the cluster becomes anything.
    *((f"iam:{action}", MADE, OWN) for action in ("CreateRole", "PutRolePolicy", "AttachRolePolicy")),
    ("iam:DeleteRolePermissionsBoundary", MADE, {**OWN, "iam:permissionsboundary": [BOUNDARY]}),
    ("iam:PutRolePermissionsBoundary", MADE, {**OWN, "iam:permissionsboundary": [ADMIN_POLICY]}),
    ("iam:AddRoleToInstanceProfile", of("iam", "instance-profile/admin", region=""), {}),
    *((f"iam:{action}", of("iam", "user/admin", region=""), {}) for action in
      ("CreateAccessKey", "CreateLoginProfile", "UpdateLoginProfile", "AttachUserPolicy", "PutUserPolicy")),
    ("iam:AddUserToGroup", of("iam", "group/admins", region=""), {}),
    ("sts:AssumeRole", ADMIN, {}),
    *((f"ec2:{action}", of("ec2", "instance/i-1"), OWN)
      for action in ("AssociateIamInstanceProfile", "ReplaceIamInstanceProfileAssociation")),
    ("ec2:ModifyInstanceAttribute", of("ec2", "instance/i-1"), {**OWN, "ec2:attribute/userdata": ["x"]}),
    *((f"ssm:{action}", of("ec2", "instance/i-1"), OWN) for action in ("SendCommand", "StartSession")),
    ("lambda:CreateFunction", of("lambda", "function:a"), {}),
    ("secretsmanager:PutResourcePolicy", of("secretsmanager", "secret:CaSecret-1"), OWN),
]  # fmt: skip
# What only who deploys the cluster may do, or the service role.
NOT_FOR_INSTANCES: list[tuple[str, str, Context]] = [
    *((f"cloudformation:{action}", STACK, {}) for action in
      ("UpdateStack", "CreateChangeSet", "ExecuteChangeSet", "DeleteStack", "SetStackPolicy")),
    *((f"ec2:{action}", of("ec2", "launch-template/lt-1"), OWN)
      for action in ("CreateLaunchTemplateVersion", "ModifyLaunchTemplate", "RunInstances")),
    *((f"autoscaling:{action}", of("autoscaling", "autoScalingGroup:1:autoScalingGroupName/blue-MasterA-1"), OWN)
      for action in ("UpdateAutoScalingGroup", "CreateAutoScalingGroup", "StartInstanceRefresh")),
    *((f"iam:{action}", MADE, {**OWN, "iam:permissionsboundary": [BOUNDARY], **TO_EC2})
      for action in ("CreateRole", "PutRolePolicy", "AttachRolePolicy", "UpdateAssumeRolePolicy", "PassRole")),
    ("kms:PutKeyPolicy", of("kms", "key/1-2"), OWN),
    ("s3:PutBucketPolicy", "arn:aws:s3:::blue-secretsstack-1ab-backupbucket-2cd", {}),
]  # fmt: skip


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_nobody_raises_himself(cluster: str) -> None:
    for name, statements in granted(cluster).items():
        instances = not name.startswith("printed") or name.startswith(
            ("printed master", "printed nodes", "printed pod")
        )
        for request in [*FOR_NOBODY, *(NOT_FOR_INSTANCES if instances else ())]:
            assert decision([{"Statement": statements}], *request) != "allowed", (name, request)


def test_the_service_role_makes_what_nobody_else_may() -> None:
    """The rows above are of calls that policies allow to someone, so that a wrong name in them is seen."""
    statements = granted("routes")["printed execution"]
    allowed = {
        action
        for action, *rest in NOT_FOR_INSTANCES
        if decision([{"Statement": statements}], action, *rest) == "allowed"
    }
    assert {
        "iam:CreateRole",
        "iam:PassRole",
        "ec2:CreateLaunchTemplateVersion",
        "autoscaling:UpdateAutoScalingGroup",
    } <= allowed
