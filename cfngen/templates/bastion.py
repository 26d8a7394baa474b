"""The bastion stack: an instance with a fixed public address, through which users reach masters and nodes by SSH.

As a master, the bastion is an Auto Scaling group of one on a network interface that stays, so that a replaced instance
has the same addresses. It has no boot program, so CloudFormation waits for no signal, and no IAM role: an intruder
gains no permission in AWS. Session Manager therefore opens no shell on it; it does on masters and nodes, and
needs no bastion.

All rules for it are in this stack, also those of the masters' and the nodes' security groups. So a bastion that is
added or removed changes no other stack of a cluster that has the subnet.
"""

from __future__ import annotations

from typing import Literal

from troposphere import GetAtt, Ref, autoscaling, ec2, policies

from cfngen.cluster.instances.instance_types import architecture
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming import logical_ids
from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.cluster.naming.network_ids import RuleId, SubnetId, source_id, zone_id
from cfngen.cluster.network.existing_parts import existing_group, is_one_group_for_instances
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import is_private
from cfngen.cluster.sections.base import Architecture
from cfngen.cluster.sections.bastion import Bastion
from cfngen.cluster.security_groups.rules import SSH_PORT, bastion_sources
from cfngen.cluster.security_groups.sources import origin_text
from cfngen.permissions.references import MASTER_ROLE_TAG
from cfngen.templates import access
from cfngen.templates.images import image_parameter, login_name, root_device
from cfngen.templates.launch import (
    SUSPENDED_PROCESSES,
    ebs_volume_properties,
    latest_version,
    max_size_gib,
    metadata_options,
    notification_property,
)
from cfngen.templates.network_references import IPV4_PATTERN, public_subnet_id, subnet_id, vpc_id, zone_parameter
from cfngen.templates.secrets import key_name_property
from cfngen.templates.security_group_rules import allow_from_group, allow_from_source
from cfngen.templates.security_groups import first_group
from cfngen.templates.stack import BASTION, PropertyValue, Stack
from cfngen.templates.tagging import auto_scaling_group_tags, tags

# AllowedPattern of instance types, by the image's architecture. Unlike masters and nodes, a bastion may be small.
_INSTANCE_TYPE_PATTERNS: dict[Architecture, str] = {
    "amd64": r"^(?!a1\.|[a-z]+[0-9]+g|mac)[a-z][a-z0-9-]*\.[a-z0-9-]+$",
    "arm64": r"^(a1|[a-z]+[0-9]+g[a-z0-9-]*)\.[a-z0-9-]+$",
}
# Package repositories: those of Ubuntu and Debian use HTTP, with signed packages. Security groups do not filter DNS and
# time ("You can't filter traffic to or from the Amazon DNS server", Amazon VPC User Guide, "DNS attributes").
_UPDATE_PORTS = (80, 443)
_GATEWAY_ATTACHMENT = "InternetGatewayAttachment"


def build(cluster: Cluster, bastion: Bastion) -> Stack:
    """Return the bastion stack."""
    stack = Stack(
        cluster,
        name="bastion",
        logical_id=logical_ids.BASTION_STACK,
        source_module=__name__,
        description=f"Bastion of the Kubernetes cluster {cluster.name}: "
        "fixed address, security group, Auto Scaling group of one",
    )
    zone = bastion_zone(cluster, bastion)
    security_group = _add_security_group(stack, cluster, bastion)
    interface = _add_interface(stack, cluster, zone, security_group)
    address, association = _add_address(stack, cluster, bastion, interface)
    _add_auto_scaling_group(stack, cluster, bastion, zone, interface, association)
    stack.output("BastionAddress", value=address, description="Public address of the bastion", also_output_of_root=True)
    stack.output(
        "BastionCommand",
        value=access.fill(
            f"ssh -J {login_name(bastion.image)}@${{Bastion}} {login_name(cluster.control_plane.image)}@${{Master}}",
            Bastion=address,
            Master=stack.parameter_from_other_stack(
                "ApiPrivateAddress", description="Private address of the first master"
            ),
        ),
        description="Opens a shell on the first master through the bastion",
        also_output_of_root=True,
    )
    return stack


def bastion_zone(cluster: Cluster, bastion: Bastion) -> str:
    """Return the zone of the bastion."""
    return bastion.zone or cluster.network.subnets[0].zone


def _tags_against_nodes(cluster: Cluster) -> dict[str, str]:
    """Return the tags that keep the roles of nodes from changing the bastion's interface and instance.

    With a plug-in that manages interfaces, nodes may change those of the cluster, except those with the tag of masters.
    """
    return MASTER_ROLE_TAG if network_plugin(cluster).gives_pods_vpc_addresses else {}


