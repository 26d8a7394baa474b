"""The grammar of logical ids: how those of resources, parameters and outputs are made and parsed.

A logical id is unique over all stacks of a cluster and stable: it contains no list index that may change. There is one
class for each form of id. `str()` makes the id, and `parse` of the class returns the parts of an id of that form, or
None for any other text. `parse` of this module knows all forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from cfngen.cluster.allowed_sources import SECURITY_GROUP_ROLES, SecurityGroupRole
from cfngen.cluster.defaults import zone_region

MasterPart = Literal[
    "Address",
    "AutoScalingGroup",
    "ElasticIp",
    "ElasticIpAssociation",
    "LaunchTemplate",
    "NetworkInterface",
    "Volume",
    "WaitCondition",
]
NodeGroupPart = Literal[
    "AutoScalingGroup",
    "InstanceProfile",
    "InstanceType",
    "LaunchTemplate",
    "MaxSize",
    "MinSize",
    "Role",
    "RootVolumeSize",
    "SpotPrice",
    "Stack",
]
SubnetPart = Literal["", "Id", "Cidr", "RouteTableAssociation"]
ZonalKind = Literal["NatElasticIp", "NatGateway", "NatRoute", "PrivateRouteTable", "RouteTable"]

ENDPOINTS_STACK = "EndpointsStack"
MASTER_STACK = "MasterStack"
MASTER_ROLE = "MasterRole"
_MASTER_PARTS: Mapping[str, MasterPart] = {part: part for part in get_args(MasterPart)}
_NODE_GROUP_PARTS: Mapping[str, NodeGroupPart] = {part: part for part in get_args(NodeGroupPart)}
_SUBNET_PARTS: Mapping[str, SubnetPart] = {part: part for part in get_args(SubnetPart)}
_ZONAL_KINDS: Mapping[str, ZonalKind] = {kind: kind for kind in get_args(ZonalKind)}
_ROLES: Mapping[str, SecurityGroupRole] = {role: role for role in SECURITY_GROUP_ROLES}

SINGLE_IDS = frozenset(
    {
        # Nested stacks
        "IamStack", MASTER_STACK, "SecretsStack", "SecurityGroupsStack", "VpcStack",
        # Network
        "DhcpOptions", "DhcpOptionsAssociation", "InternetGateway", "InternetGatewayAttachment", "InternetGatewayId",
        "EndpointsSecurityGroup", ENDPOINTS_STACK, "InternetRoute", "NatRoute", "PrivateRouteTable", "RouteTable",
        "RouteTableId", "Vpc", "VpcCidr", "VpcId",
        # API endpoint
        "ApiAllowedCidr", "ApiElasticIp", "ApiElasticIpAllocationId", "ApiEndpoint", "ApiListener", "ApiLoadBalancer",
        "ApiPrivateAddress", "ApiTargetGroup", "InternalApiListener", "InternalApiLoadBalancer",
        "InternalApiTargetGroup", "KubeconfigCommand", "ShellCommand",
        # Permissions
        "AddonsPolicy", "MasterInstanceProfile", "MasterInstanceProfileArn", MASTER_ROLE, "NodeInstanceProfile",
        "NodeInstanceProfileArn", "NodeRole", "PodAddressesPolicy",
        # Secrets and backups
        "BackupBucket", "BackupBucketName", "BackupBucketPolicy", "CaSecret", "CaSecretArn", "JoinSecret",
        "JoinSecretArn", "KeyName", "SecretsKey", "SecretsKeyArn", "SshKeyPair",
        # Settings of all masters, and of the deployment
        "MasterInstanceType", "MasterRootVolumeSize", "MasterVolumeSize", "MasterVolumeType", "ClusterStackName",
        "TemplateBucket", "TemplatePrefix",
    }
)  # fmt: skip
"""Logical ids of resources, parameters and outputs of which a cluster has one at most."""


def pascal(text: str) -> str:
    """Return `text` as one PascalCase word, e.g. `gpu-a` as `GpuA`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", text) if part)


def _one_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


