"""Masters and node groups: what runs where, and what is put onto it."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.base import (
    Architecture,
    Distribution,
    List,
    Model,
    refuse_other_systems,
    refuse_truth_value,
)
from cfngen.cluster.sections.capacity import (
    CapacityReservation,
    GroupAutoscaler,
    InstanceRequirements,
    InstancesDistribution,
)
from cfngen.cluster.sections.ingress import IngressRule
from cfngen.cluster.sections.network import Subnet
from cfngen.cluster.sections.service_accounts import PolicyStatement


class Image(Model):
    """The machine image of instances: a distribution's newest by its public SSM parameter, or one of your own."""

    distribution: Annotated[Distribution, BeforeValidator(refuse_other_systems)] = Field(
        "ubuntu-24.04", description="Operating system; also set it for your own image."
    )
    id: field_types.ImageId | None = Field(None, description="AMI id, instead of the distribution's newest image.")
    ssm_parameter: field_types.SsmParameterName | None = Field(
        None, description="SSM parameter with the AMI id, public or your own, instead of the distribution's."
    )
    architecture: Architecture | None = Field(
        None, description="CPU architecture of the image; must be the instance type's. Default: the instance type's."
    )
    root_device: field_types.DeviceName | None = Field(
        None, description="Name of the root device of your own image. Default: the distribution's."
    )


class Volume(Model):
    """An EBS volume; always encrypted."""

    # The widest limits of all types; `cfngen.cluster.checks.volumes` has those of each.
    size: int = Field(20, ge=1, le=65536, description="Size in GiB.")
    type: Literal["gp3", "gp2", "io1", "io2"] = Field("gp3", description="EBS volume type.")
    iops: int | None = Field(None, ge=100, le=256000, description="Provisioned IOPS (gp3, io1, io2).")
    throughput: int | None = Field(None, ge=125, le=2000, description="Throughput in MiB/s (gp3).")
    kms_key: field_types.KeyArn | None = Field(
        None,
        description="ARN of the KMS key that encrypts the volume. Default: the account's key for EBS. For root volumes "
        "and further volumes of nodes the key's policy must let the service-linked role AWSServiceRoleForAutoScaling "
        "use it.",
    )


class ExtraVolume(Volume):
    """A further EBS volume of each node of a group: empty when the node starts, deleted with the node."""

    size: int = Field(ge=1, le=65536, description="Size in GiB.")
    device: field_types.ExtraDeviceName = Field(
        "/dev/sdf", description="Its device name in EC2, /dev/sdf to /dev/sdp. Default: the first that is free."
    )
    mount_path: field_types.MountPath | None = Field(
        None, description="Folder at which nodes mount it, formatted. Default: it is attached, and left as it is."
    )
    file_system: Literal["ext4", "xfs"] | None = Field(
        None, description="File system of a volume with a `mountPath`. Default: ext4."
    )


class Containerd(Model):
    """The container runtime."""

    registry_mirrors: dict[field_types.HostName, List[field_types.HttpUrl]] = Field(
        default_factory=dict,
        description="Mirrors of registries by the registry's host, tried in order before the registry itself: "
        "`docker.io: [https://mirror.example.com]`.",
    )
    snapshotter: Literal["overlayfs", "native", "btrfs", "zfs"] = Field(
        "overlayfs", description="Snapshotter that stores image layers; btrfs and zfs need a file system of that type."
    )
    configuration: dict[str, Any] = Field(
        default_factory=dict, description="Fields of containerd's configuration (version 4), merged field by field."
    )


class File(Model):
    """A further file on an instance."""

    path: field_types.AbsolutePath = Field(description="Absolute path of the file.")
    content: str = Field(description="Its content.")
    mode: field_types.FileMode = Field("0644", description="Its permissions as octal digits.")


class Unit(Model):
    """A further systemd unit on an instance."""

    name: field_types.UnitName = Field(description="Name with its suffix, e.g. `backup.service`.")
    content: str = Field(description="Its content.")
    enable: bool = Field(True, description="Whether it is enabled and started.")