def _add_security_group(stack: Stack, cluster: Cluster, bastion: Bastion) -> PropertyValue:
    """Add the security group of the bastion and all rules about it; return the group's id."""
    roles: tuple[Literal["Master", "Node"], ...] = (
        ("Master",) if is_one_group_for_instances(cluster) else ("Master", "Node")
    )
    target_groups = {role: first_group(stack, cluster, role) for role in roles}
    egress = [
        ec2.SecurityGroupRule(
            DestinationSecurityGroupId=target_group,
            IpProtocol="tcp",
            FromPort=SSH_PORT,
            ToPort=SSH_PORT,
            Description=f"SSH of {role.lower()}s",
        )
        for role, target_group in target_groups.items()
    ]
    egress += [
        ec2.SecurityGroupRule(
            CidrIp="0.0.0.0/0",
            IpProtocol="tcp",
            FromPort=port,
            ToPort=port,
            Description="Security updates of the operating system",
        )
        for port in _UPDATE_PORTS
    ]
    group = stack.add(
        ec2.SecurityGroup(
            logical_ids.BASTION_SECURITY_GROUP,
            GroupDescription=f"Kubernetes cluster {cluster.name}: bastion",
            VpcId=vpc_id(stack, cluster),
            SecurityGroupEgress=egress,
            Tags=tags(cluster, f"{cluster.name}-bastion"),
        )
    )
    group_id = GetAtt(group, "GroupId")
    _allow_ssh_to_instances(stack, cluster, target_groups, group_id)
    _allow_sources(stack, bastion, group_id)
    return group_id


def _allow_ssh_to_instances(
    stack: Stack,
    cluster: Cluster,
    target_groups: dict[Literal["Master", "Node"], PropertyValue],
    bastion_group: PropertyValue,
) -> None:
    for role, target_group in target_groups.items():
        # Existing groups are left as they are; `cfngen config --security-group-rules` lists the rule.
        if not existing_group(cluster, role):
            allow_from_group(
                stack,
                RuleId(role, purpose="Ssh", source="Bastion"),
                target_group=target_group,
                source_group=bastion_group,
                description="SSH from the bastion",
                port=SSH_PORT,
            )


def _allow_sources(stack: Stack, bastion: Bastion, bastion_group: PropertyValue) -> None:
    for source in bastion_sources(bastion):
        rule_id = RuleId("Bastion", purpose=source.purpose, source=source_id(origin_text(source.origin)))
        allow_from_source(stack, rule_id, bastion_group, source)


def _add_interface(stack: Stack, cluster: Cluster, zone: str, security_group: PropertyValue) -> ec2.NetworkInterface:
    """Add the network interface of the bastion, which remains when its instance is replaced.

    EC2 gives it any free address of the subnet, so the masters' fixed addresses must be taken before. Between nested
    stacks, an output of the master stack, which this stack takes, leads to that order.
    """
    bastion_subnet_id = public_subnet_id if is_private(cluster) else subnet_id
    return stack.add(
        ec2.NetworkInterface(
            logical_ids.BASTION_NETWORK_INTERFACE,
            Description=f"Kubernetes cluster {cluster.name}: bastion",
            SubnetId=bastion_subnet_id(stack, cluster, zone),
            GroupSet=[security_group],
            Tags=tags(cluster, f"{cluster.name}-bastion", **_tags_against_nodes(cluster)),
        ),
        depends_on_in_standalone_template=[str(MasterId(slot.letter, "NetworkInterface")) for slot in cluster.slots],
    )


def _add_address(
    stack: Stack, cluster: Cluster, bastion: Bastion, interface: ec2.NetworkInterface
) -> tuple[PropertyValue, ec2.EIPAssociation]:
    """Associate an Elastic IP with the interface: a new one, or the one that the cluster file names."""
    if bastion.elastic_ip:
        allocation_id: PropertyValue = stack.parameter(
            "BastionElasticIpAllocationId",
            label="Allocation id of the Elastic IP",
            parameter_group=BASTION,
            description="Allocation id of the existing Elastic IP of the bastion",
            default=bastion.elastic_ip.allocation_id,
            AllowedPattern="^eipalloc-[0-9a-f]{8,17}$",
            ConstraintDescription="must be an allocation id, eipalloc-…",
        )
        address: PropertyValue = stack.parameter(
            "BastionElasticIpAddress",
            label="Address of the Elastic IP",
            parameter_group=BASTION,
            description="Address of the existing Elastic IP; the outputs of the stack show it",
            default=str(bastion.elastic_ip.address),
            AllowedPattern=IPV4_PATTERN,
            ConstraintDescription="must be an IPv4 address",
        )
    else:
        elastic_ip = stack.add(
            ec2.EIP(logical_ids.BASTION_ELASTIC_IP, Domain="vpc", Tags=tags(cluster, f"{cluster.name}-bastion")),
            depends_on_in_standalone_template=[_GATEWAY_ATTACHMENT],
        )
        allocation_id, address = GetAtt(elastic_ip, "AllocationId"), GetAtt(elastic_ip, "PublicIp")
    association = stack.add(
        ec2.EIPAssociation(
            logical_ids.BASTION_ASSOCIATION, AllocationId=allocation_id, NetworkInterfaceId=Ref(interface)
        ),
        depends_on_in_standalone_template=[_GATEWAY_ATTACHMENT] if bastion.elastic_ip else [],
    )
    return address, association


