"""Statements that the cloud controller manager needs: on a role of its own, or on the masters' role.

The actions are from its documentation (cloud-provider-aws, docs/prerequisites.md).
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.permissions.load_balancer_controller import (
    existing_group_statements,
    new_load_balancer_statements,
    new_security_group_statements,
    own_groups_statement,
    service_linked_role_statement,
)
from cfngen.permissions.pod_network import pod_route_statements
from cfngen.permissions.references import References, arn, if_resource_tagged
from cfngen.permissions.statements import Statement, allow


def cloud_controller_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the cloud controller manager's statements: for load balancers, and for pods' routes if it writes them."""
    return [
        _read_statement(),
        *_change_statements(cluster),
        *new_load_balancer_statements(
            cluster, sid="CloudControllerNewLoadBalancers", tag_sid="CloudControllerTagNewLoadBalancers"
        ),
        *new_security_group_statements(
            cluster,
            references,
            sid="CloudControllerNewSecurityGroups",
            tag_sid="CloudControllerTagNewSecurityGroups",
            vpc_arn=arn(references, "ec2", "vpc/*"),
        ),
        service_linked_role_statement(references, sid="CloudControllerServiceLinkedRole"),
        *existing_group_statements(cluster, references),
        *pod_route_statements(cluster, references),
    ]


def _read_statement() -> Statement:
    """Return the statement for reading instances, and what services of the type LoadBalancer need.

    Elastic Load Balancing makes four of the read calls itself, with the permissions of the caller that creates a load
    balancer. It describes account attributes, addresses and internet gateways while the account has no service-linked
    role (terraform-aws-eks#900, #1226), and gets security groups whenever the request names some
    (aws-load-balancer-controller#3917).
    """
    return allow(
        sid="CloudControllerRead",
        actions="""
            autoscaling:DescribeAutoScalingGroups autoscaling:DescribeTags
            ec2:DescribeAccountAttributes ec2:DescribeAddresses
            ec2:DescribeAvailabilityZones ec2:DescribeInstances ec2:DescribeInstanceTopology
            ec2:DescribeInternetGateways ec2:DescribeRegions
            ec2:DescribeRouteTables ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeVpcs
            ec2:GetSecurityGroupsForVpc
            elasticloadbalancing:DescribeListeners elasticloadbalancing:DescribeLoadBalancerAttributes
            elasticloadbalancing:DescribeLoadBalancerPolicies elasticloadbalancing:DescribeLoadBalancers
            elasticloadbalancing:DescribeTargetGroupAttributes elasticloadbalancing:DescribeTargetGroups
            elasticloadbalancing:DescribeTargetHealth""",
    )


def _change_statements(cluster: Cluster) -> list[Statement]:
    return [
        own_groups_statement(cluster, sid="CloudControllerOwnGroups"),
        allow(
            sid="CloudControllerOwnLoadBalancers",
            actions="""
                elasticloadbalancing:AddTags elasticloadbalancing:ApplySecurityGroupsToLoadBalancer
                elasticloadbalancing:AttachLoadBalancerToSubnets elasticloadbalancing:ConfigureHealthCheck
                elasticloadbalancing:CreateLoadBalancerListeners elasticloadbalancing:CreateLoadBalancerPolicy
                elasticloadbalancing:DeleteListener elasticloadbalancing:DeleteLoadBalancer
                elasticloadbalancing:DeleteLoadBalancerListeners elasticloadbalancing:DeleteTargetGroup
                elasticloadbalancing:DeregisterInstancesFromLoadBalancer elasticloadbalancing:DeregisterTargets
                elasticloadbalancing:DetachLoadBalancerFromSubnets elasticloadbalancing:ModifyListener
                elasticloadbalancing:ModifyLoadBalancerAttributes elasticloadbalancing:ModifyTargetGroup
                elasticloadbalancing:ModifyTargetGroupAttributes elasticloadbalancing:RegisterInstancesWithLoadBalancer
                elasticloadbalancing:RegisterTargets elasticloadbalancing:SetLoadBalancerPoliciesForBackendServer
                elasticloadbalancing:SetLoadBalancerPoliciesOfListener elasticloadbalancing:SetSecurityGroups""",
            condition=if_resource_tagged(cluster),
        ),
    ]
