"""From a service account to credentials of a role: tokens of a sandboxed cluster, the issuer's documents, and STS."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import official_client
import pytest
from botocore.exceptions import ClientError
from sandboxed import Place, place
from test_sandbox_kubernetes import Reached
from web_identities import AUDIENCE, SUBJECT, Issuer, assume, through_cloudfront

from cfngen.sandbox.kubernetes.cluster import KubernetesCluster
from cfngen.sandbox.services import checking_rules


@dataclasses.dataclass(frozen=True)
class Federated:
    """A cluster whose API server signs for an issuer that an OIDC provider of the account trusts."""

    reached: Reached
    issuer: Issuer

    @property
    def cluster(self) -> KubernetesCluster:
        return self.reached.cluster

    def token(self, account: str = "web", audience: str = AUDIENCE) -> str:
        """A token as `kubectl create token` asks for it."""
        request = {"spec": {"audiences": [audience], "expirationSeconds": 3600}}
        with self.reached.core() as core:
            answer = core.create_namespaced_service_account_token(account, "default", request)
        return str(answer.status.token)


@pytest.fixture(scope="module")
def federated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federated]:
    """The default cluster, and a stack with its issuer."""
    with place() as where, checking_rules():
        yield _federated(where, tmp_path_factory)


def _federated(where: Place, tmp_path_factory: pytest.TempPathFactory) -> Federated:
    assert where.create().status == "CREATE_COMPLETE"
    cluster = where.account.cluster("kubernetes")
    reached = Reached(where, cluster, where.account.address(cluster), tmp_path_factory.mktemp("certificates"))
    issuer = Issuer(where.account.cloud, through_cloudfront(), name="issuer")
    # As if the first `service-account-issuer` of the API server's flags were this one.
    cluster.token_issuer = dataclasses.replace(cluster.token_issuer, issuers=[issuer.url])
    with reached.core() as core:
        for name in ("web", "other"):
            core.create_namespaced_service_account("default", {"metadata": {"name": name}})
    return Federated(reached, issuer)


def test_only_published_documents_make_a_token_good(federated: Federated) -> None:
    token = federated.token()
    with pytest.raises(ClientError, match="Couldn't retrieve verification key"):
        assume(token)
    region, host = federated.cluster.region, federated.issuer.url.removeprefix("https://")
    publish = federated.cluster.token_issuer.publish
    assert publish(region, federated.issuer.bucket, host) == ["openid/v1/jwks", ".well-known/openid-configuration"]
    assert publish(region, federated.issuer.bucket, host) == []
    assert assume(token)["SubjectFromWebIdentityToken"] == SUBJECT
    with pytest.raises(ClientError, match="Not authorized"):
        assume(federated.token("other"))
    with pytest.raises(ClientError, match="Incorrect token audience"):
        assume(federated.token(audience="https://kubernetes.default.svc"))


def test_the_key_is_that_of_the_secret(federated: Federated) -> None:
    bundle = federated.reached.where.secret("caSecretArn")
    issuer = federated.cluster.token_issuer
    assert (issuer.private_key, issuer.public_key) == (bundle["sa.key"], bundle["sa.pub"])
    with federated.reached.api() as api:
        keys = _raw(api, "/openid/v1/jwks")
        assert _raw(api, "/.well-known/openid-configuration")["issuer"] == federated.issuer.url
    header = federated.token().split(".")[0]
    assert json.loads(base64.urlsafe_b64decode(header + "=="))["kid"] == keys["keys"][0]["kid"]


def _raw(api: Any, path: str) -> Any:
    """What `kubectl get --raw` prints."""
    return json.loads(api.request("GET", f"{api.configuration.host}{path}").data)


def test_the_documents_are_not_for_everybody(federated: Federated) -> None:
    with (
        federated.reached.api(anonymous=True) as api,
        pytest.raises(official_client.ApiException) as raised,
    ):
        _raw(api, "/openid/v1/jwks")
    assert raised.value.status == 403
