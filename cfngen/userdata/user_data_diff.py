"""Describes the differences between two versions of user data, for an operator who is about to replace instances."""

from __future__ import annotations

import contextlib
import json
import re

from cfngen.userdata.first_stage import unpacked
from cfngen.userdata.source import program_path

# Descriptions of what changes in user data, by the key of a role's configuration; a key without a description is shown
# as it is.
_DESCRIPTIONS = {
    "apiHost": "the API's name",
    "assets": "what it downloads",
    "before": "the commands before everything else",
    "cloudConfig": "the cloud-config",
    "drain": "how long pods may take to move",
    "endpoint": "the API's endpoint",
    "releaseDisks": "the use of local disks",
    "hooks": "files, units and commands of the cluster file",
    "images": "the images that are pulled beforehand",
    "join": "how nodes join",
    "kubeadm": "kubeadm's configuration",
    "kubelet": "the kubelet's configuration",
    "kubeletPatch": "the kubelet's configuration",
    "manifests": "the add-ons",
    "masters": "the masters",
    "ownCa": "the secret of the certificate authority",
    "packages": "the distribution's packages",
    "podIdentityWebhook": "which pods the pod identity webhook sees",
    "proxyServices": "the proxy",
    "pause": "the image of pods' sandboxes",
    "updatePause": "the pause between batches of an update",
    "upgradeWait": "how long nodes wait for masters of their version",
    "rebalance": "what nodes do when EC2 recommends to rebalance their instances",
    "services": "the services that run",
    "timeout": "the time that it may take",
    "volumes": "the volumes that it mounts",
}
# Descriptions of what changes, by the path of the file; of a file without a description the path is shown.
_FILE_DESCRIPTIONS = {
    "/etc/systemd/system/cfngen-masquerade.service": "which traffic of pods leaves with the node's address",
    "/etc/systemd/system/cfngen-rebalance.service": "what nodes do when EC2 recommends to rebalance their instances",
    "cfngen-boot.service": "the boot program's unit",
}
_PROXY_FILE_NAME = "cfngen-proxy"
# Pattern of the cloud-config in user data; its group is the content without the first line.
_CLOUD_CONFIG = re.compile(r"^#cloud-config\n(.*?)\n--cfngen--$", re.MULTILINE | re.DOTALL)


def difference(old_user_data: str, new_user_data: str) -> str:
    """Return a sentence that tells in which parts two versions of user data differ; "" if one cannot be unpacked.

    Both are user data of `pack`, filled in by CloudFormation, in base64 or as text.
    """
    old_parts, new_parts = _parts_by_name(old_user_data), _parts_by_name(new_user_data)
    if old_parts is None or new_parts is None:
        return ""
    all_names = old_parts.keys() | new_parts.keys()
    changed_names = sorted(name for name in all_names if old_parts.get(name) != new_parts.get(name))
    if not changed_names:
        return "only the loader of the boot program changes"
    modules = [
        name.removeprefix("boot/").removesuffix(".py").replace("/", ".")
        for name in changed_names
        if name.startswith("boot/")
    ]
    changes = [f"the boot program ({', '.join(modules)})"] if modules else []
    # A key of the configuration is a part with the name `<file>#<key>`.
    changed_keys = [name.partition("#")[2] for name in changed_names if "#" in name]
    changes += [_DESCRIPTIONS.get(key, key) for key in changed_keys]
    for name in changed_names:
        if name == "references.json":
            changed_references = _changed_keys(old_parts.get(name, "{}"), new_parts.get(name, "{}"))
            changes.append(f"ids from the stacks ({', '.join(changed_references)})")
        elif not name.startswith("boot/") and "#" not in name:
            is_of_proxy = _PROXY_FILE_NAME in name
            changes.append("the proxy" if is_of_proxy else _FILE_DESCRIPTIONS.get(name, name))
    return f"what changes: {', '.join(dict.fromkeys(changes))}"


def parts(text: str) -> list[str]:
    """Return the content of user data as lines for a diff, each with the name of its part in front.

    There are no lines if the user data is damaged.
    """
    lines: list[str] = []
    for name, part in sorted((_parts_by_name(text) or {}).items()):
        if "#" in name:
            # A key of the configuration is JSON in the first stage, but only a digest in the second.
            with contextlib.suppress(ValueError):
                part = json.dumps(json.loads(part), indent=2, sort_keys=True)
        lines += [f"{name}: {line}" for line in part.splitlines()]
    return lines


def _parts_by_name(text: str) -> dict[str, str] | None:
    """Return the parts of both stages by name; None if the user data is damaged.

    A part is a file, named by its path, or a key of the configuration, named `<file>#<key>`. Parts of the first stage
    are texts. Of the parts of the second stage, which is in the stack, there are only digests, which the configuration
    of the first stage contains.
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
    if cloud_config:
        first_stage["user-data#cloudConfig"] = cloud_config[1]
    return {"references.json": stage.references, **stage.files, **first_stage, **second_stage}


def _changed_keys(old_json: str, new_json: str) -> list[str]:
    old, new = json.loads(old_json), json.loads(new_json)
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
