"""The AWS services that instances call, each with the reason: their VPC endpoints, and the hosts that answer.

Names come from "AWS services that integrate with AWS PrivateLink" (AWS PrivateLink Guide, November 2026), without
the region. Masters and nodes do not call AWS KMS themselves: EBS, Secrets Manager and S3 do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.topology import availability_zones, is_private
from cfngen.cluster.sections.network import EndpointOfService

S3 = "s3"
_CN_PREFIXED = frozenset({"autoscaling", "cloudformation", "ec2", "ecr.api", "ecr.dkr", "sts"})
# Services with one host for all regions of a partition, by the partition ("Service endpoints and quotas", AWS General
# Reference).
_GLOBAL_HOSTS = {
    "iam": {"": "iam.amazonaws.com", "cn": "iam.cn-north-1.amazonaws.com.cn", "us-gov": "iam.us-gov.amazonaws.com"},
    "route53": {
        "": "route53.amazonaws.com",
        "cn": "route53.amazonaws.com.cn",
        "us-gov": "route53.us-gov.amazonaws.com",
    },
}


class Endpoint(NamedTuple):
    """An interface endpoint.

    Attributes:
        service: the service's name in the endpoint's service name, e.g. `ecr.dkr`.
    """

    service: str
    reason: str


_TABLE: tuple[tuple[Endpoint, Callable[[Cluster], bool]], ...] = (
    (Endpoint("autoscaling", "lifecycle hooks, and the cluster autoscaler"), lambda cluster: True),
    (Endpoint("cloudformation", "the boot program and its signals"), lambda cluster: True),
    (Endpoint("ec2", "volumes, addresses, routes, and the cloud controller manager"), lambda cluster: True),
    (Endpoint("ecr.api", "credentials for images in Amazon ECR"), lambda cluster: True),
    (Endpoint("ecr.dkr", "images in Amazon ECR"), lambda cluster: True),
    (Endpoint("elasticloadbalancing", "load balancers of services"), lambda cluster: True),
    (Endpoint("secretsmanager", "the certificate authorities and the join secret"), lambda cluster: True),
    (
        Endpoint("sts", "credentials of pods with roles of their own"),
        lambda cluster: cluster.service_account_issuer is not None,
    ),
    (Endpoint("ec2messages", "Session Manager"), lambda cluster: cluster.ssh.session_manager),
    (Endpoint("ssm", "Session Manager"), lambda cluster: cluster.ssh.session_manager),
    (Endpoint("ssmmessages", "Session Manager"), lambda cluster: cluster.ssh.session_manager),
    (Endpoint("logs", "Fluent Bit's output to CloudWatch Logs"), lambda cluster: cluster.addons.fluent_bit.enabled),
)


def required_services(cluster: Cluster) -> tuple[Endpoint, ...]:
    """Return the services with an interface endpoint that instances call, whichever way they reach them."""
    return tuple(endpoint for endpoint, is_required in _TABLE if is_required(cluster))


def interface_endpoints(cluster: Cluster) -> tuple[Endpoint, ...]:
    """Return the interface endpoints to create; none if instances reach the services through a NAT gateway."""
    network = cluster.network
    if not is_private(cluster) or network.nat != "none" or not network.endpoints.create:
        return ()
    required = required_services(cluster)
    services = {endpoint.service for endpoint in required}
    additional = [
        Endpoint(service, "network.endpoints.additional")
        for service in network.endpoints.additional
        if service not in services
    ]
    return (*required, *additional)


def settings_of(cluster: Cluster, service: str) -> EndpointOfService:
    """Return what the cluster file says about a service's endpoint, whichever of its names it uses."""
    name = service_name(service, cluster.region)
    entries = cluster.network.endpoints.services
    matching = (entry for entry in entries if service_name(entry.service, cluster.region) == name)
    return next(matching, EndpointOfService(service=service))


def endpoint_zones(cluster: Cluster, service: str) -> tuple[str, ...]:
    """Return the zones in which the interface endpoint of a service gets an address."""
    zones = settings_of(cluster, service).zones
    return tuple(zone for zone in availability_zones(cluster) if not zones or zone in zones)


def known_endpoints() -> tuple[Endpoint, ...]:
    """Return all interface endpoints that some clusters need, e.g. to name one that an update removes."""
    return tuple(endpoint for endpoint, _ in _TABLE)


def has_s3_endpoint(cluster: Cluster) -> bool:
    """Return whether the private route tables that cfngen creates get a gateway endpoint for S3, which is free."""
    return is_private(cluster) and cluster.network.endpoints.create


def service_name(service: str, region: str) -> str:
    """Return the service name of an endpoint, such as `com.amazonaws.us-west-2.ec2`; a full name is left as it is.

    In China the names of some services start with `cn.com.amazonaws` (DescribeVpcEndpointServices there, as listed in
    aws/aws-cdk#16139).
    """
    if service.startswith(("com.", "cn.com.")):
        return service
    prefix = "cn.com.amazonaws" if region.startswith("cn-") and service in _CN_PREFIXED else "com.amazonaws"
    return f"{prefix}.{region}.{service}"


def service_hosts(service: str, region: str) -> tuple[str, ...]:
    """Return the hosts at which a service answers in a region, such as `ec2.us-west-2.amazonaws.com`.

    An asterisk stands for any name, of a bucket or of an account's registry.
    """
    suffix = dns_suffix(region)
    if service in _GLOBAL_HOSTS:
        partition = "cn" if region.startswith("cn-") else "us-gov" if region.startswith("us-gov-") else ""
        return (_GLOBAL_HOSTS[service][partition],)
    if service == S3:
        return (f"s3.{region}.{suffix}", f"*.s3.{region}.{suffix}")
    if service == "ecr.api":
        return (f"api.ecr.{region}.{suffix}",)
    if service == "ecr.dkr":
        return (f"*.dkr.ecr.{region}.{suffix}",)
    return (f"{service}.{region}.{suffix}",)


def dns_suffix(region: str) -> str:
    """Return the domain of AWS's services in a region's partition."""
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
