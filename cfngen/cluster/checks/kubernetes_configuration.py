"""Checks of the configuration of Kubernetes and of instances: keys that cfngen sets, labels, files, timeouts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cfngen.cluster.checks import kubeadm_v1beta4, kubelet_v1beta1
from cfngen.cluster.checks.sections import all_instances
from cfngen.cluster.checks.upstream_fields import AUDIT_TYPES, CLOUD_CONFIG_TYPES, Table, faults
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, leaves, lookup
from cfngen.cluster.problems import Problem
from cfngen.releases import UnknownReleaseError, exact_version

_CLUSTER_CONFIGURATION_PATH: Path = ("kubernetes", "clusterConfiguration")
_KUBELET_CONFIGURATION_PATH: Path = ("kubernetes", "kubeletConfiguration")
_ETCD_DATA_DIRECTORY_PATH: Path = (*_CLUSTER_CONFIGURATION_PATH, "etcd", "local", "dataDir")
# What to do about a key that cfngen sets and that has no counterpart in the cluster file; completes a message.
_REMOVE = "remove it"
KEYS_SET_BY_CFNGEN: Mapping[Path, str] = {
    (*_CLUSTER_CONFIGURATION_PATH, "apiVersion"): _REMOVE,
    (*_CLUSTER_CONFIGURATION_PATH, "kind"): _REMOVE,
    (*_CLUSTER_CONFIGURATION_PATH, "kubernetesVersion"): "use kubernetesVersion",
    (*_CLUSTER_CONFIGURATION_PATH, "clusterName"): "use name",
    (*_CLUSTER_CONFIGURATION_PATH, "controlPlaneEndpoint"): "use api",
    (*_CLUSTER_CONFIGURATION_PATH, "certificatesDir"): _REMOVE,
    (*_CLUSTER_CONFIGURATION_PATH, "networking", "podSubnet"): "use network.podCidr",
    (*_CLUSTER_CONFIGURATION_PATH, "networking", "serviceSubnet"): "use network.serviceCidr",
    (*_CLUSTER_CONFIGURATION_PATH, "networking", "dnsDomain"): "use network.dnsDomain",
    _ETCD_DATA_DIRECTORY_PATH: "remove it, etcd's data is on the master's volume (controlPlane.volume)",
    (*_CLUSTER_CONFIGURATION_PATH, "etcd", "external"): "remove it, etcd runs on the masters",
    (*_CLUSTER_CONFIGURATION_PATH, "apiServer", "certSANs"): "use api.additionalNames",
    (*_KUBELET_CONFIGURATION_PATH, "apiVersion"): _REMOVE,
    (*_KUBELET_CONFIGURATION_PATH, "kind"): _REMOVE,
    (*_KUBELET_CONFIGURATION_PATH, "clusterDNS"): "use network.dnsServiceIp",
    (*_KUBELET_CONFIGURATION_PATH, "clusterDomain"): "use network.dnsDomain",
    (*_KUBELET_CONFIGURATION_PATH, "providerID"): _REMOVE,
}
"""What the user can do instead, by path of the keys that cfngen sets itself."""
# What the user can do instead, by component and name of the flags that cfngen sets itself.
_FLAGS_SET_BY_CFNGEN = {
    ("controllerManager", "cluster-cidr"): "use network.podCidr",
    ("controllerManager", "allocate-node-cidrs"): _REMOVE,
    ("controllerManager", "node-cidr-mask-size"): "remove it, each node gets a /24",
    ("controllerManager", "cloud-provider"): _REMOVE,
    ("apiServer", "service-cluster-ip-range"): "use network.serviceCidr",
    ("apiServer", "secure-port"): "use api.port",
    ("apiServer", "cloud-provider"): "remove it, Kubernetes no longer has this flag",
}
# The sections of ClusterConfiguration that have `extraArgs`.
_COMPONENTS: tuple[Path, ...] = (("apiServer",), ("controllerManager",), ("scheduler",), ("etcd", "local"))
_NODE_GROUPS_PATH: Path = ("nodeGroups",)
# Labels that Kubernetes and the cloud controller manager set themselves (Kubernetes'
# `pkg/kubelet/apis/well_known_labels.go`, and the labels of the AWS cloud provider).
_WELL_KNOWN_LABELS = (
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
# Domains of Kubernetes, with their subdomains, under which a kubelet may label its own node, and one that only
# administrators may use (NodeRestriction, in Kubernetes' documentation of admission controllers).
_ALLOWED_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_NODE_RESTRICTION_DOMAIN = "node-restriction.kubernetes.io"
# A label's key must fit into the key of a tag, from which cluster-autoscaler reads the label: this prefix and the
# label's key. A tag's key has 128 characters at most ("Tag your Amazon EC2 resources", EC2 User Guide, November 2026).
_MAX_LABEL_KEY_LENGTH = 128 - len("k8s.io/cluster-autoscaler/node-template/label/")
# Minutes that a node's creationTimeout and drainTimeout may make together. In a rolling update CloudFormation waits an
# hour at most for one instance (PauseTime, UpdatePolicy, November 2026); ten minutes are left for the old instance to
# terminate.
_MAX_REPLACEMENT_MINUTES = 50
CFNGEN_FILE_PATTERNS = (
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
"""Regular expressions for the paths of files that cfngen, or software that it installs, writes on an instance."""
# The file that containerd.registryMirrors creates for a registry; the group is the registry's host.
_REGISTRY_MIRROR_FILE = re.compile(r"/etc/containerd/certs\.d/([^/]+)/hosts\.toml")
# What the user can do instead, by path of the keys of containerd's configuration that cfngen sets itself.
_CONTAINERD_KEYS_SET_BY_CFNGEN: Mapping[Path, str] = {
    ("version",): "remove it, the version is 4",
    ("plugins", "io.containerd.cri.v1.images", "registry"): "use containerd.registryMirrors",
    ("plugins", "io.containerd.cri.v1.images", "snapshotter"): "use containerd.snapshotter",
    ("plugins", "io.containerd.cri.v1.images", "pinned_images", "sandbox"): "remove it",
}


def _check_version(cluster: Cluster) -> Iterator[Problem]:
    try:
        exact_version(cluster.kubernetes_version)
    except UnknownReleaseError as error:
        yield Problem(("kubernetesVersion",), f"{error}; choose one of them")


def _kubernetes_configuration(cluster: Cluster) -> Mapping[str, object]:
    """Return the user's configuration of Kubernetes as plain data, at the same paths as in the cluster file."""
    kubernetes = cluster.kubernetes
    configurations = {
        "clusterConfiguration": kubernetes.cluster_configuration,
        "kubeletConfiguration": kubernetes.kubelet_configuration,
    }
    return {"kubernetes": configurations}


