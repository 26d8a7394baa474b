"""A sweep: in which order things are asked to go, how long AWS is waited for, and whose things are not touched."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers, pairs
from aws_descriptions import OWNED, instance, resource, running
from recorded import RefusedError

from cfngen.deploy.aws import kubernetes_made, pod_routes
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.messages.message import Message, Step
from cfngen.deploy.operations.deletion import removal
from cfngen.deploy.operations.deletion.removal import OrphanRemoved
from cfngen.deploy.preflight import stack_checks
from cfngen.deploy.preflight.stack_checks import SameNameClusterError

VPC = Inventory("one", (resource("vpc-1"),), vpc_id="vpc-1", own_vpc=True)


class Groups:
    """Security groups that Kubernetes made, and after how many seconds AWS lets each go."""

    def __init__(self, aws: Answers, **seconds: float) -> None:
        self.aws, self.began = aws, aws.clock.now()
        self.held = {name.replace("_", "-"): after for name, after in seconds.items()}
        self.left = dict(self.held)
        aws.given["ec2:DescribeSecurityGroups"] = self.described
        aws.given["ec2:DeleteSecurityGroup"] = self.deleted

    @property
    def passed(self) -> float:
        return (self.aws.clock.now() - self.began).total_seconds()

    def described(self, sent: dict[str, Any]) -> dict[str, Any]:
        if sent["Filters"][0]["Name"] != "vpc-id":
            return {"SecurityGroups": []}
        return {
            "SecurityGroups": [
                {"GroupId": each, "GroupName": f"name-of-{each}", "Tags": pairs(OWNED), "VpcId": "vpc-1"}
                for each in self.left
            ]
        }

    def deleted(self, sent: dict[str, Any]) -> dict[str, Any]:
        if self.passed < self.held[sent["GroupId"]]:
            raise RefusedError("DependencyViolation")
        del self.left[sent["GroupId"]]
        return {}


def swept(aws: Answers, scope: Inventory = VPC, **more: Any) -> tuple[removal.RemovalResult, list[str]]:
    said: list[Message] = []
    sweep = removal.remove_orphans(aws.account, scope, said.append, **more)
    return sweep, [each.text if isinstance(each, Step) else f"- {each.orphan.id}" for each in said]  # type: ignore[attr-defined]


BEGUN = "deleting the load balancers that Kubernetes created, and their security groups and network interfaces"


def test_where_nothing_is_left_nothing_is_said(aws: Answers) -> None:
    assert swept(aws) == (removal.RemovalResult(), [])
    assert aws.written() == []


def test_what_goes_late_is_waited_for_and_told_once(aws: Answers) -> None:
    groups = Groups(aws, sg_1=0, sg_2=30)
    sweep, said = swept(aws)
    assert [each.id for each in sweep.removed] == ["sg-1", "sg-2"]
    assert sweep.remaining == ()
    assert said == [
        BEGUN,
        "- sg-1",
        "waiting for AWS to release security group name-of-sg-2",
        "- sg-2",
    ]
    assert 30 <= groups.passed < 60


def test_pauses_grow_but_not_for_ever(aws: Answers) -> None:
    groups = Groups(aws, sg_1=100000)
    pauses: list[float] = []
    sleep = aws.clock.sleep
    aws.clock.sleep = lambda seconds: (pauses.append(seconds), sleep(seconds))[1]  # type: ignore[func-returns-value, method-assign]
    try:
        sweep, said = swept(aws)
    finally:
        del aws.clock.sleep  # type: ignore[method-assign]
    assert pauses[0] < pauses[1] < pauses[2]
    assert pauses[-1] == pauses[-2] == max(pauses)
    assert ([each.id for each in sweep.remaining], sweep.removed) == (["sg-1"], ())
    assert 600 <= groups.passed <= 620
    assert said == [BEGUN, "waiting for AWS to release security group name-of-sg-1"]


@pytest.mark.parametrize(("patience", "passed"), [(2.9, 3), (3.0, 3), (3.1, 7.5)])
def test_there_is_one_more_round_as_long_as_patience_lasts(aws: Answers, patience: float, passed: float) -> None:
    """The first pauses are 3 and 4.5 seconds."""
    groups = Groups(aws, sg_1=1000)
    assert [each.id for each in swept(aws, timeout=patience)[0].remaining] == ["sg-1"]
    assert groups.passed == passed


def test_without_patience_there_is_one_round(aws: Answers) -> None:
    groups = Groups(aws, sg_1=0, sg_2=1)
    sweep, said = swept(aws, timeout=0.0)
    assert ([each.id for each in sweep.removed], [each.id for each in sweep.remaining]) == (["sg-1"], ["sg-2"])
    assert (groups.passed, said) == (0, [BEGUN, "- sg-1"])


def test_of_many_that_are_waited_for_three_are_named(aws: Answers) -> None:
    Groups(aws, sg_1=5, sg_2=5, sg_3=5, sg_4=5, sg_5=5)
    names = ", ".join(f"security group name-of-sg-{number}" for number in (1, 2, 3))
    assert f"waiting for AWS to release {names} and 2 more" in swept(aws)[1]


def test_of_three_all_are_named(aws: Answers) -> None:
    Groups(aws, sg_1=5, sg_2=5, sg_3=5)
    [waited] = [text for text in swept(aws)[1] if text.startswith("waiting")]
    assert "more" not in waited


def test_what_is_made_again_while_it_is_removed_is_no_success(aws: Answers) -> None:
    """A controller that still runs makes its load balancer's group anew."""
    groups = Groups(aws, sg_1=0)
    groups.deleted = lambda sent: {}  # type: ignore[method-assign, assignment]
    aws.given["ec2:DeleteSecurityGroup"] = {}
    sweep, said = swept(aws, timeout=10)
    assert (sweep.removed, [each.id for each in sweep.remaining]) == ((), ["sg-1"])
    assert said == [BEGUN, "- sg-1"]


