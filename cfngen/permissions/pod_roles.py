"""Statements of CloudFormation's service role and of operators for roles of pods and the issuer of their tokens.

Calls: permissions of the handlers of AWS::IAM::OIDCProvider, AWS::IAM::Role, AWS::CloudFront::Distribution,
AWS::CloudFront::OriginAccessControl, AWS::S3::Bucket and AWS::S3::BucketPolicy in the CloudFormation registry (November
2026), without those for properties that are not used. Resources and conditions: "Actions, resources, and condition
keys" for AWS Identity and Access Management, Amazon CloudFront and Amazon S3, Service Authorization Reference, where
cloudfront:CreateDistribution also is the permission for CreateDistributionWithTags.
"""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.iam.service_accounts import document_keys
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.endpoints import dns_suffix
from cfngen.cluster.sections.service_accounts import ServiceAccountIssuer
from cfngen.permissions.role_changes import role_change_statements
from cfngen.permissions.scope import Scope, if_request_claims_untagged, if_resource_has_tag
from cfngen.permissions.statements import Statement, allow


def pod_role_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of CloudFormation's service role; empty if the cluster has no issuer of its own."""
    issuer = cluster.service_account_issuer
    if issuer is None:
        return []
    return [
        # Nobody passes these roles: pods assume them with their tokens.
        *role_change_statements(scope, [_role_arns(cluster, scope)], sid_suffix="PodRoles"),
        *provider_statements(scope, [_provider_arns(cluster, issuer, scope)], sid_suffix="Issuer"),
        *(_distribution_statements(scope) if issuer.discovery == "cloudFront" else []),
        *(_bucket_statements(scope) if issuer.discovery != "url" else []),
    ]


def read_pod_role_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements of an operator; empty if the cluster has no issuer of its own.

    Drift detection reads each resource with the operator's permissions. `cfngen delete` empties the issuer's bucket,
    which CloudFormation retains, and deletes it.
    """
    issuer = cluster.service_account_issuer
    if issuer is None:
        return []
    return [
        allow(
            sid="ReadPodRoles",
            actions="iam:GetRole iam:GetRolePolicy iam:ListAttachedRolePolicies iam:ListRolePolicies",
            resources=[_role_arns(cluster, scope)],
        ),
        *_find_existing_roles_statements(cluster),
        allow(
            sid="ReadIssuer",
            actions="iam:GetOpenIDConnectProvider iam:ListOpenIDConnectProviderTags",
            resources=[_provider_arns(cluster, issuer, scope)],
        ),
        *(_read_distribution_statements(scope) if issuer.discovery == "cloudFront" else []),
        *_read_bucket_statements(issuer, scope),
    ]


def _read_distribution_statements(scope: Scope) -> list[Statement]:
    return [
        allow(
            sid="ReadDistribution",
            actions="cloudfront:GetDistribution cloudfront:GetDistributionConfig cloudfront:ListTagsForResource",
            resources=[_cloudfront_arns(scope, "distribution")],
            condition=if_resource_has_tag(scope),
        ),
        allow(
            sid="ReadOriginAccess",
            actions="cloudfront:GetOriginAccessControl",
            resources=[_cloudfront_arns(scope, "origin-access-control")],
        ),
        # A list of the account's has no ARN; names are looked up in it before a creation.
        allow(sid="FindOriginAccess", actions="cloudfront:ListOriginAccessControls"),
    ]


def _read_bucket_statements(issuer: ServiceAccountIssuer, scope: Scope) -> list[Statement]:
    """Return the statements of an operator for the issuer's bucket, if it has one: to read and empty it."""
    # Whether the account refuses public buckets is a setting without an ARN.
    block = allow(sid="ReadPublicAccessBlock", actions="s3:GetAccountPublicAccessBlock")
    statements = [block] if issuer.discovery == "bucket" else []
    bucket_arns = scope.issuer_bucket_arns
    if issuer.bucket:
        statements.append(allow(sid="FindIssuerBucket", actions="s3:ListBucket", resources=bucket_arns))
    elif issuer.discovery != "url":
        statements += [
            allow(
                sid="IssuerBucket",
                actions="""
                    s3:DeleteBucket s3:Get*Configuration s3:GetBucket* s3:ListBucket s3:ListBucketVersions
                    s3:ListTagsForResource""",
                resources=bucket_arns,
            ),
            allow(
                sid="IssuerDocuments",
                actions="s3:DeleteObject s3:GetObject",
                resources=[f"{arn}/{key}" for arn in bucket_arns for key in document_keys(issuer)],
            ),
        ]
    return statements


