"""What an instance is told: the user data of a launch template of ours, unpacked as its loader does on an instance."""

from __future__ import annotations

import base64
import binascii
import json
import lzma
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

REFERENCES = re.compile(r"^REFERENCES = (\{.*\})$", re.MULTILINE)
PROGRAM = re.compile(r'^PROGRAM = "(.*)"$', re.MULTILINE)
# Returns the metadata of a stack's resource: the stack's name, the logical id.
Metadata = Callable[[str, str], Mapping[str, Any]]


@dataclass(frozen=True)
class Told:
    """What the boot program of an instance knows.

    Attributes:
        references: names of resources that CloudFormation has filled in.
        configuration: of the instance's role.
        files: how many files the boot program puts in place.
    """

    references: Mapping[str, str]
    configuration: Mapping[str, Any]
    files: int = 0

    @property
    def master(self) -> bool:
        """Whether the instance is a master."""
        return bool(self.configuration["role"] == "master")

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return str(self.configuration["cluster"])

    @property
    def architecture(self) -> str:
        """What the instance's programs are made for, `amd64` or `arm64`."""
        return "arm64" if any("arm64" in each["url"] for each in self.configuration.get("assets", [])) else "amd64"

    def version(self, program: str, default: str = "") -> str:
        """Return the version of what the instance downloads: the one in the address of a file of that name."""
        for asset in self.configuration.get("assets", []):
            file = asset["url"].rpartition("/")[2]
            found = re.search(r"v?(\d+\.\d+\.\d+)", asset["url"])
            if found and file.startswith(program):
                return found[1]
        return default


def read(encoded: str, metadata: Metadata) -> Told | None:
    """Return what user data tells an instance; nothing if it is not ours.

    Args:
        encoded: user data in base64, as EC2 gives it.
        metadata: what the stacks' resources say of themselves; one of them holds the second stage.
    """
    try:
        text = base64.b64decode(encoded).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    references, program = REFERENCES.search(text), PROGRAM.search(text)
    if not references or not program:
        return None
    known = json.loads(references[1])
    configuration = json.loads(_files(program[1])["config.json"])
    second = _files(metadata(known["stack"], configuration["program"]["resource"])["cfngen"]["program"])
    placed = sum(each.startswith("files/") for each in second)
    return Told(known, {**configuration, **json.loads(second["role.json"])}, placed)


def _files(packed: str) -> dict[str, str]:
    items = lzma.decompress(base64.b85decode(packed)).decode().split("\0")
    return dict(zip(items[::2], items[1::2], strict=True))


def filled(value: Any, facts: Mapping[str, str]) -> Any:
    """Return a value with `${name}` replaced in every text of it, as the boot program does."""
    if isinstance(value, Mapping):
        return {key: filled(item, facts) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, facts) for item in value]
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda match: facts.get(match[1], match[0]), value)
    return value
