"""kubelet: gets its identity, registers its Node, keeps static pods running, says that it is alive.

Of the containers only those of static pods run, as units in systemd's kubepods.slice; they outlive the kubelet, as
containers do. A Node is Ready once it has a range of pods, as with a network plug-in that needs one.
"""

import base64
import json
import os
import subprocess
import sys
import time

import yaml

from stand_ins import calls, pki
from stand_ins.objects import Client, Failed, kubeconfig, now

CURRENT = "/var/lib/kubelet/pki/kubelet-client-current.pem"
PROGRAMS = {
    "etcd": ["/usr/lib/bootlab/bin/etcd"],
    "kube-apiserver": ["/usr/bin/python3", "-m", "stand_ins.apiserver"],
    "kube-controller-manager": ["/usr/bin/python3", "-m", "stand_ins.controllers"],
    "kube-scheduler": ["/usr/bin/sleep", "infinity"],
    "pause": ["/usr/bin/sleep", "infinity"],
}
# Flags of etcd 3.6 that 3.5 does not have.
NEWER = ("--feature-gates=", "--watch-progress-notify-interval=")
HEARTBEAT = 3.0


def flags_of(arguments):
    return dict(each[2:].partition("=")[::2] for each in arguments)


class Kubelet:
    def __init__(self, arguments):
        self.flags = flags_of(arguments)
        with open(self.flags["config"]) as file:
            self.settings = yaml.safe_load(file)
        self.name = self.flags.get("hostname-override") or os.uname().nodename
        self.running = {}
        self.client = None
        self.registered = False
        self.beat = 0.0
        self.serving = 0.0

    def identity(self):
        """Use the kubeconfig, or get one with the bootstrap token."""
        path, first = self.flags["kubeconfig"], self.flags.get("bootstrap-kubeconfig", "")
        if not os.path.exists(path):
            if not os.path.exists(first):
                calls.refuse(f"failed to run Kubelet: unable to load bootstrap kubeconfig: stat {first}: no such file")
            self.bootstrap(path, first)
        self.client = Client(path, timeout=5)

    def bootstrap(self, path, first):
        client = Client(first)
        private, request = pki.request(f"system:node:{self.name}", ("system:nodes",))
        item = self.ask(client, request, "kubernetes.io/kube-apiserver-client-kubelet", "client auth")
        name = json.loads(client.call("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", item))[
            "metadata"
        ]["name"]
        while True:
            status = client.get(f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}").get("status", {})
            if status.get("certificate"):
                break
            time.sleep(0.2)
        pki.write(CURRENT, base64.b64decode(status["certificate"]) + b"\n" + private)
        with open(first) as file:
            cluster = yaml.safe_load(file)["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"])
        user = {"client-certificate": CURRENT, "client-key": CURRENT}
        kubeconfig(path, cluster["server"], authority, "default-auth", **user)

    @staticmethod
    def ask(client, request, signer, usage):
        return {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"generateName": "csr-"},
            "spec": {"request": base64.b64encode(request).decode(), "signerName": signer,
                     "usages": ["digital signature", usage]},
        }  # fmt: skip

    def pods(self):
        """Let exactly the static pods of the folder run."""
        folder, wanted = self.settings.get("staticPodPath", ""), {}
        for name in sorted(os.listdir(folder)) if folder and os.path.isdir(folder) else ():
            if name.startswith(".") or not name.endswith(".yaml"):
                continue
            with open(os.path.join(folder, name)) as file:
                pod = yaml.safe_load(file)
            if pod:
                wanted[pod["metadata"]["name"]] = pod
        for name in known_units() - wanted.keys():
            subprocess.run(["systemctl", "stop", unit(name)], check=False)
            os.unlink(note(name))
        for name, pod in wanted.items():
            active = not subprocess.run(["systemctl", "is-active", "--quiet", unit(name)]).returncode
            before = read_text(note(name))
            if active and before == json.dumps(pod):
                continue
            if active:
                subprocess.run(["systemctl", "stop", unit(name)], check=False)
            self.run(name, pod)

    @staticmethod
    def run(name, pod):
        container = pod["spec"]["containers"][0]
        command = container.get("command", [container["name"]])
        program, arguments = PROGRAMS[command[0]], command[1:]
        if name == "etcd":
            arguments = [each for each in arguments if not each.startswith(NEWER)]
            os.makedirs(flags_of(arguments)["data-dir"], 0o700, exist_ok=True)
        calls.record("container", [name, *command])
        options = (
            "--quiet", "--collect", "--slice=kubepods.slice", f"--unit={unit(name)}", "-p", "Restart=always",
            "-p", "RestartSec=1", "-p", "StartLimitIntervalSec=0", "--setenv=PYTHONPATH=/usr/lib/bootlab",
        )  # fmt: skip
        options += (f"--setenv=BOOTLAB_VERSION={container['image'].rpartition(':')[2]}",)
        words = program if program[-1] == "infinity" else [*program, *arguments]
        subprocess.run(["systemd-run", *options, *words], check=True)
        pki.write(note(name), json.dumps(pod))

    def node(self):
        """Register once, then say every few seconds how it is."""
        path = f"/api/v1/nodes/{self.name}"
        if not self.registered:
            taints = [taint(each) for each in self.flags.get("register-with-taints", "").split(",") if each]
            taints += self.settings.get("registerWithTaints", [])
            if self.flags.get("cloud-provider") == "external":
                taints.append(
                    {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
                )
            labels = {"kubernetes.io/hostname": self.name}
            labels.update(each.split("=", 1) for each in self.flags.get("node-labels", "").split(",") if each)
            spec = {"taints": taints, "providerID": self.settings.get("providerID", "")}
            item = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": labels}, "spec": spec,
                    "status": self.status(not self.needs_range())}  # fmt: skip
            try:
                self.client.call("POST", "/api/v1/nodes", item)
            except Failed as failure:
                if failure.status != 409:
                    raise
            self.registered = True
        if time.monotonic() - self.beat < HEARTBEAT:
            return
        found = self.client.get(path)
        ranged = bool(found["spec"].get("podCIDR")) or not self.needs_range()
        status = self.status(ranged)
        self.client.call("PATCH", path + "/status", {"status": status}, "application/merge-patch+json")
        # Quick to notice that it became Ready, slow afterwards.
        self.beat = time.monotonic() if ranged else 0.0
        if self.settings.get("serverTLSBootstrap") and not self.serving:
            self.serving = time.monotonic()
            _, request = pki.request(
                f"system:node:{self.name}", ("system:nodes",), [self.name, self.flags.get("node-ip", "")]
            )
            item = self.ask(self.client, request, "kubernetes.io/kubelet-serving", "server auth")
            self.client.call("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", item)

    def status(self, ranged):
        message = "kubelet is posting ready status" if ranged else "container runtime network not ready: no pod CIDR"
        ready = {"type": "Ready", "status": str(ranged), "message": message, "lastHeartbeatTime": now()}
        address = {"type": "InternalIP", "address": self.flags.get("node-ip", "")}
        return {
            "conditions": [ready],
            # A real one finds the machine's memory and processors, too.
            "allocatable": {"pods": str(self.settings.get("maxPods", 110))},
            "addresses": [address, {"type": "Hostname", "address": self.name}],
            "nodeInfo": {"kubeletVersion": calls.VERSION},
        }

    @staticmethod
    def needs_range():
        return os.path.exists("/etc/containerd/cni.template")

    def main(self):
        while True:
            try:
                self.pods()
                if self.client is None:
                    self.identity()
                self.node()
            except (Failed, OSError) as failure:
                if isinstance(failure, Failed) and failure.status == 404:
                    # A deleted Node does not come back by itself; only a restart registers it again.
                    sys.stderr.write(f"node {self.name} not found\n")
                else:
                    sys.stderr.write(f"{failure}\n")
            time.sleep(0.3)


def taint(text):
    key, _, effect = text.rpartition(":")
    name, _, value = key.partition("=")
    return {"key": name, "effect": effect, **({"value": value} if value else {})}


def unit(name):
    return f"pod-{name}.service"


def note(name):
    return f"/run/bootlab-pods/{name}"


def known_units():
    return set(os.listdir("/run/bootlab-pods")) if os.path.isdir("/run/bootlab-pods") else set()


def read_text(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def main(arguments):
    calls.record("kubelet", arguments)
    if arguments == ["--version"]:
        print("Kubernetes " + calls.VERSION)  # noqa: T201
        return
    Kubelet(arguments).main()


if __name__ == "__main__":
    main(sys.argv[1:])
