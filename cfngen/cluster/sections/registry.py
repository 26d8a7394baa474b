"""The section about repositories of Amazon ECR: which there are, who pushes images, and who pulls them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.base import List, Model

PushProvider = Literal["github", "gitlab"]


class Repository(Model):
    """A repository of Amazon ECR in the cluster's account and region, for one image."""

    name: field_types.RepositoryName = Field(description="Name of the repository, such as `shop/web`.")
    existing: bool = Field(
        False,
        description="Whether the repository exists and stays as it is, also one that an earlier cluster has left.",
    )
    immutable_tags: bool = Field(
        True, description="Whether a tag always means the same image: ECR refuses a push with a tag that exists."
    )
    scan_on_push: bool = Field(
        True, description="Whether ECR looks for known vulnerabilities of the operating system in each pushed image."
    )
    keep_images: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="How many images stay, the newest ones; ECR deletes the others. Default: all.",
    )
    keep_days: int | None = Field(
        None,
        ge=1,
        le=36_500,
        description="Days after its push for which an image stays; then ECR deletes it, also one that pods use. "
        "Default: for ever.",
    )
    pull_accounts: List[field_types.AccountNumber] = Field(
        (), description="Numbers of other accounts whose IAM policies may let somebody pull its images."
    )
    delete_with_cluster: bool = Field(
        False,
        description="Whether the repository is deleted with all its images when the cluster is deleted, or when it is "
        "removed from the file. Without it, it stays.",
    )


class Push(Model):
    """Who may push images: jobs of a project on GitHub or GitLab by a role that is made, or who has an existing role.

    Jobs assume the role with tokens of their own (OIDC), so that no key is kept anywhere.
    """

    name: field_types.GroupName = Field(description="Name of the role within the cluster, such as `web`.")
    provider: PushProvider | None = Field(
        None, description="Whose jobs assume the role that is made. Either this or `role` is needed."
    )
    url: field_types.IssuerUrl | None = Field(
        None,
        description="The issuer of the jobs' tokens, which IAM's OIDC provider has as its URL: of GitHub Enterprise "
        "Server `https://HOST/_services/token`, of GitLab its address. Default: that of github.com or gitlab.com.",
    )
    project: field_types.ProjectName | None = Field(
        None,
        description="The project whose jobs assume the role: `owner/repository`, or with GitLab `group/project`. Where "
        "GitHub's tokens have immutable subjects, with both numbers: `owner@123456/repository@456789`.",
    )
    ref: field_types.GitRef = Field(
        "refs/heads/main",
        description="The branch or tag whose jobs assume the role; `*` stands for any characters: `refs/tags/v*`.",
    )
    create_provider: bool = Field(
        False,
        description="Whether IAM's OIDC provider of the URL is made. An account has one for a URL, so it stays when "
        "the cluster is deleted; without this it exists.",
    )
    role: field_types.RoleArn | None = Field(
        None,
        description="ARN of an existing role, in place of one that is made; `cfngen permissions` prints its policy.",
    )
    repositories: List[field_types.RepositoryName] = Field(
        (), description="The repositories of this section to which it may push. Default: all."
    )


class Registry(Model):
    """Repositories for images in Amazon ECR, who fills them, and whether nodes pull from others."""

    repositories: List[Repository] = Field((), description="The repositories, one for each image.")
    push: List[Push] = Field((), description="Who may push images to them.")
    only: bool = Field(
        False,
        description="Whether masters and nodes may pull from these repositories alone, and from those of AWS's own "
        "add-ons that the cluster uses. Otherwise they may pull from every repository of ECR whose policy lets them.",
    )
