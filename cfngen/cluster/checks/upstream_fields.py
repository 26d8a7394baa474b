"""Judges configuration documents of other programs by tables of their fields: a value of another kind is a fault.

A table has for each type its fields by kind, names separated by white space. Kinds: `text`, `number`, `fraction`,
`flag`, `duration`, `any`, `=a,b` for one of these words, another type of the table, `[kind]` for a list, `{kind}` for a
mapping of any keys, and `kind or kind`. Null is of every kind: Kubernetes takes it for the default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from cfngen.cluster.paths import Path

Table: TypeAlias = Mapping[str, Mapping[str, str]]
# What time.ParseDuration takes; zero needs no unit.
_DURATION = re.compile(r"[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)")
_STAGES = "[=RequestReceived,ResponseStarted,ResponseComplete,Panic]"
AUDIT_TYPES: Table = {
    # https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/
    "Policy": {
        "=audit.k8s.io/v1": "apiVersion",
        "=Policy": "kind",
        "any": "metadata",
        "[PolicyRule]": "rules",
        _STAGES: "omitStages",
        "flag": "omitManagedFields",
    },
    "PolicyRule": {
        "=None,Metadata,Request,RequestResponse": "level",
        "[text]": "users userGroups verbs namespaces nonResourceURLs",
        "[GroupResources]": "resources",
        _STAGES: "omitStages",
        "flag": "omitManagedFields",
    },
    "GroupResources": {"text": "group", "[text]": "resources resourceNames"},
}
CLOUD_CONFIG_TYPES: Table = {
    # schema-cloud-config-v1.json of cloud-init; what is not here goes to cloud-init as it is.
    "CloudConfig": {
        "[text or [text] or {any}]": "packages",
        "flag": "package_update package_upgrade package_reboot_if_required",
        "[WrittenFile]": "write_files",
        "[text or [text]]": "bootcmd runcmd",
        "text or {any} or [text or {any}]": "users",
        "text": "hostname timezone final_message",
        "[text]": "ssh_authorized_keys",
        "[[any]]": "mounts",
        "[{any}]": "fs_setup",
        "{any}": "ntp swap disk_setup apt yum_repos snap ca_certs power_state chpasswd growpart",
    },
    "WrittenFile": {
        "text": "path content owner permissions encoding",
        "flag": "append defer",
        "{any}": "source",
    },
}
_NOUNS = {
    "text": "must be text; put it in quotes",
    "number": "must be a whole number",
    "fraction": "must be a number",
    "flag": "must be true or false",
    "duration": "must be a duration such as 30s or 1h30m",
}


def faults(
    value: object, kind: str, table: Table, path: Path = (), *, any_field: bool = True
) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with a value: the path in it, and a description.

    Args:
        any_field: whether a field that the table does not have is accepted, as the programs do with a warning.
    """
    if value is None or kind == "any":
        return
    if kind[0] == "[" and kind[-1] == "]":
        if not isinstance(value, list):
            yield path, "must be a list"
            return
        for index, item in enumerate(value):
            yield from faults(item, kind[1:-1], table, (*path, index), any_field=any_field)
    elif " or " in kind:
        faults_by_kind = [list(faults(value, part, table, path, any_field=any_field)) for part in _alternatives(kind)]
        if all(faults_by_kind):
            # Of the alternatives, the one that gets furthest is meant.
            yield from max(faults_by_kind, key=lambda faults_of_kind: len(faults_of_kind[0][0]))
    elif kind[0] == "{" or kind in table:
        if not isinstance(value, Mapping):
            yield path, "must be keys and values"
            return
        kinds_by_field = {
            name: field_kind for field_kind, names in table.get(kind, {}).items() for name in names.split()
        }
        for key, item in value.items():
            item_kind = kind[1:-1] if kind[0] == "{" else kinds_by_field.get(key, "any")
            if kind in table and key not in kinds_by_field and not any_field:
                yield (*path, key), f"is no field of {kind}"
            yield from faults(item, item_kind, table, (*path, key), any_field=any_field)
    elif kind[0] == "=":
        words = kind[1:].split(",")
        if value not in words:
            yield path, f"must be {' or '.join(words)}"
    elif not _is_scalar(value, kind):
        yield path, _NOUNS[kind]


def _alternatives(kind: str) -> list[str]:
    """Return the kinds between the words `or` that stand in no brackets."""
    return re.findall(r"(?:\[.*\]|\{[^}]*\}|[^\s\[{]+)(?= or |$)", kind)


def _is_scalar(value: object, kind: str) -> bool:
    if kind in ("number", "fraction"):
        return isinstance(value, int if kind == "number" else (int, float)) and not isinstance(value, bool)
    if kind == "flag":
        return isinstance(value, bool)
    return isinstance(value, str) and (kind == "text" or bool(_DURATION.fullmatch(value)))
