"""Helpers to write statements of IAM policies for a cluster: ARNs, conditions and the statements themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.deletion.authority_copies import copy_name_prefix as kept_authorities
from cfngen.deploy.operation_origin import CHANGE_SET_PREFIX
from cfngen.deploy.policies.generated_names import beginning

CLUSTER = "KubernetesCluster"
"""Tag on every resource of a cluster; its value is the cluster's name."""
# Maximum lengths of names: CreateStack (CloudFormation), CreateAutoScalingGroup (Amazon EC2 Auto Scaling), CreateRole,
# CreatePolicy and CreateInstanceProfile (IAM) in their API references; "Bucket naming rules", Amazon S3 User Guide.
_STACK_NAME, _GROUP_NAME, _ROLE_NAME, _IAM_NAME, _BUCKET_NAME = 128, 255, 64, 128, 63


@dataclass(frozen=True)
class Place:
    """The account, region and cluster that permissions apply to; an asterisk stands for any.

    Attributes:
        partition: partition of the ARNs.
        account: account number.
        region: region.
        cluster: name of the cluster.
        stack: name of its root stack.
    """

    partition: str
    account: str
    region: str
    cluster: str
    stack: str

    @property
    def stacks(self) -> list[str]:
        """The root and its nested stacks, which CloudFormation names `<root>-<logical id>-<random>`."""
        arn = self._arn("cloudformation", "stack/")
        return [f"{arn}*"] if self.stack == "*" else [f"{arn}{self.stack}/*", *self.nested]

    @property
    def nested(self) -> list[str]:
        """The nested stacks alone."""
        return [f"{self._arn('cloudformation', 'stack/')}{self._generated(_STACK_NAME)}/*"]

    @property
    def change_sets(self) -> list[str]:
        """Change sets of plans, and those of nested stacks, whose names begin with the root's.

        According to the reference, permissions for change sets apply to stacks only. Calls that name a change set only
        by its ARN were observed to be authorized by that ARN (widdix/complete-aws-iam-reference#6).
        """
        return [self._arn("cloudformation", f"changeSet/{CHANGE_SET_PREFIX}*")]

    @property
    def roles(self) -> list[str]:
        """Roles, instance profiles and managed policies, named after their nested stack.

        CloudFormation truncates the name of the stack if the whole name is too long.
        """
        max_lengths = {"instance-profile": _IAM_NAME, "policy": _IAM_NAME, "role": _ROLE_NAME}
        return [
            f"arn:{self.partition}:iam::{self.account}:{kind}/{self._generated(max_length)}"
            for kind, max_length in max_lengths.items()
        ]

    @property
    def groups(self) -> list[str]:
        """Auto Scaling groups, named after their nested stack."""
        names = self._generated(_GROUP_NAME)
        return [f"{self._arn('autoscaling', 'autoScalingGroup:*:autoScalingGroupName/')}{names}"]

    @property
    def keys(self) -> list[str]:
        """KMS keys."""
        return [self._arn("kms", "key/*")]

    @property
    def secrets(self) -> list[str]:
        """The cluster's secrets, named after their logical ids."""
        return [self.secret(name) for name in ("CaSecret", "JoinSecret")]

    @property
    def bucket(self) -> str:
        """The bucket that cfngen creates for templates."""
        return f"arn:{self.partition}:s3:::cfngen-{self.account}-{self.region}"

    @property
    def templates(self) -> str:
        """The cluster's templates in that bucket."""
        return f"{self.bucket}/{self.cluster}/*"

    @property
    def backups(self) -> str:
        """The bucket of etcd's snapshots, named after its nested stack, whose name CloudFormation may truncate."""
        stack = "*" if self.stack == "*" else beginning(self.stack.lower(), _BUCKET_NAME)
        return f"arn:{self.partition}:s3:::{stack}backupbucket-*"

    def secret(self, name: str) -> str:
        """Return the ARN of a secret by its logical id."""
        return self._arn("secretsmanager", f"secret:{name}-*")

    @property
    def kept_authorities(self) -> str:
        """The copies of the certificate authorities that are kept after a deletion."""
        return self._arn("secretsmanager", f"secret:{kept_authorities(self.cluster)}*")

    def ec2(self, *resources: str) -> list[str]:
        """Return the ARNs of resources of EC2, e.g. `volume/*`."""
        return [self._arn("ec2", resource) for resource in resources]

    def _generated(self, max_length: int) -> str:
        """Return a pattern for names that CloudFormation generates in nested stacks, with this maximum length."""
        return "*-*" if self.stack == "*" else beginning(self.stack, max_length)

    def _arn(self, service: str, resource: str) -> str:
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


def allow(
    sid: str, actions: str, resources: Sequence[str] = ("*",), condition: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a statement.

    Args:
        sid: its name.
        actions: actions, separated by spaces.
        resources: ARNs.
        condition: conditions that must all hold.
    """
    named = resources[0] if len(resources) == 1 else list(resources)
    statement = {"Sid": sid, "Effect": "Allow", "Action": sorted(set(actions.split())), "Resource": named}
    return {**statement, "Condition": condition} if condition else statement


def merge_statements(statements: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Merge statements with the same resources and conditions, since the size of a policy is limited."""
    merged_statements: list[dict[str, Any]] = []
    for statement in statements:
        scope = {key: value for key, value in statement.items() if key not in ("Sid", "Action")}
        with_same_scope = (
            other
            for other in merged_statements
            if scope == {key: other[key] for key in other if key not in ("Sid", "Action")}
        )
        mergeable = next(with_same_scope, None)
        if mergeable is None:
            merged_statements.append(dict(statement))
        else:
            mergeable["Action"] = sorted({*mergeable["Action"], *statement["Action"]})
    return merged_statements


def tagged(place: Place, key: str = CLUSTER, value: str = "") -> dict[str, Any]:
    """Return the condition that a resource has a tag, by default the cluster's tag with its name."""
    return {"StringLike": {f"aws:ResourceTag/{key}": value or place.cluster}}


def tagging(place: Place) -> dict[str, Any]:
    """Return the condition that a call sets the cluster's tag."""
    return {"StringLike": {f"aws:RequestTag/{CLUSTER}": place.cluster}}


def document(statements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a policy document."""
    return {"Version": "2012-10-17", "Statement": list(statements)}
