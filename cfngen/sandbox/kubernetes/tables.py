"""Tables of meta.k8s.io: the rows and columns that `kubectl get` prints, which the API server computes.

The columns are those of Kubernetes' `pkg/printers/internalversion`; columns of priority 1 are shown by `-o wide` only.
Kinds without columns in `COLUMNS` have those of custom resources: name and age.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from cfngen.sandbox.kubernetes.admission import DEFAULT_CLASS_ANNOTATION
from cfngen.sandbox.kubernetes.state import Object
from cfngen.sandbox.untyped import Json

TABLE_PARAMETERS = {"as": "Table", "v": "v1", "g": "meta.k8s.io"}
NONE = "<none>"  # the content of an empty cell
ROLE_LABEL_PREFIX = "node-role.kubernetes.io/"
DEFAULT_PRIORITY, WIDE_PRIORITY = 0, 1  # columns of priority 1 are shown by `-o wide` only
CellFunction = Callable[[Json], Json]  # returns the content of a cell, from the object or from a part of it
Column = tuple[str, CellFunction, int]  # name, content, priority


class KindColumns(NamedTuple):
    """The columns of a kind besides Name and Age, which all kinds have.

    Attributes:
        default: content by name of the column, for the columns that are always shown.
        wide: the same for the further columns of `-o wide`.
    """

    default: Mapping[str, CellFunction] = {}
    wide: Mapping[str, CellFunction] = {}


def asks_for_table(accept: str) -> bool:
    """Return whether an `Accept` header prefers a Table to the objects themselves."""
    for choice in accept.split(","):  # in the client's order of preference
        media_type, *parameter_texts = (part.strip() for part in choice.split(";"))
        parameters = dict(text.split("=", 1) for text in parameter_texts if "=" in text)
        if media_type in ("application/json", "*/*"):
            if parameters.items() >= TABLE_PARAMETERS.items():
                return True
            if "as" not in parameters:
                return False  # the client prefers the objects
    return False


def make_table(
    plural: str, items: Sequence[Object], *, metadata: Object, now: datetime.datetime, include: str = ""
) -> Object:
    """Return objects as a Table.

    Args:
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
    """Return the columns of a kind in kubectl's order: Name, most columns, Age, Version (of nodes), wide columns.

    Those of events begin with the age, and their name is among the wide ones.
    """
    kind_columns = COLUMNS.get(plural, KindColumns())
    default_columns: list[Column] = [(name, cell, DEFAULT_PRIORITY) for name, cell in kind_columns.default.items()]
    wide_columns: list[Column] = [(name, cell, WIDE_PRIORITY) for name, cell in kind_columns.wide.items()]
    if plural == "events":
        return [("Last Seen", age, DEFAULT_PRIORITY), *default_columns, ("Name", _name, WIDE_PRIORITY)]
    return [
        ("Name", _storage_class_name if plural == "storageclasses" else _name, DEFAULT_PRIORITY),
        *[column for column in default_columns if column[0] not in AFTER_AGE],
        ("Age", age, DEFAULT_PRIORITY),
        *[column for column in default_columns if column[0] in AFTER_AGE],
        *wide_columns,
    ]


AFTER_AGE = frozenset({"Version"})  # kubectl prints the version of a node after its age


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])


def _storage_class_name(item: Object) -> str:
    """Return the name of a StorageClass, and whether it is the default."""
    annotations = item["metadata"].get("annotations") or {}
    return f"{_name(item)} (default)" if annotations.get(DEFAULT_CLASS_ANNOTATION) == "true" else _name(item)


def _node_status(node: Object) -> str:
    """Return Ready, NotReady or Unknown, and whether the node is cordoned."""
    conditions = {condition["type"]: condition["status"] for condition in node.get("status", {}).get("conditions", [])}
    readiness = "NotReady"
    if "Ready" not in conditions:
        readiness = "Unknown"
    elif conditions["Ready"] == "True":
        readiness = "Ready"
    is_cordoned = bool(node.get("spec", {}).get("unschedulable"))
    return f"{readiness},SchedulingDisabled" if is_cordoned else readiness


