"""The handler of AWS::EC2::NatGateway."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.errors import UnfinishedError
from cfngen.sandbox.cloudformation.handlers.handler import CreatedResource, Handler, HandlerCall
from cfngen.sandbox.json_types import Properties


class NatGateway(Handler):
    """A public NAT gateway: only its tags can be changed, everything else replaces it."""

    supported_properties = frozenset({"AllocationId", "SubnetId", "Tags"})
    updatable_properties = frozenset({"Tags"})

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

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_nat_gateway(NatGatewayId=call.physical_id)
