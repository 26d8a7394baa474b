"""The master stack: the slots and the API endpoint.

A slot is the lasting identity of one master: a network interface with a fixed address, a data volume, and an Auto
Scaling group of one that replaces the instance in between. The interface is the instance's primary one, which EC2 Auto
Scaling allows for a group that names zones instead of subnets and holds one instance at most.
"""

from __future__ import annotations

from typing import Any

from troposphere import GetAtt, Ref, Sub, autoscaling, ec2

from cfngen import userdata
from cfngen.cluster.instance_types import architecture
from cfngen.cluster.model import Cluster, Slot
from cfngen.cluster.names import auto_scaling_group, slot_id
from cfngen.templates import access
from cfngen.templates.iam import master_profile
from cfngen.templates.images import image_parameter
from cfngen.templates.launch import (
    interchangeable_types,
    latest,
    launch_template,
    roll_one_at_a_time,
    volume_properties,
    wait_for_signals,
)
from cfngen.templates.network import route_table_id, subnet_id
from cfngen.templates.stack import ACCESS, MASTERS, Stack
from cfngen.templates.statements import MASTER_ROLE_TAG
from cfngen.templates.tagging import group_tags, tags
from cfngen.templates.vpc import internet_access, zone_parameter

ADDRESS_PATTERN = r"^([0-9]{1,3}\.){3}[0-9]{1,3}$"


def build(cluster: Cluster) -> Stack:
    """Return the stack."""
    stack = Stack(
        cluster,
        "master",
        "MasterStack",
        __name__,
        f"Masters of the Kubernetes cluster {cluster.name}: fixed address, data volume, Auto Scaling group of one",
    )
    interfaces = {slot.letter: _interface(stack, cluster, slot) for slot in cluster.slots}
    public = _public_address(stack, cluster, interfaces["a"]) if cluster.api.public else None
    for slot in cluster.slots:
        _slot(stack, cluster, slot, interfaces[slot.letter], public)

    private = GetAtt(interfaces["a"], "PrimaryPrivateIpAddress")
    host = public[0] if public else private
    stack.output(
        "ApiEndpoint",
        Sub(access.endpoint(cluster), Host=host),
        "Kubernetes API endpoint",
        shown=True,
    )
    stack.output("ApiPrivateAddress", private, "Private address of the Kubernetes API, which nodes use")
    for command in access.commands(cluster):
        text = Sub(command.text, Host=host) if "${Host}" in command.text else command.text
        stack.output(command.output, text, command.description, shown=True)
    return stack


def _interface(stack: Stack, cluster: Cluster, slot: Slot) -> ec2.NetworkInterface:
    prefix = slot_id(slot.letter)
    address = stack.ask(
        f"{prefix}Address",
        label=f"Private address of master {slot.letter}",
        group=MASTERS,
        description=f"Fixed private IPv4 address of master {slot.letter}, inside its subnet; decided once, since nodes "
        "that have joined know no other",
        default=str(slot.address),
        AllowedPattern=ADDRESS_PATTERN,
        ConstraintDescription="must be an IPv4 address inside the subnet, not one of the five that AWS reserves",
    )
    groups = [stack.wire("MasterSecurityGroupId", description="Security group of the masters")]
    return stack.add(
        ec2.NetworkInterface(
            f"{prefix}NetworkInterface",
            Description=f"Kubernetes cluster {cluster.name}: master {slot.letter}",
            SubnetId=subnet_id(stack, cluster, slot.subnet.zone),
            PrivateIpAddress=address,
            GroupSet=[*groups, *cluster.control_plane.additional_security_groups],
            # Pods' packets bear addresses that are not the interface's own.
            SourceDestCheck=False,
            Tags=tags(cluster, f"{cluster.name}-master-{slot.letter}"),
        )
    )


