"""Snapshots of etcd, from the timer to the bucket, with whatever can go wrong on the way."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import pytest
from boots import boot_of
from botocore.exceptions import IncompleteReadError
from scripted_machine import PowerCut, ScriptedMachine, refusal

from cfngen.boot.machine import BootError
from cfngen.boot.master import backup, bucket

BUCKET = "backups"
CONFIG: dict[str, Any] = {
    "cluster": "one",
    "backups": {"interval": 15},
    "facts": {"bucket": BUCKET, "instanceId": "i-1"},
}
# The scripted machine's clock begins here.
FIRST, DAY = "one/etcd/hourly/2026-09-01T120000Z.db", "one/etcd/daily/2026-09-01T120000Z.db"
STATUS = {"hash": 1, "revision": 4711, "totalKey": 812, "totalSize": 20}


class Storage:
    """A bucket as S3 keeps it: content and metadata by key."""

    def __init__(self, machine: ScriptedMachine) -> None:
        self.content: dict[str, str] = {}
        self.metadata: dict[str, dict[str, str]] = {}
        machine.cloud["s3.list_objects_v2"] = self.list
        machine.cloud["s3.get_object"] = self.get
        machine.cloud["s3.put_object"] = self.upload
        machine.cloud["s3.head_object"] = self.head

    def put(self, key: str, content: str, metadata: dict[str, str] | None = None) -> None:
        digest = hashlib.sha256(content.encode()).hexdigest()
        self.content[key], self.metadata[key] = content, {**(metadata or {}), "sha256": digest}

    def upload(self, Bucket: str, Key: str, Body: Any, Metadata: dict[str, str], **more: str) -> dict[str, Any]:  # noqa: N803
        assert Bucket == BUCKET
        if more.get("IfNoneMatch") != "*":
            return refusal("AccessDenied", "explicit deny in a resource-based policy")
        if Key in self.content:
            return refusal("PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
        content = Body.read().decode()
        assert Metadata["sha256"] == hashlib.sha256(content.encode()).hexdigest()
        self.put(Key, content, Metadata)
        return {}

    def list(self, Bucket: str, Prefix: str) -> dict[str, Any]:  # noqa: N803
        assert Bucket == BUCKET
        assert Prefix.startswith("one/etcd/"), "the role may list nothing else"
        found = [{"Key": key, "ETag": str(hash(text))} for key, text in self.content.items() if key.startswith(Prefix)]
        return {"Contents": found} if found else {}

    def get(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        if Key not in self.content:
            return refusal("AccessDenied", "a role that may not list the bucket is not told that it is missing")
        return {"Body": io.BytesIO(self.content[Key].encode()), "Metadata": self.metadata[Key]}

    def head(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        return {"ContentLength": len(self.content[Key]), "Metadata": self.metadata[Key]}


class Leader(ScriptedMachine):
    """A master with etcd's leader on it."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = Storage(self)
        self.leads(True)
        self.on("etcdctl .*snapshot save", self._save)
        self.on("etcdutl snapshot status", (0, json.dumps(STATUS)))
        self.on(r"sh -c cat > /dev/console$", (0, ""))
        self.on("stat ", lambda command: (0, f"{len(self.files[backup.SNAPSHOT_FILE])}\n"))

    def leads(self, leading: bool, leader: int = 7) -> None:
        status = {"header": {"member_id": leader if leading else 8}, "leader": leader}
        self.on(
            "etcdctl .*endpoint status", (0, json.dumps([{"Endpoint": "https://127.0.0.1:2379", "Status": status}]))
        )

    def _save(self, command: str) -> tuple[int, str]:
        self.files[backup.SNAPSHOT_FILE] = f"snapshot at {self.passed}"
        return 0, ""

    @property
    def alarms(self) -> list[str]:
        """What stands on the console."""
        return [self.stdin[each] for each in self.commands if each == "sh -c cat > /dev/console"]

    def ask(self, identity: str) -> None:
        """What `cfngen etcd backup` does."""
        self.storage.put("one/etcd/backup-request.json", json.dumps({"id": identity}))

    def comes_by(self, minutes: float = 0) -> str:
        """Let the timer come by after some minutes."""
        self.passed += minutes * 60
        return backup.backup(self, boot_of(CONFIG))


@pytest.fixture
def leader() -> Leader:
    return Leader()


def test_first_snapshot_is_taken_at_once_and_is_the_days_too(leader: Leader) -> None:
    said = leader.comes_by()
    assert said == f"s3://{BUCKET}/{FIRST}: 0.0 MiB, 812 keys, also uploaded as the day's snapshot"
    assert set(leader.storage.content) == {FIRST, DAY}
    assert leader.storage.metadata[DAY]["revision"] == "4711"
    assert leader.storage.metadata[FIRST]["instance"] == "i-1"


