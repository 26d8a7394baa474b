"""What the user asked for: the cluster file as frozen, validated data.

The fields are the reference of the cluster file: `cfngen schema` and docs/configuration.md are made from them. Defaults
here describe kube-up's default cluster; values that follow from others (a subnet's CIDR from its VPC's, say) are filled
in by `cfngen.cluster.defaults.complete` before the model sees them, so every field of a `Cluster` is final.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from cfngen.cluster import values

Architecture = Literal["amd64", "arm64"]
Distribution = Literal["ubuntu-24.04", "ubuntu-22.04", "debian-12", "debian-13", "amazon-linux-2023"]
Item = TypeVar("Item")
# YAML has lists; frozen data has tuples. Only the container is lenient, the items stay strict.
List = Annotated[tuple[Item, ...], Field(strict=False)]


class Model(BaseModel):
    """Base of every section: frozen, strict, camelCase, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
    )


class Vpc(Model):
    """The VPC: created with `cidr`, or an existing one named by `id`."""

    id: values.VpcId | None = Field(None, description="Id of an existing VPC to use instead of creating one.")
    cidr: values.Cidr = Field(
        IPv4Network("172.20.0.0/16"), description="Address range of the VPC, /16 to /28. Of an existing VPC: its range."
    )
    name: str = Field(
        "kubernetes-vpc",
        min_length=1,
        max_length=255,
        description="Name tag of the VPC. Default: the cluster's name followed by -vpc.",
    )


class Subnet(Model):
    """One subnet in one Availability Zone: created with `cidr`, or an existing one named by `id`."""

    zone: values.Zone = Field(
        "us-west-2a", description="Availability Zone of the subnet. Default: the region's first without one."
    )
    id: values.SubnetId | None = Field(None, description="Id of an existing subnet to use instead of creating one.")
    cidr: values.Cidr = Field(
        IPv4Network("172.20.0.0/24"),
        description="Address range, inside the VPC's. Default: the next free /24 of the VPC. Of an existing subnet: "
        "its range.",
    )


class Network(Model):
    """Addresses and routes of the VPC, of pods and of services."""

    vpc: Vpc = Field(default_factory=Vpc, description="The VPC.")
    subnets: List[Subnet] = Field(
        default_factory=lambda: (Subnet(),), min_length=1, description="Subnets of the cluster, one for each zone."
    )
    route_table: values.RouteTableId | None = Field(
        None,
        description="Id of the route table that existing subnets use; the pods' routes are written to it. Left out, "
        "the console asks for it.",
    )
    internet_gateway: values.InternetGatewayId | None = Field(
        None,
        description="Id of the internet gateway of an existing VPC, for subnets that are created in it. Left out, the "
        "console asks for it.",
    )
    dhcp_options: values.DhcpOptionsId | None = Field(
        None,
        description="Id of an existing DHCP option set to associate with a created VPC; `default` leaves Amazon's.",
    )
    plugin: Literal["vpc-routes"] = Field(
        "vpc-routes", description="How pods reach each other: one VPC route for each node, as kube-up's kubenet did."
    )
    pod_cidr: values.Cidr = Field(
        IPv4Network("10.244.0.0/16"), description="Address range of pods; each node and master takes a /24 of it."
    )
    service_cidr: values.Cidr = Field(IPv4Network("10.0.0.0/16"), description="Address range of services.")
    dns_service_ip: values.Address = Field(
        IPv4Address("10.0.0.10"),
        description="Service address of the cluster DNS; the tenth of the service range, where kubeadm puts it.",
    )
    dns_domain: values.HostName = Field("cluster.local", description="DNS domain of services.")
    non_masquerade_cidr: values.Cidr = Field(
        IPv4Network("10.0.0.0/8"),
        description="Traffic of pods to this range keeps the pod's address; all other leaves with the node's.",
    )


class ElasticIp(Model):
    """An Elastic IP address that exists already."""

    allocation_id: values.AllocationId = Field(description="Allocation id of the address.")
    address: values.Address = Field(description="The address itself; it goes into the API server's certificate.")


