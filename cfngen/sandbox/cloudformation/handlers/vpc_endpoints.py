"""The handler of AWS::EC2::VPCEndpoint: gateway endpoints and interface endpoints."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import CreatedResource, Handler, HandlerCall
from cfngen.sandbox.json_types import JsonDict, Properties

# Properties with lists of ids; ModifyVpcEndpoint has a parameter `Add…` and one `Remove…` for each.
LIST_PROPERTIES = ("RouteTableIds", "SecurityGroupIds", "SubnetIds")


class VpcEndpoint(Handler):
    """A VPC endpoint; another VPC, service or type replaces it."""

    supported_properties = frozenset(
        {"VpcEndpointType", "VpcId", "ServiceName", *LIST_PROPERTIES, "PrivateDnsEnabled", "Tags"}
    )
    updatable_properties = frozenset({*LIST_PROPERTIES, "PrivateDnsEnabled", "Tags"})

    def create(self, call: HandlerCall) -> CreatedResource:
        # CreateVpcEndpoint enables private DNS by default, the resource type does not (CloudFormation reference).
        private_dns = {"PrivateDnsEnabled": call.properties.get("PrivateDnsEnabled", False)}
        endpoint = call.ec2.create_vpc_endpoint(
            **call.pick("VpcEndpointType", "VpcId", "ServiceName", *LIST_PROPERTIES),
            **(private_dns if call.properties.get("VpcEndpointType") == "Interface" else {}),
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
