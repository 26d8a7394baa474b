"""The console output of instances that boot, and why an Auto Scaling group could not launch instances.

The boot program (`cfngen.boot`) writes every step to the console: `cfngen: [3/11] settings: wrote 9 of 9 files`. EC2
keeps the last 64 KB of the console output, for about an hour after the instance is terminated. That matters because a
rollback terminates the instances that failed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import DeniedError, as_aws_error, error_code
from cfngen.deploy.aws.groups import describe_instances
from cfngen.deploy.aws.types import AwsObject

BOOT_SECONDS = 300
"""Seconds until an instance has booted, installed Kubernetes and sent its signal, as a rule."""
MAX_BOOT_MESSAGES = 10
MAX_RAW_LINES = 6
MAX_INSTANCES = 6
"""Maximum number of instances of a group whose console output is read, the newest first."""

_LOG = "/var/log/cfngen.log"  # on the instance: what the boot program says, and the output of every command
_CONSOLE_IS_KEPT = "EC2 keeps the whole console for about an hour after an instance ends:"
_BOOT_MESSAGE = re.compile(r"(?:^|[\s\]:])cfngen: (?P<text>.*)$")
# journald writes `[   41.093127] python3[702]: text` to the console.
_JOURNAL_LINE = re.compile(r"^(?:\[\s*\d+\.\d+\] )?(?P<process>[\w.@-]+\[\d+\]): (?P<text>.*)$")
_CONTROL_CHARACTERS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_FIRST_STEP = re.compile(r"^\[1/\d+\] ")
_FAILED_STEP = re.compile(
    r"^\[(?P<number>\d+)/(?P<total>\d+)\] (?P<name>.+?) FAILED after [\d.]+ s: (?P<cause>.*?)\.?(?: What to do: .*)?$"
)
_FINISHED_STEP = re.compile(r"^\[(?P<number>\d+)/(?P<total>\d+)\] (?P<name>[^:]+): ")
_WAITING = re.compile(r"^(waiting for .+?) \(\d+ s\): ")
_FAILURE = " FAILED after "
_SUCCESS_MESSAGE = re.compile(r"^done in [\d.]+ s")


@dataclass(frozen=True)
class ConsoleExcerpt:
    """The end of an instance's console output.

    Attributes:
        id: the instance's id.
        state: the instance state in EC2, e.g. `running`; empty if EC2 no longer lists the instance.
        lines: the last messages of the boot program's last attempt; the last lines of the console if there are none.
        failed: whether the boot program reports that it failed.
        finished: whether the boot program reports that it succeeded.
        note: a remark about the output, or why there is none; may be empty.
        fetch: command that shows more than `lines`, now or later; empty if there is nothing more.
    """

    id: str
    state: str
    lines: tuple[str, ...] = ()
    failed: bool = False
    finished: bool = False
    note: str = ""
    fetch: str = ""

    @property
    def step(self) -> str:
        """Where the boot is, and what it says there; empty if it has succeeded, or has not said anything.

        A failure is e.g. `step 7 of 14 (downloads): no route to dl.k8s.io`; before one, the last finished step counts.
        """
        if self.finished:
            return ""
        for line in reversed(self.lines):
            if match := _FAILED_STEP.match(line):
                return f"step {match['number']} of {match['total']} ({match['name']}): {match['cause']}"
        for line in reversed(self.lines):
            if match := _FINISHED_STEP.match(line):
                position = f"after step {match['number']} of {match['total']} ({match['name']})"
                return position if line == self.lines[-1] else f"{position}: {self.lines[-1].strip()}"
        return ""

    @property
    def failure(self) -> str:
        """What failed last in the boot, if the boot program reports that it failed; else empty."""
        return next((line for line in reversed(self.lines) if _FAILURE in line), "")


def read_group_consoles(account: Account, group: str, failed_instance_id: str = "") -> tuple[ConsoleExcerpt, ...]:
    """Return the console output of the instances of an Auto Scaling group, instances that failed first.

    Instances that booted successfully are left out if there are others.

    Args:
        group: the Auto Scaling group's name; the group may be deleted.
        failed_instance_id: id of the instance that is known to have failed; then only its console is read.

    Raises:
        ClientError: EC2 refuses to list the instances.
    """
    states = _read_instance_states(account, group)
    ids = [failed_instance_id] if failed_instance_id else list(states)[:MAX_INSTANCES]
    consoles = [read_instance_console(account, instance_id, states.get(instance_id, "")) for instance_id in ids]
    shown_consoles = [console for console in consoles if not console.finished] or consoles
    # False sorts before True: failed instances come first, then instances with output.
    return tuple(sorted(shown_consoles, key=lambda console: (not console.failed, not console.lines)))


def read_instance_console(account: Account, instance_id: str, state: str = "") -> ConsoleExcerpt:
    """Return the end of an instance's console output."""
    from botocore.exceptions import BotoCoreError, ClientError

    fetch = f"aws ec2 get-console-output --region {account.region} --output text --latest --instance-id {instance_id}"
    try:
        output = _read_console(account, instance_id)
    except (ClientError, BotoCoreError) as error:
        if error_code(error) == "InvalidInstanceID.NotFound":
            return ConsoleExcerpt(instance_id, state, note="EC2 no longer lists this instance")
        aws_error = as_aws_error(error)
        is_denied = isinstance(aws_error, DeniedError)
        return ConsoleExcerpt(
            instance_id,
            state,
            note="no permission to read the console output (ec2:GetConsoleOutput)" if is_denied else str(aws_error),
            fetch=fetch,
        )
    if messages := last_boot_messages(output):
        is_running = state in ("running", "pending")
        session = f"aws ssm start-session --region {account.region} --target {instance_id}"
        return ConsoleExcerpt(
            instance_id,
            state,
            lines=messages,
            failed=any(_FAILURE in message for message in messages),
            finished=bool(_SUCCESS_MESSAGE.match(messages[-1])),
            note=f"`sudo less {_LOG}` in a session on it shows the rest:" if is_running else _CONSOLE_IS_KEPT,
            fetch=session if is_running else fetch,
        )
    lines = map(_remove_control_characters, output.splitlines())
    non_empty_lines = tuple(filter(None, lines))
    if non_empty_lines:
        return ConsoleExcerpt(
            instance_id,
            state,
            lines=non_empty_lines[-MAX_RAW_LINES:],
            note="the boot program has written nothing; the console ends with these lines",
        )
    return ConsoleExcerpt(
        instance_id, state, note="its console output is empty; EC2 may need some more minutes", fetch=fetch
    )