class InstanceRole(Model):
    """An existing IAM role of instances, which cfngen leaves as it is, in place of one that it makes."""

    role: field_types.RoleArn = Field(
        description="ARN of the role. EC2 must be trusted to assume it; `cfngen permissions` prints its policy. Also "
        "required with an instance profile, since whoever launches instances must be allowed to pass this role."
    )
    instance_profile: field_types.InstanceProfileArn | None = Field(
        None, description="ARN of an existing instance profile that holds the role. Default: one is made for it."
    )


class Machine(Model):
    """What masters, nodes and the bastion have in common."""

    instance_type: field_types.InstanceType = Field(
        "t3.medium", description="EC2 instance type; at least 2 vCPU and 2 GiB of memory."
    )
    image: Image = Field(default_factory=Image, description="Image of these instances. Default: the cluster's.")
    root_volume: Volume = Field(default_factory=Volume, description="Root volume.")


class Instances(Machine):
    """What masters and nodes have in common."""

    additional_security_groups: List[field_types.SecurityGroupId] = Field(
        (),
        description="Further security groups for the instances, in the cluster's VPC. If the VPC is created with the "
        "cluster, add them afterwards. They must not have the tag `kubernetes.io/cluster/<name>`.",
    )
    ingress: List[IngressRule] = Field(
        (),
        description="Further ports of these instances that are opened, of a node group on its own nodes only. A change "
        "replaces no instance. If `network.securityGroups` names their group, "
        "`cfngen config --security-group-rules` lists the rules, and you add them.",
    )
    additional_policies: List[field_types.PolicyArn] = Field(
        (), description="ARNs of further managed policies for the instances' role."
    )
    policy_statements: List[PolicyStatement] = Field(
        (),
        description="Further statements for the instances' role. A node group with any has a role for itself.",
    )
    creation_timeout: int = Field(
        20,
        ge=10,
        le=50,
        description="Minutes within which an instance must report success; otherwise the creation or update fails.",
    )
    kubelet_configuration: dict[str, Any] = Field(
        default_factory=dict,
        description="Fields of the KubeletConfiguration of these instances, merged over the cluster's: reservations, "
        "eviction, and so on.",
    )
    containerd: Containerd = Field(default_factory=Containerd, description="The container runtime.")
    instance_storage: Literal["raid0", "none"] = Field(
        "raid0",
        description="Use of the instance type's local disks: `raid0` combines them into one volume for the kubelet and "
        "containerd; `none` leaves them unused.",
    )
    files: List[File] = Field((), description="Further files, written before any program starts.")
    units: List[Unit] = Field((), description="Further systemd units.")
    pre_boot_commands: List[field_types.Command] = Field(
        (), description="Shell commands to run before packages are installed; if one fails, the boot fails."
    )
    post_boot_commands: List[field_types.Command] = Field(
        (), description="Shell commands to run when the instance is ready, before it reports success."
    )
    cloud_config: dict[str, Any] = Field(
        default_factory=dict, description="A cloud-init cloud-config that is added to the user data as a separate part."
    )


class AuditLog(Model):
    """The API server's audit log, on each master's root disk."""

    enabled: bool = Field(True, description="Whether requests are logged.")
    max_age: int = Field(30, ge=1, le=3650, description="Days that a rotated file is kept.")
    max_backups: int = Field(10, ge=1, le=1000, description="Rotated files that are kept.")
    max_size: int = Field(100, ge=1, le=10000, description="MiB at which a file is rotated.")
    policy: dict[str, Any] = Field(
        default_factory=dict,
        description="Your own policy (audit.k8s.io/v1 Policy). Default: who changed what, without contents; "
        "reads (except of Secrets) and requests of Kubernetes' own components are not logged.",
    )


