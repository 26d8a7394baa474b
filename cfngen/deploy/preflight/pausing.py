"""What keeps a cluster from being paused or resumed; it is refused before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import PAUSED
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.groups import GroupView
from cfngen.deploy.aws.pause import read_pause
from cfngen.deploy.aws.stacks import StackTree, StackView, find_stack
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, Hint, suggest
from cfngen.text import join_and

if TYPE_CHECKING:
    from cfngen.deploy.aws.pause import PauseState


MAX_TAGS = 50  # of a group ("Tag naming and usage restrictions", Amazon EC2 Auto Scaling User Guide)
LAUNCH_PROCESS, TERMINATE_PROCESS = "Launch", "Terminate"


class GroupMissingError(CfngenError):
    """An Auto Scaling group of the stack does not exist."""

    code = "group-missing"


class CannotPauseError(CfngenError):
    """Something would keep an instance running, or the sizes of a group cannot be kept."""

    code = "cannot-pause"


class CannotResumeError(CfngenError):
    """Something keeps a group from launching its instances, or its sizes are not known."""

    code = "cannot-resume"


def check_groups_exist(groups: Sequence[GroupView], stack: str) -> None:
    """Raise an error if the stack has no group, or one of its groups does not exist.

    Raises:
        GroupMissingError: so it is.
    """
    missing = [group.title for group in groups if group.missing]
    if missing or not any(group.role == "master" for group in groups):
        subject = join_and(missing) if missing else "the masters"
        raise GroupMissingError(
            f"the stack {stack} has no Auto Scaling group for {subject}",
            hint=CommandText(suggest("status"), " shows which resources exist."),
        )


def check_pausable(account: Account, groups: Iterable[GroupView], *, has_begun: bool = False) -> None:
    """Raise an error if an instance of the groups would go on running, or if their sizes cannot be kept.

    Args:
        has_begun: whether sizes have been changed already.

    Raises:
        CannotPauseError: so it is.
    """
    prefix = "the pause is not complete" if has_begun else "nothing was changed"
    for group in groups:
        for problem, hint in _pause_problems(account, group):
            raise CannotPauseError(f"{prefix}: {problem}", hint=hint)


def check_resumable(account: Account, groups: Iterable[GroupView]) -> None:
    """Raise an error if a group could not launch its instances, or if the sizes in its tag are damaged.

    Raises:
        CannotResumeError: so it is.
    """
    for group in groups:
        if group.kept and not group.kept.sizes:
            raise CannotResumeError(f"nothing was changed: {_damaged_tag(group)}", hint=_tag_hint(account, group))
        if LAUNCH_PROCESS in group.suspended:
            raise CannotResumeError(
                f"nothing was changed: the process {LAUNCH_PROCESS} of {group.title} is suspended, so that the group "
                "launches no instance",
                hint=_process_hint(account, group, LAUNCH_PROCESS),
            )


def _pause_problems(account: Account, group: GroupView) -> Iterator[tuple[str, Hint]]:
    """Yield what keeps a group from being paused, with what to do about it."""
    if group.kept and not group.kept.sizes:
        yield _damaged_tag(group), _tag_hint(account, group)
    if not group.kept and group.tag_count >= MAX_TAGS:
        text = f"{group.title} has {group.tag_count} tags, so that its sizes cannot be kept in a tag of the group"
        yield text, f"a group has {MAX_TAGS} tags at most: take one from `tags` of the cluster file, and deploy it."
    if TERMINATE_PROCESS in group.suspended:
        text = (
            f"the process {TERMINATE_PROCESS} of {group.title} is suspended, so that its instances would go on running"
        )
        yield text, _process_hint(account, group, TERMINATE_PROCESS)
    # "its desired capacity is decremented. However, the Auto Scaling group can't terminate the required number of
    # instances until their instance scale in protection settings are disabled" ("Use instance scale-in protection",
    # Amazon EC2 Auto Scaling User Guide).
    if protected := [instance.id for instance in group.instances if instance.protected and not instance.leaving]:
        text = f"instances of {group.title} are protected from scale-in, and would go on running: {join_and(protected)}"
        ids = " ".join(protected)
        command = (
            f"aws autoscaling set-instance-protection --no-protected-from-scale-in --instance-ids {ids} "
            f"--auto-scaling-group-name {group.id} --region {account.region}"
        )
        yield text, f"take the protection from them: {command}"
    # Standby instances do not count towards the desired capacity ("Temporarily remove instances from your Auto Scaling
    # group", Amazon EC2 Auto Scaling User Guide).
    if standby := [instance.id for instance in group.instances if "Standby" in instance.lifecycle]:
        text = f"instances of {group.title} are on standby, and would go on running: {join_and(standby)}"
        command = (
            f"aws autoscaling exit-standby --region {account.region} --auto-scaling-group-name {group.id} "
            f"--instance-ids {' '.join(standby)}"
        )
        yield text, f"put them back into service: {command}"


def _damaged_tag(group: GroupView) -> str:
    text = group.kept.text if group.kept else ""
    return f"the tag {PAUSED} of {group.title} does not say its sizes before the pause: {text!r}"


def _tag_hint(account: Account, group: GroupView) -> str:
    return (
        f"correct it: aws autoscaling create-or-update-tags --region {account.region} --tags "
        f"'ResourceId={group.id},ResourceType=auto-scaling-group,Key={PAUSED},PropagateAtLaunch=false,"
        "Value=min=1 max=1 desired=1 since=2026-01-31T20:00:00Z'"
    )


def _process_hint(account: Account, group: GroupView, process: str) -> str:
    return (
        f"resume it: aws autoscaling resume-processes --region {account.region} --auto-scaling-group-name {group.id} "
        f"--scaling-processes {process}"
    )


class PausedError(CfngenError):
    """The cluster is paused, and the command needs its instances."""

    code = "cluster-paused"

    def __init__(self, cluster: str, pause: PauseState) -> None:
        super().__init__(f"nothing was changed: the cluster {cluster} {pause.text}", hint=pause.hint)
        self.pause = pause


def ensure_stack_not_paused(account: Account, stack_name: str, cluster: Cluster) -> None:
    """Do as `ensure_not_paused`, for the root stack of this name; a stack that does not exist is not paused.

    Raises:
        PausedError: the cluster is paused.
        AwsError: a call failed.
    """
    with translate_aws_errors():
        stack = find_stack(account, stack_name)
    if stack and stack.status.exists:
        ensure_not_paused(account, stack, cluster)


def ensure_not_paused(account: Account, stack: StackView, cluster: Cluster) -> None:
    """Raise an error if a deployed cluster is paused, or a pause or its end was interrupted.

    Raises:
        PausedError: it is.
        AwsError: a call failed.
    """
    pause = read_pause(StackTree(account, stack), cluster)
    if pause:
        raise PausedError(cluster.name, pause)
