"""Internet gateways, routes and Elastic IP addresses."""

from __future__ import annotations

from typing import Any

from ec2_parts import (
    CONDITION,
    GATEWAY,
    OTHER_VPC,
    VPC,
    code,
    ec2,
    interface,
    network,
    only,
    operation,
    ref,
    resource,
    seen,
    table,
)
from refusal import Creation, Refusal, Resources, ServiceCall

from cfngen.sandbox.cloudformation import CloudFormation
from cfngen.sandbox.services import quotas

ATTACHMENT = resource("VPCGatewayAttachment", VpcId=ref("Vpc"), InternetGatewayId=ref("Gateway"))
EVERYWHERE = "0.0.0.0/0"


def _route(block: str = EVERYWHERE, **target: Any) -> dict[str, Any]:
    return resource("Route", RouteTableId=ref("Table"), DestinationCidrBlock=block, **target)


def _after(needed: str, item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "DependsOn": needed}


def _sixth_gateway() -> Resources:
    for _ in range(5):
        ec2().create_internet_gateway()
    return {"Gateway": GATEWAY}


def _sixth_address() -> Resources:
    for _ in range(5):
        ec2().allocate_address(Domain="vpc")
    return {"Address": resource("EIP", Domain="vpc")}


def _public_interface() -> tuple[str, str, str]:
    """Ids of a VPC, of its gateway, and the allocation of an address that an interface there has."""
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2().create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2().attach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
    place = ec2().create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    network_interface_id = ec2().create_network_interface(SubnetId=place)["NetworkInterface"]["NetworkInterfaceId"]
    allocation = ec2().allocate_address(Domain="vpc")["AllocationId"]
    ec2().associate_address(AllocationId=allocation, NetworkInterfaceId=network_interface_id)
    return vpc, gateway, allocation


def _release(_: CloudFormation) -> None:
    ec2().release_address(AllocationId=_public_interface()[2])


def _detach(_: CloudFormation) -> None:
    vpc, gateway, _ = _public_interface()
    ec2().detach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)


def _delete_attached(_: CloudFormation) -> None:
    ec2().delete_internet_gateway(InternetGatewayId=_public_interface()[1])


