"""Client certificates issued on the operator's machine, and what is read from others."""

from __future__ import annotations

import contextlib
import datetime
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cfngen.deploy.access.certificates import (
    CertificateError,
    Identity,
    KeyPair,
    certificate_validity,
    is_matching_pair,
    issue_client_certificate,
    server_certificate_validity,
)
from cfngen.deploy.access.cluster_access import kubernetes_user_name
from cfngen.sandbox.kubernetes import certificates

NOW = datetime.datetime(2026, 3, 4, 5, 6, 7, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
ALICE = Identity("Admin/alice@cfngen", ("system:masters", "oncall"))


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    bundle = certificates.authorities(NOW)
    return KeyPair(bundle["ca.crt"], bundle["ca.key"])


def of_elliptic_curve(*, identified: bool) -> KeyPair:
    """An authority as kubeadm makes it with encryptionAlgorithm ECDSA-P256, with or without a key identifier."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + datetime.timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if identified:
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    return KeyPair(
        certificate, key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    )


def test_a_certificate_says_who_and_for_how_long(authority):
    pair = issue_client_certificate(authority, ALICE, now=NOW, duration=12 * HOUR)
    made = x509.load_pem_x509_certificate(pair.certificate.encode())
    assert [each.value for each in made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["Admin/alice@cfngen"]
    groups = made.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [group.value for group in groups] == ["system:masters", "oncall"]
    assert made.not_valid_before_utc == NOW - datetime.timedelta(minutes=1)
    assert made.not_valid_after_utc == NOW + 12 * HOUR
    usage = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert isinstance(load_pem_private_key(pair.private_key.encode(), None).curve, ec.SECP256R1)
    assert is_matching_pair(pair)


@pytest.mark.parametrize("kind", ["rsa", "elliptic curve", "elliptic curve without identifier"])
def test_it_is_signed_by_the_authority(kind, authority):
    signer = authority if kind == "rsa" else of_elliptic_curve(identified="without" not in kind)
    pair = issue_client_certificate(signer, ALICE, now=NOW, duration=HOUR)
    made, issuer = (x509.load_pem_x509_certificate(each.certificate.encode()) for each in (pair, signer))
    made.verify_directly_issued_by(issuer)


def test_two_certificates_have_nothing_in_common(authority):
    first, second = (issue_client_certificate(authority, ALICE, now=NOW, duration=HOUR) for _ in range(2))
    assert first.private_key != second.private_key
    numbers = {x509.load_pem_x509_certificate(each.certificate.encode()).serial_number for each in (first, second)}
    assert len(numbers) == 2


def test_no_certificate_outlives_its_authority():
    authority = of_elliptic_curve(identified=True)
    with pytest.raises(CertificateError, match="expires at 2027-03-04 05:06 UTC") as refused:
        issue_client_certificate(authority, ALICE, now=NOW, duration=datetime.timedelta(days=366))
    assert "--duration" in refused.value.hint
    with pytest.raises(CertificateError) as refused:
        issue_client_certificate(authority, ALICE, now=NOW + datetime.timedelta(days=400), duration=HOUR)
    assert "renew" in refused.value.hint


@pytest.mark.parametrize("identity", [Identity(""), Identity("a" * 65), Identity("a", ("b" * 65,))])
def test_names_that_do_not_fit_are_refused(identity, authority):
    with pytest.raises(CertificateError, match="1 to 64 characters"):
        issue_client_certificate(authority, identity, now=NOW, duration=HOUR)


def test_the_key_is_not_shown(authority):
    assert "PRIVATE" not in repr(issue_client_certificate(authority, ALICE, now=NOW, duration=HOUR))


@pytest.mark.parametrize("text", ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate_is_said_to_be_none(text, authority):
    with pytest.raises(CertificateError, match="not a certificate"):
        certificate_validity(text)
    with pytest.raises(CertificateError, match="not a private key") as refused:
        is_matching_pair(KeyPair(authority.certificate, "SECRET" + text))
    assert "SECRET" not in str(refused.value)


def test_a_key_of_another_certificate_does_not_match(authority):
    assert is_matching_pair(authority)
    assert not is_matching_pair(KeyPair(authority.certificate, of_elliptic_curve(identified=True).private_key))


def test_an_outdated_certificate_of_a_server_can_be_read(tmp_path):
    bundle = certificates.authorities(NOW)
    shown = issue_client_certificate(
        KeyPair(bundle["ca.crt"], bundle["ca.key"]), Identity("server"), now=NOW, duration=HOUR
    )
    file = tmp_path / "server.pem"
    file.write_text(shown.private_key + shown.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    with ssl_server(context) as port:
        assert server_certificate_validity("127.0.0.1", port, timeout=10) == certificate_validity(shown.certificate)


def test_no_server_is_said_to_be_none():
    with ssl_server(None) as port:
        pass
    with pytest.raises(CertificateError, match=f"no TLS connection to 127.0.0.1:{port}"):
        server_certificate_validity("127.0.0.1", port, timeout=10)


@pytest.mark.parametrize(
    ("caller", "name"),
    [
        ("arn:aws:iam::123456789012:user/alice", "alice@cfngen"),
        ("arn:aws:iam::123456789012:user/division/alice", "division/alice@cfngen"),
        ("arn:aws-cn:sts::123456789012:assumed-role/Admin/bob", "Admin/bob@cfngen"),
        ("arn:aws:sts::123456789012:federated-user/carol", "carol@cfngen"),
        ("arn:aws:iam::123456789012:root", "root@cfngen"),
        ("arn:aws:sts::123456789012:assumed-role/" + "R" * 60 + "/alice@example.com", "alice@example.com@cfngen"),
        ("arn:aws:iam::123456789012:user/" + "x" * 64, "x" * 57 + "@cfngen"),
    ],
)
def test_the_audit_log_shows_the_aws_caller(caller, name):
    assert kubernetes_user_name(caller) == name
    assert len(name) <= 64


class ssl_server:  # noqa: N801 - reads as a context manager
    """One TLS connection on loopback; without a context, a port on which nobody listens any more."""

    def __init__(self, context):
        import socket

        self.plain = socket.create_server(("127.0.0.1", 0))
        self.context = context

    def __enter__(self) -> int:
        if self.context:
            self.thread = threading.Thread(target=self._answer, daemon=True)
            self.thread.start()
        return self.plain.getsockname()[1]

    def _answer(self) -> None:
        connection, _ = self.plain.accept()
        # Who has seen the certificate may hang up before the server has ended its part of the handshake.
        with contextlib.suppress(ConnectionError), self.context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(1)

    def __exit__(self, *_) -> None:
        if self.context:
            self.thread.join(10)
        self.plain.close()
