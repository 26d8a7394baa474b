"""What `cfngen status` reads beside the stack and EC2: snapshots, certificates of masters, add-ons."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from deployed import STACK, Place, place

from cfngen.cli.render.status import status_lines
from cfngen.deploy.status.cluster_status import AddonState, BackupState, ClusterStatus, Expiry, MasterState, Unknown
from cfngen.deploy.status.derived_status import parse_addons, parse_certificates, read_status

MASTERS = (MasterState("a", "i-1"), MasterState("b", "i-2"), MasterState("c"))
ENDS = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    with place() as made:
        made.create()
        made.clock.sleep(60)
        yield made


def status(where: Place) -> ClusterStatus:
    return read_status(where.account, STACK, where.cluster, find_url_override=where.override)


def config_map(where: Place, name: str, **data: object) -> None:
    texts = {key: json.dumps(value) for key, value in data.items()}
    metadata = {"name": name, "namespace": "kube-system"}
    where.kubernetes.state.put("configmaps", {"metadata": metadata, "data": texts})


def test_certificates_are_told_by_slot_and_those_of_lost_instances_are_not() -> None:
    data = {
        "i-2": json.dumps({"expires": "2027-03-01T12:00:00Z", "which": "apiserver.crt"}),
        "i-1": json.dumps({"expires": "2027-03-01T12:00:00+00:00"}),
        "i-gone": json.dumps({"expires": "2026-01-01T00:00:00Z", "which": "apiserver.crt"}),
    }
    found = parse_certificates(data, MASTERS)
    assert found == (Expiry("master a: certificate", ENDS), Expiry("master b: apiserver.crt", ENDS))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"expires": "soon"}', '{"expires": "2027-03-01T12:00:00"}', "{}"])
def test_what_is_no_report_is_left_out(text: str) -> None:
    assert parse_certificates({"i-1": text}, MASTERS) == ()


def test_addons_are_told_as_helm_calls_them() -> None:
    data = {
        "metrics-server": json.dumps({"version": "3.13.0", "status": "deployed", "time": "2027-03-01T12:00:00Z"}),
        "cluster-autoscaler": json.dumps({"version": "9.50.1", "status": "failed", "message": "timed out"}),
        "nonsense": "nonsense",
    }
    assert parse_addons(data) == (
        AddonState("cluster-autoscaler", "9.50.1", "failed", None, "timed out"),
        AddonState("metrics-server", "3.13.0", "deployed", ENDS),
    )


def test_where_masters_report_nothing_there_is_nothing(where: Place) -> None:
    found = status(where)
    assert found.addons is None
    assert not [each for each in found.certificates if each.what.startswith("master")]
    assert "Add-ons" not in "\n".join(map(str, status_lines(found)))


def test_the_screen_shows_what_the_masters_report(where: Place) -> None:
    [master] = where.instances("MasterAAutoScalingGroup")
    config_map(where, "cfngen-certificates", **{master: {"expires": "2026-01-10T00:00:00Z", "which": "apiserver.crt"}})
    failed = {"version": "9.50.1", "status": "failed", "time": "2026-01-01T00:01:00Z", "message": "no such image"}
    config_map(where, "cfngen-addons", **{"cluster-autoscaler": failed})
    text = "\n".join(map(str, status_lines(status(where))))
    where.kubernetes.state.remove("configmaps", "cfngen-certificates", "kube-system")
    where.kubernetes.state.remove("configmaps", "cfngen-addons", "kube-system")
    assert re.search(r"master a: apiserver.crt +\x1b\[31m2026-01-10 00:00 UTC, in 8 days", text)
    assert "cluster-autoscaler  9.50.1   failed" in text
    assert "\x1b[31mno such image" in text


def test_the_newest_snapshot_is_read_from_the_bucket(where: Place) -> None:
    found = status(where).backups
    assert isinstance(found, BackupState)
    assert (found.interval, found.late, found.restoring) == (15, False, "")
    assert found.bucket.startswith("k8s-secretsstack-")
    assert found.newest
    assert found.newest <= where.clock.now()


def test_a_bucket_that_may_not_be_read_hides_nothing_else(where: Place) -> None:
    where.served.faults.deny("s3:ListBucket")
    found = status(where)
    where.served.faults.clear()
    assert isinstance(found.backups, Unknown)
    assert "ListObjectsV2" in found.backups.unknown
    assert found.api
    assert not isinstance(found.api, Unknown)
