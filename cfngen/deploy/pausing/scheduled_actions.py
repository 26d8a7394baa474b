"""Scheduled actions of Auto Scaling, with which somebody changes the sizes of a group at certain times."""

from __future__ import annotations

from collections.abc import Iterable

from cfngen.deploy.account import Account
from cfngen.deploy.inspection.machines import GroupView
from cfngen.deploy.messages.message import Notice, Report
from cfngen.text import join_and


def report_scheduled_actions(account: Account, groups: Iterable[GroupView], report: Report) -> None:
    """Report the groups with scheduled actions, which would give a paused group sizes again.

    Args:
        account: the AWS account.
        groups: the Auto Scaling groups of the cluster.
        report: receives a notice for each of them.
    """
    groups_by_id = {group.id: group for group in groups}
    names_by_group: dict[str, list[str]] = {}
    for page in account.client("autoscaling").get_paginator("describe_scheduled_actions").paginate():
        for action in page["ScheduledUpdateGroupActions"]:
            if action["AutoScalingGroupName"] in groups_by_id:
                names_by_group.setdefault(action["AutoScalingGroupName"], []).append(action["ScheduledActionName"])
    for group_id, names in sorted(names_by_group.items()):
        text = f"{groups_by_id[group_id].title} has scheduled actions, which change its sizes also during the pause"
        report(Notice(f"{text}: {join_and(sorted(names))}", "delete them, or let them do nothing while it is paused."))
