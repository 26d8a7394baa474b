"""Letting a cluster's nodes go without moving their pods, once the whole cluster goes.

Each node group has a lifecycle hook that holds a terminating instance until its pods have moved. In a deletion there is
nowhere to move them, and a disruption budget would hold each node for all of its `drainTimeout`. "If there are any
outstanding lifecycle actions, they are completed first (... CONTINUE for terminating instances)" (DeleteLifecycleHook,
Amazon EC2 Auto Scaling API Reference): so the hooks are deleted right after CloudFormation has begun, when nobody can
keep the cluster any more, and not before, when an interruption would leave a living cluster that does not drain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cfngen.cluster.names import DRAIN_HOOK
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, error_code, translate_aws_errors
from cfngen.deploy.messages import Notice, Report

_KEPT = ("LifecycleHookName", "AutoScalingGroupName", "LifecycleTransition", "HeartbeatTimeout", "DefaultResult")


class Draining:
    """The draining of a cluster's nodes, on as long as the cluster is to live.

    Args:
        account: where it is.
        groups: names of its Auto Scaling groups.
        report: told of what could not be done; neither is worth failing a deletion for.
    """

    def __init__(self, account: Account, groups: Iterable[str], report: Report) -> None:
        self._account = account
        self._groups = tuple(groups)
        self._report = report
        self._hooks: dict[str, dict[str, Any]] = {}

    def off(self) -> None:
        """Let instances go at once, those that are draining too."""
        try:
            with translate_aws_errors():
                for group in self._groups:
                    self._off(group)
        except AwsError as error:
            text = f"nodes still move their pods before they go, which may take all of their drainTimeout: {error}"
            self._report(Notice(text, error.hint))

    def on(self) -> None:
        """Put the hooks of those groups back that are still there."""
        try:
            with translate_aws_errors():
                for group, hook in list(self._hooks.items()):
                    self._on(group, hook)
                    del self._hooks[group]
        except AwsError as error:
            text = f"nodes are no longer drained before they are terminated: {error}"
            self._report(Notice(text, error.hint or "the next `cfngen delete` ends with the cluster, or tries again."))

    def _off(self, group: str) -> None:
        scaling = self._account.client("autoscaling")
        named = {"AutoScalingGroupName": group, "LifecycleHookNames": [DRAIN_HOOK]}
        for hook in self._of_a_group(scaling.describe_lifecycle_hooks, **named).get("LifecycleHooks", ()):
            self._hooks[group] = {key: hook[key] for key in _KEPT if key in hook}
            self._of_a_group(
                scaling.delete_lifecycle_hook, AutoScalingGroupName=group, LifecycleHookName=hook["LifecycleHookName"]
            )

    def _on(self, group: str, hook: dict[str, Any]) -> None:
        self._of_a_group(self._account.client("autoscaling").put_lifecycle_hook, **hook)

    def _of_a_group(self, call: Any, **arguments: Any) -> dict[str, Any]:
        """Call Auto Scaling about a group; one that has gone is no error, and has nothing."""
        from botocore.exceptions import ClientError

        try:
            return dict(call(**arguments))
        except ClientError as error:
            # The service has no code of its own for a group, or a hook, that does not exist.
            if error_code(error) != "ValidationError":
                raise
        return {}
