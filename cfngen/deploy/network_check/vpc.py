"""Judges the VPC and its subnets: whether they are what the cluster file says, and DNS."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.deploy.network_check.endpoints import subnets_without_way_out
from cfngen.deploy.network_check.findings import Finding, problem, warning
from cfngen.deploy.network_check.situation import Situation
from cfngen.text import join_and

VPC_ID_KEY = "network.vpc.id"
VPC_CIDR_KEY = "network.vpc.cidr"


def find_missing_vpc(situation: Situation) -> Iterator[Finding]:
    """Yield a problem if there is no such VPC."""
    if situation.facts.vpc is None:
        yield problem(
            VPC_ID_KEY,
            f"there is no VPC {situation.vpc_id} in {situation.region}",
            "correct the id, the region or the credentials; this lists the VPCs",
            f"aws ec2 describe-vpcs --region {situation.region}",
        )


def find_range_problems(situation: Situation) -> Iterator[Finding]:
    """Yield a problem if the VPC does not have the range in the cluster file."""
    cidr = situation.cluster.network.vpc.cidr
    ranges = situation.vpc_ranges
    if cidr not in ranges:
        noun = "range" if len(ranges) == 1 else "ranges"
        yield problem(
            VPC_CIDR_KEY,
            f"{situation.vpc_id} has the {noun} {join_and([*map(str, ranges)])} and not {cidr}",
            f"set it to {ranges[0]}",
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
    for sentence in situation.facts.foreign:
        key, _, text = sentence.partition(": ")
        yield problem(key, text, "correct the cluster file")


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
            if cidr.overlaps(type(cidr)(existing["CidrBlock"])) and not situation.is_own(existing):
                yield problem(
                    subnet.range_key,
                    f"{cidr} is not free: {existing['SubnetId']} has {existing['CidrBlock']}",
                    f"choose a free range of {situation.vpc_id}, or use the existing subnet ({subnet.id_key})",
                    f"aws ec2 describe-subnets --region {situation.region} "
                    f"--filters Name=vpc-id,Values={situation.vpc_id}",
                )
