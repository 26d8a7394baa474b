"""The master stack: the master slots and the API endpoint.

A master slot is the set of resources of one master that remain when the master's instance is replaced: a network
interface with a fixed address, a data volume, and an Auto Scaling group of one instance. The interface is the primary
interface of the instance. EC2 Auto Scaling allows that for a group that names zones instead of subnets and has at most
one instance.

On creation all masters and nodes start together. On an update the masters are replaced one after another, then the
nodes. The dependencies between resources have this effect:

- Each slot's Auto Scaling group depends on that of the previous slot. On creation this delays a group by seconds only:
  without a creation policy, a group is complete as soon as it exists. On an update a group is complete when its new
  instance has signalled, and only then does the update of the next group start. (On deletion the last group is deleted
  first.)
- Node groups depend on the last slot's Auto Scaling group, so they too are delayed by seconds on creation, and updated
  only after the masters. In nested stacks, the stacks of the node groups depend on the master stack instead.
- The cluster's creation waits until all masters have signalled: each slot has a wait condition, which depends on the
  slot's group. No group depends on a wait condition. If one did, the first master would have to report success before
  the second is launched, but etcd may need both for its quorum. kube-aws had this deadlock
  (kubernetes-retired/kube-aws#525). The wait conditions are in the root stack. In the master stack they would delay the
  completion of the master stack, and therefore the nodes, whose stacks start after it.
- A creation policy applies only when its resource is created. So an update waits only for the signals of updated groups
  and, if a master was added, for that master's new wait condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from troposphere import GetAtt, Ref, autoscaling, ec2

from cfngen import userdata
from cfngen.cluster.checks.volumes import VOLUME_TYPES
from cfngen.cluster.iam.service_accounts import LOAD_BALANCER_CONTROLLER, has_role, masters_publish_documents
from cfngen.cluster.instances.instance_types import architecture
from cfngen.cluster.instances.rolling_updates import master_timeout
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import MASTER_STACK, MasterId, master_prefix
from cfngen.cluster.naming.names import QUORUM_HOOK
from cfngen.cluster.network.existing_parts import SECURITY_GROUP
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import has_both_endpoints, masters_have_elastic_ips
from cfngen.cluster.sections.instances import Slot
from cfngen.permissions.references import MASTER_ROLE_TAG
from cfngen.templates import access
from cfngen.templates.api_endpoint import Endpoints, PublicAddress, add_elastic_ip, add_endpoints
from cfngen.templates.backups import backup_bucket_name
from cfngen.templates.endpoints import add_interface_endpoints
from cfngen.templates.iam import master_profile
from cfngen.templates.images import image_parameter
from cfngen.templates.issuer import issuer_bucket_name, issuer_without_scheme
from cfngen.templates.launch import (
    add_launch_template,
    allowed_volume_types,
    capacity_reservation_property,
    creation_policy,
    ebs_volume_properties,
    latest_version,
    notification_property,
    rolling_update_policy,
    termination_hook_property,
)
from cfngen.templates.network_references import IPV4_PATTERN, route_table_id, subnet_id, vpc_id, zone_parameter
from cfngen.templates.references import part_value
from cfngen.templates.route_tables import way_out
from cfngen.templates.security_groups import extra_security_groups, first_group
from cfngen.templates.stack import MASTERS, PropertyValue, Stack
from cfngen.templates.tagging import auto_scaling_group_tags, tags
from cfngen.userdata.references import uses_account_id

MakeUserData = Callable[[Cluster, Slot, Mapping[str, PropertyValue]], userdata.UserData]
"""Function that returns the UserData of a master, from the cluster, the master slot and the references by name."""


def build(cluster: Cluster, *, user_data: MakeUserData = userdata.master) -> Stack:
    """Return the master stack.

    Args:
        user_data: returns the UserData of a master. `cfngen rehearse` passes another function, for instances that only
            download their boot program and signal success.
    """
    stack = Stack(
        cluster,
        name="master",
        logical_id=MASTER_STACK,
        source_module=__name__,
        description=f"Masters of the Kubernetes cluster {cluster.name}, version {cluster.kubernetes_version}: "
        "for each a fixed address, a data volume and an Auto Scaling group",
    )
    interfaces = [_add_interface(stack, cluster, master_slot) for master_slot in cluster.slots]
    public_addresses: list[PublicAddress | None] = [
        add_elastic_ip(stack, cluster, master_slot, interface) if masters_have_elastic_ips(cluster) else None
        for master_slot, interface in zip(cluster.slots, interfaces, strict=True)
    ]
    first_public_address = public_addresses[0].address if public_addresses[0] else None
    service_endpoints = add_interface_endpoints(stack, cluster, interfaces)
    endpoints = add_endpoints(stack, cluster, interfaces, first_public_address)
    # The UserData of each master contains the addresses of all masters, for the API's name in /etc/hosts and for etcd.
    private_addresses = {
        userdata.address_reference(master_slot): GetAtt(interface, "PrimaryPrivateIpAddress")
        for master_slot, interface in zip(cluster.slots, interfaces, strict=True)
    }
    surroundings = _Surroundings(service_endpoints, endpoints.references, private_addresses)
    auto_scaling_group: autoscaling.AutoScalingGroup | None = None
    for master_slot, interface, public_address in zip(cluster.slots, interfaces, public_addresses, strict=True):
        auto_scaling_group = _add_slot(
            stack,
            cluster,
            master_slot,
            surroundings,
            interface=interface,
            public_address=public_address,
            previous_auto_scaling_group=auto_scaling_group,
            user_data=user_data,
        )
    _add_outputs(stack, cluster, endpoints, GetAtt(interfaces[0], "PrimaryPrivateIpAddress"), first_public_address)
    return stack


def _add_outputs(
    stack: Stack,
    cluster: Cluster,
    endpoints: Endpoints,
    first_private_address: PropertyValue,
    first_public_address: PropertyValue,
) -> None:
    stack.output(
        "ApiEndpoint",
        value=access.fill(access.api_url(cluster), Host=endpoints.host),
        description="Kubernetes API endpoint",
        also_output_of_root=True,
    )
    if has_both_endpoints(cluster):
        stack.output(
            "ApiInternalEndpoint",
            value=access.fill(access.api_url(cluster), Host=endpoints.internal_host),
            description="Kubernetes API endpoint inside the VPC and connected networks",
            also_output_of_root=True,
        )
    stack.output(
        "ApiPrivateAddress",
        value=first_private_address,
        description="Private address of the first master, one of those that nodes use",
    )
    for command in access.shell_commands(cluster):
        text = access.fill(command.text, Host=endpoints.host, Master=first_public_address or first_private_address)
        stack.output(command.output, value=text, description=command.description, also_output_of_root=True)


def _add_interface(stack: Stack, cluster: Cluster, master_slot: Slot) -> ec2.NetworkInterface:
    address = stack.parameter(
        str(MasterId(master_slot.letter, "Address")),
        label=f"Private address of master {master_slot.letter}",
        parameter_group=MASTERS,
        description=f"Fixed private IPv4 address of master {master_slot.letter}, inside its subnet. It cannot be "
        "changed later, since nodes use it",
        default=str(master_slot.address),
        AllowedPattern=IPV4_PATTERN,
        ConstraintDescription="must be an IPv4 address inside the subnet, not one of the five that AWS reserves",
    )
    pod_network_plugin = network_plugin(cluster)
    security_groups = [first_group(stack, cluster, "Master"), *extra_security_groups(stack, cluster, "Master")]
    additional_groups = cluster.control_plane.additional_security_groups
    security_groups += [part_value(stack, group_id, SECURITY_GROUP) for group_id in additional_groups]
    return stack.add(
        ec2.NetworkInterface(
            str(MasterId(master_slot.letter, "NetworkInterface")),
            Description=f"Kubernetes cluster {cluster.name}: master {master_slot.letter}",
            SubnetId=subnet_id(stack, cluster, master_slot.subnet.zone),
            PrivateIpAddress=address,
            GroupSet=security_groups,
            # With VPC routes, the interface sends and receives packets with addresses of pods. Unless this check is
            # disabled, EC2 drops packets whose address is not an address of the interface.
            SourceDestCheck=not pod_network_plugin.uses_vpc_routes,
            # A plug-in that manages interfaces lets nodes change the cluster's interfaces, except those with this tag.
            Tags=tags(
                cluster,
                _name_tag(cluster, master_slot),
                **(MASTER_ROLE_TAG if pod_network_plugin.gives_pods_vpc_addresses else {}),
            ),
        )
    )


def _add_data_volume(stack: Stack, cluster: Cluster, master_slot: Slot) -> ec2.Volume:
    """Add the data volume of a master slot, which contains etcd's data."""
    volume = cluster.control_plane.volume
    # The size must be valid for every volume type that the user can choose in the console.
    size_limits = [VOLUME_TYPES[volume_type].size_gib for volume_type in allowed_volume_types(volume)]
    size_parameter = stack.parameter(
        "MasterVolumeSize",
        type="Number",
        label="Size of the data volume (GiB)",
        parameter_group=MASTERS,
        description="Size of each master's data volume (etcd) in GiB; it can grow, but not shrink",
        default=volume.size,
        MinValue=max(min_gib for min_gib, _ in size_limits),
        MaxValue=min(max_gib for _, max_gib in size_limits),
    )
    volume_type_parameter = stack.parameter(
        "MasterVolumeType",
        label="Type of the data volume",
        parameter_group=MASTERS,
        description="EBS type of each master's data volume",
        default=volume.type,
        AllowedValues=allowed_volume_types(volume),
    )
    name_tag = f"{cluster.name}-master-{master_slot.letter}-data"
    return stack.add(
        ec2.Volume(
            str(MasterId(master_slot.letter, "Volume")),
            AvailabilityZone=zone_parameter(stack, master_slot.subnet.zone),
            Size=size_parameter,
            **ebs_volume_properties(volume, VolumeType=volume_type_parameter),
            Tags=tags(cluster, name_tag, **MASTER_ROLE_TAG),
            # The volume contains the cluster's whole state, so CloudFormation takes a snapshot before it deletes or
            # replaces the volume.
            DeletionPolicy="Snapshot",
            UpdateReplacePolicy="Snapshot",
        )
    )


