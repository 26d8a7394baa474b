"""Formats a kubeconfig, and what was changed in one, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfngen.deploy.access.kubeconfig import KubeconfigChange, KubeconfigDocument


def change_lines(message: KubeconfigChange) -> list[str]:
    """Return which entries were written to the file, or removed from it."""
    names = ", ".join(message.names)
    if message.action == "removed":
        return [f"Removed {names} from {message.path}."]
    if message.action == "none":
        return [f"{message.path} has no entries of the stack {message.stack} in {message.region}."]
    switch_note = ", and made it the current one" if message.current else ""
    groups = f" (groups: {', '.join(message.groups)})" if message.groups else ""
    return [
        f"Wrote the context {names} to {message.path}{switch_note}.",
        f"You can access {message.server} as {message.user}{groups} until {message.expires:%Y-%m-%d %H:%M} UTC.",
    ]


def document_lines(message: KubeconfigDocument) -> list[str]:
    """Return a kubeconfig as YAML."""
    from cfngen.deploy.access.kubeconfig import to_yaml

    return to_yaml(message.kubeconfig).removesuffix("\n").split("\n")
