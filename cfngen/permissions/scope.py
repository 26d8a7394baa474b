"""The account, region and cluster that a policy is for, and the ARNs of the cluster's objects there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cfngen.cluster.naming.logical_ids import (
    BASTION_STACK,
    FLOW_LOG_ROLE,
    ISSUER_BUCKET,
    MASTER_POLICY,
    MASTER_ROLE,
    MASTER_STACK,
    REGISTRY_STACK,
)
from cfngen.cluster.naming.names import CHANGE_SET_PREFIX, authority_copy_prefix, template_bucket
from cfngen.cluster.naming.tag_keys import CLUSTER
from cfngen.permissions.statements import Condition, Expression

# Maximum lengths of names: CreateStack (CloudFormation), CreateAutoScalingGroup (Amazon EC2 Auto Scaling), CreateRole,
# CreatePolicy and CreateInstanceProfile (IAM), CreateLogGroup (Amazon CloudWatch Logs) in their API references; "Bucket
# naming rules", Amazon S3 User Guide.
_MAX_STACK_NAME = 128
_MAX_GROUP_NAME = 255
_MAX_ROLE_NAME = 64
_MAX_IAM_NAME = 128
_MAX_BUCKET_NAME = 63
_MAX_LOG_GROUP_NAME = 512

# How logical ids of nested stacks begin, and those of the resources that are named after them. Patterns contain logical
# ids, because `<root>-*` would also match the names of a cluster `<root>-eu`. In a stack of the standalone template the
# names consist of the root's name and the logical id of the resource.
_NODE_GROUP = "NodeGroup"
_IAM_STACK, _SECRETS_STACK, _VPC_STACK = "IamStack-", "SecretsStack-", "VpcStack-"
_REGISTRY_STACK = f"{REGISTRY_STACK}-"
_NESTED_STACKS = (
    *(f"{BASTION_STACK}-", f"{MASTER_STACK}-", "SecurityGroupsStack-"),
    *(_IAM_STACK, _NODE_GROUP, _SECRETS_STACK, _VPC_STACK),
)
_GROUPS = ("Bastion", "Master", _NODE_GROUP)
_INSTANCE_ROLES = (f"{MASTER_ROLE}-", "NodeRole-", _NODE_GROUP)
_FLOW_LOG_ROLE = (f"{FLOW_LOG_ROLE}-",)
_INSTANCE_PROFILES = ("Master", "Node")
_POLICIES = (
    "AddonsPolicy-",
    "Backups*Policy-",
    "CloudControllerPolicy-",
    f"{MASTER_POLICY}-",
    "PodAddressesPolicy-",
    "PullImagesPolicy-",
    "Node",
)

NETWORK_TYPES = ("dhcp-options", "elastic-ip", "route-table", "security-group", "subnet", "vpc")
"""Types of EC2 resources, as in their ARNs, that a cluster file may name as existing."""
CREATED_TYPES = (*NETWORK_TYPES, "internet-gateway", "key-pair", "launch-template", "network-interface", "volume")
"""Types of EC2 resources that CloudFormation creates for a cluster, except those with statements of their own."""

_VARIABLE = re.compile(r"\$\{([\w:]+)\}")


@dataclass(frozen=True)
class Scope:
    """The account, region and cluster that permissions apply to; an asterisk stands for any.

    A scope also implements `references.References`, so the statements of instances can be printed with ARNs.

    Attributes:
        stack: name of the root stack; if empty, the cluster's name.
        own_backup_bucket: name of the user's own bucket for etcd's snapshots; empty if cfngen creates the bucket.
        own_issuer_bucket: name of the user's own bucket for the documents of the issuer of service-account tokens;
            empty if cfngen creates the bucket, or if there is none.
        route_table_id: id of the route table that holds the pods' routes.
        own_secrets_key: ARN of the user's own KMS key for the cluster's secrets; empty if CloudFormation creates it.
        own_backup_key: ARN of the user's own KMS key for the bucket of etcd's snapshots; empty without one.
        permissions_boundaries: ARNs of the policies one of which bounds each role that CloudFormation creates; empty if
            there is a role without a boundary.
        removes_pod_routes: whether routes to pods remain in an existing route table when the stacks are deleted.
        removes_interfaces: whether the network plug-in creates network interfaces, which no stack deletes.
        created_types: those of `CREATED_TYPES` that CloudFormation creates for the cluster.
        existing_parts: existing parts of the network that CloudFormation uses, as in their ARNs, e.g. `vpc/vpc-0123`;
            `vpc/*` if the id is not known.
        existing_roles, existing_instance_profiles: ARNs, of instances.
        makes_roles: whether CloudFormation creates roles: of instances, with their profiles, or of the flow log.
        makes_instance_profiles: whether CloudFormation creates instance profiles, also those of existing roles.
        node_security_group_id: id of the existing security group of the nodes.
        security_groups_of_masters, security_groups_of_nodes: ids of the existing security groups that instances have.
        iam_path: path of roles, instance profiles and managed policies that CloudFormation creates.
        has_registry: whether CloudFormation creates repositories for images, or roles of those who push them.
    """

    account: str = "*"
    region: str = "*"
    cluster: str = "*"
    partition: str = "aws"
    stack: str = ""
    own_backup_bucket: str = ""
    locks_snapshots: bool = False
    own_issuer_bucket: str = ""
    vpc_id: str = "*"
    route_table_id: str = "*"
    own_secrets_key: str = ""
    own_backup_key: str = ""
    permissions_boundaries: tuple[str, ...] = ()
    removes_pod_routes: bool = True
    removes_interfaces: bool = True
    created_types: tuple[str, ...] = CREATED_TYPES
    existing_parts: tuple[str, ...] = tuple(f"{part_type}/*" for part_type in NETWORK_TYPES)
    existing_roles: tuple[str, ...] = ()
    existing_instance_profiles: tuple[str, ...] = ()
    makes_roles: bool = True
    makes_instance_profiles: bool = True
    node_security_group_id: str = "*"
    security_groups_of_masters: tuple[str, ...] = ()
    security_groups_of_nodes: tuple[str, ...] = ()
    iam_path: str = "/"
    has_registry: bool = True

    @property
    def root_stack_name(self) -> str:
        """Name of the root stack."""
        return self.stack or self.cluster

    @property
    def stack_arns(self) -> list[str]:
        """ARNs of the root stack and its nested stacks, which CloudFormation names `<root>-<logical id>-<random>`."""
        arn_prefix = self._arn("cloudformation", "stack/")
        if self.root_stack_name == "*":
            return [f"{arn_prefix}*"]
        return [f"{arn_prefix}{self.root_stack_name}/*", *self.nested_stack_arns]

    @property
    def nested_stack_arns(self) -> list[str]:
        """ARNs of the nested stacks, without the root stack."""
        stacks = (*_NESTED_STACKS, *((_REGISTRY_STACK,) if self.has_registry else ()))
        names = self._generated_names(_MAX_STACK_NAME, stacks)
        return [f"{self._arn('cloudformation', 'stack/')}{name}/*" for name in names]

    @property
    def node_stack_arns(self) -> list[Expression]:
        """ARNs of the stacks that launch nodes: nested ones or, with the standalone template, the root stack."""
        return [
            self._arn("cloudformation", f"stack/{self.root_stack_name}{end}/*") for end in ("", "-NodeGroup*Stack-*")
        ]

    @property
    def change_set_arns(self) -> list[str]:
        """ARNs of the change sets that cfngen creates; names of nested stacks' change sets begin with the root's.

        According to the reference, permissions for change sets apply to stacks only. Calls that name a change set only
        by its ARN were observed to be authorized by that ARN (widdix/complete-aws-iam-reference#6).
        """
        return [self._arn("cloudformation", f"changeSet/{CHANGE_SET_PREFIX}*")]

    @property
    def instance_role_arns(self) -> list[str]:
        """ARNs of the roles of instances that CloudFormation creates.

        Names of roles, instance profiles and managed policies begin with the name of their nested stack, which
        CloudFormation truncates if the generated name would be too long.
        """
        return self._iam_arns("role", _MAX_ROLE_NAME, _INSTANCE_ROLES, nested_stack=_IAM_STACK)

    @property
    def flow_log_role_arns(self) -> list[str]:
        """ARNs of the role that CloudFormation creates to deliver flow logs."""
        return self._iam_arns("role", _MAX_ROLE_NAME, _FLOW_LOG_ROLE, nested_stack=_VPC_STACK)

    @property
    def push_role_arns(self) -> list[str]:
        """ARNs of the roles that CloudFormation creates for those who push images."""
        return self._iam_arns("role", _MAX_ROLE_NAME, ("Push",), nested_stack=_REGISTRY_STACK)

    @property
    def instance_profile_arns(self) -> list[str]:
        """ARNs of the instance profiles that CloudFormation creates."""
        return self._iam_arns("instance-profile", _MAX_IAM_NAME, _INSTANCE_PROFILES, nested_stack=_IAM_STACK)

    @property
    def managed_policy_arns(self) -> list[str]:
        """ARNs of the managed policies that CloudFormation creates."""
        return self._iam_arns("policy", _MAX_IAM_NAME, _POLICIES, nested_stack=_IAM_STACK)

    @property
    def iam_arns(self) -> list[str]:
        """ARNs of all of these, for those who only read them."""
        return [
            *self.instance_role_arns,
            *self.flow_log_role_arns,
            *self.instance_profile_arns,
            *self.managed_policy_arns,
        ]

    @property
    def auto_scaling_group_arns(self) -> list[str]:
        """ARNs of Auto Scaling groups, whose names begin with the name of their nested stack."""
        arn_prefix = self._arn("autoscaling", "autoScalingGroup:*:autoScalingGroupName/")
        return [f"{arn_prefix}{name}" for name in self._generated_names(_MAX_GROUP_NAME, _GROUPS)]

    @property
    def log_group_arns(self) -> list[str]:
        """ARNs of log groups and of their streams; the groups' names begin with the name of their nested stack."""
        names = self._generated_names(_MAX_LOG_GROUP_NAME, ["FlowLogGroup-"], nested_stack=_VPC_STACK)
        return [self._arn("logs", f"log-group:{name}") for name in names]

    @property
    def kms_key_arns(self) -> list[str]:
        """ARNs of the KMS keys of the account and region; conditions limit them to the cluster's key."""
        return [self._arn("kms", "key/*")]

    @property
    def secrets_key_arn(self) -> str:
        """ARN of the KMS key that encrypts the cluster's secrets; any key if it is created, since its id is random."""
        return self.own_secrets_key or self._arn("kms", "key/*")

    @property
    def secret_arns(self) -> list[str]:
        """ARNs of the cluster's secrets, whose names begin with their logical ids."""
        return [self.ca_secret_arn, self.join_secret_arn]

    @property
    def ca_secret_arn(self) -> str:
        """ARN of the secret that holds the certificate authorities."""
        return self._secret_arn("CaSecret")

    @property
    def join_secret_arn(self) -> str:
        """ARN of the secret that holds what nodes need to join."""
        return self._secret_arn("JoinSecret")

    @property
    def template_bucket_arn(self) -> str:
        """ARN of the bucket that cfngen creates for templates."""
        return f"arn:{self.partition}:s3:::{template_bucket(self.account, self.region)}"

    @property
    def template_arns(self) -> str:
        """Pattern for the ARNs of the cluster's templates in the bucket that cfngen creates for templates."""
        return f"{self.template_bucket_arn}/{self.cluster}/*"

    @property
    def backup_bucket_name(self) -> str:
        """Name of the bucket of etcd's snapshots, or a pattern for it.

        CloudFormation names a bucket after its nested stack, in lower case, and may truncate the stack's name.
        """
        if self.own_backup_bucket:
            return self.own_backup_bucket
        return self._generated_bucket_name("BackupBucket")

    @property
    def backup_bucket_arn(self) -> str:
        """ARN of the bucket of etcd's snapshots, or a pattern for it; the keys in it begin with the cluster's name."""
        return f"arn:{self.partition}:s3:::{self.backup_bucket_name}"

    @property
    def backup_bucket_arns(self) -> list[str]:
        """ARN of the bucket of etcd's snapshots, or patterns for the buckets of this cluster alone."""
        return self._bucket_arns("BackupBucket", self.own_backup_bucket)

    @property
    def issuer_bucket_arns(self) -> list[str]:
        """ARN of the bucket with the issuer's documents, or patterns for the buckets of this cluster alone."""
        return self._bucket_arns(ISSUER_BUCKET, self.own_issuer_bucket)

    @property
    def issuer_bucket_name(self) -> str:
        """Name of the bucket with the documents of the issuer of service-account tokens, or a pattern for it."""
        return self.own_issuer_bucket or self._generated_bucket_name(ISSUER_BUCKET)

    @property
    def authority_copy_arns(self) -> str:
        """Pattern for the ARNs of the secrets with copies of the certificate authorities of deleted clusters."""
        return self._arn("secretsmanager", f"secret:{authority_copy_prefix(self.cluster)}*")

    def ec2_arns(self, *resources: str) -> list[str]:
        """Return the ARNs of EC2 resources in the account and region, e.g. of `volume/*`."""
        return [self._arn("ec2", resource) for resource in resources]

    def existing_security_group_ids(self, instances: Literal["masters", "nodes"]) -> list[Expression]:
        """Return the ids of the existing security groups that masters or nodes have."""
        return list(self.security_groups_of_masters if instances == "masters" else self.security_groups_of_nodes)

    @property
    def issuer_bucket_names(self) -> list[Expression]:
        """Name of the bucket with the issuer's documents, or patterns for the buckets of this cluster alone."""
        return [bucket_arn.rpartition(":")[2] for bucket_arn in self.issuer_bucket_arns]

    def substitute(self, text: str, **values: Expression) -> str:
        """Return a text in which values replace the variables `${name}`, as `References.substitute` says."""
        variables = {
            "AWS::Partition": self.partition,
            "AWS::Region": self.region,
            "AWS::AccountId": self.account,
            **values,
        }
        return _VARIABLE.sub(lambda match: str(variables[match[1]]), text)

    def _secret_arn(self, logical_id: str) -> str:
        """Return the ARN of a secret; Secrets Manager appends random characters to the name."""
        return self._arn("secretsmanager", f"secret:{logical_id}-*")

    def _iam_arns(self, iam_type: str, max_length: int, logical_ids: Sequence[str], *, nested_stack: str) -> list[str]:
        names = self._generated_names(max_length, logical_ids, nested_stack=nested_stack)
        return [f"arn:{self.partition}:iam::{self.account}:{iam_type}{self.iam_path}{name}" for name in names]

    def _generated_names(self, max_length: int, logical_ids: Sequence[str], *, nested_stack: str = "") -> list[str]:
        """Return patterns for names that CloudFormation generates.

        Args:
            logical_ids: how the logical ids of the stacks or resources begin.
            nested_stack: how the logical id of the nested stack begins that has the resources in the nested set.
        """
        if self.root_stack_name == "*":
            return list(dict.fromkeys(f"*-{logical_id}*" for logical_id in logical_ids))
        beginnings = [nested_stack, *logical_ids] if nested_stack else logical_ids
        names = [f"{self.root_stack_name}-{beginning}" for beginning in beginnings]
        return list(dict.fromkeys(generated_name_pattern(name, max_length) for name in names))

    def _generated_bucket_name(self, logical_id: str) -> str:
        if self.root_stack_name == "*":
            stack_pattern = "*-"
        else:
            stack_pattern = generated_name_pattern(f"{self.root_stack_name.lower()}-", max_length=_MAX_BUCKET_NAME)
        return f"{stack_pattern}{logical_id.lower()}-*"

    def _bucket_arns(self, logical_id: str, own_bucket: str) -> list[str]:
        if own_bucket or self.root_stack_name == "*":
            return [f"arn:{self.partition}:s3:::{own_bucket or self._generated_bucket_name(logical_id)}"]
        root = self.root_stack_name.lower()
        in_root = generated_name_pattern(f"{root}-", max_length=_MAX_BUCKET_NAME).replace("-*", "-")
        in_nested_stack = generated_name_pattern(f"{root}-{_SECRETS_STACK.lower()}", max_length=_MAX_BUCKET_NAME)
        names = dict.fromkeys(f"{stack}{logical_id.lower()}-*" for stack in (in_nested_stack, in_root))
        return [f"arn:{self.partition}:s3:::{name}" for name in names]

    def _arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def if_resource_has_tag(scope: Scope, key: str = CLUSTER, value: str = "") -> Condition:
    """Return the IAM condition that a resource has a tag, by default the cluster's tag.

    Without a value, the tag's value is the cluster's name.
    """
    return {"StringLike": {f"aws:ResourceTag/{key}": value or scope.cluster}}


def unless_of_another_cluster(scope: Scope) -> Condition:
    """Return the IAM condition that a resource has the cluster's tag, or no such tag.

    It is for calls by which CloudFormation creates a resource: it is not documented which of them sets the tags.
    """
    return {"StringLikeIfExists": {f"aws:ResourceTag/{CLUSTER}": scope.cluster}}


def if_request_sets_cluster_tag(scope: Scope) -> Condition:
    """Return the IAM condition that a request sets the cluster's tag on a resource."""
    return {"StringLike": {f"aws:RequestTag/{CLUSTER}": scope.cluster}}


def if_request_claims_untagged(scope: Scope) -> Condition:
    """Return the IAM condition that a request sets the cluster's tag on a resource that no cluster has tagged."""
    return {**if_request_sets_cluster_tag(scope), "Null": {f"aws:ResourceTag/{CLUSTER}": "true"}}


_RANDOM_LENGTH = 13


def generated_name_pattern(beginning: str, max_length: int) -> str:
    """Return a pattern, ending in `*`, for names that CloudFormation generates in a stack.

    A resource without a name in its template is named `<stack>-<logical id>-<random>`. If that is too long for the
    service, CloudFormation keeps the random part, twelve or thirteen characters, and divides the remaining length
    between stack and logical id: each keeps at least half of it, and more if the other is shorter. The rule is not
    documented. It is from the library for resource types that CloudFormation's team publishes (`fair_split`,
    aws-cloudformation/cloudformation-cli-python-plugin, identifier_utils.py), and reproduces observed names:
    `chineseboostanalyticsstac-rainlyticslogsbucket8df4-hdst4ohfvdif` (KensioSoftware/yulin#1113), and
    `mylongerapp-playground-ne-InstancesLifecycleHandle-1GRP3N0TVA1LD` (convox/rack#2297).

    Args:
        beginning: how the names begin if they are not too long: the stack's name, or a part of it, or more than it.
    """
    min_stack_name_length = (max_length - len("-") - len("-") - _RANDOM_LENGTH) // 2
    return f"{beginning[:min_stack_name_length]}*"
