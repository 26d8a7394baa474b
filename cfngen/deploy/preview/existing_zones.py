"""Checks that existing hosted zones named in the cluster file can have the API's record.

Otherwise Route 53 refuses the record in the middle of a creation or update, or clients do not find the API: a name in a
public zone leads everybody to the public endpoint, one in a private zone leads clients in its VPCs to the internal one.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.network import DnsZone
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors


def find_problems(account: Account, cluster: Cluster) -> Iterator[str]:
    """Yield a problem for each existing zone that does not exist, is of the other kind, or is of another domain.

    A zone that cannot be read because of another error of AWS has no problem.
    """
    dns = cluster.api.dns
    if dns is None:
        return
    for key, zone, is_private in (("publicZone", dns.public_zone, False), ("privateZone", dns.private_zone, True)):
        if zone and zone.id:
            problem = _find_problem(account, dns.name, zone, is_private=is_private)
            if problem:
                yield f"api.dns.{key}.id: {problem}"


def _find_problem(account: Account, name: str, zone: DnsZone, *, is_private: bool) -> str:
    """Return what is wrong with an existing zone for the API's name; empty if nothing is.

    Args:
        account: the account.
        name: the API's name.
        zone: the zone in the cluster file.
        is_private: whether it should be a private zone.
    """
    try:
        with translate_aws_errors():
            hosted_zone = account.client("route53").get_hosted_zone(Id=zone.id)["HostedZone"]
    except AwsError as error:
        is_missing = error.aws_code == "NoSuchHostedZone"
        return f"there is no hosted zone {zone.id} in account {account.id}" if is_missing else ""
    domain = hosted_zone["Name"].rstrip(".")
    if hosted_zone["Config"]["PrivateZone"] is not is_private:
        kind, right_key = ("public", "publicZone") if is_private else ("private", "privateZone")
        return f"{zone.id} ({domain}) is a {kind} zone; use a zone of the other kind, or the key {right_key}"
    if name != domain and not name.endswith(f".{domain}"):
        return f"{zone.id} is the zone of {domain}, and {name} is not in it"
    return ""
