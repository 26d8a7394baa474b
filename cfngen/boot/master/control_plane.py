"""Starts the control plane of a master, in the boot mode that `decision` derives from its volume, secret and etcd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..host import kubelet
from ..host.kubectl import kubectl, local_server_option, yaml_documents
from ..machine import BootError, Machine, Pending
from . import (
    certificate_authorities,
    certificate_expiry,
    decision,
    encryption,
    etcd_data,
    etcd_members,
    peers,
    restore,
    upgrade,
)
from .certificate_authorities import KUBEADM_CONFIG
from .decision import INIT, JOIN, RESTORE, RESUME, STEADY

if TYPE_CHECKING:
    from typing import Callable, TypeVar

    from ..contract import Bundle, MasterBoot

    Result = TypeVar("Result")

# Phases of `kubeadm init` that run before the API server answers, in all boot modes but JOIN.
PHASES_BEFORE_API = ("certs all", "kubeconfig all", "etcd local", "control-plane all", "kubelet-start")
PHASES_BEFORE_JOIN = ("certs all", "kubeconfig all", "kubelet-start")
# Phases that run once the API server answers. Without `--skip-token-print` the phase bootstrap-token would print its
# token; nodes use another one, see `join_information`.
PHASES_AFTER_API = ("mark-control-plane", "bootstrap-token --skip-token-print", "kubelet-finalize all")
# Hints for failed preflight checks, by the beginning of kubeadm's message (kubeadm's preflight/checks.go).
PREFLIGHT_HINTS = {
    "[ERROR CRI]": "`systemctl status containerd`; `journalctl -u containerd`",
    "[ERROR ImagePull]": "check that the instance can reach registry.k8s.io, or the mirrors in the cluster file",
    "[ERROR Port-": "`ss -ltnp` shows what listens there",
    "[ERROR DirAvailable-": "look into that folder (`ls -la`): an image should contain no Kubernetes files there",
    "[ERROR NumCPU]": "choose a larger controlPlane.instanceType",
    "[ERROR Mem]": "choose a larger controlPlane.instanceType",
    "[ERROR FileContent-": "`sysctl -p /etc/sysctl.d/99-cfngen.conf`; check with `lsmod` that br_netfilter is loaded",
    "[ERROR FileExisting-": "add the package of that program to the image, or in preBootCommands",
    "[ERROR FileAvailable-": "an image should contain no Kubernetes files there",
}
OUTCOMES = {
    INIT: "initialised a new cluster",
    JOIN: "joined the cluster",
    RESTORE: "restored the cluster",
    RESUME: "continued with the etcd data on the volume",
}


def prepare(machine: Machine, boot: MasterBoot) -> str:
    """Prepare the start of the control plane, and choose the boot mode, which is stored in `boot.mode`.

    This writes kubeadm's configuration, the certificate authorities and the encryption key.

    Returns:
        The boot mode, and what was done with the certificate authorities, for the log.
    """
    bundle = decision.await_cluster(machine, boot)
    kubelet_configuration = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        **boot.config["kubelet"],
    }
    machine.write(KUBEADM_CONFIG, yaml_documents(*boot.config["kubeadm"], kubelet_configuration), 0o600)
    kubelet.write_patch(machine, boot)
    outcome = ""
    if bundle:
        if not certificate_authorities.are_installed(machine, bundle):
            # The authorities in the secret have changed, so every certificate is recreated.
            machine.remove(kubelet.SET_UP_FILE)
        outcome = certificate_authorities.install(machine, bundle)
        if not kubelet.is_set_up(machine, boot):
            upgrade.check_version_skew(machine, boot)
    boot_mode = decision.decide(machine, boot, bundle)
    if boot_mode == STEADY and _remove_expiring_certificates(machine, boot, bundle):
        boot_mode = RESUME
    boot.mode = boot_mode
    if boot_mode != STEADY:
        # If this boot is interrupted, the next boot must not treat this instance as set up.
        machine.remove(kubelet.SET_UP_FILE, certificate_expiry.LOADED_EXPIRY_FILE)
        kubelet.stop_and_remove_files(machine)
    if boot_mode in (INIT, JOIN):
        etcd_data.clear_data_folder(machine)
        # The etcd data that this boot creates is newer than the current restore request, which needs no action then.
        restore.mark_done(machine, boot)
    if not bundle:
        bundle, outcome = certificate_authorities.create(machine, boot)
    encryption.write_configuration(machine, certificate_authorities.add_encryption_key(machine, boot, bundle))
    return f"{boot_mode}: {outcome}"


def _remove_expiring_certificates(machine: Machine, boot: MasterBoot, bundle: Bundle) -> bool:
    """Remove this master's leaf certificates if they have expired or will expire soon.

    That happens if the instance was stopped for a long time. The control plane's pods, which have loaded the old
    certificates, are stopped. The caller then selects the boot mode `resume`, in which kubeadm's phases create new
    certificates.

    Returns:
        Whether the certificates were removed.
    """
    if not certificate_expiry.is_renewal_due(machine, boot, certificate_expiry.first_expiry(machine)):
        return False
    # The marker is removed first, so that after an interruption this master does not count as set up.
    machine.remove(kubelet.SET_UP_FILE)
    etcd_data.stop_kubelet_and_pods(machine)
    machine.remove(certificate_authorities.PKI)
    certificate_authorities.install(machine, bundle)
    return True


def start(machine: Machine, boot: MasterBoot) -> str:
    """Start the control plane in the boot mode `boot.mode`, and wait until the API server and etcd are healthy.

    All boot modes except `steady` run phases of `kubeadm init`, which create manifests, missing certificates and the
    kubelet's identity, and mark the cluster as initialised in the secret of the certificate authorities. Each phase is
    idempotent, so an interrupted boot is simply repeated.

    Returns:
        What was done, for the log.
    """
    boot_mode = boot.mode
    details = ""  # for the log: which snapshot was restored, or which etcd member was promoted
    if boot_mode == STEADY:
        machine.run("systemctl", "start", "kubelet")
        await_local_api_server(machine, boot)
        etcd_members.await_local_member(machine, boot)
        return "the API server and etcd are healthy"
    if boot_mode == RESTORE:
        details = restore.perform(machine, boot)
    if boot_mode in (INIT, JOIN):
        # Preflight also pulls the images, so it depends on the registry and is retried.
        machine.wait(
            "kubeadm's preflight",
            lambda: _run_preflight(machine),
            hint="",  # the failed check has its own hint
            seconds=boot.remaining(machine),
            retry_on=BootError,
        )
    for phase in PHASES_BEFORE_JOIN if boot_mode == JOIN else PHASES_BEFORE_API:
        _run_phase(machine, phase)
    if boot_mode == JOIN:
        details = etcd_members.join(machine, boot)
        _run_phase(machine, "control-plane all")
    elif machine.exists(etcd_data.JOINING_FILE):
        # An earlier boot was interrupted after it started this etcd member, before the member was promoted.
        details = etcd_members.promote(machine, boot)
    await_local_api_server(machine, boot)
    etcd_members.await_local_member(machine, boot)
    _run_remaining_phases(machine, boot)
    return OUTCOMES[boot_mode] + (f": {details}" if details else "")


def _run_remaining_phases(machine: Machine, boot: MasterBoot) -> None:
    """Run the phases that need a running API server, and record that this instance and the cluster are set up."""
    instance = boot.facts["instanceId"]
    # A master of an older Kubernetes version must not overwrite the ConfigMaps and add-ons of a newer master.
    may_upload = boot.mode == INIT or not _retry(machine, boot, "kubeadm's ConfigMap", upgrade.is_older_than_cluster)
    if may_upload:
        # This phase runs first, as it needs no Node object and gives admin.conf its permissions: the first phase that
        # talks to the API server binds the group of admin.conf to a role (kubernetes/kubernetes#121305).
        _run_phase(machine, "upload-config kubeadm")
    _await_object(machine, boot, f"node {instance}", "node", instance)
    for phase in ("upload-config all", *PHASES_AFTER_API) if may_upload else PHASES_AFTER_API:
        _run_phase(machine, phase)
    _delete_former_nodes(machine, boot)
    if may_upload and _retry(machine, boot, "the masters' versions", upgrade.is_last_to_upgrade):
        _run_phase(machine, "addon all")
    _retry(machine, boot, "etcd's list of members", etcd_members.record_member_id)
    upgrade.record_version(machine, boot)
    completed_restore_id = machine.read(restore.DONE_FILE)
    certificate_authorities.mark_initialised(machine, boot, completed_restore_id)
    kubelet.mark_set_up(machine, boot)


def _delete_former_nodes(machine: Machine, boot: MasterBoot) -> None:
    """Delete the Node objects of this slot's former instances; a failure is only logged."""
    try:
        deleted = peers.delete_former_nodes(machine, boot)
    except BootError as error:
        machine.say(f"could not delete the Nodes of this slot's former instances: {error}")
        return
    if deleted:
        machine.say(f"deleted the Nodes of this slot's former instances: {', '.join(deleted)}")


