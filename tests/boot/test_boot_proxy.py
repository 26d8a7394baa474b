"""The boot program behind a proxy: its own requests with the variables of a unit, and the image's services."""

from __future__ import annotations

import hashlib
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from boots import boot_of
from scripted_machine import ScriptedMachine

from cfngen.boot import machine as seam
from cfngen.boot.host import proxy
from cfngen.boot.machine import Machine
from cfngen.cluster.load import parse
from cfngen.userdata import roles

SSM_AGENT = "snap.amazon-ssm-agent.amazon-ssm-agent.service"
CONFIG: dict[str, Any] = {"proxyServices": ["snapd.service", SSM_AGENT]}
KUBELET = b"the kubelet"


class Server(ThreadingHTTPServer):
    """An HTTP server that answers everything alike, and notes what it was asked: a method and a target."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Answers with the kubelet, and refuses tunnels."""

    server: Server

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.send_response(200)
        self.send_header("Content-Length", str(len(KUBELET)))
        self.end_headers()
        self.wfile.write(KUBELET)

    def do_CONNECT(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        self.send_error(403)

    def log_message(self, *arguments: Any) -> None:
        return


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """Two servers: a proxy, and an instance's metadata service."""
    made = (Server(), Server())
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in made]
    for thread in threads:
        thread.start()
    yield made
    for server, thread in zip(made, threads, strict=True):
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def proxy_server(servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch) -> Server:
    """A proxy, which is in the environment as systemd reads it from the boot program's unit."""
    file = {"network": {"proxy": {"httpsProxy": servers[0].url.replace("127.0.0.1", "proxy.example.com")}}}
    unit = roles(parse(file))[0].files["cfngen-boot.service"]
    # urllib reads the variables once in a process's life.
    monkeypatch.setattr(urllib.request, "_opener", None)
    lines = [line.removeprefix("Environment=") for line in unit.splitlines() if line.startswith("Environment=")]
    assert lines
    for line in lines:
        name, _, value = line.partition("=")
        # There is no such host here; a cluster file refuses the address that the server has.
        monkeypatch.setenv(name, value.replace("proxy.example.com", "127.0.0.1"))
    return servers[0]


def test_downloads_go_through_the_proxy(proxy_server: Server, tmp_path: Path) -> None:
    digest = hashlib.sha256(KUBELET).hexdigest()
    Machine().download("http://files.example.com/kubelet", f"{tmp_path}/kubelet", digest)
    assert (tmp_path / "kubelet").read_bytes() == KUBELET
    assert proxy_server.asked == ["GET http://files.example.com/kubelet"]


def test_downloads_by_tls_are_tunnelled(proxy_server: Server, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="403"):
        Machine().download("https://dl.k8s.io/kubelet", f"{tmp_path}/kubelet", "00")
    assert proxy_server.asked == ["CONNECT dl.k8s.io:443"]


def test_calls_of_aws_are_tunnelled(proxy_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(seam, "LOG", str(tmp_path / "log"))
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    machine = Machine()
    machine.region = "us-west-2"
    with pytest.raises(Exception, match="proxy"):
        machine._client("cloudformation").describe_stacks()
    assert set(proxy_server.asked) == {"CONNECT cloudformation.us-west-2.amazonaws.com:443"}


def test_metadata_of_the_instance_are_asked_for_directly(
    proxy_server: Server, servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", servers[1].url)
    assert Machine().metadata("meta-data/mac") == KUBELET.decode()
    assert servers[1].asked == ["PUT /latest/api/token", "GET /latest/meta-data/mac"]
    assert proxy_server.asked == []


def test_services_of_the_image_that_run_are_restarted() -> None:
    machine = ScriptedMachine()
    assert proxy.restart_services(machine, boot_of(CONFIG)) == f"snapd.service, {SSM_AGENT} restarted if running"
    assert machine.commands == [
        "systemctl daemon-reload",
        "systemctl --no-block try-restart snapd.service",
        f"systemctl --no-block try-restart {SSM_AGENT}",
    ]


def test_services_that_the_image_lacks_are_no_failure() -> None:
    machine = ScriptedMachine()
    machine.on("systemctl --no-block try-restart", (5, ""))
    assert proxy.restart_services(machine, boot_of(CONFIG)).endswith("restarted if running")
