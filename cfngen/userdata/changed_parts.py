"""Says in words how the parts of an instance's user data change: what is configured, and not where it is packed.

A part is a file by its path, or a key of the configuration as `<file>#<key>`; its value is the text or JSON, or a
`Digest` if only that is known. `TOPICS` has words for each key, `FILE_TOPICS` for each file, `REFERENCE_TOPICS` for
each value that CloudFormation fills in. A key with `DESCRIPTIONS` is described by more than its changed values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from cfngen.text import join_and

Parts = Mapping[str, Any]
"""The parts of user data by name."""
ADDON = "add-on"
"""The start of a phrase about add-ons."""
PROGRAM_CHANGES = "the boot program changes"
"""The start of a phrase about the boot program's own code."""
ARCHITECTURE_CHANGE = "programs are downloaded for {new} instead of {old}"
"""A phrase about another CPU architecture, `amd64` or `arm64`."""
UNKNOWN_CHANGE = "the boot program or its configuration changes"
"""What is said of user data that cannot be compared."""


class Digest(str):
    """A digest in the place of a part whose content is not known."""


_MAX_VALUES = 4
_MAX_VALUE_LENGTH = 60
# By the key of a role's configuration, what it is about; singular, as `changes` may follow. The first comes first.
TOPICS: Mapping[str, str] = {
    "addons": "the list of add-ons",
    "kubernetesVersion": "Kubernetes",
    "kubeadm": "kubeadm's configuration",
    "kubelet": "the kubelet's configuration",
    "kubeletPatch": "the kubelet's configuration",
    "join": "the registration of nodes",
    "apiHost": "the API's name",
    "assets": "what is downloaded",
    "backups": "the interval and lock of etcd's snapshots",
    "before": "the list of commands before everything else (preBootCommands)",
    "cloudConfig": "the cloud-config",
    "cluster": "the cluster's name",
    "drain": "the time for pods to move before an instance is terminated, in minutes",
    "quorumWait": "the time that a master waits until etcd has a quorum without it, in minutes",
    "endpoint": "the API's endpoint",
    "hooks": "what the cluster file adds to instances (files, units, postBootCommands)",
    "images": "the list of images that are pulled beforehand",
    "manifests": "what masters apply to the cluster",
    "masters": "the list of masters",
    "ownCa": "the secret of the certificate authority",
    "packages": "the list of the distribution's packages that it needs",
    "pause": "the image of pods' sandboxes",
    "podIdentityWebhook": "which pods the pod identity webhook sees",
    "podNetwork": "the preparation of the pod network",
    "rebalance": "what nodes do when EC2 recommends to rebalance their instances",
    "region": "the region",
    "rehearsal": "the rehearsal",
    "releaseDisks": "the use of local disks",
    "role": "the role",
    "services": "the list of services that run",
    "timeout": "the time that a boot may take, in minutes",
    "updatePause": "the pause between batches of an update, in minutes",
    "upgradeWait": "the time that nodes wait for masters of their version, in minutes",
    "volumes": "the list of volumes that are mounted",
    "proxyServices": "the list of services that use the proxy",
    "steps": "the list of steps of a boot",
    "tasks": "the list of tasks of timers and services",
}
# Keys and files that only follow from others: they are mentioned if nothing else changes.
_FOLLOWING = re.compile(r".*#(proxyServices|steps|tasks)|/etc/systemd/system/cfngen-[^/]+\.(service|timer)(\.d/.*)?")
# By the pattern of a file's path, what it is about; the first that matches counts.
FILE_TOPICS: Mapping[str, str] = {
    r".*cfngen-proxy(\.conf|\.sh)?": "the proxy",
    r"/etc/cloud/.*": "what cloud-init leaves alone",
    r"/etc/containerd/certs\.d/(?P<name>[^/]+)/hosts\.toml": "where images of {name} are pulled from",
    r"/etc/containerd/cni\.template": "the network of pods on each node",
    r"/etc/containerd/config\.toml": "containerd's configuration",
    r"/etc/kubernetes/audit-policy\.json": "what the API server's audit log records",
    r"/etc/kubernetes/cloud\.config": "the cloud controller manager's configuration",
    r"/etc/kubernetes/credential-providers\.json": "for which registries kubelets ask ECR for passwords",
    r"/etc/modules-load\.d/.*|/etc/sysctl\.d/.*": "the kernel's configuration",
    r"/etc/profile\.d/.*": "the environment of shells",
    r"/etc/systemd/logind\.conf\.d/.*": "how long a shutdown waits for pods",
    r"/etc/systemd/networkd?(\.conf)?\.?d?/.*": "the configuration of network interfaces",
    r"/etc/systemd/system/cfngen-masquerade\.service": "which traffic of pods leaves with the node's address",
    r"/etc/systemd/system/cfngen-rebalance\.service": TOPICS["rebalance"],
    r"/etc/systemd/system/(?P<name>[^/]+\.(service|timer))(\.d/.*)?": "the systemd unit {name}",
    r"cfngen-boot\.service": "the boot program's systemd unit",
}
# By the name of a value that CloudFormation fills in, what it is (`cfngen.boot.contract`).
REFERENCE_TOPICS: Mapping[str, str] = {
    "accountId": "the account's id",
    "bucket": "the cluster's bucket",
    "caSecretArn": "the secret of the certificate authorities",
    "condition": "the wait condition",
    "conditionStack": "the stack of the wait condition",
    "internalAddress": "the address of the API's internal load balancer",
    "issuer": "the issuer of service-account tokens",
    "issuerBucket": "the bucket of the issuer's documents",
    "joinSecretArn": "the secret that nodes join with",
    "privateAddress": "the master's private address",
    "publicAddress": "the API's public address",
    "resource": "the Auto Scaling group",
    "routeTableId": "the route table of pods' routes",
    "slot": "the master's letter",
    "stack": "the stack's name",
    "volumeId": "the data volume",
    "vpcId": "the VPC",
    **{f"address{letter}": f"the private address of master {letter.lower()}" for letter in "ABCDE"},
}


