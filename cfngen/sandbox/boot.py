"""What the boot program does on an instance, step by step over simulated time, and what it says on the console.

The steps, their order and their words are those of the program in the user data (its `sequence`, `master` and `node`);
how long each takes is a guess, as no instance of ours was timed on EC2. A boot is a generator that yields how many
seconds to wait.
"""

from __future__ import annotations

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
from cfngen.sandbox.user_data import filled

Boot = Generator[float, None, None]
Step = Callable[[], Generator[float, None, str]]

FIRMWARE = 9.0  # seconds from launch to the kernel
CLOUD_INIT = 11.0  # seconds from the kernel to the boot program
# Seconds in which a wait condition must have come into being, and what says that it has not.
PATIENCE = {"SUCCESS": 5 * 3600.0, "FAILURE": 300.0}
UNBORN = re.compile(r"Resource \S+ does not exist|Resource \S+ is in (CREATE_FAILED|DELETE_\w+) state")
RESTORE = "put the secret's previous value (AWSPREVIOUS) as a new version"
OTHERS = "did the boot of another master fail? Its console says why"
FIRST = "MasterAAutoScalingGroup"  # its master alone may make a new cluster
DEVICE = "/dev/sdf"  # as which the boot program attaches the data volume
POLL = 10.0  # seconds, the longest pause of the boot program
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
        self._begin = 0.0

    @property
    def steps(self) -> dict[str, Step]:
        """Every step of the instance's role by name, in order."""
        pretended: dict[str, Step] = {
            "packages": self._packages,
            "program": self._program,
            "settings": self._settings,
            "downloads": self._downloads,
            "services": self._services,
            "volume": self._volume,
            "authorities": self._authorities,
            "control plane": self._control_plane,
            "add-ons": self._addons,
            "join information": self._join_information,
            "backups": self._backups,
            "join": self._join,
            "ready": self._ready,
            "first pod": self._first_pod,
        }
        wanted = {name: pretended.get(name, self._other) for name in self.configuration["steps"]}
        return {"identity": self._identity, **wanted, "signal": self._succeed}

    def boot(self) -> Boot:
        """Boot: firmware, kernel, cloud-init, and the steps of the boot program."""
        yield FIRMWARE
        for line in kernel(self.instance):
            self.around.say(self.instance, line)
        yield CLOUD_INIT + self._variation
        script = self.around.script(self.instance)
        self._begin = self._clock.now
        for number, (name, step) in enumerate(self.steps.items(), 1):
            title, start = f"[{number}/{len(self.steps)}] {name}", self._clock.now
            try:
                if script and script.step == name:
                    if not script.message:
                        return
                    yield 5.0
                    raise BootFailure(script.message, script.hint)
                outcome = yield from step()
            except BootFailure as failure:
                passed = self._clock.now - start
                self._say(f"{title} FAILED after {passed:.1f} s: {failure}. What to do: {failure.hint}")
                self._say((yield from self._signal("FAILURE")))
                return
            except ClientError as error:
                passed = self._clock.now - start
                self._say(f"{title} FAILED after {passed:.1f} s: {error}. What to do: is the resource there?")
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

    def _packages(self) -> Generator[float, None, str]:
        yield 12.4 + self._variation
        names = ["iptables"] if "amazon" in self.instance.image else []
        return "installed " + ", ".join([*names, "python3-boto3"])

    def _program(self) -> Generator[float, None, str]:
        yield 0.4
        return f"{self.configuration['program']['resource']} unpacked"

    def _other(self) -> Generator[float, None, str]:
        """A step that changes nothing a caller of the sandbox could see."""
        yield 0.2
        return "done"

    def _settings(self) -> Generator[float, None, str]:
        yield 0.6
        files = self.instance.told.files
        return f"wrote {files} of {files} files"

    def _downloads(self) -> Generator[float, None, str]:
        yield 18.6 + self._variation
        files = len(self.configuration["assets"])
        return f"fetched {files} of {files} files"

    def _services(self) -> Generator[float, None, str]:
        yield 2.3
        return ", ".join(self.configuration["services"]) + " running"

    def _volume(self) -> Generator[float, None, str]:
        yield 7.5
        volume = self.references["volumeId"]
        client("ec2", self.around.cloud.region).attach_volume(
            VolumeId=volume, InstanceId=self.instance.id, Device=DEVICE
        )
        formatted = "" if volume in self.around.disks else ", formatted"
        return f"{volume} is /dev/nvme1n1{formatted}, mounted at /mnt/master"

    @property
    def _several(self) -> bool:
        """Whether the instance is one of several masters: they are told each other's addresses."""
        return "addressB" in self.references

    def _authorities(self) -> Generator[float, None, str]:
        yield 2.8
        secret, volume = self.references["caSecretArn"], self.references["volumeId"]
        self._bundle = self._secret(secret)
        if volume in self.around.disks:
            if not self._bundle:
                raise BootFailure(f"{volume} holds a cluster, but secret {secret} is empty", RESTORE)
            bucket = self.references.get("bucket", "")
            self._restoring = self.around.disks[volume].backups.pending(bucket, volume)
            if self._restoring:
                self._way = "restore"
                return f"restore: {self._restoring['snapshot']}"
            self._way = "resume"
            return "resume: restored certificate authorities"
        first = self.references["resource"] == FIRST
        if self._several and (not first or certificates.INITIALISED in self._bundle):
            what = "the first master" if not first else "the other masters"
            yield from self._wait(what, lambda: "" if self._joinable() else "no API answers yet")
            self._bundle = self._secret(secret)
            self._way = "join"
            return "join: restored certificate authorities"
        if since := self._bundle.get(certificates.INITIALISED):
            raise BootFailure(
                f"{volume} is blank, yet the cluster exists since {since}: going on would make a second, empty one",
                f"restore the volume from a snapshot; or, to begin again with nothing, remove "
                f"{certificates.INITIALISED} from secret {secret} and reboot",
            )
        self._way = "init"
        if self._bundle:
            return "init: restored certificate authorities"
        self._bundle = certificates.authorities(self._clock.time)
        self._store(secret, self._bundle)
        return "init: made certificate authorities"

    def _joinable(self) -> bool:
        """Whether there is a cluster that answers, for another master to join."""
        cluster = self.around.clusters.get(self.references["joinSecretArn"])
        known = certificates.INITIALISED in self._secret(self.references["caSecretArn"])
        return known and cluster is not None and self.around.answering(cluster)

    def _control_plane(self) -> Generator[float, None, str]:
        yield {"init": 61.5, "join": 48.0, "restore": 41.0, "resume": 33.0}[self._way]
        disks, volume = self.around.disks, self.references["volumeId"]
        if self._way == "init":
            disks[volume] = KubernetesCluster(
                self.configuration, self.references, self._bundle, lambda: self._clock.time, self._clock.later
            )
        elif self._way == "join":
            disks[volume] = self.around.clusters[self.references["joinSecretArn"]]
        cluster = disks[volume]
        if self._way == "restore":
            cluster.backups.restore(self.references["bucket"], volume, self._restoring)
        cluster.start(self.instance.id, self.configuration, self.references, self._bundle)
        self.around.clusters[self.references["joinSecretArn"]] = cluster
        start_control_plane(cluster.state, self.instance.id)
        self._register(cluster)
        yield 6.0
        if self._several and not self.around.answering(cluster):
            yield from self._wait(
                "a majority of etcd's members", lambda: "" if self.around.answering(cluster) else "too few are up"
            )
        secret = self.references["caSecretArn"]
        bundle = self._secret(secret)
        if certificates.INITIALISED not in bundle:
            self._store(secret, {**bundle, certificates.INITIALISED: cluster.state.time()})
        return {
            "init": "initialised a new cluster",
            "join": f"joined the cluster as one of {len(cluster.members)} masters",
            "restore": f"restored {self._restoring.get('snapshot', '')}",
            "resume": "resumed the cluster of the volume",
        }[self._way]

    def _addons(self) -> Generator[float, None, str]:
        yield 9.2
        cluster, manifests = self.around.disks[self.references["volumeId"]], self.configuration["manifests"]
        start_addons(cluster.state, self.instance.id, manifests)
        cluster.state.set_ready(self.instance.id, True)
        return f"applied {len(manifests)} objects"

    def _join_information(self) -> Generator[float, None, str]:
        yield 0.9
        return self.around.disks[self.references["volumeId"]].publish()

    def _backups(self) -> Generator[float, None, str]:
        yield 0.4
        interval, bucket = self.configuration["backups"]["interval"], self.references["bucket"]
        return f"a snapshot of etcd every {interval} minutes into s3://{bucket}"

    def _first_pod(self) -> Generator[float, None, str]:
        yield 1.6
        return f"a pod of {self.configuration['pause']} ran"

    def _join(self) -> Generator[float, None, str]:
        secret = self.references["joinSecretArn"]
        hint = "did a master's boot fail? Its console says why; on it: `systemctl status cfngen-boot cfngen-join`"

        def missing() -> str:
            cluster = self.around.clusters.get(secret)
            there = cluster and self.around.answering(cluster) and cluster.expires
            return "" if there else "no master has published the join information yet"

        yield from self._wait("joining", missing, hint)
        cluster = self.around.clusters[secret]
        if cluster.expires <= cluster.state.time(60):
            cluster.publish()
        found = self._secret(secret)
        yield 5.7
        self._register(cluster)
        return f"joined {found['endpoint']}"

    def _wait(self, what: str, missing: Callable[[], str], hint: str = OTHERS) -> Generator[float, None, None]:
        """Wait until nothing is missing any more, and say each minute what is."""
        start = said = self._clock.now
        # The program gives up early enough for its failure to reach CloudFormation before the stack's time is up.
        deadline = max(start + 60.0, self._begin + self.configuration["timeout"] * 60 - 120.0)
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
