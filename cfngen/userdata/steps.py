"""The steps of a boot of masters and nodes, in order, and the tasks of their timers and services.

The boot program also runs the step `identity` before all others and `signal` after them. The modules of the steps up to
`program.fetch` are in the user data; the modules of later steps are in the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from cfngen.cluster.iam.service_accounts import masters_publish_documents
from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.instances import Instances, NodeGroup
from cfngen.userdata import proxy
from cfngen.userdata.pod_network import ROUTE_MAKING_PLUGINS
from cfngen.userdata.source import summary

if TYPE_CHECKING:
    from cfngen.boot.contract import Steps


class Step(NamedTuple):
    """A step of the boot program.

    Attributes:
        function: the function that does the step's work, as `module.function` of `cfngen.boot`.
        is_needed: a function that returns whether the instances of a group need the step, given the cluster and the
            group; by default they do.
    """

    title: str
    function: str
    is_needed: Callable[[Cluster, Instances], bool] = lambda cluster, group: True


def drain_minutes(group: Instances) -> int:
    """Return the minutes that draining an instance of a group may take before the instance is terminated.

    The result is 0 if instances are not drained: masters, or nodes of a group without a time-out.
    """
    return group.drain_timeout if isinstance(group, NodeGroup) else 0


def rebalance_action(group: Instances) -> str:
    """Return what an instance of a group does with its node when EC2 recommends to rebalance the instance."""
    return group.rebalance_recommendation if isinstance(group, NodeGroup) else "ignore"


def _has_several_masters(cluster: Cluster, group: Instances) -> bool:
    return cluster.control_plane.count > 1


def _is_drained(cluster: Cluster, group: Instances) -> bool:
    return drain_minutes(group) > 0


def _acts_on_rebalance_recommendation(cluster: Cluster, group: Instances) -> bool:
    return rebalance_action(group) != "ignore"


def _mounts_volumes(cluster: Cluster, group: Instances) -> bool:
    return isinstance(group, NodeGroup) and any(volume.mount_path for volume in group.volumes)


def _has_backups(cluster: Cluster, group: Instances) -> bool:
    return cluster.etcd.backups.enabled


def _has_pod_identity_webhook(cluster: Cluster, group: Instances) -> bool:
    return cluster.addons.pod_identity_webhook.enabled


def _may_have_had_pod_identity_webhook(cluster: Cluster, group: Instances) -> bool:
    # The issuer stays at least for one deployment more than the webhook, which needs it.
    return cluster.service_account_issuer is not None and not cluster.addons.pod_identity_webhook.enabled


def _pauses_in_updates(cluster: Cluster, group: Instances) -> bool:
    return isinstance(group, NodeGroup) and group.update.pause > 0


def _has_pre_pulled_images(cluster: Cluster, group: Instances) -> bool:
    return isinstance(group, NodeGroup) and bool(group.pre_pulled_images)


def _publishes_issuer_documents(cluster: Cluster, group: Instances) -> bool:
    return masters_publish_documents(cluster)


FETCH_PROGRAM = "program.fetch"
"""The function of the last step of the first stage: it fetches the second stage of the boot program."""

# What masters and nodes have in common.
_FIRST_STEPS = (
    # Pre-boot commands run before everything else, as they may prepare what installing packages needs.
    Step("pre-boot commands", "host.hooks.before", lambda cluster, group: bool(group.pre_boot_commands)),
    Step("packages", "packages.install"),
    Step("program", FETCH_PROGRAM),
    Step("settings", "host.system.settings"),
    Step("proxy", "host.proxy.restart_services", lambda cluster, group: bool(proxy.image_services(cluster, group))),
    Step(
        "pod network", "host.pod_network.prepare", lambda cluster, group: cluster.network.plugin in ROUTE_MAKING_PLUGINS
    ),
)
_STEPS_OF_MACHINES = (
    Step("further files", "host.hooks.files", lambda cluster, group: bool(group.files or group.units)),
    Step("instance storage", "host.disks.disks", lambda cluster, group: group.instance_storage != "none"),
    Step("downloads", "host.system.downloads"),
    Step("services", "host.system.services"),
    Step("further units", "host.hooks.units", lambda cluster, group: bool(group.units)),
)
_LAST_STEP = Step("post-boot commands", "host.hooks.after", lambda cluster, group: bool(group.post_boot_commands))

MASTER_STEPS = (
    *_FIRST_STEPS,
    *_STEPS_OF_MACHINES,
    Step("volume", "master.volume.volume"),
    Step("names", "host.hosts.of_master"),
    Step("authorities", "master.control_plane.prepare"),
    Step("control plane", "master.control_plane.start"),
    # From here on this master is a member of etcd.
    Step("termination", "master.termination.start", _has_several_masters),
    # Before add-ons, whose pods exchange tokens of this issuer for credentials of their roles.
    Step("issuer documents", "master.issuer_documents.publish", _publishes_issuer_documents),
    Step("add-ons", "master.addons.essentials"),
    Step("join information", "master.join_information.publish"),
    Step("certificates", "master.certificates.schedule"),
    Step("approval", "master.csr_approval.start"),
    # After what nodes wait for, as its image has to be pulled. In a rolling update the next master waits for it.
    Step("pod identity webhook", "master.pod_identity_webhook.start", _has_pod_identity_webhook),
    Step("former webhook", "master.former_webhook.remove", _may_have_had_pod_identity_webhook),
    Step("backups", "master.backup.schedule", _has_backups),
    _LAST_STEP,
)
NODE_STEPS = (
    *_FIRST_STEPS,
    # As early as possible, so that the service can complete the lifecycle action if a later step fails.
    Step("draining", "node.drain.start", _is_drained),
    # Before local disks are formatted, which AWS's image has formatted, and before anything is downloaded in vain.
    Step("GPU", "node.gpu.prepare", lambda cluster, group: isinstance(group, NodeGroup) and group.gpu is not None),
    # Before the files, which may be on a volume, and before the local disks, which leave a mounted folder alone.
    Step("further volumes", "host.extra_volumes.mount", _mounts_volumes),
    *_STEPS_OF_MACHINES,
    # The pulls go on while the node waits for the masters and joins.
    Step("pre-pulled images", "node.images.start", _has_pre_pulled_images),
    Step("masters", "node.version_skew.wait"),
    Step("join", "node.membership.join"),
    Step("ready", "node.membership.ready"),
    Step("first pod", "node.first_pod.run"),
    Step("addresses", "node.membership.follow"),
    # Not earlier, so that a new node works before it is cordoned.
    Step("rebalancing", "node.rebalancing.start", _acts_on_rebalance_recommendation),
    _LAST_STEP,
    Step("pause", "node.update_pause.wait", _pauses_in_updates),
)
# The step of each task of a timer or service, by the task's name; `python3 -m boot <task>` runs it.
MASTER_TASKS = {
    "join": Step("join information", "master.join_information.publish"),
    "certificates": Step("certificates", "master.certificates.renew"),
    "approve": Step("approval", "master.csr_approval.approve"),
    "addons": Step("add-ons", "master.addons.apply"),
    "backup": Step("backup", "master.backup.backup", _has_backups),
    "termination": Step("termination", "master.termination.watch", _has_several_masters),
    "issuer": Step("issuer documents", "master.issuer_documents.renew", _publishes_issuer_documents),
    "webhook": Step("pod identity webhook", "master.pod_identity_webhook.apply", _has_pod_identity_webhook),
}
NODE_TASKS = {
    "addresses": Step("addresses", "node.membership.addresses"),
    "drain": Step("drain", "node.drain.watch", _is_drained),
    "images": Step("pre-pulled images", "node.images.pull", _has_pre_pulled_images),
    "rebalance": Step("rebalance", "node.rebalancing.watch", _acts_on_rebalance_recommendation),
}


def steps(cluster: Cluster, group: Instances) -> Steps:
    """Return the steps of a group's boot, in order."""
    role_steps = NODE_STEPS if isinstance(group, NodeGroup) else MASTER_STEPS
    return {step.title: step.function for step in role_steps if step.is_needed(cluster, group)}


