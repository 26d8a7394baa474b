"""The instance metadata service, version 2 only: who asks is known by the address that the question comes from.

After the EC2 user guide, "Use the Instance Metadata Service" and "Instance metadata categories". Strict: no answer
without a token that this very instance was given, no token to a caller behind a proxy.
"""

from __future__ import annotations

import datetime
import http.server
import json
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

VERSION = re.compile(r"/(latest|\d{4}-\d{2}-\d{2})(/.*|$)")
TTL = "X-aws-ec2-metadata-token-ttl-seconds"
TOKEN = "X-aws-ec2-metadata-token"


@dataclass(frozen=True)
class Identity:
    """What the metadata service says of an instance.

    Attributes:
        user_data: as given, not in base64.
        role: name of its role, for which the two keys stand.
        subnet: its range of addresses, as `vpc` is the VPC's.
        life_cycle: `on-demand` or `spot`.
        hypervisor: `nitro` or `xen`.
        hop_limit: how many hops the answer with a token may make (`HttpPutResponseHopLimit` of its launch template).
    """

    instance_id: str
    address: str
    mac: str
    zone: str
    instance_type: str
    image: str
    user_data: bytes
    role: str
    access_key: str
    secret_key: str
    interface: str
    subnet_id: str
    subnet: str
    vpc_id: str
    vpc: str
    public_address: str = ""
    life_cycle: str = "on-demand"
    hypervisor: str = "nitro"
    hop_limit: int = 1

    @property
    def region(self) -> str:
        """The zone's region."""
        return self.zone[:-1]

    def tree(self) -> dict[str, Any]:
        """What is below a version."""
        name = f"ip-{self.address.replace('.', '-')}.{self.region}.compute.internal"
        ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=6)
        credentials = {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "LastUpdated": _text(ends - datetime.timedelta(hours=6)),
            "AccessKeyId": self.access_key,
            "SecretAccessKey": self.secret_key,
            "Token": "a-session",
            "Expiration": _text(ends),
        }
        document = {
            "accountId": "123456789012",
            "architecture": "x86_64",
            "availabilityZone": self.zone,
            "imageId": self.image,
            "instanceId": self.instance_id,
            "instanceType": self.instance_type,
            "pendingTime": credentials["LastUpdated"],
            "privateIp": self.address,
            "region": self.region,
            "version": "2017-09-30",
        }
        interface = {
            "device-number": "0",
            "interface-id": self.interface,
            "local-hostname": name,
            "local-ipv4s": self.address,
            "mac": self.mac,
            "owner-id": "123456789012",
            "subnet-id": self.subnet_id,
            "subnet-ipv4-cidr-block": self.subnet,
            "vpc-id": self.vpc_id,
            "vpc-ipv4-cidr-block": self.vpc,
            "vpc-ipv4-cidr-blocks": self.vpc,
        }
        public = {"public-ipv4": self.public_address} if self.public_address else {}
        return {
            "meta-data": {
                "ami-id": self.image,
                "ami-launch-index": "0",
                "hostname": name,
                "iam": {"security-credentials": {self.role: json.dumps(credentials)}},
                "instance-id": self.instance_id,
                "instance-life-cycle": self.life_cycle,
                "instance-type": self.instance_type,
                "local-hostname": name,
                "local-ipv4": self.address,
                "mac": self.mac,
                "network": {"interfaces": {"macs": {self.mac: interface}}},
                "placement": {"availability-zone": self.zone, "region": self.region},
                "services": {"domain": "amazonaws.com", "partition": "aws"},
                **public,
            },
            "dynamic": {"instance-identity": {"document": json.dumps(document)}},
            "user-data": self.user_data,
        }


def _text(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _now(minutes: int = 0) -> str:
    return _text(datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=minutes))


