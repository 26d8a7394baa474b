"""One thing that Kubernetes made outside of the stack, and the way AWS says no to its removal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal

from cfngen.deploy.aws_errors import error_code
from cfngen.deploy.messages import Message

Kind = Literal[
    "load balancer",
    "target group",
    "security group",
    "network interface",
    "route",
    "volume",
    "snapshot",
]

# The same situation bears a name of its own in each service and for each kind of thing.
GONE = frozenset(
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
HELD = frozenset(
    {
        "DependencyViolation",
        "InvalidGroup.InUse",
        "InvalidNetworkInterface.InUse",
        "InvalidParameterValue",  # DeleteNetworkInterface of one that is being detached
        "IncorrectState",
        "InvalidSnapshot.InUse",
        "OperationInProgress",
        "ResourceInUse",
        "VolumeInUse",
    }
)


@dataclass(frozen=True)
class OrphanedResource:
    """Something that Kubernetes made in AWS, and that no stack knows of.

    Attributes:
        kind: what it is.
        id: its id, name or ARN, whichever its service takes.
        name: what people call it; may be its id.
        purpose: what it was made for, e.g. `Service default/web`; may be empty.
        gigabytes: size of a volume or snapshot in GiB.
        generation: `classic` of a Classic Load Balancer; else empty.
        protected: whether it is protected from deletion.
        vpc_id: where it is; empty for what lies in no VPC.
        waits: whether it goes by itself, once what it belongs to is gone.
        where: the route table of a route.
    """

    kind: Kind
    id: str
    name: str
    purpose: str = ""
    gigabytes: int = 0
    generation: str = ""
    protected: bool = False
    vpc_id: str = ""
    waits: bool = False
    where: str = ""

    def command(self, region: str) -> str:
        """Return the command of the AWS CLI that removes it; empty if it can only be waited for."""
        if self.waits:
            return ""
        old = f"elb delete-load-balancer --load-balancer-name {self.id}"
        call = {
            "load balancer": old if self.generation else f"elbv2 delete-load-balancer --load-balancer-arn {self.id}",
            "target group": f"elbv2 delete-target-group --target-group-arn {self.id}",
            "security group": f"ec2 delete-security-group --group-id {self.id}",
            "network interface": f"ec2 delete-network-interface --network-interface-id {self.id}",
            "route": f"ec2 delete-route --route-table-id {self.where} --destination-cidr-block {self.id}",
            "volume": f"ec2 delete-volume --volume-id {self.id}",
            "snapshot": f"ec2 delete-snapshot --snapshot-id {self.id}",
        }[self.kind]
        return f"aws {call} --region {region}"


@dataclass(frozen=True)
class Removed(Message):
    """Something that Kubernetes had made is gone, or has been told to go.

    Attributes:
        leftover: what.
    """

    kind: ClassVar[str] = "removed"
    leftover: OrphanedResource


@dataclass
class Attempt:
    """One try at removing something.

    Attributes:
        held: whether something else still needs it, so that a later try may succeed.
        gone: whether it was gone already.
    """

    held: bool = False
    gone: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether AWS has accepted the removal."""
        return not self.held and not self.gone


@contextmanager
def attempt() -> Iterator[Attempt]:
    """Let the body remove something; that it is gone already, or still needed by something else, is no error."""
    from botocore.exceptions import ClientError

    tried = Attempt()
    try:
        yield tried
    except ClientError as error:
        code = error_code(error)
        tried.gone, tried.held = code in GONE, code in HELD
        if not tried.gone and not tried.held:
            raise


def remove_each(
    found: Iterable[OrphanedResource], remove: Callable[[OrphanedResource], object]
) -> tuple[OrphanedResource, ...]:
    """Remove things one by one; return those whose removal AWS has accepted. What is still needed stays for later."""
    accepted = []
    for each in found:
        with attempt() as tried:
            remove(each)
        if tried.succeeded:
            accepted.append(each)
    return tuple(accepted)
