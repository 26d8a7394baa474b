"""VPC, subnets, pods and services, the API endpoint and shells: what is reached how."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

from pydantic import Field

from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.base import List, Model, Nat, Plugin, RouteTables, Topology
from cfngen.cluster.sections.flow_logs import FlowLogs


class Vpc(Model):
    """The VPC: created with `cidr`, or an existing one named by `id`."""

    id: field_types.VpcId | None = Field(
        None,
        description="Id of an existing VPC to use instead of creating one, or a reference to it: `stack:NAME.Output`, "
        "`ssm:/NAME` or `terraform:FILE#OUTPUT`. So may be the ids of all other existing parts of the network.",
    )
    cidr: field_types.Cidr = Field(
        IPv4Network("172.20.0.0/16"),
        description="Address range of the VPC, /16 to /28. For an existing VPC, enter its range.",
    )
    additional_cidrs: List[field_types.Cidr] = Field(
        (),
        description="Further ranges of the VPC, /16 to /28, in which subnets may lie by their `cidr`. A created VPC "
        "gets them, four at most; for an existing VPC, enter those that it has.",
    )
    name: str = Field(
        "kubernetes-vpc",
        min_length=1,
        max_length=255,
        description="Name tag of the VPC. Default: the cluster's name followed by -vpc.",
    )


class PublicSubnet(Model):
    """The public subnet of one zone: created with `cidr`, or an existing one named by `id`."""

    id: field_types.SubnetId | None = Field(
        None, description="Id of an existing subnet with a route to an internet gateway, instead of creating one."
    )
    cidr: field_types.Cidr | None = Field(
        None,
        description="Address range, inside the VPC's. Default: the /26 at the subnet's position from the end of the "
        "VPC's range. For an existing subnet it may be left out.",
    )


class Subnet(Model):
    """The subnet of instances in one zone: created with `cidr`, or an existing one named by `id`."""

    zone: field_types.Zone = Field(
        "us-west-2a", description="Availability Zone of the subnet. Default: the region's first zone without a subnet."
    )
    id: field_types.SubnetId | None = Field(
        None, description="Id of an existing subnet to use instead of creating one."
    )
    cidr: field_types.Cidr = Field(
        IPv4Network("172.20.0.0/24"),
        description="Address range, inside the VPC's. Default: the /24 of the VPC at the subnet's position. For an "
        "existing subnet, enter its range.",
    )
    route_table: field_types.RouteTableId | None = Field(
        None,
        description="Id of an existing route table for a created subnet, instead of creating one. It needs the "
        "subnet's way out: to an internet gateway if `topology` is `public`, otherwise to a NAT gateway, for example.",
    )
    nat_gateway: field_types.NatGatewayId | None = Field(
        None, description="Id of an existing NAT gateway in this zone to use instead of creating one. Only if private."
    )
    public: PublicSubnet | None = Field(
        None,
        description="The zone's public subnet, for a NAT gateway and internet-facing load balancers. Only if "
        "`topology` is `private`. Default: created where a NAT gateway or a public API needs it.",
    )


class SubnetSizes(Model):
    """Prefix lengths of the subnets that are created without a `cidr`."""

    instances: int | None = Field(
        None,
        ge=16,
        le=28,
        description="Prefix length of the subnets of instances, 16 to 28. Default: 24, or an equal share of a small "
        "VPC for each subnet.",
    )
    public: int | None = Field(
        None,
        ge=16,
        le=28,
        description="Prefix length of the public subnets of a private cluster, 16 to 28. Default: 26, or less in a "
        "small VPC.",
    )


class EndpointOfService(Model):
    """What is different about the interface endpoint of a service that lacks a private DNS name, or zones."""

    service: field_types.EndpointService = Field(description="The service, by the name in `additional`, e.g. `kms`.")
    private_dns: bool = Field(
        True, description="Whether the service's usual name leads to the endpoint. Set it to false if it has none."
    )
    zones: List[field_types.Zone] = Field(
        (), description="Zones in which the endpoint gets an address. Default: all Availability Zones of the cluster."
    )


class Endpoints(Model):
    """VPC endpoints of a private cluster: private addresses of AWS services."""

    create: bool = Field(
        True,
        description="Whether endpoints are created: a gateway endpoint for S3, which is free, and with `nat: none` an "
        "interface endpoint for each service that instances call. If false, the VPC must have them.",
    )
    additional: List[field_types.EndpointService] = Field(
        (),
        description="Further services with an interface endpoint, e.g. `sts` or `kms`, or full service names. Only "
        "with `nat: none`.",
    )
    services: List[EndpointOfService] = Field(
        (), description="Services whose interface endpoints have no private DNS name, or are not in all zones."
    )


class Proxy(Model):
    """The HTTP proxy through which instances, and the add-ons that call AWS, reach other networks.

    Its addresses are in user data, so they have no password.
    """

    https_proxy: field_types.ProxyUrl = Field(
        description="URL of the proxy for HTTPS: AWS, downloads, images. It begins with http:// and has a port."
    )
    http_proxy: field_types.ProxyUrl | None = Field(
        None, description="URL of the proxy for plain HTTP, e.g. for packages. Default: that of `httpsProxy`."
    )
    no_proxy: List[field_types.DirectHost] = Field(
        (),
        max_length=50,
        description="Hosts, domains (`.example.com`) and ranges that are reached without the proxy, besides the "
        "cluster's own, instance metadata, and AWS services with VPC endpoints that cfngen creates.",
    )


class Quotas(Model):
    """What the account allows, where it was given more than AWS's defaults; `cfngen deploy` looks whether it has it."""

    rules_per_security_group: int = Field(
        60, ge=60, le=1000, description='The quota "Inbound or outbound rules per security group" (L-0EA8095F).'
    )
    security_groups_per_interface: int = Field(
        5, ge=1, le=16, description='The quota "Security groups per network interface" (L-2AFB9258).'
    )


