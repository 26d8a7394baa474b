"""Reads certificates' validity, and issues client certificates on the operator's machine.

The API server takes a client's name from the certificate's common name and its groups from the organisations
(https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates), so its
audit log shows who did what. Kubernetes has no certificate revocation: client certificates only end by expiring.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from cfngen.errors import CfngenError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.types import (
        CertificateIssuerPrivateKeyTypes,
        CertificateIssuerPublicKeyTypes,
        PrivateKeyTypes,
        PublicKeyTypes,
    )

ADMINISTRATORS_GROUP = "system:masters"
CLOCK_SKEW = timedelta(minutes=1)  # tolerated difference between the clocks of the operator and of the masters
MAX_NAME_LENGTH = 64  # ub-common-name and ub-organization-name of RFC 5280


class CertificateError(CfngenError):
    """A certificate or private key cannot be used."""

    code = "invalid-certificate"


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, both as PEM; in a bundle of certificates the key belongs to the first."""

    certificate: str
    private_key: str = field(repr=False)


@dataclass(frozen=True)
class Identity:
    """A Kubernetes user."""

    user: str
    groups: tuple[str, ...] = (ADMINISTRATORS_GROUP,)


@dataclass(frozen=True)
class Validity:
    """From when to when a certificate is valid."""

    begins: datetime
    ends: datetime


def certificate_validity(certificate: str) -> Validity:
    """Return from when to when a certificate is valid.

    Raises:
        CertificateError: the text is not a certificate.
    """
    return _validity(_load_certificate(certificate))


def is_matching_pair(pair: KeyPair) -> bool:
    """Return whether a private key belongs to its certificate.

    Raises:
        CertificateError: the certificate or the private key cannot be read.
    """
    certificate_public_key = _load_certificate(pair.certificate).public_key()
    public_key = _load_private_key(pair.private_key).public_key()
    return bool(_public_key_bytes(certificate_public_key) == _public_key_bytes(public_key))


def issue_client_certificate(authority: KeyPair, identity: Identity, *, now: datetime, duration: timedelta) -> KeyPair:
    """Issue a client certificate with a new private key.

    Raises:
        CertificateError: the authority expires before the client certificate, or cannot be read; or a name is too long.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    issuer = _load_certificate(authority.certificate)
    _ensure_issuable(_validity(issuer).ends, identity, now, duration)
    attributes = [
        *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in identity.groups),
        x509.NameAttribute(NameOID.COMMON_NAME, identity.user),
    ]
    client_key = ec.generate_private_key(ec.SECP256R1())
    key_usage = x509.KeyUsage(
        digital_signature=True, key_encipherment=False, key_cert_sign=False, content_commitment=False,
        data_encipherment=False, key_agreement=False, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate_builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(attributes))
        .issuer_name(issuer.subject)
        .public_key(client_key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + duration)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(_authority_key_identifier(issuer), critical=False)
    )
    signer = cast("CertificateIssuerPrivateKeyTypes", _load_private_key(authority.private_key))
    certificate, private_key = _sign(certificate_builder, client_key, signer=signer)
    return KeyPair(certificate, private_key)


def _ensure_issuable(authority_expiry: datetime, identity: Identity, now: datetime, duration: timedelta) -> None:
    if now + duration > authority_expiry:
        raise CertificateError(
            f"the cluster's certificate authority expires at {authority_expiry:%Y-%m-%d %H:%M} UTC, before the "
            "certificate would",
            hint="choose a shorter --duration."
            if authority_expiry > now
            else "renew the certificate authority of the cluster.",
        )
    for name in (identity.user, *identity.groups):
        if not 0 < len(name) <= MAX_NAME_LENGTH:
            raise CertificateError(
                f"{name!r} does not fit into a certificate: names of users and groups have 1 to {MAX_NAME_LENGTH} "
                "characters",
                hint="choose a shorter one.",
            )


def server_certificate_validity(host: str, port: int, *, timeout: float) -> Validity:
    """Return the validity of the certificate that a server presents.

    The certificate is not verified, so that an expired one can be read too. No data is sent to the server.

    Args:
        timeout: seconds.

    Raises:
        CertificateError: the server does not answer, or does not speak TLS.
    """
    from cryptography import x509

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout) as tcp_socket,
            context.wrap_socket(tcp_socket, server_hostname=host) as tls_socket,
        ):
            certificate = tls_socket.getpeercert(binary_form=True)
    except OSError as error:
        raise CertificateError(f"no TLS connection to {host}:{port}: {error}") from error
    if not certificate:
        raise CertificateError(f"{host}:{port} presents no certificate")
    return _validity(x509.load_der_x509_certificate(certificate))


def _load_certificate(pem: str) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem.encode())
    except ValueError as error:
        raise CertificateError(f"not a certificate in PEM form: {error}") from error


def _load_private_key(pem: str) -> PrivateKeyTypes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        return load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # `from None`: the library's error might quote the key.
        raise CertificateError("not a private key in PEM form, or one with a passphrase") from None


def _validity(certificate: x509.Certificate) -> Validity:
    return Validity(begins=certificate.not_valid_before_utc, ends=certificate.not_valid_after_utc)


def _public_key_bytes(key: PublicKeyTypes) -> bytes:
    """Return a public key in DER, in which equal keys are equal bytes."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _authority_key_identifier(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Return the AuthorityKeyIdentifier extension, from the issuer's SubjectKeyIdentifier or else its key's hash."""
    from cryptography import x509

    try:
        identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        key = cast("CertificateIssuerPublicKeyTypes", issuer.public_key())
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _sign(
    builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey, *, signer: CertificateIssuerPrivateKeyTypes
) -> tuple[str, str]:
    """Sign a certificate with the authority's key, `signer`; return it and its private key `key`, both PEM."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    certificate = builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    return certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
