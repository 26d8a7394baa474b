"""The cluster file as validated data that cannot be changed.

`cfngen schema` and docs/reference/configuration.md are generated from these fields. The defaults describe kube-up's
default cluster. Derived values (a subnet's CIDR from its VPC's, for example) are filled in before validation by
`cfngen.cluster.defaults.completion.complete`, so every field of a `Cluster` is final.
"""

from __future__ import annotations

from pydantic import Field

from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.base import Architecture, Distribution, List, Model, Plugin
from cfngen.cluster.sections.bastion import Bastion
from cfngen.cluster.sections.capacity import (
    Accelerators,
    CapacityReservation,
    InstanceRequirements,
    InstancesDistribution,
)
from cfngen.cluster.sections.flow_logs import FlowLogs
from cfngen.cluster.sections.instances import (
    ControlPlane,
    ExtraVolume,
    Image,
    InstanceRole,
    Instances,
    Machine,
    NodeGroup,
    Slot,
    Taint,
    Unit,
    Update,
    Volume,
)
from cfngen.cluster.sections.network import (
    Api,
    ElasticIp,
    Endpoints,
    Network,
    Proxy,
    PublicSubnet,
    Route,
    Ssh,
    Subnet,
    SubnetSizes,
    Vpc,
)
from cfngen.cluster.sections.registry import Push, Registry, Repository
from cfngen.cluster.sections.service_accounts import PolicyStatement, ServiceAccountIssuer, ServiceAccountRole
from cfngen.cluster.sections.services import (
    Addon,
    Addons,
    Assets,
    Backups,
    CertificateAuthority,
    Chart,
    Etcd,
    Iam,
    Kubernetes,
    Logging,
    NodeTerminationHandler,
    Notifications,
    Secrets,
)

__all__ = [
    "Accelerators", "Addon", "Addons", "Api", "Architecture", "Assets", "Backups", "Bastion",
    "CapacityReservation", "CertificateAuthority", "Chart", "Cluster", "ControlPlane", "Distribution",
    "ElasticIp", "Endpoints", "Etcd", "ExtraVolume", "FlowLogs", "Iam", "Image", "InstanceRequirements",
    "InstanceRole", "Instances", "InstancesDistribution", "Kubernetes", "Logging", "Machine", "Model", "Network",
    "NodeGroup", "NodeTerminationHandler", "Notifications", "Plugin", "PolicyStatement", "Proxy", "PublicSubnet",
    "Push", "Registry", "Repository", "Route", "Secrets", "ServiceAccountIssuer", "ServiceAccountRole", "Slot", "Ssh",
    "Subnet", "SubnetSizes", "Taint", "Unit", "Update", "Volume", "Vpc",
]  # fmt: skip


class Cluster(Model):
    """One Kubernetes cluster."""

    name: field_types.ClusterName = Field(
        "kubernetes", description="Name of the cluster, also of its stack, its tags and its kubeconfig context."
    )
    region: field_types.Region = Field(
        "us-west-2", description="AWS region. Default: the region of the first subnet's zone."
    )
    kubernetes_version: field_types.KubernetesVersion = Field(
        "1.36", description="Kubernetes version: a minor version (its newest known patch is used) or an exact one."
    )
    network: Network = Field(default_factory=Network, description="VPC, subnets, pods and services.")
    api: Api = Field(default_factory=Api, description="The Kubernetes API endpoint.")
    ssh: Ssh = Field(default_factory=Ssh, description="Shells on instances.")
    image: Image = Field(default_factory=Image, description="Machine image of all instances.")
    control_plane: ControlPlane = Field(default_factory=ControlPlane, description="The masters.")
    node_groups: List[NodeGroup] = Field(
        default_factory=lambda: (NodeGroup(),), description="The groups of nodes; each has its own stack."
    )
    bastion: Bastion | None = Field(
        None, description="An instance through which users reach the others by SSH. Default: none."
    )
    etcd: Etcd = Field(default_factory=Etcd, description="The cluster's database.")
    certificate_authority: CertificateAuthority = Field(
        default_factory=CertificateAuthority, description="The cluster's certificate authority."
    )
    secrets: Secrets = Field(default_factory=Secrets, description="The cluster's secrets in AWS Secrets Manager.")
    logging: Logging = Field(default_factory=Logging, description="Access logs of the cluster's buckets.")
    notifications: Notifications = Field(
        default_factory=Notifications, description="Messages about instances that come and go."
    )
    addons: Addons = Field(default_factory=Addons, description="Add-ons that are installed into the cluster.")
    iam: Iam = Field(default_factory=Iam, description="Rules for IAM roles, and existing roles.")
    service_account_issuer: ServiceAccountIssuer | None = Field(
        None,
        description="Lets AWS accept service-account tokens, so that pods can have IAM roles of their own. Default: "
        "tokens are for Kubernetes only.",
    )
    registry: Registry = Field(default_factory=Registry, description="Repositories for images in Amazon ECR.")
    assets: Assets = Field(default_factory=Assets, description="Where instances fetch files from.")
    kubernetes: Kubernetes = Field(default_factory=Kubernetes, description="Kubernetes' own configuration.")
    tags: dict[str, str] = Field(default_factory=dict, description="Further tags for every resource that takes tags.")

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The masters' slots, in the order of their addresses, each in the subnet that contains its address.

        The address decides, not the index: adding or removing a subnet must not move a master to another zone, where
        its volume could not be attached.
        """
        subnets = self.network.subnets
        slots: list[Slot] = []
        for index, address in enumerate(self.control_plane.addresses):
            containing_subnets = [subnet for subnet in subnets if address in subnet.cidr]
            # An address outside all subnets is an error that `cfngen.cluster.checks.addresses` reports.
            subnet = containing_subnets[0] if containing_subnets else subnets[index % len(subnets)]
            slots.append(Slot(letter="abcde"[index], subnet=subnet, address=address))
        return tuple(slots)
