"""Uploads and downloads large files to and from S3, each completely or not at all."""

from __future__ import annotations

import base64
import io
from importlib import import_module

from ..machine import BootError, Machine, Pending

# The first version of botocore, as (major, minor), that supports S3's checksums; it came with boto3 1.24. No checksum
# is passed to older versions, e.g. that of boto3 1.23 in Ubuntu 22.04: these send an MD5 digest by themselves.
BOTOCORE_WITH_CHECKSUMS = (1, 27)


def upload(
    machine: Machine, bucket: str, key: str, path: str, metadata: dict[str, str], retention: dict[str, str]
) -> None:
    """Upload a file to S3 as a new object, and check what is there then.

    An object that exists is not replaced. If it has the file's digest, an earlier attempt has uploaded it whose answer
    was lost, and nothing is missing. S3 rejects an upload that is damaged on its way.

    Args:
        metadata: the object's metadata, to which the file's SHA-256 is added as `sha256`.
        retention: mode and end of the object's lock, as parameters of `put_object`; empty for no lock.

    Raises:
        BootError: another object has this key, S3 denies the upload, or it cannot be reached.
    """
    digest = machine.sha256(path)
    # botocore is imported here, not at the top, as a boot may have to install it first.
    botocore_version = tuple(int(number) for number in import_module("botocore").__version__.split(".")[:2])
    checksum = {}
    if botocore_version >= BOTOCORE_WITH_CHECKSUMS:
        # S3 asks for the algorithm, too, where the object is locked ("PutObject", Amazon S3 API Reference).
        checksum["ChecksumAlgorithm"] = "SHA256"
        checksum["ChecksumSHA256"] = base64.b64encode(bytes.fromhex(digest)).decode()
    with machine.open(path) as file:
        machine.aws(
            "s3",
            "put_object",
            "PreconditionFailed",
            headers={"If-None-Match": "*"},
            Bucket=bucket,
            Key=key,
            Body=file,
            Metadata={**metadata, "sha256": digest},
            **checksum,
            **retention,
        )
        size = file.seek(0, io.SEEK_END)
    response = machine.aws("s3", "head_object", Bucket=bucket, Key=key)
    if response["ContentLength"] != size or response["Metadata"].get("sha256") != digest:
        raise BootError(
            f"s3://{bucket}/{key} differs from the uploaded file ({response['ContentLength']} of {size} bytes)",
            "check who else writes to the bucket",
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
