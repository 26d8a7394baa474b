"""A cluster whose instances really boot: the account's instances as containers, with disks and a network."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lab_real
import lab_registry
import lab_root
import yaml
from lab_account import Account, account
from lab_balancer import Balancer
from lab_disks import Disks
from lab_instance import Instance
from lab_leftovers import sweep
from lab_metadata import Identity, Metadata
from lab_mirror import Mirror, library
from lab_network import METADATA, SERVICES, Network, command, network

from cfngen.cluster.load import load
from cfngen.sandbox.cloudformation import LaunchedInstance, Stack

LOOK = 0.1  # seconds between two looks at the account
# Seconds that anything may take: that the machine is busy is no failure. A stack that hears nothing waits 20 minutes.
PATIENCE = 600


class Lab:
    """Instances, and what they stand on.

    Args:
        file: the cluster file.
        folder: for everything that the lab writes.
        net: where instances are.
        where: the account.
        mirror: where instances fetch files.

    Attributes:
        cluster: what the file says.
        instances: by id, in the order of their launch; those that are gone, too.
        groups: the Auto Scaling group of each.
        launched: when each was launched, on the monotonic clock.
        fault: what went wrong in the lab itself.
        stack: what `bring_up` has created.
        foreign_volumes: whether new volumes hold something that is not ours.
        images: what real containers run; None if there are only stand-ins.
        pulled: what was asked of the registry, in order.
    """

    def __init__(self, file: Path, folder: Path, net: Network, where: Account, mirror: Mirror) -> None:
        self.file, self.folder, self.network, self.account, self.mirror = file, folder, net, where, mirror
        self.cluster = load(file, environ={}).cluster
        self.instances: dict[str, Instance] = {}
        self.groups: dict[str, str] = {}
        self.disks = Disks(folder / "disks")
        self.disks.folder.mkdir()
        self.metadata = Metadata(net.listen(METADATA, 80))
        where.announce_termination = self.metadata.announce_termination
        self.library = library(folder / "library")
        self.images = lab_real.images()
        self.pulled: list[str] = []
        self._registry = (
            lab_registry.serve(net.listen(SERVICES, lab_registry.PORT), self.images, self.pulled)
            if self.images
            else None
        )
        self.fault = ""
        self.launched: dict[str, float] = {}
        self.stack: Stack
        self.foreign_volumes = False
        self._wipe: set[str] = set()
        self._root = lab_root.root()
        self._numbers = itertools.count(1)
        self._released: set[str] = set()
        self._bound: dict[str, int] = {}
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(8)
        self._thread = threading.Thread(target=self._look, daemon=True)
        where.cloud.on_launch = self._launched

    # What the account does

    def _launched(self, launched: LaunchedInstance) -> None:
        """Begin to boot an instance; called with the account locked."""
        if launched.instance_id in self.instances:
            return
        number = next(self._numbers)
        root, told = self._root, self.account.served.moto_extensions.set_console_output
        made = Instance(
            launched.instance_id, self.folder, root, self.network, number, lambda text: told(launched.instance_id, text)
        )
        self.groups[made.id], self.launched[made.id] = launched.group, time.monotonic()
        self.instances[made.id] = made
        self._pool.submit(self._begin, made)

    def _begin(self, instance: Instance) -> None:
        try:
            instance.mount(self.library, containers=self.images is not None)
            self.account.attach_interface(instance.id)
            address = self._identify(instance)
            instance.start(address, lambda mac: self._answer(instance, address, mac))
        except Exception as error:  # noqa: BLE001 - a thread's failure must reach the test
            self.fault = f"{instance.id}: {type(error).__name__}: {error}"

    def _identify(self, instance: Instance) -> str:
        [found] = self.account.call("ec2", "describe_instances", InstanceIds=[instance.id])["Reservations"][0][
            "Instances"
        ]
        role = self.account.role(instance.id)
        [kind] = self.account.call("ec2", "describe_instance_types", InstanceTypes=[found["InstanceType"]])[
            "InstanceTypes"
        ]
        interface = found["NetworkInterfaces"][0]
        subnet = self.account.call("ec2", "describe_subnets", SubnetIds=[interface["SubnetId"]])["Subnets"][0]
        vpc = self.account.call("ec2", "describe_vpcs", VpcIds=[subnet["VpcId"]])["Vpcs"][0]
        instance.identity = {
            "instance_id": instance.id,
            "zone": found["Placement"]["AvailabilityZone"],
            "instance_type": found["InstanceType"],
            "image": found["ImageId"],
            "user_data": self.account.user_data(instance.id),
            "role": role.name,
            "access_key": role.access_key,
            "secret_key": role.secret_key,
            "interface": interface["NetworkInterfaceId"],
            "subnet_id": subnet["SubnetId"],
            "subnet": subnet["CidrBlock"],
            "vpc_id": vpc["VpcId"],
            "vpc": vpc["CidrBlock"],
            "public_address": found.get("PublicIpAddress", ""),
            "life_cycle": found.get("InstanceLifecycle", "on-demand"),
            "hypervisor": kind["Hypervisor"],
        }
        return str(found["PrivateIpAddress"])

    def _answer(self, instance: Instance, address: str, mac: str) -> None:
        """Let the metadata service know an instance."""
        self.metadata.identities[address] = Identity(address=address, mac=mac, **instance.identity)

    def _look(self) -> None:
        while not self._stopped.wait(LOOK):
            try:
                self._follow()
            except Exception as error:  # noqa: BLE001 - likewise
                self.fault = f"{type(error).__name__}: {error}"

    def _follow(self) -> None:
        """Do with containers and disks what has become of instances and volumes."""
        running = self.account.running()
        for identifier in [each for each in self.instances if each not in running and each not in self._released]:
            self._released.add(identifier)
            self.stop(identifier)
            self._follow_disks()
            self.account.release(identifier)
            self._follow_disks()
            for volume in self._wipe - self._bound.keys():
                self.disks.wipe(volume)
            self._wipe &= self._bound.keys()
        for identifier, group in running.items():
            if group and identifier not in self.instances:
                with self.account.lock:
                    self._launched(LaunchedInstance(identifier, group))
        self._follow_disks()

    def _follow_disks(self) -> None:
        attached = self.account.attachments()
        for volume, (identifier, size, device) in attached.items():
            leader = self.instances[identifier].leader if identifier in self.instances else 0
            if leader and self._bound.get(volume) != leader:
                known = volume in self.disks.disks
                disk = self.disks.disk(volume, size)
                if self.foreign_volumes and not known:
                    command("mkswap", disk.file)
                self.disks.detach(disk)
                is_xen = self.instances[identifier].identity["hypervisor"] == "xen"
                self.disks.attach(disk, leader, Path(device.replace("/sd", "/xvd")).name if is_xen else "")
                self._bound[volume] = leader
        for volume in self._bound.keys() - attached.keys():
            self._unbind(volume)

    def _unbind(self, volume: str) -> None:
        self.disks.detach(self.disks.disks[volume])
        self._bound.pop(volume, None)

    # What a test does

    def stop(self, identifier: str) -> None:
        """Let a machine die; EC2 does not know of it yet."""
        instance = self.instances[identifier]
        instance.destroy()
        for address, identity in list(self.metadata.identities.items()):
            if identity.instance_id == identifier:
                del self.metadata.identities[address]

    def terminate(self, identifier: str) -> None:
        """Terminate an instance, whose group then launches another."""
        self.account.call("ec2", "terminate_instances", InstanceIds=[identifier])

    def terminate_and_wipe(self, identifier: str) -> None:
        """Terminate a master, and lose what is on its volume before another gets it."""
        self._wipe.add(self.volume(self.instances[identifier]))
        self.terminate(identifier)

    def members(self, group: str) -> list[Instance]:
        """Return the instances of a group that have not been terminated, by the logical id within its name."""
        running = self.account.running()
        return [each for each in self.instances.values() if each.id in running and group in self.groups[each.id]]

    def newest(self, group: str) -> Instance:
        """Return the instance of a group that was launched last."""
        return self.members(group)[-1]

    def create(self) -> Stack:
        """Begin to create the cluster."""
        with self.mirror.overlaid():
            return self.account.create(self.cluster.name, self.cluster)

    def bring_up(self) -> None:
        """Create the cluster, and wait until all its instances have come to the end of their boots."""
        self.stack = self.create()
        assert self.settled(self.stack) == "CREATE_COMPLETE", self.story()
        self.until("the end of the boots", lambda: all(instance.booted for instance in self.instances.values()))

    def update(self, **more: object) -> Stack:
        """Begin to update the stack after fields of the cluster file have changed."""
        self.file.write_text(yaml.safe_dump({**yaml.safe_load(self.file.read_text()), **more}))
        self.cluster = load(self.file, environ={}).cluster
        with self.mirror.overlaid():
            return self.account.update(self.cluster.name, self.cluster)

    def until(self, what: str, condition: Callable[[], Any]) -> Any:
        """Return what a condition returns once it holds; a fault of the lab ends the wait.

        Raises:
            AssertionError: it does not hold.
        """

        end = time.monotonic() + PATIENCE
        while True:
            faults = [self.fault, *(instance.fault for instance in self.instances.values())]
            assert not any(faults), faults
            if value := condition():
                return value
            assert time.monotonic() < end, f"waited {PATIENCE} s in vain for {what}\n{self.story()}"
            time.sleep(LOOK)

    def settled(self, stack: Stack) -> str:
        """Wait for the end of what a stack is doing; return its status."""
        self.until("the stack", lambda: not stack.status.endswith("IN_PROGRESS"))
        return str(stack.status)

    def story(self) -> str:
        """Return what every instance has said."""
        parts = [f"fault of the lab: {self.fault}"] if self.fault else []
        for each in self.instances.values():
            parts.append(f"--- {each.id} ({self.groups[each.id]}, {'running' if each.running else 'gone'})")
            parts += each.lines[-25:] or each.console.splitlines()[-15:]
            if each.leader and "Master" in self.groups[each.id]:
                parts.append(
                    each.run("journalctl", "-u", "pod-etcd", "-o", "cat", "-n", "8", "--no-pager", check=False)
                )
        return "\n".join([*parts, "--- errors of the account", *self.account.refusals[-20:]])

    def operator(self, *arguments: str) -> str:
        """Run `cfngen` as an operator's machine would, and return what it printed.

        It reaches AWS at the account's address and the Kubernetes API by the name or address of the stack's outputs.

        Raises:
            AssertionError: it failed.
        """
        endpoint = next(str(value) for key, value in self.outputs().items() if key == "ApiEndpoint")
        host = urllib.parse.urlsplit(endpoint).hostname or ""
        literal = host.replace(".", "").isdecimal()
        address = host if literal else SERVICES
        hosts = self.folder / "hosts"
        hosts.write_text("127.0.0.1 localhost\n" + (f"{address} {host}\n" if not literal else ""))
        port = urllib.parse.urlsplit(endpoint).port or 443
        balancer = Balancer(self.network, address, port, lambda: [str(each.address) for each in self.cluster.slots])
        environment = {
            **os.environ,
            "AWS_ACCESS_KEY_ID": "operator",
            "AWS_SECRET_ACCESS_KEY": "operator",
            "AWS_DEFAULT_REGION": self.cluster.region,
            "AWS_ENDPOINT_URL": f"http://{SERVICES}:{lab_root.API_PORT}",
            "NO_COLOR": "1",
        }
        script = 'mount --bind "$0" /etc/hosts && exec "$@"'
        enter = ("nsenter", f"--net={self.network.path}", "unshare", "--mount", "sh", "-c", script, str(hosts))
        words = (*enter, sys.executable, "-m", "cfngen", *arguments, "--cluster", str(self.file))
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, env=environment, timeout=PATIENCE, check=False, cwd=self.folder
            )
        finally:
            balancer.close()
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{self.story()}"
        return done.stdout + done.stderr

    def outputs(self) -> dict[str, str]:
        """Return the outputs of the stack."""
        [found] = self.account.call("cloudformation", "describe_stacks", StackName=self.cluster.name)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}

    def secret(self, reference: str) -> dict[str, Any]:
        """Return what a secret holds, by the name under which the masters know it."""
        arn = self.references(self.newest("Master"))[reference]
        answer = self.account.call("secretsmanager", "get_secret_value", SecretId=arn)
        return dict(json.loads(answer["SecretString"]))

    @staticmethod
    def references(instance: Instance) -> dict[str, str]:
        """Return what an instance was told by CloudFormation."""
        found = re.search(r"^REFERENCES = (\{.*\})$", instance.identity["user_data"].decode(), re.MULTILINE)
        assert found
        return dict(json.loads(found[1]))

    def volume(self, instance: Instance) -> str:
        """Return the data volume of a master."""
        return self.references(instance)["volumeId"]

    def kubectl(self, master: Instance, *arguments: str) -> Any:
        """Ask the API server by a master's kubectl, as its administrator; return the answer."""
        text = master.run("kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", *arguments, "-o", "json")
        return json.loads(text)

    def signals(self, stack: Stack) -> list[str]:
        """Return the signals that the stack's events tell of, in order."""
        reasons = (each.reason or "" for each in stack.events)
        return [each for each in reasons if "signal with UniqueId" in each]

    def open(self) -> None:
        """Follow the account from now on."""
        self._thread.start()

    def close(self) -> None:
        """End every instance and remove what was made."""
        self._stopped.set()
        if self._thread.ident:
            self._thread.join()
        self._pool.shutdown(wait=True)
        for each in self.instances.values():
            each.destroy()
            each.discard()
        self.disks.close()
        self.metadata.server.close()
        if self._registry:
            self._registry.close()


@contextlib.contextmanager
def laboratory(file: Path) -> Iterator[Lab]:
    """A lab for a cluster, with nothing in it yet; at the end of the block nothing of it is left.

    Args:
        file: the cluster file.
    """
    cluster = load(file, environ={}).cluster
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"run-{os.getpid()}-", dir=lab_root.cache()))
    mirror = Mirror()
    mirror.fill()
    subnets = tuple(each.cidr for each in cluster.network.subnets)
    try:
        with contextlib.ExitStack() as stack:
            net = stack.enter_context(network(subnets))
            stack.callback(mirror.serve(net).close)
            where = stack.enter_context(account(cluster.region, net))
            made = Lab(file, folder, net, where, mirror)
            stack.callback(made.close)
            made.open()
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def calls(instance: Instance, program: str = "") -> list[dict[str, Any]]:
    """Return how stand-ins were called on an instance, in order."""
    found = [json.loads(line) for line in instance.read("/var/log/bootlab-calls.jsonl").splitlines()]
    return [each for each in found if program in ("", each["program"])]
