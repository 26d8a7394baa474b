"""Snapshots in the sandbox: masters take them, answer requests, and find the objects of one again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sandboxed import MASTERS, Place, place, said

from cfngen.sandbox.cloudformation import client

ETCD = "kubernetes/etcd/"


@pytest.fixture
def where() -> Iterator[Place]:
    with place() as made:
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


def test_the_bucket_stays_when_the_stack_is_deleted(where: Place) -> None:
    name, before = bucket(where), keys(where, "hourly")
    where.account.cloud.delete_stack("k8s")
    where.account.advance(1800)
    assert [
        content["Key"] for content in s3(where).list_objects_v2(Bucket=name, Prefix=f"{ETCD}hourly/")["Contents"]
    ] == before
    policy = json.loads(s3(where).get_bucket_policy(Bucket=name)["Policy"])
    assert policy["Statement"][0]["Sid"] == "OnlyTls"
