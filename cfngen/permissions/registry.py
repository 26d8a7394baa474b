"""Statements for repositories of Amazon ECR: of who pulls from them, who pushes, who makes them and who looks at them.

Calls: "Required IAM permissions for pushing an image", Amazon ECR User Guide; "AllowPushPull", README.md of
aws-actions/amazon-ecr-login, for jobs that also pull; permissions of the handlers of AWS::ECR::Repository,
AWS::IAM::OIDCProvider and AWS::IAM::Role in the CloudFormation registry (November 2026), without those for KMS keys.
"""

from __future__ import annotations

from collections.abc import Iterable

from cfngen.cluster.iam.push_roles import created_providers, made_push_roles, push_issuer, pushed_repositories
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.sections.registry import Push
from cfngen.permissions.pod_roles import provider_statements
from cfngen.permissions.references import References, arn
from cfngen.permissions.role_changes import role_change_statements
from cfngen.permissions.scope import Scope
from cfngen.permissions.statements import Expression, Statement, allow

_PULL = "ecr:BatchCheckLayerAvailability ecr:BatchGetImage ecr:GetDownloadUrlForLayer"
PULL_ACTIONS = tuple(_PULL.split())
"""The actions of somebody who pulls images from a repository."""
# "View Amazon container image registries for Amazon EKS add-ons", Amazon EKS User Guide: the account of us-west-2, from
# which the chart of the VPC plug-in takes its images, and of most regions. Other charts have their images elsewhere.
_ADDON_IMAGES_ACCOUNT = "602401143452"


def pull_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the permission of instances to pull images, from every repository or with `registry.only` from few."""
    repositories = [arn(references, "ecr", "repository/*", region="*", account="*")]
    if cluster.registry.only:
        repositories = _repository_arns(references, (repository.name for repository in cluster.registry.repositories))
        if network_plugin(cluster).gives_pods_vpc_addresses:
            repositories.append(arn(references, "ecr", "repository/*", region="*", account=_ADDON_IMAGES_ACCOUNT))
    token = allow(sid="EcrToken", actions="ecr:GetAuthorizationToken")
    return [token, *([allow(sid="EcrPull", actions=_PULL, resources=repositories)] if repositories else [])]


def push_statements(cluster: Cluster, push: Push, references: References) -> list[Statement]:
    """Return the permission to push images to the repositories of an entry of `registry.push`."""
    return [
        # The token is the registry's: the action has no resource.
        allow(sid="PushToken", actions="ecr:GetAuthorizationToken"),
        allow(
            sid="PushImages",
            actions="""
                ecr:BatchCheckLayerAvailability ecr:BatchGetImage ecr:CompleteLayerUpload ecr:GetDownloadUrlForLayer
                ecr:InitiateLayerUpload ecr:PutImage ecr:UploadLayerPart""",
            resources=_repository_arns(references, pushed_repositories(cluster, push)),
        ),
    ]


def registry_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role; empty if the stacks make nothing of a registry."""
    made = [repository.name for repository in cluster.registry.repositories if not repository.existing]
    statements = []
    if made:
        statements.append(
            allow(
                sid="Repositories",
                actions="""
                    ecr:CreateRepository ecr:DeleteLifecyclePolicy ecr:DeleteRepository ecr:DeleteRepositoryPolicy
                    ecr:DescribeRepositories ecr:GetLifecyclePolicy ecr:GetRepositoryPolicy ecr:ListTagsForResource
                    ecr:PutImageScanningConfiguration ecr:PutImageTagMutability ecr:PutLifecyclePolicy
                    ecr:SetRepositoryPolicy ecr:TagResource ecr:UntagResource""",
                resources=_repository_arns(scope, made),
            )
        )
    if list(made_push_roles(cluster)):
        # Nobody passes these roles: jobs assume them with their tokens.
        statements += role_change_statements(scope, scope.push_role_arns, sid_suffix="PushRoles")
    if providers := created_providers(cluster):
        statements += provider_statements(scope, _provider_arns(scope, providers), sid_suffix="PushProviders")
    return statements


def read_registry_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of an operator, who looks which repositories and providers exist, and for drift."""
    statements = []
    roles = [push for _, push in made_push_roles(cluster)]
    if names := [repository.name for repository in cluster.registry.repositories]:
        statements.append(
            allow(
                sid="ReadRepositories",
                actions="""
                    ecr:DescribeRepositories ecr:GetLifecyclePolicy ecr:GetRepositoryPolicy ecr:ListTagsForResource""",
                resources=_repository_arns(scope, names),
            )
        )
    if roles:
        statements += [
            allow(
                sid="ReadPushRoles",
                actions="iam:GetRole iam:GetRolePolicy iam:ListAttachedRolePolicies iam:ListRolePolicies",
                resources=scope.push_role_arns,
            ),
            allow(
                sid="ReadPushProviders",
                actions="iam:GetOpenIDConnectProvider iam:ListOpenIDConnectProviderTags",
                resources=_provider_arns(scope, dict.fromkeys(map(push_issuer, roles))),
            ),
        ]
    return statements


def _repository_arns(references: References, names: Iterable[str]) -> list[Expression]:
    return [arn(references, "ecr", f"repository/{name}") for name in names]


def _provider_arns(scope: Scope, issuers: Iterable[str]) -> list[str]:
    return [f"arn:{scope.partition}:iam::{scope.account}:oidc-provider/{issuer}" for issuer in issuers]
