"""What a network interface reaches now, and which servers a boot cannot reach, in the words of the programs that try.

The answers follow from moto's route tables, gateways and VPC endpoints:

- The route table of a subnet is the one that is associated with it, otherwise the VPC's main route table (VPC user
  guide, "Subnet route tables").
- An internet gateway takes traffic only of interfaces with a public address (VPC user guide, "Enable internet access
  for a VPC using an internet gateway").
- A NAT gateway takes traffic to the internet if it is public, and its subnet has a route to an internet gateway (VPC
  user guide, "NAT gateways").
- A gateway endpoint serves the subnets of its route tables (AWS PrivateLink guide, "Gateway endpoints").
- An interface endpoint with private DNS answers for the service's name in the whole VPC, so that its security groups
  decide, also where there is a way to the internet (AWS PrivateLink guide, "Access an AWS service using an interface
  VPC endpoint").

Not looked at: network ACLs, endpoint policies, rules for outbound traffic, IPv6, and what is behind transit gateways,
peering connections and VPN connections, which therefore are no way to the internet.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from cfngen.sandbox.instances.instance import Instance
from cfngen.sandbox.services.networks import is_true
from cfngen.sandbox.services.vpc_endpoints import is_gateway
from cfngen.sandbox.untyped import MotoBackend, MotoModel

S3 = "s3"
ECR_REGISTRIES = "ecr.dkr"  # the service of the hosts `<account>.dkr.ecr.<region>.amazonaws.com`
DEFAULT_ROUTE = "0.0.0.0/0"
HTTPS = 443
# Hosts of a region's services, e.g. `bucket.s3.us-west-2.amazonaws.com` (Amazon S3 user guide, "Virtual hosting").
_SERVICE_HOST = re.compile(
    r"(?:.+\.)?(?P<service>dkr\.ecr|(?!dualstack)[a-z0-9]+)(?:\.dualstack)?"
    r"\.(?P<region>[a-z]+(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?"
)


@dataclass(frozen=True)
class Interface:
    """A network interface, existing or imagined.

    Attributes:
        has_public_address: whether it has a public address, its own or an Elastic IP.
    """

    region: str
    subnet_id: str
    has_public_address: bool
    private_address: str
    group_ids: frozenset[str]


def primary_interface(region: str, instance_id: str) -> Interface:
    """Return the primary interface of an instance as it is now."""
    instance: MotoModel = _backend(region).get_instance(instance_id)
    interface: MotoModel = instance.nics[0]
    return Interface(
        region,
        subnet_id=interface.subnet.id,
        has_public_address=bool(interface.public_ip),
        private_address=interface.private_ip_address,
        group_ids=frozenset(group.id for group in interface.group_set),
    )


def reaches_internet(interface: Interface) -> bool:
    """Return whether an interface reaches public addresses."""
    backend = _backend(interface.region)
    subnet: MotoModel = backend.get_subnet(interface.subnet_id)
    if _leads_to_internet_gateway(backend, subnet):
        return interface.has_public_address
    route = _default_route(backend, subnet)
    if route is None:
        return False
    if route.nat_gateway:
        return _nat_gateway_works(backend, route.nat_gateway)
    return _nat_instance_works(backend, route)


def reaches_service(interface: Interface, service: str) -> bool:
    """Return whether an interface reaches an AWS service of its region by the service's usual name.

    Args:
        service: the service as endpoints name it, which is boto3's name for those that instances call, e.g. `ec2`.
    """
    backend = _backend(interface.region)
    vpc_id = backend.get_subnet(interface.subnet_id).vpc_id
    endpoints = [
        endpoint
        for endpoint in backend.vpc_end_points.values()
        if endpoint.state == "available"
        and endpoint.vpc_id == vpc_id
        and endpoint.service_name.endswith(f".{interface.region}.{service}")
    ]
    # The service's name leads to the endpoint, so packets do not take the way to the internet.
    if named := [endpoint for endpoint in endpoints if _has_private_name(backend, endpoint)]:
        return any(_admits(backend, endpoint, interface) for endpoint in named)
    table = _route_table(backend, backend.get_subnet(interface.subnet_id))
    is_routed = any(table.id in (endpoint.route_table_ids or ()) for endpoint in endpoints if is_gateway(endpoint))
    return is_routed or reaches_internet(interface)


def reaches_host(interface: Interface, host: str) -> bool:
    """Return whether an interface reaches a server that is the user's own, such as a mirror of files.

    Args:
        host: an address, the name of an AWS service's endpoint, or another name, which stands for a server in the VPC.
    """
    if match := _SERVICE_HOST.fullmatch(host):
        if match["region"] != interface.region:
            return reaches_internet(interface)
        return reaches_service(interface, ECR_REGISTRIES if match["service"] == "dkr.ecr" else match["service"])
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError:
        return True
    backend = _backend(interface.region)
    vpc: MotoModel = backend.get_vpc(backend.get_subnet(interface.subnet_id).vpc_id)
    if any(address in ipaddress.IPv4Network(item["cidr_block"]) for item in vpc.cidr_block_association_set):
        return True
    return address.is_global and reaches_internet(interface)


def _backend(region: str) -> MotoBackend:
    return ec2_backends[DEFAULT_ACCOUNT_ID][region]


def _route_table(backend: MotoBackend, subnet: MotoModel) -> MotoModel:
    """Return the route table of a subnet: the associated one, or the main table of the VPC."""
    tables = [table for table in backend.route_tables.values() if table.vpc_id == subnet.vpc_id]
    for table in tables:
        if subnet.id in table._associations.values():  # noqa: SLF001 - moto's API describes the same
            return table
    return next(table for table in tables if table.main_association_id)


def _default_route(backend: MotoBackend, subnet: MotoModel) -> MotoModel | None:
    """Return the default route of a subnet; None if it has none, or if it is a blackhole."""
    routes = _route_table(backend, subnet).routes
    return next(
        (route for route in routes if route.destination_cidr_block == DEFAULT_ROUTE and route.state == "active"), None
    )


def _leads_to_internet_gateway(backend: MotoBackend, subnet: MotoModel) -> bool:
    route = _default_route(backend, subnet)
    return route is not None and bool(route.gateway) and route.gateway.id in backend.internet_gateways


def _nat_gateway_works(backend: MotoBackend, gateway: MotoModel) -> bool:
    return (
        gateway.state == "available"
        and gateway.connectivity_type != "private"
        and _leads_to_internet_gateway(backend, backend.get_subnet(gateway.subnet_id))
    )


def _nat_instance_works(backend: MotoBackend, route: MotoModel) -> bool:
    """Return whether a route leads to an instance that can pass packets on to the internet.

    VPC user guide, "NAT instances": it needs a public address, and the check of source and destination is switched off.
    """
    interface = route.interface or (route.instance.nics[0] if route.instance else None)
    if interface is None or interface.instance is None or interface.instance.state != "running":
        return False
    return (
        bool(interface.public_ip)
        and str(interface.source_dest_check).lower() == "false"
        and _leads_to_internet_gateway(backend, interface.subnet)
    )


def _has_private_name(backend: MotoBackend, endpoint: MotoModel) -> bool:
    """Return whether the service's name stands for an interface endpoint in its VPC.

    AWS PrivateLink guide, "Enable private DNS": the VPC needs both of its DNS attributes.
    """
    vpc: MotoModel = backend.get_vpc(endpoint.vpc_id)
    return (
        not is_gateway(endpoint)
        and is_true(endpoint.private_dns_enabled)
        and is_true(vpc.enable_dns_support)
        and is_true(vpc.enable_dns_hostnames)
    )


def _admits(backend: MotoBackend, endpoint: MotoModel, interface: Interface) -> bool:
    """Return whether a security group of an endpoint admits HTTPS from an interface.

    An endpoint without security groups has the VPC's default group (API: CreateVpcEndpoint); one without subnets has no
    addresses.
    """
    default_group = backend.get_default_security_group(endpoint.vpc_id)
    group_ids = endpoint.security_group_ids or [default_group.id]
    groups = (backend.get_security_group_from_id(group_id) for group_id in group_ids)
    rules = (rule for group in groups if group is not None for rule in group.ingress_rules)
    return bool(endpoint.subnet_ids) and any(_covers(backend, rule, interface) for rule in rules)


def _covers(backend: MotoBackend, rule: MotoModel, interface: Interface) -> bool:
    """Return whether a rule for inbound traffic covers HTTPS from an interface."""
    if rule.ip_protocol not in ("tcp", "-1"):
        return False
    if rule.ip_protocol == "tcp" and not rule.from_port <= HTTPS <= rule.to_port:
        return False
    if rule.source_group.get("GroupId") in interface.group_ids:
        return True
    ranges = [rule.ip_range.get("CidrIp")]
    if rule.prefix_list_id in backend.managed_prefix_lists:
        prefix_list = backend.managed_prefix_lists[rule.prefix_list_id]
        ranges += [entry.get("Cidr") for entry in prefix_list.entries[prefix_list.version]]
    address = ipaddress.ip_address(interface.private_address)
    return any(address in ipaddress.ip_network(block, strict=False) for block in ranges if block)


KUBERNETES_REGISTRY = "registry.k8s.io"
# Servers of the files in `cfngen.releases` on the internet; another server in a file's URL is a mirror of the user's.
PUBLIC_SERVERS = frozenset({"artifacts.k8s.io", "dl.k8s.io", "get.helm.sh", "github.com"})
NO_BOTOCORE = "No module named 'botocore'"  # Python's error if the packages could not be installed
APT_INSTALL = "apt-get -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5 --no-install-recommends install"
KUBEADM_PREFLIGHT = "kubeadm init phase preflight --config /opt/cfngen/kubeadm.yaml"


@dataclass
class Connections:
    """The connections of one instance to servers outside of the cluster, as its network allows them now.

    The boot program downloads files itself (urllib) and calls AWS with botocore; the distribution's package manager and
    containerd have servers of their own. What an image of the user's own contains is not known: it is taken for the
    distribution's.
    """

    region: str
    instance: Instance

    def why_no_service(self, service: str) -> str:
        """Return botocore's error if an AWS service cannot be reached; empty if it can.

        Args:
            service: boto3's name of the service.
        """
        domain = "amazonaws.com.cn" if self.region.startswith("cn-") else "amazonaws.com"
        host = f"{service}.{self.region}.{domain}"
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
        if "amazon" in self.instance.image.lower():
            host = f"al2023-repos-{self.region}-de612dc2.s3.dualstack.{self.region}.amazonaws.com"
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
        mirrors: Mapping[str, tuple[str, ...]] = self.instance.boot_data.registry_mirrors
        return self._reaches_public(host) or any(self._reaches_mirror(url) for url in mirrors.get(host, ()))

    @property
    def _interface(self) -> Interface:
        return primary_interface(self.region, self.instance.id)

    def _reaches_mirror(self, url: str) -> bool:
        host = urlsplit(url).hostname or ""
        return self._reaches(host, lambda: reaches_host(self._interface, host))

    def _reaches_public(self, host: str) -> bool:
        return self._reaches(host, lambda: reaches_internet(self._interface))

    def _reaches(self, host: str, reaches_directly: Callable[[], bool]) -> bool:
        """Return whether a server can be reached: through the proxy if there is one for it, otherwise directly."""
        boot_data = self.instance.boot_data
        is_direct = any(
            host == direct or host.endswith(f".{direct.removeprefix('.')}") for direct in boot_data.direct_hosts
        )
        if boot_data.proxy and not is_direct:
            return reaches_host(self._interface, urlsplit(boot_data.proxy).hostname or "")
        return reaches_directly()
