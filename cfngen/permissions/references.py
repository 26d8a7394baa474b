"""The resources that statements of instances refer to: by expressions in a template, by ARNs in a printed policy."""

from __future__ import annotations

from typing import Protocol

from cfngen.cluster.model import Cluster
from cfngen.cluster.tag_keys import CLUSTER
from cfngen.permissions.statements import Condition, Expression

MASTER_ROLE_TAG = {"k8s.io/role/master": "1"}


class References(Protocol):
    """The resources that the statements of a cluster's instances refer to."""

    @property
    def ca_secret(self) -> Expression:
        """ARN of the secret that holds the certificate authorities."""

    @property
    def join_secret(self) -> Expression:
        """ARN of the secret that holds what nodes need to join."""

    @property
    def secrets_key(self) -> Expression:
        """ARN of the KMS key that encrypts the cluster's secrets."""

    @property
    def backup_bucket(self) -> Expression:
        """Name of the bucket of etcd's snapshots."""

    @property
    def root_stack(self) -> Expression:
        """Name of the root stack."""

    @property
    def vpc(self) -> Expression:
        """Id of the VPC."""

    @property
    def route_table(self) -> Expression:
        """Id of the route table that holds the pods' routes."""

    def substitute(self, text: str, **values: Expression) -> Expression:
        """Return a text with its variables replaced, as `Fn::Sub` replaces them.

        Args:
            text: may contain `${AWS::Partition}`, `${AWS::Region}`, `${AWS::AccountId}`, and the names of `values`.
            values: further variables.
        """


def arn(
    references: References,
    service: str,
    resource: str,
    *,
    region: str = "${AWS::Region}",
    account: str = "${AWS::AccountId}",
    **values: Expression,
) -> Expression:
    """Return the ARN of resources, by default in the cluster's account and region.

    Args:
        references: replaces the variables, in a template or in a printed policy.
        service: the service, e.g. `ec2`.
        resource: the part of the ARN after the account, e.g. `volume/*`; may contain the variables of `values`.
        region: region in the ARN; empty for a global service.
        account: account in the ARN.
        values: values of the variables in `resource`, by name.
    """
    return references.substitute(f"arn:${{AWS::Partition}}:{service}:{region}:{account}:{resource}", **values)


def resource_tags(cluster: Cluster, **other_tags: str) -> dict[str, Expression]:
    """Return the condition keys and values for a resource that has the cluster's tag and the other tags."""
    return {f"aws:ResourceTag/{key}": value for key, value in {CLUSTER: cluster.name, **other_tags}.items()}


def if_resource_tagged(cluster: Cluster, **other_tags: str) -> Condition:
    """Return the condition that the resource has the cluster's tag and the other tags."""
    return {"StringEquals": resource_tags(cluster, **other_tags)}


def if_request_tagged(cluster: Cluster) -> Condition:
    """Return the condition that the request creates a resource with the cluster's tag."""
    return {"StringEquals": {f"aws:RequestTag/{CLUSTER}": cluster.name}}


def unless_master() -> Condition:
    """Return the condition that the resource does not belong to a master."""
    return {"StringNotEquals": {f"aws:ResourceTag/{key}": value for key, value in MASTER_ROLE_TAG.items()}}


def via(references: References, service: str) -> dict[str, Expression]:
    """Return the condition key and value that allow a KMS key to be used through one service only."""
    # The value of this key ends in amazonaws.com in every partition (AWS KMS Developer Guide, kms:ViaService).
    return {"kms:ViaService": references.substitute(f"{service}.${{AWS::Region}}.amazonaws.com")}


def only_when_creating(cluster: Cluster, service: str, *actions: str) -> Condition:
    """Return the condition that a request sets the cluster's tag on a resource that the same request creates.

    Args:
        cluster: the cluster.
        service: the service, e.g. `ec2`.
        actions: the actions that create the resource, e.g. `CreateVolume`.
    """
    create_action = actions[0] if len(actions) == 1 else list(actions)
    return {"StringEquals": {f"aws:RequestTag/{CLUSTER}": cluster.name, f"{service}:CreateAction": create_action}}
