"""containerd's configuration (version 4) and the mirrors of registries, as TOML; Python has no module that writes TOML.

Sources: containerd's docs/cri/config.md and docs/hosts.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cfngen.cluster.instances.instance_types import architecture
from cfngen.cluster.sections.instances import Instances, NodeGroup
from cfngen.releases import PAUSE_IMAGE
from cfngen.userdata.deep_merge import merge

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

REGISTRIES_FOLDER = "/etc/containerd/certs.d"
_IMAGES = "io.containerd.cri.v1.images"
_RUNTIME = "io.containerd.cri.v1.runtime"
_TRANSFER = "io.containerd.transfer.v1.local"
# NVIDIA's container runtime in containerd's configuration: also the name of the RuntimeClass that people make for it.
NVIDIA_RUNTIME = "nvidia"
# containerd's default, for which its transfer service needs no configuration.
_DEFAULT_SNAPSHOTTER = "overlayfs"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def configuration(instances: Instances, cni: JsonObject) -> str:
    """Return containerd's configuration file.

    Args:
        instances: the masters or a node group. Their `containerd.configuration` in the cluster file is merged over
            cfngen's configuration, field by field.
        cni: fields of the CRI runtime's `cni`: where containerd finds the configuration of the pod network.
    """
    images = {
        "pinned_images": {"sandbox": PAUSE_IMAGE},
        "registry": {"config_path": REGISTRIES_FOLDER},
        "snapshotter": instances.containerd.snapshotter,
    }
    runc = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    runtime = {"cni": dict(cni), "containerd": {"runtimes": {"runc": runc}}}
    if isinstance(instances, NodeGroup) and instances.gpu:
        runtime["containerd"] = {"default_runtime_name": NVIDIA_RUNTIME, "runtimes": {"runc": runc, **_nvidia(runc)}}
    defaults = {"version": 4, "plugins": {_IMAGES: images, _RUNTIME: runtime}}
    configured = instances.containerd.configuration
    # The transfer service must know all snapshotters, including those that the cluster file configures.
    merged = merge(defaults, configured)
    transfer = _transfer_service(merged["plugins"], architecture(instances.instance_type))
    # The cluster file's settings are merged last, so that they also override the transfer service's.
    return toml(merge(merge(defaults, transfer), configured))


def _nvidia(runc: JsonObject) -> JsonObject:
    """Return NVIDIA's container runtime, by its name: runc's settings with a program that runs runc in the end.

    `nvidia-ctk runtime configure --runtime=containerd --set-as-default` writes the same (NVIDIA Container Toolkit,
    "Installing the NVIDIA Container Toolkit"). As the group's default runtime it gives GPUs to pods that ask for them
    without a RuntimeClass, and to NVIDIA's device plug-in, which asks for none.
    """
    return {NVIDIA_RUNTIME: {**runc, "options": {**runc["options"], "BinaryName": "/usr/bin/nvidia-container-runtime"}}}


def _transfer_service(plugins: JsonObject, processor: str) -> JsonObject:
    """Return the transfer service's settings for the snapshotters that are in use.

    Since containerd 2.1 the CRI plug-in pulls images through the transfer service, which refuses snapshotters that are
    not listed: "unable to initialize unpacker: no unpack platforms defined" (containerd's docs/transfer.md).
    """
    images, runtime = plugins.get(_IMAGES, {}), plugins.get(_RUNTIME, {}).get("containerd", {})
    tables = [images, *images.get("runtime_platforms", {}).values(), *runtime.get("runtimes", {}).values()]
    snapshotters = sorted({table["snapshotter"] for table in tables if table.get("snapshotter")})
    if snapshotters in ([], [_DEFAULT_SNAPSHOTTER]):
        return {}
    unpack_entries = [{"platform": f"linux/{processor}", "snapshotter": snapshotter} for snapshotter in snapshotters]
    return {"plugins": {_TRANSFER: {"unpack_config": unpack_entries}}}


def pulled_reference(reference: str) -> str:
    """Return the reference under which the kubelet finds an image once it is pulled.

    Of a tag and a digest the digest counts: the CRI plug-in looks for such an image without its tag
    (`ParseDockerRef` of distribution/reference).
    """
    name, at_sign, digest = reference.partition("@")
    if not at_sign:
        return reference
    registry, slash, repository = name.partition("/")
    return f"{registry}{slash}{repository.partition(':')[0]}@{digest}"


def mirrors(instances: Instances) -> dict[str, str]:
    """Return the `hosts.toml` of each registry that has mirrors, by path.

    containerd tries the mirrors in order, and the registry itself if no mirror has the image.
    """
    return {
        f"{REGISTRIES_FOLDER}/{registry}/hosts.toml": toml({"host": {url: _mirror_settings(url) for url in urls}})
        for registry, urls in instances.containerd.registry_mirrors.items()
    }


def _mirror_settings(url: str) -> JsonObject:
    settings: JsonObject = {"capabilities": ["pull", "resolve"]}
    # By default containerd appends /v2 to a mirror's URL. The URL of a mirror that serves several registries may
    # contain /v2 already, with the path of one registry after it.
    if re.search(r"^https?://[^/]+/(.*/)?v2(/|$)", url):
        settings["override_path"] = True
    return settings


def toml(data: Mapping[str, object]) -> str:
    """Return data as a TOML document (https://toml.io/en/v1.0.0): mappings become tables.

    Raises:
        ValueError: a value has no counterpart in TOML. This cannot happen with values of a cluster file: the loader of
            cluster files removes null values.
    """
    return "\n\n".join(_tables(data, ())) + "\n"


def _tables(data: Mapping[str, object], path: tuple[str, ...]) -> Iterator[str]:
    """Yield the text of a TOML table and then of all tables in it; `path` has the keys that lead to the table."""
    scalars = {key: value for key, value in data.items() if not isinstance(value, Mapping)}
    header = [f"[{'.'.join(map(_toml_key, path))}]"] if path and (scalars or not data) else []
    lines = [*header, *(f"{_toml_key(key)} = {_toml_value(value)}" for key, value in scalars.items())]
    if lines:
        yield "\n".join(lines)
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _tables(value, (*path, key))


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _toml_string(key)


def _toml_value(value: object) -> str:
    """Return a value as TOML; mappings, which occur in lists here, become inline tables."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_toml_key(key)} = {_toml_value(item)}" for key, item in value.items()) + "}"
    raise ValueError(f"TOML has no {value!r}")


def _toml_string(text: str) -> str:
    return f'"{"".join(_ESCAPES.get(character) or _escape_control(character) for character in text)}"'


def _escape_control(character: str) -> str:
    """Return the escape sequence of a control character; any other character is returned as it is."""
    is_control = character < " " or character == "\x7f"
    return f"\\u{ord(character):04x}" if is_control else character
