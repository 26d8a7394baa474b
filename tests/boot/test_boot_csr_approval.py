"""Certificates of kubelets: what EC2 confirms is approved, everything else is left for a person."""

from __future__ import annotations

import base64
import ipaddress
import json
from typing import Any

import pytest
from boots import boot_of
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from scripted_machine import ScriptedMachine

from cfngen.boot.host.kubectl import ADMIN_KUBECONFIG
from cfngen.boot.machine import BootError
from cfngen.boot.master import csr_approval

INSTANCE = "i-0123456789abcdef0"
USER = f"system:node:{INSTANCE}"
KEY = ec.generate_private_key(ec.SECP256R1())
NAMES = ["ip-172-20-0-77.us-west-2.compute.internal", INSTANCE]
ADDRESSES = ["172.20.0.77", "203.0.113.7"]
USAGES = ["digital signature", "server auth"]
# What Kubernetes says of who presents a token that masters publish.
TOKEN = {"username": "system:bootstrap:abcdef", "groups": ["system:bootstrappers", "system:bootstrappers:cfngen:nodes"]}
MASTER, BASTION, STOPPED = "i-0aaaaaaaaaaaaaaaa", "i-0bbbbbbbbbbbbbbbb", "i-0cccccccccccccccc"
PROFILE = {"Arn": "arn:aws:iam::123456789012:instance-profile/nodes", "Id": "AIPA"}
DESCRIBED: dict[str, Any] = {
    "InstanceId": INSTANCE,
    "PrivateDnsName": "ip-172-20-0-77.us-west-2.compute.internal",
    "PublicDnsName": "ec2-203-0-113-7.us-west-2.compute.amazonaws.com",
    "PrivateIpAddress": "172.20.0.77",
    "PublicIpAddress": "203.0.113.7",
    "NetworkInterfaces": [
        {
            "Ipv6Addresses": [{"Ipv6Address": "2001:db8::7"}],
            "PrivateIpAddresses": [
                {"PrivateIpAddress": "172.20.0.77", "Association": {"PublicIp": "203.0.113.7", "PublicDnsName": "x"}},
                {"PrivateIpAddress": "172.20.0.90", "PrivateDnsName": "ip-172-20-0-90.us-west-2.compute.internal"},
            ],
        }
    ],
}


def request(
    names: list[str] = NAMES,
    addresses: list[str] = ADDRESSES,
    *,
    subject: dict[x509.ObjectIdentifier, str] | None = None,
    key: Any = KEY,
    other: list[x509.GeneralName] | None = None,
    extension: x509.ExtensionType | None = None,
) -> str:
    """Return a request as a kubelet makes it, in base64."""
    wanted = subject or {NameOID.ORGANIZATION_NAME: "system:nodes", NameOID.COMMON_NAME: USER}
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(kind, text) for kind, text in wanted.items()])
    )
    general: list[x509.GeneralName] = [x509.DNSName(each) for each in names]
    general += [x509.IPAddress(ipaddress.ip_address(each)) for each in addresses]
    general += other or []
    if general:
        builder = builder.add_extension(x509.SubjectAlternativeName(general), critical=False)
    if extension:
        builder = builder.add_extension(extension, critical=True)
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode()


def spec(**more: Any) -> dict[str, Any]:
    usual = {"request": request(), "username": USER, "groups": ["system:nodes", "system:authenticated"]}
    return {"signerName": "kubernetes.io/kubelet-serving", **usual, "usages": USAGES, **more}


def first(name: str = INSTANCE, **more: Any) -> dict[str, Any]:
    """Return the request for a first client certificate as the kubelet of that name makes it with a token."""
    subject = {NameOID.ORGANIZATION_NAME: "system:nodes", NameOID.COMMON_NAME: f"system:node:{name}"}
    usual = {"signerName": "kubernetes.io/kube-apiserver-client-kubelet", **TOKEN}
    return {
        **usual,
        "request": request([], [], subject=subject),
        "usages": ["digital signature", "client auth"],
        **more,
    }


def doubt(**more: Any) -> str:
    return csr_approval.reason_to_refuse(spec(**more), {INSTANCE: DESCRIBED})


def test_request_for_what_ec2_confirms_is_in_no_doubt() -> None:
    assert doubt() == ""


