"""IAM's policy simulator for roles, which moto 5.2 lacks.

Evaluated are the inline and the attached managed policies of a role, and its permissions boundary ("Policy evaluation
logic", IAM User Guide): an explicit denial prevails, and what no statement allows is denied. Conditions are evaluated
with the context of the request; a key that is missing in it meets only the operators that are met without a key
("IAM JSON policy elements: Condition operators"). Policies of organizations are not modelled.

An asterisk in a resource of the request is a character like any other: assumed, as the API reference does not say.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Mapping, Sequence

from moto.core.responses import ActionResult
from moto.iam.responses import IamResponse

from cfngen.sandbox.json_types import Expression, JsonDict, JsonObject
from cfngen.sandbox.moto_patches.registry import replaces
from cfngen.sandbox.moto_types import MotoBackend, MotoModel, MotoResponse
from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.rules import PendingCall, Refused, rule

Context = Mapping[str, list[str]]
"""Values of a request's context keys, by the key in lower case."""


@replaces(IamResponse, "simulate_principal_policy")
def _simulate_principal_policy(self: MotoResponse) -> ActionResult:
    role = _find_role(self.backend.get_roles(), self._get_param("PolicySourceArn"))
    context = {
        entry["ContextKeyName"].lower(): entry["ContextKeyValues"] for entry in self._get_param("ContextEntries") or []
    }
    resources = self._get_param("ResourceArns") or ["*"]
    results = [
        _result(self.backend, role, action, resource, context)
        for action in self._get_param("ActionNames")
        for resource in resources
    ]
    return ActionResult({"EvaluationResults": results, "IsTruncated": False})


@rule("iam", "SimulatePrincipalPolicy")
def check_role_exists(call: PendingCall) -> None:
    """Refuse to simulate the policies of a role that does not exist."""
    arn = call.get("PolicySourceArn", "")
    if _find_role(call.backend.get_roles(), arn) is None:
        raise Refused("NoSuchEntity", f"The role with name {arn.rpartition('/')[2]} cannot be found.")


def decision(policies: Sequence[JsonObject], action: str, resource: str, context: Context) -> str:
    """Return what policies say about a request: `allowed`, `explicitDeny` or `implicitDeny`.

    Args:
        action: e.g. `ec2:AttachVolume`.
        resource: ARN of the resource.
    """
    effects = {
        statement["Effect"]
        for policy in policies
        for statement in policy_documents.statements(policy)
        if _covers(statement, action, resource) and _are_met(statement.get("Condition", {}), context)
    }
    if "Deny" in effects:
        return "explicitDeny"
    return "allowed" if "Allow" in effects else "implicitDeny"


def _find_role(roles: list[MotoModel], arn: str) -> MotoModel | None:
    return next((role for role in roles if role.arn == arn), None)


def role_decision(region: str, role_arn: str, action: str, resource: str, context: Context) -> str:
    """Return what a role's policies and its permissions boundary say about a request, as `decision`.

    Returns:
        An empty text if there is no such role.
    """
    backend = policy_documents.iam_backend(region)
    role = _find_role(backend.get_roles(), role_arn)
    return _decision_for(backend, role, action, resource, context) if role else ""


def _decision_for(backend: MotoBackend, role: MotoModel, action: str, resource: str, context: Context) -> str:
    policies = [policy_documents.parse(text) for text in policy_texts(role)]
    evaluation = decision(policies, action, resource, context)
    boundary = backend.managed_policies.get(role.permissions_boundary_arn)
    if evaluation == "allowed" and boundary is not None:
        evaluation = decision([policy_documents.parse(_document(boundary))], action, resource, context)
    return evaluation


def _result(backend: MotoBackend, role: MotoModel, action: str, resource: str, context: Context) -> JsonDict:
    return {
        "EvalActionName": action,
        "EvalResourceName": resource,
        "EvalDecision": _decision_for(backend, role, action, resource, context),
        "MatchedStatements": [],
        "MissingContextValues": [],
    }


def policy_texts(role: MotoModel) -> Iterator[str]:
    """Yield the inline policies of a role, and its attached managed policies."""
    yield from role.policies.values()
    for policy in role.managed_policies.values():
        yield _document(policy)


def _document(policy: MotoModel) -> str:
    """Return the default version of a managed policy, the one that is in effect."""
    return next(str(version.document) for version in policy.versions if version.is_default_version)


def _covers(statement: JsonDict, action: str, resource: str) -> bool:
    actions = policy_documents.as_list(statement.get("Action", statement.get("NotAction")))
    resources = policy_documents.as_list(statement.get("Resource", statement.get("NotResource")))
    # Names of actions are not case-sensitive.
    names_action = any(_matches(action.lower(), pattern.lower()) for pattern in actions)
    names_resource = any(_matches(resource, pattern) for pattern in resources)
    return names_action != ("NotAction" in statement) and names_resource != ("NotResource" in statement)


def _matches(text: str, pattern: str) -> bool:
    """Return whether a text matches a pattern of a policy, in which `*` and `?` stand for other characters."""
    return fnmatch.fnmatchcase(text, str(pattern).replace("[", "[[]"))


def _are_met(condition: JsonDict, context: Context) -> bool:
    return all(
        _is_met(operator, policy_documents.as_list(values), context.get(key.lower()))
        for operator, values_by_key in condition.items()
        for key, values in values_by_key.items()
    )


_COMPARISONS: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, expected: value == expected,
    "StringEqualsIgnoreCase": lambda value, expected: value.lower() == expected.lower(),
    "StringLike": _matches,
    "ArnEquals": _matches,
    "ArnLike": _matches,
    "NumericLessThanEquals": lambda value, expected: float(value) <= float(expected),
    "Bool": lambda value, expected: value.lower() == expected.lower(),
}
"""For each operator, the function that compares a value of the request with a value of the policy."""


def _is_met(operator: str, expected: list[Expression], values: list[str] | None) -> bool:
    """Return whether the values of a context key meet an operator; `values` is None if the request lacks the key."""
    set_operator, _, name = operator.rpartition(":")
    if name == "Null":
        return str(expected[0]).lower() == str(values is None).lower()
    may_be_missing = name.endswith("IfExists")
    name = name.removesuffix("IfExists")
    is_negated = "Not" in name
    compare = _COMPARISONS.get(name.replace("Not", "", 1))
    if values is None:
        return may_be_missing or is_negated or set_operator == "ForAllValues"
    if compare is None:
        return False
    texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in expected]
    matches = [any(compare(value, text) for text in texts) is not is_negated for value in values]
    return any(matches) if set_operator == "ForAnyValue" else all(matches)
