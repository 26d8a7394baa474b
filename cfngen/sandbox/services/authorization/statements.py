"""Which statements of a policy apply to a request.

IAM User Guide, "IAM JSON policy elements reference": Version, Effect, Action, NotAction, Resource, NotResource. Names
of actions are not case-sensitive; resources are.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.authorization import conditions, principals
from cfngen.sandbox.services.authorization.patterns import Context, UnresolvedVariableError, Variables, not_modelled
from cfngen.sandbox.services.authorization.principals import Caller, Granted
from cfngen.sandbox.untyped import JsonObject

_VERSION_WITH_VARIABLES = "2012-10-17"
_VERSIONS = (_VERSION_WITH_VARIABLES, "2008-10-17")
_TRUST_ACTIONS = "sts:"  # what trust policies are about, which name no resource


@dataclass(frozen=True)
class Request:
    """What IAM decides on: one action on one resource.

    An asterisk in the resource is a character like any other: assumed, as the API reference does not say.

    Attributes:
        action: e.g. `ec2:AttachVolume`.
        resource: its ARN; `*` for actions without one.
        context: the values of its context keys, by the key in lower case.
    """

    action: str
    resource: str
    context: Context = field(default_factory=dict)


def effects(document: JsonObject, request: Request) -> set[str]:
    """Return the effects of the statements of an identity's policy, a boundary or a session policy that apply.

    Raises:
        Refused: what would have to be decided on is not modelled
    """
    return {
        effect
        for effect, statement, variables in _statements(document, request)
        if _applies(effect, statement, request, variables)
    }


def effects_for(
    document: JsonObject, request: Request, caller: Caller, *, has_boundary: bool
) -> set[tuple[str, Granted]]:
    """Return the effects of the statements of a resource's policy that apply to a caller, and as whom.

    Raises:
        Refused: as `effects`; or NotPrincipal is used with Allow
    """
    applying: set[tuple[str, Granted]] = set()
    for effect, statement, variables in _statements(document, request):
        if "NotPrincipal" in statement:
            if effect == "Allow":
                raise not_modelled("NotPrincipal with Allow")
            is_excepted = principals.is_excepted(statement, caller, has_boundary=has_boundary)
            granted = set() if is_excepted else {Granted.CALLER}
        else:
            granted = principals.granted_to(statement, caller)
        if granted and _applies(effect, statement, request, variables):
            applying |= {(effect, kind) for kind in granted}
    return applying


def _statements(document: JsonObject, request: Request) -> Iterator[tuple[str, JsonObject, Variables]]:
    """Yield the statements with their effects, and what variables stand for in them."""
    version = document.get("Version", "2008-10-17")
    if version not in _VERSIONS:
        raise not_modelled(f"version {version} of the policy language")
    variables = Variables(request.context if version == _VERSION_WITH_VARIABLES else None)
    for statement in policy_documents.statements(document):
        effect = str(statement.get("Effect"))
        if effect not in ("Allow", "Deny"):
            raise not_modelled(f"a statement with the effect {effect}")
        yield effect, statement, variables


def _applies(effect: str, statement: JsonObject, request: Request, variables: Variables) -> bool:
    """Return whether a statement applies to a request, whoever makes it.

    A statement with a variable that has no value allows nothing. Whether it denies, the guide leaves open: "this might
    cause the entire statement to be invalid".
    """
    try:
        return (
            _names_action(statement, request.action)
            and _names_resource(statement, request, variables)
            and conditions.are_met(statement.get("Condition") or {}, request.context, variables)
        )
    except UnresolvedVariableError as error:
        if effect == "Deny":
            raise not_modelled(f"a denial with the variable {error}, which has no value") from None
        return False


def _names_action(statement: JsonObject, action: str) -> bool:
    if ("Action" in statement) == ("NotAction" in statement):
        raise not_modelled("a statement without one of Action and NotAction")
    patterns = policy_documents.as_list(statement.get("Action", statement.get("NotAction")))
    names_action = any(_is_action(action, str(pattern)) for pattern in patterns)
    return names_action != ("NotAction" in statement)


@functools.lru_cache(maxsize=65536)
def _is_action(action: str, pattern: str) -> bool:
    return Variables(None).matches(action.lower(), pattern.lower())


def _names_resource(statement: JsonObject, request: Request, variables: Variables) -> bool:
    if "Resource" not in statement and "NotResource" not in statement:
        if {"Principal", "NotPrincipal"} & set(statement) and request.action.lower().startswith(_TRUST_ACTIONS):
            return True
        raise not_modelled("a statement without Resource and NotResource")
    if "Resource" in statement and "NotResource" in statement:
        raise not_modelled("a statement with Resource and NotResource")
    patterns = policy_documents.as_list(statement.get("Resource", statement.get("NotResource")))
    names_resource = any(variables.matches_resource(request.resource, str(pattern)) for pattern in patterns)
    return names_resource != ("NotResource" in statement)
