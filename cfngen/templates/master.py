"""The master stack: the slots and the API endpoint.

A slot is the set of resources of one master that remain when the master's instance is replaced: a network interface
with a fixed address, a data volume, and an Auto Scaling group of one instance. The interface is the primary interface
of the instance. EC2 Auto Scaling allows that for a group that names zones instead of subnets and has at most one
instance.

On creation all masters and nodes start together. On an update the masters are replaced one after another, then the
nodes. The dependencies between resources have this effect:

- Each slot's group depends on the group of the previous slot. On creation this delays a group by seconds only: a group
  without a creation policy is complete as soon as it exists. On an update a group is complete when its new instance has
  signalled, and only then does the update of the next group start. (On deletion the last group is deleted first.)
- Node groups depend on the last slot's group, so they too are delayed by seconds on creation, and updated only after
  the masters. In nested stacks, the stacks of the node groups depend on the master stack instead.
- The cluster's creation waits until all masters have signalled: each slot has a wait condition, which depends on the
  slot's group. No group depends on a wait condition. If one did, the first master would have to report success before
  the second is launched, but etcd may need both for its quorum. kube-aws had this deadlock
  (kubernetes-retired/kube-aws#525). The wait conditions are in the root stack. In the master stack they would delay the
  completion of the master stack, and therefore the nodes, whose stacks start after it.
- A creation policy applies only when its resource is created. So an update waits only for the signals of updated groups
  and, if a master was added, for that master's new wait condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from troposphere import GetAtt, Ref, Sub, autoscaling, ec2

from cfngen import userdata
from cfngen.cluster.checks.volumes import VOLUME_TYPES
from cfngen.cluster.instance_types import architecture
from cfngen.cluster.logical_ids import MASTER_STACK, MasterId, master_prefix
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
    latest_version,
    launch_template,
    roll_one_at_a_time,
    volume_properties,
    wait_for_signals,
)
from cfngen.templates.network import route_table_id, subnet_id
from cfngen.templates.patterns import ADDRESS
from cfngen.templates.property_value import Value
from cfngen.templates.security_groups import overflow_security_groups
from cfngen.templates.stack import MASTERS, Stack
from cfngen.templates.tagging import group_tags, tags
from cfngen.templates.vpc import internet_access, zone_parameter

MakeUserData = Callable[[Cluster, Slot, Mapping[str, Value]], userdata.UserData]


def build(cluster: Cluster, *, user_data: MakeUserData = userdata.master) -> Stack:
    """Return the master stack.

    Args:
        cluster: the cluster.
        user_data: returns the UserData of a slot's instances. `cfngen rehearse` passes another function.
    """
    stack = Stack(
        cluster,
        name="master",
        logical_id=MASTER_STACK,
        module=__name__,
        description=f"Masters of the Kubernetes cluster {cluster.name}: "
        "fixed address, data volume, Auto Scaling group of one",
    )
    interfaces = [_add_interface(stack, cluster, slot) for slot in cluster.slots]
    public_addresses: list[PublicAddress | None] = [
        add_elastic_ip(stack, cluster, slot, interface) if cluster.api.public else None
        for slot, interface in zip(cluster.slots, interfaces, strict=True)
    ]
    first_private_address = GetAtt(interfaces[0], "PrimaryPrivateIpAddress")
    shell_host = public_addresses[0].address if public_addresses[0] else first_private_address
    has_load_balancer = len(interfaces) > 1
    api_host = add_load_balancer(stack, cluster, interfaces) if has_load_balancer else shell_host
    public_endpoint = api_host if has_load_balancer or cluster.api.public else None
    slot_groups: list[autoscaling.AutoScalingGroup] = []
    # UserData of each master contains the addresses of all masters, for the API's name in /etc/hosts and for etcd.
    private_addresses = {
        userdata.address_reference(slot): GetAtt(interface, "PrimaryPrivateIpAddress")
        for slot, interface in zip(cluster.slots, interfaces, strict=True)
    }
    for slot, interface, public_address in zip(cluster.slots, interfaces, public_addresses, strict=True):
        slot_groups.append(
            _add_slot(
                stack,
                cluster,
                slot,
                interface=interface,
                public_address=public_address,
                public_endpoint=public_endpoint,
                private_addresses=private_addresses,
                previous_group=slot_groups[-1] if slot_groups else None,
                user_data=user_data,
            )
        )

    stack.output(
        "ApiEndpoint",
        Sub(access.endpoint(cluster), Host=api_host),
        "Kubernetes API endpoint",
        in_root=True,
    )
    stack.output(
        "ApiPrivateAddress", first_private_address, "Private address of the first master, one of those that nodes use"
    )
    for command in access.commands(cluster):
        variables = {"Host": api_host, "Master": shell_host}
        used_variables = {name: value for name, value in variables.items() if f"${{{name}}}" in command.text}
        text = Sub(command.text, **used_variables) if used_variables else command.text
        stack.output(command.output, text, command.description, in_root=True)
    return stack


def last_group(cluster: Cluster) -> str:
    """Return the logical id of the last slot's Auto Scaling group, which is complete after all other slots' groups."""
    return str(MasterId(cluster.slots[-1].letter, "AutoScalingGroup"))


def _add_interface(stack: Stack, cluster: Cluster, slot: Slot) -> ec2.NetworkInterface:
    """Add the slot's network interface, with the fixed private address of its master."""
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
    security_groups = [
        stack.parameter_from_other_stack("MasterSecurityGroupId", description="Security group of the masters")
    ]
    security_groups += overflow_security_groups(stack, cluster, "Master")
    return stack.add(
        ec2.NetworkInterface(
            str(MasterId(slot.letter, "NetworkInterface")),
            Description=f"Kubernetes cluster {cluster.name}: master {slot.letter}",
            SubnetId=subnet_id(stack, cluster, slot.subnet.zone),
            PrivateIpAddress=address,
            GroupSet=[*security_groups, *cluster.control_plane.additional_security_groups],
            # With VPC routes, the interface sends and receives packets with addresses of pods. Unless this check is
            # disabled, EC2 drops packets whose address is not an address of the interface.
            SourceDestCheck=not plugin.uses_vpc_routes,
            # A plug-in that manages interfaces lets nodes change the cluster's interfaces, except those with this tag.
            Tags=tags(
                cluster,
                f"{cluster.name}-master-{slot.letter}",
                **(MASTER_ROLE_TAG if plugin.gives_pods_vpc_addresses else {}),
            ),
        )
    )


