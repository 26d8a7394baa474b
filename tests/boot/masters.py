"""Masters in memory: kubeadm, the kubelet and etcd leave behind what the real ones do, and refuse what they refuse."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

from etcd_cluster import Etcd, RefusedError
from scripted_machine import IDENTITY, ScriptedMachine, SecretsManager

from cfngen.boot.host.kubelet import KUBELET_CONF
from cfngen.boot.master.certificate_authorities import CA_FILES, KUBEADM_CONFIG, PKI
from cfngen.boot.master.etcd_data import DATA_FOLDER, DATABASE_FILE
from cfngen.boot.master.etcd_members import JOIN_CONFIG_FILE
from cfngen.boot.master.upgrade import SUPER_ADMIN_KUBECONFIG

INSTANCE = IDENTITY["instanceId"]
CA_SECRET, JOIN_SECRET = "arn:ca", "arn:join"
CERTIFICATE = (Path(__file__).parent / "authority-ec.crt").read_text()
BUNDLE = {**dict.fromkeys(CA_FILES, "stored"), "ca.crt": CERTIFICATE}
VERSION = "v1.36.3"
ADDRESSES = {"a": "172.20.0.9", "b": "172.20.1.9", "c": "172.20.2.9"}
MANIFESTS = "/etc/kubernetes/manifests/"
EXPIRES = "2027-09-01T12:00:00Z"
CONFIG: dict[str, Any] = {
    "role": "master",
    "cluster": "kubernetes",
    "region": "us-west-2",
    "timeout": 20,
    "deadline": 1080,
    "endpoint": "api.kubernetes.internal:443",
    "apiHost": "api.kubernetes.internal",
    "masters": {"a": ADDRESSES["a"]},
    "kubernetesVersion": VERSION,
    "kubeadm": [{"kind": "InitConfiguration"}, {"kind": "ClusterConfiguration", "etcd": {"local": {}}}],
    "kubelet": {"cgroupDriver": "systemd"},
    "kubeletPatch": {"cgroupDriver": "systemd"},
    "podNetwork": {"interfaces": False, "prefixes": False, "awaited": True},
    "manifests": [{"kind": "DaemonSet", "metadata": {"name": "cloud-controller-manager"}}],
    "facts": {
        "instanceId": INSTANCE,
        "slot": "a",
        "privateAddress": ADDRESSES["a"],
        "providerId": f"aws:///us-west-2a/{INSTANCE}",
        "volumeId": "vol-1",
        "caSecretArn": CA_SECRET,
        "joinSecretArn": JOIN_SECRET,
    },
}


def configuration() -> dict[str, Any]:
    """Return the configuration of the only master of a cluster, its facts known."""
    return copy.deepcopy(CONFIG)


class World:
    """What the masters of one cluster share.

    Attributes:
        etcd: their database.
        secrets: Secrets Manager.
        objects: the bucket, by key.
        bound: whether a phase of kubeadm has given the administrators' group its role.
        version: Kubernetes' version in kubeadm's ConfigMap.
        proxy: the version whose kube-proxy was applied.
        nodes: masters' Nodes: (address, version) by name.
        ended: EC2's states of instances that do not run.
        approves: whether kubeadm's binding lets Kubernetes approve what is requested with kubeadm's tokens.
    """

    def __init__(self, **secrets: str) -> None:
        self.etcd = Etcd()
        self.secrets = SecretsManager(**secrets)
        self.objects: dict[str, str] = {}
        self.bound = False
        self.version = ""
        self.proxy = ""
        self.nodes: dict[str, tuple[str, str]] = {}
        self.ended: dict[str, str] = {}
        self.approves = False


class Master(ScriptedMachine):
    """A master whose commands have the effects that later steps rely on; by default the only one of a cluster.

    Attributes:
        world: what it shares with others.
        config: its configuration.
        kubelet: whether its kubelet runs.
        expires: when the certificates on its disk end.
    """

    def __init__(self, world: World | None = None, config: dict[str, Any] | None = None, **secrets: str) -> None:
        super().__init__()
        self.world = world or World(**secrets)
        self.config = config or configuration()
        self.secrets = self.world.secrets.install(self)
        self.objects = self.world.objects
        self.made = 0
        self.kubelet = False
        self.expires = EXPIRES
        self.cloud["s3.list_objects_v2"] = lambda Bucket, Prefix: {  # noqa: N803
            "Contents": [{"Key": key} for key in self.objects if key.startswith(Prefix)]
        }
        self.cloud["ec2.describe_instances"] = self._describe
        self.on("kubeadm init phase preflight", self._preflight)
        self.on("kubeadm init phase certs ", self._certs)
        self.on("kubeadm init phase kubeconfig ", self._kubeconfig)
        self.on("kubeadm init phase etcd local", self._etcd)
        self.on("kubeadm init phase control-plane all", self._control_plane)
        self.on("kubeadm init phase kubelet-start", self._kubelet_start)
        self.on("kubeadm init phase upload-config", self._upload)
        for phase in ("mark-control-plane", "bootstrap-token --skip-token-print", "kubelet-finalize all"):
            self.on(f"kubeadm init phase {phase} --config {KUBEADM_CONFIG}$", self._configure)
        self.on("kubeadm init phase addon all", self._addons)
        self.on("kubeadm certs check-expiration", lambda _: (0, self._expiration()))
        self.on("kubeadm certs renew all", self._renew)
        self.on("kubectl .* get --raw|kubectl .* get --server", self._ready)
        self.on("kubectl .* get node ", self._get_node)
        self.on("kubectl .* get nodes -l", self._get_masters)
        self.on("kubectl .* get configmap kubeadm-config", self._get_configuration)
        self.on("kubectl .* delete node ", self._delete_node)
        self.on("kubectl .* delete clusterrolebinding ", self._delete_binding)
        self.on("kubectl .* create -f -$", self._create)
        self.on("kubectl .* apply --server-side --force-conflicts --field-manager=cfngen-[a-e] -f -$", self._note)
        self.on("systemctl start kubelet", self._kubelet_start)
        self.on("systemctl stop kubelet", self._kubelet_stop)
        self.on("systemctl stop kubepods.slice", self._pods_stop)
        self.on("pgrep -x etcd", lambda _: (0 if self.address in self.world.etcd.running else 1, ""))
        self.on("etcdctl .* endpoint health", self._health)
        self.on("etcdctl .* member ", self._members)
        self.on("etcdctl .* move-leader ", (128, "no leader endpoint given"))
        self.on("etcdutl .* snapshot status|etcdutl snapshot status", (0, "{}"))
        self.on("etcdutl snapshot restore", self._restore)
        self.on("mv -T ", self._move)

    @property
    def address(self) -> str:
        return str(self.config["facts"]["privateAddress"])

    @property
    def name(self) -> str:
        return str(self.config["facts"]["instanceId"])

    @property
    def bound(self) -> bool:
        """Like kubeadm 1.29 and newer: the administrators' group has no rights before a phase gives it its role."""
        return self.world.bound

    def reboot(self) -> None:
        """Switch off and on again: pods are gone, and the kubelet starts by itself where it is set up."""
        self.fuse = None
        self.kubelet = False
        self.world.etcd.stop(self.address)
        self.kubelet = KUBELET_CONF in self.files
        self._reconcile()

    def lose(self) -> None:
        """Switch off for good."""
        self.kubelet = False
        self.world.etcd.stop(self.address)
        self.world.ended[self.name] = "terminated"

    def volume(self) -> dict[str, str]:
        """Return the files of the data volume."""
        return {path: text for path, text in self.files.items() if path.startswith("/mnt/master/")}

    def remove(self, *patterns: str) -> None:
        super().remove(*patterns)
        self._reconcile()

    def run(
        self, *command: str, stdin: str = "", expect: tuple[int, ...] = (0,), timeout: int = 900
    ) -> tuple[int, str]:
        try:
            return super().run(*command, stdin=stdin, expect=expect, timeout=timeout)
        finally:
            self._reconcile()

    def _reconcile(self) -> None:
        """Do what a kubelet does with etcd's manifest."""
        if not self.kubelet:
            return
        running, manifest = self.address in self.world.etcd.running, self.files.get(MANIFESTS + "etcd.yaml")
        if running and manifest is None:
            self.world.etcd.stop(self.address)
        elif manifest is not None and not running:
            data = self.world.etcd.start(
                self.address, self.name, self.files.get(DATABASE_FILE, ""), json.loads(manifest)
            )
            if data:
                self.files[DATABASE_FILE] = data

    def _preflight(self, command: str) -> tuple[int, str]:
        if self.address in self.world.etcd.running:
            return 1, "[ERROR Port-2379]: Port 2379 is in use"
        if any(path.startswith(DATA_FOLDER + "/") for path in self.files):
            return 1, "[ERROR DirAvailable--mnt-master-etcd]: /mnt/master/etcd is not empty"
        return 0, ""

    def _certs(self, command: str) -> tuple[int, str]:
        if "etcd-healthcheck-client" in command:
            assert PKI + "etcd/ca.key" in self.files
            self.files[PKI + "etcd/healthcheck-client.crt"] = "signed by " + self.files[PKI + "etcd/ca.key"]
            return 0, ""
        self.made += 1
        for name in CA_FILES:
            self.files.setdefault(PKI + name, CERTIFICATE if name == "ca.crt" else f"{name} {self.made}")
        if PKI + "apiserver.crt" not in self.files:
            self.files[PKI + "apiserver.crt"] = "signed by " + self.files[PKI + "ca.key"]
            self.expires = self.time(365 * 24 * 3600)
        self.files.setdefault(PKI + "etcd/healthcheck-client.crt", "signed by " + self.files[PKI + "etcd/ca.key"])
        return 0, ""

    def _kubeconfig(self, command: str) -> tuple[int, str]:
        self.files["/etc/kubernetes/admin.conf"] = "made anew"
        if "admin" not in command:
            assert KUBELET_CONF not in self.files, "kubeadm would keep the old one, whose certificate is gone"
            self.files.update({KUBELET_CONF: "made anew", SUPER_ADMIN_KUBECONFIG: "made anew"})
        return 0, ""

    def _etcd(self, command: str) -> tuple[int, str]:
        file = command.rpartition(" ")[2]
        assert file in (KUBEADM_CONFIG, JOIN_CONFIG_FILE)
        cluster = json.loads(self.files[file].split("\n---\n")[1])
        arguments = cluster["etcd"]["local"].get("extraArgs", [])
        self.files[MANIFESTS + "etcd.yaml"] = json.dumps({each["name"]: each["value"] for each in arguments})
        return 0, ""

    def _control_plane(self, command: str) -> tuple[int, str]:
        self.files[MANIFESTS + "kube-apiserver.yaml"] = "manifest"
        return 0, ""

    def _kubelet_start(self, command: str) -> tuple[int, str]:
        assert KUBELET_CONF in self.files
        self.kubelet = True
        return 0, ""

    def _kubelet_stop(self, command: str) -> tuple[int, str]:
        self.kubelet = False
        return 0, ""

    def _pods_stop(self, command: str) -> tuple[int, str]:
        assert not self.kubelet, "the kubelet would start the pods again"
        self.world.etcd.stop(self.address)
        return 0, ""

    def _serves(self) -> bool:
        there = {MANIFESTS + "kube-apiserver.yaml", PKI + "apiserver.crt"} <= set(self.files)
        return self.kubelet and there and self.world.etcd.healthy(self.address)

    def _answered(self) -> bool:
        """Return whether some API server answers."""
        return self._serves() or any(self.world.etcd.healthy(each) for each in self.config["masters"].values())

    def _ready(self, command: str) -> tuple[int, str]:
        assert f"--server=https://{self.address}:443" in command, "another master's health would count as this one's"
        return (0, "ok") if self._serves() else (1, "")

    def _upload(self, command: str) -> tuple[int, str]:
        assert self._serves()
        self.world.bound = True
        self.world.version = self.config["kubernetesVersion"]
        return 0, ""

    def _configure(self, command: str) -> tuple[int, str]:
        assert KUBEADM_CONFIG in self.files
        assert self._serves()
        self.world.approves |= "bootstrap-token" in command
        return 0, ""

    def _create(self, command: str) -> tuple[int, str]:
        document = json.loads(self.stdin[command])
        assert (document["kind"], document["type"]) == ("Secret", "bootstrap.kubernetes.io/token")
        return 0, ""

    def _note(self, command: str) -> tuple[int, str]:
        document = json.loads(self.stdin[command])
        assert (document["kind"], document["metadata"]["name"]) == ("ConfigMap", "cfngen-certificates")
        return 0, ""

    def _addons(self, command: str) -> tuple[int, str]:
        self.world.proxy = self.config["kubernetesVersion"]
        return 0, ""

    def _get_node(self, command: str) -> tuple[int, str]:
        if not self.world.bound:
            return 1, "nodes is forbidden"
        if self._serves():
            self.world.nodes[self.name] = (self.address, self.config["kubernetesVersion"])
        return 0, ""

    def _get_masters(self, command: str) -> tuple[int, str]:
        if not self._answered():
            return 1, "connection refused"
        items = [
            {
                "metadata": {"name": name, "creationTimestamp": f"2026-09-01T12:{minute:02}:00Z"},
                "status": {
                    "nodeInfo": {"kubeletVersion": version},
                    "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
                },
            }
            for minute, (name, (address, version)) in enumerate(self.world.nodes.items())
        ]
        return 0, json.dumps({"items": items})

    def _get_configuration(self, command: str) -> tuple[int, str]:
        if not self._answered():
            return 1, "connection refused"
        if not self.world.version:
            return 0, ""
        text = f"apiServer: {{}}\nkubernetesVersion: {self.world.version}\n"
        return 0, json.dumps({"data": {"ClusterConfiguration": text}})

    def _delete_node(self, command: str) -> tuple[int, str]:
        self.world.nodes.pop(re.findall(r"delete node (\S+)", command)[0], None)
        return 0, ""

    def _delete_binding(self, command: str) -> tuple[int, str]:
        assert "kubeadm:node-autoapprove-bootstrap" in command
        self.world.approves = False
        return 0, ""

    def _describe(self, InstanceIds: list[str]) -> dict[str, Any]:  # noqa: N803
        state = self.world.ended.get(InstanceIds[0], "running")
        return {"Reservations": [{"Instances": [{"State": {"Name": state}}]}]}

    def _expiration(self) -> str:
        entry = {"name": "apiserver", "expirationDate": self.expires, "missing": False}
        return json.dumps({"certificates": [entry, {"name": "front-proxy-client", "missing": True}]})

    def _renew(self, command: str) -> tuple[int, str]:
        self.expires = self.time(365 * 24 * 3600)
        return 0, ""

    def _endpoints(self, command: str) -> list[str]:
        assert PKI + "etcd/healthcheck-client.crt" in self.files
        urls = re.findall(r"--endpoints=(\S+)", command)[0].split(",")
        found = [url.removeprefix("https://").removesuffix(":2379") for url in urls]
        return [self.address if each == "127.0.0.1" else each for each in found]

    def _health(self, command: str) -> tuple[int, str]:
        found = {each: self.world.etcd.healthy(each) for each in self._endpoints(command)}
        local = "https://127.0.0.1:2379" in command
        answers = [
            {"endpoint": f"https://{'127.0.0.1' if local else each}:2379", "health": up} for each, up in found.items()
        ]
        return (0 if all(found.values()) else 1), json.dumps(answers)

    def _members(self, command: str) -> tuple[int, str]:
        words = command.partition(" member ")[2].split()
        try:
            return 0, self.world.etcd.ask(self._endpoints(command), *words)
        except RefusedError as refused:
            return 1, str(refused)

    def _restore(self, command: str) -> tuple[int, str]:
        options = dict(re.findall(r"--([\w-]+)=(\S+)", command))
        assert self.address not in self.world.etcd.running, "its data would be taken away from below it"
        urls = [each.partition("=")[2] for each in options["initial-cluster"].split(",")]
        addresses = [url.removeprefix("https://").removesuffix(":2380") for url in urls]
        data = self.world.etcd.restored(options["initial-cluster-token"], addresses, self.address)
        self.files[options["data-dir"] + "/member/snap/db"] = data
        return 0, ""

    def _move(self, command: str) -> tuple[int, str]:
        source, target = command.split()[2:]
        assert self.address not in self.world.etcd.running, "its data would be taken away from below it"
        moved = [path for path in self.files if path.startswith(source + "/")]
        if not moved:
            return 1, "No such file or directory"
        if any(path.startswith(target + "/") for path in self.files):
            return 1, "Directory not empty"
        for path in moved:
            self.files[target + path[len(source) :]] = self.files.pop(path)
        return 0, ""
