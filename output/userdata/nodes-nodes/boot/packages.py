"""Installs the distribution's packages that the image lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .machine import BootError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .machine import Machine
    from .state import Boot

# DPkg::Lock::Timeout does not cover the lock of `apt-get update`, which is retried instead.
APT = ("apt-get", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=5", "--no-install-recommends")

# Ubuntu's needrestart restarts services whose libraries were updated, even while they work. This file exempts cfngen's
# services. containerd and the kubelet may be restarted, which does not stop pods.
NEEDRESTART = "/etc/needrestart/conf.d/cfngen.conf"


def install(machine: Machine, boot: Boot) -> str:
    """Install the packages of boto3, and of the programs that the role needs, if the image lacks them."""
    return provide(machine, boot.config["packages"], boot.remaining(machine))


def provide(machine: Machine, packages: Mapping[str, Sequence[str]], seconds: float) -> str:
    """Install the packages of boto3, and of the programs in `packages`, if the image lacks them.

    Args:
        machine: the instance.
        packages: the names of the package for apt and for dnf, by program.
        seconds: time-out.

    Raises:
        BootError: the packages cannot be installed, or boto3 cannot be imported afterwards.
    """
    apt = machine.which("apt-get")
    if apt:
        machine.write(NEEDRESTART, "$nrconf{override_rc}{qr(^cfngen-)} = 0;\n")
    missing = [names[0 if apt else 1] for program, names in packages.items() if not machine.which(program)]
    if not machine.has_boto3():
        missing.append("python3-boto3")
    if not missing:
        return "nothing to install"

    def attempt() -> None:
        if apt:
            machine.run("dpkg", "--configure", "-a")
            machine.run(*APT, "update")
            machine.run(*APT, "install", *missing)
        else:
            machine.run("dnf", "-y", "install", *missing)

    names = ", ".join(missing)
    machine.wait(
        "packages " + names,
        attempt,
        "check that the instance can reach its package mirror",
        seconds,
        BootError,
    )
    if not machine.has_boto3():
        raise BootError("Python cannot import boto3", "check that /usr/bin/python3 is the distribution's")
    return "installed " + names
