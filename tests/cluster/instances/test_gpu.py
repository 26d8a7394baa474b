"""The GPUs of instance types, as EC2 describes them, and the names of AWS's images."""

from __future__ import annotations

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from cfngen.cluster.instances import gpu
from cfngen.cluster.instances.instance_types import all_facts

# Families that EC2 does not describe any more, or not in every account.
OTHER_FAMILIES = {
    "g2": "nvidia-grid-k520",
    "g3": "nvidia-tesla-m60",
    "g3s": "nvidia-tesla-m60",
    "p2": "nvidia-tesla-k80",
    "p3": "nvidia-tesla-v100",
    "p6e-gb200": "nvidia-gb200",
    "p6e-gb300": "nvidia-gb300",
}
# "Accelerated computing" of Amazon EC2's instance types, all but those with NVIDIA's GPUs.
OTHER_ACCELERATORS = {
    "AMD GPUs": ["g4ad"],
    "FPGAs": ["f1", "f2"],
    "Gaudi accelerators": ["dl1"],
    "Inferentia accelerators": ["inf1", "inf2"],
    "Qualcomm accelerators": ["dl2q"],
    "Trainium accelerators": ["trn1", "trn1n", "trn2", "trn2u"],
    "video transcoding accelerators": ["vt1"],
}


def test_types_with_nvidia_gpus_are_those_of_ec2_and_no_others() -> None:
    for instance_type, description in INSTANCE_TYPES.items():
        makers = {each["Manufacturer"] for each in description.get("GpuInfo", {}).get("Gpus", ())}
        assert (gpu.accelerator(instance_type) is not None) is ("NVIDIA" in makers), instance_type


def test_the_label_has_the_name_of_the_gpu_as_cluster_autoscaler_writes_it() -> None:
    """It knows the older ones as Teslas (`availableGPUTypes`, cluster-autoscaler/cloudprovider/aws)."""
    for instance_type, facts in all_facts().items():
        if facts.gpu:
            name = facts.gpu.lower().replace(" server", "").replace(" ", "-")
            tesla = "tesla-" if name in ("a100", "t4", "v100") else ""
            assert gpu.accelerator(instance_type) == f"nvidia-{tesla}{name}", instance_type
    assert {family: gpu.accelerator(f"{family}.xlarge") for family in OTHER_FAMILIES} == OTHER_FAMILIES


@pytest.mark.parametrize(
    ("family", "name"), [(family, name) for name, families in OTHER_ACCELERATORS.items() for family in families]
)
def test_a_family_with_another_accelerator_has_its_name(family: str, name: str) -> None:
    assert gpu.other_accelerators(f"{family}.xlarge") == name
    assert gpu.accelerator(f"{family}.xlarge") is None


def test_other_accelerators_are_known_as_such() -> None:
    keys = ("InferenceAcceleratorInfo", "FpgaInfo", "NeuronInfo", "MediaAcceleratorInfo")
    for instance_type, description in INSTANCE_TYPES.items():
        if any(description.get(key) for key in keys):
            assert gpu.other_accelerators(instance_type), instance_type


@pytest.mark.parametrize(
    ("distribution", "processor", "name"),
    [
        ("ubuntu-24.04", "amd64", "x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04"),
        ("ubuntu-22.04", "arm64", "arm64/base-oss-nvidia-driver-gpu-ubuntu-22.04"),
        ("amazon-linux-2023", "arm64", "arm64/base-oss-nvidia-driver-gpu-amazon-linux-2023"),
        ("debian-13", "amd64", None),
    ],
)
def test_awss_image_by_distribution_and_processor(distribution: str, processor: str, name: str | None) -> None:
    expected = name and f"/aws/service/deeplearning/ami/{name}/latest/ami-id"
    assert gpu.image_parameter(distribution, processor) == expected


def test_old_and_divided_gpus_need_another_driver() -> None:
    """NVIDIA's open kernel modules begin with Turing; K520, M60, K80 and V100 are older, and g6f has parts of GPUs."""
    families = {*OTHER_FAMILIES, *(name.partition(".")[0] for name, facts in all_facts().items() if facts.gpu)}
    unserved = {family for family in families if not gpu.image_serves(f"{family}.xlarge")}
    assert unserved == {"g2", "g3", "g3s", "g6f", "gr6f", "p2", "p3", "p3dn"}