class Api(Model):
    """The Kubernetes API endpoint."""

    port: int = Field(443, ge=1, le=65535, description="TCP port of the API server.")
    allowed_cidrs: List[values.Cidr] = Field(
        (),
        description="Address ranges that may reach the API server. Left out, the console asks whoever deploys.",
    )
    public: bool = Field(
        True,
        description="Whether the API server has a public (Elastic IP) address beside its private one. Without, "
        "existing subnets with a NAT gateway are needed.",
    )
    elastic_ip: ElasticIp | None = Field(None, description="An existing Elastic IP to use instead of a new one.")
    additional_names: List[values.HostName] = Field(
        (), description="Further DNS names or addresses for the API server's certificate."
    )


class Ssh(Model):
    """Shells on instances."""

    key_name: values.KeyName | None = Field(None, description="Name of an existing EC2 key pair.")
    public_key: values.PublicKey | None = Field(None, description="OpenSSH public key to import as a key pair.")
    allowed_cidrs: List[values.Cidr] = Field(
        (), description="Address ranges that may reach port 22. Left out, SSH is closed."
    )
    session_manager: bool = Field(
        True, description="Whether instances may be entered through AWS Systems Manager Session Manager."
    )


class Image(Model):
    """The machine image of instances: a distribution's newest by its public SSM parameter, or one of your own."""

    distribution: Distribution = Field("ubuntu-24.04", description="Operating system; also of an image of your own.")
    id: values.ImageId | None = Field(None, description="AMI id, instead of the distribution's newest image.")
    ssm_parameter: values.SsmParameterName | None = Field(
        None, description="Public or own SSM parameter that holds the AMI id, instead of the distribution's own."
    )
    architecture: Architecture | None = Field(
        None, description="CPU architecture of the image; must be the instance type's. Default: the instance type's."
    )
    root_device: values.DeviceName | None = Field(
        None, description="Root device name of an image of your own. Default: the distribution's."
    )


class Volume(Model):
    """An EBS volume; always encrypted."""

    size: int = Field(20, ge=1, le=65536, description="Size in GiB.")
    type: Literal["gp3", "gp2", "io1", "io2"] = Field("gp3", description="EBS volume type.")
    iops: int | None = Field(None, ge=100, le=256000, description="Provisioned IOPS (gp3, io1, io2).")
    throughput: int | None = Field(None, ge=125, le=2000, description="Throughput in MiB/s (gp3).")
    kms_key: values.KeyArn | None = Field(
        None,
        description="ARN of the KMS key that encrypts the volume. Default: the account's key for EBS. For root volumes "
        "the key's policy must let the service-linked role AWSServiceRoleForAutoScaling use it.",
    )


class Instances(Model):
    """What masters and nodes have in common."""

    instance_type: values.InstanceType = Field(
        "t3.medium", description="EC2 instance type; at least 2 vCPU and 2 GiB of memory."
    )
    image: Image = Field(default_factory=Image, description="Image of these instances. Default: the cluster's.")
    root_volume: Volume = Field(default_factory=Volume, description="Root volume.")
    additional_security_groups: List[values.SecurityGroupId] = Field(
        (),
        max_length=4,
        description="Further security groups for the instances. They must not carry the cluster's tag.",
    )
    additional_policies: List[values.PolicyArn] = Field(
        (), max_length=10, description="ARNs of further managed policies for the instances' role."
    )
    creation_timeout: int = Field(
        20, ge=10, le=50, description="Minutes an instance may take to report success before the stack gives up."
    )


class ControlPlane(Instances):
    """The masters."""

    count: Literal[1] = Field(1, description="Number of masters.")
    addresses: List[values.Address] = Field(
        (IPv4Address("172.20.0.9"),),
        description="Fixed private address of each master, in the first subnets. Default: the ninth of each subnet.",
    )
    volume: Volume = Field(
        default_factory=Volume, description="Data volume of each master: etcd. It outlives the instance."
    )


