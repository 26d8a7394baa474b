"""IAM's policy simulator for roles, which moto 5.2 lacks.

Evaluated are the inline and the attached managed policies of a role, and its permissions boundary
(`cfngen.sandbox.services.authorization`).
"""

from __future__ import annotations

from collections.abc import Iterator

from moto.core.responses import ActionResult
from moto.iam.responses import IamResponse

from cfngen.sandbox.moto_patches.registry import replaces
from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.authorization import Context, decision
from cfngen.sandbox.services.rules import NOT_MODELLED, PendingCall, Refused, rule
from cfngen.sandbox.untyped import JsonDict, JsonObject, MotoBackend, MotoModel, MotoResponse

PARAMETERS = ("PolicySourceArn", "ActionNames", "ResourceArns", "ContextEntries")


@replaces(IamResponse, "simulate_principal_policy")
def _simulate_principal_policy(self: MotoResponse) -> ActionResult:
    results = _results(self.backend, {name: self._get_param(name) for name in PARAMETERS})
    return ActionResult({"EvaluationResults": results, "IsTruncated": False})


@rule("iam", "SimulatePrincipalPolicy")
def check_simulation(call: PendingCall) -> None:
    """Refuse to simulate the policies of a role that does not exist, and policies that are not modelled."""
    arn = call.get("PolicySourceArn", "")
    if policy_documents.find_role(call.backend, arn) is None:
        raise Refused("NoSuchEntity", f"The role with name {arn.rpartition('/')[2]} cannot be found.")
    _results(call.backend, call.parameters)


def _results(backend: MotoBackend, parameters: JsonObject) -> list[JsonDict]:
    role = policy_documents.find_role(backend, parameters["PolicySourceArn"])
    context = {
        entry["ContextKeyName"].lower(): entry["ContextKeyValues"] for entry in parameters.get("ContextEntries") or []
    }
    return [
        {
            "EvalActionName": action,
            "EvalResourceName": resource,
            "EvalDecision": _decision_for(backend, role, action, resource, context),
            "MatchedStatements": [],
            "MissingContextValues": [],
        }
        for action in parameters["ActionNames"]
        for resource in parameters.get("ResourceArns") or ["*"]
    ]


def role_decision(region: str, role_arn: str, action: str, resource: str, context: Context) -> str:
    """Return what a role's policies and its permissions boundary say about a request, as `decision`.

    Returns:
        An empty text if there is no such role.
    """
    backend = policy_documents.iam_backend(region)
    role = policy_documents.find_role(backend, role_arn)
    return _decision_for(backend, role, action, resource, context) if role else ""


def _decision_for(backend: MotoBackend, role: MotoModel, action: str, resource: str, context: Context) -> str:
    policies = [policy_documents.parse(text) for text in policy_texts(role)]
    return decision(policies, action, resource, context, limits=_boundary(backend, role))


def _boundary(backend: MotoBackend, role: MotoModel) -> list[list[JsonObject]]:
    arn = role.permissions_boundary_arn
    if not arn:
        return []
    if arn not in backend.managed_policies:
        raise Refused(NOT_MODELLED, f"the emulator does not know the permissions boundary {arn}")
    return [[policy_documents.parse(_document(backend.managed_policies[arn]))]]


def policy_texts(role: MotoModel) -> Iterator[str]:
    """Yield the inline policies of a role, and its attached managed policies."""
    yield from role.policies.values()
    for policy in role.managed_policies.values():
        yield _document(policy)


def _document(policy: MotoModel) -> str:
    """Return the default version of a managed policy, the one that is in effect."""
    return next(str(version.document) for version in policy.versions if version.is_default_version)
