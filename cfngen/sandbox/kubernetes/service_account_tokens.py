"""Tokens of service accounts, as a cluster's API server issues them, and the documents by which others verify them.

kube-apiserver, reference of flags: of several `--service-account-issuer` the first one signs; without `--api-audiences`
the API's own audiences are all issuers. Configure Service Accounts for Pods, "Service account issuer discovery": the
server has the discovery document of the first issuer, and the keys.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.kubernetes.state import KubernetesState, Object, RefusedError
from cfngen.sandbox.services import json_web_tokens
from cfngen.sandbox.untyped import JsonDict, JsonObject

DISCOVERY_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/openid/v1/jwks"
TOKEN_PATH = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/serviceaccounts/(?P<name>[^/]+)/token")
# Kubernetes API reference, TokenRequest: an hour unless the request says otherwise, and at least ten minutes.
DEFAULT_SECONDS, MIN_SECONDS = 3_600, 600


@dataclass(frozen=True)
class TokenIssuer:
    """What an API server signs tokens with.

    Attributes:
        issuers: its issuers; it signs with the first one.
        keys_url: URL of the keys in the discovery document.
        audiences: the audiences of a token whose request names none.
        private_key: the key of service accounts, PEM.
        public_key: its public key, PEM.
    """

    issuers: Sequence[str]
    keys_url: str
    audiences: Sequence[str]
    private_key: str
    public_key: str

    def document(self, path: str) -> Object | None:
        """Return the document under a path of the API; None if it is another path."""
        if path == KEYS_PATH:
            return json_web_tokens.key_set(self.public_key)
        if path != DISCOVERY_PATH:
            return None
        return {
            "issuer": self.issuers[0],
            "jwks_uri": self.keys_url,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [json_web_tokens.ALGORITHM],
        }

    def answer(self, state: KubernetesState, path: str, body: bytes) -> Object | None:
        """Return the answer to a request for a token; None if the path is another one.

        Raises:
            RefusedError: there is no such service account, or the token would be valid for too short a time.
        """
        match = TOKEN_PATH.fullmatch(path)
        if match is None:
            return None
        namespace, name = match["namespace"], match["name"]
        account = state.get("serviceaccounts", name, namespace)
        if account is None:
            raise RefusedError(404, "NotFound", f'serviceaccounts "{name}" not found')
        specification = _specification(body)
        seconds = int(specification.get("expirationSeconds") or DEFAULT_SECONDS)
        if seconds < MIN_SECONDS:
            message = (
                f"spec.expirationSeconds: Invalid value: {seconds}: may not specify a duration less than 10 minutes"
            )
            raise RefusedError(422, "Invalid", f'TokenRequest.authentication.k8s.io "" is invalid: {message}')
        audiences = list(specification.get("audiences") or self.audiences)
        expires = state.now() + datetime.timedelta(seconds=seconds)
        token = self._sign(account, audiences, state.now(), expires)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": state.time()},
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": None},
            "status": {"token": token, "expirationTimestamp": state.time(seconds_from_now=seconds)},
        }

    def publish(self, region: str, bucket: str, issuer: str) -> list[str]:
        """Write the documents of an issuer into its bucket, as the boot program does; return the keys of new objects.

        Args:
            issuer: the issuer's URL without `https://`; it need not be the one that signs.
        """
        discovery = {
            "issuer": f"https://{issuer}",
            "jwks_uri": f"https://{issuer}{KEYS_PATH}",
            "authorization_endpoint": "urn:kubernetes:programmatic_authorization",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [json_web_tokens.ALGORITHM],
            "claims_supported": ["sub", "iss"],
        }
        documents = {KEYS_PATH: json_web_tokens.key_set(self.public_key), DISCOVERY_PATH: discovery}
        folder = issuer.partition("/")[2]
        s3, written = client("s3", region), []
        for path, document in documents.items():
            key, content = f"{folder}{path}".lstrip("/"), json.dumps(document).encode()
            with contextlib.suppress(s3.exceptions.NoSuchKey):
                if s3.get_object(Bucket=bucket, Key=key)["Body"].read() == content:
                    continue
            s3.put_object(Bucket=bucket, Key=key, Body=content, ContentType="application/json")
            written.append(key)
        return written

    def _sign(
        self, account: JsonObject, audiences: list[str], now: datetime.datetime, expires: datetime.datetime
    ) -> str:
        metadata = account["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        issued_at = int(now.timestamp())
        claims = {
            "aud": audiences,
            "exp": int(expires.timestamp()),
            "iat": issued_at,
            "iss": self.issuers[0],
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": metadata["uid"]}},
            "nbf": issued_at,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        return json_web_tokens.sign(claims, self.private_key)


def token_issuer(cluster_configuration: JsonObject, bundle: Mapping[str, str], address: str) -> TokenIssuer:
    """Return the issuer of the tokens of an API server.

    Args:
        cluster_configuration: kubeadm's ClusterConfiguration of its master.
        address: the API's URL, where the keys are unless a flag says otherwise.
    """
    issuers = _flags(cluster_configuration, "service-account-issuer")
    if not issuers:  # kubeadm's own, cmd/kubeadm/app/phases/controlplane/manifests.go
        issuers = [f"https://kubernetes.default.svc.{cluster_configuration['networking']['dnsDomain']}"]
    audiences = [audience for value in _flags(cluster_configuration, "api-audiences") for audience in value.split(",")]
    keys_urls = _flags(cluster_configuration, "service-account-jwks-uri")
    return TokenIssuer(
        issuers=issuers,
        keys_url=keys_urls[-1] if keys_urls else address + KEYS_PATH,
        audiences=audiences or issuers,
        private_key=bundle["sa.key"],
        public_key=bundle["sa.pub"],
    )


def _flags(cluster_configuration: JsonObject, name: str) -> list[str]:
    """Return the values of a flag of the API server, which may be given several times."""
    extra_args = cluster_configuration["apiServer"].get("extraArgs", [])
    return [str(extra_arg["value"]) for extra_arg in extra_args if extra_arg["name"] == name]


def _specification(body: bytes) -> JsonDict:
    try:
        request = json.loads(body or b"{}")
    except ValueError as error:
        raise RefusedError(400, "BadRequest", f"the body of the request was not understood: {error}") from error
    return dict(request.get("spec") or {})
