"""The registry stack: repositories for images in Amazon ECR, and the roles of those who push to them.

Images are data: repositories stay when their stack is deleted, unless the cluster file says otherwise. An account has
one OIDC provider for a URL, which others may use by then, so it stays, too. A repository or provider of a creation that
fails is deleted, so that the next attempt does not find its name taken.
"""

from __future__ import annotations

import json

from troposphere import GetAtt, Sub, ecr, iam

from cfngen.cluster.iam.push_roles import (
    created_providers,
    made_push_roles,
    push_audience,
    push_issuer,
    push_subject,
)
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.identity_ids import PushRoleId, RegistryId
from cfngen.cluster.naming.logical_ids import REGISTRY_STACK
from cfngen.cluster.sections.registry import Push, Repository
from cfngen.permissions.registry import PULL_ACTIONS, push_statements
from cfngen.permissions.trust import web_identity_trust
from cfngen.templates.iam import StackReferences
from cfngen.templates.iam_properties import iam_path, permissions_boundary
from cfngen.templates.service_account_roles import UNUSED_THUMBPRINT
from cfngen.templates.stack import DELETED_WITH_STACK, RETAINED_ONCE_CREATED, PropertyValue, Stack
from cfngen.templates.tagging import tags


def build(cluster: Cluster) -> Stack | None:
    """Return the registry stack; None if the cluster file has neither a repository nor a role that are made."""
    stack = Stack(
        cluster,
        name="registry",
        logical_id=REGISTRY_STACK,
        source_module=__name__,
        description=f"Repositories for images of the Kubernetes cluster {cluster.name}, and who pushes to them",
    )
    for repository in cluster.registry.repositories:
        if not repository.existing:
            _add_repository(stack, cluster, repository)
    providers = {
        issuer: _add_provider(stack, cluster, issuer, audiences)
        for issuer, audiences in created_providers(cluster).items()
    }
    for _, push in made_push_roles(cluster):
        provider = providers.get(push_issuer(push))
        _add_role(stack, cluster, push, GetAtt(provider, "Arn") if provider else _provider_arn(push))
    return stack if stack.resource_ids else None


def _add_repository(stack: Stack, cluster: Cluster, repository: Repository) -> None:
    optional_properties: dict[str, object] = {}
    if repository.keep_images or repository.keep_days:
        policy = ecr.LifecyclePolicy(LifecyclePolicyText=_lifecycle_policy(repository))
        optional_properties["LifecyclePolicy"] = policy
    if repository.pull_accounts:
        optional_properties["RepositoryPolicyText"] = _pull_policy(repository)
    if repository.delete_with_cluster:
        # ECR deletes no repository with images in it otherwise.
        optional_properties["EmptyOnDelete"] = True
    stack.add(
        ecr.Repository(
            str(RegistryId.of("Repository", repository.name)),
            EncryptionConfiguration=ecr.EncryptionConfiguration(EncryptionType="AES256"),
            ImageScanningConfiguration=ecr.ImageScanningConfiguration(ScanOnPush=repository.scan_on_push),
            ImageTagMutability="IMMUTABLE" if repository.immutable_tags else "MUTABLE",
            RepositoryName=repository.name,
            Tags=tags(cluster, repository.name),
            **(DELETED_WITH_STACK if repository.delete_with_cluster else RETAINED_ONCE_CREATED),
            **optional_properties,
        )
    )


def _lifecycle_policy(repository: Repository) -> str:
    """Return ECR's rule for how many images stay, or for how long ("Lifecycle policies", Amazon ECR User Guide)."""
    selection: dict[str, object] = {"tagStatus": "any"}
    if repository.keep_images:
        selection |= {"countType": "imageCountMoreThan", "countNumber": repository.keep_images}
    else:
        selection |= {"countType": "sinceImagePushed", "countUnit": "days", "countNumber": repository.keep_days}
    rule = {"rulePriority": 1, "selection": selection, "action": {"type": "expire"}}
    return json.dumps({"rules": [rule]}, separators=(",", ":"))


def _pull_policy(repository: Repository) -> dict[str, object]:
    """Return the repository's policy, by which the IAM policies of other accounts may allow to pull."""
    accounts = [Sub(f"arn:${{AWS::Partition}}:iam::{account}:root") for account in repository.pull_accounts]
    statement = {"Sid": "Pull", "Effect": "Allow", "Principal": {"AWS": accounts}, "Action": list(PULL_ACTIONS)}
    return {"Version": "2012-10-17", "Statement": [statement]}


def _add_provider(stack: Stack, cluster: Cluster, issuer: str, audiences: list[str]) -> iam.OIDCProvider:
    return stack.add(
        iam.OIDCProvider(
            str(RegistryId.of("OidcProvider", issuer)),
            ClientIdList=audiences,
            Tags=tags(cluster, issuer),
            ThumbprintList=[UNUSED_THUMBPRINT],
            Url=f"https://{issuer}",
            **RETAINED_ONCE_CREATED,
        )
    )


def _provider_arn(push: Push) -> PropertyValue:
    return Sub(f"arn:${{AWS::Partition}}:iam::${{AWS::AccountId}}:oidc-provider/{push_issuer(push)}")


def _add_role(stack: Stack, cluster: Cluster, push: Push, provider: PropertyValue) -> None:
    """Add a role that only jobs of one project, for one branch or tag, may assume, and an output with its ARN."""
    statements = push_statements(cluster, push, StackReferences(stack, cluster))
    role = stack.add(
        iam.Role(
            str(PushRoleId(push.name)),
            AssumeRolePolicyDocument=web_identity_trust(
                provider=provider, issuer=push_issuer(push), audience=push_audience(push), subject=push_subject(push)
            ),
            Description=f"pushes images as {push.name} for the Kubernetes cluster {cluster.name}",
            Policies=[iam.Policy(PolicyName="push", PolicyDocument={"Version": "2012-10-17", "Statement": statements})],
            Tags=tags(cluster, f"{cluster.name} push {push.name}"),
            **iam_path(cluster),
            **permissions_boundary(cluster.iam.permissions_boundary),
        )
    )
    stack.output(
        str(PushRoleId(push.name, "RoleArn")),
        value=GetAtt(role, "Arn"),
        description=f"Role by which {push.name} pushes images",
        also_output_of_root=True,
    )