def _add_data_volume(stack: Stack, cluster: Cluster, slot: Slot) -> ec2.Volume:
    """Add the slot's data volume, which contains etcd's data."""
    volume = cluster.control_plane.volume
    size_parameter = stack.parameter(
        "MasterVolumeSize",
        type="Number",
        label="Size of the data volume (GiB)",
        group=MASTERS,
        description="Size of each master's data volume (etcd) in GiB; it may grow, never shrink",
        default=volume.size,
        # The size must be valid for every volume type that the user can choose in the console.
        MinValue=max(VOLUME_TYPES[volume_type].size_gib[0] for volume_type in interchangeable_types(volume)),
        MaxValue=min(VOLUME_TYPES[volume_type].size_gib[1] for volume_type in interchangeable_types(volume)),
    )
    volume_type_parameter = stack.parameter(
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
            Size=size_parameter,
            **volume_properties(volume, VolumeType=volume_type_parameter),
            Tags=tags(cluster, name, **MASTER_ROLE_TAG),
            # The volume contains the cluster's whole state, so CloudFormation takes a snapshot before it deletes or
            # replaces the volume.
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
    public_address: PublicAddress | None,
    public_endpoint: Value,
    private_addresses: Mapping[str, Value],
    previous_group: autoscaling.AutoScalingGroup | None,
    user_data: MakeUserData,
) -> autoscaling.AutoScalingGroup:
    """Add a slot's volume, launch template, Auto Scaling group and wait condition; return the group.

    Args:
        stack: the master stack.
        cluster: the cluster.
        slot: the slot.
        interface: network interface of the slot.
        public_address: public address of the slot, or None.
        public_endpoint: public address of the API, or name of its load balancer; None if the API has only private
            addresses.
        private_addresses: references to the private addresses of all slots.
        previous_group: Auto Scaling group of the previous slot; None for the first slot.
        user_data: returns the UserData of the slot's instances.
    """
    group_logical_id = str(MasterId(slot.letter, "AutoScalingGroup"))
    wait_condition_id = str(MasterId(slot.letter, "WaitCondition"))
    name = f"{cluster.name}-master-{slot.letter}"
    user_data_references: dict[str, Value] = {
        "stack": Ref("AWS::StackName"),
        "resource": group_logical_id,
        "volumeId": Ref(_add_data_volume(stack, cluster, slot)),
        "privateAddress": GetAtt(interface, "PrimaryPrivateIpAddress"),
        "slot": slot.letter,
        **private_addresses,
        "caSecretArn": stack.parameter_from_other_stack(
            "CaSecretArn", description="Secret that holds the certificate authorities"
        ),
        "joinSecretArn": stack.parameter_from_other_stack(
            "JoinSecretArn", description="Secret that holds what nodes need to join"
        ),
    }
    if network_plugin(cluster).uses_vpc_routes:
        user_data_references["routeTableId"] = route_table_id(stack, cluster)
    if cluster.etcd.backups.enabled:
        user_data_references["bucket"] = bucket_name(stack)
    if public_endpoint:
        user_data_references["publicAddress"] = public_endpoint
    user_data_references["condition"] = wait_condition_id
    user_data_references["conditionStack"] = stack.parameter_from_other_stack(
        "ClusterStackName", description="Name of the stack that waits for the masters"
    )
    template = launch_template(
        stack,
        cluster,
        master_prefix(slot.letter),
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
        user_data=user_data(cluster, slot, user_data_references),
    )
    dependencies: list[object] = []
    if public_address:
        # The instance needs its public address at launch: without it, it could not download anything.
        dependencies.append(public_address.association)
    if previous_group:
        # On an update, masters are replaced one after another (see the module's docstring).
        dependencies.append(previous_group)
    group = stack.add(
        autoscaling.AutoScalingGroup(
            group_logical_id,
            MinSize=1,
            MaxSize=1,
            # The network interface determines the subnet; the group must name only the zone.
            AvailabilityZones=[zone_parameter(stack, slot.subnet.zone)],
            LaunchTemplate=latest_version(template),
            Tags=group_tags(cluster, name, discoverable=False, **MASTER_ROLE_TAG),
            UpdatePolicy=roll_one_at_a_time(cluster.control_plane),
            **({"DependsOn": dependencies} if dependencies else {}),
        ),
        depends_on_in_standalone_template=internet_access([slot.subnet.zone]),
    )
    # The wait condition depends on the group, so its timeout starts only when the instance is launched.
    stack.add_root_wait_condition(
        wait_condition_id, wait_for_signals(cluster.control_plane, count=1), launched_by_group=group_logical_id
    )
    return group
