"""The control plane: how it starts follows from what the volume, the secret and etcd's members say, not from a flag."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

from . import (
    certificate_authorities,
    certificate_expiry,
    decision,
    encryption,
    etcd_data,
    etcd_members,
    kubelet,
    peers,
    restore,
    upgrade,
)
from .certificate_authorities import KUBEADM
from .decision import INIT, JOIN, RESTORE, RESUME, STEADY
from .kubectl import documents, kubectl, own_server
from .machine import BootError, Machine, Pending
from .runner import remaining

# Phases of `kubeadm init`, before and after the API server answers. Without its flag bootstrap-token prints the token
# that it makes; nodes do not use that one, see `join_information`.
PHASES_BEFORE_API = ("certs all", "kubeconfig all", "etcd local", "control-plane all", "kubelet-start")
# A joining etcd has to be announced in between: the kubelet waits for its manifest.
PHASES_BEFORE_JOIN = ("certs all", "kubeconfig all", "kubelet-start")
PHASES_AFTER_API = ("mark-control-plane", "bootstrap-token --skip-token-print", "kubelet-finalize all")
# What to look at when a check of kubeadm's fails, by what stands in its line (kubeadm's preflight/checks.go).
PREFLIGHT_HINTS = {
    "[ERROR CRI]": "`systemctl status containerd`; `journalctl -u containerd`",
    "[ERROR ImagePull]": "can the instance reach registry.k8s.io, or the mirrors of the cluster file?",
    "[ERROR Port-": "`ss -ltnp` shows what listens there",
    "[ERROR DirAvailable-": "what is in that folder (`ls -la`)? An image should hold nothing of Kubernetes there",
    "[ERROR NumCPU]": "choose a larger controlPlane.instanceType",
    "[ERROR Mem]": "choose a larger controlPlane.instanceType",
    "[ERROR FileContent-": "`sysctl -p /etc/sysctl.d/99-cfngen.conf`; is the module br_netfilter loaded (`lsmod`)?",
    "[ERROR FileExisting-": "add the package of that program to the image, or in preBootCommands",
    "[ERROR FileAvailable-": "an image should hold nothing of Kubernetes there",
}
Result = TypeVar("Answer")
OUTCOMES = {
    INIT: "initialised a new cluster",
    JOIN: "joined the cluster",
    RESTORE: "restored the cluster",
    RESUME: "resumed the cluster of the volume",
}


def prepare(machine: Machine, config: dict[str, Any]) -> str:
    """Decide how to boot; put kubeadm's configuration, the authorities and the key of encryption in place."""
    bundle = decision.await_cluster(machine, config)
    kubelet_configuration = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        **config["kubelet"],
    }
    machine.write(KUBEADM, documents(*config["kubeadm"], kubelet_configuration), 0o600)
    kubelet.patch(machine, config)
    outcome = ""
    if bundle:
        if not certificate_authorities.installed(machine, bundle):
            # Somebody may have changed the secret: then every certificate follows.
            machine.remove(kubelet.ESTABLISHED)
        outcome = certificate_authorities.place(machine, bundle)
        if not kubelet.established(machine, config):
            upgrade.check(machine, config)
    boot_mode = decision.decide(machine, config, bundle)
    if boot_mode == STEADY and _remove_expiring_certificates(machine, config, bundle):
        boot_mode = RESUME
    config["bootMode"] = boot_mode
    if boot_mode != STEADY:
        # From here on until the end this instance is not one that was set up before.
        machine.remove(kubelet.ESTABLISHED, certificate_expiry.READ)
        kubelet.clear(machine)
    if boot_mode in (INIT, JOIN):
        etcd_data.make_room(machine)
        # What this volume will hold is younger than any request to restore so far.
        restore.note(machine, config)
    if not bundle:
        bundle, outcome = certificate_authorities.make(machine, config)
    encryption.configure(machine, certificate_authorities.complete(machine, config, bundle))
    return f"{boot_mode}: {outcome}"


def _remove_expiring_certificates(machine: Machine, config: dict[str, Any], bundle: dict[str, str]) -> bool:
    """Return whether the certificates of this instance end soon, or have ended: it may have been off for a year.

    They are taken away then, and the pods that have read them, so that all is made anew.
    """
    if not certificate_expiry.due(machine, config, certificate_expiry.first(machine)):
        return False
    # Before they go, so that a cut in between is not taken for a master that needs nothing.
    machine.remove(kubelet.ESTABLISHED)
    etcd_data.stop(machine)
    machine.remove(certificate_authorities.PKI)
    certificate_authorities.place(machine, bundle)
    return True


