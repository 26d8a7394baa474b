"""VPC endpoints."""

from __future__ import annotations

from typing import Any

import boto3
from ec2_parts import (
    CONDITION,
    OTHER_VPC,
    VPC,
    code,
    ec2,
    operation,
    ref,
    resource,
    security_group,
    seen,
    subnet,
    table,
)
from refusal import Creation, Refusal, Resources, ServiceCall, Update
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation
from cfngen.sandbox.services import quotas

NAMED_VPC = resource("VPC", CidrBlock="10.0.0.0/16", EnableDnsSupport=True, EnableDnsHostnames=True)
SERVICE = f"com.amazonaws.{REGION}.ec2"
S3 = f"com.amazonaws.{REGION}.s3"


def interface_endpoint(*subnets: str, service: str = SERVICE, **properties: Any) -> dict[str, Any]:
    """An interface endpoint of a template, with private DNS unless told otherwise."""
    return resource("VPCEndpoint", **{
        "VpcId": ref("Vpc"), "VpcEndpointType": "Interface", "ServiceName": service, "PrivateDnsEnabled": True,
        "SubnetIds": [ref(item) for item in subnets or ("Subnet",)], **properties,
    })  # fmt: skip


def gateway_endpoint(*tables: str, **properties: Any) -> dict[str, Any]:
    """A gateway endpoint of a template for S3."""
    return resource("VPCEndpoint", **{
        "VpcId": ref("Vpc"), "VpcEndpointType": "Gateway", "ServiceName": S3,
        "RouteTableIds": [ref(item) for item in tables], **properties,
    })  # fmt: skip


def _after(needed: str, item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "DependsOn": needed}


def _named(**others: Any) -> Creation:
    """A VPC with both DNS attributes, a subnet and other resources, of which the last one fails."""
    resources: Resources = {"Vpc": NAMED_VPC, "Subnet": subnet(), **others}
    return Creation(lambda: resources, fails=list(resources)[-1])


def _with_endpoint() -> Resources:
    return {"Vpc": NAMED_VPC, "Subnet": subnet(), "Endpoint": interface_endpoint()}


def _with_another_subnet_of_the_zone(resources: Resources) -> Resources:
    return {**resources, "Other": subnet("10.0.1.0/24"), "Endpoint": interface_endpoint("Subnet", "Other")}


def _made() -> dict[str, str]:
    """Ids of an interface endpoint in an account, and of what it is in."""
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    place = ec2().create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    group = ec2().create_security_group(GroupName="endpoints", Description="group", VpcId=vpc)["GroupId"]
    answer = ec2().create_vpc_endpoint(
        VpcId=vpc, VpcEndpointType="Interface", ServiceName=SERVICE, SubnetIds=[place], SecurityGroupIds=[group],
        PrivateDnsEnabled=False,
    )["VpcEndpoint"]  # fmt: skip
    [interface] = answer["NetworkInterfaceIds"]
    return {"vpc": vpc, "subnet": place, "group": group, "interface": interface}


def _delete_subnet(_: CloudFormation) -> None:
    ec2().delete_subnet(SubnetId=_made()["subnet"])


def _delete_group(_: CloudFormation) -> None:
    ec2().delete_security_group(GroupId=_made()["group"])


def _delete_interface(_: CloudFormation) -> None:
    ec2().delete_network_interface(NetworkInterfaceId=_made()["interface"])


