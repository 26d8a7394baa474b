"""Templates and stack policies in S3: a call names their location instead of sending them."""

from __future__ import annotations

import urllib.parse

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.cloudformation.handlers.handler import client

MAX_OBJECT_BYTES = 1_048_576


def fetch_from_s3(region: str, url: str) -> str:
    """Return the document (a template or a stack policy) at a virtual-hosted S3 URL.

    Args:
        region: the region of the call; the bucket may be named with it or without a region
        url: such as `https://bucket.s3.eu-central-1.amazonaws.com/cluster.json`

    Raises:
        ValidationError: it is no such URL, or S3 does not return the object, or the template is too large
    """
    parts = urllib.parse.urlsplit(url)
    bucket, _, host = parts.netloc.partition(".s3.")
    if parts.scheme != "https" or host not in (f"{region}.amazonaws.com", "amazonaws.com"):
        raise ValidationError(f"TemplateURL must be a supported URL. ({url})")
    try:
        key = urllib.parse.unquote(parts.path.lstrip("/"))
        data: bytes = client("s3", region).get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError as error:
        raise ValidationError(f"S3 error: {error} ({url})") from error
    if len(data) > MAX_OBJECT_BYTES:
        raise ValidationError(f"Template may not exceed {MAX_OBJECT_BYTES} bytes in size.")
    return data.decode()