@dataclass(frozen=True)
class MasterId:
    """A resource or parameter of one master, e.g. `MasterAVolume`.

    Attributes:
        letter: letter of the master's slot, `a` to `e`.
        part: what it is.
    """

    letter: str
    part: MasterPart

    _PATTERN: ClassVar = re.compile(rf"Master([A-E])({_one_of(_MASTER_PARTS)})")

    def __str__(self) -> str:
        return f"{slot_id(self.letter)}{self.part}"

    @classmethod
    def parse(cls, logical_id: str) -> MasterId | None:
        """Return the parts of such an id, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(match[1].lower(), _MASTER_PARTS[match[2]]) if match else None

    def sibling(self, part: MasterPart) -> MasterId:
        """Return the id of another part of the same master."""
        return replace(self, part=part)


@dataclass(frozen=True)
class NodeGroupId:
    """A resource, parameter or output of one node group, e.g. `NodeGroupGpuAutoScalingGroup`.

    Attributes:
        group: the group's name in PascalCase, see `pascal`.
        part: what it is.
    """

    group: str
    part: NodeGroupPart

    _PATTERN: ClassVar = re.compile(rf"NodeGroup([A-Z0-9][A-Za-z0-9]*?)({_one_of(_NODE_GROUP_PARTS)})")

    def __str__(self) -> str:
        return f"{group_id(self.group)}{self.part}"

    @classmethod
    def parse(cls, logical_id: str) -> NodeGroupId | None:
        """Return the parts of such an id, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(match[1], _NODE_GROUP_PARTS[match[2]]) if match else None


@dataclass(frozen=True)
class ProgramId:
    """The resource that holds the boot program of masters or a node group, e.g. `MasterProgram0123456789ab`.

    Attributes:
        owner: whose program it is: `Master` for all masters, or the prefix of the logical ids of one master (`slot_id`)
            or node group (`group_id`).
        digest: the first twelve digits of the program's SHA-256 digest.
    """

    owner: str
    digest: str

    _PATTERN: ClassVar = re.compile(r"(Master[A-E]?|NodeGroup[A-Z0-9][A-Za-z0-9]*?)Program([0-9a-f]{12})")

    def __str__(self) -> str:
        return f"{self.owner}Program{self.digest}"

    @classmethod
    def parse(cls, logical_id: str) -> ProgramId | None:
        """Return the parts of such an id, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(match[1], match[2]) if match else None

    @property
    def letter(self) -> str:
        """Letter of the master whose program it is; empty if it is that of all masters or of a node group."""
        return "" if self.group else self.owner.removeprefix("Master").lower()

    @property
    def group(self) -> str:
        """The node group's name in PascalCase; empty if it is a program of masters."""
        return self.owner.removeprefix("NodeGroup") if self.owner.startswith("NodeGroup") else ""


_ZONE = r"(?:[A-Z][a-z]{2}[0-9])?[A-Z]"


@dataclass(frozen=True)
class SubnetId:
    """The subnet in a zone, its parameters and its association, e.g. `SubnetA`, `SubnetLax1ACidr`, `PublicSubnetA`.

    Attributes:
        zone: the zone without its region, see `zone_id`.
        part: what it is; empty for the subnet itself.
        is_public: whether it is the public subnet of a private cluster, which has no instances.
    """

    zone: str
    part: SubnetPart = ""
    is_public: bool = False

    _PATTERN: ClassVar = re.compile(rf"(Public)?Subnet({_ZONE})({_one_of(_SUBNET_PARTS)})")

    def __str__(self) -> str:
        return f"{'Public' if self.is_public else ''}Subnet{self.zone}{self.part}"

    @classmethod
    def parse(cls, logical_id: str) -> SubnetId | None:
        """Return the parts of such an id, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(match[2], _SUBNET_PARTS[match[3]], is_public=bool(match[1])) if match else None

    def zone_in(self, region: str) -> str:
        """Return the name of the zone in a region, e.g. `us-west-2a` or `us-west-2-lax-1a`."""
        # `A` is an Availability Zone; in `Lax1A`, `Lax` is the Local Zone's city and `1` its number there.
        local_zone, letter = self.zone[:-1], self.zone[-1:]
        infix = f"-{local_zone[:3]}-{local_zone[3:]}" if local_zone else ""
        return f"{region}{infix}{letter}".lower()


@dataclass(frozen=True)
class ZonalId:
    """Another part of the network in a zone, e.g. `NatGatewayA`, or the parameter for an existing one, `NatGatewayAId`.

    Attributes:
        kind: what it is.
        zone: the zone without its region, see `zone_id`.
        is_parameter: whether it is the parameter with the id of an existing resource.
    """

    kind: ZonalKind
    zone: str
    is_parameter: bool = False

    _PATTERN: ClassVar = re.compile(rf"({_one_of(_ZONAL_KINDS)})({_ZONE})(Id)?")

    def __str__(self) -> str:
        return f"{self.kind}{self.zone}{'Id' if self.is_parameter else ''}"

    @classmethod
    def parse(cls, logical_id: str) -> ZonalId | None:
        """Return the parts of such an id, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(_ZONAL_KINDS[match[1]], match[2], is_parameter=bool(match[3])) if match else None


