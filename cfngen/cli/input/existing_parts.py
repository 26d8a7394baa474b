"""What a cluster file names as existing, as data for `cfngen.sandbox.existing_parts`, which makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cfngen.cluster.checks.access import arns_of_services
from cfngen.cluster.checks.sections import all_instances, ingress_rules, source_prefix_lists
from cfngen.cluster.iam.existing_roles import account_of_existing_roles
from cfngen.cluster.iam.push_roles import created_providers, made_push_roles, push_audience, push_issuer
from cfngen.cluster.network.existing_parts import existing_groups
from cfngen.cluster.security_groups.needed_rules import needed_rules
from cfngen.deploy.aws.tags import cluster_tag
from cfngen.permissions.grants import grants_of_existing_roles, scope_of
from cfngen.permissions.trust import trust_policy

if TYPE_CHECKING:
    from cfngen.cluster.model import Cluster


def existing_parts(cluster: Cluster, stack: str) -> Mapping[str, Any]:
    """Return what a cluster file names as existing, with what the cluster needs of security groups and roles."""
    flow_logs = cluster.network.flow_logs
    roles: dict[str, Any] = {account.role: {} for account in cluster.iam.service_accounts if account.role}
    roles |= {push.role: {} for push in cluster.registry.push if push.role}
    profiles: dict[str, str] = {}
    scope = scope_of(cluster, stack=stack, account=account_of_existing_roles(cluster))
    for _, existing, grant in grants_of_existing_roles(cluster, scope):
        role = roles.setdefault(existing.role, {"policies": {}})
        role["trust"] = trust_policy(cluster.region)
        role["policies"] |= {policy.name: policy.document for policy in grant.policies}
        if existing.instance_profile:
            profiles[existing.instance_profile] = existing.role
    return {
        "network": cluster.network.model_dump(mode="json", by_alias=True),
        "securityGroups": _security_groups(cluster),
        "roles": roles,
        "instanceProfiles": profiles,
        "boundaries": list(filter(None, [cluster.iam.permissions_boundary])),
        "keys": sorted({arn for _, arn in arns_of_services(cluster) if arn.split(":")[2] == "kms"}),
        "topics": list(filter(None, [cluster.notifications.topic])),
        "repositories": [repository.name for repository in cluster.registry.repositories if repository.existing],
        "providers": _existing_providers(cluster),
        "prefixLists": {entry.id: entry.max_entries for _, entry in source_prefix_lists(cluster)},
        "buckets": sorted({*filter(None, [cluster.logging.bucket, flow_logs.bucket if flow_logs else None])}),
    }


def _existing_providers(cluster: Cluster) -> dict[str, str]:
    """Return the audience of each OIDC provider that jobs need and the stack does not make, by its URL."""
    created = created_providers(cluster)
    return {
        f"https://{push_issuer(push)}": push_audience(push)
        for _, push in made_push_roles(cluster)
        if push_issuer(push) not in created
    }


def _security_groups(cluster: Cluster) -> dict[str, Any]:
    """Return tags and rules of each security group by its id, or by the reference in place of it."""
    group_ids = [*existing_groups(cluster).values()]
    group_ids += [id_ for _, instances in all_instances(cluster) for id_ in instances.additional_security_groups]
    group_ids += [id_ for _, rule in ingress_rules(cluster) for id_ in rule.security_groups]
    groups: dict[str, Any] = {group_id: {"tags": {}, "ingress": [], "egress": []} for group_id in group_ids}
    if nodes_group := cluster.network.security_groups.nodes:
        groups[nodes_group]["tags"] = {cluster_tag(cluster.name): "shared"}
    for rule in needed_rules(cluster):
        if not rule.is_in_new_groups:
            groups[rule.group][rule.direction].append(rule.permission)
    return groups
