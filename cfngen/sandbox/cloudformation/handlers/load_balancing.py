"""Handlers of AWS::ElasticLoadBalancingV2 types: load balancers, listeners and target groups."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Handler,
    HandlerCall,
    Tag,
    leave_to_rollback_on_failure,
)
from cfngen.sandbox.untyped import Properties

MAX_NAME_LENGTH = 32
HEALTH_CHECK_KEYS = frozenset({
    "HealthCheckEnabled", "HealthCheckIntervalSeconds", "HealthCheckPath", "HealthCheckPort",
    "HealthCheckProtocol", "HealthCheckTimeoutSeconds", "HealthyThresholdCount", "UnhealthyThresholdCount",
})  # fmt: skip


class _Elbv2Handler(Handler):
    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        call.client("elbv2").add_tags(ResourceArns=[call.physical_id], Tags=tags)

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        call.client("elbv2").remove_tags(ResourceArns=[call.physical_id], TagKeys=keys)


class LoadBalancer(_Elbv2Handler):
    supported_properties = frozenset(
        {"Name", "Type", "Scheme", "IpAddressType", "Subnets", "SecurityGroups", "LoadBalancerAttributes", "Tags"}
    )
    deletion = ("elbv2", "delete_load_balancer", "LoadBalancerArn")
    never_updated_properties = frozenset({"IpAddressType"})

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.properties.get("Name") or call.generate_name(limit=MAX_NAME_LENGTH)
        elbv2 = call.client("elbv2")
        load_balancer = elbv2.create_load_balancer(
            Name=name, **call.pick("Type", "Scheme", "IpAddressType", "Subnets", "SecurityGroups", "Tags")
        )["LoadBalancers"][0]
        arn = load_balancer["LoadBalancerArn"]
        created = CreatedResource(
            arn,
            {
                "LoadBalancerArn": arn,
                "LoadBalancerName": name,
                "LoadBalancerFullName": arn.partition(":loadbalancer/")[2],
                "DNSName": load_balancer["DNSName"],
                "CanonicalHostedZoneID": load_balancer["CanonicalHostedZoneId"],
            },
        )
        with leave_to_rollback_on_failure(created):
            if attributes := call.properties.get("LoadBalancerAttributes"):
                elbv2.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=attributes)
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        elbv2, arn = call.client("elbv2"), call.physical_id
        if "Subnets" in changed:
            elbv2.set_subnets(LoadBalancerArn=arn, Subnets=call["Subnets"])
        if "SecurityGroups" in changed:
            elbv2.set_security_groups(LoadBalancerArn=arn, SecurityGroups=call.properties.get("SecurityGroups", []))
        if "LoadBalancerAttributes" in changed:
            attributes = call.properties.get("LoadBalancerAttributes", [])
            elbv2.modify_load_balancer_attributes(LoadBalancerArn=arn, Attributes=attributes)


class TargetGroup(_Elbv2Handler):
    supported_properties = frozenset(
        {"VpcId", "Protocol", "Port", "TargetType", "Targets", "TargetGroupAttributes", "Tags", *HEALTH_CHECK_KEYS}
    )
    deletion = ("elbv2", "delete_target_group", "TargetGroupArn")

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.generate_name(limit=MAX_NAME_LENGTH, with_stack_name=False)
        elbv2 = call.client("elbv2")
        target_group = elbv2.create_target_group(
            Name=name, **call.pick("VpcId", "Protocol", "Port", "TargetType", "Tags", *HEALTH_CHECK_KEYS)
        )["TargetGroups"][0]
        arn = target_group["TargetGroupArn"]
        full_name = f"targetgroup/{arn.partition(':targetgroup/')[2]}"
        created = CreatedResource(
            arn, {"TargetGroupArn": arn, "TargetGroupName": name, "TargetGroupFullName": full_name}
        )
        with leave_to_rollback_on_failure(created):
            if targets := call.properties.get("Targets"):
                elbv2.register_targets(TargetGroupArn=arn, Targets=targets)
            if attributes := call.properties.get("TargetGroupAttributes"):
                elbv2.modify_target_group_attributes(TargetGroupArn=arn, Attributes=attributes)
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        elbv2, arn = call.client("elbv2"), call.physical_id
        if "Targets" in changed:
            old_targets, new_targets = old_properties.get("Targets", []), call.properties.get("Targets", [])
            if added := [target for target in new_targets if target not in old_targets]:
                elbv2.register_targets(TargetGroupArn=arn, Targets=added)
            if removed := [target for target in old_targets if target not in new_targets]:
                elbv2.deregister_targets(TargetGroupArn=arn, Targets=removed)
        if "TargetGroupAttributes" in changed:
            attributes = call.properties.get("TargetGroupAttributes", [])
            elbv2.modify_target_group_attributes(TargetGroupArn=arn, Attributes=attributes)
        if changed & HEALTH_CHECK_KEYS:
            elbv2.modify_target_group(TargetGroupArn=arn, **call.pick(*HEALTH_CHECK_KEYS))


class Listener(_Elbv2Handler):
    supported_properties = frozenset({"LoadBalancerArn", "Protocol", "Port", "DefaultActions", "Tags"})
    deletion = ("elbv2", "delete_listener", "ListenerArn")

    def create(self, call: HandlerCall) -> CreatedResource:
        arn = call.client("elbv2").create_listener(**call.properties)["Listeners"][0]["ListenerArn"]
        return CreatedResource(arn, {"ListenerArn": arn})

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        settings = call.pick("Protocol", "Port", "DefaultActions")
        if changed & set(settings):  # not only the tags
            call.client("elbv2").modify_listener(ListenerArn=call.physical_id, **settings)