class PrefixList(Model):
    """A prefix list of EC2: ranges that somebody keeps in one place."""

    id: field_types.PrefixListId = Field(description="Its id.")
    max_entries: int = Field(
        ge=1,
        le=1000,
        description="Its maximum number of entries (MaxEntries), or the weight of an AWS-managed one: it counts as "
        "that many rules of a security group, however many entries it has.",
    )


class Route(Model):
    """A route to a network beyond the VPC: one destination, and one target."""

    destination: field_types.RouteDestination = Field(
        description="Address range, or the id of a prefix list, e.g. `10.64.0.0/16` or `pl-0123456789abcdef0`."
    )
    transit_gateway: field_types.TransitGatewayId | None = Field(
        None, description="Id of the transit gateway that leads there; the VPC must be attached to it."
    )
    peering_connection: field_types.PeeringConnectionId | None = Field(
        None, description="Id of the VPC peering connection that leads there; it must be accepted."
    )
    vpn_gateway: field_types.VpnGatewayId | None = Field(
        None, description="Id of the virtual private gateway that leads there; it must be attached to the VPC."
    )
    network_interface: field_types.NetworkInterfaceId | None = Field(
        None, description="Id of the network interface that leads there, e.g. that of a firewall in the VPC."
    )
    tables: RouteTables = Field(
        "all",
        description="Which of the created route tables have the route: those of `private` subnets, that of `public` "
        "subnets, or `all`. The subnets of a public cluster are public.",
    )


class SecurityGroups(Model):
    """Existing security groups to use in place of those that cfngen creates; what is left out is created.

    An existing group gets neither rules nor tags: `cfngen config --security-group-rules` lists the rules that it needs.
    """

    masters: field_types.SecurityGroupId | None = Field(None, description="Id of the masters' security group.")
    nodes: field_types.SecurityGroupId | None = Field(
        None, description="Id of the nodes' security group. A change replaces all nodes."
    )
    api_load_balancer: field_types.SecurityGroupId | None = Field(
        None, description="Id of the security group of the API's load balancer: of the public one if there are two."
    )
    internal_api_load_balancer: field_types.SecurityGroupId | None = Field(
        None, description="Id of the security group of the API's internal load balancer beside a public one."
    )
    endpoints: field_types.SecurityGroupId | None = Field(
        None, description="Id of the security group of the interface endpoints that cfngen creates."
    )


