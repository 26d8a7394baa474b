"""The account, region and cluster that a policy is for, and the ARNs of the cluster's objects there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cfngen.cluster.naming.logical_ids import ISSUER_BUCKET
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
        existing_roles, existing_instance_profiles: ARNs, of instances.
        makes_roles: whether CloudFormation creates roles: of instances, with their profiles, or of the flow log.
        makes_instance_profiles: whether CloudFormation creates instance profiles, also those of existing roles.
        node_security_group_id: id of the existing security group of the nodes.
    """

    account: str = "*"
    region: str = "*"
    cluster: str = "*"
    partition: str = "aws"
    stack: str = ""
    own_backup_bucket: str = ""
    own_issuer_bucket: str = ""
    vpc_id: str = "*"
    route_table_id: str = "*"
    own_secrets_key: str = ""
    existing_roles: tuple[str, ...] = ()
    existing_instance_profiles: tuple[str, ...] = ()
    makes_roles: bool = True
    makes_instance_profiles: bool = True
    node_security_group_id: str = "*"

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
        return [f"{self._arn('cloudformation', 'stack/')}{self._generated_names(_MAX_STACK_NAME)}/*"]

    @property
    def change_set_arns(self) -> list[str]:
        """ARNs of the change sets that cfngen creates; names of nested stacks' change sets begin with the root's.

        According to the reference, permissions for change sets apply to stacks only. Calls that name a change set only
        by its ARN were observed to be authorized by that ARN (widdix/complete-aws-iam-reference#6).
        """
        return [self._arn("cloudformation", f"changeSet/{CHANGE_SET_PREFIX}*")]

    @property
    def role_arns(self) -> list[str]:
        """ARNs of roles, instance profiles and managed policies, whose names begin with the name of their nested stack.

        CloudFormation truncates the name of the stack if the generated name would be too long.
        """
        max_length_by_type = {"instance-profile": _MAX_IAM_NAME, "policy": _MAX_IAM_NAME, "role": _MAX_ROLE_NAME}
        return [
            f"arn:{self.partition}:iam::{self.account}:{iam_type}/{self._generated_names(max_length)}"
            for iam_type, max_length in max_length_by_type.items()
        ]

    @property
    def instance_profile_arns(self) -> list[str]:
        """ARNs of instance profiles, whose names begin with the name of their nested stack."""
        return [arn for arn in self.role_arns if ":instance-profile/" in arn]

    @property
    def auto_scaling_group_arns(self) -> list[str]:
        """ARNs of Auto Scaling groups, whose names begin with the name of their nested stack."""
        names = self._generated_names(_MAX_GROUP_NAME)
        return [f"{self._arn('autoscaling', 'autoScalingGroup:*:autoScalingGroupName/')}{names}"]

    @property
    def log_group_arns(self) -> list[str]:
        """ARNs of log groups and of their streams; the groups' names begin with the name of their nested stack."""
        return [self._arn("logs", f"log-group:{self._generated_names(_MAX_LOG_GROUP_NAME)}")]

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
        """ARN of the bucket of etcd's snapshots."""
        return f"arn:{self.partition}:s3:::{self.backup_bucket_name}"

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

    def _generated_names(self, max_length: int) -> str:
        return "*-*" if self.root_stack_name == "*" else generated_name_pattern(self.root_stack_name, max_length)

    def _generated_bucket_name(self, logical_id: str) -> str:
        if self.root_stack_name == "*":
            stack_pattern = "*"
        else:
            stack_pattern = generated_name_pattern(self.root_stack_name.lower(), max_length=_MAX_BUCKET_NAME)
        return f"{stack_pattern}{logical_id.lower()}-*"

    def _arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def if_resource_has_tag(scope: Scope, key: str = CLUSTER, value: str = "") -> Condition:
    """Return the IAM condition that a resource has a tag, by default the cluster's tag.

    Without a value, the tag's value is the cluster's name.
    """
    return {"StringLike": {f"aws:ResourceTag/{key}": value or scope.cluster}}


def if_request_sets_cluster_tag(scope: Scope) -> Condition:
    """Return the IAM condition that a request sets the cluster's tag on a resource."""
    return {"StringLike": {f"aws:RequestTag/{CLUSTER}": scope.cluster}}


_RANDOM_LENGTH = 13


def generated_name_pattern(root_stack_name: str, max_length: int) -> str:
    """Return a pattern, ending in `*`, for names that CloudFormation generates in the nested stacks of a root stack.

    A resource without a name in its template is named `<stack>-<logical id>-<random>`. If that is too long for the
    service, CloudFormation keeps the random part, twelve or thirteen characters, and divides the remaining length
    between stack and logical id: each keeps at least half of it, and more if the other is shorter. The rule is not
    documented. It is from the library for resource types that CloudFormation's team publishes (`fair_split`,
    aws-cloudformation/cloudformation-cli-python-plugin, identifier_utils.py), and reproduces observed names:
    `chineseboostanalyticsstac-rainlyticslogsbucket8df4-hdst4ohfvdif` (KensioSoftware/yulin#1113), and
    `mylongerapp-playground-ne-InstancesLifecycleHandle-1GRP3N0TVA1LD` (convox/rack#2297).
    """
    min_stack_name_length = (max_length - len("-") - len("-") - _RANDOM_LENGTH) // 2
    if len(root_stack_name) < min_stack_name_length:
        return f"{root_stack_name}-*"
    return f"{root_stack_name[:min_stack_name_length]}*"
