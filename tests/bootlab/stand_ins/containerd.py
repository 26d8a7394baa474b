"""containerd: ready at once, and does nothing; containers of static pods are run by the kubelet's stand-in."""

import os
import signal
import socket
import sys

from stand_ins import calls


def main(arguments):
    calls.record("containerd", arguments)
    if arguments:
        return
    if address := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.connect(address.replace("@", "\0", 1))
            sock.send(b"READY=1")
    os.makedirs("/run/containerd", exist_ok=True)
    with socket.socket(socket.AF_UNIX) as sock:
        path = "/run/containerd/containerd.sock"
        if os.path.exists(path):
            os.unlink(path)
        sock.bind(path)
        sock.listen()
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main(sys.argv[1:])
