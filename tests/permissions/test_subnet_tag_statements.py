"""What an operator may do with tags of existing subnets: nothing by default, and then with these tags only."""

from __future__ import annotations

from typing import Any

from cfngen.cluster.load import parse
from cfngen.permissions.grants import scope_of
from cfngen.permissions.network import subnet_tag_statements

SUBNET, PUBLIC = "subnet-0123456789abcdef0", "subnet-0123456789abcdef1"


def statements(**network: Any) -> dict[str, dict[str, Any]]:
    """Return the statements for a network with two existing subnets, by their names."""
    subnet = {"zone": "us-west-2a", "id": SUBNET, "cidr": "10.20.0.0/20", "public": {"id": PUBLIC}}
    vpc = {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"}
    base = {"topology": "private", "plugin": "cilium", "vpc": vpc, "subnets": [subnet]}
    cluster = parse({"name": "one", "network": {**base, **network}})
    return {statement["Sid"]: dict(statement) for statement in subnet_tag_statements(cluster, scope_of(cluster))}


def test_subnets_keep_their_tags_by_default() -> None:
    assert statements() == {}


def test_only_the_subnets_of_the_file_get_only_tags_for_load_balancers() -> None:
    found = statements(tagExisting=True)["TagSubnets"]
    assert found["Resource"] == [f"arn:aws:ec2:us-west-2:*:subnet/{subnet}" for subnet in (SUBNET, PUBLIC)]
    assert found["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"] == [
        "kubernetes.io/role/elb",
        "kubernetes.io/role/internal-elb",
        "kubernetes.io/cluster/one",
        "cfngen:added-tags/one",
    ]


def test_only_the_clusters_own_tags_may_be_removed_and_never_all_at_once() -> None:
    found = statements(tagExisting=True)["UntagSubnets"]
    assert found["Action"] == ["ec2:DeleteTags"]
    own_keys = ["kubernetes.io/cluster/one", "cfngen:added-tags/one"]
    # DeleteTags without keys removes every tag, and `ForAllValues` is true for it.
    assert found["Condition"] == {
        "ForAllValues:StringEquals": {"aws:TagKeys": own_keys},
        "Null": {"aws:TagKeys": "false"},
    }
