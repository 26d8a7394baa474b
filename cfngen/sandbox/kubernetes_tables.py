"""Tables of meta.k8s.io: the rows and columns that `kubectl get` prints, which the API server computes.

The columns are those of Kubernetes' `pkg/printers/internalversion`; columns of priority 1 are shown by `-o wide` only.
Kinds without columns in `COLUMNS` have those of custom resources: name and age.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from cfngen.sandbox.kubernetes_state import Object

TABLE_PARAMETERS = {"as": "Table", "v": "v1", "g": "meta.k8s.io"}
NONE = "<none>"
ROLE_LABEL_PREFIX = "node-role.kubernetes.io/"
WIDE_PRIORITY = 1
Cell = Callable[[Any], Any]  # returns the content of a cell, from the object or from a part of it
Column = tuple[str, Cell, int]  # name, content, priority


class KindColumns(NamedTuple):
    """The columns of a kind besides Name and Age, which all kinds have.

    Attributes:
        default: content by name of the column, for the columns that are always shown.
        wide: the same for the further columns of `-o wide`.
    """

    default: Mapping[str, Cell]
    wide: Mapping[str, Cell]


def asks_for_table(accept: str) -> bool:
    """Return whether an `Accept` header prefers a Table to the objects themselves."""
    for choice in accept.split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        if media in ("application/json", "*/*"):
            if options.items() >= TABLE_PARAMETERS.items():
                return True
            if "as" not in options:
                return False
    return False


def make_table(
    plural: str, items: Sequence[Object], metadata: Object, now: datetime.datetime, include: str = ""
) -> Object:
    """Return objects as a Table.

    Args:
        plural: the resource, e.g. `nodes`.
        items: its objects.
        metadata: metadata of the list, such as the `continue` token.
        now: the simulated time, to compute the ages.
        include: what each row includes of its object: `None`, `Metadata` (the default) or `Object`.
    """

    def age(item: Object) -> str:
        created = datetime.datetime.strptime(item["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%S%z")
        return format_age((now - created).total_seconds())

    columns = _columns(plural, age)
    definitions = [
        {
            "name": name,
            "type": "integer" if items and all(isinstance(cell(item), int) for item in items) else "string",
            "format": "name" if name == "Name" else "",
            "description": "",
            "priority": priority,
        }
        for name, cell, priority in columns
    ]
    rows = [{"cells": [cell(item) for _, cell, _ in columns], **_row_object(item, include)} for item in items]
    header = {"kind": "Table", "apiVersion": "meta.k8s.io/v1"}
    return {**header, "metadata": metadata, "columnDefinitions": definitions, "rows": rows}


def format_age(seconds: float) -> str:
    """Return a duration as kubectl writes ages (apimachinery's `HumanDuration`), e.g. `5m12s`, `3h`, `2d4h`."""
    total = int(seconds)
    minutes, hours, days = total // 60, total // 3600, total // 86400
    # Below each limit (in seconds): a number with its unit, and a remainder with its unit, omitted if it is 0.
    for limit, number, unit, remainder, remainder_unit in (
        (120, total, "s", 0, ""),
        (600, minutes, "m", total % 60, "s"),
        (3 * 3600, minutes, "m", 0, ""),
        (8 * 3600, hours, "h", minutes % 60, "m"),
        (48 * 3600, hours, "h", 0, ""),
        (8 * 86400, days, "d", hours % 24, "h"),
        (2 * 365 * 86400, days, "d", 0, ""),
        (8 * 365 * 86400, days // 365, "y", days % 365, "d"),
    ):
        if total < limit:
            return f"{max(number, 0)}{unit}" + (f"{remainder}{remainder_unit}" if remainder else "")
    return f"{days // 365}y"


def _row_object(item: Object, include: str) -> Object:
    """Return the key `object` of a row: the object, its metadata, or nothing."""
    if include == "None":
        return {}
    if include == "Object":
        return {"object": item}
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return {"object": {**partial, "metadata": item["metadata"]}}


def _columns(plural: str, age: Callable[[Object], str]) -> list[Column]:
    """Return the columns of a kind in kubectl's order: Name, most columns, Age, Version (of nodes), wide columns."""
    kind_columns = COLUMNS.get(plural, KindColumns({}, {}))
    default = kind_columns.default
    columns_before_age: list[Column] = [(name, cell, 0) for name, cell in default.items() if name not in AFTER_AGE]
    columns_after_age: list[Column] = [(name, cell, 0) for name, cell in default.items() if name in AFTER_AGE]
    wide_columns: list[Column] = [(name, cell, WIDE_PRIORITY) for name, cell in kind_columns.wide.items()]
    return [
        ("Name", lambda item: item["metadata"]["name"], 0),
        *columns_before_age,
        ("Age", age, 0),
        *columns_after_age,
        *wide_columns,
    ]


AFTER_AGE = frozenset({"Version"})  # kubectl prints the version of a node after its age


def _node_status(node: Object) -> str:
    """Return Ready, NotReady or Unknown, and whether the node is cordoned."""
    conditions = {condition["type"]: condition["status"] for condition in node.get("status", {}).get("conditions", [])}
    readiness = {"True": "Ready"}.get(conditions["Ready"], "NotReady") if "Ready" in conditions else "Unknown"
    return readiness + (",SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else "")


def _roles(node: Object) -> str:
    """Return the roles in a node's labels."""
    labels = node["metadata"].get("labels") or {}
    return (
        ",".join(sorted(key.removeprefix(ROLE_LABEL_PREFIX) for key in labels if key.startswith(ROLE_LABEL_PREFIX)))
        or NONE
    )


def _address(address_type: str) -> Callable[[Object], str]:
    """Return a function that looks up a node's address of one type, e.g. `InternalIP`."""

    def cell(node: Object) -> str:
        addresses = node.get("status", {}).get("addresses", [])
        return next((address["address"] for address in addresses if address["type"] == address_type), NONE)

    return cell


def _at(*path: str, missing: object = NONE) -> Cell:
    """Return a function that looks up a path in an object."""

    def cell(item: Any) -> Any:
        for key in path:
            item = item.get(key) if isinstance(item, Mapping) else None
        return missing if item in (None, "") else item

    return cell


def _join_at(*path: str) -> Cell:
    """Return a function that writes a list or a mapping of an object into one cell."""

    def cell(item: Any) -> str:
        value = _at(*path, missing=())(item)
        texts = [f"{key}={text}" for key, text in value.items()] if isinstance(value, Mapping) else map(str, value)
        return ",".join(texts) or NONE

    return cell


def _container_statuses(item: Object) -> list[Object]:
    """Return the statuses of a pod's containers."""
    statuses: list[Object] = item.get("status", {}).get("containerStatuses", [])
    return statuses


def _pod_ready(pod: Object) -> str:
    """Return how many of a pod's containers are ready, e.g. `1/2`."""
    ready_count = sum(bool(container.get("ready")) for container in _container_statuses(pod))
    return f"{ready_count}/{len(pod.get('spec', {}).get('containers', []))}"


def _pod_status(pod: Object) -> str:
    """Return the reason why a container waits, or else the phase of the pod."""
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    waiting = (_at("state", "waiting", "reason", missing="")(container) for container in _container_statuses(pod))
    return next(filter(None, waiting), "") or str(_at("status", "phase", missing="Pending")(pod))


def _restart_count(pod: Object) -> str:
    """Return how often the containers of a pod were restarted."""
    return str(sum(container.get("restartCount", 0) for container in _container_statuses(pod)))


def _service_ports(service: Object) -> str:
    """Return the ports of a Service, each with its node port and its protocol."""
    ports = service.get("spec", {}).get("ports", [])
    texts = (
        f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in ports
    )
    return ",".join(texts) or NONE


def _external_addresses(service: Object) -> str:
    """Return the addresses of a Service's load balancer."""
    if service.get("spec", {}).get("type") != "LoadBalancer":
        return NONE
    ingress = _at("status", "loadBalancer", "ingress", missing=())(service)
    return ",".join(entry.get("hostname") or entry.get("ip", "") for entry in ingress) or "<pending>"


def _ready_replicas(item: Object) -> str:
    """Return how many replicas are ready, e.g. `1/3`."""
    ready, desired = _at("status", "readyReplicas", missing=0)(item), _at("spec", "replicas", missing=1)(item)
    return f"{ready}/{desired}"


def _data_count(item: Object) -> int:
    """Return the number of entries of a ConfigMap or Secret."""
    return len(item.get("data") or {}) + len(item.get("binaryData") or {})


def _claim_name(volume: Object) -> str:
    """Return the namespace and name of the claim that a volume is bound to."""
    claim = volume.get("spec", {}).get("claimRef")
    return f"{claim['namespace']}/{claim['name']}" if claim else ""


ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _access_modes(item: Object) -> str:
    """Return the abbreviated access modes of a volume or claim."""
    return ",".join(ACCESS_MODES.get(mode, mode) for mode in item.get("spec", {}).get("accessModes", []))


def _image_names(item: Object) -> str:
    """Return the images in a pod template."""
    containers = _at("spec", "template", "spec", "containers", missing=())(item)
    return ",".join(container.get("image", "") for container in containers) or NONE


def _container_names(item: Object) -> str:
    """Return the names of the containers in a pod template."""
    containers = _at("spec", "template", "spec", "containers", missing=())(item)
    return ",".join(container.get("name", "") for container in containers) or NONE


def _count(*path: str) -> Cell:
    """Return a function that looks up a number; 0 if it is missing."""
    return _at(*path, missing=0)


POD_TEMPLATE_COLUMNS = {
    "Containers": _container_names,
    "Images": _image_names,
    "Selector": _join_at("spec", "selector", "matchLabels"),
}
# By resource.
COLUMNS: Mapping[str, KindColumns] = {
    "nodes": KindColumns(
        {"Status": _node_status, "Roles": _roles, "Version": _at("status", "nodeInfo", "kubeletVersion")},
        {
            "Internal-IP": _address("InternalIP"),
            "External-IP": _address("ExternalIP"),
            "OS-Image": _at("status", "nodeInfo", "osImage", missing="<unknown>"),
            "Kernel-Version": _at("status", "nodeInfo", "kernelVersion", missing="<unknown>"),
            "Container-Runtime": _at("status", "nodeInfo", "containerRuntimeVersion", missing="<unknown>"),
        },
    ),
    "pods": KindColumns(
        {"Ready": _pod_ready, "Status": _pod_status, "Restarts": _restart_count},
        {
            "IP": _at("status", "podIP"),
            "Node": _at("spec", "nodeName"),
            "Nominated Node": _at("status", "nominatedNodeName"),
            "Readiness Gates": lambda item: NONE,
        },
    ),
    "namespaces": KindColumns({"Status": _at("status", "phase", missing="")}, {}),
    "configmaps": KindColumns({"Data": _data_count}, {}),
    "secrets": KindColumns({"Type": _at("type", missing="Opaque"), "Data": _data_count}, {}),
    "services": KindColumns(
        {
            "Type": _at("spec", "type", missing="ClusterIP"),
            "Cluster-IP": _at("spec", "clusterIP"),
            "External-IP": _external_addresses,
            "Port(s)": _service_ports,
        },
        {"Selector": _join_at("spec", "selector")},
    ),
    "deployments": KindColumns(
        {
            "Ready": _ready_replicas,
            "Up-to-date": _count("status", "updatedReplicas"),
            "Available": _count("status", "availableReplicas"),
        },
        POD_TEMPLATE_COLUMNS,
    ),
    "daemonsets": KindColumns(
        {
            "Desired": _count("status", "desiredNumberScheduled"),
            "Current": _count("status", "currentNumberScheduled"),
            "Ready": _count("status", "numberReady"),
            "Up-to-date": _count("status", "updatedNumberScheduled"),
            "Available": _count("status", "numberAvailable"),
            "Node Selector": _join_at("spec", "template", "spec", "nodeSelector"),
        },
        POD_TEMPLATE_COLUMNS,
    ),
    "replicasets": KindColumns(
        {
            "Desired": _count("spec", "replicas"),
            "Current": _count("status", "replicas"),
            "Ready": _count("status", "readyReplicas"),
        },
        POD_TEMPLATE_COLUMNS,
    ),
    "statefulsets": KindColumns({"Ready": _ready_replicas}, {"Containers": _container_names, "Images": _image_names}),
    "persistentvolumeclaims": KindColumns(
        {
            "Status": _at("status", "phase", missing="Pending"),
            "Volume": _at("spec", "volumeName", missing=""),
            "Capacity": _at("status", "capacity", "storage", missing=""),
            "Access Modes": _access_modes,
            "StorageClass": _at("spec", "storageClassName", missing=""),
            "VolumeAttributesClass": _at("spec", "volumeAttributesClassName", missing="<unset>"),
        },
        {"VolumeMode": _at("spec", "volumeMode", missing="<unset>")},
    ),
    "persistentvolumes": KindColumns(
        {
            "Capacity": _at("spec", "capacity", "storage", missing=""),
            "Access Modes": _access_modes,
            "Reclaim Policy": _at("spec", "persistentVolumeReclaimPolicy", missing=""),
            "Status": _at("status", "phase", missing=""),
            "Claim": _claim_name,
            "StorageClass": _at("spec", "storageClassName", missing=""),
            "VolumeAttributesClass": _at("spec", "volumeAttributesClassName", missing="<unset>"),
            "Reason": _at("status", "reason", missing=""),
        },
        {"VolumeMode": _at("spec", "volumeMode", missing="<unset>")},
    ),
}
