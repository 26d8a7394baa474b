"""What an error of AWS, or of the way to it, is called and what the user is advised."""

from __future__ import annotations

import pytest
from boto3.exceptions import S3UploadFailedError
from botocore import exceptions
from botocore.exceptions import ClientError

from cfngen.deploy.aws.errors import (
    AwsError,
    CredentialsError,
    DeniedError,
    ExpiredCredentialsError,
    RegionError,
    ThrottledError,
    UnreachableError,
    as_aws_error,
    error_code,
    is_transient,
    translate_aws_errors,
)


def refusal(code: str, message: str = "words", status: int = 400) -> ClientError:
    response = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "DescribeStacks")  # type: ignore[arg-type]


CODES = {
    ExpiredCredentialsError: ("ExpiredToken", "ExpiredTokenException", "RequestExpired"),
    CredentialsError: (
        "AuthFailure",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    ),
    DeniedError: ("AccessDenied", "AccessDeniedException", "KMS.AccessDeniedException", "UnauthorizedOperation", "403"),
    RegionError: ("OptInRequired", "RegionDisabledException"),
    ThrottledError: (
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
        "KMS.ThrottlingException",
    ),
    AwsError: ("ValidationError",),
}
WORDS = {
    ExpiredCredentialsError: ("the AWS credentials have expired (DescribeStacks)", "sign in again"),
    CredentialsError: ("AWS does not accept the credentials: words", "A region that is not enabled"),
    DeniedError: ("not allowed to call DescribeStacks: words", "docs/deploy/deploy.md"),
    RegionError: ("words", "enable the region"),
    ThrottledError: ("AWS throttles API calls (DescribeStacks: words)", "wait a minute and repeat"),
    AwsError: ("DescribeStacks: words (ValidationError)", ""),
}


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in CODES.items() for code in codes])
def test_a_refusal_is_of_the_kind_that_its_code_says(kind: type[AwsError], code: str) -> None:
    found = as_aws_error(refusal(code))
    assert type(found) is kind
    text, hint = WORDS[kind]
    assert str(found) == text
    assert hint in found.hint
    assert bool(found.hint) == bool(hint)
    assert (found.operation, found.aws_code) == ("DescribeStacks", code)
    assert is_transient(refusal(code)) == (kind is ThrottledError)


SKEW = "Signature expired: 20260301T120000Z is now earlier than 20260301T121000Z (20260301T122500Z - 15 min.)"
EARLY = "Signature not yet current: 20260301T140000Z is still later than 20260301T122000Z (20260301T120500Z + 15 min.)"
HINTS = [
    ("InvalidSignatureException", SKEW, CredentialsError, "set the clock"),
    ("SignatureDoesNotMatch", EARLY, CredentialsError, "set the clock"),
    ("RequestTimeTooSkewed", "The difference is too large", CredentialsError, "set the clock"),
    (
        "UnauthorizedOperation",
        "You are not authorized to perform this operation. Encoded authorization failure message: aB-c_9+/=",
        DeniedError,
        "--encoded-message aB-c_9+/=",
    ),
    ("KMS.DisabledException", "arn:aws:kms:r:1:key/a is disabled.", AwsError, "is enabled"),
    ("KMS.NotFoundException", "Key 'arn:aws:kms:r:1:key/a' does not exist", AwsError, "describe-key"),
    ("KMS.KMSInvalidStateException", "arn:aws:kms:r:1:key/a is pending deletion.", AwsError, "describe-key"),
    ("BucketNotEmpty", "The bucket you tried to delete is not empty", AwsError, "empty the bucket"),
    ("BucketAlreadyOwnedByYou", "words", AwsError, "another name"),
    ("BucketAlreadyExists", "words", AwsError, "choose another name"),
    ("DeleteConflict", "Cannot delete entity, must remove referenced objects first.", AwsError, "list-role-policies"),
    ("ValidationError", "Role arn:aws:iam::1:role/r is invalid or cannot be assumed", AwsError, "--role-arn"),
    (
        "ValidationError",
        "S3 error: Domain name specified in my-bucket is not a valid S3 domain",
        AwsError,
        "`cfngen deploy` uploads the templates",
    ),
]


