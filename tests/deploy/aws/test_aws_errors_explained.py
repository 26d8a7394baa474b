"""Errors of boto3 as errors of ours: what waiting may cure is told from what it will not."""

from __future__ import annotations

import pytest
from botocore import exceptions

from cfngen.deploy.aws.errors import (
    CredentialsError,
    ExpiredCredentialsError,
    UnreachableError,
    as_aws_error,
    is_transient,
    translate_aws_errors,
)

URL = "https://cloudformation.us-west-2.amazonaws.com/"
LOST = [
    exceptions.ConnectTimeoutError(endpoint_url=URL),
    exceptions.ConnectionClosedError(endpoint_url=URL),
    exceptions.EndpointConnectionError(endpoint_url=URL),
    exceptions.ProxyConnectionError(proxy_url="http://proxy.example:3128"),
    exceptions.ReadTimeoutError(endpoint_url=URL),
    exceptions.SSLError(endpoint_url=URL, error="unexpected end"),
]


@pytest.mark.parametrize("error", LOST, ids=[type(each).__name__ for each in LOST])
def test_a_lost_network_is_unreachable_whatever_lost_it(error):
    with pytest.raises(UnreachableError) as raised, translate_aws_errors():
        raise error
    assert "network" in raised.value.hint
    assert is_transient(error)


def test_a_session_of_aws_login_that_ended_is_an_ended_session():
    assert isinstance(as_aws_error(exceptions.LoginRefreshRequired()), ExpiredCredentialsError)
    assert isinstance(as_aws_error(exceptions.LoginTokenLoadError(error_msg="none")), CredentialsError)


def test_credentials_for_a_region_that_is_not_enabled_look_like_invalid_ones():
    answer = {"Error": {"Code": "InvalidClientTokenId", "Message": "The security token included is invalid"}}
    error = as_aws_error(exceptions.ClientError(answer, "GetCallerIdentity"))
    assert "region" in error.hint
