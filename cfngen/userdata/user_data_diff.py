"""Describes what differs between two user data, for an operator who is about to replace instances."""

from __future__ import annotations

import contextlib
import json
import re

from cfngen.userdata.first_stage import unpacked
from cfngen.userdata.source import program_path

# Descriptions of the keys of a role's configuration; a key without one is shown as it is.
_DESCRIPTIONS = {
    "apiHost": "the API's name",
    "assets": "what it downloads",
    "before": "the commands before everything else",
    "cloudConfig": "the cloud-config",
    "drain": "how long pods may take to move",
    "endpoint": "the API's endpoint",
    "hooks": "files, units and commands of the cluster file",
    "join": "how nodes join",
    "kubeadm": "kubeadm's configuration",
    "kubelet": "the kubelet's configuration",
    "kubeletPatch": "the kubelet's configuration",
    "manifests": "the add-ons",
    "masters": "the masters",
    "ownCa": "the secret of the certificate authority",
    "packages": "the distribution's packages",
    "pause": "the image of pods' sandboxes",
    "upgradeWait": "how long nodes wait for masters of their version",
    "services": "the services that run",
    "timeout": "the time that it may take",
}
# Likewise for files, by path.
_FILE_DESCRIPTIONS = {
    "/etc/systemd/system/cfngen-masquerade.service": "which traffic of pods leaves with the node's address"
}
_CLOUD_CONFIG = re.compile(r"^#cloud-config\n(.*?)\n--cfngen--$", re.MULTILINE | re.DOTALL)


def difference(old_user_data: str, new_user_data: str) -> str:
    """Return a sentence on what differs between two user data, or "" if one of them cannot be unpacked.

    Args:
        old_user_data: user data of `pack`, filled in by CloudFormation; in base64 or as text.
        new_user_data: the new user data, in the same form.
    """
    old, new = _parts_by_name(old_user_data), _parts_by_name(new_user_data)
    if old is None or new is None:
        return ""
    changed = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    if not changed:
        return "only the loader of the boot program changes"
    modules = [
        path.removeprefix("boot/").removesuffix(".py").replace("/", ".") for path in changed if path.startswith("boot/")
    ]
    changes = [f"the boot program ({', '.join(modules)})"] if modules else []
    changes += [_DESCRIPTIONS.get(key, key) for key in (path.partition("#")[2] for path in changed) if key]
    for path in changed:
        if path == "references.json":
            changes.append(
                f"ids from the stacks ({', '.join(_changed_keys(old.get(path, '{}'), new.get(path, '{}')))})"
            )
        elif not path.startswith("boot/") and "#" not in path:
            changes.append(_FILE_DESCRIPTIONS.get(path, path))
    return f"what changes: {', '.join(dict.fromkeys(changes))}"


def parts(text: str) -> list[str]:
    """Return the content of user data as lines for a diff, each prefixed with its part's name; none if it is damaged.

    Args:
        text: user data of `pack`, filled in by CloudFormation; in base64 or as text.
    """
    lines: list[str] = []
    for path, part in sorted((_parts_by_name(text) or {}).items()):
        if "#" in path:
            with contextlib.suppress(ValueError):
                part = json.dumps(json.loads(part), indent=2, sort_keys=True)
        lines += [f"{path}: {line}" for line in part.splitlines()]
    return lines


def _parts_by_name(text: str) -> dict[str, str] | None:
    """Return the parts of both stages by name, each as text or digest; None if the user data is damaged.

    The second stage is in the stack; the first stage's configuration has the digests of its parts.
    """
    stage = unpacked(text)
    if stage is None:
        return None
    config = dict(stage.config)
    config.pop("program", None)
    digests = config.pop("contents", {})
    second_stage = {
        **{program_path(module): digest for module, digest in digests.get("boot", {}).items()},
        **{f"role.json#{key}": digest for key, digest in digests.get("role", {}).items()},
        **digests.get("files", {}),
    }
    first_stage = {f"config.json#{key}": json.dumps(value) for key, value in config.items()}
    cloud_config = _CLOUD_CONFIG.search(stage.script)
    first_stage.update({"user-data#cloudConfig": cloud_config[1]} if cloud_config else {})
    return {"references.json": stage.references, **stage.files, **first_stage, **second_stage}


def _changed_keys(old_json: str, new_json: str) -> list[str]:
    old, new = json.loads(old_json), json.loads(new_json)
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
