"""What instances said on their console while they booted, and why groups could not launch any.

The boot program (`cfngen.boot`) writes every step to the console: `cfngen: [3/11] settings: wrote 9 of 9 files`. EC2
keeps the console's last 64 KB, for about an hour even after the instance is terminated, which is when it is needed:
a rollback terminates what failed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DeniedError, as_aws_error, error_code

SPOKEN_LINES = 10
RAW_LINES = 6
MOST_INSTANCES = 6
"""Instances of a group whose consoles are read."""

_SPOKEN = re.compile(r"(?:^|[\s\]:])cfngen: (?P<text>.*)$")
# journald writes `[   41.093127] python3[702]: text` to the console.
_SPEAKER = re.compile(r"^(?:\[\s*\d+\.\d+\] )?(?P<speaker>[\w.@-]+\[\d+\]): (?P<text>.*)$")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_FIRST_STEP = re.compile(r"^\[1/\d+\] ")
_DONE = re.compile(r"^done in [\d.]+ s")


@dataclass(frozen=True)
class InstanceWords:
    """What an instance said.

    Attributes:
        id: the instance's id.
        state: as EC2 spells it, e.g. `running`; empty if EC2 does not know it any more.
        words: the last words of the boot program in its last attempt, or else of the console.
        failed: whether the boot program says that it failed.
        finished: whether it says that it succeeded.
        note: what to know about the words, or why there are none; may be empty.
        fetch: command that may get the words later; empty if they are here, or if they are lost.
    """

    id: str
    state: str
    words: tuple[str, ...] = ()
    failed: bool = False
    finished: bool = False
    note: str = ""
    fetch: str = ""


def of_group(account: Account, group: str, named: str = "") -> tuple[InstanceWords, ...]:
    """Return what the instances of an Auto Scaling group said, those first that say why they failed.

    Args:
        account: where they are.
        group: the group's name; it may be deleted.
        named: id of the instance that is known to have failed; then only that one.

    Raises:
        ClientError: EC2 does not tell which instances there are.
    """
    found = _instances(account, group)
    ids = [named] if named else list(found)[:MOST_INSTANCES]
    words = [of_instance(account, id_, found.get(id_, "")) for id_ in ids]
    telling = [word for word in words if not word.finished] or words
    return tuple(sorted(telling, key=lambda each: (not each.failed, not each.words)))


def of_instance(account: Account, instance_id: str, state: str = "") -> InstanceWords:
    """Return what an instance said."""
    from botocore.exceptions import BotoCoreError, ClientError

    fetch = f"aws ec2 get-console-output --region {account.region} --output text --latest --instance-id {instance_id}"
    try:
        output = _console(account, instance_id)
    except (ClientError, BotoCoreError) as error:
        if error_code(error) == "InvalidInstanceID.NotFound":
            return InstanceWords(instance_id, state, note="EC2 does not know this instance any more")
        wrong = as_aws_error(error)
        denied = isinstance(wrong, DeniedError)
        return InstanceWords(
            instance_id,
            state,
            note="these credentials may not read consoles (ec2:GetConsoleOutput)" if denied else str(wrong),
            fetch=fetch,
        )
    words = boot_words(output)
    if words:
        failed = any(" FAILED after " in word for word in words)
        return InstanceWords(instance_id, state, words, failed, finished=bool(_DONE.match(words[-1])))
    raw = tuple(_cleaned(line) for line in output.splitlines() if _cleaned(line))[-RAW_LINES:]
    if raw:
        return InstanceWords(
            instance_id, state, raw, note="the boot program has not spoken; the console ends with this"
        )
    return InstanceWords(instance_id, state, note="its console is empty; EC2 may need some minutes more", fetch=fetch)


def boot_words(output: str) -> tuple[str, ...]:
    """Return what the boot program said last: at most its last attempt, of a text that may be all over the console.

    Args:
        output: the console's text.
    """
    said: list[str] = []
    speaker = ""
    for line in map(_cleaned, output.splitlines()):
        by = _SPEAKER.match(line)
        if match := _SPOKEN.search(line):
            said.append(match["text"])
            speaker = by["speaker"] if by else ""
        elif by and said and by["speaker"] == speaker:
            said.append("  " + by["text"])  # a message of several lines
    attempts = [number for number, text in enumerate(said) if _FIRST_STEP.match(text)]
    failures = [number for number, text in enumerate(said) if " FAILED after " in text]
    begin = 0
    if attempts:
        # The program is started again after a failure: an attempt that has just begun says less than the one before.
        begin = attempts[-1]
        if failures and failures[-1] < begin and not any(_DONE.match(text) for text in said[begin:]):
            begin = max((number for number in attempts if number <= failures[-1]), default=0)
            said = said[: attempts[-1]]
    return tuple(said[begin:][-SPOKEN_LINES:])


def launch_failures(account: Account, group: str) -> tuple[str, ...]:
    """Return why a group could not launch instances, each reason once, the newest first.

    Not what a later launch has overcome: the first launches onto a master's network interface fail while the old
    instance still has it, and Auto Scaling tries again until one succeeds.

    Args:
        account: where it is.
        group: the group's name; it may be deleted.

    Raises:
        ClientError: Auto Scaling does not tell.
    """
    answer = account.client("autoscaling").describe_scaling_activities(
        AutoScalingGroupName=group, IncludeDeletedGroups=True, MaxRecords=100
    )
    since = itertools.takewhile(lambda each: not _launched(each), answer["Activities"])  # the newest come first
    failed = (each for each in since if each["StatusCode"] in ("Failed", "Cancelled"))
    return tuple(dict.fromkeys(each["StatusMessage"] for each in failed if each.get("StatusMessage")))


def _launched(activity: Mapping[str, Any]) -> bool:
    """Return whether an activity has launched an instance."""
    return activity["StatusCode"] == "Successful" and str(activity.get("Description", "")).startswith("Launching")


def _instances(account: Account, group: str) -> Mapping[str, str]:
    """Return the states of a group's instances by id, the newest first.

    By the tag that Auto Scaling gives them: a deleted group, and its terminated instances, are found no other way.
    """
    filters = [{"Name": "tag:aws:autoscaling:groupName", "Values": [group]}]
    pages = account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    found = [
        instance for page in pages for reservation in page["Reservations"] for instance in reservation["Instances"]
    ]
    found.sort(key=lambda each: (each["LaunchTime"], each["InstanceId"]), reverse=True)
    return {each["InstanceId"]: each["State"]["Name"] for each in found}


def _console(account: Account, instance_id: str) -> str:
    from botocore.exceptions import ClientError

    def ask(**options: Any) -> str:
        answer = account.client("ec2").get_console_output(InstanceId=instance_id, **options)
        return str(answer.get("Output") or "")

    try:
        # Without `Latest` the text is that of a fixed moment after the launch. Only Nitro has it.
        if text := ask(Latest=True):
            return text
    except ClientError as error:
        if isinstance(as_aws_error(error), DeniedError) or error_code(error) == "InvalidInstanceID.NotFound":
            raise
    return ask()


def _cleaned(line: str) -> str:
    return _CONTROL.sub("", line).rstrip()