def _check_no_keys_of_cfngen(cluster: Cluster) -> Iterator[Problem]:
    configuration = _kubernetes_configuration(cluster)
    for path, instead in KEYS_SET_BY_CFNGEN.items():
        parent = lookup(configuration, path[:-1])
        if isinstance(parent, Mapping) and path[-1] in parent:
            yield Problem(path, f"cfngen sets this key itself; {instead}")


def _check_extra_args(cluster: Cluster) -> Iterator[Problem]:
    configuration = _kubernetes_configuration(cluster)
    for component in _COMPONENTS:
        path = (*_CLUSTER_CONFIGURATION_PATH, *component, "extraArgs")
        arguments = lookup(configuration, path)
        if arguments is None:
            continue
        if not isinstance(arguments, list):
            yield Problem(
                path, "kubeadm.k8s.io/v1beta4 requires a list here; write each flag as `- {name: …, value: …}`"
            )
            continue
        for index, argument in enumerate(arguments):
            yield from _check_extra_arg((*path, index), component, argument)


def _check_extra_arg(path: Path, component: Path, argument: object) -> Iterator[Problem]:
    if not isinstance(argument, Mapping) or set(argument) != {"name", "value"}:
        yield Problem(path, "a flag has a name and a value; write it as `{name: …, value: …}`")
        return
    if not isinstance(argument["value"], str):
        yield Problem((*path, "value"), "the value of a flag must be text; put it in quotes")
    instead = _FLAGS_SET_BY_CFNGEN.get((str(component[0]), str(argument["name"])))
    if instead:
        yield Problem((*path, "name"), f"cfngen sets --{argument['name']} itself; {instead}")


def _check_types(cluster: Cluster) -> Iterator[Problem]:
    """Refuse values that Kubernetes or cloud-init cannot read into their own types, so that a boot would fail."""
    kubernetes = cluster.kubernetes
    own_keys = {path[1:] for path in KEYS_SET_BY_CFNGEN}
    kubeadm_types, kubelet_types = kubeadm_v1beta4.TYPES, kubelet_v1beta1.TYPES
    documents: list[tuple[Path, object, str, Table]] = [
        (("controlPlane", "auditLog", "policy"), cluster.control_plane.audit_log.policy, "Policy", AUDIT_TYPES),
        (_CLUSTER_CONFIGURATION_PATH, kubernetes.cluster_configuration, "ClusterConfiguration", kubeadm_types),
        (_KUBELET_CONFIGURATION_PATH, kubernetes.kubelet_configuration, "KubeletConfiguration", kubelet_types),
    ]
    for path, instances in all_instances(cluster):
        kubelet = instances.kubelet_configuration
        documents.append(((*path, "kubeletConfiguration"), kubelet, "KubeletConfiguration", kubelet_types))
        documents.append(((*path, "cloudConfig"), instances.cloud_config, "CloudConfig", CLOUD_CONFIG_TYPES))
    for path, document, kind, table in documents:
        for key_path, fault in faults(document, kind, table, path):
            # Other checks speak of these.
            if "extraArgs" not in key_path and key_path[len(path) - 1 :] not in own_keys:
                yield Problem(key_path, fault)


