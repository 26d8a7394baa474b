"""Boots under way: how long ago an instance was launched, where its boot is, and what a silent API waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.consoles import BOOT_SECONDS, MAX_INSTANCES, ConsoleExcerpt, read_instance_console
from cfngen.deploy.aws.groups import GroupView, InstanceView
from cfngen.hints import CommandText, Hint, SuggestedCommand
from cfngen.text import join_and, minutes_text, pluralize

_LONGEST_BOOT_SECONDS = 2 * BOOT_SECONDS  # after which an instance does not count as booting any more
_WAIT_FOR_CLUSTER = SuggestedCommand("validate cluster", (("--wait", "15m"),))


@dataclass(frozen=True)
class Boots:
    """What is known of the boots of instances that are not Nodes yet.

    Attributes:
        now: the time; None if nothing was read.
        consoles: the ends of their console outputs, by instance id.
    """

    now: datetime | None = None
    consoles: Mapping[str, ConsoleExcerpt] = field(default_factory=dict)
    region: str = ""

    def console_hint(self, instance: InstanceView) -> str:
        """Return where the boot log of an instance is: the command that shows it."""
        command = f"aws ec2 get-console-output --latest --output text --region {self.region} --instance-id"
        return f"its boot log: {command} {instance.id}"

    def describe(self, instance: InstanceView) -> str:
        """Return when an instance was launched, how long a boot takes, and where it is; empty if nothing is known."""
        console = self.consoles.get(instance.id)
        usual = f", and a boot usually takes {minutes_text(BOOT_SECONDS)}"
        launched = f"launched {self._age_text(instance)} ago{usual}" if self._age_seconds(instance) else ""
        return "; ".join(filter(None, (launched, console.step if console else "")))

    def advise(self, instance: InstanceView, otherwise: Hint) -> Hint:
        """Return what to do about an instance that is not a Node: replace it, wait, or `otherwise`."""
        if self.has_failed(instance):
            replacing = CommandText(SuggestedCommand(f"replace {instance.id}"), " launches another one")
            return CommandText(replacing, "; the boot program itself tries again every minute.")
        return CommandText(_WAIT_FOR_CLUSTER, " waits for it.") if self.is_under_way(instance) else otherwise

    def has_failed(self, instance: InstanceView) -> bool:
        """Return whether the boot program reports a failure."""
        return instance.id in self.consoles and self.consoles[instance.id].failed

    def is_under_way(self, instance: InstanceView) -> bool:
        """Return whether an instance was launched so recently that it may still boot."""
        console = self.consoles.get(instance.id)
        has_ended = console is not None and (console.failed or console.finished)
        return 0 < self._age_seconds(instance) <= _LONGEST_BOOT_SECONDS and not has_ended

    def explain_silence(self, groups: Iterable[GroupView], quorum: int) -> Hint:
        """Return why the API of the masters in these groups may be silent; empty if they seem to work.

        Args:
            quorum: how many members etcd needs.
        """
        masters = [group for group in groups if group.role == "master"]
        reasons, failed = [], []
        for group in masters:
            instance = next((instance for instance in group.instances if not instance.leaving), None)
            if instance is None:
                reasons.append(f"{group.title} has no instance")
            elif self.has_failed(instance):
                reasons.append(f"{group.title} ({instance.id}) failed to boot: {self.consoles[instance.id].step}")
                failed.append(instance)
            elif self.is_under_way(instance):
                reasons.append(f"{group.title} was launched {self._age_text(instance)} ago")
        if not reasons:
            return ""
        needs = f"etcd needs {quorum} of {pluralize(len(masters), 'member')} before the API answers"
        text = f"{join_and(reasons)}; a boot usually takes {minutes_text(BOOT_SECONDS)}, and {needs}: "
        if failed:
            return CommandText(text, SuggestedCommand(f"replace {failed[0].id}"), " launches another one.")
        return CommandText(text, _WAIT_FOR_CLUSTER, " waits for that.")

    def _age_seconds(self, instance: InstanceView) -> float:
        return (self.now - instance.launched).total_seconds() if self.now and instance.launched else 0.0

    def _age_text(self, instance: InstanceView) -> str:
        return minutes_text(self._age_seconds(instance))


def advise_unready_node(reason: str, otherwise: Hint) -> Hint:
    """Return what to do about a Node that is not Ready for a reason: install a network plug-in, or `otherwise`."""
    if "NetworkPluginNotReady" not in reason:
        return otherwise
    return (
        "no network plug-in runs on it: kubectl get pods -A -o wide; if network.plugin is none, install one, or list "
        "its chart in addons.charts"
    )


def read_boots(account: Account, groups: Iterable[GroupView], node_ids: Iterable[str] | None) -> Boots:
    """Read the consoles of instances that are not Nodes; of masters only, if the Nodes are not known (None)."""
    known_ids = set(node_ids or ())
    instances = [
        instance
        for group in groups
        if group.role == "master" or (group.role == "node" and node_ids is not None)
        for instance in group.instances
        if not instance.leaving and instance.id not in known_ids and instance.state in ("pending", "running")
    ]
    consoles = {
        instance.id: read_instance_console(account, instance.id, instance.state)
        for instance in instances[:MAX_INSTANCES]
    }
    return Boots(account.clock.now(), consoles, account.region)