class Metadata:
    """The service of a whole network.

    Args:
        sock: where it listens.

    Attributes:
        identities: by address; who is not here gets no answer.
        refused: what was asked without a token, and by whom.
        notices: by instance, what it is told of its coming end, by path below `meta-data`.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.identities: dict[str, Identity] = {}
        self.refused: list[tuple[str, str]] = []
        self.tokens: dict[str, tuple[str, float]] = {}
        self.notices: dict[str, dict[str, str]] = {}
        self.server = serve(sock, {"GET": self._get, "PUT": self._put}, self._hop_limit)

    def recommend_rebalance(self, instance_id: str) -> None:
        """Recommend to rebalance a Spot Instance ("EC2 instance rebalance recommendations", EC2 user guide)."""
        self._notify(instance_id, "events/recommendations/rebalance", noticeTime=_now())

    def interrupt(self, instance_id: str) -> None:
        """Say that a Spot Instance will be terminated ("Spot Instance interruption notices", EC2 user guide)."""
        self._notify(instance_id, "spot/instance-action", action="terminate", time=_now(minutes=2))

    def announce_termination(self, instance_id: str) -> None:
        """Say that Auto Scaling is to terminate an instance ("Retrieve the target lifecycle state", its user guide)."""
        self.notices.setdefault(instance_id, {})["autoscaling/target-lifecycle-state"] = "Terminated"

    def _notify(self, instance_id: str, path: str, **notice: str) -> None:
        self.notices.setdefault(instance_id, {})[path] = json.dumps(notice)

    def _hop_limit(self, method: str, caller: str) -> int:
        """Only the answer with the token is limited ("Instance metadata and containers", EC2 user guide)."""
        return self.identities[caller].hop_limit if method == "PUT" and caller in self.identities else 0

    def _put(self, caller: str, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        if path != "/latest/api/token" or caller not in self.identities:
            return 404, b""
        if "X-Forwarded-For" in headers:
            return 403, b""
        seconds = headers.get(TTL, "")
        if not seconds.isdecimal() or not 1 <= int(seconds) <= 21600:
            return 400, b""
        token = secrets.token_urlsafe(40)
        self.tokens[token] = (self.identities[caller].instance_id, time.monotonic() + int(seconds))
        return 200, token.encode()

    def _get(self, caller: str, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        identity = self.identities.get(caller)
        owner, ends = self.tokens.get(headers.get(TOKEN, ""), ("", 0.0))
        if identity is None or owner != identity.instance_id or ends < time.monotonic():
            self.refused.append((caller, path))
            return 401, b""
        match = VERSION.fullmatch(path)
        if not match:
            return 404, b""
        found: Any = identity.tree()
        for name, notice in self.notices.get(identity.instance_id, {}).items():
            folder = found["meta-data"]
            *folders, last = name.split("/")
            for each in folders:
                folder = folder.setdefault(each, {})
            folder[last] = notice
        for part in filter(None, match[2].split("/")):
            if not isinstance(found, dict) or part not in found:
                return 404, b""
            found = found[part]
        if isinstance(found, dict):
            return 200, "\n".join(key + "/" * isinstance(each, dict) for key, each in found.items()).encode()
        return 200, found if isinstance(found, bytes) else str(found).encode()


Answer = Callable[[str, str, Mapping[str, str]], "tuple[int, bytes]"]


class Server(http.server.ThreadingHTTPServer):
    """A server on a socket that exists already."""

    daemon_threads = True

    def __init__(self, sock: socket.socket, handler: type[http.server.BaseHTTPRequestHandler]) -> None:
        super().__init__(("", 0), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = sock
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: instances that are destroyed leave connections behind."""


HopLimit = Callable[[str, str], int]


def serve(
    sock: socket.socket, answers: Mapping[str, Answer], hop_limits: HopLimit = lambda method, caller: 0
) -> Server:
    """Answer requests by their method: each answer is made of the caller's address, the path and the headers.

    Args:
        sock: where it listens.
        answers: by method.
        hop_limits: returns how many hops an answer makes, by the method and the caller's address; 0 for the usual.
    """
    return Server(sock, _handler(answers, hop_limits))


def _handler(answers: Mapping[str, Answer], hop_limits: HopLimit) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _respond(self) -> None:
            status, body = answers[self.command](self.client_address[0], self.path, self.headers)
            if hops := hop_limits(self.command, self.client_address[0]):
                self.connection.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = _respond  # noqa: N815 - the base class wants these names

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    return Handler
