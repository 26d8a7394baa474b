"""Who pushes images: the roles that are made for jobs of GitHub and GitLab, and what their tokens say."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.registry import Push

_URLS = {"github": "https://token.actions.githubusercontent.com", "gitlab": "https://gitlab.com"}
# What "Configure AWS Credentials" asks GitHub for, unless it is told otherwise (its README, `audience`).
_GITHUB_AUDIENCE = "sts.amazonaws.com"


def made_push_roles(cluster: Cluster) -> Iterator[tuple[int, Push]]:
    """Yield each entry of `registry.push` whose role is made, after its index."""
    yield from ((index, push) for index, push in enumerate(cluster.registry.push) if push.role is None)


def pushed_repositories(cluster: Cluster, push: Push) -> tuple[str, ...]:
    """Return the names of the repositories to which somebody may push."""
    return push.repositories or tuple(repository.name for repository in cluster.registry.repositories)


def push_issuer(push: Push) -> str:
    """Return the issuer of the jobs' tokens, without `https://`; IAM's OIDC provider is named so."""
    return (push.url or _URLS[push.provider or "github"]).removeprefix("https://")


def push_audience(push: Push) -> str:
    """Return the `aud` of the jobs' tokens, which the OIDC provider has to accept.

    A job on GitLab chooses it; GitLab's documentation and the providers that follow it have the address of GitLab
    ("Configure OpenID Connect in AWS", GitLab documentation).
    """
    return _GITHUB_AUDIENCE if push.provider == "github" else f"https://{push_issuer(push)}"


def push_subject(push: Push) -> str:
    """Return the `sub` of the jobs' tokens; an asterisk stands for any characters.

    Sources: "OpenID Connect reference", GitHub documentation, for a job without an environment; "ID token
    authentication", GitLab documentation.
    """
    if push.provider == "github":
        return f"repo:{push.project}:ref:{push.ref}"
    _, kind, name = push.ref.split("/", 2)
    return f"project_path:{push.project}:ref_type:{'tag' if kind == 'tags' else 'branch'}:ref:{name}"


def created_providers(cluster: Cluster) -> dict[str, list[str]]:
    """Return the audiences of each OIDC provider that is made, by its issuer without `https://`."""
    roles = [push for _, push in made_push_roles(cluster)]
    created = dict.fromkeys(push_issuer(push) for push in roles if push.create_provider)
    return {
        issuer: sorted({push_audience(push) for push in roles if push_issuer(push) == issuer}) for issuer in created
    }
