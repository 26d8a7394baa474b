"""AWS::EC2 types that make a network."""

from __future__ import annotations

from typing import Any

from cfngen.sandbox.cloudformation.handlers.handler import Call, Created, Handler


class Vpc(Handler):
    properties = frozenset({"CidrBlock", "EnableDnsSupport", "EnableDnsHostnames", "Tags"})

    def create(self, call: Call) -> Created:
        vpc = call.ec2.create_vpc(CidrBlock=call["CidrBlock"], **call.tagged("vpc"))["Vpc"]
        for attribute, value in call.only("EnableDnsSupport", "EnableDnsHostnames").items():
            call.ec2.modify_vpc_attribute(VpcId=vpc["VpcId"], **{attribute: {"Value": value}})
        return Created(vpc["VpcId"], {"VpcId": vpc["VpcId"], "CidrBlock": vpc["CidrBlock"]})

    def delete(self, call: Call) -> None:
        call.ec2.delete_vpc(VpcId=call.physical_id)


class DhcpOptions(Handler):
    properties = frozenset({"DomainName", "DomainNameServers", "Tags"})

    def create(self, call: Call) -> Created:
        configurations = [{"Key": "domain-name-servers", "Values": call["DomainNameServers"]}]
        if "DomainName" in call.properties:
            configurations.append({"Key": "domain-name", "Values": [call["DomainName"]]})
        made = call.ec2.create_dhcp_options(DhcpConfigurations=configurations, **call.tagged("dhcp-options"))
        identifier = made["DhcpOptions"]["DhcpOptionsId"]
        return Created(identifier, {"DhcpOptionsId": identifier})

    def delete(self, call: Call) -> None:
        call.ec2.delete_dhcp_options(DhcpOptionsId=call.physical_id)


class DhcpOptionsAssociation(Handler):
    properties = frozenset({"VpcId", "DhcpOptionsId"})

    def create(self, call: Call) -> Created:
        call.ec2.associate_dhcp_options(**call.properties)
        return Created(f"{call['DhcpOptionsId']}|{call['VpcId']}")

    def delete(self, call: Call) -> None:
        call.ec2.associate_dhcp_options(VpcId=call["VpcId"], DhcpOptionsId="default")


class InternetGateway(Handler):
    properties = frozenset({"Tags"})

    def create(self, call: Call) -> Created:
        made = call.ec2.create_internet_gateway(**call.tagged("internet-gateway"))["InternetGateway"]
        return Created(made["InternetGatewayId"], {"InternetGatewayId": made["InternetGatewayId"]})

    def delete(self, call: Call) -> None:
        call.ec2.delete_internet_gateway(InternetGatewayId=call.physical_id)


class VpcGatewayAttachment(Handler):
    properties = frozenset({"VpcId", "InternetGatewayId"})

    def create(self, call: Call) -> Created:
        call.ec2.attach_internet_gateway(**call.properties)
        return Created(f"IGW|{call['VpcId']}")

    def delete(self, call: Call) -> None:
        call.ec2.detach_internet_gateway(**call.properties)


class RouteTable(Handler):
    properties = frozenset({"VpcId", "Tags"})

    def create(self, call: Call) -> Created:
        made = call.ec2.create_route_table(VpcId=call["VpcId"], **call.tagged("route-table"))["RouteTable"]
        return Created(made["RouteTableId"], {"RouteTableId": made["RouteTableId"]})

    def delete(self, call: Call) -> None:
        call.ec2.delete_route_table(RouteTableId=call.physical_id)


class Route(Handler):
    properties = frozenset({"RouteTableId", "DestinationCidrBlock", "GatewayId"})

    def create(self, call: Call) -> Created:
        call.ec2.create_route(**call.properties)
        return Created(f"{call['RouteTableId']}|{call['DestinationCidrBlock']}")

    def delete(self, call: Call) -> None:
        call.ec2.delete_route(**call.only("RouteTableId", "DestinationCidrBlock"))


class Subnet(Handler):
    properties = frozenset({"VpcId", "CidrBlock", "AvailabilityZone", "Tags"})

    def create(self, call: Call) -> Created:
        made = call.ec2.create_subnet(
            **call.only("VpcId", "CidrBlock", "AvailabilityZone"), **call.tagged("subnet")
        )["Subnet"]  # fmt: skip
        return Created(
            made["SubnetId"], {key: made[key] for key in ("SubnetId", "AvailabilityZone", "CidrBlock", "VpcId")}
        )

    def delete(self, call: Call) -> None:
        call.ec2.delete_subnet(SubnetId=call.physical_id)


class SubnetRouteTableAssociation(Handler):
    properties = frozenset({"SubnetId", "RouteTableId"})

    def create(self, call: Call) -> Created:
        identifier = call.ec2.associate_route_table(**call.properties)["AssociationId"]
        return Created(identifier, {"Id": identifier})

    def delete(self, call: Call) -> None:
        call.ec2.disassociate_route_table(AssociationId=call.physical_id)


class SecurityGroup(Handler):
    """As CloudFormation does, given egress rules replace the rule that EC2 puts into a new group."""

    properties = frozenset({"GroupDescription", "VpcId", "SecurityGroupEgress", "Tags"})

    def create(self, call: Call) -> Created:
        group = call.ec2.create_security_group(
            GroupName=call.name(), Description=call["GroupDescription"], VpcId=call["VpcId"],
            **call.tagged("security-group"),
        )["GroupId"]  # fmt: skip
        if egress := call.properties.get("SecurityGroupEgress"):
            everything = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
            call.ec2.revoke_security_group_egress(GroupId=group, IpPermissions=everything)
            call.ec2.authorize_security_group_egress(
                GroupId=group, IpPermissions=[_permission(rule) for rule in egress]
            )
        return Created(group, {"GroupId": group, "Id": group, "VpcId": call["VpcId"]})

    def delete(self, call: Call) -> None:
        call.ec2.delete_security_group(GroupId=call.physical_id)


class SecurityGroupIngress(Handler):
    properties = frozenset(
        {"GroupId", "SourceSecurityGroupId", "CidrIp", "IpProtocol", "FromPort", "ToPort", "Description"}
    )

    def create(self, call: Call) -> Created:
        rule = call.ec2.authorize_security_group_ingress(
            GroupId=call["GroupId"], IpPermissions=[_permission(call.properties)]
        )["SecurityGroupRules"][0]["SecurityGroupRuleId"]  # fmt: skip
        return Created(rule, {"Id": rule})

    def delete(self, call: Call) -> None:
        call.ec2.revoke_security_group_ingress(GroupId=call["GroupId"], IpPermissions=[_permission(call.properties)])


def _permission(rule: Any) -> dict[str, Any]:
    """A rule of a template as an IpPermission of EC2."""
    permission = {key: rule[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in rule}
    described = {"Description": rule["Description"]} if "Description" in rule else {}
    if "SourceSecurityGroupId" in rule:
        return {**permission, "UserIdGroupPairs": [{"GroupId": rule["SourceSecurityGroupId"], **described}]}
    return {**permission, "IpRanges": [{"CidrIp": rule["CidrIp"], **described}]}