def test_load_balancers_go_before_interfaces_and_those_before_groups(aws: Answers) -> None:
    arn = "arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/api/0123456789abcdef"
    aws.given["elbv2:DescribeTargetGroups"] = {
        "TargetGroups": [{"TargetGroupArn": arn, "TargetGroupName": "api", "VpcId": "vpc-1"}]
    }
    aws.given["elbv2:DescribeTags"] = {"TagDescriptions": [{"ResourceArn": arn, "Tags": pairs(OWNED)}]}
    aws.given["ec2:DescribeNetworkInterfaces"] = {
        "NetworkInterfaces": [{"NetworkInterfaceId": "eni-1", "Status": "available", "TagSet": pairs(OWNED)}]
    }
    Groups(aws, sg_1=0)
    orphans = kubernetes_made.find_orphans(aws.account, VPC)
    assert [each.kind for each in orphans] == ["target group", "network interface", "security group"]
    removal.remove_orphans(aws.account, VPC, lambda message: None, timeout=0)
    assert [name for name, _ in aws.written()] == [
        "elbv2:DeleteTargetGroup",
        "ec2:DeleteNetworkInterface",
        "ec2:DeleteSecurityGroup",
    ]


INSIDE = OrphanedResource("security group", "sg-1", "web", vpc_id="vpc-1")
NOWHERE = OrphanedResource("volume", "vol-1", "data")
EMPTY = Inventory("one", vpc_id="vpc-1")
OTHER = instance("i-9", vpc_id="vpc-9")
SAME = instance("i-9", vpc_id="vpc-1")


@pytest.mark.parametrize(
    ("scope", "found", "machine", "refused"),
    [
        (VPC, INSIDE, OTHER, False),
        (VPC, INSIDE, SAME, False),
        (VPC, NOWHERE, OTHER, True),
        (Inventory("one"), INSIDE, OTHER, True),
        (Inventory("one"), INSIDE, None, False),
        (VPC, NOWHERE, None, False),
        (EMPTY, INSIDE, SAME, True),
        (EMPTY, INSIDE, OTHER, False),
        (Inventory("one", vpc_id="vpc-1", same_name_stacks=("two",)), INSIDE, None, True),
        (Inventory("one", VPC.resources, vpc_id="vpc-1", same_name_stacks=("two",)), INSIDE, None, False),
        (Inventory("one", VPC.resources, vpc_id="vpc-1", same_name_stacks=("two",)), NOWHERE, None, True),
        (Inventory("one", (resource("group-1"),), vpc_id="vpc-1", same_name_stacks=("two",)), INSIDE, None, False),
    ],
)
def test_what_may_be_a_living_namesakes_is_not_touched(
    aws: Answers, scope: Inventory, found: OrphanedResource, machine: dict[str, Any] | None, refused: bool
) -> None:
    aws.given["ec2:DescribeInstances"] = running(*([machine] if machine else []))
    if not refused:
        stack_checks.check_name_conflict(aws.account, scope, [found])
        return
    with pytest.raises(SameNameClusterError, match=r"named one run outside|already exists in the stack two") as error:
        stack_checks.check_name_conflict(aws.account, scope, [found])
    assert "--stack-name" in error.value.hint


