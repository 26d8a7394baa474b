"""Renews a master's leaf certificates, and publishes their expiry for operators.

The certificates are valid for a year, kubeadm's default. That suffices: a daily timer renews all of them once one has
less than 30 % of its validity left, and longer validity would only make a stolen key useful for longer. The kubelet
renews its own client certificate.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..host.kubectl import kubectl
from ..machine import HOME, BootError, Machine
from . import certificate_expiry, control_plane, etcd_members
from .certificate_authorities import KUBEADM_CONFIG

if TYPE_CHECKING:
    from ..contract import MasterBoot

CONFIG_MAP = "cfngen-certificates"
TIMER = "cfngen-certificates.timer"
COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


def schedule(machine: Machine, boot: MasterBoot) -> str:
    """Renew the certificates if they are due, and start the timer that does so every day."""
    outcome = renew(machine, boot)
    machine.run("systemctl", "enable", "--now", TIMER)
    return outcome


def renew(machine: Machine, boot: MasterBoot) -> str:
    """Renew this master's leaf certificates if one of them expires soon, and publish when they expire.

    The control plane is restarted if it has loaded older certificates than those in the files, also if an earlier run
    has renewed them and was then interrupted.
    """
    expires = certificate_expiry.first_expiry(machine)
    loaded_expiry = machine.read(certificate_expiry.LOADED_EXPIRY_FILE)
    if certificate_expiry.is_renewal_due(machine, boot, expires):
        machine.run("kubeadm", "certs", "renew", "all", "--config", KUBEADM_CONFIG)
        new_expires = certificate_expiry.first_expiry(machine)
        if new_expires <= expires:
            raise BootError(
                f"certificates expire at {expires}, and kubeadm did not renew them", "`kubeadm certs check-expiration`"
            )
        loaded_expiry = loaded_expiry or expires
        expires = new_expires
    needs_restart = bool(loaded_expiry) and loaded_expiry != expires
    if needs_restart:
        _restart_control_plane(machine, boot, expires)
    machine.write(certificate_expiry.LOADED_EXPIRY_FILE, expires)
    _publish_expiry(machine, boot, expires)
    return f"valid until {expires}" + (f", renewed (before: {loaded_expiry})" if needs_restart else "")


def _restart_control_plane(machine: Machine, boot: MasterBoot, expires: str) -> None:
    """Restart the control plane's static pods, some of which load certificates only when they start.

    The kubelet restarts a static pod if its manifest changes, so kubeadm patches an annotation into each manifest. No
    manifest is removed: the pods also run if this is interrupted.
    """
    annotation = {"metadata": {"annotations": {"cfngen/certificates": expires}}}
    for component in COMPONENTS:
        machine.write(f"{HOME}/patches/{component}+merge.json", json.dumps(annotation))
    for phase in ("etcd local", "control-plane all"):
        machine.run("kubeadm", "init", "phase", *phase.split(), "--config", KUBEADM_CONFIG)
    control_plane.await_local_api_server(machine, boot)
    etcd_members.await_local_member(machine, boot)


def _publish_expiry(machine: Machine, boot: MasterBoot, expires: str) -> None:
    """Write the expiry of this slot's certificates into a ConfigMap with one key per slot."""
    facts = boot.facts
    text = json.dumps({"expires": expires, "instance": facts["instanceId"]})
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": "kube-system"},
        "data": {facts["slot"]: text},
    }
    manager = f"--field-manager=cfngen-{facts['slot']}"
    command = ("apply", "--server-side", "--force-conflicts", manager, "-f", "-")
    machine.wait(
        f"ConfigMap {CONFIG_MAP}",
        lambda: kubectl(machine, *command, stdin=json.dumps(config_map)),
        "check that the API server is healthy",
        retry_on=BootError,
    )
