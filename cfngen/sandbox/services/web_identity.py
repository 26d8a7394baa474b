"""Providers of OpenID Connect, whose tokens an account trusts, and the credentials that STS gives for a token.

API reference of STS, AssumeRoleWithWebIdentity; IAM user guide, "Create an OpenID Connect (OIDC) identity provider".
moto 5.2.5 (moto/sts/models.py) looks neither at the token nor at the role. Words: tests/aws/refusals.md. In which order
STS checks the parts of a token is assumed.

API reference of IAM, CreateOpenIDConnectProvider: the URL begins with https:// and has neither query nor port; a URL is
registered once in an account; without thumbprints IAM connects to the server to read its certificate. Quotas: "IAM and
AWS STS quotas". moto 5.2.5 (moto/iam/models.py) lacks the operations for single client ids, and names the provider that
exists already "Unknown".
"""

from __future__ import annotations

import urllib.parse

from moto.core.responses import ActionResult, EmptyResult
from moto.iam.responses import IamResponse
from moto.sts.responses import TokenResponse

from cfngen.sandbox.moto_patches.registry import patches, replaces
from cfngen.sandbox.services import json_web_tokens, policy_documents
from cfngen.sandbox.services.authorization import Caller, Context, Policies, Request, authorize
from cfngen.sandbox.services.distributions import find_distribution
from cfngen.sandbox.services.issuer_documents import DISCOVERY_PATH, read_document
from cfngen.sandbox.services.json_web_tokens import InvalidTokenError, Token
from cfngen.sandbox.services.rules import CLOCK_START, PendingCall, Refused, rule, validation_error
from cfngen.sandbox.untyped import JsonObject, MotoBackend, MotoModel, MotoResponse, Original

INVALID_TOKEN = "InvalidIdentityToken"
ACTION = "sts:AssumeRoleWithWebIdentity"
REQUIRED_CLAIMS = ("iss", "sub", "aud", "exp", "iat")
# What a discovery document has to have ("Create an OpenID Connect (OIDC) identity provider", and EKS's own).
REQUIRED_IN_DISCOVERY = (
    "issuer", "jwks_uri", "response_types_supported", "subject_types_supported",
    "id_token_signing_alg_values_supported",
)  # fmt: skip
MAX_KEYS = 100  # of one type in a JSON Web Key Set, same page
NO_KEY = (
    "Couldn't retrieve verification key from your identity provider,  please reference AssumeRoleWithWebIdentity "
    "documentation for requirements"
)
MAX_PROVIDERS = 100
MAX_CLIENT_IDS = 100
CLOUDFRONT_DOMAIN = ".cloudfront.net"


@patches(TokenResponse, "assume_role_with_web_identity")
def _answer_whom_the_token_names(original: Original, self: MotoResponse) -> ActionResult:
    answer: MotoResponse = original(self)
    claims = json_web_tokens.parse(self._get_param("WebIdentityToken")).claims
    result = {
        **answer.result,
        "SubjectFromWebIdentityToken": claims["sub"],
        "Provider": claims["iss"],
        "Audience": policy_documents.as_list(claims["aud"])[0],
    }
    return ActionResult(result)


@rule("sts", "AssumeRoleWithWebIdentity")
def check_web_identity(call: PendingCall) -> None:
    """Refuse a token that its issuer has not signed for this account, and a role that does not trust its bearer."""
    token = _parse(call.get("WebIdentityToken", ""))
    provider = _provider(call.region, token.claims["iss"])
    _check_time(token.claims, _now(call))
    audiences = [str(audience) for audience in policy_documents.as_list(token.claims["aud"])]
    if not set(audiences) & set(provider.client_id_list):
        raise Refused(INVALID_TOKEN, "Incorrect token audience")
    _check_signature(call.region, token)
    _check_role(call, provider, token.claims, audiences)


def _parse(text: str) -> Token:
    try:
        token = json_web_tokens.parse(text)
    except InvalidTokenError:
        raise Refused(
            INVALID_TOKEN,
            "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)",
        ) from None
    for claim in REQUIRED_CLAIMS:
        if not token.claims.get(claim):
            raise Refused(INVALID_TOKEN, f"Missing a required claim: {claim}")
    return token


