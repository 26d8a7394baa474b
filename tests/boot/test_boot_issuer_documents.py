"""The documents by which AWS checks service-account tokens, from a master into the issuer's bucket."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from boots import boot_of
from botocore.exceptions import IncompleteReadError
from scripted_machine import ScriptedMachine, refusal

from cfngen.boot.machine import BootError
from cfngen.boot.master import issuer_documents

BUCKET, ISSUER = "issuer-bucket", "d111111abcdef8.cloudfront.net"
CONFIG: dict[str, Any] = {
    "endpoint": "api.kubernetes.internal:443",
    "facts": {"issuerBucket": BUCKET, "issuer": ISSUER, "privateAddress": "172.20.0.9"},
    "deadline": 10_000.0,
}
KEY = {"use": "sig", "kty": "RSA", "kid": "first", "alg": "RS256", "n": "AQAB", "e": "AQAB"}
OTHER_KEY = {"use": "sig", "kty": "EC", "kid": "second", "alg": "ES256", "crv": "P-256", "x": "AQ", "y": "AQ"}
KEYS, DISCOVERY = "openid/v1/jwks", ".well-known/openid-configuration"
OWN_KEYS = r"kubectl .* get --server=https://172\.20\.0\.9:443 --raw /openid/v1/jwks$"
TIMER = "systemctl enable --now cfngen-issuer.timer"


class Broken(io.BytesIO):
    """A body that ends early."""

    def read(self, size: int | None = -1) -> bytes:
        raise IncompleteReadError(actual_bytes=1, expected_bytes=2)


class Publisher(ScriptedMachine):
    """A master whose API server has keys, and a bucket, of which the role may read and write objects only."""

    def __init__(self) -> None:
        super().__init__()
        self.cloud["s3.get_object"] = self._get
        self.cloud["s3.put_object"] = self._put
        self.written: list[str] = []
        self.has_keys(KEY)

    def has_keys(self, *keys: dict[str, str]) -> None:
        self.on(OWN_KEYS, (0, json.dumps({"keys": keys}) + "\n"))

    def _get(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        assert Bucket == BUCKET
        if Key not in self.objects:
            return refusal("AccessDenied", "a role that may not list the bucket is not told that it is missing")
        return self._object(Bucket=Bucket, Key=Key)

    def _put(self, Bucket: str, Key: str, Body: bytes, ContentType: str) -> dict[str, Any]:  # noqa: N803
        assert (Bucket, ContentType) == (BUCKET, "application/json")
        self.objects[Key] = Body.decode()
        self.written.append(Key)
        return {}

    def document(self, key: str) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.objects[key])
        return document


def publisher(**facts: str) -> tuple[Publisher, Any]:
    return Publisher(), boot_of({**CONFIG, "facts": {**CONFIG["facts"], **facts}})


def test_both_documents_are_published_and_a_timer_repeats_it() -> None:
    machine, boot = publisher()
    assert issuer_documents.publish(machine, boot) == f"wrote {KEYS} and {DISCOVERY} into s3://{BUCKET}"
    assert machine.document(KEYS) == {"keys": [KEY]}
    assert machine.document(DISCOVERY) == {
        "issuer": f"https://{ISSUER}",
        "jwks_uri": f"https://{ISSUER}/{KEYS}",
        "authorization_endpoint": "urn:kubernetes:programmatic_authorization",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
        "claims_supported": ["sub", "iss"],
    }
    assert machine.commands[-1] == TIMER


def test_documents_that_are_there_are_not_written_again() -> None:
    machine, boot = publisher()
    issuer_documents.publish(machine, boot)
    machine.written.clear()
    assert issuer_documents.publish(machine, boot) == f"the documents of https://{ISSUER} are published already"
    assert issuer_documents.renew(machine, boot) == ""
    assert machine.written == []


@pytest.mark.parametrize("key", [KEYS, DISCOVERY])
def test_deleted_document_comes_back_alone(key: str) -> None:
    machine, boot = publisher()
    issuer_documents.publish(machine, boot)
    before = dict(machine.objects)
    del machine.objects[key]
    machine.written.clear()
    assert issuer_documents.renew(machine, boot) == f"wrote {key} into s3://{BUCKET}"
    assert machine.objects == before


def test_changed_keys_are_published_with_their_algorithms() -> None:
    machine, boot = publisher()
    issuer_documents.publish(machine, boot)
    machine.has_keys(OTHER_KEY, KEY)
    assert issuer_documents.renew(machine, boot) == f"wrote {KEYS} and {DISCOVERY} into s3://{BUCKET}"
    assert machine.document(KEYS) == {"keys": [OTHER_KEY, KEY]}
    assert machine.document(DISCOVERY)["id_token_signing_alg_values_supported"] == ["ES256", "RS256"]


def test_documents_of_a_url_with_a_path_are_below_it() -> None:
    machine, boot = publisher(issuer="tokens.example.com/clusters/one")
    issuer_documents.publish(machine, boot)
    assert set(machine.objects) == {f"clusters/one/{KEYS}", f"clusters/one/{DISCOVERY}"}
    assert (
        machine.document(f"clusters/one/{DISCOVERY}")["jwks_uri"] == f"https://tokens.example.com/clusters/one/{KEYS}"
    )


def test_body_that_ends_early_is_written_again() -> None:
    machine, boot = publisher()
    issuer_documents.publish(machine, boot)
    machine.written.clear()

    def break_off(Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        return {"Body": Broken()}

    machine.cloud["s3.get_object"] = break_off
    issuer_documents.renew(machine, boot)
    assert machine.written == [KEYS, DISCOVERY]


def test_boot_waits_for_a_role_that_is_not_known_everywhere_yet() -> None:
    machine, boot = publisher()
    put, refusals = machine.cloud["s3.put_object"], iter([refusal("AccessDenied")] * 30)
    machine.cloud["s3.put_object"] = lambda **arguments: next(refusals, None) or put(**arguments)
    assert issuer_documents.publish(machine, boot) == f"wrote {KEYS} and {DISCOVERY} into s3://{BUCKET}"


def test_refused_document_is_named_with_what_must_be_allowed() -> None:
    machine, boot = publisher()
    machine.cloud["s3.put_object"] = lambda **_: refusal("AccessDenied", "not authorized to perform: s3:PutObject")
    with pytest.raises(BootError, match=f"s3://{BUCKET}/{KEYS}, .*not authorized to perform: s3:PutObject") as caught:
        issuer_documents.publish(machine, boot)
    assert "s3:GetObject and s3:PutObject" in caught.value.hint
    assert TIMER not in machine.commands


def test_missing_bucket_is_an_error() -> None:
    machine, boot = publisher()
    machine.cloud["s3.get_object"] = lambda **_: refusal("NoSuchBucket", "The specified bucket does not exist")
    with pytest.raises(BootError, match="The specified bucket does not exist") as caught:
        issuer_documents.renew(machine, boot)
    assert caught.value.hint.startswith("check that the bucket exists")


@pytest.mark.parametrize("answer", ["", "not found", "[]", '{"keys": []}'])
def test_api_server_without_keys_is_an_error_and_nothing_is_written(answer: str) -> None:
    machine, boot = publisher()
    machine.on(OWN_KEYS, (0, answer))
    with pytest.raises(BootError, match="is no set of public keys") as caught:
        issuer_documents.renew(machine, boot)
    assert "--service-account-key-file" in caught.value.hint
    assert machine.written == []
