"""Launch templates of masters and nodes with reserved capacity, and policies of their Auto Scaling groups."""

from __future__ import annotations

from troposphere import GetAtt, Ref, autoscaling, cloudformation, ec2, policies

from cfngen.cluster.checks.volumes import VOLUME_TYPES
from cfngen.cluster.instances import gpu
from cfngen.cluster.instances.instance_types import architecture
from cfngen.cluster.instances.rolling_updates import MAX_PAUSE_MINUTES
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming import logical_ids
from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.cluster.sections.base import Architecture
from cfngen.cluster.sections.instances import Instances, NodeGroup, Slot, Volume
from cfngen.templates.images import root_device
from cfngen.templates.network_references import zone_parameter
from cfngen.templates.references import named_arn
from cfngen.templates.secrets import key_name_property
from cfngen.templates.stack import MASTERS, PropertyValue, Stack
from cfngen.templates.tagging import tags
from cfngen.userdata import UserData

# Auto Scaling processes that would replace or move instances during a rolling update (AWS CloudFormation User Guide,
# AutoScalingRollingUpdate, SuspendProcesses). Launch and Terminate stay active: the update itself needs them.
SUSPENDED_PROCESSES = ["AlarmNotification", "AZRebalance", "HealthCheck", "ReplaceUnhealthy", "ScheduledActions"]

# AllowedPattern of instance types, by the image's architecture: types with at least 2 vCPU and 2 GiB, as kubeadm needs.
# The medium sizes of Graviton have one vCPU, so the pattern excludes them, except the burstable t4g.medium.
_INSTANCE_TYPE_PATTERNS: dict[Architecture, str] = {
    "amd64": r"^(?!a1\.|[a-z]+[0-9]+g|mac|t2\.small$|[cm][13]\.(small|medium)$)"
    r"[a-z][a-z0-9-]*\.(?!nano|micro)[a-z0-9-]+$",
    "arm64": r"^(?!(?!t4g\.)[a-z0-9-]+\.medium$)(a1|[a-z]+[0-9]+g[a-z0-9-]*)\.(?!nano|micro)[a-z0-9-]+$",
}


def instance_type_parameter(
    stack: Stack, parameter_prefix: str, instances: Instances, parameter_group: str
) -> PropertyValue:
    """Add the parameter for the instance type and return the reference to it.

    The user may choose another type of the same processor architecture only, since the image is for that architecture.
    """
    required_architecture = architecture(instances.instance_type)
    return stack.parameter(
        f"{parameter_prefix}InstanceType",
        label="Instance type",
        parameter_group=parameter_group,
        description=f"EC2 instance type ({required_architecture}, at least 2 vCPU and 2 GiB of memory)",
        default=instances.instance_type,
        only_in_this_nested_stack=True,
        AllowedPattern=_INSTANCE_TYPE_PATTERNS[required_architecture],
        ConstraintDescription=(
            f"must be an {required_architecture} instance type with at least 2 vCPU and 2 GiB of memory, "
            f"e.g. {instances.instance_type}"
        ),
    )


def _instance_type_property(
    stack: Stack, parameter_prefix: str, instances: Instances, parameter_group: str
) -> dict[str, object]:
    """Return the launch template's property for the instance type, whose value is a parameter.

    It is empty for a node group whose types the mixed instances policy names. There is no parameter then, so that
    nobody replaces a list by one type.
    """
    if isinstance(instances, NodeGroup) and (instances.instance_types or instances.instance_requirements):
        return {}
    return {"InstanceType": instance_type_parameter(stack, parameter_prefix, instances, parameter_group)}


def add_launch_template(
    stack: Stack,
    cluster: Cluster,
    logical_id_prefix: str,
    instances: Instances,
    *,
    name_tag: str,
    parameter_prefix: str,
    parameter_group: str,
    image_id: PropertyValue,
    instance_profile_arn: PropertyValue,
    primary_interface: ec2.NetworkInterfaces,
    user_data: UserData,
    **other_properties: PropertyValue,
) -> ec2.LaunchTemplate:
    """Add a launch template and return it.

    Args:
        logical_id_prefix: prefix of the launch template's logical id, e.g. `MasterA` or `NodeGroupGpu`.
        parameter_prefix: prefix of the parameters' names; all masters share parameters with the prefix `Master`.
        parameter_group: heading under which the console shows the parameters.
        user_data: the boot program. Its first stage becomes the UserData of the instances; its second stage is stored
            as metadata of another resource in the stack.
        other_properties: further properties of LaunchTemplateData.
    """
    root_volume_size = _root_volume_size_parameter(stack, parameter_prefix, instances, parameter_group)
    # Instances get their tags from the Auto Scaling group. If the interface is a resource of its own, that resource has
    # the tags already.
    tagged_types = ["volume"]
    if "NetworkInterfaceId" not in primary_interface.properties:
        tagged_types.append("network-interface")
    return stack.add(
        ec2.LaunchTemplate(
            logical_ids.launch_template_id(logical_id_prefix),
            # The boot program's second stage must exist before an instance is launched.
            DependsOn=[_add_second_stage(stack, user_data)],
            TagSpecifications=[ec2.TagSpecifications(ResourceType="launch-template", Tags=tags(cluster, name_tag))],
            LaunchTemplateData=ec2.LaunchTemplateData(
                ImageId=image_id,
                **_instance_type_property(stack, parameter_prefix, instances, parameter_group),
                IamInstanceProfile=ec2.IamInstanceProfile(Arn=instance_profile_arn),
                BlockDeviceMappings=_block_device_mappings(instances, root_volume_size),
                MetadataOptions=metadata_options(),
                NetworkInterfaces=[primary_interface],
                TagSpecifications=[
                    ec2.TagSpecifications(ResourceType=tagged_type, Tags=tags(cluster, name_tag))
                    for tagged_type in tagged_types
                ],
                UserData=user_data.value,
                **key_name_property(stack, cluster),
                **other_properties,
            ),
        )
    )


