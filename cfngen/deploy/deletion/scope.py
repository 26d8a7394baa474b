"""What belongs to a cluster, as far as needed to tell its resources from foreign ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cfngen.deploy.account import Account
from cfngen.deploy.deletion.kubernetes_tags import cluster_tag, owned, tag_map
from cfngen.deploy.stacks import AUTO_SCALING_GROUP, StackResource, StackView, tree

VPC = "AWS::EC2::VPC"
EXISTING_INSTANCE_STATES = ("pending", "running", "shutting-down", "stopping", "stopped")
AUTO_SCALING_GROUP_TAG = "aws:autoscaling:groupName"
GROUPS_BATCH_SIZE = 50  # names in one DescribeAutoScalingGroups


@dataclass(frozen=True)
class Scope:
    """The resources of a cluster in its AWS account.

    Attributes:
        cluster: name of the cluster.
        resources: every resource of its stacks, nested stacks included.
        vpc_id: its VPC; empty if it no longer exists, or is not known.
        own_vpc: whether the VPC is the cluster's own.
        pod_cidr: address range of the pods.
        route_tables: existing route tables, not the cluster's own, that hold routes to its pods.
        instances: ids of its instances, each with its state.
        unmanaged_instances: those of its instances that no Auto Scaling group of its stacks has launched.
        security_groups: security groups of its stacks.
        same_name_stacks: other root stacks of the region, for a cluster of the same name.
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


def find_scope(
    account: Account, stack: StackView | None, *, cluster: str, vpc_id: str = "", pod_cidr: str = ""
) -> Scope:
    """Return the scope of a cluster.

    Args:
        account: the AWS account.
        stack: its root stack; it may be deleted. None if there is no trace of it.
        cluster: name of the cluster.
        vpc_id: the existing VPC that the cluster file names; empty if the cluster makes its own.
        pod_cidr: address range of the pods.
    """
    resources = tree(account, stack.id) if stack else ()

    def ids(kind: str) -> tuple[str, ...]:
        return tuple(
            resource.view.physical_id for resource in resources if resource.exists and resource.view.type == kind
        )

    own_vpcs, parameter_vpc = ids(VPC), stack.parameters.get("VpcId", "") if stack else ""
    named_vpc = next(iter(own_vpcs), "") or parameter_vpc or vpc_id
    cluster_vpc = named_vpc or _find_vpc_by_tag(account, cluster)
    route_table = stack.parameters.get("RouteTableId", "") if stack else ""
    known_groups = frozenset(
        resource.view.physical_id for resource in resources if resource.view.type == AUTO_SCALING_GROUP
    )
    instances, unmanaged = _find_instances(account, cluster, cluster_vpc, ids(AUTO_SCALING_GROUP), known_groups)
    if unmanaged and not own_vpcs and not ids(AUTO_SCALING_GROUP):
        # A stack that is deleted, empty or misspelt has no instances: these are another cluster's of the same name.
        instances = {key: state for key, state in instances.items() if key not in unmanaged}
        cluster_vpc, unmanaged = named_vpc, frozenset()
    return Scope(
        cluster=cluster,
        resources=resources,
        vpc_id=cluster_vpc,
        own_vpc=bool(cluster_vpc) and cluster_vpc not in (parameter_vpc, vpc_id),
        pod_cidr=pod_cidr,
        route_tables=(route_table,) if route_table and route_table not in ids("AWS::EC2::RouteTable") else (),
        instances=instances,
        unmanaged_instances=unmanaged if resources else frozenset(),
        security_groups=ids("AWS::EC2::SecurityGroup"),
    )


def _find_vpc_by_tag(account: Account, cluster: str) -> str:
    """Return the VPC that is left of a cluster whose stack is deleted; empty if there is none."""
    filters = [{"Name": f"tag:{cluster_tag(cluster)}", "Values": ["owned"]}]
    vpcs = account.client("ec2").describe_vpcs(Filters=filters)["Vpcs"]
    owned_ids = [vpc["VpcId"] for vpc in vpcs if owned(tag_map(vpc.get("Tags")), cluster)]
    # Two such VPCs belong to two clusters of the same name, and nothing says which one is meant.
    return str(owned_ids[0]) if len(owned_ids) == 1 else ""


def _find_instances(
    account: Account, cluster: str, vpc_id: str, groups: tuple[str, ...], known_groups: frozenset[str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Return the cluster's instances with their states, and those of them that no group has launched.

    Its instances are the members of the stacks' Auto Scaling groups, and those in the VPC with the cluster's tag. The
    tag that EC2 Auto Scaling adds to instances still names a group that has been deleted meanwhile.
    """
    group_members: dict[str, str] = {}
    autoscaling = account.client("autoscaling")
    for start in range(0, len(groups), GROUPS_BATCH_SIZE):
        names = list(groups[start : start + GROUPS_BATCH_SIZE])
        for group in autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)["AutoScalingGroups"]:
            group_members.update(
                {instance["InstanceId"]: instance["LifecycleState"] for instance in group["Instances"]}
            )
    states, unmanaged = dict(group_members), set()
    if vpc_id:
        filters = [
            {"Name": "vpc-id", "Values": [vpc_id]},
            {"Name": "instance-state-name", "Values": list(EXISTING_INSTANCE_STATES)},
        ]
        for page in account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters):
            for instance in (instance for reservation in page["Reservations"] for instance in reservation["Instances"]):
                tags, state = tag_map(instance.get("Tags")), instance["State"]["Name"]
                if not owned(tags, cluster):
                    continue
                states[instance["InstanceId"]] = state
                is_launched_by_group = (
                    instance["InstanceId"] in group_members or tags.get(AUTO_SCALING_GROUP_TAG, "") in known_groups
                )
                if not is_launched_by_group and state != "shutting-down":
                    unmanaged.add(instance["InstanceId"])
    return states, frozenset(unmanaged)
