"""VPCs, subnets and DHCP options."""

from __future__ import annotations

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
    subnet,
    table,
)
from refusal import Creation, Refusal, Resources, ServiceCall, Update

from cfngen.sandbox.cloudformation import CloudFormation


def _sixth_vpc() -> Resources:
    for _ in range(4):  # with the default one there are five then
        ec2().create_vpc(CidrBlock="10.0.0.0/16")
    return {"Vpc": VPC}


def _named_vpc(**properties: object) -> Resources:
    return resource("VPC", CidrBlock="10.0.0.0/16", EnableDnsHostnames=True, **properties)


def _vpc_with_a_subnet(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    ec2().create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")
    ec2().delete_vpc(VpcId=vpc)


def _subnet_with_an_interface(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    place = ec2().create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    ec2().create_network_interface(SubnetId=place)
    ec2().delete_subnet(SubnetId=place)


def _options_in_use(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    response = ec2().create_dhcp_options(DhcpConfigurations=[{"Key": "domain-name", "Values": ["example.com"]}])
    options = response["DhcpOptions"]["DhcpOptionsId"]
    ec2().associate_dhcp_options(VpcId=vpc, DhcpOptionsId=options)
    ec2().delete_dhcp_options(DhcpOptionsId=options)


def _vpc(block: str) -> Creation:
    return only(Vpc=resource("VPC", CidrBlock=block))


def _options(*servers: str, domain: str = "example.com") -> Creation:
    return only(Options=resource("DHCPOptions", DomainName=domain, DomainNameServers=list(servers)))


FURTHER_RANGES = guide("vpc-cidr-blocks", "VPC CIDR blocks")


def _further_range(block: str) -> Creation:
    return network(Range=resource("VPCCidrBlock", VpcId=ref("Vpc"), CidrBlock=block))


SUBNET_SIZES = guide("subnet-sizing", "Subnet CIDR blocks")
ROWS = [
    Refusal(
        "AWS::EC2::VPC", "larger than /16", "The CIDR '10.0.0.0/15' is invalid", code("InvalidVpc.Range"),
        CONDITION, _vpc("10.0.0.0/15"),
    ),
    Refusal(
        "AWS::EC2::VPC", "smaller than /28", "The CIDR '10.0.0.0/29' is invalid", code("InvalidVpc.Range"),
        CONDITION, _vpc("10.0.0.0/29"),
    ),
    Refusal(
        "AWS::EC2::VPC", "range that is none", "This is not a valid CIDR block", operation("CreateVpc", "CidrBlock"),
        CONDITION, _vpc("10.0.0.0.0/16"),
    ),
    Refusal(
        "AWS::EC2::VPC", "one more than the quota (5)", "The maximum number of VPCs has been reached",
        code("VpcLimitExceeded"), CONDITION, Creation(_sixth_vpc, fails="Vpc"),
    ),
    Refusal(
        "AWS::EC2::VPC", "DNS host names without DNS support", "can only be enabled if DNS support is enabled",
        operation("ModifyVpcAttribute", "EnableDnsHostnames"), CONDITION,
        only(Vpc=resource("VPC", CidrBlock="10.0.0.0/16", EnableDnsSupport=False, EnableDnsHostnames=True)),
    ),
    Refusal(
        "AWS::EC2::VPC", "no more DNS support, with DNS host names", "can only be enabled if DNS support is enabled",
        operation("ModifyVpcAttribute", "EnableDnsHostnames"), "assumed",
        Update(lambda: {"Vpc": _named_vpc()}, lambda first: {"Vpc": _named_vpc(EnableDnsSupport=False)}, "Vpc"),
    ),
    Refusal(
        "AWS::EC2::VPCCidrBlock", "larger than /16", "The CIDR '100.64.0.0/10' is invalid", FURTHER_RANGES, CONDITION,
        _further_range("100.64.0.0/10"),
    ),
    *(
        Refusal(
            "AWS::EC2::VPCCidrBlock", condition,
            f"The CIDR '{block}' is restricted. Use a CIDR from the same private address range as the current VPC CIDR",
            FURTHER_RANGES, CONDITION, _further_range(block),
        )
        for condition, block in (
            ("another private network than the VPC's", "192.168.0.0/16"), ("a range of AWS's own", "198.19.0.0/20"),
        )
    ),
    Refusal(
        "AWS::EC2::VPCCidrBlock", "overlaps the VPC's range", "conflicts with another CIDR", FURTHER_RANGES, CONDITION,
        _further_range("10.0.128.0/17"),
    ),
    Refusal(
        "AWS::EC2::VPCCidrBlock", "contains the destination of a route", "contains the destination of a route",
        FURTHER_RANGES, CONDITION, network(
            Gateway=GATEWAY, Attachment=resource(
                "VPCGatewayAttachment", VpcId=ref("Vpc"), InternetGatewayId=ref("Gateway")),
            Table=table(), Route={"DependsOn": "Attachment", **resource(
                "Route", RouteTableId=ref("Table"), DestinationCidrBlock="100.64.4.0/24", GatewayId=ref("Gateway"))},
            Range={"DependsOn": "Route", **resource("VPCCidrBlock", VpcId=ref("Vpc"), CidrBlock="100.64.0.0/16")}),
    ),
    Refusal(
        "ec2:DeleteVpc", "something is in it", "has dependencies and cannot be deleted", code("DependencyViolation"),
        CONDITION, ServiceCall(_vpc_with_a_subnet),
    ),
    Refusal(
        "AWS::EC2::Subnet", "outside of the VPC", "The CIDR '10.9.0.0/24' is invalid", code("InvalidSubnet.Range"),
        CONDITION, network(Other=subnet("10.9.0.0/24")),
    ),
    Refusal(
        "AWS::EC2::Subnet", "overlaps another one", "The CIDR '10.0.0.128/25' conflicts with another subnet",
        code("InvalidSubnet.Conflict"), CONDITION, network(Other=resource(
            "Subnet", VpcId=ref("Vpc"), CidrBlock="10.0.0.128/25", AvailabilityZone={"Fn::GetAtt": ["Subnet",
            "AvailabilityZone"]})),
    ),
    Refusal(
        "AWS::EC2::Subnet", "smaller than /28", "The CIDR '10.0.1.0/29' is invalid", SUBNET_SIZES,
        CONDITION, network(Other=subnet("10.0.1.0/29")),
    ),
    Refusal(
        "AWS::EC2::Subnet", "zone that there is not", "Subnets can currently only be created in the following",
        operation("CreateSubnet", "AvailabilityZone"), CONDITION,
        network(Other=subnet("10.0.1.0/24", zone="us-west-2z")),
    ),
    Refusal(
        "AWS::EC2::Subnet", "zone of another region", "Subnets can currently only be created in the following",
        operation("CreateSubnet", "AvailabilityZone"), CONDITION,
        network(Other=subnet("10.0.1.0/24", zone="us-east-1a")),
    ),
    Refusal(
        "AWS::EC2::Subnet", "VPC that there is not", "does not exist", code("InvalidVpcID.NotFound"), CONDITION,
        only(Subnet=resource("Subnet", VpcId="vpc-0123456789abcdef0", CidrBlock="10.0.0.0/24")),
    ),
    Refusal(
        "ec2:DeleteSubnet", "an interface is in it", "has dependencies and cannot be deleted",
        code("DependencyViolation"), CONDITION, ServiceCall(_subnet_with_an_interface),
    ),
    Refusal(
        "AWS::EC2::DHCPOptions", "domain name that is none", "Invalid domain name",
        operation("CreateDhcpOptions", "domain-name"), CONDITION,
        _options("AmazonProvidedDNS", domain="two words"),
    ),
    Refusal(
        "AWS::EC2::DHCPOptions", "no name servers in their list", "must contain the parameter Values",
        code("MissingParameter"), "assumed", _options(),
    ),
    Refusal(
        "AWS::EC2::VPCDHCPOptionsAssociation", "options that there are not", "does not exist",
        code("InvalidDhcpOptionsID.NotFound"), CONDITION,
        only(Vpc=OTHER_VPC, Association=resource(
            "VPCDHCPOptionsAssociation", VpcId=ref("Vpc"), DhcpOptionsId="dopt-0123456789abcdef0")),
    ),
    Refusal(
        "ec2:DeleteDhcpOptions", "a VPC has them", "has dependencies and cannot be deleted.",
        code("DependencyViolation"), "documented", ServiceCall(_options_in_use),
    ),
]  # fmt: skip
