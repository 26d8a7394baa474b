"""What stands before the masters for people outside the VPC: an Elastic IP, or a network load balancer.

Both are a socket in the network's namespace that passes connections on to a master that takes them.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Sequence

from lab_network import Network

PATIENCE = 1.0  # seconds to wait for a master that does not answer at all


class Balancer:
    """One address of the API.

    Args:
        network: where it is.
        address: its own; any address will do, as the namespace takes it for its own.
        port: of the API, here and on the masters.
        masters: returns the masters' addresses, whoever of them is up.
    """

    def __init__(self, network: Network, address: str, port: int, masters: Callable[[], Sequence[str]]) -> None:
        self._network, self._port, self._masters = network, port, masters
        self._socket = network.listen(address, port)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more connections."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), self._master() as server, selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in selector.select():
                    text = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    if not text:
                        return
                    key.data.sendall(text)

    def _master(self) -> socket.socket:
        for address in self._masters():
            with contextlib.suppress(OSError):
                found = self._network.connect(address, self._port, PATIENCE)
                found.settimeout(None)
                return found
        raise OSError("no master takes connections")
