"""Network interfaces of instances: those that a launch template names, which moto's Auto Scaling groups pass over.

moto 5.2 launches a group's instances with an interface of its own making, in the default VPC where the group names
zones only, and leaves an interface with the instance that is terminated. EC2 attaches the interface named, and gives
it back (EC2 user guide, "Elastic network interfaces").
"""

from __future__ import annotations

import contextlib
from typing import Any

from botocore.exceptions import ClientError
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import ec2_backends

from cfngen.sandbox.cloudformation import client

TEMPLATE_TAGS = ("aws:ec2launchtemplate:id", "aws:ec2launchtemplate:version")


def attach(region: str, instance_id: str) -> None:
    """Give an instance the primary interface that its launch template names, if it names one that is free.

    Args:
        region: of the instance.
        instance_id: one that a group has just launched.
    """
    backend = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    instance: Any = backend.get_instance(instance_id)
    with contextlib.suppress(EC2ClientError):
        interface: Any = backend.get_network_interface(_template_interface_id(region, instance))
        if interface.instance and interface.instance.state != "terminated":
            return
        default_interface = instance.nics[0]
        instance.attach_eni(interface, 0)
        instance._subnet_id = interface.subnet.id  # noqa: SLF001 - moto has no other way
        instance.source_dest_check = interface.source_dest_check
        backend.delete_network_interface(default_interface.id)


def release(region: str, instance_id: str) -> None:
    """Let the interface of a terminated instance be free for another, or be gone if it was made for this one.

    Args:
        region: of the instance.
        instance_id: one that is terminated.
    """
    backend = ec2_backends[DEFAULT_ACCOUNT_ID][region]
    instance: Any = backend.get_instance(instance_id)
    template_interface = _template_interface_id(region, instance)
    for interface in [candidate for candidate in backend.enis.values() if candidate.instance is instance]:
        interface.instance = interface.attachment_id = interface.attach_time = None
        interface.status = "available"
        if interface.id != template_interface:
            backend.delete_network_interface(interface.id)


def _template_interface_id(region: str, instance: Any) -> str:
    """Return the id of the primary interface in the launch template of an instance; nothing if there is none."""
    tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
    template, version = (tags.get(key, "") for key in TEMPLATE_TAGS)
    if not template:
        return ""
    try:
        [template_version] = client("ec2", region).describe_launch_template_versions(
            LaunchTemplateId=template, Versions=[version]
        )["LaunchTemplateVersions"]
    except ClientError:
        return ""
    interfaces = template_version["LaunchTemplateData"].get("NetworkInterfaces", [])
    return next(
        (interface["NetworkInterfaceId"] for interface in interfaces if interface.get("NetworkInterfaceId")), ""
    )