class Network(Model):
    """Addresses and routes of the VPC, of pods and of services."""

    topology: Topology = Field(
        "public",
        description="Whether masters and nodes have public addresses (`public`), or none (`private`): they are then in "
        "private subnets, and public subnets are only for NAT gateways and load balancers. It cannot change.",
    )
    nat: Nat | None = Field(
        None,
        description="How private subnets reach the internet: through a NAT gateway in each zone (`perZone`), through a "
        "`single` one for all zones, or not at all (`none`). Only if `topology` is `private`. Default: `perZone`; "
        "`single` with `vpc-routes`, whose routes are in one table: if its zone fails, no zone reaches the internet.",
    )
    endpoints: Endpoints = Field(default_factory=Endpoints, description="VPC endpoints of a private cluster.")
    proxy: Proxy | None = Field(
        None, description="HTTP proxy for everything that leaves the VPC. A change replaces all instances."
    )
    vpc: Vpc = Field(default_factory=Vpc, description="The VPC.")
    subnets: List[Subnet] = Field(
        default_factory=lambda: (Subnet(),), min_length=1, description="Subnets of the cluster, one for each zone."
    )
    subnet_sizes: SubnetSizes = Field(
        default_factory=SubnetSizes, description="Sizes of the subnets whose ranges are derived from the VPC's."
    )
    tag_existing: bool = Field(
        False,
        description="Whether `cfngen deploy` adds the tags that existing subnets lack, by which controllers find "
        "subnets for load balancers of services. If false, existing subnets keep their tags.",
    )
    routes: List[Route] = Field(
        (), description="Further routes of the route tables that are created, to networks beyond the VPC."
    )
    route_table: field_types.RouteTableId | None = Field(
        None,
        description="Id of the route table that existing subnets use; the pods' routes are added to it. If left out, "
        "it is a stack parameter. Only with `vpc-routes`.",
    )
    internet_gateway: field_types.InternetGatewayId | None = Field(
        None,
        description="Id of the internet gateway of an existing VPC, for subnets that are created in it. If left out, "
        "it is a stack parameter.",
    )
    dhcp_options: field_types.DhcpOptionsId | None = Field(
        None, description="Id of an existing DHCP option set to associate with a created VPC; `default` keeps Amazon's."
    )
    security_groups: SecurityGroups = Field(
        default_factory=SecurityGroups,
        description="Existing security groups in place of those that cfngen creates; only in an existing VPC.",
    )
    plugin: Plugin = Field(
        "vpc-routes",
        description="How pods reach each other: `vpc-routes` (one VPC route for each node, as kube-up's kubenet did), "
        "an overlay (`cilium`, `calico`, `flannel`), VPC addresses (`amazon-vpc`), or `none`: you install a plug-in. "
        "Default of private subnets in several zones: `cilium`, unless `nat` is `single` or `none`. It cannot change.",
    )
    plugin_values: dict[str, Any] = Field(
        default_factory=dict,
        description="Values of the plug-in's Helm chart, merged over cfngen's. Ports that they add are not opened.",
    )
    pod_cidr: field_types.Cidr = Field(
        IPv4Network("10.244.0.0/16"),
        description="Address range of pods; each node and master gets a /24 of it (with `calico`, blocks of /26). Not "
        "with `amazon-vpc`, where pods get addresses from the subnets.",
    )
    service_cidr: field_types.Cidr = Field(IPv4Network("10.0.0.0/16"), description="Address range of services.")
    dns_service_ip: field_types.Address = Field(
        IPv4Address("10.0.0.10"),
        description="Service address of the cluster DNS. It must be the tenth of the service range: kubeadm uses it.",
    )
    dns_domain: field_types.HostName = Field("cluster.local", description="DNS domain of services.")
    flow_logs: FlowLogs | None = Field(None, description="Flow logs of the VPC. Default: none.")
    quotas: Quotas = Field(default_factory=Quotas, description="Quotas of the account's networks.")
    non_masquerade_cidr: field_types.Cidr | None = Field(
        None,
        description="Traffic from pods to this range keeps the pod's address, like traffic to other pods; all other "
        "traffic gets the node's address. Only subnets with the cluster's route table have routes to pods. kube-up had "
        "10.0.0.0/8. Only with `vpc-routes`: the other plug-ins decide it themselves.",
    )


