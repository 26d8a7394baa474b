"""An emulated instance of a cluster, the fault injected into its boot, and the console output of its kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from cfngen.sandbox.user_data import BootData


@dataclass(frozen=True)
class BootFault:
    """A fault that is injected into the boot of an instance.

    Attributes:
        step: title of the step that fails, e.g. `downloads`.
        message: the reason that is logged; empty if the instance hangs in this step without a signal.
        hint: advice that is logged with the reason.
    """

    step: str
    message: str = ""
    hint: str = "see /var/log/cfngen.log"


@dataclass
class Instance:
    """An instance of a cluster.

    Attributes:
        id: the instance id.
        zone: name of its Availability Zone.
        type: its instance type.
        address: its private address.
        public_address: its public address; empty if it has none.
        image: description or name of its image.
        group: name of the Auto Scaling group that launched it.
        boot_data: the content of its user data.
        number: how many instances of the account were launched before it.
        launched: time of the launch, in seconds of the simulated clock.
        console: the lines of its console output.
        name: name of the node group or of the master, e.g. `master-a`.
        runs_drain_service: whether the service runs that watches for the instance's termination, and then evicts the
            node's pods.
    """

    id: str
    zone: str
    type: str
    address: str
    public_address: str
    image: str
    boot_data: BootData
    group: str
    number: int
    launched: float
    console: list[str] = field(default_factory=list)
    name: str = ""
    runs_drain_service: bool = False

    @property
    def facts(self) -> dict[str, str]:
        """The values of placeholders such as `${instanceId}` in the boot program's configuration."""
        return {
            **self.boot_data.references,
            "instanceId": self.id,
            "zone": self.zone,
            "address": self.address,
            "providerId": f"aws:///{self.zone}/{self.id}",
        }


def kernel_console_lines(instance: Instance) -> list[str]:
    """Return the console output of kernel and cloud-init, which precedes that of the boot program."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}[instance.boot_data.architecture]  # as `uname -m` prints it
    return [
        "[    0.000000] Linux version 6.8.0-1021-aws",
        "[    0.000000] Command line: BOOT_IMAGE=/boot/vmlinuz-6.8.0-1021-aws root=LABEL=cloudimg-rootfs console=ttyS0",
        f"[    0.412871] smpboot: {machine}, Amazon EC2 {instance.type}",
        "[    4.180233] cloud-init[528]: Cloud-init running 'init'",
        f"[    4.611904] cloud-init[528]: ci-info: | ens5 | True | {instance.address} |",
        "[    8.902145] cloud-init[590]: Cloud-init running 'modules:final'",
        "[    9.310482] systemd[1]: Starting cfngen-boot.service - cfngen boot program...",
    ]
