"""kubeadm: the phases of `init`, and `join` of a node, with the files that the real one writes.

After kubeadm's reference ("kubeadm init phase", "Implementation details"). Existing certificates and kubeconfig files
are kept, patches of `patches.directory` are merged, `admin.conf` may do nothing before its group is bound to a role.
"""

import base64
import hashlib
import http.client
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.parse

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from stand_ins import calls, pki
from stand_ins.objects import Client, Failed, kubeconfig, merged

ROOT = "/etc/kubernetes/"
PKI = ROOT + "pki/"
MANIFESTS = ROOT + "manifests/"
KUBELET = "/var/lib/kubelet/"
# By phase: file, authority, common name (empty: the node's), groups, usages.
LEAVES = {
    "apiserver": ("apiserver", "ca", "kube-apiserver", (), (pki.SERVER,)),
    "apiserver-kubelet-client": (
        "apiserver-kubelet-client", "ca", "kube-apiserver-kubelet-client", ("kubeadm:cluster-admins",), (pki.CLIENT,)
    ),
    "front-proxy-client": ("front-proxy-client", "front-proxy-ca", "front-proxy-client", (), (pki.CLIENT,)),
    "etcd-server": ("etcd/server", "etcd/ca", "", (), (pki.SERVER, pki.CLIENT)),
    "etcd-peer": ("etcd/peer", "etcd/ca", "", (), (pki.SERVER, pki.CLIENT)),
    "etcd-healthcheck-client": (
        "etcd/healthcheck-client", "etcd/ca", "kube-etcd-healthcheck-client", (), (pki.CLIENT,)
    ),
    "apiserver-etcd-client": ("apiserver-etcd-client", "etcd/ca", "kube-apiserver-etcd-client", (), (pki.CLIENT,)),
}  # fmt: skip
AUTHORITIES = {
    "ca": ("ca", "kubernetes"),
    "front-proxy-ca": ("front-proxy-ca", "front-proxy-ca"),
    "etcd-ca": ("etcd/ca", "etcd-ca"),
}
IDENTITIES = {
    "admin": ("kubernetes-admin", ("kubeadm:cluster-admins",)),
    "super-admin": ("kubernetes-super-admin", ("system:masters",)),
    "controller-manager": ("system:kube-controller-manager", ()),
    "scheduler": ("system:kube-scheduler", ()),
}


class Configuration:
    """The documents of a configuration file, by kind."""

    def __init__(self, path):
        with open(path) as file:
            self.documents = {each["kind"]: each for each in yaml.safe_load_all(file) if each}
        self.init = self.documents.get("InitConfiguration", {})
        self.cluster = self.documents.get("ClusterConfiguration", {})
        self.join = self.documents.get("JoinConfiguration", {})
        self.registration = (self.init or self.join).get("nodeRegistration", {})
        self.name = self.registration.get("name") or os.uname().nodename
        local = self.init.get("localAPIEndpoint", {})
        self.address, self.port = local.get("advertiseAddress", ""), local.get("bindPort", 6443)
        self.days = max(
            1, int(self.cluster.get("certificateValidityPeriod", "8760h").rstrip("0ms").rstrip("h") or 8760) // 24
        )

    @property
    def endpoint(self):
        host, _, port = self.cluster.get("controlPlaneEndpoint", "").partition(":")
        return f"https://{host or self.address}:{port or self.port}"

    @property
    def local(self):
        return f"https://{self.address}:{self.port}"

    def patched(self, target, content):
        folder = (self.init or self.join).get("patches", {}).get("directory", "")
        for name in sorted(os.listdir(folder)) if folder and os.path.isdir(folder) else ():
            if name.partition("+")[0].partition(".")[0] == target:
                with open(os.path.join(folder, name)) as file:
                    content = merged(content, yaml.safe_load(file))
        return content


