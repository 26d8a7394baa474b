"""A whole account: CloudFormation, published images, instances that boot, Kubernetes clusters, and one lock."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from moto import mock_aws

from cfngen.sandbox.cloudformation import ApiError, CloudFormation, client
from cfngen.sandbox.cluster import KubernetesCluster
from cfngen.sandbox.machines import Machines

PUBLIC_PREFIX = "/aws/service/"
# What the publishers' images are called, by what stands in the name of their public parameter, and their root device.
PUBLISHED_IMAGES = {
    "/ubuntu/server/22.04": ("Ubuntu 22.04.5 LTS", "/dev/sda1"),
    "/ubuntu/server/24.04": ("Ubuntu 24.04.3 LTS", "/dev/sda1"),
    "/debian/release/12": ("Debian GNU/Linux 12 (bookworm)", "/dev/xvda"),
    "/debian/release/13": ("Debian GNU/Linux 13 (trixie)", "/dev/xvda"),
    "/al2023-": ("Amazon Linux 2023", "/dev/xvda"),
}


class Published(dict[str, str]):
    """Parameter Store: the images that AWS' partners publish, each registered when somebody asks for it.

    Args:
        region: of the account.
        others: further parameters, values by name.
    """

    def __init__(self, region: str, parameters: Mapping[str, str] | None = None) -> None:
        super().__init__(parameters or {})
        self._region = region

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).startswith(PUBLIC_PREFIX)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a parameter's value; dict's own method would not register the image."""
        return self[name] if name in self else default  # noqa: SIM401 - this is that method

    def __missing__(self, name: str) -> str:
        if not name.startswith(PUBLIC_PREFIX):
            raise KeyError(name)
        publishers = (publisher for part, publisher in PUBLISHED_IMAGES.items() if part in name)
        description, device = next(publishers, (name, "/dev/xvda"))
        self[name] = client("ec2", self._region).register_image(
            Name=name.strip("/").replace("/", "-"),
            Description=description,
            Architecture="arm64" if "arm64" in name else "x86_64",
            RootDeviceName=device,
        )["ImageId"]
        return self[name]


@dataclass(frozen=True)
class KubernetesEndpoint:
    """Where the API of a cluster answers on this machine.

    Attributes:
        stack: name of the root stack.
        api_endpoint: the address that the stack's outputs name.
        address: the one that answers.
    """

    stack: str
    api_endpoint: str
    address: str


class EmulatedAccount:
    """One region of an account, within an open `mock_aws`.

    Args:
        region: where everything is.
        parameters: Parameter Store beyond the public images, values by name.
        console: told of an instance's id and of its console's text.
        lock: that of the account, if it has other regions too.
        durations: seconds that a resource of a type takes; nothing if left out.
        speed: simulated seconds in a second of those who use the account; certificates live as long as these think.

    Attributes:
        cloud: CloudFormation.
        machines: the instances, and what is to go wrong on them.
        lock: held by whoever does anything here while other threads may.
    """

    def __init__(
        self,
        region: str,
        *,
        parameters: Mapping[str, str] | None = None,
        console: Callable[[str, str], None] = lambda instance, text: None,
        lock: AbstractContextManager[Any] | None = None,
        durations: Mapping[str, float] | None = None,
        speed: float = 1.0,
    ) -> None:
        self.region = region
        self.speed = speed
        self.lock = lock or threading.RLock()
        self.machines = Machines(region, console)
        self.cloud = CloudFormation(region, instances=self.machines, durations=durations)
        self.cloud.stored = Published(region, parameters)
        self.machines.cloud = self.cloud
        self.cloud.leaving = self.machines.on_terminating

    def advance(self, seconds: float) -> None:
        """Let simulated time pass, and everything happen that is due in it."""
        with self.lock:
            self.cloud.advance(seconds)
            if self.machines.instances:
                self.machines.refresh()

    @property
    def clusters(self) -> list[KubernetesCluster]:
        """Clusters of which enough masters run."""
        with self.lock:
            self.machines.refresh()
            return [cluster for cluster in self.machines.clusters.values() if self.machines.has_quorum(cluster)]

    def cluster(self, name: str) -> KubernetesCluster:
        """Return the cluster of a name.

        Raises:
            KeyError: none of which enough masters run
        """
        for cluster in self.clusters:
            if cluster.name == name:
                return cluster
        raise KeyError(name)

    def kubernetes_endpoints(self) -> list[KubernetesEndpoint]:
        """Return where the clusters' APIs answer; they listen from now on."""
        with self.lock:
            return [
                KubernetesEndpoint(self._root_stack_name(cluster), cluster.api_endpoint, self.address(cluster))
                for cluster in self.clusters
            ]

    def address(self, cluster: KubernetesCluster) -> str:
        """Return where a cluster's API answers; it listens from now on."""
        return cluster.address(self.lock, lambda: self._is_up(cluster), self.speed)

    def close(self) -> None:
        """Stop kubernetes_endpoints."""
        for cluster in {id(cluster): cluster for cluster in self.machines.disks.values()}.values():
            cluster.close()

    def _is_up(self, cluster: KubernetesCluster) -> bool:
        self.machines.refresh()
        return self.machines.has_quorum(cluster)

    def _root_stack_name(self, cluster: KubernetesCluster) -> str:
        try:
            return self.cloud.stack(cluster.references["stack"]).root.name
        except ApiError:
            return ""


@contextlib.contextmanager
def opened(region: str, **arguments: Any) -> Iterator[EmulatedAccount]:
    """A new account, or the one that is open already, with a world in it; see `World` for the arguments."""
    with mock_aws():
        world = EmulatedAccount(region, **arguments)
        try:
            yield world
        finally:
            world.close()
