"""Load balancers, listeners and target groups of the emulator: made, changed in place, replaced, refused, removed."""

from __future__ import annotations

from typing import Any

import pytest
from small_stacks import GATEWAY, REGION, created, reasons, text, updated, vpc

from cfngen.sandbox.cloudformation import CloudFormation, client

ELB = "AWS::ElasticLoadBalancingV2::"


@pytest.fixture
def cloud() -> CloudFormation:
    return CloudFormation(REGION)


def subnet(letter: str, number: int) -> dict[str, Any]:
    properties = {"VpcId": {"Ref": "Vpc"}, "CidrBlock": f"10.0.{number}.0/24", "AvailabilityZone": f"us-west-2{letter}"}
    return {"Type": "AWS::EC2::Subnet", "Properties": properties}


def parts(
    *targets: str, scheme: str = "internal", name: str = "k-api", tags: dict[str, str] | None = None, **group: Any
) -> dict[str, Any]:
    """A network in two zones, a load balancer in it, and where that leads."""
    labels = [{"Key": key, "Value": value} for key, value in (tags or {"a": "1"}).items()]
    return {
        "Vpc": vpc(),
        "SubnetA": subnet("a", 0),
        "SubnetB": subnet("b", 1),
        "Balancer": {
            "Type": f"{ELB}LoadBalancer",
            "Properties": {
                "Name": name,
                "Type": "network",
                "Scheme": scheme,
                "Subnets": [{"Ref": "SubnetA"}, {"Ref": "SubnetB"}],
                "LoadBalancerAttributes": [{"Key": "load_balancing.cross_zone.enabled", "Value": "true"}],
                "Tags": labels,
            },
        },
        "Targets": {
            "Type": f"{ELB}TargetGroup",
            "DependsOn": ["SubnetA", "SubnetB"],  # which have the targets' addresses
            "Properties": {
                "VpcId": {"Ref": "Vpc"},
                "Protocol": "TCP",
                "Port": 443,
                "TargetType": "ip",
                "Targets": [{"Id": target, "Port": 443} for target in targets],
                **group,
            },
        },
        "Listener": {
            "Type": f"{ELB}Listener",
            "Properties": {
                "LoadBalancerArn": {"Ref": "Balancer"},
                "Protocol": "TCP",
                "Port": 443,
                "DefaultActions": [{"Type": "forward", "TargetGroupArn": {"Ref": "Targets"}}],
            },
        },
    }


def elb() -> Any:
    return client("elbv2", REGION)


def addresses(arn: str) -> list[str]:
    answer = elb().describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
    return sorted(each["Target"]["Id"] for each in answer)


def test_they_are_made_and_say_where_they_are(cloud: CloudFormation) -> None:
    sections = {"Outputs": {"Name": {"Value": {"Fn::GetAtt": "Balancer.DNSName"}}}}
    stack = created(cloud, parts("10.0.0.9"), **sections)
    [balancer] = elb().describe_load_balancers()["LoadBalancers"]
    assert stack.outputs["Name"] == balancer["DNSName"]
    assert addresses(stack.resources["Targets"].physical_id) == ["10.0.0.9"]


def test_targets_come_and_go_in_place(cloud: CloudFormation) -> None:
    stack = created(cloud, parts("10.0.0.9", "10.0.0.10"))
    arn = stack.resources["Targets"].physical_id
    updated(cloud, parts("10.0.0.10", "10.0.1.9"))
    assert stack.status == "UPDATE_COMPLETE"
    assert stack.resources["Targets"].physical_id == arn
    assert addresses(arn) == ["10.0.0.10", "10.0.1.9"]


def test_health_checks_attributes_and_tags_change_in_place(cloud: CloudFormation) -> None:
    stack = created(cloud, parts("10.0.0.9"))
    arn = stack.resources["Targets"].physical_id
    attribute = {"Key": "preserve_client_ip.enabled", "Value": "false"}
    updated(
        cloud,
        parts(
            "10.0.0.9",
            tags={"b": "2"},
            HealthCheckProtocol="HTTPS",
            HealthCheckPath="/readyz",
            TargetGroupAttributes=[attribute],
        ),
    )
    [found] = elb().describe_target_groups(TargetGroupArns=[arn])["TargetGroups"]
    assert (found["HealthCheckProtocol"], found["HealthCheckPath"]) == ("HTTPS", "/readyz")
    assert attribute in elb().describe_target_group_attributes(TargetGroupArn=arn)["Attributes"]
    balancer = stack.resources["Balancer"].physical_id
    [answer] = elb().describe_tags(ResourceArns=[balancer])["TagDescriptions"]
    assert answer["Tags"] == [{"Key": "b", "Value": "2"}]


def test_another_scheme_under_the_same_name_is_refused(cloud: CloudFormation) -> None:
    resources = {**parts("10.0.0.9"), "Gateway": GATEWAY}
    resources["Attached"] = {
        "Type": "AWS::EC2::VPCGatewayAttachment",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}},
    }
    stack = created(cloud, resources)
    updated(cloud, {**resources, "Balancer": parts(scheme="internet-facing")["Balancer"]})
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "same name" in reasons(stack, "Balancer", "UPDATE_FAILED")[0]


def test_an_internet_facing_one_wants_an_internet_gateway(cloud: CloudFormation) -> None:
    stack = cloud.wait(cloud.create_stack("s", body=text(parts("10.0.0.9", scheme="internet-facing"))))
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "has no internet gateway" in reasons(stack, "Balancer", "CREATE_FAILED")[0]


def test_a_target_group_has_one_load_balancer(cloud: CloudFormation) -> None:
    second = {key: value for key, value in parts(name="other").items() if key in ("Balancer", "Listener")}
    second["Listener"]["Properties"]["LoadBalancerArn"] = {"Ref": "Balancer2"}
    more = {f"{key}2": value for key, value in second.items()}
    more["Listener2"]["DependsOn"] = "Listener"
    stack = cloud.wait(cloud.create_stack("s", body=text({**parts("10.0.0.9"), **more})))
    assert "more than one" in reasons(stack, "Listener2", "CREATE_FAILED")[0]


def test_they_are_removed_in_order(cloud: CloudFormation) -> None:
    created(cloud, parts("10.0.0.9"))
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"
    assert elb().describe_load_balancers()["LoadBalancers"] == []
    assert elb().describe_target_groups()["TargetGroups"] == []
