"""Fetches the second stage of the boot program, which does not fit into user data, from the stack.

The second stage is in the metadata of a resource, returned by `cloudformation:DescribeStackResource`. The user data
contains the resource's logical id and the digest, so an instance always runs the program that belongs to the version of
its launch template.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
from typing import TYPE_CHECKING

from .machine import HOME, BootError
from .state import fill

if TYPE_CHECKING:
    from .contract import Config, Program
    from .machine import Machine
    from .state import Boot

ROLE = HOME + "/role.json"
UNPACKED = HOME + "/unpacked"


def fetch(machine: Machine, boot: Boot) -> str:
    """Unpack the second stage, unless it is unpacked already, and load the role's configuration from it."""
    program = boot.config["program"]
    resource, sha256 = program["resource"], program["sha256"]
    is_unpacked = machine.read(UNPACKED) == sha256
    if not is_unpacked:
        seconds, hint = boot.remaining(machine), "check that the stack still has this resource"
        text = machine.wait(
            f"the program in {resource}",
            lambda: _packed_program(machine, boot.facts["stack"], program),
            hint,
            seconds,
            BootError,
        )
        # A custom AMI may contain the files of another cluster.
        machine.remove(HOME + "/files/")
        items = lzma.decompress(base64.b85decode(text)).decode().split("\0")
        for index in range(0, len(items), 2):
            machine.write(f"{HOME}/{items[index]}", items[index + 1], 0o600)
        machine.write(UNPACKED, sha256)
    second_stage: Config = fill(json.loads(machine.read(ROLE)), boot.facts)
    boot.config = {**boot.config, **second_stage}
    return f"{resource} {'was there' if is_unpacked else 'unpacked'}"


def _packed_program(machine: Machine, stack: str, program: Program) -> str:
    """Return the packed program from the resource's metadata.

    Raises:
        BootError: the stack does not have the resource, or the packed program has another digest.
    """
    resource, sha256 = program["resource"], program["sha256"]
    response = machine.aws("cloudformation", "describe_stack_resource", StackName=stack, LogicalResourceId=resource)
    text = str(json.loads(response["StackResourceDetail"]["Metadata"])["cfngen"]["program"])
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest != sha256:
        raise BootError(f"{resource} of stack {stack} has SHA-256 {digest}, not {sha256}")
    return text