def changes_in_words(old: Parts, new: Parts) -> list[str]:
    """Return a phrase for each change of the parts, the most important first; none if nothing changes."""
    changed_names = [name for name in old.keys() | new.keys() if old.get(name) != new.get(name)]
    names = sorted((name for name in changed_names if not name.startswith("boot/")), key=_sort_key)
    leading = [name for name in names if not (_FOLLOWING.fullmatch(name) or _is_only_given(name, old, new))]
    phrases = [phrase for name in leading or names for phrase in _part_phrases(name, old.get(name), new.get(name))]
    # Modules that only come or go follow from the configuration, unless nothing else changes.
    modules = sorted(
        name.removeprefix("boot/").removesuffix(".py").replace("/", ".")
        for name in changed_names
        if name.startswith("boot/") and (not phrases or (name in old and name in new))
    )
    if modules:
        phrases.append(f"{PROGRAM_CHANGES} ({', '.join(modules)})")
    return list(dict.fromkeys(re.sub(r"\$\{(\w+)\}", _topic_of_placeholder, phrase) for phrase in phrases))


def _topic_of_placeholder(match: re.Match[str]) -> str:
    """Return what the value is that the boot program puts in the place of `${name}`."""
    return REFERENCE_TOPICS.get(match[1], match[0])


def _sort_key(name: str) -> tuple[int, str]:
    """Sort key for the names of parts: keys of the configuration in the order of `TOPICS`, then files."""
    key = name.partition("#")[2]
    return (list(TOPICS).index(key) if key in TOPICS else len(TOPICS)), name


def _is_only_given(name: str, old: Parts, new: Parts) -> bool:
    """Return whether a part is the references, and these are only given or no longer given, all with the same value."""
    if name != "references.json":
        return False
    before, after = (json.loads(parts.get(name, "{}")) for parts in (old, new))
    return all(before[reference] == after[reference] for reference in before.keys() & after.keys())


def _part_phrases(name: str, old: Any, new: Any) -> Iterator[str]:
    _, is_key, key = name.partition("#")
    if name == "references.json":
        yield from _reference_phrases(json.loads(old or "{}"), json.loads(new or "{}"))
    elif not is_key:
        yield _file_phrase(name, old, new)
    elif isinstance(old, Digest) or isinstance(new, Digest):
        yield f"{TOPICS.get(key, key)} changes"
    elif key in DESCRIPTIONS:
        yield from DESCRIPTIONS[key](old, new)
    else:
        yield _with_values(TOPICS.get(key, key), value_changes(old, new))


