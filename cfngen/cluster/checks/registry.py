"""Checks of the repositories for images: their names, who pushes to them, and what nodes pull."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cfngen.cluster.checks.sections import Check, node_groups
from cfngen.cluster.iam.push_roles import push_issuer
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.id_form import pascal
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.registry import Push
from cfngen.text_limits import REPOSITORY_TAG_KEY, REPOSITORY_TAG_VALUE, STACK_TAG_VALUE, TAG_KEY, TAG_VALUE

_REPOSITORIES: Path = ("registry", "repositories")
_PUSH: Path = ("registry", "push")
_ONLY: Path = ("registry", "only")
# Their ARNs, of some 90 characters, stand in one managed policy of at most 6,144, and in operators' policies.
_MAX_REPOSITORIES = 40
# Their ARNs, of some 40 characters, stand in the repository's policy of at most 10,240.
_MAX_PULL_ACCOUNTS = 240
_ECR_IMAGE = re.compile(r"\d{12}\.dkr[.-]ecr(?:-fips)?\.(?P<region>[a-z0-9-]+)\.[^/]+/(?P<repository>[^:@]+)[:@].+")


def _check_repositories(cluster: Cluster) -> Iterator[Problem]:
    names: dict[str, int] = {}
    if len(cluster.registry.repositories) > _MAX_REPOSITORIES:
        yield Problem(
            _REPOSITORIES,
            f"has more than {_MAX_REPOSITORIES} repositories, whose ARNs fill the policies of those who push and "
            "pull; leave out those that other clusters fill",
        )
    for index, repository in enumerate(cluster.registry.repositories):
        path: Path = (*_REPOSITORIES, index)
        first = names.setdefault(repository.name, index)
        if first != index:
            earlier: Path = (*_REPOSITORIES, first, "name")
            yield Problem((*path, "name"), f"is also {dotted(earlier)}; remove one of the two", (earlier,))
        if repository.keep_images and repository.keep_days:
            message = "ECR has one rule for all images of a repository; remove keepImages or keepDays"
            yield Problem((*path, "keepDays"), message, ((*path, "keepImages"),))
        if repository.existing:
            # Validation knows which keys the file has, and completion adds none here.
            for key in sorted(repository.model_fields_set - {"name", "existing"}):
                alias = type(repository).model_fields[key].alias or key
                message = "the repository exists and stays as it is; remove the key, or existing"
                yield Problem((*path, alias), message, ((*path, "existing"),))
        elif reason := REPOSITORY_TAG_VALUE.fault(repository.name):
            yield Problem((*path, "name"), f"the name becomes a tag: its value {reason}")
        if len(repository.pull_accounts) > _MAX_PULL_ACCOUNTS:
            message = f"has more than {_MAX_PULL_ACCOUNTS} accounts, whose ARNs fill the repository's policy"
            yield Problem((*path, "pullAccounts"), message)


def _check_tags(cluster: Cluster) -> Iterator[Problem]:
    """Check that repositories take the cluster's tags; they take less than other resources."""
    if all(repository.existing for repository in cluster.registry.repositories):
        return
    for key, value in cluster.tags.items():
        if TAG_KEY.fault(key) or STACK_TAG_VALUE.fault(value):
            continue  # as for any resource
        for part, reason in (("key", REPOSITORY_TAG_KEY.fault(key)), ("value", REPOSITORY_TAG_VALUE.fault(value))):
            if reason:
                yield Problem(("tags", key), f"on repositories of Amazon ECR, the {part} {reason}", (_REPOSITORIES,))


def _check_push(cluster: Cluster) -> Iterator[Problem]:
    known = {repository.name for repository in cluster.registry.repositories}
    first_by_id: dict[str, int] = {}
    for index, push in enumerate(cluster.registry.push):
        path: Path = (*_PUSH, index)
        first = first_by_id.setdefault(pascal(push.name), index)
        if first != index:
            message = f"is too much like {dotted((*_PUSH, first, 'name'))}; choose another name"
            yield Problem((*path, "name"), message, ((*_PUSH, first, "name"),))
        if not known:
            yield Problem(path, "there is nothing to push to; add registry.repositories", (_REPOSITORIES,))
        for position, name in enumerate(push.repositories):
            if name not in known:
                message = f"{name} is none of registry.repositories; add it there, with existing: true if it exists"
                yield Problem((*path, "repositories", position), message, (_REPOSITORIES,))
        yield from _check_who_pushes(cluster, path, push)


def _check_who_pushes(cluster: Cluster, path: Path, push: Push) -> Iterator[Problem]:
    if push.role:
        for key in sorted(push.model_fields_set & {"provider", "url", "project", "ref", "create_provider"}):
            alias = type(push).model_fields[key].alias or key
            message = "the existing role's own trust policy says who assumes it; remove the key, or role"
            yield Problem((*path, alias), message, ((*path, "role"),))
        return
    if push.provider is None:
        yield Problem(path, "says neither whose jobs assume a role that is made (provider), nor names a role; add one")
    elif push.project is None:
        yield Problem(path, "every project could push; add project")
    elif push.provider == "github" and push.project.count("/") != 1:
        yield Problem(
            (*path, "project"),
            "is no repository on GitHub; enter its owner and its name: owner/repository",
            ((*path, "provider"),),
        )
    if push.create_provider and (reason := TAG_VALUE.fault(push_issuer(push))):
        yield Problem((*path, "url"), f"the URL becomes a tag of IAM's OIDC provider: its value {reason}")
    issuer = cluster.service_account_issuer
    if push.provider and issuer and issuer.url == f"https://{push_issuer(push)}":
        message = "is the issuer of service-account tokens; give the cluster's own issuer another URL"
        yield Problem((*path, "url"), message, (("serviceAccountIssuer", "url"),))


def _check_pulled_images(cluster: Cluster) -> Iterator[Problem]:
    if not cluster.registry.only:
        return
    names = {repository.name for repository in cluster.registry.repositories}
    for group_path, group in node_groups(cluster):
        for position, image in enumerate(group.pre_pulled_images):
            match = _ECR_IMAGE.fullmatch(image)
            if match and not (match["region"] == cluster.region and match["repository"] in names):
                message = (
                    f"{image} is in none of registry.repositories, and registry.only lets nodes pull from no others; "
                    "add the repository there, with existing: true"
                )
                yield Problem((*group_path, "prePulledImages", position), message, (_ONLY, _REPOSITORIES))


PROBLEM_CHECKS: tuple[Check, ...] = (_check_repositories, _check_tags, _check_push, _check_pulled_images)
