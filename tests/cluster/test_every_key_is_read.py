"""Every key of the cluster file changes something that cfngen makes: a template, UserData or a policy.

A key is changed where a golden case has it, or could have it: it has another value that is valid there, or else none.
Compared are the templates of nested stacks, which have the packed configuration of instances, and the policies that
`cfngen permissions` prints. The template of the root is left out: its metadata repeats settings of the cluster file.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, cast

import pytest
from drawn_values import Leaf, leaves, of
from golden_cases import CASES, FOLDER
from hypothesis import Phase, find, settings
from hypothesis.errors import NoSuchExample

from cfngen.cluster.file import yaml_file
from cfngen.cluster.file.layers import without_nulls
from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.problems import ClusterFileError
from cfngen.permissions.grants import grants, scope_of
from cfngen.templates import stacks
from cfngen.userdata import pack

File = dict[str, Any]
MOST_PLACES = 6
FIRST_DRAWN = settings(database=None, derandomize=True, phases=[Phase.generate], max_examples=50)
LEAVES = {leaf.path: leaf for leaf in leaves(Cluster)}

KEY = "arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f"
LISTS = [{"id": f"pl-0123456789abcdef{number}", "maxEntries": 20} for number in range(3)]
RANGES = [f"198.51.100.{number}/32" for number in range(70)]

# Keys that change nothing that cfngen makes, or have no other value that is valid, and what they are for.
NOTHING_MADE: Mapping[str, str] = {
    "network.dnsServiceIp": "what a file says is refused if it is not the tenth address, which kubeadm takes",
    "network.quotas.securityGroupsPerInterface": "a file whose interfaces have more groups is refused",
    "bastion.allowedPrefixLists[].maxEntries": "a file whose lists have more entries than a group may is refused",
    "registry.push[].role": "what is printed for it is the same for every role",
    **{
        f"{section}.ingress[].prefixLists[].maxEntries": "a file whose lists have too many entries is refused"
        for section in ("nodeGroups[]", "bastion")
    },
    "controlPlane.image.architecture": "what a file says is refused if the instance type has another",
}
# Where a key makes a difference, if that is in no golden case: a cluster file, by the key or a section of it.
FILES: Mapping[str, File] = {
    "network.endpoints.services[]": {
        "network": {
            "topology": "private",
            "nat": "none",
            "subnets": [{"zone": "us-west-2a"}, {"zone": "us-west-2b"}],
            "endpoints": {"additional": ["kms", "logs"], "services": [{"service": "kms", "zones": ["us-west-2a"]}]},
        }
    },
    "image.architecture": {
        "image": {"architecture": "amd64"},
        "controlPlane": {"image": {"architecture": "amd64"}},
        "nodeGroups": [{"name": "any", "instanceRequirements": {"vcpus": {"min": 2}, "memory": {"min": 4}}}],
    },
    "network.quotas.rulesPerSecurityGroup": {"api": {"allowedCidrs": RANGES}, "network": {"quotas": {}}},
    "api.allowedPrefixLists[]": {"api": {"allowedPrefixLists": LISTS}},
    "ssh.allowedPrefixLists[]": {"ssh": {"keyName": "laptop", "allowedPrefixLists": LISTS}},
    "bastion.allowedPrefixLists[]": {"ssh": {"keyName": "laptop"}, "bastion": {"allowedPrefixLists": LISTS[:2]}},
    "controlPlane.ingress[].prefixLists[]": {"controlPlane": {"ingress": [{"ports": 80, "prefixLists": LISTS}]}},
    "bastion.ingress[].prefixLists[]": {
        "ssh": {"keyName": "laptop"},
        "bastion": {"allowedCidrs": RANGES[:1], "ingress": [{"ports": 80, "prefixLists": LISTS[:2]}]},
    },
}
# What a section has beside a key, where the key alone is not valid or makes no difference; None takes a key away.
BESIDE: Mapping[str, File] = {
    "files[]": {"path": "/etc/motd", "content": "a"},
    "units[]": {"name": "a.service", "content": "a"},
    "charts[]": {"name": "a", "url": "https://a.example.com/b.tgz", "sha256": "0" * 64},
    "instanceStorage": {"instanceType": "m6id.large"},
    "image.rootDevice": {"id": "ami-0123456789abcdef0"},
    "rootVolume.type": {"size": 100, "iops": 3000, "throughput": None},
    "volumes[].type": {"size": 100, "iops": 3000, "throughput": None},
    "iam.instanceProfile": {"role": "arn:aws:iam::123456789012:role/a"},
    "addons.externalDns.values": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]},
    "addons.clusterAutoscaler.values": {"enabled": True},
    "addons.certManager.values": {"enabled": True},
    "addons.nodeTerminationHandler.values": {"enabled": True},
    "addons.headlamp.values": {"enabled": True},
    "addons.prometheus.values": {"enabled": True},
}
# Another value of a key, where few of those of its type are valid.
VALUES: Mapping[str, Any] = {
    "kmsKey": KEY,
    "notifications.topic": "arn:aws:sns:us-west-2:123456789012:scaling",
    "network.vpc.cidr": "172.20.0.0/17",
    "network.vpc.additionalCidrs": ["100.80.0.0/16"],
    "network.subnets[].zone": "us-west-2d",
    "network.subnets[].public.cidr": "10.20.224.0/26",
    "network.subnetSizes.public": 28,
    "network.endpoints.services[].service": "logs",
    "network.endpoints.services[].zones": ["us-west-2b"],
    "network.proxy.httpsProxy": "http://other.example.com:3128",
    "network.quotas.rulesPerSecurityGroup": 100,
    "ingress[].ports": "8000-8100",
    "ingress[].protocol": "udp",
    "controlPlane.addresses": ["172.20.0.20"],
    "elasticIp.address": "52.10.20.99",
    "api.dns.name": "kubernetes.k8s.example.com",
    "publicZone.name": "example.com",
    "privateZone.name": "example.com",
    "image.rootDevice": "/dev/xvda",
    "rootVolume.iops": 4000,
    "certificateAuthority.secret": "arn:aws:secretsmanager:us-west-2:123456789012:secret:authority-a1b2c3",
    "iam.instanceProfile": "arn:aws:iam::123456789012:instance-profile/a",
    "allowedCidrs": ["198.51.100.0/24"],
    "accelerators.count.min": 2,
    "capacityReservation.resourceGroup": "arn:aws:resource-groups:us-west-2:123456789012:group/other",
    "addons.clusterAutoscaler.priorities": {"50": ["spot"], "20": ["general"]},
    "addons.fluentBit.values": {"config": {"outputs": "[OUTPUT]\n    Name null\n"}},
    "bastion.instanceType": "t3.small",
    "sha256": "1" * 64,
}
# What changes with a key, since it is valid only with the other value.
TOGETHER: Mapping[str, File] = {"network.flowLogs.destination": {"bucket": "logs", "retentionDays": None}}


def of_key(table: Mapping[str, Any], key: str) -> Any:
    """The row of a table for a key: that with the longest end of its path."""
    parts = key.split(".")
    return next((table[end] for start in range(len(parts)) if (end := ".".join(parts[start:])) in table), None)


def places(data: Any, parts: Sequence[str], path: Path = ()) -> Iterator[Path]:
    """The paths in a file at which a key stands or could stand, in each item of the lists on its way."""
    if len(parts) == 1:
        yield (*path, parts[0])
        return
    name = parts[0].removesuffix("[]")
    inner = data.get(name) if isinstance(data, dict) else None
    if name == parts[0]:
        yield from places(inner, parts[1:], (*path, name))
    else:
        for index, item in enumerate(inner or [{}]):
            yield from places(item, parts[1:], (*path, name, index))


def written(file: File, path: Path) -> int:
    """How many parts of a path a file has."""
    return sum(lookup(file, path[:length]) is not None for length in range(1, len(path) + 1))


def changed(file: File, path: Path, values: File) -> File:
    """A file in which a section has other values, and is made with those on its way; None takes a key away."""
    file = copy.deepcopy(file)
    section: Any = file
    for part, following in zip(path, (*path[1:], ""), strict=False):
        new: Any = [] if isinstance(following, int) else {}
        if isinstance(part, int):
            section += [new] * (part == len(section))
            section = section[part]
        else:
            section = section.setdefault(part, new)
    section.update(values)
    return without_nulls(file)


@cache
def files() -> list[File]:
    """The cluster files of the golden cases, that of the default one first."""
    names = sorted(CASES, key=lambda case: case != "default")
    return [without_nulls(yaml_file.read(FOLDER / name / "cluster.yaml").data) for name in names]


@lru_cache(maxsize=100)
def parsed(cluster_file: str) -> Cluster | None:
    try:
        return parse(json.loads(cluster_file))
    except ClusterFileError:
        return None


def valid(file: File) -> Cluster | None:
    """The cluster of a file, or None if it is refused."""
    return parsed(json.dumps(file))


@lru_cache(maxsize=100)
def templates(cluster_file: str) -> list[Any]:
    """The templates of the stacks that a root nests."""
    return [stack.document().body for stack in stacks(cast("Cluster", parsed(cluster_file)))]


def policies(cluster_file: str) -> list[Any]:
    """The policies that `cfngen permissions` prints."""
    cluster = cast("Cluster", parsed(cluster_file))
    scope = scope_of(cluster, stack=cluster.name, account="123456789012")
    return [policy.document for grant in grants(cluster, scope) for policy in grant.policies]


def makes_the_same(file: File, other: File) -> bool:
    """Whether the same is made of two valid files."""
    before, after = json.dumps(file), json.dumps(other)
    bodies, stacks_after = templates(before), stacks(cast("Cluster", parsed(after)))
    return (
        len(bodies) == len(stacks_after)
        and all(body == stack.document().body for body, stack in zip(bodies, stacks_after, strict=True))
        and policies(before) == policies(after)
    )


def another(leaf: Leaf, value: Any) -> Any:
    """Another value of a key than one that it has; None if none is known."""
    listed = of_key(VALUES, leaf.path)
    if listed is not None:
        return listed
    with suppress(NoSuchExample):
        strategy = of(leaf.annotation, leaf.metadata)
        return find(strategy, lambda drawn: drawn not in (value, [], {}), settings=FIRST_DRAWN)
    return None


def changes(leaf: Leaf, *, leaves_out: bool = False) -> Iterator[tuple[File, File]]:
    """Valid files, each as it is and with another value of a key, or else without the key."""
    section, _, last = leaf.path.rpartition(".")
    own = FILES.get(leaf.path) or FILES.get(section)
    found = [(file, path) for file in ([own] if own else files()) for path in places(file, leaf.path.split("."))]
    # Where the key stands, else where its section does, and so on.
    found.sort(key=lambda each: -written(*each))
    is_valid_with_another = False
    for file, path in found[:MOST_PLACES] + [each for each in found[MOST_PLACES:] if each[0] is files()[0]]:
        beside = of_key(BESIDE, leaf.path) or of_key(BESIDE, section) or {}
        file = changed(file, path[:-1], beside)
        cluster = valid(file)
        if not cluster:
            continue
        effective = lookup(cluster.model_dump(mode="json", by_alias=True), path)
        value = None if leaves_out else another(leaf, effective)
        other = changed(file, path[:-1], {last: value, **TOGETHER.get(leaf.path, {})})
        if valid(other) not in (None, cluster):
            is_valid_with_another = True
            yield file, other
    if not is_valid_with_another and not leaves_out:
        yield from changes(leaf, leaves_out=True)


@pytest.fixture(autouse=True)
def unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boot programs are only compared, so they are not compressed."""
    monkeypatch.setattr(pack, "_compress", lambda text: hashlib.sha256(text.encode()).hexdigest())


@pytest.mark.parametrize("key", LEAVES)
def test_another_value_of_a_key_changes_what_is_made(key: str) -> None:
    tried = []
    for file, other in changes(LEAVES[key]):
        tried.append(other)
        if not makes_the_same(file, other):
            assert key not in NOTHING_MADE
            return
    reason = f"it makes no difference in {tried}" if tried else "no other value is valid in a golden case; see FILES"
    assert key in NOTHING_MADE, f"nothing reads {key}: {reason}"


def test_reasons_are_of_keys_that_there_are() -> None:
    ends = [".".join(key.split(".")[start:]) for key in LEAVES for start in range(key.count(".") + 1)]
    sections = [end.rpartition(".")[0] for end in ends]
    assert {*NOTHING_MADE, *FILES, *BESIDE, *VALUES, *TOGETHER} <= {*ends, *sections}
