"""Installs the distribution's packages that the image lacks."""

from __future__ import annotations

from typing import Any

from .machine import BootError, Machine
from .runner import remaining

# DPkg::Lock::Timeout does not cover the lock of `apt-get update`, which is retried instead.
APT = ("apt-get", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=5", "--no-install-recommends")

# Ubuntu's needrestart restarts services whose libraries were updated, even while they are busy: not this program's. It
# may restart containerd and the kubelet, which does not stop pods.
NEEDRESTART = "/etc/needrestart/conf.d/cfngen.conf"


def install(machine: Machine, config: dict[str, Any]) -> str:
    """Install what the image lacks: boto3 and the programs of `config["packages"]` (program: apt's, dnf's package)."""
    apt = machine.which("apt-get")
    if apt:
        machine.write(NEEDRESTART, "$nrconf{override_rc}{qr(^cfngen-)} = 0;\n")
    missing = [names[0 if apt else 1] for program, names in config["packages"].items() if not machine.which(program)]
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
        "can the instance reach its package mirror?",
        remaining(machine, config),
        BootError,
    )
    if not machine.has_boto3():
        raise BootError("Python cannot import boto3", "is /usr/bin/python3 the distribution's?")
    return "installed " + names
