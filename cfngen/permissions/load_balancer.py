"""Additional statements of CloudFormation's service role for a cluster whose API has a load balancer.

Clusters with several masters have one, and private clusters with a public API. The statements form a separate policy,
since other clusters do not need them, and since all statements of the service role together exceed the size of one
managed policy.
Resources and conditions: "Actions, resources, and condition keys for AWS Elastic Load Balancing V2", Service
Authorization Reference.
"""

from __future__ import annotations

from cfngen.permissions.scope import Scope, if_resource_has_tag
from cfngen.permissions.statements import Statement, allow


def load_balancer_statements(scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role for the API's load balancer."""
    arn_prefix = f"arn:{scope.partition}:elasticloadbalancing:{scope.region}:{scope.account}:"
    # The templates name an internet-facing load balancer `<cluster>-api` and an internal one `<cluster>-int`. The ARNs
    # of listeners contain the name of their load balancer.
    load_balancer_and_listener_arns = [
        f"{arn_prefix}{arn_type}/net/{scope.cluster}-{suffix}/*"
        for arn_type in ("loadbalancer", "listener")
        for suffix in ("api", "int")
    ]
    # CloudFormation generates the names of target groups, so the pattern matches all of them.
    any_target_group_arn = f"{arn_prefix}targetgroup/*"
    service_linked_role = (
        f"arn:{scope.partition}:iam::{scope.account}:role/aws-service-role/elasticloadbalancing.amazonaws.com/*"
    )
    return [
        # The service describes security groups with the permissions of the caller (aws-load-balancer-controller#3917).
        allow(sid="LookAtBalancers", actions="ec2:GetSecurityGroupsForVpc elasticloadbalancing:Describe*"),
        allow(
            sid="Balance",
            actions="""
                elasticloadbalancing:AddTags elasticloadbalancing:CreateListener elasticloadbalancing:CreateLoadBalancer
                elasticloadbalancing:CreateTargetGroup elasticloadbalancing:ModifyListener
                elasticloadbalancing:ModifyListenerAttributes elasticloadbalancing:ModifyLoadBalancerAttributes
                elasticloadbalancing:SetIpAddressType elasticloadbalancing:SetSecurityGroups
                elasticloadbalancing:SetSubnets""",
            resources=[*load_balancer_and_listener_arns, any_target_group_arn],
        ),
        allow(
            sid="BalanceOwn",
            actions="""
                elasticloadbalancing:DeleteListener elasticloadbalancing:DeleteLoadBalancer
                elasticloadbalancing:DeleteTargetGroup elasticloadbalancing:DeregisterTargets
                elasticloadbalancing:ModifyTargetGroup elasticloadbalancing:ModifyTargetGroupAttributes
                elasticloadbalancing:RegisterTargets elasticloadbalancing:RemoveTags""",
            resources=[*load_balancer_and_listener_arns, any_target_group_arn],
            condition=if_resource_has_tag(scope),
        ),
        # The first load balancer of an account creates the service-linked role.
        allow(sid="BalancersLinkedRole", actions="iam:CreateServiceLinkedRole", resources=[service_linked_role]),
    ]
