"""NAT gateways, their Elastic IP addresses and the routes to them."""

from __future__ import annotations

from typing import Any

from ec2_parts import (
    CONDITION,
    GATEWAY,
    OTHER_VPC,
    VPC,
    code,
    ec2,
    guide,
    network,
    only,
    operation,
    ref,
    resource,
    seen,
    subnet,
    table,
)
from refusal import Creation, Refusal, Resources, ServiceCall, Update

from cfngen.sandbox.cloudformation import CloudFormation
from cfngen.sandbox.services import quotas

ATTACHMENT = resource("VPCGatewayAttachment", VpcId=ref("Vpc"), InternetGatewayId=ref("Gateway"))
ADDRESS = resource("EIP", Domain="vpc")
ALLOCATION = {"Fn::GetAtt": ["Address", "AllocationId"]}
OPEN = {"Gateway": GATEWAY, "Attachment": ATTACHMENT}  # beside a VPC and a subnet, what a NAT gateway needs


def nat(place: str = "Subnet", allocation: Any = None, after: str = "Attachment") -> dict[str, Any]:
    """A NAT gateway of a template, with the Elastic IP address `Address` unless told otherwise."""
    gateway = resource("NatGateway", SubnetId=ref(place), AllocationId=allocation or ALLOCATION)
    return {**gateway, "DependsOn": after} if after else gateway


def made() -> dict[str, str]:
    """Ids of a NAT gateway in an account, and of what it is made of."""
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2().create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2().attach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
    place = ec2().create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    address = ec2().allocate_address(Domain="vpc")
    answer = ec2().create_nat_gateway(SubnetId=place, AllocationId=address["AllocationId"])["NatGateway"]
    return {
        "vpc": vpc,
        "internet gateway": gateway,
        "subnet": place,
        "allocation": address["AllocationId"],
        "NAT gateway": answer["NatGatewayId"],
        "interface": answer["NatGatewayAddresses"][0]["NetworkInterfaceId"],
    }


def _release(_: CloudFormation) -> None:
    ec2().release_address(AllocationId=made()["allocation"])


def _disassociate(_: CloudFormation) -> None:
    [address] = ec2().describe_addresses(AllocationIds=[made()["allocation"]])["Addresses"]
    ec2().disassociate_address(AssociationId=address["AssociationId"])


def _move(_: CloudFormation) -> None:
    ids = made()
    interface = ec2().create_network_interface(SubnetId=ids["subnet"])["NetworkInterface"]["NetworkInterfaceId"]
    ec2().associate_address(
        AllocationId=ids["allocation"], NetworkInterfaceId=interface, AllowReassociation=True
    )  # fmt: skip


def _delete_subnet(_: CloudFormation) -> None:
    ec2().delete_subnet(SubnetId=made()["subnet"])


def _delete_interface(_: CloudFormation) -> None:
    ec2().delete_network_interface(NetworkInterfaceId=made()["interface"])


def _delete_vpc(_: CloudFormation) -> None:
    ec2().delete_vpc(VpcId=made()["vpc"])


def _detach(_: CloudFormation) -> None:
    ids = made()
    ec2().detach_internet_gateway(VpcId=ids["vpc"], InternetGatewayId=ids["internet gateway"])


def _delete_twice(_: CloudFormation) -> None:
    gateway = made()["NAT gateway"]
    for _ in range(2):
        ec2().delete_nat_gateway(NatGatewayId=gateway)


def _route_to_a_deleted_one(_: CloudFormation) -> None:
    ids = made()
    ec2().delete_nat_gateway(NatGatewayId=ids["NAT gateway"])
    table_id = ec2().create_route_table(VpcId=ids["vpc"])["RouteTable"]["RouteTableId"]
    ec2().create_route(RouteTableId=table_id, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=ids["NAT gateway"])


def _one_more_in_the_zone(_: CloudFormation) -> None:
    quota = quotas.Quota(*quotas.NAT_GATEWAYS, "NAT gateways per Availability Zone", default=5, applied=1)
    ids = made()
    allocation = ec2().allocate_address(Domain="vpc")["AllocationId"]
    with quotas.override_quotas({quotas.NAT_GATEWAYS: quota}):
        ec2().create_nat_gateway(SubnetId=ids["subnet"], AllocationId=allocation)


def _full_subnet() -> Resources:
    interfaces = {f"Interface{i}": resource("NetworkInterface", SubnetId=ref("Subnet")) for i in range(11)}
    gateway = nat(after="")
    gateway["DependsOn"] = ["Attachment", *interfaces]
    return {"Vpc": VPC, "Subnet": subnet("10.0.0.0/28"), **OPEN, **interfaces, "Address": ADDRESS, "Nat": gateway}


def _in_another_subnet(resources: Resources) -> Resources:
    return {**resources, "Other": subnet("10.0.1.0/24"), "Nat": nat("Other")}


