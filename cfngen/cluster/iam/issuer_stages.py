"""The states through which a running cluster begins, and ends, to use the issuer of service-account tokens.

Masters are replaced one after another, so for some minutes API servers of two configurations answer the same pods; and
an update may be rolled back. Each state therefore only takes what the state before it has prepared:

0. without an issuer
1. every API server accepts the issuer's tokens, and none issues them (`signTokens: false`)
2. every API server issues them; add-ons still use the roles of instances (`addonRoles: false`)
3. add-ons have roles of their own (`addonRoles: true`)

A cluster file may say any of these states. A creation goes to it directly; an update passes through those between.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.service_accounts import ServiceAccountIssuer

DISCOVERY_KEY = "serviceAccountIssuer.discovery"
URL_KEY = "serviceAccountIssuer.url"
BUCKET_KEY = "serviceAccountIssuer.bucket"
SIGN_TOKENS_KEY = "serviceAccountIssuer.signTokens"
ADDON_ROLES_KEY = "iam.addonRoles"

OFF, ACCEPTED, SIGNING, WITH_ADDON_ROLES = range(4)


class IssuerState(NamedTuple):
    """What a cluster has of the issuer, as text, so that a template can record it.

    Attributes:
        discovery: where AWS reads the documents; empty if the cluster has no issuer.
        url: the URL, if it is a web server.
        bucket: the bucket that the web server reads, if masters write the documents into one.
        signs_tokens: whether the issuer issues new tokens.
        addon_roles: whether add-ons have roles of their own.
    """

    discovery: str = ""
    url: str = ""
    bucket: str = ""
    signs_tokens: bool = False
    addon_roles: bool = False

    @property
    def stage(self) -> int:
        """The number of the state."""
        if not self.discovery:
            return OFF
        if not self.signs_tokens:
            return ACCEPTED
        return WITH_ADDON_ROLES if self.addon_roles else SIGNING

    @property
    def identity(self) -> str:
        """What says whether two states have the same issuer; empty if the cluster has none."""
        return self.url or self.discovery


def issuer_state(cluster: Cluster) -> IssuerState:
    """Return the state that a cluster file asks for."""
    issuer = cluster.service_account_issuer
    if issuer is None:
        return IssuerState()
    return IssuerState(
        issuer.discovery, issuer.url or "", issuer.bucket or "", issuer.sign_tokens, cluster.iam.addon_roles
    )


def state_to_record(cluster: Cluster) -> dict[str, str]:
    """Return the state by keys of the cluster file; empty without an issuer, as for other settings left out."""
    state = issuer_state(cluster)
    if not state.discovery:
        return {}
    texts = {DISCOVERY_KEY: state.discovery, URL_KEY: state.url, BUCKET_KEY: state.bucket}
    return {
        **{key: text for key, text in texts.items() if text},
        SIGN_TOKENS_KEY: str(state.signs_tokens).lower(),
        ADDON_ROLES_KEY: str(state.addon_roles).lower(),
    }


def recorded_state(recorded: Mapping[str, str]) -> IssuerState:
    """Return the state that a template records, by keys of the cluster file."""
    return IssuerState(
        recorded.get(DISCOVERY_KEY, ""),
        recorded.get(URL_KEY, ""),
        recorded.get(BUCKET_KEY, ""),
        recorded.get(SIGN_TOKENS_KEY) == "true",
        recorded.get(ADDON_ROLES_KEY) == "true",
    )


def issuer_stages(deployed: IssuerState, final_cluster: Cluster) -> tuple[Cluster, ...]:
    """Return the clusters to deploy one after another; the last one is the wanted cluster.

    Each has all other changes of the cluster file, so that the first update makes them. A cluster with one master
    passes through the same states: if an update is rolled back, pods hold tokens of the state that failed.
    """
    final_stage = issuer_state(final_cluster).stage
    if deployed.stage < final_stage:
        stages = range(deployed.stage + 1, final_stage)
        issuer = final_cluster.service_account_issuer
    else:
        stages = range(deployed.stage - 1, final_stage, -1)
        issuer = final_cluster.service_account_issuer or _issuer_of(deployed)
    if issuer is None:
        return (final_cluster,)
    return (*(_in_stage(final_cluster, issuer, stage) for stage in stages), final_cluster)


def _issuer_of(state: IssuerState) -> ServiceAccountIssuer | None:
    if not state.discovery:
        return None
    section = {"discovery": state.discovery, "url": state.url or None, "bucket": state.bucket or None}
    return ServiceAccountIssuer.model_validate(section)


def _in_stage(final_cluster: Cluster, issuer: ServiceAccountIssuer, stage: int) -> Cluster:
    signs_tokens = stage >= SIGNING
    addon_roles = stage >= WITH_ADDON_ROLES
    addons = final_cluster.addons
    has_webhook = signs_tokens and addons.pod_identity_webhook.enabled
    zones = addons.cert_manager.zones if addon_roles else ()
    return final_cluster.model_copy(
        update={
            "service_account_issuer": issuer.model_copy(update={"sign_tokens": signs_tokens}),
            "iam": final_cluster.iam.model_copy(update={"addon_roles": addon_roles}),
            "addons": addons.model_copy(
                update={
                    "pod_identity_webhook": addons.pod_identity_webhook.model_copy(update={"enabled": has_webhook}),
                    "cert_manager": addons.cert_manager.model_copy(update={"zones": zones}),
                }
            ),
        }
    )
