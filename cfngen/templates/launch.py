"""Launch templates of masters and nodes, and the creation and update policies of their Auto Scaling groups."""

from __future__ import annotations

from troposphere import GetAtt, Ref, autoscaling, cloudformation, ec2, policies

from cfngen.cluster import logical_ids
from cfngen.cluster.checks.volumes import TYPES
from cfngen.cluster.instance_types import architecture
from cfngen.cluster.model import Architecture, Cluster, Instances, Volume
from cfngen.cluster.upgrade_timeouts import MAX_PAUSE_MINUTES, SPARE
from cfngen.templates.images import root_device
from cfngen.templates.property_value import Value
from cfngen.templates.secrets import key_name
from cfngen.templates.stack import Stack
from cfngen.templates.tagging import tags
from cfngen.userdata import UserData

# Auto Scaling processes that would replace or move instances during a rolling update (AWS CloudFormation User Guide,
# AutoScalingRollingUpdate, SuspendProcesses). Launch and Terminate stay active: the update itself needs them.
SUSPENDED = ["AlarmNotification", "AZRebalance", "HealthCheck", "ReplaceUnhealthy", "ScheduledActions"]

# AllowedPattern of instance types: of the image's architecture, with 2 vCPU and 2 GiB. Graviton's medium sizes have one
# vCPU, except the burstable ones.
_ALLOWED_TYPES: dict[Architecture, str] = {
    "amd64": r"^(?!a1\.|[a-z]+[0-9]+g|mac|t2\.small$|[cm][13]\.(small|medium)$)"
    r"[a-z][a-z0-9-]*\.(?!nano|micro)[a-z0-9-]+$",
    "arm64": r"^(?!(?!t4g\.)[a-z0-9-]+\.medium$)(a1|[a-z]+[0-9]+g[a-z0-9-]*)\.(?!nano|micro)[a-z0-9-]+$",
}


def instance_type_parameter(stack: Stack, prefix: str, instances: Instances, group: str) -> Value:
    """Add the parameter for the instance type and return the reference to it."""
    cpu = architecture(instances.instance_type)
    return stack.parameter(
        f"{prefix}InstanceType",
        label="Instance type",
        group=group,
        description=f"EC2 instance type ({cpu}, at least 2 vCPU and 2 GiB of memory)",
        default=instances.instance_type,
        only_in_this_stack=True,
        AllowedPattern=_ALLOWED_TYPES[cpu],
        ConstraintDescription=f"must be an {cpu} instance type with at least 2 vCPU and 2 GiB, e.g. t3.medium",
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
    **more: Value,
) -> ec2.LaunchTemplate:
    """Add a launch template and return it.

    Args:
        stack: the stack to add to.
        cluster: the cluster.
        prefix: prefix of logical ids, e.g. `MasterA` or `NodeGroupGpu`.
        instances: what the cluster file says of these instances.
        name: value of the Name tag.
        parameters: prefix of the parameters; the masters' slots share theirs.
        group: heading under which the console shows the parameters.
        image: the AMI id.
        profile: ARN of the instance profile.
        interface: the primary network interface.
        user_data: the first stage of the boot program, and the second one, which is stored in the stack.
        more: further properties of the launch template's data.
    """
    size = stack.parameter(
        f"{parameters}RootVolumeSize",
        type="Number",
        label="Size of the root volume (GiB)",
        group=group,
        description="Size of each instance's root volume in GiB",
        default=instances.root_volume.size,
        only_in_this_stack=True,
        MinValue=8,
        MaxValue=TYPES[instances.root_volume.type].size_gib[1],
    )
    root = ec2.EBSBlockDevice(DeleteOnTermination=True, VolumeSize=size, **volume_properties(instances.root_volume))
    on_launch = [
        ec2.TagSpecifications(ResourceType=kind, Tags=tags(cluster, name))
        for kind in ("volume", *(() if "NetworkInterfaceId" in interface.properties else ("network-interface",)))
    ]
    return stack.add(
        ec2.LaunchTemplate(
            logical_ids.launch_template(prefix),
            DependsOn=[_add_program(stack, user_data)],
            TagSpecifications=[ec2.TagSpecifications(ResourceType="launch-template", Tags=tags(cluster, name))],
            LaunchTemplateData=ec2.LaunchTemplateData(
                ImageId=image,
                InstanceType=instance_type_parameter(stack, parameters, instances, group),
                IamInstanceProfile=ec2.IamInstanceProfile(Arn=profile),
                BlockDeviceMappings=[
                    ec2.LaunchTemplateBlockDeviceMapping(DeviceName=root_device(instances.image), Ebs=root)
                ],
                # One hop: pods that are not on the host's network do not reach the instance's credentials. No tags:
                # the metadata service cannot show keys with a slash, and where it is an account's default to show
                # tags, EC2 launches no instance that has one (aws/karpenter-provider-aws#7012).
                MetadataOptions=ec2.MetadataOptions(
                    HttpEndpoint="enabled",
                    HttpTokens="required",
                    HttpPutResponseHopLimit=1,
                    InstanceMetadataTags="disabled",
                ),
                NetworkInterfaces=[interface],
                TagSpecifications=on_launch,
                UserData=user_data.value,
                **key_name(stack, cluster),
                **more,
            ),
        )
    )


