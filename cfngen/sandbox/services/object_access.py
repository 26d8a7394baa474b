"""Who can read an object of a bucket without an identity of IAM: everybody, or CloudFront for a distribution.

Amazon S3 user guide, "How Amazon S3 authorizes a request" and "Blocking public access to your Amazon S3 storage";
Amazon CloudFront developer guide, "Restrict access to an Amazon S3 origin": CloudFront signs as the service principal
cloudfront.amazonaws.com, with the distribution's ARN as `aws:SourceArn`.
"""

from __future__ import annotations

from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.moto_types import MotoModel
from cfngen.sandbox.services import buckets, policy_documents
from cfngen.sandbox.services.policy_simulation import Context, decision

CLOUDFRONT_SERVICE = "cloudfront.amazonaws.com"
KMS = "aws:kms"


def read_by_everybody(region: str, bucket_name: str, key: str) -> bytes | None:
    """Return an object as anybody without credentials reads it over HTTPS; None if S3 refuses that."""
    bucket = _find_bucket(region, bucket_name)
    if bucket is None or buckets.blocks(bucket, "restrict_public_buckets", region):
        return None
    return _read(region, bucket, key, service="", context={"aws:securetransport": ["true"]})


def read_by_cloudfront(region: str, bucket_name: str, key: str, distribution_arn: str) -> bytes | None:
    """Return an object as CloudFront reads it with an origin access control; None if S3 refuses that."""
    bucket = _find_bucket(region, bucket_name)
    if bucket is None:
        return None
    context = {
        "aws:securetransport": ["true"],
        "aws:sourcearn": [distribution_arn],
        "aws:sourceaccount": [DEFAULT_ACCOUNT_ID],
    }
    return _read(region, bucket, key, service=CLOUDFRONT_SERVICE, context=context)


def _find_bucket(region: str, name: str) -> MotoModel | None:
    backend = get_backend("s3")[DEFAULT_ACCOUNT_ID][policy_documents.partition(region)]
    bucket: MotoModel | None = backend.buckets.get(name)
    return bucket


def _read(region: str, bucket: MotoModel, key: str, *, service: str, context: Context) -> bytes | None:
    """Return an object if the bucket's policy lets a service, or everybody, read it.

    An object that KMS encrypts needs a right to its key, which nobody has here: assumed of CloudFront, to which a key
    policy could give it.
    """
    item = bucket.keys.get(key)
    if item is None or not bucket.policy or str(item.encryption or "").startswith(KMS):
        return None
    document = policy_documents.parse(bucket.policy.decode())
    matching = [statement for statement in policy_documents.statements(document) if _names(statement, service)]
    arn = f"arn:{policy_documents.partition(region)}:s3:::{bucket.name}/{key}"
    if decision([{"Statement": matching}], "s3:GetObject", arn, context) != "allowed":
        return None
    content: bytes = item.value
    return content


def _names(statement: JsonObject, service: str) -> bool:
    """Return whether a statement is about a service, or about everybody."""
    principals = policy_documents.principals(statement)
    named = policy_documents.names_everybody(statement) or ("Service", service) in principals
    return named != ("NotPrincipal" in statement)
