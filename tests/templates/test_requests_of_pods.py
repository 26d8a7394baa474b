"""Components with roles of their own: each role lets through what the masters' role did, and theirs no longer does.

The requests are the rows of `requests_of_roles`, made with the component's role in place of the instance's.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from requests_of_roles import ACCOUNT, CLUSTERS, DEFAULT, ELB, FULL, MASTERS, NEW, OURS, REGION, Request, created
from test_requests import letting, resolved, spoilt

from cfngen.cluster.load import parse
from cfngen.templates import generate

ZONE = "arn:aws:route53:::hostedzone/Z0123456789"
RECORD_TYPES = "route53:ChangeResourceRecordSetsRecordTypes"
FULL_CLUSTER = CLUSTERS["full"]
PODS = {
    **FULL_CLUSTER,
    "serviceAccountIssuer": {},
    "addons": {**FULL_CLUSTER["addons"], "certManager": {"enabled": True, "zones": ["Z0123456789"]}},
}
ROUTES = {"name": "blue", "serviceAccountIssuer": {}}
OWN_ISSUER = {
    "name": "blue",
    "serviceAccountIssuer": {"discovery": "url", "url": "https://example.com/blue", "bucket": "tokens"},
}

# The role of each component by how the names of its statements begin; "Key" statements are those of encrypted volumes.
ROLES = {
    "CloudController": "cloud-controller-manager",
    "PodRoutes": "cloud-controller-manager",
    "PodAddresses": "aws-node",
    "Ebs": "ebs-csi-controller-sa",
    "Autoscaler": "cluster-autoscaler",
    "LoadBalancers": "aws-load-balancer-controller",
    "Dns": "external-dns",
}
# Of these statements the network plug-in's own role has narrower ones, see below.
NARROWER = ("PodAddressesOwnInterfaces", "PodAddressesOwnInstances")
SHARED_WITH_CONTROLLER = [
    Request("", "LoadBalancersReadNetwork", "ec2:DescribeSubnets"),
    Request("", "LoadBalancersOwnGroups", "ec2:AuthorizeSecurityGroupIngress", "security-group/sg-0", OURS),
    Request("", "LoadBalancersChange", "elasticloadbalancing:RegisterTargets", ELB, OURS),
    Request(
        "",
        "LoadBalancersTagNew",
        "elasticloadbalancing:AddTags",
        ELB,
        created("CreateLoadBalancer", "elasticloadbalancing"),
    ),
    Request("", "LoadBalancersNew", "elasticloadbalancing:CreateLoadBalancer", ELB, NEW),
    Request("", "LoadBalancersNewGroups", "ec2:CreateSecurityGroup", "security-group/*", NEW),
    Request("", "LoadBalancersNewGroupsInVpc", "ec2:CreateSecurityGroup", "vpc/vpc-0", OURS),
    Request("", "LoadBalancersNewGroupsInVpc", "ec2:GetSecurityGroupsForVpc", "vpc/vpc-0", OURS),
    Request("", "LoadBalancersTagNewGroups", "ec2:CreateTags", "security-group/sg-0", created("CreateSecurityGroup")),
    Request(
        "",
        "LoadBalancersServiceLinkedRole",
        "iam:CreateServiceLinkedRole",
        f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/elasticloadbalancing.amazonaws.com/"
        "AWSServiceRoleForElasticLoadBalancing",
        {"iam:AWSServiceName": "elasticloadbalancing.amazonaws.com"},
    ),
]
CERT_MANAGER = [
    Request("", "DnsChanges", "route53:GetChange", "arn:aws:route53:::change/C2682N5HXP0BZ4", others=(ZONE,)),
    Request("", "DnsFindZones", "route53:ListHostedZonesByName"),
]
BUCKET = "arn:aws:s3:::IssuerBucket"
DOCUMENTS = [
    Request("", "IssuerDocuments", action, f"{BUCKET}/{key}", others=(f"{BUCKET}/a", f"{BUCKET}/{key}/a"))
    for key in (".well-known/openid-configuration", "openid/v1/jwks")
    for action in ("s3:GetObject", "s3:PutObject")
]


def resources_of(configuration: dict[str, Any]) -> dict[str, Any]:
    """The resources of the flat template."""
    return _resources(json.dumps(configuration))


@cache
def _resources(configuration: str) -> dict[str, Any]:
    [body] = [document.body for document in generate(parse(json.loads(configuration))) if document.name == "standalone"]
    found: dict[str, Any] = body["Resources"]
    return found


def statements(configuration: dict[str, Any], role: str) -> list[dict[str, Any]]:
    """The statements of all policies of a role: of a service account, by its name, or by the role's logical id."""
    resources = resources_of(configuration)
    [logical_id] = [
        name
        for name, resource in resources.items()
        if resource["Type"] == "AWS::IAM::Role"
        and (name == role or resource["Properties"].get("RoleName", "").endswith(f".{role}"))
    ]
    policies = [policy["PolicyDocument"] for policy in resources[logical_id]["Properties"]["Policies"]]
    policies += [
        resource["Properties"]["PolicyDocument"]
        for resource in resources.values()
        if resource["Type"] == "AWS::IAM::ManagedPolicy" and {"Ref": logical_id} in resource["Properties"]["Roles"]
    ]
    return [resolved(statement) for policy in policies for statement in policy["Statement"]]


def component_rows(prefix: str) -> list[Request]:
    """The rows of what a component does with the masters' role."""
    return [
        row
        for row in [*DEFAULT, *FULL]
        if row.role == "MasterRole" and row.sid.startswith(prefix) and row.sid not in NARROWER
    ]


