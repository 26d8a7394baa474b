"""`cfngen status`: one screen, with what is unknown said to be."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from aws_cli import call
from deployed import STACK
from deployed_cluster import Command, Place, session
from shell import Shell

from cfngen.cli.render.status import status_lines
from cfngen.deploy.aws.drift import Difference, Drift, DriftedResource
from cfngen.deploy.aws.launched_versions import StaleGroup
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.status.cluster_status import ApiState, Expiry, Unknown, next_command
from cfngen.deploy.status.derived_status import read_status

NODES = "NodeGroupNodesAutoScalingGroup"


def under(text: str, heading: str) -> list[str]:
    """The lines under a heading."""
    _, _, rest = text.partition(f"\n{heading}\n")
    return rest.split("\n\n")[0].splitlines()


def test_one_screen_says_it_all(run: Command, where: Place) -> None:
    ran = run("status")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("kubernetes  us-west-2, account 123456789012\n")
    assert re.search(r"^Stack +k8s  CREATE_COMPLETE for .* \(the last creation succeeded\)$", ran.out, re.MULTILINE)
    assert "termination protection is off" in ran.out
    assert re.search(r"^API +https://[0-9.]+  ready$", ran.out, re.MULTILINE)
    assert "1.36.3 in the cluster file, 1.36.3 running; 5 nodes with 1.36.3" in ran.out
    header, master = under(ran.out, "Masters")
    assert header.split()[:5] == ["SLOT", "INSTANCE", "LIFECYCLE", "STATE", "NODE"]
    [instance] = where.instances("MasterAAutoScalingGroup")
    assert master.split()[:6] == ["a", instance, "InService", "running", "Ready", "us-west-2a"]
    assert under(ran.out, "Node groups")[1].split() == ["nodes", "4", "4", "4", "4-4", "t3.medium", "0"]
    assert "20 GiB gp3" in under(ran.out, "Data volumes")[1]
    assert [line.split("  ")[1].strip() for line in under(ran.out, "Valid until")] == [
        "certificate authority",
        "API server's certificate",
        "join token",
    ]
    assert "unknown" not in ran.out
    assert "Next:" not in ran.out


def test_a_program_gets_the_same(run: Command) -> None:
    printed = json.loads(run("status", "-o", "json").out)
    assert (printed["type"], printed["stack"]["status"], printed["api"]["version"]) == (
        "status",
        "CREATE_COMPLETE",
        "1.36.3",
    )
    assert printed["nodeGroups"][0]["inService"] == 4
    assert printed["nextCommand"] == ""


def test_no_stack_says_what_to_do(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cfngen.templates.generate", lambda cluster: pytest.fail("nothing is compared with templates"))
    ran = run("status", stack="nothing")
    assert ran.code == 0
    assert "Stack       nothing does not exist" in ran.out
    assert ran.out.endswith("Next: cfngen deploy --defaults --stack-name nothing\n")


def test_a_missing_permission_is_said_where_it_matters(run: Command, where: Place) -> None:
    where.served.faults.deny("secretsmanager:GetSecretValue")
    ran = run("status")
    where.served.faults.clear()
    assert ran.code == 0
    assert "unknown: arn:aws:" in ran.out
    assert "hint: get secretsmanager:GetSecretValue" in ran.out
    assert "unknown" in under(ran.out, "Masters")[1]
    assert under(ran.out, "Node groups")[1].split()[:4] == ["nodes", "4", "4", "unknown"]
    assert ran.out.endswith(f"Next: cfngen validate cluster --defaults --stack-name {STACK}\n")


def test_drift_is_asked_for(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    differences = (Difference("/MaxSize", "4", "9", "NOT_EQUAL"),)
    group = DriftedResource(
        "k8s-Nodes",
        "Group",
        "asg-1",
        "AWS::AutoScaling::AutoScalingGroup",
        "MODIFIED",
        differences,
        ("aws autoscaling …",),
    )
    gone = DriftedResource("k8s-Vpc", "Route", "rtb-1|0.0.0.0/0", "AWS::EC2::Route", "DELETED")
    found = Drift((group, gone), {"k8s-Iam": "no permission"})
    monkeypatch.setattr("cfngen.deploy.aws.drift.detect_drift", lambda account, stacks, cluster: found)
    ran = run("status", "--drift")
    assert "CloudFormation is comparing the resources with the templates" in ran.err
    assert under(ran.out, "Drift") == [
        "  k8s-Nodes/Group  MODIFIED  asg-1",
        "    /MaxSize: 9 (template: 4)",
        "    as in the template again:",
        "      aws autoscaling …",
        "  k8s-Vpc/Route  DELETED  rtb-1|0.0.0.0/0",
        "    no single command puts it back",
        "  k8s-Iam: unknown: no permission",
    ]
    monkeypatch.setattr("cfngen.deploy.aws.drift.detect_drift", lambda account, stacks, cluster: Drift((), {}))
    assert under(run("status", "--drift").out, "Drift") == ["  none: every resource matches its template"]


class Hand:
    """Somebody who changes resources of the cluster in the console."""

    def __init__(self, where: Place) -> None:
        self.client = lambda service: session().client(service, where.cluster.region)
        tree = [resource for stack in where.world.cloud.stacks() for resource in stack.resources.values()]
        self.ids = {resource.logical_id: resource.physical_id for resource in tree if resource.exists}

    def change(self) -> Iterator[str]:
        """Change something; yield the line that `status --drift` then has for it, from its path on."""
        ec2, autoscaling = self.client("ec2"), self.client("autoscaling")
        master, nodes = self.ids["MasterAAutoScalingGroup"], self.ids[NODES]
        launch_template = self.ids["NodeGroupNodesLaunchTemplate"]
        version = ec2.create_launch_template_version(
            LaunchTemplateId=launch_template, SourceVersion="1", LaunchTemplateData={"InstanceType": "m5.large"}
        )["LaunchTemplateVersion"]["VersionNumber"]
        autoscaling.update_auto_scaling_group(
            AutoScalingGroupName=nodes,
            MaxSize=9,
            LaunchTemplate={"LaunchTemplateId": launch_template, "Version": str(version)},
        )
        yield "/MaxSize: 9 (template: 4)"
        yield f"/LaunchTemplate/Version: {version} (template: 1)"
        tag = {"ResourceId": master, "ResourceType": "auto-scaling-group", "PropagateAtLaunch": True}
        autoscaling.create_or_update_tags(Tags=[{**tag, "Key": "Name", "Value": "it's mine"}])
        yield "it's mine (template: kubernetes-master-a)"
        ec2.create_tags(Resources=[self.ids["Vpc"]], Tags=[{"Key": "team", "Value": "b"}])
        yield '{"Key": "team", "Value": "b"} (template: nothing)'
        table = self.ids["RouteTable"]
        ec2.delete_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")
        yield f"DELETED  {table}|0.0.0.0/0"
        group = self.ids["MasterSecurityGroup"]
        rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "203.0.113.9/32"}]}
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
        yield "/SecurityGroupIngress: tcp 22 from 203.0.113.9/32 (template: nothing)"
        rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])
        [from_nodes] = [each for each in rules["SecurityGroupRules"] if each.get("FromPort") == 443
                     and "ReferencedGroupInfo" in each]  # fmt: skip
        ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=[from_nodes["SecurityGroupRuleId"]])
        yield "/MasterApiFromNodes  DELETED"


def test_what_was_changed_by_hand_is_put_back_by_the_commands_of_drift(run: Command, where: Place) -> None:
    hand = Hand(where)
    for _ in range(2):
        lines = list(hand.change())
        drift = under(run("status", "--drift").out, "Drift")
        assert [line for line in lines if not any(line in each for each in drift)] == []
        assert not any("no single command" in line for line in drift)
        commands = [line.strip() for line in drift if line.strip().startswith("aws ")]
        assert len(commands) == len(lines)
        for command in commands:
            call(shlex.split(command), hand.client)
        after = run("status", "--drift").out
        assert under(after, "Drift") == ["  none: every resource matches its template"]
        assert "Left behind" not in after
    assert run("validate", "cluster").code == 0


def test_sizes_that_were_changed_by_hand_are_put_back_by_the_advice(run: Command, where: Place) -> None:
    hand = Hand(where)
    hand.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=hand.ids[NODES], MinSize=3, MaxSize=5)
    ran = run("validate", "cluster", "-o", "json")
    [hint] = [each["hint"] for each in json.loads(ran.out)["problems"] if each["area"] == "size"]
    command = shlex.split(hint.partition(": ")[2])
    assert command[command.index("--region") + 1] == where.cluster.region
    call(command, hand.client)
    assert run("validate", "cluster").code == 0


def test_drift_leaves_out_what_controllers_change(run: Command, where: Place) -> None:
    hand = Hand(where)
    ec2 = hand.client("ec2")
    node_group = hand.ids["NodeSecurityGroup"]
    balancer = ec2.create_security_group(GroupName="k8s-elb-a", Description="x", VpcId=hand.ids["Vpc"])["GroupId"]
    ec2.create_tags(Resources=[balancer], Tags=[{"Key": "kubernetes.io/cluster/kubernetes", "Value": "owned"}])
    by_controllers = [
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": balancer}]},
        {"IpProtocol": "tcp", "FromPort": 30080, "ToPort": 30080,
         "IpRanges": [{"CidrIp": "0.0.0.0/0", "Description": "kubernetes.io/rule/nlb/client=a"}]},
    ]  # fmt: skip
    ec2.authorize_security_group_ingress(GroupId=node_group, IpPermissions=by_controllers)
    try:
        assert under(run("status", "--drift").out, "Drift") == ["  none: every resource matches its template"]
    finally:
        ec2.revoke_security_group_ingress(GroupId=node_group, IpPermissions=by_controllers)
        ec2.delete_security_group(GroupId=balancer)


def test_what_ends_soon_stands_out(where: Place) -> None:
    status = read_status(where.account, where.name, where.cluster, find_url_override=where.override)
    now = status.time
    ends = (
        Expiry("certificate authority", now + timedelta(days=400)),
        Expiry("API server's certificate", now + timedelta(days=20)),
        Expiry("join token", now - timedelta(hours=1)),
        Expiry("join token", now + timedelta(hours=1)),
    )
    lines = [str(line) for line in status_lines(replace(status, certificates=ends))]
    assert any(line.endswith("UTC, in 1 year") for line in lines)
    assert any("\x1b[31m" in line and "in 20 days" in line for line in lines)
    assert any("\x1b[31m" in line and "UTC, ended" in line for line in lines)
    # On a narrow screen it is wrapped.
    assert "UTC, in 1 hour; the masters renew it before" in " ".join(" ".join(lines).split())


def test_what_is_not_well_is_named(where: Place) -> None:
    status = read_status(where.account, where.name, where.cluster, find_url_override=where.override)
    [master], [group] = status.masters, status.node_groups
    old = datetime(2024, 1, 1, tzinfo=UTC)
    ill = replace(
        status,
        api=ApiState("1.36.3", ready=False, failing=("etcd",)),
        masters=(
            replace(master, ready=False, current=False, image_created=old),
            replace(master, slot="b", instance=""),
        ),
        node_groups=(replace(group, outdated=2),),
        volumes=Unknown("not allowed"),
        kubelets=Unknown("no"),
    )
    text = "\n".join(map(str, status_lines(ill)))
    assert "not ready (etcd)" in text
    assert "not Ready" in text
    assert "2 years old, outdated" in text
    assert "none" in text
    assert "not allowed" in text
    assert "no nodes" in text


def test_what_an_operation_has_left_undone_is_named(where: Place) -> None:
    """No stack policies after a creation that was left, and a group that a forced rollback has skipped."""
    status = read_status(where.account, where.name, where.cluster, find_url_override=where.override)
    assert status.stale_groups is None
    behind = StaleGroup(NODES, "asg-1", "lt-1", "2", "3", "NodesProgram0123", "", unbootable=True)
    stack = replace(status.stack, without_policy=("k8s", "k8s-MasterStack-1"))
    text = "\n".join(map(str, status_lines(replace(status, stack=stack, stale_groups=(behind,)))))
    assert "without a stack policy: k8s, k8s-MasterStack-1; `cfngen deploy` sets it" in text
    [line] = under(text, "\x1b[1mLeft behind\x1b[0m")
    assert f"{NODES} launches from version 2 of the launch template lt-1, where the stack has version 3" in line
    assert "NodesProgram0123, no longer exists, and new instances cannot boot" in line


def test_groups_left_behind_are_for_deploy() -> None:
    suggested = next_command(StackStatus("UPDATE_ROLLBACK_COMPLETE"), healthy=False, stale_groups=True)
    assert str(suggested) == "cfngen deploy"


@pytest.fixture(scope="module")
def widely() -> dict[str, str]:
    """What each command prints on a wide screen."""
    return {}


@pytest.mark.parametrize("width", [60, 80, 110, 160])
@pytest.mark.parametrize(
    "command",
    ["status", "validate cluster", "events", "plan", "etcd list", "templates --check", "config", "config --egress",
     "config --addresses", "check network", "version"],
)  # fmt: skip
def test_a_narrow_screen_tears_nothing_apart(
    run: Command, cfngen: Shell, widely: dict[str, str], command: str, width: int
) -> None:
    """Lines are as wide as the screen at most, but for words that are wider; each word of a wide screen is there."""
    shell = cfngen if command.startswith(("templates", "config", "version")) else run
    name, *options = command.split()
    options += ["--defaults"] if shell is cfngen and name != "version" else []
    if command not in widely:
        widely[command] = shell(name, *options, COLUMNS="1000").out
    wide, narrow = widely[command], shell(name, *options, COLUMNS=str(width)).out
    for line in narrow.splitlines():
        *_, last_cell = re.sub(r"`[^`]*`", "command", line.strip()).split("  ")
        is_command = line.startswith("Next: ")
        assert len(line) <= width or len(last_cell.split()) == 1 or is_command, line
    ids = re.findall(r"\b(?:i|vol|ami|subnet|vpc)-[0-9a-f]+|\S+Stack/\S+", wide)
    assert sorted(ids) == sorted(re.findall(r"\b(?:i|vol|ami|subnet|vpc)-[0-9a-f]+|\S+Stack/\S+", narrow))
