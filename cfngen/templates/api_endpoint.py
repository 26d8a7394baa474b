"""Where people reach the Kubernetes API: the Elastic IP of the one master, or a load balancer before several.

Masters and nodes need neither: they know the masters' fixed addresses by a name in /etc/hosts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from troposphere import GetAtt, Ref, ec2
from troposphere import elasticloadbalancingv2 as elb

from cfngen.cluster.defaults import is_local_zone
from cfngen.cluster.model import Cluster, Slot
from cfngen.cluster.names import load_balancer, slot_id
from cfngen.templates.network import subnet_id, vpc_id
from cfngen.templates.patterns import ADDRESS
from cfngen.templates.security_groups import access_groups
from cfngen.templates.stack import ACCESS, Stack
from cfngen.templates.tagging import tags

# What a resource with an address of the internet waits for, where the VPC is created.
ATTACHED = ("InternetGatewayAttachment",)

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
    # An address is taken out only when its slot is; then open connections may end by themselves for a while.
    "deregistration_delay.timeout_seconds": "60",
    # Masters see the balancer's address, not the client's: what runs on a master or a node may reach the API this way
    # too, even where the balancer leads back to the very instance the connection came from.
    "preserve_client_ip.enabled": "false",
    # Clients of a master that is gone learn of it at once, instead of waiting on a silent connection.
    "target_health_state.unhealthy.connection_termination.enabled": "true",
}


class PublicAddress(NamedTuple):
    """A master's public address.

    Attributes:
        address: the address.
        association: what has to be there before an instance can use it.
    """

    address: Any
    association: ec2.EIPAssociation


def elastic_ip(stack: Stack, cluster: Cluster, slot: Slot, interface: ec2.NetworkInterface) -> PublicAddress:
    """Give a slot's interface an Elastic IP: a new one, or the one that the cluster file names.

    Of one master it is the API's public address. Of several, each needs one for its own way out to the internet: a
    launch template that names an existing interface cannot ask for a public address.
    """
    name = f"{slot_id(slot.letter)}ElasticIp"
    if cluster.api.elastic_ip:
        allocation: Any = stack.ask(
            "ApiElasticIpAllocationId",
            label="Allocation id of the Elastic IP",
            group=ACCESS,
            description="Allocation id of the existing Elastic IP of the Kubernetes API",
            default=cluster.api.elastic_ip.allocation_id,
            AllowedPattern="^eipalloc-[0-9a-f]{8,17}$",
            ConstraintDescription="must be an allocation id, eipalloc-…",
        )
        address: Any = stack.ask(
            "ApiElasticIp",
            label="Elastic IP",
            group=ACCESS,
            description="The existing Elastic IP itself; it goes into the API server's certificate",
            default=str(cluster.api.elastic_ip.address),
            AllowedPattern=ADDRESS,
            ConstraintDescription="must be an IPv4 address",
        )
    else:
        allocated = ec2.EIP(name, Domain="vpc", Tags=tags(cluster, f"{cluster.name}-master-{slot.letter}"))
        # As CloudFormation's reference of AWS::EC2::EIP wants it; the association refers to the address.
        stack.add(allocated, after=ATTACHED)
        allocation, address = GetAtt(allocated, "AllocationId"), GetAtt(allocated, "PublicIp")
    association = stack.add(
        ec2.EIPAssociation(f"{name}Association", AllocationId=allocation, NetworkInterfaceId=Ref(interface)),
        # EC2 associates an address only once the VPC has its internet gateway.
        after=ATTACHED if cluster.api.elastic_ip else (),
    )
    return PublicAddress(address, association)


def balanced(stack: Stack, cluster: Cluster, interfaces: Sequence[ec2.NetworkInterface]) -> Any:
    """Add the load balancer of a cluster with several masters; return its DNS name.

    A network load balancer, since it passes TLS on as it is: clients' certificates reach the API server. Its targets
    are the slots' fixed addresses, so that no instance has to register, and none is forgotten.
    """
    public = cluster.api.public
    # A balancer's name and a target group's balancer are for good: another scheme takes another set of them.
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
                stack.wire("ApiLoadBalancerSecurityGroupId", description="Security group of the API's load balancer"),
                *access_groups(stack, cluster, "ApiLoadBalancer"),
            ],
            # A zone without a healthy master is served by the others'.
            LoadBalancerAttributes=[elb.LoadBalancerAttributes(Key="load_balancing.cross_zone.enabled", Value="true")],
            Tags=tags(cluster, name),
        ),
        after=ATTACHED if public else (),
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
