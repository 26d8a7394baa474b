"""The master stack: the slots and the API endpoint.

A slot is the stable identity of one master: a network interface with a fixed address, a data volume, and an Auto
Scaling group of one that replaces the instance. The interface is the instance's primary one, which EC2 Auto Scaling
allows for a group that names zones instead of subnets and has one instance at most.

All masters start together and are updated one after another; nodes start with them and are updated after them. The
dependencies do this:

- Each group depends on the group of the previous slot. On creation this costs seconds only: a group without a creation
  policy is complete as soon as it exists. On an update it makes a rolling update: a group is complete when its new
  instance has signalled, and only then does the next one start. (On deletion the groups go one by one, the last first.)
- Node groups depend on the last slot's group (nested: their stacks on this stack), with the same two effects.
- The creation waits for wait conditions, one for each slot, each depending on the slot's group. No group depends on a
  wait condition: the first master would have to report success before the second is launched, but etcd may need both
  for its quorum. kube-aws got stuck like this (kubernetes-retired/kube-aws#525). The wait conditions are in the root
  stack: in this stack they would delay its completion, and nodes wait for this stack.
- A creation policy applies only when its resource is created. So an update waits for the groups' signals alone, and a
  master that is added later is awaited by its own wait condition, since its group has no creation policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from troposphere import GetAtt, Ref, Sub, autoscaling, ec2

from cfngen import userdata
from cfngen.cluster.checks.volumes import TYPES
from cfngen.cluster.instance_types import architecture
from cfngen.cluster.logical_ids import MASTER_STACK, MasterId, slot_id
from cfngen.cluster.model import Cluster, Slot
from cfngen.cluster.network_plugins import network_plugin
from cfngen.permissions.references import MASTER_ROLE_TAG
from cfngen.templates import access
from cfngen.templates.api_endpoint import PublicAddress, add_elastic_ip, add_load_balancer
from cfngen.templates.backups import bucket_name
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
from cfngen.templates.patterns import ADDRESS
from cfngen.templates.property_value import Value
from cfngen.templates.security_groups import access_groups
from cfngen.templates.stack import MASTERS, Stack
from cfngen.templates.tagging import group_tags, tags
from cfngen.templates.vpc import internet_access, zone_parameter

MakeUserData = Callable[[Cluster, Slot, Mapping[str, Value]], userdata.UserData]


def build(cluster: Cluster, *, user_data: MakeUserData = userdata.master) -> Stack:
    """Return the master stack.

    Args:
        cluster: the cluster.
        user_data: makes the user data of a slot's instances; a rehearsal passes another function.
    """
    stack = Stack(
        cluster,
        "master",
        MASTER_STACK,
        __name__,
        f"Masters of the Kubernetes cluster {cluster.name}: fixed address, data volume, Auto Scaling group of one",
    )
    interfaces = [_add_interface(stack, cluster, slot) for slot in cluster.slots]
    addresses: list[PublicAddress | None] = [
        add_elastic_ip(stack, cluster, slot, interface) if cluster.api.public else None
        for slot, interface in zip(cluster.slots, interfaces, strict=True)
    ]
    private_address = GetAtt(interfaces[0], "PrimaryPrivateIpAddress")
    shell_host = addresses[0].address if addresses[0] else private_address
    has_load_balancer = len(interfaces) > 1
    host = add_load_balancer(stack, cluster, interfaces) if has_load_balancer else shell_host
    endpoint = host if has_load_balancer or cluster.api.public else None
    groups: list[autoscaling.AutoScalingGroup] = []
    # Each master gets all addresses: for the API's name in /etc/hosts, and for the members of etcd.
    private_addresses = {
        userdata.address_reference(slot): GetAtt(interface, "PrimaryPrivateIpAddress")
        for slot, interface in zip(cluster.slots, interfaces, strict=True)
    }
    for slot, interface, address in zip(cluster.slots, interfaces, addresses, strict=True):
        groups.append(
            _add_slot(
                stack,
                cluster,
                slot,
                interface=interface,
                address=address,
                endpoint=endpoint,
                private_addresses=private_addresses,
                previous_groups=groups[-1:],
                user_data=user_data,
            )
        )

    stack.output(
        "ApiEndpoint",
        Sub(access.endpoint(cluster), Host=host),
        "Kubernetes API endpoint",
        in_root=True,
    )
    stack.output(
        "ApiPrivateAddress", private_address, "Private address of the first master, one of those that nodes use"
    )
    for command in access.commands(cluster):
        variables = {"Host": host, "Master": shell_host}
        used = {name: value for name, value in variables.items() if f"${{{name}}}" in command.text}
        text = Sub(command.text, **used) if used else command.text
        stack.output(command.output, text, command.description, in_root=True)
    return stack


def last_group(cluster: Cluster) -> str:
    """Return the logical id of the last slot's Auto Scaling group, which is complete after those of all other slots."""
    return str(MasterId(cluster.slots[-1].letter, "AutoScalingGroup"))


