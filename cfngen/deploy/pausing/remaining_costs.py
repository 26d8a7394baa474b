"""Counts what AWS still charges for while a cluster is paused, from what exists: of the stacks and of Kubernetes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.references import known_id
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.deletion import volumes
from cfngen.deploy.deletion.inventory import Inventory, read_inventory
from cfngen.deploy.deletion.load_balancers import find_orphaned_load_balancers
from cfngen.deploy.etcd.snapshots import BUCKET_OUTPUT
from cfngen.deploy.messages import Notice, Report
from cfngen.deploy.preview.bill_of_materials import Cost
from cfngen.deploy.stacks import StackView
from cfngen.text import join_and, pluralize

FILTER_BATCH_SIZE = 100  # values in one filter; EC2 takes 200
_LOAD_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
# CloudFormation type, unit in which it is billed, and name of the billed item.
_RESOURCES_BILLED_BY_NUMBER = (
    ("AWS::EC2::NatGateway", "gateway", "NAT"),
    ("AWS::SecretsManager::Secret", "secret", "Secrets Manager"),
    ("AWS::KMS::Key", "key", "KMS"),
    ("AWS::Route53::HostedZone", "zone", "Route 53"),
    ("AWS::EC2::CapacityReservation", "reservation", "capacity reservation"),
)


def read_remaining_costs(
    account: Account, stack: StackView, cluster: Cluster, report: Report
) -> tuple[Cost, ...] | None:
    """Return what AWS still charges for; None if it cannot be read, which is reported.

    Args:
        account: the AWS account.
        stack: the root stack.
        cluster: the cluster file.
        report: receives a notice if something cannot be read.
    """
    try:
        with translate_aws_errors():
            inventory = read_inventory(
                account,
                stack,
                cluster=cluster.name,
                vpc_id=known_id(cluster.network.vpc.id) or "",
                pod_cidr=str(cluster.network.pod_cidr),
            )
            return tuple(_find_costs(account, stack, inventory))
    except AwsError as error:
        report(Notice(f"what still costs money could not be counted: {error}", error.hint))
        return None


def _find_costs(account: Account, stack: StackView, inventory: Inventory) -> Iterator[Cost]:
    """Yield what AWS still charges for."""
    if inventory.unmanaged_instances:
        yield Cost(
            len(inventory.unmanaged_instances),
            "instance",
            what="EC2",
            detail=f"not of the cluster's groups: {join_and(sorted(inventory.unmanaged_instances))}",
        )
    yield from _volume_costs(account, inventory)
    yield from _snapshot_costs(account, inventory)
    load_balancers = tuple(_describe_load_balancers(account, inventory))
    # Amazon VPC pricing: every public IPv4 address is charged, in use or not, Elastic or a load balancer's own.
    elastic_ips = len(inventory.existing_ids("AWS::EC2::EIP"))
    existing_ips = len({value for value in stack.values.values() if value.startswith("eipalloc-")})
    balancer_ips = sum(_count_own_addresses(balancer) for balancer in load_balancers)
    if address_count := elastic_ips + existing_ips + balancer_ips:
        elastic_text = pluralize(elastic_ips + existing_ips, "Elastic IP") if elastic_ips + existing_ips else ""
        detail = join_and([*filter(None, (elastic_text, f"{balancer_ips} of load balancers" if balancer_ips else ""))])
        yield Cost(address_count, "address", what="public IPv4", detail=detail)
    if load_balancers:
        own_count = len(inventory.existing_ids(_LOAD_BALANCER))
        of_kubernetes = len(load_balancers) - own_count
        detail = f"{of_kubernetes} made by Kubernetes" if of_kubernetes else ""
        yield Cost(len(load_balancers), "load balancer", what="Elastic Load Balancing", detail=detail)
    if endpoint_interfaces := _count_endpoint_interfaces(account, inventory):
        detail = "interface endpoints, counted in each zone"
        yield Cost(endpoint_interfaces, "endpoint", what="PrivateLink", detail=detail)
    for resource_type, unit, label in _RESOURCES_BILLED_BY_NUMBER:
        if count := len(inventory.existing_ids(resource_type)):
            yield Cost(count, unit, what=label)
    if reservations := _find_capacity_reservations(account, inventory):
        detail = f"charged as if they were used: {join_and(sorted(reservations))}"
        yield Cost(len(reservations), "reservation", what="capacity reservation", detail=detail)
    if bucket := _find_bucket(stack, inventory):
        yield Cost(1, "bucket", what="S3", detail=f"etcd's snapshots, until they expire: {bucket}")


def _volume_costs(account: Account, inventory: Inventory) -> Iterator[Cost]:
    """Yield the GiB of volumes by volume type: those of the stacks, and those of PersistentVolumeClaims."""
    claim_volumes = {volume.id for volume in volumes.find_claim_volumes(account, inventory)}
    stack_volumes = set(inventory.existing_ids("AWS::EC2::Volume"))
    gib_by_type: Counter[str] = Counter()
    claim_gib_by_type: Counter[str] = Counter()
    for volume in _describe_by_filter(account, "Volumes", "volume-id", claim_volumes | stack_volumes):
        gib_by_type[volume["VolumeType"]] += volume["Size"]
        if volume["VolumeId"] in claim_volumes:
            claim_gib_by_type[volume["VolumeType"]] += volume["Size"]
    for volume_type, gib in sorted(gib_by_type.items()):
        claims = f", and {claim_gib_by_type[volume_type]} GiB of claims" if claim_gib_by_type[volume_type] else ""
        masters_gib = gib - claim_gib_by_type[volume_type]
        detail = f"{masters_gib} GiB of masters' data{claims}" if masters_gib else claims.removeprefix(", and ")
        yield Cost(gib, "GiB", what=f"{volume_type} volumes", detail=detail)


def _snapshot_costs(account: Account, inventory: Inventory) -> Iterator[Cost]:
    """Yield the number of EBS snapshots: of the masters' volumes, and of PersistentVolumeClaims."""
    snapshots = {snapshot.id: snapshot.gigabytes for snapshot in volumes.find_claim_snapshots(account, inventory)}
    for snapshot in _describe_by_filter(account, "Snapshots", "volume-id", inventory.ids("AWS::EC2::Volume")):
        snapshots[snapshot["SnapshotId"]] = snapshot["VolumeSize"]
    if snapshots:
        detail = f"of volumes of {sum(snapshots.values())} GiB; billed by the stored data"
        yield Cost(len(snapshots), "snapshot", what="EBS", detail=detail)


