"""Snapshots of a sandboxed cluster: its Kubernetes objects, stored in its bucket as real masters store etcd snapshots.

A snapshot is taken if one is due or requested when the cluster's state is refreshed. If several became due since the
last refresh, only one is taken. Snapshots do not expire. A master that finds a restore request in the bucket while it
boots loads the objects of the requested snapshot.
"""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.kubernetes.state import KubernetesState
from cfngen.sandbox.untyped import JsonDict, JsonObject

BACKUP_REQUEST, RESTORE_REQUEST = "backup-request.json", "restore.json"  # names of documents in the bucket


class Backups:
    """The snapshots of one cluster."""

    def __init__(self, region: str, cluster: str, state: KubernetesState) -> None:
        self._region = region
        self._prefix = f"{cluster}/etcd/"
        self._state = state
        # In minutes since the epoch: when a snapshot was last considered, and when the next one is due.
        self._last_minute = self._next_minute = 0
        self._answered_request = ""  # id of the last backup request that was carried out
        self._restored_request = ""  # id of the last restore request that was carried out
        self._restored_volumes: dict[str, str] = {}  # by volume: id of the restore request that was applied to it

    def take_due_snapshot(self, bucket: str, schedule: JsonObject, instance_id: str) -> None:
        """Take a snapshot if one is due or requested; do nothing if called again within a simulated minute.

        Args:
            schedule: the masters' configuration: minutes between snapshots (`interval`), and their `lock`, if any.
            instance_id: id of the master on which etcd's leader runs.
        """
        minute = int(self._state.now().timestamp() // 60)
        if minute == self._last_minute:
            return
        self._last_minute = minute
        try:
            request_id = str(self._read_document(bucket, BACKUP_REQUEST).get("id", ""))
            if minute >= self._next_minute or request_id != self._answered_request:
                self._take_snapshot(bucket, instance_id, request_id, schedule.get("lock", {}))
                self._next_minute = (minute // schedule["interval"] + 1) * schedule["interval"]
                self._answered_request = request_id
        except ClientError:
            return  # the next refresh retries it

    def pending_restore(self, bucket: str, volume: str) -> JsonObject:
        """Return the bucket's restore request if it has not been applied to a master's volume yet; empty otherwise."""
        request = self._read_document(bucket, RESTORE_REQUEST) if bucket else {}
        is_pending = bool(request) and self._restored_volumes.get(volume) != request["id"]
        return request if is_pending else {}

    def restore(self, bucket: str, volume: str, request: JsonObject) -> None:
        """Apply a restore request to a master's volume.

        The first master replaces all objects of the cluster by those of the snapshot; for the others, the request is
        only recorded as applied.

        Args:
            request: the restore request, with its `id` and the key of the `snapshot` in the bucket.
        """
        if self._restored_request != request["id"]:
            response = client("s3", self._region).get_object(Bucket=bucket, Key=request["snapshot"])
            self._state.load(response["Body"].read().decode())
            self._restored_request = request["id"]
        self._restored_volumes[volume] = request["id"]

    def _take_snapshot(self, bucket: str, instance_id: str, request_id: str, lock: JsonObject) -> None:
        """Put the cluster's objects into the bucket as an hourly snapshot; the first of a day is also a daily one."""
        s3, body = client("s3", self._region), self._state.dump().encode()
        timestamp = self._state.time().replace(":", "")
        metadata = {
            "instance": instance_id,
            "request": request_id,
            "revision": self._state.resource_version,
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        periods = ["hourly"]
        if not s3.list_objects_v2(Bucket=bucket, Prefix=f"{self._prefix}daily/{timestamp[:10]}").get("Contents"):
            periods.append("daily")
        for period in periods:
            retention: JsonDict = {}
            if lock:
                until = self._state.now() + timedelta(days=lock["days"][period])
                retention = {"ObjectLockMode": lock["mode"], "ObjectLockRetainUntilDate": until}
            key = f"{self._prefix}{period}/{timestamp}.db"
            s3.put_object(Bucket=bucket, Key=key, Body=body, Metadata=metadata, IfNoneMatch="*", **retention)

    def _read_document(self, bucket: str, name: str) -> JsonDict:
        """Return a JSON document of the bucket; empty if it does not exist."""
        try:
            response = client("s3", self._region).get_object(Bucket=bucket, Key=self._prefix + name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            return {}
        document: JsonDict = json.loads(response["Body"].read())
        return document
