"""Handlers of AWS::EC2 types for networking."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import CreatedResource, Handler, HandlerCall, delete_on_failure
from cfngen.sandbox.json_types import JsonDict, Properties

# The egress rule that EC2 adds to a new security group.
DEFAULT_EGRESS: list[JsonDict] = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]


class Vpc(Handler):
    supported_properties = frozenset({"CidrBlock", "EnableDnsSupport", "EnableDnsHostnames", "Tags"})
    updatable = frozenset({"EnableDnsSupport", "EnableDnsHostnames", "Tags"})

    def create(self, call: HandlerCall) -> CreatedResource:
        vpc = call.ec2.create_vpc(CidrBlock=call["CidrBlock"], **call.tag_specifications("vpc"))["Vpc"]
        with delete_on_failure(lambda: call.ec2.delete_vpc(VpcId=vpc["VpcId"])):
            for attribute, value in call.pick("EnableDnsSupport", "EnableDnsHostnames").items():
                call.ec2.modify_vpc_attribute(VpcId=vpc["VpcId"], **{attribute: {"Value": value}})
        return CreatedResource(vpc["VpcId"], {"VpcId": vpc["VpcId"], "CidrBlock": vpc["CidrBlock"]})

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
        for attribute, default in (("EnableDnsSupport", True), ("EnableDnsHostnames", False)):
            if attribute in changed:
                value = {"Value": call.properties.get(attribute, default)}
                call.ec2.modify_vpc_attribute(VpcId=call.physical_id, **{attribute: value})
        return {}

    def read_actual(self, call: HandlerCall) -> Properties | None:
        vpcs = call.ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [call.physical_id]}])["Vpcs"]
        return {"Tags": vpcs[0].get("Tags", [])} if vpcs else None

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_vpc(VpcId=call.physical_id)


class DhcpOptions(Handler):
    supported_properties = frozenset({"DomainName", "DomainNameServers", "Tags"})
    updatable = frozenset({"Tags"})

    def create(self, call: HandlerCall) -> CreatedResource:
        configurations = [{"Key": "domain-name-servers", "Values": call["DomainNameServers"]}]
        if "DomainName" in call.properties:
            configurations.append({"Key": "domain-name", "Values": [call["DomainName"]]})
        response = call.ec2.create_dhcp_options(
            DhcpConfigurations=configurations, **call.tag_specifications("dhcp-options")
        )
        identifier = response["DhcpOptions"]["DhcpOptionsId"]
        return CreatedResource(identifier, {"DhcpOptionsId": identifier})

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_dhcp_options(DhcpOptionsId=call.physical_id)


class DhcpOptionsAssociation(Handler):
    supported_properties = frozenset({"VpcId", "DhcpOptionsId"})

    def create(self, call: HandlerCall) -> CreatedResource:
        call.ec2.associate_dhcp_options(**call.properties)
        return CreatedResource(f"{call['DhcpOptionsId']}|{call['VpcId']}")

    def delete(self, call: HandlerCall) -> None:
        call.ec2.associate_dhcp_options(VpcId=call["VpcId"], DhcpOptionsId="default")


class InternetGateway(Handler):
    supported_properties = frozenset({"Tags"})
    updatable = frozenset({"Tags"})

    def create(self, call: HandlerCall) -> CreatedResource:
        gateway = call.ec2.create_internet_gateway(**call.tag_specifications("internet-gateway"))["InternetGateway"]
        return CreatedResource(gateway["InternetGatewayId"], {"InternetGatewayId": gateway["InternetGatewayId"]})

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_internet_gateway(InternetGatewayId=call.physical_id)


class VpcGatewayAttachment(Handler):
    supported_properties = frozenset({"VpcId", "InternetGatewayId"})
    updatable = frozenset({"InternetGatewayId"})

    def create(self, call: HandlerCall) -> CreatedResource:
        call.ec2.attach_internet_gateway(**call.properties)
        return CreatedResource(f"IGW|{call['VpcId']}")

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
        call.ec2.detach_internet_gateway(**previous)
        call.ec2.attach_internet_gateway(**call.properties)
        return {}

    def delete(self, call: HandlerCall) -> None:
        call.ec2.detach_internet_gateway(**call.properties)


class RouteTable(Handler):
    supported_properties = frozenset({"VpcId", "Tags"})
    updatable = frozenset({"Tags"})

    def create(self, call: HandlerCall) -> CreatedResource:
        route_table = call.ec2.create_route_table(VpcId=call["VpcId"], **call.tag_specifications("route-table"))[
            "RouteTable"
        ]
        return CreatedResource(route_table["RouteTableId"], {"RouteTableId": route_table["RouteTableId"]})

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_route_table(RouteTableId=call.physical_id)


class Route(Handler):
    supported_properties = frozenset({"RouteTableId", "DestinationCidrBlock", "GatewayId"})
    updatable = frozenset({"GatewayId"})

    def create(self, call: HandlerCall) -> CreatedResource:
        call.ec2.create_route(**call.properties)
        return CreatedResource(f"{call['RouteTableId']}|{call['DestinationCidrBlock']}")

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
        call.ec2.replace_route(**call.properties)
        return {}

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_route(**call.pick("RouteTableId", "DestinationCidrBlock"))


class Subnet(Handler):
    supported_properties = frozenset({"VpcId", "CidrBlock", "AvailabilityZone", "Tags"})
    updatable = frozenset({"Tags"})

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

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_subnet(SubnetId=call.physical_id)


class SubnetRouteTableAssociation(Handler):
    supported_properties = frozenset({"SubnetId", "RouteTableId"})

    def create(self, call: HandlerCall) -> CreatedResource:
        identifier = call.ec2.associate_route_table(**call.properties)["AssociationId"]
        return CreatedResource(identifier, {"Id": identifier})

    def delete(self, call: HandlerCall) -> None:
        call.ec2.disassociate_route_table(AssociationId=call.physical_id)


class SecurityGroup(Handler):
    """As in CloudFormation, egress rules in the template replace the default egress rule of a new group."""

    supported_properties = frozenset({"GroupDescription", "VpcId", "SecurityGroupEgress", "Tags"})
    updatable = frozenset({"SecurityGroupEgress", "Tags"})

    def create(self, call: HandlerCall) -> CreatedResource:
        group_id = call.ec2.create_security_group(
            GroupName=call.generate_name(), Description=call["GroupDescription"], VpcId=call["VpcId"],
            **call.tag_specifications("security-group"),
        )["GroupId"]  # fmt: skip
        if egress := call.properties.get("SecurityGroupEgress"):
            with delete_on_failure(lambda: call.ec2.delete_security_group(GroupId=group_id)):
                call.ec2.revoke_security_group_egress(GroupId=group_id, IpPermissions=DEFAULT_EGRESS)
                call.ec2.authorize_security_group_egress(
                    GroupId=group_id, IpPermissions=[_to_ip_permission(rule) for rule in egress]
                )
        return CreatedResource(group_id, {"GroupId": group_id, "Id": group_id, "VpcId": call["VpcId"]})

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
        if "SecurityGroupEgress" in changed:
            old_permissions = _egress_permissions(previous)
            new_permissions = _egress_permissions(call.properties)
            if removed := [permission for permission in old_permissions if permission not in new_permissions]:
                call.ec2.revoke_security_group_egress(GroupId=call.physical_id, IpPermissions=removed)
            if added := [permission for permission in new_permissions if permission not in old_permissions]:
                call.ec2.authorize_security_group_egress(GroupId=call.physical_id, IpPermissions=added)
        return {}

    def read_actual(self, call: HandlerCall) -> Properties | None:
        rules = _read_rules(call, call.physical_id, egress=True)
        if rules is None:
            return None
        expected = [_without_description(rule) for rule in call.properties.get("SecurityGroupEgress", [])]
        actual_rules = [_without_description(rule) for rule in rules]
        if sorted(map(str, expected)) == sorted(map(str, actual_rules)):
            return call.pick("SecurityGroupEgress")
        return {"SecurityGroupEgress": actual_rules}

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_security_group(GroupId=call.physical_id)


class SecurityGroupIngress(Handler):
    supported_properties = frozenset(
        {
            "GroupId",
            "SourceSecurityGroupId",
            "SourcePrefixListId",
            "CidrIp",
            "IpProtocol",
            "FromPort",
            "ToPort",
            "Description",
        }
    )
    updatable = frozenset({"Description"})

    def create(self, call: HandlerCall) -> CreatedResource:
        rule_id = call.ec2.authorize_security_group_ingress(
            GroupId=call["GroupId"], IpPermissions=[_to_ip_permission(call.properties)]
        )["SecurityGroupRules"][0]["SecurityGroupRuleId"]  # fmt: skip
        return CreatedResource(rule_id, {"Id": rule_id})

    def update_properties(self, call: HandlerCall, previous: Properties, changed: set[str]) -> Properties:
        rule = {"Description": "", **call.properties}
        call.ec2.update_security_group_rule_descriptions_ingress(
            GroupId=call["GroupId"], IpPermissions=[_to_ip_permission(rule)]
        )
        return {}

    def read_actual(self, call: HandlerCall) -> Properties | None:
        expected = _without_description(call.properties)
        rules = _read_rules(call, call["GroupId"], egress=False) or []
        return call.properties if expected in map(_without_description, rules) else None

    def delete(self, call: HandlerCall) -> None:
        call.ec2.revoke_security_group_ingress(
            GroupId=call["GroupId"], IpPermissions=[_to_ip_permission(call.properties)]
        )


PORT_KEYS = frozenset({"IpProtocol", "FromPort", "ToPort"})
GROUP_KEYS = frozenset({"GroupId", "Description"})
# Keys of IpPermissions for the source or destination of a rule, by its key in templates.
PEER_KEYS = {
    "CidrIp": ("IpRanges", "CidrIp"),
    "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "SourcePrefixListId": ("PrefixListIds", "PrefixListId"),
    "DestinationPrefixListId": ("PrefixListIds", "PrefixListId"),
}


def _to_ip_permission(rule: Properties) -> JsonDict:
    """Convert a template's rule to an IpPermission of EC2."""
    if unknown := sorted(set(rule) - PORT_KEYS - GROUP_KEYS - set(PEER_KEYS)):
        raise NotModelledError(f"{unknown} in rules of security groups")
    peers = sorted(set(rule) & set(PEER_KEYS))
    if len(peers) != 1:
        raise ResourceError(f"Specify exactly one source or destination of a rule, not {peers or 'none'}")
    list_name, key = PEER_KEYS[peers[0]]
    peer = {key: rule[peers[0]]}
    if "Description" in rule:
        peer["Description"] = rule["Description"]
    protocol_and_ports = {port_key: rule[port_key] for port_key in PORT_KEYS if port_key in rule}
    return {**protocol_and_ports, list_name: [peer]}