class ElasticIp(Model):
    """An Elastic IP address that exists already."""

    allocation_id: field_types.AllocationId = Field(description="Allocation id of the address.")
    address: field_types.Address = Field(
        description="The address itself; the API server's certificate names that of the API."
    )


class DnsZone(Model):
    """A Route 53 hosted zone: an existing one named by `id`, or one that is created with `name`."""

    id: field_types.HostedZoneId | None = Field(None, description="Id of an existing hosted zone of the account.")
    name: field_types.HostName | None = Field(
        None, description="Domain of a hosted zone to create, e.g. `k8s.example.com`; the API's name is in it."
    )


class ApiDns(Model):
    """Your own DNS name for the API, in Route 53."""

    name: field_types.HostName = Field(
        description="The API's name, e.g. `api.example.com`; it goes into the API server's certificate and kubeconfigs."
    )
    public_zone: DnsZone | None = Field(
        None, description="Public hosted zone, in which the name leads to the public endpoint."
    )
    private_zone: DnsZone | None = Field(
        None,
        description="Private hosted zone, in which the name leads to the internal endpoint. A created one is for the "
        "cluster's VPC; an existing one has to be associated with the VPCs whose clients use the name.",
    )


class Api(Model):
    """The Kubernetes API endpoint."""

    port: int = Field(443, ge=1, le=65535, description="TCP port of the API server.")
    allowed_cidrs: List[field_types.Cidr] = Field(
        (), description="Address ranges that may reach the API server. If left out, the range is a stack parameter."
    )
    allowed_prefix_lists: List[PrefixList] = Field(
        (), description="Prefix lists whose ranges may reach the API server, besides `allowedCidrs` or instead."
    )
    public: bool = Field(
        True,
        description="Whether the API server has a public address beside its private one: an Elastic IP, or for several "
        "masters an internet-facing load balancer; in a private cluster always a load balancer. If false, use "
        "`network.topology: private`, or existing subnets with a NAT gateway.",
    )
    internal: bool = Field(
        False,
        description="Whether clients in the VPC and in connected networks have an endpoint of their own beside the "
        "public one: the private address of a single master, or for several masters an internal load balancer. If "
        "`public` is false, this is the only endpoint, and the key may be left out.",
    )
    internal_cidrs: List[field_types.Cidr] = Field(
        (),
        description="Address ranges that may reach the internal endpoint beside a public one. Default: the VPC's "
        "ranges. If the internal endpoint is the only one, use `allowedCidrs`.",
    )
    elastic_ip: ElasticIp | None = Field(
        None, description="An existing Elastic IP to use instead of a new one; only for a cluster with one master."
    )
    dns: ApiDns | None = Field(
        None, description="A DNS name for the API in Route 53, in a public zone, a private zone or one of each."
    )
    additional_names: List[field_types.HostName] = Field(
        (), description="Further DNS names or addresses for the API server's certificate."
    )


class Ssh(Model):
    """Shells on instances."""

    key_name: field_types.KeyName | None = Field(None, description="Name of an existing EC2 key pair.")
    public_key: field_types.PublicKey | None = Field(None, description="OpenSSH public key to import as a key pair.")
    allowed_cidrs: List[field_types.Cidr] = Field(
        (), description="Address ranges that may reach port 22. If left out, SSH is closed."
    )
    allowed_prefix_lists: List[PrefixList] = Field(
        (), description="Prefix lists whose ranges may reach port 22, besides `allowedCidrs` or instead."
    )
    session_manager: bool = Field(
        True, description="Whether AWS Systems Manager Session Manager may open shells on instances."
    )

    @property
    def is_open(self) -> bool:
        """Whether anybody may reach port 22."""
        return bool(self.allowed_cidrs or self.allowed_prefix_lists)
