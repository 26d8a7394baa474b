"""Packages, files, kernel settings, downloads and services of every instance."""

from __future__ import annotations

import hashlib
import re
from email.message import Message
from typing import Any
from urllib.error import HTTPError

import pytest
from boots import boot_of
from scripted_machine import IDENTITY, ScriptedMachine

from cfngen.boot import packages
from cfngen.boot.host import kubelet, system
from cfngen.boot.machine import HOME, BootError

PACKAGES = {"iptables": ["iptables", "iptables-nft"], "mkfs.ext4": ["e2fsprogs", "e2fsprogs"]}
# 180 s before a failure must have been told.
CONFIG: dict[str, Any] = {"deadline": 180, "facts": {"instanceId": IDENTITY["instanceId"]}}
KUBELET = "https://dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet"
CONTAINERD = "https://github.com/containerd/containerd/releases/download/v2.3.4/containerd-2.3.4-linux-amd64.tar.gz"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_nothing_is_installed_when_the_image_has_it_all() -> None:
    machine = ScriptedMachine()
    assert packages.install(machine, boot_of({**CONFIG, "packages": PACKAGES})) == "nothing to install"
    assert machine.commands == []


def install_brings(machine: ScriptedMachine, pattern: str) -> None:
    def installed(command: str) -> tuple[int, str]:
        machine.boto3 = True
        return 0, ""

    machine.on(pattern, installed)


def test_apt_installs_what_is_missing_after_waiting_for_locks() -> None:
    machine = ScriptedMachine()
    machine.boto3, machine.programs = False, {"apt-get", "mkfs.ext4"}
    install_brings(machine, "apt-get .* install")
    assert packages.install(machine, boot_of({**CONFIG, "packages": PACKAGES})) == "installed iptables, python3-boto3"
    apt = "apt-get -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=5 --no-install-recommends"
    assert machine.commands == [
        "dpkg --configure -a",
        f"{apt} update",
        f"{apt} install iptables python3-boto3",
    ]


def test_dnf_has_its_own_package_names() -> None:
    machine = ScriptedMachine()
    machine.boto3, machine.programs = False, {"dnf", "mkfs.ext4"}
    install_brings(machine, "dnf")
    assert (
        packages.install(machine, boot_of({**CONFIG, "packages": PACKAGES})) == "installed iptables-nft, python3-boto3"
    )
    assert machine.commands == ["dnf -y install iptables-nft python3-boto3"]


def test_package_mirror_that_comes_back_is_waited_for() -> None:
    machine = ScriptedMachine()
    machine.boto3 = False
    attempts: list[str] = []

    def update(command: str) -> tuple[int, str]:
        attempts.append(command)
        return (100, "Could not get lock /var/lib/apt/lists/lock") if len(attempts) < 3 else (0, "")

    machine.on("apt-get .* update", update)
    install_brings(machine, "apt-get .* install")
    assert packages.install(machine, boot_of({**CONFIG, "packages": {}})) == "installed python3-boto3"
    assert len(attempts) == 3


def test_package_mirror_that_stays_away_ends_the_step() -> None:
    machine = ScriptedMachine()
    machine.boto3 = False
    machine.on("apt-get .* update", (100, "Temporary failure resolving 'archive.ubuntu.com'"))
    with pytest.raises(BootError, match=r"^waited 18\d s for packages python3-boto3: .*Temporary failure") as caught:
        packages.install(machine, boot_of({**CONFIG, "packages": {}}))
    assert caught.value.hint == "check that the instance can reach its package mirror"


def test_boto3_of_another_python_is_noticed() -> None:
    machine = ScriptedMachine()
    machine.boto3 = False
    with pytest.raises(BootError, match="Python cannot import boto3"):
        packages.install(machine, boot_of({**CONFIG, "packages": {}}))


def test_files_get_their_place_with_the_facts_filled_in() -> None:
    machine = ScriptedMachine()
    machine.files[HOME + "/files/etc/kubernetes/cloud.config"] = "RouteTableID = ${routeTableId}\n"
    machine.files[HOME + "/files/etc/containerd/cni.template"] = "{{.PodCIDR}}\n"
    known = {"facts": {"routeTableId": "rtb-0123456789abcdef0"}}
    assert system.settings(machine, boot_of(known)) == "wrote 2 of 2 files"
    assert machine.files["/etc/kubernetes/cloud.config"] == "RouteTableID = rtb-0123456789abcdef0\n"
    assert machine.files["/etc/containerd/cni.template"] == "{{.PodCIDR}}\n"
    assert system.settings(machine, boot_of(known)) == "wrote 0 of 2 files"