def last_boot_messages(output: str) -> tuple[str, ...]:
    """Return the last messages of the boot program's last attempt, or of the failed attempt before it.

    An attempt begins with the message of its first step. The program is restarted after a failure: if the last attempt
    has neither failed nor succeeded yet, the failed one before it says more.

    While a step waits, the boot program logs the reason every minute; only the last one of these messages is returned.

    Other programs write to the console too, so lines of theirs may be between the boot program's messages.
    """
    messages: list[str] = []
    process = ""
    for line in map(_remove_control_characters, output.splitlines()):
        journal_line = _JOURNAL_LINE.match(line)
        if match := _BOOT_MESSAGE.search(line):
            messages.append(match["text"])
            process = journal_line["process"] if journal_line else ""
        elif journal_line and messages and journal_line["process"] == process:
            messages.append("  " + journal_line["text"])  # the program has printed several lines at once
    # Positions in the list of messages.
    attempt_starts = [index for index, message in enumerate(messages) if _FIRST_STEP.match(message)]
    failure_positions = [index for index, message in enumerate(messages) if _FAILURE in message]
    start = 0
    if attempt_starts:
        start = attempt_starts[-1]
        has_failed_before = bool(failure_positions) and failure_positions[-1] < start
        if has_failed_before and not any(map(_SUCCESS_MESSAGE.match, messages[start:])):
            # The console may have lost where that attempt began.
            start = max((position for position in attempt_starts if position <= failure_positions[-1]), default=0)
            messages = messages[: attempt_starts[-1]]
    return tuple(_without_repeated_waits(messages[start:])[-MAX_BOOT_MESSAGES:])


def _without_repeated_waits(messages: list[str]) -> list[str]:
    """Return the messages without those that the next message repeats: the same step still waits for the same thing."""
    kept: list[str] = []
    kept_goal = ""
    for message in messages:
        match = _WAITING.match(message)
        goal = match[1] if match else ""
        if goal and goal == kept_goal:
            kept.pop()
        kept.append(message)
        kept_goal = goal
    return kept


def read_launch_failures(account: Account, group: str) -> tuple[str, ...]:
    """Return why an Auto Scaling group could not launch instances, each reason once, the newest first.

    Failures before the last successful launch do not count: the first launches of a master with its network interface
    fail while the old instance still has the interface, and Auto Scaling retries until one succeeds.

    Args:
        group: the Auto Scaling group's name; the group may be deleted.

    Raises:
        ClientError: Auto Scaling refuses to list the group's activities.
    """
    response = account.client("autoscaling").describe_scaling_activities(
        AutoScalingGroupName=group, IncludeDeletedGroups=True, MaxRecords=100
    )
    # The newest activities come first.
    activities_since_success = itertools.takewhile(
        lambda activity: not _is_successful_launch(activity), response["Activities"]
    )
    failed = (activity for activity in activities_since_success if activity["StatusCode"] in ("Failed", "Cancelled"))
    return tuple(dict.fromkeys(activity["StatusMessage"] for activity in failed if activity.get("StatusMessage")))


def _is_successful_launch(activity: AwsObject) -> bool:
    return activity["StatusCode"] == "Successful" and str(activity.get("Description", "")).startswith("Launching")


def _read_instance_states(account: Account, group: str) -> Mapping[str, str]:
    """Return the states of an Auto Scaling group's instances by instance id, the newest instance first.

    They are found by the tag that Auto Scaling sets: nothing else finds the terminated instances of a deleted group.
    """
    instances = sorted(
        describe_instances(account, {"tag:aws:autoscaling:groupName": [group]}),
        key=lambda instance: (instance["LaunchTime"], instance["InstanceId"]),
        reverse=True,
    )
    return {instance["InstanceId"]: instance.get("State", {}).get("Name", "") for instance in instances}


def _read_console(account: Account, instance_id: str) -> str:
    """Return an instance's console output: the current one, or that from shortly after the launch."""
    from botocore.exceptions import ClientError

    def get_output(**options: bool) -> str:
        response = account.client("ec2").get_console_output(InstanceId=instance_id, **options)
        return str(response.get("Output") or "")

    try:
        # Without `Latest`, EC2 returns the output as it was shortly after the launch. Only Nitro instances support it.
        if text := get_output(Latest=True):
            return text
    except ClientError as error:
        if isinstance(as_aws_error(error), DeniedError) or error_code(error) == "InvalidInstanceID.NotFound":
            raise
    return get_output()


def _remove_control_characters(line: str) -> str:
    return _CONTROL_CHARACTERS.sub("", line).rstrip()
