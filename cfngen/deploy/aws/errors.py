"""Errors of boto3 and of AWS's APIs, translated into errors with a hint what to do.

Error codes are those of the services' API references. Services name the same error differently, so each situation lists
all of its codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cfngen.errors import CfngenError
from cfngen.hints import Hint

EXPIRED_CREDENTIALS_CODES = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
INVALID_CREDENTIALS_CODES = frozenset(
    {
        "AuthFailure",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
ACCESS_DENIED_CODES = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403"})
REGION_DISABLED_CODES = frozenset({"OptInRequired", "RegionDisabledException"})
THROTTLED_CODES = frozenset(
    {
        "BandwidthLimitExceeded",
        "PriorRequestNotComplete",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
    }
)
LOGIN_HINT = "sign in again (`aws sso login`, or new keys), check with `aws sts get-caller-identity`, and repeat."


class AwsError(CfngenError):
    """A call to AWS failed for a reason that has no class of its own.

    Attributes:
        operation: the API call, e.g. `cloudformation:CreateChangeSet`; empty if none was sent.
        aws_code: AWS's error code; empty if there was no response.
    """

    code = "aws-error"

    def __init__(self, message: str, *, hint: Hint = "", operation: str = "", aws_code: str = "") -> None:
        super().__init__(message, hint=hint)
        self.operation = operation
        self.aws_code = aws_code


class CredentialsError(AwsError):
    """There are no credentials, or AWS does not accept them."""

    code = "aws-credentials"


class ExpiredCredentialsError(CredentialsError):
    """The credentials have expired."""

    code = "aws-credentials-expired"


class DeniedError(AwsError):
    """The caller lacks a permission."""

    code = "aws-access-denied"


class ThrottledError(AwsError):
    """AWS throttled the call, and each of its retries."""

    code = "aws-throttled"


class UnreachableError(AwsError):
    """No answer from AWS: name resolution, network, proxy, or a time-out."""

    code = "aws-unreachable"


class RegionError(AwsError):
    """The region does not exist, or is not enabled in this account."""

    code = "aws-region"


def as_aws_error(error: Exception) -> AwsError:
    """Return the `AwsError` for an error of boto3 or botocore, with a hint what to do."""
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        return _from_client_error(error)
    if isinstance(error, (exceptions.NoCredentialsError, exceptions.PartialCredentialsError)):
        return CredentialsError(
            "no AWS credentials were found", hint=f"choose a profile with --profile, or {LOGIN_HINT}"
        )
    if isinstance(error, (exceptions.SSOTokenLoadError, exceptions.UnauthorizedSSOTokenError)):
        return ExpiredCredentialsError(f"the single sign-on session has ended: {error}", hint=LOGIN_HINT)
    if isinstance(error, exceptions.LoginRefreshRequired):
        return ExpiredCredentialsError(str(error), hint=LOGIN_HINT)
    credential_errors = (exceptions.TokenRetrievalError, exceptions.CredentialRetrievalError, exceptions.LoginError)
    if isinstance(error, credential_errors):
        return CredentialsError(f"credentials could not be obtained: {error}", hint=LOGIN_HINT)
    if isinstance(error, exceptions.ProfileNotFound):
        return CredentialsError(str(error), hint="`aws configure list-profiles` lists the available profiles.")
    if isinstance(error, exceptions.InvalidRegionError):
        return RegionError(str(error), hint="set `region` in the cluster file to a region such as us-west-2.")
    if isinstance(error, exceptions.EndpointConnectionError):
        return UnreachableError(
            str(error), hint="check the network, the proxy (HTTPS_PROXY) and that the region exists, and repeat."
        )
    # ConnectionError: connect time-outs, proxy and TLS errors; HTTPClientError: errors after connecting.
    if isinstance(error, (exceptions.ConnectionError, exceptions.HTTPClientError)):
        return UnreachableError(f"the connection to AWS failed: {error}", hint="check the network, and repeat.")
    return AwsError(f"{type(error).__name__}: {error}")


@contextmanager
def translate_aws_errors() -> Iterator[None]:
    """Raise an `AwsError` in place of each error of boto3 that the `with` block raises."""
    # Importing boto3 takes a tenth of a second; where one of its errors can be raised it is imported already.
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, Boto3Error, ClientError) as error:
        raise as_aws_error(error) from error


def error_code(error: Exception) -> str:
    """Return AWS's error code, e.g. `AccessDenied`; empty if the error is not a response of AWS."""
    response = getattr(error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def is_transient(error: Exception) -> bool:
    """Return whether the same call may succeed later: it was throttled, AWS was unreachable, or a service failed."""
    if isinstance(as_aws_error(error), (ThrottledError, UnreachableError)):
        return True
    response = getattr(error, "response", None)
    return isinstance(response, dict) and response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500


def _from_client_error(error: Exception) -> AwsError:
    response = error.response  # type: ignore[attr-defined]
    code = error_code(error)
    message = str(response.get("Error", {}).get("Message", "")) or str(error)
    operation = getattr(error, "operation_name", "")
    call_details = {"operation": operation, "aws_code": code}
    if code in EXPIRED_CREDENTIALS_CODES:
        return ExpiredCredentialsError(
            f"the AWS credentials have expired ({operation})", hint=LOGIN_HINT, **call_details
        )
    if code in INVALID_CREDENTIALS_CODES:
        # AWS returns these codes also for valid credentials, in a region that is not enabled in the account.
        hint = f"{LOGIN_HINT} A region that is not enabled in the account accepts no credentials."
        return CredentialsError(f"AWS does not accept the credentials: {message}", hint=hint, **call_details)
    if code in REGION_DISABLED_CODES:
        return RegionError(
            message, hint="enable the region in the account's settings, or choose another.", **call_details
        )
    if code in ACCESS_DENIED_CODES:
        hint = (
            "docs/deploy/deploy.md lists what an operator must be allowed to do; ask for it, or use another --profile."
        )
        return DeniedError(f"not allowed to call {operation}: {message}", hint=hint, **call_details)
    if code in THROTTLED_CODES:
        hint = "other callers in the account use the same rate limit; wait a minute and repeat: nothing is lost."
        return ThrottledError(f"AWS throttles API calls ({operation}: {message})", hint=hint, **call_details)
    return AwsError(f"{operation}: {message} ({code})", **call_details)


# Each AWS service, and each type of resource, has different error codes for the same situation.
NOT_FOUND_CODES = frozenset(
    {
        "InvalidGroup.NotFound",
        "InvalidGroupId.Malformed",
        "InvalidNetworkInterfaceID.NotFound",
        "InvalidPermission.NotFound",
        "InvalidSecurityGroupRuleId.NotFound",
        "InvalidRoute.NotFound",
        "InvalidRouteTableID.NotFound",
        "InvalidSecurityGroupID.NotFound",
        "InvalidSnapshot.NotFound",
        "InvalidVolume.NotFound",
        "ListenerNotFound",
        "LoadBalancerNotFound",
        "TargetGroupNotFound",
    }
)
IN_USE_CODES = frozenset(
    {
        "DependencyViolation",
        "InvalidGroup.InUse",
        "InvalidNetworkInterface.InUse",
        "InvalidParameterValue",  # DeleteNetworkInterface, for an interface that is being detached
        "IncorrectState",
        "InvalidSnapshot.InUse",
        "OperationInProgress",
        "ResourceInUse",
        "VolumeInUse",
    }
)


@dataclass
class CallOutcome:
    """The outcome of a call of AWS, such as the deletion of a resource.

    Attributes:
        in_use: whether AWS refused, because another resource still uses the resource; a later call may succeed.
        not_found: whether AWS refused, because the resource does not exist (any more).
    """

    in_use: bool = False
    not_found: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether AWS has accepted the call."""
        return not self.in_use and not self.not_found


@contextmanager
def catch_missing_or_in_use() -> Iterator[CallOutcome]:
    """Catch AWS's errors for a resource that does not exist or is in use, and record them in the yielded outcome."""
    from botocore.exceptions import ClientError

    outcome = CallOutcome()
    try:
        yield outcome
    except ClientError as error:
        code = error_code(error)
        outcome.not_found = code in NOT_FOUND_CODES
        outcome.in_use = code in IN_USE_CODES
        if not outcome.not_found and not outcome.in_use:
            raise