class NodeGroup(Instances):
    """One Auto Scaling group of nodes."""

    name: values.GroupName = Field("nodes", description="Name of the group, unique in the cluster.")
    min_size: int = Field(4, ge=0, le=5000, description="Least number of nodes.")
    max_size: int = Field(4, ge=1, le=5000, description="Greatest number of nodes. Default: the least, at least 1.")
    desired_size: int | None = Field(
        None, ge=0, le=5000, description="Nodes to start with. Left out, the Auto Scaling group decides."
    )
    zones: List[values.Zone] = Field(("us-west-2a",), min_length=1, description="Zones to run in. Default: all.")
    spot_price: values.Price | None = Field(
        None, description="Highest hourly price in US dollars: run spot instances. Left out: on-demand instances."
    )
    public_ip: bool = Field(
        True,
        description="Whether nodes have public addresses. Without, existing subnets with a NAT gateway are needed.",
    )
    root_volume: Volume = Field(default_factory=lambda: Volume(size=32), description="Root volume.")


class Iam(Model):
    """Rules of your organisation for IAM roles."""

    permissions_boundary: values.PolicyArn | None = Field(
        None, description="ARN of a managed policy that bounds every role that is created."
    )


class Assets(Model):
    """Where instances fetch Kubernetes' and the other programs' files from."""

    mirror: values.HttpUrl | None = Field(
        None,
        description="URL under which your own server or bucket holds the files, each by host and path of its origin "
        "(…/dl.k8s.io/release/v1.36.3/bin/…). Digests are checked all the same.",
    )


class Kubernetes(Model):
    """Kubernetes' own configuration, merged into what cfngen writes, field by field."""

    cluster_configuration: dict[str, Any] = Field(
        default_factory=dict, description="Fields of kubeadm's ClusterConfiguration (kubeadm.k8s.io/v1beta4)."
    )
    kubelet_configuration: dict[str, Any] = Field(
        default_factory=dict, description="Fields of the KubeletConfiguration (kubelet.config.k8s.io/v1beta1)."
    )


class Cluster(Model):
    """One Kubernetes cluster."""

    name: values.ClusterName = Field(
        "kubernetes", description="Name of the cluster: of its stack, its tags and its kubeconfig context."
    )
    region: values.Region = Field("us-west-2", description="AWS region. Default: that of the first subnet's zone.")
    kubernetes_version: values.KubernetesVersion = Field(
        "1.36", description="Kubernetes version: a minor (its newest known patch is taken) or an exact one."
    )
    network: Network = Field(default_factory=Network, description="VPC, subnets, pods and services.")
    api: Api = Field(default_factory=Api, description="The Kubernetes API endpoint.")
    ssh: Ssh = Field(default_factory=Ssh, description="Shells on instances.")
    image: Image = Field(default_factory=Image, description="Machine image of all instances.")
    control_plane: ControlPlane = Field(default_factory=ControlPlane, description="The masters.")
    node_groups: List[NodeGroup] = Field(
        default_factory=lambda: (NodeGroup(),), description="The groups of nodes; each is a stack of its own."
    )
    iam: Iam = Field(default_factory=Iam, description="Rules for IAM roles.")
    assets: Assets = Field(default_factory=Assets, description="Where instances fetch files from.")
    kubernetes: Kubernetes = Field(default_factory=Kubernetes, description="Kubernetes' own configuration.")
    tags: dict[str, str] = Field(default_factory=dict, description="Further tags for every resource that takes tags.")

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The masters' slots, in order; slot `a` is in the first subnet."""
        subnets = self.network.subnets
        return tuple(
            Slot(letter="abcde"[index], subnet=subnets[index % len(subnets)], address=address)
            for index, address in enumerate(self.control_plane.addresses)
        )


class Slot(Model):
    """The stable identity of one master: a letter, a subnet (thus a zone) and a fixed address."""

    letter: str = Field(description="Letter of the slot: a, b, c, …")
    subnet: Subnet = Field(description="Subnet of the slot's network interface; its zone is the volume's.")
    address: values.Address = Field(description="The private address that every instance of the slot takes over.")
