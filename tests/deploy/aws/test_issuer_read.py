"""What is read of an issuer of tokens: its OIDC provider and its documents, and what is not known of them."""

from __future__ import annotations

import io
from typing import Any

import pytest
from answers import Answers
from recorded import RefusedError

from cfngen.deploy.aws.issuer import IssuerView, read_issuer

NAME, BUCKET, KEY = "tokens.example.com", "tokens", "openid/v1/jwks"


def read(provider: Any, document: Any) -> IssuerView:
    aws = Answers({"iam:GetOpenIDConnectProvider": provider, "s3:GetObject": document})
    return read_issuer(aws.account, NAME, BUCKET, [KEY])


@pytest.mark.parametrize(
    ("body", "content"), [(b'{"keys": []}', {"keys": []}), (b"[]", {}), (b"<html>", {})], ids=["object", "list", "none"]
)
def test_audiences_and_documents_are_read(body: bytes, content: dict[str, Any]) -> None:
    view = read({"ClientIDList": ["sts.amazonaws.com"]}, lambda _: {"Body": io.BytesIO(body)})
    assert view == IssuerView(NAME, BUCKET, True, ("sts.amazonaws.com",), {KEY: content})


@pytest.mark.parametrize("code", ["NoSuchKey", "NoSuchBucket", "404"])
def test_a_document_that_does_not_exist_is_missing(code: str) -> None:
    assert read({}, RefusedError(code, status=404)).documents == {KEY: None}


def test_a_document_that_may_not_be_read_is_left_out() -> None:
    assert read({}, RefusedError("AccessDenied", status=403)).documents == {}


@pytest.mark.parametrize(("code", "has_provider"), [("NoSuchEntity", False), ("AccessDenied", True)])
def test_only_a_provider_that_iam_does_not_find_is_missing(code: str, has_provider: bool) -> None:
    view = read(RefusedError(code), RefusedError("NoSuchKey"))
    assert (view.has_provider, view.audiences) == (has_provider, None)
