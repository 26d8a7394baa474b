"""The inventory of a cluster: the resources of its stacks, its VPC and its instances.

The other modules use it to tell the cluster's resources from foreign ones in the same account or VPC.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cfngen.cluster.network.existing_parts import GROUP_ROLES, group_parameter
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.groups import describe_groups, describe_instances
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, StackResource, StackView, list_resource_tree
from cfngen.deploy.aws.tags import cluster_tag, is_owned_by, tag_map

VPC_TYPE = "AWS::EC2::VPC"
EXISTING_INSTANCE_STATES = ("pending", "running", "shutting-down", "stopping", "stopped")
AUTO_SCALING_GROUP_TAG = "aws:autoscaling:groupName"


@dataclass(frozen=True)
class Inventory:
    """The resources of a cluster in its AWS account.

    Attributes:
        vpc_id: its VPC; empty if it no longer exists, or is not known.
        own_vpc: whether the VPC was created for the cluster and did not exist before it.
        route_tables: existing route tables, not created by the stacks, that contain routes to its pods.
        instances: states of its instances, by instance id: the instance state of EC2, or the lifecycle state in the
            Auto Scaling group.
        unmanaged_instances: ids of its instances that no Auto Scaling group of its stacks launched.
        existing_security_groups: security groups that the stacks use and did not create: they are never deleted.
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
    existing_security_groups: frozenset[str] = frozenset()
    same_name_stacks: tuple[str, ...] = ()

    @property
    def has_infrastructure(self) -> bool:
        """Whether the stacks have a VPC or Auto Scaling groups.

        If not, networks and instances tagged for the cluster belong to another cluster of the same name.
        """
        return bool(self.existing_ids(VPC_TYPE) or self.existing_ids(AUTO_SCALING_GROUP))

    def ids(self, resource_type: str = "") -> frozenset[str]:
        """Return the physical ids of the resources that the stacks have or had, of one type or (empty) of all types."""
        return frozenset(
            resource.view.physical_id
            for resource in self.resources
            if resource.view.physical_id and resource_type in ("", resource.view.type)
        )

    @property
    def load_balancers(self) -> frozenset[str]:
        """The names of the load balancers that the stacks have or had, from their ARNs."""
        arns = self.ids("AWS::ElasticLoadBalancingV2::LoadBalancer")
        return frozenset(arn.split("/")[-2] for arn in arns if arn.count("/") > 1)

    def existing_ids(self, resource_type: str) -> tuple[str, ...]:
        """Return the physical ids of the resources of one type that the stacks have now."""
        return _existing_ids(self.resources, resource_type)


def read_inventory(
    account: Account, stack: StackView | None, *, cluster: str, vpc_id: str = "", pod_cidr: str = ""
) -> Inventory:
    """Return the inventory of a cluster.

    Args:
        stack: the cluster's root stack, which may be deleted; None if CloudFormation knows no stack of that name.
        vpc_id: the existing VPC that the cluster file names; empty if the stack creates one.
    """
    resources = list_resource_tree(account, stack.id) if stack else ()
    own_vpcs = _existing_ids(resources, VPC_TYPE)
    existing_group_names = _existing_ids(resources, AUTO_SCALING_GROUP)
    parameter_vpc = stack.values.get("VpcId", "") if stack else ""
    named_vpc = next(iter(own_vpcs), "") or parameter_vpc or vpc_id
    cluster_vpc = named_vpc or _find_vpc_by_tag(account, cluster)
    known_group_names = frozenset(
        resource.view.physical_id for resource in resources if resource.view.type == AUTO_SCALING_GROUP
    )
    instances, unmanaged_ids = _find_instances(
        account, cluster, cluster_vpc, existing_group_names=existing_group_names, known_group_names=known_group_names
    )
    if unmanaged_ids and not own_vpcs and not existing_group_names:
        # A stack that is deleted, empty or misspelt has no instances, so these belong to another cluster of that name.
        instances = {instance_id: state for instance_id, state in instances.items() if instance_id not in unmanaged_ids}
        cluster_vpc, unmanaged_ids = named_vpc, frozenset()
    return Inventory(
        cluster=cluster,
        resources=resources,
        vpc_id=cluster_vpc,
        own_vpc=bool(cluster_vpc) and cluster_vpc not in (parameter_vpc, vpc_id),
        pod_cidr=pod_cidr,
        route_tables=_existing_route_tables(stack, resources) if stack else (),
        instances=instances,
        # Without a stack, no group is known, and every instance would be listed as unmanaged.
        unmanaged_instances=unmanaged_ids if resources else frozenset(),
        security_groups=_existing_ids(resources, "AWS::EC2::SecurityGroup"),
        existing_security_groups=_existing_security_groups(stack) if stack else frozenset(),
    )


