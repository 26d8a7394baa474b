"""Incidents, as somebody on call meets them: after the first command only what is advised is typed, and that twice."""

from __future__ import annotations

import inspect
import random
import re
import shlex
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cli
import pytest
import yaml
from deployed_cluster import Place, Shell, operating, place, session
from shell import COMMANDS

from cfngen.cluster.load import parse
from cfngen.sandbox.durations import DURATIONS

ADVISED = re.compile(
    r"`((?:cfngen|aws) [^`]+)`"  # in a sentence
    r"|\bNext: (cfngen .+?)(?:  .*| && .*)?$"
    r"|^ +((?:cfngen|aws) .+?)(?:  .*)?$",  # on a line of its own
    re.MULTILINE,
)
"""Where a command stands that the output advises."""
AGREEING = re.compile(r"confirm in advance with ((?:--[a-z-]+ ?)+)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ROOT = Path(__file__).parents[2]
REGION = "eu-central-1"
STACK = "--stack-name shop-prod"


@dataclass
class OnCall:
    """Somebody on call, who types a command and then follows what is printed.

    Attributes:
        where: the account with the cluster.
        cfngen: runs a command of cfngen.
        printed: what the last command has written.
    """

    where: Place
    cfngen: Shell
    printed: str = ""

    def type(self, line: str, code: int = 0) -> None:
        """Type a command; whatever it asks for consent, it gets as it says.

        Args:
            line: the command, with its program.
            code: the exit code that is expected.
        """
        program, *words = shlex.split(line)
        if program == "aws":
            self.printed = aws_cli.call([program, *words], self.client)
            return
        ran = self.cfngen(*words)
        if asked := AGREEING.search(ran.err):
            ran = self.cfngen(*words, *asked[1].split())
        self.printed = COLOUR.sub("", ran.out + ran.err)
        assert ran.code == code, f"{line}: exit code {ran.code}\n{self.printed}"

    def advice(self, start: str) -> str:
        """Return the first command that the last one advises and that begins with these words."""
        advised = ["".join(groups) for groups in ADVISED.findall(self.printed)]
        line = next((each for each in advised if each.startswith(start)), "")
        assert line, f"nobody advises {start}, but {advised}:\n{self.printed}"
        return line

    def follow(self, start: str, code: int = 0, again: int | None = None) -> None:
        """Type the first advised command with such a start, twice in a row; the first time's output counts.

        Args:
            start: the command's first words.
            code: the exit code.
            again: that of the second time, if it is another one.
        """
        line = self.advice(start)
        self.type(line, code)
        first = self.printed
        self.type(line, code if again is None else again)
        self.printed = first

    def read(self, page: str, title: str) -> None:
        """Read a section of a page that was named, instead of the output."""
        assert page in self.printed, self.printed
        _, _, section = (ROOT / page).read_text("utf-8").partition(f"\n## {title}\n")
        self.printed = section.partition("\n## ")[0]

    def works(self) -> None:
        """Assert that `validate`, typed or advised before, calls the cluster valid, and that it is."""
        assert "The cluster is valid" in self.printed, self.printed
        listed = self.client("ec2").describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["running"]}])
        running = {each["InstanceId"] for reserved in listed["Reservations"] for each in reserved["Instances"]}
        groups = self.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        ready = {
            node["spec"]["providerID"].rpartition("/")[2]
            for node in self.where.kubernetes.state.list("nodes")
            if any((each["type"], each["status"]) == ("Ready", "True") for each in node["status"]["conditions"])
        }
        assert ready == running
        assert len(running) == sum(group["DesiredCapacity"] for group in groups) >= 5

    def instances(self, name: str) -> list[str]:
        """Return the ids of the running instances of a node group or a master."""
        machines = self.where.world.machines
        return [each.id for each in machines.instances.values() if each.name == name and machines.is_running(each)]

    def end_instance(self, name: str) -> None:
        """Let an instance of a node group, or a master, vanish, and its group notice that."""
        self.client("ec2").terminate_instances(InstanceIds=self.instances(name)[:1])
        for _ in range(60):  # what happens outside of CloudFormation is noticed after each sleep
            self.where.clock.advance(10)

    def client(self, service: str) -> Any:
        return session().client(service, region_name=self.where.cluster.region)


