"""The services that VPC endpoints can lead to, as DescribeVpcEndpointServices answers.

moto 5.2.5 asks many of its own services for theirs, and needs packages for that which the emulator does without.
"""

from __future__ import annotations

import functools
from typing import Literal

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.services.networks import zones

EndpointType = Literal["Gateway", "Interface"]
# AWS PrivateLink guide, "Gateway endpoints": "Amazon S3 and DynamoDB"; both have interface endpoints as well.
_GATEWAY_SERVICES = ("s3", "dynamodb")
# DescribeVpcEndpointServices in China, as listed in aws/aws-cdk#16139.
_CN_PREFIXED_SERVICES = ("autoscaling", "cloudformation", "ec2", "ecr.api", "ecr.dkr", "sts")


@functools.cache
def services_of_aws(region: str) -> tuple[JsonObject, ...]:
    """Return the services of AWS in a region as ServiceDetail of EC2; a service with both types is there twice."""
    from moto.core.base_backend import BaseBackend
    from moto.ec2.models.vpcs import AWS_ENDPOINT_SERVICES

    region_zones = zones(region)
    details: list[JsonObject] = []
    for service in sorted({*AWS_ENDPOINT_SERVICES, *_GATEWAY_SERVICES}):
        types: tuple[EndpointType, ...] = ("Gateway", "Interface") if service in _GATEWAY_SERVICES else ("Interface",)
        for endpoint_type in types:
            [detail] = BaseBackend.default_vpc_endpoint_service_factory(region, region_zones, service, endpoint_type)
            if region.startswith("cn-") and service in _CN_PREFIXED_SERVICES:
                detail = {**detail, "ServiceName": f"cn.{detail['ServiceName']}"}
            details.append(detail)
    return tuple(details)


def private_dns_name(region: str, service_name: str) -> str:
    """Return the private DNS name of a service of AWS, such as `ec2.us-west-2.amazonaws.com`; else its own name."""
    names = (
        detail.get("PrivateDnsName") for detail in services_of_aws(region) if detail["ServiceName"] == service_name
    )
    return str(next(names, None) or service_name)
