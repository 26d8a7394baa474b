"""Hosts that do not follow from the cluster file: registries of charts' images, packages, and targets of redirects.

A registry or a download answers with a redirect to a host of its storage or of its content delivery network. Their
operators may change these hosts; the sources say what they were in November 2026.
"""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.cluster.network.endpoints import dns_suffix

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

# By host, the hosts to which it redirects. An asterisk stands for any name.
# Sources: kubernetes/registry.k8s.io (README.md, cmd/archeio/internal/app/buckets.go: clients in AWS get layers from a
# bucket in their region or in one near it, others from Artifact Registry); "Configuring your firewall"
# (OpenShift documentation) for quay.io; "Docker Desktop allow list" (docs.docker.com) for Docker Hub; "Working with the
# Container registry" (docs.github.com) for ghcr.io; the blog post about Amazon ECR Public for its use of CloudFront.
_REDIRECTS: Mapping[str, tuple[str, ...]] = {
    "dl.k8s.io": ("cdn.dl.k8s.io",),
    "github.com": ("release-assets.githubusercontent.com", "objects.githubusercontent.com"),
    "registry.k8s.io": (
        "cdn.registry.k8s.io",
        "*.pkg.dev",
        "prod-registry-k8s-io-*.s3.dualstack.*.amazonaws.com",
    ),
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
