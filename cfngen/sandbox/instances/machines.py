"""The instances of an account: which run, their consoles, the nodes of stopped ones, EC2's notices to Spot ones."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import NamedTuple

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from cfngen.sandbox.cloudformation import CloudFormation, LaunchedInstance, client
from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.instances import user_data
from cfngen.sandbox.instances.boot import BootProgram
from cfngen.sandbox.instances.boot_state import UNTIL_FAULTS_ARE_REMOVED, Boot
from cfngen.sandbox.instances.groups import designates_group, group_name
from cfngen.sandbox.instances.instance import BootFault, Instance, attach_interface, release_interface
from cfngen.sandbox.instances.terminations import delay_termination
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster
from cfngen.sandbox.services import spot_interruptions
from cfngen.sandbox.untyped import JsonObject, MotoModel

# Seconds after an instance has stopped. The controller manager then marks its node not Ready (the default since
# Kubernetes 1.32, kubernetes/kubernetes#126287); later the cloud controller manager, which no longer finds the instance
# in EC2, deletes the node.
NOT_READY_AFTER_SECONDS = 50.0
NODE_REMOVED_AFTER_SECONDS = 60.0
GROUP_TAG = "aws:autoscaling:groupName"
# Seconds until an instance notices its termination (boot/host/lifecycle.py), and those that its drain lasts: estimates.
NOTICE_SECONDS, DRAIN_SECONDS = 5.0, 20.0
RETRY_SECONDS = 60.0  # after which systemd runs a boot program again that has failed


@dataclass(frozen=True)
class Fault:
    """A fault that is injected into the boot of a group's instances, in the form that the control API reports.

    Attributes:
        group: name of the node group or the master, `master`, or the logical id of the Auto Scaling group.
        message: reason of the failure; empty if the instances hang.
        times: how many more instances fail; 0 means all.
    """

    group: str
    step: str
    message: str
    times: int


@dataclass
class _FaultRule:
    """Which instances get an injected boot fault.

    Attributes:
        group: as in `Fault`.
        remaining: how many more instances get it; infinite for all.
    """

    group: str
    boot_fault: BootFault
    remaining: float


class Machines:
    """The instances that stacks' Auto Scaling groups have launched.

    The object is the emulator's `on_launch` callback: it is called with each new instance, and boots it.

    Args:
        console: called with an instance's id and its whole console output, whenever it writes a line.

    Attributes:
        cloud: the emulated CloudFormation of the region; set after the creation.
        clusters_by_volume: clusters by the id of each master's data volume.
        clusters: clusters by the ARN of their join secret.
        instances: all instances of clusters by id, including stopped ones.
        drain_seconds: how long the drain of a node lasts; disruption budgets can prolong it up to `drainTimeout`.
    """

    def __init__(self, region: str, console: Callable[[str, str], None] = lambda instance, text: None) -> None:
        self.region = region
        self.console = console
        self.cloud: CloudFormation
        self.clusters_by_volume: dict[str, KubernetesCluster] = {}
        self.clusters: dict[str, KubernetesCluster] = {}
        self.instances: dict[str, Instance] = {}
        self.drain_seconds = DRAIN_SECONDS
        self._fault_rules: list[_FaultRule] = []
        self._failed_boots: list[tuple[Instance, Boot]] = []
        self._stopped_at: dict[str, float] = {}  # by instance id: when it stopped, in seconds of the simulated clock
        self._working_since: dict[str, float] = {}  # by join secret: when the masters got their present quorum
        self._foreign_ids: set[str] = set()  # ids of instances whose user data is not cfngen's

    def __call__(self, launched: LaunchedInstance) -> None:
        """Boot a new instance; ignore instances that are known already, or whose user data is not cfngen's."""
        if launched.instance_id in self.instances or launched.instance_id in self._foreign_ids:
            return
        self._note_stopped(self.running_ids())
        attach_interface(self.region, launched.instance_id)
        ec2_instance: MotoModel = ec2_backends[DEFAULT_ACCOUNT_ID][self.region].get_instance(launched.instance_id)
        boot_data = user_data.read(str(ec2_instance.user_data or ""))
        if boot_data is None:
            self._foreign_ids.add(launched.instance_id)
            return
        instance = Instance(
            id=launched.instance_id,
            zone=ec2_instance.placement.zone,
            type=ec2_instance.instance_type,
            address=ec2_instance.private_ip_address or "",
            public_address=ec2_instance.public_ip_address or "",
            image=self._image_name(ec2_instance.image_id),
            boot_data=boot_data,
            group=launched.group,
            number=len(self.instances),
            launched=self.cloud.clock.now,
            name=group_name({tag["key"]: tag["value"] for tag in ec2_instance.get_tags()}),
        )
        self.instances[instance.id] = instance
        self._run_next_step(instance, BootProgram(self, instance).run())

    def on_terminating(self, instance_id: str) -> None:
        """Let an instance that a lifecycle hook holds in `Terminating:Wait` delay its termination.

        An instance whose boot has not started the service that does so does nothing: the hook times out.
        """
        instance = self.instances.get(instance_id)
        if instance is not None and instance.runs_termination_service:
            self.cloud.clock.schedule(NOTICE_SECONDS, functools.partial(delay_termination, self, instance))

    def cordon(self, instance: Instance) -> None:
        """Mark the instance's node as unschedulable."""
        for cluster in self.clusters.values():
            if node := cluster.state.get("nodes", instance.id):
                node["spec"]["unschedulable"] = True

    def is_running(self, instance: Instance) -> bool:
        """Return whether an instance runs: one that EC2 has interrupted does nothing more."""
        return instance.id in self.running_ids()

    def read_metadata(self, stack: str, logical_id: str) -> JsonObject:
        """Return the Metadata attribute of a stack's resource.

        Raises:
            ApiError: there is no such stack, or no such resource in it.
        """
        resource = self.cloud.stack(stack).resources.get(logical_id)
        if resource is None or not resource.exists:
            raise ValidationError(f"Resource {logical_id} does not exist for stack {stack}")
        metadata: JsonObject = resource.definition.body.get("Metadata", {})
        return metadata

    def inject_failure(self, group: str, step: str, message: str, *, hint: str = "", times: float = math.inf) -> None:
        """Make the boot of instances of a group fail in a step.

        Args:
            group: the node group's name, `master`, or the logical id of the Auto Scaling group.
            step: name of the step, e.g. `downloads`.
            hint: advice that is logged with the reason; by default, where the log is.
            times: how many instances fail; by default, all.
        """
        boot_fault = BootFault(step, message, hint) if hint else BootFault(step, message)
        self._fault_rules.append(_FaultRule(group, boot_fault, remaining=times))

    def inject_hang(self, group: str, step: str, *, times: float = math.inf) -> None:
        """Make the boot of instances of a group hang in a step, without a signal or a log line."""
        self._fault_rules.append(_FaultRule(group, BootFault(step), remaining=times))

    @property
    def faults(self) -> list[Fault]:
        """The faults of instances that are launched from now on."""
        return [
            Fault(
                group=fault_rule.group,
                step=fault_rule.boot_fault.step,
                message=fault_rule.boot_fault.message,
                times=0 if fault_rule.remaining == math.inf else int(fault_rule.remaining),  # 0 means all
            )
            for fault_rule in self._fault_rules
            if fault_rule.remaining > 0
        ]

    def remove_faults(self) -> bool:
        """Remove all faults: instances that are launched from now on boot normally, and those that failed try again.

        Returns:
            Whether there were any, or instances that failed.
        """
        had_faults = bool(self.faults or self._failed_boots)
        self._fault_rules.clear()
        for instance, boot in self._failed_boots:
            self.cloud.clock.schedule(RETRY_SECONDS, functools.partial(self._run_next_step, instance, boot))
        self._failed_boots.clear()
        return had_faults

    def take_fault(self, instance: Instance) -> BootFault | None:
        """Return the fault for an instance's boot, and count the instance; None if it boots normally."""
        scaling_group = instance.boot_data.references["resource"]  # the logical id, which the instance signals
        for fault_rule in self._fault_rules:
            if fault_rule.remaining > 0 and designates_group(
                fault_rule.group, name=instance.name, logical_id=scaling_group
            ):
                fault_rule.remaining -= 1
                return fault_rule.boot_fault
        return None

    def write_console(self, instance: Instance, line: str) -> None:
        """Write a line on an instance's console."""
        instance.console.append(line)
        self.console(instance.id, "\r\n".join([*instance.console, ""]))

    def running_members(self, cluster: KubernetesCluster) -> list[str]:
        """Return the ids of the masters that run, of those with a member of etcd."""
        return [instance_id for instance_id in cluster.members.values() if instance_id not in self._stopped_at]

    def has_quorum(self, cluster: KubernetesCluster) -> bool:
        """Return whether more than half of etcd's members run, which it needs for its quorum."""
        return 2 * len(self.running_members(cluster)) > len(cluster.members)

    def remove_member(self, cluster: KubernetesCluster, instance_id: str) -> None:
        """Remove a master's member from etcd: the slot's next instance joins the others again."""
        for volume_id in [volume_id for volume_id, member in cluster.members.items() if member == instance_id]:
            del cluster.members[volume_id], self.clusters_by_volume[volume_id]

    def refresh(self) -> None:
        """Find instances that were launched or stopped outside of CloudFormation, and update the clusters' nodes."""
        running_ids = self.running_ids()
        self._note_stopped(running_ids)
        if new_ids := sorted(running_ids - self.instances.keys() - self._foreign_ids):
            response = client("ec2", self.region).describe_instances(InstanceIds=new_ids)
            for reservation in response["Reservations"]:
                for description in reservation["Instances"]:
                    tags = {tag["Key"]: tag["Value"] for tag in description.get("Tags", [])}
                    self(LaunchedInstance(description["InstanceId"], tags.get(GROUP_TAG, "")))

    def _note_stopped(self, running_ids: Set[str]) -> None:
        """Record which instances have stopped by now, and update the nodes of clusters that have a quorum."""
        for instance_id in self.instances.keys() - running_ids - self._stopped_at.keys():
            self._stopped_at[instance_id] = self.cloud.clock.now
            if instance_id in self._ids_in_state("terminated"):
                release_interface(self.region, instance_id)
        for name, cluster in self.clusters.items():
            if self.has_quorum(cluster):
                self._update_nodes(cluster, self._working_since.setdefault(name, self.cloud.clock.now))
                cluster.controllers.volumes.reconcile()
                cluster.back_up()
            else:
                self._working_since.pop(name, None)

    def _update_nodes(self, cluster: KubernetesCluster, working_since: float) -> None:
        """Set nodes of stopped instances not Ready, and later delete them, as the controllers of a cluster do.

        Controllers count the seconds of a kubelet's silence from their own start, e.g. after a pause.
        """
        now = self.cloud.clock.now
        for node in cluster.state.list("nodes"):
            name = node["metadata"]["name"]
            seconds_stopped = now - max(self._stopped_at.get(name, now), working_since)
            if seconds_stopped >= NODE_REMOVED_AFTER_SECONDS:
                cluster.controllers.remove_node(name)
            elif seconds_stopped >= NOT_READY_AFTER_SECONDS:
                cluster.state.set_ready(
                    name, False, reason="NodeStatusUnknown", message="Kubelet stopped posting node status."
                )

    def _run_next_step(self, instance: Instance, boot: Boot) -> None:
        """Run the next step of a boot, unless the instance was stopped, and schedule the one after it."""
        if instance.id in self.running_ids():
            seconds = next(boot, None)
            if seconds == UNTIL_FAULTS_ARE_REMOVED:
                self._failed_boots.append((instance, boot))
                if not self._fault_rules:  # removed while the boot was under way
                    self.remove_faults()
            elif seconds is not None:
                self.cloud.clock.schedule(seconds, lambda: self._run_next_step(instance, boot))

    def running_ids(self) -> set[str]:
        """Return the ids of running instances; from moto's backend, as EC2's API is too slow for every boot step."""
        return self._ids_in_state("pending", "running")

    def _ids_in_state(self, *states: str) -> set[str]:
        instances = ec2_backends[DEFAULT_ACCOUNT_ID][self.region].all_instances()
        return {instance.id for instance in instances if instance.state in states}

    def _image_name(self, image_id: str) -> str:
        """Return the description or the name of an image; empty if it does not exist."""
        image = ec2_backends[DEFAULT_ACCOUNT_ID][self.region].amis.get(image_id)
        return str(image.description or image.name or "") if image else ""


