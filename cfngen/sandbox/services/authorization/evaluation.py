"""How all policies that apply to a request are put together.

- IAM User Guide, "Policy evaluation for requests within a single account", and "How AWS enforcement code logic
  evaluates requests to allow or deny access": an explicit denial prevails; what a resource's policy grants to the user
  or the session itself is final; what it grants to a role is limited by the boundary and the session policies; for the
  account, the identity's own policies decide.
- Same pages: for most resources either policy suffices within an account, as for buckets and secrets; the policy of a
  key and the trust policy of a role have to allow in any case, to the caller or to the account ("Key policies in AWS
  KMS", AWS KMS Developer Guide).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cfngen.sandbox.services.authorization.patterns import Context, not_modelled
from cfngen.sandbox.services.authorization.principals import Caller, Granted
from cfngen.sandbox.services.authorization.statements import Request, effects, effects_for
from cfngen.sandbox.untyped import JsonObject

ALLOWED, EXPLICIT_DENY, IMPLICIT_DENY = "allowed", "explicitDeny", "implicitDeny"
_EVERYTHING = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
_ASSUMING = ("sts:assumerole", "sts:assumerolewithwebidentity", "sts:assumerolewithsaml")


@dataclass(frozen=True)
class Policies:
    """The policies that apply to a request.

    Attributes:
        identity: of the user or the role.
        boundary: the permissions boundary of the user or the role; None without one.
        session: those that were passed when the session began; None if none were.
        resource: of the bucket, key or secret, or the trust policy of the role; None if it has none.
    """

    identity: Sequence[JsonObject] = ()
    boundary: JsonObject | None = None
    session: Sequence[JsonObject] | None = None
    resource: JsonObject | None = None


def decision(
    documents: Sequence[JsonObject],
    action: str,
    resource: str,
    context: Context,
    *,
    limits: Sequence[Sequence[JsonObject]] = (),
) -> str:
    """Return what policies of an identity say about a request: `allowed`, `explicitDeny` or `implicitDeny`.

    Args:
        action: e.g. `ec2:AttachVolume`.
        limits: a permissions boundary and session policies, each of which has to allow as well.

    Raises:
        Refused: what would have to be decided on is not modelled
    """
    request = Request(action, resource, context)
    effects_of_layers = [
        {effect for document in layer for effect in effects(document, request)} for layer in (documents, *limits)
    ]
    if any("Deny" in layer_effects for layer_effects in effects_of_layers):
        return EXPLICIT_DENY
    return ALLOWED if all("Allow" in layer_effects for layer_effects in effects_of_layers) else IMPLICIT_DENY


def authorize(request: Request, caller: Caller, policies: Policies) -> str:
    """Return the decision on a request of a caller within the resource's account, as `decision`.

    Raises:
        Refused: what would have to be decided on is not modelled
    """
    _check_is_modelled(request, caller, policies)
    limits = _limits(policies)
    by_identity = decision(policies.identity, request.action, request.resource, request.context, limits=limits)
    document, has_boundary = policies.resource or {}, policies.boundary is not None
    by_resource = effects_for(document, request, caller, has_boundary=has_boundary)
    if by_identity == EXPLICIT_DENY or any(effect == "Deny" for effect, _ in by_resource):
        return EXPLICIT_DENY
    granted = {kind for _, kind in by_resource}
    if Granted.CALLER in granted or (by_identity == ALLOWED and not _needs_resource_policy(request)):
        return ALLOWED
    by_limits = decision([_EVERYTHING], request.action, request.resource, request.context, limits=limits)
    if Granted.EVERYBODY in granted and by_limits != ALLOWED:
        raise not_modelled("a grant to everybody, beyond the boundary or the session policies of the caller")
    if granted & {Granted.ROLE, Granted.EVERYBODY} and by_limits == ALLOWED:
        return ALLOWED
    return ALLOWED if Granted.ACCOUNT in granted and by_identity == ALLOWED else IMPLICIT_DENY


def _limits(policies: Policies) -> list[Sequence[JsonObject]]:
    """Return what limits the identity's policies, each of which has to allow."""
    boundary: list[Sequence[JsonObject]] = [] if policies.boundary is None else [[policies.boundary]]
    return boundary if policies.session is None else [*boundary, policies.session]


def _needs_resource_policy(request: Request) -> bool:
    action = request.action.lower()
    return action in _ASSUMING or (action.startswith("kms:") and ":key/" in request.resource)


def _check_is_modelled(request: Request, caller: Caller, policies: Policies) -> None:
    if _needs_resource_policy(request) and policies.resource is None:
        raise not_modelled(f"{request.action} on {request.resource} without its policy")
    if caller.arn.endswith(":root") or ":federated-user/" in caller.arn:
        raise not_modelled(f"requests of {caller.arn}")
    owner = request.resource.split(":")[4] if request.resource.startswith("arn:") else ""
    if caller.account and owner.isdigit() and owner != caller.account:
        raise not_modelled(f"a request for {request.resource} from account {caller.account}")
