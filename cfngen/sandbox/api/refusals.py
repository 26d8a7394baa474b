"""Error answers of AWS services, in the protocol of the service.

The code of the same error differs with the protocol. For the query protocol see each API's "Common errors", for EC2 its
"Error codes", for S3 its "List of error codes"; services with a JSON protocol append `Exception`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from xml.sax.saxutils import escape

from cfngen.sandbox.api.requests import Call

REQUEST_ID = "5a4d2c1b-0000-4000-8000-000000000000"

Answer = tuple[int, dict[str, str], str]  # status, headers, body


@dataclass(frozen=True)
class Refusal(Exception):  # noqa: N818 (an answer in the first place)
    """An error that a service answers."""

    code: str
    message: str
    status: int = 400


def throttled(call: Call) -> Refusal:
    """Return the error for throttled calls."""
    return {
        "ec2": Refusal("RequestLimitExceeded", "Request limit exceeded.", 503),
        "rest-xml": Refusal("SlowDown", "Please reduce your request rate.", 503),
        "query": Refusal("Throttling", "Rate exceeded"),
    }.get(call.protocol, Refusal("ThrottlingException", "Rate exceeded"))


def expired(call: Call) -> Refusal:
    """Return the error for expired credentials."""
    return {
        "ec2": Refusal("RequestExpired", "Request has expired."),
        "rest-xml": Refusal("ExpiredToken", "The provided token has expired."),
        "query": Refusal("ExpiredToken", "The security token included in the request is expired", 403),
    }.get(call.protocol, Refusal("ExpiredTokenException", "The security token included in the request is expired"))


def invalid(call: Call) -> Refusal:
    """Return the error for unknown credentials."""
    return {
        "ec2": Refusal("AuthFailure", "AWS was not able to validate the provided access credentials", 401),
        "rest-xml": Refusal(
            "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", 403
        ),
        "query": Refusal("InvalidClientTokenId", "The security token included in the request is invalid.", 403),
    }.get(
        call.protocol, Refusal("UnrecognizedClientException", "The security token included in the request is invalid.")
    )


def denied(call: Call, action: str, user: str, resource: str) -> Refusal:
    """Return the error for a caller without permission.

    Args:
        call: the call.
        action: the IAM action, e.g. `s3:ListBucket` for HeadBucket.
        user: ARN of the caller.
        resource: ARN of the resource; empty or `*` for actions without one.
    """
    target = f" on resource: {resource}" if resource not in ("", "*") else ""
    reason = f"because no identity-based policy allows the {action} action"
    text = f"User: {user} is not authorized to perform: {action}{target} {reason}"
    return {
        "ec2": Refusal("UnauthorizedOperation", f"You are not authorized to perform this operation. {text}", 403),
        "rest-xml": Refusal("AccessDenied", text, 403),
        "query": Refusal("AccessDenied", text, 403),
    }.get(call.protocol, Refusal("AccessDeniedException", text))


def failing(call: Call) -> Refusal:
    """Return the error for an internal error of the service."""
    return {
        "ec2": Refusal("InternalError", "An internal error has occurred", 500),
        "rest-xml": Refusal("InternalError", "We encountered an internal error. Please try again.", 500),
    }.get(call.protocol, Refusal("InternalFailure", "Internal Failure", 500))


def unmodelled(error: Exception) -> Refusal:
    """Return the error for a feature that the sandbox lacks; its status is below 500, so that clients do not retry."""
    return Refusal("NotModelled", f"the sandbox does not do this: {error}")


def broken(call: Call, error: Exception) -> Refusal:
    """Return the error for a bug in the sandbox itself, or in moto."""
    message = f"the sandbox has failed at {call.action}: {type(error).__name__}: {error}"
    return Refusal("InternalError" if call.protocol in ("ec2", "rest-xml") else "InternalFailure", message, 500)


def rendered(call: Call, refusal: Refusal) -> Answer:
    """Return an error as an HTTP answer in the call's protocol."""
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
