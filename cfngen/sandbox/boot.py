"""What the boot program does on an instance, step by step over simulated time, and what it says on the console.

The steps and their order are those of the program in the user data, and so are their words: a test compares every
sentence here with the boot program's own. How long each step takes is a guess, as no instance of ours was timed on EC2.
A boot is a generator that yields how many seconds to wait. What the first stage is told is in the user data; the rest
comes from the stack at the step `program`, as on an instance.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol

from botocore.exceptions import ClientError

from cfngen.sandbox import certificates
from cfngen.sandbox.cloudformation import ApiError, CloudFormation, client
from cfngen.sandbox.cluster import KubernetesCluster
from cfngen.sandbox.instance import Instance, Script, kernel
from cfngen.sandbox.kubernetes_objects import NodeFacts, register, schedule, start_addons, start_control_plane
from cfngen.sandbox.kubernetes_state import uid
from cfngen.sandbox.routine_steps import DRAINING, ROUTINE, certificates_end, disks
from cfngen.sandbox.user_data import ProgramError, completed, filled

Boot = Generator[float, None, None]
Step = Callable[[], Generator[float, None, str]]

FIRMWARE = 9.0  # seconds from launch to the kernel
CLOUD_INIT = 11.0  # seconds from the kernel to the boot program
# Seconds in which a wait condition must have come into being, and what says that it has not.
PATIENCE = {"SUCCESS": 5 * 3600.0, "FAILURE": 300.0}
UNBORN = re.compile(r"Resource \S+ does not exist|Resource \S+ is in (CREATE_FAILED|DELETE_\w+) state")
REFUSED = "is the resource there?"
RESTORE = "put the secret's previous value (AWSPREVIOUS) as a new version"
FIRST = "a"  # the slot whose master alone may make a new cluster
MOUNT = "/mnt/master"
DONE = {
    "init": "initialised a new cluster",
    "join": "joined the cluster",
    "restore": "restored the cluster",
    "resume": "resumed the cluster of the volume",
}
DEVICE = "/dev/sdf"  # as which the boot program attaches the data volume
POLL = 10.0  # seconds, the longest pause of the boot program
FIRST_FAILED = f"did the boot of master {FIRST} fail? Its console says why"
SAY = 60.0  # seconds between two lines that say what is waited for


class BootFailure(Exception):  # noqa: N818 - the instance's failure, not this program's
    """A step cannot go on; what the boot program says then."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


class Surroundings(Protocol):
    """What an instance finds around it."""

    cloud: CloudFormation
    disks: dict[str, KubernetesCluster]
    clusters: dict[str, KubernetesCluster]

    def say(self, instance: Instance, line: str) -> None:
        """Write a line on an instance's console."""

    def script(self, instance: Instance) -> Script | None:
        """What is to go wrong on an instance."""

    def answering(self, cluster: KubernetesCluster) -> bool:
        """Whether more than half of the cluster's masters run."""

    def metadata(self, stack: str, resource: str) -> Mapping[str, Any]:
        """The metadata of a stack's resource; refused with an ApiError if there is none."""


