"""The stack of a node group: a launch template and an Auto Scaling group.

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
from cfngen.cluster.instance_types import architecture
from cfngen.cluster.logical_ids import MASTER_STACK, NodeGroupId, NodeGroupPart, node_group_prefix
from cfngen.cluster.model import Cluster, NodeGroup
from cfngen.cluster.names import DRAIN_HOOK
from cfngen.cluster.upgrade_timeouts import master_upgrade_wait
from cfngen.templates import master
from cfngen.templates.iam import node_profile
from cfngen.templates.images import image_parameter
from cfngen.templates.launch import latest_version, launch_template, roll_one_at_a_time, wait_for_signals
from cfngen.templates.network import subnet_id
from cfngen.templates.property_value import Value
from cfngen.templates.security_groups import overflow_security_groups
from cfngen.templates.stack import NODES, Stack
from cfngen.templates.tagging import group_tags
from cfngen.templates.vpc import internet_access

# HeartbeatTimeout of the lifecycle hook. While a node is being drained, its instance sends a heartbeat every half
# minute (boot/node/drain.py). After this time without a heartbeat, EC2 Auto Scaling terminates the instance.
HEARTBEAT_TIMEOUT_SECONDS = 120
# A template can have 200 parameters, and each node group adds up to six to the root template. In a cluster with more
# node groups, the sizes and instance types of the groups are not parameters but fixed values from the cluster file.
MAX_GROUPS_WITH_PARAMETERS = 20
MAX_NODES = 5000  # of one node group, as for maxSize in the cluster file


def build(cluster: Cluster, group: NodeGroup) -> Stack:
    """Return the stack of a node group."""
    prefix = node_group_prefix(group.name)
    heading = f"Node group {group.name}"
    stack = Stack(
        cluster,
        name=f"nodes-{group.name}",
        logical_id=str(NodeGroupId(group.name, "Stack")),
        module=__name__,
        description=f"Node group {group.name} of the Kubernetes cluster {cluster.name}",
        uses_defaults_only=len(cluster.node_groups) > MAX_GROUPS_WITH_PARAMETERS,
    )
    stack.depends_on = (MASTER_STACK,)
    group_logical_id = str(NodeGroupId(group.name, "AutoScalingGroup"))
    name = f"{cluster.name}-nodes-{group.name}"
    user_data_references = {
        "stack": Ref("AWS::StackName"),
        "resource": group_logical_id,
        "joinSecretArn": stack.parameter_from_other_stack(
            "JoinSecretArn", description="Secret that holds what nodes need to join"
        ),
    }
    template = launch_template(
        stack,
        cluster,
        prefix,
        group,
        name=name,
        parameters=prefix,
        group=heading,
        image=image_parameter(stack, "Node", group.image, architecture(group.instance_type), group=NODES),
        profile=node_profile(stack, cluster, group),
        interface=ec2.NetworkInterfaces(
            DeviceIndex=0,
            AssociatePublicIpAddress=group.public_ip,
            DeleteOnTermination=True,
            Groups=[
                stack.parameter_from_other_stack("NodeSecurityGroupId", description="Security group of the nodes"),
                *overflow_security_groups(stack, cluster, "Node"),
                *group.additional_security_groups,
            ],
        ),
        user_data=userdata.node(cluster, group, user_data_references),
        **_market_options(stack, group, heading),
    )
    min_size, max_size = _add_size_parameters(stack, group, heading)
    # Without a desired size, Auto Scaling launches the minimum.
    desired_capacity = {} if group.desired_size is None else {"DesiredCapacity": str(group.desired_size)}
    stack.add(
        autoscaling.AutoScalingGroup(
            group_logical_id,
            MinSize=min_size,
            MaxSize=max_size,
            VPCZoneIdentifier=[subnet_id(stack, cluster, zone) for zone in group.zones],
            LaunchTemplate=latest_version(template),
            Tags=[*group_tags(cluster, name, discoverable=True), *_node_template_tags(group)],
            CreationPolicy=wait_for_signals(group, count=desired_capacity.get("DesiredCapacity", min_size)),
            UpdatePolicy=roll_one_at_a_time(
                group, drain_timeout=group.drain_timeout, master_wait=master_upgrade_wait(cluster, group)
            ),
            **desired_capacity,
            **_drain_hook(group),
        ),
        depends_on_in_standalone_template=(*internet_access(group.zones), master.last_group(cluster)),
    )
    stack.output(group_logical_id, Ref(group_logical_id), f"Auto Scaling group of node group {group.name}")
    return stack


def _add_size_parameters(stack: Stack, group: NodeGroup, heading: str) -> tuple[Value, Value]:
    """Add the parameters for the group's minimum and maximum size; return references to them.

    A minimum above the maximum must be rejected before the creation starts, since Auto Scaling would reject it only
    after the masters are running. CloudFormation's rules cannot compare numbers. So a boundary from the cluster file
    limits both parameters: the minimum may be at most the boundary, and the maximum at least the boundary. The boundary
    is the group's desired size if the cluster file sets a desired size, otherwise the group's maximum size.
    """
    boundary = group.max_size if group.desired_size is None else group.desired_size
    boundary_note = f"the template keeps the least number at or below {boundary} and the greatest at or above it"
    # For each parameter: part of the logical id, label, default, MinValue, MaxValue.
    size_parameters: tuple[tuple[NodeGroupPart, str, int, int, int], ...] = (
        ("MinSize", "Least number of nodes", group.min_size, 0, boundary),
        ("MaxSize", "Greatest number of nodes", group.max_size, max(boundary, 1), MAX_NODES),
    )
    min_size, max_size = (
        stack.parameter(
            str(NodeGroupId(group.name, part)),
            type="Number",
            label=label,
            group=heading,
            description=f"{label} of group {group.name}, {lowest} to {highest}",
            default=default,
            only_in_this_nested_stack=True,
            MinValue=lowest,
            MaxValue=highest,
            ConstraintDescription=f"must be {lowest} to {highest}: {boundary_note}, "
            "and another cluster file makes another one",
        )
        for part, label, default, lowest, highest in size_parameters
    )
    return min_size, max_size


def _drain_hook(group: NodeGroup) -> dict[str, object]:
    """Return the property with the lifecycle hook that delays termination until the node is drained.

    The result is empty if nodes of the group are not drained. The hook is a property of the Auto Scaling group, because
    a separate resource would be deleted before the instances, which would then be terminated without being drained.
    """
    if not group.drain_timeout:
        return {}
    hook = autoscaling.LifecycleHookSpecification(
        LifecycleHookName=DRAIN_HOOK,
        LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING",
        HeartbeatTimeout=HEARTBEAT_TIMEOUT_SECONDS,
        DefaultResult="CONTINUE",
    )
    return {"LifecycleHookSpecificationList": [hook]}


def _node_template_tags(group: NodeGroup) -> list[autoscaling.Tag]:
    """Return tags that tell cluster-autoscaler the labels and taints of the group's nodes while the group has no nodes.

    Source: "Auto-discovery setup" of cluster-autoscaler's cloudprovider/aws/README.md.
    """
    prefix = "k8s.io/cluster-autoscaler/node-template"
    node_tags = {f"{prefix}/label/{key}": value for key, value in group.labels.items()}
    for taint in group.taints:
        # A tag key contains only the taint's key, so of several taints with the same key only the first gets a tag.
        node_tags.setdefault(f"{prefix}/taint/{taint.key}", f"{taint.value}:{taint.effect}")
    return [autoscaling.Tag(key, value, False) for key, value in sorted(node_tags.items())]


def _market_options(stack: Stack, group: NodeGroup, heading: str) -> dict[str, object]:
    """Return the launch template's property for spot instances; empty for a group of on-demand instances."""
    if group.spot_price is None:
        return {}
    price = stack.parameter(
        str(NodeGroupId(group.name, "SpotPrice")),
        label="Spot price (US dollars per hour)",
        group=heading,
        description="Highest price per instance hour in US dollars",
        default=group.spot_price,
        only_in_this_nested_stack=True,
        AllowedPattern=r"^[0-9]+(\.[0-9]+)?$",
        ConstraintDescription="must be a number such as 0.05",
    )
    # EC2 Auto Scaling accepts one-time spot requests only; it replaces interrupted instances itself.
    return {
        "InstanceMarketOptions": ec2.InstanceMarketOptions(
            MarketType="spot", SpotOptions=ec2.SpotOptions(MaxPrice=price, SpotInstanceType="one-time")
        )
    }
