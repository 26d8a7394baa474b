"""Fetches the second stage of the boot program, which does not fit into user data, from the stack.

The second stage is in the metadata of one of the stack's resources; `cloudformation:DescribeStackResource` returns it.
The user data contains the resource's logical id and the digest of the second stage, so an instance always runs the
program that belongs to its version of the launch template.
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
    from .contract import Config
    from .machine import Machine
    from .state import Boot

ROLE_FILE = HOME + "/role.json"
# File with the SHA-256 of the second stage that was unpacked last.
UNPACKED_FILE = HOME + "/unpacked"


def fetch(machine: Machine, boot: Boot) -> str:
    """Unpack the second stage, unless it is unpacked already, and load the role's configuration from it."""
    program = boot.config["program"]
    resource, sha256 = program["resource"], program["sha256"]
    is_unpacked = machine.read(UNPACKED_FILE) == sha256
    if not is_unpacked:
        seconds, hint = boot.remaining(machine), "check that the stack still has this resource"
        text = machine.wait(
            f"the program in {resource}",
            lambda: _packed_program(machine, boot.facts["stack"], resource, sha256),
            hint,
            seconds,
            retry_on=BootError,
        )
        # A custom AMI may contain the files of another cluster, which must not be copied to this instance.
        machine.remove(HOME + "/files/")
        items = lzma.decompress(base64.b85decode(text)).decode().split("\0")
        for path, content in zip(items[::2], items[1::2]):  # noqa: B905 - Python 3.9 has no `strict`
            machine.write(f"{HOME}/{path}", content, 0o600)
        machine.write(UNPACKED_FILE, sha256)
    second_stage: Config = fill(json.loads(machine.read(ROLE_FILE)), boot.facts)
    boot.config = {**boot.config, **second_stage}
    return f"{resource} {'was there' if is_unpacked else 'unpacked'}"


def _packed_program(machine: Machine, stack: str, resource: str, sha256: str) -> str:
    """Return the packed second stage from the metadata of a stack's resource.

    Raises:
        BootError: the stack does not have the resource, or the packed second stage has another digest.
    """
    response = machine.aws("cloudformation", "describe_stack_resource", StackName=stack, LogicalResourceId=resource)
    text = str(json.loads(response["StackResourceDetail"]["Metadata"])["cfngen"]["program"])
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest != sha256:
        raise BootError(f"{resource} of stack {stack} has SHA-256 {digest}, not {sha256}")
    return text
