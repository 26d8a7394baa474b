"""Errors of AWS services that a caller meets at any call: throttling, credentials, permissions, internal errors.

The code of the same error differs with the protocol. For the query protocol see each API's "Common errors", for EC2 its
"Error codes", for S3 its "List of error codes"; services with a JSON protocol append `Exception`.
"""

from __future__ import annotations

from cfngen.sandbox.api.requests import Call, Refusal


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
