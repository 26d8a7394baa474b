"""What masters, nodes and the pods of add-ons must reach outside of their VPC: what a firewall has to let through.

Downloads, charts and images are those that user data names; the services of AWS are those of
`cfngen.cluster.network.endpoints`. What the cluster file brings along as text (images in values of charts,
cloud-config, commands, a chart's own images) is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from cfngen.cluster.iam.service_accounts import CERT_MANAGER, has_role, masters_publish_documents
from cfngen.cluster.instances.instance_types import architecture
from cfngen.cluster.model import Cluster
from cfngen.cluster.network import endpoints
from cfngen.cluster.network.endpoints import dns_suffix
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.sections.instances import Instances
from cfngen.releases import (
    CLOUD_CONTROLLER_MANAGER_IMAGE,
    PAUSE_IMAGE,
    POD_IDENTITY_WEBHOOK_IMAGE,
    master_tools,
    release,
)
from cfngen.userdata import addons
from cfngen.userdata.mirror import mirrored

MASTERS, NODES = "masters", "nodes"
_EVERYBODY = (MASTERS, NODES)
_HTTPS = 443
_KUBERNETES_REGISTRY = "registry.k8s.io"
# Services that are called by masters only: by the cloud controller manager, and by add-ons.
_SERVICES_OF_MASTERS = frozenset({"acm", "cognito-idp", "elasticloadbalancing", "iam", "route53"})


@dataclass(frozen=True)
class Destination:
    """A host that instances connect to.

    Attributes:
        host: name or address; an asterisk stands for any name, as in `*.s3.us-west-2.amazonaws.com`.
        endpoint: name of the VPC endpoint through which the host can be reached; empty if there is none.
        sources: who connects: `masters`, `nodes`.
        is_link_local: whether the host is beside every instance, so that neither routes nor firewalls matter.
    """

    host: str
    port: int
    protocol: str
    sources: tuple[str, ...]
    reasons: tuple[str, ...]
    endpoint: str = ""
    is_link_local: bool = False


def egress(cluster: Cluster) -> tuple[Destination, ...]:
    """Return what the cluster's instances connect to outside of their VPC; each host and port once.

    Services of AWS come first, then downloads, packages and images, then the proxy through which instances reach all of
    them that `cfngen.cluster.network.proxy.direct_hosts` does not have, and what is beside each instance last.
    """
    merged: dict[tuple[str, int, str], Destination] = {}
    for destination in (
        *_aws_services(cluster),
        *_downloads(cluster),
        *_packages(cluster),
        *_images(cluster),
        *_other_clients(cluster),
        *_proxies(cluster),
        *_link_local(),
    ):
        key = (destination.host, destination.port, destination.protocol)
        known = merged.setdefault(key, destination)
        sources = {*known.sources, *destination.sources}
        merged[key] = replace(
            known,
            sources=tuple(source for source in _EVERYBODY if source in sources),
            reasons=tuple(dict.fromkeys((*known.reasons, *destination.reasons))),
        )
    return tuple(merged.values())


def _to(host: str, sources: tuple[str, ...], reason: str, port: int = _HTTPS, *, endpoint: str = "") -> Destination:
    return Destination(host, port, "tcp", sources, (reason,), endpoint)


def _to_url(url: str, sources: tuple[str, ...], reason: str) -> Destination:
    parts = urlsplit(url)
    return _to(parts.hostname or "", sources, reason, parts.port or (_HTTPS if parts.scheme == "https" else 80))


def _aws_services(cluster: Cluster) -> Iterator[Destination]:
    region = cluster.region
    with_endpoint = [
        *endpoints.required_services(cluster),
        endpoints.Endpoint(endpoints.S3, "layers of images in Amazon ECR"),
    ]
    if cluster.etcd.backups.enabled:
        with_endpoint.append(endpoints.Endpoint(endpoints.S3, "snapshots of etcd"))
    if masters_publish_documents(cluster):
        with_endpoint.append(endpoints.Endpoint(endpoints.S3, "documents of the issuer of service-account tokens"))
    # A full service name is not that of a service of AWS; its private DNS name is not known.
    with_endpoint += [
        endpoints.Endpoint(service, "network.endpoints.additional")
        for service in cluster.network.endpoints.additional
        if not service.startswith(("com.", "cn.com."))
    ]
    for service, reason in with_endpoint:
        name = endpoints.service_name(service, region)
        for host in endpoints.service_hosts(service, region):
            yield _to(host, _callers(cluster, service), reason, endpoint=name)
    for service, reason in _services_of_addons(cluster):
        for host in endpoints.service_hosts(service, region):
            yield _to(host, _callers(cluster, service), reason)


def _services_of_addons(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield the services that only add-ons call, and for which cfngen creates no VPC endpoint, with the add-on."""
    if cluster.addons.external_dns.enabled:
        yield "route53", "external-dns"
    if has_role(cluster, CERT_MANAGER):
        yield "route53", "cert-manager"
    if cluster.addons.aws_load_balancer_controller.enabled:
        for service in ("acm", "cognito-idp", "iam"):
            yield service, "aws-load-balancer-controller"


