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
from cfngen.sandbox.instance import Instance, Script

DRAIN_HOOK = "cfngen-drain"  # the lifecycle hook that the boot program completes
# After so many seconds of silence the controller manager calls a node not Ready (its default since Kubernetes 1.32,
# kubernetes/kubernetes#126287); after so many more the cloud controller manager has asked EC2, which knows no such
# instance, and the node is forgotten.
SILENCE = 50.0
FORGOTTEN = 60.0
GROUP_TAG = "aws:autoscaling:groupName"
# Seconds until an instance notices its end (boot/drain.py), and in which a node's pods have moved: a guess.
NOTICED, MOVED = 5.0, 20.0


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
class _Trouble:
    """A script for some of the instances of a group."""

    resource: str
    script: Script
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
        self._troubles: list[_Trouble] = []
        self._gone: dict[str, float] = {}
        self._foreign: set[str] = set()

    def __call__(self, launched: Launched) -> None:
        """Begin to boot an instance, unless it does so already or its user data is not ours."""
        if launched.instance_id in self.instances or launched.instance_id in self._foreign:
            return
        self._see(self._running())
        interfaces.attach(self.region, launched.instance_id)
        ec2 = client("ec2", self.region)
        answer = ec2.describe_instance_attribute(InstanceId=launched.instance_id, Attribute="userData")
        told = user_data.read(answer.get("UserData", {}).get("Value", ""))
        if told is None:
            self._foreign.add(launched.instance_id)
            return
        [found] = ec2.describe_instances(InstanceIds=[launched.instance_id])["Reservations"][0]["Instances"]
        instance = Instance(
            id=launched.instance_id,
            zone=found["Placement"]["AvailabilityZone"],
            type=found["InstanceType"],
            address=found.get("PrivateIpAddress", ""),
            public_address=found.get("PublicIpAddress", ""),
            image=self._image(found["ImageId"]),
            told=told,
            group=launched.group,
            number=len(self.instances),
            launched=self.cloud.clock.now,
            name=named({tag["Key"]: tag["Value"] for tag in found.get("Tags", [])}),
        )
        self.instances[instance.id] = instance
        self._continue(instance, Program(self, instance).boot())

    def leave(self, instance_id: str) -> None:
        """Let an instance that a lifecycle hook holds move its pods, if it can, and then let Auto Scaling go on.

        One that never came so far as to watch for its end says nothing: the hook's time runs out.
        """
        instance = self.instances.get(instance_id)
        if instance is not None and instance.watches:
            self.cloud.clock.later(NOTICED, lambda: self._drain(instance))

    def _drain(self, instance: Instance) -> None:
        for cluster in self.clusters.values():
            if node := cluster.state.get("nodes", instance.id):
                node["spec"]["unschedulable"] = True
        self.cloud.clock.later(MOVED, lambda: self._drained(instance))

    def _drained(self, instance: Instance) -> None:
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
        known = self.cloud.stack(stack).resources.get(resource)
        if known is None or not known.exists:
            raise ValidationError(f"Resource {resource} does not exist for stack {stack}")
        metadata: Mapping[str, Any] = known.definition.body.get("Metadata", {})
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
        script = Script(step, message, hint) if hint else Script(step, message)
        self._troubles.append(_Trouble(resource, script, times))

    def hang(self, resource: str, step: str, *, times: float = float("inf")) -> None:
        """Let instances of a group come to a halt at a step, without a word."""
        self._troubles.append(_Trouble(resource, Script(step), times))

    @property
    def faults(self) -> list[Fault]:
        """What instances will fail with that are launched from now on."""
        return [
            Fault(
                trouble.resource,
                trouble.script.step,
                trouble.script.message,
                0 if trouble.times == math.inf else int(trouble.times),
            )
            for trouble in self._troubles
            if trouble.times > 0
        ]

    def heal(self) -> None:
        """Let instances that are launched from now on boot without trouble."""
        self._troubles.clear()

    def script(self, instance: Instance) -> Script | None:
        """Return what is to go wrong on an instance."""
        for trouble in self._troubles:
            if trouble.times > 0 and meant(trouble.resource, instance.name, instance.told.references["resource"]):
                trouble.times -= 1
                return trouble.script
        return None

    def say(self, instance: Instance, line: str) -> None:
        """Write a line on an instance's console."""
        instance.console.append(line)
        self.console(instance.id, "\r\n".join([*instance.console, ""]))

    def answering(self, cluster: KubernetesCluster) -> bool:
        """Return whether more than half of the cluster's masters run: etcd answers as long as that."""
        running = [member for member in cluster.members.values() if member not in self._gone]
        return 2 * len(running) > len(cluster.members)

    def look(self) -> None:
        """See which instances have gone or come without CloudFormation's doing, and let the clusters notice."""
        running = self._running()
        self._see(running)
        if unknown := sorted(running - self.instances.keys() - self._foreign):
            answer = client("ec2", self.region).describe_instances(InstanceIds=unknown)
            for each in (instance for reservation in answer["Reservations"] for instance in reservation["Instances"]):
                tags = {tag["Key"]: tag["Value"] for tag in each.get("Tags", [])}
                self(Launched(each["InstanceId"], tags.get(GROUP_TAG, "")))

    def _see(self, running: Set[str]) -> None:
        for identifier in self.instances.keys() - running - self._gone.keys():
            self._gone[identifier] = self.cloud.clock.now
            if identifier in self._terminated():
                interfaces.release(self.region, identifier)
        for cluster in self.clusters.values():
            if self.answering(cluster):
                self._notice(cluster)
                cluster.back_up()

    def _notice(self, cluster: KubernetesCluster) -> None:
        now = self.cloud.clock.now
        for node in cluster.state.list("nodes"):
            name = node["metadata"]["name"]
            silent = now - self._gone.get(name, now)
            if silent >= FORGOTTEN:
                cluster.controllers.forget(name)
            elif silent >= SILENCE:
                cluster.state.set_ready(name, False, "NodeStatusUnknown", "Kubelet stopped posting node status.")

    def _continue(self, instance: Instance, boot: Boot) -> None:
        if instance.id in self._running():
            seconds = next(boot, None)
            if seconds is not None:
                self.cloud.clock.later(seconds, lambda: self._continue(instance, boot))

    def _running(self) -> set[str]:
        """Instances that run; from moto itself, as each step of each boot asks and EC2's answer takes long to write."""
        return self._in_state("pending", "running")

    def _terminated(self) -> set[str]:
        return self._in_state("terminated")

    def _in_state(self, *states: str) -> set[str]:
        instances = ec2_backends[DEFAULT_ACCOUNT_ID][self.region].all_instances()
        return {instance.id for instance in instances if instance.state in states}

    def _image(self, identifier: str) -> str:
        try:
            images = client("ec2", self.region).describe_images(ImageIds=[identifier])["Images"]
        except ClientError:
            return ""
        return str(images[0].get("Description") or images[0].get("Name") or "") if images else ""
