"""Reads an existing VPC and what is in it: calls of EC2 and Service Quotas that change nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.network import (
    VPC_DESCRIPTIONS,
    count_interfaces,
    describe_peerings,
    list_in_vpc,
    list_instances,
    read_vpc_attribute,
    route_table_of,
)
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.aws.usage import known_usage
from cfngen.deploy.preflight.existing import objects
from cfngen.deploy.preflight.existing.network import ROUTES
from cfngen.deploy.preflight.network.situation import NetworkFacts, Situation, named_subnets
from cfngen.deploy.preflight.quotas.quota import Quota, QuotaCheck, check_quota

# Codes and names: "Amazon Virtual Private Cloud endpoints and quotas", AWS General Reference.
_ROUTES_PER_TABLE = "L-93826ACB"
_INTERFACES_PER_REGION = "L-DF5E4CA3"
_RULES_PER_GROUP = "L-0EA8095F"
_DEFAULT_RULES_PER_GROUP = 60


def read(account: Account, cluster: Cluster, values: Mapping[str, str]) -> Situation:
    """Read the existing VPC that the cluster file or the parameters name.

    Args:
        account: the account and region.
        cluster: the cluster.
        values: values of the root's parameters; `VpcId` is among them.

    Returns:
        The situation. What may not be read is listed in `facts.unread`.

    Raises:
        AwsError: not even the VPC can be read.
    """
    vpc_id = values["VpcId"]
    with translate_aws_errors():
        vpcs = list(account.items("ec2.describe_vpcs", "Vpcs", filters={"vpc-id": [vpc_id]}))
    subnets = named_subnets(cluster, values)
    if not vpcs:
        return Situation(cluster, account.region, vpc_id, values, subnets, NetworkFacts())
    reader = _Reader()
    described = {
        attribute: tuple(reader.read(attribute, partial(list_in_vpc, account, operation, key, id_filter, vpc_id), []))
        for attribute, operation, key, id_filter in VPC_DESCRIPTIONS
    }
    peerings = reader.read("peerings", lambda: describe_peerings(account, vpc_id), [])
    facts = NetworkFacts(
        vpc=vpcs[0],
        has_dns_support=reader.read(
            "has_dns_support", lambda: read_vpc_attribute(account, vpc_id, "enableDnsSupport"), None
        ),
        has_dns_host_names=reader.read(
            "has_dns_host_names", lambda: read_vpc_attribute(account, vpc_id, "enableDnsHostnames"), None
        ),
        foreign=tuple(
            reader.read(
                "foreign",
                lambda: [
                    finding
                    for finding in objects.find_network_problems(account, cluster, values, vpc_id)
                    if finding.check != ROUTES
                ],
                [],
            )
        ),
        peerings=tuple(peerings),
        own_instances=frozenset(
            reader.read("own_instances", lambda: list_instances(account, cluster.name, vpc_id), [])
        ),
        quotas=tuple(_quotas(account, cluster, values, described)),
        unread=tuple(reader.unread),
        **described,
    )
    return Situation(cluster, account.region, vpc_id, values, subnets, facts)


class _Reader:
    """Carries out calls; what cannot be read is remembered in `unread`, and the others are still made."""

    def __init__(self) -> None:
        self.unread: list[tuple[str, str]] = []

    def read(self, name: str, call: Callable[[], Any], otherwise: Any) -> Any:
        """Return the result of a call, or `otherwise` if AWS refuses it; `name` is the attribute of `NetworkFacts`."""
        try:
            with translate_aws_errors():
                return call()
        except AwsError as error:
            self.unread.append((name, str(error)))
            return otherwise


def _quotas(
    account: Account, cluster: Cluster, values: Mapping[str, str], described: Mapping[str, tuple[AwsObject, ...]]
) -> list[Quota]:
    """Return the quotas of networks; a quota that cannot be read has no limit."""
    masters = len(cluster.slots)
    initial = masters + sum(group.desired_size or group.min_size for group in cluster.node_groups)
    at_maximum = masters + sum(group.max_size for group in cluster.node_groups)
    checks = [
        QuotaCheck(
            "Network interfaces per Region",
            needed=initial,
            service="vpc",
            code=_INTERFACES_PER_REGION,
            used=count_interfaces,
            needed_at_maximum=at_maximum,
        )
    ]
    table_id = values.get("RouteTableId") or next(
        (
            route_table_of(described["route_tables"], subnet.id)
            for subnet in named_subnets(cluster, values)
            if subnet.id
        ),
        "",
    )
    tables = [table for table in described["route_tables"] if table["RouteTableId"] == table_id]
    if network_plugin(cluster).uses_vpc_routes and tables:
        checks.append(
            QuotaCheck(
                f"Routes per route table ({table_id})",
                needed=initial,
                service="vpc",
                code=_ROUTES_PER_TABLE,
                used=known_usage(len(tables[0]["Routes"])),
                needed_at_maximum=at_maximum,
            )
        )
    rules = cluster.network.quotas.rules_per_security_group
    if rules > _DEFAULT_RULES_PER_GROUP:
        checks.append(
            QuotaCheck(
                "Inbound or outbound rules per security group",
                needed=rules,
                service="vpc",
                code=_RULES_PER_GROUP,
                used=known_usage(0),
            )
        )
    return [check_quota(account, check) for check in checks]
