"""The VPC itself: whether it exists, its DNS attributes, and what of it is not of this VPC."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cfngen.deploy.preflight.findings import Finding, problem, warning
from cfngen.deploy.preflight.network.endpoints import subnets_without_way_out
from cfngen.deploy.preflight.network.situation import Situation

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
