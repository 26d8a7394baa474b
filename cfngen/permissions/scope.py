"""The account, region and cluster that a policy is for, and the ARNs of the cluster's objects there."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cfngen.cluster.names import CHANGE_SET_PREFIX, authority_copy_prefix, template_bucket
from cfngen.cluster.tag_keys import CLUSTER
from cfngen.permissions.generated_names import beginning
from cfngen.permissions.statements import Condition, Expression

# Maximum lengths of names: CreateStack (CloudFormation), CreateAutoScalingGroup (Amazon EC2 Auto Scaling), CreateRole,
# CreatePolicy and CreateInstanceProfile (IAM) in their API references; "Bucket naming rules", Amazon S3 User Guide.
_MAX_STACK_NAME = 128
_MAX_GROUP_NAME = 255
_MAX_ROLE_NAME = 64
_MAX_IAM_NAME = 128
_MAX_BUCKET_NAME = 63
_VARIABLE = re.compile(r"\$\{([\w:]+)\}")


@dataclass(frozen=True)
class Scope:
    """The account, region and cluster that permissions apply to; an asterisk stands for any.

    A scope also implements `references.References`, so the statements of instances can be printed with ARNs.

    Attributes:
        account: account number.
        region: region.
        cluster: name of the cluster.
        partition: partition of the ARNs.
        stack: name of the root stack; if empty, the cluster's name.
        bucket: name of the user's own bucket for etcd's snapshots; empty if the cluster's stack creates the bucket.
        vpc: id of the VPC.
        route_table: id of the route table that holds the pods' routes.
    """

    account: str = "*"
    region: str = "*"
    cluster: str = "*"
    partition: str = "aws"
    stack: str = ""
    bucket: str = ""
    vpc: str = "*"
    route_table: str = "*"

    @property
    def root_stack(self) -> str:
        """Name of the root stack."""
        return self.stack or self.cluster

    @property
    def stacks(self) -> list[str]:
        """ARNs of the root stack and its nested stacks, which CloudFormation names `<root>-<logical id>-<random>`."""
        arn = self._arn("cloudformation", "stack/")
        return [f"{arn}*"] if self.root_stack == "*" else [f"{arn}{self.root_stack}/*", *self.nested]

    @property
    def nested(self) -> list[str]:
        """ARNs of the nested stacks, without the root stack."""
        return [f"{self._arn('cloudformation', 'stack/')}{self._generated(_MAX_STACK_NAME)}/*"]

    @property
    def change_sets(self) -> list[str]:
        """ARNs of the change sets that cfngen creates; names of nested stacks' change sets begin with the root's.

        According to the reference, permissions for change sets apply to stacks only. Calls that name a change set only
        by its ARN were observed to be authorized by that ARN (widdix/complete-aws-iam-reference#6).
        """
        return [self._arn("cloudformation", f"changeSet/{CHANGE_SET_PREFIX}*")]

    @property
    def roles(self) -> list[str]:
        """ARNs of roles, instance profiles and managed policies, whose names begin with the name of their nested stack.

        CloudFormation truncates the name of the stack if the generated name would be too long.
        """
        max_lengths = {"instance-profile": _MAX_IAM_NAME, "policy": _MAX_IAM_NAME, "role": _MAX_ROLE_NAME}
        return [
            f"arn:{self.partition}:iam::{self.account}:{kind}/{self._generated(max_length)}"
            for kind, max_length in max_lengths.items()
        ]

    @property
    def groups(self) -> list[str]:
        """ARNs of Auto Scaling groups, whose names begin with the name of their nested stack."""
        names = self._generated(_MAX_GROUP_NAME)
        return [f"{self._arn('autoscaling', 'autoScalingGroup:*:autoScalingGroupName/')}{names}"]

    @property
    def keys(self) -> list[str]:
        """ARNs of KMS keys."""
        return [self.secrets_key]

    @property
    def secrets_key(self) -> str:
        """ARN of the KMS key that encrypts the cluster's secrets; any key, since the id is not known beforehand."""
        return self._arn("kms", "key/*")

    @property
    def secrets(self) -> list[str]:
        """ARNs of the cluster's secrets, whose names begin with their logical ids."""
        return [self.ca_secret, self.join_secret]

    @property
    def ca_secret(self) -> str:
        """ARN of the secret that holds the certificate authorities."""
        return self._secret("CaSecret")

    @property
    def join_secret(self) -> str:
        """ARN of the secret that holds what nodes need to join."""
        return self._secret("JoinSecret")

    @property
    def template_bucket(self) -> str:
        """ARN of the bucket that cfngen creates for templates."""
        return f"arn:{self.partition}:s3:::{template_bucket(self.account, self.region)}"

    @property
    def templates(self) -> str:
        """ARN of the cluster's templates in the bucket of the templates."""
        return f"{self.template_bucket}/{self.cluster}/*"

    @property
    def backup_bucket(self) -> str:
        """Name of the bucket of etcd's snapshots, or a pattern for it.

        CloudFormation names a bucket after its nested stack, in lower case, and may truncate the stack's name.
        """
        if self.bucket:
            return self.bucket
        stack = "*" if self.root_stack == "*" else beginning(self.root_stack.lower(), max_length=_MAX_BUCKET_NAME)
        return f"{stack}backupbucket-*"

    @property
    def backups(self) -> str:
        """ARN of the bucket of etcd's snapshots."""
        return f"arn:{self.partition}:s3:::{self.backup_bucket}"

    @property
    def authority_copies(self) -> str:
        """ARNs of the copies of the certificate authorities that are kept after a deletion."""
        return self._arn("secretsmanager", f"secret:{authority_copy_prefix(self.cluster)}*")

    def ec2(self, *resources: str) -> list[str]:
        """Return the ARNs of resources of EC2, e.g. `volume/*`."""
        return [self._arn("ec2", resource) for resource in resources]

    def substitute(self, text: str, **values: Expression) -> str:
        """Return a text with its variables replaced by their values in this scope."""
        variables = {
            "AWS::Partition": self.partition,
            "AWS::Region": self.region,
            "AWS::AccountId": self.account,
            **values,
        }
        return _VARIABLE.sub(lambda match: str(variables[match[1]]), text)

    def _secret(self, logical_id: str) -> str:
        return self._arn("secretsmanager", f"secret:{logical_id}-*")

    def _generated(self, max_length: int) -> str:
        """Return a pattern for names that CloudFormation generates in nested stacks, with this maximum length."""
        return "*-*" if self.root_stack == "*" else beginning(self.root_stack, max_length)

    def _arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def tagged(scope: Scope, key: str = CLUSTER, value: str = "") -> Condition:
    """Return the condition that a resource has a tag, by default the cluster's tag with its name."""
    return {"StringLike": {f"aws:ResourceTag/{key}": value or scope.cluster}}


def tagging(scope: Scope) -> Condition:
    """Return the condition that a request sets the cluster's tag on a resource."""
    return {"StringLike": {f"aws:RequestTag/{CLUSTER}": scope.cluster}}
