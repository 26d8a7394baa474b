"""Who may use a sandbox: its starter, who can read the token in the state file, and roles that were assumed in it.

The loopback address is open to every user of the machine, and to every web page in a browser on it.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import TYPE_CHECKING

from moto.core.request import Request
from moto.sts.models import sts_backends

from cfngen.sandbox.api.requests import Refusal, parse_call, render

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_REFUSAL = Refusal(
    "InvalidClientTokenId",
    "the sandbox answers only to the token of who started it; `cfngen sandbox env` prints it for other programs",
    status=403,
)


def has_token(environ: WSGIEnvironment, token: str) -> bool:
    """Return whether a request of the control API bears the sandbox's token."""
    return hmac.compare_digest(environ.get("HTTP_AUTHORIZATION", "").encode(), f"Bearer {token}".encode())


def is_signed_in(environ: WSGIEnvironment, token: str) -> bool:
    """Return whether the session token of a request to a service is the sandbox's, or one that its STS has given."""
    session_token = environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")
    if hmac.compare_digest(session_token.encode(), token.encode()):
        return True
    return any(
        role.session_token == session_token
        for account in list(sts_backends.values())
        for partition in list(account.values())
        for role in partition.assumed_roles
    )


def refuse(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer a request to a service as AWS answers wrong credentials."""
    status, headers, body = render(parse_call(Request(environ)), _REFUSAL)
    start_response(f"{status} Forbidden", list(headers.items()))
    return [body.encode()]
