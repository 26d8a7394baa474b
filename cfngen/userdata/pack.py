"""Packs a role's boot program and configuration in two stages: the first into user data, the second into the stack.

User data holds the first stage: the loader, and the modules that install boto3 and fetch the second stage. The second
stage, which is the rest of the program with the role's configuration and files, is the metadata of a wait condition
handle that serves no other purpose; the instance reads it with `cloudformation:DescribeStackResource`, as cfn-init
does. The handle's logical id contains a digest of its content. So CloudFormation creates a changed program as a new
resource before any instance needs it, and deletes the old one when no instance does.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from cfngen.cluster.naming.logical_ids import ProgramId
from cfngen.errors import CfngenError
from cfngen.userdata.references import MAX_LENGTHS
from cfngen.userdata.source import PROGRAM_FOLDER, program_path, source_text, stripped_source, with_imported_modules
from cfngen.userdata.steps import first_stage_steps, steps_page

if TYPE_CHECKING:
    from cfngen.boot.contract import Config, JsonObject

# EC2's limit for user data before base64 encoding: 16 KB.
MAX_USER_DATA_BYTES = 16384
BOOT_UNIT_NAME = "cfngen-boot.service"
# Keys of the configuration that the first stage needs; all others come with the second stage.
FIRST_STAGE_KEYS = ("role", "cluster", "region", "timeout", "packages", "steps", "before")
# Settings of the compression. They are explicit, so that the output does not depend on a library's defaults.
LZMA_FILTERS = [
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
# The script in user data: it unpacks the first stage and starts the boot program. It runs with Python 3.9 and newer,
# which all supported distributions have. In tests CFNGEN_ROOT is a folder that takes the place of /.
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
# User data if the cluster file has a cloud-config: a MIME document of the loader and the cloud-config. Parts begin with
# `--cfngen`; no line of the loader does.
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
    """A role's user data exceeds EC2's limit.

    Attributes:
        role: the role, `master` or `nodes-<group>`.
        size: the maximum size of its user data in bytes.
    """

    code = "user-data-too-large"

    def __init__(self, role: str, size: int) -> None:
        super().__init__(
            f"the user data of {role} takes up to {size} bytes, and EC2 allows {MAX_USER_DATA_BYTES}",
            hint="shorten cloudConfig, preBootCommands and network.proxy, the parts of it that a cluster file decides",
        )
        self.role = role
        self.size = size


@dataclass(frozen=True)
class UserData:
    """The user data of one role.

    Attributes:
        role: `master` or `nodes-<group>`.
        value: the user data for a launch template: troposphere's Base64 of a Join of literal texts and references.
        size: maximum bytes of the user data (before base64), with every reference at its maximum length.
        resource: logical id of the resource, in the same stack, whose metadata is the second stage.
        program: the packed second stage, for the metadata of that resource.
        show_files: returns `files`, which few who generate templates look at.
        instance_files: texts by path below /opt/cfngen, as an instance gets them, with `${name}` for each reference.
        limit: the maximum bytes of user data (before base64) that EC2 allows.
    """

    role: str
    value: Any
    size: int
    resource: str
    program: str
    show_files: Callable[[], Mapping[str, str]] = field(repr=False, compare=False)
    instance_files: Mapping[str, str]
    limit: int = MAX_USER_DATA_BYTES

    @cached_property
    def files(self) -> Mapping[str, str]:
        """Texts by path, which `cfngen userdata` shows.

        `user-data.py` is the loader, with `${name}` for each reference and without the packed program; `steps.md` lists
        the steps. All others are the files unpacked to /opt/cfngen; Python sources have their comments here.
        """
        return self.show_files()

    @property
    def files_to_review(self) -> dict[str, str]:
        """What the cluster file decides of `files`: all but the sources of the boot program."""
        return {path: text for path, text in self.files.items() if not path.startswith(PROGRAM_FOLDER)}

    @property
    def is_near_limit(self) -> bool:
        """Whether the size is worth mentioning, since it takes nine tenths of what EC2 allows."""
        return self.size >= 0.9 * self.limit


def pack(
    role: str,
    prefix: str,
    config: Config,
    files: Mapping[str, str],
    references: Mapping[str, object],
    cloud_config: JsonObject | None = None,
) -> UserData:
    """Return the user data of a role.

    Args:
        role: `master` or `nodes-<group>`.
        prefix: prefix of the logical id of the resource with the second stage, e.g. `Master`.
        files: the texts of further files to unpack, by path below /opt/cfngen, including BOOT_UNIT_NAME.
        references: by the reference's name (a key of `MAX_LENGTHS`), a troposphere expression or a plain text.
        cloud_config: the cloud-config that cloud-init gets beside the loader, if the cluster file has one.

    Raises:
        UserDataTooLargeError: the user data is larger than EC2 allows.
    """
    from troposphere import Base64, Join

    first_modules, second_modules = _modules_of_stages(config)
    role_config = {key: value for key, value in config.items() if key not in FIRST_STAGE_KEYS}
    second_files = {
        **{program_path(module): stripped_source(module) for module in second_modules},
        "role.json": _compact_json(role_config),
        **{path: text for path, text in files.items() if path != BOOT_UNIT_NAME},
    }
    program = _compress(_join_files(second_files))
    sha256 = _sha256(program)
    resource = str(ProgramId(prefix, sha256[:12]))
    first_config: dict[str, object] = {key: value for key, value in config.items() if key in FIRST_STAGE_KEYS}
    first_config["program"] = {"resource": resource, "sha256": sha256}
    first_config["contents"] = _digests_of_second_stage(second_modules, role_config, files)
    first_files = {program_path(module): stripped_source(module) for module in first_modules}
    first_files.update({"config.json": _compact_json(first_config), BOOT_UNIT_NAME: files[BOOT_UNIT_NAME]})
    packed_first = _compress(_join_files(first_files))
    cloud_config_text = _cloud_config_text(cloud_config) if cloud_config else ""
    pieces = _split_at_references(_user_data(packed_first, cloud_config_text), references)
    modules = sorted({*first_modules, *second_modules})
    return UserData(
        role=role,
        value=Base64(Join("", [piece if isinstance(piece, str) else piece.value for piece in pieces])),
        size=_checked_size(role, pieces),
        resource=resource,
        program=program,
        show_files=lambda: {
            "user-data.py": _shown_loader(packed_first, first_files, references),
            "config.json": _readable_json(first_config),
            "role.json": _readable_json(role_config),
            "steps.md": steps_page(role, config["steps"], config["tasks"], _digest_of_program(modules)),
            **({"cloud-config.yaml": cloud_config_text + "\n"} if cloud_config_text else {}),
            **files,
            **{program_path(module): source_text(module) for module in modules},
        },
        instance_files={"references.json": _shown_references(references), **first_files, **second_files},
    )


def _checked_size(role: str, pieces: Sequence[str | _Reference]) -> int:
    """Return the bytes of user data with every reference at its maximum length, if EC2 allows so many."""
    size = sum(len(piece) if isinstance(piece, str) else MAX_LENGTHS[piece.name] for piece in pieces)
    if size > MAX_USER_DATA_BYTES:
        raise UserDataTooLargeError(role, size)
    return size


def _shown_references(references: Mapping[str, object]) -> str:
    return json.dumps({name: text if isinstance(text, str) else f"${{{name}}}" for name, text in references.items()})


def _modules_of_stages(config: Config) -> tuple[Sequence[str], Sequence[str]]:
    """Return the modules of each stage: the ones with the functions of its steps, and all that these import."""
    first_modules = with_imported_modules(
        ["__main__", *map(_module_of_function, first_stage_steps(config["steps"]).values())]
    )
    functions = list(config["steps"].values())
    for task_steps in config["tasks"].values():
        functions += task_steps.values()
    all_modules = with_imported_modules(map(_module_of_function, functions))
    return first_modules, [module for module in all_modules if module not in first_modules]


def _digests_of_second_stage(
    modules: Sequence[str], role_config: Mapping[str, object], files: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return digests of the second stage's parts, from which `user_data_diff` finds out what has changed."""
    return {
        "boot": _digests({module: stripped_source(module) for module in modules}),
        "role": _digests({key: _compact_json(value) for key, value in role_config.items()}),
        "files": _digests({path.removeprefix("files"): text for path, text in files.items() if path != BOOT_UNIT_NAME}),
    }


