"""Placement, naming and network of kube-up on AWS."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cfngen.cluster.defaults import zone_region
from cfngen.cluster.kube_up.variable import (
    Setting,
    Variable,
    accepted_only,
    as_boolean,
    as_list,
    path_of,
    sets_keys,
    whole_number,
)

_SIZES = ("nodeGroups[].minSize", "nodeGroups[].maxSize", "nodeGroups[].desiredSize")


def _zone(value: str) -> Sequence[Setting]:
    region = zone_region(value)
    if region is None:
        raise ValueError(f"must be an Availability Zone such as us-west-2a, not {value!r}")
    return [(path_of("network.subnets[0].zone"), value), (path_of("region"), region)]


def _vpc_cidr(value: str) -> Sequence[Setting]:
    if not re.fullmatch(r"[0-9]{1,3}\.[0-9]{1,3}", value):
        raise ValueError(f"must be the first two numbers of the VPC's addresses such as 172.20, not {value!r}")
    return [(path_of("network.vpc.cidr"), f"{value}.0.0/16")]


def _nodes(value: str) -> Sequence[Setting]:
    number = whole_number(value)
    return [(path_of(key), max(number, 1) if key.endswith("maxSize") else number) for key in _SIZES]


def _reserved_ip(value: str) -> Sequence[Setting]:
    if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", value):
        raise ValueError(
            "CloudFormation needs the allocation id beside the address; set both, api.elasticIp.allocationId and "
            "api.elasticIp.address"
        )
    return []


VARIABLES: tuple[Variable, ...] = (
    accepted_only("KUBERNETES_PROVIDER", "aws", "cfngen builds clusters on AWS only, so unset it"),
    sets_keys("KUBE_AWS_ZONE", ("network.subnets[0].zone", "region"), _zone, "The region is the zone's."),
    sets_keys("KUBE_AWS_INSTANCE_PREFIX", "name"),
    sets_keys(
        "VPC_NAME",
        "network.vpc.name",
        explanation="For a VPC that cfngen creates; existing ones are not looked up by name.",
    ),
    sets_keys("VPC_ID", "network.vpc.id"),
    sets_keys("SUBNET_ID", "network.subnets[0].id"),
    sets_keys("KUBE_VPC_CIDR_BASE", "network.vpc.cidr", _vpc_cidr, "`172.20` becomes 172.20.0.0/16."),
    sets_keys("KUBE_SUBNET_CIDR", "network.subnets[0].cidr"),
    sets_keys(
        "MASTER_INTERNAL_IP",
        "controlPlane.addresses",
        as_list("controlPlane.addresses"),
        "Only for a single master; for several (`controlPlane.count`), list the addresses in the cluster file.",
    ),
    sets_keys("DHCP_OPTION_SET_ID", "network.dhcpOptions"),
    sets_keys("SSH_CIDR", "ssh.allowedCidrs", as_list("ssh.allowedCidrs"), "Unset, SSH is closed."),
    sets_keys(
        "HTTP_API_CIDR",
        "api.allowedCidrs",
        as_list("api.allowedCidrs"),
        "If unset, the range is a stack parameter without a default.",
    ),
    Variable(
        "MASTER_RESERVED_IP",
        "accepted",
        "`auto` allocates an Elastic IP, as cfngen does anyway; an address of your own goes into `api.elasticIp`, "
        "together with its allocation id. Several masters (`controlPlane.count`) have a load balancer instead.",
        convert=_reserved_ip,
        accepted_values=("auto",),
    ),
    sets_keys(
        "KUBE_ENABLE_NODE_PUBLIC_IP",
        "nodeGroups[].publicIp",
        as_boolean("nodeGroups[].publicIp"),
        old_names=("KUBE_ENABLE_MINION_PUBLIC_IP",),
    ),
    accepted_only(
        "KUBE_USE_EXISTING_MASTER",
        "false",
        "add a node group, and a subnet in its zone, to the cluster file instead: a cluster can span several zones",
    ),
    accepted_only("MULTIZONE", "*", "It had no effect on AWS; give several `network.subnets`, one for each zone."),
    sets_keys(
        "NUM_NODES",
        _SIZES,
        _nodes,
        "Sets all three sizes of every group; 0 leaves room for one node.",
        old_names=("NUM_MINIONS",),
    ),
)
