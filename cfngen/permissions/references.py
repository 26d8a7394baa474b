"""The resources that the IAM statements of instances refer to, and functions for ARNs and conditions.

In a template, statements refer to resources by expressions such as `Ref`; in a printed policy, by ARNs.
"""

from __future__ import annotations

from typing import Literal, Protocol

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import CLUSTER
from cfngen.cluster.network.endpoints import dns_suffix
from cfngen.cluster.sections.references import text_of_sub
from cfngen.permissions.statements import Condition, Expression

# Tag by which IAM conditions recognize instances, volumes, interfaces and security groups of masters.
MASTER_ROLE_TAG = {"k8s.io/role/master": "1"}
# Tag by which IAM conditions recognize the security groups of nodes.
NODE_ROLE_TAG = {"k8s.io/role/node": "1"}


class References(Protocol):
    """The resources that the statements of a cluster's instances refer to."""

    @property
    def ca_secret_arn(self) -> Expression:
        """ARN of the secret that holds the certificate authorities."""

    @property
    def join_secret_arn(self) -> Expression:
        """ARN of the secret that holds what nodes need to join."""

    @property
    def secrets_key_arn(self) -> Expression:
        """ARN of the KMS key that encrypts the cluster's secrets."""

    @property
    def backup_bucket_name(self) -> Expression:
        """Name of the bucket of etcd's snapshots."""

    @property
    def issuer_bucket_names(self) -> list[Expression]:
        """Name of the bucket with the documents of the issuer of service-account tokens, or patterns for it."""

    @property
    def root_stack_name(self) -> Expression:
        """Name of the root stack."""

    @property
    def node_stack_arns(self) -> list[Expression]:
        """ARNs of the stacks that launch the nodes of a role, or patterns for them."""

    @property
    def vpc_id(self) -> Expression:
        """Id of the VPC."""

    @property
    def route_table_id(self) -> Expression:
        """Id of the route table that holds the pods' routes."""

    @property
    def node_security_group_id(self) -> Expression:
        """Id of the existing security group of the nodes."""

    def existing_security_group_ids(self, instances: Literal["masters", "nodes"]) -> list[Expression]:
        """Return the ids of the existing security groups that masters or nodes have."""

    def substitute(self, text: str, **values: Expression) -> Expression:
        """Return a text in which values replace the variables `${name}`, as `Fn::Sub` replaces them.

        The text may contain `${AWS::Partition}`, `${AWS::Region}`, `${AWS::AccountId}`, and the names of `values`.
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
        resource: the part of the ARN after the account, e.g. `volume/*`; may contain the variables of `values`.
        region: region in the ARN; empty for a global service.
    """
    return references.substitute(f"arn:${{AWS::Partition}}:{service}:{region}:{account}:{resource}", **values)


def named_arn(references: References, arn: str) -> Expression:
    """Return an ARN that the cluster file names; if it leaves the account open, it is in the cluster's account."""
    text = text_of_sub(arn)
    return references.substitute(text) if text else arn


def resource_tags(cluster: Cluster, **other_tags: str) -> dict[str, Expression]:
    """Return the values that a resource's tags must have, by IAM condition key: the cluster's tag and the others."""
    return {f"aws:ResourceTag/{key}": value for key, value in {CLUSTER: cluster.name, **other_tags}.items()}


def if_resource_tagged(cluster: Cluster, **other_tags: str) -> Condition:
    """Return the IAM condition that the resource has the cluster's tag and the other tags."""
    return {"StringEquals": resource_tags(cluster, **other_tags)}


def if_request_tagged(cluster: Cluster) -> Condition:
    """Return the IAM condition that the request sets the cluster's tag on the resource that it creates."""
    return {"StringEquals": {f"aws:RequestTag/{CLUSTER}": cluster.name}}


def unless_master() -> Condition:
    """Return the IAM condition that the resource does not have the tag of masters."""
    return {"StringNotEquals": {f"aws:ResourceTag/{key}": value for key, value in MASTER_ROLE_TAG.items()}}


def via_service(cluster: Cluster, references: References, service: str) -> dict[str, Expression]:
    """Return the IAM condition key, with its values, that allows a KMS key to be used through one service only.

    The value ends in amazonaws.com in every partition ("kms:ViaService", AWS KMS Developer Guide), but in
    amazonaws.com.cn where it was observed in China (kubernetes/kops#18363), so either is allowed there.
    """
    suffixes = dict.fromkeys(["amazonaws.com", dns_suffix(cluster.region)])
    names = [references.substitute(f"{service}.${{AWS::Region}}.{suffix}") for suffix in suffixes]
    return {"kms:ViaService": names[0] if len(names) == 1 else names}


def if_creating_tagged(cluster: Cluster, service: str, *actions: str) -> Condition:
    """Return the IAM condition that a request sets the cluster's tag on a resource that the same request creates.

    Such a request needs permission to set tags, in addition to the permission to create the resource.
    The actions are the ones that create it, e.g. `CreateVolume`.
    """
    create_action = actions[0] if len(actions) == 1 else list(actions)
    return {"StringEquals": {f"aws:RequestTag/{CLUSTER}": cluster.name, f"{service}:CreateAction": create_action}}
