"""The secrets stack: the key that encrypts the cluster's secrets, the secrets themselves, and the SSH key pair.

The cluster file may name an existing key; then the stack has none.

CloudFormation creates the secrets without a value. The first master writes the certificate authorities and the join
information into them, so no secret value is in a template, a parameter or UserData.
"""

from __future__ import annotations

import hashlib
import json

from awacs.aws import Action, Allow, PolicyDocument, Statement
from awacs.aws import Principal as AwsPrincipal
from troposphere import GetAtt, Ref, Sub, ec2, kms, secretsmanager

from cfngen.cluster.model import Cluster
from cfngen.templates import backups, issuer
from cfngen.templates.references import named_arn
from cfngen.templates.stack import ACCESS, DELETED_WITH_STACK, PropertyValue, Stack
from cfngen.templates.tagging import tag_map, tags


def build(cluster: Cluster) -> Stack:
    """Return the secrets stack."""
    stack = Stack(
        cluster,
        name="secrets",
        logical_id="SecretsStack",
        source_module=__name__,
        description=f"Secrets of the Kubernetes cluster {cluster.name}: "
        "encryption key, certificate authorities, join information",
    )
    own_key = cluster.secrets.kms_key
    key_arn = named_arn(own_key) if own_key else GetAtt(_add_key(stack, cluster), "Arn")
    ca_secret = _add_secret(
        stack,
        cluster,
        key_arn,
        logical_id="CaSecret",
        name_suffix="ca",
        description="Certificate authorities of {cluster}, made by its first master",
    )
    join_secret = _add_secret(
        stack,
        cluster,
        key_arn,
        logical_id="JoinSecret",
        name_suffix="join",
        description="What nodes need to join {cluster}, renewed by its masters",
    )
    stack.output("SecretsKeyArn", value=key_arn, description="KMS key that encrypts the cluster's secrets")
    stack.output(
        "CaSecretArn",
        value=Ref(ca_secret),
        description="Secret that holds the certificate authorities",
        also_output_of_root=True,
    )
    stack.output("JoinSecretArn", value=Ref(join_secret), description="Secret that holds what nodes need to join")
    backups.add_bucket(stack, cluster)
    issuer.add_issuer(stack, cluster)
    if cluster.ssh.public_key:
        _add_key_pair(stack, cluster, cluster.ssh.public_key)
    return stack


def _add_key_pair(stack: Stack, cluster: Cluster, public_key: str) -> None:
    key_pair = stack.add(
        ec2.KeyPair(
            "SshKeyPair",
            KeyName=_key_pair_name(cluster, public_key),
            PublicKeyMaterial=public_key,
            Tags=tags(cluster, f"{cluster.name}-ssh"),
        )
    )
    stack.output("KeyName", value=Ref(key_pair), description="EC2 key pair of the instances")


def _add_key(stack: Stack, cluster: Cluster) -> kms.Key:
    return stack.add(
        kms.Key(
            "SecretsKey",
            Description=f"Encrypts the secrets of the Kubernetes cluster {cluster.name}",
            EnableKeyRotation=True,
            PendingWindowInDays=30,
            KeyPolicy=_key_policy(),
            Tags=tags(cluster, f"{cluster.name}-secrets"),
            **DELETED_WITH_STACK,
        )
    )


def _add_secret(
    stack: Stack, cluster: Cluster, key_arn: PropertyValue, logical_id: str, name_suffix: str, description: str
) -> secretsmanager.Secret:
    """Add a secret without a value.

    Args:
        description: description, in which `{cluster}` stands for "the Kubernetes cluster" and its name.
    """
    return stack.add(
        secretsmanager.Secret(
            logical_id,
            Description=description.format(cluster=f"the Kubernetes cluster {cluster.name}"),
            KmsKeyId=key_arn,
            Tags=tags(cluster, f"{cluster.name}-{name_suffix}"),
            **DELETED_WITH_STACK,
        )
    )


def _key_pair_name(cluster: Cluster, public_key: str) -> str:
    """Return the name of the EC2 key pair, which contains a digest of the public key and the tags.

    If the public key or the tags change, CloudFormation creates a new key pair before it deletes the old one, so the
    two need different names (aws-cloudformation/cloudformation-coverage-roadmap#2280).
    """
    content = json.dumps([public_key, tag_map(cluster, cluster.name)], sort_keys=True)
    return f"{cluster.name}-ssh-{hashlib.sha256(content.encode()).hexdigest()[:8]}"


def key_name_property(stack: Stack, cluster: Cluster) -> dict[str, object]:
    """Return a launch template's property KeyName and its value; empty if the cluster file has no SSH key."""
    if cluster.ssh.public_key:
        return {"KeyName": stack.parameter_from_other_stack("KeyName", description="EC2 key pair of the instances")}
    if cluster.ssh.key_name:
        name = stack.parameter(
            "KeyName",
            type="AWS::EC2::KeyPair::KeyName",
            label="SSH key pair",
            parameter_group=ACCESS,
            description="EC2 key pair of the instances",
            default=cluster.ssh.key_name,
        )
        return {"KeyName": name}
    return {}


def _key_policy() -> PolicyDocument:
    """Return a key policy that lets IAM policies of the account grant access; otherwise nobody could manage the key.

    Source: "Allows access to the AWS account and enables IAM policies", AWS KMS Developer Guide, default key policy.
    """
    account_principal = Sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:root")
    return PolicyDocument(
        Version="2012-10-17",
        Statement=[
            Statement(
                Sid="AccountByIamPolicies",
                Effect=Allow,
                Principal=AwsPrincipal("AWS", account_principal),
                Action=[Action("kms", "*")],
                Resource=["*"],
            )
        ],
    )
