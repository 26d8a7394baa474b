"""Lets services of the image use the proxy that the cluster file names."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..machine import Machine
    from ..state import Boot


def restart_services(machine: Machine, boot: Boot) -> str:
    """Restart the image's services that run already, as they started before the files with the proxy were written.

    The boot does not wait for them, and an image may lack them: no step needs them.
    """
    services = boot.config["proxyServices"]
    machine.run("systemctl", "daemon-reload")
    for service in services:
        # systemctl(1): 5, there is no such unit.
        machine.run("systemctl", "--no-block", "try-restart", service, expect=(0, 5))
    return ", ".join(services) + " restarted if running"
