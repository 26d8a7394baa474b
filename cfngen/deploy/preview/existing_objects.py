"""Whether the objects that a cluster file names belong to the cluster's VPC, and policies to its account.

EC2 refuses the launch, the route or the interface otherwise, minutes into a creation or in the midst of an update.
CloudFormation looks only whether an object is there, and at security groups not even that. Objects are asked for by
filters, since one unknown id would fail a call that names ids.

A security group is one VPC's for good: while the VPC is still to be made, there is none that could be named. Once the
cluster is there, there may be, so that the cluster file alone does not tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cfngen.cluster.checks.access import all_instances
from cfngen.cluster.logical_ids import subnet_parameter, zone_id
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import dotted
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.stacks import StackView
from cfngen.errors import CfngenError


class ElsewhereError(CfngenError):
    """Objects that the cluster file names do not belong where the cluster is.

    Attributes:
        problems: one sentence for each, which begins with its key.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems), hint="nothing was changed; correct the keys in the cluster file.")
        self.problems = problems


def check(account: Account, cluster: Cluster, values: Mapping[str, str], existing: StackView | None) -> None:
    """See that security groups, subnets, route table and internet gateway are the VPC's, and policies the account's.

    Args:
        account: where they are.
        cluster: the cluster.
        values: values of the root's parameters.
        existing: the root stack; None if it is yet to be created.

    Raises:
        ElsewhereError: some do not. What cannot be found out stops nobody.
    """
    vpc = values.get("VpcId") or (existing.outputs.get("VpcId", "") if existing else "")
    problems = list(_policies(account, cluster))
    if existing is None and not vpc:
        problems += _before_their_vpc(cluster)
    try:
        with translate_aws_errors():
            if vpc:
                problems += _security_groups(account, cluster, vpc)
            if cluster.network.vpc.id:
                problems += _network(account, cluster, values, vpc)
            problems += _elastic_ip(account, values)
    except AwsError:
        pass
    if problems:
        raise ElsewhereError(tuple(problems))


def _policies(account: Account, cluster: Cluster) -> Iterator[str]:
    """Yield the policies that no role of the account can have: those of another one."""
    arns_by_key = {"iam.permissionsBoundary": cluster.iam.permissions_boundary or ""}
    for path, instances in all_instances(cluster):
        for position, arn in enumerate(instances.additional_policies):
            arns_by_key[dotted((*path, "additionalPolicies", position))] = arn
    for key, arn in arns_by_key.items():
        owner = arn.split(":")[4] if arn else "aws"
        if owner not in ("aws", account.id):
            yield f"{key}: {arn} belongs to the account {owner}; name a policy of {account.id}"


def _named_groups(cluster: Cluster) -> dict[str, str]:
    """Return the security groups that the cluster file names, with the first key of each."""
    keys_by_group: dict[str, str] = {}
    for path, instances in all_instances(cluster):
        for position, group in enumerate(instances.additional_security_groups):
            keys_by_group.setdefault(group, dotted((*path, "additionalSecurityGroups", position)))
    return keys_by_group


def _before_their_vpc(cluster: Cluster) -> Iterator[str]:
    for group, key in _named_groups(cluster).items():
        yield (
            f"{key}: {group} exists already and belongs to another VPC than the one that the stack is to make, so EC2 "
            "would refuse it; leave it out until the cluster is there and name a security group of its VPC then, or "
            "name an existing VPC in network.vpc.id"
        )


def _security_groups(account: Account, cluster: Cluster, vpc: str) -> Iterator[str]:
    keys_by_group = _named_groups(cluster)
    described = {
        group["GroupId"]: group
        for group in _described(account, "describe_security_groups", "SecurityGroups", "group-id", list(keys_by_group))
    }
    for identifier, key in keys_by_group.items():
        group = described.get(identifier)
        if group is None:
            yield f"{key}: there is no security group {identifier} in {account.region}"
        elif group.get("VpcId") != vpc:
            yield f"{key}: {identifier} belongs to {group.get('VpcId')}, and the cluster is in {vpc}; name one of {vpc}"
        elif any(tag["Key"] == f"kubernetes.io/cluster/{cluster.name}" for tag in group.get("Tags", ())):
            yield (
                f"{key}: {identifier} bears the tag kubernetes.io/cluster/{cluster.name}, which one security group of "
                "an instance may have, the cluster's own; remove the tag"
            )


