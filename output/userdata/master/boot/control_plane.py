"""The control plane: how it starts follows from what the volume and the secret hold, not from a flag."""

from __future__ import annotations

from typing import Any

from . import authorities, kubelet
from .authorities import KUBEADM
from .machine import BootError, Machine, Pending, documents
from .sequence import remaining

ADMIN = "/etc/kubernetes/admin.conf"
# Phases of `kubeadm init`, before and after the API server answers. Without its flag bootstrap-token prints the token
# that it makes; nodes do not use that one, see `join_information`.
BEGIN = ("certs all", "kubeconfig all", "etcd local", "control-plane all", "kubelet-start")
FINISH = (
    "upload-config all",
    "mark-control-plane",
    "bootstrap-token --skip-token-print",
    "kubelet-finalize all",
    "addon all",
)
HEALTHY = ("the API server", "--raw", "/readyz")
DATA = "/mnt/master/etcd/member/snap/db"


def decide(machine: Machine, config: dict[str, Any], bundle: dict[str, str]) -> str:
    """Return how this master boots: `steady` (set up before), `resume` (etcd's data is there), `init` (new cluster).

    Raises:
        BootError: what is there does not fit together, and going on would lose or fork the cluster.
    """
    volume, secret = config["facts"]["volumeId"], config["facts"]["caSecretArn"]
    if machine.exists(DATA):
        if not bundle:
            raise BootError(f"{volume} holds a cluster, but secret {secret} is empty", authorities.RESTORE)
        return "steady" if kubelet.established(machine, config) else "resume"
    since = bundle.get(authorities.INITIALISED)
    if since:
        raise BootError(
            f"{volume} is blank, yet the cluster exists since {since}: going on would make a second, empty one",
            f"restore the volume from a snapshot; or, to begin again with nothing, remove "
            f"{authorities.INITIALISED} from secret {secret} and reboot",
        )
    return "init"


def prepare(machine: Machine, config: dict[str, Any]) -> str:
    """Decide how to boot, write kubeadm's configuration, install the certificate authorities."""
    bundle = authorities.load(machine, config)
    config["way"] = decide(machine, config, bundle)
    settings = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **config["kubelet"]}
    machine.write(KUBEADM, documents(*config["kubeadm"], settings), 0o600)
    kubelet.patch(machine, config)
    if config["way"] == "steady" and not authorities.installed(machine, bundle):
        # Somebody changed the secret: every certificate follows.
        config["way"] = "resume"
    if config["way"] != "steady":
        kubelet.clear(machine)
    return f"{config['way']}: {authorities.install(machine, config, bundle)}"


def start(machine: Machine, config: dict[str, Any]) -> str:
    """Start the control plane, or see that it runs, and note in the secret that the cluster exists.

    A new cluster and a resumed one take the same phases of `kubeadm init`: each is idempotent, so a boot that was cut
    off anywhere is simply run again. Manifests, certificates and the kubelet's identity are always made anew.
    """
    instance, way = config["facts"]["instanceId"], config["way"]
    if way == "steady":
        machine.run("systemctl", "start", "kubelet")
        _await(machine, config, *HEALTHY)
        return "the API server is healthy"
    if way == "init":
        # Checks the machine and pulls the images: the one thing here that needs somebody else's server.
        hint = "can the instance reach registry.k8s.io?"
        seconds = remaining(machine, config)
        machine.wait("kubeadm's preflight", lambda: _phase(machine, "preflight"), hint, seconds, BootError)
    for phase in BEGIN:
        _phase(machine, phase)
    _await(machine, config, *HEALTHY)
    # admin.conf may do nothing until the first phase that talks to the API server has bound its group to a role
    # (kubernetes/kubernetes#121305); this one needs no Node.
    _phase(machine, "upload-config kubeadm")
    _await(machine, config, f"node {instance}", "node", instance)
    for phase in FINISH:
        _phase(machine, phase)
    authorities.mark(machine, config)
    kubelet.establish(machine, config)
    return {"init": "initialised a new cluster", "resume": "resumed the cluster of the volume"}[way]


def addons(machine: Machine, config: dict[str, Any]) -> str:
    """Apply the manifests that the configuration holds, and see the cloud controller manager at work."""
    text, node, seconds = documents(*config["manifests"]), config["facts"]["instanceId"], remaining(machine, config)

    def apply() -> None:
        kubectl(machine, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def initialised() -> None:
        # Without it no node takes pods and no pod is routed, though each node is Ready.
        if "cloudprovider.kubernetes.io/uninitialized" in kubectl(machine, "get", "nodes", node, "-o", "yaml")[1]:
            raise Pending("the node still has its taint")

    machine.wait("kubectl apply", apply, "is the API server healthy?", seconds, BootError)
    hint = "kubectl -n kube-system logs daemonset/cloud-controller-manager"
    machine.wait("the cloud controller manager", initialised, hint, seconds, (BootError, Pending))
    return f"applied {len(config['manifests'])} objects"


def kubectl(machine: Machine, *arguments: str, stdin: str = "", expect: tuple[int, ...] = (0,)) -> tuple[int, str]:
    """Run kubectl as the cluster's administrator."""
    return machine.run(
        "kubectl", "--kubeconfig", ADMIN, "--request-timeout=15s", *arguments, stdin=stdin, expect=expect
    )


def _phase(machine: Machine, phase: str) -> None:
    machine.run("kubeadm", "init", "phase", *phase.split(), "--config", KUBEADM)


def _await(machine: Machine, config: dict[str, Any], what: str, *query: str) -> None:
    """Wait until `kubectl get` finds something."""

    def probe() -> None:
        if kubectl(machine, "get", *query, expect=(0, 1))[0]:
            raise Pending("not there yet")

    hint = "journalctl -u kubelet; ctr -n k8s.io containers ls; /var/log/pods"
    machine.wait(what, probe, hint, remaining(machine, config))
