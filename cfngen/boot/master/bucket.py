"""Reads the cluster's objects in its bucket: snapshots of etcd, and an operator's requests to the masters.

All keys start with `<cluster>/etcd/`, so that a later cluster of the same name finds the snapshots. An object that may
be missing is listed before it is read: for a missing object S3 answers 403 instead of 404 if the role may list only one
prefix ("Permissions for GetObject", Amazon S3 API Reference).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..machine import BootError, Machine

if TYPE_CHECKING:
    from ..contract import JsonObject, MasterBoot


def key(boot: MasterBoot, name: str) -> str:
    """Return the key in the bucket of the cluster's object with this name, e.g. `hourly/2026-09-01T120000Z.db`."""
    return f"{boot.config['cluster']}/etcd/{name}"


def list_objects(machine: Machine, boot: MasterBoot, prefix: str) -> list[JsonObject]:
    """Return at most a thousand objects whose names begin with `prefix`, as S3 lists them (Key, ETag, Size)."""
    response = machine.aws("s3", "list_objects_v2", Bucket=boot.facts["bucket"], Prefix=key(boot, prefix))
    return list(response.get("Contents", []))


def read_document(machine: Machine, boot: MasterBoot, name: str) -> JsonObject:
    """Return a JSON document that an operator has uploaded to the bucket; an empty object if there is none.

    Raises:
        BootError: the document is not a JSON object, S3 denies access, or S3 cannot be reached.
    """
    object_key = key(boot, name)
    if object_key not in [listed_object["Key"] for listed_object in list_objects(machine, boot, name)]:
        return {}
    url = f"s3://{boot.facts['bucket']}/{object_key}"
    response = machine.aws("s3", "get_object", Bucket=boot.facts["bucket"], Key=object_key)
    try:
        text = response["Body"].read()
    except Exception as error:  # botocore raises various exceptions if a body ends early
        raise BootError(f"{url} could not be read completely: {error}", "it is retried automatically") from error
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise BootError(f"{url} is not a JSON object", f"delete it: `aws s3 rm {url}`")
    return content
