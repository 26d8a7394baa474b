"""An API server that answers, one that is not there, and one whose packets are lost, told apart by the real machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from cfngen.boot.host import hosts
from cfngen.boot.machine import Machine


class Brief(Machine):
    """Waits for nobody's packets for long."""

    def connect(self, address: str, port: int, seconds: float = 0.2) -> None:
        super().connect(address, port, seconds)


@pytest.fixture
def port() -> Iterator[int]:
    """A port at which 127.0.0.2 accepts connections, 127.0.0.3 refuses them, and 127.0.0.1 loses all packets."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        number = int(full.getsockname()[1])
        stack.enter_context(socket.create_server(("127.0.0.2", number)))
        # The kernel drops requests for a connection once nobody takes those that are waiting.
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", number))
        yield number


def test_packets_that_are_lost_are_told_from_a_refusal(port: int) -> None:
    machine = Brief()
    machine.connect("127.0.0.2", port)
    with pytest.raises(ConnectionRefusedError):
        machine.connect("127.0.0.3", port)
    with pytest.raises(OSError, match="timed out") as caught:
        machine.connect("127.0.0.1", port)
    assert not isinstance(caught.value, ConnectionRefusedError)


def test_address_whose_packets_are_lost_comes_last(port: int) -> None:
    addresses = ["127.0.0.3", "127.0.0.1", "127.0.0.2"]
    assert hosts.answering_first(Brief(), addresses, port) == ["127.0.0.3", "127.0.0.2", "127.0.0.1"]
