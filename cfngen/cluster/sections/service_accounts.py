"""The sections about service accounts with IAM roles, and the statements of such roles."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.base import List, Model

Discovery = Literal["cloudFront", "bucket", "url"]


class PolicyStatement(Model):
    """A statement of an IAM policy, for the role of a node group or of a service account."""

    effect: Literal["Allow", "Deny"] = Field("Allow", description="What the statement does.")
    actions: List[field_types.IamAction] = Field(
        min_length=1, description="Actions such as `s3:GetObject`; `*` stands for any characters of a name."
    )
    resources: List[field_types.IamResource] = Field(
        min_length=1, description="ARNs of the resources, with `*` for any characters; `*` alone is any resource."
    )
    conditions: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Conditions by operator and key: `{StringEquals: {aws:ResourceTag/team: ml}}`.",
    )


class ServiceAccountIssuer(Model):
    """The issuer of service-account tokens, and where AWS reads the two documents by which it checks them."""

    discovery: Discovery = Field(
        "cloudFront",
        description="Where AWS reads the issuer's documents, which hold no secret: from a private bucket behind a "
        "CloudFront distribution (`cloudFront`), from a bucket that lets everybody read these two objects (`bucket`), "
        "or from your own web server (`url`). Default: `cloudFront`; `bucket` in regions of China and GovCloud, "
        "where CloudFront does not serve the account.",
    )
    url: field_types.IssuerUrl | None = Field(
        None, description="The issuer's URL, under which your web server has the documents. Only with `url`."
    )
    bucket: field_types.BucketName | None = Field(
        None,
        description="Name of the existing bucket that your web server reads; masters write the documents into it, "
        "under the path of the URL. Without it you publish them yourself. Only with `url`.",
    )
    sign_tokens: bool = Field(
        True,
        description="Whether new tokens are issued by this issuer. With `false` the API servers accept its tokens, but "
        "issue their own: the step before and after, when a running cluster begins or ends to use it.",
    )

    @property
    def creates_bucket(self) -> bool:
        """Whether a bucket is created for the issuer's documents."""
        return self.discovery != "url"


class ServiceAccountRole(Model):
    """An IAM role for the pods of one service account."""

    namespace: field_types.NamespaceName = Field(description="Namespace of the service account.")
    name: field_types.ServiceAccountName = Field(description="Name of the service account.")
    additional_policies: List[field_types.PolicyArn] = Field(
        (), description="ARNs of managed policies that are attached to the role."
    )
    policy_statements: List[PolicyStatement] = Field(
        (), description="Statements of the role's own policy: what the pods may do."
    )
    permissions_boundary: field_types.PolicyArn | None = Field(
        None, description="ARN of the role's permissions boundary. Default: `iam.permissionsBoundary`."
    )
    tags: dict[str, str] = Field(
        default_factory=dict,
        description="Further tags of the role. IAM conditions read them as `aws:PrincipalTag/<key>` in every request "
        "of the pods.",
    )
    role: field_types.RoleArn | None = Field(
        None,
        description="ARN of an existing role, in place of one that is made; its trust policy has to let the service "
        "account assume it (docs/build/pod-roles.md).",
    )
