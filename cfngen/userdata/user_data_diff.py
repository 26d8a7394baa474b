"""What differs between two user data, for a person who is about to replace one by the other."""

from __future__ import annotations

import contextlib
import json
import re

from cfngen.userdata.first_stage import unpacked

# The parts of a role's configuration in words; any other goes by its own name.
_WORDS = {
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
# Likewise of the files.
_FILES = {"/etc/systemd/system/cfngen-masquerade.service": "which traffic of pods leaves with the node's address"}
_CLOUD_CONFIG = re.compile(r"^#cloud-config\n(.*?)\n--cfngen--$", re.MULTILINE | re.DOTALL)


def difference(before: str, after: str) -> str:
    """Return in words what differs between two user data; an empty text if one of them cannot be unpacked.

    Args:
        before: what `pack` made, filled in by CloudFormation; in base64 or as text.
        after: likewise.
    """
    old, new = _unpacked(before), _unpacked(after)
    if old is None or new is None:
        return ""
    changed = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    if not changed:
        return "only the loader of the boot program changes"
    modules = [path.removeprefix("boot/").removesuffix(".py") for path in changed if path.startswith("boot/")]
    found = [f"the boot program ({', '.join(modules)})"] if modules else []
    found += [_WORDS.get(key, key) for key in (path.partition("#")[2] for path in changed) if key]
    for path in changed:
        if path == "references.json":
            found.append(f"ids from the stacks ({', '.join(_keys(old.get(path, '{}'), new.get(path, '{}')))})")
        elif not path.startswith("boot/") and "#" not in path:
            found.append(_FILES.get(path.removeprefix("files"), path.removeprefix("files")))
    return f"what changes: {', '.join(dict.fromkeys(found))}"


def parts(text: str) -> list[str]:
    """Return what user data brings about as lines to be compared: every part under its name.

    Args:
        text: what `pack` made, filled in by CloudFormation; in base64 or as text. An empty list if it is not whole.
    """
    lines: list[str] = []
    for path, part in sorted((_unpacked(text) or {}).items()):
        if "#" in path:
            with contextlib.suppress(ValueError):
                part = json.dumps(json.loads(part), indent=2, sort_keys=True)
        lines += [f"{path}: {line}" for line in part.splitlines()]
    return lines


def _unpacked(text: str) -> dict[str, str] | None:
    """Return the parts of what user data brings about, each as text or digest, or None if it is not whole.

    The parts of the second stage, which the stack holds, are known by the digests in the first one's configuration.
    """
    stage = unpacked(text)
    if stage is None:
        return None
    config = dict(stage.config)
    config.pop("program", None)
    contents = config.pop("contents", {})
    own = {f"config.json#{key}": json.dumps(value) for key, value in config.items()}
    beside = _CLOUD_CONFIG.search(stage.script)
    own.update({"user-data#cloudConfig": beside[1]} if beside else {})
    return {"references.json": stage.references, **stage.files, **own, **contents}


def _keys(before: str, after: str) -> list[str]:
    old, new = json.loads(before), json.loads(after)
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
