"""Elastic Load Balancing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from refusal import Creation, Refusal, ServiceCall, Update
from small_stacks import REGION, vpc

from cfngen.sandbox.cloudformation import CloudFormation, client

API = "https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference"
GUIDE = "https://docs.aws.amazon.com/elasticloadbalancing/latest/network"
Resources = dict[str, Any]


def subnet(number: int, zone: str = "a", size: int = 24, network: str = "Vpc") -> Resources:
    block = f"10.0.{number}.0/{size}"
    properties = {"VpcId": {"Ref": network}, "CidrBlock": block, "AvailabilityZone": f"{REGION}{zone}"}
    return {"Type": "AWS::EC2::Subnet", "Properties": properties}


def balancer(*subnets: str, **properties: Any) -> Resources:
    defaults = {"Type": "network", "Scheme": "internal", "Subnets": [{"Ref": each} for each in subnets or ("One",)]}
    return {"Type": "AWS::ElasticLoadBalancingV2::LoadBalancer", "Properties": {**defaults, **properties}}


def targets(**properties: Any) -> Resources:
    defaults = {"VpcId": {"Ref": "Vpc"}, "Protocol": "TCP", "Port": 6443, "TargetType": "ip"}
    return {"Type": "AWS::ElasticLoadBalancingV2::TargetGroup", "Properties": {**defaults, **properties}}


def listener(group: str = "Targets", load_balancer: str = "Balancer", **properties: Any) -> Resources:
    defaults = {
        "LoadBalancerArn": {"Ref": load_balancer}, "Protocol": "TCP", "Port": 6443,
        "DefaultActions": [{"Type": "forward", "TargetGroupArn": {"Ref": group}}],
    }  # fmt: skip
    return {"Type": "AWS::ElasticLoadBalancingV2::Listener", "Properties": {**defaults, **properties}}


def group(network: str = "Vpc") -> Resources:
    properties = {"GroupDescription": "load balancer", "VpcId": {"Ref": network}}
    return {"Type": "AWS::EC2::SecurityGroup", "Properties": properties}


NETWORK = {"Vpc": vpc(), "One": subnet(0)}
WHOLE = {**NETWORK, "Targets": targets(), "Balancer": balancer()}


def refused(it: Resources, **others: Resources) -> Creation:
    return Creation(lambda: {**NETWORK, **others, "It": it}, "It")


def row(resource: str, condition: str, words: str, source: str, evidence: Any, tried: Any) -> Refusal:
    return Refusal(f"AWS::ElasticLoadBalancingV2::{resource}", condition, words, source, evidence, tried)


def attribute(key: str, value: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value}]


def changed(first: Mapping[str, Any], **properties: Any) -> Update:
    """A load balancer's properties, and others in an update."""

    def second(resources: Mapping[str, Any]) -> Resources:
        it = resources["It"]
        return {**resources, "It": {**it, "Properties": {**it["Properties"], **properties}}}

    return Update(lambda: {**NETWORK, **first}, second, "It")


