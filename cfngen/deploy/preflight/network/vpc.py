"""Judges the VPC: whether it exists, its DNS attributes, and its ranges and addresses: none may be used twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Network

from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.cluster.naming.names import load_balancer_name
from cfngen.cluster.network.address_plan import LOAD_BALANCER_ADDRESSES, address_demand
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import range_text, usable_address_count
from cfngen.deploy.aws.addresses import describe_holder, find_used_addresses
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.preflight.findings import Finding, problem, warning
from cfngen.deploy.preflight.network.endpoints import subnets_without_way_out
from cfngen.deploy.preflight.network.routes import target_of
from cfngen.deploy.preflight.network.situation import DEFAULT_ROUTE, Situation
from cfngen.text import join_and, pluralize

VPC_ID_KEY = "network.vpc.id"
_VPC_CIDR_KEY = "network.vpc.cidr"
_ADDRESSES_KEY = "controlPlane.addresses"


def find_missing_vpc(situation: Situation) -> Iterator[Finding]:
    """Yield a problem if there is no such VPC."""
    if situation.facts.vpc is None:
        yield problem(
            VPC_ID_KEY,
            f"there is no VPC {situation.vpc_id} in {situation.region}",
            "correct the id, the region or the credentials; this lists the VPCs",
            f"aws ec2 describe-vpcs --region {situation.region}",
        )


def find_dns_problems(situation: Situation) -> Iterator[Finding]:
    """Yield a finding for each DNS attribute of the VPC that is off.

    Endpoints with private DNS names need both ("Enable DNS support", AWS PrivateLink Guide, Access an AWS service).
    """
    if situation.facts.has_dns_support is False:
        yield problem(
            VPC_ID_KEY,
            f"{situation.vpc_id} has no DNS support, so instances resolve no names, not even of AWS services",
            "switch enableDnsSupport on",
            f"aws ec2 modify-vpc-attribute --region {situation.region} --vpc-id {situation.vpc_id} "
            "--enable-dns-support",
        )
    if situation.facts.has_dns_host_names is False:
        needs_private_names = bool(subnets_without_way_out(situation))
        reason = (
            "so its endpoints have no private DNS names, and instances do not find them"
            if needs_private_names
            else "so instances and private hosted zones have no names in it"
        )
        finding = problem if needs_private_names else warning
        yield finding(
            VPC_ID_KEY,
            f"{situation.vpc_id} has no DNS host names, {reason}",
            "switch enableDnsHostnames on",
            f"aws ec2 modify-vpc-attribute --region {situation.region} --vpc-id {situation.vpc_id} "
            "--enable-dns-hostnames",
        )


def find_foreign_objects(situation: Situation) -> Iterator[Finding]:
    """Yield a problem for each object of the cluster file that does not exist, or is not what the file says."""
    for finding in situation.foreign:
        yield replace(finding, remedy="correct the cluster file")


def find_used_master_addresses(situation: Situation) -> Iterator[Finding]:
    """Yield a problem for each fixed address of a master that something else has."""
    letters = {
        situation.values.get(str(MasterId(slot.letter, "Address")), str(slot.address)): slot.letter
        for slot in situation.cluster.slots
    }
    for used in find_used_addresses(letters, list(situation.facts.interfaces)):
        if situation.is_own(used.interface):
            continue
        yield problem(
            _ADDRESSES_KEY,
            f"master {used.master_letter} needs {used.address}, which {describe_holder(used.interface)} uses",
            "set it to free addresses, or free this one",
            f"aws ec2 describe-network-interfaces --region {situation.region} "
            f"--network-interface-ids {used.interface['NetworkInterfaceId']}",
        )


def find_full_subnets(situation: Situation) -> Iterator[Finding]:
    """Yield a finding for each subnet without enough free addresses for what the cluster has in it.

    If pods have addresses of the subnet, each node needs more than the one that is counted here.
    """
    pods_take_addresses = network_plugin(situation.cluster).gives_pods_vpc_addresses
    descriptions = {subnet.path: described for subnet, described in situation.existing_subnets}
    for subnet in situation.subnets:
        described = descriptions.get(subnet.path)
        if subnet.cidr is None or (subnet.id and described is None):
            continue
        free = _free_addresses(situation, subnet.cidr, described)
        demand = address_demand(situation.cluster, subnet.zone, is_public_tier=subnet.is_public)
        at_maximum = demand.at_first + demand.growth
        room = f"{subnet.name} has {pluralize(free, 'free address')}"
        if free < demand.at_first:
            text = f"{room}, and the cluster needs {demand.at_first} ({demand})"
            yield problem(subnet.range_key, text, "use a larger subnet, or fewer nodes")
        elif free < at_maximum:
            text = f"{room}, and the cluster needs {at_maximum} when its groups have their greatest size"
            yield warning(subnet.range_key, text, "use a larger subnet, or reduce maxSize of its groups")
        elif pods_take_addresses and not subnet.is_public and free < 2 * at_maximum:
            text = f"{room}; the cluster needs {at_maximum}, and every pod needs one as well"
            yield warning(subnet.range_key, text, "use a larger subnet, or another network.plugin")


def _free_addresses(situation: Situation, cidr: IPv4Network, described: AwsObject | None) -> int:
    """Return how many addresses of a subnet are free for this cluster, with those that the cluster has already."""
    if described is None:
        return usable_address_count(cidr)
    facts, cluster = situation.facts, situation.cluster
    here = [interface for interface in facts.interfaces if interface["SubnetId"] == described["SubnetId"]]
    # Interfaces of services bear no tags. Their descriptions end in the endpoint's or the gateway's id, or name the
    # load balancer.
    own_ids = [endpoint["VpcEndpointId"] for endpoint in facts.endpoints if situation.is_own(endpoint)]
    own_ids += [gateway["NatGatewayId"] for gateway in facts.nat_gateways if situation.is_own(gateway)]
    names = tuple(f"ELB net/{load_balancer_name(cluster, is_public=is_public)}/" for is_public in (True, False))
    descriptions = [str(interface.get("Description", "")) for interface in here if not situation.is_own(interface)]
    of_balancers = sum(description.startswith(names) for description in descriptions)
    of_services = sum(description.endswith(tuple(own_ids)) for description in descriptions) if own_ids else 0
    own = len(here) - len(descriptions) + of_services + of_balancers
    # A load balancer that is there asks for no more.
    return int(described["AvailableIpAddressCount"]) + own + (LOAD_BALANCER_ADDRESSES - 1 if of_balancers else 0)


def find_overlaps(situation: Situation) -> Iterator[Finding]:
    """Yield a finding for each range of pods or services that the VPC, a peer or a route has as well."""
    network = situation.cluster.network
    ranges = {"network.serviceCidr": network.service_cidr}
    if network_plugin(situation.cluster).uses_pod_cidr:
        ranges["network.podCidr"] = network.pod_cidr
    remedy = "choose another range, which nothing in the VPC's surroundings has"
    for key, cidr in ranges.items():
        shown = range_text(situation.cluster, key.removeprefix("network."), cidr)
        for block in situation.vpc_ranges:
            if cidr.overlaps(block):
                yield problem(key, f"{shown} overlaps {block} of {situation.vpc_id}", remedy)
        for peering_id, peer_id, block in _peer_ranges(situation):
            if cidr.overlaps(block):
                text = f"{shown} overlaps {block} of {peer_id} ({peering_id}), which pods therefore do not reach"
                yield warning(key, text, remedy)
        for table_id, destination, target in _routes(situation):
            if not cidr.overlaps(destination):
                continue
            text = f"{shown} overlaps the route to {destination} ({target}) in {table_id}"
            # EC2 takes the most specific route, and that of a node's pods is a /24.
            takes_pods = network_plugin(situation.cluster).uses_vpc_routes and destination.subnet_of(cidr)
            if key == "network.podCidr" and takes_pods:
                yield problem(key, f"{text}, so packets to pods would go there", remedy)
            else:
                yield warning(key, f"{text}; pods do not reach what is there", remedy)


def _peer_ranges(situation: Situation) -> Iterator[tuple[str, str, IPv4Network]]:
    """Yield for each range of a peer: the peering connection, the peer and the range."""
    for peering in situation.facts.peerings:
        for side in ("RequesterVpcInfo", "AccepterVpcInfo"):
            peer = peering.get(side, {})
            if peer.get("VpcId") == situation.vpc_id:
                continue
            blocks = [each["CidrBlock"] for each in peer.get("CidrBlockSet", ())] or [peer.get("CidrBlock")]
            for block in blocks:
                if block:
                    yield peering["VpcPeeringConnectionId"], str(peer.get("VpcId")), IPv4Network(block)


def _routes(situation: Situation) -> Iterator[tuple[str, IPv4Network, str]]:
    """Yield for each other route of the cluster's tables: the table, the destination and what it leads to.

    The VPC's own range and the default route are left out, as are the routes to this cluster's pods.
    """
    tables = {}
    for subnet in situation.instance_subnets:
        table = situation.route_table(subnet)
        if table is not None:
            tables[table["RouteTableId"]] = table
    for table_id, table in tables.items():
        for route in table["Routes"]:
            destination, target = route.get("DestinationCidrBlock", ""), target_of(route)
            is_own = route.get("InstanceId") in situation.own_instances
            if destination and destination != DEFAULT_ROUTE and target != "local" and not is_own:
                yield table_id, IPv4Network(destination), target


def find_range_problems(situation: Situation) -> Iterator[Finding]:
    """Yield a problem if the VPC does not have the range in the cluster file."""
    cidr = situation.cluster.network.vpc.cidr
    ranges = situation.vpc_ranges
    if cidr not in ranges:
        noun = "range" if len(ranges) == 1 else "ranges"
        yield problem(
            _VPC_CIDR_KEY,
            f"{situation.vpc_id} has the {noun} {join_and([*map(str, ranges)])} and not {cidr}",
            f"set it to {ranges[0]}",
        )


def find_occupied_ranges(situation: Situation) -> Iterator[Finding]:
    """Yield a problem for each range of a subnet to be created that is outside of the VPC, or not free."""
    for subnet in situation.subnets:
        cidr = subnet.cidr
        if subnet.id or cidr is None:
            continue
        if not any(cidr.subnet_of(block) for block in situation.vpc_ranges):
            ranges = ", ".join(map(str, situation.vpc_ranges))
            yield problem(
                subnet.range_key, f"{cidr} is not in {situation.vpc_id} ({ranges})", "choose a free range of the VPC"
            )
        for existing in situation.facts.subnets:
            # A subnet for IPv6 only has no IPv4 range.
            taken = IPv4Network(existing["CidrBlock"]) if "CidrBlock" in existing else None
            if taken and cidr.overlaps(taken) and not situation.is_own(existing):
                yield problem(
                    subnet.range_key,
                    f"{cidr} is not free: {existing['SubnetId']} has {existing['CidrBlock']}",
                    f"choose a free range of {situation.vpc_id}, or use the existing subnet ({subnet.id_key})",
                    f"aws ec2 describe-subnets --region {situation.region} "
                    f"--filters Name=vpc-id,Values={situation.vpc_id}",
                )
