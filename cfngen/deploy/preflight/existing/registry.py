"""Checks which repositories for images and which OIDC providers of those who push them exist, and are to be made.

Names of repositories are unique in an account and region, and IAM has one provider for a URL. CloudFormation would come
to one that exists, and a job on GitHub or GitLab to a provider that does not, only after everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from cfngen.cluster.iam.push_roles import created_providers, made_push_roles, push_audience, push_issuer
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.identity_ids import RegistryId
from cfngen.cluster.paths import dotted
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.roles import find_provider_audiences
from cfngen.deploy.aws.services import has_repository
from cfngen.deploy.aws.stacks import StackTree
from cfngen.deploy.preflight.existing.roles import find_missing_role, provider_arn
from cfngen.deploy.preflight.findings import Finding, refusal


def find_repository_problems(account: Account, cluster: Cluster, deployed: StackTree | None) -> Iterator[Finding]:
    """Yield a problem for each repository that is to be made and exists, or is said to exist and does not."""
    if not cluster.registry.repositories:
        return
    own_names = _own_ids(deployed, "Repository")
    for index, repository in enumerate(cluster.registry.repositories):
        key = dotted(("registry", "repositories", index))
        if repository.name in own_names:
            continue
        exists = has_repository(account, repository.name)
        where = f"in account {account.id} and {account.region}"
        if repository.existing and not exists:
            yield refusal(
                f"{key}.name", f"there is no repository {repository.name} {where}; remove existing, to have it made"
            )
        elif exists and not repository.existing:
            yield refusal(
                f"{key}.name",
                f"there is a repository {repository.name} {where} already, which is not this stack's: an earlier "
                "cluster may have left it; set existing: true to use it with its images, or choose another name",
            )


def find_push_problems(account: Account, cluster: Cluster, deployed: StackTree | None) -> Iterator[Finding]:
    """Yield a problem for each provider that is in the way or missing, and for each existing role that does not exist.

    A provider that exists must accept the audience of the jobs' tokens.
    """
    if not cluster.registry.push:
        return
    own_arns = _own_ids(deployed, "OidcProvider")
    created = created_providers(cluster)
    find_audiences = cache(partial(find_provider_audiences, account))
    for index, push in made_push_roles(cluster):
        issuer, audience = push_issuer(push), push_audience(push)
        arn = provider_arn(account, issuer)
        key = dotted(("registry", "push", index, "createProvider"))
        if arn in own_arns and issuer in created:
            continue
        audiences = find_audiences(arn)
        if audiences is None and issuer not in created:
            yield refusal(
                key, f"account {account.id} has no OIDC provider for {issuer}; set it to true, to have it made"
            )
        elif audiences is not None and push.create_provider:
            yield refusal(
                key,
                f"account {account.id} has an OIDC provider for {issuer} already, and IAM has one for a URL; remove "
                "the key, and the role trusts that one",
            )
        elif audiences is not None and audience not in audiences:
            names = f"--open-id-connect-provider-arn {arn} --client-id {audience}"
            yield refusal(
                key.rpartition(".")[0],
                f"the OIDC provider for {issuer} does not accept the audience {audience} of the jobs' tokens; add it "
                f"with `aws iam add-client-id-to-open-id-connect-provider {names}`",
            )
    for index, push in enumerate(cluster.registry.push):
        if push.role:
            yield from find_missing_role(account, dotted(("registry", "push", index, "role")), push.role)


def _own_ids(deployed: StackTree | None, kind: str) -> frozenset[str]:
    """Return the physical ids of the stack's repositories or providers, without those that it has let go of."""
    return frozenset(
        resource.view.physical_id
        for resource in (deployed.resources if deployed else ())
        if (registry_id := RegistryId.parse(resource.view.logical_id))
        and registry_id.kind == kind
        and resource.exists
        and resource.view.status != "DELETE_SKIPPED"
    )
