"""A lock between masters: a Lease in kube-system, updated with optimistic concurrency (`resourceVersion`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..host.kubectl import kubectl
from ..machine import Machine, Pending

if TYPE_CHECKING:
    from ..contract import JsonObject

NAMESPACE = "kube-system"
# Seconds after its last renewal at which a lease expires; no operation between two renewals takes longer.
LEASE_SECONDS = 420


def acquire(machine: Machine, name: str, holder: str) -> None:
    """Acquire or renew a lease; an expired lease of another master is taken over.

    Args:
        holder: this master's instance id.

    Raises:
        Pending: another master has the lease, or has just acquired it.
    """
    current = _read_lease(machine, name)
    spec = current.get("spec", {})
    current_holder, renewed = spec.get("holderIdentity", ""), spec.get("renewTime", "")
    # The times are compared as texts up to the second, as RFC 3339 texts sort chronologically.
    expires_if_older_than = machine.time(-spec.get("leaseDurationSeconds", LEASE_SECONDS))
    if current_holder not in ("", holder) and renewed[:19] > expires_if_older_than:
        raise Pending(f"{current_holder} has held the lease since {spec.get('acquireTime', renewed)[:19]}Z")
    now = machine.time().replace("Z", ".000000Z")
    acquired = spec.get("acquireTime", now) if current_holder == holder else now
    new_spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": LEASE_SECONDS,
        "acquireTime": acquired,
        "renewTime": now,
    }
    if not _write_lease(machine, name, current, new_spec):
        raise Pending("the lease could not be acquired; another master may have been faster")


def release(machine: Machine, name: str, holder: str) -> None:
    """Release a lease if `holder` still holds it."""
    current = _read_lease(machine, name)
    if current.get("spec", {}).get("holderIdentity") == holder:
        _write_lease(machine, name, current, {})


def _read_lease(machine: Machine, name: str) -> JsonObject:
    _, text = kubectl(machine, "-n", NAMESPACE, "get", "lease", name, "-o", "json", "--ignore-not-found")
    return dict(json.loads(text)) if text.strip() else {}


def _write_lease(machine: Machine, name: str, current: JsonObject, spec: JsonObject) -> bool:
    """Create or replace a lease.

    Args:
        current: the Lease object as it was read; empty if it did not exist.

    Returns:
        Whether the lease was written: not if another master has created or changed it since it was read.
    """
    version = {"resourceVersion": current["metadata"]["resourceVersion"]} if current else {}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": NAMESPACE, **version},
        "spec": spec,
    }
    verb = "replace" if current else "create"
    exit_code, _ = kubectl(machine, verb, "-f", "-", stdin=json.dumps(lease), expect=(0, 1))
    return exit_code == 0
