"""What CloudFormation may do for a load balancer, and that nobody with one master has to allow it."""

from __future__ import annotations

import fnmatch

import pytest
from documented_policies import execution_policy, roles_and_secrets_policy, several_masters_policy
from test_documented_policies import NARROW, actions, allows, on_what, schema

from cfngen.cluster.load import parse
from cfngen.templates import generate

ZONES = [{"zone": f"us-west-2{letter}"} for letter in "abc"]
# Of the registry's permissions, what the templates never make CloudFormation do.
NOT_NEEDED = {
    "cognito-idp:DescribeUserPoolClient": "no listener authenticates",
    "ec2:DescribeIpamPools": "a read, allowed by ec2:Describe*",
    "elasticloadbalancing:ModifyCapacityReservation": "no capacity is reserved",
    "elasticloadbalancing:ModifyIpPools": "addresses are Amazon's",
}


def kinds(**configuration):
    documents = generate(parse(configuration))
    return {resource["Type"] for document in documents for resource in document.body["Resources"].values()}


def balancing():
    three = kinds(controlPlane={"count": 3}, network={"subnets": ZONES})
    return sorted(resource_type for resource_type in three if resource_type.startswith("AWS::ElasticLoadBalancingV2::"))


@pytest.mark.parametrize("kind", balancing())
def test_it_suffices_for_the_handlers(kind):
    both = [execution_policy(), roles_and_secrets_policy(), several_masters_policy()]
    lacking = {
        action
        for handler in schema(kind)["handlers"].values()
        for action in handler["permissions"]
        if action not in NOT_NEEDED and not any(allows(policy, action) for policy in both)
    }
    assert lacking == set()


def test_the_service_may_look_at_security_groups_for_its_caller():
    # "ELB API changes", aws-load-balancer-controller#3917 and #3921; the registry's permissions do not have it.
    assert allows(several_masters_policy(), "ec2:GetSecurityGroupsForVpc")


def test_one_master_needs_none_of_it():
    assert not [kind for kind in kinds() if "ElasticLoadBalancing" in kind]
    assert not [action for action in actions(execution_policy()) if action.startswith("elasticloadbalancing:")]


@pytest.mark.parametrize("name", ["kubernetes-api", "kubernetes-int"])
def test_only_the_clusters_own_load_balancer_is_touched(name):
    policy = several_masters_policy(NARROW)
    arn = f"arn:aws:elasticloadbalancing:us-west-2:123456789012:loadbalancer/net/{name}/0123456789abcdef"
    assert on_what(policy, "elasticloadbalancing:CreateLoadBalancer", arn)
    assert not on_what(policy, "elasticloadbalancing:CreateLoadBalancer", arn.replace("kubernetes-", "others-"))
    listener = arn.replace("loadbalancer/net", "listener/net") + "/fedcba9876543210"
    assert on_what(policy, "elasticloadbalancing:ModifyListener", listener)


def test_what_is_deleted_bears_the_clusters_tag():
    deleting = [
        statement
        for statement in several_masters_policy(NARROW)["Statement"]
        if any(fnmatch.fnmatch(action, "*:De[lr]e*") for action in statement["Action"])
    ]
    assert len(deleting) == 1
    assert deleting[0]["Condition"] == {"StringLike": {"aws:ResourceTag/KubernetesCluster": "kubernetes"}}
