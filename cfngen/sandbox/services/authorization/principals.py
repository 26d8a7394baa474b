"""Callers, and which of the principals of a resource's policy they are.

IAM User Guide: "AWS JSON policy elements: Principal" and "AWS JSON policy elements: NotPrincipal".
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.authorization.patterns import not_modelled
from cfngen.sandbox.services.policy_documents import Principal
from cfngen.sandbox.untyped import JsonObject

_ACCOUNT = re.compile(r"\d{12}")
_PRINCIPAL_ARN = re.compile(r"arn:[^:*?]+:(iam|sts)::\d{12}:[^*?]+")


class Granted(enum.Enum):
    """To whom a statement of a resource's policy grants something: the caller, or whom the caller belongs to."""

    CALLER = enum.auto()  # the user, the session of a role, the service, the bearer of a token
    ROLE = enum.auto()
    ACCOUNT = enum.auto()
    EVERYBODY = enum.auto()


@dataclass(frozen=True)
class Caller:
    """Who makes a request.

    Attributes:
        arn: of the user, or of the session of a role; empty for a session whose name nobody knows, and for others.
        role: ARN of the role of a session.
        service: name of a service as a principal, e.g. `cloudfront.amazonaws.com`.
        provider: ARN of the identity provider whose token the caller bears.
    """

    arn: str = ""
    role: str = ""
    service: str = ""
    provider: str = ""

    @property
    def account(self) -> str:
        """The account of a user or a role; empty for other callers."""
        return (self.arn or self.role).split(":")[4] if self.arn or self.role else ""

    def names(self) -> dict[Granted, set[Principal]]:
        """Return how policies name the caller, and whom the caller belongs to."""
        account = self.account
        partition = (self.arn or self.role).split(":")[1] if account else ""
        names: dict[Granted, set[Principal]] = {
            Granted.CALLER: {("AWS", self.arn), ("Service", self.service), ("Federated", self.provider)},
            Granted.ROLE: {("AWS", self.role)},
            Granted.ACCOUNT: {("AWS", account), ("AWS", f"arn:{partition}:iam::{account}:root")} if account else set(),
            Granted.EVERYBODY: {("*", "*"), ("AWS", "*")},
        }
        return {kind: {name for name in principals if name[1]} for kind, principals in names.items()}


ANONYMOUS = Caller()
"""Somebody without credentials."""


def granted_to(statement: JsonObject, caller: Caller) -> set[Granted]:
    """Return as whom a statement with a Principal names a caller; empty if it names others.

    Raises:
        Refused: a principal is neither `*`, an account, a service, a provider nor an ARN without wildcards
    """
    named = set(_principals(statement))
    return {kind for kind, names in caller.names().items() if names & named}


def is_excepted(statement: JsonObject, caller: Caller, *, has_boundary: bool) -> bool:
    """Return whether a denial with a NotPrincipal spares a caller.

    Whoever has a permissions boundary is not spared. A user has to be named with the account; the session of a role
    with the role and the account.

    Raises:
        Refused: as `granted_to`
    """
    named = set(_principals(statement))
    own = [names for kind, names in caller.names().items() if kind is not Granted.EVERYBODY and names]
    return bool(own) and not has_boundary and all(names & named for names in own)


def _principals(statement: JsonObject) -> list[Principal]:
    principals = policy_documents.principals(statement)
    for kind, name in principals:
        is_known = name == "*" or _ACCOUNT.fullmatch(name) or _PRINCIPAL_ARN.fullmatch(name)
        if (kind == "AWS" and not is_known) or (kind != "AWS" and "*" in name and (kind, name) != ("*", "*")):
            raise not_modelled(f"{name} as a principal")
    return principals
