"""Errors of boto3 and of AWS's APIs, translated into errors with a hint what to do.

Error codes are those of the services' API references. Services name the same error differently, so each situation lists
all of its codes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cfngen.errors import CfngenError
from cfngen.hints import CommandText, Hint, suggest

EXPIRED_CREDENTIALS_CODES = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
INVALID_CREDENTIALS_CODES = frozenset(
    {
        "AuthFailure",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "RequestTimeTooSkewed",
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
# The words of Signature Version 4 (aws/aws-sdk-js#1652, #1764), and S3's code.
_CLOCK_SKEW = re.compile(r"Signature (?:expired|not yet current)|RequestTimeTooSkewed")
ENCODED_AUTHORIZATION = re.compile(r"Encoded authorization failure message:\s*(?P<code>[\w+/=-]+)")
"""EC2's words for a missing permission; STS decodes the code."""
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


class IncompleteAnswerError(AwsError):
    """AWS's answer to a call lacks a member that cfngen cannot do without."""

    code = "aws-answer-incomplete"

    def __init__(self, operation: str, member: str) -> None:
        super().__init__(
            f"AWS's answer to {operation} has no {member}",
            hint="repeat the command; if it says so again, please report it: AWS has always given this so far.",
            operation=operation,
        )


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


@contextmanager
def suppress_codes(codes: Collection[str]) -> Iterator[None]:
    """Suppress an error of boto3 with one of these codes of AWS, which ends the `with` block."""
    from botocore.exceptions import ClientError

    try:
        yield
    except ClientError as error:
        if error_code(error) not in codes:
            raise


def is_transient(error: Exception) -> bool:
    """Return whether the same call may succeed later: it was throttled, AWS was unreachable, or a service failed."""
    if isinstance(as_aws_error(error), (ThrottledError, UnreachableError)):
        return True
    response = getattr(error, "response", None)
    return isinstance(response, dict) and response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= 500


def _from_client_error(error: Exception) -> AwsError:
    response = error.response  # type: ignore[attr-defined]
    aws_code = error_code(error)
    # S3 and others put a prefix before a code that KMS has answered them.
    code = aws_code.removeprefix("KMS.")
    message = str(response.get("Error", {}).get("Message", "")) or str(error)
    operation = getattr(error, "operation_name", "")
    call_details = {"operation": operation, "aws_code": aws_code}
    if code in EXPIRED_CREDENTIALS_CODES:
        return ExpiredCredentialsError(
            f"the AWS credentials have expired ({operation})", hint=LOGIN_HINT, **call_details
        )
    if code in INVALID_CREDENTIALS_CODES:
        # AWS returns these codes also for valid credentials, in a region that is not enabled in the account.
        hint = f"{LOGIN_HINT} A region that is not enabled in the account accepts no credentials."
        if _CLOCK_SKEW.search(f"{message} {code}"):
            hint = "this machine's clock is wrong by minutes, so AWS refuses what it signs: set the clock, and repeat."
        return CredentialsError(f"AWS does not accept the credentials: {message}", hint=hint, **call_details)
    if code in REGION_DISABLED_CODES:
        return RegionError(
            message, hint="enable the region in the account's settings, or choose another.", **call_details
        )
    if code in ACCESS_DENIED_CODES:
        hint = (
            "docs/deploy/deploy.md lists what an operator must be allowed to do; ask for it, or use another --profile."
        )
        if encoded := ENCODED_AUTHORIZATION.search(message):
            command = "aws sts decode-authorization-message --query DecodedMessage --output text --encoded-message"
            hint = f"`{command} {encoded['code']}` shows what is missing; {hint}"
        return DeniedError(f"not allowed to call {operation}: {message}", hint=hint, **call_details)
    if code in THROTTLED_CODES:
        hint = "other callers in the account use the same rate limit; wait a minute and repeat: nothing is lost."
        return ThrottledError(f"AWS throttles API calls ({operation}: {message})", hint=hint, **call_details)
    text = f"{message} ({aws_code})"
    refusals = (*KNOWN_REFUSALS, _UNUSABLE_KEY)
    refusal = next((refusal for refusal in refusals if re.search(refusal.pattern, text, re.IGNORECASE)), None)
    return AwsError(f"{operation}: {text}", hint=refusal.hint if refusal else "", **call_details)


@dataclass(frozen=True)
class KnownRefusal:
    """A refusal of AWS with its explanation; services answer it to a call, and CloudFormation in a status reason.

    Attributes:
        pattern: regular expression that finds it in AWS's message with its error code, in upper or lower case.
        meaning: what it means, one sentence without a full stop.
    """

    pattern: str
    meaning: str
    hint: Hint


# Words and codes: "Error responses", Amazon S3 API Reference; "DeleteRole", IAM API Reference; those of CloudFormation
# about roles and URLs are from real errors (awslabs/aws-service-catalog-puppet#568).
KNOWN_REFUSALS = (
    KnownRefusal(
        r"Role \S+ is invalid or cannot be assumed",
        "CloudFormation cannot use the stack's service role: it does not exist any more, or does not trust "
        "CloudFormation",
        "see whether the role exists and its trust policy names cloudformation.amazonaws.com: `aws iam get-role "
        "--role-name NAME`; make it again under the same name, or give another one with `--role-arn`. IAM takes some "
        "seconds to make a new role known.",
    ),
    KnownRefusal(
        r"S3 error: Domain name specified",
        "the URL of a template is not one of S3",
        CommandText(suggest("deploy"), " uploads the templates and uses their URLs; correct a URL of your own."),
    ),
    KnownRefusal(
        r"BucketNotEmpty|bucket you tried to delete is not empty",
        "the bucket still has objects, or old versions of objects",
        "copy what you need, then empty the bucket with all versions (in the S3 console: Empty), and repeat.",
    ),
    KnownRefusal(
        r"BucketAlreadyOwnedByYou|you already own it",
        "this account has a bucket of that name already; an earlier deletion may have kept it",
        "delete it if nobody needs its objects, or give the new one another name; then repeat.",
    ),
    KnownRefusal(
        r"BucketAlreadyExists|requested bucket name is not available",
        "another account has a bucket of that name: a name can exist once in all of AWS",
        "choose another name, and repeat.",
    ),
    KnownRefusal(
        r"DeleteConflict|Cannot delete entity, must",
        "IAM deletes nothing that is in use: somebody has added policies to the role, or put it into an instance "
        "profile",
        "take these away, which `aws iam list-attached-role-policies`, `list-role-policies` and "
        "`list-instance-profiles-for-role` show with `--role-name NAME`; then repeat.",
    ),
)
_UNUSABLE_KEY = KnownRefusal(
    r"\(KMS\.?\w+\)",
    "a KMS key cannot be used",
    "see whether the key exists, is enabled and lets you use it: `aws kms describe-key --key-id KEY`.",
)


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