def check(own: list[dict[str, Any]], rows: list[Request]) -> None:
    """Each request is let through by its statement, and not about other resources or without what it rests on."""
    assert rows
    assert [row for row in rows if row.sid not in letting(own, row.action, row.resource, row.context)] == []
    assert [(row.sid, case) for row in rows for case in spoilt(row) if letting(own, row.action, *case)] == []


@pytest.mark.parametrize("prefix", ROLES)
def test_a_component_may_do_with_its_role_what_it_did_with_the_masters(prefix: str) -> None:
    configuration = ROUTES if prefix == "PodRoutes" else PODS
    check(statements(configuration, ROLES[prefix]), component_rows(prefix))


def test_masters_may_do_none_of_it_any_more() -> None:
    for configuration in (PODS, ROUTES):
        own = statements(configuration, "MasterRole")
        for row in (row for prefix in ROLES for row in component_rows(prefix)):
            through = set(letting(own, row.action, row.resource, row.context))
            assert through <= {"PodAddressesCount"}, row
    assert not letting(statements(PODS, "NodeRole"), "ec2:AssignPrivateIpAddresses", "network-interface/eni-0", OURS)


def test_the_load_balancer_controller_has_what_it_shared_with_the_cloud_controller_manager() -> None:
    check(statements(PODS, "aws-load-balancer-controller"), SHARED_WITH_CONTROLLER)


def test_cert_manager_writes_text_records_in_its_zones_and_no_others() -> None:
    own = statements(PODS, "cert-manager.cert-manager")
    check(own, CERT_MANAGER)
    change = "route53:ChangeResourceRecordSets"
    assert letting(own, change, ZONE, {RECORD_TYPES: ["TXT"]}) == ["DnsChallenges"]
    for types in (["A"], ["TXT", "CNAME"]):
        assert letting(own, change, ZONE, {RECORD_TYPES: types}) == []
    assert letting(own, change, "arn:aws:route53:::hostedzone/Z9", {RECORD_TYPES: ["TXT"]}) == []


def test_volumes_of_claims_may_have_any_key_of_the_account() -> None:
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/default"
    through_ec2 = {"kms:ViaService": f"ec2.{REGION}.amazonaws.com"}
    rows = [
        Request("", "EbsKey", "kms:GenerateDataKeyWithoutPlaintext", key, through_ec2),
        Request("", "EbsKeyGrant", "kms:CreateGrant", key, {**through_ec2, "kms:GrantIsForAWSResource": "true"}),
    ]
    check(statements(PODS, "ebs-csi-controller-sa"), rows)


def test_the_network_plug_in_gives_masters_addresses_but_leaves_their_own_interface() -> None:
    own = statements(PODS, "aws-node")
    of_master = {**OURS, **MASTERS}
    interface, instance = "network-interface/eni-0", "instance/i-0"
    assert letting(own, "ec2:AssignPrivateIpAddresses", interface, of_master)
    assert letting(own, "ec2:AttachNetworkInterface", instance, of_master)
    for action in ("AttachNetworkInterface", "DeleteNetworkInterface", "ModifyNetworkInterfaceAttribute"):
        assert letting(own, f"ec2:{action}", interface, OURS)
        assert letting(own, f"ec2:{action}", interface, of_master) == []
        assert letting(own, f"ec2:{action}", interface, {}) == []


def test_masters_read_and_write_the_two_documents_and_nothing_else_of_the_issuers_bucket() -> None:
    for configuration in (PODS, {"name": "blue", "serviceAccountIssuer": {"signTokens": False}}):
        check(statements(configuration, "MasterRole"), DOCUMENTS)
    own = [each for each in statements(PODS, "MasterRole") if "IssuerBucket" in str(each["Resource"])]
    assert {action for each in own for action in each["Action"]} == {"s3:GetObject", "s3:PutObject"}


def test_documents_in_a_bucket_of_ones_own_are_below_the_path_of_the_url_and_may_be_encrypted() -> None:
    key = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/1"
    document = "arn:aws:s3:::tokens/blue/openid/v1/jwks"
    via_s3 = {"kms:ViaService": f"s3.{REGION}.amazonaws.com", "kms:EncryptionContext:aws:s3:arn": document}
    rows = [
        Request("", "IssuerDocuments", "s3:PutObject", document, others=("arn:aws:s3:::tokens/openid/v1/jwks",)),
        Request("", "IssuerDocumentsKey", "kms:GenerateDataKey", key, via_s3),
    ]
    check(statements(OWN_ISSUER, "MasterRole"), rows)


def test_before_the_change_instances_keep_in_managed_policies_what_they_then_lose() -> None:
    """The policies are deleted after an update alone, so that a rollback finds them."""
    for plugin in ("vpc-routes", "amazon-vpc"):
        network = {"network": {"plugin": plugin}}
        before = {**PODS, **network, "addons": CLUSTERS["full"]["addons"], "iam": {"addonRoles": False}}
        after = {**before, "iam": {"addonRoles": True}}
        for role in ("MasterRole", "NodeRole"):
            assert not [each for each in statements(before, role) if each not in _kept(before, after, role)]


def _kept(before: dict[str, Any], after: dict[str, Any], role: str) -> list[dict[str, Any]]:
    """The statements of a role amid the change: its new inline policy, and the managed policies of before."""
    managed = [
        resolved(statement)
        for resource in resources_of(before).values()
        if resource["Type"] == "AWS::IAM::ManagedPolicy" and {"Ref": role} in resource["Properties"]["Roles"]
        for statement in resource["Properties"]["PolicyDocument"]["Statement"]
    ]
    return [*managed, *statements(after, role)]
