"""Reads what the masters have published for nodes by `join_information`."""

from __future__ import annotations

import json
from typing import Any

from .machine import Machine


def read(machine: Machine, config: dict[str, Any]) -> dict[str, Any]:
    """Return the join information; empty if there is none yet."""
    arn = config["facts"]["joinSecretArn"]
    response = machine.aws("secretsmanager", "get_secret_value", "ResourceNotFoundException", SecretId=arn)
    information: dict[str, Any] = json.loads(response.get("SecretString") or "{}")
    return information
