"""Checks that the services with additional VPC endpoints exist in the region and admit the account.

Otherwise EC2 refuses the endpoint in the middle of a creation or update (`InvalidServiceName`).
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.endpoints import interface_endpoints, service_name
from cfngen.deploy.account import Account


def find_problems(account: Account, cluster: Cluster) -> Iterator[str]:
    """Yield a problem for each additional service to which the account can create no endpoint.

    Args:
        account: the account and region.
        cluster: the cluster.

    Raises:
        cfngen.deploy.aws_errors.AwsError: AWS does not answer; the caller translates boto3's errors.
    """
    additional = cluster.network.endpoints.additional
    if not additional or not interface_endpoints(cluster):
        return
    names = [service_name(service, cluster.region) for service in additional]
    # All services, since a call with names fails if one of them does not exist. Of other accounts' services these are
    # the ones that admit this account (DescribeVpcEndpointServices, EC2 API Reference).
    pages = account.client("ec2").get_paginator("describe_vpc_endpoint_services").paginate()
    known = {name for page in pages for name in page["ServiceNames"]}
    for index, name in enumerate(names):
        if name not in known:
            yield (
                f"network.endpoints.additional[{index}]: there is no service {name} in {account.region}, or it does "
                f"not admit account {account.id}; correct the name, or remove it"
            )
