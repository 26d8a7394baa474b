"""What each grantee of a cluster may do, and how it is cut into policies that IAM accepts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.permissions.grants import grants, scope_of
from cfngen.permissions.statements import allow, policy_document, policy_size, split_into_documents
from cfngen.templates import generate

LIMIT = 6_144  # "IAM and AWS STS quotas", IAM User Guide
ZONES = [{"zone": f"us-west-2{letter}"} for letter in "abc"]
EVERY_ADDON = {
    "clusterAutoscaler": {"enabled": True},
    "awsLoadBalancerController": {"enabled": True},
    "externalDns": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]},
}
EXISTING = {
    "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.9.0.0/16"},
    "routeTable": "rtb-0123456789abcdef0",
    "subnets": [{"id": "subnet-0123456789abcdef0", "zone": "us-west-2a", "cidr": "10.9.0.0/24"}],
}
CLUSTERS: dict[str, dict[str, Any]] = {
    "default": {},
    "three masters": {"controlPlane": {"count": 3}, "network": {"subnets": ZONES}},
    "VPC addresses": {"network": {"plugin": "amazon-vpc"}},
    "add-ons": {"addons": EVERY_ADDON},
    "existing network and bucket": {"network": EXISTING, "etcd": {"backups": {"bucket": "snapshots-of-ours"}}},
    "no snapshots": {"etcd": {"backups": {"enabled": False}}},
    "group with a role of its own": {
        "nodeGroups": [{"name": "batch", "additionalPolicies": ["arn:aws:iam::aws:policy/ReadOnlyAccess"]}]
    },
    "private": {"network": {"topology": "private"}},
    "private, without a way out": {
        "network": {"topology": "private", "plugin": "cilium", "nat": "none"},
        "api": {"public": False, "allowedCidrs": ["172.20.0.0/16"]},
        "assets": {"mirror": "https://mirror.example.com/kubernetes"},
    },
    "longest names": {"name": "c" * 28, "nodeGroups": [{"name": "general"}, {"name": "batch"}]},
}


def granted(configuration: dict[str, Any], **scope: str) -> dict[str, Any]:
    cluster = parse(configuration)
    return {grant.name: grant for grant in grants(cluster, scope_of(cluster, account="123456789012", **scope))}


def rights(statements: Any) -> set[tuple[str, str]]:
    """The actions, by the names of their statements."""
    return {(statement["Sid"], action) for statement in statements for action in statement["Action"]}


def bounds(statements: Any) -> set[tuple[str, str, str]]:
    """On what each statement's rights rest: operators and keys of conditions, by the names of the statements."""
    return {
        (statement["Sid"], operator, key)
        for statement in statements
        for operator, keys in statement.get("Condition", {}).items()
        for key in keys
    }


