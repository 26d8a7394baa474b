"""A master in memory, with a kubeadm that leaves behind what the real one does."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from scripted_machine import IDENTITY, ScriptedMachine, SecretsManager

from cfngen.boot.authorities import FILES, PKI
from cfngen.boot.control_plane import DATA
from cfngen.boot.kubelet import KUBELET_CONF

INSTANCE = IDENTITY["instanceId"]
CA_SECRET, JOIN_SECRET = "arn:ca", "arn:join"
CERTIFICATE = (Path(__file__).parent / "authority-ec.crt").read_text()
BUNDLE = {**dict.fromkeys(FILES, "stored"), "ca.crt": CERTIFICATE}
CONFIG: dict[str, Any] = {
    "role": "master",
    "cluster": "kubernetes",
    "region": "us-west-2",
    "timeout": 20,
    "deadline": 1080,
    "endpoint": "172.20.0.9:443",
    "kubeadm": [{"kind": "InitConfiguration"}, {"kind": "ClusterConfiguration"}],
    "kubelet": {"cgroupDriver": "systemd"},
    "manifests": [{"kind": "DaemonSet", "metadata": {"name": "cloud-controller-manager"}}],
    "facts": {
        "instanceId": INSTANCE,
        "providerId": f"aws:///us-west-2a/{INSTANCE}",
        "volumeId": "vol-1",
        "caSecretArn": CA_SECRET,
        "joinSecretArn": JOIN_SECRET,
    },
}


def configuration() -> dict[str, Any]:
    """Return a master's configuration, its facts known."""
    return copy.deepcopy(CONFIG)


class Master(ScriptedMachine):
    """A master whose commands have the effects that later steps rely on."""

    def __init__(self, **secrets: str) -> None:
        super().__init__()
        self.secrets = SecretsManager(**secrets).install(self)
        self.made = 0
        self.on("kubeadm init phase certs all", self._certs)
        self.on("kubeadm init phase kubeconfig all", self._kubeconfig)
        self.on("kubeadm init phase etcd local", self._etcd)
        # Like kubeadm 1.29 and newer: the administrators' group has no rights before a phase gives it its role.
        self.bound = False
        self.on("kubeadm init phase upload-config", self._bind)
        self.on("kubectl .* get node ", self._get_node)

    def _certs(self, command: str) -> tuple[int, str]:
        self.made += 1
        for name in FILES:
            self.files.setdefault(PKI + name, CERTIFICATE if name == "ca.crt" else f"{name} {self.made}")
        self.files.setdefault(PKI + "apiserver.crt", "signed by " + self.files[PKI + "ca.key"])
        return 0, ""

    def _kubeconfig(self, command: str) -> tuple[int, str]:
        assert KUBELET_CONF not in self.files, "kubeadm would keep the old one, whose certificate is gone"
        self.files[KUBELET_CONF] = "made anew"
        return 0, ""

    def _etcd(self, command: str) -> tuple[int, str]:
        self.files[DATA] = "members"
        return 0, ""

    def _bind(self, command: str) -> tuple[int, str]:
        self.bound = True
        return 0, ""

    def _get_node(self, command: str) -> tuple[int, str]:
        return (0, "") if self.bound else (1, "nodes is forbidden")