def test_etcd_is_asked_with_its_own_certificates_on_this_machine_only(leader: Leader) -> None:
    leader.comes_by()
    for command in leader.ran("etcdctl"):
        assert "--endpoints=https://127.0.0.1:2379" in command
        assert "--cert=/etc/kubernetes/pki/etcd/healthcheck-client.crt" in command


def test_the_snapshot_is_checked_before_it_is_uploaded(leader: Leader) -> None:
    leader.on("etcdutl snapshot status", BootError("`etcdutl` exited with 1: expected sha256 [1], got [2]"))
    with pytest.raises(BootError, match="expected sha256"):
        leader.comes_by()
    assert leader.storage.content == {}


def test_nothing_is_left_on_the_disk_and_only_root_may_look(leader: Leader) -> None:
    leader.files[backup.SNAPSHOT_FOLDER + "/snapshot.db.part"] = "of an attempt that was cut off"
    leader.comes_by()
    assert [path for path in leader.files if path.startswith(backup.SNAPSHOT_FOLDER)] == []
    assert leader.ran("mkdir") == [f"mkdir -p -m 700 {backup.SNAPSHOT_FOLDER}"]


def test_in_between_nothing_is_done_or_said(leader: Leader) -> None:
    leader.comes_by()
    before = len(leader.storage.content)
    assert leader.comes_by(1) == ""
    assert leader.comes_by(13) == ""
    assert len(leader.storage.content) == before
    assert leader.comes_by(1) != ""


def test_snapshots_keep_to_the_clock(leader: Leader) -> None:
    leader.comes_by()
    leader.comes_by(17)
    assert leader.comes_by(12) == "", "29 minutes past"
    assert leader.comes_by(1) != "", "half past"


def test_a_day_has_one_daily_snapshot(leader: Leader) -> None:
    for _ in range(5):
        leader.comes_by(6 * 60)
    daily = [key for key in leader.storage.content if "/daily/" in key]
    assert daily == ["one/etcd/daily/2026-09-01T180000Z.db", "one/etcd/daily/2026-09-02T000000Z.db"]


def test_of_several_masters_only_the_leaders_takes_snapshots(leader: Leader) -> None:
    leader.leads(False)
    assert leader.comes_by() == ""
    assert leader.calls == [], "the others do not even ask S3"
    leader.leads(True)
    assert leader.comes_by(1) != ""


def test_a_request_is_answered_with_the_next_minute(leader: Leader) -> None:
    leader.comes_by()
    leader.ask("wanted")
    leader.comes_by(1)
    assert leader.storage.metadata["one/etcd/hourly/2026-09-01T120100Z.db"]["request"] == "wanted"
    assert leader.comes_by(1) == "", "once"
    leader.ask("another")
    assert leader.comes_by(1) != ""


def test_a_request_that_was_answered_stays_answered_when_etcd_has_a_bad_moment(leader: Leader) -> None:
    leader.ask("wanted")
    assert leader.comes_by() != ""
    healthy = list(leader.answers)
    leader.on("etcdctl .*endpoint status", (0, "[]"))
    with pytest.raises(BootError, match="etcd has no leader"):
        leader.comes_by(1)
    leader.answers = healthy
    assert leader.comes_by(1) == ""


def test_a_request_that_cannot_be_answered_is_no_reason_to_try_each_minute(leader: Leader) -> None:
    leader.ask("wanted")
    leader.on("etcdctl .*snapshot save", BootError("no space left on device"))
    with pytest.raises(BootError):
        leader.comes_by()
    assert [leader.comes_by(1) for _ in range(4)] == [""] * 4
    with pytest.raises(BootError):
        leader.comes_by(1)


@pytest.mark.parametrize("interval", [3, 60])
def test_a_failure_is_tried_again_after_five_minutes_or_when_the_next_is_due(leader: Leader, interval: int) -> None:
    leader.on("etcdctl .*snapshot save", BootError("no space left on device"))
    config = {**CONFIG, "backups": {"interval": interval}}
    tried = []
    for minute in range(min(interval, 5) + 1):
        leader.passed = minute * 60
        try:
            backup.backup(leader, boot_of(config))
        except BootError:
            tried.append(minute)
    assert tried == [0, min(interval, 5)]


def test_a_snapshot_tells_what_it_is_of(leader: Leader) -> None:
    leader.comes_by()
    digest = hashlib.sha256(b"snapshot at 0.0").hexdigest()
    known = {"revision": "4711", "keys": "812", "instance": "i-1", "request": "", "sha256": digest}
    assert leader.storage.metadata[FIRST] == known
    leader.on(
        "etcdctl .*snapshot save", lambda _: (leader.files.update({backup.SNAPSHOT_FILE: "x" * 1_572_864}), (0, ""))[1]
    )
    assert ": 1.5 MiB, 812 keys" in leader.comes_by(15)


