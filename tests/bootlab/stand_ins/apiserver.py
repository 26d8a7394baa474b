"""kube-apiserver: objects over TLS, kept in etcd (the real one, by its JSON gateway).

Certificates of the cluster's authority and bootstrap tokens are known; rights are few and coarse: those of
administrators, of nodes, of who has a token, of everybody else. No watch, no schemas, no admission.
"""

import base64
import http.client
import http.server
import json
import os
import socketserver
import ssl
import sys
import threading
import urllib.parse
import uuid

from stand_ins import calls, pki
from stand_ins.objects import chosen, groups_bound, merged, now

HEALTH = ("/readyz", "/livez", "/healthz")
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/"
BINDING = BINDINGS + "kubeadm:cluster-admins"
NODES_KINDS = {"nodes", "pods", "leases", "csinodes", "certificatesigningrequests", "namespaces"}


class Store:
    """Objects by path, in etcd."""

    def __init__(self, flags):
        self.servers = [urllib.parse.urlsplit(each) for each in flags["etcd-servers"].split(",")]
        self.context = ssl.create_default_context(cafile=flags["etcd-cafile"])
        self.context.load_cert_chain(flags["etcd-certfile"], flags["etcd-keyfile"])
        self.local = threading.local()

    def call(self, what, body):
        for attempt in (0, 1):
            if not getattr(self.local, "connection", None):
                server = self.servers[0]
                self.local.connection = http.client.HTTPSConnection(
                    server.hostname, server.port, timeout=5, context=self.context
                )
            try:
                self.local.connection.request("POST", f"/v3/kv/{what}", json.dumps(body))
                answer = self.local.connection.getresponse()
                text = answer.read()
                if answer.status != 200:
                    raise OSError(f"etcd: {text.decode()}")
                return json.loads(text)
            except (OSError, http.client.HTTPException):
                self.local.connection.close()
                self.local.connection = None
                if attempt:
                    raise
        raise OSError("etcd does not answer")

    @staticmethod
    def code(text):
        return base64.b64encode(text.encode()).decode()

    def range(self, prefix):
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        answer = self.call("range", {"key": self.code(prefix), "range_end": self.code(end)})
        return {base64.b64decode(each["key"]).decode(): self.item(each) for each in answer.get("kvs", [])}

    def item(self, pair):
        found = json.loads(base64.b64decode(pair["value"]))
        found["metadata"]["resourceVersion"] = pair["mod_revision"]
        return found

    def get(self, path):
        pairs = self.call("range", {"key": self.code("/registry" + path)}).get("kvs", [])
        return self.item(pairs[0]) if pairs else None

    def put(self, path, item, version):
        """Write an object that is as it was read (version 0: not there); return whether it was."""
        key = self.code("/registry" + path)
        target = {"key": key, "target": "MOD", "result": "EQUAL", "modRevision": str(version)}
        body = {"compare": [target], "success": [{"requestPut": {"key": key, "value": self.code(json.dumps(item))}}]}
        answer = self.call("txn", body)
        item["metadata"]["resourceVersion"] = answer["header"]["revision"]
        return answer.get("succeeded", False)

    def delete(self, path):
        self.call("deleterange", {"key": self.code("/registry" + path)})