def _existing_route_tables(stack: StackView, resources: Iterable[StackResource]) -> tuple[str, ...]:
    route_table = stack.values.get("RouteTableId", "")
    is_created = route_table in _existing_ids(resources, "AWS::EC2::RouteTable")
    return (route_table,) if route_table and not is_created else ()


def _existing_security_groups(stack: StackView) -> frozenset[str]:
    names = map(group_parameter, GROUP_ROLES)
    return frozenset(stack.parameters[name] for name in names if name in stack.parameters)


def _existing_ids(resources: Iterable[StackResource], resource_type: str) -> tuple[str, ...]:
    return tuple(
        resource.view.physical_id for resource in resources if resource.exists and resource.view.type == resource_type
    )


def _find_vpc_by_tag(account: Account, cluster: str) -> str:
    """Return the VPC that is left of a cluster whose stack is deleted; empty if there is none."""
    vpcs = account.items("ec2.describe_vpcs", "Vpcs", filters={f"tag:{cluster_tag(cluster)}": ["owned"]})
    owned_ids = [vpc["VpcId"] for vpc in vpcs if is_owned_by(tag_map(vpc.get("Tags")), cluster)]
    # Two VPCs with this tag belong to two clusters of the same name; the tag does not tell which one is meant.
    return str(owned_ids[0]) if len(owned_ids) == 1 else ""


def _find_instances(
    account: Account,
    cluster: str,
    vpc_id: str,
    *,
    existing_group_names: tuple[str, ...],
    known_group_names: frozenset[str],
) -> tuple[dict[str, str], frozenset[str]]:
    """Return the states of the cluster's instances by id, and the ids of those that no group of the stacks launched.

    The cluster's instances are the members of the stacks' Auto Scaling groups, and all instances in the VPC with the
    cluster's tag.

    Args:
        vpc_id: the cluster's VPC; empty if it is not known.
        known_group_names: names of existing and of deleted groups: the tag that EC2 Auto Scaling adds to an instance
            still names its group after the group was deleted.
    """
    states_of_group_members = {
        instance["InstanceId"]: instance["LifecycleState"]
        for group in describe_groups(account, existing_group_names)
        for instance in group["Instances"]
    }
    states_of_tagged_instances: dict[str, str] = {}
    unmanaged_ids: set[str] = set()
    in_vpc = {"vpc-id": [vpc_id], "instance-state-name": EXISTING_INSTANCE_STATES}
    for instance in describe_instances(account, in_vpc) if vpc_id else ():
        tags = tag_map(instance.get("Tags"))
        state = instance["State"]["Name"]
        if not is_owned_by(tags, cluster):
            continue
        states_of_tagged_instances[instance["InstanceId"]] = state
        is_launched_by_group = (
            instance["InstanceId"] in states_of_group_members
            or tags.get(AUTO_SCALING_GROUP_TAG, "") in known_group_names
        )
        if not is_launched_by_group and state != "shutting-down":
            unmanaged_ids.add(instance["InstanceId"])
    # The instance state of EC2 replaces the lifecycle state in the group.
    return {**states_of_group_members, **states_of_tagged_instances}, frozenset(unmanaged_ids)