def _egress_permissions(properties: Properties) -> list[JsonDict]:
    """The egress rules of a security group; a group without any in the template has the default rule."""
    return [_to_ip_permission(rule) for rule in properties.get("SecurityGroupEgress", [])] or DEFAULT_EGRESS


def _read_rules(call: HandlerCall, group_id: str, *, egress: bool) -> list[JsonDict] | None:
    """The rules of a group in the format of a template; None if there is no such group."""
    groups = call.ec2.describe_security_groups(Filters=[{"Name": "group-id", "Values": [group_id]}])["SecurityGroups"]
    if not groups:
        return None
    rules = []
    for permission in groups[0]["IpPermissionsEgress" if egress else "IpPermissions"]:
        protocol_and_ports = {key: permission[key] for key in ("IpProtocol", "FromPort", "ToPort") if key in permission}
        rules += [{**protocol_and_ports, "CidrIp": ip_range["CidrIp"]} for ip_range in permission["IpRanges"]]
        rules += [
            {**protocol_and_ports, "SourcePrefixListId": prefix_list_id["PrefixListId"]}
            for prefix_list_id in permission.get("PrefixListIds", [])
        ]
        peer_key = "DestinationSecurityGroupId" if egress else "SourceSecurityGroupId"
        rules += [
            {**protocol_and_ports, peer_key: user_id_group_pair["GroupId"]}
            for user_id_group_pair in permission["UserIdGroupPairs"]
        ]
    return rules


def _without_description(rule: Properties) -> JsonDict:
    """A rule without its description, for comparison; a rule for all protocols (-1) has no ports."""
    keys = ["IpProtocol", "CidrIp", "SourcePrefixListId", "SourceSecurityGroupId", "DestinationSecurityGroupId"]
    if str(rule["IpProtocol"]) != "-1":
        keys += ["FromPort", "ToPort"]
    return {key: str(rule[key]) for key in keys if rule.get(key) is not None}
