"""The updates in which a running cluster begins, and ends, to use the issuer of service-account tokens.

`cfngen.cluster.iam.issuer_stages` decides which states there are between. Each update is a whole deployment and leads
from one state to the next. The root's metadata records the state, so a deployment continues where an earlier one
ended or failed.
"""

from __future__ import annotations

from datetime import timedelta

from cfngen.cluster.iam.issuer_stages import ACCEPTED, OFF, SIGNING, WITH_ADDON_ROLES, issuer_state, recorded_state
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.plan import PlannedUpdate
from cfngen.templates.immutable_settings import recorded_settings

TOKEN_LIFETIME = timedelta(hours=1)
"""How long a pod may hold a token that was issued before.

The kubelet asks for tokens of 3,607 seconds for the Kubernetes API and renews them after 80 per cent of that
("Configure Service Accounts for Pods", Kubernetes documentation).
"""
REASON = (
    "while API servers are replaced, and after an update that is rolled back, an old one must accept the tokens that a "
    "new one has issued"
)
_REASON_OFF = "pods must not hold a token any more that API servers then refuse"
_UP = {
    ACCEPTED: PlannedUpdate(
        "API servers accept the issuer's tokens", "masters are replaced one at a time; tokens are issued as before"
    ),
    SIGNING: PlannedUpdate(
        "API servers issue the issuer's tokens",
        "masters are replaced one at a time; from now on AWS STS accepts tokens, so pods can have the roles of "
        "iam.serviceAccounts; add-ons keep the roles of instances",
    ),
    WITH_ADDON_ROLES: PlannedUpdate(
        "add-ons use roles of their own",
        "masters are replaced one at a time and install the add-ons anew; afterwards the roles of masters and nodes "
        "lose what only add-ons needed, and so does everything else that used these roles for it",
    ),
}
_DOWN = {
    SIGNING: PlannedUpdate(
        "add-ons use the roles of instances again",
        "masters are replaced one at a time and install the add-ons anew; the roles of masters and nodes may do again "
        "what add-ons need",
    ),
    ACCEPTED: PlannedUpdate(
        "API servers issue tokens for Kubernetes only",
        "masters are replaced one at a time, and delete the pod identity webhook if the cluster has it; AWS STS "
        "refuses the new tokens, so pods lose their IAM roles",
    ),
    OFF: PlannedUpdate(
        "the issuer is removed",
        "masters are replaced one at a time, and the OIDC provider, the roles of service accounts and what served the "
        "issuer's documents are deleted; begins an hour after the update before, when pods have new tokens",
    ),
}


def planned_updates(deployed_root_template: TemplatePart, clusters: tuple[Cluster, ...]) -> tuple[PlannedUpdate, ...]:
    """Return what the updates to these clusters do; empty if there is only one."""
    if len(clusters) < 2:
        return ()
    deployed_stage = recorded_state(recorded_settings(deployed_root_template)).stage
    stages = [issuer_state(cluster).stage for cluster in clusters]
    updates_by_stage = _UP if stages[-1] > deployed_stage else _DOWN
    return tuple(updates_by_stage[stage] for stage in stages)


def why_several(updates: tuple[PlannedUpdate, ...]) -> str:
    """Return why a deployment takes several updates; empty if it takes one."""
    if not updates:
        return ""
    return f"{REASON}; {_REASON_OFF}" if updates[-1] == _DOWN[OFF] else REASON


def issuer_impacts(deployed_root_template: TemplatePart, cluster: Cluster) -> tuple[Impact, ...]:
    """Return what the update to the next state means, which a change set does not show."""
    if not deployed_root_template:
        return ()
    deployed = recorded_state(recorded_settings(deployed_root_template)).stage
    requested = issuer_state(cluster).stage
    if requested == deployed:
        return ()
    update = (_UP if requested > deployed else _DOWN)[requested]
    return (Impact(f"{update.title}: {update.effect}", Danger.DISRUPTIVE),)