def _add_auto_scaling_group(
    stack: Stack,
    cluster: Cluster,
    bastion: Bastion,
    zone: str,
    interface: ec2.NetworkInterface,
    association: ec2.EIPAssociation,
) -> None:
    """Add the launch template and the Auto Scaling group of the bastion.

    The group is complete as soon as its instance is launched, at creation and in an update.
    """
    name = f"{cluster.name}-bastion"
    short_zone = zone_id(zone)
    launch_template = _add_launch_template(stack, cluster, bastion, interface, name)
    stack.add(
        autoscaling.AutoScalingGroup(
            logical_ids.BASTION_GROUP,
            # The instance needs its public address when it installs updates at its first boot.
            DependsOn=[association],
            MinSize=1,
            MaxSize=1,
            # The network interface determines the subnet; the group must name only the zone.
            AvailabilityZones=[zone_parameter(stack, zone)],
            LaunchTemplate=latest_version(launch_template),
            Tags=auto_scaling_group_tags(cluster, name, discoverable=False, **_tags_against_nodes(cluster)),
            UpdatePolicy=policies.UpdatePolicy(
                AutoScalingRollingUpdate=policies.AutoScalingRollingUpdate(
                    MaxBatchSize=1, MinInstancesInService=0, SuspendProcesses=SUSPENDED_PROCESSES
                )
            ),
            **notification_property(cluster),
        ),
        depends_on_in_standalone_template=[
            "InternetRoute",
            str(SubnetId(short_zone, "RouteTableAssociation", is_public=is_private(cluster))),
        ],
    )


def _add_launch_template(
    stack: Stack, cluster: Cluster, bastion: Bastion, interface: ec2.NetworkInterface, name: str
) -> ec2.LaunchTemplate:
    """Add the launch template of the bastion: without user data and without a role."""
    required_architecture = architecture(bastion.instance_type)
    instance_type = stack.parameter(
        "BastionInstanceType",
        label="Instance type",
        parameter_group=BASTION,
        description=f"EC2 instance type of the bastion ({required_architecture})",
        default=bastion.instance_type,
        AllowedPattern=_INSTANCE_TYPE_PATTERNS[required_architecture],
        ConstraintDescription=f"must be an {required_architecture} instance type, e.g. {bastion.instance_type}",
    )
    root_volume = _root_volume(stack, bastion)
    return stack.add(
        ec2.LaunchTemplate(
            logical_ids.BASTION_LAUNCH_TEMPLATE,
            TagSpecifications=[ec2.TagSpecifications(ResourceType="launch-template", Tags=tags(cluster, name))],
            LaunchTemplateData=ec2.LaunchTemplateData(
                ImageId=image_parameter(
                    stack,
                    role="Bastion",
                    image=bastion.image,
                    architecture=required_architecture,
                    parameter_group=BASTION,
                ),
                InstanceType=instance_type,
                BlockDeviceMappings=[
                    ec2.LaunchTemplateBlockDeviceMapping(DeviceName=root_device(bastion.image), Ebs=root_volume)
                ],
                MetadataOptions=metadata_options(),
                NetworkInterfaces=[
                    ec2.NetworkInterfaces(DeviceIndex=0, DeleteOnTermination=False, NetworkInterfaceId=Ref(interface))
                ],
                TagSpecifications=[ec2.TagSpecifications(ResourceType="volume", Tags=tags(cluster, name))],
                **key_name_property(stack, cluster),
            ),
        )
    )


def _root_volume(stack: Stack, bastion: Bastion) -> ec2.EBSBlockDevice:
    size = stack.parameter(
        "BastionRootVolumeSize",
        type="Number",
        label="Size of the root volume (GiB)",
        parameter_group=BASTION,
        description="Size of the bastion's root volume in GiB",
        default=bastion.root_volume.size,
        MinValue=8,
        MaxValue=max_size_gib(bastion.root_volume.type),
    )
    return ec2.EBSBlockDevice(DeleteOnTermination=True, VolumeSize=size, **ebs_volume_properties(bastion.root_volume))
