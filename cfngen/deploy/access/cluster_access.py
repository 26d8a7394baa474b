"""Gives an operator access to the Kubernetes API of a deployed cluster: its endpoint, and a client certificate.

The endpoint is an output of the stack. A caller with permission to read the secret with the certificate authority can
issue an administrator's certificate. The certificates and keys that this module creates are never stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from cfngen.deploy.access.api_connection import Endpoint
from cfngen.deploy.access.authorities import Authority, read_authority
from cfngen.deploy.access.certificates import MAX_NAME_LENGTH, Identity, issue_client_certificate
from cfngen.deploy.access.kubernetes import KubernetesClient
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.stacks import CA_SECRET_OUTPUT, ENDPOINT_OUTPUT, StackView
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

INTERNAL_ENDPOINT_OUTPUT = "ApiInternalEndpoint"

ALLOWED_CIDR_PARAMETER = "ApiAllowedCidr"
CLIENT_CERTIFICATE_LIFETIME = timedelta(minutes=10)  # for a certificate that cfngen uses itself
_CALLER_ARN = re.compile(r"arn:[^:]+:(?:iam|sts)::\d*:(?:assumed-role/|federated-user/|user/)?(?P<name>.+)")

FindApiUrlOverride = Callable[[str], str]
"""Returns, for the API's URL, the URL at which the sandbox's API listens instead; empty outside of the sandbox."""


class NoEndpointError(CfngenError):
    """The stack has no output with the API's URL or its secret, or does not have it yet."""

    code = "no-endpoint"


def no_api_url_override(endpoint: str) -> str:
    """Return an empty text: outside of the sandbox, the API listens at its own URL."""
    return ""


def find_api_endpoint(
    stack: StackView, stack_outputs: Mapping[str, str], find_url_override: FindApiUrlOverride = no_api_url_override
) -> Endpoint:
    """Return the endpoint of a cluster's API.

    Raises:
        NoEndpointError: the stack has no output with the API's URL.
    """
    url = stack_outputs.get(ENDPOINT_OUTPUT, "")
    if not url:
        raise NoEndpointError(
            _missing_output_message(stack, ENDPOINT_OUTPUT),
            hint=CommandText(suggest("status"), " shows the cluster's progress."),
        )
    allowed_cidr = stack.parameters.get(ALLOWED_CIDR_PARAMETER, "")
    return Endpoint(url, url_override=find_url_override(url), allowed_cidr=allowed_cidr)


def find_internal_api_endpoint(
    stack: StackView, stack_outputs: Mapping[str, str], find_url_override: FindApiUrlOverride = no_api_url_override
) -> Endpoint:
    """Return the internal endpoint that a cluster's API has beside its public one.

    Raises:
        NoEndpointError: the stack has no output with the internal endpoint's URL.
    """
    url = stack_outputs.get(INTERNAL_ENDPOINT_OUTPUT, "")
    if not url:
        raise NoEndpointError(
            f"{_missing_output_message(stack, INTERNAL_ENDPOINT_OUTPUT)}; it has one with api.internal: true",
            hint=CommandText("set api.internal in the cluster file, then ", suggest("deploy"), "."),
        )
    return Endpoint(url, url_override=find_url_override(url))


def find_authority(account: Account, stack: StackView, stack_outputs: Mapping[str, str]) -> Authority:
    """Return the certificate authority of a cluster.

    Raises:
        NoEndpointError: the stack has no output with the ARN of the certificate authority's secret.
    """
    arn = stack_outputs.get(CA_SECRET_OUTPUT, "")
    if not arn:
        raise NoEndpointError(
            _missing_output_message(stack, CA_SECRET_OUTPUT),
            hint=CommandText(suggest("status"), " shows the cluster's progress."),
        )
    return read_authority(account, arn)


def connect_as_administrator(api_endpoint: Endpoint, ca: Authority, caller: str, now: datetime) -> KubernetesClient:
    """Return a client of the API with all permissions, and with a short-lived certificate that is issued for it.

    Raises:
        CertificateError: the certificate authority has expired.
    """
    # No client certificate outlives its authority; if the authority has expired, `issue` raises the error.
    duration = min(CLIENT_CERTIFICATE_LIFETIME, max(ca.expires - now, timedelta(seconds=1)))
    client = issue_client_certificate(ca.key_pair, Identity(kubernetes_user_name(caller)), now=now, duration=duration)
    return KubernetesClient(api_endpoint, ca.key_pair.certificate, client)


def kubernetes_user_name(caller: str) -> str:
    """Return the Kubernetes user name of an AWS caller, as the audit log shows it, e.g. `Admin/alice@cfngen`."""
    match = _CALLER_ARN.fullmatch(caller)
    name = match["name"] if match else caller
    suffix = "@cfngen"
    max_length = MAX_NAME_LENGTH - len(suffix)
    if len(name) > max_length:
        # The end of an ARN identifies a person: the role's session name, or the user name after its path.
        name = name.rpartition("/")[2][-max_length:]
    return name + suffix


def _missing_output_message(stack: StackView, output: str) -> str:
    return f"the stack {stack.name} ({stack.status}) has no output {output}"