def _add_interface(stack: Stack, cluster: Cluster, slot: Slot) -> ec2.NetworkInterface:
    address = stack.parameter(
        str(MasterId(slot.letter, "Address")),
        label=f"Private address of master {slot.letter}",
        group=MASTERS,
        description=f"Fixed private IPv4 address of master {slot.letter}, inside its subnet; decided once, since nodes "
        "that have joined know no other",
        default=str(slot.address),
        AllowedPattern=ADDRESS,
        ConstraintDescription="must be an IPv4 address inside the subnet, not one of the five that AWS reserves",
    )
    plugin = network_plugin(cluster)
    groups = [stack.wired_parameter("MasterSecurityGroupId", description="Security group of the masters")]
    groups += access_groups(stack, cluster, "Master")
    return stack.add(
        ec2.NetworkInterface(
            str(MasterId(slot.letter, "NetworkInterface")),
            Description=f"Kubernetes cluster {cluster.name}: master {slot.letter}",
            SubnetId=subnet_id(stack, cluster, slot.subnet.zone),
            PrivateIpAddress=address,
            GroupSet=[*groups, *cluster.control_plane.additional_security_groups],
            # With VPC routes, packets of pods have addresses that are not the interface's own.
            SourceDestCheck=not plugin.routes,
            # Where nodes may change network interfaces, their policy excludes those with this tag.
            Tags=tags(
                cluster, f"{cluster.name}-master-{slot.letter}", **(MASTER_ROLE_TAG if plugin.interfaces else {})
            ),
        )
    )


def _add_data_volume(stack: Stack, cluster: Cluster, slot: Slot) -> ec2.Volume:
    volume = cluster.control_plane.volume
    size = stack.parameter(
        "MasterVolumeSize",
        type="Number",
        label="Size of the data volume (GiB)",
        group=MASTERS,
        description="Size of each master's data volume (etcd) in GiB; it may grow, never shrink",
        default=volume.size,
        # Must fit every type that may be chosen in the console.
        MinValue=max(TYPES[volume_type].size_gib[0] for volume_type in interchangeable_types(volume)),
        MaxValue=min(TYPES[volume_type].size_gib[1] for volume_type in interchangeable_types(volume)),
    )
    kind = stack.parameter(
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
            str(MasterId(slot.letter, "Volume")),
            AvailabilityZone=zone_parameter(stack, slot.subnet.zone),
            Size=size,
            **volume_properties(volume, VolumeType=kind),
            Tags=tags(cluster, name, **MASTER_ROLE_TAG),
            # It holds the cluster's whole state: CloudFormation takes a snapshot before it deletes or replaces it.
            DeletionPolicy="Snapshot",
            UpdateReplacePolicy="Snapshot",
        )
    )


def _add_slot(
    stack: Stack,
    cluster: Cluster,
    slot: Slot,
    *,
    interface: ec2.NetworkInterface,
    address: PublicAddress | None,
    endpoint: Value,
    private_addresses: Mapping[str, Value],
    previous_groups: list[autoscaling.AutoScalingGroup],
    user_data: MakeUserData,
) -> autoscaling.AutoScalingGroup:
    """Add a slot's volume, launch template and group; return the group.

    Args:
        stack: the stack.
        cluster: the cluster.
        slot: the slot.
        interface: its network interface.
        address: its public address, if it has one.
        endpoint: public name or address of the API, if it is not the master's private address.
        private_addresses: the references to the private addresses of all slots.
        previous_groups: the group of the slot before it, if there is one.
        user_data: makes the user data of its instances.
    """
    title = str(MasterId(slot.letter, "AutoScalingGroup"))
    condition = str(MasterId(slot.letter, "WaitCondition"))
    name = f"{cluster.name}-master-{slot.letter}"
    references = {
        "stack": Ref("AWS::StackName"),
        "resource": title,
        "volumeId": Ref(_add_data_volume(stack, cluster, slot)),
        "privateAddress": GetAtt(interface, "PrimaryPrivateIpAddress"),
        "slot": slot.letter,
        **private_addresses,
        "caSecretArn": stack.wired_parameter(
            "CaSecretArn", description="Secret that holds the certificate authorities"
        ),
        "joinSecretArn": stack.wired_parameter(
            "JoinSecretArn", description="Secret that holds what nodes need to join"
        ),
        **({"routeTableId": route_table_id(stack, cluster)} if network_plugin(cluster).routes else {}),
        **({"bucket": bucket_name(stack)} if cluster.etcd.backups.enabled else {}),
        **({"publicAddress": endpoint} if endpoint else {}),
        "condition": condition,
        "conditionStack": stack.wired_parameter(
            "ClusterStackName", description="Name of the stack that waits for the masters"
        ),
    }
    template = launch_template(
        stack,
        cluster,
        slot_id(slot.letter),
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
        user_data=user_data(cluster, slot, references),
    )
    needs = [*([address.association] if address else []), *previous_groups]
    group = stack.add(
        autoscaling.AutoScalingGroup(
            title,
            MinSize=1,
            MaxSize=1,
            # The existing interface determines the subnet, so the group names the zone only.
            AvailabilityZones=[zone_parameter(stack, slot.subnet.zone)],
            LaunchTemplate=latest(template),
            Tags=group_tags(cluster, name, discoverable=False, **MASTER_ROLE_TAG),
            UpdatePolicy=roll_one_at_a_time(cluster.control_plane),
            **({"DependsOn": needs} if needs else {}),
        ),
        standalone_depends_on=internet_access([slot.subnet.zone]),
    )
    # It depends on the group, so that its timeout starts when the instance is launched.
    stack.add_outer_wait_condition(condition, wait_for_signals(cluster.control_plane, 1), launched_by=title)
    return group