def certs(config, name):
    os.makedirs(PKI + "etcd", exist_ok=True)
    for phase, (path, title) in AUTHORITIES.items():
        if name in ("all", phase):
            pki.authority(PKI + path, title)
    if name in ("all", "sa") and not os.path.exists(PKI + "sa.key"):
        private = pki.key()
        pki.write(PKI + "sa.key", pki.pem(private))
        pki.write(PKI + "sa.pub", pki.public_pem(private))
    for phase, (path, by, title, groups, usages) in LEAVES.items():
        if name in ("all", phase):
            names = names_of(config, phase) if pki.SERVER in usages else ()
            authority = pki.load(PKI + by)
            pki.leaf(PKI + path, authority, title or config.name, usages, groups, names, config.days)


def names_of(config, phase):
    if phase == "apiserver":
        domain = config.cluster.get("networking", {}).get("dnsDomain", "cluster.local")
        service = config.cluster.get("networking", {}).get("serviceSubnet", "10.96.0.0/12").split("/")[0]
        first = service.rpartition(".")[0] + ".1"
        host = urllib.parse.urlsplit(config.endpoint).hostname
        extra = config.cluster.get("apiServer", {}).get("certSANs", [])
        services = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{domain}")
        return [config.name, *services, first, config.address, host, *extra]
    local = config.cluster.get("etcd", {}).get("local", {})
    extra = local.get("serverCertSANs" if phase == "etcd-server" else "peerCertSANs", [])
    return [config.name, "localhost", "127.0.0.1", "::1", config.address, *extra]


def kubeconfigs(config, name):
    with open(PKI + "ca.crt") as file:
        authority = file.read()
    known = {**IDENTITIES, "kubelet": (f"system:node:{config.name}", ("system:nodes",))}
    for phase, (user, groups) in known.items():
        path = f"{ROOT}{phase}.conf"
        if name not in ("all", phase) or os.path.exists(path):
            continue
        private = pki.key()
        certificate = pki.signed(pki.load(PKI + "ca"), pki.subject(user, groups), private.public_key(), (pki.CLIENT,))
        server = config.endpoint if "admin" in phase else config.local
        kubeconfig(path, server, authority, user, certificate, pki.pem(private))


def manifest(config, name, program, flags, section):
    """Write a static pod; arguments of the configuration replace flags of the same name, and keep their order."""
    extra = [(each["name"], each["value"]) for each in section.get("extraArgs", [])]
    own = [pair for pair in sorted(flags.items()) if pair[0] not in dict(extra)]
    volumes, version = section.get("extraVolumes", []), config.cluster.get("kubernetesVersion", calls.VERSION)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system", "labels": {"component": name, "tier": "control-plane"}},
        "spec": {
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "containers": [{"name": name, "image": f"registry.k8s.io/{name}:{version}",
                            "command": [program, *(f"--{key}={value}" for key, value in [*own, *extra])]}],
            "volumes": [{"name": each["name"], "hostPath": {"path": each["hostPath"]}} for each in volumes],
        },
    }  # fmt: skip
    pki.write(f"{MANIFESTS}{name}.yaml", yaml.safe_dump(config.patched(name, pod)))


def etcd(config, name):
    if name != "local":
        calls.refuse(f"unknown phase etcd {name}")
    local, own = config.cluster.get("etcd", {}).get("local", {}), f"https://{config.address}"
    folder = PKI + "etcd/"
    flags = {
        "advertise-client-urls": f"{own}:2379", "cert-file": folder + "server.crt", "client-cert-auth": "true",
        "data-dir": local.get("dataDir", "/var/lib/etcd"), "initial-advertise-peer-urls": f"{own}:2380",
        "initial-cluster": f"{config.name}={own}:2380", "key-file": folder + "server.key",
        "listen-client-urls": f"https://127.0.0.1:2379,{own}:2379", "listen-metrics-urls": "http://127.0.0.1:2381",
        "listen-peer-urls": f"{own}:2380", "name": config.name, "peer-cert-file": folder + "peer.crt",
        "peer-client-cert-auth": "true", "peer-key-file": folder + "peer.key",
        "peer-trusted-ca-file": folder + "ca.crt",
        "snapshot-count": "10000", "trusted-ca-file": folder + "ca.crt", "feature-gates": "InitialCorruptCheck=true",
        "watch-progress-notify-interval": "5s",
    }  # fmt: skip
    manifest(config, "etcd", "etcd", flags, local)


