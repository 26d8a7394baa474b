"""A lock that one master of several holds: a Lease in kube-system, changed only as it was read."""

from __future__ import annotations

import json
from typing import Any

from .kubectl import kubectl
from .machine import Machine, Pending

SPACE = "kube-system"
# Seconds that a holder is believed in without a word; longer than the longest thing done between two words.
LIFETIME = 420


def take(machine: Machine, name: str, holder: str) -> None:
    """Take or renew a lease; that of a holder who fell silent is taken over.

    Raises:
        Pending: somebody else holds it, or was faster.
    """
    found = _read(machine, name)
    spec = found.get("spec", {})
    other, renewed = spec.get("holderIdentity", ""), spec.get("renewTime", "")
    # Times as texts, to the second (a Z more makes none later): they compare like times.
    if other not in ("", holder) and renewed[:19] > machine.time(-spec.get("leaseDurationSeconds", LIFETIME)):
        raise Pending(f"{other} is at it since {spec.get('acquireTime', renewed)[:19]}Z")
    now = machine.time().replace("Z", ".000000Z")
    begin = spec.get("acquireTime", now) if other == holder else now
    held = {"holderIdentity": holder, "leaseDurationSeconds": LIFETIME, "acquireTime": begin, "renewTime": now}
    if not _write(machine, name, found, held):
        raise Pending("the lock was not to be had; another master may have been faster")


def give_back(machine: Machine, name: str, holder: str) -> None:
    """Let go of a lease if it is still held; if that fails, it ends by itself."""
    found = _read(machine, name)
    if found.get("spec", {}).get("holderIdentity") == holder:
        _write(machine, name, found, {})


def _read(machine: Machine, name: str) -> dict[str, Any]:
    text = kubectl(machine, "-n", SPACE, "get", "lease", name, "-o", "json", "--ignore-not-found")[1]
    return dict(json.loads(text)) if text.strip() else {}


def _write(machine: Machine, name: str, found: dict[str, Any], spec: dict[str, Any]) -> bool:
    """Write a lease as the one that was read; return whether nobody changed it meanwhile."""
    version = {"resourceVersion": found["metadata"]["resourceVersion"]} if found else {}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": SPACE, **version},
        "spec": spec,
    }
    verb = "replace" if found else "create"
    return not kubectl(machine, verb, "-f", "-", stdin=json.dumps(lease), expect=(0, 1))[0]
