"""Placement, naming and network of kube-up on AWS."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cfngen.cluster.kube_up.variable import (
    Setting,
    Variable,
    copy_as_boolean_to,
    copy_as_list_to,
    path_of,
    variable_for_keys,
    variable_without_effect,
    whole_number,
)
from cfngen.cluster.zones import zone_region

_SIZE_KEYS = ("nodeGroups[].minSize", "nodeGroups[].maxSize", "nodeGroups[].desiredSize")


def _convert_zone(value: str) -> Sequence[Setting]:
    region = zone_region(value)
    if region is None:
        raise ValueError(f"must be an Availability Zone such as us-west-2a, not {value!r}")
    return [Setting(path_of("network.subnets[0].zone"), value), Setting(path_of("region"), region)]


def _convert_vpc_cidr_base(value: str) -> Sequence[Setting]:
    if not re.fullmatch(r"[0-9]{1,3}\.[0-9]{1,3}", value):
        raise ValueError(f"must be the first two numbers of the VPC's addresses such as 172.20, not {value!r}")
    return [Setting(path_of("network.vpc.cidr"), f"{value}.0.0/16")]


def _convert_node_count(value: str) -> Sequence[Setting]:
    count = whole_number(value)
    return [Setting(path_of(key), max(count, 1) if key.endswith("maxSize") else count) for key in _SIZE_KEYS]


def _convert_reserved_ip(value: str) -> Sequence[Setting]:
    if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", value):
        raise ValueError(
            "CloudFormation needs the allocation id beside the address; set both, api.elasticIp.allocationId and "
            "api.elasticIp.address"
        )
    return []


VARIABLES: tuple[Variable, ...] = (
    variable_without_effect("KUBERNETES_PROVIDER", "aws", "cfngen builds clusters on AWS only, so unset it"),
    variable_for_keys(
        "KUBE_AWS_ZONE",
        ("network.subnets[0].zone", "region"),
        convert=_convert_zone,
        explanation="The region is the zone's.",
    ),
    variable_for_keys("KUBE_AWS_INSTANCE_PREFIX", "name"),
    variable_for_keys(
        "VPC_NAME",
        "network.vpc.name",
        explanation="For a VPC that cfngen creates; existing ones are not looked up by name.",
    ),
    variable_for_keys("VPC_ID", "network.vpc.id"),
    variable_for_keys("SUBNET_ID", "network.subnets[0].id"),
    variable_for_keys(
        "KUBE_VPC_CIDR_BASE",
        "network.vpc.cidr",
        convert=_convert_vpc_cidr_base,
        explanation="`172.20` becomes 172.20.0.0/16.",
    ),
    variable_for_keys("KUBE_SUBNET_CIDR", "network.subnets[0].cidr"),
    variable_for_keys(
        "MASTER_INTERNAL_IP",
        "controlPlane.addresses",
        convert=copy_as_list_to("controlPlane.addresses"),
        explanation="Only for a single master; for several (`controlPlane.count`), list the addresses in the cluster "
        "file.",
    ),
    variable_for_keys("DHCP_OPTION_SET_ID", "network.dhcpOptions"),
    variable_for_keys(
        "SSH_CIDR", "ssh.allowedCidrs", convert=copy_as_list_to("ssh.allowedCidrs"), explanation="Unset, SSH is closed."
    ),
    variable_for_keys(
        "HTTP_API_CIDR",
        "api.allowedCidrs",
        convert=copy_as_list_to("api.allowedCidrs"),
        explanation="If unset, the range is a stack parameter without a default.",
    ),
    Variable(
        name="MASTER_RESERVED_IP",
        handling="accepted",
        explanation="`auto` allocates an Elastic IP, as cfngen does anyway; an address of your own goes into "
        "`api.elasticIp`, "
        "together with its allocation id. Several masters (`controlPlane.count`) have a load balancer instead.",
        convert=_convert_reserved_ip,
        accepted_values=("auto",),
    ),
    variable_for_keys(
        "KUBE_ENABLE_NODE_PUBLIC_IP",
        "nodeGroups[].publicIp",
        convert=copy_as_boolean_to("nodeGroups[].publicIp"),
        old_names=("KUBE_ENABLE_MINION_PUBLIC_IP",),
    ),
    variable_without_effect(
        "KUBE_USE_EXISTING_MASTER",
        "false",
        "add a node group, and a subnet in its zone, to the cluster file instead: a cluster can span several zones",
    ),
    variable_without_effect(
        "MULTIZONE", "*", "It had no effect on AWS; give several `network.subnets`, one for each zone."
    ),
    variable_for_keys(
        "NUM_NODES",
        _SIZE_KEYS,
        convert=_convert_node_count,
        explanation="Sets all three sizes of every group; 0 leaves room for one node.",
        old_names=("NUM_MINIONS",),
    ),
)
