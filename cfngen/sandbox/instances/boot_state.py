"""The state of one emulated boot, which its steps share: configuration, console, waits and secrets.

A step of the boot is a generator: it yields the simulated seconds to wait, and returns the text of its log line.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.instances.instance import Instance
from cfngen.sandbox.instances.reachability import Connections
from cfngen.sandbox.instances.user_data import substitute
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster
from cfngen.sandbox.kubernetes.system_objects import NodeFacts, register_node
from cfngen.sandbox.untyped import JsonObject

if TYPE_CHECKING:
    from cfngen.sandbox.instances.machines import Machines

Boot = Generator[float, None, None]  # yields the simulated seconds to wait
UNTIL_FAULTS_ARE_REMOVED = math.inf  # yielded by a boot that an injected fault has made fail
StepRun = Generator[float, None, str]  # yields the simulated seconds to wait; returns the text of the step's log line

FIRMWARE_SECONDS = 9.0  # seconds from launch to the kernel
POLL_SECONDS = 10.0  # between two checks of a condition; the boot program's longest pause between two attempts
CALL_SECONDS = 60.0  # for how long the boot program tries to reach an AWS service
LOG_INTERVAL_SECONDS = 60.0  # between two log lines of one wait
MIN_WAIT_SECONDS = 60.0  # how long a step waits at least, even if the boot has almost timed out
# How long before the boot's timeout its steps stop to wait, so that a failure signal can reach CloudFormation in time.
SIGNAL_RESERVE_SECONDS = 120.0

SERVICE_HINT = "check that the instance can reach AWS and that its role allows the call"


class BootFailure(Exception):  # noqa: N818 - the instance's failure, not this program's
    """A step of the boot program failed; the message is the reason that it logs.

    Attributes:
        hint: advice that the boot program logs with the reason.
    """

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


class BootState:
    """The state of the boot of one instance.

    Attributes:
        configuration: the configuration in the user data; the step `program` replaces it by that of both stages.
        references: physical ids and addresses by name, which CloudFormation filled into the user data.
        started: when the boot program started, in seconds of the simulated clock.
        deadline: until when steps wait, in seconds of the simulated clock.
        connections: the servers outside of the cluster that the instance reaches.
    """

    def __init__(self, environment: Machines, instance: Instance) -> None:
        self.environment = environment
        self.instance = instance
        self.configuration: JsonObject = substitute(instance.boot_data.configuration, instance.facts)
        self.references = instance.boot_data.references
        self.clock = environment.cloud.clock
        self.connections = Connections(environment.cloud.region, instance)
        self.started = 0.0
        self.deadline = 0.0

    def start_clock(self) -> None:
        """Start to count the time of the boot program against the boot's timeout."""
        self.started = self.clock.now
        timeout_seconds = self.configuration["timeout"] * 60
        self.deadline = self.started + timeout_seconds - SIGNAL_RESERVE_SECONDS

    @property
    def jitter_seconds(self) -> float:
        """A few seconds that differ between instances, but not between runs."""
        return self.instance.number * 7 % 10 / 3

    @property
    def has_several_masters(self) -> bool:
        """Whether the cluster has several masters: only then each one gets the others' addresses."""
        return "addressB" in self.references

    def log(self, text: str) -> None:
        """Write a line of the boot program on the console, with the seconds since the kernel's start."""
        seconds = self.clock.now - self.instance.launched - FIRMWARE_SECONDS
        self.environment.write_console(self.instance, f"[{seconds:12.6f}] python3[612]: cfngen: {text}")

    def wait(self, goal: str, blocker: Callable[[], str], hint: str, timeout: float | None = None) -> Boot:
        """Wait until nothing blocks any more, and log the reason every minute.

        Args:
            goal: what the boot waits for, as a phrase of the log line.
            blocker: returns the reason to keep waiting, or raises it as a BootFailure; an empty text ends the wait.
            hint: what to look at after a timeout, unless the last BootFailure has a hint of its own.
            timeout: seconds to wait; by default until the boot's deadline.

        Raises:
            BootFailure: something still blocks after the timeout.
        """
        started = last_logged = self.clock.now
        if timeout is None:
            timeout = max(MIN_WAIT_SECONDS, self.deadline - started)
        while True:
            last_hint = hint
            try:
                reason = blocker()
            except BootFailure as failure:
                reason, last_hint = str(failure), failure.hint or hint
            if not reason:
                return
            now = self.clock.now
            if now >= started + timeout:
                raise BootFailure(f"waited {now - started:.0f} s for {goal}: {reason}", last_hint)
            if now - last_logged >= LOG_INTERVAL_SECONDS:
                last_logged = now
                self.log(f"waiting for {goal} ({now - started:.0f} s): {reason}")
            yield POLL_SECONDS

    def await_service(self, service: str, operation: str) -> Boot:
        """Wait until an AWS service can be reached, as the boot program does in every call.

        Args:
            service: boto3's name of the service, e.g. `ec2`.
            operation: boto3's method that is to be called, e.g. `attach_volume`.

        Raises:
            BootFailure: it cannot be reached within a minute.
        """
        why_not = functools.partial(self.connections.why_no_service, service)
        yield from self.wait(operation, why_not, SERVICE_HINT, timeout=CALL_SECONDS)

    def register_node(self, cluster: KubernetesCluster) -> None:
        """Register the instance as a node of its cluster, and add the route to its pods."""
        boot_data, instance = self.instance.boot_data, self.instance
        # A single master's public address is the API's; each of several masters has a public address of its own.
        public_address = "" if self.has_several_masters else self.references.get("publicAddress", "")
        node = NodeFacts(
            name=instance.id,
            zone=instance.zone,
            instance_type=instance.type,
            architecture=boot_data.architecture,
            address=self.references.get("privateAddress", instance.address),
            public_address=public_address or instance.public_address,
            pod_cidr=cluster.next_pod_range(),
            master=boot_data.master,
            os_image=instance.image,
            versions={
                "containerd": boot_data.version("containerd"),
                "kubelet": boot_data.version("kubelet", default=cluster.state.version),
            },
        )
        register_node(cluster.state, node)
        cluster.controllers.add_pod_route(node.name, node.pod_cidr)

    def make_node_ready(self, cluster: KubernetesCluster) -> bool:
        """Make the instance's node Ready, unless its user installs the network plug-in later; return whether it is."""
        awaits_plugin = self.configuration.get("podNetwork", {}).get("awaited", True)  # older ones do not say
        return cluster.controllers.make_ready(self.instance.id, awaits_plugin=awaits_plugin)

    def read_join_information(self) -> Mapping[str, str]:
        """Return the join information; empty if no master has published it yet."""
        return self.read_secret(self.references["joinSecretArn"])

    def read_secret(self, arn: str) -> dict[str, str]:
        """Return the JSON object in a secret; empty if the secret has no value yet."""
        try:
            response = client("secretsmanager", self.environment.cloud.region).get_secret_value(SecretId=arn)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            return {}
        content: dict[str, str] = json.loads(response.get("SecretString") or "{}")
        return content

    def write_secret(self, arn: str, content: Mapping[str, str]) -> None:
        """Store a JSON object as the new value of a secret."""
        client("secretsmanager", self.environment.cloud.region).put_secret_value(
            SecretId=arn, SecretString=json.dumps(content)
        )
