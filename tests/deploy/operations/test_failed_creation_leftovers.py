"""What a creation that failed leaves in the account: little, and all of it named, then and at the next creation."""

from __future__ import annotations

from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator, groups

from cfngen.cli.render import deletion as rendered
from cfngen.deploy.aws.stacks import require_stack
from cfngen.deploy.operations.leftovers import Remains, report_failed_creation
from cfngen.deploy.operations.recovery import rollback
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": groups("general", minSize=1, maxSize=1)}
BUCKET, SNAPSHOT, KEY, SECRET = "bucket of etcd's snapshots", "snapshot", "KMS key", "secret"


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def failing(operator: Operator, **options: Any) -> str:
    """Deploy a cluster whose nodes fail, when its master is up."""
    outcomes: Any = operator.cloud.machines.outcomes
    outcomes["NodeGroupGeneralAutoScalingGroup"] = "FAILURE"
    status = operator.deploy(ONE, **options).status
    outcomes["NodeGroupGeneralAutoScalingGroup"] = "SUCCESS"
    return status


def snapshots(operator: Operator) -> set[str]:
    """Snapshots of masters' volumes; moto has some of its own."""
    found = operator.cloud.client("ec2").describe_snapshots(OwnerIds=["self"])["Snapshots"]
    return {each["SnapshotId"] for each in found if "MasterAVolume" in each["Description"]}


def backed_up(operator: Operator) -> list[str]:
    """Let a master of the creation under way take its first snapshot; returns the buckets."""
    s3 = operator.cloud.client("s3")
    names: list[str] = []

    def put() -> None:
        for bucket in s3.list_buckets()["Buckets"]:
            if "backupbucket" in bucket["Name"] and bucket["Name"] not in names:
                names.append(bucket["Name"])
                key = "one/etcd/hourly/2026-01-01T000000Z.db"
                s3.put_object(Bucket=bucket["Name"], Key=key, Body=b"etcd", IfNoneMatch="*")

    operator.cloud.engine.clock.schedule(60, put)
    return names


def told(operator: Operator, *, earlier: bool = False) -> dict[str, RetainedResource]:
    found = [each for each in operator.reported(Remains) if each.earlier is earlier]
    return {each.kind: each for message in found for each in message.retained}


def buckets(operator: Operator) -> set[str]:
    return {
        bucket["Name"] for bucket in operator.cloud.client("s3").list_buckets()["Buckets"] if "backup" in bucket["Name"]
    }


def test_an_empty_bucket_goes_and_what_stays_is_named(operator: Operator) -> None:
    assert failing(operator) == "ROLLBACK_COMPLETE"
    assert buckets(operator) == set()
    left = told(operator)
    assert left.keys() == {SNAPSHOT, KEY}
    assert {left[SNAPSHOT].id} == snapshots(operator)
    assert "or blank if no master came up" in left[SNAPSHOT].why
    assert left[SNAPSHOT].command.startswith("aws ec2 delete-snapshot")
    assert "cancel-key-deletion" in left[KEY].why


def test_a_bucket_with_a_snapshot_stays_is_named_and_needs_no_courage(operator: Operator) -> None:
    names = backed_up(operator)
    assert failing(operator) == "ROLLBACK_FAILED"
    assert buckets(operator) == set(names)
    left = told(operator)[BUCKET]
    assert (left.id, f"&& aws s3 rb s3://{names[0]} " in left.command) == (names[0], True)
    assert operator.deploy(ONE).status == "CREATE_COMPLETE"
    assert not operator.questions[0].dangerous
    assert told(operator, earlier=True)[BUCKET].id == names[0]
    assert set(names) < buckets(operator)


def test_every_earlier_attempt_is_named_before_the_next_creation(operator: Operator) -> None:
    for _ in range(2):
        assert failing(operator, on_failure="delete") == "DELETE_COMPLETE"
    assert told(operator).keys() >= {SNAPSHOT, KEY}
    operator.deploy(ONE)
    [message] = operator.reported(Remains)
    assert {each.id for each in message.retained if each.kind == SNAPSHOT} == snapshots(operator)
    assert len([each for each in message.retained if each.kind == KEY]) == 2
    lines = rendered.remains_lines(message, 81)
    assert any("earlier stacks named one" in line for line in lines)
    assert sum("aws ec2 delete-snapshot" in line for line in lines) == 2


def test_a_secret_in_its_recovery_window_is_named(operator: Operator) -> None:
    operator.cloud.engine.fail("CaSecret", "being deleted by somebody", during="DELETE")
    assert failing(operator) == "ROLLBACK_FAILED"
    secrets = operator.cloud.client("secretsmanager")
    [secret] = [each["ARN"] for each in secrets.list_secrets()["SecretList"]]
    secrets.delete_secret(SecretId=secret, RecoveryWindowInDays=7)
    report_failed_creation(operator.account, require_stack(operator.account, "one"), "one", operator.messages.append)
    left = told(operator)
    assert left[SECRET].id == secret
    assert "restore-secret" in left[SECRET].why


def test_taking_a_kept_failure_back_names_what_stays(operator: Operator) -> None:
    assert failing(operator, on_failure="keep") == "CREATE_FAILED"
    assert operator.reported(Remains) == []
    rollback(operator.account, "one", "one", operator.waiting)
    left = told(operator)
    assert left.keys() >= {SNAPSHOT, KEY}
    assert buckets(operator) == {left[BUCKET].id} if BUCKET in left else not buckets(operator)


def test_a_first_creation_has_nothing_to_tell(operator: Operator) -> None:
    assert operator.deploy(ONE).status == "CREATE_COMPLETE"
    assert operator.reported(Remains) == []
