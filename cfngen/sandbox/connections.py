"""Which servers an emulated boot cannot reach, in the words of the programs that try.

The boot program downloads files itself (urllib) and calls AWS with botocore; the distribution's package manager and
containerd have servers of their own. What an image of the user's own contains is not known: it is taken for the
distribution's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from cfngen.sandbox.instance import Instance
from cfngen.sandbox.reachability import (
    S3,
    Interface,
    primary_interface,
    reaches_host,
    reaches_internet,
    reaches_service,
)

KUBERNETES_REGISTRY = "registry.k8s.io"
# Servers of the files in `cfngen.releases` on the internet; another server in a file's URL is a mirror of the user's.
PUBLIC_SERVERS = frozenset({"artifacts.k8s.io", "dl.k8s.io", "get.helm.sh", "github.com"})
NO_BOTOCORE = "No module named 'botocore'"  # Python's error if the packages could not be installed
APT_INSTALL = "apt-get -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5 --no-install-recommends install"
KUBEADM_PREFLIGHT = "kubeadm init phase preflight --config /opt/cfngen/kubeadm.yaml"


class Connections:
    """The connections of one instance to servers outside of the cluster, as its network allows them now."""

    def __init__(self, region: str, instance: Instance) -> None:
        self._region = region
        self._instance = instance

    def why_no_service(self, service: str) -> str:
        """Return botocore's error if an AWS service cannot be reached; empty if it can.

        Args:
            service: boto3's name of the service.
        """
        domain = "amazonaws.com.cn" if self._region.startswith("cn-") else "amazonaws.com"
        host = f"{service}.{self._region}.{domain}"
        if self._reaches(host, lambda: reaches_service(self._interface, service)):
            return ""
        return f'Connect timeout on endpoint URL: "https://{host}/"'

    def why_no_download(self, url: str) -> str:
        """Return urllib's error if a file of a URL cannot be downloaded; empty if it can."""
        host = urlsplit(url).hostname or ""
        reaches_server = self._reaches_public(host) if host in PUBLIC_SERVERS else self._reaches_mirror(url)
        return "" if reaches_server else "<urlopen error timed out>"

    def why_no_packages(self, names: list[str]) -> str:
        """Return the package manager's error if the distribution's packages cannot be downloaded; empty if they can.

        The repositories of Amazon Linux 2023 are in Amazon S3 and can be used through a gateway endpoint, as
        awstut-an-r/awstut-fa, 002, shows; those of Debian and Ubuntu are on the internet.
        """
        joined_names = " ".join(names)
        if "amazon" in self._instance.image.lower():
            host = f"al2023-repos-{self._region}-de612dc2.s3.dualstack.{self._region}.amazonaws.com"
            if self._reaches(host, lambda: reaches_service(self._interface, S3)):
                return ""
            return (
                f"`dnf -y install {joined_names}` exited with 1: Error: Failed to download metadata for repo "
                "'amazonlinux': Cannot prepare internal mirrorlist: Curl error (28): Timeout was reached for "
                f"https://{host}/core/mirrors/latest/x86_64/mirror.list"
            )
        if self._reaches_public(""):
            return ""
        # Without its lists of packages, which no image contains, apt knows no package.
        return f"`{APT_INSTALL} {joined_names}` exited with 100: E: Unable to locate package {names[0]}"

    def why_no_control_plane_images(self, version: str) -> str:
        """Return kubeadm's error if the images of the control plane cannot be pulled; empty if they can."""
        if self.reaches_registry(KUBERNETES_REGISTRY):
            return ""
        image = f"{KUBERNETES_REGISTRY}/kube-apiserver:{version}"
        return f"`{KUBEADM_PREFLIGHT}` exited with 1: [ERROR ImagePull]: failed to pull image {image}: i/o timeout"

    def reaches_registry(self, host: str) -> bool:
        """Return whether images of a registry can be pulled, from the registry itself or from a mirror of it."""
        mirrors: Mapping[str, tuple[str, ...]] = self._instance.boot_data.registry_mirrors
        return self._reaches_public(host) or any(self._reaches_mirror(url) for url in mirrors.get(host, ()))

    @property
    def _interface(self) -> Interface:
        return primary_interface(self._region, self._instance.id)

    def _reaches_mirror(self, url: str) -> bool:
        host = urlsplit(url).hostname or ""
        return self._reaches(host, lambda: reaches_host(self._interface, host))

    def _reaches_public(self, host: str) -> bool:
        return self._reaches(host, lambda: reaches_internet(self._interface))

    def _reaches(self, host: str, reaches_directly: Callable[[], bool]) -> bool:
        """Return whether a server can be reached: through the proxy if there is one for it, otherwise directly."""
        boot_data = self._instance.boot_data
        is_direct = any(
            host == direct or host.endswith(f".{direct.removeprefix('.')}") for direct in boot_data.direct_hosts
        )
        if boot_data.proxy and not is_direct:
            return reaches_host(self._interface, urlsplit(boot_data.proxy).hostname or "")
        return reaches_directly()