def _root_volume_size_parameter(
    stack: Stack, parameter_prefix: str, instances: Instances, parameter_group: str
) -> PropertyValue:
    return stack.parameter(
        f"{parameter_prefix}RootVolumeSize",
        type="Number",
        label="Size of the root volume (GiB)",
        parameter_group=parameter_group,
        description="Size of each instance's root volume in GiB",
        default=instances.root_volume.size,
        only_in_this_nested_stack=True,
        MinValue=_min_root_volume_gib(instances),
        MaxValue=max_size_gib(instances.root_volume.type),
    )


def _block_device_mappings(
    instances: Instances, root_volume_size: PropertyValue
) -> list[ec2.LaunchTemplateBlockDeviceMapping]:
    sizes = [(root_device(instances.image), root_volume_size, instances.root_volume)]
    if isinstance(instances, NodeGroup):
        sizes += [(volume.device, volume.size, volume) for volume in instances.volumes]
    return [
        ec2.LaunchTemplateBlockDeviceMapping(
            DeviceName=device,
            Ebs=ec2.EBSBlockDevice(DeleteOnTermination=True, VolumeSize=size, **ebs_volume_properties(volume)),
        )
        for device, size, volume in sizes
    ]


def _min_root_volume_gib(instances: Instances) -> int:
    uses_gpu_image = isinstance(instances, NodeGroup) and instances.gpu is not None and gpu.uses_aws_image(instances)
    return gpu.MIN_ROOT_VOLUME_GIB if uses_gpu_image else 8


def metadata_options() -> ec2.MetadataOptions:
    """Return the options of the instance metadata service, which requires tokens (IMDSv2)."""
    # A hop limit of 1 keeps pods from the instance's credentials, unless they use the host's network. Tags are disabled
    # explicitly, because an account may enable them by default: the metadata service cannot show keys with a slash, so
    # EC2 would not launch instances with the cluster's tags (aws/karpenter-provider-aws#7012).
    return ec2.MetadataOptions(
        HttpEndpoint="enabled", HttpTokens="required", HttpPutResponseHopLimit=1, InstanceMetadataTags="disabled"
    )


def _add_second_stage(stack: Stack, user_data: UserData) -> str:
    """Add a resource with the boot program's second stage, unless the stack has it; return the resource's logical id.

    The second stage is the metadata of a wait condition handle that no wait condition uses: such a handle is free and
    creates nothing in AWS. The logical id contains a digest of the second stage, so a changed second stage is a new
    resource. During an update, instances of the old and of the new launch template therefore each find the second stage
    that fits their UserData.
    """
    if user_data.resource not in stack.resource_ids:
        metadata = {"cfngen": {"role": user_data.role, "program": user_data.program}}
        stack.add(cloudformation.WaitConditionHandle(user_data.resource, Metadata=metadata))
    return user_data.resource


def ebs_volume_properties(volume: Volume, **overrides: PropertyValue) -> dict[str, object]:
    """Return the properties of an encrypted EBS volume, except the size.

    Args:
        overrides: properties that replace those settings.
    """
    key_arn = named_arn(volume.kms_key) if volume.kms_key else None
    optional_properties = {"Iops": volume.iops, "Throughput": volume.throughput, "KmsKeyId": key_arn}
    set_properties = {key: value for key, value in optional_properties.items() if value is not None}
    return {"Encrypted": True, "VolumeType": volume.type, **set_properties, **overrides}


def allowed_volume_types(volume: Volume) -> list[str]:
    """Return the EBS volume types that the user may choose for a volume by a template parameter.

    gp2 and gp3 can replace each other if the cluster file sets neither IOPS nor throughput. In any other case, only the
    type in the cluster file is allowed.
    """
    is_gp2_or_gp3 = volume.type in ("gp2", "gp3")
    if not is_gp2_or_gp3 or volume.iops is not None or volume.throughput is not None:
        return [volume.type]
    return [volume_type for volume_type in ("gp3", "gp2") if volume.size <= max_size_gib(volume_type)]