def _pod_role_references(stack: Stack, cluster: Cluster) -> dict[str, PropertyValue]:
    """Return the values, by reference name, that masters need to let pods have roles; empty if they do not."""
    references: dict[str, PropertyValue] = {}
    if cluster.service_account_issuer:
        references["issuer"] = issuer_without_scheme(stack)
    if masters_publish_documents(cluster):
        references["issuerBucket"] = issuer_bucket_name(stack)
    if uses_account_id(cluster):
        references["accountId"] = Ref("AWS::AccountId")
    if has_role(cluster, LOAD_BALANCER_CONTROLLER):
        references["vpcId"] = vpc_id(stack, cluster)
    return references


@dataclass(frozen=True)
class _Surroundings:
    """What all slots share.

    Attributes:
        service_endpoints: VPC endpoints of AWS services that must exist when an instance is launched.
        endpoints: addresses of the API, or names of its load balancers, that the certificate contains, by the names of
            the references in UserData.
        private_addresses: the private addresses of all slots, by the names of the references.
    """

    service_endpoints: Sequence[ec2.VPCEndpoint]
    endpoints: Mapping[str, PropertyValue]
    private_addresses: Mapping[str, PropertyValue]


def _add_slot(
    stack: Stack,
    cluster: Cluster,
    master_slot: Slot,
    surroundings: _Surroundings,
    *,
    interface: ec2.NetworkInterface,
    public_address: PublicAddress | None,
    previous_auto_scaling_group: autoscaling.AutoScalingGroup | None,
    user_data: MakeUserData,
) -> autoscaling.AutoScalingGroup:
    """Add the volume, launch template, Auto Scaling group and wait condition of a master slot; return the group.

    Args:
        public_address: None if the API has only private addresses.
        previous_auto_scaling_group: Auto Scaling group of the previous slot; None for the first slot.
    """
    volume = _add_data_volume(stack, cluster, master_slot)
    references = _user_data_references(stack, cluster, master_slot, surroundings, interface, volume)
    launch_template = _add_launch_template(
        stack, cluster, master_slot, interface, user_data(cluster, master_slot, references)
    )
    dependencies = _launch_dependencies(surroundings.service_endpoints, public_address, previous_auto_scaling_group)
    # It delays a master's termination while etcd needs it for its quorum. EC2 Auto Scaling terminates an instance that
    # sends no heartbeats, e.g. because it is the one that has failed, after the shortest timeout that it allows.
    has_quorum = cluster.control_plane.count > 1
    termination_hook = termination_hook_property(QUORUM_HOOK, heartbeat_timeout=30) if has_quorum else {}
    auto_scaling_group = stack.add(
        autoscaling.AutoScalingGroup(
            str(MasterId(master_slot.letter, "AutoScalingGroup")),
            MinSize=1,
            MaxSize=1,
            # The network interface determines the subnet; the group must name only the zone.
            AvailabilityZones=[zone_parameter(stack, master_slot.subnet.zone)],
            LaunchTemplate=latest_version(launch_template),
            Tags=auto_scaling_group_tags(
                cluster, _name_tag(cluster, master_slot), discoverable=False, **MASTER_ROLE_TAG
            ),
            UpdatePolicy=rolling_update_policy(master_timeout(cluster)),
            **termination_hook,
            **notification_property(cluster),
            **({"DependsOn": dependencies} if dependencies else {}),
        ),
        depends_on_in_standalone_template=way_out(cluster, master_slot.subnet.zone),
    )
    # The wait condition depends on the group, so its timeout starts only when the instance is launched.
    stack.add_root_wait_condition(
        str(MasterId(master_slot.letter, "WaitCondition")),
        creation_policy(cluster.control_plane, signal_count=1),
        launched_by_group=auto_scaling_group.title,
    )
    return auto_scaling_group


