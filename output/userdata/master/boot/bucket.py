"""Reads the cluster's objects in its bucket: snapshots of etcd, and an operator's requests to the masters.

All keys begin with `<cluster>/etcd/`, where a later cluster of the same name finds them. An object that may be missing
is listed before it is read: to a role that may list only one prefix, S3 answers 403 instead of 404 ("Permissions for
GetObject", Amazon S3 API Reference).
"""

from __future__ import annotations

import json
from typing import Any

from .machine import BootError, Machine


def key(config: dict[str, Any], name: str) -> str:
    """Return the key of an object, e.g. of `hourly/2026-09-01T120000Z.db`."""
    return f"{config['cluster']}/etcd/{name}"


def listed(machine: Machine, config: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return at most a thousand objects whose names begin with `prefix`, as S3 lists them (Key, ETag, Size).

    Raises:
        BootError: S3 denies access, or cannot be reached.
    """
    response = machine.aws("s3", "list_objects_v2", Bucket=config["facts"]["bucket"], Prefix=key(config, prefix))
    return list(response.get("Contents", []))


def document(machine: Machine, config: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a JSON document that an operator has put into the bucket; empty if there is none.

    Raises:
        BootError: it is no JSON object, S3 denies access, or S3 cannot be reached.
    """
    object_key = key(config, name)
    if object_key not in [listed_object["Key"] for listed_object in listed(machine, config, name)]:
        return {}
    url = f"s3://{config['facts']['bucket']}/{object_key}"
    response = machine.aws("s3", "get_object", Bucket=config["facts"]["bucket"], Key=object_key)
    try:
        text = response["Body"].read()
    except Exception as error:  # botocore raises various exceptions if a body ends early
        raise BootError(f"{url} could not be read to its end: {error}", "it is tried again by itself") from error
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise BootError(f"{url} is no JSON object", f"delete it: `aws s3 rm {url}`")
    return content