def _delete_vpc(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    ec2().create_vpc_endpoint(VpcId=vpc, VpcEndpointType="Gateway", ServiceName=S3)
    ec2().delete_vpc(VpcId=vpc)


def _one_more_interface_endpoint(_: CloudFormation) -> None:
    quota = quotas.Quota(*quotas.INTERFACE_ENDPOINTS, "Interface VPC endpoints per VPC", default=50, applied=1)
    vpc = _made()["vpc"]
    with quotas.override_quotas({quotas.INTERFACE_ENDPOINTS: quota}):
        ec2().create_vpc_endpoint(VpcId=vpc, VpcEndpointType="Interface", ServiceName=SERVICE, PrivateDnsEnabled=False)


def _one_more_gateway_endpoint(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    for _ in range(21):
        ec2().create_vpc_endpoint(VpcId=vpc, VpcEndpointType="Gateway", ServiceName=S3)


def _endpoint_of_own_service(zone: str, **properties: Any) -> None:
    """An endpoint in a zone for a service of the account, which is in zone a and has no private DNS name."""
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = {
        letter: ec2().create_subnet(
            VpcId=vpc, CidrBlock=f"10.0.{third}.0/24", AvailabilityZone=f"{REGION}{letter}"
        )["Subnet"]["SubnetId"]
        for third, letter in enumerate("ab")
    }  # fmt: skip
    balancer = boto3.client("elbv2", REGION).create_load_balancer(
        Name="own", Type="network", Scheme="internal", Subnets=[subnets["a"]]
    )["LoadBalancers"][0]["LoadBalancerArn"]
    made = ec2().create_vpc_endpoint_service_configuration(NetworkLoadBalancerArns=[balancer])
    ec2().create_vpc_endpoint(
        VpcId=vpc, VpcEndpointType="Interface", ServiceName=made["ServiceConfiguration"]["ServiceName"],
        SubnetIds=[subnets[zone]], **properties,
    )  # fmt: skip


DNS_ATTRIBUTES = (
    "Amazon GuardDuty user guide: [Runtime coverage and troubleshooting for Amazon EKS clusters]"
    "(https://docs.aws.amazon.com/guardduty/latest/ug/eks-runtime-monitoring-coverage.html)"
)
PRIVATE_DNS = "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set to true"
TERRAFORM_VPC = "https://github.com/terraform-aws-modules/terraform-aws-vpc/issues"
TERRAFORM_AWS = "https://github.com/hashicorp/terraform-provider-aws/issues"
ROWS = [
    Refusal(
        "AWS::EC2::VPCEndpoint", "service that there is not",
        "The Vpc Endpoint Service 'com.amazonaws.us-west-2.kubernetes' does not exist",
        seen("aws-cdk#2597", "https://github.com/aws/aws-cdk/issues/2597"), "seen",
        _named(Endpoint=interface_endpoint(service=f"com.amazonaws.{REGION}.kubernetes")),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "gateway endpoint of a service with interface endpoints", "does not exist",
        seen("terraform#24478", "https://github.com/hashicorp/terraform/issues/24478"), "condition documented",
        _named(Endpoint=gateway_endpoint() | {"Properties": {
            "VpcId": ref("Vpc"), "ServiceName": SERVICE, "VpcEndpointType": "Gateway"}}),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "private DNS in a VPC without DNS host names", PRIVATE_DNS, DNS_ATTRIBUTES,
        "documented",
        Creation(lambda: {"Vpc": VPC, "Subnet": subnet(), "Endpoint": interface_endpoint()}, fails="Endpoint"),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "private DNS of a service that another one has",
        "private-dns-enabled cannot be set because there is already a conflicting DNS domain for "
        "ec2.us-west-2.amazonaws.com in the VPC",
        seen("terraform-provider-aws#17535", f"{TERRAFORM_AWS}/17535"), "seen",
        _named(First=interface_endpoint(), Endpoint=_after("First", interface_endpoint())),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "private DNS of a service without such a name",
        "does not provide a private DNS name", seen("eksctl#3214", "https://github.com/eksctl-io/eksctl/issues/3214"),
        "seen", ServiceCall(lambda _: _endpoint_of_own_service("a", PrivateDnsEnabled=True)),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "subnet of a zone without the service",
        "does not support the availability zone of the subnet: subnet-",
        seen("terraform-aws-vpc#785", f"{TERRAFORM_VPC}/785"), "seen",
        ServiceCall(lambda _: _endpoint_of_own_service("b", PrivateDnsEnabled=False)),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "two subnets of a zone",
        "Found another VPC endpoint subnet in the availability zone of subnet-",
        seen("terraform-aws-vpc#451", f"{TERRAFORM_VPC}/451"), "seen",
        _named(Other=subnet("10.0.1.0/24"), Endpoint=interface_endpoint("Subnet", "Other")),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "update to two subnets of a zone", "DuplicateSubnetsInSameZone",
        seen("terraform-aws-vpc#583", f"{TERRAFORM_VPC}/583"), "seen",
        Update(_with_endpoint, _with_another_subnet_of_the_zone, fails="Endpoint"),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "subnet without a free address",
        "does not have enough free addresses", code("InsufficientFreeAddressesInSubnet"), CONDITION,
        Creation(lambda: {
            "Vpc": NAMED_VPC, "Subnet": subnet("10.0.0.0/28"),
            **(interfaces := {f"I{i}": resource("NetworkInterface", SubnetId=ref("Subnet")) for i in range(11)}),
            "Endpoint": {**interface_endpoint(), "DependsOn": list(interfaces)}}, fails="Endpoint"),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "subnet of another VPC", "belong to different networks",
        operation("CreateVpcEndpoint"), "assumed",
        _named(Other=OTHER_VPC, There=subnet("10.1.0.0/24", vpc="Other"), Endpoint=interface_endpoint("There")),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "security group of another VPC", "belong to different networks",
        operation("CreateVpcEndpoint"), "assumed",
        _named(Other=OTHER_VPC, Group=security_group("Other"), Endpoint=interface_endpoint(
            SecurityGroupIds=[{"Fn::GetAtt": ["Group", "GroupId"]}])),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "route table for an interface endpoint",
        "Route table IDs are only supported for Gateway type VPC Endpoint",
        seen("amazon.aws#576", "https://github.com/ansible-collections/amazon.aws/issues/576"), "seen",
        _named(Table=table(), Endpoint=interface_endpoint(RouteTableIds=[ref("Table")])),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "subnet for a gateway endpoint",
        "Subnet IDs are only supported for Interface and GatewayLoadBalancer type VPC Endpoints",
        seen("terraform-aws-starter#18", "https://github.com/nanlabs/terraform-aws-starter/issues/18"), "seen",
        _named(Endpoint=gateway_endpoint(SubnetIds=[ref("Subnet")])),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "route table that has one for the service",
        "already has a route with destination-prefix-list-id pl-",
        seen("eksctl#4377", "https://github.com/eksctl-io/eksctl/issues/4377"), "seen",
        _named(Table=table(), First=gateway_endpoint("Table"), Endpoint=_after("First", gateway_endpoint("Table"))),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "route table of another VPC", "belong to different networks",
        operation("CreateVpcEndpoint"), "assumed",
        _named(Other=OTHER_VPC, Table=table("Other"), Endpoint=gateway_endpoint("Table")),
    ),
    Refusal(
        "ec2:CreateVpcEndpoint", "one more gateway endpoint than the quota (20)",
        "The maximum number of VPC endpoints has been reached", code("VpcEndpointLimitExceeded"), CONDITION,
        ServiceCall(_one_more_gateway_endpoint),
    ),
    Refusal(
        "ec2:CreateVpcEndpoint", "one more interface endpoint in a VPC than the quota",
        "The maximum number of VPC endpoints has been reached", code("VpcEndpointLimitExceeded"), CONDITION,
        ServiceCall(_one_more_interface_endpoint),
    ),
    Refusal(
        "ec2:DeleteSubnet", "an endpoint is in it", "has dependencies and cannot be deleted",
        code("DependencyViolation"), CONDITION, ServiceCall(_delete_subnet),
    ),
    Refusal(
        "ec2:DeleteSecurityGroup", "an endpoint has it", "has a dependent object", code("DependencyViolation"),
        CONDITION, ServiceCall(_delete_group),
    ),
    Refusal(
        "ec2:DeleteNetworkInterface", "an endpoint has it", "is currently in use",
        "Amazon EC2 user guide: [Requester-managed network interfaces]"
        "(https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/requester-managed-eni.html)", CONDITION,
        ServiceCall(_delete_interface),
    ),
    Refusal(
        "ec2:DeleteVpc", "a gateway endpoint is in it", "has dependencies and cannot be deleted",
        code("DependencyViolation"), CONDITION, ServiceCall(_delete_vpc),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "security groups of a gateway endpoint", "only supported for Interface type",
        operation("CreateVpcEndpoint", "SecurityGroupIds"), CONDITION,
        _named(Group=security_group(), Endpoint=gateway_endpoint(SecurityGroupIds=[ref("Group")])),
    ),
    Refusal(
        "AWS::EC2::VPCEndpoint", "private DNS names of a gateway endpoint", "only supported for Interface type",
        operation("CreateVpcEndpoint", "PrivateDnsEnabled"), CONDITION,
        _named(Endpoint=gateway_endpoint(PrivateDnsEnabled=True)),
    ),
    Refusal(
        "ec2:CreateTags", "an endpoint that is deleted", "does not exist", code("InvalidVpcEndpointId.NotFound"),
        CONDITION, ServiceCall(lambda _: ec2().create_tags(Resources=["vpce-0123456789abcdef0"], Tags=[
            {"Key": "a", "Value": "b"}])),
    ),
]  # fmt: skip