def _roles(node: Object) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = [key.removeprefix(ROLE_LABEL_PREFIX) for key in labels if key.startswith(ROLE_LABEL_PREFIX)]
    return ",".join(sorted(roles)) or NONE


def _address_of_type(address_type: str) -> Callable[[Object], str]:
    """Return a function that looks up a node's address of one type, e.g. `InternalIP`."""

    def cell(node: Object) -> str:
        addresses = node.get("status", {}).get("addresses", [])
        return next((address["address"] for address in addresses if address["type"] == address_type), NONE)

    return cell


def _value_at(*path: str, missing: object = NONE) -> CellFunction:
    """Return a function that returns the value at a path of keys in an object.

    Args:
        *path: the keys, from the outermost one.
        missing: what the function returns if there is no value, or an empty one.
    """

    def cell(item: Json) -> Json:
        for key in path:
            item = item.get(key) if isinstance(item, Mapping) else None
        return missing if item in (None, "") else item

    return cell


def _labels_at(*path: str) -> CellFunction:
    """Return a function that writes the labels at a path of keys as `key=value`, separated by commas."""

    def cell(item: Json) -> str:
        labels = _value_at(*path, missing={})(item)
        return ",".join(f"{key}={value}" for key, value in labels.items()) or NONE

    return cell


def _container_statuses(item: Object) -> list[Object]:
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
    for container in _container_statuses(pod):
        if reason := _value_at("state", "waiting", "reason", missing="")(container):
            return str(reason)
    return str(_value_at("status", "phase", missing="Pending")(pod))


def _restart_count(pod: Object) -> str:
    return str(sum(container.get("restartCount", 0) for container in _container_statuses(pod)))


def _service_ports(service: Object) -> str:
    """Return the ports of a Service, each with its node port and its protocol."""
    texts = []
    for port in service.get("spec", {}).get("ports", []):
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        texts.append(f"{port['port']}{node_port}/{port.get('protocol', 'TCP')}")
    return ",".join(texts) or NONE


def _external_addresses(service: Object) -> str:
    if service.get("spec", {}).get("type") != "LoadBalancer":
        return NONE
    entry_points = _value_at("status", "loadBalancer", "ingress", missing=())(service)
    return ",".join(entry.get("hostname") or entry.get("ip", "") for entry in entry_points) or "<pending>"


ACCESS_MODES = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"
}  # fmt: skip


def _access_modes(item: Object) -> str:
    return ",".join(ACCESS_MODES.get(mode, mode) for mode in item["spec"].get("accessModes") or ())


def _claim_status(claim: Object) -> str:
    return "Terminating" if claim["metadata"].get("deletionTimestamp") else str(claim["status"]["phase"])


def _claim_of_volume(volume: Object) -> str:
    return "/".join(volume["spec"]["claimRef"][key] for key in ("namespace", "name"))


def _involved_object(event: Object) -> str:
    involved = event.get("involvedObject") or {}
    return f"{involved.get('kind', '').lower()}/{involved.get('name', '')}"


def _ready_replicas(item: Object) -> str:
    """Return how many replicas are ready, e.g. `1/3`."""
    ready = _value_at("status", "readyReplicas", missing=0)(item)
    desired = _value_at("spec", "replicas", missing=1)(item)
    return f"{ready}/{desired}"


def _data_count(item: Object) -> int:
    return len(item.get("data") or {}) + len(item.get("binaryData") or {})


def _of_containers(key: str) -> CellFunction:
    """Return a function that lists the values that the containers of a pod template have for a key."""

    def cell(item: Json) -> str:
        containers = _value_at("spec", "template", "spec", "containers", missing=())(item)
        return ",".join(container.get(key, "") for container in containers) or NONE

    return cell