FILE = {
    "name": "shop",
    "region": REGION,
    "network": {"subnets": [{"zone": f"{REGION}{letter}"} for letter in "abc"]},
    "api": {"allowedCidrs": ["203.0.113.7/32"]},
    "controlPlane": {"count": 3},
    "nodeGroups": [{"name": "general", "minSize": 2, "maxSize": 4}],
}


@pytest.fixture
def on_call(cfngen: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[OnCall]:
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: ())
    Path("cluster.yaml").write_text(yaml.safe_dump(FILE))
    with place(parse(FILE), durations=DURATIONS) as where:
        operating(where, monkeypatch)
        person = OnCall(where, cfngen)
        person.type(f"cfngen deploy --yes {STACK}")
        yield person


@pytest.mark.drill
def test_a_laptop_is_lost(on_call: OnCall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no cluster file and no local state: all there is are credentials, and the stack's name and region."""
    file = Path("cluster.yaml").read_text()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("HOME", str(elsewhere))
    monkeypatch.setenv("AWS_REGION", REGION)
    on_call.type(f"cfngen deploy {STACK} --parameter ApiAllowedCidr=203.0.113.7/32", code=1)
    plan = on_call.advice("cfngen plan")
    on_call.type(f"cfngen status {STACK}")
    assert on_call.advice("cfngen plan") == plan
    on_call.follow("cfngen etcd list")
    on_call.type(f"cfngen etcd backup {STACK}")
    on_call.type(f"cfngen kubeconfig {STACK}")
    assert "Wrote the context shop " in on_call.printed
    Path("cluster.yaml").write_text(file)
    on_call.type(plan)
    on_call.type(f"cfngen deploy {STACK}")
    on_call.works()


@pytest.mark.drill
def test_etcd_is_set_back_by_an_hour(on_call: OnCall) -> None:
    """An object was deleted by mistake; in the meantime a node has joined."""
    where = on_call.where
    where.clock.sleep(30 * 60)
    where.kubernetes.state.put("configmaps", {"metadata": {"name": "written"}})
    for _ in range(5):
        where.clock.sleep(15 * 60)
    groups = on_call.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    [nodes] = [each["AutoScalingGroupName"] for each in groups if "NodeGroup" in each["AutoScalingGroupName"]]
    on_call.client("autoscaling").set_desired_capacity(AutoScalingGroupName=nodes, DesiredCapacity=3)
    where.clock.sleep(10 * 60)
    where.kubernetes.state.remove("configmaps", "written", "default")
    on_call.type(f"cfngen status {STACK}")
    on_call.follow("cfngen etcd list")
    for _ in range(2):
        on_call.type(f"cfngen etcd restore 1h {STACK}")
        assert "1 node launched since the snapshot is unknown afterwards" in on_call.printed
    assert where.kubernetes.state.get("configmaps", "written", "default")
    on_call.follow("cfngen replace", again=1)
    on_call.follow("cfngen validate")
    on_call.works()


@pytest.mark.drill
def test_a_cluster_is_deleted_and_made_again(on_call: OnCall) -> None:
    """The second deletion, in which somebody looks for what is left, says no less than the first one."""
    where = on_call.where
    where.kubernetes.state.put("configmaps", {"metadata": {"name": "written"}})
    on_call.type(f"cfngen etcd backup {STACK}")
    bucket, _, key = on_call.printed.split(",")[0].removeprefix("s3://").partition("/")
    for _ in range(2):
        on_call.type(f"cfngen delete {STACK}")
    copy = shlex.split(on_call.advice("aws secretsmanager restore-secret"))[4]
    assert f"bucket of etcd's snapshots {bucket}" in " ".join(on_call.printed.split())
    deletion = on_call.printed
    on_call.follow("aws secretsmanager restore-secret")
    authorities = on_call.client("secretsmanager").get_secret_value(SecretId=copy)["SecretString"]
    Path("authorities.json").write_text(authorities)
    Path("cluster.yaml").write_text(yaml.safe_dump({**FILE, "etcd": {"backups": {"bucket": bucket}}}))
    for _ in range(2):
        on_call.type(f"cfngen deploy {STACK}")
    on_call.printed = deletion
    on_call.read("docs/operate/backups.md", "A stack that is made again")
    [stack] = on_call.client("cloudformation").describe_stacks(StackName="shop-prod")["Stacks"]
    arn = next(output["OutputValue"] for output in stack["Outputs"] if output["OutputKey"] == "CaSecretArn")
    on_call.type(on_call.advice("aws secretsmanager put-secret-value").replace("ARN", arn))
    on_call.type(f"cfngen etcd restore {key} {STACK}")
    restored = on_call.printed
    assert where.kubernetes.state.get("configmaps", "written", "default")
    for _ in range(2):
        on_call.printed = restored
        on_call.follow("cfngen replace", again=1)
        restored = restored.replace("cfngen replace", "replaced", 1)
    on_call.follow("cfngen validate")
    on_call.works()


@pytest.mark.drill
def test_a_master_vanishes_and_its_successor_does_not_boot(on_call: OnCall) -> None:
    on_call.where.world.machines.inject_failure("master-b", "downloads", "no route to the mirror", times=1)
    on_call.end_instance("master-b")
    on_call.type(f"cfngen status {STACK}")
    assert "master b" in on_call.printed.lower()
    on_call.type(f"cfngen validate {STACK}", code=2)
    on_call.follow("cfngen replace", again=1)
    on_call.follow("cfngen validate")
    on_call.works()


@pytest.mark.drill
def test_no_node_is_ready(on_call: OnCall) -> None:
    """The stack is up to date, and nothing runs in the cluster."""
    on_call.where.world.machines.inject_failure("general", "join", "the API does not answer", times=2)
    for _ in range(2):
        on_call.end_instance("general")
    on_call.type(f"cfngen deploy {STACK}", code=2)
    for code in (2, 0):  # one node is replaced, then the other
        on_call.follow("cfngen replace", again=1)
        on_call.type(f"cfngen deploy {STACK}", code)
    on_call.works()


@pytest.mark.drill
def test_an_update_of_masters_fails_in_the_middle(on_call: OnCall, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API answers all the time, also while the rollback replaces the master that had been updated."""
    where, machines = on_call.where, on_call.where.world.machines
    machines.inject_failure("master-b", "downloads", "no route to the mirror", times=1)
    sleep = where.clock.sleep

    def look(seconds: float) -> None:
        sleep(seconds)
        assert machines.has_quorum(where.kubernetes)

    monkeypatch.setattr(where.clock, "sleep", look)
    Path("cluster.yaml").write_text(
        yaml.safe_dump({**FILE, "controlPlane": {"count": 3, "instanceType": "m6i.xlarge"}})
    )
    on_call.type(f"cfngen deploy {STACK}", code=1)
    assert "waits up to 5 minutes before it is terminated: etcd has no quorum without it" in " ".join(
        on_call.printed.split()
    )
    on_call.follow("cfngen deploy")
    on_call.type(f"cfngen validate {STACK}")
    on_call.works()


@pytest.mark.drill
def test_a_deployment_is_left_by_ctrl_c(on_call: OnCall) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    def interrupt_soon() -> None:
        clock.meanwhile[clock.sleeps + 3] = interrupt

    clock = on_call.where.clock
    on_call.where.served.faults.after("ExecuteChangeSet", interrupt_soon)
    Path("cluster.yaml").write_text(
        yaml.safe_dump({**FILE, "nodeGroups": [{**FILE["nodeGroups"][0], "instanceType": "m6i.xlarge"}]})
    )
    on_call.type(f"cfngen deploy {STACK}", code=6)
    on_call.follow("cfngen watch")
    on_call.type(f"cfngen validate {STACK}")
    on_call.works()


ENDED = {
    "plan": ("plan --create-bucket", "CreateChangeSet", ""),
    "etcd backup": ("etcd backup", "PutObject", "cfngen etcd list"),
    "replace": ("replace a --yes", "TerminateInstanceInAutoScalingGroup", "cfngen replace a"),
    "etcd restore": ("etcd restore --yes", "TerminateInstanceInAutoScalingGroup", "cfngen etcd restore"),
    "pause": ("pause --yes", "UpdateAutoScalingGroup", "cfngen pause"),
    "resume": ("resume --yes", "UpdateAutoScalingGroup", "cfngen resume"),
    "deploy": ("deploy --yes --on-failure keep", "ExecuteChangeSet", "cfngen watch"),
    "watch": ("", "DescribeStackEvents", "cfngen watch"),
    "rollback": ("rollback --yes", "RollbackStack", "cfngen watch"),
    "delete": ("delete --yes", "DeleteStack", "cfngen delete"),
}
"""Of each command that waits: what is typed, or advised by the command before, the call after which it is ended, and
what it advises."""
ENDED_ELSEWHERE = {"rehearse": "removes all that it has made (test_rehearse_command)"}


def waiting_commands() -> set[str]:
    callbacks = {name: inspect.unwrap(command.callback) for name, command in COMMANDS.items() if command.callback}
    return {name for name, callback in callbacks.items() if "screen(" in inspect.getsource(callback)}


def test_every_command_that_waits_is_ended_once() -> None:
    assert waiting_commands() == ENDED.keys() | ENDED_ELSEWHERE.keys()


@pytest.mark.drill
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_ended_says_what_goes_on(on_call: OnCall, number: signal.Signals) -> None:
    """Whichever command it is, and whatever ends it, what it advises then leads to the end."""
    clock, faults = on_call.where.clock, on_call.where.served.faults

    def end_at_the_next_sleep() -> None:
        clock.meanwhile[clock.sleeps + 1] = lambda: signal.raise_signal(number)

    for name, (typed, call, advised) in ENDED.items():
        if name == "deploy":
            on_call.where.world.cloud.fail("NodeGroupGeneralAutoScalingGroup", "no capacity", during="UPDATE")
            group = {**FILE["nodeGroups"][0], "instanceType": "m6i.xlarge"}
            Path("cluster.yaml").write_text(yaml.safe_dump({**FILE, "nodeGroups": [group]}))
        line = f"cfngen {typed} {STACK}" if typed else on_call.advice(f"cfngen {name}")
        faults.after(call, end_at_the_next_sleep)
        attached = name in ("deploy", "watch", "rollback", "delete")
        on_call.type(line, 143 if number is signal.SIGTERM else 6 if attached else 130)
        assert ("nothing is left half-written" in on_call.printed) == (not advised), on_call.printed
        if name == "watch":
            on_call.follow(advised, code=1)
        elif advised and name != "deploy":
            on_call.follow(advised)
    assert not on_call.where.world.machines.running_ids()


@pytest.mark.drill
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 40))])
def test_nothing_is_said_that_is_not_true(on_call: OnCall, seed: int) -> None:
    """A state by chance: instances that work, do not boot or are gone, groups of other sizes, an update that failed."""
    where, machines, chance = on_call.where, on_call.where.world.machines, random.Random(seed)
    names = ["master-a", "master-b", "master-c", "general"]
    if chance.random() < 0.4:
        machines.inject_failure("general", "downloads", "no route to the mirror", times=1)
        on_call.type(f"cfngen deploy --yes --set nodeGroups.0.instanceType=m6i.xlarge {STACK}", code=1)
    failed = [name for name in names if chance.random() < 0.3]
    for name in failed:
        machines.inject_failure(name, "downloads", "no route to the mirror", times=1)
        on_call.end_instance(name)
    emptied = [name for name in names if name not in failed and chance.random() < 0.15]
    for name in emptied:
        [group] = {each.group for each in machines.instances.values() if each.name == name}
        on_call.client("autoscaling").update_auto_scaling_group(
            AutoScalingGroupName=group, MinSize=0, MaxSize=0, DesiredCapacity=0
        )
    for _ in range(60):
        where.clock.advance(10)
    bad = {*failed, *emptied}
    # Of two masters that go by hand, the first one waits, and leaves the other one a quorum.
    working, has_quorum = 3 - len(bad - {"general"}), machines.has_quorum(next(iter(machines.clusters.values())))

    for command in ("validate", "status", "deploy"):
        ran = on_call.cfngen(*shlex.split(f"{command} {STACK}"))
        said = COLOUR.sub("", ran.out + ran.err)
        if command == "status":
            assert bool(re.search(r"(?m)^ *API +\S+ +ready$", said)) == has_quorum, said
            named = {name for name in bad if re.search(rf"(?i){name.replace('-', ' ')}|node group {name}", said)}
            assert named == bad, (bad, said)
        else:
            assert ("The cluster is valid" in said) == (not bad), (bad, said)
            # Who cannot reach the API of a cluster does not know of it, and is told so.
            is_unknown = "could not determine whether the cluster works" in said
            assert not is_unknown or (command == "deploy" and not has_quorum), (bad, said)
            assert (ran.code == 0) == (not bad or is_unknown), (bad, said)
    larger = f"cfngen plan --create-bucket --set controlPlane.instanceType=m6i.xlarge {STACK}"
    ran = on_call.cfngen(*shlex.split(larger)[1:])
    # A master that works is replaced while two of three work: this costs the quorum.
    assert (ran.code == 5) == (working == 2), (bad, ran.out + ran.err)
