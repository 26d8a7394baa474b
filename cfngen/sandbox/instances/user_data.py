"""Unpacks the user data of cfngen's launch templates, as the loader in the user data does on an instance."""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import json
import lzma
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from cfngen.sandbox.untyped import Json, JsonObject

REFERENCES_LINE = re.compile(r"^REFERENCES = (\{.*\})$", re.MULTILINE)
# The unit of the boot program, and the variables of a proxy in it.
BOOT_UNIT = "cfngen-boot.service"
HTTPS_PROXY = re.compile(r"^Environment=HTTPS_PROXY=(\S+)$", re.MULTILINE)
NO_PROXY = re.compile(r"^Environment=NO_PROXY=(\S+)$", re.MULTILINE)
# A file of the second stage with the mirrors of a registry, and the beginning of a mirror in it.
REGISTRY_FILE = re.compile(r"files/etc/containerd/certs\.d/([^/]+)/hosts\.toml")
REGISTRY_MIRROR = re.compile(r'^\[host\."?(https?://[^"\]]+)"?\]$', re.MULTILINE)
PROGRAM_LINE = re.compile(r'^PROGRAM = "(.*)"$', re.MULTILINE)
# Takes the name of a stack and the logical id of a resource; returns the resource's Metadata attribute.
MetadataReader = Callable[[str, str], JsonObject]


class ProgramError(Exception):
    """The SHA-256 of the program in the stack's metadata is not the one in the user data."""


@dataclass(frozen=True)
class BootData:
    """The input of the boot program on an instance.

    The user data has the program's first stage only, as EC2 limits its size; the first stage fetches the second stage
    from the metadata of a resource in the stack.

    Attributes:
        references: physical ids and addresses by name, which CloudFormation substitutes in the user data.
        configuration: configuration of a master or a node; before the second stage is fetched, only the first stage's.
        files: how many files the second stage writes; 0 before it is fetched.
        registry_mirrors: URLs of the mirrors of registries by the registry's host; empty before the second stage is
            fetched.
        proxy: URL of the HTTPS proxy that the boot program uses; empty if it uses none.
        direct_hosts: hosts, and domains beginning with a dot, that it reaches without the proxy.
    """

    references: Mapping[str, str]
    configuration: JsonObject
    files: int = 0
    registry_mirrors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    proxy: str = ""
    direct_hosts: tuple[str, ...] = ()

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
        """The architecture of the programs that the instance downloads, `amd64` or `arm64`."""
        return "arm64" if any("arm64" in asset["url"] for asset in self.configuration.get("assets", [])) else "amd64"

    def version(self, program: str, default: str = "") -> str:
        """Return the version in the URL of a program that the instance downloads; the default if there is none."""
        for asset in self.configuration.get("assets", []):
            file = asset["url"].rpartition("/")[2]
            match = re.search(r"v?(\d+\.\d+\.\d+)", asset["url"])
            if match and file.startswith(program):
                return match[1]
        return default


def read(encoded: str) -> BootData | None:
    """Return the first stage's boot data in user data; None if the user data is not cfngen's.

    Args:
        encoded: user data in base64, as EC2 returns it.
    """
    try:
        text = base64.b64decode(encoded).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    references_match, program_match = REFERENCES_LINE.search(text), PROGRAM_LINE.search(text)
    if not references_match or not program_match:
        return None
    first_stage_files = _unpack(program_match[1])
    boot_unit = first_stage_files.get(BOOT_UNIT, "")
    proxy, direct_hosts = HTTPS_PROXY.search(boot_unit), NO_PROXY.search(boot_unit)
    return BootData(
        references=json.loads(references_match[1]),
        configuration=json.loads(first_stage_files["config.json"]),
        proxy=proxy[1] if proxy else "",
        direct_hosts=tuple(direct_hosts[1].split(",")) if direct_hosts else (),
    )


def with_second_stage(first_stage: BootData, read_metadata: MetadataReader) -> BootData:
    """Return the boot data of an instance after it has fetched the second stage.

    Args:
        read_metadata: returns the Metadata of a resource; that of the program's resource contains the second stage.

    Raises:
        ProgramError: the SHA-256 of the second stage is not the one in the user data.
        ApiError: there is no such stack or resource.
    """
    stack, program = first_stage.references["stack"], first_stage.configuration["program"]
    resource, sha256 = program["resource"], program["sha256"]
    packed_program = read_metadata(stack, resource)["cfngen"]["program"]
    digest = hashlib.sha256(packed_program.encode()).hexdigest()
    if digest != sha256:
        raise ProgramError(f"{resource} of stack {stack} has SHA-256 {digest}, not {sha256}")
    second_stage_files = _unpack(packed_program)
    return replace(
        first_stage,
        configuration={**first_stage.configuration, **json.loads(second_stage_files["role.json"])},
        files=sum(path.startswith("files/") for path in second_stage_files),
        registry_mirrors={
            match[1]: tuple(REGISTRY_MIRROR.findall(text))
            for path, text in second_stage_files.items()
            if (match := REGISTRY_FILE.fullmatch(path))
        },
    )


def _unpack(packed: str) -> dict[str, str]:
    """Return the contents of the files of a packed program by path.

    A packed program is alternating paths and contents, separated by null characters, compressed, in base85.
    """
    paths_and_contents = _decompress(packed).split("\0")
    return dict(zip(paths_and_contents[::2], paths_and_contents[1::2], strict=True))


@functools.lru_cache(maxsize=32)  # all instances of a group have the same program, and decoding base85 is slow
def _decompress(packed: str) -> str:
    return lzma.decompress(base64.b85decode(packed)).decode()


def substitute(value: Json, facts: Mapping[str, str]) -> Json:
    """Return a JSON value with every placeholder such as `${instanceId}` replaced by the fact of that name.

    A placeholder without a fact of its name stays as it is.
    """
    if isinstance(value, Mapping):
        return {key: substitute(item, facts) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, facts) for item in value]
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda match: facts.get(match[1], match[0]), value)
    return value