@pytest.mark.parametrize(
    "asked",
    [
        request(NAMES, []),
        request([], ["172.20.0.90"]),
        request([], ["2001:db8::7"]),
        request([NAMES[0].upper()], []),
        request(key=rsa.generate_private_key(65537, 2048)),
    ],
    ids=["names only", "second address", "IPv6", "capital letters", "RSA"],
)
def test_every_name_and_address_of_the_instance_may_be_asked_for(asked: str) -> None:
    assert doubt(request=asked, usages=[*USAGES, "key encipherment"]) == ""


@pytest.mark.parametrize(
    ("described", "names", "addresses"),
    [
        ({}, [INSTANCE], []),
        ({"PrivateDnsName": "a.internal"}, ["a.internal"], []),
        ({"PublicDnsName": "a.example"}, ["a.example"], []),
        ({"PrivateIpAddress": "10.0.0.1"}, [], ["10.0.0.1"]),
        ({"PublicIpAddress": "192.0.2.1"}, [], ["192.0.2.1"]),
        ({"NetworkInterfaces": [{"PrivateDnsName": "b.internal"}]}, ["b.internal"], []),
        ({"NetworkInterfaces": [{"PrivateIpAddress": "10.0.0.2"}]}, [], ["10.0.0.2"]),
        ({"NetworkInterfaces": [{"Association": {"PublicDnsName": "B.example"}}]}, ["b.example"], []),
        ({"NetworkInterfaces": [{"Association": {"PublicIp": "192.0.2.2"}}]}, [], ["192.0.2.2"]),
        ({"NetworkInterfaces": [{"Ipv6Addresses": [{"Ipv6Address": "2001:db8::1"}]}]}, [], ["2001:db8::1"]),
        *(
            ({"NetworkInterfaces": [{"PrivateIpAddresses": [{key: value}]}]}, names, addresses)
            for key, value, names, addresses in (
                ("PrivateDnsName", "c.internal", ["c.internal"], []),
                ("PrivateIpAddress", "10.0.0.3", [], ["10.0.0.3"]),
                ("Association", {"PublicDnsName": "c.example"}, ["c.example"], []),
                ("Association", {"PublicIp": "192.0.2.3"}, [], ["192.0.2.3"]),
            )
        ),
    ],
)
def test_name_or_address_may_stand_anywhere_in_what_ec2_says_of_an_instance(
    described: dict[str, Any], names: list[str], addresses: list[str]
) -> None:
    asked = spec(request=request(names, addresses))
    assert csr_approval.reason_to_refuse(asked, {INSTANCE: {"InstanceId": INSTANCE, **described}}) == ""
    assert (
        csr_approval.reason_to_refuse(asked, {INSTANCE: {"InstanceId": "i-0"}})
        == f"EC2 does not confirm {(names + addresses)[0]}"
    )


@pytest.mark.parametrize(
    ("names", "addresses", "refused"),
    [
        (["kubernetes.default.svc"], [], "kubernetes.default.svc"),
        (NAMES, ["172.20.0.9"], "172.20.0.9"),
        (["*.us-west-2.compute.internal"], ADDRESSES, r"\*.us-west-2.compute.internal"),
        (["i-0fedcba9876543210"], [], "i-0fedcba9876543210"),
        ([], ["127.0.0.1"], "127.0.0.1"),
    ],
)
def test_any_other_name_or_address_is_not_confirmed(names: list[str], addresses: list[str], refused: str) -> None:
    assert doubt(request=request(names, addresses)) == f"EC2 does not confirm {refused.replace(chr(92), '')}"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"username": "system:serviceaccount:default:web"}, "the requester is not a node"),
        ({"groups": ["system:authenticated"]}, "the requester is not a node"),
        ({"usages": [*USAGES, "client auth"]}, "its key usages are client auth, digital signature, server auth"),
        ({"usages": ["server auth"]}, "its key usages are server auth"),
        ({"username": "system:node:i-0fedcba9876543210"}, "EC2 has no running instance of this cluster with that id"),
        ({"request": request([], [])}, "it contains neither a DNS name nor an IP address"),
        # Not base64: Python leaves strange characters out unless it is told not to.
        ({"request": "%" + request()}, "it cannot be parsed: "),
        ({"request": ""}, "it cannot be parsed: it is not a PEM certificate request"),
        ({"request": "%%%"}, "it cannot be parsed: "),
        (
            {"request": request(other=[x509.RFC822Name("root@example.com")])},
            "it cannot be parsed: it requests something other than DNS names and IP addresses",
        ),
        (
            {"request": request(extension=x509.BasicConstraints(ca=True, path_length=None))},
            "it cannot be parsed: it requests an unknown extension",
        ),
    ],
)
def test_what_is_unusual_is_left_alone_with_the_reason(more: dict[str, Any], reason: str) -> None:
    assert doubt(**more).startswith(reason)