def control_plane(config, name):
    servers = {
        "apiserver": ("kube-apiserver", "apiServer", {
            "advertise-address": config.address, "client-ca-file": PKI + "ca.crt", "secure-port": str(config.port),
            "etcd-cafile": PKI + "etcd/ca.crt", "etcd-certfile": PKI + "apiserver-etcd-client.crt",
            "etcd-keyfile": PKI + "apiserver-etcd-client.key", "etcd-servers": "https://127.0.0.1:2379",
            "service-account-key-file": PKI + "sa.pub", "service-account-signing-key-file": PKI + "sa.key",
            "tls-cert-file": PKI + "apiserver.crt", "tls-private-key-file": PKI + "apiserver.key",
        }),
        "controller-manager": ("kube-controller-manager", "controllerManager", {
            "kubeconfig": ROOT + "controller-manager.conf", "cluster-signing-cert-file": PKI + "ca.crt",
            "cluster-signing-key-file": PKI + "ca.key", "root-ca-file": PKI + "ca.crt",
            "service-account-private-key-file": PKI + "sa.key",
        }),
        "scheduler": ("kube-scheduler", "scheduler", {"kubeconfig": ROOT + "scheduler.conf"}),
    }  # fmt: skip
    for phase, (program, section, flags) in servers.items():
        if name in ("all", phase):
            manifest(config, program, program, flags, config.cluster.get(section, {}))


def kubelet_files(config, settings):
    pki.write(KUBELET + "config.yaml", yaml.safe_dump(config.patched("kubeletconfiguration", settings)))
    flags = {each["name"]: each["value"] for each in config.registration.get("kubeletExtraArgs", [])}
    if config.name != os.uname().nodename:
        flags.setdefault("hostname-override", config.name)
    if taints := config.registration.get("taints"):
        text = ",".join(f"{each['key']}={each.get('value', '')}:{each['effect']}" for each in taints)
        flags["register-with-taints"] = text
    words = " ".join(f"--{key}={value}" for key, value in sorted(flags.items()))
    pki.write(KUBELET + "kubeadm-flags.env", f'KUBELET_KUBEADM_ARGS="{words}"\n')


def restart_kubelet():
    subprocess.run(["systemctl", "daemon-reload"], check=True)
    subprocess.run(["systemctl", "restart", "kubelet"], check=True)


def kubelet_start(config, name):
    base = {"staticPodPath": MANIFESTS.rstrip("/"), **config.documents.get("KubeletConfiguration", {})}
    subprocess.run(["systemctl", "stop", "kubelet"], check=True)
    kubelet_files(config, base)
    restart_kubelet()


