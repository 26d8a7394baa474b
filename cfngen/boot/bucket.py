"""What the cluster keeps in its bucket: etcd's snapshots, and what an operator asks of the masters.

Everything lies under `<cluster>/etcd/`, where a cluster of the same name finds it again. What may not be there is
listed before it is read: a role that may list one prefix only is told 403 and not 404 of an object that is missing
("Permissions for GetObject", Amazon S3 API Reference).
"""

from __future__ import annotations

import json
from typing import Any

from .machine import BootError, Machine


def key(config: dict[str, Any], name: str) -> str:
    """Return the key of an object, e.g. of `hourly/2026-09-01T120000Z.db`."""
    return f"{config['cluster']}/etcd/{name}"


def listed(machine: Machine, config: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the objects whose names begin with `name`, at most a thousand, as S3 lists them (Key, ETag, Size).

    Raises:
        BootError: S3 refuses, or cannot be reached.
    """
    response = machine.aws("s3", "list_objects_v2", Bucket=config["facts"]["bucket"], Prefix=key(config, prefix))
    return list(response.get("Contents", []))


def document(machine: Machine, config: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a JSON object that an operator has put into the bucket, or nothing if there is none.

    Raises:
        BootError: it is no JSON object, S3 refuses, or it cannot be reached.
    """
    object_key = key(config, name)
    if object_key not in [listed_object["Key"] for listed_object in listed(machine, config, name)]:
        return {}
    url = f"s3://{config['facts']['bucket']}/{object_key}"
    response = machine.aws("s3", "get_object", Bucket=config["facts"]["bucket"], Key=object_key)
    try:
        text = response["Body"].read()
    except Exception as error:  # botocore has errors of its own for each way in which a body ends early
        raise BootError(f"{url} could not be read to its end: {error}", "it is tried again by itself") from error
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise BootError(f"{url} is no JSON object", f"delete it: `aws s3 rm {url}`")
    return content
