"""A lock that one master of several holds: a Lease in kube-system, changed only as it was read."""

from __future__ import annotations

import json
from typing import Any

from .kubectl import kubectl
from .machine import Machine, Pending

NAMESPACE = "kube-system"
# Seconds that a holder is believed in without a word; longer than the longest thing done between two words.
LEASE_SECONDS = 420


def take(machine: Machine, name: str, holder: str) -> None:
    """Take or renew a lease; that of a holder who fell silent is taken over.

    Raises:
        Pending: somebody else holds it, or was faster.
    """
    current = _read_lease(machine, name)
    spec = current.get("spec", {})
    current_holder, renewed = spec.get("holderIdentity", ""), spec.get("renewTime", "")
    # Times as texts, to the second (a Z more makes none later): they compare like times.
    if current_holder not in ("", holder) and renewed[:19] > machine.time(
        -spec.get("leaseDurationSeconds", LEASE_SECONDS)
    ):
        raise Pending(f"{current_holder} is at it since {spec.get('acquireTime', renewed)[:19]}Z")
    now = machine.time().replace("Z", ".000000Z")
    acquired = spec.get("acquireTime", now) if current_holder == holder else now
    new_spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": LEASE_SECONDS,
        "acquireTime": acquired,
        "renewTime": now,
    }
    if not _write_lease(machine, name, current, new_spec):
        raise Pending("the lock was not to be had; another master may have been faster")


def give_back(machine: Machine, name: str, holder: str) -> None:
    """Let go of a lease if it is still held; if that fails, it ends by itself."""
    current = _read_lease(machine, name)
    if current.get("spec", {}).get("holderIdentity") == holder:
        _write_lease(machine, name, current, {})


def _read_lease(machine: Machine, name: str) -> dict[str, Any]:
    text = kubectl(machine, "-n", NAMESPACE, "get", "lease", name, "-o", "json", "--ignore-not-found")[1]
    return dict(json.loads(text)) if text.strip() else {}


def _write_lease(machine: Machine, name: str, current: dict[str, Any], spec: dict[str, Any]) -> bool:
    """Write a lease as the one that was read; return whether nobody changed it meanwhile."""
    version = {"resourceVersion": current["metadata"]["resourceVersion"]} if current else {}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": NAMESPACE, **version},
        "spec": spec,
    }
    verb = "replace" if current else "create"
    return not kubectl(machine, verb, "-f", "-", stdin=json.dumps(lease), expect=(0, 1))[0]
