"""A resource that Kubernetes created outside of the stacks, and the AWS errors that its deletion can fail with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal

from cfngen.deploy.aws_errors import error_code
from cfngen.deploy.messages.message import Message

OrphanKind = Literal[
    "load balancer",
    "target group",
    "security group",
    "network interface",
    "route",
    "volume",
    "snapshot",
]

# Each AWS service, and each type of resource, has different error codes for the same situation.
NOT_FOUND_CODES = frozenset(
    {
        "InvalidGroup.NotFound",
        "InvalidGroupId.Malformed",
        "InvalidNetworkInterfaceID.NotFound",
        "InvalidPermission.NotFound",
        "InvalidSecurityGroupRuleId.NotFound",
        "InvalidRoute.NotFound",
        "InvalidRouteTableID.NotFound",
        "InvalidSecurityGroupID.NotFound",
        "InvalidSnapshot.NotFound",
        "InvalidVolume.NotFound",
        "ListenerNotFound",
        "LoadBalancerNotFound",
        "TargetGroupNotFound",
    }
)
IN_USE_CODES = frozenset(
    {
        "DependencyViolation",
        "InvalidGroup.InUse",
        "InvalidNetworkInterface.InUse",
        "InvalidParameterValue",  # DeleteNetworkInterface, for an interface that is being detached
        "IncorrectState",
        "InvalidSnapshot.InUse",
        "OperationInProgress",
        "ResourceInUse",
        "VolumeInUse",
    }
)


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


@dataclass(frozen=True)
class OrphanRemoved(Message):
    """A resource that Kubernetes created has been deleted, or AWS has accepted its deletion.

    Attributes:
        orphan: the resource.
    """

    kind: ClassVar[str] = "removed"
    orphan: OrphanedResource


@dataclass
class CallOutcome:
    """The outcome of a call of AWS, such as the deletion of a resource.

    Attributes:
        in_use: whether AWS refused, because another resource still uses the resource; a later call may succeed.
        not_found: whether AWS refused, because the resource does not exist (any more).
    """

    in_use: bool = False
    not_found: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether AWS has accepted the call."""
        return not self.in_use and not self.not_found


@contextmanager
def catch_missing_or_in_use() -> Iterator[CallOutcome]:
    """Catch AWS's errors for a resource that does not exist or is in use, and record them in the yielded outcome."""
    from botocore.exceptions import ClientError

    outcome = CallOutcome()
    try:
        yield outcome
    except ClientError as error:
        code = error_code(error)
        outcome.not_found = code in NOT_FOUND_CODES
        outcome.in_use = code in IN_USE_CODES
        if not outcome.not_found and not outcome.in_use:
            raise


def remove_each(
    orphans: Iterable[OrphanedResource], remove: Callable[[OrphanedResource], object]
) -> tuple[OrphanedResource, ...]:
    """Call `remove` for each resource; return those whose deletion AWS has accepted.

    Resources that are still in use, or do not exist any more, are not returned.
    """
    accepted = []
    for orphan in orphans:
        with catch_missing_or_in_use() as outcome:
            remove(orphan)
        if outcome.succeeded:
            accepted.append(orphan)
    return tuple(accepted)