class Notice(enum.Enum):
    """What EC2 says to a Spot Instance. An On-Demand Instance is told nothing."""

    REBALANCE = "rebalance"
    INTERRUPTION = "interruption"
    BOTH = "both"


class NotifiedInstances(NamedTuple):
    """The ids of instances that `send_notice` was about."""

    spot: list[str]
    on_demand: list[str]


def send_notice(machines: Machines, group: str, notice: Notice, count: int = 0) -> NotifiedInstances:
    """Send a notice to running instances of a group; EC2 terminates interrupted ones two minutes later.

    An On-Demand Instance gets no notice: an interruption ends it at once, as a failure of its machine does.

    Args:
        group: as in `Fault`.
        count: how many instances get it, those launched first; 0 means all.
    """
    running_ids, spot_ids = machines.running_ids(), set(spot_interruptions.running_spot_instances(machines.region))
    instances = [
        instance
        for instance in machines.instances.values()
        if instance.id in (spot_ids if notice is Notice.REBALANCE else running_ids)
        and designates_group(group, name=instance.name, logical_id=instance.boot_data.references["resource"])
    ]
    notified = NotifiedInstances([], [])
    for instance in instances[: count or None]:
        if instance.id not in spot_ids:
            spot_interruptions.end(machines.region, instance.id, on_terminated=machines.refresh)
            notified.on_demand.append(instance.id)
            continue
        if notice is not Notice.INTERRUPTION:
            _recommend_rebalancing(machines, instance)
        if notice is not Notice.REBALANCE:
            _interrupt(machines, instance)
        notified.spot.append(instance.id)
    return notified


def _recommend_rebalancing(machines: Machines, instance: Instance) -> None:
    """Recommend to rebalance an instance; its node is cordoned if the node group says so."""
    clock = machines.cloud.clock
    spot_interruptions.recommend_rebalancing(machines.region, instance.id, clock.time)
    if instance.boot_data.configuration.get("rebalance"):
        clock.schedule(NOTICE_SECONDS, functools.partial(_cordon, machines, instance))


def _interrupt(machines: Machines, instance: Instance) -> None:
    """Announce the interruption of an instance; its drain service cordons the node."""
    clock = machines.cloud.clock
    spot_interruptions.interrupt(machines.region, instance.id, clock.time, on_terminated=machines.refresh)
    if instance.runs_termination_service:
        clock.schedule(NOTICE_SECONDS, functools.partial(_cordon, machines, instance))


def _cordon(machines: Machines, instance: Instance) -> None:
    if machines.is_running(instance):
        machines.cordon(instance)
