"""The sandbox as a process: started, found, asked by ordinary clients, stopped. Everything stays on loopback."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError
from sandboxed import NODES, golden

from cfngen.cli.input.existing_parts import existing_parts
from cfngen.cluster.load import parse
from cfngen.sandbox.cloudformation.simulation import SIMULATION_START
from cfngen.sandbox.process import running as process
from cfngen.sandbox.process.control_api import SandboxClock, SandboxGoneError, SandboxState, request_report
from cfngen.sandbox.process.status import LastSandbox, read_last_sandbox, write_last_sandbox
from cfngen.templates import generate

pytestmark = pytest.mark.drill

TINY = {"Resources": {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}}}
FAST = 600.0
ENDED = ("CREATE_COMPLETE", "CREATE_FAILED", "ROLLBACK_COMPLETE")


def environ(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(folder), "AWS_PROFILE": "of-the-caller", "HTTP_PROXY": "http://[::1]:9"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[process.RunningSandbox]:
    own = environ(tmp_path_factory.mktemp("state"))
    try:
        started = process.start(own, speed=FAST)
        body = {document.name: document.body for document in generate(golden("default"))}["standalone"]
        s3 = started.session("us-west-2").client("s3")
        s3.create_bucket(Bucket="newcomer", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
        s3.put_object(Bucket="newcomer", Key="one/standalone.json", Body=json.dumps(body).encode())
        yield started
    finally:
        process.stop(own)


def finished(running: process.RunningSandbox, name: str) -> str:
    """The status in which a stack ends."""
    clock, cloudformation = running.clock(), running.session("us-west-2").client("cloudformation")
    while True:
        status = str(cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
        if status in ENDED:
            return status
        clock.sleep(30)


def create(session: boto3.Session, name: str) -> None:
    """Begin to create the default cluster, as an operator does."""
    session.client("cloudformation").create_stack(
        StackName=name,
        TemplateURL="https://newcomer.s3.us-west-2.amazonaws.com/one/standalone.json",
        Parameters=[{"ParameterKey": "ApiAllowedCidr", "ParameterValue": "203.0.113.7/32"}],
        Capabilities=["CAPABILITY_IAM"],
    )


def fill(running: process.RunningSandbox) -> None:
    """Make a stack, and wait until the sandbox has written that down."""
    running.session("eu-central-1").client("cloudformation").create_stack(
        StackName="tiny", TemplateBody=json.dumps(TINY)
    )
    clock = running.clock()
    while not (last := read_last_sandbox(running.file)) or not last.stacks:
        clock.sleep(2)


def test_a_cluster_is_created_by_ordinary_clients(running: process.RunningSandbox) -> None:
    session, clock, begin = running.session("us-west-2"), running.clock(), running.clock().now()
    create(session, "k8s")
    assert finished(running, "k8s") == "CREATE_COMPLETE"
    assert running.fault == ""
    assert timedelta(minutes=2) < clock.now() - begin < timedelta(hours=1)
    [stack] = session.client("cloudformation").describe_stacks(StackName="k8s")["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    assert list(running.kubernetes) == [outputs["ApiEndpoint"]]
    assert running.kubernetes[outputs["ApiEndpoint"]].startswith("https://127.0.0.1:")
    assert begin <= stack["CreationTime"] <= clock.now()
    assert running.inject_failure("us-west-2", NODES, "services", "such a group is there")
    assert running.inject_failure("us-west-2", "master", "volume", "", times=2)
    shown = process.status(environ(running.file.parents[1]))
    assert [(fault.group, fault.step, fault.message, fault.times) for fault in shown.faults] == [
        (NODES, "services", "such a group is there", 0),
        ("master", "volume", "", 2),
    ]
    assert [(stack.name, stack.region, stack.status, sorted(stack.groups)) for stack in shown.stacks] == [
        ("k8s", "us-west-2", "CREATE_COMPLETE", ["master-a", "nodes"])
    ]
    assert shown.stacks[0].api == running.kubernetes[outputs["ApiEndpoint"]]
    assert (shown.running, shown.process, shown.speed, shown.defect) == (True, running.pid, FAST, "")
    assert shown.age > 120
    assert shown.started
    running.remove_faults("us-west-2")
    assert process.status(environ(running.file.parents[1])).faults == ()
    ec2 = session.client("ec2")
    groups = ec2.describe_instances()["Reservations"]
    consoles = [
        ec2.get_console_output(InstanceId=instance["InstanceId"])["Output"]
        for group in groups
        for instance in group["Instances"]
    ]
    assert len(consoles) == 5
    assert all("cfngen: done in" in console for console in consoles)


def test_instances_fail_as_they_are_told_to(running: process.RunningSandbox) -> None:
    session = running.session("us-west-2")
    assert not running.inject_failure("us-west-2", "Nope", "downloads", "nobody hears of it")
    running.inject_failure("us-west-2", "nodes", "downloads", "no way to the mirror", hint="look at the route table")
    create(session, "second")
    assert running.remove_faults("eu-central-1") == []
    assert finished(running, "second") == "ROLLBACK_COMPLETE"
    assert running.remove_faults() == ["us-west-2"]
    ec2 = session.client("ec2")
    consoles = [
        ec2.get_console_output(InstanceId=instance["InstanceId"]).get("Output", "")
        for group in ec2.describe_instances()["Reservations"]
        for instance in group["Instances"]
        if instance["State"]["Name"] == "terminated"
    ]
    assert any("no way to the mirror. What to do: look at the route table" in console for console in consoles)


def test_only_who_knows_the_token_is_believed(running: process.RunningSandbox) -> None:
    with pytest.raises(SandboxGoneError, match="another program answers"):
        request_report(SandboxState(running.endpoint, running.pid, "of another", FAST))


def test_each_region_is_its_own(running: process.RunningSandbox) -> None:
    frankfurt = running.session("eu-central-1").client("cloudformation")
    frankfurt.create_stack(StackName="tiny", TemplateBody=json.dumps(TINY))
    assert [stack["StackName"] for stack in frankfurt.describe_stacks()["Stacks"]] == ["tiny"]
    with pytest.raises(ClientError, match="tiny does not exist"):
        running.session("us-west-2").client("cloudformation").describe_stacks(StackName="tiny")


def test_what_a_cluster_file_names_is_made(running: process.RunningSandbox) -> None:
    """In any region: GovCloud has instance types there, too."""
    region = "us-gov-west-1"
    vpc = {"id": "vpc-0000000a", "cidr": "10.20.0.0/16"}
    subnet = {"zone": f"{region}a", "id": "subnet-0000000a", "cidr": "10.20.0.0/20"}
    groups = {"masters": "sg-0000000a", "nodes": "sg-0000000a"}
    network = {"vpc": vpc, "subnets": [subnet], "routeTable": "rtb-0000000a", "securityGroups": groups}
    made = running.make_existing_parts(region, existing_parts(parse({"network": network}), "one"))
    assert sorted(made) == ["rtb-0000000a", "sg-0000000a", "subnet-0000000a", "vpc-0000000a"]
    ec2 = running.session(region).client("ec2")
    assert ec2.describe_vpcs(VpcIds=["vpc-0000000a"])["Vpcs"][0]["CidrBlock"] == "10.20.0.0/16"
    offered = ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["t3.medium"]}]
    )["InstanceTypeOfferings"]
    assert {offering["Location"] for offering in offered} == {f"{region}{letter}" for letter in "abc"}


def test_the_same_sandbox_is_found_again(running: process.RunningSandbox) -> None:
    own = environ(running.file.parents[1])
    assert process.find_running_sandbox(own) == running
    assert process.start(own) == running
    assert stat.S_IMODE(running.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(running.log.stat().st_mode) == 0o600
    assert running.endpoint.startswith("http://127.0.0.1:")


def test_clients_ignore_the_callers_settings(running: process.RunningSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "missing")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    identity = running.session("us-west-2").client("sts").get_caller_identity()
    assert identity["Account"] == "123456789012"


def test_policies_that_aws_manages_are_there(running: process.RunningSandbox) -> None:
    iam = running.session("us-west-2").client("iam")
    arn = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    assert iam.get_policy(PolicyArn=arn)["Policy"]["PolicyName"] == "AmazonSSMManagedInstanceCore"


def test_the_clock_goes_by_the_sandbox_and_never_back(running: process.RunningSandbox) -> None:
    real, waited = [100.0], []
    clock = SandboxClock(running.state, monotonic=lambda: real[0], wait=waited.append)
    first = clock.now()
    assert first >= SIMULATION_START
    real[0] += 0.5
    assert clock.now() - first == timedelta(seconds=0.5 * FAST)
    real[0] += 3600
    assert clock.now() >= first + timedelta(seconds=0.5 * FAST)
    clock.sleep(60)
    assert waited == [pytest.approx(60 / FAST)]


def test_a_sandbox_ends_when_it_is_stopped_or_nobody_asks_it(tmp_path: Path) -> None:
    own = environ(tmp_path)
    try:
        first = process.start(own)
        fill(first)
        assert process.stop(own)
        assert process.find_running_sandbox(own) is None
        assert not process.stop(own)
        last = process.lost_sandbox(own)
        assert last
        assert (last.end, last.stacks) == ("stopped", ("tiny in eu-central-1",))
        with pytest.raises(SandboxGoneError, match="does not answer"):
            first.clock().now()
        second = process.start(own, idle=2.0)
        assert second.state.token != first.state.token
        assert process.lost_sandbox(own) is None
        fill(second)
        os.waitpid(second.pid, 0)
        assert process.find_running_sandbox(own) is None
        assert not second.file.exists()
        with pytest.raises(process.SandboxEndedError, match="because it was idle") as caught:
            process.start(own)
        assert str(caught.value).endswith("its stacks are lost: tiny in eu-central-1")
        assert "`cfngen sandbox start` starts a new sandbox" in caught.value.hint
        shown = process.status(own)
        assert (shown.running, shown.lost) == (False, ("tiny in eu-central-1",))
    finally:
        process.stop(own)


@pytest.mark.parametrize("end", ["", "idle"], ids=["killed", "idle"])
def test_only_who_begins_anew_gets_an_empty_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    own = environ(tmp_path)
    file = process.state_file(own)
    file.parent.mkdir()
    monkeypatch.setattr(process, "_spawn_server", lambda *_: pytest.fail("a sandbox was started"))
    write_last_sandbox(file, LastSandbox("old", ("k8s in us-west-2",), end))
    with pytest.raises(process.SandboxEndedError, match="its stacks are lost: k8s in us-west-2"):
        process.start(own)
    assert not process.stop(own)
    for spawned in (lambda: process.start(own), lambda: process.start(own, accept_lost_stacks=True)):
        with pytest.raises(pytest.fail.Exception, match="was started"):
            spawned()
    write_last_sandbox(file, LastSandbox("old", (), end))
    with pytest.raises(pytest.fail.Exception, match="was started"):
        process.start(own)


@pytest.mark.parametrize("pid", [os.getpid(), 2**22 + 1], ids=["of another program", "of nobody"])
def test_a_state_file_that_a_dead_sandbox_left_is_recognised(
    running: process.RunningSandbox, tmp_path: Path, pid: int
) -> None:
    own = environ(tmp_path)
    file = process.state_file(own)
    file.parent.mkdir()
    # Its number now belongs to nobody or to another process, and its port to another sandbox.
    file.write_text(json.dumps({"endpoint": running.endpoint, "pid": pid, "token": "other", "speed": 1.0}))
    assert process.find_running_sandbox(own) is None
    assert not process.stop(own)
    assert process.find_running_sandbox(environ(running.file.parents[1])) == running


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_state_file_that_is_none_is_ignored(tmp_path: Path, text: str) -> None:
    file = process.state_file(environ(tmp_path))
    file.parent.mkdir()
    file.write_text(text)
    assert process.find_running_sandbox(environ(tmp_path)) is None


def test_a_sandbox_that_cannot_start_shows_the_end_of_its_log(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text("import sys; sys.exit('no room left on the mars')")
    own = {**environ(tmp_path), "PYTHONPATH": str(broken)}
    with pytest.raises(process.SandboxStartError, match="no room left on the mars") as caught:
        process.start(own)
    assert "sandbox.log" in caught.value.hint
    assert process.find_running_sandbox(own) is None


def test_what_to_install_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "find_spec", lambda name: None if name == "flask" else object())
    with pytest.raises(process.SandboxMissingError, match="flask") as caught:
        process.start(environ(tmp_path))
    for tool in ("pip install", "pipx install --force", "uv tool install --force"):
        assert f"{tool} '.[sandbox]'" in caught.value.hint


@pytest.mark.parametrize(
    ("given", "folder"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home/one"}, "/state/cfngen"),
        ({"HOME": "/home/one"}, "/home/one/.local/state/cfngen"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/one"}, "/home/one/.local/state/cfngen"),
    ],
)
def test_where_the_state_file_is(given: dict[str, str], folder: str) -> None:
    assert process.state_file(given) == Path(folder) / "sandbox.json"


def test_a_session_never_leaves_the_sandbox(running: process.RunningSandbox) -> None:
    session = running.session("us-west-2")
    for service in ("cloudformation", "s3", "secretsmanager", "autoscaling", "service-quotas"):
        assert session.client(service, region_name="us-west-2").meta.endpoint_url == running.endpoint
    assert isinstance(session, boto3.Session)
