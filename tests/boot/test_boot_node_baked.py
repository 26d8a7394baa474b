"""An image that holds everything: an instance of it fetches nothing."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from boots import boot_of
from scripted_machine import ScriptedMachine

from cfngen.boot import packages
from cfngen.boot.host import system
from cfngen.cluster.model import Cluster
from cfngen.userdata import roles

HOME = "/opt/cfngen"


def configuration(role: str) -> dict[str, Any]:
    found = next(each for each in roles(Cluster()) if each.role == role).files
    config: dict[str, Any] = {**json.loads(found["config.json"]), **json.loads(found["role.json"]), "deadline": 1080}
    return {**config, "facts": {"instanceId": "i-1"}}


class Baked(ScriptedMachine):
    """A machine that holds the files of a configuration, and no way to any other."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.programs |= set(config["packages"])
        self.fetched: list[str] = []
        # Stands for the files that the catalogue's digests are of, as a test holds none of them.
        self.digests: dict[str, str] = {}
        for asset in config["assets"]:
            path = asset.get("file") or f"{HOME}/downloads/{asset['url'].rpartition('/')[2]}"
            self.digests[path] = asset["sha256"]
            if "folder" in asset:
                self.files[path + ".unpacked"] = asset["sha256"]

    def sha256(self, path: str) -> str:
        return self.digests.get(path, "")

    def download(self, url: str, path: str, sha256: str) -> None:
        self.fetched.append(url)


@pytest.mark.parametrize("role", ["master", "nodes-nodes"])
def test_image_with_everything_makes_no_download(role: str) -> None:
    config = configuration(role)
    machine = Baked(config)
    assert packages.install(machine, boot_of(config)) == "nothing to install"
    assert system.downloads(machine, boot_of(config)).startswith("fetched 0 of ")
    assert machine.fetched == []
    assert machine.ran("apt-get|dnf|tar|curl") == []


@pytest.mark.parametrize("role", ["master", "nodes-nodes"])
def test_only_what_is_missing_or_of_another_version_is_fetched(role: str) -> None:
    config = configuration(role)
    machine = Baked(config)
    machine.digests["/usr/local/bin/kubelet"] = hashlib.sha256(b"older").hexdigest()
    system.downloads(machine, boot_of(config))
    assert [url.rpartition("/")[2] for url in machine.fetched] == ["kubelet"]
