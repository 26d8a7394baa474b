"""Serving certificates of kubelets: what EC2 confirms is approved, everything else is left for a person."""

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
from cfngen.boot.master import csr_approval

INSTANCE = "i-0123456789abcdef0"
USER = f"system:node:{INSTANCE}"
KEY = ec.generate_private_key(ec.SECP256R1())
NAMES = ["ip-172-20-0-77.us-west-2.compute.internal", INSTANCE]
ADDRESSES = ["172.20.0.77", "203.0.113.7"]
USAGES = ["digital signature", "server auth"]
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
    return {**usual, "usages": USAGES, **more}


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
    """

    def __init__(self, **requests: dict[str, Any]) -> None:
        super().__init__()
        self.files[ADMIN_KUBECONFIG] = "credentials"
        self.requests = requests
        self.decided: list[str] = []
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

    @staticmethod
    def _describe(Filters: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        wanted = {each["Name"]: each["Values"] for each in Filters}
        assert wanted["tag:KubernetesCluster"] == ["prod"]
        assert wanted["instance-state-name"] == ["running"]
        found = [DESCRIBED] if INSTANCE in wanted["instance-id"] else []
        return {"Reservations": [{"Instances": found}]}


def approve(machine: ScriptedMachine) -> str:
    return csr_approval.approve(machine, boot_of({"cluster": "prod"}))


def test_requests_are_approved_once() -> None:
    machine = Master(good=spec())
    assert approve(machine) == f"approved the certificate requests of {INSTANCE}"
    assert machine.decided == ["good"]
    assert approve(machine) == ""
    assert machine.decided == ["good"]


def test_all_requests_of_a_minute_are_looked_at() -> None:
    machine = Master(first=spec(), bad=spec(groups=[]), second=spec())
    assert approve(machine) == f"approved the certificate requests of {INSTANCE}, {INSTANCE}"
    assert machine.decided == ["first", "second"]
    assert len(machine.said) == 1


def test_request_that_is_left_alone_is_told_once_and_never_denied() -> None:
    machine = Master(bad=spec(request=request(["kubernetes"], [])), good=spec())
    approve(machine)
    assert machine.decided == ["good"]
    told = f"certificate request bad of {USER} was not approved: EC2 does not confirm"
    assert machine.said == [f"{told} kubernetes"]
    approve(machine)
    assert machine.decided == ["good"]
    assert machine.said == [f"{told} kubernetes"]
    machine.requests["bad"] = spec(request=request(["localhost"], []))
    approve(machine)
    assert machine.said == [f"{told} kubernetes", f"{told} localhost"]
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
    sizes = [len(each["Filters"][0]["Values"]) for name, each in machine.calls if name == "ec2.describe_instances"]
    assert sizes == [100, 100, 50]
    ids = [one for name, each in machine.calls for one in each["Filters"][0]["Values"]]
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


def test_timer_is_started_at_boot() -> None:
    machine = Master(good=spec())
    assert (
        csr_approval.start(machine, boot_of({"cluster": "prod"})) == f"approved the certificate requests of {INSTANCE}"
    )
    assert machine.commands[0] == "systemctl enable --now cfngen-approve.timer"