def test_swap_is_turned_off_for_good_where_there_is_any() -> None:
    machine = ScriptedMachine()
    system.settings(machine, {"facts": {}})
    assert machine.commands == ["modprobe -a overlay br_netfilter", "sysctl -e -p /etc/sysctl.d/99-cfngen.conf"]
    machine.files["/proc/swaps"] += "/swapfile file 1048572 0 -2\n"
    system.settings(machine, {"facts": {}})
    assert machine.ran("swapoff|systemctl mask") == ["swapoff -a", "systemctl mask swap.target"]


def assets() -> list[dict[str, Any]]:
    return [
        {"url": KUBELET, "sha256": digest("kubelet"), "file": "/usr/local/bin/kubelet"},
        {"url": CONTAINERD, "sha256": digest("archive"), "folder": "/usr/local"},
    ]


def test_downloads_are_fetched_once_and_unpacked_once() -> None:
    machine = ScriptedMachine()
    machine.web = {KUBELET: "kubelet", CONTAINERD: "archive"}
    assert system.downloads(machine, boot_of({**CONFIG, "assets": assets()})) == "fetched 2 of 2 files"
    archive = HOME + "/downloads/containerd-2.3.4-linux-amd64.tar.gz"
    assert machine.files["/usr/local/bin/kubelet"] == "kubelet"
    assert machine.modes["/usr/local/bin/kubelet"] == 0o755
    assert machine.ran("tar") == [f"tar -xzf {archive} -C /usr/local --no-same-owner"]
    machine.web = {}
    assert system.downloads(machine, boot_of({**CONFIG, "assets": assets()})) == "fetched 0 of 2 files"
    assert len(machine.ran("tar")) == 1


def test_download_cut_off_between_fetching_and_unpacking_is_finished_without_fetching() -> None:
    machine = ScriptedMachine()
    machine.files[HOME + "/downloads/containerd-2.3.4-linux-amd64.tar.gz"] = "archive"
    assert system.downloads(machine, boot_of({**CONFIG, "assets": assets()[1:]})) == "fetched 0 of 1 files"
    assert len(machine.ran("tar")) == 1


def test_file_of_another_version_is_replaced() -> None:
    machine = ScriptedMachine()
    machine.files["/usr/local/bin/kubelet"] = "an older kubelet"
    machine.web = {KUBELET: "kubelet"}
    assert system.downloads(machine, boot_of({**CONFIG, "assets": assets()[:1]})) == "fetched 1 of 1 files"
    assert machine.files["/usr/local/bin/kubelet"] == "kubelet"


def answer(code: int) -> HTTPError:
    return HTTPError(KUBELET, code, "no", Message(), None)


@pytest.mark.parametrize(
    "found",
    [OSError("connection refused"), *map(answer, (408, 425, 429, 500, 503))],
    ids=["no", "408", "425", "429", "500", "503"],
)
def test_file_that_nobody_answers_for_is_asked_for_until_the_time_is_up(found: Exception) -> None:
    machine = ScriptedMachine()
    machine.web = {KUBELET: found}
    with pytest.raises(BootError, match=r"waited 18. s for download") as caught:
        system.downloads(machine, boot_of({**CONFIG, "assets": assets()[:1]}))
    assert caught.value.hint == f"check that the instance can reach {KUBELET}"
    assert "/usr/local/bin/kubelet" not in machine.files


@pytest.mark.parametrize("found", ["tampered", answer(404), answer(403)], ids=["digest", "404", "403"])
def test_file_that_is_another_or_is_not_there_fails_the_boot_within_seconds(found: str | Exception) -> None:
    class Counting(ScriptedMachine):
        asked = 0

        def download(self, url: str, path: str, sha256: str) -> None:
            self.asked += 1
            super().download(url, path, sha256)

    machine = Counting()
    machine.web = {KUBELET: found}
    with pytest.raises(BootError, match=re.escape(KUBELET)) as caught:
        system.downloads(machine, boot_of({**CONFIG, "assets": assets()[:1]}))
    assert machine.asked == 5
    assert 5 < machine.passed < 15
    assert caught.value.hint == "check that the server, or assets.mirror, has exactly this file"
    assert "/usr/local/bin/kubelet" not in machine.files


