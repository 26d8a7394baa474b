"""Unpacks user data made by `pack`: the first stage of the boot program, and where it finds the second stage."""

from __future__ import annotations

import base64
import binascii
import json
import lzma
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

# Patterns of two lines of the loader: the values of the references, as JSON, and the packed first stage.
_REFERENCES = re.compile(r"^REFERENCES = (\{.*\})$", re.MULTILINE)
_PROGRAM = re.compile(r'^PROGRAM = "([^"]*)"$', re.MULTILINE)


@dataclass(frozen=True)
class FirstStage:
    """The unpacked user data of one instance.

    Attributes:
        script: the user data as cloud-init gets it: the loader, or a MIME document of the loader and the cloud-config.
        references: the values that CloudFormation has filled in (`references.json`), as JSON.
        files: the texts of the packed files by path, except `config.json`, which is in `config`.
    """

    script: str
    references: str
    files: Mapping[str, str]
    config: JsonObject

    @property
    def program(self) -> str:
        """Logical id of the resource whose metadata contains the second stage."""
        return str(self.config["program"]["resource"])

    @property
    def sha256(self) -> str:
        """SHA-256 of the packed second stage in that resource's metadata."""
        return str(self.config["program"]["sha256"])


def unpacked(user_data: str) -> FirstStage | None:
    """Return the unpacked first stage, or None if the user data was not made by `pack`, or is damaged.

    It is user data as CloudFormation has filled it in, in base64 or as text.
    """
    try:
        is_plain_text = user_data.startswith(("#!", "Content-Type:"))
        script = user_data if is_plain_text else base64.b64decode(user_data, validate=True).decode()
        references, program = _REFERENCES.search(script), _PROGRAM.search(script)
        if not references or not program:
            return None
        files = unpacked_files(program[1])
        config = json.loads(files.pop("config.json"))
    except (binascii.Error, ValueError, lzma.LZMAError, KeyError):
        return None
    return FirstStage(script, references[1], files, config)


def unpacked_files(packed: str) -> dict[str, str]:
    """Return the texts by path of a packed stage, the first one or the second one in the stack.

    Raises:
        ValueError: it is damaged.
        lzma.LZMAError: it is damaged.
    """
    items = lzma.decompress(base64.b85decode(packed)).decode().split("\0")
    return dict(zip(items[::2], items[1::2], strict=True))
