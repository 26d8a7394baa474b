"""The network of a VPC: a namespace with a bridge, DHCP and a resolver, and a wire to each instance.

Nothing of it is seen outside its namespaces, so its addresses may be those of the cluster file.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# Where the account, the mirror and the metadata service answer. The first is of the range for benchmarks (RFC 2544).
SERVICES = "198.18.0.1"
METADATA = "169.254.169.254"
BRIDGE = "br0"
ROUTER = "02:ff:00:00:00:01"
CLONE_NEWNET = 0x40000000
COOKIE = b"\x63\x82\x53\x63"
LEASE = 86400  # seconds
OFFER, ACKNOWLEDGED = 2, 5
DISCOVER, REQUEST = 1, 3

Subnet = ipaddress.IPv4Network


def command(*words: str | Path, **options: object) -> str:
    """Run a program and return what it printed."""
    done = subprocess.run([str(each) for each in words], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}: {done.stderr or done.stdout}")
    return done.stdout


@dataclass
class Network:
    """The network of a VPC.

    Attributes:
        name: of the namespace.
        subnets: those of the VPC; the first address of each is the router.
        leases: addresses by the hardware address of an interface.
    """

    name: str
    subnets: tuple[Subnet, ...]
    leases: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The namespace as a file."""
        return f"/run/netns/{self.name}"

    def listen(self, address: str, port: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
        """Return a socket in the namespace; a stream's listens."""

        def make() -> socket.socket:
            made = socket.socket(socket.AF_INET, kind)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if kind is socket.SOCK_DGRAM:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, BRIDGE.encode())
            made.bind((address, port))
            if kind is socket.SOCK_STREAM:
                made.listen(64)
            return made

        return self.inside(make)

    def connect(self, address: str, port: int, seconds: float = 5) -> socket.socket:
        """Return a connection that starts in the namespace."""
        return self.inside(lambda: socket.create_connection((address, port), seconds))

    def inside(self, action: Callable[[], socket.socket]) -> socket.socket:
        """Do something in the namespace: in a thread of its own, as a thread can change its namespace alone."""

        def enter() -> socket.socket:
            library = ctypes.CDLL(None, use_errno=True)
            with Path(self.path).open() as file:
                if library.setns(file.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            return action()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(enter).result()

    @contextlib.contextmanager
    def wire(self, number: int, address: str) -> Iterator[tuple[str, str]]:
        """An interface `ens5` in a namespace of its own, on the bridge; yields the namespace's path and the MAC.

        Args:
            number: of the instance, unique in the network.
            address: what DHCP is to give it.
        """
        mac, rack = f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}", f"{self.name}-{number}"
        end = f"i{number}"
        command("ip", "netns", "add", rack)
        try:
            peer = ("type", "veth", "peer", "name", "ens5", "address", mac, "netns", rack)
            command("ip", "-n", self.name, "link", "add", end, *peer)
            command("ip", "-n", self.name, "link", "set", end, "master", BRIDGE, "up")
            self.leases[mac] = address
            yield f"/run/netns/{rack}", mac
        finally:
            self.leases.pop(mac, None)
            # The interface itself may be in a namespace that is still being taken apart; both ends go together.
            subprocess.run(["ip", "-n", self.name, "link", "del", end], check=False, capture_output=True)
            command("ip", "netns", "del", rack)
            # An address changes hands at once: nobody may go on sending to the old interface.
            command("ip", "-n", self.name, "neigh", "flush", "to", address)

    def serve_dhcp(self, sock: socket.socket) -> None:
        """Give each interface its address until the socket is closed (RFC 2131)."""
        with contextlib.suppress(OSError):
            while packet := sock.recv(2048):
                if answer := self._answer(packet):
                    sock.sendto(answer, ("255.255.255.255", 68))

    def _answer(self, packet: bytes) -> bytes:
        mac = packet[28:34].hex(":")
        kind = _options(packet[240:]).get(53, b"\0")[0]
        if mac not in self.leases or kind not in (DISCOVER, REQUEST):
            return b""
        address = ipaddress.ip_address(self.leases[mac])
        subnet = next(each for each in self.subnets if address in each)
        router = subnet[1].packed
        options = {
            53: bytes([OFFER if kind == DISCOVER else ACKNOWLEDGED]),
            54: router,
            51: struct.pack(">I", LEASE),
            1: subnet.netmask.packed,
            3: router,
            6: router,
            15: b"compute.internal",
        }
        head = b"\x02\x01\x06\x00" + packet[4:8] + bytes(4) + bytes(4) + address.packed + router + bytes(4)
        tail = b"".join(bytes([code, len(value)]) + value for code, value in options.items()) + b"\xff"
        return head + packet[28:44] + bytes(192) + COOKIE + tail


def serve_names(sock: socket.socket) -> None:
    """Answer every question for a name with "there is none" until the socket is closed (RFC 1035, 4.1.1)."""
    with contextlib.suppress(OSError):
        while True:
            packet, caller = sock.recvfrom(2048)
            if not packet:  # the socket is closed
                return
            sock.sendto(packet[:2] + b"\x81\x83" + packet[4:6] + bytes(6) + packet[12:], caller)


def _options(text: bytes) -> Mapping[int, bytes]:
    found: dict[int, bytes] = {}
    position = 0
    while position < len(text) and text[position] != 255:
        code = text[position]
        if not code:
            position += 1
            continue
        length = text[position + 1]
        found[code] = text[position + 2 : position + 2 + length]
        position += 2 + length
    return found


@contextlib.contextmanager
def network(subnets: tuple[Subnet, ...]) -> Iterator[Network]:
    """A network with nobody on it, gone at the end of the block."""
    made = Network(f"bootlab-{os.getpid()}", subnets)
    command("ip", "netns", "add", made.name)
    sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []
    try:
        # An address of its own: else it is that of one of its ports, and changes when an instance goes.
        command("ip", "-n", made.name, "link", "add", BRIDGE, "address", ROUTER, "type", "bridge")
        for address in (*(f"{each[1]}/{each.prefixlen}" for each in subnets), f"{SERVICES}/32", f"{METADATA}/32"):
            command("ip", "-n", made.name, "address", "add", address, "dev", BRIDGE)
        for device in ("lo", BRIDGE):
            command("ip", "-n", made.name, "link", "set", device, "up")
        command("nsenter", f"--net={made.path}", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        for port, serve in ((67, made.serve_dhcp), (53, serve_names)):
            sockets.append(made.listen("0.0.0.0", port, socket.SOCK_DGRAM))
            threads.append(threading.Thread(target=serve, args=(sockets[-1],), daemon=True))
            threads[-1].start()
        yield made
    finally:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in threads:
            thread.join(5)
        command("ip", "netns", "del", made.name)
