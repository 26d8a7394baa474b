"""Instances, disks and images of kube-up on AWS."""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.kube_up.variable import (
    Setting,
    Variable,
    path_of,
    unsupported_variable,
    variable_for_keys,
    variable_without_effect,
    whole_number,
)

# `image.distribution` by the value of KUBE_OS_DISTRIBUTION.
_DISTRIBUTIONS = {
    "ubuntu-24.04": "ubuntu-24.04",
    "ubuntu-22.04": "ubuntu-22.04",
    "debian-12": "debian-12",
    "debian-13": "debian-13",
    "amazon-linux-2023": "amazon-linux-2023",
    "ubuntu": "ubuntu-24.04",
    "debian": "debian-13",
}
# kube-up's distributions that cannot be used any more, and the reason.
_ENDED_DISTRIBUTIONS = {
    "jessie": "Debian 8 has had no updates since 2020",
    "wheezy": "Debian 7 has had no updates since 2018",
    "wily": "Ubuntu 15.10 has had no updates since 2016",
    "vivid": "Ubuntu 15.04 has had no updates since 2016",
    "trusty": "Ubuntu 14.04 has no systemd, which today's Kubernetes needs",
    "coreos": "CoreOS Container Linux has had no updates since 2020",
}


def _convert_distribution(value: str) -> Sequence[Setting]:
    names = ", ".join(_DISTRIBUTIONS)
    if value in _ENDED_DISTRIBUTIONS:
        raise ValueError(f"{value} cannot be used: {_ENDED_DISTRIBUTIONS[value]}; choose one of {names}")
    if value not in _DISTRIBUTIONS:
        raise ValueError(f"{value!r} is not a distribution that cfngen supports; choose one of {names}")
    return [Setting(path_of("image.distribution"), _DISTRIBUTIONS[value])]


def _variable_in_gib(name: str, key: str, old_names: Sequence[str] = ()) -> Variable:
    return variable_for_keys(name, key, parse=whole_number, explanation="In GiB.", old_names=old_names)


# The sections of masters and of every node group: the variables below apply to all instances.
_INSTANCE_SECTIONS = ("controlPlane", "nodeGroups[]")


def _convert_docker_storage(value: str) -> Sequence[Setting]:
    if value in ("btrfs", "zfs"):
        raise ValueError(
            f"the disk with the images is not {value}; unset it, or mount a {value} file system on /var/lib/containerd "
            f"by preBootCommands and write `containerd: {{snapshotter: {value}}}` beside them"
        )
    if value not in ("overlay", "overlay2"):
        raise ValueError(f"must be overlay or overlay2, not {value!r}")
    return [Setting(path_of(f"{section}.containerd.snapshotter"), "overlayfs") for section in _INSTANCE_SECTIONS]


def _convert_aws_storage(value: str) -> Sequence[Setting]:
    if value != "ebs":
        raise ValueError(f"must be ebs, not {value!r}; unset it to use the disks of the instance type")
    return [Setting(path_of(f"{section}.instanceStorage"), "none") for section in _INSTANCE_SECTIONS]


def _convert_registry_mirror(value: str) -> Sequence[Setting]:
    """Convert DOCKER_REGISTRY_MIRROR_URL into the only mirror of docker.io on all instances."""
    # The host is added to the parsed path: as text, its dot would separate two keys.
    return [
        Setting((*path_of(f"{section}.containerd.registryMirrors"), "docker.io"), [value])
        for section in _INSTANCE_SECTIONS
    ]


