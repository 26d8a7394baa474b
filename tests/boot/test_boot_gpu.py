"""Nodes with GPUs: what the image must have, and what of it is turned off."""

from __future__ import annotations

from typing import Any

import pytest
from boots import boot_of
from scripted_machine import ScriptedMachine

from cfngen.boot.host import disks
from cfngen.boot.machine import BootError
from cfngen.boot.node import gpu

CONFIG: dict[str, Any] = {"releaseDisks": True}
QUERY = "nvidia-smi --query-gpu"


def gpu_machine(gpus: str = "NVIDIA L4, 595.91.07\n") -> ScriptedMachine:
    """An instance of AWS's image whose driver answers, without Docker and without disks that anything has claimed."""
    machine = ScriptedMachine()
    machine.programs |= {"nvidia-smi", "nvidia-container-runtime", "pvs"}
    machine.on(QUERY, (0, gpus))
    machine.on("systemctl is-active docker", (3, "inactive\ninactive\n"))
    machine.on("pvs ", (0, ""))
    return machine


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        ("NVIDIA L4, 595.91.07\n", "1 x NVIDIA L4 with driver 595.91.07"),
        ("NVIDIA H100 80GB HBM3, 595.91.07\n" * 8, "8 x NVIDIA H100 80GB HBM3 with driver 595.91.07"),
        ("NVIDIA A10G, 1\nNVIDIA L4, 1\n", "1 x NVIDIA A10G, 1 x NVIDIA L4 with driver 1"),
    ],
)
def test_the_log_names_gpus_and_driver(gpus: str, said: str) -> None:
    assert gpu.prepare(gpu_machine(gpus), boot_of(CONFIG)) == said


@pytest.mark.parametrize("program", ["nvidia-smi", "nvidia-container-runtime"])
def test_an_image_without_driver_or_toolkit_says_so_at_once(program: str) -> None:
    machine = gpu_machine()
    machine.programs.remove(program)
    with pytest.raises(BootError, match=f"the image has no {program}: NVIDIA's .* is not installed") as failure:
        gpu.prepare(machine, boot_of(CONFIG))
    assert "Deep Learning Base AMI" in failure.value.hint
    assert machine.passed == 0


def test_a_driver_that_does_not_answer_is_waited_for_and_then_reported() -> None:
    machine = gpu_machine()
    cause = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    machine.on(QUERY, (9, cause))
    with pytest.raises(BootError, match=r"waited 1\d\d s for NVIDIA's driver: .*exited with 9: NVIDIA-SMI") as failure:
        gpu.prepare(machine, boot_of(CONFIG))
    assert "modinfo nvidia" in failure.value.hint


def test_a_driver_that_becomes_ready_is_no_failure() -> None:
    machine = gpu_machine()
    answers = iter([(9, "NVIDIA-SMI has failed"), (0, ""), (0, "NVIDIA T4, 1\n")])
    machine.on(QUERY, lambda command: next(answers))
    assert gpu.prepare(machine, boot_of(CONFIG)) == "1 x NVIDIA T4 with driver 1"


def test_docker_no_longer_drops_packets_of_pods() -> None:
    machine = gpu_machine()
    machine.on("systemctl is-active docker", (0, "active\nactive\n"))
    gpu.prepare(machine, boot_of(CONFIG))
    assert machine.ran("systemctl disable --now docker.service docker.socket")
    assert machine.ran("iptables -w -P FORWARD ACCEPT")


def test_an_image_without_docker_is_left_as_it_is() -> None:
    machine = gpu_machine()
    machine.on("systemctl is-active docker", (4, ""))
    gpu.prepare(machine, boot_of(CONFIG))
    assert not machine.ran("iptables|systemctl disable --now docker")


def test_disks_that_the_image_has_claimed_are_blank_for_the_next_step() -> None:
    machine = gpu_machine()
    machine.mounts.add("/opt/dlami/nvme")
    machine.on("pvs ", (0, "  /dev/nvme1n1 vg.01\n  /dev/nvme2n1 vg.01\n  /dev/nvme3n1 other\n"))
    gpu.prepare(machine, boot_of(CONFIG))
    assert machine.commands[-5:] == [
        "systemctl disable --now dlami-nvme.service",
        "umount /opt/dlami/nvme",
        "pvs --noheadings -o pv_name,vg_name",
        "vgremove -f -y vg.01",
        "pvremove -y /dev/nvme1n1 /dev/nvme2n1",
    ]


def test_disks_without_a_volume_group_of_the_image_are_not_touched() -> None:
    machine = gpu_machine()
    machine.on("pvs ", (5, "  /dev/nvme1n1 mine\n"))
    gpu.prepare(machine, boot_of(CONFIG))
    assert not machine.ran("vgremove|pvremove|umount")


def test_an_image_without_lvm_has_nothing_to_release() -> None:
    machine = gpu_machine()
    machine.programs.remove("pvs")
    assert gpu.prepare(machine, boot_of(CONFIG)).startswith("1 x")


def test_disks_stay_the_images_if_the_cluster_file_leaves_them_alone() -> None:
    machine = gpu_machine()
    machine.mounts.add("/opt/dlami/nvme")
    gpu.prepare(machine, boot_of({"releaseDisks": False}))
    assert not machine.ran("umount|pvs|systemctl disable --now dlami")


def test_the_disks_are_released_before_they_are_formatted() -> None:
    """The step after this one refuses disks that have content."""
    assert disks.INSTANCE_STORE_MODEL == "Amazon EC2 NVMe Instance Storage"
    from cfngen.userdata.steps import NODE_STEPS

    functions = [step.function for step in NODE_STEPS]
    assert functions.index("node.gpu.prepare") < functions.index("host.disks.disks")
