"""Approves the certificates of kubelets: what EC2 reports for the instance decides.

- The first client certificate of a new node, which it requests with a bootstrap token. With kubeadm's binding, which
  `join_information` deletes, Kubernetes would approve it for any name, also for a master's: its controller csrapproving
  never compares the name with the requester. Later ones a node requests with the certificate that it has, and
  Kubernetes approves them for the same name.
- Serving certificates. Kubernetes itself approves none, since anyone with a node's credentials could request one for
  any name.

Masters have their client certificates from kubeadm, which signs them with the authority's key.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
from typing import TYPE_CHECKING

from ..host.kubectl import ADMIN_KUBECONFIG, kubectl
from ..machine import HOME, BootError, Machine
from .der import content_range
from .join_information import FORMER_TOKEN_GROUP, TOKEN_GROUP

if TYPE_CHECKING:
    from ..contract import JsonObject, MasterBoot

SERVING_SIGNER = "kubernetes.io/kubelet-serving"
CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
NODE_PREFIX = "system:node:"
# File with a list of whose pending requests were not approved, and why, so that each reason is logged only once: a
# kubelet makes another request every quarter of an hour.
REPORTED_FILE = HOME + "/approval.json"
TIMER, SERVICE = "cfngen-approve.timer", "cfngen-approve.service"
# The timer starts the task every minute; a node that joins waits for it, so the task looks several times in a minute.
LOOKS, PAUSE_SECONDS = 5, 10
# Key usages that each signer requires, and the only other one that it allows (Kubernetes documentation, "Certificates
# and Certificate Signing Requests").
REQUIRED_USAGES = {
    SERVING_SIGNER: {"digital signature", "server auth"},
    CLIENT_SIGNER: {"digital signature", "client auth"},
}
OPTIONAL_USAGE = "key encipherment"
# Tag of masters' instances, which IAM policies rely on, too.
MASTER_TAG = "k8s.io/role/master"
# Object identifiers in DER: RFC 5280 (commonName, organizationName, subjectAltName), RFC 2985 (extensionRequest).
COMMON_NAME = bytes.fromhex("550403")
ORGANIZATION = bytes.fromhex("55040a")
ALTERNATIVE_NAMES = bytes.fromhex("551d11")
EXTENSION_REQUEST = bytes.fromhex("2a864886f70d01090e")
# Tags of DER elements: four general types, and the attributes of a certificate request (RFC 2986).
SEQUENCE, SET, OBJECT_IDENTIFIER, OCTET_STRING, ATTRIBUTES = 0x30, 0x31, 0x06, 0x04, 0xA0
# Tags of subject alternative names (RFC 5280).
DNS_NAME, IP_ADDRESS = 0x82, 0x87
# Why the request of an instance is not approved that has been replaced. It stays pending for a day, at which each new
# master would report it: it is only in the log file.
NOT_RUNNING = "EC2 has no running instance of this cluster with that id"
# Number of values in one filter of a request to EC2, which accepts at most 200.
MAX_FILTER_VALUES = 100


def start(machine: Machine, boot: MasterBoot) -> str:
    """Start the timer and the service that approve certificate requests from now on, while this boot goes on."""
    machine.run("systemctl", "enable", "--now", TIMER)
    machine.run("systemctl", "start", "--no-block", SERVICE)
    return "certificate requests of kubelets are checked every few seconds"


def approve(machine: Machine, boot: MasterBoot) -> str:
    """Approve the certificate requests of kubelets, those of nearly a minute.

    Returns:
        Always "": each approval is logged at once.

    Raises:
        BootError: the API server or EC2 does not answer, at the last look.
    """
    for look in range(1, LOOKS + 1):
        try:
            approved_nodes = _approve_pending(machine, boot)
        except BootError:
            # After a reboot the API server is not up yet.
            if look == LOOKS:
                raise
        else:
            if approved_nodes:
                machine.say(f"approved the certificate requests of {', '.join(approved_nodes)}")
        if look < LOOKS:
            machine.sleep(PAUSE_SECONDS)
    return ""


def _approve_pending(machine: Machine, boot: MasterBoot) -> list[str]:
    """Approve the pending certificate requests that EC2 confirms; return the names of their nodes.

    If a request is not approved, the reason is logged once. No request is denied: an operator may still approve it, and
    Kubernetes deletes it after a day. All masters run this task, possibly at the same time.
    """
    if not machine.exists(ADMIN_KUBECONFIG):
        return []
    items = json.loads(kubectl(machine, "get", "certificatesigningrequests", "-o", "json")[1])["items"]
    specs_by_name = {
        request["metadata"]["name"]: request["spec"]
        for request in items
        if not request.get("status", {}).get("conditions") and _is_of_kubelet(request["spec"])
    }
    instances = _running_instances(machine, boot, [_node_name(spec) for spec in specs_by_name.values()])
    reported_refusals = json.loads(machine.read(REPORTED_FILE) or "[]")
    approved_nodes: list[str] = []
    refusals: list[str] = []
    for name, spec in specs_by_name.items():
        node = _node_name(spec)
        reason = reason_to_refuse(spec, instances)
        if not reason and spec["signerName"] == CLIENT_SIGNER and _is_alive(machine, node):
            reason = "a kubelet already reports for the Node of that name"
        if not reason:
            kubectl(machine, "certificate", "approve", name)
            approved_nodes.append(node)
            continue
        claim = f" for {node}" if node and spec["signerName"] == CLIENT_SIGNER else ""
        refusal = f"of {spec.get('username')}{claim} was not approved: {reason}"
        if refusal not in [*reported_refusals, *refusals]:
            report = machine.log if reason == NOT_RUNNING else machine.say
            report(f"certificate request {name} {refusal}")
        refusals.append(refusal)
    machine.write(REPORTED_FILE, json.dumps(refusals))
    return approved_nodes


def _is_of_kubelet(spec: JsonObject) -> bool:
    """Return whether a certificate request is one that this module judges.

    The client certificate of a node that has one already is renewed by Kubernetes.
    """
    is_renewal = spec["signerName"] == CLIENT_SIGNER and str(spec.get("username", "")).startswith(NODE_PREFIX)
    return spec["signerName"] in REQUIRED_USAGES and not is_renewal


def _node_name(spec: JsonObject) -> str:
    """Return the name of the node that a certificate request is for; "" if there is none.

    A serving certificate is for the node that requests it; with a bootstrap token any name may be asked for.
    """
    user = str(spec.get("username", ""))
    if spec["signerName"] == CLIENT_SIGNER:
        try:
            user = dict(_parsed(spec)[0]).get(COMMON_NAME, "")
        except (ValueError, IndexError):
            return ""
    return user[len(NODE_PREFIX) :] if user.startswith(NODE_PREFIX) else ""


def _running_instances(machine: Machine, boot: MasterBoot, nodes: list[str]) -> dict[str, JsonObject]:
    """Return EC2's descriptions of the running instances of this cluster among `nodes`, by instance id.

    Args:
        nodes: names of nodes, which are instance ids; other names are ignored.
    """
    ids = sorted({node for node in nodes if re.fullmatch("i-[0-9a-f]{8,17}", node)})
    instances = {}
    for first_index in range(0, len(ids), MAX_FILTER_VALUES):
        filters = {
            "instance-id": ids[first_index : first_index + MAX_FILTER_VALUES],
            "instance-state-name": ["running"],
            "tag:KubernetesCluster": [boot.config["cluster"]],
        }
        ec2_filters = [{"Name": name, "Values": values} for name, values in filters.items()]
        for reservation in machine.aws("ec2", "describe_instances", Filters=ec2_filters).get("Reservations", []):
            instances.update({instance["InstanceId"]: instance for instance in reservation["Instances"]})
    return instances


def _is_alive(machine: Machine, name: str) -> bool:
    """Return whether a kubelet reports for a Node: then nobody else may become that node.

    When it stops, Kubernetes sets the Node's condition Ready to `Unknown` within a minute. So a node whose kubelet was
    stopped, to join again, gets its certificate a little later.
    """
    text = kubectl(machine, "get", "node", name, "--ignore-not-found", "-o", "json")[1]
    conditions = json.loads(text or "{}").get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] != "Unknown" for condition in conditions)


def reason_to_refuse(spec: JsonObject, instances: dict[str, JsonObject]) -> str:
    """Return why a certificate request must not be approved; "" if it may be approved.

    Args:
        instances: the cluster's running instances, as EC2 describes them, by id.
    """
    is_serving = spec["signerName"] == SERVING_SIGNER
    user, groups, usages = spec.get("username", ""), set(spec.get("groups", [])), set(spec.get("usages", []))
    if is_serving and not (user.startswith(NODE_PREFIX) and "system:nodes" in groups):
        return "the requester is not a node"
    if not is_serving and not groups & {TOKEN_GROUP, FORMER_TOKEN_GROUP}:
        return "the requester has no token for nodes"
    if usages - {OPTIONAL_USAGE} != REQUIRED_USAGES[spec["signerName"]]:
        return f"its key usages are {', '.join(sorted(usages))}"
    instance = instances.get(_node_name(spec))
    if is_serving and instance is None:
        return NOT_RUNNING
    try:
        subject, names, addresses = _parsed(spec)
    except (ValueError, IndexError) as error:
        return f"it cannot be parsed: {error}"
    if subject != sorted([(ORGANIZATION, "system:nodes"), (COMMON_NAME, NODE_PREFIX + _node_name(spec))]):
        return "its subject is not that of the node"
    if instance is None:
        return NOT_RUNNING
    if is_serving:
        return _reason_to_refuse_names(names, addresses, instance)
    if names | addresses:
        return "it contains DNS names or IP addresses"
    # Of the cluster's instances only the bastion has no instance profile.
    if "IamInstanceProfile" not in instance or any(tag["Key"] == MASTER_TAG for tag in instance.get("Tags", [])):
        return "that instance is a master or the bastion"
    return ""


def _reason_to_refuse_names(names: set[str], addresses: set[str], instance: JsonObject) -> str:
    """Return why a serving certificate must not have these names and addresses; "" if it may have them."""
    ec2_names, ec2_addresses = names_and_addresses(instance)
    unconfirmed = sorted((names - ec2_names) | (addresses - ec2_addresses))
    if unconfirmed:
        return f"EC2 does not confirm {', '.join(unconfirmed)}"
    if not names | addresses:
        return "it contains neither a DNS name nor an IP address"
    return ""


def _parsed(spec: JsonObject) -> tuple[list[tuple[bytes, str]], set[str], set[str]]:
    """Return what a certificate request asks for, as `parse_csr` does; it raises the same errors."""
    return parse_csr(base64.b64decode(spec.get("request", ""), validate=True).decode("ascii"))


def names_and_addresses(instance: JsonObject) -> tuple[set[str], set[str]]:
    """Return the DNS names (with the instance id) and the IP addresses that EC2 reports for an instance."""
    names = {instance["InstanceId"], instance.get("PrivateDnsName"), instance.get("PublicDnsName")}
    addresses = {instance.get("PrivateIpAddress"), instance.get("PublicIpAddress")}
    for interface in instance.get("NetworkInterfaces", []):
        addresses |= {ipv6_address.get("Ipv6Address") for ipv6_address in interface.get("Ipv6Addresses", [])}
        for private_ip_address in [interface, *interface.get("PrivateIpAddresses", [])]:
            association = private_ip_address.get("Association", {})
            names |= {private_ip_address.get("PrivateDnsName"), association.get("PublicDnsName")}
            addresses |= {private_ip_address.get("PrivateIpAddress"), association.get("PublicIp")}
    return {name.lower() for name in names if name}, {address for address in addresses if address}


def parse_csr(pem: str) -> tuple[list[tuple[bytes, str]], set[str], set[str]]:
    """Return what a PKCS #10 certificate request (RFC 2986) asks for.

    Returns:
        The attributes of the subject, sorted, each as (type's object identifier in DER, value); the DNS names; and the
        IP addresses.

    Raises:
        ValueError: the request is malformed, or requests anything else.
    """
    match = re.fullmatch(r"\s*-----BEGIN CERTIFICATE REQUEST-----([\s\S]*)-----END CERTIFICATE REQUEST-----\s*", pem)
    if not match:
        raise ValueError("it is not a PEM certificate request")
    [request] = _der_contents(base64.b64decode("".join(match[1].split()), validate=True), SEQUENCE)
    information = _der_elements(request)[0]
    # CertificationRequestInfo: version, subject, public key, attributes.
    _, subject, _, *attributes = _der_elements(information[1])
    names: set[str] = set()
    addresses: set[str] = set()
    for extension in _requested_extensions(attributes):
        for tag, value in _alternative_names(extension):
            if tag == DNS_NAME:
                names.add(value.decode("ascii").lower())
            elif tag == IP_ADDRESS:
                addresses.add(str(ipaddress.ip_address(value)))
            else:
                raise ValueError("it requests something other than DNS names and IP addresses")
    return sorted(_subject_attribute(attribute) for attribute in _der_contents(subject[1], SET)), names, addresses


def _requested_extensions(attributes: list[tuple[int, bytes]]) -> list[bytes]:
    """Return the X.509 extensions that a certificate request asks for, each in DER.

    Args:
        attributes: the last field of the request, if it has one, as (tag, content).

    Raises:
        ValueError: the request has other fields or attributes.
    """
    requested: list[bytes] = []
    for tag, value in attributes:
        if tag != ATTRIBUTES:
            raise ValueError("it has unknown fields")
        for attribute in _der_contents(value, SEQUENCE):
            identifier, values = _der_elements(attribute)
            if identifier != (OBJECT_IDENTIFIER, EXTENSION_REQUEST):
                raise ValueError("it has an unknown attribute")
            [extensions] = _der_contents(values[1], SEQUENCE)
            requested += _der_contents(extensions, SEQUENCE)
    return requested


def _alternative_names(extension: bytes) -> list[tuple[int, bytes]]:
    """Return the subject alternative names of an X.509 extension (in DER), each as (tag, content).

    Raises:
        ValueError: the extension is another one.
    """
    # Between identifier and value there may be a flag: whether the extension is critical.
    identifier, *_, value = _der_elements(extension)
    if identifier != (OBJECT_IDENTIFIER, ALTERNATIVE_NAMES) or value[0] != OCTET_STRING:
        raise ValueError("it requests an unknown extension")
    [names] = _der_contents(value[1], SEQUENCE)
    return _der_elements(names)


def _subject_attribute(relative_name: bytes) -> tuple[bytes, str]:
    [attribute] = _der_contents(relative_name, SEQUENCE)
    (_, attribute_type), (_, value) = _der_elements(attribute)
    return attribute_type, value.decode("utf-8")


def _der_contents(der: bytes, expected_tag: int) -> list[bytes]:
    """Return the contents of consecutive DER elements.

    Raises:
        ValueError: an element does not have the expected tag, or is incomplete.
    """
    elements = _der_elements(der)
    if any(tag != expected_tag for tag, _ in elements):
        raise ValueError("its structure is not that of a request")
    return [value for _, value in elements]


def _der_elements(der: bytes) -> list[tuple[int, bytes]]:
    """Return consecutive DER elements, each as (tag, content).

    Raises:
        ValueError: the last element is incomplete.
        IndexError: likewise.
    """
    elements, position = [], 0
    while position < len(der):
        begin, end = content_range(der, position)
        if end > len(der):
            raise ValueError("it is truncated")
        elements.append((der[position], der[begin:end]))
        position = end
    return elements
