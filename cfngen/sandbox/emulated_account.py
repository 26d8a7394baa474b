"""An emulated account: CloudFormation, public AMI parameters, instances that boot, and Kubernetes clusters."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from moto import mock_aws

from cfngen.sandbox.cloudformation import ApiError, CloudFormation, client
from cfngen.sandbox.cloudformation.simulation import DEFAULT_SEED
from cfngen.sandbox.instances.machines import Machines
from cfngen.sandbox.kubernetes.cluster import KubernetesCluster

PUBLIC_PREFIX = "/aws/service/"
# The beginning of the description of AWS's images with NVIDIA's driver, and the size of their snapshot in GiB. The size
# is assumed: public code that launches these images measured it (September 2026).
DEEP_LEARNING_IMAGE = "Deep Learning Base OSS Nvidia Driver GPU AMI"
DEEP_LEARNING_IMAGE_GIB = 75
# Description and root device of the public AMIs, by a part of their parameter's name.
PUBLISHED_IMAGES = {
    "/base-oss-nvidia-driver-gpu-ubuntu-22.04/": (f"{DEEP_LEARNING_IMAGE} (Ubuntu 22.04)", "/dev/sda1"),
    "/base-oss-nvidia-driver-gpu-ubuntu-24.04/": (f"{DEEP_LEARNING_IMAGE} (Ubuntu 24.04)", "/dev/sda1"),
    "/base-oss-nvidia-driver-gpu-amazon-linux-2023/": (f"{DEEP_LEARNING_IMAGE} (Amazon Linux 2023)", "/dev/xvda"),
    "/ubuntu/server/22.04": ("Ubuntu 22.04.5 LTS", "/dev/sda1"),
    "/ubuntu/server/24.04": ("Ubuntu 24.04.3 LTS", "/dev/sda1"),
    "/debian/release/12": ("Debian GNU/Linux 12 (bookworm)", "/dev/xvda"),
    "/debian/release/13": ("Debian GNU/Linux 13 (trixie)", "/dev/xvda"),
    "/al2023-": ("Amazon Linux 2023", "/dev/xvda"),
}


class PublicParameters(dict[str, str]):
    """Parameter Store with the public AMI parameters: each AMI is registered in moto when its parameter is first read.

    Args:
        parameters: further parameters, values by name.
    """

    def __init__(self, region: str, parameters: Mapping[str, str] | None = None) -> None:
        super().__init__(parameters or {})
        self._region = region

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).startswith(PUBLIC_PREFIX)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a parameter's value; `dict.get` would not call `__missing__`, which registers the AMI."""
        return self[name] if name in self else default  # noqa: SIM401 - this is that method

    def __missing__(self, name: str) -> str:
        if not name.startswith(PUBLIC_PREFIX):
            raise KeyError(name)
        known_images = [image for name_part, image in PUBLISHED_IMAGES.items() if name_part in name]
        description, root_device = known_images[0] if known_images else (name, "/dev/xvda")
        disk = {"VolumeSize": DEEP_LEARNING_IMAGE_GIB} if description.startswith(DEEP_LEARNING_IMAGE) else None
        self[name] = client("ec2", self._region).register_image(
            Name=name.strip("/").replace("/", "-"),
            Description=description,
            Architecture="arm64" if "arm64" in name else "x86_64",
            RootDeviceName=root_device,
            **({"BlockDeviceMappings": [{"DeviceName": root_device, "Ebs": disk}]} if disk else {}),
        )["ImageId"]
        return self[name]


@dataclass(frozen=True)
class KubernetesEndpoint:
    """The Kubernetes API of a cluster: its URL in the stack, and its URL on this machine.

    Attributes:
        stack: name of the root stack.
        api_endpoint: one of the API's URLs in the stack's outputs.
        address: the API's URL on this machine.
    """

    stack: str
    api_endpoint: str
    address: str


