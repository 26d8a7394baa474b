"""`cfngen plan`, `deploy`, `watch`, `events` and `rollback`: what a person and a program see, and the exit codes."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from deployed_cluster import Command, Place, Ran, Shell, commanding, place
from json_lines import lines

from cfngen.lint import LintFinding
from cfngen.sandbox.services.quotas import ADDRESSES, INTERNET_GATEWAYS, ON_DEMAND, VPCS

pytestmark = pytest.mark.drill

ALLOWED = ("--parameter", "ApiAllowedCidr=203.0.113.7/32")
LARGER = ("--set", "nodeGroups[0].instanceType=m5.large")
NODES = "NodeGroupNodesAutoScalingGroup"


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    """An account for all tests of this module, which deploy a stack of their own each."""
    with place() as made:
        for quota in (VPCS, ADDRESSES, INTERNET_GATEWAYS, ON_DEMAND):
            made.served.moto_extensions.set_quota(*quota, 1000)
        yield made


@pytest.fixture
def run(where: Place, cfngen: Shell, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command on a stack whose cluster has the stack's name: no two of one name are let into a region."""
    command = commanding(where, cfngen, monkeypatch)

    def named(name: str, *arguments: str, stack: str, **environ: str) -> Ran:
        own = () if any(argument.startswith("name=") for argument in arguments) else ("--set", f"name={stack}")
        return command(name, *arguments, *own, stack=stack, **environ)

    return named


@pytest.fixture(autouse=True)
def findings(monkeypatch: pytest.MonkeyPatch) -> list[LintFinding]:
    """What lint finds: nothing, and at once. It takes seconds for each new cluster, and has tests of its own."""
    found: list[LintFinding] = []
    monkeypatch.setattr("cfngen.lint.lint", lambda documents, **options: tuple(found))
    return found


def deployed(run: Command, stack: str) -> Ran:
    # These tests share an account, and Service Quotas answers for it as for any other.
    return run("deploy", *ALLOWED, "--yes", "--ignore-quotas", stack=stack)


def test_from_the_plan_to_no_change(run: Command) -> None:
    planned = run("plan", *ALLOWED, stack="life")
    assert planned.code == 4
    assert "New cluster in the stack life (us-west-2, account 123456789012)" in planned.out
    assert "Plan: 39 to add in 7 stacks." in planned.out
    assert "\nNext: cfngen deploy --parameter ApiAllowedCidr=203.0.113.7/32 " in planned.out

    created = deployed(run, "life")
    assert created.code == 0, created.err
    assert "life: CREATE_COMPLETE after" in created.out
    assert "Kubernetes API: https://" in created.out
    assert "stack MasterStack" in created.err
    assert created.out.endswith("The cluster is valid.\n")

    again = deployed(run, "life")
    assert (again.code, again.out.splitlines()[-1]) == (0, "The cluster is valid.")
    assert "life is up to date: nothing was changed." in again.out
    assert run("plan", stack="life").code == 0

    events = run("events", stack="life")
    assert "MasterStack/MasterAAutoScalingGroup" in events.out
    assert len(run("events", "--verbose", stack="life").out) > len(events.out)
    assert run("events", "--failures", stack="life").code == 0

    moved = run("plan", "--set", "controlPlane.addresses=[172.20.0.50]", stack="life")
    assert moved.code == 5
    assert "DANGER" in moved.out
    refused = run("deploy", "--yes", "--set", "controlPlane.addresses=[172.20.0.50]", stack="life")
    assert refused.code == 1
    assert "--yes --allow-danger" in refused.err


def test_prices_show_what_a_month_costs_and_what_a_change_adds(run: Command, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        "currency: USD\ndate: 2026-11-01\nregion: us-west-2\nonDemand: {t3.medium: 0.04, m5.large: 0.1}\n"
        "volumes: {gp3: 0.08}\npublicIpv4Address: 0.005\nsecret: 0.4\nkmsKey: 1\n"
    )
    planned = run("plan", *ALLOWED, "--prices", str(prices), stack="priced")
    # 5 instances, 5 addresses for 730 h; 168 GiB; 2 secrets; 1 key.
    assert re.search(r"\n +179\.49 +in total\n", planned.out)

    assert deployed(run, "priced").code == 0
    unchanged = run("plan", "--prices", str(prices), stack="priced")
    assert unchanged.code == 0
    assert re.search(r"\n +179\.49 +\+0\.00 +in total\n", unchanged.out)
    larger = lines(run("plan", *LARGER, "--prices", str(prices), "--output", "json", stack="priced").out)
    [bill] = [line["bill"] for line in larger if line["type"] == "plan"]
    assert (bill["current"], bill["planned"]) == (179.49, round(179.49 + 4 * 730 * 0.06, 2))


