"""IAM's OpenID Connect providers: whose tokens an account trusts.

API reference of IAM, CreateOpenIDConnectProvider: the URL begins with https:// and has neither query nor port; a URL is
registered once in an account; without thumbprints IAM connects to the server to read its certificate. Quotas: "IAM and
AWS STS quotas".

moto 5.2.5 (moto/iam/models.py) lacks the operations for single client ids, and names the provider that exists already
"Unknown".
"""

from __future__ import annotations

import functools
import urllib.parse

from cfngen.sandbox.moto_types import MotoBackend, MotoModel, MotoResponse
from cfngen.sandbox.services.distributions import find_distribution
from cfngen.sandbox.services.rules import PendingCall, Refused, rule, validation_error

MAX_PROVIDERS = 100
MAX_CLIENT_IDS = 100
CLOUDFRONT_DOMAIN = ".cloudfront.net"


@functools.cache
def apply() -> None:
    """Add the operations for single client ids to moto's IAM, for the rest of the process."""
    from moto.core.responses import EmptyResult
    from moto.iam.responses import IamResponse

    def add(self: MotoResponse) -> EmptyResult:
        provider = _get_provider(self.backend, self._get_param("OpenIDConnectProviderArn"))
        client_id = self._get_param("ClientID")
        if client_id not in provider.client_id_list:
            provider.client_id_list = [*provider.client_id_list, client_id]
        return EmptyResult()

    def remove(self: MotoResponse) -> EmptyResult:
        provider = _get_provider(self.backend, self._get_param("OpenIDConnectProviderArn"))
        client_id = self._get_param("ClientID")
        provider.client_id_list = [item for item in provider.client_id_list if item != client_id]
        return EmptyResult()

    setattr(IamResponse, "add_client_id_to_open_id_connect_provider", add)  # noqa: B010
    setattr(IamResponse, "remove_client_id_from_open_id_connect_provider", remove)  # noqa: B010


@rule("iam", "CreateOpenIDConnectProvider")
def check_url(call: PendingCall) -> None:
    """Refuse a URL that no issuer of the standard has, one that is registered, and a server that does not answer."""
    url = call.get("Url", "")
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or ":" in parts.netloc or parts.query or "${" in url:
        raise validation_error("Invalid Open ID Connect Provider URL")
    # IAM compares URLs without the scheme, and with a slash at the end.
    registered = [provider.url for provider in call.backend.open_id_providers.values()]
    if parts.netloc + parts.path in registered:
        raise Refused("EntityAlreadyExists", f"Provider with url {url} already exists.")
    if len(registered) >= MAX_PROVIDERS:
        raise Refused("LimitExceeded", f"Cannot exceed quota for OpenIdConnectProvidersPerAccount: {MAX_PROVIDERS}")
    if not call.get("ThumbprintList") and not _answers(call.region, parts.hostname):
        raise Refused(
            "OpenIdIdpCommunicationError",
            "The request failed because IAM cannot connect to the OpenID Connect identity provider URL.",
        )


@rule("iam", "AddClientIDToOpenIDConnectProvider", "RemoveClientIDFromOpenIDConnectProvider")
def check_client_id(call: PendingCall) -> None:
    """Refuse a provider that does not exist, and more client ids than one can have."""
    provider = _get_provider(call.backend, call.get("OpenIDConnectProviderArn"))
    client_ids = {*provider.client_id_list, call.get("ClientID")}
    if call.operation.startswith("Add") and len(client_ids) > MAX_CLIENT_IDS:
        raise Refused("LimitExceeded", f"Cannot exceed quota for ClientIdsPerOpenIdConnectProvider: {MAX_CLIENT_IDS}")


def _answers(region: str, host: str) -> bool:
    """Return whether a server shows a certificate: of CloudFront's names, only those of the account's distributions.

    Buckets need not exist, as S3 answers for all of them; other servers are taken for ones that answer.
    """
    return not host.endswith(CLOUDFRONT_DOMAIN) or find_distribution(region, host) is not None


def _get_provider(backend: MotoBackend, arn: str) -> MotoModel:
    provider = backend.open_id_providers.get(arn)
    if provider is None:
        raise Refused("NoSuchEntity", f"OpenIDConnect Provider not found for arn {arn}")
    return provider