def _callers(cluster: Cluster, service: str) -> tuple[str, ...]:
    """Return who calls a service: masters have most of the permissions of add-ons, unless these have roles."""
    if cluster.iam.addon_roles:
        return _EVERYBODY
    if service in _SERVICES_OF_MASTERS:
        return (MASTERS,)
    if service == "ec2" and not network_plugin(cluster).gives_pods_vpc_addresses:
        return (MASTERS,)
    if service == "autoscaling" and not cluster.addons.cluster_autoscaler.enabled:
        return (NODES,)
    return _EVERYBODY


def _groups(cluster: Cluster) -> Iterator[tuple[Instances, tuple[str, ...]]]:
    """Yield the masters and each node group, with their role as a source of connections."""
    yield cluster.control_plane, (MASTERS,)
    for group in cluster.node_groups:
        yield group, (NODES,)


def _downloads(cluster: Cluster) -> Iterator[Destination]:
    """Yield the hosts of programs and charts, and the hosts to which they redirect; or the mirror."""
    for group, sources in _groups(cluster):
        processor = architecture(group.instance_type)
        for asset in release(cluster.kubernetes_version, processor).assets:
            yield from _download(mirrored(cluster, asset.url), sources, asset.name)
    for asset in master_tools(architecture(cluster.control_plane.instance_type)):
        yield from _download(mirrored(cluster, asset.url), (MASTERS,), asset.name)
    for helm_release in addons.releases(cluster):
        reason = f"chart of {helm_release['name']}"
        yield from _download(helm_release["chart"]["url"], (MASTERS,), reason)


def _download(url: str, sources: tuple[str, ...], reason: str) -> Iterator[Destination]:
    """Yield the host of a URL, and those to which it redirects."""
    destination = _to_url(url, sources, reason)
    yield destination
    for host in redirect_targets(destination.host):
        yield _to(host, sources, f"redirects of {destination.host}")


def _packages(cluster: Cluster) -> Iterator[Destination]:
    """Yield the hosts of the distributions' packages, which instances install if their image lacks them."""
    for group, sources in _groups(cluster):
        processor = architecture(group.instance_type)
        for host, port in package_hosts(group.image.distribution, processor, cluster.region):
            yield _to(host, sources, f"packages of {group.image.distribution}", port)


def _images(cluster: Cluster) -> Iterator[Destination]:
    """Yield the registries of images, the mirrors that are asked before them, and the hosts to which they redirect."""
    repository = cluster.kubernetes.cluster_configuration.get("imageRepository")
    kubernetes_registry = str(repository or _KUBERNETES_REGISTRY).partition("/")[0]
    needs = [
        (kubernetes_registry, _EVERYBODY, "images of Kubernetes"),
        (PAUSE_IMAGE.partition("/")[0], _EVERYBODY, "the pause image"),
        (CLOUD_CONTROLLER_MANAGER_IMAGE.partition("/")[0], (MASTERS,), "cloud controller manager"),
    ]
    if cluster.addons.pod_identity_webhook.enabled:
        needs.append((POD_IDENTITY_WEBHOOK_IMAGE.partition("/")[0], (MASTERS,), "pod identity webhook"))
    for helm_release in addons.releases(cluster):
        name = helm_release["name"]
        needs += [(registry, _EVERYBODY, f"images of {name}") for registry in REGISTRIES_BY_RELEASE.get(name, ())]
    for node_group in cluster.node_groups:
        registries = [reference.partition("/")[0] for reference in node_group.pre_pulled_images]
        needs += [(registry, (NODES,), f"prePulledImages of {node_group.name}") for registry in registries]
    for registry, sources, reason in needs:
        host, _, port = registry.partition(":")
        yield _to(host, sources, reason, int(port or _HTTPS))
        for target in redirect_targets(host):
            yield _to(target, sources, f"redirects of {host}")
    for group, sources in _groups(cluster):
        for registry, urls in group.containerd.registry_mirrors.items():
            for url in urls:
                yield _to_url(url, sources, f"mirror of {registry}")


def _other_clients(cluster: Cluster) -> Iterator[Destination]:
    """Yield what add-ons call beside the services of AWS."""
    if cluster.addons.cert_manager.enabled:
        yield _to("acme-v02.api.letsencrypt.org", _EVERYBODY, "cert-manager, with Let's Encrypt as the issuer")


def _proxies(cluster: Cluster) -> Iterator[Destination]:
    """Yield the proxies of the cluster file: a firewall lets instances reach them, and them the other hosts."""
    proxy = cluster.network.proxy
    if proxy:
        yield _to_url(proxy.https_proxy, _EVERYBODY, "proxy for HTTPS")
        yield _to_url(proxy.http_proxy or proxy.https_proxy, _EVERYBODY, "proxy for HTTP")


