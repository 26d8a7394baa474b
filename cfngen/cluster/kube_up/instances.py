"""Instances, disks and images of kube-up on AWS."""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.kube_up.variable import (
    Setting,
    Variable,
    accepted,
    honoured,
    path_of,
    refused,
    sets_number,
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
        raise ValueError(f"{value} cannot be used, for {_ENDED_DISTRIBUTIONS[value]}; choose one of {names}")
    if value not in _DISTRIBUTIONS:
        raise ValueError(f"{value!r} is not a distribution that cfngen knows; choose one of {names}")
    return [(path_of("image.distribution"), _DISTRIBUTIONS[value])]


def _size_in_gib(name: str, key: str, old: Sequence[str] = ()) -> Variable:
    return honoured(name, key, sets_number(key), "In GiB.", old)


_INSTANCE_SECTIONS = ("controlPlane", "nodeGroups[]")


def _snapshotter(value: str) -> Sequence[Setting]:
    names = {"overlay": "overlayfs", "overlay2": "overlayfs", "btrfs": "btrfs", "zfs": "zfs"}
    if value not in names:
        raise ValueError(f"containerd knows {', '.join(names)}, not {value!r}")
    return [(path_of(f"{owner}.containerd.snapshotter"), names[value]) for owner in _INSTANCE_SECTIONS]


def _storage(value: str) -> Sequence[Setting]:
    if value != "ebs":
        raise ValueError(f"kube-up knew ebs, not {value!r}; unset it to use the disks of the instance type")
    return [(path_of(f"{owner}.instanceStorage"), "none") for owner in _INSTANCE_SECTIONS]


def _mirror(value: str) -> Sequence[Setting]:
    return [((*path_of(f"{owner}.containerd.registryMirrors"), "docker.io"), [value]) for owner in _INSTANCE_SECTIONS]


VARIABLES: tuple[Variable, ...] = (
    honoured("MASTER_SIZE", "controlPlane.instanceType", sentence="kube-up's m3.medium is too small today."),
    honoured(
        "NODE_SIZE",
        "nodeGroups[].instanceType",
        sentence="kube-up's t2.micro and t2.small are too small today.",
        old=("MINION_SIZE",),
    ),
    honoured("MASTER_DISK_TYPE", "controlPlane.volume.type"),
    _size_in_gib("MASTER_DISK_SIZE", "controlPlane.volume.size"),
    honoured("MASTER_ROOT_DISK_TYPE", "controlPlane.rootVolume.type"),
    _size_in_gib("MASTER_ROOT_DISK_SIZE", "controlPlane.rootVolume.size"),
    honoured("NODE_ROOT_DISK_TYPE", "nodeGroups[].rootVolume.type", old=("MINION_ROOT_DISK_TYPE",)),
    _size_in_gib("NODE_ROOT_DISK_SIZE", "nodeGroups[].rootVolume.size", ("MINION_ROOT_DISK_SIZE",)),
    honoured("NODE_SPOT_PRICE", "nodeGroups[].spotPrice"),
    honoured(
        "KUBE_AWS_STORAGE",
        ("controlPlane.instanceStorage", "nodeGroups[].instanceStorage"),
        _storage,
        "`ebs` is `none`: the disks of the instance type are left alone.",
    ),
    honoured(
        "DOCKER_STORAGE",
        ("controlPlane.containerd.snapshotter", "nodeGroups[].containerd.snapshotter"),
        _snapshotter,
        "`overlay` and `overlay2` are `overlayfs`; aufs and devicemapper are no more.",
    ),
    refused("EXTRA_DOCKER_OPTS", "containerd runs the containers and has no such options; unset it"),
    accepted(
        "KUBE_ENABLE_INSECURE_REGISTRY",
        "false",
        "containerd asks registries by TLS; give the registry a certificate that the nodes' image trusts",
    ),
    honoured(
        "DOCKER_REGISTRY_MIRROR_URL",
        ("controlPlane.containerd.registryMirrors", "nodeGroups[].containerd.registryMirrors"),
        _mirror,
        "As the mirror of docker.io.",
    ),
    honoured(
        "KUBE_OS_DISTRIBUTION",
        "image.distribution",
        _distribution,
        "`ubuntu` is Ubuntu 24.04, `debian` is Debian 13; jessie, wily and the others of kube-up's time are refused.",
    ),
    honoured("AWS_IMAGE", "image.id"),
    refused(
        "AWS_IMAGE_NAME",
        "images are not looked up by name; give the AMI id (image.id) or an SSM parameter that holds it",
    ),
    honoured("KUBE_NODE_IMAGE", "nodeGroups[].image.id", old=("KUBE_MINION_IMAGE",)),
    refused(
        "AWS_SSH_KEY",
        "no file outside the cluster file is read; put the public key into ssh.publicKey, or a key pair's name into "
        "ssh.keyName",
    ),
    refused(
        "AWS_S3_BUCKET",
        "no bucket is needed to boot: instances fetch pinned files from their publishers, or from assets.mirror",
    ),
    refused("AWS_S3_REGION", "no bucket is needed to boot: your own copy of the files is named in assets.mirror"),
    accepted("AWS_DEFAULT_PROFILE", "*", "It is the AWS tools' own and has no part in what the templates say."),
    refused("COREOS_CHANNEL", "CoreOS Container Linux is no more; choose the system in image.distribution"),
    accepted("KUBE_CONTAINER_RUNTIME", "containerd", "Kubernetes runs containers by containerd now, so unset it"),
    refused("KUBE_RKT_VERSION", "rkt is no more, containers run under containerd; unset it"),
)
