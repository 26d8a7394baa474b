"""Parameters of AWS-specific types, such as AWS::EC2::VPC::Id: whether the account has what their value names."""

from __future__ import annotations

from collections.abc import Mapping

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation.errors import NotModelledError
from cfngen.sandbox.cloudformation.handlers import client

# By parameter type: the EC2 method that describes such objects, its argument for their names, and its list of results.
DESCRIBE_CALLS: Mapping[str, tuple[str, str, str]] = {
    "AWS::EC2::AvailabilityZone::Name": ("describe_availability_zones", "ZoneNames", "AvailabilityZones"),
    "AWS::EC2::Image::Id": ("describe_images", "ImageIds", "Images"),
    "AWS::EC2::KeyPair::KeyName": ("describe_key_pairs", "KeyNames", "KeyPairs"),
    "AWS::EC2::Subnet::Id": ("describe_subnets", "SubnetIds", "Subnets"),
    "AWS::EC2::VPC::Id": ("describe_vpcs", "VpcIds", "Vpcs"),
}


def parameter_value_exists(region: str, parameter_type: str, value: str) -> bool:
    """Whether the account has the object that a parameter of an AWS-specific type names.

    Raises:
        NotModelledError: the emulator does not support the type
    """
    if parameter_type not in DESCRIBE_CALLS:
        raise NotModelledError(f"parameter type {parameter_type}")
    method, argument, results = DESCRIBE_CALLS[parameter_type]
    try:
        response = getattr(client("ec2", region), method)(**{argument: [value]})
    except ClientError:
        return False
    return bool(response[results])
