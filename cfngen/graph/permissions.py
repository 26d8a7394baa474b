"""Roles in a picture: who has them, what they allow in each service, and which buckets, secrets and keys they reach.

Roles of pods are trusted by way of an OIDC provider. The issuer of the tokens publishes its keys in two documents: in
a bucket, which a CloudFront distribution may stand before, or on a web server of one's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cfngen.cluster.naming.identity_ids import RegistryId
from cfngen.graph.cluster_templates import ClusterTemplates, Resource
from cfngen.graph.grants import Grant, grants, phrases, policies_of
from cfngen.graph.instances import InstanceGroup, instance_groups, names_of_groups
from cfngen.graph.network import REGION
from cfngen.graph.picture import Box, Part
from cfngen.graph.values import items, mapping, text, words
from cfngen.templates.expressions import references

ACCOUNT = "account"


def draw_permissions(templates: ClusterTemplates) -> Part:
    """Draw the roles, and what holds data: buckets, secrets, keys."""
    part = Part()
    part.box(Box(ACCOUNT, "account", "IAM"))
    _draw_stores(templates, part)
    for role in templates.of_type("AWS::IAM::Role"):
        users = _users(templates, role)
        part.box(Box(role.logical_id, "role", _role_title(role), users, ACCOUNT, (role.logical_id,)))
        _draw_grants(templates, part, role)
        for arn in items(role.properties.get("ManagedPolicyArns")):
            if templates.find(arn) is None:
                name = templates.text(arn).rpartition("/")[2]
                box_id, role_id = f"policy:{role.logical_id}:{name}", role.logical_id
                part.box(Box(box_id, "permission", name, ("existing policy",), role_id, (role_id,)))
        boundary = templates.text(role.properties.get("PermissionsBoundary")).rpartition("/")[2]
        if boundary:
            part.box(Box(role.logical_id, "role", "", (f"within the boundary {boundary}",)))
    draw_issuer(templates, part, ACCOUNT)
    for profile in templates.of_type("AWS::IAM::InstanceProfile"):
        _draw_profile(templates, part, profile)
    _draw_existing_profiles(templates, part)
    return part


def _role_title(role: Resource) -> str:
    """Return the title of a role: the service account whose pods have it, or else which instances or what has it."""
    accounts = service_accounts(role)
    if len(accounts) == 1:
        return accounts[0]
    if role.logical_id in ("MasterRole", "NodeRole"):
        return f"role of {words(role.logical_id.removesuffix('Role'))}s"
    return f"role of {words(role.logical_id.removesuffix('Role'))}"


def _draw_stores(templates: ClusterTemplates, part: Part) -> None:
    for bucket in templates.of_type("AWS::S3::Bucket"):
        ids = [bucket.logical_id]
        ids += [
            policy.logical_id
            for policy in templates.of_type("AWS::S3::BucketPolicy")
            if templates.find(policy.properties.get("Bucket")) is bucket
        ]
        part.box(Box(bucket.logical_id, "bucket", words(bucket.logical_id), ("S3 bucket",), REGION, tuple(ids)))
    for repository in templates.of_type("AWS::ECR::Repository"):
        name, box_id = templates.text(repository.properties.get("RepositoryName")), repository.logical_id
        part.box(Box(box_id, "bucket", name, ("repository for images",), REGION, (box_id,)))
    for secret in templates.of_type("AWS::SecretsManager::Secret"):
        part.box(Box(secret.logical_id, "secret", words(secret.logical_id), ("secret",), REGION, (secret.logical_id,)))
    for key in templates.of_type("AWS::KMS::Key"):
        part.box(Box(key.logical_id, "key", words(key.logical_id), ("KMS key",), REGION, (key.logical_id,)))
    for pair in templates.of_type("AWS::EC2::KeyPair"):
        part.box(Box(pair.logical_id, "key", "SSH key pair", (), REGION, (pair.logical_id,)))
    for secret in templates.of_type("AWS::SecretsManager::Secret"):
        value = secret.properties.get("KmsKeyId")
        if value is None:
            continue
        key_id = templates.referenced(value) or f"key:{templates.text(value)}"
        if key_id not in part.boxes:
            name = templates.text(value).rpartition(":")[2]
            part.box(Box(key_id, "key", "existing key", (name,), REGION))
        part.arrow(secret.logical_id, key_id, "use", "encrypted with", [secret.logical_id])


def _draw_grants(templates: ClusterTemplates, part: Part, role: Resource) -> None:
    """Draw what a role may do: a box for each service, with an arrow to each bucket, secret and key."""
    by_service: dict[str, list[Grant]] = {}
    for policy, logical_id in policies_of(templates, role):
        for grant in grants(templates, policy, logical_id):
            by_service.setdefault(grant.service, []).append(grant)
    for service, granted in by_service.items():
        general: list[Grant] = []
        by_store: dict[str, list[Grant]] = {}
        for grant in granted:
            stores = [box_id for name in grant.resources for box_id in (name, f"key:{name}") if box_id in part.boxes]
            for store in stores:
                by_store.setdefault(store, []).append(grant)
            if not stores:
                general.append(grant)
        box_id = f"{role.logical_id}:{service}"
        ids = tuple(dict.fromkeys(grant.logical_id for grant in granted))
        part.box(Box(box_id, "permission", service, phrases(general, with_places=True), role.logical_id, ids))
        # What an arrow says stands at the arrow only.
        for store, granted_there in by_store.items():
            label = "; ".join(phrases(granted_there, with_places=False))
            part.arrow(box_id, store, "permission", label, [grant.logical_id for grant in granted_there])


def _users(templates: ClusterTemplates, role: Resource) -> tuple[str, ...]:
    profiles = [
        profile.logical_id
        for profile in templates.of_type("AWS::IAM::InstanceProfile")
        if any(templates.find(value) is role for value in items(profile.properties.get("Roles")))
    ]
    groups = [group for group in instance_groups(templates) if templates.referenced(group.instance_profile) in profiles]
    flow_logs = [
        "flow log"
        for flow_log in templates.of_type("AWS::EC2::FlowLog")
        if templates.find(flow_log.properties.get("DeliverLogsPermissionArn")) is role
    ]
    accounts = service_accounts(role)
    pods = ["role of pods", *(accounts if len(accounts) > 1 else [])] if accounts else []
    return (*names_of_groups(groups), *flow_logs, *pods)


def _draw_profile(templates: ClusterTemplates, part: Part, profile: Resource) -> None:
    """Add an instance profile to the box of its role; draw the role if it exists outside of the templates."""
    for value in items(profile.properties.get("Roles")):
        role = templates.find(value)
        if role:
            part.box(Box(role.logical_id, "role", "", (), logical_ids=(profile.logical_id,)))
            continue
        name = templates.text(value)
        groups = [
            group
            for group in instance_groups(templates)
            if templates.referenced(group.instance_profile) == profile.logical_id
        ]
        lines = (name, *names_of_groups(groups))
        part.box(Box(f"role:{name}", "role", "existing role", lines, ACCOUNT, (profile.logical_id,)))


def _draw_existing_profiles(templates: ClusterTemplates, part: Part) -> None:
    groups_by_name: dict[str, list[InstanceGroup]] = {}
    for group in instance_groups(templates):
        if group.instance_profile is not None and templates.find(group.instance_profile) is None:
            name = templates.text(group.instance_profile).rpartition("/")[2]
            groups_by_name.setdefault(name, []).append(group)
    for name, groups in groups_by_name.items():
        lines = (name, *names_of_groups(groups))
        part.box(Box(f"instance-profile:{name}", "role", "existing instance profile", lines, ACCOUNT))


# The `sub` of a service account's token, which a role's trust policy names.
# https://kubernetes.io/docs/reference/access-authn-authz/authentication/#service-account-tokens
_SUBJECT = re.compile(r'system:serviceaccount:([^:"]+):([^:"]+)')


def service_accounts(role: Resource) -> list[str]:
    """Return the service accounts whose pods have a role, e.g. `shop/web`; none for a role of something else."""
    subjects = _SUBJECT.findall("\n".join(_texts(role.properties.get("AssumeRolePolicyDocument"))))
    return list(dict.fromkeys(f"{namespace}/{name}" for namespace, name in subjects))


def draw_issuer(templates: ClusterTemplates, part: Part, parent: str) -> None:
    """Draw the OIDC provider with the roles that trust it, and where AWS reads the keys of the tokens.

    Args:
        part: where roles and buckets are drawn already.
        parent: id of the box in which the OIDC provider is drawn.
    """
    for distribution in templates.of_type("AWS::CloudFront::Distribution"):
        _draw_distribution(templates, part, distribution)
    for provider in templates.of_type("AWS::IAM::OIDCProvider"):
        box_id = provider.logical_id
        bearers = "jobs that push images" if RegistryId.parse(box_id) else "service accounts"
        part.box(Box(box_id, "service", "OIDC provider", (f"vouches for {bearers}",), parent, (box_id,)))
        url = provider.properties.get("Url")
        target = next((name for name in _referenced(url) if name in part.boxes), "")
        if not target:
            issuer = templates.text(url).removeprefix("https://")
            target = part.box(Box(f"issuer:{issuer}", "source", "issuer's web server", (issuer,))).id
        part.arrow(box_id, target, "use", "AWS STS reads keys", [box_id])
        if target in templates.resources and templates.resources[target].type == "AWS::S3::Bucket":
            part.box(Box(target, "bucket", "", ("issuer's two documents, which anyone may read",)))
        for role in templates.of_type("AWS::IAM::Role"):
            if box_id in _referenced(role.properties.get("AssumeRolePolicyDocument")):
                part.arrow(role.logical_id, box_id, "use", "trusts", [role.logical_id])


def _draw_distribution(templates: ClusterTemplates, part: Part, distribution: Resource) -> None:
    """Draw a distribution, with the origin access controls that let it read its buckets."""
    configuration = distribution.properties.get("DistributionConfig")
    names = list(_referenced(configuration))
    controls = [
        control.logical_id
        for control in templates.of_type("AWS::CloudFront::OriginAccessControl")
        if control.logical_id in names
    ]
    box_id = distribution.logical_id
    lines = ("publishes the issuer's documents",)
    part.box(Box(box_id, "service", "CloudFront distribution", lines, None, (box_id, *controls)))
    for origin in map(mapping, items(mapping(configuration).get("Origins"))):
        for name in _referenced(origin.get("DomainName")):
            if name in part.boxes:
                part.box(Box(name, "bucket", "", ("issuer's two documents",)))
                part.arrow(box_id, name, "use", "reads by origin access control" if controls else "reads", controls)


def _referenced(value: object) -> Iterator[str]:
    return (reference.name for reference in references(value))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield text(value)