def await_local_api_server(machine: Machine, boot: MasterBoot) -> None:
    """Wait until this master's own API server, not another master's, is ready."""
    _await_object(machine, boot, "the API server", local_server_option(boot), "--raw", "/readyz")


def _await_object(machine: Machine, boot: MasterBoot, description: str, *get_arguments: str) -> None:
    """Wait until `kubectl get` succeeds.

    Args:
        get_arguments: the arguments of `kubectl get`: an object's kind and name, or a raw path of the API.
    """

    def probe() -> None:
        exit_code, _ = kubectl(machine, "get", *get_arguments, expect=(0, 1))
        if exit_code != 0:
            raise Pending("not available yet")

    hint = "`journalctl -u kubelet`; `ctr -n k8s.io containers ls`; /var/log/pods"
    machine.wait(description, probe, hint=hint, seconds=boot.remaining(machine))


def _run_preflight(machine: Machine) -> None:
    """Run kubeadm's preflight checks."""
    try:
        _run_phase(machine, "preflight")
    except BootError as error:
        hints = (hint for check, hint in PREFLIGHT_HINTS.items() if check in str(error))
        raise BootError(str(error), next(hints, "")) from error


def _run_phase(machine: Machine, phase: str) -> None:
    machine.run("kubeadm", "init", "phase", *phase.split(), "--config", KUBEADM_CONFIG)


def _retry(machine: Machine, boot: MasterBoot, description: str, query: Callable[..., Result]) -> Result:
    """Return the result of a query to the API server or etcd, retried for two minutes while it fails."""
    return machine.wait(
        description,
        lambda: query(machine, boot),
        hint="check that the API server is healthy",
        seconds=120,
        retry_on=BootError,
    )