@pytest.mark.parametrize(("code", "message", "kind", "hint"), HINTS, ids=[f"{row[0]}-{row[1][:9]}" for row in HINTS])
def test_a_refusal_says_what_to_do_about_it(code: str, message: str, kind: type[AwsError], hint: str) -> None:
    found = as_aws_error(refusal(code, message))
    assert type(found) is kind
    assert message in str(found)
    assert hint in str(found.hint)
    assert found.aws_code == code


def test_a_refusal_without_words_says_what_botocore_does() -> None:
    error = ClientError({}, "DescribeStacks")
    assert "DescribeStacks" in str(as_aws_error(error))
    assert error_code(error) == ""
    assert not is_transient(error)


@pytest.mark.parametrize(("status", "transient"), [(499, False), (500, True), (503, True)])
def test_a_fault_inside_the_service_may_pass(status: int, transient: bool) -> None:
    assert is_transient(refusal("InternalFailure", status=status)) == transient


URL = "https://cloudformation.us-west-2.amazonaws.com/"


@pytest.mark.parametrize(
    ("error", "kind", "words", "hint"),
    [
        (exceptions.NoCredentialsError(), CredentialsError, "no AWS credentials were found", "--profile"),
        (
            exceptions.PartialCredentialsError(provider="env", cred_var="x"),
            CredentialsError,
            "no AWS credentials were found",
            "--profile",
        ),
        (
            exceptions.SSOTokenLoadError(error_msg="gone"),
            ExpiredCredentialsError,
            "the single sign-on session has ended",
            "aws sso login",
        ),
        (
            exceptions.UnauthorizedSSOTokenError(),
            ExpiredCredentialsError,
            "the single sign-on session has ended",
            "aws sso login",
        ),
        (
            exceptions.TokenRetrievalError(provider="sso", error_msg="x"),
            CredentialsError,
            "credentials could not be obtained",
            "sign in again",
        ),
        (
            exceptions.CredentialRetrievalError(provider="p", error_msg="x"),
            CredentialsError,
            "credentials could not be obtained",
            "sign in again",
        ),
        (exceptions.LoginError(), CredentialsError, "credentials could not be obtained", "sign in again"),
        (exceptions.ProfileNotFound(profile="p"), CredentialsError, "profile (p)", "aws configure list-profiles"),
        (exceptions.InvalidRegionError(region_name="x y"), RegionError, "x y", "us-west-2"),
        (exceptions.EndpointConnectionError(endpoint_url=URL), UnreachableError, "Could not connect", "HTTPS_PROXY"),
        (
            exceptions.ConnectTimeoutError(endpoint_url=URL),
            UnreachableError,
            "the connection to AWS failed",
            "check the network",
        ),
        (
            exceptions.ReadTimeoutError(endpoint_url=URL),
            UnreachableError,
            "the connection to AWS failed",
            "check the network",
        ),
        (
            exceptions.ConnectionClosedError(endpoint_url=URL),
            UnreachableError,
            "the connection to AWS failed",
            "check the network",
        ),
        (
            exceptions.ProxyConnectionError(proxy_url=URL, error=Exception("x")),
            UnreachableError,
            "the connection to AWS failed",
            "check the network",
        ),
        (exceptions.ParamValidationError(report="odd"), AwsError, "ParamValidationError: ", ""),
        (S3UploadFailedError("half"), AwsError, "S3UploadFailedError: half", ""),
    ],
)
def test_what_fails_before_aws_answers(error: Exception, kind: type[AwsError], words: str, hint: str) -> None:
    with pytest.raises(AwsError) as raised, translate_aws_errors():
        raise error
    assert type(raised.value) is kind
    assert words in str(raised.value)
    assert hint in raised.value.hint
    assert raised.value.__cause__ is error
    assert (raised.value.operation, raised.value.aws_code, error_code(error)) == ("", "", "")
    assert is_transient(error) == (kind is UnreachableError)


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(KeyError), translate_aws_errors():
        raise KeyError("x")
    assert error_code(refusal("Throttling")) == "Throttling"