def _user_data(packed_first: str, cloud_config_text: str) -> str:
    """Return user data with a NUL in the place of the references, see `_split_at_references`."""
    loader = LOADER.format(references="\0", program=packed_first, unit=BOOT_UNIT_NAME)
    return MULTIPART.format(loader=loader, cloud_config=cloud_config_text) if cloud_config_text else loader


def _shown_loader(packed_first: str, first_files: Mapping[str, str], references: Mapping[str, object]) -> str:
    """Return the loader without the packed program, and with `${name}` for each reference."""
    elided = f"… {len(packed_first)} characters: {', '.join(sorted(first_files))}, packed …"
    pieces = _split_at_references(LOADER.format(references="\0", program=elided, unit=BOOT_UNIT_NAME), references)
    return "".join(piece if isinstance(piece, str) else f"${{{piece.name}}}" for piece in pieces)


def _digest_of_program(modules: Sequence[str]) -> str:
    return _sha256(_join_files({module: stripped_source(module) for module in modules}))


def _module_of_function(function: str) -> str:
    """Return the module of a step's function, e.g. `host.system` of `host.system.settings`."""
    return function.rpartition(".")[0]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _compact_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _readable_json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _cloud_config_text(cloud_config: JsonObject) -> str:
    """Return a cloud-config without `${…}` and dynamic references `{{…}}`, which CloudFormation would replace.

    Both only occur within JSON strings, where the second character is replaced by an escape sequence for a brace.
    """
    return "#cloud-config\n" + re.sub(r"(?<=[${])\{", r"\\u007b", json.dumps(cloud_config, indent=1))


