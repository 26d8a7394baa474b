"""One quota: its usage and limit, compared with what a deployment adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.hints import Hint

ReadCount = Callable[[Account], int]
"""A function that reads a usage or a limit from AWS."""


@dataclass(frozen=True)
class Quota:
    """A quota, its usage, and how much a deployment adds to the usage.

    Attributes:
        name: what is limited.
        needed: how much the deployment adds, with every Auto Scaling group at its initial size.
        used: current usage; None if unknown.
        limit: value of the quota; None if unknown.
        sufficient: whether the quota is sufficient; None if unknown.
        hint: what to do if the quota is not sufficient, now or at the maximum size, or why it is unknown.
        needed_at_maximum: how much the deployment adds, with every group at its maximum size.
        room_to_grow: whether the quota is sufficient for the maximum size; None if unknown.
    """

    name: str
    needed: int
    used: int | None
    limit: int | None
    sufficient: bool | None
    hint: Hint = ""
    needed_at_maximum: int = 0
    room_to_grow: bool | None = None


@dataclass(frozen=True)
class QuotaCheck:
    """A quota to check, and how to read its usage and limit.

    Attributes:
        name: what is limited.
        needed: how much the deployment adds, with every group at its initial size.
        service: service code of the quota.
        code: quota code.
        used: function that returns the current usage.
        limit: function that returns the limit; if None, the limit is read from Service Quotas.
        units_per_quota_unit: how many units of `needed` and `used` are one unit of the quota in Service Quotas,
            e.g. 1024 if the quota is in TiB, and `needed` and `used` are in GiB.
        needed_at_maximum: how much the deployment adds, with every group at its maximum size, if that is more.
    """

    name: str
    needed: int
    service: str
    code: str
    used: ReadCount
    limit: ReadCount | None = None
    units_per_quota_unit: int = 1
    needed_at_maximum: int = 0


def check_quota(account: Account, quota_check: QuotaCheck) -> Quota:
    """Read a quota's usage and limit, and compare them with how much the deployment adds."""
    used = limit = sufficient = room_to_grow = None
    hint = ""
    needed_at_maximum = max(quota_check.needed_at_maximum, quota_check.needed)
    try:
        with translate_aws_errors():
            used = quota_check.used(account)
            limit = quota_check.limit(account) if quota_check.limit else _read_limit(account, quota_check)
    except AwsError as error:
        hint = str(error)
    if used is not None and limit is not None:
        sufficient = used + quota_check.needed <= limit
        room_to_grow = used + needed_at_maximum <= limit
        if not room_to_grow:
            hint = _increase_hint(account, quota_check, required_limit=used + needed_at_maximum)
    return Quota(
        quota_check.name,
        needed=quota_check.needed,
        used=used,
        limit=limit,
        sufficient=sufficient,
        hint=hint,
        needed_at_maximum=needed_at_maximum,
        room_to_grow=room_to_grow,
    )


def _increase_hint(account: Account, quota_check: QuotaCheck, *, required_limit: int) -> str:
    """Return what to do about a quota that is below the required limit."""
    # IAM is global, and its quotas are managed in us-east-1.
    region = "us-east-1" if quota_check.service == "iam" else account.region
    desired_value = ceil(required_limit / quota_check.units_per_quota_unit)
    command = (
        f"aws service-quotas request-service-quota-increase --region {region} --service-code {quota_check.service} "
        f"--quota-code {quota_check.code} --desired-value {desired_value}"
    )
    return f"delete what is not needed, or request an increase: `{command}`."


def _read_limit(account: Account, quota_check: QuotaCheck) -> int:
    """Return the account's limit, or AWS's default limit if the account has none of its own."""
    client = account.client("service-quotas")
    quota_id = {"ServiceCode": quota_check.service, "QuotaCode": quota_check.code}
    try:
        response = client.get_service_quota(**quota_id)
    except client.exceptions.NoSuchResourceException:
        # Some quotas have a value for the account only once it has been changed.
        response = client.get_aws_default_service_quota(**quota_id)
    return int(response["Quota"]["Value"] * quota_check.units_per_quota_unit)


def known_usage(count: int) -> ReadCount:
    """Return a function for `QuotaCheck.used` that returns a known usage without calling AWS."""
    return lambda _: count
