"""IAM statements of the AWS Load Balancer Controller, on a role of its own or on the masters' role.

The actions are from its documentation (aws-load-balancer-controller, docs/install/iam_policy.json), without those that
nothing calls: ec2:DescribeTags, ec2:DescribeVpcPeeringConnections, elasticloadbalancing:DescribeSSLPolicies and
iam:ListServerCertificates. Changes are limited to resources with the cluster's tag. On the masters' role, many of the
actions are among the statements of the cloud controller manager, which also creates load balancers: the functions with
a `sid` are for both.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import existing_group
from cfngen.permissions.references import (
    References,
    arn,
    if_creating_tagged,
    if_request_tagged,
    if_resource_tagged,
    resource_tags,
)
from cfngen.permissions.statements import Condition, Statement, allow

OWN_GROUPS_ACTIONS = "ec2:AuthorizeSecurityGroupIngress ec2:DeleteSecurityGroup ec2:RevokeSecurityGroupIngress"
"""What a controller of load balancers does with the security groups that it created."""


def controller_role_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements of the controller's own role: those it shares with the cloud controller manager first."""
    return [
        _read_network_statement(),
        *_change_statements(cluster, references),
        *new_load_balancer_statements(cluster, sid="LoadBalancersNew", tag_sid="LoadBalancersTagNew"),
        *new_security_group_statements(
            cluster, references, sid="LoadBalancersNewGroups", tag_sid="LoadBalancersTagNewGroups"
        ),
        service_linked_role_statement(references, sid="LoadBalancersServiceLinkedRole"),
        *controller_statements(cluster, references),
    ]


def _read_network_statement() -> Statement:
    return allow(
        sid="LoadBalancersReadNetwork",
        actions="""
            ec2:DescribeAccountAttributes ec2:DescribeAddresses ec2:DescribeAvailabilityZones ec2:DescribeInstances
            ec2:DescribeInternetGateways ec2:DescribeRouteTables ec2:DescribeSecurityGroups ec2:DescribeSubnets
            ec2:DescribeVpcs
            elasticloadbalancing:DescribeListeners elasticloadbalancing:DescribeLoadBalancerAttributes
            elasticloadbalancing:DescribeLoadBalancers elasticloadbalancing:DescribeTargetGroupAttributes
            elasticloadbalancing:DescribeTargetGroups elasticloadbalancing:DescribeTargetHealth""",
    )


def _change_statements(cluster: Cluster, references: References) -> list[Statement]:
    return [
        allow(sid="LoadBalancersOwnGroups", actions=OWN_GROUPS_ACTIONS, condition=if_resource_tagged(cluster)),
        *existing_group_statements(cluster, references, sid="LoadBalancersExistingGroup"),
        allow(
            sid="LoadBalancersChange",
            actions="""
                elasticloadbalancing:AddTags elasticloadbalancing:DeleteListener elasticloadbalancing:DeleteLoadBalancer
                elasticloadbalancing:DeleteTargetGroup elasticloadbalancing:DeregisterTargets
                elasticloadbalancing:ModifyListener elasticloadbalancing:ModifyLoadBalancerAttributes
                elasticloadbalancing:ModifyTargetGroup elasticloadbalancing:ModifyTargetGroupAttributes
                elasticloadbalancing:RegisterTargets""",
            condition=if_resource_tagged(cluster),
        ),
    ]


def controller_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements that the AWS Load Balancer Controller needs in addition to the cloud controller manager's.

    They are for rules, certificates, addresses and capacity of load balancers; the masters' role has the statements of
    the cloud controller manager already. Permissions for AWS WAF and Shield, which the controller's documentation lists
    too, are omitted, since the controller's Helm values disable both integrations.
    """
    return [
        *_read_statements(references),
        *_rule_statements(cluster, references),
        # The controller changes the tags of its security groups, but must not change the cluster's tag, by which this
        # condition recognizes the groups.
        allow(
            sid="LoadBalancersTagOwnGroups",
            actions="ec2:CreateTags ec2:DeleteTags",
            resources=[arn(references, "ec2", "security-group/*")],
            condition={**if_resource_tagged(cluster), "Null": {"aws:RequestTag/KubernetesCluster": "true"}},
        ),
    ]


def _read_statements(references: References) -> list[Statement]:
    return [
        allow(
            sid="LoadBalancersRead",
            actions="""
                acm:ListCertificates ec2:DescribeCoipPools ec2:DescribeIpamPools ec2:DescribeNetworkInterfaces
                ec2:GetCoipPoolUsage
                elasticloadbalancing:DescribeCapacityReservation elasticloadbalancing:DescribeListenerAttributes
                elasticloadbalancing:DescribeListenerCertificates elasticloadbalancing:DescribeRules
                elasticloadbalancing:DescribeTags elasticloadbalancing:DescribeTrustStores""",
        ),
        # An ingress can name certificates of ACM or IAM, and a Cognito user pool for logins.
        allow(
            sid="LoadBalancersNamed",
            actions="acm:DescribeCertificate cognito-idp:DescribeUserPoolClient iam:GetServerCertificate",
            resources=[
                arn(references, "acm", "certificate/*"),
                arn(references, "cognito-idp", "userpool/*"),
                arn(references, "iam", "server-certificate/*", region=""),
            ],
        ),
    ]


def _rule_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the statements for listeners' rules, and for the settings of load balancers that the controller owns."""
    return [
        allow(
            sid="LoadBalancersNewRules", actions="elasticloadbalancing:CreateRule", condition=_if_added_to_own(cluster)
        ),
        allow(
            sid="LoadBalancersTagNewRules",
            actions="elasticloadbalancing:AddTags",
            condition=if_creating_tagged(cluster, "elasticloadbalancing", "CreateRule"),
        ),
        allow(
            sid="LoadBalancersOwn",
            actions="""
                elasticloadbalancing:AddListenerCertificates elasticloadbalancing:DeleteRule
                elasticloadbalancing:ModifyCapacityReservation elasticloadbalancing:ModifyIpPools
                elasticloadbalancing:ModifyListenerAttributes elasticloadbalancing:ModifyRule
                elasticloadbalancing:RemoveListenerCertificates elasticloadbalancing:RemoveTags
                elasticloadbalancing:SetIpAddressType
                elasticloadbalancing:SetSecurityGroups elasticloadbalancing:SetSubnets""",
            condition=if_resource_tagged(cluster),
        ),
        # This is the only action on rules whose requests contain no tags ("Actions, resources, and condition keys for
        # AWS Elastic Load Balancing V2", Service Authorization Reference).
        allow(
            sid="LoadBalancersOrderRules",
            actions="elasticloadbalancing:SetRulePriorities",
            resources=[arn(references, "elasticloadbalancing", f"listener-rule/{kind}/*") for kind in ("app", "net")],
        ),
    ]