@dataclass(frozen=True)
class EndpointId:
    """A VPC endpoint, e.g. `EndpointS3`, `EndpointEcrApi`.

    Attributes:
        service: the service's name as one PascalCase word.
    """

    service: str

    _PATTERN: ClassVar = re.compile(r"Endpoint([A-Z0-9][A-Za-z0-9]*)")

    def __str__(self) -> str:
        return f"Endpoint{self.service}"

    @classmethod
    def parse(cls, logical_id: str) -> EndpointId | None:
        """Return the parts of such an id, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(match[1]) if match else None

    @classmethod
    def of(cls, service: str) -> EndpointId:
        """Return the id of the endpoint of a service such as `ecr.api`."""
        return cls(pascal(service))


@dataclass(frozen=True)
class ZoneId:
    """The parameter for an Availability Zone, e.g. `ZoneA`.

    Attributes:
        zone: the zone without its region, see `zone_id`.
    """

    zone: str

    _PATTERN: ClassVar = re.compile(rf"Zone({_ZONE})")

    def __str__(self) -> str:
        return f"Zone{self.zone}"

    @classmethod
    def parse(cls, logical_id: str) -> ZoneId | None:
        """Return the parts of such an id, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(match[1]) if match else None


@dataclass(frozen=True)
class RuleId:
    """A rule of a security group, e.g. `MasterSshFrom10x0x0x0x8`.

    Attributes:
        role: whose security group has the rule.
        purpose: what the open port is for, e.g. `Api`; empty if the rule opens every port, and for rules of the API's
            load balancer.
        source: who may connect: other instances or the load balancer of the cluster, the range of the parameter
            `ApiAllowedCidr`, or a CIDR or prefix list as `source_id` spells it.
    """

    role: SecurityGroupRole
    purpose: str
    source: str

    _PATTERN: ClassVar = re.compile(
        rf"({_one_of(SECURITY_GROUP_ROLES)})([A-Z][A-Za-z0-9]*?)?From"
        r"(Masters|Nodes|LoadBalancer|AllowedCidr|Pl[0-9a-f]+|[0-9]+(?:x[0-9]+){4})"
    )

    def __str__(self) -> str:
        return f"{self.role}{self.purpose}From{self.source}"

    @classmethod
    def parse(cls, logical_id: str) -> RuleId | None:
        """Return the parts of such an id, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(_ROLES[match[1]], match[2] or "", match[3]) if match else None

    @property
    def from_outside(self) -> bool:
        """Whether the rule's source is neither an instance nor the load balancer of the cluster."""
        return self.source not in ("Masters", "Nodes", "LoadBalancer")

    @property
    def origin(self) -> str:
        """The CIDR or the id of the prefix list; empty for any other source."""
        if self.source.startswith("Pl"):
            return f"pl-{self.source.removeprefix('Pl')}"
        numbers = self.source.split("x")
        return f"{'.'.join(numbers[:4])}/{numbers[4]}" if len(numbers) == 5 else ""


