"""Checks that existing objects named in the cluster file belong to the cluster's VPC, and policies to its account.

Otherwise EC2 refuses the instance, the route or the network interface in the middle of a creation or update.
CloudFormation only checks that an object exists, and for security groups not even that. Objects are described by
filters, since a call with ids fails if one of them does not exist.

A security group belongs to one VPC for good. So before the stack has created its VPC, the cluster file cannot name a
security group of it; afterwards it can. That is why this check needs the stack, and not only the cluster file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.cluster.checks.access import all_instances
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import dotted
from cfngen.cluster.subnet_ids import SubnetId, ZoneId, zone_id
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.stacks import StackView
from cfngen.errors import CfngenError


class ForeignObjectsError(CfngenError):
    """Existing objects that the cluster file names do not belong to the cluster's VPC or account.

    Attributes:
        problems: one sentence for each object; it starts with the object's key in the cluster file.
    """

    code = "foreign-resources"

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems), hint="nothing was changed; correct the keys in the cluster file.")
        self.problems = problems


def check(account: Account, cluster: Cluster, values: Mapping[str, str], existing: StackView | None) -> None:
    """Check the VPC of security groups, subnets, route table and internet gateway, and the account of policies.

    Args:
        account: the account and region.
        cluster: the cluster.
        values: values of the root's parameters.
        existing: the root stack; None if it does not exist yet.

    Raises:
        ForeignObjectsError: some belong to another VPC or account. Errors of AWS are ignored.
    """
    vpc = values.get("VpcId") or (existing.outputs.get("VpcId", "") if existing else "")
    problems = list(_check_policies(account, cluster))
    if existing is None and not vpc:
        problems += _reject_groups_of_other_vpcs(cluster)
    try:
        with translate_aws_errors():
            if vpc:
                problems += _check_security_groups(account, cluster, vpc)
            if cluster.network.vpc.id:
                problems += _check_network(account, cluster, values, vpc)
            problems += _check_elastic_ip(account, values)
    except AwsError:
        pass
    if problems:
        raise ForeignObjectsError(tuple(problems))


def _check_policies(account: Account, cluster: Cluster) -> Iterator[str]:
    """Yield a problem for each policy of another account, which no role of this account can have."""
    arns_by_key = {"iam.permissionsBoundary": cluster.iam.permissions_boundary or ""}
    for path, instances in all_instances(cluster):
        for position, arn in enumerate(instances.additional_policies):
            arns_by_key[dotted((*path, "additionalPolicies", position))] = arn
    for key, arn in arns_by_key.items():
        account_id = arn.split(":")[4] if arn else "aws"
        if account_id not in ("aws", account.id):
            yield f"{key}: {arn} belongs to the account {account_id}; use a policy of account {account.id}"


def _named_groups(cluster: Cluster) -> dict[str, str]:
    """Return the security groups that the cluster file names, each with the first key that names it."""
    keys_by_group: dict[str, str] = {}
    for path, instances in all_instances(cluster):
        for position, group in enumerate(instances.additional_security_groups):
            keys_by_group.setdefault(group, dotted((*path, "additionalSecurityGroups", position)))
    return keys_by_group


def _reject_groups_of_other_vpcs(cluster: Cluster) -> Iterator[str]:
    """Yield a problem for each security group in the cluster file, since the stack has yet to create the VPC."""
    for group, key in _named_groups(cluster).items():
        yield (
            f"{key}: {group} belongs to another VPC than the one that the stack will create, so EC2 would refuse it; "
            "remove it, deploy, and then add a security group of the new VPC, or set network.vpc.id to an existing VPC"
        )


def _check_security_groups(account: Account, cluster: Cluster, vpc: str) -> Iterator[str]:
    keys_by_group = _named_groups(cluster)
    described = {
        group["GroupId"]: group
        for group in _describe(account, "describe_security_groups", "SecurityGroups", "group-id", list(keys_by_group))
    }
    for identifier, key in keys_by_group.items():
        group = described.get(identifier)
        if group is None:
            yield f"{key}: there is no security group {identifier} in {account.region}"
        elif group.get("VpcId") != vpc:
            yield f"{key}: {identifier} belongs to {group.get('VpcId')}, and the cluster is in {vpc}; use one of {vpc}"
        elif any(tag["Key"] == f"kubernetes.io/cluster/{cluster.name}" for tag in group.get("Tags", ())):
            yield (
                f"{key}: {identifier} has the tag kubernetes.io/cluster/{cluster.name}; only one security group of an "
                "instance may have this tag, and the one that cfngen creates has it: remove the tag"
            )


def _check_network(account: Account, cluster: Cluster, values: Mapping[str, str], vpc: str) -> Iterator[str]:
    subnets = {
        f"network.subnets[{index}].id": (values[str(SubnetId(zone_id(subnet.zone), "Id"))], subnet)
        for index, subnet in enumerate(cluster.network.subnets)
        if values.get(str(SubnetId(zone_id(subnet.zone), "Id")))
    }
    ids = [identifier for identifier, _ in subnets.values()]
    described = {
        response["SubnetId"]: response
        for response in _describe(account, "describe_subnets", "Subnets", "subnet-id", ids)
    }
    for key, (identifier, subnet) in subnets.items():
        actual = described.get(identifier, {})
        zone = values.get(str(ZoneId(zone_id(subnet.zone))), subnet.zone)
        if not actual:
            yield f"{key}: there is no subnet {identifier} in {account.region}"
        elif actual["VpcId"] != vpc:
            yield f"{key}: {identifier} belongs to {actual['VpcId']}, and the cluster is in {vpc}; use one of {vpc}"
        elif actual["AvailabilityZone"] != zone:
            yield f"{key}: {identifier} is in {actual['AvailabilityZone']} and not in {zone}; correct its zone"
        elif actual["CidrBlock"] != str(subnet.cidr):
            yield f"{key}: {identifier} has the range {actual['CidrBlock']} and not {subnet.cidr}; correct its cidr"
    if table := values.get("RouteTableId", ""):
        tables = _describe(account, "describe_route_tables", "RouteTables", "route-table-id", [table])
        yield from _check_vpc(
            "network.routeTable", table, [route_table["VpcId"] for route_table in tables], vpc, account.region
        )
    if gateway := values.get("InternetGatewayId", ""):
        gateways = _describe(
            account, "describe_internet_gateways", "InternetGateways", "internet-gateway-id", [gateway]
        )
        attached_vpcs = [
            next((attachment["VpcId"] for attachment in internet_gateway["Attachments"]), "no VPC: it is not attached")
            for internet_gateway in gateways
        ]
        yield from _check_vpc("network.internetGateway", gateway, attached_vpcs, vpc, account.region)


def _check_vpc(key: str, identifier: str, vpcs: list[str], vpc: str, region: str) -> Iterator[str]:
    if not vpcs:
        yield f"{key}: there is no {identifier} in {region}"
    elif vpc not in vpcs:
        yield f"{key}: {identifier} belongs to {vpcs[0]}, and the cluster is in {vpc}; use the one of {vpc}"


def _check_elastic_ip(account: Account, values: Mapping[str, str]) -> Iterator[str]:
    allocation, address = values.get("ApiElasticIpAllocationId", ""), values.get("ApiElasticIp", "")
    if not allocation:
        return
    described = _describe(account, "describe_addresses", "Addresses", "allocation-id", [allocation])
    actual = next((str(elastic_ip["PublicIp"]) for elastic_ip in described), "")
    if not actual:
        yield f"api.elasticIp.allocationId: there is no Elastic IP {allocation} in {account.region}"
    elif actual != address:
        yield f"api.elasticIp.address: {allocation} is {actual} and not {address}; correct one of the two"


def _describe(account: Account, operation: str, result_key: str, filter_name: str, ids: list[str]) -> list[AwsObject]:
    """Describe objects of EC2; those that do not exist are left out."""
    if not ids:
        return []
    client = account.client("ec2")
    filters = [{"Name": filter_name, "Values": ids}]
    if not client.can_paginate(operation):
        return list(getattr(client, operation)(Filters=filters)[result_key])
    return [item for page in client.get_paginator(operation).paginate(Filters=filters) for item in page[result_key]]