def _link_local() -> Iterator[Destination]:
    """Yield the addresses beside each instance: metadata, DNS and time (Amazon EC2 User Guide, Amazon VPC User Guide).

    The DNS server also has the VPC's base address plus two.
    """
    for host, port, protocol, reason in (
        ("169.254.169.254", 80, "tcp", "instance metadata and credentials"),
        ("169.254.169.253", 53, "udp", "Amazon's DNS server, also at the VPC's base address plus two"),
        ("169.254.169.253", 53, "tcp", "Amazon's DNS server, also at the VPC's base address plus two"),
        ("169.254.169.123", 123, "udp", "Amazon Time Sync Service"),
    ):
        yield Destination(host, port, protocol, _EVERYBODY, (reason,), is_link_local=True)


# By Helm release, the registries of the images in the default values of its chart (or, of Calico, of its operator).
REGISTRIES_BY_RELEASE: Mapping[str, tuple[str, ...]] = {
    "cilium": ("quay.io",),
    "calico-crds": (),
    "calico": ("quay.io", "docker.io"),
    "flannel": ("ghcr.io",),
    "aws-vpc-cni": ("602401143452.dkr.ecr.us-west-2.amazonaws.com", "api.ecr.us-west-2.amazonaws.com"),
    "aws-ebs-csi-driver": ("public.ecr.aws",),
    "metrics-server": ("registry.k8s.io",),
    "cluster-autoscaler": ("registry.k8s.io",),
    "aws-node-termination-handler": ("public.ecr.aws",),
    "cert-manager": ("quay.io",),
    "aws-load-balancer-controller": ("public.ecr.aws",),
    "external-dns": ("registry.k8s.io",),
    "headlamp": ("ghcr.io",),
    "nvidia-device-plugin": ("nvcr.io",),
    "fluent-bit": ("cr.fluentbit.io",),
    "prometheus": ("quay.io", "registry.k8s.io", "docker.io", "ghcr.io"),
}

# By host, the hosts of its storage or its content delivery network to which it redirects. Their operators may change
# these; the sources say what they were in November 2026. An asterisk stands for any name.
# Sources: kubernetes/registry.k8s.io (README.md, cmd/archeio/internal/app/buckets.go: clients in AWS get layers from a
# bucket in their region or in one near it, others from Artifact Registry); "Configuring your firewall"
# (OpenShift documentation) for quay.io; "Docker Desktop allow list" (docs.docker.com) for Docker Hub; "Working with the
# Container registry" (docs.github.com) for ghcr.io; the blog post about Amazon ECR Public for its use of CloudFront.
_REDIRECTS: Mapping[str, tuple[str, ...]] = {
    "dl.k8s.io": ("cdn.dl.k8s.io",),
    "github.com": ("release-assets.githubusercontent.com", "objects.githubusercontent.com"),
    "registry.k8s.io": ("cdn.registry.k8s.io", "*.pkg.dev", "prod-registry-k8s-io-*.s3.dualstack.*.amazonaws.com"),
    "quay.io": ("cdn.quay.io", "*.quay.io"),
    "docker.io": (
        "registry-1.docker.io",
        "auth.docker.io",
        "production.cloudflare.docker.com",
        "production.cloudfront.docker.com",
        "*.r2.cloudflarestorage.com",
    ),
    "ghcr.io": ("pkg-containers.githubusercontent.com",),
    "cr.fluentbit.io": ("ghcr.io", "pkg-containers.githubusercontent.com"),
    # Where nvcr.io redirects to was found in public allow lists; NVIDIA publishes no list for its registry.
    "nvcr.io": ("layers.nvcr.io", "authn.nvidia.com"),
    "public.ecr.aws": ("*.cloudfront.net",),
    "602401143452.dkr.ecr.us-west-2.amazonaws.com": (
        "prod-us-west-2-starport-layer-bucket.s3.us-west-2.amazonaws.com",
    ),
}


def redirect_targets(host: str) -> tuple[str, ...]:
    """Return the hosts to which a host redirects."""
    return _REDIRECTS.get(host, ())


def package_hosts(distribution: str, architecture: str, region: str) -> tuple[tuple[str, int], ...]:
    """Return the hosts, with ports, that have the packages of a distribution, as its official image names them.

    Sources: /etc/apt/sources.list.d of Canonical's images (cloud-init's template of Ubuntu), /etc/apt/mirrors of
    Debian's, and "Managing repositories" of the Amazon Linux 2023 User Guide.
    """
    if distribution == "amazon-linux-2023":
        return ((f"al2023-repos-{region}-de612dc2.s3.dualstack.{region}.{dns_suffix(region)}", 443),)
    if distribution.startswith("debian-"):
        return (("cdn-aws.deb.debian.org", 443), ("cdn-aws.deb.debian.org", 80))
    if architecture == "arm64":
        return ((f"{region}.ec2.ports.ubuntu.com", 80), ("ports.ubuntu.com", 80))
    return ((f"{region}.ec2.archive.ubuntu.com", 80), ("security.ubuntu.com", 80))
