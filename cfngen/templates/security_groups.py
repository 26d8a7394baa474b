"""The security group stack: one group for masters, one for nodes, and the rules between them.

Rules that refer to the other group are resources of their own, since two groups cannot name each other inline. Exactly
one group of each instance carries the cluster tag: the cloud controller manager opens load balancer ports on that one
and fails when it finds two. The load balancer before several masters has a group that does not carry that tag: it is
on no instance, and nobody who looks for the cluster's group shall find it.
"""

from __future__ import annotations

from typing import Any

from troposphere import GetAtt, ec2

from cfngen.cluster import addon_ports
from cfngen.cluster.model import Cluster
from cfngen.cluster.names import load_balancer
from cfngen.cluster.network_plugins import network_plugin
from cfngen.templates.naming import cidr_id
from cfngen.templates.network import vpc_id
from cfngen.templates.stack import ACCESS, Stack
from cfngen.templates.tagging import private_tags, tags
from cfngen.templates.vpc import CIDR_PATTERN

KUBELET_PORT = 10250
LOAD_BALANCER_GROUP = "ApiLoadBalancerSecurityGroup"


def build(cluster: Cluster) -> Stack:
    """Return the stack."""
    stack = Stack(
        cluster,
        "security-groups",
        "SecurityGroupsStack",
        __name__,
        f"Security groups of the Kubernetes cluster {cluster.name}: masters, nodes and the rules between them",
    )
    vpc = vpc_id(stack, cluster)
    master = GetAtt(_group(stack, cluster, vpc, "Master", "masters"), "GroupId")
    node = GetAtt(_group(stack, cluster, vpc, "Node", "nodes"), "GroupId")

    _from_group(stack, "NodeFromNodes", node, node, "Nodes and pods to nodes and pods")
    _from_group(stack, "NodeFromMasters", node, master, "API server to kubelets, webhooks and pods")
    _from_group(stack, "MasterFromMasters", master, master, "Masters to each other: etcd, API server, kubelet")
    # kube-up let nodes reach every port of the master, etcd's too. What remains is what kubeadm documents, and what the
    # network plug-in and the add-ons need.
    openings = (*network_plugin(cluster).openings, *addon_ports.openings(cluster))
    for name, protocol, port, purpose in (
        ("Api", "tcp", cluster.api.port, "Nodes and pods to the API server"),
        ("Kubelet", "tcp", KUBELET_PORT, "Metrics collection from the kubelet"),
        *((each.name, each.protocol, each.port, each.purpose) for each in openings),
    ):
        # Of ICMP the second number is the code; -1 stands for all.
        ports = (port, -1 if protocol == "icmp" else port)
        _from_group(stack, f"Master{name}FromNodes", master, node, purpose, protocol=protocol, ports=ports)
    _from_group(
        stack,
        "MasterPathMtuFromNodes",
        master,
        node,
        "Path MTU discovery (fragmentation needed)",
        protocol="icmp",
        ports=(3, 4),
    )
    several = cluster.control_plane.count > 1
    balancer = _load_balancer(stack, cluster, vpc, master, node) if several else None
    if balancer:
        _api_access(stack, cluster, balancer, "ApiLoadBalancer")
    else:
        _api_access(stack, cluster, master, "MasterApi")
    for cidr in cluster.ssh.allowed_cidrs:
        for role, group in (("Master", master), ("Node", node)):
            _from_cidr(stack, f"{role}SshFrom{cidr_id(cidr)}", group, str(cidr), 22, f"SSH from {cidr}")

    stack.output("MasterSecurityGroupId", master, "Security group of the masters")
    stack.output("NodeSecurityGroupId", node, "Security group of the nodes")
    if balancer:
        stack.output("ApiLoadBalancerSecurityGroupId", balancer, "Security group of the API's load balancer")
    return stack


