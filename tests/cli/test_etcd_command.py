"""`cfngen etcd`: snapshots listed, taken and restored from the command line."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest
from deployed_cluster import Command, Place

from cfngen.cli.render import etcd as render
from cfngen.cli.render.status import status_lines
from cfngen.deploy.aws.snapshots import Snapshot, Snapshots
from cfngen.deploy.operations.etcd.restore import RestorePlan
from cfngen.deploy.status.derived_status import read_status


@pytest.fixture(autouse=True)
def backed_up(where: Place) -> None:
    """A snapshot is there."""
    where.clock.sleep(60)


def test_list_shows_the_newest_first_with_age_size_and_key(run: Command, where: Place) -> None:
    where.clock.sleep(16 * 60)
    ran = run("etcd", "list")
    assert (ran.code, ran.err) == (0, "")
    header, newest, *_ = ran.out.splitlines()
    assert header.split() == ["TIME", "AGE", "SIZE", "KIND", "KEY"]
    assert re.search(
        r"^ +2026-\d\d-\d\d [\d:]{8} UTC +\d+[ms] +\d+\.\d KiB +hourly +kubernetes/etcd/hourly/2026-",
        newest,
    )
    assert re.search(r"^\d+ snapshots, \d+\.\d KiB, in the bucket k8s-secretsstack-", ran.out, re.MULTILINE)


def test_list_for_a_program(run: Command) -> None:
    printed = json.loads(run("etcd", "list", "-o", "json").out)
    assert (printed["type"], printed["cluster"], printed["prefix"]) == (
        "etcdSnapshots",
        "kubernetes",
        "kubernetes/etcd/",
    )
    assert set(printed["snapshots"][0]) == {"key", "period", "time", "size", "age"}
    assert printed["restoring"] == ""


def test_without_a_stack_the_way_to_old_snapshots_is_told(run: Command) -> None:
    ran = run("etcd", "list", stack="nothing")
    assert ran.code == 1
    assert "there is no stack nothing that would name the bucket of etcd's snapshots" in ran.err
    assert "--set etcd.backups.bucket=NAME" in ran.err


def test_backup_says_where_the_snapshot_lies(run: Command) -> None:
    ran = run("etcd", "backup")
    assert ran.code == 0
    assert "requesting a snapshot from etcd's leader" in ran.err
    [line] = ran.out.splitlines()
    assert re.fullmatch(r"s3://k8s-secretsstack-.*/kubernetes/etcd/hourly/.*Z\.db, \d+\.\d KiB, after .*\.", line)


def test_backup_gives_up_in_the_time_that_was_given(run: Command, where: Place) -> None:
    where.world.machines.inject_hang("MasterAAutoScalingGroup", "volume", times=1)
    where.account.client("ec2").terminate_instances(InstanceIds=where.instances("MasterAAutoScalingGroup")[-1:])
    where.world.machines.refresh()
    ran = run("etcd", "backup", "--wait", "90s")
    assert ran.code == 1
    assert "no master has taken a snapshot within 90 seconds" in ran.err
    where.account.client("ec2").terminate_instances(InstanceIds=where.instances("MasterAAutoScalingGroup")[-1:])
    where.clock.sleep(600)


def test_restore_asks_and_does_nothing_without_an_answer(run: Command, where: Place) -> None:
    before = where.instances("MasterAAutoScalingGroup")
    ran = run("etcd", "restore")
    assert ran.code == 1
    assert "will be restored from s3://" in ran.out
    assert "is lost" in ran.out
    assert "confirmation is needed" in ran.err
    assert ran.err.endswith("or confirm in advance with --yes.\n")  # the command knows no --allow-danger
    assert where.instances("MasterAAutoScalingGroup") == before


def test_restore_shows_its_progress_and_ends_with_a_working_cluster(run: Command, where: Place) -> None:
    where.kubernetes.state.put("configmaps", {"metadata": {"name": "later"}})
    ran = run("etcd", "restore", "--yes")
    assert ran.code == 0, ran.err
    assert "terminating the instance of master a" in ran.err
    assert re.search(r"master a booting \(i-[0-9a-f]+\); API does not answer", ran.err)
    assert "master a ready" in ran.err
    assert re.search(r"^kubernetes is restored from kubernetes/etcd/hourly/.*Z\.db, after ", ran.out, re.MULTILINE)
    assert "Next: cfngen validate cluster" in ran.out
    assert where.kubernetes.state.get("configmaps", "later", "default") is None


def test_restore_for_a_program(run: Command) -> None:
    ran = run("etcd", "restore", "--yes", "--output", "json")
    assert ran.code == 0, ran.err
    kinds = [json.loads(line)["type"] for line in ran.out.splitlines()]
    assert (kinds[0], kinds[-1]) == ("etcdRestorePlan", "etcdRestored")
    assert "etcdRestoreProgress" in kinds


def test_an_unknown_snapshot_is_refused_with_what_there_is(run: Command) -> None:
    ran = run("etcd", "restore", "yesterday.db", "--yes")
    assert ran.code == 1
    assert "there is no snapshot yesterday.db under s3://" in ran.err
    assert "`cfngen etcd list --defaults --stack-name k8s` lists the existing ones" in ran.err


def test_a_restore_that_goes_on_is_seen_in_the_list_and_the_status(run: Command, where: Place) -> None:
    bucket, key = json.loads(run("etcd", "list", "-o", "json").out)["bucket"], "kubernetes/etcd/restore.json"
    s3 = where.account.client("s3")
    snapshot = json.loads(run("etcd", "list", "-o", "json").out)["snapshots"][0]["key"]
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps({"id": "1", "snapshot": snapshot}).encode())
    assert f"The masters are being restored from {snapshot}" in run("etcd", "list").out
    assert f"the masters are being restored from {snapshot}" in run("status").out
    s3.delete_object(Bucket=bucket, Key=key)


def test_status_shows_the_newest_snapshot_and_that_it_is_late(run: Command, where: Place) -> None:
    ran = run("status")
    assert re.search(r"^Backups of etcd\n  the newest snapshot is from 2026-.* UTC, .* ago\n", ran.out, re.MULTILINE)
    assert "`cfngen etcd list --defaults --stack-name k8s` shows them" in ran.out
    where.world.machines.clusters.clear()  # nobody takes snapshots any more
    where.clock.sleep(50 * 60)
    status = read_status(where.account, where.name, where.cluster, find_url_override=where.override)
    lines = "\n".join(map(str, status_lines(status)))
    assert re.search(r"\x1b\[31mthe newest snapshot is from .* ago; there should be one every 15 minutes\x1b", lines)


def test_a_long_list_is_cut_unless_all_is_asked_for(where: Place) -> None:
    now = where.clock.now()
    many = tuple(Snapshot(f"one/etcd/hourly/{number}.db", "hourly", now, 2**20, 60.0) for number in range(40))
    found = Snapshots("one", "bucket", "one/etcd/", many)
    assert "  … and 28 more; --all shows them" in render.snapshot_lines(found)
    assert len([line for line in render.snapshot_lines(found, full=True) if ".db" in str(line)]) == 40
    assert "40 snapshots, 40.0 MiB, in the bucket bucket" in render.snapshot_lines(found)
    assert render.snapshot_lines(Snapshots("one", "b", "one/etcd/", ())) == [
        "There is no snapshot under s3://b/one/etcd/ yet."
    ]


def test_what_a_restore_means_wraps() -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    snapshot = Snapshot("kubernetes/etcd/2026-11-21T120000Z.db", "hourly", noon, 9, 60.0)
    texts = ("everything written to Kubernetes since then is lost, and so is what was made of it meanwhile",) * 2
    plan = RestorePlan("k8s", "us-west-2", "123456789012", "bucket", snapshot, (), False, texts)
    shown = render.restore_plan_lines(plan, width=60)
    assert max(map(len, shown)) <= 60
    beginnings = [line[:4] for line in shown[shown.index("") + 1 : -1]]
    assert beginnings == ["  - ", "    ", "  - ", "    "]
    assert render.restore_plan_lines(plan, width=200)[-2] == f"  - {texts[0]}"