def max_size_gib(volume_type: str) -> int:
    """Return the maximum size of an EBS volume type in GiB."""
    _, max_size = VOLUME_TYPES[volume_type].size_gib
    return max_size


def latest_version(template: ec2.LaunchTemplate) -> autoscaling.LaunchTemplateSpecification:
    """Return the reference to a launch template's latest version, for an Auto Scaling group.

    When an update creates a new version, CloudFormation starts a rolling update of the group.
    """
    return autoscaling.LaunchTemplateSpecification(
        LaunchTemplateId=Ref(template), Version=GetAtt(template, "LatestVersionNumber")
    )


def creation_policy(instances: Instances, signal_count: PropertyValue) -> policies.CreationPolicy:
    """Return the creation policy that makes CloudFormation wait for signals of success from instances."""
    return policies.CreationPolicy(
        ResourceSignal=policies.ResourceSignal(Count=signal_count, Timeout=f"PT{instances.creation_timeout}M")
    )


def rolling_update_policy(
    pause_minutes: int, *, max_batch_size: int = 1, min_instances_in_service: int = 0
) -> policies.UpdatePolicy:
    """Return the update policy of an Auto Scaling group, which replaces the instances one after another, or in batches.

    CloudFormation replaces a batch only after the new instances before it have signalled success. If the sizes of the
    group in the template do not change, CloudFormation keeps the current sizes, so an update does not undo what an
    autoscaler changed (kubernetes-retired/kube-aws#972).

    Args:
        pause_minutes: PauseTime, the time limit for a batch: terminating the old instances, and the signals of the new
            ones. CloudFormation allows at most an hour.
        min_instances_in_service: number of instances that must stay in service; the group grows for that if needed.
    """
    return policies.UpdatePolicy(
        AutoScalingRollingUpdate=policies.AutoScalingRollingUpdate(
            MaxBatchSize=max_batch_size,
            MinInstancesInService=min_instances_in_service,
            PauseTime=f"PT{min(pause_minutes, MAX_PAUSE_MINUTES)}M",
            SuspendProcesses=SUSPENDED_PROCESSES,
            WaitOnResourceSignals=True,
        ),
        AutoScalingScheduledAction=policies.AutoScalingScheduledAction(IgnoreUnmodifiedGroupSizeProperties=True),
    )


def termination_hook_property(name: str, heartbeat_timeout: int) -> dict[str, object]:
    """Return the Auto Scaling group's property for a lifecycle hook that delays the termination of its instances.

    The hook is not a separate resource, because that would be deleted before the instances, which would then be
    terminated without delay.

    Args:
        heartbeat_timeout: seconds after which EC2 Auto Scaling terminates an instance that sends no heartbeats.
    """
    hook = autoscaling.LifecycleHookSpecification(
        LifecycleHookName=name,
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=heartbeat_timeout,
        DefaultResult="CONTINUE",
    )
    return {"LifecycleHookSpecificationList": [hook]}


def notification_property(cluster: Cluster) -> dict[str, object]:
    """Return the Auto Scaling group's property for messages about its launches and terminations; empty without."""
    if cluster.notifications.topic is None:
        return {}
    configuration = autoscaling.NotificationConfigurations(
        TopicARN=[named_arn(cluster.notifications.topic)],
        NotificationTypes=[
            f"autoscaling:EC2_INSTANCE_{event}" for event in ("LAUNCH", "LAUNCH_ERROR", "TERMINATE", "TERMINATE_ERROR")
        ],
    )
    return {"NotificationConfigurations": [configuration]}


def capacity_reservation_property(
    stack: Stack, cluster: Cluster, master_slot: Slot, name_tag: str
) -> dict[str, PropertyValue]:
    """Add the capacity reservation of a master slot; return the property of launch template data that targets it.

    Another type or zone replaces a reservation, and CloudFormation creates the new one before the launch template gets
    a version that names it: if EC2 has no capacity, the update fails before an instance is terminated.

    Returns:
        the property by name; empty if no capacity is reserved.
    """
    if not cluster.control_plane.capacity_reservation:
        return {}
    reservation = stack.add(
        ec2.CapacityReservation(
            str(MasterId(master_slot.letter, "CapacityReservation")),
            AvailabilityZone=zone_parameter(stack, master_slot.subnet.zone),
            InstanceType=instance_type_parameter(
                stack, parameter_prefix="Master", instances=cluster.control_plane, parameter_group=MASTERS
            ),
            InstanceCount=1,
            # Only an instance that names the reservation may use it, no other of the account that is like it.
            InstanceMatchCriteria="targeted",
            # The platform of every distribution ("Supported platforms", Capacity Reservations, Amazon EC2 User Guide).
            InstancePlatform="Linux/UNIX",
            TagSpecifications=[
                ec2.TagSpecifications(ResourceType="capacity-reservation", Tags=tags(cluster, name_tag))
            ],
        )
    )
    target = ec2.CapacityReservationTarget(CapacityReservationId=Ref(reservation))
    return {"CapacityReservationSpecification": ec2.CapacityReservationSpecification(CapacityReservationTarget=target)}
