"""Puts a role's program and configuration into user data, and what does not fit there into the stack.

User data holds the first stage: the loader, and the modules that install boto3 and fetch the second stage. That one,
the rest of the program with the role's configuration and files, is the metadata of a resource that makes nothing; the
instance reads it with `cloudformation:DescribeStackResource`, as cfn-init does. The resource's name follows from what
it holds: a changed program is another resource, made before an instance may ask for it, removed when none does.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cfngen.errors import CfngenError
from cfngen.userdata.source import packed, required, source

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
    "slot": 1,
    **dict.fromkeys(("addressA", "addressB", "addressC", "addressD", "addressE"), len("255.255.255.255")),
    # A load balancer's DNS name: its own name, 16 digits, and the longest region and suffix.
    "publicAddress": 32 + len("-0123456789abcdef.elb.ap-southeast-2.amazonaws.com.cn"),
    "condition": len("MasterAWaitCondition"),
    "conditionStack": 128,
    "caSecretArn": 128,
    "joinSecretArn": 128,
    "bucket": 63,
}
# What the first stage reads of the configuration; everything else comes with the second.
FIRST = ("role", "cluster", "region", "timeout", "packages", "steps")
FIRST_STEPS = {"packages": "packages.install", "program": "program.fetch"}
# Before anything else, where there are such commands: a proxy may have to be set before packages can be fetched.
BEFORE = {"pre-boot commands": "hooks.before"}
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
# What cloud-init gets if the cluster file has a cloud-config beside the loader. No line of the loader begins with --.
MULTIPART = """\
Content-Type: multipart/mixed; boundary="cfngen"
MIME-Version: 1.0

--cfngen
Content-Type: text/x-shellscript; charset="us-ascii"

{loader}
--cfngen
Content-Type: text/cloud-config; charset="us-ascii"

{cloud_config}
--cfngen--
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
            hint="shorten cloudConfig and preBootCommands, the parts of it that a cluster file decides",
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
        resource: logical id of the resource that bears the second stage, in the same stack.
        program: the second stage, packed: the metadata of that resource.
        files: the readable view: `user-data.py` is the loader, with `${name}` where a reference is filled in and the
            packed program left out; all others are what is unpacked to /opt/cfngen, the sources with their comments.
        limit: bytes that EC2 allows.
    """

    role: str
    value: Any
    size: int
    resource: str
    program: str
    files: Mapping[str, str]
    limit: int = LIMIT


def pack(
    role: str,
    prefix: str,
    config: Mapping[str, Any],
    files: Mapping[str, str],
    references: Mapping[str, Any],
    cloud_config: Mapping[str, Any] | None = None,
) -> UserData:
    """Return the user data of a role.

    Args:
        role: name for people, `master` or `nodes-<group>`.
        prefix: of the logical id of the resource that bears the second stage, e.g. `Master`.
        config: the role's configuration, JSON-ready; `steps` and `tasks` name the steps, `module.function` by title.
        files: further files to unpack, by path under /opt/cfngen; the systemd unit that runs the program is one.
        references: troposphere expressions, or plain texts, by the names of `LONGEST` and `resource`.
        cloud_config: a cloud-config that cloud-init gets beside the loader.

    Raises:
        UserDataTooLargeError: it is larger than EC2 allows.
    """
    from troposphere import Base64, Join

    first_steps = {**(BEFORE if "before" in config else {}), **FIRST_STEPS}
    at_first = (*FIRST, *(["before"] if "before" in config else []))
    begin = required(["__main__", *(_module(name) for name in first_steps.values())])
    later = {key: value for key, value in config.items() if key not in at_first}
    orders = [*config["steps"].values(), *(name for task in config["tasks"].values() for name in task.values())]
    content = {f"boot/{each}.py": packed(each) for each in required(map(_module, orders)) if each not in begin}
    content["role.json"] = _json(later)
    content.update({path: text for path, text in files.items() if path != UNIT})
    program = _compress(_joined(content))
    sha256 = hashlib.sha256(program.encode()).hexdigest()
    resource = f"{prefix}Program{sha256[:12]}"

    first = {
        **{key: config[key] for key in at_first},
        "steps": {**first_steps, **config["steps"]},
        "program": {"resource": resource, "sha256": sha256},
        # What the second stage holds, part by part, so that two user data tell what differs.
        "contents": _contents(content, later),
    }
    beginning = {f"boot/{each}.py": packed(each) for each in begin}
    beginning.update({"config.json": _json(first), UNIT: files[UNIT]})
    packed_first = _compress(_joined(beginning))
    beside = "#cloud-config\n" + _inert(json.dumps(cloud_config, indent=1)) if cloud_config else ""
    loader = LOADER.format(references="\0", program=packed_first, unit=UNIT)
    pieces = _pieces(MULTIPART.format(loader=loader, cloud_config=beside) if beside else loader, references)
    size = sum(len(piece) if isinstance(piece, str) else LONGEST[piece.name] for piece in pieces)
    if size > LIMIT:
        raise UserDataTooLargeError(role, size)
    elided = f"… {len(packed_first)} characters: {', '.join(sorted(beginning))}, packed …"
    shown = _pieces(LOADER.format(references="\0", program=elided, unit=UNIT), references)
    view = {
        "user-data.py": "".join(piece if isinstance(piece, str) else f"${{{piece.name}}}" for piece in shown),
        "config.json": json.dumps(first, indent=2, ensure_ascii=False) + "\n",
        "role.json": json.dumps(later, indent=2, ensure_ascii=False) + "\n",
        **({"cloud-config.yaml": beside + "\n"} if beside else {}),
        **files,
        **{path: source(path[5:-3]) for path in sorted([*beginning, *content]) if path.startswith("boot/")},
    }
    value = Join("", [piece if isinstance(piece, str) else piece.value for piece in pieces])
    return UserData(role, Base64(value), size, resource, program, view)


def _module(step: str) -> str:
    return step.partition(".")[0]


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _inert(text: str) -> str:
    """Return JSON in which CloudFormation finds nothing to fill in: neither `${…}` nor a dynamic reference, `{{…}}`.

    Both can only stand in JSON's strings, where a brace may be written as its code.
    """
    return re.sub(r"(?<=[${])\{", r"\\u007b", text)


def _joined(content: Mapping[str, str]) -> str:
    return "\0".join(f"{path}\0{text}" for path, text in content.items())


def _contents(content: Mapping[str, str], configuration: Mapping[str, Any]) -> dict[str, str]:
    """Return a short digest of each part: files and modules by path, parts of the configuration by `role.json#key`."""
    parts = {path: text for path, text in content.items() if path != "role.json"}
    parts.update({f"role.json#{key}": _json(value) for key, value in configuration.items()})
    return {part: hashlib.sha256(text.encode()).hexdigest()[:6] for part, text in parts.items()}


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
