"""Users with policies of IAM, which the served API holds them to; the emulator's own calls are always allowed.

moto can enforce identity policies, but only for all callers at once, including the emulator's own handlers. So the
emulator's evaluator decides here (`cfngen.sandbox.services.authorization`), on what a call asks for
(`authorized_requests`), for the users that `enforcing` creates and for credentials that STS has given for a role.

Calls that CloudFormation makes on behalf of the caller (creating a VPC, say) are not checked, as the emulator makes
them with its own credentials; `test_service_role_suffices` decides on them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import authorized_requests
import service_errors
from moto.backends import get_backend

from cfngen.sandbox.api.requests import Call
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.services.authorization import Request, decision
from cfngen.sandbox.services.policy_simulation import role_decision

Policy = Mapping[str, Any]

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Credentials:
    """The access key of a user."""

    access_key: str
    secret_key: str
    user: str


@dataclass
class Permissions:
    """The permissions of users; callers without an entry may do everything.

    Attributes:
        policies: users and their policies, by access key.
        owner: returns the ARN of the stack of a change set, given the change set's ARN and region; `serving` sets it.
    """

    policies: dict[str, tuple[Credentials, Sequence[Policy]]] = field(default_factory=dict)
    owner: Callable[[str, str], str] = lambda change_set, region: ""

    def check(self, call: Call) -> None:
        """Check that the caller's policies allow a call.

        Raises:
            Refusal: no policy of the caller allows it, or one denies it
        """
        if call.action == "sts:GetCallerIdentity":  # always allowed
            return
        session = _session(call.key)
        if call.key not in self.policies and session is None:
            return
        for request in requests_of(call):
            resource = request.resource
            if ":changeSet/" in resource:  # the resource of the action is the change set's stack
                resource = self.owner(resource, call.region) or resource
            if call.key in self.policies:
                credentials, policies = self.policies[call.key]
                caller, decided = credentials.user, decision(policies, request.action, resource, request.context)
            else:
                decided = role_decision("", session.role_arn, request.action, resource, request.context)
                caller = session.arn
            if decided != "allowed":
                raise service_errors.denied(call, request.action, caller, resource)

    @contextlib.contextmanager
    def enforcing(self, *policies: Policy, name: str = "") -> Iterator[Credentials]:
        """Create a user with these policies and no others; yield the credentials for a session.

        Args:
            policies: policy documents.
            name: of the user.
        """
        name = name or f"operator-{next(_numbers)}"
        iam = client("iam", "us-east-1")
        user = iam.create_user(UserName=name)["User"]["Arn"]
        for number, policy in enumerate(policies):
            iam.put_user_policy(UserName=name, PolicyName=f"policy-{number}", PolicyDocument=json.dumps(policy))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        credentials = Credentials(key["AccessKeyId"], key["SecretAccessKey"], user)
        self.policies[credentials.access_key] = (credentials, policies)
        try:
            yield credentials
        finally:
            self.policies[credentials.access_key] = (credentials, ())


def _session(access_key: str) -> Any:
    """Return moto's session of a role that has an access key; None if the key is another's."""
    sessions = get_backend("sts")[authorized_requests.ACCOUNT]["aws"].assumed_roles
    return next((session for session in sessions if session.access_key_id == access_key), None)


def requests_of(call: Call) -> Iterator[Request]:
    """Yield what IAM decides on for a call of a client."""
    headers = {"IfNoneMatch": call.headers.get("if-none-match"), "CopySource": call.headers.get("x-amz-copy-source")}
    sent = {name: value for name, value in headers.items() if value}
    yield from authorized_requests.requests(call.service, call.operation, {**sent, **call.parameters}, call.region)
