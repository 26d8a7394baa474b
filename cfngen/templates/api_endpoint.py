"""The public endpoint of the Kubernetes API: the Elastic IP of a single master, or a load balancer for several.

Masters and nodes use neither: a name in their /etc/hosts resolves to the masters' fixed private addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from troposphere import GetAtt, Ref, ec2
from troposphere import elasticloadbalancingv2 as elb

from cfngen.cluster.defaults import is_local_zone
from cfngen.cluster.logical_ids import MasterId
from cfngen.cluster.model import Cluster, Slot
from cfngen.cluster.names import load_balancer
from cfngen.templates.network import subnet_id, vpc_id
from cfngen.templates.patterns import ADDRESS
from cfngen.templates.property_value import Value
from cfngen.templates.security_groups import access_groups
from cfngen.templates.stack import ACCESS, Stack
from cfngen.templates.tagging import tags

# Logical ids of what a resource with a public address depends on, where the VPC is created.
GATEWAY_ATTACHMENT = ("InternetGatewayAttachment",)

# Two missed checks, twenty seconds, take a master out; the API server answers 200 on /readyz to anybody, as the
# built-in role system:public-info-viewer lets it, and not before its etcd member answers and its informers have synced.
_CHECK = {
    "HealthCheckEnabled": True,
    "HealthCheckProtocol": "HTTPS",
    "HealthCheckPath": "/readyz",
    "HealthCheckIntervalSeconds": 10,
    "HealthCheckTimeoutSeconds": 6,
    "HealthyThresholdCount": 2,
    "UnhealthyThresholdCount": 2,
}
_ATTRIBUTES = {
    # A target is deregistered only when its slot is removed; open connections then get this long to end.
    "deregistration_delay.timeout_seconds": "60",
    # Masters see the load balancer's address, not the client's. Otherwise connections from a master or node would fail
    # where the load balancer sends them back to the instance they came from.
    "preserve_client_ip.enabled": "false",
    # Connections to a lost master are closed at once; otherwise clients would wait for an answer.
    "target_health_state.unhealthy.connection_termination.enabled": "true",
}


class PublicAddress(NamedTuple):
    """A master's public address.

    Attributes:
        address: the address.
        association: resource that must exist before an instance can use the address.
    """

    address: Value
    association: ec2.EIPAssociation


def add_elastic_ip(stack: Stack, cluster: Cluster, slot: Slot, interface: ec2.NetworkInterface) -> PublicAddress:
    """Associate an Elastic IP with a slot's interface: a new one, or the one that the cluster file names.

    With a single master it is the API's public address. Of several masters each needs one to reach the internet: a
    launch template that names an existing interface cannot request a public address.
    """
    if cluster.api.elastic_ip:
        allocation: Value = stack.parameter(
            "ApiElasticIpAllocationId",
            label="Allocation id of the Elastic IP",
            group=ACCESS,
            description="Allocation id of the existing Elastic IP of the Kubernetes API",
            default=cluster.api.elastic_ip.allocation_id,
            AllowedPattern="^eipalloc-[0-9a-f]{8,17}$",
            ConstraintDescription="must be an allocation id, eipalloc-…",
        )
        address: Value = stack.parameter(
            "ApiElasticIp",
            label="Elastic IP",
            group=ACCESS,
            description="The existing Elastic IP itself; it goes into the API server's certificate",
            default=str(cluster.api.elastic_ip.address),
            AllowedPattern=ADDRESS,
            ConstraintDescription="must be an IPv4 address",
        )
    else:
        allocated = ec2.EIP(
            str(MasterId(slot.letter, "ElasticIp")),
            Domain="vpc",
            Tags=tags(cluster, f"{cluster.name}-master-{slot.letter}"),
        )
        # CloudFormation's reference of AWS::EC2::EIP requires this dependency; the association inherits it.
        stack.add(allocated, standalone_depends_on=GATEWAY_ATTACHMENT)
        allocation, address = GetAtt(allocated, "AllocationId"), GetAtt(allocated, "PublicIp")
    association = stack.add(
        ec2.EIPAssociation(
            str(MasterId(slot.letter, "ElasticIpAssociation")),
            AllocationId=allocation,
            NetworkInterfaceId=Ref(interface),
        ),
        # EC2 associates an address only once the VPC has its internet gateway.
        standalone_depends_on=GATEWAY_ATTACHMENT if cluster.api.elastic_ip else (),
    )
    return PublicAddress(address, association)


def add_load_balancer(stack: Stack, cluster: Cluster, interfaces: Sequence[ec2.NetworkInterface]) -> Value:
    """Add the load balancer of a cluster with several masters; return its DNS name.

    It is a network load balancer, which passes TLS through, so client certificates reach the API server. The targets
    are the slots' fixed addresses, so no instance has to register or deregister.
    """
    public = cluster.api.public
    # A load balancer cannot be renamed, nor a target group moved: another scheme needs new resources.
    prefix = "Api" if public else "InternalApi"
    name = load_balancer(cluster)
    # Network load balancers take no subnets of Local Zones (CreateLoadBalancer, Elastic Load Balancing API Reference).
    zones = [subnet.zone for subnet in cluster.network.subnets if not is_local_zone(subnet.zone)]
    balancer = stack.add(
        elb.LoadBalancer(
            f"{prefix}LoadBalancer",
            Name=name,
            Type="network",
            Scheme="internet-facing" if public else "internal",
            IpAddressType="ipv4",
            Subnets=[subnet_id(stack, cluster, zone) for zone in zones],
            SecurityGroups=[
                stack.wired_parameter(
                    "ApiLoadBalancerSecurityGroupId", description="Security group of the API's load balancer"
                ),
                *access_groups(stack, cluster, "ApiLoadBalancer"),
            ],
            # Requests in a zone without a healthy master go to masters in other zones.
            LoadBalancerAttributes=[elb.LoadBalancerAttributes(Key="load_balancing.cross_zone.enabled", Value="true")],
            Tags=tags(cluster, name),
        ),
        standalone_depends_on=GATEWAY_ATTACHMENT if public else (),
    )
    targets = stack.add(
        elb.TargetGroup(
            f"{prefix}TargetGroup",
            VpcId=vpc_id(stack, cluster),
            Protocol="TCP",
            Port=cluster.api.port,
            TargetType="ip",
            Targets=[
                elb.TargetDescription(Id=GetAtt(interface, "PrimaryPrivateIpAddress"), Port=cluster.api.port)
                for interface in interfaces
            ],
            TargetGroupAttributes=[
                elb.TargetGroupAttribute(Key=key, Value=value) for key, value in sorted(_ATTRIBUTES.items())
            ],
            Tags=tags(cluster, name),
            **_CHECK,
        )
    )
    stack.add(
        elb.Listener(
            f"{prefix}Listener",
            LoadBalancerArn=Ref(balancer),
            Protocol="TCP",
            Port=cluster.api.port,
            DefaultActions=[elb.Action(Type="forward", TargetGroupArn=Ref(targets))],
            Tags=tags(cluster, name),
        )
    )
    return GetAtt(balancer, "DNSName")