def _add_program(stack: Stack, user_data: UserData) -> str:
    """Store the second stage of the boot program in the stack, once for all that share it; return its logical id.

    It is the metadata of a wait condition handle, which creates nothing and costs nothing; no wait condition uses it.
    The logical id contains a digest of the program, so it is never updated: during an update, instances of the old and
    of the new launch template each find the program that belongs to their user data.
    """
    if user_data.resource not in stack.resources:
        metadata = {"cfngen": {"role": user_data.role, "program": user_data.program}}
        stack.add(cloudformation.WaitConditionHandle(user_data.resource, Metadata=metadata))
    return user_data.resource


def volume_properties(volume: Volume, **more: Value) -> dict[str, object]:
    """Return the properties of an encrypted EBS volume, except its size."""
    optional = {"Iops": volume.iops, "Throughput": volume.throughput, "KmsKeyId": volume.kms_key}
    settings = {key: value for key, value in optional.items() if value is not None}
    return {"Encrypted": True, "VolumeType": volume.type, **settings, **more}


def interchangeable_types(volume: Volume) -> list[str]:
    """Return the EBS types that may be chosen in the console: gp2 and gp3 if no IOPS or throughput is set."""
    has_defaults = volume.iops is None and volume.throughput is None and volume.type in ("gp2", "gp3")
    return (
        [volume_type for volume_type in ("gp3", "gp2") if volume.size <= TYPES[volume_type].size_gib[1]]
        if has_defaults
        else [volume.type]
    )


def latest(template: ec2.LaunchTemplate) -> autoscaling.LaunchTemplateSpecification:
    """Return an Auto Scaling group's reference to a launch template; a new version starts a rolling update."""
    return autoscaling.LaunchTemplateSpecification(
        LaunchTemplateId=Ref(template), Version=GetAtt(template, "LatestVersionNumber")
    )


def wait_for_signals(instances: Instances, count: Value) -> policies.CreationPolicy:
    """Return the creation policy: `count` instances must signal success within their timeout."""
    return policies.CreationPolicy(
        ResourceSignal=policies.ResourceSignal(Count=count, Timeout=f"PT{instances.creation_timeout}M")
    )


def roll_one_at_a_time(instances: Instances, drain_timeout: int = 0, master_wait: int = 0) -> policies.UpdatePolicy:
    """Return the update policy: one instance at a time, the next one only after the new one signalled success.

    Sizes that an autoscaler changed are kept: CloudFormation leaves group sizes alone that the template does not change
    (kubernetes-retired/kube-aws#972).

    Args:
        instances: the group's instances.
        drain_timeout: minutes that the old instance may take to evict its pods.
        master_wait: minutes that the new instance may wait for masters of its version.
    """
    return policies.UpdatePolicy(
        AutoScalingRollingUpdate=policies.AutoScalingRollingUpdate(
            MaxBatchSize=1,
            MinInstancesInService=0,
            # Covers the termination of the old instance too; CloudFormation allows an hour at most.
            PauseTime=f"PT{min(instances.creation_timeout + drain_timeout + master_wait + SPARE, MAX_PAUSE_MINUTES)}M",
            SuspendProcesses=SUSPENDED,
            WaitOnResourceSignals=True,
        ),
        AutoScalingScheduledAction=policies.AutoScalingScheduledAction(IgnoreUnmodifiedGroupSizeProperties=True),
    )