def _join_files(texts_by_path: Mapping[str, str]) -> str:
    """Return paths and texts of files as one text, alternating and separated by NUL."""
    return "\0".join(f"{path}\0{text}" for path, text in texts_by_path.items())


def _digests(texts: Mapping[str, str]) -> dict[str, str]:
    """Return five digits of each text's digest, to save space: of a million changes about one stays unnoticed."""
    return {name: _digest(text) for name, text in texts.items()}


@lru_cache(maxsize=1024)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:5]


@dataclass(frozen=True)
class _Reference:
    """A value that only CloudFormation knows, such as a resource's id, and its name for the boot program."""

    name: str
    value: object


def _split_at_references(text: str, references: Mapping[str, object]) -> list[str | _Reference]:
    """Return the pieces that CloudFormation joins to user data: literal texts and references.

    The text's NUL is replaced by a JSON object with the value of each reference, by name.
    """
    before, _, after = text.partition("\0")
    pieces: list[str | _Reference] = []
    literal = before + "{"
    for index, (name, value) in enumerate(references.items()):
        separator = ", " if index > 0 else ""
        literal += f'{separator}"{name}": "'
        if isinstance(value, str):
            literal += value
        else:
            pieces += [literal, _Reference(name, value)]
            literal = ""
        literal += '"'
    return [*pieces, literal + "}" + after]


@lru_cache(maxsize=64)
def _compress(text: str) -> str:
    """Return a text, compressed with LZMA, in base85, whose alphabet needs no escaping in a Python string.

    Results are cached, since compressing is slow, and node groups that differ only in name, size or zones have the same
    text.
    """
    return base64.b85encode(lzma.compress(text.encode(), lzma.FORMAT_ALONE, filters=LZMA_FILTERS)).decode("ascii")