def _find_existing_roles_statements(cluster: Cluster) -> list[Statement]:
    roles = dict.fromkeys(entry.role for entry in cluster.iam.service_accounts if entry.role)
    return [allow(sid="FindPodRoles", actions="iam:GetRole", resources=list(roles))] if roles else []


def provider_statements(scope: Scope, providers: Sequence[str], *, sid_suffix: str) -> list[Statement]:
    """Return the statements for OIDC providers of IAM, given by ARNs; one that is being created has no tags yet."""
    return [
        allow(
            sid=f"New{sid_suffix}",
            actions="""
                iam:CreateOpenIDConnectProvider iam:GetOpenIDConnectProvider iam:ListOpenIDConnectProviderTags""",
            resources=providers,
        ),
        allow(
            sid=f"TagNew{sid_suffix}",
            actions="iam:TagOpenIDConnectProvider",
            resources=providers,
            condition=if_request_claims_untagged(scope),
        ),
        allow(
            sid=f"Own{sid_suffix}",
            actions="""
                iam:AddClientIDToOpenIDConnectProvider iam:DeleteOpenIDConnectProvider
                iam:RemoveClientIDFromOpenIDConnectProvider iam:TagOpenIDConnectProvider
                iam:UntagOpenIDConnectProvider iam:UpdateOpenIDConnectProviderThumbprint""",
            resources=providers,
            condition=if_resource_has_tag(scope),
        ),
    ]


def _distribution_statements(scope: Scope) -> list[Statement]:
    """Return the statements for the distribution, and for its origin access control, which cannot have tags."""
    distributions = [_cloudfront_arns(scope, "distribution")]
    return [
        allow(
            sid="NewDistributions",
            actions="""
                cloudfront:CreateDistribution cloudfront:GetDistribution cloudfront:GetDistributionConfig
                cloudfront:ListTagsForResource""",
            resources=distributions,
        ),
        allow(
            sid="TagNewDistributions",
            actions="cloudfront:TagResource",
            resources=distributions,
            condition=if_request_claims_untagged(scope),
        ),
        # CloudFormation disables a distribution before it deletes it, by an update.
        allow(
            sid="OwnDistributions",
            actions="""
                cloudfront:DeleteDistribution cloudfront:TagResource cloudfront:UntagResource
                cloudfront:UpdateDistribution""",
            resources=distributions,
            condition=if_resource_has_tag(scope),
        ),
        # Creating one has no resource that a statement could name.
        allow(sid="NewOriginAccess", actions="cloudfront:CreateOriginAccessControl"),
        allow(
            sid="OriginAccess",
            actions="""
                cloudfront:DeleteOriginAccessControl cloudfront:GetOriginAccessControl
                cloudfront:UpdateOriginAccessControl""",
            resources=[_cloudfront_arns(scope, "origin-access-control")],
        ),
    ]


def _bucket_statements(scope: Scope) -> list[Statement]:
    """Return the statements for the issuer's bucket; CloudFormation deletes its policy, and retains the bucket."""
    return [
        allow(
            sid="IssuerBucket",
            actions="""
                s3:CreateBucket s3:DeleteBucketPolicy s3:Get*Configuration s3:GetBucket* s3:ListBucket
                s3:ListTagsForResource s3:PutBucketOwnershipControls s3:PutBucketPolicy s3:PutBucketPublicAccessBlock
                s3:PutBucketTagging s3:PutEncryptionConfiguration s3:TagResource s3:UntagResource""",
            resources=scope.issuer_bucket_arns,
        )
    ]


def _role_arns(cluster: Cluster, scope: Scope) -> str:
    """Return the pattern for the ARNs of the roles of service accounts (`cluster.service_accounts.role_name`)."""
    return f"arn:{scope.partition}:iam::{scope.account}:role{scope.iam_path}{cluster.name}.{cluster.region}.*"


def _provider_arns(cluster: Cluster, issuer: ServiceAccountIssuer, scope: Scope) -> str:
    """Return the ARN of IAM's OIDC provider, which ends in the issuer, or a pattern for it."""
    if issuer.url:
        name = issuer.url.removeprefix("https://")
    elif issuer.discovery == "bucket":
        name = f"{scope.issuer_bucket_name}.s3.{cluster.region}.{dns_suffix(cluster.region)}"
    else:
        name = "*.cloudfront.net"
    return f"arn:{scope.partition}:iam::{scope.account}:oidc-provider/{name}"


def _cloudfront_arns(scope: Scope, resource_type: str) -> str:
    """Return the pattern for the ARNs of the account's resources of a type in CloudFront, which has no regions."""
    return f"arn:{scope.partition}:cloudfront::{scope.account}:{resource_type}/*"
