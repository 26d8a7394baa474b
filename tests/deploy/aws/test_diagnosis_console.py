"""The boot program's last words, cut out of what a console holds."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import boto3
import pytest
from botocore.stub import Stubber
from recorded import TestClock

from cfngen.boot.runner import run
from cfngen.boot.state import Boot
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.consoles import (
    MAX_BOOT_MESSAGES,
    last_boot_messages,
    read_group_consoles,
    read_instance_console,
    read_launch_failures,
)


def console(*said: str, speaker: str = "python3[702]") -> str:
    """A console on which journald writes what a unit says."""
    return "".join(f"[ {20 + number}.123456] {speaker}: {line}\r\n" for number, line in enumerate(said))


ONE = "cfngen: [1/3] identity: i-1 in us-west-2a, node of kubernetes (0.1 s)"
TWO = "cfngen: [2/3] downloads: fetched 4 of 9 files (12.0 s)"
FAILED = "cfngen: [3/3] join FAILED after 120.0 s: no secret. What to do: look at the master"


def test_words_among_those_of_others():
    noise = "[    0.000000] Linux\n\x1b[0;32m  OK  \x1b[0m] Started cfngen-boot.service - cfngen boot program.\n"
    output = noise + console(ONE) + "[   30.1] IPv6: eth0: link becomes ready\n" + console(TWO, FAILED) + "login: "
    assert last_boot_messages(output) == tuple(line.removeprefix("cfngen: ") for line in (ONE, TWO, FAILED))


def test_words_without_any_prefix():
    assert last_boot_messages(f"{ONE}\n{TWO}\n") == (ONE[8:], TWO[8:])


def test_a_kernel_message_in_front_of_them_on_one_line():
    assert last_boot_messages(f"[ 33.1] audit: backlog [ 33.2] python3[7]: {TWO}\n") == (TWO[8:],)


def test_a_message_of_several_lines_stays_whole():
    output = console(ONE, "cfngen: [2/3] api FAILED after 1.0 s: first", "second line") + console(
        "else", speaker="sshd[9]"
    )
    assert last_boot_messages(output)[-1] == "  second line"


def test_of_several_attempts_the_last():
    assert last_boot_messages(console(ONE, FAILED, ONE, TWO, FAILED)) == (ONE[8:], TWO[8:], FAILED[8:])


def test_an_attempt_that_has_just_begun_says_less_than_the_one_that_failed():
    assert last_boot_messages(console(ONE, TWO, FAILED, ONE)) == (ONE[8:], TWO[8:], FAILED[8:])


def test_an_attempt_that_succeeded_says_more():
    done = "cfngen: done in 61.2 s"
    assert last_boot_messages(console(ONE, FAILED, ONE, TWO, done)) == (ONE[8:], TWO[8:], done[8:])


def test_a_wait_is_told_once_by_its_last_words() -> None:
    waiting = [f"cfngen: waiting for nodes ({number} s): none" for number in range(60, 3000, 60)]
    other = "cfngen: waiting for masters (60 s): none"
    assert last_boot_messages(console(ONE, *waiting, other)) == (ONE[8:], waiting[-1][8:], other[8:])


def test_of_many_words_the_last():
    waiting = [f"cfngen: waiting for node {number} (60 s): none" for number in range(40)]
    assert last_boot_messages(console(ONE, *waiting)) == tuple(line[8:] for line in waiting[-MAX_BOOT_MESSAGES:])


def test_a_console_without_them():
    assert last_boot_messages("[ 0.0] Linux\nKernel panic\n") == ()


def test_what_the_boot_program_really_says_is_understood():
    sys.path.insert(0, str(Path(__file__).parents[2] / "boot"))
    from scripted_machine import ScriptedMachine

    machine = ScriptedMachine()
    said: list[str] = []
    machine.say = lambda text: said.append(f"cfngen: {text}")  # type: ignore[method-assign]

    def broken(machine, boot):
        raise KeyError("nothing")

    config = {"region": "us-west-2", "timeout": 20, "role": "node", "cluster": "k"}
    assert run(machine, Boot(config, {}), {"odd": broken}, is_boot=False) == 1
    words = last_boot_messages(console(*said))
    assert any(" FAILED after " in line for line in words)
    assert "What to do:" in words[-1]


def encoded(output: str) -> str:
    """A console as EC2 sends it."""
    return base64.b64encode(output.encode()).decode()


@pytest.fixture
def account() -> Account:
    session = boto3.Session("AKIAOPERATOROPERATOR", "secret", region_name="us-west-2")
    return Account("123456789012", "us-west-2", "aws", "arn:aws:iam::1:user/me", session, TestClock(), attempts=1)


def test_an_instance_that_is_not_of_the_nitro_system(account: Account):
    with Stubber(account.client("ec2")) as stub:
        stub.add_client_error("get_console_output", "UnsupportedOperation", "This instance type does not support it")
        stub.add_response("get_console_output", {"InstanceId": "i-1", "Output": encoded(console(ONE, FAILED))})
        found = read_instance_console(account, "i-1", "terminated")
    assert found.lines == (ONE[8:], FAILED[8:])
    assert found.failed
    assert found.step == "step 3 of 3 (join): no secret"
    assert (found.note[:27], found.fetch[:26]) == ("EC2 keeps the whole console", "aws ec2 get-console-output")


def test_on_an_instance_that_runs_the_log_is_there(account: Account):
    with Stubber(account.client("ec2")) as stub:
        stub.add_response("get_console_output", {"InstanceId": "i-1", "Output": encoded(console(ONE, FAILED))})
        found = read_instance_console(account, "i-1", "running")
    assert "sudo less /var/log/cfngen.log" in found.note
    assert found.fetch == "aws ssm start-session --region us-west-2 --target i-1"


def test_an_instance_that_ec2_has_forgotten(account: Account):
    with Stubber(account.client("ec2")) as stub:
        stub.add_client_error(
            "get_console_output", "InvalidInstanceID.NotFound", "The instance ID 'i-1' does not exist"
        )
        found = read_instance_console(account, "i-1")
    assert (found.lines, found.fetch) == ((), "")
    assert "no longer lists this instance" in found.note


def test_a_console_on_which_the_boot_program_is_silent(account: Account):
    with Stubber(account.client("ec2")) as stub:
        stub.add_response(
            "get_console_output", {"InstanceId": "i-1", "Output": encoded("Linux\n\nKernel panic - not syncing\n")}
        )
        found = read_instance_console(account, "i-1")
    assert found.lines == ("Linux", "Kernel panic - not syncing")
    assert "has written nothing" in found.note


def test_of_a_group_those_first_that_say_why(account: Account):
    instances = [
        {"InstanceId": f"i-{number}", "State": {"Name": "running"}, "LaunchTime": f"2026-01-01T00:0{number}:00Z"}
        for number in (1, 2, 3)
    ]
    said = {"i-3": console(ONE, "cfngen: done in 60.0 s"), "i-2": console(ONE), "i-1": console(ONE, FAILED)}
    with Stubber(account.client("ec2")) as stub:
        stub.add_response("describe_instances", {"Reservations": [{"Instances": instances}]})
        for each, output in said.items():
            stub.add_response("get_console_output", {"InstanceId": each, "Output": encoded(output)})
        found = read_group_consoles(account, "k8s-Group-1")
    assert [each.id for each in found] == ["i-1", "i-2"]


def test_a_task_that_fails_later_does_not_make_a_finished_boot_a_failed_one():
    later = "cfngen-addons: [2/2] add-ons FAILED after 3.0 s: no chart. What to do: see the log"
    assert (
        last_boot_messages(console(ONE, "cfngen: done in 9.1 s") + console(later, speaker="python3[9]"))[-1]
        == "done in 9.1 s"
    )


def test_launches_that_failed_before_one_that_did_not(account: Account):
    """While a master is replaced, the first launches find its network interface in use."""
    activity = {"AutoScalingGroupName": "g", "Cause": "a difference", "StartTime": "2026-01-01T00:00:00Z"}
    made = {
        **activity,
        "ActivityId": "1",
        "StatusCode": "Successful",
        "Description": "Launching a new EC2 instance: i-1",
    }
    gone = {**activity, "ActivityId": "2", "StatusCode": "Successful", "Description": "Terminating EC2 instance: i-0"}
    failed = {**activity, "ActivityId": "3", "StatusCode": "Failed", "StatusMessage": "Interface: [eni-1] in use."}
    for newest_first, reasons in (
        ([made, failed, failed], ()),
        ([failed, made, failed], ("Interface: [eni-1] in use.",)),
        ([gone, failed], ("Interface: [eni-1] in use.",)),
    ):
        with Stubber(account.client("autoscaling")) as stub:
            stub.add_response("describe_scaling_activities", {"Activities": newest_first})
            assert read_launch_failures(account, "g") == reasons
