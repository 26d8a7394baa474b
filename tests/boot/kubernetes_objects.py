"""The Kubernetes objects that the boot program writes: which fields they have, by version and kind.

A field that the API server does not know is dropped without a word by `kubectl create`, and a kubelet leaves out a
manifest of an unknown kind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

# Of each kind the fields that are always there, and those that may be; below a `*` any name is one.
# https://kubernetes.io/docs/reference/kubernetes-api/
META = {"metadata.name", "metadata.namespace"}
LEASE = {f"spec.{name}" for name in ("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime")}
TOKEN = {f"stringData.{name}" for name in ("token-id", "token-secret", "expiration", "auth-extra-groups")}
TOKEN |= {f"stringData.usage-bootstrap-{name}" for name in ("authentication", "signing")}
POD = {f"spec.{name}" for name in ("hostNetwork", "priorityClassName", "terminationGracePeriodSeconds")}
POD |= {f"spec.containers[].{name}" for name in ("name", "image", "imagePullPolicy")}
FIELDS: dict[tuple[str, str], tuple[set[str], set[str]]] = {
    ("policy/v1", "Eviction"): (META, set()),
    ("v1", "Secret"): ({"type", *META, *TOKEN}, set()),
    ("v1", "ConfigMap"): (META, {"data.*", "metadata.annotations.*"}),
    # A lease that is given back holds nothing; its resourceVersion is that of the one that was read.
    ("coordination.k8s.io/v1", "Lease"): (META, {*LEASE, "metadata.resourceVersion", "spec"}),
    ("v1", "Pod"): ({*META, *POD}, set()),
}
# Values that mean something to whoever reads the object: operators' commands, other masters, the kubelet.
VALUES: dict[str, set[Any]] = {
    "ConfigMap metadata.name": {"cfngen-addons", "cfngen-certificates"},
    "ConfigMap metadata.namespace": {"kube-system"},
    "Lease metadata.name": {"cfngen-addons"},
    "Lease metadata.namespace": {"kube-system"},
    "Secret metadata.namespace": {"kube-system"},
    "Pod metadata.name": {"cfngen-first-pod"},
    "Pod metadata.namespace": {"kube-system"},
    # Without a network plug-in, before any other pod, from the image that is there, and gone in a second.
    "Pod spec.hostNetwork": {True},
    "Pod spec.priorityClassName": {"system-node-critical"},
    "Pod spec.terminationGracePeriodSeconds": {1},
    "Pod spec.containers[].name": {"pause"},
    "Pod spec.containers[].imagePullPolicy": {"IfNotPresent"},
}


def problem(text: str) -> str:
    """Return what is wrong with an object in JSON, or nothing."""
    item = json.loads(text)
    version, kind = item.pop("apiVersion", ""), item.pop("kind", "")
    if (version, kind) not in FIELDS:
        return f"there is no kind {kind} of {version}"
    always, perhaps = FIELDS[version, kind]
    fields = dict(leaves(item))
    missing = always - set(fields)
    unknown = {name for name in set(fields) - always - perhaps if f"{name.rpartition('.')[0]}.*" not in perhaps}
    odd = {name for name, value in fields.items() if value not in VALUES.get(f"{kind} {name}", {value})}
    return f"{kind}: {sorted(unknown)} unknown, {sorted(missing)} missing, {sorted(odd)} odd" * bool(
        unknown | missing | odd
    )


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each field that holds no others; names with dots are those of annotations."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name.replace('.', '_')}" if path else name)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, path + "[]")
    else:
        yield path, str(value) if isinstance(value, (dict, list)) else value
