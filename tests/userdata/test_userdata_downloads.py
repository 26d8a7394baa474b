"""What instances download, listed for those who have to mirror it, is what their configuration names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.userdata import downloads, role_configuration

MIRROR = "https://mirror.example.com/k8s"
PRIVATE = {"topology": "private", "nat": "none", "plugin": "cilium"}
INTERNAL = {"network": PRIVATE, "api": {"public": False}}


def configured(file: dict[str, Any]) -> set[str]:
    """Every URL in the configuration of masters and nodes."""
    found: set[str] = set()
    for role in role_configuration.roles(parse(file)):
        config = {
            key: value for name in ("config.json", "role.json") for key, value in json.loads(role.files[name]).items()
        }
        found |= {asset["url"] for asset in config["assets"]}
        found |= {release["chart"]["url"] for release in config.get("addons", ())}
    return found


@pytest.mark.parametrize(
    "file",
    [
        INTERNAL,
        {**INTERNAL, "nodeGroups": [{"name": "arm", "instanceType": "m7g.large"}], "kubernetesVersion": "1.35"},
        {**INTERNAL, "addons": {"certManager": {"enabled": True}, "headlamp": {"enabled": True}}},
    ],
)
def test_it_is_what_the_boot_program_downloads(file: dict[str, Any]) -> None:
    found = downloads.of_cluster(parse(file))
    assert {*found.files, *found.charts} == configured(file)
    assert found.mirror == ""


def test_a_mirror_serves_it_below_the_publishers_host() -> None:
    file = {**INTERNAL, "assets": {"mirror": f"{MIRROR}/"}}
    found = downloads.of_cluster(parse(file))
    assert found.mirror == MIRROR
    assert {f"{MIRROR}/{url.partition('://')[2]}" for url in (*found.files, *found.charts)} == configured(file)


def test_images_come_from_the_registry_of_the_cluster_file_too() -> None:
    assert downloads.of_cluster(parse({})).registries == ("registry.k8s.io",)
    own = {"kubernetes": {"clusterConfiguration": {"imageRepository": "registry.example.com:5000/k8s"}}}
    assert downloads.of_cluster(parse(own)).registries == ("registry.example.com:5000", "registry.k8s.io")


def test_only_clusters_without_a_way_out_need_it() -> None:
    assert downloads.without_internet(parse(INTERNAL)) is not None
    assert downloads.without_internet(parse({"network": {"topology": "private"}})) is None
    assert downloads.without_internet(parse({})) is None
