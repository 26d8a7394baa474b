"""Snapshots in the sandbox: masters take them, answer requests, and find the objects of one again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from sandboxed import MASTERS, Place, place, said

from cfngen.cluster.load import parse
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.emulated_account import open_emulated_account
from cfngen.sandbox.services import checking_rules
from cfngen.sandbox.services.policy_simulation import role_decision

ETCD = "kubernetes/etcd/"


@pytest.fixture
def where() -> Iterator[Place]:
    with place() as made, checking_rules():
        assert made.create().status == "CREATE_COMPLETE"
        made.account.advance(60)
        yield made


def bucket(where: Place) -> str:
    name: str = where.instances(MASTERS)[0].boot_data.references["bucket"]
    return name


def s3(where: Place) -> Any:
    return client("s3", where.account.region)


def keys(where: Place, kind: str) -> list[str]:
    contents = s3(where).list_objects_v2(Bucket=bucket(where), Prefix=f"{ETCD}{kind}/").get("Contents", [])
    return [content["Key"] for content in contents]


def ask(where: Place, name: str, **content: str) -> None:
    s3(where).put_object(Bucket=bucket(where), Key=ETCD + name, Body=json.dumps(content).encode())


def replaced(where: Place) -> str:
    """Replace the master; return how the new one began."""
    [*_, old] = where.instances(MASTERS)
    client("ec2", where.account.region).terminate_instances(InstanceIds=[old.id])
    where.account.advance(1)
    where.account.advance(300)
    [*_, new] = where.instances(MASTERS)
    assert new.id != old.id
    return next(line for line in said(new) if "control plane: " in line)


def test_the_first_snapshot_comes_with_the_first_master(where: Place) -> None:
    assert len(keys(where, "hourly")) == 1
    assert len(keys(where, "daily")) == 1
    metadata = s3(where).head_object(Bucket=bucket(where), Key=keys(where, "hourly")[0])["Metadata"]
    assert metadata["instance"] == where.instances(MASTERS)[0].id
    assert len(metadata["sha256"]) == 64


def test_one_more_comes_with_each_interval(where: Place) -> None:
    for _ in range(4):
        where.account.advance(15 * 60)
    assert len(keys(where, "hourly")) == 5
    assert len(keys(where, "daily")) == 1
    where.account.advance(24 * 3600)
    assert len(keys(where, "daily")) == 2


def test_a_request_is_answered_once(where: Place) -> None:
    ask(where, "backup-request.json", id="wanted")
    for _ in range(3):
        where.account.advance(60)
    made = [s3(where).head_object(Bucket=bucket(where), Key=key)["Metadata"] for key in keys(where, "hourly")]
    assert [each["request"] for each in made].count("wanted") == 1


def test_no_snapshot_is_taken_while_no_master_runs(where: Place) -> None:
    where.account.machines.inject_hang(MASTERS, "volume")
    [master] = where.instances(MASTERS)
    client("ec2", where.account.region).terminate_instances(InstanceIds=[master.id])
    where.account.advance(1)
    before = keys(where, "hourly")
    where.account.advance(3600)
    assert keys(where, "hourly") == before


def test_a_new_master_restores_what_it_is_asked_to_and_only_once(where: Place) -> None:
    state = where.account.cluster("kubernetes").state
    [snapshot] = keys(where, "hourly")
    state.put("configmaps", {"metadata": {"name": "later"}})
    ask(where, "restore.json", id="one", snapshot=snapshot)
    assert f"restored {snapshot}" in replaced(where)
    assert state.get("configmaps", "later", "default") is None
    state.put("configmaps", {"metadata": {"name": "later still"}})
    assert "continued with the etcd data on the volume" in replaced(where)
    assert state.get("configmaps", "later still", "default") is not None


def test_versions_of_objects_only_grow(where: Place) -> None:
    state = where.account.cluster("kubernetes").state
    before = int(state.resource_version)
    [snapshot] = keys(where, "hourly")
    ask(where, "restore.json", id="one", snapshot=snapshot)
    replaced(where)
    assert int(state.resource_version) > before


READ, FAILS_IF_IT_EXISTS = {"s3:prefix": [ETCD]}, {"s3:if-none-match": ["*"]}


def test_a_thief_with_the_role_of_a_master_adds_and_reads_and_nothing_else(where: Place) -> None:
    roles = client("iam", where.account.region).list_roles()["Roles"]
    [role] = [each["Arn"] for each in roles if "MasterRole" in each["RoleName"]]
    name, [snapshot], [daily] = bucket(where), keys(where, "hourly"), keys(where, "daily")

    def allowed(action: str, key: str = "", context: dict[str, list[str]] | None = None) -> bool:
        arn = f"arn:aws:s3:::{name}/{key}" if key else f"arn:aws:s3:::{name}"
        return role_decision(where.account.region, role, f"s3:{action}", arn, context or {}) == "allowed"

    assert allowed("GetObject", snapshot)
    assert allowed("ListBucket", context=READ)
    for key in (snapshot, daily, f"{ETCD}hourly/new"):
        assert allowed("PutObject", key, FAILS_IF_IT_EXISTS)
        # Parts of a multipart upload have no such header either.
        assert not allowed("PutObject", key)
        for action in (
            "AbortMultipartUpload", "BypassGovernanceRetention", "DeleteObject", "DeleteObjectTagging",
            "DeleteObjectVersion", "GetObjectVersion", "PutObjectAcl", "PutObjectLegalHold", "PutObjectRetention",
            "PutObjectTagging", "ReplicateDelete", "RestoreObject",
        ):  # fmt: skip
            assert not allowed(action, key, FAILS_IF_IT_EXISTS), action
    for key in ("restore.json", "backup-request.json"):
        assert not allowed("PutObject", ETCD + key, FAILS_IF_IT_EXISTS)
        assert not allowed("DeleteObject", ETCD + key)
    for action in (
        "DeleteBucket", "DeleteBucketPolicy", "ListBucketVersions", "PutBucketObjectLockConfiguration",
        "PutBucketPolicy", "PutBucketVersioning", "PutLifecycleConfiguration", "PutReplicationConfiguration",
    ):  # fmt: skip
        assert not allowed(action, context=READ), action


def refused(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return str(caught.value.response["Error"]["Code"])


def test_the_bucket_lets_nobody_replace_a_snapshot_and_gives_back_what_was_deleted(where: Place) -> None:
    [snapshot] = keys(where, "hourly")
    put = {"Bucket": bucket(where), "Key": snapshot}
    before = s3(where).get_object(**put)["Body"].read()
    assert refused(s3(where).put_object, **put, Body=b"wrong", IfNoneMatch="*") == "PreconditionFailed"
    assert refused(s3(where).put_object, **put, Body=b"wrong") == "AccessDenied"
    assert refused(s3(where).copy_object, **put, CopySource={**put, "Key": keys(where, "daily")[0]}) == "AccessDenied"
    upload = {**put, "UploadId": s3(where).create_multipart_upload(**put)["UploadId"]}
    part = {"PartNumber": 1, "ETag": s3(where).upload_part(**upload, PartNumber=1, Body=b"wrong")["ETag"]}
    completion = {**upload, "MultipartUpload": {"Parts": [part]}}
    assert refused(s3(where).complete_multipart_upload, **completion) == "AccessDenied"
    assert s3(where).get_object(**put)["Body"].read() == before
    marker = s3(where).delete_object(**put)["VersionId"]
    assert keys(where, "hourly") == []
    s3(where).delete_object(**put, VersionId=marker)
    assert s3(where).get_object(**put)["Body"].read() == before


LOCK = {"etcd": {"backups": {"objectLock": {"mode": "governance", "days": 30}}}}


@pytest.fixture
def locked() -> Iterator[Place]:
    cluster = parse(LOCK)
    with open_emulated_account(cluster.region) as account, checking_rules():
        made = Place(account, cluster)
        assert made.create().status == "CREATE_COMPLETE"
        account.advance(60)
        yield made


def test_a_locked_snapshot_is_deleted_by_nobody_until_its_lock_ends(locked: Place) -> None:
    name = bucket(locked)
    versions = {
        kind: {"Bucket": name, "Key": key, "VersionId": s3(locked).head_object(Bucket=name, Key=key)["VersionId"]}
        for kind in ("hourly", "daily")
        for key in keys(locked, kind)
    }
    modes = [s3(locked).get_object_retention(**version)["Retention"]["Mode"] for version in versions.values()]
    assert modes == ["GOVERNANCE", "GOVERNANCE"]
    marker = s3(locked).delete_object(Bucket=name, Key=versions["daily"]["Key"])["VersionId"]
    assert refused(s3(locked).delete_object, **versions["daily"]) == "AccessDenied"
    s3(locked).delete_object(Bucket=name, Key=versions["daily"]["Key"], VersionId=marker)
    assert keys(locked, "daily")
    request = {"Bucket": name, "Key": f"{ETCD}restore.json"}
    version = s3(locked).put_object(**request, Body=b"{}")["VersionId"]
    s3(locked).delete_object(**request, VersionId=version)  # an operator's request is not locked
    locked.account.advance(8 * 24 * 3600)
    s3(locked).delete_object(**versions["hourly"])  # kept for seven days, and so locked for seven
    assert refused(s3(locked).delete_object, **versions["daily"]) == "AccessDenied"
    locked.account.advance(23 * 24 * 3600)
    s3(locked).delete_object(**versions["daily"])


def test_a_thief_with_the_role_of_a_master_cannot_lock_for_longer_than_the_cluster_file_says(locked: Place) -> None:
    roles = client("iam", locked.account.region).list_roles()["Roles"]
    [role] = [each["Arn"] for each in roles if "MasterRole" in each["RoleName"]]

    def allowed(action: str, key: str, mode: str = "GOVERNANCE", days: str = "30") -> bool:
        arn = f"arn:aws:s3:::{bucket(locked)}/{ETCD}{key}"
        context = {"s3:object-lock-mode": [mode], "s3:object-lock-remaining-retention-days": [days]}
        return role_decision(locked.account.region, role, f"s3:{action}", arn, context) == "allowed"

    assert allowed("PutObjectRetention", "hourly/new")
    assert not allowed("PutObjectRetention", "hourly/new", days="3650")
    assert not allowed("PutObjectRetention", "hourly/new", mode="COMPLIANCE")
    assert not allowed("PutObjectRetention", "restore.json")
    for action in ("BypassGovernanceRetention", "DeleteObjectVersion", "PutObjectLegalHold"):
        assert not allowed(action, "hourly/new"), action


def test_the_bucket_stays_when_the_stack_is_deleted(where: Place) -> None:
    name, before = bucket(where), keys(where, "hourly")
    where.account.cloud.delete_stack("k8s")
    where.account.advance(1800)
    assert [
        content["Key"] for content in s3(where).list_objects_v2(Bucket=name, Prefix=f"{ETCD}hourly/")["Contents"]
    ] == before
    policy = json.loads(s3(where).get_bucket_policy(Bucket=name)["Policy"])
    assert policy["Statement"][0]["Sid"] == "OnlyTls"
