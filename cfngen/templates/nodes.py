"""The stack of a node group: a launch template, an Auto Scaling group, and a security group for this group alone.

The stack depends on the master stack, which has these effects:

- The creation is delayed by seconds only, since the master stack does not wait for working masters (see
  `cfngen.templates.master`).
- An update replaces nodes only after the masters. So no node is replaced while a single master is down, and no node is
  newer than the masters.
- The deletion of the cluster deletes nodes while the API still exists.
"""

from __future__ import annotations

from troposphere import Ref, autoscaling, ec2

from cfngen import userdata
from cfngen.cluster.instances.instance_types import architecture
from cfngen.cluster.instances.node_resources import node_template_tags
from cfngen.cluster.instances.rolling_updates import batch_timeout, min_in_service
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import MASTER_STACK, MasterId, NodeGroupId, NodeGroupPart, node_group_prefix
from cfngen.cluster.naming.names import DRAIN_HOOK
from cfngen.cluster.network.existing_parts import SECURITY_GROUP
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.templates.iam import node_profile
from cfngen.templates.images import image_parameter
from cfngen.templates.launch import (
    add_launch_template,
    creation_policy,
    notification_property,
    rolling_update_policy,
    termination_hook_property,
)
from cfngen.templates.mixed_instances import capacity_properties, launch_source, market_options
from cfngen.templates.network_references import subnet_id
from cfngen.templates.references import part_value
from cfngen.templates.route_tables import way_out
from cfngen.templates.security_groups import extra_security_groups, first_group, own_group_of_node_group
from cfngen.templates.stack import NODES, PropertyValue, Stack
from cfngen.templates.tagging import auto_scaling_group_tags

# HeartbeatTimeout of the lifecycle hook for draining. While a node is being drained, its instance sends a heartbeat
# every half minute (boot/node/drain.py). After this time without one, EC2 Auto Scaling terminates the instance.
HEARTBEAT_TIMEOUT_SECONDS = 120
# A template can have 200 parameters, and each node group adds up to six to the root template. In a cluster with more
# node groups, the sizes and instance types of the groups are not parameters but fixed values from the cluster file.
MAX_GROUPS_WITH_PARAMETERS = 20
# Highest number of nodes of one node group, the same as for maxSize in the cluster file.
MAX_NODES = 5000


def build(cluster: Cluster, node_group: NodeGroup) -> Stack:
    """Return the stack of a node group."""
    stack = Stack(
        cluster,
        name=f"nodes-{node_group.name}",
        logical_id=str(NodeGroupId(node_group.name, "Stack")),
        source_module=__name__,
        description=f"Node group {node_group.name} of the Kubernetes cluster {cluster.name}, "
        f"version {cluster.kubernetes_version}: launch template, Auto Scaling group and security group",
        uses_defaults_only=len(cluster.node_groups) > MAX_GROUPS_WITH_PARAMETERS,
    )
    stack.depends_on = (MASTER_STACK,)
    _add_auto_scaling_group(stack, cluster, node_group, _add_launch_template(stack, cluster, node_group))
    auto_scaling_group_id = _auto_scaling_group_id(node_group)
    stack.output(
        auto_scaling_group_id,
        value=Ref(auto_scaling_group_id),
        description=f"Auto Scaling group of node group {node_group.name}",
    )
    return stack


def _auto_scaling_group_id(node_group: NodeGroup) -> str:
    return str(NodeGroupId(node_group.name, "AutoScalingGroup"))


def _name_tag(cluster: Cluster, node_group: NodeGroup) -> str:
    return f"{cluster.name}-nodes-{node_group.name}"


def _parameter_group(node_group: NodeGroup) -> str:
    return f"Node group {node_group.name}"


def _add_launch_template(stack: Stack, cluster: Cluster, node_group: NodeGroup) -> ec2.LaunchTemplate:
    logical_id_prefix = node_group_prefix(node_group.name)
    user_data_references = {
        "stack": Ref("AWS::StackName"),
        "resource": _auto_scaling_group_id(node_group),
        "joinSecretArn": stack.parameter_from_other_stack(
            "JoinSecretArn", description="Secret that holds what nodes need to join"
        ),
    }
    return add_launch_template(
        stack,
        cluster,
        logical_id_prefix=logical_id_prefix,
        instances=node_group,
        name_tag=_name_tag(cluster, node_group),
        parameter_prefix=logical_id_prefix,
        parameter_group=_parameter_group(node_group),
        image_id=image_parameter(
            stack,
            role="Node",
            image=node_group.image,
            architecture=architecture(node_group.instance_type),
            parameter_group=NODES,
        ),
        instance_profile_arn=node_profile(stack, cluster, node_group),
        primary_interface=ec2.NetworkInterfaces(
            DeviceIndex=0,
            AssociatePublicIpAddress=node_group.public_ip,
            DeleteOnTermination=True,
            Groups=[
                first_group(stack, cluster, "Node"),
                *extra_security_groups(stack, cluster, "Node"),
                *own_group_of_node_group(stack, cluster, node_group),
                *(part_value(stack, group_id, SECURITY_GROUP) for group_id in node_group.additional_security_groups),
            ],
        ),
        user_data=userdata.node(cluster, node_group, user_data_references),
        **market_options(stack, node_group, _parameter_group(node_group)),
    )