VARIABLES: tuple[Variable, ...] = (
    variable_for_keys(
        "MASTER_SIZE", "controlPlane.instanceType", explanation="kube-up's m3.medium is too small today."
    ),
    variable_for_keys(
        "NODE_SIZE",
        "nodeGroups[].instanceType",
        explanation="kube-up's t2.micro and t2.small are too small today.",
        old_names=("MINION_SIZE",),
    ),
    variable_for_keys("MASTER_DISK_TYPE", "controlPlane.volume.type"),
    _variable_in_gib("MASTER_DISK_SIZE", key="controlPlane.volume.size"),
    variable_for_keys("MASTER_ROOT_DISK_TYPE", "controlPlane.rootVolume.type"),
    _variable_in_gib("MASTER_ROOT_DISK_SIZE", key="controlPlane.rootVolume.size"),
    variable_for_keys("NODE_ROOT_DISK_TYPE", "nodeGroups[].rootVolume.type", old_names=("MINION_ROOT_DISK_TYPE",)),
    _variable_in_gib("NODE_ROOT_DISK_SIZE", key="nodeGroups[].rootVolume.size", old_names=("MINION_ROOT_DISK_SIZE",)),
    variable_for_keys("NODE_SPOT_PRICE", "nodeGroups[].spotPrice"),
    variable_for_keys(
        "KUBE_AWS_STORAGE",
        ("controlPlane.instanceStorage", "nodeGroups[].instanceStorage"),
        convert=_convert_aws_storage,
        explanation="`ebs` becomes `none`: the disks of the instance type are not used.",
    ),
    variable_for_keys(
        "DOCKER_STORAGE",
        ("controlPlane.containerd.snapshotter", "nodeGroups[].containerd.snapshotter"),
        convert=_convert_docker_storage,
        explanation="`overlay` and `overlay2` become `overlayfs`; btrfs and zfs are refused, since no disk has them by "
        "itself; aufs and devicemapper no longer exist.",
    ),
    unsupported_variable("EXTRA_DOCKER_OPTS", "containerd runs the containers and has no such options; unset it"),
    variable_without_effect(
        "KUBE_ENABLE_INSECURE_REGISTRY",
        "false",
        "containerd connects to registries by TLS; give the registry a certificate that the nodes' image trusts",
    ),
    variable_for_keys(
        "DOCKER_REGISTRY_MIRROR_URL",
        ("controlPlane.containerd.registryMirrors", "nodeGroups[].containerd.registryMirrors"),
        convert=_convert_registry_mirror,
        explanation="As the mirror of docker.io.",
    ),
    variable_for_keys(
        "KUBE_OS_DISTRIBUTION",
        "image.distribution",
        convert=_convert_distribution,
        explanation="`ubuntu` is Ubuntu 24.04, `debian` is Debian 13; jessie, wily and the others of kube-up's time "
        "are refused.",
    ),
    variable_for_keys("AWS_IMAGE", "image.id"),
    unsupported_variable(
        "AWS_IMAGE_NAME",
        "images are not looked up by name; set image.id to the AMI id, or image.ssmParameter to an SSM "
        "parameter "
        "with it",
    ),
    variable_for_keys("KUBE_NODE_IMAGE", "nodeGroups[].image.id", old_names=("KUBE_MINION_IMAGE",)),
    unsupported_variable(
        "AWS_SSH_KEY",
        "no file outside the cluster file is read; put the public key into ssh.publicKey, or a key pair's "
        "name into "
        "ssh.keyName",
    ),
    unsupported_variable(
        "AWS_S3_BUCKET",
        "no bucket is needed to boot: instances download pinned files from their publishers, or from assets.mirror",
    ),
    unsupported_variable(
        "AWS_S3_REGION", "no bucket is needed to boot; set assets.mirror to use your own copy of the files"
    ),
    variable_without_effect("AWS_DEFAULT_PROFILE", "*", "The AWS tools use it; it does not affect the templates."),
    unsupported_variable(
        "COREOS_CHANNEL", "CoreOS Container Linux no longer exists; choose the system in image.distribution"
    ),
    variable_without_effect(
        "KUBE_CONTAINER_RUNTIME", "containerd", "Kubernetes runs containers by containerd now, so unset it"
    ),
    unsupported_variable("KUBE_RKT_VERSION", "rkt no longer exists, containers run under containerd; unset it"),
)