def _check_labels(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        for key in group.labels:
            reason = _why_label_unsuitable(key)
            if reason:
                yield Problem((*_NODE_GROUPS_PATH, index, "labels", key), reason)


def _why_label_unsuitable(key: str) -> str:
    namespace = key.rpartition("/")[0]
    if key in _WELL_KNOWN_LABELS:
        return "Kubernetes sets this label itself; remove it"
    if _is_in_domain(namespace, _NODE_RESTRICTION_DOMAIN):
        return (
            f"nodes are not allowed to set labels of {_NODE_RESTRICTION_DOMAIN} themselves; "
            "remove it, and label the nodes as an administrator"
        )
    is_kubernetes_label = _is_in_domain(namespace, "kubernetes.io") or _is_in_domain(namespace, "k8s.io")
    if is_kubernetes_label and not any(_is_in_domain(namespace, domain) for domain in _ALLOWED_LABEL_DOMAINS):
        return (
            "the API server rejects a node that gives itself a label of kubernetes.io or k8s.io, such as a role; use a "
            "different name, e.g. example.com/role, or label the nodes as an administrator"
        )
    if len(key) > _MAX_LABEL_KEY_LENGTH:
        return f"the key is too long for cluster-autoscaler's tag; use at most {_MAX_LABEL_KEY_LENGTH} characters"
    return ""


def _is_in_domain(namespace: str, domain: str) -> bool:
    """Return whether the namespace of a label, the part of its key before `/`, is a domain or a subdomain of it."""
    return namespace == domain or namespace.endswith("." + domain)


def _check_taints(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        seen_taints = set()
        for position, taint in enumerate(group.taints):
            path: Path = (*_NODE_GROUPS_PATH, index, "taints", position)
            if (taint.key, taint.effect) in seen_taints:
                yield Problem(path, f"{taint.key} with the effect {taint.effect} appears twice; remove one")
            seen_taints.add((taint.key, taint.effect))
            if len(taint.key) > _MAX_LABEL_KEY_LENGTH:
                message = (
                    f"the key is too long for cluster-autoscaler's tag; use at most {_MAX_LABEL_KEY_LENGTH} characters"
                )
                yield Problem((*path, "key"), message)


def _check_kubelet_configuration(cluster: Cluster) -> Iterator[Problem]:
    section: Path = ("kubernetes", "kubeletConfiguration")
    # What the user can do instead, by key of the kubelet configuration.
    advice_by_key = {path[-1]: instead for path, instead in KEYS_SET_BY_CFNGEN.items() if path[:2] == section}
    for path, instances in all_instances(cluster):
        for key, instead in advice_by_key.items():
            if key in instances.kubelet_configuration:
                yield Problem((*path, "kubeletConfiguration", key), f"cfngen sets this key itself; {instead}")


def _check_containerd_configuration(cluster: Cluster) -> Iterator[Problem]:
    for path, instances in all_instances(cluster):
        configuration = instances.containerd.configuration
        configuration_path: Path = (*path, "containerd", "configuration")
        for key_path, instead in _CONTAINERD_KEYS_SET_BY_CFNGEN.items():
            parent = lookup(configuration, key_path[:-1])
            if isinstance(parent, Mapping) and key_path[-1] in parent:
                yield Problem((*configuration_path, *key_path), f"cfngen sets this key itself; {instead}")
        null_path = _first_null(configuration)
        if null_path is not None:
            yield Problem(
                (*configuration_path, *null_path),
                "containerd's configuration has no null; enter a value, or remove the key",
            )


def _first_null(data: object) -> Path | None:
    for path, value in leaves(data):
        if value is None:
            return path
    return None


def _check_file_paths(cluster: Cluster) -> Iterator[Problem]:
    for path, instances in all_instances(cluster):
        # For each file on the instance: the path of the key in the cluster file, and the file's own path.
        keys_and_files = [((*path, "files", index, "path"), file.path) for index, file in enumerate(instances.files)]
        keys_and_files += [
            ((*path, "units", index, "name"), f"/etc/systemd/system/{unit.name}")
            for index, unit in enumerate(instances.units)
        ]
        seen_paths: set[str] = set()
        for key_path, file_path in keys_and_files:
            mirror = _REGISTRY_MIRROR_FILE.fullmatch(file_path)
            if any(re.fullmatch(pattern, file_path) for pattern in CFNGEN_FILE_PATTERNS):
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


def _warn_of_long_replacement_time(cluster: Cluster) -> Iterator[Problem]:
    """Warn if CloudFormation may time out before a rolling update has drained a node and its successor is ready."""
    for index, group in enumerate(cluster.node_groups):
        if group.drain_timeout + group.creation_timeout > _MAX_REPLACEMENT_MINUTES:
            message = (
                f"CloudFormation waits an hour at most while it replaces an instance, and creationTimeout "
                f"({group.creation_timeout}) and drainTimeout ({group.drain_timeout}) make more than "
                f"{_MAX_REPLACEMENT_MINUTES} minutes: a healthy update may time out and be rolled back"
            )
            yield Problem((*_NODE_GROUPS_PATH, index, "drainTimeout"), message)


PROBLEM_CHECKS = (
    _check_version,
    _check_no_keys_of_cfngen,
    _check_extra_args,
    _check_types,
    _check_labels,
    _check_taints,
    _check_kubelet_configuration,
    _check_containerd_configuration,
    _check_file_paths,
)
WARNING_CHECKS = (_warn_of_long_replacement_time,)
