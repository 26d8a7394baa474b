"""Handlers of AWS::EC2 types for networks; network interfaces and Elastic IPs are in `instances`."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.errors import ResourceError, UnfinishedError
from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Ec2Resource,
    Handler,
    HandlerCall,
    delete_on_failure,
)
from cfngen.sandbox.untyped import JsonDict, Properties

INTERNET_GATEWAY = Ec2Resource(
    create="create_internet_gateway",
    delete="delete_internet_gateway",
    path=("InternetGateway", "InternetGatewayId"),
    tagged_as="internet-gateway",
)
ROUTE_TABLE = Ec2Resource(
    "VpcId",
    create="create_route_table",
    delete="delete_route_table",
    path=("RouteTable", "RouteTableId"),
    tagged_as="route-table",
)
SUBNET_ROUTE_TABLE_ASSOCIATION = Ec2Resource(
    "SubnetId",
    "RouteTableId",
    create="associate_route_table",
    delete="disassociate_route_table",
    path=("AssociationId",),
    attribute="Id",
)
VPC_CIDR_BLOCK = Ec2Resource(
    "VpcId",
    "CidrBlock",
    create="associate_vpc_cidr_block",
    delete="disassociate_vpc_cidr_block",
    path=("CidrBlockAssociation", "AssociationId"),
    attribute="Id",
)


class Vpc(Handler):
    supported_properties = frozenset({"CidrBlock", "EnableDnsSupport", "EnableDnsHostnames", "Tags"})
    deletion = ("ec2", "delete_vpc", "VpcId")

    def create(self, call: HandlerCall) -> CreatedResource:
        vpc = call.ec2.create_vpc(CidrBlock=call["CidrBlock"], **call.tag_specifications("vpc"))["Vpc"]
        with delete_on_failure(lambda: call.ec2.delete_vpc(VpcId=vpc["VpcId"])):
            self._set_dns(call, vpc["VpcId"], {*call.properties})
        return CreatedResource(vpc["VpcId"], {"VpcId": vpc["VpcId"], "CidrBlock": vpc["CidrBlock"]})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        self._set_dns(call, call.physical_id, changed)

    def _set_dns(self, call: HandlerCall, vpc_id: str, changed: set[str]) -> None:
        """Set what changes of the DNS attributes; host names, which need DNS support, come last or go first."""
        values = {
            "EnableDnsSupport": call.properties.get("EnableDnsSupport", True),
            "EnableDnsHostnames": call.properties.get("EnableDnsHostnames", False),
        }
        for attribute in sorted(values, reverse=values["EnableDnsHostnames"]):
            if attribute in changed:
                call.ec2.modify_vpc_attribute(VpcId=vpc_id, **{attribute: {"Value": values[attribute]}})

    def read_actual(self, call: HandlerCall) -> Properties | None:
        vpcs = call.ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [call.physical_id]}])["Vpcs"]
        return {"Tags": vpcs[0].get("Tags", [])} if vpcs else None


class DhcpOptions(Handler):
    supported_properties = frozenset({"DomainName", "DomainNameServers", "Tags"})
    deletion = ("ec2", "delete_dhcp_options", "DhcpOptionsId")

    def create(self, call: HandlerCall) -> CreatedResource:
        configurations = [{"Key": "domain-name-servers", "Values": call["DomainNameServers"]}]
        if "DomainName" in call.properties:
            configurations.append({"Key": "domain-name", "Values": [call["DomainName"]]})
        response = call.ec2.create_dhcp_options(
            DhcpConfigurations=configurations, **call.tag_specifications("dhcp-options")
        )
        options_id = response["DhcpOptions"]["DhcpOptionsId"]
        return CreatedResource(options_id, {"DhcpOptionsId": options_id})


class DhcpOptionsAssociation(Handler):
    supported_properties = frozenset({"VpcId", "DhcpOptionsId"})

    def create(self, call: HandlerCall) -> CreatedResource:
        call.ec2.associate_dhcp_options(**call.properties)
        return CreatedResource(f"{call['DhcpOptionsId']}|{call['VpcId']}")

    def delete(self, call: HandlerCall) -> None:
        # "default" gives the VPC no DHCP options (EC2 API, AssociateDhcpOptions).
        call.ec2.associate_dhcp_options(VpcId=call["VpcId"], DhcpOptionsId="default")


class VpcGatewayAttachment(Handler):
    supported_properties = frozenset({"VpcId", "InternetGatewayId"})

    def create(self, call: HandlerCall) -> CreatedResource:
        call.ec2.attach_internet_gateway(**call.properties)
        return CreatedResource(f"IGW|{call['VpcId']}")

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        call.ec2.detach_internet_gateway(**old_properties)
        call.ec2.attach_internet_gateway(**call.properties)

    def delete(self, call: HandlerCall) -> None:
        call.ec2.detach_internet_gateway(**call.properties)


class Route(Handler):
    """A route; the attribute CidrBlock, its destination, is part of the physical id."""

    _DESTINATIONS = ("DestinationCidrBlock", "DestinationPrefixListId")
    _TARGETS = frozenset(
        {"GatewayId", "NatGatewayId", "NetworkInterfaceId", "TransitGatewayId", "VpcPeeringConnectionId"}
    )
    supported_properties = frozenset({"RouteTableId", *_DESTINATIONS, *_TARGETS})

    def create(self, call: HandlerCall) -> CreatedResource:
        call.ec2.create_route(**call.properties)
        destination = next(iter(call.pick(*self._DESTINATIONS).values()))
        return CreatedResource(f"{call['RouteTableId']}|{destination}", {"CidrBlock": destination})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        call.ec2.replace_route(**call.properties)

    def read_actual(self, call: HandlerCall) -> Properties | None:
        filters = [{"Name": "route-table-id", "Values": [call["RouteTableId"]]}]
        for table in call.ec2.describe_route_tables(Filters=filters)["RouteTables"]:
            for route in table["Routes"]:
                if f"{table['RouteTableId']}|{route.get('DestinationCidrBlock')}" == call.physical_id:
                    return {target: route.get(target, "") for target in call.pick(*sorted(self._TARGETS))}
        return None

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_route(**call.pick("RouteTableId", *self._DESTINATIONS))


class Subnet(Handler):
    supported_properties = frozenset({"VpcId", "CidrBlock", "AvailabilityZone", "Tags"})
    deletion = ("ec2", "delete_subnet", "SubnetId")

    def create(self, call: HandlerCall) -> CreatedResource:
        subnet = call.ec2.create_subnet(
            **call.pick("VpcId", "CidrBlock", "AvailabilityZone"), **call.tag_specifications("subnet")
        )["Subnet"]  # fmt: skip
        return CreatedResource(
            subnet["SubnetId"], {key: subnet[key] for key in ("SubnetId", "AvailabilityZone", "CidrBlock", "VpcId")}
        )

    def read_actual(self, call: HandlerCall) -> Properties | None:
        filters = [{"Name": "subnet-id", "Values": [call.physical_id]}]
        subnets = call.ec2.describe_subnets(Filters=filters)["Subnets"]
        return {"Tags": subnets[0].get("Tags", [])} if subnets else None


class NatGateway(Handler):
    """A public NAT gateway: only its tags can be changed, everything else replaces it."""

    supported_properties = frozenset({"AllocationId", "SubnetId", "Tags"})
    deletion = ("ec2", "delete_nat_gateway", "NatGatewayId")

    def create(self, call: HandlerCall) -> CreatedResource:
        gateway = call.ec2.create_nat_gateway(
            **call.pick("AllocationId", "SubnetId"), **call.tag_specifications("natgateway")
        )["NatGateway"]
        gateway_id = gateway["NatGatewayId"]
        if gateway["State"] == "failed":
            # The words of giantswarm/aws-operator#1234 and aws/aws-cdk#21404.
            raise UnfinishedError(
                f"NatGateway {gateway_id} is in state failed and hence failed to stabilize. Detailed failure message: "
                f"{gateway['FailureMessage']}",
                gateway_id,
                {"NatGatewayId": gateway_id},
            )
        interface_id = gateway["NatGatewayAddresses"][0]["NetworkInterfaceId"]
        return CreatedResource(gateway_id, {"NatGatewayId": gateway_id, "EniId": interface_id})

    def read_actual(self, call: HandlerCall) -> Properties | None:
        filters = [{"Name": "nat-gateway-id", "Values": [call.physical_id]}]
        gateways = call.ec2.describe_nat_gateways(Filter=filters)["NatGateways"]
        if not gateways or gateways[0]["State"] in ("deleting", "deleted"):
            return None
        return {"Tags": gateways[0].get("Tags", [])}


# Properties with lists of ids; ModifyVpcEndpoint has a parameter `Add…` and one `Remove…` for each.
LIST_PROPERTIES = ("RouteTableIds", "SecurityGroupIds", "SubnetIds")


class VpcEndpoint(Handler):
    """A VPC endpoint; another VPC, service or type replaces it."""

    supported_properties = frozenset(
        {"VpcEndpointType", "VpcId", "ServiceName", *LIST_PROPERTIES, "PrivateDnsEnabled", "Tags"}
    )

    def create(self, call: HandlerCall) -> CreatedResource:
        # CreateVpcEndpoint enables private DNS by default, the resource type does not (CloudFormation reference).
        private_dns = call.pick("PrivateDnsEnabled") or {"PrivateDnsEnabled": False}
        endpoint = call.ec2.create_vpc_endpoint(
            **call.pick("VpcEndpointType", "VpcId", "ServiceName", *LIST_PROPERTIES),
            **(
                private_dns if call.properties.get("VpcEndpointType") == "Interface" else call.pick("PrivateDnsEnabled")
            ),
            **call.tag_specifications("vpc-endpoint"),
        )["VpcEndpoint"]
        return CreatedResource(endpoint["VpcEndpointId"], _attributes(endpoint))

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> Properties:
        changes: JsonDict = {}
        for name in sorted(changed & set(LIST_PROPERTIES)):
            new_ids, old_ids = call.properties.get(name, []), old_properties.get(name, [])
            changes[f"Add{name}"] = [item for item in new_ids if item not in old_ids]
            changes[f"Remove{name}"] = [item for item in old_ids if item not in new_ids]
        if "PrivateDnsEnabled" in changed:
            changes["PrivateDnsEnabled"] = call.properties.get("PrivateDnsEnabled", False)
        changes = {name: value for name, value in changes.items() if value != []}
        if not changes:
            return {}
        call.ec2.modify_vpc_endpoint(VpcEndpointId=call.physical_id, **changes)
        endpoint = _describe(call)
        if endpoint is None:
            raise ResourceError(f"The Vpc Endpoint Id '{call.physical_id}' does not exist")
        attributes = _attributes(endpoint)
        return {name: value for name, value in attributes.items() if call.attributes.get(name) != value}

    def read_actual(self, call: HandlerCall) -> Properties | None:
        endpoint = _describe(call)
        if endpoint is None:
            return None
        actual_values = {
            "RouteTableIds": endpoint.get("RouteTableIds", []),
            "SubnetIds": endpoint.get("SubnetIds", []),
            "SecurityGroupIds": [group["GroupId"] for group in endpoint.get("Groups", [])],
            "PrivateDnsEnabled": endpoint.get("PrivateDnsEnabled", False),
        }
        in_template = {name: value for name, value in actual_values.items() if name in call.properties}
        return {**in_template, "Tags": endpoint.get("Tags", [])}

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_vpc_endpoints(VpcEndpointIds=[call.physical_id])


def _describe(call: HandlerCall) -> JsonDict | None:
    filters = [{"Name": "vpc-endpoint-id", "Values": [call.physical_id]}]
    endpoints = call.ec2.describe_vpc_endpoints(Filters=filters)["VpcEndpoints"]
    return endpoints[0] if endpoints else None


def _attributes(endpoint: JsonDict) -> Properties:
    return {
        "Id": endpoint["VpcEndpointId"],
        "CreationTimestamp": endpoint["CreationTimestamp"].isoformat(),
        "NetworkInterfaceIds": endpoint.get("NetworkInterfaceIds", []),
        "DnsEntries": [f"{entry['HostedZoneId']}:{entry['DnsName']}" for entry in endpoint.get("DnsEntries", [])],
    }