def _public_address(stack: Stack, cluster: Cluster, interface: ec2.NetworkInterface) -> tuple[Any, Any]:
    """Give the API server its Elastic IP; return the address and the association that instances wait for."""
    if cluster.api.elastic_ip:
        allocation: Any = stack.ask(
            "ApiElasticIpAllocationId",
            label="Allocation id of the Elastic IP",
            group=ACCESS,
            description="Allocation id of the existing Elastic IP of the Kubernetes API",
            default=cluster.api.elastic_ip.allocation_id,
            AllowedPattern="^eipalloc-[0-9a-f]{8,17}$",
            ConstraintDescription="must be an allocation id, eipalloc-…",
        )
        address: Any = stack.ask(
            "ApiElasticIp",
            label="Elastic IP",
            group=ACCESS,
            description="The existing Elastic IP itself; it goes into the API server's certificate",
            default=str(cluster.api.elastic_ip.address),
            AllowedPattern=ADDRESS_PATTERN,
            ConstraintDescription="must be an IPv4 address",
        )
    else:
        elastic_ip = ec2.EIP("ApiElasticIp", Domain="vpc", Tags=tags(cluster, f"{cluster.name}-api"))
        # EC2 hands out an address only once the VPC has its internet gateway.
        stack.add(elastic_ip, after=("InternetGatewayAttachment",))
        allocation, address = GetAtt(elastic_ip, "AllocationId"), GetAtt(elastic_ip, "PublicIp")
    association = stack.add(
        ec2.EIPAssociation("ApiElasticIpAssociation", AllocationId=allocation, NetworkInterfaceId=Ref(interface)),
        after=("InternetGatewayAttachment",),
    )
    return address, association


def _volume(stack: Stack, cluster: Cluster, slot: Slot) -> ec2.Volume:
    volume = cluster.control_plane.volume
    size = stack.ask(
        "MasterVolumeSize",
        type="Number",
        label="Size of the data volume (GiB)",
        group=MASTERS,
        description="Size of each master's data volume (etcd) in GiB; it may grow, never shrink",
        default=volume.size,
        MinValue=1,
        MaxValue=65536,
    )
    kind = stack.ask(
        "MasterVolumeType",
        label="Type of the data volume",
        group=MASTERS,
        description="EBS type of each master's data volume",
        default=volume.type,
        AllowedValues=interchangeable_types(volume),
    )
    name = f"{cluster.name}-master-{slot.letter}-data"
    return stack.add(
        ec2.Volume(
            f"{slot_id(slot.letter)}Volume",
            AvailabilityZone=zone_parameter(stack, slot.subnet.zone),
            Size=size,
            **volume_properties(volume, VolumeType=kind),
            Tags=tags(cluster, name, **MASTER_ROLE_TAG),
            # The cluster's whole state: a deleted or replaced volume leaves a snapshot behind.
            DeletionPolicy="Snapshot",
            UpdateReplacePolicy="Snapshot",
        )
    )


def _slot(
    stack: Stack,
    cluster: Cluster,
    slot: Slot,
    interface: ec2.NetworkInterface,
    public: tuple[Any, Any] | None,
) -> None:
    prefix = slot_id(slot.letter)
    title = auto_scaling_group(prefix)
    name = f"{cluster.name}-master-{slot.letter}"
    references = {
        "stack": Ref("AWS::StackName"),
        "resource": title,
        "volumeId": Ref(_volume(stack, cluster, slot)),
        "privateAddress": GetAtt(interface, "PrimaryPrivateIpAddress"),
        "caSecretArn": stack.wire("CaSecretArn", description="Secret that holds the certificate authorities"),
        "joinSecretArn": stack.wire("JoinSecretArn", description="Secret that holds what nodes need to join"),
        "routeTableId": route_table_id(stack, cluster),
        **({"publicAddress": public[0]} if public else {}),
    }
    template = launch_template(
        stack,
        cluster,
        prefix,
        cluster.control_plane,
        name=name,
        parameters="Master",
        group=MASTERS,
        image=image_parameter(
            stack,
            "Master",
            cluster.control_plane.image,
            architecture(cluster.control_plane.instance_type),
            group=MASTERS,
        ),
        profile=master_profile(stack),
        interface=ec2.NetworkInterfaces(DeviceIndex=0, DeleteOnTermination=False, NetworkInterfaceId=Ref(interface)),
        user_data=userdata.master(cluster, slot, references),
    )
    stack.add(
        autoscaling.AutoScalingGroup(
            title,
            MinSize=1,
            MaxSize=1,
            # The interface decides the subnet; a group of one with an existing interface names its zone instead.
            AvailabilityZones=[zone_parameter(stack, slot.subnet.zone)],
            LaunchTemplate=latest(template),
            Tags=group_tags(cluster, name, discoverable=False, **MASTER_ROLE_TAG),
            CreationPolicy=wait_for_signals(cluster.control_plane, 1),
            UpdatePolicy=roll_one_at_a_time(cluster.control_plane),
            **({"DependsOn": [public[1]]} if public else {}),
        ),
        after=internet_access([slot.subnet.zone]),
    )