def _describe_load_balancers(account: Account, inventory: Inventory) -> Iterator[AwsObject]:
    """Yield the load balancers of the stacks and of Kubernetes, as Elastic Load Balancing describes them."""
    ids = {orphan.id for orphan in find_orphaned_load_balancers(account, inventory) if orphan.kind == "load balancer"}
    ids.update(inventory.existing_ids(_LOAD_BALANCER))
    if not ids:
        return
    for page in account.client("elb").get_paginator("describe_load_balancers").paginate():
        yield from (item for item in page["LoadBalancerDescriptions"] if item["LoadBalancerName"] in ids)
    for page in account.client("elbv2").get_paginator("describe_load_balancers").paginate():
        yield from (item for item in page["LoadBalancers"] if item["LoadBalancerArn"] in ids)


def _count_own_addresses(balancer: AwsObject) -> int:
    """Return the number of a load balancer's public addresses: one in each zone that has no Elastic IP."""
    if balancer.get("Scheme") != "internet-facing":
        return 0
    zones = balancer.get("AvailabilityZones", ())  # those of a Classic Load Balancer are names
    return sum(
        not isinstance(zone, dict)
        or not any(address.get("AllocationId") for address in zone.get("LoadBalancerAddresses", ()))
        for zone in zones
    )


def _count_endpoint_interfaces(account: Account, inventory: Inventory) -> int:
    """Return the number of network interfaces of the stacks' interface endpoints: one in each zone of each."""
    ids = inventory.existing_ids("AWS::EC2::VPCEndpoint")
    return sum(
        len(endpoint.get("SubnetIds", ()))
        for endpoint in _describe_by_filter(account, "VpcEndpoints", "vpc-endpoint-id", ids)
        if endpoint.get("VpcEndpointType") == "Interface"
    )


def _find_capacity_reservations(account: Account, inventory: Inventory) -> frozenset[str]:
    """Return the ids of the existing capacity reservations that the stacks' launch templates name."""
    reservations = set()
    for template_id in inventory.existing_ids("AWS::EC2::LaunchTemplate"):
        response = account.client("ec2").describe_launch_template_versions(
            LaunchTemplateId=template_id, Versions=["$Latest"]
        )
        for version in response["LaunchTemplateVersions"]:
            specification = version["LaunchTemplateData"].get("CapacityReservationSpecification") or {}
            target = specification.get("CapacityReservationTarget") or {}
            reservations.add(target.get("CapacityReservationId", ""))
    return frozenset(reservations - {""} - set(inventory.existing_ids("AWS::EC2::CapacityReservation")))


def _find_bucket(stack: StackView, inventory: Inventory) -> str:
    """Return the name of the bucket of etcd's snapshots; empty if there is none."""
    return next(iter(inventory.existing_ids("AWS::S3::Bucket")), "") or stack.outputs.get(BUCKET_OUTPUT, "")


def _describe_by_filter(
    account: Account, response_key: str, filter_name: str, values: set[str] | frozenset[str] | tuple[str, ...]
) -> Iterator[AwsObject]:
    """Yield the resources of EC2 that a filter matches.

    Args:
        account: the AWS account.
        response_key: the list in the response: `Volumes`, `Snapshots` or `VpcEndpoints`.
        filter_name: name of the filter.
        values: its values; without any, nothing is asked for.
    """
    operation = {
        "Volumes": "describe_volumes",
        "Snapshots": "describe_snapshots",
        "VpcEndpoints": "describe_vpc_endpoints",
    }[response_key]
    owners = {"OwnerIds": ["self"]} if response_key == "Snapshots" else {}
    sorted_values = sorted(values)
    for start in range(0, len(sorted_values), FILTER_BATCH_SIZE):
        filters = [{"Name": filter_name, "Values": sorted_values[start : start + FILTER_BATCH_SIZE]}]
        for page in account.client("ec2").get_paginator(operation).paginate(Filters=filters, **owners):
            yield from page[response_key]