def _delete_main_table(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    filters = [{"Name": "vpc-id", "Values": [vpc]}]
    [main] = ec2().describe_route_tables(Filters=filters)["RouteTables"]
    ec2().delete_route_table(RouteTableId=main["RouteTableId"])


def _delete_associated_table(_: CloudFormation) -> None:
    vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    place = ec2().create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    route_table_id = ec2().create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2().associate_route_table(RouteTableId=route_table_id, SubnetId=place)
    ec2().delete_route_table(RouteTableId=route_table_id)


def _route_to_a_dead_instance(_: CloudFormation) -> None:
    image = ec2().register_image(Name="image")["ImageId"]
    [instance] = ec2().run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"]
    filters = [{"Name": "vpc-id", "Values": [instance["VpcId"]]}]
    main = ec2().describe_route_tables(Filters=filters)["RouteTables"][0]["RouteTableId"]
    ec2().terminate_instances(InstanceIds=[instance["InstanceId"]])
    ec2().create_route(RouteTableId=main, DestinationCidrBlock="10.244.0.0/24", InstanceId=instance["InstanceId"])


def _replace_no_route(_: CloudFormation) -> None:
    vpc, gateway, _ = _public_interface()
    route_table_id = ec2().create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2().replace_route(RouteTableId=route_table_id, DestinationCidrBlock=EVERYWHERE, GatewayId=gateway)


NETWORKS = seen("kube-aws#1077", "https://github.com/kubernetes-retired/kube-aws/issues/1077")


def _routed(*targets: str, destination: str = EVERYWHERE, most: int = 500) -> ServiceCall:
    """A route with these targets, in an account with so many routes for a table."""

    def run(_: CloudFormation) -> None:
        vpc = ec2().create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        gateway = ec2().create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2().attach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
        table_id = ec2().create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        ids = {"GatewayId": gateway, "NetworkInterfaceId": "eni-0123456789abcdef0"}
        where = {"DestinationCidrBlock": destination} if destination else {}
        with quotas.override_quotas({quotas.ROUTES: quotas.Quota(*quotas.ROUTES, "Routes per route table", most)}):
            ec2().create_route(RouteTableId=table_id, **where, **{target: ids[target] for target in targets})

    return ServiceCall(run)


def _gateway_that_is_not_attached() -> Resources:
    gateway = ec2().create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    return {"Vpc": VPC, "Table": table(), "Route": _route("10.9.0.0/16", GatewayId=gateway)}


def _connection_of_other_vpcs() -> Resources:
    first, second = (ec2().create_vpc(CidrBlock=block)["Vpc"]["VpcId"] for block in ("10.2.0.0/16", "10.3.0.0/16"))
    connection = ec2().create_vpc_peering_connection(VpcId=first, PeerVpcId=second)["VpcPeeringConnection"]
    target = connection["VpcPeeringConnectionId"]
    return {"Vpc": VPC, "Table": table(), "Route": _route("10.2.0.0/16", VpcPeeringConnectionId=target)}


TRANSIT_GATEWAY = seen(
    "terraform-provider-aws#10025", "https://github.com/hashicorp/terraform-provider-aws/issues/10025"
)
ROWS = [
    Refusal(
        "AWS::EC2::Route", "transit gateway that the VPC is not attached to", "The transitGateway ID", TRANSIT_GATEWAY,
        "seen", network(Table=table(), Route=_route("10.9.0.0/16", TransitGatewayId="tgw-0123456789abcdef0")),
    ),
    Refusal(
        "AWS::EC2::Route", "virtual private gateway that is not attached", "belong to different networks",
        operation("CreateRoute", "GatewayId"), CONDITION, Creation(_gateway_that_is_not_attached, fails="Route"),
    ),
    Refusal(
        "AWS::EC2::Route", "peering connection of other VPCs", "belong to different networks",
        operation("CreateRoute", "VpcPeeringConnectionId"), CONDITION,
        Creation(_connection_of_other_vpcs, fails="Route"),
    ),
    Refusal(
        "ec2:CreateRoute", "one more than the quota", "The maximum number of routes has been reached",
        code("RouteLimitExceeded"), CONDITION, _routed("GatewayId", most=0),
    ),
    Refusal(
        "AWS::EC2::InternetGateway", "one more than the quota (5)",
        "The maximum number of internet gateways has been reached", code("InternetGatewayLimitExceeded"),
        CONDITION, Creation(_sixth_gateway, fails="Gateway"),
    ),
    Refusal(
        "AWS::EC2::VPCGatewayAttachment", "VPC that has one", "already has an internet gateway attached",
        seen("kubo-deployment#167", "https://github.com/cloudfoundry-incubator/kubo-deployment/issues/167"), "seen",
        network(Gateway=GATEWAY, First=ATTACHMENT, Other=GATEWAY, Attachment=_after(
            "First", resource("VPCGatewayAttachment", VpcId=ref("Vpc"), InternetGatewayId=ref("Other")))),
    ),
    Refusal(
        "AWS::EC2::VPCGatewayAttachment", "gateway of another VPC", "Resource.AlreadyAssociated",
        code("Resource.AlreadyAssociated"), "documented",
        network(Gateway=GATEWAY, First=ATTACHMENT, Other=OTHER_VPC, Attachment=_after(
            "First", resource("VPCGatewayAttachment", VpcId=ref("Other"), InternetGatewayId=ref("Gateway")))),
    ),
    Refusal(
        "AWS::EC2::VPCGatewayAttachment", "gateway that there is not", "does not exist",
        code("InvalidInternetGatewayID.NotFound"), CONDITION,
        only(Vpc=VPC, Attachment=resource(
            "VPCGatewayAttachment", VpcId=ref("Vpc"), InternetGatewayId="igw-0123456789abcdef0")),
    ),
    Refusal(
        "ec2:DetachInternetGateway", "an interface of the VPC has a public address",
        "has some mapped public address(es)", code("DependencyViolation"), CONDITION, ServiceCall(_detach),
    ),
    Refusal(
        "ec2:DeleteInternetGateway", "attached", "DependencyViolation", code("DependencyViolation"),
        "documented", ServiceCall(_delete_attached),
    ),
    Refusal(
        "AWS::EC2::Route", "gateway that is not attached yet", "belong to different networks", NETWORKS, "seen",
        network(Gateway=GATEWAY, Table=table(), Route=_route(GatewayId=ref("Gateway"))),
    ),
    Refusal(
        "AWS::EC2::Route", "gateway of another VPC", "belong to different networks", NETWORKS, "seen",
        network(Gateway=GATEWAY, Attachment=ATTACHMENT, Other=OTHER_VPC, Table=table("Other"),
                Route=_after("Attachment", _route(GatewayId=ref("Gateway")))),
    ),
    Refusal(
        "AWS::EC2::Route", "gateway that there is not", "does not exist", code("InvalidGatewayID.NotFound"),
        CONDITION, network(Table=table(), Route=_route(GatewayId="igw-0123456789abcdef0")),
    ),
    Refusal(
        "AWS::EC2::Route", "without a target", "The request must contain exactly one of GatewayId",
        operation("CreateRoute", "You must specify one of the targets"), CONDITION,
        network(Table=table(), Route=_route()),
    ),
    Refusal(
        "ec2:CreateRoute", "two targets", "The request must contain exactly one of GatewayId",
        operation("CreateRoute"), CONDITION, _routed("GatewayId", "NetworkInterfaceId"),
    ),
    Refusal(
        "AWS::EC2::Route", "destination that the table has", "RouteAlreadyExists", code("RouteAlreadyExists"),
        "documented",
        network(Gateway=GATEWAY, Attachment=ATTACHMENT, Table=table(),
                First=_after("Attachment", _route(GatewayId=ref("Gateway"))),
                Route=_after("First", _route(GatewayId=ref("Gateway")))),
    ),
    Refusal(
        "AWS::EC2::Route", "gateway for addresses of the VPC",
        "is equal to or more specific than one of this VPC's CIDR blocks",
        operation("CreateRoute", "DestinationCidrBlock"), CONDITION,
        network(Gateway=GATEWAY, Attachment=ATTACHMENT, Table=table(),
                Route=_after("Attachment", _route("10.0.1.0/24", GatewayId=ref("Gateway")))),
    ),
    Refusal(
        "AWS::EC2::Route", "destination that is no range", "InvalidParameterValue",
        operation("CreateRoute", "DestinationCidrBlock"), CONDITION,
        network(Gateway=GATEWAY, Attachment=ATTACHMENT, Table=table(),
                Route=_after("Attachment", _route("everywhere", GatewayId=ref("Gateway")))),
    ),
    Refusal(
        "ec2:CreateRoute", "instance that is terminated", "is not in the correct state",
        code("IncorrectInstanceState"), CONDITION, ServiceCall(_route_to_a_dead_instance),
    ),
    Refusal(
        "ec2:ReplaceRoute", "route that there is not", "There is no route defined for", operation("ReplaceRoute"),
        CONDITION, ServiceCall(_replace_no_route),
    ),
    Refusal(
        "AWS::EC2::SubnetRouteTableAssociation", "subnet that has another table",
        "conflicts with an existing association", code("Resource.AlreadyAssociated"), CONDITION,
        network(Table=table(), Other=table(),
                First=resource("SubnetRouteTableAssociation", SubnetId=ref("Subnet"), RouteTableId=ref("Table")),
                Second=_after("First", resource(
                    "SubnetRouteTableAssociation", SubnetId=ref("Subnet"), RouteTableId=ref("Other")))),
    ),
    Refusal(
        "AWS::EC2::SubnetRouteTableAssociation", "table of another VPC", "belong to different networks",
        operation("AssociateRouteTable", "must be in the same VPC"), CONDITION,
        network(Other=OTHER_VPC, Table=table("Other"), Association=resource(
            "SubnetRouteTableAssociation", SubnetId=ref("Subnet"), RouteTableId=ref("Table"))),
    ),
    Refusal(
        "ec2:DeleteRouteTable", "the main one", "has dependencies and cannot be deleted",
        operation("DeleteRouteTable", "You can't delete the main route table"), CONDITION,
        ServiceCall(_delete_main_table),
    ),
    Refusal(
        "ec2:DeleteRouteTable", "a subnet has it", "has dependencies and cannot be deleted",
        operation("DeleteRouteTable"), CONDITION, ServiceCall(_delete_associated_table),
    ),
    Refusal(
        "AWS::EC2::EIP", "one more than the quota (5)", "The maximum number of addresses has been reached",
        code("AddressLimitExceeded"), CONDITION, Creation(_sixth_address, fails="Address"),
    ),
    Refusal(
        "AWS::EC2::EIPAssociation", "VPC without an internet gateway yet", "is not attached to any internet gateway",
        seen("cfn101-workshop#165", "https://github.com/aws-samples/cfn101-workshop/issues/165"), "seen",
        network(Address=resource("EIP", Domain="vpc"), Interface=interface(), Association=resource(
            "EIPAssociation", AllocationId={"Fn::GetAtt": ["Address", "AllocationId"]},
            NetworkInterfaceId=ref("Interface"))),
    ),
    Refusal(
        "AWS::EC2::EIPAssociation", "address that there is not", "InvalidAllocationID.NotFound",
        code("InvalidAllocationID.NotFound"), "documented",
        network(Gateway=GATEWAY, Attachment=ATTACHMENT, Interface=interface(), Association=_after(
            "Attachment", resource("EIPAssociation", AllocationId="eipalloc-0123456789abcdef0",
                                   NetworkInterfaceId=ref("Interface")))),
    ),
    Refusal(
        "AWS::EC2::Route", "prefix list that there is not", "The prefix list ID 'pl-0123456789abcdef0' does not exist",
        code("InvalidPrefixListID.NotFound"), CONDITION,
        network(
            Gateway=GATEWAY, Attachment=resource(
                "VPCGatewayAttachment", VpcId=ref("Vpc"), InternetGatewayId=ref("Gateway")),
            Table=table(), Route=_after("Attachment", resource(
                "Route", RouteTableId=ref("Table"), DestinationPrefixListId="pl-0123456789abcdef0",
                GatewayId=ref("Gateway"))),
        ),
    ),
    Refusal(
        "ec2:ReleaseAddress", "an interface has it", "is in use", code("InvalidIPAddress.InUse"), CONDITION,
        ServiceCall(_release),
    ),
    Refusal(
        "AWS::EC2::Route", "a destination without the length of its prefix", "This is not a valid CIDR block.",
        operation("CreateRoute", "DestinationCidrBlock"), CONDITION,
        network(Gateway=GATEWAY, Attachment=ATTACHMENT, Table=table(), Route=_after(
            "Attachment", _route("192.0.2.1", GatewayId=ref("Gateway")))),
    ),
    Refusal(
        "AWS::EC2::Route", "the VPC's own range, for which there is the local route", "already exists",
        code("RouteAlreadyExists"), CONDITION,
        network(Interface=interface(), Table=table(), Route=_route(
            "10.0.0.0/16", NetworkInterfaceId=ref("Interface"))),
    ),
    Refusal(
        "ec2:CreateTags", "an address that is released", "does not exist", code("InvalidAllocationID.NotFound"),
        CONDITION, ServiceCall(lambda _: ec2().create_tags(Resources=["eipalloc-0123456789abcdef0"], Tags=[
            {"Key": "a", "Value": "b"}])),
    ),
    Refusal(
        "ec2:CreateRoute", "no destination", "The request must contain the parameter destinationCidrBlock",
        code("MissingParameter"), CONDITION, _routed("GatewayId", destination=""),
    ),
]  # fmt: skip
