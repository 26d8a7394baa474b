"""Error responses of AWS services, in the protocol of the service.

The code of the same error differs with the protocol. For the query protocol see each API's "Common errors", for EC2 its
"Error codes", for S3 its "List of error codes"; services with a JSON protocol append `Exception`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from xml.sax.saxutils import escape

from cfngen.sandbox.api.requests import Call

REQUEST_ID = "5a4d2c1b-0000-4000-8000-000000000000"  # of every error response

Answer = tuple[int, dict[str, str], str]  # an HTTP response: status, headers, body


@dataclass(frozen=True)
class Refusal(Exception):  # noqa: N818 (a response of a service, not an error of this program)
    """An error response of a service.

    Attributes:
        code: the error code, e.g. `AccessDenied`.
        message: the error message.
        status: the HTTP status.
    """

    code: str
    message: str
    status: int = 400


def unsupported_feature(error: Exception) -> Refusal:
    """Return the error for a feature that the sandbox lacks; its status is below 500, so that clients do not retry."""
    return Refusal("NotModelled", f"the sandbox does not support this: {error}")


def internal_error(call: Call, error: Exception) -> Refusal:
    """Return the error for a bug in the sandbox itself, or in moto."""
    message = f"internal error of the sandbox in {call.action}: {type(error).__name__}: {error}"
    code = "InternalError" if call.protocol in ("ec2", "rest-xml") else "InternalFailure"
    return Refusal(code, message, status=500)


def render(call: Call, refusal: Refusal) -> Answer:
    """Return an error as an HTTP response in the call's protocol."""
    code, message = escape(refusal.code), escape(refusal.message)
    headers = {"x-amzn-requestid": REQUEST_ID, "content-type": "text/xml"}
    error = f"<Code>{code}</Code><Message>{message}</Message>"
    if call.method == "HEAD":  # no body; clients see the status only
        return refusal.status, headers, ""
    if call.protocol == "ec2":
        body = f"<Response><Errors><Error>{error}</Error></Errors><RequestID>{REQUEST_ID}</RequestID></Response>"
    elif call.protocol == "rest-xml":
        body = f"<Error>{error}<RequestId>{REQUEST_ID}</RequestId></Error>"
    elif call.protocol == "query":
        error = f"<Error><Type>{'Sender' if refusal.status < 500 else 'Receiver'}</Type>{error}</Error>"
        body = f"<ErrorResponse>{error}<RequestId>{REQUEST_ID}</RequestId></ErrorResponse>"
    else:
        headers |= {"content-type": "application/json", "x-amzn-errortype": refusal.code}
        body = json.dumps({"__type": refusal.code, "message": refusal.message})
    return refusal.status, headers, body
