"""The inventory of a cluster: the resources of its stacks, its VPC and its instances.

The other modules use it to tell the cluster's resources from foreign ones in the same account or VPC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cfngen.deploy.account import Account
from cfngen.deploy.deletion.kubernetes_tags import cluster_tag, is_owned_by, tag_map
from cfngen.deploy.stacks import AUTO_SCALING_GROUP, StackResource, StackView, tree

VPC = "AWS::EC2::VPC"
EXISTING_INSTANCE_STATES = ("pending", "running", "shutting-down", "stopping", "stopped")
AUTO_SCALING_GROUP_TAG = "aws:autoscaling:groupName"
GROUPS_BATCH_SIZE = 50  # group names in one call of DescribeAutoScalingGroups


@dataclass(frozen=True)
class Inventory:
    """The resources of a cluster in its AWS account.

    Attributes:
        cluster: name of the cluster.
        resources: every resource of its stacks, nested stacks included.
        vpc_id: its VPC; empty if it no longer exists, or is not known.
        own_vpc: whether the VPC was created for the cluster and did not exist before it.
        pod_cidr: address range of the pods.
        route_tables: existing route tables, not created by the stacks, that contain routes to its pods.
        instances: ids of its instances, each with its state.
        unmanaged_instances: ids of its instances that no Auto Scaling group of its stacks launched.
        security_groups: security groups of its stacks.
        same_name_stacks: names of other root stacks in the region that contain a cluster of the same name.
    """

    cluster: str
    resources: tuple[StackResource, ...] = ()
    vpc_id: str = ""
    own_vpc: bool = False
    pod_cidr: str = ""
    route_tables: tuple[str, ...] = ()
    instances: Mapping[str, str] = field(default_factory=dict)
    unmanaged_instances: frozenset[str] = frozenset()
    security_groups: tuple[str, ...] = ()
    same_name_stacks: tuple[str, ...] = ()

    @property
    def has_infrastructure(self) -> bool:
        """Whether the stacks have a VPC or Auto Scaling groups.

        If not, networks and instances tagged for the cluster belong to another cluster of the same name.
        """
        return bool(self.existing_ids(VPC) or self.existing_ids(AUTO_SCALING_GROUP))

    def ids(self, kind: str = "") -> frozenset[str]:
        """Return the physical ids of the resources, optionally of one type, that the stacks have or had."""
        return frozenset(
            resource.view.physical_id
            for resource in self.resources
            if resource.view.physical_id and kind in ("", resource.view.type)
        )

    @property
    def load_balancers(self) -> frozenset[str]:
        """The names of the load balancers that the stacks have or had, from their ARNs."""
        arns = self.ids("AWS::ElasticLoadBalancingV2::LoadBalancer")
        return frozenset(arn.split("/")[-2] for arn in arns if arn.count("/") > 1)

    def existing_ids(self, kind: str) -> tuple[str, ...]:
        """Return the physical ids of the resources of one type that the stacks have now."""
        return tuple(
            resource.view.physical_id for resource in self.resources if resource.exists and resource.view.type == kind
        )


def read_inventory(
    account: Account, stack: StackView | None, *, cluster: str, vpc_id: str = "", pod_cidr: str = ""
) -> Inventory:
    """Return the inventory of a cluster.

    Args:
        account: the AWS account.
        stack: the cluster's root stack, which may be deleted; None if CloudFormation knows no stack of that name.
        cluster: name of the cluster.
        vpc_id: the existing VPC that the cluster file names; empty if the stack creates one.
        pod_cidr: address range of the pods.
    """
    resources = tree(account, stack.id) if stack else ()

    def existing_ids(resource_type: str) -> tuple[str, ...]:
        return tuple(
            resource.view.physical_id
            for resource in resources
            if resource.exists and resource.view.type == resource_type
        )

    own_vpcs = existing_ids(VPC)
    parameter_vpc = stack.parameters.get("VpcId", "") if stack else ""
    named_vpc = next(iter(own_vpcs), "") or parameter_vpc or vpc_id
    cluster_vpc = named_vpc or _find_vpc_by_tag(account, cluster)
    route_table = stack.parameters.get("RouteTableId", "") if stack else ""
    known_groups = frozenset(
        resource.view.physical_id for resource in resources if resource.view.type == AUTO_SCALING_GROUP
    )
    instances, unmanaged = _find_instances(
        account, cluster, cluster_vpc, existing_ids(AUTO_SCALING_GROUP), known_groups
    )
    if unmanaged and not own_vpcs and not existing_ids(AUTO_SCALING_GROUP):
        # A stack that is deleted, empty or misspelt has no instances, so these belong to another cluster of that name.
        instances = {key: state for key, state in instances.items() if key not in unmanaged}
        cluster_vpc, unmanaged = named_vpc, frozenset()
    return Inventory(
        cluster=cluster,
        resources=resources,
        vpc_id=cluster_vpc,
        own_vpc=bool(cluster_vpc) and cluster_vpc not in (parameter_vpc, vpc_id),
        pod_cidr=pod_cidr,
        route_tables=(route_table,) if route_table and route_table not in existing_ids("AWS::EC2::RouteTable") else (),
        instances=instances,
        # Without a stack, no group is known, and every instance would be listed as unmanaged.
        unmanaged_instances=unmanaged if resources else frozenset(),
        security_groups=existing_ids("AWS::EC2::SecurityGroup"),
    )


def _find_vpc_by_tag(account: Account, cluster: str) -> str:
    """Return the VPC that is left of a cluster whose stack is deleted; empty if there is none."""
    filters = [{"Name": f"tag:{cluster_tag(cluster)}", "Values": ["owned"]}]
    vpcs = account.client("ec2").describe_vpcs(Filters=filters)["Vpcs"]
    owned_ids = [vpc["VpcId"] for vpc in vpcs if is_owned_by(tag_map(vpc.get("Tags")), cluster)]
    # Two VPCs with this tag belong to two clusters of the same name; the tag does not tell which one is meant.
    return str(owned_ids[0]) if len(owned_ids) == 1 else ""


def _find_instances(
    account: Account, cluster: str, vpc_id: str, existing_groups: tuple[str, ...], known_groups: frozenset[str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Return the states of the cluster's instances by id, and the ids of the instances that no group launched.

    The cluster's instances are the members of the stacks' Auto Scaling groups, and all instances in the VPC with the
    cluster's tag. `known_groups` includes deleted groups: the tag that EC2 Auto Scaling adds to an instance still names
    its group after the group was deleted.
    """
    group_members: dict[str, str] = {}
    autoscaling = account.client("autoscaling")
    for start in range(0, len(existing_groups), GROUPS_BATCH_SIZE):
        names = list(existing_groups[start : start + GROUPS_BATCH_SIZE])
        for group in autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)["AutoScalingGroups"]:
            group_members.update(
                {instance["InstanceId"]: instance["LifecycleState"] for instance in group["Instances"]}
            )
    states = dict(group_members)
    unmanaged: set[str] = set()
    if vpc_id:
        filters = [
            {"Name": "vpc-id", "Values": [vpc_id]},
            {"Name": "instance-state-name", "Values": list(EXISTING_INSTANCE_STATES)},
        ]
        for page in account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters):
            for instance in (instance for reservation in page["Reservations"] for instance in reservation["Instances"]):
                tags = tag_map(instance.get("Tags"))
                state = instance["State"]["Name"]
                if not is_owned_by(tags, cluster):
                    continue
                states[instance["InstanceId"]] = state
                is_launched_by_group = (
                    instance["InstanceId"] in group_members or tags.get(AUTO_SCALING_GROUP_TAG, "") in known_groups
                )
                if not is_launched_by_group and state != "shutting-down":
                    unmanaged.add(instance["InstanceId"])
    return states, frozenset(unmanaged)