POD_TEMPLATE_COLUMNS = {
    "Containers": _of_containers("name"),
    "Images": _of_containers("image"),
    "Selector": _labels_at("spec", "selector", "matchLabels"),
}
# By the plural of the kind.
COLUMNS: Mapping[str, KindColumns] = {
    "nodes": KindColumns(
        default={"Status": _node_status, "Roles": _roles, "Version": _value_at("status", "nodeInfo", "kubeletVersion")},
        wide={
            "Internal-IP": _address_of_type("InternalIP"),
            "External-IP": _address_of_type("ExternalIP"),
            "OS-Image": _value_at("status", "nodeInfo", "osImage", missing="<unknown>"),
            "Kernel-Version": _value_at("status", "nodeInfo", "kernelVersion", missing="<unknown>"),
            "Container-Runtime": _value_at("status", "nodeInfo", "containerRuntimeVersion", missing="<unknown>"),
        },
    ),
    "pods": KindColumns(
        default={"Ready": _pod_ready, "Status": _pod_status, "Restarts": _restart_count},
        wide={
            "IP": _value_at("status", "podIP"),
            "Node": _value_at("spec", "nodeName"),
            "Nominated Node": _value_at("status", "nominatedNodeName"),
            "Readiness Gates": lambda item: NONE,
        },
    ),
    "namespaces": KindColumns(default={"Status": _value_at("status", "phase", missing="")}),
    "configmaps": KindColumns(default={"Data": _data_count}),
    "events": KindColumns(
        default={
            "Type": _value_at("type"),
            "Reason": _value_at("reason"),
            "Object": _involved_object,
            "Message": _value_at("message"),
        }
    ),
    "persistentvolumeclaims": KindColumns(
        default={
            "Status": _claim_status,
            "Volume": _value_at("spec", "volumeName", missing=""),
            "Capacity": _value_at("status", "capacity", "storage", missing=""),
            "Access Modes": _access_modes,
            "StorageClass": _value_at("spec", "storageClassName", missing=""),
        },
        wide={"VolumeMode": _value_at("spec", "volumeMode")},
    ),
    "persistentvolumes": KindColumns(
        default={
            "Capacity": _value_at("spec", "capacity", "storage"),
            "Access Modes": _access_modes,
            "Reclaim Policy": _value_at("spec", "persistentVolumeReclaimPolicy"),
            "Status": _value_at("status", "phase"),
            "Claim": _claim_of_volume,
            "StorageClass": _value_at("spec", "storageClassName"),
        },
        wide={"VolumeMode": _value_at("spec", "volumeMode")},
    ),
    "storageclasses": KindColumns(
        default={
            "Provisioner": _value_at("provisioner"),
            "ReclaimPolicy": _value_at("reclaimPolicy"),
            "VolumeBindingMode": _value_at("volumeBindingMode"),
            "AllowVolumeExpansion": _value_at("allowVolumeExpansion", missing=False),
        },
    ),
    "secrets": KindColumns(default={"Type": _value_at("type", missing="Opaque"), "Data": _data_count}),
    "services": KindColumns(
        default={
            "Type": _value_at("spec", "type", missing="ClusterIP"),
            "Cluster-IP": _value_at("spec", "clusterIP"),
            "External-IP": _external_addresses,
            "Port(s)": _service_ports,
        },
        wide={"Selector": _labels_at("spec", "selector")},
    ),
    "deployments": KindColumns(
        default={
            "Ready": _ready_replicas,
            "Up-to-date": _value_at("status", "updatedReplicas", missing=0),
            "Available": _value_at("status", "availableReplicas", missing=0),
        },
        wide=POD_TEMPLATE_COLUMNS,
    ),
    "daemonsets": KindColumns(
        default={
            "Desired": _value_at("status", "desiredNumberScheduled", missing=0),
            "Current": _value_at("status", "currentNumberScheduled", missing=0),
            "Ready": _value_at("status", "numberReady", missing=0),
            "Up-to-date": _value_at("status", "updatedNumberScheduled", missing=0),
            "Available": _value_at("status", "numberAvailable", missing=0),
            "Node Selector": _labels_at("spec", "template", "spec", "nodeSelector"),
        },
        wide=POD_TEMPLATE_COLUMNS,
    ),
}
