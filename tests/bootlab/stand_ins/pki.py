"""Certificates, as kubeadm and the controller manager make them."""

import base64
import datetime
import hashlib
import ipaddress
import os

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


def write(path, data, mode=0o600):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def key():
    return ec.generate_private_key(ec.SECP256R1())


def pem(private):
    return private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_pem(private):
    return private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def key_set(path):
    """The JSON Web Key Set with the public key in a file (RFC 7517 and 7518)."""

    def encoded(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    with open(path, "rb") as file:
        public = serialization.load_pem_public_key(file.read())
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    numbers = public.public_numbers()
    point = {name: encoded(getattr(numbers, name).to_bytes(32, "big")) for name in ("x", "y")}
    identity = encoded(hashlib.sha256(der).digest())
    return {"keys": [{"use": "sig", "kty": "EC", "kid": identity, "crv": "P-256", "alg": "ES256", **point}]}


def load(path):
    """The certificate and the key of an authority: `path` without its suffixes."""
    with open(path + ".crt", "rb") as crt, open(path + ".key", "rb") as file:
        return x509.load_pem_x509_certificate(crt.read()), serialization.load_pem_private_key(file.read(), None)


def subject(name, groups=()):
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(name, public, issuer, days):
    now = datetime.datetime.utcnow()
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def authority(path, name):
    """Make an authority unless it is there, as kubeadm does."""
    if os.path.exists(path + ".crt") and os.path.exists(path + ".key"):
        return
    private = key()
    whole = subject(name)
    certificate = (
        _builder(whole, private.public_key(), whole, 3650)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
        .sign(private, hashes.SHA256())
    )
    write(path + ".key", pem(private))
    write(path + ".crt", certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def signed(by, name, public, usages, names=(), days=365, extensions=()):
    """The PEM of a certificate that the authority `by` (certificate, key) has signed."""
    issuer, private = by
    builder = _builder(name, public, issuer.subject, days).add_extension(
        x509.ExtendedKeyUsage(list(usages)), critical=False
    )
    alternatives = [_alternative(each) for each in dict.fromkeys(names)]
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    for each in extensions:
        builder = builder.add_extension(each.value, critical=each.critical)
    return builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _alternative(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def leaf(path, by, name, usages, groups=(), names=(), days=365):
    """Make a certificate and its key unless they are there: kubeadm keeps what it finds."""
    if os.path.exists(path + ".crt"):
        return
    private = key()
    write(path + ".key", pem(private))
    write(path + ".crt", signed(by, subject(name, groups), private.public_key(), usages, names, days), 0o644)


def request(name, groups, names=()):
    """A key and a certificate request, both PEM."""
    private = key()
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject(name, groups))
    if names:
        alternatives = x509.SubjectAlternativeName([_alternative(each) for each in names])
        builder = builder.add_extension(alternatives, critical=False)
    text = builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return pem(private), text
