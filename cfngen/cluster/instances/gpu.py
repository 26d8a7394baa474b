"""GPUs: which instance types have NVIDIA's, AWS's images with the driver, and what GPU nodes tell Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cfngen.cluster.instances.instance_types import architecture
from cfngen.cluster.sections.instances import Image, NodeGroup

PRESENT_LABEL = "nvidia.com/gpu.present"
"""The label of GPU nodes on which NVIDIA's device plug-in is scheduled (`affinity` in its chart's values)."""
ACCELERATOR_LABEL = "k8s.amazonaws.com/accelerator"
"""The label that tells cluster-autoscaler of a GPU node whose GPUs are not advertised yet.

Without it cluster-autoscaler would add further nodes meanwhile (`GPULabel` in cloudprovider/aws/aws_cloud_provider.go,
and "Special note on GPU instances" of its README.md, releases 1.34.5 to 1.36.1).
"""
ANY_ACCELERATOR = "nvidia"
"""The value of that label on nodes of a group whose instance types have different GPUs: its presence matters."""
TAINT_KEY = "nvidia.com/gpu"
"""The key of the taint of GPU nodes, which is also the name of the GPUs as a resource of pods."""
# The taint's value: what the charts of node feature discovery and GKE's nodes have.
TAINT_VALUE = "present"
MIN_ROOT_VOLUME_GIB = 75
"""Size of the snapshot of the Deep Learning Base AMIs; EC2 refuses a smaller root volume.

Public code that launches these images measured 75 GiB (September 2026); AWS's release notes do not name a size.
"""
DEFAULT_ROOT_VOLUME_GIB = 120
"""Size of a GPU group's root volume by default: the AMI's, and 45 GiB for containers' images and logs."""

# The GPU of each family of instance types with NVIDIA GPUs, as the value of ACCELERATOR_LABEL: the names that
# cluster-autoscaler counts in its metrics (`availableGPUTypes`), or names of the same form.
# https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html
_GPU_BY_FAMILY: Mapping[str, str] = {
    "g2": "nvidia-grid-k520",
    "g3": "nvidia-tesla-m60",
    "g3s": "nvidia-tesla-m60",
    "g4dn": "nvidia-tesla-t4",
    "g5": "nvidia-a10g",
    "g5g": "nvidia-t4g",
    "g6": "nvidia-l4",
    "g6e": "nvidia-l40s",
    "g6f": "nvidia-l4",
    "g7": "nvidia-rtx-pro-4500",
    "g7e": "nvidia-rtx-pro-6000",
    "gr6": "nvidia-l4",
    "gr6f": "nvidia-l4",
    "p2": "nvidia-tesla-k80",
    "p3": "nvidia-tesla-v100",
    "p3dn": "nvidia-tesla-v100",
    "p4d": "nvidia-tesla-a100",
    "p4de": "nvidia-tesla-a100",
    "p5": "nvidia-h100",
    "p5e": "nvidia-h200",
    "p5en": "nvidia-h200",
    "p6-b200": "nvidia-b200",
    "p6-b300": "nvidia-b300",
    "p6e-gb200": "nvidia-gb200",
    "p6e-gb300": "nvidia-gb300",
}
# Families whose GPUs the driver in AWS's images does not serve. NVIDIA's open kernel modules need a Turing GPU or a
# newer one (NVIDIA/open-gpu-kernel-modules, README.md), and a fraction of a GPU needs the GRID driver
# (docs.aws.amazon.com/AWSEC2/latest/UserGuide/install-nvidia-driver.html).
_FAMILIES_WITHOUT_IMAGE = ("g2", "g3", "g3s", "g6f", "gr6f", "p2", "p3", "p3dn")
# Families with other accelerators, and what these are.
_OTHER_ACCELERATORS: Mapping[str, str] = {
    "g4ad": "AMD GPUs",
    "dl1": "Gaudi accelerators",
    "dl2q": "Qualcomm accelerators",
    "f1": "FPGAs",
    "f2": "FPGAs",
    "inf1": "Inferentia accelerators",
    "inf2": "Inferentia accelerators",
    "trn1": "Trainium accelerators",
    "trn1n": "Trainium accelerators",
    "trn2": "Trainium accelerators",
    "trn2u": "Trainium accelerators",
    "vt1": "video transcoding accelerators",
}
# The distributions for which AWS publishes a Deep Learning Base AMI, and its names of the architectures, as in the
# names of their SSM parameters (docs.aws.amazon.com/dlami/latest/devguide/find-dlami-id.html, and the release notes
# beside it).
DISTRIBUTIONS_WITH_IMAGE = ("ubuntu-24.04", "ubuntu-22.04", "amazon-linux-2023")
_ARCHITECTURE_NAMES: Mapping[str, str] = {"amd64": "x86_64", "arm64": "arm64"}


def accelerator(instance_type: str) -> str | None:
    """Return the NVIDIA GPU of an instance type, e.g. `nvidia-l4` for `g6.xlarge`; None if it has none."""
    return _GPU_BY_FAMILY.get(_family(instance_type))


def common_accelerator(types: Sequence[str]) -> str | None:
    """Return the NVIDIA GPU of instance types, `nvidia` if they have different ones; None if one of them has none."""
    accelerators = {accelerator(instance_type) for instance_type in types}
    if None in accelerators or not accelerators:
        return None
    return accelerators.pop() if len(accelerators) == 1 else ANY_ACCELERATOR


def other_accelerators(instance_type: str) -> str | None:
    """Return the accelerators of an instance type that are not NVIDIA's, e.g. `AMD GPUs`; None if it has none."""
    return _OTHER_ACCELERATORS.get(_family(instance_type))


def image_serves(instance_type: str) -> bool:
    """Return whether the driver in AWS's images serves the GPUs of an instance type."""
    return _family(instance_type) not in _FAMILIES_WITHOUT_IMAGE


def image_parameter(distribution: str, processor: str) -> str | None:
    """Return the public SSM parameter of AWS's newest Deep Learning Base AMI; None if AWS has none.

    The image holds NVIDIA's driver and the NVIDIA Container Toolkit.
    """
    architecture_name = _ARCHITECTURE_NAMES.get(processor)
    if distribution not in DISTRIBUTIONS_WITH_IMAGE or architecture_name is None:
        return None
    name = f"base-oss-nvidia-driver-gpu-{distribution}"
    return f"/aws/service/deeplearning/ami/{architecture_name}/{name}/latest/ami-id"


def uses_aws_image(group: NodeGroup) -> bool:
    """Return whether a group's image is AWS's Deep Learning Base AMI, and not one that the user names."""
    parameter = image_parameter(group.image.distribution, architecture(group.instance_type))
    return not group.image.id and group.image.ssm_parameter == parameter


def has_own_image(image: Image) -> bool:
    """Return whether the user, or a default, names the image: it is not the distribution's own."""
    return bool(image.id or image.ssm_parameter)


def _family(instance_type: str) -> str:
    return instance_type.partition(".")[0]
