"""Statements that the cloud controller manager needs: on a role of its own, or on the masters' role.

The actions are from its documentation (cloud-provider-aws, docs/prerequisites.md), without those that no release since
v1.31.0 calls: autoscaling:DescribeAutoScalingGroups, autoscaling:DescribeTags and ec2:DescribeRegions.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.permissions.load_balancer_controller import (
    OWN_GROUPS_ACTIONS,
    existing_group_statements,
    new_load_balancer_statements,
    new_security_group_statements,
    service_linked_role_statement,
)
from cfngen.permissions.pod_network import pod_route_statements
from cfngen.permissions.references import References, if_resource_tagged
from cfngen.permissions.statements import Statement, allow


def cloud_controller_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the cloud controller manager's statements: for load balancers, and for pods' routes if it writes them."""
    return [
        _read_statement(),
        _change_statement(cluster),
        *new_load_balancer_statements(
            cluster, sid="CloudControllerNewLoadBalancers", tag_sid="CloudControllerTagNewLoadBalancers"
        ),
        *new_security_group_statements(
            cluster,
            references,
            sid="CloudControllerNewSecurityGroups",
            tag_sid="CloudControllerTagNewSecurityGroups",
        ),
        service_linked_role_statement(references, sid="CloudControllerServiceLinkedRole"),
        *existing_group_statements(cluster, references),
        *pod_route_statements(cluster, references),
    ]


def _read_statement() -> Statement:
    """Return the statement for reading instances, and what services of the type LoadBalancer need.

    Elastic Load Balancing makes three of the calls itself, with the permissions of the caller that creates a load
    balancer, while the account has no service-linked role: it describes account attributes, addresses and internet
    gateways (terraform-aws-eks#900, #1226).
    """
    return allow(
        sid="CloudControllerRead",
        actions="""
            ec2:DescribeAccountAttributes ec2:DescribeAddresses
            ec2:DescribeAvailabilityZones ec2:DescribeInstances ec2:DescribeInstanceTopology
            ec2:DescribeInternetGateways
            ec2:DescribeRouteTables ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeVpcs
            elasticloadbalancing:DescribeListeners elasticloadbalancing:DescribeLoadBalancerAttributes
            elasticloadbalancing:DescribeLoadBalancerPolicies elasticloadbalancing:DescribeLoadBalancers
            elasticloadbalancing:DescribeTargetGroupAttributes elasticloadbalancing:DescribeTargetGroups
            elasticloadbalancing:DescribeTargetHealth""",
    )


def _change_statement(cluster: Cluster) -> Statement:
    """Return the statement for load balancers and security groups, in one for the size of the masters' policy."""
    return allow(
        sid="CloudControllerOwnLoadBalancers",
        actions=f"""
                {OWN_GROUPS_ACTIONS}
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
    )
