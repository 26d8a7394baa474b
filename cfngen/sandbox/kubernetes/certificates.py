"""The certificate authorities that a master creates on its first boot, and certificates issued by them.

A real master creates them with kubeadm and stores them in a secret. Here they have the same keys (RSA, 2048 bits) and
the same names, so that the secret looks like that of a real master.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import ipaddress
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_NAMES = {"ca": "kubernetes", "front-proxy-ca": "front-proxy-ca", "etcd/ca": "etcd-ca"}  # file: common name
INITIALISED = "initialised"  # the key of the secret whose value is the time at which a master initialised the cluster
# Authorities and serving certificates are valid from a date before simulated time starts (2026-01-01), because TLS
# libraries check them by this machine's clock, which may be behind or years ahead of simulated time.
NOT_BEFORE = datetime.datetime(2025, 12, 31, tzinfo=datetime.UTC)
CLOCK_SKEW = datetime.timedelta(minutes=5)  # how long before their issue other certificates are valid
# As in the kubeadm configuration of real masters.
AUTHORITY_VALIDITY = datetime.timedelta(days=10 * 365)
CERTIFICATE_VALIDITY = datetime.timedelta(days=5 * 365)
KEY_BITS = 2048
KEY_EXPONENT = 65537


@dataclass(frozen=True)
class Certificate:
    """A certificate and its private key, both PEM."""

    certificate: str
    key: str


def authorities(now: datetime.datetime) -> dict[str, str]:
    """Return new authorities and the service account key, in the form of a cluster's secret: PEM texts by file name."""
    bundle: dict[str, str] = {}
    for file, name in AUTHORITY_NAMES.items():
        authority = _issue_authority(name, now, _new_key() if file == "ca" else _shared_key(file))
        bundle |= {f"{file}.crt": authority.certificate, f"{file}.key": authority.key}
    service_account_key = _shared_key("sa")
    public_key = service_account_key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return {**bundle, "sa.key": _private_key_pem(service_account_key), "sa.pub": public_key.decode()}


def issue_server_certificate(bundle: dict[str, str], names: Collection[str], now: datetime.datetime) -> Certificate:
    """Return a serving certificate for host names and IP addresses, issued by the cluster's authority."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    alternatives = x509.SubjectAlternativeName([_general_name(name) for name in sorted(names)])
    return _issue_certificate(bundle, subject, ExtendedKeyUsageOID.SERVER_AUTH, now, (alternatives,))


def issue_client_certificate(bundle: dict[str, str], name: str, group: str, now: datetime.datetime) -> Certificate:
    """Return a client certificate issued by the cluster's authority, as an administrator issues one from the secret."""
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group), x509.NameAttribute(NameOID.COMMON_NAME, name)]
    return _issue_certificate(bundle, x509.Name(attributes), ExtendedKeyUsageOID.CLIENT_AUTH, now, ())


def public_key_hash(pem: str) -> str:
    """Return the hash of a certificate's public key that `kubeadm join` expects: the SHA-256 of the key in DER."""
    key = x509.load_pem_x509_certificate(pem.encode()).public_key()
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return "sha256:" + hashlib.sha256(der).hexdigest()


def _issue_authority(name: str, now: datetime.datetime, key: rsa.RSAPrivateKey) -> Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = _key_usage(signs_certificates=True)
    certificate = (
        _certificate_builder(
            subject, subject, key.public_key(), min(NOT_BEFORE, now - CLOCK_SKEW), now + AUTHORITY_VALIDITY
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Certificate(_certificate_pem(certificate), _private_key_pem(key))


def _issue_certificate(
    bundle: dict[str, str],
    subject: x509.Name,
    purpose: x509.ObjectIdentifier,
    now: datetime.datetime,
    extensions: tuple[x509.ExtensionType, ...],
) -> Certificate:
    """Return a certificate issued by the cluster's authority."""
    authority = x509.load_pem_x509_certificate(bundle["ca.crt"].encode())
    # Skip the validation of the key, which takes as long as generating one: the key was generated by this program.
    signing_key: Any = serialization.load_pem_private_key(
        bundle["ca.key"].encode(), None, unsafe_skip_rsa_key_validation=True
    )
    key = _shared_key(purpose.dotted_string)
    identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    usage = _key_usage(signs_certificates=False)
    not_before = now - CLOCK_SKEW if purpose == ExtendedKeyUsageOID.CLIENT_AUTH else min(NOT_BEFORE, now - CLOCK_SKEW)
    builder = (
        _certificate_builder(subject, authority.subject, key.public_key(), not_before, now + CERTIFICATE_VALIDITY)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    return Certificate(_certificate_pem(builder.sign(signing_key, hashes.SHA256())), _private_key_pem(key))


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_encipherment=True, key_cert_sign=signs_certificates, content_commitment=False,
        data_encipherment=False, key_agreement=False, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _certificate_builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: rsa.RSAPublicKey,
    not_before: datetime.datetime,
    not_after: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(not_before)
        .not_valid_after(not_after)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(KEY_EXPONENT, KEY_BITS)


@functools.cache
def _shared_key(use: str) -> rsa.RSAPrivateKey:
    """Return the key that all clusters of this process share for one use, because generating a key takes 50 ms.

    The key of the authority `ca`, by which clients recognize a cluster, is not shared.
    """
    return _new_key()


def _certificate_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _private_key_pem(key: rsa.RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()