def _network(account: Account, cluster: Cluster, values: Mapping[str, str], vpc: str) -> Iterator[str]:
    subnets = {
        f"network.subnets[{index}].id": (values[subnet_parameter(subnet.zone)], subnet)
        for index, subnet in enumerate(cluster.network.subnets)
        if values.get(subnet_parameter(subnet.zone))
    }
    ids = [identifier for identifier, _ in subnets.values()]
    described = {
        response["SubnetId"]: response
        for response in _described(account, "describe_subnets", "Subnets", "subnet-id", ids)
    }
    for key, (identifier, subnet) in subnets.items():
        actual = described.get(identifier, {})
        zone = values.get(f"Zone{zone_id(subnet.zone)}", subnet.zone)
        if not actual:
            yield f"{key}: there is no subnet {identifier} in {account.region}"
        elif actual["VpcId"] != vpc:
            yield f"{key}: {identifier} belongs to {actual['VpcId']}, and the cluster is in {vpc}; name one of {vpc}"
        elif actual["AvailabilityZone"] != zone:
            yield f"{key}: {identifier} is in {actual['AvailabilityZone']} and not in {zone}; correct its zone"
        elif actual["CidrBlock"] != str(subnet.cidr):
            yield f"{key}: {identifier} has the range {actual['CidrBlock']} and not {subnet.cidr}; correct its cidr"
    if table := values.get("RouteTableId", ""):
        tables = _described(account, "describe_route_tables", "RouteTables", "route-table-id", [table])
        yield from _of_vpc(
            "network.routeTable", table, [route_table["VpcId"] for route_table in tables], vpc, account.region
        )
    if gateway := values.get("InternetGatewayId", ""):
        gateways = _described(
            account, "describe_internet_gateways", "InternetGateways", "internet-gateway-id", [gateway]
        )
        attached_vpcs = [
            next((attachment["VpcId"] for attachment in internet_gateway["Attachments"]), "no VPC: it is not attached")
            for internet_gateway in gateways
        ]
        yield from _of_vpc("network.internetGateway", gateway, attached_vpcs, vpc, account.region)


def _of_vpc(key: str, identifier: str, owners: list[str], vpc: str, region: str) -> Iterator[str]:
    if not owners:
        yield f"{key}: there is no {identifier} in {region}"
    elif vpc not in owners:
        yield f"{key}: {identifier} belongs to {owners[0]}, and the cluster is in {vpc}; name that of {vpc}"


def _elastic_ip(account: Account, values: Mapping[str, str]) -> Iterator[str]:
    allocation, address = values.get("ApiElasticIpAllocationId", ""), values.get("ApiElasticIp", "")
    if not allocation:
        return
    described = _described(account, "describe_addresses", "Addresses", "allocation-id", [allocation])
    actual = next((str(elastic_ip["PublicIp"]) for elastic_ip in described), "")
    if not actual:
        yield f"api.elasticIp.allocationId: there is no Elastic IP {allocation} in {account.region}"
    elif actual != address:
        yield f"api.elasticIp.address: {allocation} is {actual} and not {address}; correct one of the two"


def _described(
    account: Account, operation: str, result_key: str, filter_name: str, ids: list[str]
) -> list[Mapping[str, Any]]:
    """Return what EC2 knows of objects; those that it does not know are left out."""
    if not ids:
        return []
    client = account.client("ec2")
    filters = [{"Name": filter_name, "Values": ids}]
    if not client.can_paginate(operation):
        return list(getattr(client, operation)(Filters=filters)[result_key])
    return [item for page in client.get_paginator(operation).paginate(Filters=filters) for item in page[result_key]]
