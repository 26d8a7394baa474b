"""Parameters of AWS-specific types such as AWS::EC2::VPC::Id: whether their values exist in the account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation.errors import NotModelledError
from cfngen.sandbox.cloudformation.handlers import client


class DescribeCall(NamedTuple):
    """A call of EC2 that finds objects by their ids or names.

    Attributes:
        method: the method of boto3's EC2 client.
        filter_argument: the argument that takes the ids or names.
        result_key: the key of the list of found objects in the response.
    """

    method: str
    filter_argument: str
    result_key: str


DESCRIBE_CALLS_BY_PARAMETER_TYPE: Mapping[str, DescribeCall] = {
    "AWS::EC2::AvailabilityZone::Name": DescribeCall("describe_availability_zones", "ZoneNames", "AvailabilityZones"),
    "AWS::EC2::Image::Id": DescribeCall("describe_images", "ImageIds", "Images"),
    "AWS::EC2::KeyPair::KeyName": DescribeCall("describe_key_pairs", "KeyNames", "KeyPairs"),
    "AWS::EC2::SecurityGroup::Id": DescribeCall("describe_security_groups", "GroupIds", "SecurityGroups"),
    "AWS::EC2::Subnet::Id": DescribeCall("describe_subnets", "SubnetIds", "Subnets"),
    "AWS::EC2::VPC::Id": DescribeCall("describe_vpcs", "VpcIds", "Vpcs"),
}


def parameter_value_exists(region: str, parameter_type: str, value: str) -> bool:
    """Whether a parameter's value, such as a VPC id for the type AWS::EC2::VPC::Id, exists in the account.

    Raises:
        NotModelledError: the emulator does not support the parameter type
    """
    if parameter_type == "AWS::Route53::HostedZone::Id":
        return _hosted_zone_exists(region, value)
    if parameter_type not in DESCRIBE_CALLS_BY_PARAMETER_TYPE:
        raise NotModelledError(f"parameter type {parameter_type}")
    describe_call = DESCRIBE_CALLS_BY_PARAMETER_TYPE[parameter_type]
    describe = getattr(client("ec2", region), describe_call.method)
    try:
        response = describe(**{describe_call.filter_argument: [value]})
    except ClientError:  # EC2 refuses ids and names that do not exist
        return False
    return bool(response[describe_call.result_key])


def _hosted_zone_exists(region: str, zone_id: str) -> bool:
    try:
        client("route53", region).get_hosted_zone(Id=zone_id)
    except ClientError:
        return False
    return True
