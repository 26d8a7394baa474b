"""Attaches the network interface that a launch template describes, which moto's Auto Scaling groups ignore.

moto 5.2 launches a group's instances with a new interface (in the default VPC if the group names zones only), and never
detaches it from a terminated instance. EC2 attaches the interface that the template names, and detaches it when the
instance is terminated (EC2 user guide, "Elastic network interfaces"). A new interface gets a public address if the
template says so, or else the subnet (VPC user guide, "Public IPv4 addresses"); moto reads neither of them.
"""

from __future__ import annotations

import contextlib

from botocore.exceptions import ClientError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.moto_types import MotoModel

# The tags by which an instance of a group names its launch template.
TEMPLATE_ID_TAG, TEMPLATE_VERSION_TAG = "aws:ec2launchtemplate:id", "aws:ec2launchtemplate:version"


def attach(region: str, instance_id: str) -> None:
    """Attach the primary interface that an instance's launch template names, if it names one that is free.

    The interface that moto made for the instance is then deleted. If the template names none, that interface is kept,
    and gets a public address if it should have one.
    """
    backend = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    instance: MotoModel = backend.get_instance(instance_id)
    template_interface = _template_interface(region, instance)
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


def release(region: str, instance_id: str) -> None:
    """Detach the interface of a terminated instance, or delete it if it was created for this instance."""
    backend = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    instance: MotoModel = backend.get_instance(instance_id)
    template_interface_id = _template_interface(region, instance).get("NetworkInterfaceId", "")
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


def _template_interface(region: str, instance: MotoModel) -> JsonObject:
    """Return the description of the primary interface in an instance's launch template; empty if it has none."""
    tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
    template_id, version = tags.get(TEMPLATE_ID_TAG, ""), tags.get(TEMPLATE_VERSION_TAG, "")
    if not template_id:
        return {}
    try:
        [template_version] = client("ec2", region).describe_launch_template_versions(
            LaunchTemplateId=template_id, Versions=[version]
        )["LaunchTemplateVersions"]
    except ClientError:
        return {}
    interfaces: list[JsonObject] = template_version["LaunchTemplateData"].get("NetworkInterfaces", [])
    return next((interface for interface in interfaces if not int(interface.get("DeviceIndex", 0))), {})
