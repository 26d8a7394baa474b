"""The GPUs of instance types, as EC2 describes them, and the names of AWS's images."""

from __future__ import annotations

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from cfngen.cluster.instances import gpu


def test_types_with_nvidia_gpus_are_those_of_ec2_and_no_others() -> None:
    for instance_type, description in INSTANCE_TYPES.items():
        makers = {each["Manufacturer"] for each in description.get("GpuInfo", {}).get("Gpus", ())}
        assert (gpu.accelerator(instance_type) is not None) is ("NVIDIA" in makers), instance_type


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


@pytest.mark.parametrize("instance_type", ["p2.xlarge", "p3.2xlarge", "g3s.xlarge", "g6f.large"])
def test_old_and_divided_gpus_need_another_driver(instance_type: str) -> None:
    assert gpu.accelerator(instance_type)
    assert not gpu.image_serves(instance_type)
