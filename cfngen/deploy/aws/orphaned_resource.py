"""A resource that Kubernetes created outside of the stacks, and the command that deletes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OrphanKind = Literal[
    "load balancer", "target group", "security group", "network interface", "route", "volume", "snapshot"
]


@dataclass(frozen=True)
class OrphanedResource:
    """A resource that Kubernetes created in AWS, and that belongs to no stack.

    Attributes:
        kind: the type of resource.
        id: its id, name or ARN, as the delete call of its service requires.
        name: its name, or its id if it has none.
        purpose: what it was created for, e.g. `Service default/web`; may be empty.
        gigabytes: size of a volume or snapshot in GiB.
        generation: `classic` for a Classic Load Balancer; else empty.
        protected: whether it has deletion protection.
        vpc_id: its VPC; empty if it is in none.
        deleted_by_aws: whether AWS deletes it by itself, some time after its owner is deleted.
        where: id of the route table, for a route.
    """

    kind: OrphanKind
    id: str
    name: str
    purpose: str = ""
    gigabytes: int = 0
    generation: str = ""
    protected: bool = False
    vpc_id: str = ""
    deleted_by_aws: bool = False
    where: str = ""

    def command(self, region: str) -> str:
        """Return the AWS CLI command that removes it; empty if AWS deletes it by itself."""
        if self.deleted_by_aws:
            return ""
        delete_load_balancer = f"elbv2 delete-load-balancer --load-balancer-arn {self.id}"
        if self.generation == "classic":
            delete_load_balancer = f"elb delete-load-balancer --load-balancer-name {self.id}"
        subcommand = {
            "load balancer": delete_load_balancer,
            "target group": f"elbv2 delete-target-group --target-group-arn {self.id}",
            "security group": f"ec2 delete-security-group --group-id {self.id}",
            "network interface": f"ec2 delete-network-interface --network-interface-id {self.id}",
            "route": f"ec2 delete-route --route-table-id {self.where} --destination-cidr-block {self.id}",
            "volume": f"ec2 delete-volume --volume-id {self.id}",
            "snapshot": f"ec2 delete-snapshot --snapshot-id {self.id}",
        }[self.kind]
        return f"aws {subcommand} --region {region}"
