"""What CloudFormation may do for NAT gateways and VPC endpoints, and that a public cluster needs none of it."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from documented_policies import (
    execution_policy,
    operator_policy,
    private_cluster_policy,
    roles_and_secrets_policy,
    several_masters_policy,
)
from test_documented_policies import EXECUTION, NARROW, actions, allows, schema

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.permissions.grants import grants, scope_of
from cfngen.permissions.statements import MANAGED_POLICY_LIMIT
from cfngen.sandbox.services.authorization import decision
from cfngen.templates import generate

CASES = Path(__file__).parents[1] / "golden" / "cases"
PRIVATE = sorted(case.parent.name for case in CASES.glob("private-*/cluster.yaml"))
NEW = ("AWS::EC2::NatGateway", "AWS::EC2::VPCEndpoint")
# Of the registry's permissions, what the templates never make CloudFormation do.
NOT_NEEDED = {
    "ec2:AssociateNatGatewayAddress": "a NAT gateway has one address, which cannot be exchanged",
    "ec2:DisassociateNatGatewayAddress": "likewise",
    "ec2:AssignPrivateNatGatewayAddress": "likewise",
    "ec2:UnassignPrivateNatGatewayAddress": "likewise",
    "vpc-lattice:CreateServiceNetworkVpcEndpointAssociation": "no endpoint is of a service network",
    "vpc-lattice:DescribeServiceNetworkVpcEndpointAssociation": "likewise",
    "vpce:AllowMultiRegion": "services are of the cluster's region",
}


def case(name: str) -> Cluster:
    """The cluster of a golden case; one of them is a public cluster, whose API alone is private."""
    return parse(yaml.safe_load((CASES / name / "cluster.yaml").read_text()))


def kinds(cluster: Cluster) -> set[str]:
    return {resource["Type"] for document in generate(cluster) for resource in document.body["Resources"].values()}


def execution(cluster: Cluster) -> list[dict[str, Any]]:
    [grant] = [grant for grant in grants(cluster, scope_of(cluster)) if grant.name == "execution"]
    return [dict(policy.document) for policy in grant.policies]


@pytest.mark.parametrize("name", PRIVATE)
def test_cloudformation_may_do_what_its_handlers_do(name: str) -> None:
    cluster = case(name)
    policies = execution(cluster)
    lacking = {
        f"{kind}: {action}"
        for kind in kinds(cluster)
        if kind.startswith("AWS::EC2::") and kind in {*NEW, "AWS::EC2::EIP", "AWS::EC2::Route", "AWS::EC2::RouteTable"}
        for handler in schema(kind)["handlers"].values()
        for action in handler["permissions"]
        if action not in {*NOT_NEEDED, "ec2:AcceptAddressTransfer"}
        and not any(allows(policy, action) for policy in policies)
    }
    assert lacking == set()


@pytest.mark.parametrize("kind", NEW)
def test_one_policy_more_suffices_for_the_new_resources(kind: str) -> None:
    both = [EXECUTION, private_cluster_policy()]
    handlers = schema(kind)["handlers"].values()
    needed = {action for handler in handlers for action in handler["permissions"]} - NOT_NEEDED.keys()
    assert {action for action in needed if not any(allows(policy, action) for policy in both)} == set()
    assert [action for action in NOT_NEEDED if allows(private_cluster_policy(), action)] == []


def test_a_public_cluster_keeps_its_policy() -> None:
    own = parse({})
    scope = scope_of(own)
    [grant] = [grant for grant in grants(own, scope) if grant.name == "execution"]
    granted = [statement for policy in grant.policies for statement in policy.document["Statement"]]  # type: ignore[attr-defined]
    documented = [execution_policy(scope)["Statement"], roles_and_secrets_policy(scope)["Statement"]]
    assert granted == [statement for statements in documented for statement in statements]
    assert not [action for action in actions(EXECUTION) if "NatGateway" in action or "VpcEndpoint" in action]


def test_instances_of_a_private_cluster_may_do_what_those_of_a_public_one_may() -> None:
    """With VPC routes too: the pods' routes are in one route table."""
    public, private = (
        {
            grant.name: grant.statements
            for grant in grants(cluster, scope_of(cluster))
            if grant.name == "master" or grant.name.startswith("nodes-")
        }
        for cluster in (parse({}), parse({"network": {"topology": "private"}}))
    )
    assert private == public
    assert len(private) > 1


def test_who_needs_it() -> None:
    with_it = {
        name for name in PRIVATE if any(allows(policy, "ec2:CreateNatGateway") for policy in execution(case(name)))
    }
    assert with_it == {name for name in PRIVATE if case(name).network.topology == "private"}
    assert with_it


def test_nothing_is_added_where_the_whole_network_exists() -> None:
    existing = {
        "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
        "topology": "private",
        "plugin": "cilium",
        "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/20"}],
        "serviceCidr": "10.250.0.0/16",
    }
    cluster = parse({"network": existing, "api": {"public": False, "allowedCidrs": ["10.20.0.0/16"]}})
    assert not kinds(cluster) & set(NEW)
    assert not [policy for policy in execution(cluster) if allows(policy, "ec2:CreateNatGateway")]


@pytest.mark.parametrize("name", PRIVATE)
def test_each_policy_fits(name: str) -> None:
    assert all(
        policy.characters <= MANAGED_POLICY_LIMIT
        for grant in grants(case(name), scope_of(case(name)))
        for policy in grant.policies
    )


def test_what_is_changed_or_deleted_bears_the_clusters_tag() -> None:
    for statement in private_cluster_policy(NARROW)["Statement"]:
        resources = statement["Resource"]
        named = [resources] if isinstance(resources, str) else resources
        changed = [
            action
            for action in statement["Action"]  # type: ignore[attr-defined]
            if fnmatch.fnmatch(action, "ec2:[DM]e*") or fnmatch.fnmatch(action, "ec2:Modify*")
        ]
        existing = all(str(arn).endswith((":security-group/*", ":subnet/*", ":vpc/*")) for arn in named)  # type: ignore[attr-defined]
        if changed and not existing:
            assert statement["Condition"] == {"StringLike": {"aws:ResourceTag/KubernetesCluster": "kubernetes"}}


def test_a_nat_gateway_takes_no_address_of_somebody_else() -> None:
    address = "arn:aws:ec2:us-west-2:123456789012:elastic-ip/eipalloc-1"
    decisions = [
        decision([private_cluster_policy(NARROW)], "ec2:CreateNatGateway", address, context)
        for context in ({}, {"aws:resourcetag/kubernetescluster": ["kubernetes"]})
    ]
    assert decisions == ["implicitDeny", "allowed"]


@pytest.mark.parametrize("kind", NEW)
def test_who_may_look_may_ask_for_drift(kind: str) -> None:
    """CloudFormation reads every resource with the rights of the one who asks."""
    policy = operator_policy(only_command_groups=["read"])
    needed = set(schema(kind)["handlers"]["read"]["permissions"]) - NOT_NEEDED.keys()
    assert {action for action in needed if not allows(policy, action)} == set()


def test_the_operator_makes_and_deletes_none_of_it() -> None:
    for action in ("CreateNatGateway", "DeleteNatGateway", "CreateVpcEndpoint", "DeleteVpcEndpoints", "ReleaseAddress"):
        assert not allows(operator_policy(), f"ec2:{action}")


def test_a_single_private_master_with_a_public_api_needs_the_load_balancers_policy_too() -> None:
    cluster = case("private-single-nat")
    needed = {
        action
        for action in actions(several_masters_policy())
        if not any(allows(policy, action) for policy in execution(cluster))
    }
    assert needed == set()