def role_statements(configuration: dict[str, Any]) -> dict[str, list[Any]]:
    """The statements of the roles of the templates, by role."""
    statements_by_role: dict[str, list[Any]] = {}
    for template in generate(parse(configuration)):
        if template.name in ("standalone", "cluster"):
            continue
        for name, resource in template.body["Resources"].items():
            if resource["Type"] == "AWS::IAM::Role":
                statements_by_role[name] = [*resource["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]]
            elif resource["Type"] == "AWS::IAM::ManagedPolicy":
                [role] = resource["Properties"]["Roles"]
                statements_by_role[role["Ref"]] += resource["Properties"]["PolicyDocument"]["Statement"]
    return statements_by_role


@pytest.mark.parametrize("name", CLUSTERS)
def test_instances_are_shown_with_the_rights_of_their_roles(name: str) -> None:
    configuration = CLUSTERS[name]
    everybody, roles = granted(configuration), role_statements(configuration)
    pairs = [(everybody["master"], "MasterRole")]
    for group in parse(configuration).node_groups:
        role = "NodeGroupBatchRole" if group.additional_policies else "NodeRole"
        pairs.append((everybody[f"nodes-{group.name}"], role))
        assert everybody[f"nodes-{group.name}"].managed_policies == group.additional_policies
    for grant, role in pairs:
        assert rights(grant.statements) == rights(roles[role])
        assert bounds(grant.statements) == bounds(roles[role])


# What the policies of two clusters say in the same words: reads without a resource, what is the account's or EC2's own,
# what a VPC bounds, zones of the cluster file, and keys, used through a service for what it lets the role use.
OF_ANY_CLUSTER = {
    *("AutoscalerRead", "CloudControllerRead", "DataVolumeRead", "DnsRead", "EbsRead", "LoadBalancersRead"),
    *("PodAddressesRead", "EcrPull", "EcrToken", "SessionManager", "SessionManagerInstances"),
    *("CloudControllerServiceLinkedRole", "LoadBalancersNamed", "LoadBalancersOrderRules", "DnsRecords"),
    *("DataVolumeKey", "DataVolumeKeyGrant", "SecretsKey"),
    "PodAddressesNewInterfacesInVpc",
}


@pytest.mark.parametrize("name", sorted(CLUSTERS.keys() - {"longest names", "existing network and bucket"}))
def test_printed_policies_of_instances_tell_clusters_of_an_account_apart(name: str) -> None:
    blue, green = (granted({**CLUSTERS[name], "name": cluster}) for cluster in ("blue", "green"))
    for grantee in blue:
        if grantee == "master" or grantee.startswith("nodes-"):
            of_green = [(each["Resource"], each.get("Condition")) for each in green[grantee].statements]
            same = [
                each["Sid"]
                for each in blue[grantee].statements
                if (each["Resource"], each.get("Condition")) in of_green and each["Sid"] not in OF_ANY_CLUSTER
            ]
            assert same == [], grantee


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_policy_is_accepted_by_iam(name: str) -> None:
    for grant in granted(CLUSTERS[name]).values():
        policies = grant.policies
        assert {policy.grantee for policy in policies} == {grant.name}
        for policy in policies:
            text = json.dumps(policy.document, separators=(",", ":"))
            assert policy.characters == len(text) <= LIMIT
            assert "${" not in text
            sids = [statement["Sid"] for statement in policy.document["Statement"]]
            assert len(set(sids)) == len(sids)
            assert all(sid.isalnum() for sid in sids)
        assert rights(statement for policy in policies for statement in policy.document["Statement"]) == rights(
            grant.statements
        )


def test_the_load_balancer_is_for_clusters_of_several_masters() -> None:
    one, three = (granted(CLUSTERS[name])["execution"].statements for name in ("default", "three masters"))
    creating = ("Balance", "elasticloadbalancing:CreateLoadBalancer")
    assert creating in rights(three)
    assert creating not in rights(one)


def test_existing_objects_are_named() -> None:
    everybody = granted(CLUSTERS["existing network and bucket"])
    masters = str(everybody["master"].statements)
    assert "route-table/rtb-0123456789abcdef0" in masters
    assert "arn:aws:s3:::snapshots-of-ours/kubernetes/etcd/*" in masters
    assert "arn:aws:s3:::snapshots-of-ours/kubernetes/etcd/*" in str(everybody["etcd"].statements)
    assert "arn:aws:s3:::snapshots-of-ours" in str(everybody["operator"].statements)


def test_a_vpc_that_is_named_bounds_new_interfaces() -> None:
    network = {"plugin": "amazon-vpc", **{key: value for key, value in EXISTING.items() if key != "routeTable"}}
    [statement] = [
        statement
        for statement in granted({"network": network})["master"].statements
        if statement["Sid"] == "PodAddressesNewInterfacesInVpc"
    ]
    arn = "arn:aws:ec2:us-west-2:123456789012:vpc/vpc-0123456789abcdef0"
    assert statement["Condition"] == {"ArnEquals": {"ec2:Vpc": arn}}


def test_the_stack_may_be_named_unlike_the_cluster() -> None:
    masters = str(granted({}, stack="production")["master"].statements)
    assert "stack/production/*" in masters
    assert "stack/production-MasterStack-*/*" in masters


@pytest.mark.parametrize(
    ("region", "partition"), [("us-gov-west-1", "aws-us-gov"), ("cn-north-1", "aws-cn"), ("eu-central-1", "aws")]
)
def test_arns_are_those_of_the_regions_partition(region: str, partition: str) -> None:
    cluster = parse({"region": region, "network": {"subnets": [{"zone": f"{region}a"}]}})
    text = str([grant.statements for grant in grants(cluster, scope_of(cluster))])
    assert f"arn:{partition}:ec2:{region}:*:volume/*" in text
    assert partition == "aws" or "arn:aws:" not in text


def test_few_statements_are_one_policy() -> None:
    assert split_into_documents([allow("A", "ec2:DescribeInstances"), allow("B", "ec2:DescribeVpcs")]) == [
        policy_document([allow("A", "ec2:DescribeInstances"), allow("B", "ec2:DescribeVpcs")])
    ]


def test_a_policy_is_filled_before_another_is_begun() -> None:
    statements = [allow(f"S{number}", "ec2:DescribeInstances") for number in range(10)]
    limit = policy_size(policy_document(statements[:4]))
    pages = split_into_documents(statements, limit)
    assert [len(page["Statement"]) for page in pages] == [4, 4, 2]
    assert [statement["Sid"] for page in pages for statement in page["Statement"]] == [
        f"S{number}" for number in range(10)
    ]


def test_a_statement_too_large_for_a_policy_is_divided() -> None:
    zones = [f"arn:aws:route53:::hostedzone/Z{number:020}" for number in range(300)]
    pages = split_into_documents([allow("DnsRecords", "route53:ChangeResourceRecordSets", zones)])
    assert len(pages) > 1
    assert all(policy_size(page) <= LIMIT for page in pages)
    statements = [statement for page in pages for statement in page["Statement"]]
    assert [arn for statement in statements for arn in statement["Resource"]] == zones
    assert len({statement["Sid"] for statement in statements}) == len(statements)


def test_actions_are_divided_where_there_is_one_resource() -> None:
    actions = [f"ec2:Describe{'X' * 60}{number}" for number in range(150)]
    pages = split_into_documents([allow("Reads", " ".join(actions))])
    distributed_actions = [
        action for page in pages for statement in page["Statement"] for action in statement["Action"]
    ]
    assert sorted(distributed_actions) == sorted(actions)
    assert all(policy_size(page) <= LIMIT for page in pages)


@pytest.mark.parametrize(
    ("whole", "halves"),
    [
        (allow("Zones", "a:B", ["x", "y"]), [allow("ZonesA", "a:B", ["x"]), allow("ZonesB", "a:B", ["y"])]),
        (allow("Reads", "a:B a:C", ["x"]), [allow("ReadsA", "a:B", ["x"]), allow("ReadsB", "a:C", ["x"])]),
    ],
    ids=["two resources", "two actions"],
)
def test_the_smallest_statements_that_can_be_divided(whole: Any, halves: list[Any]) -> None:
    limit = max(policy_size(policy_document([half])) for half in halves)
    assert split_into_documents([whole], limit) == [policy_document([half]) for half in halves]


def test_what_cannot_be_divided_is_a_fault() -> None:
    with pytest.raises(ValueError, match="the statement Long does not fit into a policy of 100 characters"):
        split_into_documents([allow("Long", "ec2:DescribeInstances", ["arn:aws:ec2:" + "x" * 100])], 100)
