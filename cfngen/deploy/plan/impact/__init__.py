"""Describes what a change of a resource means for the cluster, for people who run Kubernetes.

The texts rely on the current templates: the instances of a node group are replaced one at a time, each new instance
has to signal success before the next is replaced, and an old instance is drained first if its group has a lifecycle
hook for that. See `rolling_update_policy` in `cfngen.templates.launch`, and `cfngen.templates.nodes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cfngen.cluster.instances.group_types import type_list, types_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import (
    BASTION_STACK,
    NodeGroupId,
    auto_scaling_group_id,
    launch_template_id,
    node_group_prefix,
)
from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact import capacity, identity, instances, network, ways_out
from cfngen.deploy.plan.impact.bastion import bastion_impact, stack_impact
from cfngen.deploy.plan.impact.capacity import autoscaler_text
from cfngen.deploy.plan.impact.context import ChangeContext, owner_of
from cfngen.deploy.plan.impact.instances import size_range
from cfngen.deploy.plan.impact.ways_out import private_network_impact
from cfngen.deploy.plan.plan import Change, Replacement
from cfngen.templates.evaluation import known_value

# Types of resources with data, addresses or identities that others rely on: losing one may mean losing the cluster.
_PERSISTENT_TYPES = frozenset(
    {
        "AWS::CloudFormation::Stack",
        "AWS::DynamoDB::Table",
        "AWS::EC2::EIP",
        "AWS::EC2::NetworkInterface",
        "AWS::EC2::Subnet",
        "AWS::EC2::VPC",
        "AWS::EC2::Volume",
        "AWS::EFS::FileSystem",
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        "AWS::KMS::Key",
        "AWS::RDS::DBCluster",
        "AWS::RDS::DBInstance",
        "AWS::Route53::HostedZone",
        "AWS::S3::Bucket",
        "AWS::SecretsManager::Secret",
    }
)
_TAGS_PATH = re.compile(r"(/Properties)?/Tags(?![A-Za-z])")
# For each CloudFormation type, the function that describes the impact of changes of such a resource.
_IMPACT_BY_TYPE = {
    **capacity.IMPACT_BY_TYPE,
    **instances.IMPACT_BY_TYPE,
    **network.IMPACT_BY_TYPE,
    **ways_out.IMPACT_BY_TYPE,
    # After instances, which have roles too.
    **identity.IMPACT_BY_TYPE,
}


class ImpactAssessment:
    """Describes the impact of changes on one cluster.

    Args:
        master_count: current number of masters; 0 if not known, in which case the number of the cluster file is used.
        new_resources: the evaluated resources of the new templates by logical id; for others, the cluster file counts.
    """

    def __init__(
        self, cluster: Cluster, master_count: int = 0, new_resources: Mapping[str, TemplatePart] | None = None
    ) -> None:
        self._cluster = cluster
        self._new_resources = new_resources or {}
        self._master_count = master_count or cluster.control_plane.count

    def of_resource(
        self, change: Change, resource_change: ResourceChange, *, instance_count: int | None = None
    ) -> Impact | None:
        """Return the impact of a change of a resource; None if there is nothing to add to the change itself.

        Args:
            change: the change in the plan, whose `impact` is not set yet.
            instance_count: current number of instances of an Auto Scaling group, if known.
        """
        context = ChangeContext(
            self._cluster, change, resource_change, master_count=self._master_count, instance_count=instance_count
        )
        if change.action == "update" and not context.disappears and not context.changes_any_property_but_tags:
            return _attribute_or_tag_impact(context)
        describe_impact = bastion_impact(change) or private_network_impact(change) or _IMPACT_BY_TYPE.get(change.type)
        return describe_impact(context) if describe_impact else None

    def danger(self, change: Change) -> Danger:
        """Return how dangerous a change without an impact is, by the type of the resource."""
        if change.action != "remove" and change.replacement is Replacement.NO:
            return Danger.NONE
        return Danger.DANGEROUS if change.type in _PERSISTENT_TYPES else Danger.NONE

    def of_stack(self, path: tuple[str, ...], action: str) -> Impact | None:
        """Return the impact of creating or deleting a nested stack; None unless it is of a node group or the bastion.

        Args:
            path: logical ids from the root to the stack.
            action: `create` or `delete`.
        """
        if path[-1] == BASTION_STACK:
            return stack_impact(self._cluster, action)
        owner = owner_of(self._cluster, logical_id=path[-1])
        if not owner.is_node_group:
            return None
        if action == "delete":
            return Impact(
                f"{owner.text} is removed with its instances, all at once; their pods are drained first if the group "
                "has a drainTimeout",
                Danger.DISRUPTIVE,
            )
        node_groups_by_stack = {str(NodeGroupId(group.name, "Stack")): group for group in self._cluster.node_groups}
        node_group = node_groups_by_stack.get(path[-1])
        if node_group is None:
            return Impact(f"new {owner.text}")
        size = size_range(node_group.min_size, node_group.max_size)
        instance_type = type_list(types_of(self._cluster, node_group))
        # Parameters may differ from the cluster file, so the values in the templates take precedence if they are known.
        prefix = node_group_prefix(node_group.name)
        if group := self._new_resources.get(auto_scaling_group_id(prefix)):
            properties = group["Properties"]
            size = size_range(
                known_value(properties.get("MinSize")) or node_group.min_size,
                known_value(properties.get("MaxSize")) or node_group.max_size,
            )
        if launch_template := self._new_resources.get(launch_template_id(prefix)):
            data = launch_template["Properties"].get("LaunchTemplateData", {})
            instance_type = str(known_value(data.get("InstanceType")) or instance_type)
        nodes = "node" if size == "1" else "nodes"
        return network.new_instances_impact(f"new {owner.text}: {size} {nodes} of {instance_type}", node_group.ingress)


def _attribute_or_tag_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change that affects only tags, or attributes such as UpdatePolicy."""
    attributes = {property_.path.split("/")[1] for property_ in context.change.properties}
    if attributes <= {"UpdatePolicy", "CreationPolicy"}:
        return Impact("how instances are replaced from now on; none is replaced now")
    if attributes <= {"DeletionPolicy", "UpdateReplacePolicy"}:
        return Impact("what happens to it when it is removed or replaced later; nothing happens now")
    if attributes and all(_TAGS_PATH.match(property_.path) for property_ in context.change.properties):
        is_group = context.change.type == AUTO_SCALING_GROUP
        if is_group and (text := autoscaler_text(context, context.owner)):
            return Impact(text)
        return Impact("tags only; instances get them when they are next replaced" if is_group else "tags only")
    return None
