"""How much of what AWS limits an account uses, and how much it may use: functions for checks of quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors

ReadCount = Callable[[Account], int]
"""A function that reads a usage or a limit from AWS."""


SERVICES = ("autoscaling", "ec2", "elbv2", "iam", "service-quotas")
"""The services that these functions call."""


def known_usage(count: int) -> ReadCount:
    """Return a function that returns a known usage without calling AWS."""
    return lambda _: count


def count_listed(call: str, key: str, vpc_id: str = "") -> ReadCount:
    """Return a function that counts what a call lists, in the region or in one VPC."""
    filters = {"vpc-id": [vpc_id]} if vpc_id else None
    return lambda account: sum(1 for _ in account.items(call, key, filters=filters))


def count_network_load_balancers(account: Account) -> int:
    """Return the number of network load balancers that the account has in the region."""
    balancers = account.items("elbv2.describe_load_balancers", "LoadBalancers")
    return sum(balancer["Type"] == "network" for balancer in balancers)


def count_endpoints(types: Collection[str], vpc_id: str = "") -> ReadCount:
    """Return a function that reads how many VPC endpoints of these types a VPC, or the region, has."""
    filters = {"vpc-id": [vpc_id]} if vpc_id else None

    def count(account: Account) -> int:
        endpoints = account.items("ec2.describe_vpc_endpoints", "VpcEndpoints", filters=filters)
        return sum(endpoint["VpcEndpointType"] in types for endpoint in endpoints)

    return count


def count_nat_gateways(zones: Collection[str]) -> ReadCount:
    """Return a function that reads how many NAT gateways the fullest of these zones has."""

    def count(account: Account) -> int:
        states = {"state": ["pending", "available"]}
        # A regional NAT gateway belongs to no zone and has no subnet.
        subnet_of_each_gateway = [
            gateway["SubnetId"]
            for gateway in account.items("ec2.describe_nat_gateways", "NatGateways", filters=states)
            if "SubnetId" in gateway
        ]
        if not subnet_of_each_gateway:
            return 0
        subnet_ids = sorted(set(subnet_of_each_gateway))
        zone_by_subnet = {
            subnet["SubnetId"]: subnet["AvailabilityZone"]
            for subnet in account.items("ec2.describe_subnets", "Subnets", SubnetIds=subnet_ids)
        }
        gateways_by_zone = Counter(zone_by_subnet[subnet] for subnet in subnet_of_each_gateway)
        return max(gateways_by_zone[zone] for zone in zones)

    return count


def used_storage(volume_type: str) -> ReadCount:
    """Return a function that reads how many GiB the account's volumes of this type have."""
    filters = {"volume-type": [volume_type]}
    return lambda account: sum(
        volume["Size"] for volume in account.items("ec2.describe_volumes", "Volumes", filters=filters)
    )


def account_summary_value(key: str) -> ReadCount:
    """Return a function that reads one number of IAM's account summary."""
    return lambda account: int(account.client("iam").get_account_summary()["SummaryMap"][key])


def read_limit(account: Account, service: str, quota: str) -> float:
    """Return a limit of the account by its codes, or AWS's default limit if the account has none of its own."""
    client = account.client("service-quotas")
    codes = {"ServiceCode": service, "QuotaCode": quota}
    try:
        response = client.get_service_quota(**codes)
    except client.exceptions.NoSuchResourceException:
        # Some quotas have a value for the account only once it has been changed.
        response = client.get_aws_default_service_quota(**codes)
    return float(response["Quota"]["Value"])


def read_max_entries(account: Account, prefix_lists: Collection[str]) -> Mapping[str, int]:
    """Return the maximum number of entries of each prefix list; nothing if they cannot be read."""
    call = "ec2.describe_managed_prefix_lists"
    try:
        with translate_aws_errors():
            return {
                prefix_list["PrefixListId"]: prefix_list.get("MaxEntries", 1)
                for prefix_list in account.items(call, "PrefixLists", PrefixListIds=list(prefix_lists))
            }
    except AwsError:
        return {}


def read_free_places(account: Account) -> list[tuple[str, int]]:
    """Return the instance type of each capacity reservation, and for how many more instances it has room."""
    filters = {"state": ["active", "pending"]}
    return [
        (reservation["InstanceType"], int(reservation["AvailableInstanceCount"]))
        for reservation in account.items("ec2.describe_capacity_reservations", "CapacityReservations", filters=filters)
    ]
