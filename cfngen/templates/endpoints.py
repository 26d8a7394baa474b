"""The interface endpoints of a cluster without a way to the internet, in the master stack.

Masters and nodes are launched only when the endpoints are there: the boot program reads its second stage and its
secrets through them. Only masters and nodes may use the endpoints; pods do so with the addresses of their nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from troposphere import GetAtt, ec2

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import EndpointId
from cfngen.cluster.network.endpoints import endpoint_zones, interface_endpoints, service_name, settings_of
from cfngen.cluster.network.existing_parts import existing_group
from cfngen.cluster.security_groups.rules import endpoint_rules
from cfngen.templates.network_references import security_group_parameter, subnet_id, vpc_id
from cfngen.templates.security_group_rules import GroupIds, inline_rule
from cfngen.templates.security_groups import first_group
from cfngen.templates.stack import PropertyValue, Stack
from cfngen.templates.tagging import tags


def add_interface_endpoints(
    stack: Stack, cluster: Cluster, interfaces: Sequence[ec2.NetworkInterface]
) -> tuple[ec2.VPCEndpoint, ...]:
    """Add the interface endpoints and their security group; return the endpoints, none if the cluster needs none.

    Args:
        interfaces: the masters' network interfaces. EC2 gives an endpoint any free address of a subnet, so the masters'
            fixed addresses must be taken before.
    """
    required = interface_endpoints(cluster)
    if not required:
        return ()
    vpc = vpc_id(stack, cluster)
    security_group = _security_group(stack, cluster, vpc)
    return tuple(
        stack.add(
            ec2.VPCEndpoint(
                str(EndpointId.of(endpoint.service)),
                DependsOn=[interface.title for interface in interfaces],
                VpcEndpointType="Interface",
                VpcId=vpc,
                ServiceName=service_name(endpoint.service, cluster.region),
                SubnetIds=[subnet_id(stack, cluster, zone) for zone in endpoint_zones(cluster, endpoint.service)],
                SecurityGroupIds=[security_group],
                # With private DNS, instances use an endpoint by the service's usual name.
                PrivateDnsEnabled=settings_of(cluster, endpoint.service).private_dns,
                Tags=tags(cluster, f"{cluster.name}-{endpoint.service}"),
            )
        )
        for endpoint in required
    )


def _security_group(stack: Stack, cluster: Cluster, vpc: PropertyValue) -> PropertyValue:
    """Return the id of the endpoints' security group, an existing one or a new one."""
    group_id = existing_group(cluster, "Endpoints")
    if group_id:
        return security_group_parameter(stack, "Endpoints", group_id, "Security group of the VPC endpoints")
    instance_groups: GroupIds = {
        "Master": first_group(stack, cluster, "Master"),
        "Node": first_group(stack, cluster, "Node"),
    }
    group = stack.add(
        ec2.SecurityGroup(
            "EndpointsSecurityGroup",
            GroupDescription=f"Kubernetes cluster {cluster.name}: VPC endpoints",
            VpcId=vpc,
            SecurityGroupIngress=[inline_rule(rule, instance_groups) for rule in endpoint_rules(cluster)],
            Tags=tags(cluster, f"{cluster.name}-endpoints"),
        )
    )
    return GetAtt(group, "GroupId")
