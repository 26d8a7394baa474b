"""An instance of a cluster: its facts, the fault injected into its boot, its kernel's lines, its network interface."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends

from cfngen.sandbox.instances.user_data import BootData
from cfngen.sandbox.services.iam import role_of_profile
from cfngen.sandbox.services.launch import launch_template_data
from cfngen.sandbox.untyped import JsonObject, MotoModel


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
        address: its private address.
        public_address: its public address; empty if it has none.
        image: description or name of its image.
        group: name of the Auto Scaling group that launched it.
        number: how many instances of the account were launched before it.
        launched: time of the launch, in seconds of the simulated clock.
        name: name of the node group or of the master, e.g. `master-a`.
        runs_termination_service: whether the service runs that watches for the instance's termination, and then evicts
            the node's pods, or has the master wait until etcd has a quorum without it.
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
    runs_termination_service: bool = False

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


def attach_interface(region: str, instance_id: str) -> None:
    """Attach the primary interface that an instance's launch template names, if it names one that is free.

    moto 5.2 launches a group's instances with a new interface (in the default VPC if the group names zones only), and
    never detaches it from a terminated instance. EC2 attaches the interface that the template names, and detaches it
    when the instance is terminated (EC2 user guide, "Elastic network interfaces"). A new interface, which is kept if
    the template names none, gets a public address if the template says so, or else the subnet (VPC user guide, "Public
    IPv4 addresses"); moto reads neither of them.
    """
    backend = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    instance: MotoModel = backend.get_instance(instance_id)
    template_interface = _template_interface(instance)
    interface_id = template_interface.get("NetworkInterfaceId", "")
    if not interface_id:
        _assign_public_address(instance.nics[0], template_interface)
        return
    with contextlib.suppress(EC2ClientError):
        interface: MotoModel = backend.get_network_interface(interface_id)
        if interface.instance and interface.instance.state != "terminated":
            return
        default_interface = instance.nics[0]
        instance.attach_eni(interface, 0)
        instance._subnet_id = interface.subnet.id  # noqa: SLF001 - moto has no other way
        instance.source_dest_check = interface.source_dest_check
        backend.delete_network_interface(default_interface.id)


def release_interface(region: str, instance_id: str) -> None:
    """Detach the interface of a terminated instance, or delete it if it was created for this instance."""
    backend = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    instance: MotoModel = backend.get_instance(instance_id)
    template_interface_id = _template_interface(instance).get("NetworkInterfaceId", "")
    for interface in [candidate for candidate in backend.enis.values() if candidate.instance is instance]:
        interface.instance = interface.attachment_id = interface.attach_time = None
        interface.status = "available"
        if interface.id != template_interface_id:
            backend.delete_network_interface(interface.id)


def _assign_public_address(interface: MotoModel, template_interface: JsonObject) -> None:
    """Give a new primary interface a public address if the launch template says so, or else its subnet."""
    wish = template_interface.get("AssociatePublicIpAddress", interface.subnet.map_public_ip_on_launch)
    if str(wish).lower() == "true":
        interface.public_ip_auto_assign = True
        interface.check_auto_public_ip()


def role_of_instance(region: str, instance_id: str) -> str:
    """Return the ARN of the role in the instance profile that an instance's launch template names; empty if none."""
    instance: MotoModel = ec2_backends[DEFAULT_ACCOUNT_ID][region].get_instance(instance_id)
    return role_of_profile(region, launch_template_data(instance).get("IamInstanceProfile") or {})


def _template_interface(instance: MotoModel) -> JsonObject:
    """Return the description of the primary interface in an instance's launch template; empty if it has none."""
    try:
        interfaces: list[JsonObject] = launch_template_data(instance).get("NetworkInterfaces", [])
    except EC2ClientError:
        return {}  # the version is gone
    return next((interface for interface in interfaces if not int(interface.get("DeviceIndex", 0))), {})
