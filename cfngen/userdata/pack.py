"""Puts a role's program and configuration into user data and reckons how large it can get."""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cfngen.errors import CfngenError
from cfngen.userdata.source import MODULES, packed, source

# EC2's limit of user data before it is base64-encoded: 16 KB.
LIMIT = 16384
UNIT = "cfngen-boot.service"
# Longest text that each reference can stand for. Stack names have up to 128 characters, ids a prefix and 17 digits. A
# secret's ARN: 66 characters up to its name (longest partition and region), a logical id of ours, two random suffixes.
LONGEST = {
    "stack": 128,
    "volumeId": len("vol-") + 17,
    "routeTableId": len("rtb-") + 17,
    "privateAddress": len("255.255.255.255"),
    "publicAddress": len("255.255.255.255"),
    "caSecretArn": 128,
    "joinSecretArn": 128,
}
# Explicit, so that no library's default changes the bytes.
FILTERS = [
    {
        "id": lzma.FILTER_LZMA1,
        "dict_size": 1 << 16,
        "lc": 3,
        "lp": 0,
        "pb": 0,
        "mode": lzma.MODE_NORMAL,
        "nice_len": 273,
        "mf": lzma.MF_BT4,
        "depth": 1000,
    }
]
# Runs under Python 3.9 and newer: that of every named distribution. CFNGEN_ROOT is a folder that stands for / in tests.
LOADER = """\
#!/usr/bin/python3
# cfngen's boot program, packed; `cfngen userdata` shows it.
import base64, json, lzma, os, subprocess
REFERENCES = {references}
PROGRAM = "{program}"
os.umask(0o077)
home = os.environ.get("CFNGEN_ROOT", "") + "/opt/cfngen/"
items = lzma.decompress(base64.b85decode(PROGRAM)).decode().split("\\0")
for path, text in [("references.json", json.dumps(REFERENCES)), *zip(items[::2], items[1::2])]:
    os.makedirs(os.path.dirname(home + path), exist_ok=True)
    with open(home + path, "w") as file:
        file.write(text)
os.chmod(home + "{unit}", 0o644)
for order in (["enable", home + "{unit}"], ["restart", "--no-block", "{unit}"]):
    subprocess.run(["systemctl", *order], check=True)
"""


class UserDataTooLargeError(CfngenError):
    """A role's user data does not fit.

    Attributes:
        role: whose user data it is.
        size: its size in bytes in the worst case.
    """

    def __init__(self, role: str, size: int) -> None:
        super().__init__(
            f"the user data of {role} takes up to {size} bytes, and EC2 allows {LIMIT}",
            hint="shorten kubernetes.clusterConfiguration, kubernetes.kubeletConfiguration or api.additionalNames",
        )
        self.role = role
        self.size = size


@dataclass(frozen=True)
class UserData:
    """The user data of one role.

    Attributes:
        role: `master` or `nodes-<group>`.
        value: troposphere's Base64 of a Join, for a launch template.
        size: bytes of the user data (before base64) in the worst case of the references' lengths.
        files: the readable view: `user-data.py` is the loader, with `${name}` where a reference is filled in and the
            packed program left out; all others are what it unpacks to /opt/cfngen, the sources with their comments.
        limit: bytes that EC2 allows.
    """

    role: str
    value: Any
    size: int
    files: Mapping[str, str]
    limit: int = LIMIT


def pack(role: str, config: Mapping[str, Any], files: Mapping[str, str], references: Mapping[str, Any]) -> UserData:
    """Return the user data of a role.

    Args:
        role: name for people, `master` or `nodes-<group>`.
        config: the role's configuration, JSON-ready; `config["role"]` says which modules are packed.
        files: further files to unpack, by path under /opt/cfngen; the systemd unit that runs the program is one.
        references: troposphere expressions, or plain texts, by the names of `LONGEST` and `resource`.

    Raises:
        UserDataTooLargeError: it is larger than EC2 allows.
    """
    from troposphere import Base64, Join

    modules = MODULES[config["role"]]
    content = {f"boot/{module}.py": packed(module) for module in modules}
    content["config.json"] = json.dumps(config, separators=(",", ":"))
    content.update(files)
    program = _compress("\0".join(f"{path}\0{text}" for path, text in content.items()))
    pieces = _pieces(LOADER.format(references="\0", program=program, unit=UNIT), references)
    size = sum(len(piece) if isinstance(piece, str) else LONGEST[piece.name] for piece in pieces)
    if size > LIMIT:
        raise UserDataTooLargeError(role, size)
    elided = f"… {len(program)} characters: the other files of this folder, packed …"
    shown = _pieces(LOADER.format(references="\0", program=elided, unit=UNIT), references)
    view = {
        "user-data.py": "".join(piece if isinstance(piece, str) else f"${{{piece.name}}}" for piece in shown),
        "config.json": json.dumps(config, indent=2, ensure_ascii=False) + "\n",
        **files,
        **{f"boot/{module}.py": source(module) for module in modules},
    }
    value = Join("", [piece if isinstance(piece, str) else piece.value for piece in pieces])
    return UserData(role, Base64(value), size, view)


@dataclass(frozen=True)
class _Reference:
    """A value known only at run time.

    Attributes:
        name: its name, a key of `LONGEST`.
        value: the troposphere expression.
    """

    name: str
    value: Any


def _pieces(text: str, references: Mapping[str, Any]) -> list[str | _Reference]:
    """Return `text` in pieces, its NUL replaced by the references as a JSON object; neighbouring texts are joined."""
    before, _, after = text.partition("\0")
    pieces: list[str | _Reference] = []
    literal = before + "{"
    for index, (name, value) in enumerate(references.items()):
        literal += (", " if index else "") + f'"{name}": "'
        if isinstance(value, str):
            literal += value
        else:
            pieces += [literal, _Reference(name, value)]
            literal = ""
        literal += '"'
    return [*pieces, literal + "}" + after]


@lru_cache(maxsize=64)
def _compress(text: str) -> str:
    """Return text as LZMA in base85, whose alphabet needs no escaping in a Python string.

    Node groups that differ only in name, size or zones share one text, and compressing is the slowest part here.
    """
    return base64.b85encode(lzma.compress(text.encode(), lzma.FORMAT_ALONE, filters=FILTERS)).decode("ascii")
