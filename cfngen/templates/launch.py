"""Launch templates of masters and nodes, and the creation and update policies of their Auto Scaling groups."""

from __future__ import annotations

from troposphere import GetAtt, Ref, autoscaling, cloudformation, ec2, policies

from cfngen.cluster import logical_ids
from cfngen.cluster.checks.volumes import VOLUME_TYPES
from cfngen.cluster.instance_types import architecture
from cfngen.cluster.model import Architecture, Cluster, Instances, Volume
from cfngen.cluster.upgrade_timeouts import MAX_PAUSE_MINUTES, SPARE_MINUTES
from cfngen.templates.images import root_device
from cfngen.templates.property_value import Value
from cfngen.templates.secrets import key_name
from cfngen.templates.stack import Stack
from cfngen.templates.tagging import tags
from cfngen.userdata import UserData

# Auto Scaling processes that would replace or move instances during a rolling update (AWS CloudFormation User Guide,
# AutoScalingRollingUpdate, SuspendProcesses). Launch and Terminate stay active: the update itself needs them.
SUSPENDED_PROCESSES = ["AlarmNotification", "AZRebalance", "HealthCheck", "ReplaceUnhealthy", "ScheduledActions"]

# AllowedPattern of instance types, by the image's architecture: types with at least 2 vCPU and 2 GiB.
# Graviton's medium sizes have one vCPU, except the burstable t4g.medium.
_ALLOWED_TYPES: dict[Architecture, str] = {
    "amd64": r"^(?!a1\.|[a-z]+[0-9]+g|mac|t2\.small$|[cm][13]\.(small|medium)$)"
    r"[a-z][a-z0-9-]*\.(?!nano|micro)[a-z0-9-]+$",
    "arm64": r"^(?!(?!t4g\.)[a-z0-9-]+\.medium$)(a1|[a-z]+[0-9]+g[a-z0-9-]*)\.(?!nano|micro)[a-z0-9-]+$",
}


def instance_type_parameter(stack: Stack, prefix: str, instances: Instances, group: str) -> Value:
    """Add the parameter for the instance type and return the reference to it."""
    required_architecture = architecture(instances.instance_type)
    return stack.parameter(
        f"{prefix}InstanceType",
        label="Instance type",
        group=group,
        description=f"EC2 instance type ({required_architecture}, at least 2 vCPU and 2 GiB of memory)",
        default=instances.instance_type,
        only_in_this_nested_stack=True,
        AllowedPattern=_ALLOWED_TYPES[required_architecture],
        ConstraintDescription=(
            f"must be an {required_architecture} instance type with at least 2 vCPU and 2 GiB, e.g. t3.medium"
        ),
    )


def launch_template(
    stack: Stack,
    cluster: Cluster,
    prefix: str,
    instances: Instances,
    *,
    name: str,
    parameters: str,
    group: str,
    image: Value,
    profile: Value,
    interface: ec2.NetworkInterfaces,
    user_data: UserData,
    **other_properties: Value,
) -> ec2.LaunchTemplate:
    """Add a launch template and return it.

    Args:
        stack: the stack to add to.
        cluster: the cluster.
        prefix: prefix of the launch template's logical id, e.g. `MasterA` or `NodeGroupGpu`.
        instances: the settings of these instances in the cluster file.
        name: value of the Name tag.
        parameters: prefix of the parameters' names; the slots of all masters share the prefix `Master`.
        group: heading under which the console shows the parameters.
        image: the AMI id.
        profile: ARN of the instance profile.
        interface: the primary network interface.
        user_data: UserData with the first stage of the boot program, and the second stage, which is stored as metadata
            in the stack.
        other_properties: further properties of the launch template's data.
    """
    root_volume_size = stack.parameter(
        f"{parameters}RootVolumeSize",
        type="Number",
        label="Size of the root volume (GiB)",
        group=group,
        description="Size of each instance's root volume in GiB",
        default=instances.root_volume.size,
        only_in_this_nested_stack=True,
        MinValue=8,
        MaxValue=_max_size_gib(instances.root_volume.type),
    )
    root_volume = ec2.EBSBlockDevice(
        DeleteOnTermination=True, VolumeSize=root_volume_size, **volume_properties(instances.root_volume)
    )
    # Instances get their tags from the Auto Scaling group. An existing network interface has its tags already.
    tagged_types = ["volume"]
    if "NetworkInterfaceId" not in interface.properties:
        tagged_types.append("network-interface")
    tag_specifications = [
        ec2.TagSpecifications(ResourceType=resource_type, Tags=tags(cluster, name)) for resource_type in tagged_types
    ]
    return stack.add(
        ec2.LaunchTemplate(
            logical_ids.launch_template_id(prefix),
            DependsOn=[_add_boot_program(stack, user_data)],
            TagSpecifications=[ec2.TagSpecifications(ResourceType="launch-template", Tags=tags(cluster, name))],
            LaunchTemplateData=ec2.LaunchTemplateData(
                ImageId=image,
                InstanceType=instance_type_parameter(stack, parameters, instances, group),
                IamInstanceProfile=ec2.IamInstanceProfile(Arn=profile),
                BlockDeviceMappings=[
                    ec2.LaunchTemplateBlockDeviceMapping(DeviceName=root_device(instances.image), Ebs=root_volume)
                ],
                # A hop limit of 1 keeps pods from the instance's credentials, unless they use the host's network.
                # Tags are disabled explicitly, because an account may enable them by default: the metadata service
                # cannot show keys with a slash, so EC2 would not launch instances with the cluster's tags
                # (aws/karpenter-provider-aws#7012).
                MetadataOptions=ec2.MetadataOptions(
                    HttpEndpoint="enabled",
                    HttpTokens="required",
                    HttpPutResponseHopLimit=1,
                    InstanceMetadataTags="disabled",
                ),
                NetworkInterfaces=[interface],
                TagSpecifications=tag_specifications,
                UserData=user_data.value,
                **key_name(stack, cluster),
                **other_properties,
            ),
        )
    )