def call(attempt: Callable[[Any, str, str], object]) -> ServiceCall:
    """A call about a load balancer in a VPC and a subnet."""

    def prepare(cloud: CloudFormation) -> None:
        ec2, elbv2 = client("ec2", REGION), client("elbv2", REGION)
        network = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        where = ec2.create_subnet(VpcId=network, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
        attempt(elbv2, network, where)

    return ServiceCall(prepare)


def _made(elbv2: Any, where: str, name: str = "one", **given: Any) -> str:
    answer = elbv2.create_load_balancer(Name=name, Subnets=[where], Type="network", Scheme="internal", **given)
    return str(answer["LoadBalancers"][0]["LoadBalancerArn"])


def _protected(elbv2: Any, network: str, where: str) -> None:
    arn = _made(elbv2, where)
    elbv2.modify_load_balancer_attributes(
        LoadBalancerArn=arn, Attributes=attribute("deletion_protection.enabled", "true")
    )
    elbv2.delete_load_balancer(LoadBalancerArn=arn)


def _left_without_subnet(elbv2: Any, network: str, where: str) -> None:
    _made(elbv2, where)
    client("ec2", REGION).delete_subnet(SubnetId=where)


def _same_group(elbv2: Any, network: str, where: str) -> None:
    for port in (80, 81):
        elbv2.create_target_group(Name="one", Protocol="TCP", Port=port, VpcId=network)


def _in_use(elbv2: Any, network: str, where: str) -> None:
    target_group = elbv2.create_target_group(Name="one", Protocol="TCP", Port=80, VpcId=network)["TargetGroups"][0]
    forward = [{"Type": "forward", "TargetGroupArn": target_group["TargetGroupArn"]}]
    elbv2.create_listener(LoadBalancerArn=_made(elbv2, where), Protocol="TCP", Port=80, DefaultActions=forward)
    elbv2.delete_target_group(TargetGroupArn=target_group["TargetGroupArn"])


def _too_full(elbv2: Any, network: str, where: str) -> None:
    ec2 = client("ec2", REGION)
    small = ec2.create_subnet(VpcId=network, CidrBlock="10.0.1.0/28")["Subnet"]["SubnetId"]
    for _ in range(4):
        ec2.create_network_interface(SubnetId=small)
    _made(elbv2, small)


def _twice(elbv2: Any, network: str, where: str) -> None:
    key = "load_balancing.cross_zone.enabled"
    attributes = [*attribute(key, "true"), *attribute(key, "false")]
    elbv2.modify_load_balancer_attributes(LoadBalancerArn=_made(elbv2, where), Attributes=attributes)


def _fifty_one(elbv2: Any, network: str, where: str) -> None:
    for number in range(51):
        _made(elbv2, where, f"n{number}")


CREATE = f"[CreateLoadBalancer]({API}/API_CreateLoadBalancer.html)"
CREATE_GROUP = f"[CreateTargetGroup]({API}/API_CreateTargetGroup.html)"
CREATE_LISTENER = f"[CreateListener]({API}/API_CreateListener.html)"
CHECKS = f"user guide of network load balancers: [health checks]({GUIDE}/target-group-health-checks.html)"
TERRAFORM = "https://github.com/hashicorp/terraform-provider-aws/issues"
CONTROLLER = "https://github.com/kubernetes-sigs/aws-load-balancer-controller/issues"
TOLD = "condition documented"
LATER = "You cannot set security groups on a Network Load Balancer which was created without any security groups"
ROWS = [
    row("LoadBalancer", "two subnets of one zone", "multiple subnets in the same Availability Zone", CREATE, TOLD,
        refused(balancer("One", "Two"), Two=subnet(1))),
    row("LoadBalancer", "subnets of two VPCs", "All subnets must belong to the same VPC", CREATE, TOLD,
        refused(balancer("One", "Two"), Other=vpc(), Two=subnet(1, "b", network="Other"))),
    row("LoadBalancer", "subnet that does not exist", "SubnetNotFound", f"{CREATE}: SubnetNotFound", TOLD,
        refused(balancer(Subnets=["subnet-0123456789abcdef0"]))),
    Refusal("elasticloadbalancing:CreateLoadBalancer", "subnet with fewer than eight free addresses",
            "ELB requires at least 8 free IP addresses in each subnet",
            f"[aws-load-balancer-controller#1233]({CONTROLLER}/1233), user guide of network load balancers: "
            f"[Availability Zones]({GUIDE}/availability-zones.html)", "seen", call(_too_full)),
    Refusal("elasticloadbalancing:ModifyLoadBalancerAttributes", "one attribute twice",
            "'load_balancing.cross_zone.enabled' is specified more than once",
            f"[ModifyLoadBalancerAttributes]({API}/API_ModifyLoadBalancerAttributes.html)", "assumed", call(_twice)),
    row("LoadBalancer", "internet-facing in a VPC without an internet gateway", "has no internet gateway",
        f"{CREATE}: InvalidSubnet", TOLD, refused(balancer(Scheme="internet-facing"))),
    row("LoadBalancer", "scheme that does not exist", "is not a valid enum value", CREATE, TOLD,
        refused(balancer(Scheme="public"))),
    row("LoadBalancer", "type that does not exist", "is not a valid enum value", CREATE, TOLD,
        refused(balancer(Type="classic"))),
    row("LoadBalancer", "name that begins with internal-", "begins with internal-", f"{CREATE}: Name", TOLD,
        refused(balancer(Name="internal-api"))),
    row("LoadBalancer", "name of more than 32 characters", "name of a load balancer", f"{CREATE}: Name", TOLD,
        refused(balancer(Name="a" * 33))),
    row("LoadBalancer", "name with an underscore", "name of a load balancer", f"{CREATE}: Name", TOLD,
        refused(balancer(Name="my_api"))),
    row("LoadBalancer", "name in use", "exists, but with different settings",
        f"{CREATE}: DuplicateLoadBalancerName", TOLD,
        refused(balancer(Name="api") | {"DependsOn": ["Balancer"]}, Balancer=balancer(Name="api"))),
    row("LoadBalancer", "security group of another VPC", "does not belong to VPC",
        "[pulumi-awsx#816](https://github.com/pulumi/pulumi-awsx/issues/816)", "seen",
        refused(balancer(SecurityGroups=[{"Ref": "Group"}]), Other=vpc(), Group=group("Other"))),
    row("LoadBalancer", "security group that does not exist", "does not exist", f"{CREATE}: InvalidSecurityGroup",
        TOLD, refused(balancer(SecurityGroups=["sg-0123456789abcdef0"]))),
    row("LoadBalancer", "more than five security groups",
        "The maximum number of security groups per load balancer has been reached",
        "[boto3#177](https://github.com/boto/boto3/issues/177)", "seen",
        refused(balancer(SecurityGroups=[{"Ref": f"G{number}"} for number in range(6)]),
                **{f"G{number}": group() for number in range(6)})),
    row("LoadBalancer", "an update that adds security groups", LATER,
        "[cluster-api-provider-aws#4790](https://github.com/kubernetes-sigs/cluster-api-provider-aws/issues/4790)",
        "seen", changed({"Group": group(), "It": balancer()}, SecurityGroups=[{"Ref": "Group"}])),
    row("LoadBalancer", "an update to two subnets of one zone", "multiple subnets in the same Availability Zone",
        f"[SetSubnets]({API}/API_SetSubnets.html)", TOLD,
        changed({"Two": subnet(1), "It": balancer()}, Subnets=[{"Ref": "One"}, {"Ref": "Two"}])),
    Refusal("elasticloadbalancing:DeleteLoadBalancer", "a protected load balancer",
            "cannot be deleted because deletion protection is enabled",
            "[aws-cloudformation/rain#187](https://github.com/aws-cloudformation/rain/issues/187)", "seen",
            call(_protected)),
    Refusal("ec2:DeleteSubnet", "a load balancer is in it", "has dependencies and cannot be deleted",
            "re:Post: [why can't I delete my VPC?](https://repost.aws/knowledge-center/troubleshoot-dependency-error-delete-vpc)",
            TOLD, call(_left_without_subnet)),
    Refusal("elasticloadbalancing:CreateLoadBalancer", "a fifty-first of one type", "TooManyLoadBalancers",
            f"user guide of network load balancers: [quotas]({GUIDE}/load-balancer-limits.html)", TOLD,
            call(_fifty_one)),
    row("TargetGroup", "port 70,000", "is too small or too large", f"{CREATE_GROUP}: Port", TOLD,
        refused(targets(Port=70_000))),
    row("TargetGroup", "protocol that does not exist", "is not a valid enum value", f"{CREATE_GROUP}: Protocol", TOLD,
        refused(targets(Protocol="SCTP"))),
    row("TargetGroup", "VPC that does not exist", "is not found", f"{CREATE_GROUP}: VpcId", TOLD,
        refused(targets(VpcId="vpc-0123456789abcdef0"))),
    row("TargetGroup", "type of targets that does not exist", "is not a valid enum value",
        f"{CREATE_GROUP}: TargetType", TOLD, refused(targets(TargetType="pod"))),
    row("TargetGroup", "checks every three seconds", "is too small or too large", CHECKS,
        TOLD, refused(targets(HealthCheckIntervalSeconds=3))),
    row("TargetGroup", "healthy after eleven checks", "is too small or too large", CHECKS, TOLD,
        refused(targets(HealthyThresholdCount=11))),
    row("TargetGroup", "unhealthy after one check", "is too small or too large", CHECKS, TOLD,
        refused(targets(UnhealthyThresholdCount=1))),
    row("TargetGroup", "address outside of the VPC without a zone",
        "The Availability Zone is required for IP address '192.168.1.1' because it is not in the VPC",
        f"[aws-load-balancer-controller#3714]({CONTROLLER}/3714)", "seen",
        refused(targets(Targets=[{"Id": "192.168.1.1"}]))),
    row("TargetGroup", "an instance's id as an address", "is not a valid IPv4 address",
        f"[TargetDescription]({API}/API_TargetDescription.html)", TOLD,
        refused(targets(Targets=[{"Id": "i-0123456789abcdef0"}]))),
    Refusal("elasticloadbalancing:CreateTargetGroup", "name in use", "exists, but with different settings",
            f"{CREATE_GROUP}: DuplicateTargetGroupName", TOLD, call(_same_group)),
    Refusal("elasticloadbalancing:DeleteTargetGroup", "a listener forwards to it",
            "is currently in use by a listener or a rule",
            "[containerless#1](https://github.com/Reckon-Limited/containerless/issues/1)", "seen", call(_in_use)),
    row("TargetGroup", "instance that there is not", "(InvalidTarget)",
        f"[RegisterTargets]({API}/API_RegisterTargets.html): InvalidTarget", TOLD,
        refused(targets(TargetType="instance", Targets=[{"Id": "i-0123456789abcdef0", "Port": 443}]))),
    row("Listener", "port in use", "A listener already exists on this port for this load balancer",
        f"{CREATE_LISTENER}: DuplicateListener", TOLD,
        Creation(lambda: {**WHOLE, "First": listener(), "It": listener() | {"DependsOn": ["First"]}}, "It")),
    row("Listener", "port 0", "is too small or too large", f"{CREATE_LISTENER}: Port", TOLD,
        Creation(lambda: {**WHOLE, "It": listener(Port=0)}, "It")),
    row("Listener", "target group of another VPC", "must be in the VPC of the load balancer", CREATE_LISTENER, TOLD,
        Creation(lambda: {**WHOLE, "Other": vpc(), "Targets": targets(VpcId={"Ref": "Other"}), "It": listener()},
                 "It")),
    row("Listener", "target group of another load balancer", "cannot be associated with more than one load balancer",
        f"[terraform-provider-aws#22005]({TERRAFORM}/22005)", "seen",
        Creation(lambda: {**WHOLE, "Second": balancer(), "First": listener(),
                          "It": listener(load_balancer="Second") | {"DependsOn": ["First"]}}, "It")),
    row("Listener", "target group that does not exist", "TargetGroupNotFound", CREATE_LISTENER, TOLD,
        Creation(lambda: {**WHOLE, "It": listener(DefaultActions=[{"Type": "forward", "TargetGroupArn": (
            f"arn:aws:elasticloadbalancing:{REGION}:123456789012:targetgroup/gone/0123456789abcdef")}])}, "It")),
    row("Listener", "two default actions", "must be exactly one forward action", f"{CREATE_LISTENER}: DefaultActions",
        TOLD, Creation(lambda: {**WHOLE, "Other": targets(), "It": listener(DefaultActions=[
            {"Type": "forward", "TargetGroupArn": {"Ref": name}} for name in ("Targets", "Other")])}, "It")),
]  # fmt: skip
