"""The logical ids of resources, parameters and outputs: how they are made and parsed.

A logical id is unique over all stacks of a cluster and stable: it contains no list index that may change. There is one
class for each form of id; the forms of a network's parts are in `cfngen.cluster.naming.network_ids`, those of roles and
repositories in `cfngen.cluster.naming.identity_ids`. `str()` makes the id, and `parse` of the class returns the parts
of an id of that form, or None for any other text. `parse` of this module knows all forms.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from cfngen.cluster.naming.id_form import IdForm, pascal
from cfngen.cluster.naming.identity_ids import PushRoleId, RegistryId, ServiceAccountRoleId
from cfngen.cluster.naming.network_ids import (
    NodeGroupRuleId,
    RouteId,
    RuleId,
    SecurityGroupId,
    SubnetId,
    VpcRangeId,
    ZonalId,
    ZoneId,
)

# What belongs to one master; the end of the logical id.
MasterPart = Literal[
    "Address",
    "AutoScalingGroup",
    "CapacityReservation",
    "ElasticIp",
    "ElasticIpAssociation",
    "LaunchTemplate",
    "NetworkInterface",
    "Volume",
    "WaitCondition",
]
# What belongs to one node group; the end of the logical id.
NodeGroupPart = Literal[
    "AutoScalingGroup",
    "ExistingRoleProfile",
    "InstanceProfile",
    "InstanceType",
    "LaunchTemplate",
    "MaxSize",
    "MinSize",
    "PodAddressesPolicy",
    "Role",
    "RootVolumeSize",
    "SecurityGroup",
    "SpotPrice",
    "Stack",
]

# Ids of `SINGLE_IDS` that other modules refer to.
MASTER_STACK = "MasterStack"
MASTER_ROLE = "MasterRole"
MASTER_POLICY = "MasterPolicy"
FLOW_LOG_ROLE = "FlowLogRole"
ISSUER_BUCKET = "IssuerBucket"
ISSUER_DISTRIBUTION = "IssuerDistribution"
OIDC_PROVIDER = "OidcProvider"
REGISTRY_STACK = "RegistryStack"
BASTION_STACK = "BastionStack"
BASTION_PREFIX = "Bastion"
BASTION_NETWORK_INTERFACE = "BastionNetworkInterface"
BASTION_ELASTIC_IP = "BastionElasticIp"
BASTION_ASSOCIATION = "BastionElasticIpAssociation"
BASTION_LAUNCH_TEMPLATE = "BastionLaunchTemplate"
BASTION_GROUP = "BastionAutoScalingGroup"
BASTION_SECURITY_GROUP = "BastionSecurityGroup"
MachineRole = Literal["Master", "Node", "Bastion"]

SINGLE_IDS = frozenset(
    {
        # Nested stacks
        BASTION_STACK, "IamStack", MASTER_STACK, REGISTRY_STACK, "SecretsStack", "SecurityGroupsStack", "VpcStack",
        # Network
        FLOW_LOG_ROLE, "FlowLog", "FlowLogGroup",
        "DhcpOptions", "DhcpOptionsAssociation", "InternetGateway", "InternetGatewayAttachment", "InternetGatewayId",
        "EndpointsSecurityGroup", "EndpointsSecurityGroupId", "InternetRoute", "NatRoute", "PrivateRouteTable",
        "RouteTable", "RouteTableId", "Vpc", "VpcCidr", "VpcId",
        # API endpoint
        "ApiNameServers", "ApiPrivateRecord", "ApiPrivateZone", "ApiPublicRecord", "ApiPublicZone",
        "ApiAllowedCidr", "ApiElasticIp", "ApiElasticIpAllocationId", "ApiEndpoint", "ApiListener", "ApiLoadBalancer",
        "ApiInternalEndpoint", "ApiPrivateAddress", "ApiTargetGroup", "InternalApiListener", "InternalApiLoadBalancer",
        "InternalApiTargetGroup", "KubeconfigCommand", "ShellCommand",
        # Bastion
        "BastionAddress", BASTION_ASSOCIATION, "BastionCommand", BASTION_ELASTIC_IP, "BastionElasticIpAddress",
        "BastionElasticIpAllocationId", BASTION_GROUP, "BastionInstanceType", BASTION_LAUNCH_TEMPLATE,
        BASTION_NETWORK_INTERFACE, "BastionRootVolumeSize", BASTION_SECURITY_GROUP,
        # Permissions
        "AddonsPolicy", "BackupsKeyPolicy", "BackupsLockPolicy", "MasterExistingRoleProfile",
        "MasterInstanceProfile", "MasterInstanceProfileArn", MASTER_POLICY, MASTER_ROLE, "NodeExistingRoleProfile",
        "NodeInstanceProfile", "NodeInstanceProfileArn", "NodePodAddressesPolicy", "NodeRole", "NodeStackNames",
        "PodAddressesPolicy", "PullImagesPolicy",
        # Secrets and backups
        "BackupBucket", "BackupBucketName", "BackupBucketPolicy", "CaSecret", "CaSecretArn", "JoinSecret",
        "JoinSecretArn", "KeyName", "SecretsKey", "SecretsKeyArn", "SshKeyPair",
        # Issuer of service-account tokens, and roles that pods assume with them
        ISSUER_BUCKET, "IssuerBucketName", "IssuerBucketPolicy", ISSUER_DISTRIBUTION, "IssuerOriginAccessControl",
        "CloudControllerPolicy", OIDC_PROVIDER, "ServiceAccountIssuer",
        # Settings of all masters, and of the deployment
        "MasterInstanceType", "MasterRootVolumeSize", "MasterVolumeSize", "MasterVolumeType", "ClusterStackName",
        "TemplateBucket", "TemplatePrefix",
    }
)  # fmt: skip
"""Logical ids of resources, parameters and outputs of which a cluster has one at most."""


@dataclass(frozen=True)
class MasterId(IdForm):
    """A resource or parameter of one master, e.g. `MasterAVolume`.

    Attributes:
        letter: letter of the master's slot, `a` to `e`.
    """

    letter: str
    part: MasterPart

    _PATTERN: ClassVar = re.compile(rf"Master(?P<letter>[A-E])(?P<part>{'|'.join(get_args(MasterPart))})")
    _PARSERS: ClassVar = {"letter": str.lower}

    def __str__(self) -> str:
        return f"{master_prefix(self.letter)}{self.part}"

    def sibling(self, part: MasterPart) -> MasterId:
        """Return the id of another resource or parameter of the same master."""
        return replace(self, part=part)


@dataclass(frozen=True)
class NodeGroupId(IdForm):
    """A resource, parameter or output of one node group, e.g. `NodeGroupGpuAutoScalingGroup`.

    Attributes:
        group: the group's name in PascalCase, see `pascal`.
    """

    group: str
    part: NodeGroupPart

    _PATTERN: ClassVar = re.compile(
        rf"NodeGroup(?P<group>[A-Z0-9][A-Za-z0-9]*?)(?P<part>{'|'.join(get_args(NodeGroupPart))})"
    )

    def __str__(self) -> str:
        return f"{node_group_prefix(self.group)}{self.part}"


@dataclass(frozen=True)
class ProgramId(IdForm):
    """The resource that holds the boot program of masters or a node group, e.g. `MasterProgram0123456789ab`.

    Attributes:
        owner: whose program it is: `Master` for all masters, or the prefix of the logical ids of one master
            (`master_prefix`) or node group (`node_group_prefix`).
        digest: the first twelve hexadecimal digits of the program's SHA-256 digest.
    """

    owner: str
    digest: str

    _TEXT: ClassVar = "{owner}Program{digest}"
    _PATTERN: ClassVar = re.compile(
        r"(?P<owner>Master[A-E]?|NodeGroup[A-Z0-9][A-Za-z0-9]*?)Program(?P<digest>[0-9a-f]{12})"
    )

    @property
    def letter(self) -> str:
        """Letter of the master whose program it is; empty for the program of all masters or of a node group."""
        return "" if self.group else self.owner.removeprefix("Master").lower()

    @property
    def group(self) -> str:
        """The node group's name in PascalCase; empty if it is a program of masters."""
        return self.owner.removeprefix("NodeGroup") if self.owner.startswith("NodeGroup") else ""