def test_a_new_leader_answers_a_request_of_before(leader: Leader) -> None:
    leader.ask("wanted")
    leader.comes_by()
    assert leader.storage.metadata[FIRST]["request"] == "wanted"


@pytest.mark.parametrize(
    ("pattern", "answer", "reason"),
    [
        ("etcdctl .*endpoint status", BootError("`etcdctl` exited with 1: context deadline exceeded"), "deadline"),
        ("etcdctl .*endpoint status", (0, "[]"), "etcd has no leader"),
        ("etcdctl .*endpoint status", (0, "nonsense"), "unexpected output of etcd's program: 'nonsense'"),
        ("etcdctl .*snapshot save", BootError("`etcdctl` exited with 1: no space left on device"), "no space"),
        ("etcdutl snapshot status", (0, json.dumps({**STATUS, "totalKey": 0})), "contains no keys"),
        ("etcdutl snapshot status", (0, ""), "unexpected output of etcd's program: ''"),
    ],
)
def test_a_failure_is_loud_and_tried_again_soon(leader: Leader, pattern: str, answer: Any, reason: str) -> None:
    healthy = list(leader.answers)
    leader.on(pattern, answer)
    with pytest.raises(BootError, match=reason):
        leader.comes_by()
    [alarm] = leader.alarms
    assert alarm.startswith("cfngen-backup: NO SNAPSHOT OF ETCD WAS TAKEN: ")
    assert reason in alarm
    assert "What to do: " in alarm
    assert leader.storage.content == {}
    assert [path for path in leader.files if path.startswith(backup.SNAPSHOT_FOLDER)] == []
    leader.answers = healthy
    assert leader.comes_by(4) == ""
    assert leader.comes_by(1) != ""


def test_the_same_failure_is_on_the_console_once(leader: Leader) -> None:
    healthy = list(leader.answers)
    leader.on("etcdctl .*endpoint status", (0, "[]"))
    for _ in range(3):
        with pytest.raises(BootError, match="etcd has no leader"):
            leader.comes_by(1)
    assert len(leader.alarms) == 1
    leader.answers = healthy
    assert leader.comes_by(15) != ""
    leader.on("etcdctl .*endpoint status", (0, "[]"))
    with pytest.raises(BootError, match="etcd has no leader"):
        leader.comes_by(15)
    assert len(leader.alarms) == 2


@pytest.mark.parametrize(
    ("operation", "code"),
    [("list_objects_v2", "AccessDenied"), ("head_object", "403"), ("put_object", "AccessDenied")],
)
def test_whatever_s3_refuses_is_loud(leader: Leader, operation: str, code: str) -> None:
    healthy = leader.cloud[f"s3.{operation}"]
    leader.cloud[f"s3.{operation}"] = lambda **arguments: refusal(code, "not you")
    with pytest.raises(BootError, match=code):
        leader.comes_by()
    assert len(leader.alarms) == 1
    leader.cloud[f"s3.{operation}"] = healthy
    leader.comes_by(5)
    assert any("/daily/" in key for key in leader.storage.content)


@pytest.mark.parametrize(
    "found",
    [
        {"ContentLength": 3, "Metadata": {"sha256": hashlib.sha256(b"snapshot at 0.0").hexdigest()}},
        {"ContentLength": 15, "Metadata": {"sha256": "another"}},
        {"ContentLength": 15, "Metadata": {}},
    ],
)
def test_what_does_not_lie_there_as_it_was_sent_is_no_snapshot(leader: Leader, found: dict[str, Any]) -> None:
    leader.cloud["s3.head_object"] = lambda **arguments: found
    with pytest.raises(BootError, match="differs from the uploaded file"):
        leader.comes_by()
    assert not any("/daily/" in key for key in leader.storage.content)


def test_the_days_snapshot_is_looked_at_too(leader: Leader) -> None:
    head = leader.storage.head
    leader.cloud["s3.head_object"] = lambda Bucket, Key: {  # noqa: N803
        **head(Bucket, Key),
        **({"ContentLength": 0} if "/daily/" in Key else {}),
    }
    with pytest.raises(BootError, match=f"s3://{BUCKET}/{DAY} differs from the uploaded file .0 of"):
        leader.comes_by()
    assert len(leader.alarms) == 1


def test_a_power_cut_anywhere_leaves_the_next_attempt_a_clean_start() -> None:
    for fuse in range(40):
        leader = Leader()
        leader.fuse = fuse
        try:
            leader.comes_by()
        except PowerCut:
            pass
        else:
            assert fuse > 5, "it was cut off at each call"
            return
        leader.fuse = None
        leader.comes_by(15)
        assert any("/hourly/" in key for key in leader.storage.content)
        assert any("/daily/" in key for key in leader.storage.content)
        assert [path for path in leader.files if path.startswith(backup.SNAPSHOT_FOLDER)] == []
    pytest.fail("the snapshot never ends")


