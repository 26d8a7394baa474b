"""Explains why instances did not boot, from their consoles, and what to do if the type of a master is sold out.

A step that cannot reach a server names the server, but not what leads there: a route, a gateway, or a VPC endpoint. In
a private subnet that is usually what is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.consoles import ConsoleExcerpt
from cfngen.deploy.aws.errors import AwsError, as_aws_error
from cfngen.deploy.aws.instance_types import find_similar_types
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, list_resource_tree
from cfngen.deploy.messages.message import Event
from cfngen.deploy.messages.next_steps import replace_command
from cfngen.deploy.watching.reasons import Explanation, is_lack_of_capacity
from cfngen.hints import CommandText, Hint

# The texts of botocore's ConnectTimeoutError and EndpointConnectionError.
_UNREACHABLE_SERVICE = re.compile(
    r'(?:Connect timeout on|Could not connect to the) endpoint URL: "https://(?P<host>[\w.-]+)'
)
# The name of a service at the end of an endpoint's host, e.g. `bucket.s3.us-west-2.amazonaws.com`.
_SERVICE = re.compile(r"(?:^|\.)(?P<service>[a-z0-9-]+)\.[a-z]+(?:-[a-z]+)+-\d\.amazonaws\.com")
_UNRESOLVED_NAME = re.compile(r"Temporary failure (?:in name resolution|resolving)|Name or service not known")
_UNREACHABLE_SERVER = re.compile(
    r"<urlopen error (?:timed out|\[Errno \d+\] (?:Network is unreachable|No route to host|Connection timed out))"
    r"|can reach its package mirror|\[ERROR ImagePull\].*(?:i/o timeout|deadline exceeded)",
    re.DOTALL,
)


TYPES_WITH_SIGNALS = (AUTO_SCALING_GROUP, "AWS::CloudFormation::WaitCondition")
"""Types of resources that are complete when instances have signalled success."""


class ErrorsAsNotes:
    """Context manager that turns errors of AWS into notes: missing details never hide the cause of a failure."""

    def __init__(self) -> None:
        self.notes: tuple[str, ...] = ()

    def __enter__(self) -> ErrorsAsNotes:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        from botocore.exceptions import BotoCoreError, ClientError

        if isinstance(error, (BotoCoreError, ClientError)):
            error = as_aws_error(error)
        if is_of_aws := isinstance(error, AwsError):
            self.notes = (str(error),)
        return is_of_aws


def find_group(account: Account, event: Event) -> str:
    """Return the name of the Auto Scaling group whose instances a resource waits for; empty if there is none.

    Args:
        event: about the group itself, or about the wait condition of a master. A condition is in the root stack, the
            master's group in a nested stack.
    """
    condition = MasterId.parse(event.logical_id)
    if event.type == AUTO_SCALING_GROUP or condition is None:
        return event.physical_id if event.type == AUTO_SCALING_GROUP else ""
    group_id = str(condition.sibling("AutoScalingGroup"))
    groups = (
        resource.view
        for resource in list_resource_tree(account, event.stack_id)
        if resource.view.logical_id == group_id
    )
    return next((group.physical_id for group in groups), "")


def explain_consoles(consoles: Iterable[ConsoleExcerpt], region: str) -> Explanation:
    """Return what instances could not reach, and what leads there; an empty explanation if the cause is another one."""
    lines = [line for console in consoles for line in reversed(console.lines)]
    return next(_explanations(lines, region), Explanation())


def _explanations(lines: list[str], region: str) -> Iterator[Explanation]:
    for line in lines:
        if match := _UNREACHABLE_SERVICE.search(line):
            yield _explain_service(match["host"], region)
        elif _UNRESOLVED_NAME.search(line):
            yield Explanation(
                "the instances cannot resolve names",
                "check the VPC's attribute enableDnsSupport, and the name servers in its DHCP options.",
            )
        elif _UNREACHABLE_SERVER.search(line):
            yield Explanation(
                "the instances have no way to the internet, or to the mirror",
                f"{_default_route(region)} Without a way to the internet, the cluster file needs assets.mirror and "
                "containerd.registryMirrors, and packages must come from the image, or from repositories that "
                "preBootCommands set up.",
            )


def _explain_service(host: str, region: str) -> Explanation:
    match = _SERVICE.search(host)
    service = match["service"] if match else host
    name = f"com.amazonaws.{region}.{service}"
    if service == "s3":
        endpoint = f"a gateway endpoint {name} in the route tables of the instances' subnets"
    else:
        endpoint = (
            f"an interface endpoint {name} with private DNS, whose security group admits masters and nodes on port 443"
        )
    return Explanation(
        f"the instances cannot reach {host}",
        f"without a way to the internet the VPC needs {endpoint}: `aws ec2 describe-vpc-endpoints --region {region} "
        f"--filters Name=service-name,Values={name}` shows what there is. Otherwise {_default_route(region)}",
    )


def _default_route(region: str) -> str:
    return (
        "check the route 0.0.0.0/0 of the instances' subnets: in a private subnet it leads to a NAT gateway, which is "
        "available and in a subnet with a route to an internet gateway; in a public subnet it leads to the internet "
        f"gateway, and instances need public addresses. `aws ec2 describe-route-tables --region {region}` shows the "
        "routes."
    )


# "Troubleshoot instance launch issues", Amazon EC2 User Guide: InsufficientInstanceCapacity.
_SOLD_OUT = re.compile(
    r"sufficient (?P<type>[\w.-]+) capacity in the Availability Zone you requested \((?P<zone>[\w-]+)\)"
)


def sold_out_master_hint(account: Account, event: Event, launch_failures: Iterable[str]) -> Hint:
    """Return what to do if the type of a master is sold out; empty for other failures and for other groups.

    A slot that is being created is taken back with everything else, so another type belongs into the cluster file then.

    Args:
        launch_failures: why the group could not launch instances, the newest first.
    """
    master = MasterId.parse(event.logical_id)
    if master is None or event.status != "UPDATE_FAILED":
        return ""
    for failure in launch_failures:
        if is_lack_of_capacity(failure):
            match = _SOLD_OUT.search(failure)
            return sold_out_hint(account, master.letter, match["type"] if match else "", match["zone"] if match else "")
    return ""


def sold_out_hint(account: Account, slot: str, instance_type: str, zone: str) -> CommandText:
    """Return what to do for a master whose type is sold out in its zone."""
    similar_types = find_similar_types(account, instance_type, zone) if instance_type and zone else ()
    if not similar_types:
        return CommandText(
            "wait, since the group tries again and again, or launch another type: ", replace_command(slot), "."
        )
    first, *others = similar_types
    alternatives = f" (or {', '.join(others)}, which {zone} offers, too)" if others else ""
    return CommandText(
        "wait, since the group tries again and again, or launch another type: ",
        replace_command(slot, first),
        f"{alternatives}.",
    )