@dataclass(frozen=True)
class ClusterFileId(IdForm):
    """The empty resource beside the cluster file that a stack keeps, e.g. `ClusterFile0123456789ab`: its digest."""

    digest: str

    _TEXT: ClassVar = "ClusterFile{digest}"
    _PATTERN: ClassVar = re.compile(r"ClusterFile(?P<digest>[0-9a-f]{12})")


@dataclass(frozen=True)
class EndpointId(IdForm):
    """A VPC endpoint, e.g. `EndpointS3`, `EndpointEcrApi`."""

    service: str

    _TEXT: ClassVar = "Endpoint{service}"
    _PATTERN: ClassVar = re.compile(r"Endpoint(?P<service>[A-Z0-9][A-Za-z0-9]*)")

    @classmethod
    def of(cls, service: str) -> EndpointId:
        """Return the id of the endpoint of a service such as `ecr.api`."""
        return cls(pascal(service))


@dataclass(frozen=True)
class ImageId(IdForm):
    """The parameter for a machine image, e.g. `NodeImageUbuntu2404Amd64`.

    Attributes:
        image: AMI id, SSM parameter or distribution, and architecture, in PascalCase.
    """

    role: MachineRole
    image: str

    _TEXT: ClassVar = "{role}Image{image}"
    _PATTERN: ClassVar = re.compile(r"(?P<role>Master|Node|Bastion)Image(?P<image>[A-Z0-9][A-Za-z0-9]*)")


