"""How AWS trusts the cluster's service accounts, in a picture: their roles, the OIDC provider, and its issuer.

The issuer of the tokens publishes its keys in two documents: in a bucket, which a CloudFront distribution may stand
before, or on a web server of one's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cfngen.graph.cluster_templates import ClusterTemplates, Resource
from cfngen.graph.parts import Part
from cfngen.graph.picture import Box
from cfngen.graph.values import items, mapping, text
from cfngen.templates.expressions import references

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
        part.box(Box(box_id, "service", "OIDC provider", ("vouches for service accounts",), parent, (box_id,)))
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
    """Draw a distribution, with the origin access controls by which it reads its buckets."""
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
    """Yield the logical ids to which a value refers, at any depth."""
    return (reference.name for reference in references(value))


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value, at any depth."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield text(value)
