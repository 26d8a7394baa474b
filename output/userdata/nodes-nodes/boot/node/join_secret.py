"""Reads the join information, which masters publish for nodes in a secret (`boot.master.join_information`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..machine import Machine

if TYPE_CHECKING:
    from ..contract import JoinInformation, NodeBoot


def read(machine: Machine, boot: NodeBoot) -> JoinInformation:
    """Return the join information; empty if no master has published it yet."""
    arn = boot.facts["joinSecretArn"]
    response = machine.aws("secretsmanager", "get_secret_value", "ResourceNotFoundException", SecretId=arn)
    information: JoinInformation = json.loads(response.get("SecretString") or "{}")
    return information