@pytest.mark.parametrize(
    "subject",
    [
        {NameOID.ORGANIZATION_NAME: "system:nodes", NameOID.COMMON_NAME: "system:node:i-0fedcba9876543210"},
        {NameOID.ORGANIZATION_NAME: "system:masters", NameOID.COMMON_NAME: USER},
        {NameOID.COMMON_NAME: USER},
        {NameOID.ORGANIZATION_NAME: "system:nodes", NameOID.COMMON_NAME: USER, NameOID.LOCALITY_NAME: "here"},
    ],
)
def test_subject_is_that_of_who_asks(subject: dict[x509.ObjectIdentifier, str]) -> None:
    assert doubt(request=request(subject=subject)) == "its subject is not that of the node"


@pytest.mark.parametrize("strange", ["%", "=", "\N{LATIN SMALL LETTER E WITH ACUTE}"])
def test_strange_characters_in_a_request_are_not_read_over(strange: str) -> None:
    text = base64.b64decode(request()).decode().replace("REQUEST-----\n", f"REQUEST-----\n{strange}", 1)
    assert doubt(request=base64.b64encode(text.encode()).decode()).startswith("it cannot be parsed: ")


def test_no_part_of_a_request_is_taken_for_the_whole() -> None:
    pem = base64.b64decode(request()).decode()
    der = base64.b64decode("".join(pem.split("-----")[2].split()))
    for length in range(0, len(der), 7):
        cut = base64.b64encode(der[:length]).decode()
        text = f"-----BEGIN CERTIFICATE REQUEST-----\n{cut}\n-----END CERTIFICATE REQUEST-----\n"
        assert doubt(request=base64.b64encode(text.encode()).decode()) != ""