def start(machine: Machine, config: dict[str, Any]) -> str:
    """Start the control plane, or see that it runs, and note in the secret that the cluster exists.

    All ways take the same phases of `kubeadm init`: each is idempotent, so a boot that was cut off anywhere is simply
    run again. Manifests, certificates and the kubelet's identity are always made anew.
    """
    boot_mode, details = config["bootMode"], ""
    if boot_mode == STEADY:
        machine.run("systemctl", "start", "kubelet")
        await_own(machine, config)
        etcd_members.await_own(machine, config)
        return "the API server and etcd are healthy"
    if boot_mode == RESTORE:
        details = ": " + restore.perform(machine, config)
    if boot_mode in (INIT, JOIN):
        # Checks the machine and pulls the images: the one thing here that needs somebody else's server.
        seconds = remaining(machine, config)
        machine.wait("kubeadm's preflight", lambda: _run_preflight(machine), "", seconds, BootError)
    for phase in PHASES_BEFORE_JOIN if boot_mode == JOIN else PHASES_BEFORE_API:
        _run_phase(machine, phase)
    if boot_mode == JOIN:
        details = ": " + etcd_members.join(machine, config)
        _run_phase(machine, "control-plane all")
    elif machine.exists(etcd_data.JOINING):
        # The power went between the start of this member and its vote.
        details = ": " + etcd_members.promote(machine, config)
    await_own(machine, config)
    etcd_members.await_own(machine, config)
    _run_remaining_phases(machine, config)
    return OUTCOMES[boot_mode] + details


def _run_remaining_phases(machine: Machine, config: dict[str, Any]) -> None:
    """Do what the API server is needed for, and note that all is done."""
    instance = config["facts"]["instanceId"]
    is_current = config["bootMode"] == INIT or not _query_api(machine, config, "kubeadm's ConfigMap", upgrade.behind)
    if is_current:
        # admin.conf may do nothing until the first phase that talks to the API server has bound its group to a role
        # (kubernetes/kubernetes#121305); this one needs no Node.
        _run_phase(machine, "upload-config kubeadm")
    _await_object(machine, config, f"node {instance}", "node", instance)
    for phase in ("upload-config all", *PHASES_AFTER_API) if is_current else PHASES_AFTER_API:
        _run_phase(machine, phase)
    _delete_former_nodes(machine, config)
    if is_current and _query_api(machine, config, "the masters' versions", upgrade.last):
        _run_phase(machine, "addon all")
    _query_api(machine, config, "etcd's list of members", etcd_members.record)
    upgrade.record(machine, config)
    certificate_authorities.mark(machine, config, machine.read(restore.RECORD))
    kubelet.establish(machine, config)


def _delete_former_nodes(machine: Machine, config: dict[str, Any]) -> None:
    """Delete what this slot's former instances left in the cluster; it bothers people, and no boot fails for it."""
    try:
        deleted = peers.forget(machine, config)
    except BootError as error:
        machine.say(f"Nodes of this slot's former instances stay for now: {error}")
        return
    if deleted:
        machine.say(f"deleted the Nodes of this slot's former instances: {', '.join(deleted)}")


def await_own(machine: Machine, config: dict[str, Any]) -> None:
    """Wait until this master's own API server says that it is ready; another master's does not count.

    Raises:
        BootError: time is up.
    """
    _await_object(machine, config, "the API server", own_server(config), "--raw", "/readyz")


def _run_preflight(machine: Machine) -> None:
    """Let kubeadm check the machine.

    Raises:
        BootError: a check failed; the hint fits the first one that is known.
    """
    try:
        _run_phase(machine, "preflight")
    except BootError as error:
        hints = (hint for check, hint in PREFLIGHT_HINTS.items() if check in str(error))
        raise BootError(str(error), next(hints, "")) from error


def _run_phase(machine: Machine, phase: str) -> None:
    machine.run("kubeadm", "init", "phase", *phase.split(), "--config", KUBEADM)


def _query_api(machine: Machine, config: dict[str, Any], description: str, query: Callable[..., Result]) -> Result:
    """Return the answer to a question that the API server may fail to answer for a moment."""
    return machine.wait(description, lambda: query(machine, config), "is the API server healthy?", 120, BootError)


def _await_object(machine: Machine, config: dict[str, Any], description: str, *query: str) -> None:
    """Wait until `kubectl get` finds something."""

    def probe() -> None:
        if kubectl(machine, "get", *query, expect=(0, 1))[0]:
            raise Pending("not there yet")

    hint = "`journalctl -u kubelet`; `ctr -n k8s.io containers ls`; /var/log/pods"
    machine.wait(description, probe, hint, remaining(machine, config))