FAILURE = operation("NatGateway", "failureMessage")
TROUBLE = guide("nat-gateway-troubleshooting", "Troubleshoot NAT gateways")
FAILED = "is in state failed and hence failed to stabilize. Detailed failure message: "
BOTO3 = "https://github.com/boto/boto3/issues/779"
NO_PERMISSION = "AuthFailure) when calling"
ROWS = [
    Refusal(
        "AWS::EC2::NatGateway", "internet gateway that is not attached yet",
        f"{FAILED}Network vpc-", seen("aws-cdk#21404", "https://github.com/aws/aws-cdk/issues/21404"), "seen",
        network(Gateway=GATEWAY, Address=ADDRESS, Nat=nat(after="Gateway")),
    ),
    Refusal(
        "AWS::EC2::NatGateway", "address that there is not", "could not be associated with this NAT gateway",
        FAILURE, "documented", network(**OPEN, Nat=nat(allocation="eipalloc-0123456789abcdef0")),
    ),
    Refusal(
        "AWS::EC2::NatGateway", "address that another one has", "is already associated", FAILURE, "documented",
        network(**OPEN, Address=ADDRESS, First=nat(), Nat=nat(after="First")),
    ),
    Refusal(
        "AWS::EC2::NatGateway", "replaced with the same address", "is already associated", FAILURE, "documented",
        Update(lambda: {"Vpc": VPC, "Subnet": subnet(), **OPEN, "Address": ADDRESS, "Nat": nat()},
               _in_another_subnet, fails="Nat"),
    ),
    Refusal(
        "AWS::EC2::NatGateway", "subnet without a free address",
        "Subnet has insufficient free addresses to create this NAT gateway", FAILURE, "documented",
        Creation(_full_subnet, fails="Nat"),
    ),
    Refusal(
        "AWS::EC2::NatGateway", "subnet that there is not", "does not exist", code("InvalidSubnetID.NotFound"),
        CONDITION, only(Address=ADDRESS, Nat=resource(
            "NatGateway", SubnetId="subnet-0123456789abcdef0", AllocationId=ALLOCATION)),
    ),
    Refusal(
        "ec2:CreateNatGateway", "one more in a zone than the quota",
        "Performing this operation would exceed the limit of 1 NAT gateways", TROUBLE, "documented",
        ServiceCall(_one_more_in_the_zone),
    ),
    Refusal(
        "ec2:DeleteNatGateway", "deleted already", "was not found", code("NatGatewayNotFound"), CONDITION,
        ServiceCall(_delete_twice),
    ),
    Refusal(
        "AWS::EC2::Route", "NAT gateway that there is not", "The natGateway ID 'nat-0123456789abcdef0' does not exist",
        seen("boto3#779", BOTO3), "seen",
        network(Table=table(), Route=resource("Route", RouteTableId=ref("Table"), DestinationCidrBlock="0.0.0.0/0",
                                              NatGatewayId="nat-0123456789abcdef0")),
    ),
    Refusal(
        "ec2:CreateRoute", "NAT gateway that is deleted", "InvalidNatGatewayID.NotFound",
        seen("boto3#779", BOTO3), "assumed", ServiceCall(_route_to_a_deleted_one),
    ),
    Refusal(
        "AWS::EC2::Route", "NAT gateway of another VPC", "belong to different networks",
        operation("CreateRoute"), "assumed",
        network(**OPEN, Address=ADDRESS, Nat=nat(), Other=OTHER_VPC, Table=table("Other"), Route=resource(
            "Route", RouteTableId=ref("Table"), DestinationCidrBlock="0.0.0.0/0", NatGatewayId=ref("Nat"))),
    ),
    Refusal(
        "ec2:ReleaseAddress", "a NAT gateway has it", NO_PERMISSION,
        seen("kops#938", "https://github.com/kubernetes/kops/issues/938"), "seen", ServiceCall(_release),
    ),
    Refusal(
        "ec2:AssociateAddress", "a NAT gateway has it", NO_PERMISSION,
        seen("terraform-provider-aws#3572", "https://github.com/hashicorp/terraform-provider-aws/issues/3572"), "seen",
        ServiceCall(_move),
    ),
    Refusal(
        "ec2:DisassociateAddress", "a NAT gateway has it", NO_PERMISSION,
        code("AuthFailure"), "assumed", ServiceCall(_disassociate),
    ),
    Refusal(
        "ec2:DeleteNetworkInterface", "a NAT gateway has it", "is currently in use",
        "Amazon EC2 user guide: [Requester-managed network interfaces]"
        "(https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/requester-managed-eni.html)", CONDITION,
        ServiceCall(_delete_interface),
    ),
    Refusal(
        "ec2:DeleteSubnet", "a NAT gateway is in it", "has dependencies and cannot be deleted",
        code("DependencyViolation"), CONDITION, ServiceCall(_delete_subnet),
    ),
    Refusal(
        "ec2:DeleteVpc", "a NAT gateway is in it", "has dependencies and cannot be deleted",
        code("DependencyViolation"), CONDITION, ServiceCall(_delete_vpc),
    ),
    Refusal(
        "ec2:DetachInternetGateway", "a NAT gateway is in the VPC", "has some mapped public address(es)",
        code("DependencyViolation"), CONDITION, ServiceCall(_detach),
    ),
    Refusal(
        "AWS::EC2::NatGateway", "no Elastic IP address", "The request must contain the parameter AllocationId",
        operation("CreateNatGateway", "AllocationId"), CONDITION,
        network(**OPEN, Nat={**resource("NatGateway", SubnetId=ref("Subnet")), "DependsOn": "Attachment"}),
    ),
]  # fmt: skip
