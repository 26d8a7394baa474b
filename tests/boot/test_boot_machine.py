"""The seam itself, against real files, processes, a local metadata service and botocore's stubbed clients."""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from aws_client import Events
from botocore.exceptions import NoCredentialsError
from botocore.stub import Stubber

from cfngen.boot import machine as seam
from cfngen.boot.host.kubectl import yaml_documents
from cfngen.boot.machine import BootError, Machine, Pending
from cfngen.boot.state import fill

TOKEN = "abcdef.0123456789abcdef"


class Quick(Machine):
    """A real machine whose time passes only by sleeping."""

    passed = 0.0

    def clock(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Quick:
    monkeypatch.setattr(seam, "LOG", str(tmp_path / "log"))
    return Quick()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_command_gets_its_input_and_its_output_is_returned_and_logged(machine: Quick, tmp_path: Path) -> None:
    assert machine.run("cat", stdin="text") == (0, "text")
    assert "`cat`\ntext\n" in (tmp_path / "log").read_text()
    assert mode(tmp_path / "log") == 0o600


def test_json_that_a_command_returns_is_not_logged_unless_it_failed(machine: Quick, tmp_path: Path) -> None:
    assert machine.run("echo", '{"items": ["secret"]}')[1] == '{"items": ["secret"]}\n'
    log = (tmp_path / "log").read_text()
    assert log.endswith("`\n\n")
    machine.run("echo", "[init] Using Kubernetes")
    with pytest.raises(BootError):
        machine.run("sh", "-c", 'echo \'{"kind": "Status"}\'; exit 1')
    log = (tmp_path / "log").read_text()
    assert "\n[init] Using" in log
    assert '\n{"kind": "Status"}\n' in log


def test_failing_command_is_one_line_with_the_last_of_what_a_script_said(machine: Quick) -> None:
    with pytest.raises(BootError) as caught:
        machine.run("sh", "-c", "echo one >&2; echo; echo two >&2; echo three >&2; echo four >&2; exit 3")
    assert str(caught.value).endswith("exited with 3: two / three / four")


def test_command_asks_nobody_and_speaks_english(machine: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions of apt's packages would wait for ever, and `reasons` reads English."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    text = machine.run("sh", "-c", "echo $DEBIAN_FRONTEND $LC_ALL $HTTPS_PROXY")[1]
    assert text == "noninteractive C.UTF-8 http://proxy\n"


def test_expected_exit_codes_are_answers(machine: Quick) -> None:
    assert machine.run("sh", "-c", "exit 2", expect=(0, 2)) == (2, "")


def test_missing_program_and_endless_command_are_failures(machine: Quick) -> None:
    with pytest.raises(BootError, match="`no-such-program` could not be run"):
        machine.run("no-such-program")
    with pytest.raises(BootError, match=r"could not be run: .*timed out"):
        machine.run("sleep", "5", timeout=0)


def test_tokens_reach_neither_console_nor_log(
    machine: Quick, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.say(f"token {TOKEN}")
    machine.log(f"[bootstrap-token] Using token: {TOKEN}")
    said = capsys.readouterr().out
    assert said == "cfngen: token abcdef.…\n"
    assert "0123456789abcdef" not in (tmp_path / "log").read_text()


def test_file_is_written_whole_with_its_mode_and_only_if_it_changes(machine: Quick, tmp_path: Path) -> None:
    path = tmp_path / "a" / "c" / "b"
    assert machine.write(str(path), "secret", 0o600)
    assert mode(path) == 0o600
    before = path.stat().st_ino
    assert not machine.write(str(path), "secret", 0o600)
    assert path.stat().st_ino == before
    assert machine.write(str(path), "other", 0o600)
    assert machine.read(str(path)) == "other"
    assert [each.name for each in path.parent.iterdir()] == ["b"]


def test_reading_finding_and_removing(machine: Quick, tmp_path: Path) -> None:
    for name in ("x/1", "x/y/2", "x/y/z/3"):
        machine.write(f"{tmp_path}/{name}", name)
    assert machine.glob(f"{tmp_path}/x/**/*") == [f"{tmp_path}/x/1", f"{tmp_path}/x/y/2", f"{tmp_path}/x/y/z/3"]
    assert machine.read(f"{tmp_path}/absent") == ""
    assert machine.sha256(f"{tmp_path}/absent") == ""
    assert machine.sha256(f"{tmp_path}/x/1") == hashlib.sha256(b"x/1").hexdigest()
    assert machine.exists(f"{tmp_path}/x")
    assert not machine.mounted(f"{tmp_path}/x")
    machine.remove(f"{tmp_path}/x/y/", f"{tmp_path}/x/absent", f"{tmp_path}/x/1*")
    assert machine.glob(f"{tmp_path}/x/**/*") == []


def test_time_is_utc_to_the_second(machine: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seam.time, "time", lambda: 86399.9)
    assert machine.time() == "1970-01-01T23:59:59Z"
    assert machine.time(60.2) == "1970-01-02T00:01:00Z"


def test_installed_programs_and_boto3_are_found(machine: Quick) -> None:
    assert machine.which("sh")
    assert not machine.which("no-such-program")
    assert machine.has_boto3()


def test_boto3_that_cannot_be_imported_is_not_there(machine: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def import_module(name: str) -> None:
        asked.append(name)
        raise ImportError

    monkeypatch.setattr(seam, "import_module", import_module)
    assert not machine.has_boto3()
    assert asked == ["boto3"]


def test_server_that_falls_silent_is_not_waited_for(machine: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    asked: set[str] = set()

    def urlopen(request: Any, timeout: float = 1e9) -> None:
        limits.append(timeout)
        asked.add(getattr(request, "full_url", request))
        raise OSError("timed out")

    monkeypatch.setattr(seam.urllib.request, "urlopen", urlopen)
    machine.region = "eu-central-1"
    with pytest.raises(OSError, match="timed out"):
        machine.download("http://127.0.0.1/kubelet", "/nowhere/kubelet", "00")
    # Instance metadata are a hop away; `machine.wait` asks again.
    with pytest.raises(BootError, match=r"waited 12\d s for instance metadata: timed out"):
        machine.metadata("meta-data/mac")
    assert asked == {"http://127.0.0.1/kubelet", "http://169.254.169.254/latest/api/token"}
    client = machine._client("ec2").meta.config
    assert limits[0] <= 30
    assert max(limits[1:]) <= 5
    assert client.connect_timeout <= 5
    assert client.read_timeout <= 30


def test_download_has_its_name_only_with_the_right_digest(machine: Quick, tmp_path: Path) -> None:
    origin, target = tmp_path / "origin", tmp_path / "bin" / "kubelet"
    origin.write_text("kubelet")
    url = origin.as_uri()
    with pytest.raises(BootError, match=f"{url} has SHA-256 {hashlib.sha256(b'kubelet').hexdigest()}, not 00"):
        machine.download(url, str(target), "00")
    assert list(target.parent.iterdir()) == []
    machine.download(url, str(target), hashlib.sha256(b"kubelet").hexdigest())
    assert target.read_text() == "kubelet"
    assert mode(target) == 0o755


def test_download_may_be_run_by_everybody_whatever_the_umask(machine: Quick, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    origin.write_text("kubectl")
    before = os.umask(0o077)
    try:
        machine.download(origin.as_uri(), f"{tmp_path}/kubectl", hashlib.sha256(b"kubectl").hexdigest())
    finally:
        os.umask(before)
    assert mode(tmp_path / "kubectl") == 0o755


def test_download_that_breaks_off_is_an_error_of_the_connection(machine: Quick, tmp_path: Path) -> None:
    class Origin(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"ff\r\nnot that much")
            self.close_connection = True

        def log_message(self, *arguments: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        # What `system.downloads` tries again; anything else would fail the instance.
        with pytest.raises((OSError, BootError)):
            machine.download(f"http://127.0.0.1:{server.server_port}/kubelet", str(tmp_path / "kubelet"), "00")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    # The next attempt begins anew in the same place.
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("kubelet")] == ["kubelet.part"]


def test_log_of_an_instance_that_lives_long_does_not_fill_its_disk(
    machine: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seam, "LOG_SIZE", 1000)
    for number in range(100):
        machine.log(f"line {number} " + "x" * 90)
    files = sorted(each.name for each in tmp_path.iterdir())
    assert files == ["log", "log.1"]
    assert all((tmp_path / name).stat().st_size <= 1200 and mode(tmp_path / name) == 0o600 for name in files)
    assert (tmp_path / "log").read_text().splitlines()[-1].startswith("line 99 ")


def test_wait_says_each_minute_what_is_missing_and_ends_with_the_last_reason(
    machine: Quick, capsys: pytest.CaptureFixture[str]
) -> None:
    def probe() -> None:
        raise Pending("still nothing")

    with pytest.raises(BootError, match=r"waited 13. s for rain: still nothing") as caught:
        machine.wait("rain", probe, "look up", 130)
    assert caught.value.hint == "look up"
    assert capsys.readouterr().out.splitlines() == [
        "cfngen: waiting for rain (61 s): still nothing",
        "cfngen: waiting for rain (121 s): still nothing",
    ]


def test_hint_of_what_was_tried_counts_more_than_that_of_the_wait(machine: Quick) -> None:
    def knows() -> None:
        raise BootError("containerd is down", "start it")

    def knows_not() -> None:
        raise BootError("no")

    for probe, hint in ((knows, "start it"), (knows_not, "look up")):
        with pytest.raises(BootError) as caught:
            machine.wait("rain", probe, "look up", 5, BootError)
        assert caught.value.hint == hint


def test_other_exceptions_end_a_wait_at_once(machine: Quick) -> None:
    def probe() -> None:
        raise BootError("hopeless")

    with pytest.raises(BootError, match=r"^hopeless$"):
        machine.wait("rain", probe, "look up")
    assert machine.passed == 0


class Metadata(BaseHTTPRequestHandler):
    """EC2's metadata service, version 2 only; it hangs up on the very first request."""

    requests: list[str]

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_PUT(self) -> None:
        self.requests.append(self.path)
        if len(self.requests) > 1:
            self.answer(200, "token-for-" + self.headers["X-aws-ec2-metadata-token-ttl-seconds"])

    def do_GET(self) -> None:
        allowed = self.headers["X-aws-ec2-metadata-token"] == "token-for-60"
        if allowed and self.path.endswith("/absent"):
            self.answer(404, "")
            return
        self.answer(200 if allowed else 401, self.path if allowed else "")

    def log_message(self, *arguments: Any) -> None:
        return


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    Metadata.requests = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("metadata")
def test_metadata_is_read_with_a_session_token_and_after_a_failure(machine: Quick) -> None:
    assert machine.metadata("dynamic/x") == "/latest/dynamic/x"
    assert Metadata.requests == ["/latest/api/token"] * 2


@pytest.mark.usefixtures("metadata")
def test_value_that_the_metadata_service_does_not_have_may_be_missing(machine: Quick) -> None:
    assert machine.metadata("meta-data/absent", default="none") == "none"
    assert machine.metadata("meta-data/there", default="none") == "/latest/meta-data/there"
    with pytest.raises(BootError, match=r"waited .* for instance metadata: HTTP Error 404"):
        machine.metadata("meta-data/absent")


@pytest.fixture
def volumes(machine: Quick, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    client = boto3.client("ec2", region_name="us-west-2")
    monkeypatch.setitem(machine._clients, "ec2", client)
    with Stubber(client) as stubber:
        yield stubber


def test_aws_answers_and_expected_errors_are_returned(machine: Quick, volumes: Stubber) -> None:
    volumes.add_response("describe_volumes", {"Volumes": []}, {"VolumeIds": ["vol-1"]})
    assert machine.aws("ec2", "describe_volumes", VolumeIds=["vol-1"])["Volumes"] == []
    volumes.add_client_error("attach_volume", "VolumeInUse", "it is taken")
    answer = machine.aws("ec2", "attach_volume", "VolumeInUse", VolumeId="v", InstanceId="i", Device="d")
    assert answer == {"Error": {"Code": "VolumeInUse", "Message": "it is taken"}}


def test_role_that_is_not_known_everywhere_yet_is_waited_for(machine: Quick, volumes: Stubber) -> None:
    volumes.add_client_error("describe_volumes", "UnauthorizedOperation", "not yet")
    volumes.add_client_error("describe_volumes", "RequestLimitExceeded", "slower")
    volumes.add_response("describe_volumes", {"Volumes": []})
    assert machine.aws("ec2", "describe_volumes")["Volumes"] == []


def test_role_that_may_not_is_a_failure_after_a_minute(machine: Quick, volumes: Stubber) -> None:
    for _ in range(20):
        volumes.add_client_error("describe_volumes", "UnauthorizedOperation", "You are not authorized")
    with pytest.raises(BootError, match=r"waited 6. s for describe_volumes: .*You are not authorized") as caught:
        machine.aws("ec2", "describe_volumes")
    assert "its role allows the call" in caught.value.hint
    assert machine.passed < 75


def test_other_errors_of_aws_are_failures_at_once(machine: Quick, volumes: Stubber) -> None:
    volumes.add_client_error("describe_volumes", "InvalidVolume.NotFound", "The volume 'vol-1' does not exist.")
    with pytest.raises(BootError, match="'vol-1' does not exist"):
        machine.aws("ec2", "describe_volumes")
    assert machine.passed == 0


def test_missing_credentials_are_looked_for_again(machine: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    # A client that was made without credentials never looks for them again: each attempt takes a new one.
    made: list[str] = []

    class Client:
        meta = SimpleNamespace(events=Events())

        def describe_volumes(self) -> dict[str, Any]:
            if len(made) < 3:
                raise NoCredentialsError
            return {"Volumes": []}

    def client(service: str, **arguments: Any) -> Client:
        made.append(service)
        return Client()

    monkeypatch.setattr("boto3.client", client)
    assert machine.aws("ec2", "describe_volumes") == {"Volumes": []}
    assert made == ["ec2", "ec2", "ec2"]


def test_credentials_that_never_come_end_the_wait(machine: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        meta = SimpleNamespace(events=Events())

        def describe_volumes(self) -> None:
            raise NoCredentialsError

    monkeypatch.setattr("boto3.client", lambda service, **arguments: Client())
    with pytest.raises(BootError, match=r"waited 6. s for describe_volumes: Unable to locate credentials"):
        machine.aws("ec2", "describe_volumes")


def test_client_is_for_the_instances_region_and_the_given_endpoint(
    machine: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    machine.region = "eu-central-1"
    client = machine._client("ec2")
    assert client.meta.region_name == "eu-central-1"
    assert client.meta.endpoint_url == "http://127.0.0.1:1"
    assert machine._client("ec2") is client


def test_texts_are_filled_at_any_depth() -> None:
    value = {"a": ["${x}", {"b": "${x}-${y}-${unknown}"}], "n": 1, "t": True}
    assert fill(value, {"x": "1", "y": "2"}) == {"a": ["1", {"b": "1-2-${unknown}"}], "n": 1, "t": True}


def test_documents_are_separated_as_yaml_wants_it() -> None:
    assert yaml_documents({"a": 1}, {"b": 2}) == '{\n "a": 1\n}\n---\n{\n "b": 2\n}\n'


def test_what_a_task_says_is_told_from_what_the_boot_says(machine: Quick, capsys: pytest.CaptureFixture[str]) -> None:
    machine.say("one")
    machine.prefix = "cfngen-addons"
    machine.say("two")
    assert capsys.readouterr().out.splitlines() == ["cfngen: one", "cfngen-addons: two"]