class ControlPlane(Instances):
    """The masters."""

    count: Annotated[Literal[1, 3, 5], BeforeValidator(refuse_truth_value)] = Field(
        1, description="Number of masters: 3 keep working when one is lost, 5 when two are. May grow, never shrink."
    )
    addresses: List[field_types.Address] = Field(
        (IPv4Address("172.20.0.9"),),
        description="Fixed private address of each master; the subnet that contains it decides the master's zone. "
        "Default: the ninth address of each subnet in turn, then the next one if masters share a subnet.",
    )
    capacity_reservation: bool = Field(
        False,
        description="Whether EC2 reserves capacity for each master's instance in its zone, so that a new instance "
        "starts also when its type is sold out there. Costs as much as the instance, while none runs in it; your own "
        "image must be billed as `Linux/UNIX`.",
    )
    audit_log: AuditLog = Field(default_factory=AuditLog, description="The API server's audit log.")
    volume: Volume = Field(
        default_factory=Volume, description="Data volume of each master: etcd. It outlives the instance."
    )


class Taint(Model):
    """A taint of a group's nodes."""

    key: field_types.LabelKey = Field(description="Its key.")
    value: field_types.LabelValue = Field("", description="Its value.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(description="What it does.")


def _refuse_percentage(value: object) -> object:
    """Return a number of nodes unchanged; refuse a percentage, which Kubernetes would accept in such a place."""
    if isinstance(value, str) and value.strip().endswith("%"):
        reason = (
            f"{value} is a share of a size that only the account knows when the group is updated, and CloudFormation "
            "takes numbers; write a number of nodes"
        )
        raise PydanticCustomError("cfngen", "{reason}", {"reason": reason})
    return value


_NodeCount = Annotated[int, BeforeValidator(_refuse_percentage)]


class Update(Model):
    """How the nodes of a group are replaced when their launch template changes."""

    max_unavailable: _NodeCount = Field(
        1, ge=0, le=100, description="Nodes that may be missing at a time; at most 100 together with `maxSurge`."
    )
    max_surge: _NodeCount = Field(
        0,
        ge=0,
        le=100,
        description="Nodes that are launched beyond the group's size before old ones are drained; they need room below "
        "`maxSize`.",
    )
    pause: int = Field(
        0,
        ge=0,
        le=40,
        description="Minutes that the new nodes of a batch must have been working before the next batch is replaced.",
    )

    @property
    def batch_size(self) -> int:
        """Nodes that are replaced at a time."""
        return self.max_unavailable + self.max_surge


class NodeGroup(Instances):
    """One Auto Scaling group of nodes."""

    name: field_types.GroupName = Field("nodes", description="Name of the group, unique in the cluster.")
    min_size: int = Field(4, ge=0, le=5000, description="Minimum number of nodes.")
    max_size: int = Field(4, ge=1, le=5000, description="Maximum number of nodes. Default: the minimum, at least 1.")
    desired_size: int | None = Field(
        None, ge=0, le=5000, description="Number of nodes to start with. Default: the Auto Scaling group decides."
    )
    zones: List[field_types.Zone] = Field(
        ("us-west-2a",), min_length=1, description="Zones to run in. Default: all Availability Zones."
    )
    one_group_per_zone: bool = Field(
        False,
        description="Whether each of the zones gets a group of its own, named after the group and the zone "
        "(`workers-a`), with all settings of this one. The sizes then hold for each zone.",
    )
    spot_price: field_types.Price | None = Field(
        None, description="Highest hourly price in US dollars for spot instances. Default: on-demand instances."
    )
    instance_types: List[field_types.InstanceType] = Field(
        (),
        max_length=40,
        description="Several instance types of one architecture, instead of `instanceType`: On-Demand Instances are of "
        "the first that AWS has capacity for, Spot Instances of whichever suits `instancesDistribution`.",
    )
    instance_requirements: InstanceRequirements | None = Field(
        None, description="What instance types must have, instead of `instanceType`. Default: none."
    )
    instances_distribution: InstancesDistribution | None = Field(
        None, description="Shares of On-Demand and Spot Instances. Default: all nodes are of the same kind."
    )
    capacity_rebalance: bool = Field(
        False,
        description="Whether a Spot Instance is replaced as soon as AWS sees a high risk that it is interrupted, "
        "instead of after the interruption.",
    )
    max_instance_lifetime: int | None = Field(
        None, ge=1, le=365, description="Days after which a node is replaced by a new one. Default: never."
    )
    capacity_reservation: CapacityReservation | None = Field(
        None, description="Capacity Reservations in which nodes run. Default: open ones that match, if there are any."
    )
    public_ip: bool = Field(
        True,
        description="Whether nodes have public addresses. Default: true, or false if `network.topology` is `private`. "
        "If false in a public cluster, existing subnets with a NAT gateway are needed.",
    )
    root_volume: Volume = Field(
        default_factory=lambda: Volume(size=32), description="Root volume. Default: 32 GiB, or 120 GiB with `gpu`."
    )
    gpu: Literal["nvidia"] | None = Field(
        None,
        description="Makes these GPU nodes: an image with NVIDIA's driver (default: AWS's Deep Learning Base AMI of "
        "the distribution), NVIDIA's container runtime, labels and a taint, and the add-on `nvidiaDevicePlugin`. "
        "Default: pods cannot use GPUs.",
    )
    pre_pulled_images: List[field_types.ImageReference] = Field(
        (),
        description="Images that each node pulls in the background once containerd runs, so that pods start faster: "
        "with their registry, and a tag or, better, a digest. A pull that fails is logged and fails no boot.",
    )
    # As many as there are device names.
    volumes: List[ExtraVolume] = Field(
        (),
        max_length=11,
        description="Further EBS volumes of each node, for data that may be lost with the node: scratch space, caches, "
        "container images.",
    )
    iam: InstanceRole | None = Field(
        None, description="An existing role of this group's nodes. Default: that of `iam.nodes`, or one that is made."
    )
    target_groups: List[field_types.TargetGroupArn] = Field(
        (),
        description="ARNs of existing target groups of load balancers, of the type `instance`, in the cluster's VPC, "
        "with which the group registers its nodes.",
    )
    labels: dict[field_types.LabelKey, field_types.LabelValue] = Field(
        default_factory=dict,
        description="Labels that the group's nodes register with; with `gpu` also `nvidia.com/gpu.present` and "
        "`k8s.amazonaws.com/accelerator`.",
    )
    taints: List[Taint] = Field(
        (),
        description="Taints that the group's nodes register with. Default: none, or with `gpu` "
        "`nvidia.com/gpu=present:NoSchedule`.",
    )
    max_pods: int | None = Field(
        None,
        ge=5,
        le=500,
        description="Maximum number of pods on each node. Default: the kubelet's 110, or with the Amazon VPC plug-in "
        "the number of pods for which the instance type has addresses, if that is less.",
    )
    autoscaler: GroupAutoscaler = Field(
        default_factory=GroupAutoscaler,
        description="What cluster-autoscaler is told about the group, by tags of its Auto Scaling group.",
    )
    drain_timeout: int = Field(
        5, ge=0, le=60, description="Minutes that a terminating node may take to evict its pods; 0 does not drain."
    )
    rebalance_recommendation: Literal["ignore", "cordon", "drain"] = Field(
        "ignore",
        description="What a node does when EC2 recommends to rebalance its Spot Instance, which is then likely to be "
        "interrupted: `cordon` keeps new pods away, `drain` moves its pods as well. Nothing replaces the node before "
        "the interruption.",
    )
    update: Update = Field(default_factory=Update, description="How nodes are replaced in an update.")

    @property
    def initial_size(self) -> int:
        """Number of nodes that the group starts with; an autoscaler may have changed it since."""
        return self.min_size if self.desired_size is None else self.desired_size


class Slot(Model):
    """The stable identity of one master: a letter, a subnet (thus a zone) and a fixed address."""

    letter: str = Field(description="Letter of the slot: a, b, c, …")
    subnet: Subnet = Field(description="Subnet of the slot's network interface; its zone is the volume's.")
    address: field_types.Address = Field(description="The private address that every instance of the slot has.")