def test_the_timer_is_started(leader: Leader) -> None:
    assert backup.schedule(leader, boot_of(CONFIG)) == f"a snapshot of etcd every 15 minutes into s3://{BUCKET}"
    assert leader.commands == ["systemctl enable --now cfngen-backup.timer"]


def test_a_document_that_is_missing_is_not_asked_for(leader: Leader) -> None:
    assert bucket.read_document(leader, boot_of(CONFIG), "restore.json") == {}
    assert [name for name, _ in leader.calls] == ["s3.list_objects_v2"]
    leader.storage.put("one/etcd/restore.json", '{"id": "1"}')
    assert bucket.read_document(leader, boot_of(CONFIG), "restore.json") == {"id": "1"}


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_document_that_is_none_is_told_with_the_way_out(leader: Leader, text: str) -> None:
    leader.storage.put("one/etcd/restore.json", text)
    with pytest.raises(BootError, match="is not a JSON object") as caught:
        bucket.read_document(leader, boot_of(CONFIG), "restore.json")
    assert caught.value.hint == f"delete it: `aws s3 rm s3://{BUCKET}/one/etcd/restore.json`"


# The seam itself, against moto's S3.


def test_a_document_that_is_cut_off_on_its_way_is_no_fault_of_the_program(leader: Leader) -> None:
    class Cut:
        def read(self) -> bytes:
            raise IncompleteReadError(actual_bytes=3, expected_bytes=9)

    leader.storage.put("one/etcd/restore.json", "{}")
    leader.cloud["s3.get_object"] = lambda **_: {"Body": Cut()}
    with pytest.raises(BootError, match="could not be read completely: 3 read, but total bytes"):
        bucket.read_document(leader, boot_of(CONFIG), "restore.json")


@pytest.mark.parametrize(
    ("version", "checked"),
    [("1.23.34", False), ("1.26.9", False), ("1.27.0", True), ("1.100.1", True), ("2.0.0", True)],
)
def test_old_boto3_sends_a_digest_of_its_own(
    leader: Leader, monkeypatch: pytest.MonkeyPatch, version: str, checked: bool
) -> None:
    monkeypatch.setattr("botocore.__version__", version)
    leader.comes_by()
    uploads = [arguments for name, arguments in leader.calls if name == "s3.put_object"]
    assert [("ChecksumSHA256" in uploaded, uploaded.get("ChecksumAlgorithm") == "SHA256") for uploaded in uploads] == [
        (checked, checked)
    ] * 2


def test_snapshots_are_locked_as_long_as_the_configuration_says(leader: Leader) -> None:
    lock = {"mode": "GOVERNANCE", "days": {"hourly": 7, "daily": 30}}
    backup.backup(leader, boot_of({**CONFIG, "backups": {"interval": 15, "lock": lock}}))
    uploads = [arguments for name, arguments in leader.calls if name == "s3.put_object"]
    assert {uploaded["Key"]: uploaded["ObjectLockRetainUntilDate"] for uploaded in uploads} == {
        FIRST: "2026-09-08T12:00:00Z",
        DAY: "2026-10-01T12:00:00Z",
    }
    assert {uploaded["ObjectLockMode"] for uploaded in uploads} == {"GOVERNANCE"}


def test_without_a_lock_none_is_asked_for(leader: Leader) -> None:
    leader.comes_by()
    sent = {key for name, arguments in leader.calls if name == "s3.put_object" for key in arguments}
    assert not {key for key in sent if key.startswith("ObjectLock")}


def test_a_snapshot_whose_answer_was_lost_is_there(leader: Leader) -> None:
    leader.storage.put(FIRST, "snapshot at 0.0")
    assert leader.comes_by().startswith(f"s3://{BUCKET}/{FIRST}: ")
    assert set(leader.storage.content) == {FIRST, DAY}


@pytest.mark.parametrize("key", [FIRST, DAY])
def test_a_snapshot_of_another_content_is_not_replaced(leader: Leader, key: str) -> None:
    leader.storage.put(key, "what somebody else has put there")
    listed = leader.storage.list
    # Not there yet when the master looks.
    leader.cloud["s3.list_objects_v2"] = lambda Bucket, Prefix: listed(Bucket, f"{Prefix}nothing")  # noqa: N803
    with pytest.raises(BootError, match=f"s3://{BUCKET}/{key} differs from the uploaded file"):
        leader.comes_by()
    assert leader.storage.content[key] == "what somebody else has put there"
    assert len(leader.alarms) == 1
