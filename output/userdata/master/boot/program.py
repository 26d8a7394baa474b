"""Fetches the second stage of the boot program, which does not fit into user data, from the stack.

It is the metadata of a resource, returned by `cloudformation:DescribeStackResource`. The user data contains the
resource's logical id and the digest, so an instance runs exactly the program that belongs to its launch template.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
from typing import Any

from .machine import HOME, BootError, Machine, fill
from .runner import remaining

ROLE = HOME + "/role.json"
UNPACKED = HOME + "/unpacked"


def fetch(machine: Machine, config: dict[str, Any]) -> str:
    """Unpack the second stage, unless that is done already, and load the role's configuration from it."""
    resource, sha256 = config["program"]["resource"], config["program"]["sha256"]
    is_unpacked = machine.read(UNPACKED) == sha256
    if not is_unpacked:
        seconds, hint = remaining(machine, config), "does the stack still have this resource?"
        text = machine.wait(
            f"the program in {resource}", lambda: _packed_program(machine, config), hint, seconds, BootError
        )
        # A custom AMI may contain the files of another cluster.
        machine.remove(HOME + "/files/")
        items = lzma.decompress(base64.b85decode(text)).decode().split("\0")
        for index in range(0, len(items), 2):
            machine.write(f"{HOME}/{items[index]}", items[index + 1], 0o600)
        machine.write(UNPACKED, sha256)
    config.update(fill(json.loads(machine.read(ROLE)), config["facts"]))
    return f"{resource} {'was there' if is_unpacked else 'unpacked'}"


def _packed_program(machine: Machine, config: dict[str, Any]) -> str:
    """Return the packed program from the resource's metadata.

    Raises:
        BootError: the stack does not have the resource, or its digest is wrong.
    """
    resource, sha256 = config["program"]["resource"], config["program"]["sha256"]
    stack = config["facts"]["stack"]
    response = machine.aws("cloudformation", "describe_stack_resource", StackName=stack, LogicalResourceId=resource)
    text = str(json.loads(response["StackResourceDetail"]["Metadata"])["cfngen"]["program"])
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest != sha256:
        raise BootError(f"{resource} of stack {stack} has SHA-256 {digest}, not {sha256}")
    return text
