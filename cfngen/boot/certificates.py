"""The leaf certificates of a master: made anew with each instance, renewed in time by a timer, visible to operators.

They live for a year, kubeadm's default. That suffices, since a timer looks each day and renews them all once one of
them has less than 30 % of its life left; a longer life would only make a stolen key useful for longer. The kubelet
renews its own client certificate.
"""

from __future__ import annotations

import json
from typing import Any

from . import certificate_expiry, control_plane, etcd_members
from .certificate_authorities import KUBEADM
from .kubectl import kubectl
from .machine import HOME, BootError, Machine

CONFIG_MAP = "cfngen-certificates"
TIMER = "cfngen-certificates.timer"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


def schedule(machine: Machine, config: dict[str, Any]) -> str:
    """Look at the certificates now, as the timer does each day from now on."""
    outcome = renew(machine, config)
    machine.run("systemctl", "enable", "--now", TIMER)
    return outcome


def renew(machine: Machine, config: dict[str, Any]) -> str:
    """Renew the certificates if one of them ends soon, and tell the cluster until when they are good.

    Raises:
        BootError: kubeadm cannot renew them, or the control plane does not come back with the new ones.
    """
    expires, in_use = certificate_expiry.first(machine), machine.read(certificate_expiry.READ)
    if certificate_expiry.due(machine, config, expires):
        machine.run("kubeadm", "certs", "renew", "all", "--config", KUBEADM)
        new_expires = certificate_expiry.first(machine)
        if new_expires <= expires:
            raise BootError(
                f"certificates end at {expires} and kubeadm renewed none", "`kubeadm certs check-expiration`"
            )
        expires, in_use = new_expires, in_use or expires
    if in_use and in_use != expires:
        _restart_control_plane(machine, config, expires)
    machine.write(certificate_expiry.READ, expires)
    _publish_expiry(machine, config, expires)
    return f"good until {expires}" + (f", renewed (before: {in_use})" if in_use and in_use != expires else "")


def _restart_control_plane(machine: Machine, config: dict[str, Any], expires: str) -> None:
    """Let the control plane read the new certificates: some of its parts read them only when they start.

    The kubelet restarts a static pod whose manifest changes, here by an annotation that kubeadm patches in. Nothing is
    moved away, so a cut in between loses nothing.
    """
    annotation = {"metadata": {"annotations": {"cfngen/certificates": expires}}}
    for component in COMPONENTS:
        machine.write(f"{HOME}/patches/{component}+merge.json", json.dumps(annotation))
    for phase in ("etcd local", "control-plane all"):
        machine.run("kubeadm", "init", "phase", *phase.split(), "--config", KUBEADM)
    control_plane.await_own(machine, config)
    etcd_members.await_own(machine, config)


def _publish_expiry(machine: Machine, config: dict[str, Any], expires: str) -> None:
    """Write until when this slot's certificates are good into a ConfigMap of all slots, each of which owns its line."""
    facts = config["facts"]
    text = json.dumps({"expires": expires, "instance": facts["instanceId"]})
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": "kube-system"},
        "data": {facts["slot"]: text},
    }
    manager = f"--field-manager=cfngen-{facts['slot']}"
    order = ("apply", "--server-side", "--force-conflicts", manager, "-f", "-")
    machine.wait(
        f"ConfigMap {CONFIG_MAP}",
        lambda: kubectl(machine, *order, stdin=json.dumps(config_map)),
        "is the API server healthy?",
        retry_on=BootError,
    )