class Refused(Exception):
    def __init__(self, status, reason, message):
        super().__init__(message)
        self.status, self.reason = status, reason


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = flags = None

    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            status, result = self.respond(url.path.rstrip("/"), query, body)
        except Refused as refusal:
            status = refusal.status
            result = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status,
                      "reason": refusal.reason, "message": str(refusal)}  # fmt: skip
        except (OSError, http.client.HTTPException) as error:
            status, result = 500, {"kind": "Status", "message": f"etcdserver: {error}"}
        text = (result if isinstance(result, str) else json.dumps(result)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(result, str) else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *args):
        sys.stderr.write(f"{self.command} {self.path.partition('?')[0]} {args[2] if len(args) > 2 else ''}\n")

    def who(self):
        """The caller's name and groups."""
        certificate = self.connection.getpeercert()
        if certificate:
            pairs = [pair for part in certificate["subject"] for pair in part]
            name = next(value for key, value in pairs if key == "commonName")
            return name, {value for key, value in pairs if key == "organizationName"}
        token = self.headers.get("Authorization", "").partition("Bearer ")[2]
        if not token:
            return "system:anonymous", {"system:unauthenticated"}
        identity, _, secret = token.partition(".")
        found = self.store.get(f"/api/v1/namespaces/kube-system/secrets/bootstrap-token-{identity}")
        data = {key: base64.b64decode(value).decode() for key, value in (found or {}).get("data", {}).items()}
        if data.get("token-secret") != secret or data.get("expiration", "9") <= now():
            raise Refused(401, "Unauthorized", "Unauthorized")
        groups = set(filter(None, data.get("auth-extra-groups", "").split(",")))
        return f"system:bootstrap:{identity}", {"system:bootstrappers", *groups}

    def authorize(self, path):
        name, groups = self.who()
        if "system:masters" in groups or name in ("system:kube-controller-manager", "system:kube-scheduler"):
            return name, groups
        if "kubeadm:cluster-admins" in groups and self.store.get(BINDING):
            return name, groups
        parts = path.split("/")
        allowed = [*HEALTH, "/version", "/api/v1/namespaces/kube-public/configmaps/cluster-info"]
        kinds = set(NODES_KINDS) if "system:nodes" in groups else set()
        if "system:bootstrappers" in groups:
            bindings = self.store.range("/registry" + BINDINGS).values()
            if groups & groups_bound(bindings, "system:node-bootstrapper"):
                kinds |= {"certificatesigningrequests", "nodes"}
        if kinds:
            allowed += [
                "/api/v1/namespaces/kube-system/configmaps/" + each
                for each in ("kubeadm-config", "kubelet-config", "kube-proxy")
            ]
        if path in allowed or (any(part in kinds for part in parts) and "secrets" not in parts):
            return name, groups
        raise Refused(403, "Forbidden", f'User "{name}" cannot {self.command.lower()} {path}')

    def respond(self, path, query, body):
        if path.startswith(HEALTH):
            self.store.get("/api/v1/namespaces/default")
            return 200, "ok"
        name, groups = self.authorize(path)
        if path == "/version":
            return 200, {"gitVersion": calls.VERSION, "major": "1", "minor": calls.VERSION.split(".")[1]}
        if path == "/openid/v1/jwks":
            return 200, pki.key_set(self.flags["service-account-key-file"])
        item = json.loads(body) if body else {}
        if self.command == "GET":
            return self.read(path, query)
        if self.command == "POST":
            return self.create(path, item, name, groups)
        if self.command == "DELETE":
            if not self.store.get(path):
                raise Refused(404, "NotFound", f"{path} not found")
            self.store.delete(path)
            return 200, {"kind": "Status", "status": "Success"}
        return self.change(path, item, self.headers.get("Content-Type", ""))

    def read(self, path, query):
        found = self.store.get(path)
        if found:
            return 200, found
        parts = path.strip("/").split("/")
        everything = self.store.range("/registry/" + "/".join(parts[:2] if parts[0] == "api" else parts[:3]) + "/")
        base = 2 if parts[0] == "api" else 3
        if len(parts) not in (base + 1, base + 3) or (len(parts) == base + 3 and parts[base] != "namespaces"):
            raise Refused(404, "NotFound", f'{path.rpartition("/")[0].rpartition("/")[2]} "{parts[-1]}" not found')
        items = []
        for key, item in everything.items():
            own = key.split("/")[2:]
            same = own[: len(parts)] == parts and len(own) == len(parts) + 1
            spread = len(parts) == base + 1 and own[base] == "namespaces" and own[base + 2 : base + 3] == parts[base:]
            if same or (spread and len(own) == base + 4):
                items.append(item)
        items = [each for each in items if chosen(each, query.get("labelSelector", ""), query.get("fieldSelector", ""))]
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}

    def create(self, path, item, name, groups):
        if path.endswith("/eviction"):
            pod = path.rpartition("/")[0]
            if not self.store.get(pod):
                raise Refused(404, "NotFound", "no such pod")
            self.store.delete(pod)
            return 201, {"kind": "Status", "status": "Success"}
        if "generateName" in item["metadata"]:
            item["metadata"]["name"] = item["metadata"].pop("generateName") + uuid.uuid4().hex[:5]
        for key, value in item.pop("stringData", {}).items():
            item.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()
        item["metadata"].update(uid=str(uuid.uuid4()), creationTimestamp=now())
        if item.get("kind") == "CertificateSigningRequest":
            item["spec"].update(username=name, groups=sorted(groups))
        if not self.store.put(f"{path}/{item['metadata']['name']}", item, 0):
            raise Refused(
                409, "AlreadyExists", f'{path.rpartition("/")[2]} "{item["metadata"]["name"]}" already exists'
            )
        return 201, item

    def change(self, path, item, kind):
        base, _, sub = path.rpartition("/")
        target = base if sub in ("status", "approval") else path
        for _ in range(20):
            before = self.store.get(target)
            if before is None:
                if "apply" in kind:
                    return self.create(target.rpartition("/")[0], item, "", set())
                raise Refused(404, "NotFound", f"{target} not found")
            version = before["metadata"]["resourceVersion"]
            asked = item.get("metadata", {}).get("resourceVersion", version)
            if asked != version:
                raise Refused(
                    409, "Conflict", "the object has been modified; please apply your changes to the latest version"
                )
            if target != path:
                after = {**before, "status": merged(before.get("status", {}), item.get("status", {}))}
            elif self.command == "PUT":
                after = {**item, "metadata": {**before["metadata"], **item["metadata"]}}
            else:
                after = merged(before, item)
            provider = before.get("spec", {}).get("providerID")
            if provider and after.get("spec", {}).get("providerID") != provider:
                raise Refused(403, "Forbidden", 'node updates may not change providerID except from "" to valid')
            if self.store.put(target, after, version):
                return 200, after
        raise Refused(409, "Conflict", "the object keeps changing")


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128
    context = None

    def get_request(self):
        connection, address = self.socket.accept()
        connection.settimeout(60)
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request, client_address):
        sys.stderr.write(f"{client_address}: {sys.exc_info()[1]}\n")


def main(arguments):
    flags = dict(each[2:].partition("=")[::2] for each in arguments)
    Handler.flags, Handler.store = flags, Store(flags)
    for named in ("service-account-key-file", "encryption-provider-config", "audit-policy-file"):
        if named in flags and not os.path.exists(flags[named]):
            sys.exit(f"error: open {flags[named]}: no such file or directory")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(flags["tls-cert-file"], flags["tls-private-key-file"])
    context.load_verify_locations(flags["client-ca-file"])
    context.verify_mode = ssl.CERT_OPTIONAL
    Server.context = context
    Handler.store.get("/")  # etcd must answer, or the kubelet tries again
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "creationTimestamp": now()}}
        Handler.store.put(f"/api/v1/namespaces/{name}", made, 0)
    Server(("0.0.0.0", int(flags["secure-port"])), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
