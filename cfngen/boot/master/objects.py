"""Uploads and downloads large files to and from S3, each completely or not at all."""

from __future__ import annotations

import base64
from importlib import import_module

from ..machine import BootError, Machine, Pending

# The first version of botocore, as (major, minor), that supports S3's checksums; it came with boto3 1.24. No checksum
# is passed to older versions, e.g. that of boto3 1.23 in Ubuntu 22.04: these send an MD5 digest by themselves.
BOTOCORE_WITH_CHECKSUMS = (1, 27)


def upload(machine: Machine, bucket: str, key: str, path: str, metadata: dict[str, str]) -> None:
    """Upload a file to S3 with a checksum, so that S3 rejects a damaged upload.

    Args:
        metadata: the object's metadata, to which the file's SHA-256 is added as `sha256`.
    """
    digest = machine.sha256(path)
    # botocore is imported here, not at the top, as a boot may have to install it first.
    botocore_version = tuple(int(number) for number in import_module("botocore").__version__.split(".")[:2])
    checksum = {}
    if botocore_version >= BOTOCORE_WITH_CHECKSUMS:
        checksum["ChecksumSHA256"] = base64.b64encode(bytes.fromhex(digest)).decode()
    with machine.open(path) as file:
        machine.aws(
            "s3",
            "put_object",
            Bucket=bucket,
            Key=key,
            Body=file,
            Metadata={**metadata, "sha256": digest},
            **checksum,
        )


def download(machine: Machine, bucket: str, key: str, path: str) -> dict[str, str]:
    """Download an object from S3 to a file that only root may read; `path` exists only once it is complete.

    Returns:
        The object's metadata.

    Raises:
        BootError: the object does not exist, its digest differs from its metadata `sha256`, or S3 cannot be reached.
    """
    read_error = import_module("botocore.exceptions").BotoCoreError
    url = f"s3://{bucket}/{key}"

    def probe() -> dict[str, str]:
        response = machine.aws("s3", "get_object", Bucket=bucket, Key=key)
        metadata = dict(response.get("Metadata", {}))
        try:
            machine.receive(response["Body"], path, metadata.get("sha256", ""), url, 0o600)
        except read_error as error:
            raise Pending(str(error)) from error
        except BootError as error:
            raise BootError(str(error), "take another snapshot") from error
        return metadata

    return machine.wait(url, probe, "check that the instance can reach S3", seconds=300)
