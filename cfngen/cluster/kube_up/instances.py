"""Instances, disks and images of kube-up on AWS."""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.kube_up.variable import (
    Setting,
    Variable,
    accepted_only,
    as_number,
    path_of,
    refused,
    sets_keys,
)

_DISTRIBUTIONS = {
    "ubuntu-24.04": "ubuntu-24.04",
    "ubuntu-22.04": "ubuntu-22.04",
    "debian-12": "debian-12",
    "debian-13": "debian-13",
    "amazon-linux-2023": "amazon-linux-2023",
    "ubuntu": "ubuntu-24.04",
    "debian": "debian-13",
}
_ENDED_DISTRIBUTIONS = {
    "jessie": "Debian 8 has had no updates since 2020",
    "wheezy": "Debian 7 has had no updates since 2018",
    "wily": "Ubuntu 15.10 has had no updates since 2016",
    "vivid": "Ubuntu 15.04 has had no updates since 2016",
    "trusty": "Ubuntu 14.04 has no systemd, which today's Kubernetes needs",
    "coreos": "CoreOS Container Linux has had no updates since 2020",
}


def _distribution(value: str) -> Sequence[Setting]:
    names = ", ".join(_DISTRIBUTIONS)
    if value in _ENDED_DISTRIBUTIONS:
        raise ValueError(f"{value} cannot be used: {_ENDED_DISTRIBUTIONS[value]}; choose one of {names}")
    if value not in _DISTRIBUTIONS:
        raise ValueError(f"{value!r} is not a distribution that cfngen supports; choose one of {names}")
    return [(path_of("image.distribution"), _DISTRIBUTIONS[value])]


def _size_in_gib(name: str, key: str, old_names: Sequence[str] = ()) -> Variable:
    return sets_keys(name, key, as_number(key), explanation="In GiB.", old_names=old_names)


_INSTANCE_SECTIONS = ("controlPlane", "nodeGroups[]")


def _snapshotter(value: str) -> Sequence[Setting]:
    names = {"overlay": "overlayfs", "overlay2": "overlayfs", "btrfs": "btrfs", "zfs": "zfs"}
    if value not in names:
        raise ValueError(f"must be one of {', '.join(names)}, not {value!r}")
    return [(path_of(f"{owner}.containerd.snapshotter"), names[value]) for owner in _INSTANCE_SECTIONS]


def _storage(value: str) -> Sequence[Setting]:
    if value != "ebs":
        raise ValueError(f"must be ebs, not {value!r}; unset it to use the disks of the instance type")
    return [(path_of(f"{owner}.instanceStorage"), "none") for owner in _INSTANCE_SECTIONS]


def _mirror(value: str) -> Sequence[Setting]:
    return [((*path_of(f"{owner}.containerd.registryMirrors"), "docker.io"), [value]) for owner in _INSTANCE_SECTIONS]


VARIABLES: tuple[Variable, ...] = (
    sets_keys("MASTER_SIZE", "controlPlane.instanceType", explanation="kube-up's m3.medium is too small today."),
    sets_keys(
        "NODE_SIZE",
        "nodeGroups[].instanceType",
        explanation="kube-up's t2.micro and t2.small are too small today.",
        old_names=("MINION_SIZE",),
    ),
    sets_keys("MASTER_DISK_TYPE", "controlPlane.volume.type"),
    _size_in_gib("MASTER_DISK_SIZE", "controlPlane.volume.size"),
    sets_keys("MASTER_ROOT_DISK_TYPE", "controlPlane.rootVolume.type"),
    _size_in_gib("MASTER_ROOT_DISK_SIZE", "controlPlane.rootVolume.size"),
    sets_keys("NODE_ROOT_DISK_TYPE", "nodeGroups[].rootVolume.type", old_names=("MINION_ROOT_DISK_TYPE",)),
    _size_in_gib("NODE_ROOT_DISK_SIZE", "nodeGroups[].rootVolume.size", old_names=("MINION_ROOT_DISK_SIZE",)),
    sets_keys("NODE_SPOT_PRICE", "nodeGroups[].spotPrice"),
    sets_keys(
        "KUBE_AWS_STORAGE",
        ("controlPlane.instanceStorage", "nodeGroups[].instanceStorage"),
        _storage,
        "`ebs` becomes `none`: the disks of the instance type are not used.",
    ),
    sets_keys(
        "DOCKER_STORAGE",
        ("controlPlane.containerd.snapshotter", "nodeGroups[].containerd.snapshotter"),
        _snapshotter,
        "`overlay` and `overlay2` become `overlayfs`; aufs and devicemapper no longer exist.",
    ),
    refused("EXTRA_DOCKER_OPTS", "containerd runs the containers and has no such options; unset it"),
    accepted_only(
        "KUBE_ENABLE_INSECURE_REGISTRY",
        "false",
        "containerd connects to registries by TLS; give the registry a certificate that the nodes' image trusts",
    ),
    sets_keys(
        "DOCKER_REGISTRY_MIRROR_URL",
        ("controlPlane.containerd.registryMirrors", "nodeGroups[].containerd.registryMirrors"),
        _mirror,
        "As the mirror of docker.io.",
    ),
    sets_keys(
        "KUBE_OS_DISTRIBUTION",
        "image.distribution",
        _distribution,
        "`ubuntu` is Ubuntu 24.04, `debian` is Debian 13; jessie, wily and the others of kube-up's time are refused.",
    ),
    sets_keys("AWS_IMAGE", "image.id"),
    refused(
        "AWS_IMAGE_NAME",
        "images are not looked up by name; set image.id to the AMI id, or image.ssmParameter to an SSM parameter "
        "with it",
    ),
    sets_keys("KUBE_NODE_IMAGE", "nodeGroups[].image.id", old_names=("KUBE_MINION_IMAGE",)),
    refused(
        "AWS_SSH_KEY",
        "no file outside the cluster file is read; put the public key into ssh.publicKey, or a key pair's name into "
        "ssh.keyName",
    ),
    refused(
        "AWS_S3_BUCKET",
        "no bucket is needed to boot: instances download pinned files from their publishers, or from assets.mirror",
    ),
    refused("AWS_S3_REGION", "no bucket is needed to boot; set assets.mirror to use your own copy of the files"),
    accepted_only("AWS_DEFAULT_PROFILE", "*", "The AWS tools use it; it does not affect the templates."),
    refused("COREOS_CHANNEL", "CoreOS Container Linux no longer exists; choose the system in image.distribution"),
    accepted_only("KUBE_CONTAINER_RUNTIME", "containerd", "Kubernetes runs containers by containerd now, so unset it"),
    refused("KUBE_RKT_VERSION", "rkt no longer exists, containers run under containerd; unset it"),
)
