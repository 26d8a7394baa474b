"""Puts together what the checks judge: the existing network, the parts that the cluster file names, and quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.network import Reader, list_instances, read_network, route_table_of
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.aws.usage import count_listed, known_usage
from cfngen.deploy.preflight.existing import objects
from cfngen.deploy.preflight.existing.network import ROUTES
from cfngen.deploy.preflight.findings import Finding
from cfngen.deploy.preflight.network.situation import Situation, named_subnets
from cfngen.deploy.preflight.quotas.quota import Quota, QuotaCheck, check_quota

# Codes and names: "Amazon Virtual Private Cloud endpoints and quotas", AWS General Reference.
_ROUTES_PER_TABLE = "L-93826ACB"
_INTERFACES_PER_REGION = "L-DF5E4CA3"
_RULES_PER_GROUP = "L-0EA8095F"
_DEFAULT_RULES_PER_GROUP = 60


def read(account: Account, cluster: Cluster, values: Mapping[str, str]) -> Situation:
    """Read the existing VPC that `values` name with `VpcId`; what may not be read is listed in `unread`.

    Raises:
        AwsError: not even the VPC can be read.
    """
    vpc_id = values["VpcId"]
    facts = read_network(account, vpc_id)
    subnets = named_subnets(cluster, values)
    if facts.vpc is None:
        return Situation(cluster, account.region, vpc_id, values, subnets, facts)
    reader = Reader()
    foreign = reader.read("foreign", partial(_find_foreign, account, cluster, values, vpc_id)) or ()
    own_instances = reader.read("own_instances", partial(list_instances, account, cluster.name, vpc_id))
    return Situation(
        cluster,
        account.region,
        vpc_id,
        values,
        subnets,
        facts,
        foreign=foreign,
        own_instances=own_instances or frozenset(),
        quotas=tuple(_quotas(account, cluster, values, facts.route_tables)),
        unread=(*facts.unread, *reader.unread),
    )


def _find_foreign(account: Account, cluster: Cluster, values: Mapping[str, str], vpc_id: str) -> tuple[Finding, ...]:
    """Return what is wrong with the named parts of the network, but for their routes, which have a check here."""
    findings = objects.find_network_problems(account, cluster, values, vpc_id)
    return tuple(finding for finding in findings if finding.check != ROUTES)


def _quotas(
    account: Account, cluster: Cluster, values: Mapping[str, str], route_tables: Sequence[AwsObject]
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
            used=count_listed("ec2.describe_network_interfaces", "NetworkInterfaces"),
            needed_at_maximum=at_maximum,
        )
    ]
    if table := _find_table_of_pods(cluster, values, route_tables):
        checks.append(
            QuotaCheck(
                f"Routes per route table ({table['RouteTableId']})",
                needed=initial,
                service="vpc",
                code=_ROUTES_PER_TABLE,
                used=known_usage(len(table["Routes"])),
                needed_at_maximum=at_maximum,
            )
        )
    rules = cluster.network.quotas.rules_per_security_group
    if rules > _DEFAULT_RULES_PER_GROUP:
        name = "Inbound or outbound rules per security group"
        checks.append(QuotaCheck(name, needed=rules, service="vpc", code=_RULES_PER_GROUP, used=known_usage(0)))
    return [check_quota(account, check) for check in checks]


def _find_table_of_pods(
    cluster: Cluster, values: Mapping[str, str], route_tables: Sequence[AwsObject]
) -> AwsObject | None:
    """Return the route table that gets a route to each node's pods; None if pods need none, or it is not known."""
    if not network_plugin(cluster).uses_vpc_routes:
        return None
    table_id = values.get("RouteTableId") or next(
        (route_table_of(route_tables, subnet.id) for subnet in named_subnets(cluster, values) if subnet.id), ""
    )
    return next((table for table in route_tables if table["RouteTableId"] == table_id), None)
