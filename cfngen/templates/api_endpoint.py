"""The endpoints of the Kubernetes API: the addresses of a single master, or load balancers for several.

Only clients outside the cluster use them. On masters and nodes, /etc/hosts resolves the API's name to the masters'
fixed private addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from troposphere import GetAtt, Ref, ec2
from troposphere import elasticloadbalancingv2 as elb

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.cluster.naming.names import load_balancer_name
from cfngen.cluster.naming.network_ids import SecurityGroupRole
from cfngen.cluster.network.topology import (
    availability_zones,
    has_both_endpoints,
    has_internal_load_balancer,
    has_public_endpoint,
    has_public_load_balancer,
    internal_name,
    is_private,
    public_name,
)
from cfngen.cluster.sections.instances import Slot
from cfngen.cluster.sections.network import ElasticIp
from cfngen.templates import api_dns
from cfngen.templates.network_references import IPV4_PATTERN, public_subnet_id, subnet_id, vpc_id
from cfngen.templates.security_groups import extra_security_groups, first_group
from cfngen.templates.stack import ACCESS, PropertyValue, Stack
from cfngen.templates.tagging import tags

# Logical ids on which resources with a public address depend. The VPC stack has this resource unless the VPC exists
# already.
_GATEWAY_ATTACHMENT = ("InternetGatewayAttachment",)

# After two failed checks (20 seconds) the load balancer sends a master no more connections. The API server answers
# /readyz without authentication (built-in role system:public-info-viewer), with 200 only once its etcd member answers
# and its informers have synced.
_HEALTH_CHECK = {
    "HealthCheckEnabled": True,
    "HealthCheckProtocol": "HTTPS",
    "HealthCheckPath": "/readyz",
    "HealthCheckIntervalSeconds": 10,
    "HealthCheckTimeoutSeconds": 6,
    "HealthyThresholdCount": 2,
    "UnhealthyThresholdCount": 2,
}
_TARGET_GROUP_ATTRIBUTES = {
    # A target is deregistered only when its master slot is removed. Its connections are closed after this time.
    "deregistration_delay.timeout_seconds": "60",
    # If client addresses were preserved, a master's connection to the API would fail whenever the load balancer sends
    # it back to the same master. So masters see the load balancer's address instead.
    "preserve_client_ip.enabled": "false",
    # Connections to a lost master are closed at once; otherwise clients would wait for an answer.
    "target_health_state.unhealthy.connection_termination.enabled": "true",
}


class PublicAddress(NamedTuple):
    """A master's public address.

    Attributes:
        address: the public IPv4 address, or a reference to it.
        association: the resource that associates the address with the master's network interface. The master's
            instance must be launched after it.
    """

    address: PropertyValue
    association: ec2.EIPAssociation


def add_elastic_ip(stack: Stack, cluster: Cluster, master_slot: Slot, interface: ec2.NetworkInterface) -> PublicAddress:
    """Associate an Elastic IP with a master's network interface: a new one, or the one that the cluster file names.

    If the cluster has one master, the Elastic IP is the API's public address. If the cluster has several masters, each
    master still needs an Elastic IP to reach the internet, because a launch template that names an existing interface
    cannot request a public address.
    """
    if cluster.api.elastic_ip:
        allocation_id, public_address = _elastic_ip_parameters(stack, cluster.api.elastic_ip)
    else:
        elastic_ip = ec2.EIP(
            str(MasterId(master_slot.letter, "ElasticIp")),
            Domain="vpc",
            Tags=tags(cluster, f"{cluster.name}-master-{master_slot.letter}"),
        )
        # CloudFormation's reference of AWS::EC2::EIP requires this dependency. The association refers to the EIP, so it
        # also waits for the internet gateway.
        stack.add(elastic_ip, depends_on_in_standalone_template=_GATEWAY_ATTACHMENT)
        allocation_id, public_address = GetAtt(elastic_ip, "AllocationId"), GetAtt(elastic_ip, "PublicIp")
    association = stack.add(
        ec2.EIPAssociation(
            str(MasterId(master_slot.letter, "ElasticIpAssociation")),
            AllocationId=allocation_id,
            NetworkInterfaceId=Ref(interface),
        ),
        # EC2 associates an address only once the VPC has its internet gateway.
        depends_on_in_standalone_template=_GATEWAY_ATTACHMENT if cluster.api.elastic_ip else (),
    )
    return PublicAddress(public_address, association)


def _elastic_ip_parameters(stack: Stack, existing: ElasticIp) -> tuple[PropertyValue, PropertyValue]:
    """Add the parameters for an existing Elastic IP; return references to its allocation id and its address."""
    allocation_id = stack.parameter(
        "ApiElasticIpAllocationId",
        label="Allocation id of the Elastic IP",
        parameter_group=ACCESS,
        description="Allocation id of the existing Elastic IP of the Kubernetes API",
        default=existing.allocation_id,
        AllowedPattern="^eipalloc-[0-9a-f]{8,17}$",
        ConstraintDescription="must be an allocation id, eipalloc-…",
    )
    address = stack.parameter(
        "ApiElasticIp",
        label="Address of the Elastic IP",
        parameter_group=ACCESS,
        description="Address of the existing Elastic IP; the API server's certificate contains it",
        default=str(existing.address),
        AllowedPattern=IPV4_PATTERN,
        ConstraintDescription="must be an IPv4 address",
    )
    return allocation_id, address


def _add_load_balancer(
    stack: Stack, cluster: Cluster, interfaces: Sequence[ec2.NetworkInterface], *, is_public: bool
) -> elb.LoadBalancer:
    """Add the API's public or internal load balancer; return it.

    A network load balancer passes TLS through, so client certificates reach the API server. The targets are the fixed
    private addresses of the masters, which do not change when an instance is replaced, so no instance has to register
    itself. Each load balancer has a target group of its own: a target group can belong to one load balancer only
    ("Target groups for your Network Load Balancers", Elastic Load Balancing User Guide).
    """
    # The logical ids differ between the two schemes, so a cluster that gets a second endpoint keeps the first one, and
    # a change of the scheme creates the new load balancer before the old one is deleted.
    logical_id_prefix = "Api" if is_public else "InternalApi"
    balancer_name = load_balancer_name(cluster, is_public=is_public)
    # Beside a public load balancer, the internal one has security groups of its own.
    role: SecurityGroupRole = "InternalApiLoadBalancer" if not is_public and cluster.api.public else "ApiLoadBalancer"
    # Network load balancers take no subnets of Local Zones (CreateLoadBalancer, Elastic Load Balancing API Reference).
    zones = availability_zones(cluster)
    balancer_subnet_id = public_subnet_id if is_public and is_private(cluster) else subnet_id
    balancer = stack.add(
        elb.LoadBalancer(
            f"{logical_id_prefix}LoadBalancer",
            # A load balancer gets any free address of its subnets, so the masters' fixed ones must be taken before.
            DependsOn=[interface.title for interface in interfaces],
            Name=balancer_name,
            Type="network",
            Scheme="internet-facing" if is_public else "internal",
            IpAddressType="ipv4",
            Subnets=[balancer_subnet_id(stack, cluster, zone) for zone in zones],
            SecurityGroups=[first_group(stack, cluster, role), *extra_security_groups(stack, cluster, role)],
            # A connection that arrives in a zone without a healthy master goes to a master in another zone.
            LoadBalancerAttributes=[elb.LoadBalancerAttributes(Key="load_balancing.cross_zone.enabled", Value="true")],
            Tags=tags(cluster, balancer_name),
        ),
        depends_on_in_standalone_template=_GATEWAY_ATTACHMENT if is_public else (),
    )
    target_group = _add_target_group(stack, cluster, interfaces, logical_id_prefix, balancer_name)
    stack.add(
        elb.Listener(
            f"{logical_id_prefix}Listener",
            LoadBalancerArn=Ref(balancer),
            Protocol="TCP",
            Port=cluster.api.port,
            DefaultActions=[elb.Action(Type="forward", TargetGroupArn=Ref(target_group))],
            Tags=tags(cluster, balancer_name),
        )
    )
    return balancer


def _add_target_group(
    stack: Stack, cluster: Cluster, interfaces: Sequence[ec2.NetworkInterface], logical_id_prefix: str, name_tag: str
) -> elb.TargetGroup:
    return stack.add(
        elb.TargetGroup(
            f"{logical_id_prefix}TargetGroup",
            VpcId=vpc_id(stack, cluster),
            Protocol="TCP",
            Port=cluster.api.port,
            TargetType="ip",
            Targets=[
                elb.TargetDescription(Id=GetAtt(interface, "PrimaryPrivateIpAddress"), Port=cluster.api.port)
                for interface in interfaces
            ],
            TargetGroupAttributes=[
                elb.TargetGroupAttribute(Key=key, Value=value)
                for key, value in sorted(_TARGET_GROUP_ATTRIBUTES.items())
            ],
            Tags=tags(cluster, name_tag),
            **_HEALTH_CHECK,
        )
    )


class Endpoints(NamedTuple):
    """The endpoints of the API.

    Attributes:
        host: address or name in the API's URL: of the public endpoint, or of the internal one without a public one.
        internal_host: address or name of the internal endpoint.
        references: addresses of the API, or names of its load balancers, that the API server's certificate contains
            besides those that kubeadm adds, by the names of the references in UserData.
    """

    host: PropertyValue
    internal_host: PropertyValue
    references: dict[str, PropertyValue]


def add_endpoints(
    stack: Stack, cluster: Cluster, interfaces: Sequence[ec2.NetworkInterface], first_public_address: PropertyValue
) -> Endpoints:
    """Add the load balancers of the API, if it has any, and its DNS records.

    Args:
        first_public_address: public address of the first master; None if masters have no public addresses.
    """
    internal_target: PropertyValue = GetAtt(interfaces[0], "PrimaryPrivateIpAddress")
    internal_host = internal_target
    if has_internal_load_balancer(cluster):
        internal_target = _add_load_balancer(stack, cluster, interfaces, is_public=False)
        internal_host = GetAtt(internal_target, "DNSName")
    target, host = (first_public_address, first_public_address) if cluster.api.public else (None, internal_host)
    if has_public_load_balancer(cluster):
        target = _add_load_balancer(stack, cluster, interfaces, is_public=True)
        host = GetAtt(target, "DNSName")
    api_dns.add_public_record(stack, cluster, target)
    api_dns.add_private_record(stack, cluster, internal_target)
    references: dict[str, PropertyValue] = {"publicAddress": host} if has_public_endpoint(cluster) else {}
    if has_both_endpoints(cluster) and has_internal_load_balancer(cluster):
        references["internalAddress"] = internal_host
    internal_dns_name = internal_name(cluster)
    dns_name = public_name(cluster) if cluster.api.public else internal_dns_name
    return Endpoints(dns_name or host, internal_dns_name or internal_host, references)