def administrator():
    """A client as admin.conf says, its group bound to the role of administrators (kubernetes/kubernetes#121305)."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "kubeadm:cluster-admins"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    }
    Client(ROOT + "super-admin.conf").put(binding)
    return Client(ROOT + "admin.conf")


def config_map(name, **data):
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def upload_config(config, name):
    client = administrator()
    if name in ("all", "kubeadm"):
        client.put(config_map("kubeadm-config", ClusterConfiguration=yaml.safe_dump(config.cluster)))
    if name in ("all", "kubelet"):
        settings = {"staticPodPath": MANIFESTS.rstrip("/"), **config.documents.get("KubeletConfiguration", {})}
        client.put(config_map("kubelet-config", kubelet=yaml.safe_dump(settings)))


def mark_control_plane(config, name):
    client, path = administrator(), f"/api/v1/nodes/{config.name}"
    node = client.get(path)
    wanted = config.registration.get("taints", [])
    taints = [each for each in node["spec"].get("taints", []) if each["key"] not in [one["key"] for one in wanted]]
    labels = {
        "node-role.kubernetes.io/control-plane": "",
        "node.kubernetes.io/exclude-from-external-load-balancers": "",
    }
    patch = {"metadata": {"labels": labels}, "spec": {"taints": [*taints, *wanted]}}
    client.call("PATCH", path, patch, "application/merge-patch+json")


# What kubeadm lets the group of its own tokens do, by the name of the binding.
TOKEN_ROLES = {
    "kubelet-bootstrap": "system:node-bootstrapper",
    "node-autoapprove-bootstrap": "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
}


def bootstrap_token(config, name):
    with open(PKI + "ca.crt", "rb") as file:
        authority = base64.b64encode(file.read()).decode()
    cluster = {"server": config.endpoint, "certificate-authority-data": authority}
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "clusters": [{"name": "", "cluster": cluster}]})
    item = config_map("cluster-info", kubeconfig=text)
    item["metadata"]["namespace"] = "kube-public"
    client, kind = administrator(), "rbac.authorization.k8s.io"
    client.put(item)
    for title, role in TOKEN_ROLES.items():
        binding = {
            "apiVersion": f"{kind}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"kubeadm:{title}"},
            "roleRef": {"apiGroup": kind, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "Group", "name": "system:bootstrappers:kubeadm:default-node-token"}],
        }
        client.put(binding)


def kubelet_finalize(config, name):
    current = KUBELET + "pki/kubelet-client-current.pem"
    with open(ROOT + "kubelet.conf") as file:
        found = yaml.safe_load(file)
    user = found["users"][0]["user"]
    if "client-certificate-data" in user:
        both = base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"])
        pki.write(current, both)
        found["users"][0]["user"] = {"client-certificate": current, "client-key": current}
        pki.write(ROOT + "kubelet.conf", yaml.safe_dump(found))


def addon(config, name):
    client = administrator()
    for kind, title in (("Deployment", "coredns"), ("DaemonSet", "kube-proxy")):
        if name in ("all", title):
            metadata = {"name": title, "namespace": "kube-system"}
            client.put({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"replicas": 2}})


def preflight(config, name):
    problems = [
        f"[ERROR FileExisting-{each}]: {each} not found" for each in ("ip", "iptables", "mount") if not found(each)
    ]
    if os.path.isdir(MANIFESTS) and os.listdir(MANIFESTS):
        problems.append("[ERROR FileAvailable]: manifests already exist")
    if subprocess.run(["systemctl", "is-active", "--quiet", "containerd"]).returncode:
        problems.append("[ERROR CRI]: container runtime is not running")
    if problems:
        calls.refuse("error execution phase preflight: " + "\n".join(problems))


def found(program):
    return any(os.access(os.path.join(folder, program), os.X_OK) for folder in os.environ["PATH"].split(":"))


def join(config):
    discovery = config.join["discovery"]["bootstrapToken"]
    if "controlPlane" in config.join:
        calls.refuse("the stand-in joins nodes only")
    if os.path.exists(ROOT + "kubelet.conf"):
        calls.refuse("[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: /etc/kubernetes/kubelet.conf already exists")
    authority = discovered(discovery)
    server = f"https://{discovery['apiServerEndpoint']}"
    pki.write(PKI + "ca.crt", authority, 0o644)
    kubeconfig(ROOT + "bootstrap-kubelet.conf", server, authority, "tls-bootstrap", token=discovery["token"])
    client = Client(ROOT + "bootstrap-kubelet.conf")
    try:
        client.get("/api/v1/namespaces/kube-system/configmaps/kubeadm-config")
        settings = client.get("/api/v1/namespaces/kube-system/configmaps/kubelet-config")["data"]["kubelet"]
    except Failed as failure:
        os.unlink(ROOT + "bootstrap-kubelet.conf")
        calls.refuse(f"error execution phase preflight: unable to fetch the kubeadm-config ConfigMap: {failure}")
    kubelet_files(config, yaml.safe_load(settings))
    restart_kubelet()
    end = time.monotonic() + 240
    while not os.path.exists(ROOT + "kubelet.conf"):
        if time.monotonic() > end:
            calls.refuse("error execution phase kubelet-start: timed out waiting for the kubelet's TLS bootstrap")
        time.sleep(0.1)
    os.unlink(ROOT + "bootstrap-kubelet.conf")


def discovered(discovery):
    """The authority of the cluster, from what everybody may read, if its key is the one that is expected."""
    host, _, port = discovery["apiServerEndpoint"].rpartition(":")
    connection = http.client.HTTPSConnection(host, int(port), timeout=10, context=ssl._create_unverified_context())
    try:
        connection.request("GET", "/api/v1/namespaces/kube-public/configmaps/cluster-info")
        answer = connection.getresponse()
        text = answer.read()
    except OSError as error:
        calls.refuse(f"error execution phase preflight: couldn't validate the identity of the API Server: {error}")
    if answer.status != 200:
        calls.refuse(f"error execution phase preflight: cluster-info: {answer.status} {text.decode()}")
    cluster = yaml.safe_load(json.loads(text)["data"]["kubeconfig"])["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"])
    public = x509.load_pem_x509_certificate(authority).public_key()
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if "sha256:" + hashlib.sha256(der).hexdigest() not in discovery["caCertHashes"]:
        calls.refuse("error execution phase preflight: cluster CA found in cluster-info ConfigMap is invalid")
    return authority


def expiration():
    """What `certs check-expiration -o json` says (output.kubeadm.k8s.io)."""
    entries = []
    for name, (path, by, *_) in LEAVES.items():
        entry = {"name": name, "caName": by.replace("/", "-"), "externallyManaged": False}
        if not os.path.exists(f"{PKI}{path}.crt"):
            entries.append({**entry, "missing": True})
            continue
        with open(f"{PKI}{path}.crt", "rb") as file:
            ends = x509.load_pem_x509_certificate(file.read()).not_valid_after
        entries.append({**entry, "expirationDate": ends.strftime("%Y-%m-%dT%H:%M:%SZ")})
    kind = {"apiVersion": "output.kubeadm.k8s.io/v1alpha3", "kind": "CertificateExpirationInfo"}
    return json.dumps({**kind, "certificates": entries, "certificateAuthorities": []})


def renew(config):
    for path, *_ in LEAVES.values():
        if os.path.exists(f"{PKI}{path}.crt"):
            os.unlink(f"{PKI}{path}.crt")
    for name in IDENTITIES:
        if os.path.exists(f"{ROOT}{name}.conf"):
            os.unlink(f"{ROOT}{name}.conf")
            kubeconfigs(config, name)
    certs(config, "all")


PHASES = {
    "preflight": preflight, "certs": certs, "kubeconfig": kubeconfigs, "etcd": etcd, "control-plane": control_plane,
    "kubelet-start": kubelet_start, "upload-config": upload_config, "mark-control-plane": mark_control_plane,
    "bootstrap-token": bootstrap_token, "kubelet-finalize": kubelet_finalize, "addon": addon,
    "wait-control-plane": lambda config, name: None,
}  # fmt: skip


def main(arguments):
    calls.record("kubeadm", arguments)
    words, options = [], {}
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("-"):
            words.append(word)
        elif "=" in word:
            options.update([word[2:].split("=", 1)])
        else:
            options[word.lstrip("-")] = waiting.pop(0) if word in ("--config", "--output", "-o") else ""
    if words == ["version"]:
        print(calls.VERSION)  # noqa: T201
        return
    if words[:2] == ["init", "phase"] and words[2:3] and words[2] in PHASES:
        try:
            PHASES[words[2]](Configuration(options["config"]), (words[3:] or ["all"])[0])
        except Failed as failure:
            calls.refuse(f"error execution phase {words[2]}: {failure}")
    elif words == ["certs", "check-expiration"]:
        print(expiration())  # noqa: T201
    elif words == ["certs", "renew", "all"]:
        renew(Configuration(options["config"]))
    elif words == ["join"]:
        join(Configuration(options["config"]))
    else:
        calls.refuse(f"the stand-in does not know `kubeadm {' '.join(words)}`")


if __name__ == "__main__":
    main(sys.argv[1:])