@dataclass(frozen=True)
class SecurityGroupId:
    """A security group, e.g. `MasterSecurityGroup`, or `MasterAccessSecurityGroup2` for an additional one.

    Attributes:
        role: whose security group it is.
        number: its number among the security groups of the role. The first one always exists; additional ones hold
            rules for allowed sources only.
        part: `Id` for the parameter and output with its id; empty for the security group itself.
    """

    role: SecurityGroupRole
    number: int = 1
    part: Literal["", "Id"] = ""

    _PATTERN: ClassVar = re.compile(
        rf"({_one_of(SECURITY_GROUP_ROLES)})(?:SecurityGroup|AccessSecurityGroup([2-9]|[1-9][0-9]+))(Id)?"
    )

    def __str__(self) -> str:
        name = "SecurityGroup" if self.number == 1 else f"AccessSecurityGroup{self.number}"
        return f"{self.role}{name}{self.part}"

    @classmethod
    def parse(cls, logical_id: str) -> SecurityGroupId | None:
        """Return the parts of such an id, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(_ROLES[match[1]], int(match[2] or 1), "Id" if match[3] else "") if match else None


@dataclass(frozen=True)
class ImageId:
    """The parameter for a machine image, e.g. `NodeImageUbuntu2404Amd64`.

    Attributes:
        role: whose image it is.
        image: AMI id, SSM parameter or distribution, and architecture, in PascalCase.
    """

    role: Literal["Master", "Node"]
    image: str

    _PATTERN: ClassVar = re.compile(r"(Master|Node)Image([A-Z0-9][A-Za-z0-9]*)")

    def __str__(self) -> str:
        return f"{self.role}Image{self.image}"

    @classmethod
    def parse(cls, logical_id: str) -> ImageId | None:
        """Return the parts of such an id, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls("Master" if match[1] == "Master" else "Node", match[2]) if match else None


@dataclass(frozen=True)
class SingleId:
    """The id of something that a cluster has once at most, e.g. `Vpc`: one of `SINGLE_IDS`.

    Attributes:
        name: the id.
    """

    name: str

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, logical_id: str) -> SingleId | None:
        """Return the id, or None for any other text."""
        return cls(logical_id) if logical_id in SINGLE_IDS else None


LogicalId = (
    SingleId
    | MasterId
    | NodeGroupId
    | ProgramId
    | SubnetId
    | ZonalId
    | EndpointId
    | ZoneId
    | RuleId
    | SecurityGroupId
    | ImageId
)
FORMS = (
    SingleId, MasterId, NodeGroupId, ProgramId, SubnetId, ZonalId, EndpointId, ZoneId, RuleId, SecurityGroupId, ImageId,
)  # fmt: skip


def parse(logical_id: str) -> LogicalId | None:
    """Return the parts of a logical id of any form, or None if the id has none of the forms that cfngen creates."""
    return next((parsed for form in FORMS if (parsed := form.parse(logical_id))), None)


def slot_id(letter: str) -> str:
    """Return the prefix of a master's logical ids, e.g. `MasterA`."""
    return f"Master{letter.upper()}"


def group_id(group: str) -> str:
    """Return the prefix of a node group's logical ids, e.g. `NodeGroupGpu`."""
    return f"NodeGroup{pascal(group)}"


def auto_scaling_group(prefix: str) -> str:
    """Return the logical id of a master's or node group's Auto Scaling group; instances signal it by this name."""
    return f"{prefix}AutoScalingGroup"


def wait_condition(prefix: str) -> str:
    """Return the logical id of the wait condition that a master's first instance signals."""
    return f"{prefix}WaitCondition"


def launch_template(prefix: str) -> str:
    """Return the logical id of a master's or node group's launch template."""
    return f"{prefix}LaunchTemplate"


def is_auto_scaling_group(logical_id: str) -> bool:
    """Return whether a logical id is that of a master's or node group's Auto Scaling group."""
    parsed = MasterId.parse(logical_id) or NodeGroupId.parse(logical_id)
    return parsed is not None and parsed.part == "AutoScalingGroup"


def is_node_group_stack(logical_id: str) -> bool:
    """Return whether a logical id is that of a node group's nested stack."""
    parsed = NodeGroupId.parse(logical_id)
    return parsed is not None and parsed.part == "Stack"


def zone_id(zone: str) -> str:
    """Return the part of a zone's name after the region, for logical ids: `A`, or `Lax1A` for a Local Zone."""
    region = zone_region(zone)
    if region is None:
        raise ValueError(f"{zone!r} is not an Availability Zone")
    return "".join(part.title() for part in zone.removeprefix(region).split("-"))


def is_subnet_parameter(name: str) -> bool:
    """Return whether a parameter or output holds the id of the subnet in a zone, e.g. `SubnetAId`."""
    parsed = SubnetId.parse(name)
    return parsed is not None and parsed.part == "Id"


def source_id(source: str) -> str:
    """Return a CIDR or prefix list as letters and digits: `10x0x0x0x8` for 10.0.0.0/8, `Pl0123` for pl-0123."""
    return f"Pl{source.removeprefix('pl-')}" if source.startswith("pl-") else re.sub(r"[./]", "x", source)
