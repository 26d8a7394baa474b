"""Names that are fixed, and that something else in the account may have: looked up before anything is created."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from answers import DENIED, Answers, pairs
from aws_descriptions import NOW
from cloud import Cloud
from deployments import Operator
from existing_network import ExistingNetwork
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.deploy.aws.stacks import StackTree
from cfngen.deploy.preflight.existing.objects import ForeignObjectsError
from cfngen.deploy.preflight.existing.roles import find_pod_role_problems
from cfngen.deploy.preflight.existing.services import (
    find_access_control_problems,
    find_load_balancer_problems,
    find_private_zone_problems,
    find_record_problems,
)

ARN = "arn:aws:elasticloadbalancing:us-west-2:123456789012:loadbalancer/net/{}/0123456789abcdef"
SEVERAL: dict[str, Any] = {
    "name": "one",
    "controlPlane": {"count": 3},
    "network": {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]},
}


def taken(aws: Answers, file: dict[str, Any], *names: str, own: tuple[str, ...] = ()) -> list[str]:
    """What is told of a cluster where load balancers have these names, some of them the stack's own."""

    def answer(arguments: dict[str, Any]) -> Any:
        asked = set(arguments["Names"])
        found = [{"LoadBalancerName": name, "LoadBalancerArn": ARN.format(name)} for name in names if name in asked]
        return {"LoadBalancers": found} if found else RefusedError("LoadBalancerNotFound")

    aws.given["elbv2:DescribeLoadBalancers"] = answer
    tree = SimpleNamespace(physical_ids={name: ARN.format(name) for name in own}) if own else None
    return list(map(str, find_load_balancer_problems(aws.account, parse(file), cast("StackTree | None", tree))))


def test_a_load_balancer_of_another_has_the_name_of_the_apis(aws: Answers) -> None:
    [problem] = taken(aws, SEVERAL, "one-api", "one-int")
    assert problem.startswith("name: account 123456789012 has a load balancer one-api in us-west-2 already, which is")
    assert f"--load-balancer-arn {ARN.format('one-api')}` if nothing uses it, or choose another name" in problem
    both = {**SEVERAL, "api": {"internal": True}}
    assert len(taken(aws, both, "one-api", "one-int")) == 2
    [problem] = taken(aws, both, "one-api", "one-int", own=("one-api",))
    assert "has a load balancer one-int" in problem


@pytest.mark.parametrize(("names", "own"), [((), ()), (("one-api",), ("one-api",)), (("two-api",), ())])
def test_a_name_that_is_free_or_the_stacks_own_is_no_problem(
    aws: Answers, names: tuple[str, ...], own: tuple[str, ...]
) -> None:
    assert taken(aws, SEVERAL, *names, own=own) == []


def test_a_cluster_without_load_balancers_is_not_looked_for(aws: Answers) -> None:
    assert taken(aws, {"name": "one"}, "one-api") == []
    assert not aws.named("elbv2:DescribeLoadBalancers")


def test_a_plan_refuses_a_name_that_is_taken(cloud: Cloud) -> None:
    operator = Operator(cloud)
    account = operator.account
    subnets = account.client("ec2").describe_subnets()["Subnets"]
    account.client("elbv2").create_load_balancer(
        Name="one-api", Type="network", Scheme="internal", Subnets=[subnets[0]["SubnetId"]]
    )
    with pytest.raises(ForeignObjectsError, match=r"^name: account .* has a load balancer one-api"):
        operator.plan(SEVERAL)


NAME = "api.k8s.example.com"


