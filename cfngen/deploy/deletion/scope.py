"""What a cluster consists of, as far as it takes to tell its things from those of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cfngen.deploy.account import Account
from cfngen.deploy.deletion.kubernetes_tags import cluster_tag, owned, tag_map
from cfngen.deploy.stacks import GROUP, StackResource, StackView, tree

VPC = "AWS::EC2::VPC"
ALIVE = ("pending", "running", "shutting-down", "stopping", "stopped")
LAUNCHED_BY = "aws:autoscaling:groupName"
AT_ONCE = 50  # names in one DescribeAutoScalingGroups


@dataclass(frozen=True)
class Scope:
    """A cluster in its account.

    Attributes:
        cluster: name of the cluster.
        resources: every resource of its stacks; nested stacks too.
        vpc_id: its VPC; empty if there is none any more, or it is not known.
        own_vpc: whether the VPC is the cluster's own.
        pod_cidr: address range of the pods.
        route_tables: route tables that are not the cluster's own, and hold its routes.
        instances: ids of its instances, and the states they are in.
        outsiders: those of its instances that no group of its stacks has launched.
        security_groups: security groups of its stacks.
        namesakes: other roots of the region that have a cluster of this name.
    """

    cluster: str
    resources: tuple[StackResource, ...] = ()
    vpc_id: str = ""
    own_vpc: bool = False
    pod_cidr: str = ""
    route_tables: tuple[str, ...] = ()
    instances: Mapping[str, str] = field(default_factory=dict)
    outsiders: frozenset[str] = frozenset()
    security_groups: tuple[str, ...] = ()
    namesakes: tuple[str, ...] = ()

    @property
    def standing(self) -> bool:
        """Whether the stacks have a network or machines; if not, those that bear the cluster's tags are not theirs."""
        return bool(self.alive(VPC) or self.alive(GROUP))

    def ids(self, kind: str = "") -> frozenset[str]:
        """Return the physical ids of all that the stacks have or had, or of those of one type."""
        return frozenset(
            resource.view.physical_id
            for resource in self.resources
            if resource.view.physical_id and kind in ("", resource.view.type)
        )

    @property
    def load_balancers(self) -> frozenset[str]:
        """Return the names of the load balancers that the stacks have or had, as they stand in their ARNs."""
        arns = self.ids("AWS::ElasticLoadBalancingV2::LoadBalancer")
        return frozenset(arn.split("/")[-2] for arn in arns if arn.count("/") > 1)

    def alive(self, kind: str) -> tuple[str, ...]:
        """Return the physical ids of what the stacks have now of one type."""
        return tuple(
            resource.view.physical_id for resource in self.resources if resource.exists and resource.view.type == kind
        )


def of_stack(account: Account, stack: StackView | None, *, cluster: str, vpc_id: str = "", pod_cidr: str = "") -> Scope:
    """Return the scope of a cluster.

    Args:
        account: where it is.
        stack: its root, deleted perhaps; None if even its ARN is not known.
        cluster: name of the cluster.
        vpc_id: the existing VPC that the cluster file names; empty if the cluster makes its own.
        pod_cidr: address range of the pods.
    """
    members = tree(account, stack.id) if stack else ()

    def ids(kind: str) -> tuple[str, ...]:
        return tuple(member.view.physical_id for member in members if member.exists and member.view.type == kind)

    own, given = ids(VPC), stack.parameters.get("VpcId", "") if stack else ""
    named = next(iter(own), "") or given or vpc_id
    vpc = named or _tagged_vpc(account, cluster)
    table = stack.parameters.get("RouteTableId", "") if stack else ""
    known = frozenset(member.view.physical_id for member in members if member.view.type == GROUP)
    instances, outsiders = _instances(account, cluster, vpc, ids(GROUP), known)
    if outsiders and not own and not ids(GROUP):
        # Of a stack that is gone, empty or misspelt nothing runs: these are a living cluster's of the same name.
        instances = {key: state for key, state in instances.items() if key not in outsiders}
        vpc, outsiders = named, frozenset()
    return Scope(
        cluster=cluster,
        resources=members,
        vpc_id=vpc,
        own_vpc=bool(vpc) and vpc not in (given, vpc_id),
        pod_cidr=pod_cidr,
        route_tables=(table,) if table and table not in ids("AWS::EC2::RouteTable") else (),
        instances=instances,
        outsiders=outsiders if members else frozenset(),
        security_groups=ids("AWS::EC2::SecurityGroup"),
    )


def _tagged_vpc(account: Account, cluster: str) -> str:
    """The VPC that is left of a cluster whose stack is gone."""
    filters = [{"Name": f"tag:{cluster_tag(cluster)}", "Values": ["owned"]}]
    vpcs = account.client("ec2").describe_vpcs(Filters=filters)["Vpcs"]
    mine = [vpc["VpcId"] for vpc in vpcs if owned(tag_map(vpc.get("Tags")), cluster)]
    # Two of them are two clusters of one name, and nothing says which is meant.
    return str(mine[0]) if len(mine) == 1 else ""


def _instances(
    account: Account, cluster: str, vpc_id: str, groups: tuple[str, ...], known: frozenset[str]
) -> tuple[dict[str, str], frozenset[str]]:
    """Members of the stacks' groups with what bears the cluster's tag in its VPC, and which of these no group has.

    A group that is gone still is in the tag that EC2 Auto Scaling gives to the instances it launches.
    """
    members: dict[str, str] = {}
    scaling = account.client("autoscaling")
    for start in range(0, len(groups), AT_ONCE):
        names = list(groups[start : start + AT_ONCE])
        for group in scaling.describe_auto_scaling_groups(AutoScalingGroupNames=names)["AutoScalingGroups"]:
            members.update({instance["InstanceId"]: instance["LifecycleState"] for instance in group["Instances"]})
    found, outsiders = dict(members), set()
    if vpc_id:
        filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "instance-state-name", "Values": list(ALIVE)}]
        for page in account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters):
            for each in (instance for reservation in page["Reservations"] for instance in reservation["Instances"]):
                tags, state = tag_map(each.get("Tags")), each["State"]["Name"]
                if not owned(tags, cluster):
                    continue
                found[each["InstanceId"]] = state
                launched = each["InstanceId"] in members or tags.get(LAUNCHED_BY, "") in known
                if not launched and state != "shutting-down":
                    outsiders.add(each["InstanceId"])
    return found, frozenset(outsiders)