def tasks(cluster: Cluster, group: Instances) -> dict[str, Steps]:
    """Return the tasks of a group's timers and services: the steps of each, by the task's name."""
    role_tasks = NODE_TASKS if isinstance(group, NodeGroup) else MASTER_TASKS
    return {name: {step.title: step.function} for name, step in role_tasks.items() if step.is_needed(cluster, group)}


def steps_page(role: str, all_steps: Steps, all_tasks: Mapping[str, Steps], program_sha256: str) -> str:
    """Return a page that lists what the instances of a role do: the steps of a boot by number, and the tasks."""
    numbered = {"identity": "runner.identity", **all_steps, "signal": "runner.signal_success"}
    lines = [
        f"# What instances of the role {role} do",
        "",
        "At each boot, in this order; the log has the same numbers and titles:",
        "",
        "| | step | what it does |",
        "|---|---|---|",
        *(
            f"| {number} | {title} | {summary(function)} |"
            for number, (title, function) in enumerate(numbered.items(), start=1)
        ),
        "",
        "Later, started by systemd timers and services:",
        "",
        "| task | what it does |",
        "|---|---|",
        *(f"| {name} | {summary(function)} |" for name, task in all_tasks.items() for function in task.values()),
        "",
        f"The program that does this has the SHA-256 digest `{program_sha256}`.",
        f"`cfngen userdata {role}` shows it, and `--unpack` writes it as instances get it.",
    ]
    return "\n".join(lines) + "\n"


def first_stage_steps(all_steps: Steps) -> Steps:
    """Return the steps whose modules are in the user data: those up to the one that fetches the second stage."""
    first_steps: Steps = {}
    for title, function in all_steps.items():
        first_steps[title] = function
        if function == FETCH_PROGRAM:
            break
    return first_steps