def _group(stack: Stack, cluster: Cluster, vpc: Any, role: str, plural: str) -> ec2.SecurityGroup:
    return stack.add(
        ec2.SecurityGroup(
            f"{role}SecurityGroup",
            GroupDescription=f"Kubernetes cluster {cluster.name}: {plural}",
            VpcId=vpc,
            SecurityGroupEgress=[
                ec2.SecurityGroupRule(
                    CidrIp="0.0.0.0/0",
                    IpProtocol="-1",
                    Description="Images, packages, AWS APIs and whatever pods call",
                )
            ],
            Tags=tags(cluster, f"{cluster.name}-{plural}"),
        )
    )


def _from_group(
    stack: Stack,
    name: str,
    group: Any,
    source: Any,
    description: str,
    *,
    protocol: str = "-1",
    ports: tuple[int, int] | None = None,
) -> None:
    span = {"FromPort": ports[0], "ToPort": ports[1]} if ports else {}
    stack.add(
        ec2.SecurityGroupIngress(
            name, GroupId=group, SourceSecurityGroupId=source, IpProtocol=protocol, Description=description, **span
        )
    )


def _from_cidr(stack: Stack, name: str, group: Any, cidr: Any, port: int, description: str) -> None:
    stack.add(
        ec2.SecurityGroupIngress(
            name, GroupId=group, CidrIp=cidr, IpProtocol="tcp", FromPort=port, ToPort=port, Description=description
        )
    )


def _load_balancer(stack: Stack, cluster: Cluster, vpc: Any, master: Any, node: Any) -> Any:
    """Add the group of the load balancer before several masters, and let it reach them; return its id.

    The balancer's own address is what masters see, so they need no rule for anybody who comes through it.
    """
    port = cluster.api.port
    group = stack.add(
        ec2.SecurityGroup(
            LOAD_BALANCER_GROUP,
            GroupDescription=f"Kubernetes cluster {cluster.name}: load balancer of the API",
            VpcId=vpc,
            SecurityGroupEgress=[
                ec2.SecurityGroupRule(
                    DestinationSecurityGroupId=master,
                    IpProtocol="tcp",
                    FromPort=port,
                    ToPort=port,
                    Description="API servers, and their health",
                )
            ],
            Tags=private_tags(cluster, load_balancer(cluster)),
        )
    )
    balancer = GetAtt(group, "GroupId")
    purpose = "Load balancer to the API servers, and their health"
    _from_group(stack, "MasterApiFromLoadBalancer", master, balancer, purpose, protocol="tcp", ports=(port, port))
    if not cluster.api.public:
        # Inside the VPC they come with addresses of their own; an internet-facing balancer sees their public ones.
        for role, source in (("Masters", master), ("Nodes", node)):
            name, purpose = f"ApiLoadBalancerFrom{role}", f"{role} and pods by the API's address for people"
            _from_group(stack, name, balancer, source, purpose, protocol="tcp", ports=(port, port))
    return balancer


def _api_access(stack: Stack, cluster: Cluster, group: Any, prefix: str) -> None:
    """Open the API to the cluster file's CIDRs or, where it names none, to one that must be given."""
    if not cluster.api.allowed_cidrs:
        cidr = stack.ask(
            "ApiAllowedCidr",
            label="Who may reach the Kubernetes API",
            group=ACCESS,
            description="IPv4 address range that may reach the Kubernetes API server, e.g. 203.0.113.7/32",
            AllowedPattern=CIDR_PATTERN,
            ConstraintDescription="must be an IPv4 CIDR such as 203.0.113.7/32",
        )
        _from_cidr(
            stack, f"{prefix}FromAllowedCidr", group, cidr, cluster.api.port, "Kubernetes API from the given range"
        )
    for cidr in cluster.api.allowed_cidrs:
        name = f"{prefix}From{cidr_id(cidr)}"
        _from_cidr(stack, name, group, str(cidr), cluster.api.port, f"Kubernetes API from {cidr}")