def _add_auto_scaling_group(
    stack: Stack, cluster: Cluster, node_group: NodeGroup, launch_template: ec2.LaunchTemplate
) -> None:
    min_size, max_size = _add_size_parameters(stack, node_group, _parameter_group(node_group))
    # If the cluster file sets no desired size, Auto Scaling launches the minimum number of instances.
    desired_capacity_property: dict[str, object] = {}
    first_instance_count = min_size
    if node_group.desired_size is not None:
        desired_capacity_property["DesiredCapacity"] = str(node_group.desired_size)
        first_instance_count = str(node_group.desired_size)
    stack.add(
        autoscaling.AutoScalingGroup(
            _auto_scaling_group_id(node_group),
            MinSize=min_size,
            MaxSize=max_size,
            VPCZoneIdentifier=[subnet_id(stack, cluster, zone) for zone in node_group.zones],
            **launch_source(stack, node_group, launch_template, _parameter_group(node_group)),
            Tags=_auto_scaling_group_tags(cluster, node_group),
            CreationPolicy=creation_policy(node_group, signal_count=first_instance_count),
            UpdatePolicy=rolling_update_policy(
                batch_timeout(cluster, node_group),
                max_batch_size=node_group.update.batch_size,
                min_instances_in_service=min_in_service(node_group),
            ),
            **capacity_properties(node_group),
            **desired_capacity_property,
            **(termination_hook_property(DRAIN_HOOK, HEARTBEAT_TIMEOUT_SECONDS) if node_group.drain_timeout else {}),
            **notification_property(cluster),
            **({"TargetGroupARNs": list(node_group.target_groups)} if node_group.target_groups else {}),
        ),
        depends_on_in_standalone_template=(
            *(logical_id for zone in node_group.zones for logical_id in way_out(cluster, zone)),
            # Updated after the groups of all other masters, each of which depends on the previous one.
            str(MasterId(cluster.slots[-1].letter, "AutoScalingGroup")),
        ),
    )


def _auto_scaling_group_tags(cluster: Cluster, node_group: NodeGroup) -> list[autoscaling.Tag]:
    name_tag = _name_tag(cluster, node_group)
    return [
        *auto_scaling_group_tags(cluster, name_tag, discoverable=node_group.autoscaler.enabled),
        # Instances do not get these tags: the third argument of Tag is PropagateAtLaunch.
        *(autoscaling.Tag(key, value, False) for key, value in node_template_tags(cluster, node_group).items()),
    ]


def _add_size_parameters(
    stack: Stack, node_group: NodeGroup, parameter_group: str
) -> tuple[PropertyValue, PropertyValue]:
    """Add the parameters for the node group's minimum and maximum size; return references to them, in this order.

    A minimum above the maximum must be rejected before the creation starts, since Auto Scaling would reject it only
    after the masters are running. CloudFormation's rules cannot compare numbers. So a boundary from the cluster file
    limits both parameters: the minimum may be at most the boundary, and the maximum at least the boundary. The boundary
    is the group's desired size if the cluster file sets a desired size, otherwise the group's maximum size.
    """
    boundary = node_group.max_size if node_group.desired_size is None else node_group.desired_size
    # Below the surge, MinInstancesInService would not be less than MaxSize, which CloudFormation refuses.
    surged_size = node_group.initial_size + node_group.update.max_surge
    least_maximum = max(boundary, surged_size, 1)
    # The AWS CLI and the CDK keep a stack's value unless one is passed, and this rule is all that CloudFormation says.
    origin = "maxSize" if node_group.desired_size is None else "desiredSize"
    least_origin = origin if least_maximum == boundary else "initial size with maxSurge"
    # For each parameter: the last part of its logical id, label, default, MinValue, MaxValue, and these two in words.
    size_parameters: tuple[tuple[NodeGroupPart, str, int, int, int, str], ...] = (
        (
            "MinSize",
            "Minimum number of nodes",
            node_group.min_size,
            0,
            boundary,
            f"0 to {boundary}, the {origin} of the cluster file",
        ),
        (
            "MaxSize",
            "Maximum number of nodes",
            node_group.max_size,
            least_maximum,
            MAX_NODES,
            f"{least_maximum}, the {least_origin} of the cluster file, to {MAX_NODES}",
        ),
    )
    min_size, max_size = (
        stack.parameter(
            str(NodeGroupId(node_group.name, id_part)),
            type="Number",
            label=label,
            parameter_group=parameter_group,
            description=f"{label} in the group {node_group.name}, from {lowest} to {highest}",
            default=default,
            only_in_this_nested_stack=True,
            MinValue=lowest,
            MaxValue=highest,
            ConstraintDescription=f"must be from {bounds}; pass {NodeGroupId(node_group.name, id_part)}={default}, or "
            "change minSize or maxSize of the group there and generate the templates again",
        )
        for id_part, label, default, lowest, highest, bounds in size_parameters
    )
    return min_size, max_size
