"""Publishes the documents by which AWS checks service-account tokens: who the issuer is, and its public keys.

They are written into the issuer's bucket, from which AWS reads them at the issuer's URL. Every master writes the same
documents, since all have the same key for service accounts. A timer repeats this, so that a document comes back after
somebody has deleted it, and new keys are published.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..host.kubectl import kubectl, local_server_option
from ..machine import BootError, Machine

if TYPE_CHECKING:
    from ..contract import JsonObject, MasterBoot

KEYS_PATH = "openid/v1/jwks"
# Path of the discovery document below the issuer's URL (OpenID Connect Discovery 1.0, section 4).
DISCOVERY_PATH = ".well-known/openid-configuration"
TIMER = "cfngen-issuer.timer"
PUBLISH_SECONDS = 300
HINT = (
    "check that the bucket exists, that the instance can reach S3, and that the masters' role and the bucket's policy "
    "allow s3:GetObject and s3:PutObject"
)
# Errors of S3 for an object that does not exist: without permission to list the bucket, it answers the second one
# ("Permissions for GetObject", Amazon S3 API Reference).
MISSING = ("NoSuchKey", "AccessDenied")


def publish(machine: Machine, boot: MasterBoot) -> str:
    """Write the documents that differ from those in the bucket, and start the timer that repeats this."""
    outcome = machine.wait(
        "the issuer's documents",
        lambda: renew(machine, boot),
        hint="check that the API server is healthy",
        seconds=PUBLISH_SECONDS,
        retry_on=BootError,
    )
    machine.run("systemctl", "enable", "--now", TIMER)
    return outcome or f"the documents of https://{boot.facts['issuer']} are published already"


def renew(machine: Machine, boot: MasterBoot) -> str:
    """Write the documents that differ from those in the bucket.

    Returns:
        What was written, for the log; "" if nothing differed.
    """
    bucket, issuer = boot.facts["issuerBucket"], boot.facts["issuer"]
    keys = _public_keys(machine, boot)
    # The keys first: whoever reads the discovery document finds them.
    documents = {KEYS_PATH: keys, DISCOVERY_PATH: json.dumps(_discovery(issuer, json.loads(keys)), indent=1)}
    # The documents are below the path of the issuer's URL, if that has one.
    folder = issuer.partition("/")[2]
    written = []
    for path, text in documents.items():
        key = f"{folder}/{path}".lstrip("/")
        try:
            if _write_if_different(machine, bucket, key, text):
                written.append(key)
        except BootError as error:
            raise BootError(
                f"s3://{bucket}/{key}, a document of the issuer of service-account tokens: {error}",
                HINT,
            ) from error
    return f"wrote {' and '.join(written)} into s3://{bucket}" if written else ""


def _public_keys(machine: Machine, boot: MasterBoot) -> str:
    """Return the document with the public keys, as this master's API server makes it."""
    text = kubectl(machine, "get", local_server_option(boot), "--raw", f"/{KEYS_PATH}")[1].strip()
    try:
        has_keys = bool(json.loads(text)["keys"])
    except (ValueError, KeyError, TypeError):
        has_keys = False
    if not has_keys:
        raise BootError(
            f"the API server's /{KEYS_PATH} is no set of public keys: {text[:200] or 'it is empty'}",
            "check --service-account-issuer and --service-account-key-file in "
            "/etc/kubernetes/manifests/kube-apiserver.yaml",
        )
    return text


def _discovery(issuer: str, keys: JsonObject) -> JsonObject:
    """Return the discovery document of an issuer.

    The API server makes one only for the issuer that it signs tokens with, which may still be another one. This one has
    the fields of the API server's (KEP-1393), and those with which AWS's guide for its webhook publishes an issuer.

    Args:
        issuer: the issuer's URL without `https://`.
        keys: the document with its public keys.
    """
    return {
        "issuer": f"https://{issuer}",
        "jwks_uri": f"https://{issuer}/{KEYS_PATH}",
        "authorization_endpoint": "urn:kubernetes:programmatic_authorization",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": sorted({key["alg"] for key in keys["keys"]}),
        "claims_supported": ["sub", "iss"],
    }


def _write_if_different(machine: Machine, bucket: str, key: str, text: str) -> bool:
    """Write a document into the bucket unless it is there; return whether it was written."""
    response = machine.aws("s3", "get_object", *MISSING, Bucket=bucket, Key=key)
    if "Error" not in response:
        try:
            present = response["Body"].read()
        except Exception:  # noqa: BLE001 - botocore raises various exceptions if a body ends early; it is written again
            present = b""
        if present == text.encode():
            return False
    machine.aws("s3", "put_object", Bucket=bucket, Key=key, Body=text.encode(), ContentType="application/json")
    return True
