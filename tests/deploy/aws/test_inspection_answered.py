"""What is read of a cluster's machines, routes and drift, and what is made of answers that lack something."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from answers import DENIED, Answer, Answers, filtered
from recorded import NOW, RefusedError

from cfngen.cluster.load import parse
from cfngen.deploy.aws import drift
from cfngen.deploy.aws.drift import Difference, Drift, DriftedResource
from cfngen.deploy.aws.errors import AwsError, DeniedError
from cfngen.deploy.aws.group_rules import read_ingress_rules
from cfngen.deploy.aws.groups import GroupView, InstanceView, find_groups
from cfngen.deploy.aws.pod_routes import InstanceRoute, find_instance_routes
from cfngen.deploy.aws.stacks import ResourceView, StackView
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.preflight.network import routes as route_tables

GROUP = "AWS::AutoScaling::AutoScalingGroup"


def view(logical_id: str, physical_id: str, kind: str = GROUP, status: str = "CREATE_COMPLETE") -> ResourceView:
    return ResourceView(logical_id, physical_id, kind, status)


def scaling(name: str, *instances: Mapping[str, Any], version: str = "3", **more: Any) -> dict[str, Any]:
    return {
        "AutoScalingGroupName": name,
        "MinSize": 1,
        "MaxSize": 5,
        "DesiredCapacity": 2,
        "DefaultCooldown": 0,
        "AvailabilityZones": [],
        "HealthCheckType": "EC2",
        "CreatedTime": NOW,
        "LaunchTemplate": {"LaunchTemplateId": "lt-0", "Version": version},
        "Instances": list(instances),
        **more,
    }


def member(number: int, zone: str = "us-west-2a", **more: Any) -> dict[str, Any]:
    return {
        "InstanceId": f"i-{number}",
        "AvailabilityZone": zone,
        "LifecycleState": "InService",
        "HealthStatus": "Healthy",
        "LaunchTemplate": {"Version": "3"},
        "ProtectedFromScaleIn": False,
        **more,
    }


def described(number: int) -> dict[str, Any]:
    return {
        "InstanceId": f"i-{number}",
        "InstanceType": "t3.medium",
        "State": {"Name": "running"},
        "PrivateIpAddress": f"10.0.0.{number}",
        "PublicIpAddress": f"203.0.113.{number}",
        "ImageId": "ami-0",
        "LaunchTime": NOW,
    }


class Fleet(Answers):
    """Auto Scaling groups and what EC2 knows of their instances."""

    def __init__(self, *found: Mapping[str, Any], known: tuple[int, ...] = ()) -> None:
        self.known = {f"i-{number}": described(number) for number in known}
        self.found = {group["AutoScalingGroupName"]: group for group in found}
        super().__init__(
            {"autoscaling:DescribeAutoScalingGroups": self._groups, "ec2:DescribeInstances": self._instances}
        )

    def _groups(self, sent: dict[str, Any]) -> Mapping[str, Any]:
        names = sent["AutoScalingGroupNames"]
        # The service answers with fewer than that unless it is asked for more.
        assert len(names) <= 50 < sent["MaxRecords"] <= 100
        return {"AutoScalingGroups": [self.found[name] for name in names if name in self.found]}

    def _instances(self, sent: dict[str, Any]) -> Mapping[str, Any]:
        [chosen] = sent["Filters"]
        assert chosen["Name"] == "instance-id"
        assert 0 < len(chosen["Values"]) <= 200
        return {"Reservations": [{"Instances": [self.known[each]]} for each in chosen["Values"] if each in self.known]}


CLUSTER = parse({"nodeGroups": [{"name": "gpu-large"}]})


def test_masters_and_groups_of_nodes_go_by_their_names() -> None:
    api = Fleet(*(scaling(name) for name in ("one", "two", "three", "four")))
    resources = [
        view("NodeGroupOtherAutoScalingGroup", "one"),
        view("NodeGroupGpuLargeAutoScalingGroup", "two"),
        view("MasterBAutoScalingGroup", "three"),
        view("MasterAAutoScalingGroup", "four"),
        # Neither what is gone, nor what never came about, nor anything else.
        view("NodeGroupOldAutoScalingGroup", "five", status="DELETE_COMPLETE"),
        view("NodeGroupNewAutoScalingGroup", ""),
        view("MasterCLaunchTemplate", "six", "AWS::EC2::LaunchTemplate"),
    ]
    found = find_groups(api.account, CLUSTER, resources)
    assert [(group.role, group.name, group.id, group.title) for group in found] == [
        ("master", "a", "four", "master a"),
        ("master", "b", "three", "master b"),
        ("node", "Other", "one", "node group Other"),
        ("node", "gpu-large", "two", "node group gpu-large"),
    ]
    assert {(group.minimum, group.maximum, group.desired, group.missing) for group in found} == {(1, 5, 2, False)}
    assert find_groups(api.account, CLUSTER, ()) == ()


def test_a_group_that_does_not_exist_is_missing() -> None:
    [group] = find_groups(Fleet().account, CLUSTER, [view("MasterAAutoScalingGroup", "gone")])
    assert group == GroupView("master", "a", "gone", "MasterAAutoScalingGroup", missing=True)


def test_instances_are_told_with_what_ec2_knows_of_them() -> None:
    api = Fleet(
        scaling(
            "nodes",
            member(3, "us-west-2b"),
            member(2, HealthStatus="UNHEALTHY", InstanceType="m5.large"),
            member(1, LifecycleState="Terminating:Wait", LaunchTemplate={"Version": "2"}),
        ),
        known=(2, 3),
    )
    [group] = find_groups(api.account, CLUSTER, [view("NodeGroupNodesAutoScalingGroup", "nodes")])
    known = {"state": "running", "image": "ami-0", "launched": NOW}
    assert group.instances == (
        InstanceView("i-1", "us-west-2a", "Terminating:Wait", current=False),
        InstanceView(
            "i-2", "us-west-2a", "InService", healthy=False, type="m5.large",
            address="10.0.0.2", public_address="203.0.113.2", **known,
        ),
        InstanceView(
            "i-3", "us-west-2b", "InService", type="t3.medium",
            address="10.0.0.3", public_address="203.0.113.3", **known,
        ),
    )  # fmt: skip
    assert [instance.in_service for instance in group.instances] == [False, False, True]
    assert group.in_service == 1


@pytest.mark.parametrize(
    ("lifecycle", "leaving"),
    [("InService", False), ("Pending:Wait", False), ("Terminating", True), ("Terminated", True), ("Detaching", True),
     ("Detached", True), ("Standby", False)],
)  # fmt: skip
def test_who_is_on_the_way_out(lifecycle: str, leaving: bool) -> None:
    instance = InstanceView("i-0", "us-west-2a", lifecycle)
    assert (instance.leaving, instance.in_service) == (leaving, lifecycle == "InService")


@pytest.mark.parametrize(
    ("own", "version", "current"),
    [("3", "3", True), ("2", "3", False), ("", "3", True), ("2", "$Latest", True), ("3", "", True)],
)
def test_which_instances_are_of_the_present_launch_template(own: str, version: str, current: bool) -> None:
    instance = member(1, LaunchTemplate={"Version": own} if own else None)
    api = Fleet(scaling("nodes", {k: v for k, v in instance.items() if v is not None}, version=version))
    if not version:
        del api.found["nodes"]["LaunchTemplate"]  # type: ignore[attr-defined]
    [group] = find_groups(api.account, CLUSTER, [view("NodeGroupNodesAutoScalingGroup", "nodes")])
    assert group.instances[0].current == current


def test_many_groups_and_instances_are_read_in_parts() -> None:
    found = [scaling(f"g{number}", *(member(number * 10 + each) for each in range(5))) for number in range(51)]
    api = Fleet(*found, known=tuple(number * 10 + each for number in range(51) for each in range(5)))
    resources = [view(f"NodeGroupG{number}AutoScalingGroup", f"g{number}") for number in range(51)]
    assert (
        sum(
            each.state == "running"
            for group in find_groups(api.account, CLUSTER, resources)
            for each in group.instances
        )
        == 255
    )
    assert [len(sent["AutoScalingGroupNames"]) for sent in api.named("autoscaling:DescribeAutoScalingGroups")] == [
        50,
        1,
    ]
    assert [len(sent["Filters"][0]["Values"]) for sent in api.named("ec2:DescribeInstances")] == [200, 55]


def test_groups_that_may_not_be_read_are_an_error() -> None:
    with pytest.raises(DeniedError, match="DescribeAutoScalingGroups"):
        find_groups(Answers({}).account, CLUSTER, [view("MasterAAutoScalingGroup", "one")])


STACK = StackView("k8s", "arn", StackStatus("CREATE_COMPLETE"))
TABLE = "AWS::EC2::RouteTable"


def routes(api: Answers, *resources: ResourceView, stack: StackView = STACK, plugin: str = "vpc-routes") -> Any:
    cluster = parse({} if plugin == "vpc-routes" else {"network": {"plugin": plugin}})
    return find_instance_routes(api.account, cluster, stack, resources)


def test_routes_to_living_instances_are_told() -> None:
    pods = {"DestinationCidrBlock": "10.2.1.0/24", "InstanceId": "i-1", "State": "active"}
    table = {
        "RouteTableId": "rtb-1",
        "Routes": [
            pods,
            {**pods, "State": "blackhole"},
            {"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1", "State": "active"},
            {"DestinationIpv6CidrBlock": "::/0", "InstanceId": "i-2", "State": "active"},
        ],
    }
    api = Answers({"ec2:DescribeRouteTables": {"RouteTables": [table]}})
    resources = (
        view("RouteTable", "rtb-1", TABLE),
        view("Old", "rtb-2", TABLE, "DELETE_COMPLETE"),
        view("New", "", TABLE),
        view("Vpc", "vpc-1", "AWS::EC2::VPC"),
    )
    assert routes(api, *resources) == (InstanceRoute("rtb-1", "10.2.1.0/24", "i-1"),)
    assert api.named("ec2:DescribeRouteTables") == [{"Filters": [{"Name": "route-table-id", "Values": ["rtb-1"]}]}]
    given = StackView("k8s", "arn", StackStatus("CREATE_COMPLETE"), parameters={"RouteTableId": "rtb-0"})
    routes(api, *resources, stack=given)
    assert api.named("ec2:DescribeRouteTables")[1]["Filters"][0]["Values"] == ["rtb-0", "rtb-1"]


def test_in_a_private_cluster_the_table_of_public_subnets_has_no_routes_to_pods() -> None:
    api = Answers({"ec2:DescribeRouteTables": {"RouteTables": []}})
    tables = (view("RouteTable", "rtb-1", TABLE), view("PrivateRouteTable", "rtb-2", TABLE))
    find_instance_routes(api.account, parse({"network": {"topology": "private"}}), STACK, tables)
    [asked] = api.named("ec2:DescribeRouteTables")
    assert asked["Filters"][0]["Values"] == ["rtb-2"]


def test_where_there_is_no_table_or_no_route_nothing_is_asked() -> None:
    api = Answers({})
    assert routes(api) == ()
    assert routes(api, view("RouteTable", "rtb-1", TABLE), plugin="cilium") == ()
    assert api.calls == []
    with pytest.raises(AwsError):
        routes(api, view("RouteTable", "rtb-1", TABLE))


def associations(*subnets: str, main: bool = False) -> list[dict[str, Any]]:
    return [*({"SubnetId": subnet, "Main": False} for subnet in subnets), *([{"Main": True}] if main else [])]


def checked(tables: Mapping[str, Any] | RefusedError, values: Mapping[str, str]) -> Answers:
    answer: Answer = tables if isinstance(tables, RefusedError) else {
        "RouteTables": [{"RouteTableId": table, "Associations": found} for table, found in tables.items()]
    }  # fmt: skip
    api = Answers({"ec2:DescribeRouteTables": answer})
    route_tables.check(api.account, CLUSTER, values, lambda message: None)
    return api


VALUES = {"VpcId": "vpc-1", "RouteTableId": "rtb-1", "SubnetAId": "subnet-a", "SubnetBId": "subnet-b"}


@pytest.mark.parametrize(
    ("tables", "elsewhere"),
    [
        ({"rtb-1": associations("subnet-a", "subnet-b")}, {}),
        ({"rtb-1": associations("subnet-a"), "rtb-2": associations("subnet-b")}, {"subnet-b": "rtb-2"}),
        ({"rtb-1": associations("subnet-a", main=True)}, {}),
        ({"rtb-1": associations("subnet-a"), "rtb-2": associations(main=True)}, {"subnet-b": "rtb-2"}),
        ({"rtb-1": associations("subnet-a")}, {"subnet-b": ""}),
        ({}, {}),
        (DENIED, {}),
    ],
)
def test_subnets_must_use_the_table_of_the_pods_routes(tables: Any, elsewhere: Mapping[str, str]) -> None:
    if not elsewhere:
        api = checked(tables, VALUES)
        assert api.named("ec2:DescribeRouteTables") == [{"Filters": [{"Name": "vpc-id", "Values": ["vpc-1"]}]}]
        return
    with pytest.raises(route_tables.RouteTablesError) as raised:
        checked(tables, VALUES)
    assert raised.value.other_tables == elsewhere
    assert "pods' routes would be written to rtb-1, but subnet-b uses " in str(raised.value)


@pytest.mark.parametrize("missing", ["RouteTableId", "SubnetAId"])
def test_without_subnets_or_a_table_of_the_operators_nothing_is_asked(missing: str) -> None:
    values = {name: "" if name == missing else value for name, value in VALUES.items() if name != "SubnetBId"}
    assert checked(DENIED, values).calls == []


def drifts(*resources: Mapping[str, Any], following: str = "") -> dict[str, Any]:
    return {"StackResourceDrifts": list(resources), **({"NextToken": following} if following else {})}


def drifted(logical_id: str, status: str = "MODIFIED", **more: Any) -> dict[str, Any]:
    return {
        "StackId": "arn",
        "LogicalResourceId": logical_id,
        "ResourceType": "AWS::EC2::VPC",
        "StackResourceDriftStatus": status,
        "Timestamp": NOW,
        **more,
    }


class Detecting(Answers):
    """Detections by stack, each of which ends after so many looks."""

    def __init__(self, **looks: int) -> None:
        self.looks = looks
        self.ends: dict[str, dict[str, str]] = {}
        self.pages: dict[str, list[dict[str, Any]]] = {name: [drifts()] for name in looks}
        super().__init__(
            {
                "cloudformation:DetectStackDrift": lambda sent: {"StackDriftDetectionId": f"of-{sent['StackName']}"},
                "cloudformation:DescribeStackDriftDetectionStatus": self._status,
                "cloudformation:DescribeStackResourceDrifts": self._page,
            }
        )

    def _status(self, sent: dict[str, Any]) -> dict[str, Any]:
        name = sent["StackDriftDetectionId"].removeprefix("of-")
        self.looks[name] -= 1
        status = {"DetectionStatus": "DETECTION_IN_PROGRESS"} if self.looks[name] >= 0 else (
            self.ends.get(name, {"DetectionStatus": "DETECTION_COMPLETE"})
        )  # fmt: skip
        return {"StackId": name, "StackDriftDetectionId": "x", "Timestamp": NOW, **status}

    def _page(self, sent: dict[str, Any]) -> dict[str, Any]:
        number = int(sent.get("NextToken", 0))
        return self.pages[sent["StackName"]][number]

    def detect(self, *names: str) -> Drift:
        stacks = {name: f"stack-{name}" for name in names or self.looks}
        return drift.detect_drift(self.account, stacks, "kubernetes")


def test_resources_that_differ_are_told_in_the_order_of_the_stacks() -> None:
    api = Detecting(root=2, child=0)
    difference = {"PropertyPath": "/A", "ExpectedValue": "1", "ActualValue": "2", "DifferenceType": "NOT_EQUAL"}
    api.pages = {
        "root": [drifts(drifted("Z", PhysicalResourceId="z", PropertyDifferences=[difference]), following="1"),
                 drifts(drifted("A", "DELETED"))],
        "child": [drifts(drifted("B"))],
    }  # fmt: skip
    found = api.detect()
    kind = "AWS::EC2::VPC"
    assert found.resources == (
        DriftedResource("stack-root", "A", "", kind, "DELETED"),
        DriftedResource("stack-root", "Z", "z", kind, "MODIFIED", (Difference("/A", "1", "2", "NOT_EQUAL"),)),
        DriftedResource("stack-child", "B", "", kind, "MODIFIED"),
    )
    assert found.failures == {}
    # Two looks of two seconds, at the root alone once the child is done.
    assert api.clock.slept == [2.0, 2.0]
    assert len(api.named("cloudformation:DescribeStackDriftDetectionStatus")) == 4


def test_a_detection_that_fails_or_is_refused_hides_no_other() -> None:
    api = Detecting(root=0, failed=0, silent=0)
    api.ends = {"failed": {"DetectionStatus": "DETECTION_FAILED", "DetectionStatusReason": "no right to see X"},
                "silent": {"DetectionStatus": "DETECTION_FAILED"}}  # fmt: skip
    api.pages = {name: [drifts(drifted("A"))] for name in ("root", "failed", "silent")}
    detect = api.given["cloudformation:DetectStackDrift"]

    def refusing(sent: dict[str, Any]) -> Any:
        if sent["StackName"] == "denied":
            raise DENIED
        return detect(sent)  # type: ignore[operator]

    api.given["cloudformation:DetectStackDrift"] = refusing
    found = api.detect("denied", "root", "failed", "silent")
    assert [resource.stack for resource in found.resources] == ["stack-root", "stack-failed", "stack-silent"]
    assert found.failures.keys() == {"stack-denied", "stack-failed", "stack-silent"}
    assert found.failures["stack-failed"] == "no right to see X"
    assert found.failures["stack-silent"] == "detection failed"
    assert "not allowed to call DetectStackDrift" in found.failures["stack-denied"]


def test_results_that_may_not_be_read_are_a_failure() -> None:
    api = Detecting(root=0)
    api.given["cloudformation:DescribeStackResourceDrifts"] = DENIED
    found = api.detect()
    assert found.resources == ()
    assert "DescribeStackResourceDrifts" in found.failures["stack-root"]


@pytest.mark.parametrize(("looks", "late"), [(4, False), (5, False), (6, True)])
def test_a_detection_that_does_not_end_is_given_up_after_a_quarter_of_an_hour(looks: int, late: bool) -> None:
    """Between the looks pass three minutes here."""
    api = Detecting(root=looks)
    sleep = api.clock.sleep
    api.clock.sleep = lambda seconds: sleep(90 * seconds)  # type: ignore[method-assign]
    api.pages["root"] = [drifts(drifted("A"))]
    found = api.detect()
    assert found.failures == ({"stack-root": "not finished after 15 minutes"} if late else {})
    # What it has found until then is told all the same.
    assert len(found.resources) == 1
    assert api.clock.now() - NOW <= timedelta(minutes=15)


def rule(number: int = 1, **more: Any) -> dict[str, Any]:
    """A rule of a group as EC2 describes it, from a range on a port."""
    described = {"SecurityGroupRuleId": f"sgr-{number}", "GroupId": "sg-1", "IsEgress": False, "IpProtocol": "tcp"}
    return described | {"FromPort": 443, "ToPort": 443, "CidrIpv4": "10.0.0.0/8"} | more


def of_group(group: str) -> dict[str, Any]:
    return {"CidrIpv4": None, "ReferencedGroupInfo": {"GroupId": group}}


@pytest.mark.parametrize(("described", "text"), [
    ({}, "tcp 443 from 10.0.0.0/8"),
    ({"ToPort": 444}, "tcp 443-444 from 10.0.0.0/8"),
    ({"IpProtocol": "-1", "FromPort": -1, "ToPort": -1}, "all traffic from 10.0.0.0/8"),
    ({"IpProtocol": "icmp", "FromPort": -1, "ToPort": -1}, "icmp from 10.0.0.0/8"),
    ({"IpProtocol": "icmp", "FromPort": 3, "ToPort": -1}, "icmp 3--1 from 10.0.0.0/8"),
    ({"CidrIpv4": None, "CidrIpv6": "::/0"}, "tcp 443 from ::/0"),
    ({"CidrIpv4": None, "PrefixListId": "pl-1"}, "tcp 443 from pl-1"),
    (of_group("sg-1"), "tcp 443 from sg-1"),
    (of_group("sg-2"), "tcp 443 from sg-2"),
    (of_group("sg-lb"), None),  # the group of a load balancer that a controller has made
    ({"IsEgress": True}, None),
    ({"Description": "kubernetes.io/rule/nlb/client=a"}, None),
    ({"Description": "elbv2.k8s.aws/targetGroupBinding=shared"}, None),
    ({"Description": "own"}, "tcp 443 from 10.0.0.0/8"),
])  # fmt: skip
def test_rules_but_those_of_controllers_are_read(described: dict[str, Any], text: str | None) -> None:
    rules = [{key: value for key, value in rule(**described).items() if value is not None}]
    rules += [rule(2, Description="kubernetes.io/rule/nlb/mtu"), rule(3, CidrIpv4="192.0.2.0/24")]
    made = {"GroupId": "sg-lb", "Tags": [{"Key": "kubernetes.io/cluster/one", "Value": "owned"}]}
    groups = [made, {"GroupId": "sg-2", "Tags": [{"Key": "kubernetes.io/cluster/one", "Value": "shared"}]}]
    aws = Answers(
        {
            "ec2:DescribeSecurityGroupRules": {"SecurityGroupRules": rules},
            "ec2:DescribeSecurityGroups": {"SecurityGroups": groups},
        }
    )
    found = list(map(str, read_ingress_rules(aws.account, ["sg-1"], "one")))
    assert found == [*([text] if text else []), "tcp 443 from 192.0.2.0/24"]
    asked = [filtered(sent, "group-id") for sent in aws.named("ec2:DescribeSecurityGroups")]
    other = described.get("ReferencedGroupInfo", {}).get("GroupId", "sg-1")
    assert asked == ([] if other == "sg-1" else [[other]])
