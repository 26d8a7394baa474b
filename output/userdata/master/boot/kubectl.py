"""kubectl as the cluster's administrator."""

from __future__ import annotations

from typing import Any

from .machine import Machine

ADMIN = "/etc/kubernetes/admin.conf"


def kubectl(
    machine: Machine, *arguments: str, stdin: str = "", expect: tuple[int, ...] = (0,), kubeconfig: str = ADMIN
) -> tuple[int, str]:
    """Run kubectl against any API server of the cluster; return its exit code and what it said.

    Raises:
        BootError: another exit code than one of `expect`.
    """
    return machine.run(
        "kubectl", "--kubeconfig", kubeconfig, "--request-timeout=15s", *arguments, stdin=stdin, expect=expect
    )


def own_server(config: dict[str, Any]) -> str:
    """Return the option that makes kubectl ask this master's API server and no other's."""
    return f"--server=https://{config['facts']['privateAddress']}:{config['endpoint'].rpartition(':')[2]}"