def _reference_phrases(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield f"{REFERENCE_TOPICS.get(name, name)} {_verb(old.get(name), new.get(name))}"


def _file_phrase(path: str, old: Any, new: Any) -> str:
    if path == "cfngen-boot.service" and _without_environment(old) == _without_environment(new):
        return "the proxy changes"
    for pattern, topic in FILE_TOPICS.items():
        if match := re.fullmatch(pattern, path):
            names = match.groupdict()
            return f"{topic.format(**names)} {_verb(old, new) if names else 'changes'}"
    return f"{path} {_verb(old, new)}"


def _without_environment(unit: str | None) -> list[str]:
    return [line for line in (unit or "").splitlines() if not line.startswith("Environment=")]


def _verb(old: object, new: object) -> str:
    if old is None or new is None:
        return "is new" if old is None else "is no longer there"
    return "changes"


def value_changes(old: Any, new: Any, path: str = "") -> list[str]:
    """Return the differences of two values of JSON, each with its path, e.g. `apiServer.extraArgs.v 2 -> 4`."""
    if old == new:
        return []
    objects = _by_name(old), _by_name(new)
    if not any(isinstance(value, list) for value in objects):
        old, new = objects
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        prefix = f"{path}." if path else ""
        keys = dict.fromkeys((*old, *new))
        return [text for key in keys for text in value_changes(old.get(key), new.get(key), f"{prefix}{key}")]
    if _is_flat_list(old) and _is_flat_list(new):
        return [f"{path} {text}".strip() for text in _members(_texts(old), _texts(new))]
    texts = [_short(value) for value in (old, new)]
    return [f"{path} {texts[0]} -> {texts[1]}".strip() if all(texts) else f"{path} changes".strip()]


def _by_name(value: Any) -> Any:
    """Return a list of objects with different names as one object; any other value unchanged."""
    if not isinstance(value, list) or not value or not all(isinstance(item, Mapping) for item in value):
        return value
    names = [item.get("name") or item.get("kind") or item.get("folder") for item in value]
    if None in names or len(set(names)) < len(names):
        return value
    return {
        name: item["value"] if item.keys() == {"name", "value"} else {key: item[key] for key in item if key != "name"}
        for name, item in zip(names, value, strict=True)
    }


def _is_flat_list(value: object) -> bool:
    """Return whether a value is none, or a list without lists or objects in its items."""
    items = value if isinstance(value, list) else []
    values = [inner for item in items for inner in (item.values() if isinstance(item, Mapping) else [item])]
    return value in (None, items) and not any(isinstance(inner, (list, Mapping)) for inner in values)


def _texts(items: Sequence[Any] | None) -> list[str]:
    return [
        ",".join(f"{key}={value}" for key, value in item.items()) if isinstance(item, Mapping) else str(item)
        for item in items or ()
    ]


def _members(old: Sequence[str], new: Sequence[str]) -> list[str]:
    added, removed = ([item for item in one if item not in other] for one, other in ((new, old), (old, new)))
    texts = [f"with {join_and(added)}"] if added else []
    texts += [f"without {join_and(removed)}"] if removed else []
    return texts or ["in another order"]


def _short(value: object) -> str:
    """Return a value as text, `(none)` if there is none; empty if it is too long to be shown in a sentence."""
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_VALUE_LENGTH and text.isprintable() else ""


def _with_values(topic: str, values: Sequence[str]) -> str:
    if not values or values == ["changes"]:
        return f"{topic} changes"
    return f"{topic}: {_first_of(values)}"


def _first_of(texts: Sequence[str]) -> str:
    """Return the first texts, and how many more there are."""
    further = [f"{len(texts) - _MAX_VALUES} more"] if len(texts) > _MAX_VALUES else []
    return ", ".join([*texts[:_MAX_VALUES], *further])


def _addon_phrases(old: Sequence[Any] | None, new: Sequence[Any] | None) -> Iterator[str]:
    before, after = ({release["name"]: release for release in each or ()} for each in (old, new))
    names_by_change: dict[str, list[str]] = {}
    for name, release in after.items():
        if name not in before:
            yield f"{ADDON} {name} {release['version']} is installed"
        elif before[name] != release:
            changes = ", ".join(_release_changes(before[name], release))
            names_by_change.setdefault(changes, []).append(name)
    for name, release in before.items():
        if name not in after:
            yield f"{ADDON} {name} {release['version']} is uninstalled"
    for changes, names in names_by_change.items():
        yield f"{ADDON}{'s' if len(names) > 1 else ''} {join_and(names)}: {changes}"
    if list(before) != list(after) and before.keys() == after.keys():
        yield "the order in which add-ons are installed changes"


def _release_changes(old: Any, new: Any) -> list[str]:
    """Return what changes of a Helm release: its values by their paths only, as passwords may be among them."""
    changes: list[str] = []
    if old["version"] != new["version"]:
        changes.append(f"{old['version']} -> {new['version']}")
    elif old["chart"] != new["chart"]:
        changes.append(f"chart from {_host(new['chart']['url'])}")
    if old["values"] != new["values"]:
        changes.append(
            f"other values ({_first_of(_changed_paths(json.loads(old['values']), json.loads(new['values'])))})"
        )
    if old["namespace"] != new["namespace"]:
        changes.append(f"namespace {old['namespace']} -> {new['namespace']}")
    if old["patches"] != new["patches"]:
        changes.append("other patches of its objects")
    return changes or [f"{'' if new['essential'] else 'no longer '}awaited by a master's boot"]


def _changed_paths(old: Any, new: Any, path: str = "") -> list[str]:
    old, new = (
        {} if value is None and isinstance(other, Mapping) else value for value, other in ((old, new), (new, old))
    )
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        prefix = f"{path}." if path else ""
        keys = sorted(old.keys() | new.keys())
        return [found for key in keys for found in _changed_paths(old.get(key), new.get(key), f"{prefix}{key}")]
    return [path] if old != new else []


def _download_phrases(old: Sequence[Any] | None, new: Sequence[Any] | None) -> Iterator[str]:
    old_urls, new_urls = ({_download_name(asset): asset["url"] for asset in each or ()} for each in (old, new))
    if added := [name for name in new_urls if name not in old_urls]:
        yield f"{join_and(added)} is downloaded in addition"
    if removed := [name for name in old_urls if name not in new_urls]:
        yield f"{join_and(removed)} is no longer downloaded"
    changed = {name: (old_urls[name], url) for name, url in new_urls.items() if old_urls.get(name, url) != url}
    hosts = [dict.fromkeys(_host(urls[side]) for urls in changed.values()) for side in (0, 1)]
    if not changed:
        return
    for one, other in (("amd64", "arm64"), ("arm64", "amd64")):
        if all(before.replace(one, other) == after.replace(one, other) for before, after in changed.values()):
            yield ARCHITECTURE_CHANGE.format(old=one, new=other)
            return
    if hosts[0] != hosts[1]:
        yield f"programs are downloaded from {join_and(list(hosts[1]))} instead of {join_and(list(hosts[0]))}"
    else:
        yield f"other versions are downloaded of {join_and(list(changed))}"


def _download_name(asset: Mapping[str, Any]) -> str:
    """Return the name of a download, without version and architecture, e.g. `cni-plugins`."""
    file_name: str = (asset.get("file") or asset["url"]).rpartition("/")[2]
    return re.split(r"-(?=v?\d|linux)", file_name, maxsplit=1)[0]


def _host(url: str) -> str:
    return f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"


def _hook_phrases(old: Any, new: Any) -> Iterator[str]:
    for kind, identity, noun in (("files", "path", "file"), ("units", "name", "systemd unit")):
        before, after = ({item[identity]: item for item in (each or {}).get(kind, ())} for each in (old, new))
        for name in dict.fromkeys((*before, *after)):
            if before.get(name) != after.get(name):
                yield f"the {noun} {name} of the cluster file {_verb(before.get(name), after.get(name))}"
    if (old or {}).get("after") != (new or {}).get("after"):
        yield "the list of commands at the end of a boot (postBootCommands) changes"


def _manifest_phrases(old: Sequence[Any] | None, new: Sequence[Any] | None) -> Iterator[str]:
    before, after = ({(item["metadata"]["name"], item["kind"]): item for item in each or ()} for each in (old, new))
    kinds: dict[tuple[str, str], list[str]] = {}
    for name, kind in dict.fromkeys((*before, *after)):
        one, other = before.get((name, kind)), after.get((name, kind))
        if one != other:
            verb = "is no longer applied" if other is None else _verb(one, other)
            kinds.setdefault((name, verb), []).append(kind)
    for (name, verb), names in kinds.items():
        yield f"{name} ({', '.join(names)}) in the cluster {verb}"


def _name_phrases(topic: str) -> Callable[[Any, Any], Iterator[str]]:
    """Return the function for an object or list of which only the names are of interest."""

    def phrases(old: Any, new: Any) -> Iterator[str]:
        values = _members(list(old or ()), list(new or ()))
        yield f"{topic} changes" if values == ["in another order"] else _with_values(topic, values)

    return phrases


def _kubeadm_phrases(old: Any, new: Any) -> Iterator[str]:
    values = [text.removeprefix("ClusterConfiguration.") for text in value_changes(old, new)]
    yield _with_values(TOPICS["kubeadm"], values)


def _join_phrases(old: Any, new: Any) -> Iterator[str]:
    prefix = re.compile(r"nodeRegistration\.(kubeletExtraArgs\.)?")
    yield _with_values(TOPICS["join"], [prefix.sub("", text, count=1) for text in value_changes(old, new)])


DESCRIPTIONS: Mapping[str, Callable[[Any, Any], Iterator[str]]] = {
    "addons": _addon_phrases,
    "assets": _download_phrases,
    "hooks": _hook_phrases,
    "join": _join_phrases,
    "kubeadm": _kubeadm_phrases,
    "manifests": _manifest_phrases,
    **{key: _name_phrases(TOPICS[key]) for key in ("masters", "packages", "steps", "tasks")},
}
