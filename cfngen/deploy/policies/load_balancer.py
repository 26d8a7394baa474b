"""What CloudFormation does besides for a cluster of several masters: the load balancer before them.

A document of its own: whoever has one master need not give these rights, and one managed policy would not hold all.
Resources and conditions: "Actions, resources, and condition keys for AWS Elastic Load Balancing V2", Service
Authorization Reference.
"""

from __future__ import annotations

from typing import Any

from cfngen.deploy.policies.policy_statements import Place, allow, tagged


def statements(place: Place) -> list[dict[str, Any]]:
    """Return the statements of CloudFormation's service role."""
    arn_prefix = f"arn:{place.partition}:elasticloadbalancing:{place.region}:{place.account}:"
    # The names of the templates: one for an internet-facing load balancer, one for an internal one.
    load_balancers = [
        f"{arn_prefix}{kind}/net/{place.cluster}-{suffix}/*"
        for kind in ("loadbalancer", "listener")
        for suffix in _NAME_SUFFIXES
    ]
    # CloudFormation names target groups.
    target_groups = f"{arn_prefix}targetgroup/*"
    service_linked_role = (
        f"arn:{place.partition}:iam::{place.account}:role/aws-service-role/elasticloadbalancing.amazonaws.com/*"
    )
    return [
        # The service looks at security groups with the rights of its caller (aws-load-balancer-controller#3917).
        allow("LookAtBalancers", "ec2:GetSecurityGroupsForVpc elasticloadbalancing:Describe*"),
        allow(
            "Balance",
            """elasticloadbalancing:AddTags elasticloadbalancing:CreateListener elasticloadbalancing:CreateLoadBalancer
            elasticloadbalancing:CreateTargetGroup elasticloadbalancing:ModifyListener
            elasticloadbalancing:ModifyListenerAttributes elasticloadbalancing:ModifyLoadBalancerAttributes
            elasticloadbalancing:SetIpAddressType elasticloadbalancing:SetSecurityGroups
            elasticloadbalancing:SetSubnets""",
            [*load_balancers, target_groups],
        ),
        allow(
            "BalanceOwn",
            """elasticloadbalancing:DeleteListener elasticloadbalancing:DeleteLoadBalancer
            elasticloadbalancing:DeleteTargetGroup elasticloadbalancing:DeregisterTargets
            elasticloadbalancing:ModifyTargetGroup elasticloadbalancing:ModifyTargetGroupAttributes
            elasticloadbalancing:RegisterTargets elasticloadbalancing:RemoveTags""",
            [*load_balancers, target_groups],
            tagged(place),
        ),
        # The first load balancer of an account makes the service's own role.
        allow("BalancersLinkedRole", "iam:CreateServiceLinkedRole", [service_linked_role]),
    ]


_NAME_SUFFIXES = ("api", "int")