@pytest.mark.parametrize(
    ("record", "kind", "own", "count"),
    [
        (f"{NAME}.", "A", "", 1),
        (f"{NAME}.", "A", "api.old.example.com", 1),
        (f"{NAME}.", "A", NAME, 0),
        (f"{NAME}.", "TXT", "", 0),
        ("b.k8s.example.com.", "A", "", 0),
        (None, "A", "", 0),
    ],
)
def test_a_record_of_the_apis_name_in_an_existing_zone(
    aws: Answers, record: str | None, kind: str, own: str, count: int
) -> None:
    records = [{"Name": record, "Type": kind}] if record else []
    answer = {"ResourceRecordSets": records, "IsTruncated": False, "MaxItems": "1"}
    aws.given["route53:ListResourceRecordSets"] = answer
    cluster = parse({"api": {"dns": {"name": NAME, "publicZone": {"id": "Z0123456789ABC"}}}})
    tree = cast("StackTree | None", SimpleNamespace(physical_ids={"ApiPublicRecord": own}) if own else None)
    problems = list(map(str, find_record_problems(aws.account, cluster, tree)))
    expected = f"api.dns.name: Z0123456789ABC has a record {NAME} of the type A already, which is not this stack's; "
    assert [problem.startswith(expected) for problem in problems] == [True] * count


def test_a_plan_refuses_a_record_that_is_there(cloud: Cloud) -> None:
    operator = Operator(cloud)
    route53 = operator.account.client("route53")
    zone = route53.create_hosted_zone(Name="k8s.example.com", CallerReference="one")["HostedZone"]["Id"].rpartition(
        "/"
    )[2]
    record = {"Name": NAME, "Type": "A", "TTL": 60, "ResourceRecords": [{"Value": "203.0.113.1"}]}
    changes = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    route53.change_resource_record_sets(HostedZoneId=zone, ChangeBatch=changes)
    with pytest.raises(ForeignObjectsError, match=r"^api\.dns\.name: .* has a record api"):
        operator.plan({"name": "one", "api": {"dns": {"name": NAME, "publicZone": {"id": zone}}}})


VPC, ZONE = "vpc-0123456789abcdef0", "Z0123456789ABC"
INSIDE = {"api": {"internal": True, "dns": {"name": NAME, "privateZone": {"name": "k8s.example.com"}}}}


def tree_of(*ids: str) -> StackTree | None:
    return cast("StackTree | None", SimpleNamespace(physical_ids=dict(enumerate(ids))) if ids else None)


@pytest.mark.parametrize(
    ("zone", "owner", "own", "remedy"),
    [
        ("k8s.example.com.", "123456789012", (), f"; enter `privateZone: {{id: {ZONE}}}`, or give"),
        ("k8s.example.com.", "123456789012", ("Z9",), "or give the new zone another name"),
        ("k8s.example.com.", "210987654321", (), f"({ZONE} of 210987654321), which is not this stack's; have it"),
        ("k8s.example.com.", "123456789012", (ZONE,), ""),
        ("example.com.", "123456789012", (), ""),
    ],
)  # fmt: skip
def test_a_private_zone_of_the_name_is_on_the_vpc(
    aws: Answers, zone: str, owner: str, own: tuple[str, ...], remedy: str
) -> None:
    def answer(arguments: dict[str, Any]) -> dict[str, Any]:
        assert (arguments["VPCId"], arguments["VPCRegion"]) == (VPC, "us-west-2")
        name = zone if "NextToken" in arguments else "other.example.com."
        summary = {"HostedZoneId": ZONE, "Name": name, "Owner": {"OwningAccount": owner}}
        more = {} if "NextToken" in arguments else {"NextToken": "second"}
        return {"HostedZoneSummaries": [summary], "MaxItems": "100", **more}

    aws.given["route53:ListHostedZonesByVPC"] = answer
    problems = list(map(str, find_private_zone_problems(aws.account, parse(INSIDE), tree_of(*own), VPC)))
    expected = f"api.dns.privateZone.name: {VPC} has a private zone k8s.example.com already"
    assert [problem.startswith(expected) and remedy in problem for problem in problems] == [True] * bool(remedy)


def test_zones_are_not_looked_for_where_none_is_made(aws: Answers) -> None:
    existing = {"api": {"internal": True, "dns": {"name": NAME, "privateZone": {"id": ZONE}}}}
    assert not list(find_private_zone_problems(aws.account, parse(existing), None, VPC))
    assert not list(find_private_zone_problems(aws.account, parse({}), None, VPC))
    assert not aws.calls


