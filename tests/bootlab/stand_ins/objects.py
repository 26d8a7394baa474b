"""Where objects are in Kubernetes' API, how they are merged and selected; and a client of the API."""

import base64
import http.client
import json
import os
import ssl
import tempfile
import time
import urllib.parse

import yaml

CLUSTER_WIDE = {
    "Namespace", "Node", "PersistentVolume", "CustomResourceDefinition", "StorageClass", "CSIDriver", "CSINode",
    "ClusterRole", "ClusterRoleBinding", "CertificateSigningRequest", "PriorityClass", "APIService", "IngressClass",
    "RuntimeClass", "VolumeAttachment", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "Installation", "ClusterIssuer",
    "VolumeSnapshotClass", "APIServer", "DeviceClass",
}  # fmt: skip
GROUPS = {
    "daemonsets": "apps/v1", "deployments": "apps/v1", "statefulsets": "apps/v1", "replicasets": "apps/v1",
    "leases": "coordination.k8s.io/v1", "certificatesigningrequests": "certificates.k8s.io/v1",
    "clusterroles": "rbac.authorization.k8s.io/v1", "clusterrolebindings": "rbac.authorization.k8s.io/v1",
    "roles": "rbac.authorization.k8s.io/v1", "rolebindings": "rbac.authorization.k8s.io/v1",
    "storageclasses": "storage.k8s.io/v1", "csinodes": "storage.k8s.io/v1",
    "customresourcedefinitions": "apiextensions.k8s.io/v1", "poddisruptionbudgets": "policy/v1",
}  # fmt: skip
SHORT = {"csr": "certificatesigningrequests", "ds": "daemonsets", "deploy": "deployments", "cm": "configmaps",
         "no": "nodes", "po": "pods", "sc": "storageclasses", "ns": "namespaces", "sa": "serviceaccounts"}  # fmt: skip
KINDS = {plural: kind for kind, plural in (
    ("Node", "nodes"), ("Namespace", "namespaces"), ("StorageClass", "storageclasses"), ("CSINode", "csinodes"),
    ("CertificateSigningRequest", "certificatesigningrequests"), ("ClusterRole", "clusterroles"),
    ("ClusterRoleBinding", "clusterrolebindings"), ("PersistentVolume", "persistentvolumes"),
    ("CustomResourceDefinition", "customresourcedefinitions"))}  # fmt: skip


def plural(word):
    """The name in paths of a kind (`Node`) or of what a person types (`node`, `csr`)."""
    word = word.lower().partition(".")[0]
    if word in SHORT:
        return SHORT[word]
    if word.endswith(("ss", "x", "ch")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word if word.endswith("s") else word + "s"


def collection(version, kind, namespace):
    """The path of all objects of a kind, of one namespace if it has any."""
    base = f"/api/{version}" if "/" not in version else f"/apis/{version}"
    where = "" if kind in CLUSTER_WIDE or not namespace else f"/namespaces/{namespace}"
    return f"{base}{where}/{plural(kind)}"


def typed(word, namespace):
    """The path of all objects of what a person types."""
    name = plural(word)
    return collection(GROUPS.get(name, "v1"), KINDS.get(name, name), namespace)


def place(item, namespace="default"):
    """The paths of an object's collection and of itself."""
    folder = collection(item["apiVersion"], item["kind"], item["metadata"].get("namespace", namespace))
    return folder, f"{folder}/{item['metadata'].get('name', '')}"


def groups_bound(bindings, role):
    """The groups to which ClusterRoleBindings give a ClusterRole."""
    return {
        subject["name"]
        for item in bindings
        if item["roleRef"]["name"] == role
        for subject in item.get("subjects", [])
        if subject["kind"] == "Group"
    }


def merged(base, patch):
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def chosen(item, labels="", fields=""):
    """Whether selectors choose an object: `=`, `!=`, `in (…)`, a mere key."""
    return all(_holds(item["metadata"].get("labels", {}), each) for each in _split(labels)) and all(
        _holds({"spec.unschedulable": "false", **_flat(item)}, each) for each in _split(fields)
    )


def _split(text):
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [each.strip() for each in [*parts, part] if each.strip()]


def _holds(values, term):
    if " in " in term:
        key, _, names = term.partition(" in ")
        return values.get(key.strip()) in [each.strip() for each in names.strip(" ()").split(",")]
    if "!=" in term:
        key, value = term.split("!=")
        return values.get(key) != value
    if "=" in term:
        key, value = term.replace("==", "=").split("=", 1)
        return values.get(key, "") == value
    return term not in values if term.startswith("!") else term in values


def _flat(item, prefix=""):
    found = {}
    for key, value in item.items():
        found.update(_flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: _plain(value)})
    return found


def _plain(value):
    """What a field selector compares: booleans in small letters."""
    return str(value).lower() if isinstance(value, bool) else value


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Failed(Exception):
    """The API refused, or cannot be reached (status 0)."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Client:
    """The API as a kubeconfig file says; tries each address of a name in turn, as Go's client does."""

    def __init__(self, path, server="", timeout=15):
        if not os.path.exists(path):
            raise Failed(0, f"stat {path}: no such file or directory")
        with open(path) as file:
            config = yaml.safe_load(file)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.url = urllib.parse.urlsplit(server or cluster["server"])
        self.timeout, self.token = timeout, user.get("token", "")
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode()
        )
        if "client-certificate" in user:
            self.context.load_cert_chain(user["client-certificate"], user["client-key"])
        elif "client-certificate-data" in user:
            both = base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"])
            with tempfile.NamedTemporaryFile() as file:
                file.write(both)
                file.flush()
                self.context.load_cert_chain(file.name)

    def call(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPSConnection(
            self.url.hostname, self.url.port or 443, timeout=self.timeout, context=self.context
        )
        headers = {"Content-Type": kind, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            status, text = answer.status, answer.read().decode()
        except (TimeoutError, OSError, http.client.HTTPException) as error:
            raise Failed(0, f"The connection to the server {self.url.netloc} was refused or lost: {error}") from error
        finally:
            connection.close()
        if status >= 400:
            try:
                message = json.loads(text)["message"]
            except (ValueError, KeyError):
                message = text
            raise Failed(status, f"Error from server ({status}): {message}")
        return text

    def get(self, path):
        return json.loads(self.call("GET", path))

    def put(self, item):
        """Create an object, or merge it into the one that is there."""
        try:
            return json.loads(self.call("POST", place(item)[0], item))
        except Failed as failure:
            if failure.status != 409:
                raise
        return json.loads(self.call("PATCH", place(item)[1], item, "application/merge-patch+json"))


def kubeconfig(path, server, authority, name, certificate=b"", private=b"", token="", **user):
    """Write a kubeconfig file; `authority` is PEM, as are the certificate and its key."""
    from stand_ins import pki

    def data(text):
        return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()

    if certificate:
        user.update({"client-certificate-data": data(certificate), "client-key-data": data(private)})
    if token:
        user["token"] = token
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "kubernetes", "cluster": {"server": server, "certificate-authority-data": data(authority)}}
        ],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "default", "context": {"cluster": "kubernetes", "user": name}}],
        "current-context": "default",
    }
    pki.write(path, yaml.safe_dump(content))
