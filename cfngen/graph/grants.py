"""What IAM policies allow, in few words: for each service, what may be done there, and to what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cfngen.graph.cluster_templates import ClusterTemplates, Resource
from cfngen.graph.grant_limits import GrantLimits, limits_of
from cfngen.graph.values import items, mapping
from cfngen.templates.expressions import references

# What an action does, by the beginning of its name; the first that fits counts, and anything else changes something.
_VERBS = (
    ("Describe", "read"),
    ("Get", "read"),
    ("List", "read"),
    ("BatchGet", "read"),
    ("BatchCheck", "read"),
    ("Head", "read"),
    ("Query", "read"),
    ("Scan", "read"),
    ("Decrypt", "decrypt"),
    ("Encrypt", "encrypt"),
    ("GenerateDataKey", "encrypt"),
    ("ReEncrypt", "encrypt"),
    ("CreateGrant", "create grants"),
    ("CreateTags", "tag"),
    ("AddTags", "tag"),
    ("TagResource", "tag"),
    ("Create", "create"),
    ("Run", "create"),
    ("Put", "write"),
    ("Open", "open"),
    ("*", "do everything"),
)
_ORDER = (
    "read", "decrypt", "encrypt", "create grants", "write", "create", "tag", "open", "change", "do everything",
)  # fmt: skip


@dataclass(frozen=True)
class Grant:
    """What one statement allows, or denies, in one service.

    Attributes:
        service: the service as policies name it, e.g. `ec2`.
        verbs: what may be done, e.g. `read`.
        limits: to what it is limited, in words.
        resources: logical ids of the resources of the templates that it is about, and the ARNs of others.
        logical_id: logical id of the resource that holds the policy.
    """

    service: str
    verbs: frozenset[str]
    is_denied: bool
    limits: GrantLimits
    resources: tuple[str, ...]
    logical_id: str


def grants(templates: ClusterTemplates, policy: object, logical_id: str) -> Iterator[Grant]:
    """Yield what the policy document of a resource allows and denies, a grant for each statement and service."""
    for statement in map(mapping, items(mapping(policy).get("Statement"))):
        in_templates = [
            referenced.name
            for referenced in references(statement.get("Resource"))
            if referenced.name in templates.resources
        ]
        others = [templates.text(value) for value in items(statement.get("Resource"))]
        resources = tuple(dict.fromkeys(in_templates + others))
        is_denied = statement.get("Effect") == "Deny"
        for service, verbs in _verbs_by_service(statement).items():
            limits = limits_of(templates, statement, service)
            yield Grant(service, frozenset(verbs), is_denied, limits, resources, logical_id)


def phrases(granted: Sequence[Grant], *, with_places: bool) -> tuple[str, ...]:
    """Return grants in words, joined where their limits are the same; what is allowed without limit is not repeated.

    Args:
        with_places: whether to say on which resources.
    """
    verbs_by_limits: dict[tuple[bool, str], frozenset[str]] = {}
    for grant in granted:
        key = (grant.is_denied, grant.limits.text(with_place=with_places))
        verbs_by_limits[key] = verbs_by_limits.get(key, frozenset()) | grant.verbs
    unlimited = verbs_by_limits.get((False, ""), frozenset())
    texts = []
    for (is_denied, limits_text), verbs in verbs_by_limits.items():
        shown = verbs - unlimited if limits_text and not is_denied else verbs
        if shown:
            verb_text = ", ".join(sorted(shown, key=_ORDER.index))
            texts.append(" ".join(filter(None, ("never" if is_denied else "", verb_text, limits_text))))
    return tuple(texts)


def policies_of(templates: ClusterTemplates, role: Resource) -> Iterator[tuple[object, str]]:
    """Yield the policy documents of a role, its own and managed ones, each with the logical id of its resource."""
    for policy in map(mapping, items(role.properties.get("Policies"))):
        yield policy.get("PolicyDocument"), role.logical_id
    attached = [templates.find(arn) for arn in items(role.properties.get("ManagedPolicyArns"))]
    for managed in templates.of_type("AWS::IAM::ManagedPolicy", "AWS::IAM::Policy"):
        roles = [templates.find(value) for value in items(managed.properties.get("Roles"))]
        if role in roles or managed in attached:
            yield managed.properties.get("PolicyDocument"), managed.logical_id


def _verbs_by_service(statement: Mapping[str, object]) -> dict[str, set[str]]:
    verbs: dict[str, set[str]] = {}
    for action in map(str, items(statement.get("Action"))):
        service, _, name = action.partition(":")
        verb = next((verb for beginning, verb in _VERBS if name.startswith(beginning)), "change")
        verbs.setdefault(service, set()).add(verb if name else "do everything")
    if "NotAction" in statement:
        verbs.setdefault("other services", set()).add("do everything")
    return verbs