def test_file_that_a_server_has_a_moment_later_is_taken() -> None:
    class Late(ScriptedMachine):
        def download(self, url: str, path: str, sha256: str) -> None:
            if self.passed < 3:
                raise answer(404)
            super().download(url, path, sha256)

    machine = Late()
    machine.web = {KUBELET: "kubelet"}
    assert system.downloads(machine, boot_of({**CONFIG, "assets": assets()[:1]})) == "fetched 1 of 1 files"


def test_services_start_now_and_the_kubelet_only_once_kubeadm_has_configured_it() -> None:
    machine = ScriptedMachine()
    config = {**CONFIG, "services": ["containerd", "cfngen-masquerade"]}
    assert system.services(machine, boot_of(config)) == "containerd, cfngen-masquerade running"
    assert machine.commands == [
        "systemctl daemon-reload",
        "systemctl enable --now containerd cfngen-masquerade",
        "systemctl restart containerd cfngen-masquerade",
        "ctr plugins ls",
        "systemctl enable kubelet",
    ]


def test_services_of_an_instance_that_was_set_up_are_left_running() -> None:
    machine = ScriptedMachine()
    machine.files.update({kubelet.SET_UP_FILE: IDENTITY["instanceId"], kubelet.KUBELET_CONF: "its"})
    system.services(machine, boot_of({**CONFIG, "services": ["containerd"]}))
    assert machine.ran("systemctl restart") == []


FAILED = """\
TYPE                            ID          PLATFORMS      STATUS
io.containerd.cri.v1            images      -              ok
io.containerd.cri.v1            runtime     linux/amd64    error
io.containerd.grpc.v1           cri         -              error
"""
DETAILS = """\
Type:             io.containerd.cri.v1
ID:               runtime
Platforms:        linux/amd64
Error:
                  Code:        Unknown
                  Message:     invalid cri image config: `registry.config_path` cannot be set with `mirrors`
"""


def test_container_runtime_that_runs_without_its_plug_in_for_the_kubelet_is_noticed() -> None:
    machine = ScriptedMachine()
    machine.on("ctr plugins ls$", (0, FAILED))
    machine.on(r"ctr plugins ls -d type==io.containerd.cri.v1,id==runtime", (0, DETAILS))
    with pytest.raises(BootError, match=r"containerd runs, but .*runtime is error: invalid cri image config") as caught:
        system.services(machine, boot_of({**CONFIG, "services": ["containerd"]}))
    assert "journalctl -u containerd" in caught.value.hint
    assert machine.passed == 0, "it stays as it is until the configuration changes"


def test_container_runtime_whose_plug_in_is_switched_off_is_noticed() -> None:
    machine = ScriptedMachine()
    machine.on("ctr plugins ls$", (0, "TYPE  ID  PLATFORMS  STATUS\nio.containerd.snapshotter.v1  native  -  ok\n"))
    machine.on("ctr plugins ls -d type==io.containerd.cri.v1,id==", (0, ""))
    with pytest.raises(BootError, match="is missing"):
        system.services(machine, boot_of({**CONFIG, "services": ["containerd"]}))


def test_container_runtime_that_does_not_answer_yet_is_waited_for() -> None:
    machine = ScriptedMachine()
    answers = [(1, ""), (1, ""), (0, machine.answers[-1][1][1])]
    machine.on("ctr plugins ls$", lambda _: answers.pop(0))
    assert system.services(machine, boot_of({**CONFIG, "services": ["containerd"]})) == "containerd running"


def test_updates_of_the_distribution_leave_the_boot_program_alone() -> None:
    machine = ScriptedMachine()
    at_install = []
    machine.boto3 = False
    install_brings(machine, "apt-get .* install")
    machine.on("dpkg --configure", lambda _: (at_install.append(machine.files[packages.NEEDRESTART_FILE]), (0, ""))[1])
    packages.install(machine, boot_of({**CONFIG, "packages": {}}))
    assert at_install == ["$nrconf{override_rc}{qr(^cfngen-)} = 0;\n"]
    other = ScriptedMachine()
    other.programs = {"dnf", "iptables", "mkfs.ext4"}
    packages.install(other, boot_of({**CONFIG, "packages": {}}))
    assert packages.NEEDRESTART_FILE not in other.files
