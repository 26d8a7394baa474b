"""Describes the differences between two versions of user data, for an operator who is about to replace instances."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from cfngen.userdata.changed_parts import REFERENCE_TOPICS, Digest, Parts, changes_in_words
from cfngen.userdata.first_stage import FirstStage, unpacked, unpacked_files
from cfngen.userdata.source import program_path

# Pattern of the cloud-config in user data; its group is the content without the first line.
_CLOUD_CONFIG = re.compile(r"^#cloud-config\n(.*?)\n--cfngen--$", re.MULTILINE | re.DOTALL)

LOADER_CHANGES = "only the loader of the boot program changes"
"""What is said where no part of the user data changes."""


def difference(old_user_data: str, new_user_data: str, programs: Mapping[str, str] | None = None) -> str:
    """Return in words how two versions of user data differ, with their second stages; "" if one cannot be unpacked.

    Both are user data of `pack`, filled in by CloudFormation, in base64 or as text.

    Args:
        programs: the packed second stages that are known, by the logical id of the resource that has it.
    """
    stages = [unpacked(old_user_data), unpacked(new_user_data)]
    old_stage, new_stage = stages
    if old_stage is None or new_stage is None:
        return ""
    known = programs or {}
    if not all(stage.program in known for stage in (old_stage, new_stage)):
        known = {}  # a digest and a content cannot be compared
    phrases = changes_in_words(*(_parts(stage, known.get(stage.program, "")) for stage in (old_stage, new_stage)))
    return "; ".join(phrases) or LOADER_CHANGES


def topics_of_reference(user_data: str, reference: str) -> list[str]:
    """Return in words what the values are that user data of `pack` takes from a reference.

    Args:
        user_data: with placeholders such as `${ApiLoadBalancer.DNSName}`.
        reference: such as `ApiLoadBalancer.DNSName`.
    """
    stage = unpacked(user_data)
    values: dict[str, str] = json.loads(stage.references) if stage else {}
    return [REFERENCE_TOPICS.get(name, name) for name, value in values.items() if f"${{{reference}}}" in value]


def parts(text: str) -> list[str]:
    """Return the content of user data as lines for a diff, each with the name of its part in front.

    Of the second stage the user data has only digests, which say nothing to a reader: `difference` says what changes.
    There are no lines if the user data is damaged.
    """
    stage = unpacked(text)
    lines: list[str] = []
    for name, part in sorted((_parts(stage) if stage else {}).items()):
        if isinstance(part, Digest):
            continue
        is_text = isinstance(part, str)
        lines += [f"{name}: {line}" for line in (part if is_text else json.dumps(part, indent=2)).splitlines()]
    return lines


def _parts(stage: FirstStage, program: str = "") -> Parts:
    """Return the parts of both stages by name.

    Args:
        program: the packed second stage; if it is empty, there are only digests of its parts, which the configuration
            of the first stage contains.
    """
    config = dict(stage.config)
    config.pop("program", None)
    digests = config.pop("contents", {})
    if program:
        files = unpacked_files(program)
        role = json.loads(files.pop("role.json"))
        second_stage = {
            **{f"role.json#{key}": value for key, value in role.items()},
            **{path.removeprefix("files"): text for path, text in files.items()},
        }
    else:
        second_stage = {
            **{program_path(module): Digest(digest) for module, digest in digests.get("boot", {}).items()},
            **{f"role.json#{key}": Digest(digest) for key, digest in digests.get("role", {}).items()},
            **{path: Digest(digest) for path, digest in digests.get("files", {}).items()},
        }
    first_stage: dict[str, object] = {f"config.json#{key}": value for key, value in config.items()}
    cloud_config = _CLOUD_CONFIG.search(stage.script)
    if cloud_config:
        first_stage["user-data#cloudConfig"] = cloud_config[1]
    return {"references.json": stage.references, **stage.files, **first_stage, **second_stage}