class Program:
    """The boot program on one instance."""

    def __init__(self, around: Surroundings, instance: Instance) -> None:
        self.around = around
        self.instance = instance
        self.configuration: Mapping[str, Any] = filled(instance.told.configuration, instance.facts)
        self.references = instance.told.references
        self._clock = around.cloud.clock
        self._bundle: dict[str, str] = {}
        self._way = ""
        self._restoring: Mapping[str, Any] = {}
        self._begin = self._deadline = 0.0

    @property
    def steps(self) -> dict[str, Step]:
        """Every step of the instance's role by title, in order."""
        orders: Mapping[str, str] = self.configuration["steps"]
        return {
            "identity": self._identity,
            **{title: self._step(function) for title, function in orders.items()},
            "signal": self._succeed,
        }

    def _step(self, function: str) -> Step:
        """Return what stands for a function of the boot program."""
        if function in ROUTINE:
            return functools.partial(self._routine, function)
        return {
            "packages.install": self._packages,
            "program.fetch": self._program,
            "system.downloads": self._downloads,
            "volume.volume": self._volume,
            "control_plane.prepare": self._authorities,
            "control_plane.start": self._control_plane,
            "addons.essentials": self._addons,
            "join_information.publish": self._join_information,
            "certificates.schedule": self._certificates,
            "version_skew.wait": self._older_masters,
            "node.join": self._join,
            "node.ready": self._ready,
        }[function]

    def boot(self) -> Boot:
        """Boot: firmware, kernel, cloud-init, and the steps of the boot program."""
        yield FIRMWARE
        for line in kernel(self.instance):
            self.around.say(self.instance, line)
        yield CLOUD_INIT + self._variation
        script = self.around.script(self.instance)
        self._begin = self._clock.now
        self._deadline = self._begin + self.configuration["timeout"] * 60 - 120.0
        for number, (name, step) in enumerate(self.steps.items(), 1):
            title, start = f"[{number}/{len(self.steps)}] {name}", self._clock.now
            try:
                if script and script.step == name:
                    if not script.message:
                        return
                    yield 5.0
                    raise BootFailure(script.message, script.hint)
                outcome = yield from step()
            except (BootFailure, ClientError) as failure:
                hint, passed = getattr(failure, "hint", REFUSED), self._clock.now - start
                self._say(f"{title} FAILED after {passed:.1f} s: {failure}. What to do: {hint}")
                self._say((yield from self._signal("FAILURE")))
                return
            self._say(f"{title}: {outcome} ({self._clock.now - start:.1f} s)")
        self._say(f"done in {self._clock.now - self._begin:.1f} s")

    @property
    def _variation(self) -> float:
        """Some seconds that differ from instance to instance, and not from run to run."""
        return self.instance.number * 7 % 10 / 3

    def _say(self, text: str) -> None:
        moment = self._clock.now - self.instance.launched - FIRMWARE
        self.around.say(self.instance, f"[{moment:12.6f}] python3[612]: cfngen: {text}")

    def _signal(self, status: str) -> Generator[float, None, str]:
        """Signal the group and, of a master, its wait condition, which may be made later."""
        refusals = [self._refused(self.references["stack"], self.references["resource"], status)]
        if "condition" in self.references:
            # The programs of before conditions had a stack of their own named none.
            stack, name = self.references.get("conditionStack", self.references["stack"]), self.references["condition"]
            end = self._clock.now + PATIENCE[status]
            refusal = self._refused(stack, name, status)
            while UNBORN.search(refusal) and self._clock.now < end:
                yield 10.0
                refusal = self._refused(stack, name, status)
            refusals.append(refusal)
        return f"told CloudFormation {status}" if "" in refusals else "; ".join(refusals)

    def _refused(self, stack: str, resource: str, status: str) -> str:
        try:
            self.around.cloud.signal_resource(stack, resource, self.instance.id, status)
        except ApiError as error:
            return str(error)
        return ""

    def _identity(self) -> Generator[float, None, str]:
        yield 0.1
        role = self.configuration["role"]
        return f"{self.instance.id} in {self.instance.zone}, {role} of {self.configuration['cluster']}"

    def _routine(self, function: str) -> Generator[float, None, str]:
        seconds, words = ROUTINE[function]
        yield seconds
        self.instance.watches = self.instance.watches or function == DRAINING
        return words(self.configuration, self.instance)

    def _packages(self) -> Generator[float, None, str]:
        yield 12.4 + self._variation
        # Amazon Linux lacks one of them beside boto3, in either family of package names.
        lacking = ["iptables"] if "amazon" in self.instance.image.lower() else []
        names = [self.configuration["packages"][program][1] for program in lacking]
        return "installed " + ", ".join([*names, "python3-boto3"])

    def _program(self) -> Generator[float, None, str]:
        """Get the second stage from the stack, which may not have it any more, or have another one."""
        resource = self.configuration["program"]["resource"]
        first = self.instance.told

        def missing() -> str:
            try:
                self.instance.told = completed(first, self.around.metadata)
            except (ApiError, ProgramError) as error:
                return str(error)
            return ""

        yield 0.4
        yield from self._wait(f"the program in {resource}", missing, "does the stack still have this resource?")
        self.configuration = filled(self.instance.told.configuration, self.instance.facts)
        return f"{resource} unpacked"

    def _downloads(self) -> Generator[float, None, str]:
        yield 18.6 + self._variation
        files = len(self.configuration["assets"])
        return f"fetched {files} of {files} files"

    def _volume(self) -> Generator[float, None, str]:
        yield 7.5
        volume = self.references["volumeId"]
        client("ec2", self.around.cloud.region).attach_volume(
            VolumeId=volume, InstanceId=self.instance.id, Device=DEVICE
        )
        blank = volume not in self.around.disks
        disk = f"/dev/nvme{len(disks(self.instance)) + 1}n1"
        return f"{volume} is {disk}{', formatted' if blank else ''}, mounted at {MOUNT}"

    @property
    def _several(self) -> bool:
        """Whether the instance is one of several masters: they are told each other's addresses."""
        return "addressB" in self.references

    def _authorities(self) -> Generator[float, None, str]:
        yield 2.8
        done = yield from self._decide()
        return f"{self._way}: {done}"

    def _decide(self) -> Generator[float, None, str]:
        """Decide how this master boots, and return what became of the authorities."""
        secret, volume = self.references["caSecretArn"], self.references["volumeId"]
        self._bundle = self._secret(secret)
        if volume in self.around.disks:
            if not self._bundle:
                raise BootFailure(f"{volume} holds a cluster, but secret {secret} is empty", RESTORE)
            bucket = self.references.get("bucket", "")
            self._restoring = self.around.disks[volume].backups.pending(bucket, volume)
            if self._restoring:
                self._way = "restore"
                return "restored certificate authorities"
            self._way = "resume"
            return "restored certificate authorities"
        if self.references["slot"] != FIRST:
            yield from self._wait("the first master", self._uninitialised, FIRST_FAILED)
        self._bundle = self._secret(secret)
        since = self._bundle.get(certificates.INITIALISED)
        if since and self._several:
            self._way = "join"
            return "restored certificate authorities"
        if since:
            raise BootFailure(
                f"{volume} is blank, yet the cluster exists since {since}: going on would make a second, empty one",
                "`cfngen etcd restore latest` (in the folder of the cluster file), or restore the volume from a "
                "snapshot of its own; or, to begin again with nothing, remove "
                f"{certificates.INITIALISED} from secret {secret} and reboot",
            )
        self._way = "init"
        if self._bundle:
            return "restored certificate authorities"
        self._bundle = certificates.authorities(self._clock.time)
        self._store(secret, self._bundle)
        return "made certificate authorities"

    def _uninitialised(self) -> str:
        """Return why a master other than the first must wait; nothing once there is a cluster."""
        known = certificates.INITIALISED in self._secret(self.references["caSecretArn"])
        return "" if known else f"slot {FIRST} has not initialised the cluster yet"

    def _without_quorum(self) -> str:
        """Return why etcd's other members cannot take this one yet; nothing if they can."""
        cluster = self.around.clusters.get(self.references["joinSecretArn"])
        if cluster is not None and self.around.answering(cluster):
            return ""
        own = self.references["privateAddress"]
        addresses = (address for _, address in sorted(self.configuration["masters"].items()) if address != own)
        return f"of {', '.join(f'https://{address}:2379' for address in addresses)} none has a quorum of members"

    @property
    def _quorum_hint(self) -> str:
        return (
            "start the other masters; if the volumes of most of them are lost: `cfngen etcd restore latest` (in the "
            f"folder of the cluster file of {self.configuration['cluster']})"
        )

    def _control_plane(self) -> Generator[float, None, str]:
        if self._way == "join":
            yield from self._wait("etcd to take this member", self._without_quorum, self._quorum_hint)
        yield {"init": 61.5, "join": 48.0, "restore": 41.0, "resume": 33.0}[self._way]
        clusters, volume, told = self.around.disks, self.references["volumeId"], ""
        if self._way == "init":
            clusters[volume] = KubernetesCluster(
                self.configuration, self.references, self._bundle, lambda: self._clock.time, self._clock.later
            )
        elif self._way == "join":
            clusters[volume] = self.around.clusters[self.references["joinSecretArn"]]
            told = ": " + f"etcd has taken this member as {uid(volume).replace('-', '')[:16]}"
        cluster = clusters[volume]
        if self._way == "restore":
            cluster.backups.restore(self.references["bucket"], volume, self._restoring)
            told = ": " + self._restored()
        cluster.start(self.instance.id, self.configuration, self.references, self._bundle)
        self.around.clusters[self.references["joinSecretArn"]] = cluster
        start_control_plane(cluster.state, self.instance.id)
        self._register(cluster)
        yield 6.0
        if self._several:
            missing = "it does not answer, or most members are down"
            yield from self._wait(
                "etcd on this master", lambda: "" if self.around.answering(cluster) else missing, self._quorum_hint
            )
        secret = self.references["caSecretArn"]
        bundle = self._secret(secret)
        if certificates.INITIALISED not in bundle:
            self._store(secret, {**bundle, certificates.INITIALISED: cluster.state.time()})
        return DONE[self._way] + told

    def _restored(self) -> str:
        identity, snapshot = self._restoring["id"], self._restoring["snapshot"]
        old = f"{MOUNT}/etcd.before-{identity}"
        return f"restored {snapshot} as request {identity} says; what was there is in {old}"

    def _addons(self) -> Generator[float, None, str]:
        yield 9.2
        cluster, manifests = self.around.disks[self.references["volumeId"]], self.configuration["manifests"]
        start_addons(cluster.state, self.instance.id, manifests)
        cluster.state.set_ready(self.instance.id, True)
        charts = [release["name"] for release in self.configuration["addons"] if release["essential"]]
        what = " and ".join(["the cloud controller manager", *charts])
        return f"{what} at work; {len(self.configuration['addons']) - len(charts)} charts follow"

    def _join_information(self) -> Generator[float, None, str]:
        yield 0.9
        return self.around.disks[self.references["volumeId"]].publish()

    def _certificates(self) -> Generator[float, None, str]:
        yield 0.7
        return f"good until {certificates_end(self._clock.time)}"

    def _older_masters(self) -> Generator[float, None, str]:
        """Wait while a master is of an older minor version than this node's kubelet; see the boot program's own."""
        begin = self._clock.now
        hint = "is the masters' update done? If it failed, its events say why; then update the stack again"
        yield from self._wait("masters of this version", self._older, hint, self.configuration["upgradeWait"] * 60)
        waited = self._clock.now - begin
        self._deadline += waited
        return f"new enough after {waited:.0f} s" if waited else "new enough, or not there yet"

    def _older(self) -> str:
        """Return why this node's kubelet must not join yet, by the versions; nothing if they let it."""
        own, oldest = self.configuration["kubernetesVersion"], self._published().get("kubernetesVersion", "")
        if oldest and _minor(oldest) < _minor(own):
            return f"this node's kubelet is {own} and a master is still {oldest}: masters go first"
        return ""

    def _published(self) -> dict[str, Any]:
        """Return the join information; nothing if no master has published any."""
        return self._secret(self.references["joinSecretArn"])

    def _join(self) -> Generator[float, None, str]:
        secret = self.references["joinSecretArn"]
        hint = "did a master's boot fail? Its console says why; on it: `systemctl status cfngen-boot cfngen-join`"

        def missing() -> str:
            cluster = self.around.clusters.get(secret)
            there = cluster and self.around.answering(cluster) and cluster.expires
            return self._older() if there else "no master has published the join information yet"

        yield from self._wait("joining", missing, hint)
        cluster = self.around.clusters[secret]
        if cluster.expires <= cluster.state.time(60):
            cluster.publish()
        endpoint = self._published()["endpoint"]
        yield 5.7
        self._register(cluster)
        return f"joined {endpoint}"

    def _wait(
        self, what: str, missing: Callable[[], str], hint: str, seconds: float | None = None
    ) -> Generator[float, None, None]:
        """Wait until nothing is missing any more, and say each minute what is.

        Args:
            what: what is waited for.
            missing: says what is missing.
            hint: what to look at if it never comes.
            seconds: how long at most; without it, so long that a failure still reaches CloudFormation in time.
        """
        start = said = self._clock.now
        deadline = start + (max(60.0, self._deadline - start) if seconds is None else seconds)
        while reason := missing():
            now = self._clock.now
            if now >= deadline:
                raise BootFailure(f"waited {now - start:.0f} s for {what}: {reason}", hint)
            if now - said >= SAY:
                said = now
                self._say(f"waiting for {what} ({now - start:.0f} s): {reason}")
            yield POLL

    def _ready(self) -> Generator[float, None, str]:
        yield 13.5 + self._variation
        cluster = self.around.clusters[self.references["joinSecretArn"]]
        cluster.state.set_ready(self.instance.id, True)
        schedule(cluster.state)
        return f"node {self.instance.id} is Ready"

    def _succeed(self) -> Generator[float, None, str]:
        yield 0.3
        return (yield from self._signal("SUCCESS"))

    def _register(self, cluster: KubernetesCluster) -> None:
        told, instance = self.instance.told, self.instance
        address = self.references.get("privateAddress", instance.address)
        # Of one master the address that the API is known by; several have addresses of their own beside that.
        public = "" if self._several else self.references.get("publicAddress", "")
        node = NodeFacts(
            name=instance.id,
            zone=instance.zone,
            instance_type=instance.type,
            architecture=told.architecture,
            address=address,
            public_address=public or instance.public_address,
            pod_cidr=cluster.next_pod_range(),
            master=told.master,
            os_image=instance.image,
            versions={
                "containerd": told.version("containerd"),
                "kubelet": told.version("kubelet", cluster.state.version),
            },
        )
        register(cluster.state, node)
        cluster.controllers.route(node.name, node.pod_cidr)

    def _secret(self, arn: str) -> dict[str, str]:
        try:
            answer = client("secretsmanager", self.around.cloud.region).get_secret_value(SecretId=arn)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceNotFoundException":
                raise
            return {}
        found: dict[str, str] = json.loads(answer.get("SecretString") or "{}")
        return found

    def _store(self, arn: str, bundle: Mapping[str, str]) -> None:
        client("secretsmanager", self.around.cloud.region).put_secret_value(
            SecretId=arn, SecretString=json.dumps(bundle)
        )


def _minor(version: str) -> int:
    """Return 36 for `v1.36.3` or `1.36.3`."""
    return int(version.split(".")[1])