def _name_tag(cluster: Cluster, master_slot: Slot) -> str:
    return f"{cluster.name}-master-{master_slot.letter}"


def _user_data_references(
    stack: Stack,
    cluster: Cluster,
    master_slot: Slot,
    surroundings: _Surroundings,
    interface: ec2.NetworkInterface,
    volume: ec2.Volume,
) -> dict[str, PropertyValue]:
    references: dict[str, PropertyValue] = {
        "stack": Ref("AWS::StackName"),
        "resource": str(MasterId(master_slot.letter, "AutoScalingGroup")),
        "volumeId": Ref(volume),
        "privateAddress": GetAtt(interface, "PrimaryPrivateIpAddress"),
        "slot": master_slot.letter,
        **surroundings.private_addresses,
        "caSecretArn": stack.parameter_from_other_stack(
            "CaSecretArn", description="Secret that holds the certificate authorities"
        ),
        "joinSecretArn": stack.parameter_from_other_stack(
            "JoinSecretArn", description="Secret that holds what nodes need to join"
        ),
    }
    if network_plugin(cluster).uses_vpc_routes:
        references["routeTableId"] = route_table_id(stack, cluster)
    if cluster.etcd.backups.enabled:
        references["bucket"] = backup_bucket_name(stack)
    references.update(surroundings.endpoints)
    references.update(_pod_role_references(stack, cluster))
    references["condition"] = str(MasterId(master_slot.letter, "WaitCondition"))
    references["conditionStack"] = stack.parameter_from_other_stack(
        "ClusterStackName", description="Name of the stack that waits for the masters"
    )
    return references