class Master(ScriptedMachine):
    """A master with requests to look at.

    Attributes:
        requests: specification of each request, by name.
        decided: names of requests that are approved.
        instances: EC2's descriptions of the cluster's running instances, by id.
        ready: the status of the condition Ready of each Node, by name; "" without one.
    """

    def __init__(self, **requests: dict[str, Any]) -> None:
        super().__init__()
        self.files[ADMIN_KUBECONFIG] = "credentials"
        self.requests = requests
        self.decided: list[str] = []
        self.instances = {
            INSTANCE: {**DESCRIBED, "IamInstanceProfile": PROFILE, "Tags": [{"Key": "Name", "Value": "prod-nodes-a"}]},
            MASTER: {
                "InstanceId": MASTER,
                "IamInstanceProfile": PROFILE,
                "Tags": [{"Key": "k8s.io/role/master", "Value": "1"}],
            },
            BASTION: {"InstanceId": BASTION, "Tags": [{"Key": "Name", "Value": "prod-bastion"}]},
        }
        self.ready: dict[str, str] = {}
        self.on("kubectl .* get node ", lambda text: (0, self._node(text.split()[-4])))
        self.on("kubectl .* get certificatesigningrequests", lambda _: (0, json.dumps({"items": self._items()})))
        self.on("kubectl .* certificate approve", lambda text: self._approve(text.split()[-1]))
        self.cloud["ec2.describe_instances"] = self._describe

    def _items(self) -> list[dict[str, Any]]:
        done = {"conditions": [{"type": "Approved"}]}
        return [
            {"metadata": {"name": name}, "spec": each, "status": done if name in self.decided else {}}
            for name, each in self.requests.items()
        ]

    def _approve(self, name: str) -> tuple[int, str]:
        self.decided.append(name)
        return 0, ""

    def _node(self, name: str) -> str:
        if name not in self.ready:
            return ""
        status = self.ready[name]
        return json.dumps({"status": {"conditions": [{"type": "Ready", "status": status}]} if status else {}})

    def _describe(self, Filters: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        wanted = {each["Name"]: each["Values"] for each in Filters}
        assert wanted["tag:KubernetesCluster"] == ["prod"]
        assert wanted["instance-state-name"] == ["running"]
        found = [each for name, each in self.instances.items() if name in wanted["instance-id"]]
        return {"Reservations": [{"Instances": found}]}


def approve(machine: ScriptedMachine) -> str:
    return csr_approval.approve(machine, boot_of({"cluster": "prod"}))


def test_requests_are_approved_once() -> None:
    machine = Master(good=spec())
    for _ in range(2):
        assert approve(machine) == ""
        assert machine.decided == ["good"]
        assert machine.said == [f"approved the certificate requests of {INSTANCE}"]


def test_all_requests_of_a_moment_are_looked_at() -> None:
    machine = Master(first=spec(), bad=spec(groups=[]), second=spec())
    approve(machine)
    assert machine.decided == ["first", "second"]
    assert len(machine.said) == 2
    assert machine.said[1] == f"approved the certificate requests of {INSTANCE}, {INSTANCE}"


def test_request_is_not_left_until_the_next_minute() -> None:
    machine = Master()
    machine.between = lambda: machine.requests.update({"late": first()} if machine.passed else {})
    approve(machine)
    assert machine.decided == ["late"]
    assert machine.passed < 50, "the timer starts the task again, at most ten seconds later than every minute"


@pytest.mark.parametrize("failures", [4, 5])
def test_api_server_that_is_not_up_yet_is_looked_for_again(failures: int) -> None:
    machine = Master(good=spec())
    answers = [(1, "The connection to the server was refused")] * failures
    usual = dict(machine.answers)["kubectl .* get certificatesigningrequests"]
    machine.on("kubectl .* get certificatesigningrequests", lambda text: answers.pop() if answers else usual(text))
    if failures == 5:
        with pytest.raises(BootError, match="refused"):
            approve(machine)
    else:
        approve(machine)
        assert machine.decided == ["good"]


def test_request_that_is_left_alone_is_told_once_and_never_denied() -> None:
    machine = Master(bad=spec(request=request(["kubernetes"], [])), good=spec())
    approve(machine)
    assert machine.decided == ["good"]
    told = f"certificate request bad of {USER} was not approved: EC2 does not confirm"
    said = [f"{told} kubernetes", f"approved the certificate requests of {INSTANCE}"]
    assert machine.said == said
    approve(machine)
    assert machine.decided == ["good"]
    assert machine.said == said
    machine.requests["bad"] = spec(request=request(["localhost"], []))
    approve(machine)
    assert machine.said == [*said, f"{told} localhost"]
    assert machine.ran("kubectl .* deny") == []


def test_further_requests_of_one_node_are_not_told_and_those_of_former_instances_only_in_the_log_file() -> None:
    logged: list[str] = []
    former = spec(username="system:node:i-0fedcba9876543210")
    machine = Master(first=spec(usages=[]), second=spec(usages=[]), former=former, again=former)
    machine.log = logged.append  # type: ignore[method-assign]
    for _ in range(2):
        approve(machine)
    assert machine.said == [f"certificate request first of {USER} was not approved: its key usages are "]
    assert logged == [
        f"certificate request former of {former['username']} was not approved: {csr_approval.NOT_RUNNING}"
    ]
    assert machine.decided == []


def test_many_nodes_are_asked_about_in_a_few_calls() -> None:
    requests = {f"r{each}": spec(username=f"system:node:i-{each:017x}") for each in range(250)}
    machine = Master(**requests)
    approve(machine)
    asked = [each["Filters"][0]["Values"] for name, each in machine.calls if name == "ec2.describe_instances"][:3]
    assert [len(ids) for ids in asked] == [100, 100, 50]
    ids = [one for each in asked for one in each]
    assert ids == sorted(ids), "the same requests make the same calls"


def test_name_that_is_no_instances_is_not_even_asked_about() -> None:
    machine = Master(odd=spec(username="system:node:master-1"))
    approve(machine)
    assert machine.calls == []
    assert machine.decided == []


def test_master_that_is_not_set_up_yet_does_nothing() -> None:
    machine = Master(good=spec())
    del machine.files[ADMIN_KUBECONFIG]
    assert approve(machine) == ""
    assert machine.commands == []


def test_approval_begins_at_boot_and_goes_on_while_the_boot_does() -> None:
    machine = Master(good=spec())
    csr_approval.start(machine, boot_of({"cluster": "prod"}))
    assert machine.commands == [
        "systemctl enable --now cfngen-approve.timer",
        "systemctl start --no-block cfngen-approve.service",
    ]


A_MASTER = "that instance is a master or the bastion"


@pytest.mark.parametrize(
    ("asked", "ready", "reason"),
    [
        pytest.param(first(), None, "", id="an instance that is new"),
        pytest.param(first(usages=["digital signature", "key encipherment", "client auth"]), None, "", id="RSA"),
        pytest.param(
            first(groups=["system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"]),
            None,
            "",
            id="a token of a master of an earlier release",
        ),
        pytest.param(first(), "Unknown", "", id="an instance whose kubelet was stopped, to join again"),
        pytest.param(first(), "", "", id="a Node for which no kubelet has reported"),
        pytest.param(first(), "True", "a kubelet already reports for the Node of that name", id="a living node"),
        pytest.param(first(), "False", "a kubelet already reports for the Node of that name", id="one not Ready"),
        pytest.param(first(MASTER), None, A_MASTER, id="a master"),
        pytest.param(first(BASTION), None, A_MASTER, id="the bastion"),
        # EC2 is asked for running instances with the cluster's tag: neither is among them.
        pytest.param(first(STOPPED), None, csr_approval.NOT_RUNNING, id="another cluster's, or one that was stopped"),
        pytest.param(first("admin"), None, csr_approval.NOT_RUNNING, id="no instance"),
        pytest.param(
            first(groups=["system:bootstrappers", "system:bootstrappers:other"]),
            None,
            "the requester has no token for nodes",
            id="another token",
        ),
        pytest.param(
            first(username="jane", groups=["system:authenticated"]),
            None,
            "the requester has no token for nodes",
            id="a person",
        ),
        pytest.param(
            first(usages=["digital signature", "client auth", "server auth"]),
            None,
            "its key usages are client auth, digital signature, server auth",
            id="usages of a server, too",
        ),
        pytest.param(first(usages=["client auth"]), None, "its key usages are client auth", id="usages that lack one"),
        pytest.param(first(request="%"), None, "it cannot be parsed: ", id="no request"),
        *(
            pytest.param(first(request=request([], [], subject=subject)), None, "its subject is not that of", id=name)
            for name, subject in {
                "administrators": {NameOID.ORGANIZATION_NAME: "system:masters", NameOID.COMMON_NAME: USER},
                "no organisation": {NameOID.COMMON_NAME: USER},
                "a person's name": {NameOID.ORGANIZATION_NAME: "system:nodes", NameOID.COMMON_NAME: INSTANCE},
                "a locality": {
                    NameOID.ORGANIZATION_NAME: "system:nodes",
                    NameOID.COMMON_NAME: USER,
                    NameOID.LOCALITY_NAME: "here",
                },
            }.items()
        ),
        pytest.param(first(request=request()), None, "it contains DNS names or IP addresses", id="names of a server"),
    ],
)
def test_who_has_a_token_becomes_a_node_that_is_not_there_yet_and_no_other(
    asked: dict[str, Any], ready: str | None, reason: str
) -> None:
    machine = Master(asked=asked)
    said: list[str] = []
    machine.say = machine.log = said.append  # type: ignore[method-assign]
    if ready is not None:
        machine.ready[INSTANCE] = ready
    approve(machine)
    assert machine.decided == ([] if reason else ["asked"])
    [line] = said
    assert (f" was not approved: {reason}" if reason else f"approved the certificate requests of {INSTANCE}") in line


def test_refusal_names_the_node_that_somebody_claims_to_be() -> None:
    machine = Master(bad=first(MASTER))
    approve(machine)
    who = f"system:bootstrap:abcdef for {MASTER}"
    assert machine.said == [f"certificate request bad of {who} was not approved: {A_MASTER}"]


def test_node_that_joins_again_gets_its_certificate_once_its_former_kubelet_counts_as_stopped() -> None:
    machine = Master(again=first())
    machine.ready[INSTANCE] = "True"
    approve(machine)
    assert machine.decided == []
    machine.ready[INSTANCE] = "Unknown"
    approve(machine)
    assert machine.decided == ["again"]


@pytest.mark.parametrize(
    "other",
    [
        first(username=USER, groups=["system:nodes"]),
        {**first(), "signerName": "kubernetes.io/kube-apiserver-client"},
    ],
    ids=["renewal, which Kubernetes approves", "another signer"],
)
def test_requests_that_others_judge_are_not_even_reported(other: dict[str, Any]) -> None:
    machine = Master(other=other)
    approve(machine)
    assert (machine.decided, machine.said, machine.calls) == ([], [], [])
