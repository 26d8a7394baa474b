"""Additional statements of CloudFormation's service role for a private cluster: NAT gateways and VPC endpoints.

They form a separate policy, since public clusters do not need them, and since all statements of the service role
together exceed the size of one managed policy. Public subnets, Elastic IPs and route tables need no other permissions
than those of a public cluster.

Calls: permissions of the handlers of AWS::EC2::NatGateway and AWS::EC2::VPCEndpoint in the CloudFormation registry.
Resources and conditions: "Actions, resources, and condition keys for Amazon EC2", Service Authorization Reference.
"""

from __future__ import annotations

from cfngen.cluster.endpoints import interface_endpoints
from cfngen.cluster.model import Cluster
from cfngen.cluster.topology import created_subnets, is_private
from cfngen.permissions.scope import Scope, if_resource_has_tag
from cfngen.permissions.statements import Statement, allow


def needs_private_network_statements(cluster: Cluster) -> bool:
    """Return whether CloudFormation may create NAT gateways or VPC endpoints for a cluster.

    This does not depend on `network.nat`: an update that removes the NAT gateways still has to delete them.
    """
    return is_private(cluster) and bool(created_subnets(cluster) or interface_endpoints(cluster))


def private_network_statements(scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role for NAT gateways and VPC endpoints.

    One call needs permission for each resource that it names: for the new resource, which has no tags yet; for the VPC
    and the subnets, which may exist already and then do not have the cluster's tag; and for resources that the
    templates always create, which have it.
    """
    return [*_nat_gateway_statements(scope), *_endpoint_statements(scope)]


def _nat_gateway_statements(scope: Scope) -> list[Statement]:
    return [
        allow(
            sid="NewNatGateways",
            actions="ec2:CreateNatGateway",
            resources=scope.ec2_arns("natgateway/*", "subnet/*"),
        ),
        allow(
            sid="NatGatewaysWithOwnAddresses",
            actions="ec2:CreateNatGateway",
            resources=scope.ec2_arns("elastic-ip/*"),
            condition=if_resource_has_tag(scope),
        ),
        allow(
            sid="OwnNatGateways",
            actions="ec2:DeleteNatGateway",
            resources=scope.ec2_arns("natgateway/*"),
            condition=if_resource_has_tag(scope),
        ),
    ]


def _endpoint_statements(scope: Scope) -> list[Statement]:
    return [
        allow(
            sid="NewEndpoints",
            actions="ec2:CreateVpcEndpoint",
            resources=scope.ec2_arns("vpc-endpoint/*", "vpc/*", "subnet/*"),
        ),
        allow(
            sid="EndpointsOfOwnNetwork",
            actions="ec2:CreateVpcEndpoint ec2:ModifyVpcEndpoint",
            resources=scope.ec2_arns("route-table/*", "security-group/*"),
            condition=if_resource_has_tag(scope),
        ),
        allow(sid="SubnetsOfEndpoints", actions="ec2:ModifyVpcEndpoint", resources=scope.ec2_arns("subnet/*")),
        allow(
            sid="OwnEndpoints",
            actions="ec2:DeleteVpcEndpoints ec2:ModifyVpcEndpoint",
            resources=scope.ec2_arns("vpc-endpoint/*"),
            condition=if_resource_has_tag(scope),
        ),
        # The reference names this as a dependent action of ec2:CreateVpcEndpoint: the names of services resolve to an
        # endpoint by a hosted zone of AWS, which EC2 associates with the VPC. Its id is not known.
        allow(
            sid="EndpointNames",
            actions="route53:AssociateVPCWithHostedZone",
            resources=[f"arn:{scope.partition}:route53:::hostedzone/*"],
        ),
    ]
