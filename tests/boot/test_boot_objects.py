"""Files go to S3 and come back, checked on both sides."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cfngen.boot import machine as seam
from cfngen.boot.machine import BootError, Machine
from cfngen.boot.master import objects

BUCKET = "backups"


class Quick(Machine):
    """A real machine whose time passes only by sleeping."""

    region = "us-west-2"
    passed = 0.0

    def clock(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Quick]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setattr(seam, "LOG", str(tmp_path / "log"))
    with mock_aws():
        where = {"LocationConstraint": "us-west-2"}
        boto3.client("s3", region_name="us-west-2").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
        yield Quick()


def test_a_file_goes_to_s3_and_comes_back(real: Quick, tmp_path: Path) -> None:
    file, copy = tmp_path / "snapshot.db", tmp_path / "copies" / "snapshot.db"
    file.write_bytes(bytes(range(256)) * 5000)
    objects.upload(real, BUCKET, "key", str(file), {"revision": "1"}, {})
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert objects.download(real, BUCKET, "key", str(copy)) == {"revision": "1", "sha256": digest}
    assert copy.read_bytes() == file.read_bytes()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in copy.parent.iterdir()) == ["snapshot.db"]


def test_s3_checks_what_arrives(real: Quick, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.db"
    file.write_text("content")
    sent: list[Any] = []
    client = real._client("s3")
    client.meta.events.register("before-send.s3.PutObject", lambda request, **_: sent.append(request.headers))
    objects.upload(real, BUCKET, "key", str(file), {}, {})
    assert sent[0]["x-amz-checksum-sha256"] == b"7XACtDnprIRfIjV9giusFERzD722AW0+yUMil7nsn3M="
    assert sent[0]["x-amz-sdk-checksum-algorithm"] == b"SHA256"
    # The header goes with this request only.
    assert sent[0]["If-None-Match"] == b"*"
    real.aws("s3", "put_object", Bucket=BUCKET, Key="key", Body=b"changed")
    assert "If-None-Match" not in sent[1]


def test_an_object_that_exists_is_never_replaced(real: Quick, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.db"
    file.write_text("first")
    objects.upload(real, BUCKET, "key", str(file), {}, {})
    objects.upload(real, BUCKET, "key", str(file), {}, {})
    file.write_text("other")
    with pytest.raises(BootError, match=r"s3://backups/key differs from the uploaded file \(5 of 5 bytes\)"):
        objects.upload(real, BUCKET, "key", str(file), {}, {})
    assert real.aws("s3", "get_object", Bucket=BUCKET, Key="key")["Body"].read() == b"first"


def test_an_upload_that_is_tried_again_begins_at_the_beginning(real: Quick, tmp_path: Path) -> None:
    file = tmp_path / "snapshot.db"
    file.write_text("the whole content")
    client, tries = real._client("s3"), []

    def put(**arguments: Any) -> dict[str, Any]:
        tries.append(arguments["Body"].read())
        if len(tries) == 1:
            from botocore.exceptions import EndpointConnectionError

            raise EndpointConnectionError(endpoint_url="https://s3")
        return {}

    client.put_object = put
    found = {"ContentLength": 17, "Metadata": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}
    client.head_object = lambda **_: found
    real._client = lambda service: client  # type: ignore[method-assign]
    objects.upload(real, BUCKET, "key", str(file), {}, {})
    assert tries == [b"the whole content"] * 2


def test_an_object_that_was_changed_is_not_taken(real: Quick, tmp_path: Path) -> None:
    boto3.client("s3", region_name="us-west-2").put_object(
        Bucket=BUCKET, Key="key", Body=b"changed", Metadata={"sha256": "0" * 64}
    )
    with pytest.raises(BootError, match=r"s3://backups/key has SHA-256 .*, not 0{64}"):
        objects.download(real, BUCKET, "key", str(tmp_path / "snapshot.db"))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("snapshot")] == []


def test_an_object_that_is_missing_is_an_error_at_once(real: Quick, tmp_path: Path) -> None:
    with pytest.raises(BootError, match="NoSuchKey"):
        objects.download(real, BUCKET, "nothing", str(tmp_path / "snapshot.db"))
    assert real.passed == 0
