"""Publishes the join information, which nodes need to join, in a secret that nodes may read.

The secret contains the API's name, the masters' addresses, the hash of the certificate authority, a bootstrap token for
a day, and the version of the oldest master: a node with a newer kubelet waits until the masters are updated.

The token is in a group of its own and not in kubeadm's. What a member may do is in the cluster's manifests; that
Kubernetes signs what its members request without a look at the name is not among it (see `csr_approval`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from typing import TYPE_CHECKING

from ..host.kubectl import kubectl
from ..machine import BootError, Machine
from . import upgrade
from .certificate_authorities import PKI
from .der import content_range

if TYPE_CHECKING:
    from ..contract import JoinInformation, MasterBoot

# Seconds for which a bootstrap token is valid: a day; a timer publishes a new one every six hours.
TOKEN_SECONDS = 24 * 3600
TIMER = "cfngen-join.timer"
# The group of who presents the token; the cluster's manifests bind roles to it. Its form is BootstrapGroupPattern of
# Kubernetes' cluster-bootstrap (token/api/types.go).
TOKEN_GROUP = "system:bootstrappers:cfngen:nodes"
# The group of kubeadm's tokens. Masters with an earlier release of this program publish such tokens until they are
# replaced, and those are valid for a day.
FORMER_TOKEN_GROUP = "system:bootstrappers:kubeadm:default-node-token"
# By this binding, which each run of kubeadm's phase bootstrap-token makes again, Kubernetes approves what members of
# that group request.
AUTOMATIC_APPROVAL = "kubeadm:node-autoapprove-bootstrap"


def publish(machine: Machine, boot: MasterBoot) -> str:
    """Create a bootstrap token, publish the join information, and start the timer that repeats this.

    Each time the automatic approval of what is requested with tokens is taken back, as a master of an earlier release
    may have booted since.
    """
    hint = "check that the API server is healthy"
    token, expires = machine.wait("a token", lambda: _create_token(machine), hint=hint, retry_on=BootError)
    oldest_version = machine.wait(
        "the masters' versions", lambda: upgrade.oldest_version(machine, boot), hint=hint, retry_on=BootError
    )
    information: JoinInformation = {
        "endpoint": boot.config["endpoint"],
        "addresses": [address for _, address in sorted(boot.config["masters"].items())],
        "kubernetesVersion": oldest_version,
        "caHash": ca_hash(machine.read(PKI + "ca.crt")),
        "token": token,
        "expires": expires,
    }
    arn = boot.facts["joinSecretArn"]
    machine.aws("secretsmanager", "put_secret_value", SecretId=arn, SecretString=json.dumps(information))
    machine.run("systemctl", "enable", "--now", TIMER)
    return f"nodes may join {boot.config['endpoint']} with a token until {expires}"


def _create_token(machine: Machine) -> tuple[str, str]:
    """Create a bootstrap token as a Secret, whose requests only this program approves.

    Returns:
        The token and the time at which it expires.
    """
    kubectl(machine, "delete", "clusterrolebinding", AUTOMATIC_APPROVAL, "--ignore-not-found")
    token_id, token_secret = _random_characters(6), _random_characters(16)
    expires = machine.time(TOKEN_SECONDS)
    token_object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": "bootstrap-token-" + token_id, "namespace": "kube-system"},
        "stringData": {
            "token-id": token_id,
            "token-secret": token_secret,
            "expiration": expires,
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
            "auth-extra-groups": TOKEN_GROUP,
        },
    }
    kubectl(machine, "create", "-f", "-", stdin=json.dumps(token_object))
    return f"{token_id}.{token_secret}", expires


def ca_hash(pem: str) -> str:
    """Return the hash of a certificate's public key in kubeadm's form: `sha256:` and hexadecimal digits.

    It is the SHA-256 of the certificate's SubjectPublicKeyInfo in DER.

    Args:
        pem: PEM text; its first certificate is used.
    """
    der = base64.b64decode(pem.partition("-----BEGIN CERTIFICATE-----")[2].partition("-----END")[0])
    # A certificate contains a TBSCertificate, whose fields are (RFC 5280, 4.1): version (optional, tag 0xA0),
    # serialNumber, signature, issuer, validity, subject, subjectPublicKeyInfo. All before the last one are skipped.
    tbs_certificate_start, _ = content_range(der, 0)
    field_start, _ = content_range(der, tbs_certificate_start)
    has_version = der[field_start] == 0xA0
    for _ in range(6 if has_version else 5):
        _, field_start = content_range(der, field_start)
    _, field_end = content_range(der, field_start)
    return "sha256:" + hashlib.sha256(der[field_start:field_end]).hexdigest()


def _random_characters(count: int) -> str:
    return "".join(secrets.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(count))
