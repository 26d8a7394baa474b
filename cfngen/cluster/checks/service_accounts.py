"""Checks of service accounts with IAM roles: the issuer of their tokens, the roles, and what uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.cluster.iam.service_accounts import ServiceAccount, component_accounts
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import aws_partition
from cfngen.cluster.naming.tag_keys import why_key_refused
from cfngen.cluster.paths import Path, dotted, lookup
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.service_accounts import ServiceAccountIssuer
from cfngen.text_limits import TAG_VALUE, same_but_for_case

_ISSUER: Path = ("serviceAccountIssuer",)
_ACCOUNTS: Path = ("iam", "serviceAccounts")
_ADDON_ROLES: Path = ("iam", "addonRoles")
_API_SERVER_ARGUMENTS: Path = ("apiServer", "extraArgs")
# A template has 500 resources at most ("CloudFormation quotas", November 2026). The IAM stack has some twenty for
# masters, nodes and components, and two for each node group with a role of its own.
_MAX_ROLES_OF_STACK = 470
# Tags of a role: 50 ("IAM and AWS STS quotas", IAM User Guide). cfngen and CloudFormation add up to ten.
_MAX_ROLE_TAGS = 40
# Tags of every role of a service account (`cfngen.templates.service_account_roles`).
_TAGS_OF_ROLES = frozenset({"kubernetes-namespace", "kubernetes-service-account"})
# Flags of kube-apiserver that say who issues tokens, for whom, and with which keys ("kube-apiserver", Kubernetes
# reference).
_ISSUER_FLAGS: Mapping[str, str] = {
    "service-account-issuer": "remove it, cfngen sets it from serviceAccountIssuer",
    "service-account-jwks-uri": "remove it, cfngen sets it from serviceAccountIssuer",
    "api-audiences": "remove it; without it tokens for each issuer of the cluster are accepted, which "
    "serviceAccountIssuer needs",
    "service-account-key-file": "remove it; masters publish the key of the cluster's certificate authorities",
    "service-account-signing-key-file": "remove it; masters publish the key of the cluster's certificate authorities",
}


def _check_needs_issuer(cluster: Cluster) -> Iterator[Problem]:
    issuer = cluster.service_account_issuer
    webhook: Path = ("addons", "podIdentityWebhook", "enabled")
    if issuer is None:
        reason = "needs an issuer whose tokens AWS accepts; add serviceAccountIssuer: {}, or remove the key"
        if cluster.iam.service_accounts:
            yield Problem(_ACCOUNTS, reason, related_paths=(_ISSUER,))
    else:
        reason = (
            "needs tokens that the issuer signs, and serviceAccountIssuer.signTokens is false; set that to true, or "
            "remove the key"
        )
    if issuer is None or not issuer.sign_tokens:
        related_paths = ((*_ISSUER, "signTokens") if issuer else _ISSUER,)
        if cluster.iam.addon_roles:
            yield Problem(_ADDON_ROLES, reason, related_paths=related_paths)
        if cluster.addons.pod_identity_webhook.enabled:
            yield Problem(webhook, reason, related_paths=related_paths)


def _check_cert_manager_zones(cluster: Cluster) -> Iterator[Problem]:
    cert_manager = cluster.addons.cert_manager
    path: Path = ("addons", "certManager", "zones")
    if not cert_manager.zones:
        return
    if not cert_manager.enabled:
        message = "certManager is disabled, so nothing writes records; enable it, or remove the key"
        yield Problem(path, message, related_paths=(("addons", "certManager", "enabled"),))
    elif not cluster.iam.addon_roles:
        instead = "set serviceAccountIssuer: {}" if cluster.service_account_issuer is None else "set it to true"
        message = f"cert-manager writes records with a role of its own, which iam.addonRoles makes; {instead}"
        yield Problem(path, message, related_paths=(_ADDON_ROLES, _ISSUER))


def _check_discovery(cluster: Cluster) -> Iterator[Problem]:
    issuer = cluster.service_account_issuer
    if issuer is None:
        return
    discovery: Path = (*_ISSUER, "discovery")
    if issuer.discovery == "url":
        if issuer.url is None:
            message = "says that your own web server has the documents; add serviceAccountIssuer.url"
            yield Problem(discovery, message, related_paths=((*_ISSUER, "url"),))
        return
    yield from _superfluous_keys(issuer)
    # "CloudFront endpoints and quotas", AWS General Reference.
    partition = aws_partition(cluster.region)
    if issuer.discovery == "cloudFront" and partition != "aws":
        message = (
            f"{cluster.region} is in the partition {partition}, whose accounts have no CloudFront that reads their "
            "buckets; use bucket or url"
        )
        yield Problem(discovery, message, related_paths=(("region",),))


def _superfluous_keys(issuer: ServiceAccountIssuer) -> Iterator[Problem]:
    for key, value in (("url", issuer.url), ("bucket", issuer.bucket)):
        if value is not None:
            message = (
                f"is for discovery: url, and discovery is {issuer.discovery}, whose URL AWS gives; remove the key, or "
                "set discovery to url"
            )
            yield Problem((*_ISSUER, key), message, related_paths=((*_ISSUER, "discovery"),))


def _check_accounts(cluster: Cluster) -> Iterator[Problem]:
    first_index_by_account: dict[ServiceAccount, int] = {}
    components = frozenset(component_accounts(cluster))
    for index, entry in enumerate(cluster.iam.service_accounts):
        account = ServiceAccount(entry.namespace, entry.name)
        path: Path = (*_ACCOUNTS, index)
        first_index = first_index_by_account.setdefault(account, index)
        if first_index != index:
            message = (
                f"{entry.namespace}/{entry.name} is also {dotted((*_ACCOUNTS, first_index))}, and a service account "
                "has one role; put the permissions into one entry"
            )
            yield Problem(path, message, related_paths=((*_ACCOUNTS, first_index),))
        elif account in components:
            message = (
                f"{entry.namespace}/{entry.name} is the service account of a component that cfngen installs, whose "
                "role iam.addonRoles makes; remove the entry, or give your own program another service account"
            )
            yield Problem(path, message, related_paths=(_ADDON_ROLES, ("addons",)))


def _check_number(cluster: Cluster) -> Iterator[Problem]:
    made = sum(1 for entry in cluster.iam.service_accounts if entry.role is None)
    max_roles = _MAX_ROLES_OF_STACK - 2 * len(cluster.node_groups)
    if made > max_roles:
        message = (
            f"{made} roles are too many for a stack, which has room for {max_roles} of them; let several programs of a "
            "namespace use one service account, or make roles yourself and name them in role"
        )
        yield Problem(_ACCOUNTS, message)


def _check_existing_roles(cluster: Cluster) -> Iterator[Problem]:
    for index, entry in enumerate(cluster.iam.service_accounts):
        if entry.role is None:
            continue
        path: Path = (*_ACCOUNTS, index)
        for key, value in (
            ("additionalPolicies", entry.additional_policies),
            ("policyStatements", entry.policy_statements),
            ("permissionsBoundary", entry.permissions_boundary),
            ("tags", entry.tags),
        ):
            if value:
                message = (
                    "role names an existing role, which cfngen leaves as it is; change the role yourself and remove "
                    "the key, or remove role"
                )
                yield Problem((*path, key), message, related_paths=((*path, "role"),))


def _check_tags(cluster: Cluster) -> Iterator[Problem]:
    for index, entry in enumerate(cluster.iam.service_accounts):
        path: Path = (*_ACCOUNTS, index, "tags")
        count = len({**cluster.tags, **entry.tags})
        if entry.tags and count > _MAX_ROLE_TAGS:
            message = (
                f"{count} tags with those of the cluster are too many; a role has 50, and cfngen leaves "
                f"{_MAX_ROLE_TAGS} of them to you"
            )
            yield Problem(path, message)
        for key, value in entry.tags.items():
            key_problem, value_problem = _why_role_key_refused(key), TAG_VALUE.fault(value)
            if key_problem:
                yield Problem((*path, key), key_problem)
            elif value_problem:
                yield Problem((*path, key), f"the value {value_problem}")
        cluster_keys = [key for key in cluster.tags if key not in entry.tags]
        for earlier, key in same_but_for_case([*cluster_keys, *entry.tags]):
            earlier_path = ("tags", earlier) if earlier in cluster_keys else (*path, earlier)
            if key in entry.tags:
                message = (
                    f"differs from {dotted(earlier_path)} in upper and lower case only, and IAM takes both for one; "
                    "write both alike, or remove one"
                )
                yield Problem((*path, key), message, related_paths=(earlier_path,))


def _why_role_key_refused(key: str) -> str:
    """Return why a role may not have a tag of this key, or an empty string; IAM ignores case in keys."""
    if key.casefold() in _TAGS_OF_ROLES:
        return "cfngen sets this tag itself, by which IAM conditions recognize the service account; remove it"
    return why_key_refused(key)


def _check_api_server_flags(cluster: Cluster) -> Iterator[Problem]:
    arguments = lookup(cluster.kubernetes.cluster_configuration, _API_SERVER_ARGUMENTS)
    if cluster.service_account_issuer is None or not isinstance(arguments, list):
        return
    for index, argument in enumerate(arguments):
        name = argument.get("name") if isinstance(argument, Mapping) else None
        if isinstance(name, str) and name in _ISSUER_FLAGS:
            path: Path = ("kubernetes", "clusterConfiguration", *_API_SERVER_ARGUMENTS, index, "name")
            message = f"--{name} goes with the issuer of tokens; {_ISSUER_FLAGS[name]}"
            yield Problem(path, message, related_paths=(_ISSUER,))


def _warn_of_default_accounts(cluster: Cluster) -> Iterator[Problem]:
    for index, entry in enumerate(cluster.iam.service_accounts):
        if entry.name == "default":
            message = (
                f"every pod in {entry.namespace} that names no service account has this one, and so the role; create a "
                "service account for the pods that need it"
            )
            yield Problem((*_ACCOUNTS, index, "name"), message)


def _warn_of_role_without_permissions(cluster: Cluster) -> Iterator[Problem]:
    for index, entry in enumerate(cluster.iam.service_accounts):
        if not (entry.role or entry.additional_policies or entry.policy_statements or entry.tags):
            message = (
                "the role allows nothing; add policyStatements or additionalPolicies, unless policies of the resources "
                "themselves name it"
            )
            yield Problem((*_ACCOUNTS, index), message)


PROBLEM_CHECKS = (
    _check_needs_issuer,
    _check_cert_manager_zones,
    _check_discovery,
    _check_accounts,
    _check_number,
    _check_existing_roles,
    _check_tags,
    _check_api_server_flags,
)
WARNING_CHECKS = (_warn_of_default_accounts, _warn_of_role_without_permissions)
