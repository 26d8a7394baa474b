"""Installs the distribution's packages that the image lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .machine import BootError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .machine import Machine
    from .state import Boot

# The beginning of every apt command. If another process holds dpkg's lock, apt waits for at most 300 s. `apt-get
# update` has another lock, for which it does not wait, so the command is retried.
APT = ("apt-get", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=5", "--no-install-recommends")

# Ubuntu's needrestart restarts services whose libraries were updated, even while they work. This configuration file
# exempts cfngen's services. containerd and the kubelet may be restarted, which does not stop pods.
NEEDRESTART_FILE = "/etc/needrestart/conf.d/cfngen.conf"


def install(machine: Machine, boot: Boot) -> str:
    """Install the packages of boto3, and of the programs that the role needs, if the image lacks them."""
    return install_missing(machine, boot.config["packages"], boot.remaining(machine))


def install_missing(machine: Machine, packages: Mapping[str, Sequence[str]], seconds: float) -> str:
    """Install the packages of boto3, and of the programs in `packages`, if the image lacks them.

    Args:
        packages: by program, the name of the package that contains it: first for apt, then for dnf.
    """
    has_apt = machine.which("apt-get")
    if has_apt:
        machine.write(NEEDRESTART_FILE, "$nrconf{override_rc}{qr(^cfngen-)} = 0;\n")
    missing = [names[0 if has_apt else 1] for program, names in packages.items() if not machine.which(program)]
    if not machine.has_boto3():
        missing.append("python3-boto3")
    if not missing:
        return "nothing to install"

    def run_installer() -> None:
        if has_apt:
            machine.run("dpkg", "--configure", "-a")
            machine.run(*APT, "update")
            machine.run(*APT, "install", *missing)
        else:
            machine.run("dnf", "-y", "install", *missing)

    names = ", ".join(missing)
    machine.wait(
        "packages " + names,
        run_installer,
        "check that the instance can reach its package mirror",
        seconds,
        retry_on=BootError,
    )
    if not machine.has_boto3():
        raise BootError("Python cannot import boto3", "check that /usr/bin/python3 is the distribution's")
    return "installed " + names