def test_a_plan_refuses_a_private_zone_that_the_vpc_has(cloud: Cloud) -> None:
    operator = Operator(cloud)
    account = operator.account
    network = ExistingNetwork(account)
    zone = {"Name": "k8s.example.com", "CallerReference": "one", "HostedZoneConfig": {"PrivateZone": True}}
    account.client("route53").create_hosted_zone(**zone, VPC={"VPCId": network.vpc, "VPCRegion": "us-west-2"})
    with pytest.raises(ForeignObjectsError, match=r"api\.dns\.privateZone\.name: vpc-\w+ has a private zone k8s"):
        operator.plan({"name": "one", "network": network.network, **network.file, **INSIDE})


POD_ROLES: dict[str, Any] = {"name": "one", "serviceAccountIssuer": {"discovery": "cloudFront"}}


@pytest.mark.parametrize(("name", "own", "count"), [
    ("one.us-west-2", (), 1), ("one.us-west-2", ("E9",), 1), ("one.us-west-2", ("E1",), 0), ("one.us-east-1", (), 0),
    ("", (), 0),
])  # fmt: skip
def test_an_access_control_of_the_issuers_name(aws: Answers, name: str, own: tuple[str, ...], count: int) -> None:
    settings = {"Description": "", "SigningProtocol": "sigv4", "SigningBehavior": "always"}
    control = {"Id": "E1", "Name": name, "OriginAccessControlOriginType": "s3", **settings}
    listed = {"Items": [control]} if name else {}
    described = {"Marker": "", "MaxItems": 100, "IsTruncated": False, "Quantity": len(listed), **listed}
    aws.given["cloudfront:ListOriginAccessControls"] = {"OriginAccessControlList": described}
    problems = list(map(str, find_access_control_problems(aws.account, parse(POD_ROLES), tree_of(*own))))
    expected = "name: account 123456789012 has an origin access control one.us-west-2 (E1) already, which is not"
    remedy = "delete-origin-access-control --id E1 --if-match"
    assert [problem.startswith(expected) and remedy in problem for problem in problems] == [True] * count


def test_a_plan_refuses_an_access_control_that_is_there(cloud: Cloud) -> None:
    operator = Operator(cloud)
    settings = {"SigningProtocol": "sigv4", "SigningBehavior": "always", "OriginAccessControlOriginType": "s3"}
    operator.account.client("cloudfront").create_origin_access_control(
        OriginAccessControlConfig={"Name": "one.us-west-2", **settings}
    )
    with pytest.raises(ForeignObjectsError, match=r"^name: account .* has an origin access control one\.us-west-2"):
        operator.plan(POD_ROLES)


def test_access_controls_are_not_looked_for_where_none_is_made(aws: Answers) -> None:
    assert not list(find_access_control_problems(aws.account, parse({"name": "one"}), None))
    assert not aws.calls


URL = "https://tokens.example.com/one"
PROVIDER = "arn:aws:iam::123456789012:oidc-provider/tokens.example.com/one"
ABSENT = RefusedError("NoSuchEntity")
ISSUER: dict[str, Any] = {"serviceAccountIssuer": {"discovery": "url", "url": URL}}
POD_ROLE = "one.us-west-2.shop.web"


def told_of_pod_roles(
    aws: Answers, *own: str, file: dict[str, Any] = ISSUER, role: str | None = None, exists: bool = True
) -> list[str]:
    """What is told where the pods of a service account have a made role, or an existing one; `own` are the stack's."""
    aws.given = {"iam:GetRole": ABSENT, "iam:GetOpenIDConnectProvider": ABSENT} | aws.given
    account = {"namespace": "shop", "name": "web"} | ({"role": role} if role else {})
    cluster = parse({"name": "one", "iam": {"serviceAccounts": [account]}} | file)
    resources = [SimpleNamespace(view=SimpleNamespace(physical_id=each), exists=exists) for each in own]
    tree = cast("StackTree | None", SimpleNamespace(resources=resources) if own else None)
    return list(map(str, find_pod_role_problems(aws.account, cluster, tree)))


