"""Snapshots of a sandboxed cluster: its objects, put into its bucket as the masters' boot program does with etcd's.

They are taken when somebody looks, if one is due by then or asked for; so a long time that passes at once brings one.
Nothing expires. A master that boots with a request to restore finds the objects of the snapshot again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.kubernetes_state import KubernetesState

BACKUP_REQUEST, RESTORE_REQUEST = "backup-request.json", "restore.json"


class Backups:
    """The snapshots of one cluster.

    Args:
        region: of the bucket.
        cluster: name of the cluster.
        state: its objects.
    """

    def __init__(self, region: str, cluster: str, state: KubernetesState) -> None:
        self._region = region
        self._prefix = f"{cluster}/etcd/"
        self._state = state
        self._looked = self._next = 0  # minutes
        self._answered = ""
        self._restored = ""
        self._volumes: dict[str, str] = {}

    def look(self, bucket: str, interval: int, instance: str) -> None:
        """Take a snapshot if one is due or asked for.

        Args:
            bucket: the bucket.
            interval: minutes between snapshots.
            instance: the master of etcd's leader.
        """
        minute = int(self._state.now().timestamp() // 60)
        if minute == self._looked:
            return
        self._looked = minute
        try:
            asked = str(self._document(bucket, BACKUP_REQUEST).get("id", ""))
            if minute >= self._next or asked != self._answered:
                self._take(bucket, instance, asked)
                self._next, self._answered = (minute // interval + 1) * interval, asked
        except ClientError:
            return  # the timer comes by again

    def pending(self, bucket: str, volume: str) -> Mapping[str, Any]:
        """Return the request to restore that a master's volume has not seen yet; nothing if there is none."""
        request = self._document(bucket, RESTORE_REQUEST) if bucket else {}
        return request if request and self._volumes.get(volume) != request["id"] else {}

    def restore(self, bucket: str, volume: str, request: Mapping[str, Any]) -> None:
        """Put the objects of a snapshot in the place of those there are; the other masters only note it."""
        if self._restored != request["id"]:
            answer = client("s3", self._region).get_object(Bucket=bucket, Key=request["snapshot"])
            self._state.load(answer["Body"].read().decode())
            self._restored = request["id"]
        self._volumes[volume] = request["id"]

    def _take(self, bucket: str, instance: str, asked: str) -> None:
        s3, body = client("s3", self._region), self._state.dump().encode()
        moment = self._state.time().replace(":", "")
        metadata = {
            "instance": instance,
            "request": asked,
            "revision": self._state.resource_version,
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        names = [f"hourly/{moment}.db"]
        if not s3.list_objects_v2(Bucket=bucket, Prefix=f"{self._prefix}daily/{moment[:10]}").get("Contents"):
            names.append(f"daily/{moment}.db")
        for name in names:
            s3.put_object(Bucket=bucket, Key=self._prefix + name, Body=body, Metadata=metadata)

    def _document(self, bucket: str, name: str) -> dict[str, Any]:
        try:
            answer = client("s3", self._region).get_object(Bucket=bucket, Key=self._prefix + name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            return {}
        found: dict[str, Any] = json.loads(answer["Body"].read())
        return found
