"""What is put onto instances: labels and taints that may be set, files that nobody else writes, time to drain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cfngen.cluster.checks.access import all_instances
from cfngen.cluster.checks.kubernetes import OWNED
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.problems import Problem

_GROUPS: Path = ("nodeGroups",)
# What Kubernetes and the cloud controller manager set themselves: `pkg/kubelet/apis/well_known_labels.go` of
# Kubernetes, and the AWS cloud provider's labels.
_OTHERS = (
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
# Under these a kubelet may set labels of its own, and their subdomains (NodeRestriction, in Kubernetes' documentation
# of admission controllers).
_ALLOWED = ("kubelet.kubernetes.io", "node.kubernetes.io")
_KEPT = "node-restriction.kubernetes.io"
# An EC2 tag's key has 128 characters at most ("Tag your Amazon EC2 resources", EC2 User Guide, November 2026).
_TAG = 128
_TAG_PREFIX = "k8s.io/cluster-autoscaler/node-template/label/"
# An Auto Scaling group has 50 tags at most ("Tag Auto Scaling groups", Auto Scaling User Guide, November 2026);
# cfngen's own take six.
_TAGS = 44
# CloudFormation waits an hour at most for one instance of a rolling update (PauseTime, UpdatePolicy, November 2026),
# and ten minutes are for its termination.
_HOUR = 50
OWN_PATHS = (
    r"/etc/cni/net\.d/.*",
    r"/etc/containerd/(config\.toml|cni\.template)",
    r"/etc/fstab",
    r"/etc/hosts",
    r"/etc/kubernetes/.*",
    r"/etc/systemd/system/(cfngen-[^/]*|containerd\.service|kubelet\.service)(/.*)?",
    r"/etc/.*/[^/]*cfngen[^/]*",
    r"/mnt/(instance-storage|master)/.*",
    r"/opt/cfngen/.*",
    r"/opt/cni/bin/.*",
    r"/usr/local/bin/(containerd.*|ctr|ecr-credential-provider|etcdctl|etcdutl|helm|kubeadm|kubectl|kubelet)",
    r"/usr/local/sbin/runc",
    r"/var/lib/kubelet/(config\.yaml|kubeadm-flags\.env|pki/.*)",
)
"""Paths of files that cfngen, or what it installs, writes on an instance; regular expressions."""
_MIRRORS = re.compile(r"/etc/containerd/certs\.d/([^/]+)/hosts\.toml")
_CONTAINERD: Mapping[Path, str] = {
    ("version",): "remove it, the version is 4",
    ("plugins", "io.containerd.cri.v1.images", "registry"): "use containerd.registryMirrors",
    ("plugins", "io.containerd.cri.v1.images", "snapshotter"): "use containerd.snapshotter",
    ("plugins", "io.containerd.cri.v1.images", "pinned_images", "sandbox"): "remove it",
}


def _labels(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        for key in group.labels:
            reason = _forbidden(key)
            if reason:
                yield Problem((*_GROUPS, index, "labels", key), reason)


def _forbidden(key: str) -> str:
    """Return why a kubelet may not, or must not, register with a label."""
    namespace = key.rpartition("/")[0]
    if key in _OTHERS:
        return "Kubernetes sets this label itself; remove it"
    if _below(namespace, _KEPT):
        return (
            f"no node may set labels of {_KEPT}, which is their purpose; remove it, and label the nodes as an "
            "administrator"
        )
    kubernetes = _below(namespace, "kubernetes.io") or _below(namespace, "k8s.io")
    if kubernetes and not any(_below(namespace, each) for each in _ALLOWED):
        return (
            "the API server refuses a node that gives itself a label of kubernetes.io or k8s.io, such as a role; use a "
            "name of your own, e.g. example.com/role, or label the nodes as an administrator"
        )
    if len(_TAG_PREFIX + key) > _TAG:
        return f"the key is too long for the tag that tells cluster-autoscaler of it; {_TAG - len(_TAG_PREFIX)} fit"
    return ""


def _below(namespace: str, domain: str) -> bool:
    return namespace == domain or namespace.endswith("." + domain)


def _taints(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        seen = set()
        for position, taint in enumerate(group.taints):
            path: Path = (*_GROUPS, index, "taints", position)
            if (taint.key, taint.effect) in seen:
                yield Problem(path, f"{taint.key} with the effect {taint.effect} stands twice; remove one")
            seen.add((taint.key, taint.effect))
            if len(_TAG_PREFIX + taint.key) > _TAG:
                fit = _TAG - len(_TAG_PREFIX)
                message = f"the key is too long for the tag that tells cluster-autoscaler of it; {fit} characters fit"
                yield Problem((*path, "key"), message)


def _tags(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        count = len(group.labels) + len({taint.key for taint in group.taints}) + len(cluster.tags)
        if count > _TAGS:
            message = (
                f"labels, taints and tags make {count} tags of the Auto Scaling group, and {_TAGS} are possible; "
                "remove some"
            )
            yield Problem((*_GROUPS, index, "labels"), message, ((*_GROUPS, index, "taints"), ("tags",)))


def _kubelet(cluster: Cluster) -> Iterator[Problem]:
    section: Path = ("kubernetes", "kubeletConfiguration")
    owned = {path[-1]: instead for path, instead in OWNED.items() if path[:2] == section}
    for path, instances in all_instances(cluster):
        for key, instead in owned.items():
            if key in instances.kubelet_configuration:
                yield Problem((*path, "kubeletConfiguration", key), f"cfngen sets this key itself; {instead}")


def _containerd(cluster: Cluster) -> Iterator[Problem]:
    for path, instances in all_instances(cluster):
        given, here = instances.containerd.configuration, (*path, "containerd", "configuration")
        for inner, instead in _CONTAINERD.items():
            parent = lookup(given, inner[:-1])
            if isinstance(parent, Mapping) and inner[-1] in parent:
                yield Problem((*here, *inner), f"cfngen sets this key itself; {instead}")
        empty = _empty(given)
        if empty is not None:
            yield Problem(
                (*here, *empty), "containerd's configuration knows no empty value; give one, or remove the key"
            )


def _empty(data: Any, path: Path = ()) -> Path | None:
    """Return where data holds no value at all, or None if it does so nowhere."""
    if isinstance(data, Mapping):
        parts: list[tuple[str | int, Any]] = list(data.items())
    elif isinstance(data, (list, tuple)):
        parts = list(enumerate(data))
    else:
        return path if data is None else None
    found = (_empty(value, (*path, key)) for key, value in parts)
    return next((each for each in found if each is not None), None)


def _files(cluster: Cluster) -> Iterator[Problem]:
    for path, instances in all_instances(cluster):
        placed = [((*path, "files", index, "path"), each.path) for index, each in enumerate(instances.files)]
        placed += [
            ((*path, "units", index, "name"), f"/etc/systemd/system/{each.name}")
            for index, each in enumerate(instances.units)
        ]
        seen: set[str] = set()
        for where, file in placed:
            mirror = _MIRRORS.fullmatch(file)
            if any(re.fullmatch(own_path, file) for own_path in OWN_PATHS):
                yield Problem(where, f"{file} is cfngen's, or of what it installs; choose another place")
            elif mirror and mirror[1] in instances.containerd.registry_mirrors:
                yield Problem(where, f"containerd.registryMirrors makes {file}; remove one of them")
            elif ".." in file.split("/"):
                yield Problem(where, f"{file} leads elsewhere by `..`; write the path out")
            elif file in seen:
                yield Problem(where, f"{file} stands twice; remove one")
            seen.add(file)


def _time_to_drain(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        if group.drain_timeout + group.creation_timeout > _HOUR:
            message = (
                f"CloudFormation waits an hour at most while it replaces an instance, and creationTimeout "
                f"({group.creation_timeout}) and drainTimeout ({group.drain_timeout}) make more than {_HOUR} minutes: "
                "an update may be given up although all goes well"
            )
            yield Problem((*_GROUPS, index, "drainTimeout"), message)


PROBLEMS = (_labels, _taints, _tags, _kubelet, _containerd, _files)
WARNINGS = (_time_to_drain,)
