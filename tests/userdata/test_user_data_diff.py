"""What is said to differ between two user data."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cfngen.boot.contract import MasterConfig, NodeConfig
from cfngen.cluster.load import parse
from cfngen.errors import CfngenError
from cfngen.userdata import UserData, node, pack, references, roles
from cfngen.userdata.changed_parts import PROGRAM_CHANGES, REFERENCE_TOPICS, TOPICS, UNKNOWN_CHANGE
from cfngen.userdata.user_data_diff import LOADER_CHANGES, difference, topics_of_reference

CASES = sorted((Path(__file__).parents[1] / "golden" / "cases").iterdir())
RELEASE = {"name": "shop", "url": "https://charts.example.com/shop-1.2.0.tgz", "sha256": "0" * 64}


def text_of(user_data: UserData) -> str:
    """User data as CloudFormation fills it in, with the name of each parameter in the place of its value."""
    pieces = user_data.value.data["Fn::Base64"].data["Fn::Join"][1]
    text = "".join(piece if isinstance(piece, str) else f"${{{piece.data['Ref']}}}" for piece in pieces)
    return base64.b64encode(text.encode()).decode()


def user_data(secret: str = "arn:secret", **file: Any) -> str:
    """User data of the default node group as CloudFormation fills it in."""
    cluster = parse(file)
    given = {"stack": "k8s-nodes", "resource": "NodeGroupNodesAutoScalingGroup", "joinSecretArn": secret}
    return text_of(node(cluster, cluster.node_groups[0], given))


def said(old: dict[str, Any], new: dict[str, Any], *, role: int = 0) -> str:
    """What is said of a change of the cluster file, for the masters or a node group, with both second stages."""
    before, after = (roles(parse(file))[role] for file in (old, new))
    programs = {each.resource: each.program for each in (before, after)}
    return difference(text_of(before), text_of(after), programs)


def addon(name: str, **settings: Any) -> dict[str, Any]:
    return {"addons": {name: {"enabled": True, **settings}}}


def nodes(**settings: Any) -> dict[str, Any]:
    return {"nodeGroups": [{"name": "nodes", **settings}]}


KUBELET = {"kubernetes": {"kubeletConfiguration": {"maxPods": 50}}}
MIRROR = {"assets": {"mirror": "https://mirror.example.org"}}
PASSWORD = {"grafana": {"adminPassword": "secret"}}
CHART = {"addons": {"charts": [RELEASE]}}
NEWER = {"addons": {"charts": [{**RELEASE, "url": RELEASE["url"].replace("1.2.0", "1.3.0")}]}}
MASTERS = [
    ({}, addon("headlamp"), "add-on headlamp 0.45.0 is installed"),
    (addon("headlamp"), {}, "add-on headlamp 0.45.0 is uninstalled"),
    (CHART, NEWER, "add-on shop: 1.2.0 -> 1.3.0"),
    (addon("prometheus"), addon("prometheus", values=PASSWORD),
     "add-on prometheus: other values (grafana.adminPassword)"),
    ({}, KUBELET, "the kubelet's configuration: maxPods (none) -> 50"),
    ({}, {"kubernetes": {"clusterConfiguration": {"apiServer": {"extraArgs": [{"name": "v", "value": "4"}]}}}},
     "kubeadm's configuration: apiServer.extraArgs.v (none) -> 4"),
    ({}, {"api": {"additionalNames": ["api.example.com"]}},
     "kubeadm's configuration: apiServer.certSANs with api.example.com"),
    ({"controlPlane": {"instanceType": "t3.medium"}}, {"controlPlane": {"instanceType": "t4g.medium"}},
     "programs are downloaded for arm64 instead of amd64"),
    ({}, {"etcd": {"backups": {"interval": 30}}},
     "the interval and lock of etcd's snapshots: interval 15 -> 30"),
]  # fmt: skip
NODES = [
    (nodes(), nodes(labels={"pool": "a"}), "the registration of nodes: node-labels (none) -> pool=a"),
    (nodes(), nodes(taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}]),
     "the registration of nodes: taints with key=a,value=b,effect=NoSchedule"),
    (nodes(), nodes(files=[{"path": "/etc/a", "content": "a"}], postBootCommands=["true"]),
     ("the file /etc/a of the cluster file is new; "
      "the list of commands at the end of a boot (postBootCommands) changes")),
    (nodes(), nodes(containerd={"registryMirrors": {"quay.io": ["https://mirror.example.com"]}}),
     "where images of quay.io are pulled from is new"),
    (nodes(drainTimeout=5), nodes(drainTimeout=9),
     "the time for pods to move before an instance is terminated, in minutes: 5 -> 9"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), MASTERS)
def test_what_changes_of_masters_is_told_by_what_it_means(old: Any, new: Any, words: str) -> None:
    assert said(old, new) == words


@pytest.mark.parametrize(("old", "new", "words"), NODES)
def test_what_changes_of_nodes_is_told_by_what_it_means(old: Any, new: Any, words: str) -> None:
    assert said(old, new, role=1) == words


def test_the_same_download_from_elsewhere_is_no_other_version() -> None:
    charts, downloads = said({}, MIRROR).split("; ")
    assert downloads.startswith("programs are downloaded from https://mirror.example.org instead of https://dl.k8s.io")
    assert charts == "add-ons aws-ebs-csi-driver and metrics-server: chart from https://mirror.example.org"


def test_another_version_of_kubernetes_is_named_first() -> None:
    phrases = said({"kubernetesVersion": "1.35"}, {"kubernetesVersion": "1.36"}).split("; ")
    assert phrases[0].startswith("Kubernetes: v1.35.")
    assert any(phrase.startswith("other versions are downloaded of kubeadm, ") for phrase in phrases)


def test_without_the_second_stages_the_part_is_named() -> None:
    assert difference(user_data(), user_data(**KUBELET)) == "the kubelet's configuration changes"
    assert difference(user_data(), user_data(**MIRROR)) == "what is downloaded changes"


def test_the_boot_programs_own_change_is_told_with_its_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    before = roles(parse({}))[0]
    stripped = pack.stripped_source
    monkeypatch.setattr(pack, "stripped_source", lambda module: stripped(module) + "\n" * (module == "master.volume"))
    after = roles(parse({}))[0]
    programs = {each.resource: each.program for each in (before, after)}
    assert difference(text_of(before), text_of(after), programs) == "the boot program changes (master.volume)"


def test_parts_that_stay_are_not_named() -> None:
    assert difference(user_data(), user_data(secret="arn:other")) == "the secret that nodes join with changes"


def test_another_proxy_is_named_once_and_without_its_files() -> None:
    proxies = ("http://proxy.example.com:3128", "http://other.example.com:3128")
    old, new = (user_data(network={"proxy": {"httpsProxy": proxy}}) for proxy in proxies)
    assert difference(old, new) == "the proxy changes"


@pytest.mark.parametrize("cut", [100, 5000])
def test_of_what_aws_has_cut_off_nothing_is_said(cut: int) -> None:
    assert difference(user_data(), user_data()[:cut]) == ""


def test_of_somebody_elses_user_data_nothing_is_said() -> None:
    assert difference("#!/bin/sh\necho", user_data()) == ""


def test_text_is_as_good_as_base64() -> None:
    text = base64.b64decode(user_data()).decode()
    assert "maxPods" not in text
    assert "kubelet" in difference(text, user_data(**KUBELET))


def test_a_reference_is_told_by_what_it_is() -> None:
    assert topics_of_reference(user_data(secret="${JoinSecret}"), "JoinSecret") == ["the secret that nodes join with"]
    assert topics_of_reference(user_data(), "JoinSecret") == []


def test_every_part_of_the_configuration_has_words() -> None:
    keys = {*MasterConfig.__annotations__, *NodeConfig.__annotations__, "cloudConfig"}
    assert set(TOPICS) == keys - {"program", "contents"}
    assert set(REFERENCE_TOPICS) == set(references.MAX_LENGTHS)


def keys_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every key of a cluster file."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from [(*path, key)] if isinstance(key, str) else []
        yield from keys_of(item, (*path, key))


def without(file: Any, path: tuple[Any, ...]) -> Any:
    """The file without the key at a path."""
    copied = section = copy.deepcopy(file)
    for part in path[:-1]:
        section = section[part]
    del section[path[-1]]
    return copied


@pytest.mark.drill
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_key_of_the_cluster_file_reads_like_the_boot_program(case: Path) -> None:
    """The cases have every key; each is left out once, and what that changes is told without generic words."""
    file = yaml.safe_load((case / "cluster.yaml").read_text()) or {}
    try:
        before = {each.role: each for each in roles(parse(file))}
    except CfngenError:
        pytest.skip("with kube-up's variables, or files beside it")
    for path in keys_of(file):
        try:
            after = {each.role: each for each in roles(parse(without(file, path)))}
        except CfngenError:
            continue  # required, or required by another key
        for role in before.keys() & after.keys():
            programs = {each.resource: each.program for each in (before[role], after[role])}
            words = difference(text_of(before[role]), text_of(after[role]), programs)
            if text_of(before[role]) != text_of(after[role]):
                assert words
                generic = (UNKNOWN_CHANGE, PROGRAM_CHANGES, LOADER_CHANGES, "/", *references.MAX_LENGTHS)
                assert not [phrase for phrase in words.split("; ") if phrase.startswith(generic)], path
