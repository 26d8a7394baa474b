"""What a golden case has that the default case has not: the part of its files that says something.

Differences are JSON pointers (RFC 6901) into a file of the default case, with what stands there in the other case; null
stands for nothing. A text that is not JSON is a list of lines, and statements of a policy go by their Sid. Digests of
the boot program are masked in both, so that a change of the program changes no case but the default one.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from golden_cases import load_case, rendered

from cfngen import userdata
from cfngen.cluster.naming.logical_ids import node_group_prefix

DIGEST = "(digest)"
LENGTH = "(length)"
DIGEST_LENGTH = 12  # characters of the digest in a logical id
SECTIONS = ("Parameters", "Resources", "Outputs")
# The node group of the default case, which those of other cases are compared with, whatever they are called.
DEFAULT_GROUP = "nodes"
Contents = dict[str, Any]


def differences(case: str) -> Contents:
    """How the files of a case differ from their counterparts in the default case, by path; only those that do."""
    before, after = counterparts(case), masked(case)
    changes = {path: dict(pointers(before.get(path), after.get(path))) for path in {**before, **after}}
    # A text, and a file that only one of the two cases has, differ as a whole, at the pointer "".
    return {path: change.get("", change) for path, change in changes.items() if change}


def pointers(before: Any, after: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """The pointers at which two values differ, with what stands there afterwards."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from pointers(before.get(key), after.get(key), f"{at}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after) and at:
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from pointers(old, new, f"{at}/{index}")
    elif before != after:
        yield at, after


def replaced(value: Any, changes: dict[str, Any]) -> Any:
    """A value with what `pointers` gave put into it; the reverse of `pointers`."""
    value = copy.deepcopy(value)
    for pointer, content in changes.items():
        *parents, last = (key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:])
        holder = value
        for key in parents:
            holder = holder[int(key) if isinstance(holder, list) else key]
        if isinstance(holder, list):
            holder[int(last)] = content
        elif content is None:
            del holder[last]
        else:
            holder[last] = content
    return value


@lru_cache(maxsize=8)  # the default case, which every other one is compared with, and what is being compared
def masked(case: str) -> Contents:
    """The files of a case, parsed, without digests of the boot program.

    The list of steps for people is left out: it has the steps of `config.json`, by number.
    """
    resources = [role.resource for role in userdata.roles(load_case(case).cluster)]
    return {
        path: parsed(path, without_digests(path, text, resources))
        for path, text in rendered(case).items()
        if not path.endswith("/steps.md")
    }


def without_digests(path: str, text: str, resources: Sequence[str]) -> str:
    """A file without digests of the boot program and its length.

    Args:
        path: the file's path.
        text: its content.
        resources: logical ids that end with a digest of the program.
    """
    for resource in resources:
        text = text.replace(resource, resource[:-DIGEST_LENGTH] + DIGEST)
    if path.endswith("/config.json"):
        return re.sub(r'"([0-9a-f]{5}|[0-9a-f]{64})"', f'"{DIGEST}"', text)
    return re.sub(r"(?<=… )\d+(?= characters: )", LENGTH, text) if path.endswith("/user-data.py") else text


def parsed(path: str, text: str) -> Any:
    """A file as JSON, or as a list of lines."""
    return by_sid(json.loads(text)) if path.endswith(".json") else text.split("\n")


def by_sid(value: Any) -> Any:
    """A value in which lists of statements are mappings, so that a statement more does not renumber the others."""
    if isinstance(value, dict):
        return {key: by_sid(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    statements = {item["Sid"]: by_sid(item) for item in value if isinstance(item, dict) and "Sid" in item}
    return statements if value and len(statements) == len(value) else [by_sid(item) for item in value]


def counterparts(case: str) -> Contents:
    """What each file of a case is compared with: the default case's of the same path.

    A node group is compared with the default case's group under the name that it has here. `standalone` is compared
    with the default case's after the entries in which the case's own stacks differ have been put into it.
    """
    default = masked("default")
    files = {path: content for path, content in default.items() if not of_group(path)}
    for group in load_case(case).cluster.node_groups:
        files |= renamed_group({path: content for path, content in default.items() if of_group(path)}, group.name)
    files["standalone.json"] = flattened(default, masked(case))
    return files


def of_group(path: str) -> bool:
    """Whether a file of the default case belongs to its node group."""
    return path.startswith((f"nodes-{DEFAULT_GROUP}.", f"userdata/nodes-{DEFAULT_GROUP}/"))


def renamed_group(files: Contents, name: str) -> Contents:
    """The files of the default case's node group if it were called otherwise."""
    text = json.dumps(files)
    for old, new in (
        (node_group_prefix(DEFAULT_GROUP), node_group_prefix(name)),
        (f"nodes-{DEFAULT_GROUP}", f"nodes-{name}"),
        (f'"{DEFAULT_GROUP}"', f'"{name}"'),
    ):
        text = text.replace(old, new)
    return dict(json.loads(text))


def flattened(default: Contents, own: Contents) -> Any:
    """The default case's `standalone` with the entries of a case's own stacks where these differ from the default's."""
    standalone = dict(default["standalone.json"])
    for section in SECTIONS:
        before, after = entries(default, section), entries(own, section)
        same = {name for name, entry in before.items() if after.get(name) == entry}
        kept = {name: entry for name, entry in standalone[section].items() if name in same or name not in before}
        standalone[section] = kept | {name: entry for name, entry in after.items() if name not in same}
    return standalone


def entries(files: Contents, section: str) -> dict[str, Any]:
    """Every parameter, resource or output of the stacks that a root nests, by name."""
    stacks = [files[path] for path in files if "/" not in path and path not in ("cluster.json", "standalone.json")]
    return {name: entry for stack in stacks for name, entry in stack.get(section, {}).items()}
