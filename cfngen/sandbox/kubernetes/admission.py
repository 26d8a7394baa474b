"""What the API server fills into new objects, and what it refuses; what the sandbox does not model is refused by name.

Only what the emulated scheduler and the emulated controllers read is checked: the fields of other objects are not
validated (Kubernetes API reference, PersistentVolumeClaim and StorageClass; `pkg/apis/core/validation`).
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Mapping

from cfngen.sandbox.kubernetes.state import KubernetesState, Object, RefusedError

DEFAULT_CLASS_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
DELAYED_BINDING = "WaitForFirstConsumer"
GIB = 2**30
# Suffixes of quantities (apimachinery, `resource.Quantity`).
UNITS: Mapping[str, int] = {
    "": 1,
    **{suffix: 1000**power for power, suffix in enumerate("kMGTP", 1)},
    **{f"{suffix}i": 1024**power for power, suffix in enumerate("KMGTP", 1)},
}
QUANTITY_PATTERN = re.compile(r"(\d+(?:\.\d+)?)([kMGTP]|[KMGTP]i)?")
CLAIM_FIELDS = frozenset({"accessModes", "resources", "storageClassName", "volumeMode"})  # those that are modelled


def with_defaults(state: KubernetesState, plural: str, item: Object) -> Object:
    """Return a new object as the API server stores it.

    Raises:
        RefusedError: the object is invalid, or the sandbox does not model what it asks for.
    """
    _check_modelled(plural, item)
    if plural == "namespaces":
        return {**item, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    if plural == "secrets":
        texts = item.pop("stringData", {})
        encoded_texts = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
        return {"type": "Opaque", **item, "data": {**(item.get("data") or {}), **encoded_texts}}
    if plural == "pods":
        return {**item, "spec": item.get("spec") or {}, "status": {"phase": "Pending"}}
    if plural == "storageclasses":
        return {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **item}
    if plural == "persistentvolumeclaims":
        return _claim_with_defaults(state, item)
    return item


def check_unchanged(plural: str, current: Object, changed: Object) -> None:
    """Refuse a change of a PersistentVolumeClaim's or a pod's spec that the API server or the sandbox does not allow.

    Raises:
        RefusedError: it is refused.
    """
    if plural == "persistentvolumeclaims" and current["spec"] != changed.get("spec"):
        if {**current["spec"], "resources": {}} == {**changed.get("spec", {}), "resources": {}}:
            raise _not_modelled("a larger PersistentVolumeClaim: it expands no volumes")
        message = "spec: Forbidden: spec is immutable after creation except resources.requests"
        raise _invalid("PersistentVolumeClaim", current, message)


def requested_gib(claim: Object) -> int:
    """Return the storage that a PersistentVolumeClaim requests in GiB, rounded up as the EBS CSI driver does."""
    match = QUANTITY_PATTERN.fullmatch(str(claim["spec"]["resources"]["requests"]["storage"]))
    if match is None:
        return 0
    return math.ceil(float(match[1]) * UNITS[match[2] or ""] / GIB)


def claim_names(pod: Object) -> list[str]:
    """Return the names of the PersistentVolumeClaims that a pod uses."""
    volumes = pod["spec"].get("volumes") or ()
    return [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume]


def _claim_with_defaults(state: KubernetesState, claim: Object) -> Object:
    """Return a new PersistentVolumeClaim with the name of the default StorageClass, unless it names another or none."""
    spec = {"volumeMode": "Filesystem", **(claim.get("spec") or {})}
    if not spec.get("accessModes"):
        raise _invalid("PersistentVolumeClaim", claim, "spec.accessModes: Required value: at least 1 access mode")
    try:
        is_valid_size = requested_gib({"spec": spec}) > 0
    except (KeyError, TypeError):
        raise _invalid("PersistentVolumeClaim", claim, "spec.resources[storage]: Required value") from None
    if not is_valid_size:
        raise _invalid("PersistentVolumeClaim", claim, "spec.resources.requests[storage]: Invalid value")
    if spec.get("storageClassName") is None:
        spec.pop("storageClassName", None)
        default_classes = [
            (storage_class["metadata"]["creationTimestamp"], storage_class["metadata"]["name"])
            for storage_class in state.list("storageclasses")
            if (storage_class["metadata"].get("annotations") or {}).get(DEFAULT_CLASS_ANNOTATION) == "true"
        ]
        if default_classes:
            spec["storageClassName"] = max(default_classes)[1]
    return {**claim, "spec": spec, "status": {"phase": "Pending"}}


def _check_modelled(plural: str, item: Object) -> None:
    for feature in _missing_features(plural, item.get("spec") or {}, item):
        raise _not_modelled(feature)


def _missing_features(plural: str, spec: Object, item: Object) -> Iterator[str]:
    """Yield what an object asks for that the sandbox would leave undone."""
    if plural == "persistentvolumes":
        yield "PersistentVolumes that are made by hand: make a claim, and a pod that uses it"
    elif plural == "persistentvolumeclaims":
        fields = sorted(key for key, value in spec.items() if value is not None and key not in CLAIM_FIELDS)
        yield from (f"spec.{field} of a PersistentVolumeClaim" for field in fields)
    elif plural == "storageclasses" and item.get("allowedTopologies"):
        yield "allowedTopologies of a StorageClass"
    elif plural == "pods":
        if any("ephemeral" in volume for volume in spec.get("volumes") or ()):
            yield "ephemeral volumes of a pod: make a claim, and name it in the pod"
        if claim_names({"spec": spec}) and spec.get("affinity"):
            yield "the affinity of a pod with a claim: use a nodeSelector"
    elif plural in ("deployments", "daemonsets"):
        pod = (spec.get("template") or {}).get("spec") or {}
        if claim_names({"spec": pod}):
            yield "claims of a Deployment or a DaemonSet, since it makes no pods of them: make a pod with the claim"


def _not_modelled(feature: str) -> RefusedError:
    return RefusedError(422, "Invalid", f"the sandbox does not model {feature}")


def _invalid(kind: str, item: Object, problem: str) -> RefusedError:
    return RefusedError(422, "Invalid", f'{kind} "{item["metadata"]["name"]}" is invalid: {problem}')