def _add_launch_template(
    stack: Stack,
    cluster: Cluster,
    master_slot: Slot,
    interface: ec2.NetworkInterface,
    packed_user_data: userdata.UserData,
) -> ec2.LaunchTemplate:
    name_tag = _name_tag(cluster, master_slot)
    return add_launch_template(
        stack,
        cluster,
        logical_id_prefix=master_prefix(master_slot.letter),
        instances=cluster.control_plane,
        name_tag=name_tag,
        parameter_prefix="Master",
        parameter_group=MASTERS,
        image_id=image_parameter(
            stack,
            role="Master",
            image=cluster.control_plane.image,
            architecture=architecture(cluster.control_plane.instance_type),
            parameter_group=MASTERS,
        ),
        instance_profile_arn=master_profile(stack, cluster),
        primary_interface=ec2.NetworkInterfaces(
            DeviceIndex=0, DeleteOnTermination=False, NetworkInterfaceId=Ref(interface)
        ),
        user_data=packed_user_data,
        **capacity_reservation_property(stack, cluster, master_slot, name_tag),
    )


def _launch_dependencies(
    service_endpoints: Sequence[ec2.VPCEndpoint],
    public_address: PublicAddress | None,
    previous_auto_scaling_group: autoscaling.AutoScalingGroup | None,
) -> list[object]:
    # Without the endpoints, an instance of a cluster without a way to the internet reaches no AWS service.
    dependencies: list[object] = list(service_endpoints)
    if public_address:
        # The instance needs its public address at launch: without it, it could not download anything.
        dependencies.append(public_address.association)
    if previous_auto_scaling_group:
        # On an update, masters are replaced one after another (see the module's docstring).
        dependencies.append(previous_auto_scaling_group)
    return dependencies
