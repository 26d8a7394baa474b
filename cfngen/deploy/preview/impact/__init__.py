"""Describes what a change of a resource means for the cluster, for somebody who runs Kubernetes.

The texts rely on the current templates: the instances of a node group are replaced one at a time, each new instance
has to signal success before the next is replaced, and an old instance is drained first if its group has a lifecycle
hook for that. See `rolling_update_policy` in `cfngen.templates.launch`, and `cfngen.templates.nodes`.
"""

from __future__ import annotations

import re

from cfngen.cluster.logical_ids import NodeGroupId
from cfngen.cluster.model import Cluster
from cfngen.deploy.preview.change_set_reading import ChangeSet, ResourceChange
from cfngen.deploy.preview.changes import Change, Danger, Impact, Replacement
from cfngen.deploy.preview.impact import backups, instances, network, program, secrets
from cfngen.deploy.preview.impact.context import ChangeContext, owner_of
from cfngen.deploy.preview.impact.instances import sizes
from cfngen.deploy.stacks import AUTO_SCALING_GROUP

# Resources with data, addresses or identities that others rely on: losing one of them may mean losing the cluster.
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
        "AWS::S3::Bucket",
        "AWS::SecretsManager::Secret",
    }
)
_TAGS_PATH = re.compile(r"(/Properties)?/Tags(?![A-Za-z])")
_RULES = {**backups.RULES, **instances.RULES, **network.RULES, **program.RULES, **secrets.RULES}


class ImpactAssessment:
    """Describes the impact of changes on one cluster.

    Args:
        cluster: the cluster as it is to be deployed.
        masters: current number of masters; 0 if not known, in which case the number of the cluster file is used.
    """

    def __init__(self, cluster: Cluster, masters: int = 0) -> None:
        self._cluster = cluster
        self._masters = masters or cluster.control_plane.count

    def of_resource(self, change: Change, entry: ResourceChange, *, instances: int | None = None) -> Impact | None:
        """Return the impact of a change of a resource; None if there is nothing to add to the change itself.

        Args:
            change: the change, whose `impact` is not set yet.
            entry: the change as CloudFormation lists it.
            instances: current number of instances of an Auto Scaling group, if known.
        """
        context = ChangeContext(self._cluster, change, entry, self._masters, instances)
        if change.action == "update" and not context.disappears and not context.touches():
            return _attribute_or_tag_impact(context)
        rule = _RULES.get(change.type)
        return rule(context) if rule else None

    def danger(self, change: Change) -> Danger:
        """Return how dangerous a change without an impact is, by the type of the resource."""
        if change.action != "remove" and change.replacement is Replacement.NO:
            return Danger.NONE
        return Danger.DANGEROUS if change.type in _PERSISTENT_TYPES else Danger.NONE

    def of_stack(self, description: ChangeSet | None, path: tuple[str, ...], action: str) -> Impact | None:
        """Return the impact of creating or deleting a nested stack; None if the stack is not that of a node group.

        Args:
            description: the nested stack's change set; None if CloudFormation has created none.
            path: logical ids from the root to the stack.
            action: `create` or `delete`.
        """
        owner, _ = owner_of(self._cluster, path[-1])
        if not owner.startswith("node group"):
            return None
        if action == "delete":
            return Impact(
                f"{owner} is removed with its instances, all at once; their pods are drained first if the group has a "
                "drainTimeout",
                Danger.DISRUPTIVE,
            )
        group = next(
            (
                node_group
                for node_group in self._cluster.node_groups
                if str(NodeGroupId(node_group.name, "Stack")) == path[-1]
            ),
            None,
        )
        if group is None:
            return Impact(f"new {owner}")
        size = sizes(group.min_size, group.max_size)
        instance_type = group.instance_type
        for entry in description.entries.values() if description else ():
            properties = entry.after.get("Properties", {})
            if entry.type == AUTO_SCALING_GROUP:
                size = sizes(properties.get("MinSize", group.min_size), properties.get("MaxSize", group.max_size))
            elif entry.type == "AWS::EC2::LaunchTemplate":
                instance_type = properties.get("LaunchTemplateData", {}).get("InstanceType", instance_type)
        return Impact(f"new {owner}: {size} {'node' if size == '1' else 'nodes'} of {instance_type}")


def _attribute_or_tag_impact(context: ChangeContext) -> Impact | None:
    """Return the impact of a change that affects only tags, or attributes such as UpdatePolicy."""
    paths = {property_.path.split("/")[1] for property_ in context.change.properties}
    if paths <= {"UpdatePolicy", "CreationPolicy"}:
        return Impact("how instances are replaced from now on; none is replaced now")
    if paths <= {"DeletionPolicy", "UpdateReplacePolicy"}:
        return Impact("what happens to it when it is removed or replaced later; nothing happens now")
    if paths and all(_TAGS_PATH.match(property_.path) for property_ in context.change.properties):
        is_group = context.change.type == AUTO_SCALING_GROUP
        return Impact("tags only; instances get them when they are next replaced" if is_group else "tags only")
    return None