def _if_added_to_own(cluster: Cluster) -> Condition:
    """Return the IAM condition that a request sets the cluster's tag, and adds nothing to another's load balancer.

    A listener is added to a load balancer and a rule to a listener. The reference does not say whether such requests
    always carry the tags of these ("Actions, resources, and condition keys for AWS Elastic Load Balancing V2").
    """
    return {**if_request_tagged(cluster), "StringEqualsIfExists": resource_tags(cluster)}


def new_load_balancer_statements(cluster: Cluster, *, sid: str, tag_sid: str) -> list[Statement]:
    """Return the statements to create load balancers with the cluster's tag.

    Creating a resource with tags requires permission to add tags to a resource that has no tags yet ("Grant permission
    to tag resources during creation", Elastic Load Balancing User Guide).
    """
    return [
        allow(
            sid=tag_sid,
            actions="elasticloadbalancing:AddTags",
            condition=if_creating_tagged(
                cluster, "elasticloadbalancing", "CreateListener", "CreateLoadBalancer", "CreateTargetGroup"
            ),
        ),
        allow(
            sid=sid,
            actions="""
                elasticloadbalancing:CreateListener elasticloadbalancing:CreateLoadBalancer
                elasticloadbalancing:CreateTargetGroup""",
            condition=_if_added_to_own(cluster),
        ),
    ]


def new_security_group_statements(
    cluster: Cluster, references: References, *, sid: str, tag_sid: str
) -> list[Statement]:
    """Return the statements to create security groups with the cluster's tag in the VPC, and to list its groups.

    A VPC that cfngen creates has the cluster's tag; its id would make the roles wait for the network. An existing VPC
    need not have the tag.
    """
    existing_vpc = cluster.network.vpc.id
    vpc_arn = (
        arn(references, "ec2", "vpc/${Vpc}", Vpc=references.vpc_id) if existing_vpc else arn(references, "ec2", "vpc/*")
    )
    groups = [arn(references, "ec2", "security-group/*")]
    return [
        allow(sid=sid, actions="ec2:CreateSecurityGroup", resources=groups, condition=if_request_tagged(cluster)),
        # EC2 requires permission for the VPC too; the tags of the request are not for the VPC.
        # Elastic Load Balancing lists the groups with the caller's permissions (aws-load-balancer-controller#3917).
        allow(
            sid=f"{sid}InVpc",
            actions="ec2:CreateSecurityGroup ec2:GetSecurityGroupsForVpc",
            resources=[vpc_arn],
            condition=None if existing_vpc else if_resource_tagged(cluster),
        ),
        allow(
            sid=tag_sid,
            actions="ec2:CreateTags",
            resources=groups,
            condition=if_creating_tagged(cluster, "ec2", "CreateSecurityGroup"),
        ),
    ]


def service_linked_role_statement(references: References, *, sid: str) -> Statement:
    """Return the permission to create the service-linked role of Elastic Load Balancing, for an account without it."""
    service = "elasticloadbalancing.amazonaws.com"
    role = f"role/aws-service-role/{service}/AWSServiceRoleForElasticLoadBalancing"
    return allow(
        sid=sid,
        actions="iam:CreateServiceLinkedRole",
        resources=[arn(references, "iam", role, region="")],
        condition={"StringEquals": {"iam:AWSServiceName": service}},
    )


def existing_group_statements(
    cluster: Cluster, references: References, *, sid: str = "CloudControllerExistingGroup"
) -> list[Statement]:
    """Return the statement for a controller of load balancers; none if cfngen creates the nodes' security group.

    The controller may change the group only while the user lets it: by the tag `kubernetes.io/cluster/<name>`.
    An existing group need not have the tag `KubernetesCluster`, by which other statements recognize the cluster's.
    """
    if not existing_group(cluster, "Node"):
        return []
    group = arn(references, "ec2", "security-group/${NodeGroup}", NodeGroup=references.node_security_group_id)
    return [
        allow(
            sid=sid,
            actions="ec2:AuthorizeSecurityGroupIngress ec2:RevokeSecurityGroupIngress",
            resources=[group],
            condition={"Null": {f"aws:ResourceTag/kubernetes.io/cluster/{cluster.name}": "false"}},
        )
    ]