def test_a_program_reads_a_deployment(run: Command) -> None:
    shown = lines(run("deploy", *ALLOWED, "--yes", "--output", "json", stack="read").out)
    results = [each for each in shown if each["type"] in ("plan", "finished", "validation")]
    assert [result["type"] for result in results] == ["plan", "finished", "validation"]
    assert (results[1]["status"], results[2]["valid"]) == ("CREATE_COMPLETE", True)
    assert {each["resourceType"] for each in shown if each["type"] == "event"} >= {"AWS::EC2::VPC"}


def test_what_lint_refuses_is_sent_nowhere(run: Command, where: Place, findings: list[LintFinding]) -> None:
    findings.append(LintFinding("E3001", "error", "no such type", ("Resources", "MasterAVolume"), "master", ""))
    before = len(where.served.faults.calls)
    ran = deployed(run, "unsound")
    assert (ran.code, "no such type" in ran.err) == (1, True)
    assert len(where.served.faults.calls) == before


def test_a_cluster_that_does_not_work_is_an_exit_code_of_its_own(
    run: Command, where: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfngen.cli.verification.SETTLING_TIME", timedelta(seconds=30))
    named = ("--yes", "--set", "name=sick")
    assert run("deploy", *ALLOWED, *named, stack="sick").code == 0
    broken = where.world.cluster("sick").state.add_pod("coredns-broken")
    broken["spec"]["nodeSelector"] = {"disk": "of no node"}
    ran = run("deploy", *named, "--set", "nodeGroups[0].maxSize=5", stack="sick")
    assert ran.code == 2
    assert "coredns-broken" in ran.out
    assert run("deploy", *named, "--no-verify", "--set", "nodeGroups[0].maxSize=6", stack="sick").code == 0


def test_without_a_network_plug_in_the_deployment_ends_at_once_and_says_what_is_missing(
    run: Command, where: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cfngen.cli.verification.SETTLING_TIME", timedelta(hours=9))
    begun = where.clock.now()
    ran = run("deploy", *ALLOWED, "--yes", "--set", "name=bare", "--set", "network.plugin=none", stack="bare")
    assert ran.code == 2
    assert where.clock.now() - begun < timedelta(hours=1)
    assert "if network.plugin is none, install one, or list its chart in addons.charts" in " ".join(ran.out.split())


def test_without_a_cluster_file_the_stack_says_which_cluster_it_is(
    run: Command, cfngen: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    prod = ("--set", "name=shop", "--set", "kubernetesVersion=1.35")
    assert run("deploy", *ALLOWED, "--yes", "--ignore-quotas", *prod, stack="lost").code == 0
    for region in ("", "us-west-2"):
        monkeypatch.setenv("AWS_REGION", region)
        status = cfngen("status", "--stack-name", "lost")
        assert status.out.startswith("shop  us-west-2, account 123456789012\n")
        assert re.search(r"1\.35\.\d+ in the stack, 1\.35\.\d+ running", status.out), status.out
    assert status.code == 0
    assert "`cfngen config --deployed --stack-name lost` prints it" in status.err
    another = cfngen("deploy", *ALLOWED, "--yes", "--stack-name", "lost")
    assert (another.code, "the stack lost in us-west-2 has the cluster shop" in another.err) == (1, True)
    assert cfngen("validate", "--stack-name", "lost").code == 0
    kubeconfig = cfngen("kubeconfig", "--print", "--stack-name", "lost")
    assert "current-context: shop" in kubeconfig.out
    assert "there is no snapshot" not in cfngen("etcd", "list", "--stack-name", "lost").out
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    missing = cfngen("status", "--stack-name", "lots")
    assert "in eu-west-1 and us-west-2 no stack lots of a cluster; -f names a cluster file" in missing.err
    assert "cfngen deploy" not in missing.out


def test_what_was_changed_by_hand_is_no_cluster_that_is_up_to_date(run: Command, where: Place) -> None:
    assert deployed(run, "hand").code == 0
    autoscaling = where.account.client("autoscaling")
    groups = {
        group["AutoScalingGroupName"] for group in autoscaling.describe_auto_scaling_groups()["AutoScalingGroups"]
    }
    [nodes] = [group for group in groups if group.startswith("hand-NodeGroupNodes")]
    autoscaling.update_auto_scaling_group(AutoScalingGroupName=nodes, MinSize=0, MaxSize=0, DesiredCapacity=0)
    text = "may have 0 to 0 instances, where the stack says 4 to 4"
    planned = run("plan", stack="hand")
    assert (planned.code, text in planned.err, "No changes" in planned.out) == (0, True, True)
    for command in ("deploy", "watch", "validate"):
        ran = run(command, *(("--yes",) if command == "deploy" else ()), stack="hand")
        assert (ran.code, text in " ".join(ran.out.split())) == (2, True), ran.out
    assert run("deploy", "--yes", "--no-verify", stack="hand").code == 0


@pytest.mark.parametrize(
    ("count", "code", "text"),
    [
        (3, 5, "While master a and master b are replaced, etcd has 1 of 3 members and needs 2, also during a rollback"),
        (5, 4, "etcd keeps its quorum if no other master fails while one is replaced"),
    ],
)
def test_masters_are_not_replaced_unasked_while_one_does_not_work(
    run: Command, where: Place, count: int, code: int, text: str
) -> None:
    name = f"quorum{count}"
    zones = ", ".join(f"{{zone: us-west-2{letter}}}" for letter in "abc")
    masters = ("--set", f"controlPlane.count={count}", "--set", f"network.subnets=[{zones}]")
    assert run("deploy", *ALLOWED, "--yes", "--ignore-quotas", *masters, stack=name).code == 0
    lose_master(where, f"{name}-MasterStack", "MasterCAutoScalingGroup")
    larger = (*masters, "--set", "controlPlane.instanceType=t3.large")
    planned = run("plan", *larger, "--ignore-quotas", stack=name)
    said = " ".join(planned.out.split())
    assert (planned.code, "master c does not work: it has no instance" in said, text in said) == (code, True, True)
    assert "the API stays up while the others work" in said
    # Who may not ask the Kubernetes API still learns what Auto Scaling says.
    where.served.faults.deny("secretsmanager:GetSecretValue")
    assert run("plan", *larger, "--ignore-quotas", stack=name).code == code
    where.served.faults.clear()
    refused = run("deploy", *larger, "--yes", "--ignore-quotas", "--no-verify", stack=name)
    assert (refused.code, "--yes does not confirm what may lose" in refused.err) == (
        (1, True) if code == 5 else (0, False)
    )


def test_a_failed_update_of_masters_says_first_what_is_left_of_them(run: Command, where: Place) -> None:
    zones = ", ".join(f"{{zone: us-west-2{letter}}}" for letter in "abc")
    masters = ("--set", "controlPlane.count=3", "--set", f"network.subnets=[{zones}]", "--ignore-quotas", "--yes")
    assert run("deploy", *ALLOWED, *masters, stack="left").code == 0
    where.world.machines.inject_failure("MasterBAutoScalingGroup", "downloads", "no route", times=1)
    ran = run("deploy", *masters, "--set", "controlPlane.instanceType=t3.large", "--no-verify", stack="left")
    report = ran.out[ran.out.index("The API ") :].splitlines()
    assert report[0].startswith("The API answers; etcd has 3 of 3 members and needs 2.")
    assert re.search(
        r"master b, i-\w+, step \d+ of \d+ \(downloads\): no route", " ".join(" ".join(report[2:4]).split())
    )
    assert "cfngen deploy --on-failure keep --stack-name left" in ran.out


def lose_master(where: Place, stack: str, logical_id: str) -> None:
    """Terminate a master whose group launches no other one."""
    autoscaling = where.account.client("autoscaling")
    [group] = [
        group
        for page in autoscaling.get_paginator("describe_auto_scaling_groups").paginate()
        for group in page["AutoScalingGroups"]
        if group["AutoScalingGroupName"].startswith(stack) and logical_id in group["AutoScalingGroupName"]
    ]
    autoscaling.suspend_processes(AutoScalingGroupName=group["AutoScalingGroupName"], ScalingProcesses=["Launch"])
    autoscaling.terminate_instance_in_auto_scaling_group(
        InstanceId=group["Instances"][0]["InstanceId"], ShouldDecrementDesiredCapacity=False
    )
    where.clock.sleep(600)


def test_an_api_that_cannot_be_reached_from_here_is_only_told(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "cfngen.cli.input.target.Target.kubernetes_override", lambda self, endpoint: "https://127.0.0.1:9"
    )
    ran = deployed(run, "hidden")
    assert ran.code == 0
    assert "could not determine whether the cluster works" in ran.err
    assert "not valid" not in ran.out
    larger = ("--set", "nodeGroups[0].maxSize=9", "--yes", "--output", "json")
    shown = lines(run("deploy", *larger, stack="hidden").out)
    assert (shown[-1]["type"], shown[-1]["valid"]) == ("validation", False)


def test_nobody_to_ask_is_said_before_anything_is_created(run: Command, where: Place) -> None:
    ran = run("deploy", *ALLOWED, "--ignore-quotas", stack="nobody")
    assert ran.code == 1
    assert "standard input is not a terminal: Deploy nobody? (account 123456789012, us-west-2)" in ran.err
    assert "--yes" in ran.err
    assert not [
        stack for stack in where.world.cloud.stacks() if stack.name == "nobody" and stack.status != "DELETE_COMPLETE"
    ]


def test_a_failed_update_says_why_and_what_to_do(run: Command, where: Place) -> None:
    assert deployed(run, "fails").code == 0
    where.world.machines.inject_failure(NODES, "downloads", "no route to dl.k8s.io", times=1)
    failed = run("deploy", "--yes", "--on-failure", "keep", *LARGER, stack="fails")
    assert failed.code == 1
    assert "no route to dl.k8s.io" in failed.out
    assert "cfngen rollback --stack-name fails" in failed.out
    causes = lines(run("events", "--failures", "--output", "json", stack="fails").out)
    assert [cause["cause"]["event"]["logicalId"] for cause in causes] == [NODES]

    back = run("rollback", "--yes", stack="fails")
    assert back.code == 0, back.err
    assert "fails: UPDATE_ROLLBACK_COMPLETE after" in back.out
    assert back.out.endswith("The cluster is valid.\n")
    nothing = run("rollback", "--yes", stack="fails")
    assert nothing.code == 1
    assert "in which there is nothing to roll back" in nothing.err


def test_a_failed_creation_has_a_plan_and_what_deletes_it_needs_a_word_of_its_own(run: Command, where: Place) -> None:
    where.world.cloud.fail("MasterAVolume", "no capacity", times=2)
    deploy = ("deploy", *ALLOWED, "--yes", "--ignore-quotas")
    assert run(*deploy, stack="again").code == 1
    planned = run("plan", *ALLOWED, "--graph", "plan.svg", stack="again")
    assert planned.code == 4
    assert planned.out.startswith("The creation of the stack again failed: it is in ROLLBACK_COMPLETE.\n")
    assert "A deployment asks, deletes the empty stack, and creates the cluster again" in planned.out
    assert "error:" not in planned.err
    assert "no picture is written" in planned.err
    assert lines(run("plan", "--output", "json", stack="again").out)[-1]["type"] == "recreationPlan"

    assert run(*deploy, "--on-failure", "keep", stack="again").code == 1
    unasked = run("rollback", stack="again")
    assert unasked.code == 1
    assert "the creation never succeeded, so rolling back deletes everything" in " ".join(unasked.err.split())
    refused = run("rollback", "--yes", stack="again")
    assert refused.code == 1
    assert "error: --yes does not confirm what may lose data" in refused.err
    assert "; the creation never succeeded, so rolling back deletes everything" in refused.err
    assert refused.err.endswith("or confirm in advance with --yes --allow-danger.\n")
    assert run("rollback", "--yes", "--allow-danger", stack="again").code == 0


def test_being_terminated_says_how_to_attach_again(run: Command, where: Place) -> None:
    where.clock.meanwhile[where.clock.sleeps + 6] = lambda: signal.raise_signal(signal.SIGTERM)
    ran = deployed(run, "terminated")
    assert ran.code == 143
    assert re.search(r"^Next: cfngen watch .*--stack-name terminated ", ran.out, re.MULTILINE)
    assert run("watch", stack="terminated").code == 0


def test_being_terminated_says_what_sets_the_lifted_protection(run: Command, where: Place) -> None:
    assert deployed(run, "ended").code == 0
    master = next(stack for stack in where.world.cloud.stacks() if stack.name.startswith("ended-MasterStack"))
    where.served.faults.after("ExecuteChangeSet", lambda: signal.raise_signal(signal.SIGTERM))
    moved = ("--set", "controlPlane.addresses=[172.20.0.50]")
    ran = run("deploy", "--yes", "--allow-danger", *moved, stack="ended")
    assert ran.code == 143
    assert "the stack policies stay lifted while the update continues" in ran.err
    assert "cfngen watch --stack-name ended" in ran.err
    assert run("watch", stack="ended").code == 0
    assert "AWS::EC2::Volume" in where.world.cloud.stack(master.id).policy


def test_watch_attaches_to_what_is_under_way(run: Command, where: Place) -> None:
    where.served.faults.after("DescribeStackEvents", interrupt, nth=3)
    left = deployed(run, "watched")
    assert left.code == 6
    assert "cfngen watch --stack-name watched" in left.out
    busy = deployed(run, "watched")
    assert busy.code == 6
    assert "another operation is in progress" in busy.err
    assert "started by arn:aws:" in busy.err
    ran = run("watch", stack="watched")
    assert (ran.code, "watched: CREATE_COMPLETE after" in ran.out) == (0, True)


@pytest.mark.parametrize("command", ["watch", "events", "rollback"])
def test_a_stack_that_is_not_there_is_named(run: Command, command: str) -> None:
    ran = run(command, stack="missing")
    assert ran.code == 1
    assert "there is no stack missing in us-west-2" in ran.err


def test_a_stack_of_another_cluster_is_not_touched(run: Command) -> None:
    assert deployed(run, "mine").code == 0
    ran = run("deploy", "--yes", "--set", "name=other", stack="mine")
    assert ran.code == 1
    assert "the stack mine belongs to the cluster mine, not to other" in ran.err


def test_a_second_cluster_of_one_name_is_refused_before_anything_is_uploaded(run: Command, where: Place) -> None:
    assert deployed(run, "first").code == 0
    before = len(where.served.faults.calls)
    for command in ("plan", "deploy"):
        ran = run(command, *ALLOWED, "--set", "name=first", stack="second")
        assert ran.code == 1
        assert "the cluster first already exists in the stack first: a second cluster" in ran.err
        assert "choose another `name`" in ran.err
    assert not [call for call in where.served.faults.calls[before:] if call.operation.startswith(("Put", "Create"))]


@pytest.mark.parametrize("name", ["1st", "a_b", "x" * 91, "ü"])
def test_names_that_cloudformation_or_instances_cannot_use_are_refused(run: Command, name: str) -> None:
    ran = run("plan", *ALLOWED, "--set", "name=sound", stack=name)
    assert ran.code == 1
    assert "is not a valid stack name" in ran.err


def test_parameters_come_from_flags_and_files(run: Command, directory) -> None:
    (directory / "values.yaml").write_text("ApiAllowedCidr: 203.0.113.7/32\nNodeGroupNodesMaxSize: 9\n")
    shown = lines(run("plan", "--parameter-file", "values.yaml", "-o", "json", stack="file").out)
    assert "plan" in [message["type"] for message in shown]
    wrong = run("plan", "--parameter", "ApiAllowedCdir=1.2.3.4/32", stack="file")
    assert wrong.code == 1
    assert "ApiAllowedCidr" in wrong.err
    twice = run("plan", "-p", "A=1", "-p", "A=2", stack="file")
    assert (twice.code, "A is specified twice" in twice.err) == (64, True)


def test_the_wrong_account_is_refused_before_anything_else(run: Command) -> None:
    ran = run("deploy", "--yes", "--account", "999999999999", *ALLOWED, stack="account")
    assert ran.code == 1
    assert "not to 999999999999" in ran.err


@pytest.mark.parametrize(
    "command",
    ["plan", "deploy", "watch", "events", "status", "validate", "kubeconfig", "rollback", "delete", "sandbox"],
)
def test_every_help_has_examples(cfngen: Shell, command: str) -> None:
    ran = cfngen(command, "--help")
    assert ran.code == 0
    assert "Examples:" in ran.out


def interrupt() -> None:
    raise KeyboardInterrupt
