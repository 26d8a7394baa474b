"""The bucket of etcd's snapshots, who may do what with it, and what masters are told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cfngen import userdata
from cfngen.cluster.load import parse

OWN: dict[str, Any] = {"etcd": {"backups": {"bucket": "backups-of-ours"}}}
OFF: dict[str, Any] = {"etcd": {"backups": {"enabled": False}}}
PAGE = Path(__file__).parents[2] / "docs" / "operate" / "backups.md"
KEPT = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}


def of_master(configuration: dict[str, Any]) -> userdata.UserData:
    return userdata.roles(parse(configuration))[0]


def statements(templates: Any, configuration: dict[str, Any], role: str = "MasterRole") -> dict[str, Any]:
    document = templates(configuration).properties(role)["Policies"][0]["PolicyDocument"]
    return {each["Sid"]: each for each in document["Statement"]}


def test_the_bucket_outlives_the_cluster_and_so_does_its_policy(templates: Any) -> None:
    resources = templates({})["secrets"]["Resources"]
    assert {key: resources["BackupBucketPolicy"][key] for key in KEPT} == KEPT
    once_used = {**KEPT, "DeletionPolicy": "RetainExceptOnCreate"}
    assert {key: resources["BackupBucket"][key] for key in once_used} == once_used


def test_it_can_be_read_when_the_clusters_key_is_gone(templates: Any) -> None:
    [rule] = templates({}).properties("BackupBucket")["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}


def test_it_is_private(templates: Any) -> None:
    properties = templates({}).properties("BackupBucket")
    assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
    assert len(properties["PublicAccessBlockConfiguration"]) == 4
    assert properties["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    statement, _ = templates({}).properties("BackupBucketPolicy")["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", ["s3:*"])
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert len(statement["Resource"]) == 2


def test_what_is_deleted_stays_for_a_week(templates: Any) -> None:
    properties = templates({}).properties("BackupBucket")
    assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
    [rule] = [rule for rule in properties["LifecycleConfiguration"]["Rules"] if rule["Id"] == "NoncurrentVersions"]
    assert (rule["NoncurrentVersionExpiration"], rule["ExpiredObjectDeleteMarker"]) == ({"NoncurrentDays": 7}, True)
    assert "Prefix" not in rule


def test_nobody_replaces_a_snapshot(templates: Any) -> None:
    made = templates({"name": "one"}).properties("BackupBucketPolicy")["PolicyDocument"]["Statement"]
    [statement] = [each for each in made if each["Sid"] == "OnlyNewSnapshots"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", ["s3:PutObject"])
    texts = [resource["Fn::Sub"] for resource in statement["Resource"]]
    assert texts == ["${BackupBucket.Arn}/one/etcd/hourly/*", "${BackupBucket.Arn}/one/etcd/daily/*"]
    assert statement["Condition"] == {
        "Null": {"s3:if-none-match": "true"},
        "Bool": {"s3:ObjectCreationOperation": "true"},
    }


def test_the_page_has_the_statement_for_a_bucket_of_ones_own(templates: Any) -> None:
    page = PAGE.read_text().replace("CLUSTER/", "one/").replace("arn:aws:s3:::NAME", "${BackupBucket.Arn}")
    shown, _ = json.JSONDecoder().raw_decode(page[page.index('{"Effect": "Deny"') :])
    _, made = templates({"name": "one"}).properties("BackupBucketPolicy")["PolicyDocument"]["Statement"]
    resources = [resource["Fn::Sub"] for resource in made["Resource"]]
    assert {**shown, "Action": [shown["Action"]], "Sid": made["Sid"]} == {**made, "Resource": resources}


def test_snapshots_expire_as_the_cluster_file_says(templates: Any) -> None:
    configuration = {"name": "one", "etcd": {"backups": {"hourlyDays": 3, "dailyDays": 30}}}
    rules = templates(configuration).properties("BackupBucket")["LifecycleConfiguration"]["Rules"]
    expiring = {rule["Prefix"]: rule["ExpirationInDays"] for rule in rules if "ExpirationInDays" in rule}
    assert expiring == {"one/etcd/hourly/": 3, "one/etcd/daily/": 30}
    assert all(rule["Status"] == "Enabled" for rule in rules)
    [aborted] = [rule for rule in rules if "AbortIncompleteMultipartUpload" in rule]
    assert "Prefix" not in aborted


def test_masters_add_and_read_under_the_clusters_name_and_delete_nothing(templates: Any) -> None:
    found = statements(templates, {"name": "one"})
    assert found["Backups"]["Action"] == ["s3:GetObject"]
    # What an operator asks of the masters lies beside the snapshots, and is not theirs to write.
    assert found["BackupsNew"]["Action"] == ["s3:PutObject"]
    # Only a request that fails if the object exists.
    assert found["BackupsNew"]["Condition"] == {"Null": {"s3:if-none-match": "false"}}
    written = json.dumps(found["BackupsNew"]["Resource"])
    assert written.count("/one/etcd/") == 2
    assert "/one/etcd/hourly/*" in written
    assert "/one/etcd/daily/*" in written
    assert all("/one/etcd/*" in json.dumps(each) for each in found["Backups"]["Resource"])
    assert found["BackupsList"]["Condition"] == {"StringLike": {"s3:prefix": "one/etcd/*"}}
    assert "s3:Delete" not in json.dumps(found)
    assert "BackupsKey" not in found
    assert "s3:" not in json.dumps(statements(templates, {"name": "one"}, "NodeRole"))


LOCK: dict[str, Any] = {"objectLock": {"mode": "compliance", "days": 30}}


@pytest.mark.parametrize("bucket", [{}, OWN["etcd"]["backups"]], ids=["made", "own"])
def test_masters_lock_snapshots_and_what_else_is_in_the_bucket_is_not_locked(
    templates: Any, bucket: dict[str, Any]
) -> None:
    configuration = {"name": "one", "etcd": {"backups": {**LOCK, **bucket}}}
    made = templates(configuration)
    for resource in made.of_type("AWS::S3::Bucket").values():
        assert resource["Properties"]["ObjectLockEnabled"] is True
        assert "ObjectLockConfiguration" not in resource["Properties"], "operators' requests would be locked, too"
    [statement] = made.properties("BackupsLockPolicy")["PolicyDocument"]["Statement"]
    assert statement["Action"] == ["s3:PutObjectRetention"]
    assert json.dumps(statement["Resource"]).count("/one/etcd/") == 2
    assert statement["Condition"]["StringEqualsIfExists"] == {"s3:object-lock-mode": "COMPLIANCE"}
    most = statement["Condition"]["NumericLessThanEqualsIfExists"]
    assert most == {"s3:object-lock-remaining-retention-days": "31"}
    assert "Bypass" not in json.dumps(made["standalone"])
    lock = {"mode": "COMPLIANCE", "days": {"hourly": 7, "daily": 30}}
    assert json.loads(of_master(configuration).files["role.json"])["backups"] == {"interval": 15, "lock": lock}


def test_without_a_lock_nothing_says_so(templates: Any) -> None:
    assert "ObjectLock" not in json.dumps(templates({})["standalone"]["Resources"]["BackupBucket"])
    assert "BackupsLockPolicy" not in templates({})["standalone"]["Resources"]


def test_a_bucket_of_ones_own_is_used_as_it_is(templates: Any) -> None:
    made = templates(OWN)
    assert made.of_type("AWS::S3::Bucket") == {}
    assert made["secrets"]["Outputs"]["BackupBucketName"]["Value"] == "backups-of-ours"
    assert "backups-of-ours" in json.dumps(made["standalone"]["Resources"]["MasterALaunchTemplate"])


def test_the_key_of_such_a_bucket_may_be_used_through_s3_for_the_snapshots_only(templates: Any) -> None:
    assert "BackupsKey" not in statements(templates, OWN), "the role's inline policy is near its limit"
    policy = templates(OWN).properties("BackupsKeyPolicy")
    assert policy["Roles"] == [{"Ref": "MasterRole"}]
    [statement] = policy["PolicyDocument"]["Statement"]
    condition = statement["Condition"]
    assert "s3." in json.dumps(condition["StringEquals"]["kms:ViaService"])
    assert len(condition["StringLike"]["kms:EncryptionContext:aws:s3:arn"]) == 2


def test_a_person_is_told_where_the_snapshots_are(templates: Any) -> None:
    assert "BackupBucketName" in templates({})["cluster"]["Outputs"]
    assert "BackupBucketName" in templates({})["standalone"]["Outputs"]


def test_without_backups_there_is_nothing_of_them(templates: Any) -> None:
    made = templates(OFF)
    assert made.of_type("AWS::S3::Bucket") == {}
    assert "BackupBucketName" not in json.dumps(made["standalone"])
    assert not [statement for statement in statements(templates, OFF) if statement.startswith("Backups")]
    data = of_master(OFF)
    assert not [path for path in data.files if "backup" in path]
    assert "backup" not in json.loads(data.files["role.json"])["tasks"]


def test_masters_are_told_the_bucket_and_the_interval() -> None:
    data = of_master({"etcd": {"backups": {"interval": 30}}})
    role = json.loads(data.files["role.json"])
    assert role["backups"] == {"interval": 30}
    assert role["tasks"]["backup"] == {"backup": "master.backup.backup"}
    assert json.loads(data.files["config.json"])["steps"]["backups"] == "master.backup.schedule"
    assert '"bucket"' in data.files["user-data.py"]
    assert "boot/master/backup.py" in data.files


def test_no_snapshot_is_tried_while_the_boot_program_is_at_work() -> None:
    text = of_master({}).files["files/etc/systemd/system/cfngen-backup.service"]
    assert "After=network-online.target cfngen-boot.service\n" in text


@pytest.mark.parametrize("suffix", ["service", "timer"])
def test_the_timer_comes_by_each_minute(suffix: str) -> None:
    text = of_master({}).files[f"files/etc/systemd/system/cfngen-backup.{suffix}"]
    wanted = {"timer": "OnCalendar=minutely\n", "service": "ExecStart=/usr/bin/python3 -m boot backup\n"}
    assert wanted[suffix] in text