def test_where_nothing_is_to_be_removed_nobody_is_asked(aws: Answers) -> None:
    stack_checks.check_name_conflict(aws.account, Inventory("one", same_name_stacks=("two",)), [])
    assert aws.calls == []


def test_living_machines_of_the_name_are_namesakes_and_ones_own_are_not(aws: Answers) -> None:
    states = ("pending", "running", "stopping", "stopped", "shutting-down", "terminated")
    aws.given["ec2:DescribeInstances"] = running(
        *(instance(f"i-{state}", state) for state in states),
        instance("i-own"),
        instance("i-two", **{"kubernetes.io/cluster/two": "owned"}),
        instance("i-shared", **{"kubernetes.io/cluster/one": "shared"}),
    )
    found = kubernetes_made.find_instances_of_same_name(aws.account, Inventory("one", instances={"i-own": "running"}))
    assert found == {f"i-{state}": "vpc-1" for state in states[:4]}
    assert stack_checks.describe_name_conflict(aws.account, Inventory("one", instances={"i-own": "running"})) == (
        "instances of a cluster named one run outside of this stack: i-pending, i-running, i-stopping, i-stopped"
    )
    aws.calls.clear()
    assert stack_checks.describe_name_conflict(aws.account, Inventory("one", same_name_stacks=("a", "b"))) == (
        "the cluster one already exists in the stack a, b"
    )
    assert aws.calls == []


def test_no_namesake_is_no_sentence(aws: Answers) -> None:
    assert stack_checks.describe_name_conflict(aws.account, Inventory("one")) == ""


LENT = Inventory("one", pod_cidr="10.244.0.0/16", route_tables=("rtb-1",), instances={"i-1": "running"})


@pytest.mark.parametrize(
    ("route", "goes"),
    [
        ({"DestinationCidrBlock": "10.244.3.0/24", "InstanceId": "i-1", "State": "active"}, True),
        ({"DestinationCidrBlock": "10.244.3.0/24", "InstanceId": "i-2", "State": "active"}, False),
        ({"DestinationCidrBlock": "10.244.3.0/24", "InstanceId": "i-2", "State": "blackhole"}, True),
        ({"DestinationCidrBlock": "10.244.0.0/16", "InstanceId": "i-1", "State": "active"}, True),
        ({"DestinationCidrBlock": "10.0.0.0/8", "InstanceId": "i-1", "State": "active"}, False),
        ({"DestinationCidrBlock": "10.245.0.0/24", "State": "blackhole"}, False),
        ({"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1", "State": "active"}, False),
        ({"DestinationIpv6CidrBlock": "::/0", "State": "blackhole"}, False),
    ],
)
def test_only_pods_routes_to_the_clusters_machines_or_nowhere_go(
    aws: Answers, route: dict[str, str], goes: bool
) -> None:
    aws.given["ec2:DescribeRouteTables"] = {"RouteTables": [{"RouteTableId": "rtb-1", "Routes": [route]}]}
    cidr = route.get("DestinationCidrBlock", "")
    leftover = OrphanedResource("route", cidr, cidr, where="rtb-1")
    assert pod_routes.find_orphaned_routes(aws.account, LENT) == ((leftover,) if goes else ())
    assert aws.named("ec2:DescribeRouteTables") == [{"Filters": [{"Name": "route-table-id", "Values": ["rtb-1"]}]}]
    said: list[Message] = []
    sweep = removal.remove_pod_routes(aws.account, LENT, said.append)
    assert said == ([OrphanRemoved(leftover)] if goes else [])
    assert (sweep.removed, sweep.remaining) == (((leftover,), (leftover,)) if goes else ((), ()))
    call = ("ec2:DeleteRoute", {"RouteTableId": "rtb-1", "DestinationCidrBlock": cidr})
    assert aws.written() == ([call] if goes else [])


@pytest.mark.parametrize(
    "scope", [Inventory("one", pod_cidr="10.244.0.0/16"), Inventory("one", route_tables=("rtb-1",))]
)
def test_routes_are_not_looked_for_where_there_can_be_none(aws: Answers, scope: Inventory) -> None:
    assert pod_routes.find_orphaned_routes(aws.account, scope) == ()
    assert aws.calls == []


def test_a_route_that_is_gone_already_is_not_told(aws: Answers) -> None:
    aws.given["ec2:DeleteRoute"] = RefusedError("InvalidRoute.NotFound")
    assert removal.delete_pod_routes(aws.account, [OrphanedResource("route", "10.244.3.0/24", "", where="rtb-1")]) == ()
