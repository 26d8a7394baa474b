"""Checks of what a user puts onto instances: labels, taints, tags, configuration files, and time to drain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cfngen.cluster.checks.access import all_instances
from cfngen.cluster.checks.kubernetes import OWNED
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.problems import Problem

_GROUPS: Path = ("nodeGroups",)
# Labels that Kubernetes and the cloud controller manager set themselves: `pkg/kubelet/apis/well_known_labels.go` of
# Kubernetes, and the AWS cloud provider's labels.
_WELL_KNOWN_LABELS = (
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
# Domains, with their subdomains, under which a kubelet may label its own node (NodeRestriction, in Kubernetes'
# documentation of admission controllers).
_ALLOWED_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_NODE_RESTRICTION_DOMAIN = "node-restriction.kubernetes.io"
# cluster-autoscaler reads a node group's labels from tags whose key is this prefix and the label's key. A tag's key has
# 128 characters at most ("Tag your Amazon EC2 resources", EC2 User Guide, read in November 2026).
_MAX_LABEL_KEY_LENGTH = 128 - len("k8s.io/cluster-autoscaler/node-template/label/")
# An Auto Scaling group has 50 tags at most ("Tag Auto Scaling groups", Auto Scaling User Guide, November 2026);
# cfngen itself adds six.
_MAX_GROUP_TAGS = 44
# In a rolling update CloudFormation waits an hour at most for one instance (PauseTime, UpdatePolicy, November 2026);
# ten minutes of it are left for the old instance to terminate.
_MAX_REPLACEMENT_MINUTES = 50
CFNGEN_PATHS = (
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
_MIRROR_FILE = re.compile(r"/etc/containerd/certs\.d/([^/]+)/hosts\.toml")
_OWNED_CONTAINERD_KEYS: Mapping[Path, str] = {
    ("version",): "remove it, the version is 4",
    ("plugins", "io.containerd.cri.v1.images", "registry"): "use containerd.registryMirrors",
    ("plugins", "io.containerd.cri.v1.images", "snapshotter"): "use containerd.snapshotter",
    ("plugins", "io.containerd.cri.v1.images", "pinned_images", "sandbox"): "remove it",
}


def _labels(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        for key in group.labels:
            reason = _label_fault(key)
            if reason:
                yield Problem((*_GROUPS, index, "labels", key), reason)


def _label_fault(key: str) -> str:
    """Return why a kubelet may not, or must not, register with a label."""
    namespace = key.rpartition("/")[0]
    if key in _WELL_KNOWN_LABELS:
        return "Kubernetes sets this label itself; remove it"
    if _in_domain(namespace, _NODE_RESTRICTION_DOMAIN):
        return (
            f"nodes are not allowed to set labels of {_NODE_RESTRICTION_DOMAIN} themselves; "
            "remove it, and label the nodes as an administrator"
        )
    kubernetes = _in_domain(namespace, "kubernetes.io") or _in_domain(namespace, "k8s.io")
    if kubernetes and not any(_in_domain(namespace, domain) for domain in _ALLOWED_LABEL_DOMAINS):
        return (
            "the API server rejects a node that gives itself a label of kubernetes.io or k8s.io, such as a role; use a "
            "different name, e.g. example.com/role, or label the nodes as an administrator"
        )
    if len(key) > _MAX_LABEL_KEY_LENGTH:
        return f"the key is too long for cluster-autoscaler's tag; use at most {_MAX_LABEL_KEY_LENGTH} characters"
    return ""


def _in_domain(namespace: str, domain: str) -> bool:
    return namespace == domain or namespace.endswith("." + domain)


def _taints(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        seen_taints = set()
        for position, taint in enumerate(group.taints):
            path: Path = (*_GROUPS, index, "taints", position)
            if (taint.key, taint.effect) in seen_taints:
                yield Problem(path, f"{taint.key} with the effect {taint.effect} appears twice; remove one")
            seen_taints.add((taint.key, taint.effect))
            if len(taint.key) > _MAX_LABEL_KEY_LENGTH:
                message = (
                    f"the key is too long for cluster-autoscaler's tag; use at most {_MAX_LABEL_KEY_LENGTH} characters"
                )
                yield Problem((*path, "key"), message)


def _tags(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        count = len(group.labels) + len({taint.key for taint in group.taints}) + len(cluster.tags)
        if count > _MAX_GROUP_TAGS:
            message = (
                f"labels, taints and tags need {count} tags of the Auto Scaling group, but only {_MAX_GROUP_TAGS} are "
                "possible; remove some"
            )
            yield Problem((*_GROUPS, index, "labels"), message, ((*_GROUPS, index, "taints"), ("tags",)))


def _kubelet_configuration(cluster: Cluster) -> Iterator[Problem]:
    section: Path = ("kubernetes", "kubeletConfiguration")
    owned = {path[-1]: instead for path, instead in OWNED.items() if path[:2] == section}
    for path, instances in all_instances(cluster):
        for key, instead in owned.items():
            if key in instances.kubelet_configuration:
                yield Problem((*path, "kubeletConfiguration", key), f"cfngen sets this key itself; {instead}")


def _containerd_configuration(cluster: Cluster) -> Iterator[Problem]:
    for path, instances in all_instances(cluster):
        configuration, section = instances.containerd.configuration, (*path, "containerd", "configuration")
        for inner, instead in _OWNED_CONTAINERD_KEYS.items():
            parent = lookup(configuration, inner[:-1])
            if isinstance(parent, Mapping) and inner[-1] in parent:
                yield Problem((*section, *inner), f"cfngen sets this key itself; {instead}")
        empty = _first_null(configuration)
        if empty is not None:
            yield Problem(
                (*section, *empty), "containerd's configuration has no null; enter a value, or remove the key"
            )


def _first_null(data: object, path: Path = ()) -> Path | None:
    """Return the path of the first null in `data`, or None if there is none."""
    if isinstance(data, Mapping):
        parts: list[tuple[str | int, object]] = list(data.items())
    elif isinstance(data, (list, tuple)):
        parts = list(enumerate(data))
    else:
        return path if data is None else None
    nulls = (_first_null(value, (*path, key)) for key, value in parts)
    return next((null_path for null_path in nulls if null_path is not None), None)


def _files(cluster: Cluster) -> Iterator[Problem]:
    for path, instances in all_instances(cluster):
        file_paths = [((*path, "files", index, "path"), file.path) for index, file in enumerate(instances.files)]
        file_paths += [
            ((*path, "units", index, "name"), f"/etc/systemd/system/{unit.name}")
            for index, unit in enumerate(instances.units)
        ]
        seen_paths: set[str] = set()
        for key_path, file_path in file_paths:
            mirror = _MIRROR_FILE.fullmatch(file_path)
            if any(re.fullmatch(own_path, file_path) for own_path in CFNGEN_PATHS):
                yield Problem(
                    key_path, f"{file_path} belongs to cfngen or to software that it installs; choose another path"
                )
            elif mirror and mirror[1] in instances.containerd.registry_mirrors:
                yield Problem(key_path, f"containerd.registryMirrors also creates {file_path}; remove one of them")
            elif ".." in file_path.split("/"):
                yield Problem(key_path, f"{file_path} contains `..`; write the path without it")
            elif file_path in seen_paths:
                yield Problem(key_path, f"{file_path} appears twice; remove one")
            seen_paths.add(file_path)


def _time_to_drain(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        if group.drain_timeout + group.creation_timeout > _MAX_REPLACEMENT_MINUTES:
            message = (
                f"CloudFormation waits an hour at most while it replaces an instance, and creationTimeout "
                f"({group.creation_timeout}) and drainTimeout ({group.drain_timeout}) make more than "
                f"{_MAX_REPLACEMENT_MINUTES} minutes: a healthy update may time out and be rolled back"
            )
            yield Problem((*_GROUPS, index, "drainTimeout"), message)


PROBLEMS = (_labels, _taints, _tags, _kubelet_configuration, _containerd_configuration, _files)
WARNINGS = (_time_to_drain,)