@dataclass(frozen=True)
class SingleId:
    """The id of something that a cluster has once at most, e.g. `Vpc`: one of `SINGLE_IDS`."""

    name: str

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, logical_id: str) -> SingleId | None:
        """Return the id, or None for any other text."""
        return cls(logical_id) if logical_id in SINGLE_IDS else None


@dataclass(frozen=True)
class ExistingPartId(IdForm):
    """The parameter for a resource outside the cluster's stacks, e.g. `ExistingSecurityGroup1A2B3C4D`.

    It is for a reference at a key without a parameter of its own, such as `additionalSecurityGroups`.

    Attributes:
        kind: the kind of resource in PascalCase, e.g. `SecurityGroup`.
        digest: eight hexadecimal digits that tell references apart.
    """

    kind: str
    digest: str

    _TEXT: ClassVar = "Existing{kind}{digest}"
    _PATTERN: ClassVar = re.compile(r"Existing(?P<kind>[A-Z][A-Za-z]*?)(?P<digest>[0-9A-F]{8})")

    @classmethod
    def of(cls, kind: str, reference: str) -> ExistingPartId:
        """Return the id for a reference; equal references have one id, whichever keys have them."""
        return cls(kind, hashlib.sha256(reference.encode()).hexdigest()[:8].upper())


@dataclass(frozen=True)
class RecordedId(IdForm):
    """The root's output that records which id a reference to another stack stands for, e.g. `ReferencedVpcId`.

    The next deployment compares it with the id that the reference stands for by then.

    Attributes:
        part: what is referred to, e.g. `VpcId`; where the cluster file has an id instead, the root's parameter for it
            has this name.
    """

    part: str

    _TEXT: ClassVar = "Referenced{part}"
    _PATTERN: ClassVar = re.compile(r"Referenced(?P<part>[A-Z][A-Za-z0-9]*)")


LogicalId = (
    SingleId
    | MasterId
    | NodeGroupId
    | ProgramId
    | ClusterFileId
    | SubnetId
    | ZonalId
    | VpcRangeId
    | RouteId
    | ServiceAccountRoleId
    | RegistryId
    | PushRoleId
    | EndpointId
    | ZoneId
    | RuleId
    | NodeGroupRuleId
    | SecurityGroupId
    | ImageId
    | ExistingPartId
    | RecordedId
)
FORMS: tuple[type[LogicalId], ...] = get_args(LogicalId)


def parse(logical_id: str) -> LogicalId | None:
    """Return the parts of a logical id of any form, or None if the id has none of the forms that cfngen creates."""
    return next((parsed for form in FORMS if (parsed := form.parse(logical_id))), None)


def master_prefix(letter: str) -> str:
    """Return the prefix of a master's logical ids, e.g. `MasterA`."""
    return f"Master{letter.upper()}"


def node_group_prefix(group: str) -> str:
    """Return the prefix of a node group's logical ids, e.g. `NodeGroupGpu`."""
    return f"NodeGroup{pascal(group)}"


def auto_scaling_group_id(prefix: str) -> str:
    """Return the logical id of a master's or node group's Auto Scaling group; instances signal it by this name."""
    return f"{prefix}AutoScalingGroup"


def wait_condition_id(prefix: str) -> str:
    """Return the logical id of the wait condition that a master's first instance signals."""
    return f"{prefix}WaitCondition"


def launch_template_id(prefix: str) -> str:
    """Return the logical id of a master's or node group's launch template."""
    return f"{prefix}LaunchTemplate"


def is_auto_scaling_group(logical_id: str) -> bool:
    """Return whether a logical id names the Auto Scaling group of a master or node group, not of the bastion."""
    parsed = MasterId.parse(logical_id) or NodeGroupId.parse(logical_id)
    return parsed is not None and parsed.part == "AutoScalingGroup"


def is_node_group_stack(logical_id: str) -> bool:
    """Return whether a logical id names the nested stack of a node group."""
    parsed = NodeGroupId.parse(logical_id)
    return parsed is not None and parsed.part == "Stack"