def _provider(region: str, issuer: str) -> MotoModel:
    for provider in policy_documents.iam_backend(region).open_id_providers.values():
        if issuer == f"https://{provider.url}":
            return provider
    raise Refused(INVALID_TOKEN, f"No OpenIDConnect provider found in your account for {issuer}")


def _now(call: PendingCall) -> int:
    return int(CLOCK_START.timestamp() + call.time)


def _check_time(claims: JsonObject, now: int) -> None:
    expiry = int(claims["exp"])
    if now >= expiry:
        raise Refused(
            "ExpiredTokenException",
            f"Token expired: current date/time {now} must be before the expiration date/time{expiry}",
        )
    if now < int(claims["iat"]) or now < int(claims.get("nbf", 0)):
        raise Refused(INVALID_TOKEN, "The web identity token is not valid yet")


def _check_signature(region: str, token: Token) -> None:
    issuer = token.claims["iss"]
    discovery = read_document(region, issuer + DISCOVERY_PATH) or {}
    is_complete = all(discovery.get(name) for name in REQUIRED_IN_DISCOVERY)
    if not is_complete or discovery["issuer"] != issuer:
        raise Refused(INVALID_TOKEN, NO_KEY)
    keys = (read_document(region, discovery["jwks_uri"]) or {}).get("keys") or []
    # A key without `kid` does not verify a token without one either (aws/amazon-eks-pod-identity-webhook#12).
    matching = [key for key in keys if "kid" in key and key["kid"] == token.header.get("kid", "")]
    if not matching or sum(key.get("kty") == "RSA" for key in keys) > MAX_KEYS:
        raise Refused(INVALID_TOKEN, NO_KEY)
    if not any(json_web_tokens.is_signed_by(token, key) for key in matching):
        raise Refused(INVALID_TOKEN, "The web identity token that was passed could not be validated")


def _check_role(call: PendingCall, provider: MotoModel, claims: JsonObject, audiences: list[str]) -> None:
    """Refuse a role that does not exist, does not trust the token's bearer, or has shorter sessions."""
    role = policy_documents.find_role(policy_documents.iam_backend(call.region), call.get("RoleArn", ""))
    # Condition keys of a provider: its URL without https:// and the claim ("Available keys for AWS OIDC federation").
    context = {
        f"{provider.url}:aud".lower(): audiences,
        f"{provider.url}:sub".lower(): [str(claims["sub"])],
        "aws:federatedprovider": [provider.arn],
    }
    if role is None or not _trusts(role, provider.arn, context):
        raise Refused("AccessDenied", f"Not authorized to perform {ACTION}")
    seconds = int(call.get("DurationSeconds") or 0)
    if seconds > int(role.max_session_duration or 3_600):
        raise validation_error("The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")


def _trusts(role: MotoModel, provider_arn: str, context: Context) -> bool:
    document = policy_documents.parse(role.assume_role_policy_document)
    request = Request(ACTION, role.arn, context)
    return authorize(request, Caller(provider=provider_arn), Policies(resource=document)) == "allowed"


@replaces(IamResponse, "add_client_id_to_open_id_connect_provider")
def _add_client_id(self: MotoResponse) -> EmptyResult:
    provider = _get_provider(self.backend, self._get_param("OpenIDConnectProviderArn"))
    client_id = self._get_param("ClientID")
    if client_id not in provider.client_id_list:
        provider.client_id_list = [*provider.client_id_list, client_id]
    return EmptyResult()


@replaces(IamResponse, "remove_client_id_from_open_id_connect_provider")
def _remove_client_id(self: MotoResponse) -> EmptyResult:
    provider = _get_provider(self.backend, self._get_param("OpenIDConnectProviderArn"))
    client_id = self._get_param("ClientID")
    provider.client_id_list = [item for item in provider.client_id_list if item != client_id]
    return EmptyResult()


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
