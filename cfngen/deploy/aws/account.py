"""The AWS account and region that a command works in, with the boto3 clients for it."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cfngen.deploy.aws.checked_answers import check_answers
from cfngen.deploy.aws.errors import RegionError, suppress_codes, translate_aws_errors
from cfngen.deploy.aws.types import AwsObject, Client, Clock, Session
from cfngen.errors import CfngenError

MAX_ATTEMPTS = 8  # of each call, including the first
TIMEOUTS_SECONDS = {"connect_timeout": 10, "read_timeout": 60}  # arguments of botocore's Config
# "The maximum number of filter values specified in a single request is 200" (FilterLimitExceeded, "Error codes for the
# Amazon EC2 API").
MAX_FILTER_VALUES = 200

Filters: TypeAlias = Mapping[str, Collection[str]]
"""Values by the name of a filter of EC2 or Auto Scaling; what matches has one of the values of each filter."""


class WrongAccountError(CfngenError):
    """The credentials belong to another account than the expected one."""

    code = "wrong-account"


@dataclass(frozen=True)
class Account:
    """One region of one AWS account, and the identity that calls AWS.

    Attributes:
        id: number of the account, twelve digits.
        partition: `aws`, `aws-cn`, `aws-us-gov`, …
        caller: ARN of the calling user or role.
        attempts: maximum number of attempts for a call, including the first.
    """

    id: str
    region: str
    partition: str
    caller: str
    session: Session
    clock: Clock
    attempts: int = MAX_ATTEMPTS
    _clients: dict[str, Client] = field(default_factory=dict, repr=False, compare=False)

    def client(self, service: str) -> Client:
        """Return the boto3 client of a service in this region; always the same one."""
        if service not in self._clients:
            self._clients[service] = _new_client(self.session, service, self.region, self.attempts)
        return self._clients[service]

    def items(self, call: str, key: str, *, filters: Filters | None = None, **arguments: object) -> Iterator[AwsObject]:
        """Yield every object that the pages of a call list; errors of boto3 are not translated.

        EC2 fails a call with the id of something that does not exist, but not one with a filter for it.

        Args:
            call: service and method of its client, e.g. `ec2.describe_volumes`.
            key: key of the objects in the response, e.g. `Volumes`, or several with dots between them.
            filters: the values that the first filter has may be many, which takes several calls, or none, which takes
                no call, since nothing matches.
        """
        service, operation = call.split(".")
        client = self.client(service)
        for batch in _filter_batches(filters or {}):
            if batch:
                # DescribeNatGateways has `Filter`, the other operations have `Filters`.
                argument = "Filter" if operation == "describe_nat_gateways" else "Filters"
                arguments[argument] = [{"Name": name, "Values": values} for name, values in batch.items()]
            for page in _pages(client, operation, arguments):
                listed: Any = functools.reduce(lambda found, part: found.get(part, {}), key.split("."), page)
                yield from listed

    def read(self, call: str, *, absent: Collection[str] = (), **arguments: object) -> AwsObject | None:
        """Return the response to a call, or None if AWS refuses it with an error code in `absent`.

        Other errors of boto3 are not translated.
        """
        service, operation = call.split(".")
        with suppress_codes(absent):
            response: AwsObject = getattr(self.client(service), operation)(**arguments)
            return response
        return None

    @property
    def only_planning(self) -> bool:
        """Whether this account may only be used for a plan, which changes nothing permanently."""
        return False

    @property
    def url_suffix(self) -> str:
        """Domain of the partition's endpoints, e.g. `amazonaws.com`."""
        from botocore.loaders import create_loader

        partitions = create_loader().load_data("partitions")["partitions"]
        return next(
            str(partition["outputs"]["dnsSuffix"]) for partition in partitions if partition["id"] == self.partition
        )

    def create_clients(self, services: tuple[str, ...]) -> None:
        """Create clients before threads use them: boto3's clients are thread-safe, but their creation is not."""
        for service in services:
            self.client(service)


def connect(
    session: Session, region: str, *, clock: Clock, expected_account: str = "", attempts: int = MAX_ATTEMPTS
) -> Account:
    """Return the account of the session's credentials; every command calls this first, so bad credentials fail early.

    Args:
        expected_account: number of the account that the credentials must belong to; empty accepts any.

    Raises:
        AwsError: credentials are missing or refused, the region does not exist, or AWS does not answer.
        WrongAccountError: the credentials belong to another account.
    """
    with translate_aws_errors():
        # STS exists in every region, so its regions are those that boto3 knows.
        is_known_region = any(
            region in session.get_available_regions("sts", available_partition)
            for available_partition in session.get_available_partitions()
        )
        if not is_known_region:
            hint = "correct `region` in the cluster file, or update boto3."
            raise RegionError(f"{region} is not a known region", hint=hint)
        identity = _new_client(session, "sts", region, attempts).get_caller_identity()
    caller = str(identity["Arn"])
    if expected_account and identity["Account"] != expected_account:
        raise WrongAccountError(
            f"these credentials belong to account {identity['Account']} ({caller}), not to {expected_account}",
            hint="choose another --profile, or correct --account.",
        )
    return Account(
        id=str(identity["Account"]),
        region=region,
        partition=caller.split(":")[1],  # the caller's ARN is arn:PARTITION:…
        caller=caller,
        session=session,
        clock=clock,
        attempts=attempts,
    )


def batches(values: Collection[str], size: int) -> Iterator[list[str]]:
    """Yield the values in lists of at most this size."""
    ordered = list(values)
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def _pages(client: Client, operation: str, arguments: Mapping[str, object]) -> Iterator[AwsObject]:
    """Yield the pages of a list; botocore has no paginator for some operations that answer with a token."""
    if client.can_paginate(operation):
        yield from client.get_paginator(operation).paginate(**arguments)
        return
    token: dict[str, object] = {}
    while True:
        page = getattr(client, operation)(**arguments, **token)
        yield page
        if not page.get("NextToken"):
            return
        token = {"NextToken": page["NextToken"]}


def _filter_batches(filters: Filters) -> Iterator[dict[str, list[str]]]:
    """Yield filters that EC2 accepts in one call each, of which the first has a part of its values."""
    if not filters:
        yield {}
        return
    split, *others = filters
    for values in batches(filters[split], MAX_FILTER_VALUES):
        yield {split: values, **{name: list(filters[name]) for name in others}}


def _new_client(session: Session, service: str, region: str, attempts: int) -> Client:
    from botocore.config import Config

    from cfngen import __version__

    retries = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(retries=retries, user_agent_extra=f"cfngen/{__version__}", **TIMEOUTS_SECONDS)
    return check_answers(session.client(service, region_name=region, config=config))
