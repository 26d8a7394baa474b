"""Finds what keeps AWS STS from accepting service-account tokens: a missing OIDC provider, missing or wrong documents.

The documents are read from their bucket, as masters write them. Whether AWS can read them at the issuer's URL is not
tried: the caller's way there is not that of STS. What the caller may not read has no problem.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cfngen.cluster.iam.service_accounts import AUDIENCE, KEYS_KEY, document_keys, masters_publish_documents
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import aws_partition
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.inspection.cluster_problems import Problem
from cfngen.deploy.stacks import StackView
from cfngen.hints import CommandText, suggest
from cfngen.templates.issuer import BUCKET_OUTPUT, ISSUER_OUTPUT

_AREA = "issuer"
_NO_PROVIDER = "NoSuchEntity"  # GetOpenIDConnectProvider, IAM API Reference
_NO_OBJECT = frozenset({"NoSuchKey", "NoSuchBucket", "404"})  # GetObject, Amazon S3 API Reference
_HINT = (
    "masters write the documents when they boot, and every hour; `journalctl -u cfngen-issuer` on a master says why "
    "they could not"
)


def find_issuer_problems(account: Account, cluster: Cluster, stack: StackView) -> tuple[Problem, ...]:
    """Return the problems of the issuer of a cluster's tokens; none if the cluster has no issuer yet.

    Args:
        account: the AWS account.
        cluster: the cluster file.
        stack: the root stack, whose outputs name the issuer and the bucket.
    """
    name = stack.outputs.get(ISSUER_OUTPUT, "")
    issuer = cluster.service_account_issuer
    if issuer is None or not name:
        return ()
    problems = [*_find_provider_problems(account, name)]
    bucket = stack.outputs.get(BUCKET_OUTPUT, "")
    if bucket and masters_publish_documents(cluster):
        problems += _find_document_problems(account, name, bucket, document_keys(issuer))
    return tuple(problems)


def _find_provider_problems(account: Account, name: str) -> Iterator[Problem]:
    """Yield a problem if IAM has no OIDC provider for the issuer, or not for the audience of pods' tokens."""
    arn = f"arn:{aws_partition(account.region)}:iam::{account.id}:oidc-provider/{name}"
    hint = CommandText(suggest("status", "--drift"), " shows what else of the stacks is missing.")
    try:
        with translate_aws_errors():
            provider = account.client("iam").get_open_id_connect_provider(OpenIDConnectProviderArn=arn)
    except AwsError as error:
        if error.aws_code == _NO_PROVIDER:
            yield Problem(_AREA, name, "has no OIDC provider in IAM, so AWS STS refuses the tokens of pods", hint=hint)
        return
    if AUDIENCE not in provider.get("ClientIDList", ()):
        text = f"has an OIDC provider that does not accept the audience {AUDIENCE} of pods' tokens"
        yield Problem(_AREA, name, text, hint=hint)


def _find_document_problems(account: Account, name: str, bucket: str, keys: tuple[str, str]) -> Iterator[Problem]:
    """Yield a problem for each of the two documents that is missing, or that STS would not understand.

    Args:
        account: the AWS account.
        name: the issuer, without `https://`.
        bucket: the bucket with the documents.
        keys: keys of the discovery document and of that with the public keys.
    """
    expected_urls = {"issuer": f"https://{name}", "jwks_uri": f"https://{name}/{KEYS_KEY}"}
    for key in keys:
        try:
            with translate_aws_errors():
                body = account.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        except AwsError as error:
            if error.aws_code in _NO_OBJECT:
                text = f"has no document {key} in the bucket {bucket}, so AWS STS cannot check the tokens of pods"
                yield Problem(_AREA, name, text, hint=_HINT)
            continue
        document = _parse(body)
        is_right = (
            all(document.get(claim) == url for claim, url in expected_urls.items())
            if key == keys[0]
            else bool(document.get("keys"))
        )
        if not is_right:
            text = f"has a document {key} in the bucket {bucket} that is not that of this issuer"
            yield Problem(_AREA, name, text, hint=_HINT)


def _parse(body: bytes) -> dict[str, Any]:
    """Return a document of JSON; empty if it is something else."""
    try:
        document = json.loads(body)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