@pytest.mark.parametrize(
    ("exists", "own", "count"), [(True, "", 1), (True, "other", 1), (True, PROVIDER, 0), (False, "", 0)]
)
def test_a_provider_of_the_issuers_url(aws: Answers, exists: bool, own: str, count: int) -> None:
    aws.given["iam:GetOpenIDConnectProvider"] = {"ClientIDList": []} if exists else ABSENT
    problems = told_of_pod_roles(aws, *filter(None, [own]))
    expected = "serviceAccountIssuer.url: account 123456789012 has an OIDC provider for tokens.example.com/one already,"
    command = f"delete-open-id-connect-provider --open-id-connect-provider-arn {PROVIDER}`"
    assert [problem.startswith(expected) and command in problem for problem in problems] == [True] * count


def existing_role(**tags: str) -> dict[str, Any]:
    arn = f"arn:aws:iam::123456789012:role/{POD_ROLE}"
    role = {"Path": "/", "RoleName": POD_ROLE, "RoleId": "AROA0123456789ABCDEF", "Arn": arn, "CreateDate": NOW}
    return {"Role": role | {"AssumeRolePolicyDocument": "{}", "Tags": pairs(tags)}}


@pytest.mark.parametrize(("tags", "origin"), [
    ({}, "which is not this stack's; delete"),
    ({"KubernetesCluster": "two"}, "which is not this stack's; delete"),
    ({"KubernetesCluster": "one"}, "which is not this stack's but has the tag of a cluster one: an earlier stack may"),
])  # fmt: skip
def test_a_role_of_a_service_accounts_name(aws: Answers, tags: dict[str, str], origin: str) -> None:
    aws.given["iam:GetRole"] = existing_role(**tags)
    [problem] = told_of_pod_roles(aws, "other")
    assert problem.startswith(f"iam.serviceAccounts[0]: account 123456789012 has a role {POD_ROLE} already, {origin}")
    assert f"with `aws iam delete-role --role-name {POD_ROLE}` if nothing uses it" in problem


def test_a_role_that_is_the_stacks_own_is_no_problem(aws: Answers) -> None:
    aws.given["iam:GetRole"] = existing_role()
    assert told_of_pod_roles(aws, POD_ROLE) == []
    assert len(told_of_pod_roles(aws, POD_ROLE, exists=False)) == 1


@pytest.mark.parametrize(("number", "count"), [("123456789012", 1), ("210987654321", 0)])
def test_a_role_of_pods_that_is_not_there(aws: Answers, number: str, count: int) -> None:
    """One of another account cannot be read."""
    problems = told_of_pod_roles(aws, role=f"arn:aws:iam::{number}:role/team/web")
    assert problems == ["iam.serviceAccounts[0].role: there is no role web in account 123456789012"] * count
    assert [sent["RoleName"] for sent in aws.named("iam:GetRole")] == ["web"] * count


def test_who_may_not_read_roles_is_told(aws: Answers) -> None:
    aws.given["iam:GetRole"] = DENIED
    [told] = told_of_pod_roles(aws)
    assert told.startswith("iam: whether names of roles and providers are taken cannot be read, so")


def test_roles_and_providers_are_not_looked_for_where_none_is_made(aws: Answers) -> None:
    assert told_of_pod_roles(aws, file={"iam": {}}) == []
    assert not aws.calls
    assert told_of_pod_roles(aws, file={"serviceAccountIssuer": {"discovery": "cloudFront"}}) == []
    assert not aws.named("iam:GetOpenIDConnectProvider")


def test_add_ons_that_would_wait_for_documents_of_their_own_masters(aws: Answers) -> None:
    file = {**ISSUER, "iam": {"addonRoles": True}}
    [problem] = told_of_pod_roles(aws, file=file)
    assert problem.startswith("iam.addonRoles: AWS has to read the issuer's documents before the cloud controller")
    assert told_of_pod_roles(aws, "other", file=file) == []
    assert told_of_pod_roles(aws, file={**file, "serviceAccountIssuer": {"discovery": "cloudFront"}}) == []
    assert told_of_pod_roles(aws, file=ISSUER | {"iam": {}}) == []
