"""AWS::ElasticLoadBalancingV2 types: a load balancer, what it listens on, and where it sends that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.sandbox.cloudformation.handlers.handler import Call, Created, Handler, client, completing

NAME_LIMIT = 32
CHECKS = frozenset(
    {
        "HealthCheckEnabled",
        "HealthCheckIntervalSeconds",
        "HealthCheckPath",
        "HealthCheckPort",
        "HealthCheckProtocol",
        "HealthCheckTimeoutSeconds",
        "HealthyThresholdCount",
        "UnhealthyThresholdCount",
    }
)


def _service(call: Call) -> Any:
    return client("elbv2", call.region)


class _Balancing(Handler):
    def retag(self, call: Call, before: Mapping[str, Any]) -> None:
        old, new = before.get("Tags", []), call.properties.get("Tags", [])
        if gone := sorted({tag["Key"] for tag in old} - {tag["Key"] for tag in new}):
            _service(call).remove_tags(ResourceArns=[call.physical_id], TagKeys=gone)
        if new:
            _service(call).add_tags(ResourceArns=[call.physical_id], Tags=new)


class LoadBalancer(_Balancing):
    properties = frozenset(
        {"Name", "Type", "Scheme", "IpAddressType", "Subnets", "SecurityGroups", "LoadBalancerAttributes", "Tags"}
    )
    changeable = frozenset({"Subnets", "SecurityGroups", "LoadBalancerAttributes", "Tags"})

    def create(self, call: Call) -> Created:
        name = call.properties.get("Name") or call.name(limit=NAME_LIMIT)
        service = _service(call)
        made = service.create_load_balancer(
            Name=name, **call.only("Type", "Scheme", "IpAddressType", "Subnets", "SecurityGroups", "Tags")
        )["LoadBalancers"][0]
        arn = made["LoadBalancerArn"]
        created = Created(
            arn,
            {
                "LoadBalancerArn": arn,
                "LoadBalancerName": name,
                "LoadBalancerFullName": arn.partition(":loadbalancer/")[2],
                "DNSName": made["DNSName"],
                "CanonicalHostedZoneID": made["CanonicalHostedZoneId"],
            },
        )
        with completing(created):
            if attributes := call.properties.get("LoadBalancerAttributes"):
                service.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=attributes)
        return created

    def change(self, call: Call, before: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        service, arn = _service(call), call.physical_id
        if "Subnets" in changed:
            service.set_subnets(LoadBalancerArn=arn, Subnets=call["Subnets"])
        if "SecurityGroups" in changed:
            service.set_security_groups(LoadBalancerArn=arn, SecurityGroups=call.properties.get("SecurityGroups", []))
        if "LoadBalancerAttributes" in changed:
            attributes = call.properties.get("LoadBalancerAttributes", [])
            service.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=attributes)
        return {}

    def delete(self, call: Call) -> None:
        _service(call).delete_load_balancer(LoadBalancerArn=call.physical_id)


class TargetGroup(_Balancing):
    properties = frozenset(
        {"VpcId", "Protocol", "Port", "TargetType", "Targets", "TargetGroupAttributes", "Tags", *CHECKS}
    )
    changeable = frozenset({"Targets", "TargetGroupAttributes", "Tags", *CHECKS})

    def create(self, call: Call) -> Created:
        name = call.name(limit=NAME_LIMIT, stack_name=False)
        service = _service(call)
        made = service.create_target_group(
            Name=name, **call.only("VpcId", "Protocol", "Port", "TargetType", "Tags", *CHECKS)
        )["TargetGroups"][0]
        arn = made["TargetGroupArn"]
        full = f"targetgroup/{arn.partition(':targetgroup/')[2]}"
        created = Created(arn, {"TargetGroupArn": arn, "TargetGroupName": name, "TargetGroupFullName": full})
        with completing(created):
            if targets := call.properties.get("Targets"):
                service.register_targets(TargetGroupArn=arn, Targets=targets)
            if attributes := call.properties.get("TargetGroupAttributes"):
                service.modify_target_group_attributes(TargetGroupArn=arn, Attributes=attributes)
        return created

    def change(self, call: Call, before: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        service, arn = _service(call), call.physical_id
        if "Targets" in changed:
            old, new = before.get("Targets", []), call.properties.get("Targets", [])
            if added := [each for each in new if each not in old]:
                service.register_targets(TargetGroupArn=arn, Targets=added)
            if gone := [each for each in old if each not in new]:
                service.deregister_targets(TargetGroupArn=arn, Targets=gone)
        if "TargetGroupAttributes" in changed:
            attributes = call.properties.get("TargetGroupAttributes", [])
            service.modify_target_group_attributes(TargetGroupArn=arn, Attributes=attributes)
        if changed & CHECKS:
            service.modify_target_group(TargetGroupArn=arn, **call.only(*CHECKS))
        return {}

    def delete(self, call: Call) -> None:
        _service(call).delete_target_group(TargetGroupArn=call.physical_id)


class Listener(_Balancing):
    properties = frozenset({"LoadBalancerArn", "Protocol", "Port", "DefaultActions", "Tags"})
    changeable = frozenset({"Protocol", "Port", "DefaultActions", "Tags"})

    def create(self, call: Call) -> Created:
        made = _service(call).create_listener(**call.properties)["Listeners"][0]["ListenerArn"]
        return Created(made, {"ListenerArn": made})

    def change(self, call: Call, before: Mapping[str, Any], changed: set[str]) -> Mapping[str, Any]:
        settings = call.only("Protocol", "Port", "DefaultActions")
        if changed & set(settings):
            _service(call).modify_listener(ListenerArn=call.physical_id, **settings)
        return {}

    def delete(self, call: Call) -> None:
        _service(call).delete_listener(ListenerArn=call.physical_id)
