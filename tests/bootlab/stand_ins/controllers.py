"""kube-controller-manager and, where its DaemonSet is applied, the cloud controller manager of AWS.

Gives nodes their ranges of pods, signs certificates, notices silent nodes, calls workloads ready; takes the taint off
new nodes and forgets nodes whose instance is gone, both as EC2 says, with the rights of the master's own role.
"""

import base64
import calendar
import ipaddress
import sys
import time
import urllib.request

from cryptography import x509

from stand_ins import pki
from stand_ins.objects import Client, Failed, groups_bound, now

MERGE = "application/merge-patch+json"
TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
SILENCE = 40
SIGNERS = {"kubernetes.io/kube-apiserver-client-kubelet": pki.CLIENT, "kubernetes.io/kubelet-serving": pki.SERVER}
WORKLOADS = ("daemonsets", "deployments", "statefulsets")


class Controllers:
    def __init__(self, flags):
        self.flags = flags
        self.client = Client(flags["kubeconfig"], timeout=5)
        self.ec2 = None

    def turn(self):
        nodes = self.client.get("/api/v1/nodes")["items"]
        self.ranges(nodes)
        self.silent(nodes)
        self.certificates()
        names = self.workloads(len(nodes))
        if any("cloud-controller-manager" in each for each in names):
            self.cloud(nodes)

    def ranges(self, nodes):
        if self.flags.get("allocate-node-cidrs") != "true":
            return
        taken = {each["spec"].get("podCIDR") for each in nodes}
        free = (
            str(each)
            for each in ipaddress.ip_network(self.flags["cluster-cidr"]).subnets(new_prefix=24)
            if str(each) not in taken
        )
        for node in nodes:
            if not node["spec"].get("podCIDR"):
                self.patch(f"/api/v1/nodes/{node['metadata']['name']}", {"spec": {"podCIDR": next(free)}})

    def silent(self, nodes):
        for node in nodes:
            for condition in node.get("status", {}).get("conditions", []):
                last = calendar.timegm(time.strptime(condition["lastHeartbeatTime"], "%Y-%m-%dT%H:%M:%SZ"))
                if condition["type"] == "Ready" and condition["status"] != "Unknown" and time.time() - last > SILENCE:
                    changed = {**condition, "status": "Unknown", "message": "Kubelet stopped posting node status."}
                    path = f"/api/v1/nodes/{node['metadata']['name']}/status"
                    self.patch(path, {"status": {"conditions": [changed]}})

    def certificates(self):
        bindings = self.client.get("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings")["items"]
        trusted = groups_bound(bindings, "system:certificates.k8s.io:certificatesigningrequests:nodeclient")
        for item in self.client.get("/apis/certificates.k8s.io/v1/certificatesigningrequests")["items"]:
            signer, status = item["spec"]["signerName"], item.get("status", {})
            approved = any(each["type"] == "Approved" for each in status.get("conditions", []))
            # Requests for clients are approved here for groups that have the role, those of servers never are.
            automatic = signer.endswith("client-kubelet") and bool(trusted & set(item["spec"]["groups"]))
            if signer not in SIGNERS or status.get("certificate") or not (approved or automatic):
                continue
            request = x509.load_pem_x509_csr(base64.b64decode(item["spec"]["request"]))
            authority = pki.load(self.flags["cluster-signing-cert-file"].rpartition(".")[0])
            text = pki.signed(
                authority, request.subject, request.public_key(), (SIGNERS[signer],), extensions=request.extensions
            )
            condition = {"type": "Approved", "status": "True", "reason": "AutoApproved", "lastUpdateTime": now()}
            conditions = status.get("conditions") or [condition]
            answer = {"status": {"conditions": conditions, "certificate": base64.b64encode(text).decode()}}
            path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{item['metadata']['name']}"
            self.patch(path + "/status", answer)

    def workloads(self, nodes):
        names = []
        for kind in WORKLOADS:
            for item in self.client.get(f"/apis/apps/v1/{kind}")["items"]:
                names.append(item["metadata"]["name"])
                count = nodes if kind == "daemonsets" else item.get("spec", {}).get("replicas", 1)
                status = {"desiredNumberScheduled": count, "numberReady": count, "numberAvailable": count,
                          "replicas": count, "readyReplicas": count, "availableReplicas": count}  # fmt: skip
                if item.get("status", {}).get("replicas") != count:
                    path = f"/apis/apps/v1/namespaces/{item['metadata'].get('namespace', 'default')}/{kind}/{names[-1]}"
                    self.patch(path + "/status", {"status": status})
        return names

    def cloud(self, nodes):
        known = {node["spec"].get("providerID", "").rpartition("/")[2]: node for node in nodes}
        pending = {key: node for key, node in known.items() if key and self.of_interest(node)}
        if not pending:
            return
        found = {
            each["InstanceId"]: each for each in self.instances(list(pending)) if each["State"]["Name"] == "running"
        }
        for identity, node in pending.items():
            path = f"/api/v1/nodes/{node['metadata']['name']}"
            if identity not in found:
                self.client.call("DELETE", path)
                continue
            taints = [each for each in node["spec"].get("taints", []) if each["key"] != TAINT]
            zone = found[identity]["Placement"]["AvailabilityZone"]
            labels = {
                "topology.kubernetes.io/zone": zone,
                "node.kubernetes.io/instance-type": found[identity]["InstanceType"],
            }
            self.patch(path, {"metadata": {"labels": labels}, "spec": {"taints": taints}})

    @staticmethod
    def of_interest(node):
        fresh = any(each["key"] == TAINT for each in node["spec"].get("taints", []))
        conditions = {each["type"]: each["status"] for each in node.get("status", {}).get("conditions", [])}
        return fresh or conditions.get("Ready") == "Unknown"

    def instances(self, identities):
        if self.ec2 is None:
            import os

            import boto3

            region = metadata("placement/region")
            self.ec2 = boto3.client("ec2", region_name=region, endpoint_url=os.environ.get("AWS_ENDPOINT_URL"))
        asked = [{"Name": "instance-id", "Values": identities}]
        return [
            each for part in self.ec2.describe_instances(Filters=asked)["Reservations"] for each in part["Instances"]
        ]

    def patch(self, path, body):
        self.client.call("PATCH", path, body, MERGE)


def metadata(path):
    base, header = "http://169.254.169.254/latest/", "X-aws-ec2-metadata-token"
    request = urllib.request.Request(base + "api/token", method="PUT", headers={header + "-ttl-seconds": "60"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        token = answer.read().decode()
    with urllib.request.urlopen(
        urllib.request.Request(base + "meta-data/" + path, headers={header: token}), timeout=5
    ) as answer:
        return answer.read().decode()


def main(arguments):
    flags = dict(each[2:].partition("=")[::2] for each in arguments)
    controllers = Controllers(flags)
    while True:
        try:
            controllers.turn()
        except (Failed, OSError, KeyError) as failure:
            sys.stderr.write(f"{type(failure).__name__}: {failure}\n")
        except Exception as failure:  # noqa: BLE001 - boto3's errors: the next turn comes
            sys.stderr.write(f"{failure!r}\n")
        time.sleep(0.5)


if __name__ == "__main__":
    main(sys.argv[1:])