class EmulatedAccount:
    """One region of an account, within an open `mock_aws`.

    Args:
        console: called with an instance's id and its whole console output, whenever the instance writes a line.
        lock: the lock that this region shares with the account's other regions; by default, a new one.
        durations: seconds that operations take, by name; by default, operations take no time.
        seed: draws the order of resources that do not depend on each other; see `ResourceOrder`.
        speed: simulated seconds in a second of real time; see `Connection.caller` for its effect on certificates.

    Attributes:
        machines: the instances, and the faults of their boots.
        lock: hold it during every access if other threads use the account.
    """

    def __init__(
        self,
        region: str,
        *,
        parameters: Mapping[str, str] | None = None,
        console: Callable[[str, str], None] = lambda instance, text: None,
        lock: AbstractContextManager[object] | None = None,
        durations: Mapping[str, float] | None = None,
        seed: int = DEFAULT_SEED,
        speed: float = 1.0,
    ) -> None:
        self.region = region
        self.speed = speed
        self.lock = lock or threading.RLock()
        self.machines = Machines(region, console)
        self.cloud = CloudFormation(region, on_launch=self.machines, durations=durations, seed=seed)
        self.cloud.parameter_store = PublicParameters(region, parameters)
        self.machines.cloud = self.cloud
        self.cloud.on_terminating = self.machines.on_terminating

    def advance(self, seconds: float) -> None:
        """Advance simulated time by a number of seconds, and run everything that is due by then."""
        with self.lock:
            self.cloud.advance(seconds)
            if self.machines.instances:
                self.machines.refresh()

    @property
    def clusters(self) -> list[KubernetesCluster]:
        """The clusters that have a quorum of masters."""
        with self.lock:
            self.machines.refresh()
            return [cluster for cluster in self.machines.clusters.values() if self.machines.has_quorum(cluster)]

    def cluster(self, name: str) -> KubernetesCluster:
        """Return the cluster with a name.

        Raises:
            KeyError: there is none, or it has no quorum of masters
        """
        for cluster in self.clusters:
            if cluster.name == name:
                return cluster
        raise KeyError(name)

    def kubernetes_endpoints(self) -> list[KubernetesEndpoint]:
        """Return the endpoints of all clusters' APIs; start the APIs that do not listen yet."""
        with self.lock:
            return [
                KubernetesEndpoint(self._root_stack_name(cluster), url, self.address(cluster))
                for cluster in self.clusters
                for url in self._api_urls(cluster)
            ]

    def _api_urls(self, cluster: KubernetesCluster) -> list[str]:
        """Return the URLs of a cluster's API: those in its stack's outputs, which a stack in creation does not have."""
        outputs: Mapping[str, str] = {}
        with contextlib.suppress(ApiError):
            outputs = self.cloud.stack(cluster.references["stack"]).outputs
        urls = [outputs[name] for name in ("ApiEndpoint", "ApiInternalEndpoint") if name in outputs]
        return list(dict.fromkeys([*urls, cluster.api_endpoint]))

    def address(self, cluster: KubernetesCluster) -> str:
        """Return the URL of a cluster's API on this machine; start it if it does not listen yet."""
        return cluster.address(self.lock, lambda: self._is_up(cluster), self.speed)

    def close(self) -> None:
        """Stop the clusters' APIs."""
        # Once for each of a cluster's volumes; closing a closed cluster does nothing.
        for cluster in self.machines.clusters_by_volume.values():
            cluster.close()

    def _is_up(self, cluster: KubernetesCluster) -> bool:
        """Return whether the cluster's API answers, which it does while etcd has a quorum."""
        self.machines.refresh()
        return self.machines.has_quorum(cluster)

    def _root_stack_name(self, cluster: KubernetesCluster) -> str:
        """Return the name of a cluster's root stack; empty if it does not exist any more."""
        try:
            return self.cloud.stack(cluster.references["stack"]).root.name
        except ApiError:
            return ""


@contextlib.contextmanager
def open_emulated_account(region: str, **arguments: Any) -> Iterator[EmulatedAccount]:
    """Open a moto account, or use the one that is open already; see `EmulatedAccount` for the arguments."""
    with mock_aws():
        account = EmulatedAccount(region, **arguments)
        try:
            yield account
        finally:
            account.close()