def _add_boot_program(stack: Stack, user_data: UserData) -> str:
    """Add a resource with the boot program's second stage, unless the stack has it; return the resource's logical id.

    The program is the metadata of a wait condition handle that no wait condition uses: such a handle is free and
    creates nothing in AWS. The logical id contains a digest of the program, so a new program is a new resource. Thus
    instances of the old and of the new launch template each read the program for their UserData during an update.
    """
    if user_data.resource not in stack.resources:
        metadata = {"cfngen": {"role": user_data.role, "program": user_data.program}}
        stack.add(cloudformation.WaitConditionHandle(user_data.resource, Metadata=metadata))
    return user_data.resource


def volume_properties(volume: Volume, **overrides: Value) -> dict[str, object]:
    """Return the properties of an encrypted EBS volume, except the size.

    Args:
        volume: the volume's settings in the cluster file.
        overrides: properties that replace those settings.
    """
    optional_properties = {"Iops": volume.iops, "Throughput": volume.throughput, "KmsKeyId": volume.kms_key}
    set_properties = {key: value for key, value in optional_properties.items() if value is not None}
    return {"Encrypted": True, "VolumeType": volume.type, **set_properties, **overrides}


def interchangeable_types(volume: Volume) -> list[str]:
    """Return the EBS volume types that the template's parameter allows.

    gp2 and gp3 can replace each other if the cluster file sets neither IOPS nor throughput. Any other type is fixed.
    """
    is_interchangeable = volume.iops is None and volume.throughput is None and volume.type in ("gp2", "gp3")
    if not is_interchangeable:
        return [volume.type]
    return [volume_type for volume_type in ("gp3", "gp2") if volume.size <= _max_size_gib(volume_type)]


def _max_size_gib(volume_type: str) -> int:
    _, max_size_gib = VOLUME_TYPES[volume_type].size_gib
    return max_size_gib


def latest_version(template: ec2.LaunchTemplate) -> autoscaling.LaunchTemplateSpecification:
    """Return the reference to a launch template's latest version, for an Auto Scaling group.

    When an update creates a new version, CloudFormation starts a rolling update of the group.
    """
    return autoscaling.LaunchTemplateSpecification(
        LaunchTemplateId=Ref(template), Version=GetAtt(template, "LatestVersionNumber")
    )


def wait_for_signals(instances: Instances, count: Value) -> policies.CreationPolicy:
    """Return a creation policy: `count` instances must signal success within the creation timeout."""
    return policies.CreationPolicy(
        ResourceSignal=policies.ResourceSignal(Count=count, Timeout=f"PT{instances.creation_timeout}M")
    )


def roll_one_at_a_time(instances: Instances, drain_timeout: int = 0, master_wait: int = 0) -> policies.UpdatePolicy:
    """Return the policy of a rolling update: each instance is replaced only after the previous one signalled success.

    If the template's group sizes do not change, CloudFormation keeps the current ones, so an update does not undo what
    an autoscaler changed (kubernetes-retired/kube-aws#972).

    Args:
        instances: the group's instances.
        drain_timeout: minutes that the old node may take to evict its pods.
        master_wait: minutes that a new node may wait until the masters have its Kubernetes version.
    """
    # The pause covers the termination of the old instance too; CloudFormation allows an hour at most.
    pause_minutes = instances.creation_timeout + drain_timeout + master_wait + SPARE_MINUTES
    return policies.UpdatePolicy(
        AutoScalingRollingUpdate=policies.AutoScalingRollingUpdate(
            MaxBatchSize=1,
            MinInstancesInService=0,
            PauseTime=f"PT{min(pause_minutes, MAX_PAUSE_MINUTES)}M",
            SuspendProcesses=SUSPENDED_PROCESSES,
            WaitOnResourceSignals=True,
        ),
        AutoScalingScheduledAction=policies.AutoScalingScheduledAction(IgnoreUnmodifiedGroupSizeProperties=True),
    )
