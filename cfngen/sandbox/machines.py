"""The instances of the account: who runs, what they say, and what becomes of their nodes when they are gone."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from cfngen.sandbox import interfaces, user_data
from cfngen.sandbox.boot import Boot, Program
from cfngen.sandbox.cloudformation import CloudFormation, Launched, client
from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.cluster import KubernetesCluster
from cfngen.sandbox.groups import meant, named
from cfngen.sandbox.instance import BootFault, Instance

DRAIN_HOOK = "cfngen-drain"  # the lifecycle hook that the boot program completes
# After so many seconds of silence the controller manager calls a node not Ready (its default since Kubernetes 1.32,
# kubernetes/kubernetes#126287); after so many more the cloud controller manager has asked EC2, which knows no such
# instance, and the node is forgotten.
NOT_READY_AFTER = 50.0
NODE_REMOVED_AFTER = 60.0
GROUP_TAG = "aws:autoscaling:groupName"
# Seconds until an instance notices its end (boot/drain.py), and in which a node's pods have moved: a guess.
NOTICE_SECONDS, DRAIN_SECONDS = 5.0, 20.0


@dataclass(frozen=True)
class Fault:
    """What instances of a group fail with.

    Attributes:
        group: its name, or the logical id of the Auto Scaling group.
        step: of the boot program.
        message: why; empty if they hang.
        times: how many instances still will; 0 is every one.
    """

    group: str
    step: str
    message: str
    times: int


@dataclass
class _FaultRule:
    """A script for some of the instances of a group."""

    resource: str
    script: BootFault
    times: float


class Machines:
    """Every instance that a stack's Auto Scaling groups have launched; what is called for each of them.

    Args:
        region: of the account.
        console: told of an instance's id and all that it has written to its console, whenever it writes.
    """

    def __init__(self, region: str, console: Callable[[str, str], None] = lambda instance, text: None) -> None:
        self.region = region
        self.console = console
        self.cloud: CloudFormation
        self.disks: dict[str, KubernetesCluster] = {}
        self.clusters: dict[str, KubernetesCluster] = {}
        self.instances: dict[str, Instance] = {}
        self._fault_rules: list[_FaultRule] = []
        self._stopped_at: dict[str, float] = {}
        self._unmanaged: set[str] = set()

    def __call__(self, launched: Launched) -> None:
        """Begin to boot an instance, unless it does so already or its user data is not ours."""
        if launched.instance_id in self.instances or launched.instance_id in self._unmanaged:
            return
        self._note_stopped(self._running_ids())
        interfaces.attach(self.region, launched.instance_id)
        ec2 = client("ec2", self.region)
        response = ec2.describe_instance_attribute(InstanceId=launched.instance_id, Attribute="userData")
        boot_data = user_data.read(response.get("UserData", {}).get("Value", ""))
        if boot_data is None:
            self._unmanaged.add(launched.instance_id)
            return
        [description] = ec2.describe_instances(InstanceIds=[launched.instance_id])["Reservations"][0]["Instances"]
        instance = Instance(
            id=launched.instance_id,
            zone=description["Placement"]["AvailabilityZone"],
            type=description["InstanceType"],
            address=description.get("PrivateIpAddress", ""),
            public_address=description.get("PublicIpAddress", ""),
            image=self._image_name(description["ImageId"]),
            boot_data=boot_data,
            group=launched.group,
            number=len(self.instances),
            launched=self.cloud.clock.now,
            name=named({tag["Key"]: tag["Value"] for tag in description.get("Tags", [])}),
        )
        self.instances[instance.id] = instance
        self._run_next_step(instance, Program(self, instance).boot())

    def on_terminating(self, instance_id: str) -> None:
        """Let an instance that a lifecycle hook holds move its pods, if it can, and then let Auto Scaling go on.

        One that never came so far as to watch for its end says nothing: the hook's time runs out.
        """
        instance = self.instances.get(instance_id)
        if instance is not None and instance.watches:
            self.cloud.clock.later(NOTICE_SECONDS, lambda: self._drain(instance))

    def _drain(self, instance: Instance) -> None:
        for cluster in self.clusters.values():
            if node := cluster.state.get("nodes", instance.id):
                node["spec"]["unschedulable"] = True
        self.cloud.clock.later(DRAIN_SECONDS, lambda: self._complete_drain(instance))

    def _complete_drain(self, instance: Instance) -> None:
        with contextlib.suppress(ClientError):  # the hook may be gone, or its time over
            client("autoscaling", self.region).complete_lifecycle_action(
                LifecycleHookName=DRAIN_HOOK,
                AutoScalingGroupName=instance.group,
                InstanceId=instance.id,
                LifecycleActionResult="CONTINUE",
            )

    def metadata(self, stack: str, resource: str) -> Mapping[str, Any]:
        """Return the metadata of a stack's resource.

        Raises:
            ApiError: there is no such stack, or no such resource in it.
        """
        stack_resource = self.cloud.stack(stack).resources.get(resource)
        if stack_resource is None or not stack_resource.exists:
            raise ValidationError(f"Resource {resource} does not exist for stack {stack}")
        metadata: Mapping[str, Any] = stack_resource.definition.body.get("Metadata", {})
        return metadata

    def fail(self, resource: str, step: str, message: str, *, hint: str = "", times: float = float("inf")) -> None:
        """Let instances of a group fail at a step.

        Args:
            resource: the node group's name, `master`, or the logical id of the Auto Scaling group.
            step: name of the step, e.g. `downloads`.
            message: why.
            hint: what to do about it; where the log is, if empty.
            times: how many instances.
        """
        script = BootFault(step, message, hint) if hint else BootFault(step, message)
        self._fault_rules.append(_FaultRule(resource, script, times))

    def hang(self, resource: str, step: str, *, times: float = float("inf")) -> None:
        """Let instances of a group come to a halt at a step, without a word."""
        self._fault_rules.append(_FaultRule(resource, BootFault(step), times))

    @property
    def faults(self) -> list[Fault]:
        """What instances will fail with that are launched from now on."""
        return [
            Fault(
                fault_rule.resource,
                fault_rule.script.step,
                fault_rule.script.message,
                0 if fault_rule.times == math.inf else int(fault_rule.times),
            )
            for fault_rule in self._fault_rules
            if fault_rule.times > 0
        ]

    def heal(self) -> None:
        """Let instances that are launched from now on boot without fault_rule."""
        self._fault_rules.clear()

    def take_fault(self, instance: Instance) -> BootFault | None:
        """Return what is to go wrong on an instance."""
        for fault_rule in self._fault_rules:
            if fault_rule.times > 0 and meant(
                fault_rule.resource, instance.name, instance.boot_data.references["resource"]
            ):
                fault_rule.times -= 1
                return fault_rule.script
        return None

    def write_console(self, instance: Instance, line: str) -> None:
        """Write a line on an instance's console."""
        instance.console.append(line)
        self.console(instance.id, "\r\n".join([*instance.console, ""]))

    def has_quorum(self, cluster: KubernetesCluster) -> bool:
        """Return whether more than half of the cluster's masters run: etcd answers as long as that."""
        running_masters = [member for member in cluster.members.values() if member not in self._stopped_at]
        return 2 * len(running_masters) > len(cluster.members)

    def refresh(self) -> None:
        """See which instances have gone or come without CloudFormation's doing, and let the clusters notice."""
        running_ids = self._running_ids()
        self._note_stopped(running_ids)
        if new_ids := sorted(running_ids - self.instances.keys() - self._unmanaged):
            response = client("ec2", self.region).describe_instances(InstanceIds=new_ids)
            for description in (
                instance for reservation in response["Reservations"] for instance in reservation["Instances"]
            ):
                tags = {tag["Key"]: tag["Value"] for tag in description.get("Tags", [])}
                self(Launched(description["InstanceId"], tags.get(GROUP_TAG, "")))

    def _note_stopped(self, running_ids: Set[str]) -> None:
        for instance_id in self.instances.keys() - running_ids - self._stopped_at.keys():
            self._stopped_at[instance_id] = self.cloud.clock.now
            if instance_id in self._terminated_ids():
                interfaces.release(self.region, instance_id)
        for cluster in self.clusters.values():
            if self.has_quorum(cluster):
                self._update_nodes(cluster)
                cluster.back_up()

    def _update_nodes(self, cluster: KubernetesCluster) -> None:
        now = self.cloud.clock.now
        for node in cluster.state.list("nodes"):
            name = node["metadata"]["name"]
            seconds_silent = now - self._stopped_at.get(name, now)
            if seconds_silent >= NODE_REMOVED_AFTER:
                cluster.controllers.forget(name)
            elif seconds_silent >= NOT_READY_AFTER:
                cluster.state.set_ready(name, False, "NodeStatusUnknown", "Kubelet stopped posting node status.")

    def _run_next_step(self, instance: Instance, boot: Boot) -> None:
        if instance.id in self._running_ids():
            seconds = next(boot, None)
            if seconds is not None:
                self.cloud.clock.later(seconds, lambda: self._run_next_step(instance, boot))

    def _running_ids(self) -> set[str]:
        """Instances that run; from moto itself, as each step of each boot asks and EC2's answer takes long to write."""
        return self._ids_in_state("pending", "running")

    def _terminated_ids(self) -> set[str]:
        return self._ids_in_state("terminated")

    def _ids_in_state(self, *states: str) -> set[str]:
        instances = ec2_backends[DEFAULT_ACCOUNT_ID][self.region].all_instances()
        return {instance.id for instance in instances if instance.state in states}

    def _image_name(self, image_id: str) -> str:
        try:
            images = client("ec2", self.region).describe_images(ImageIds=[image_id])["Images"]
        except ClientError:
            return ""
        return str(images[0].get("Description") or images[0].get("Name") or "") if images else ""
