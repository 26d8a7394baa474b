"""A running cluster that begins, and ends, to use an issuer of service-account tokens: update after update."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator, groups

from cfngen.cluster.iam.issuer_stages import ACCEPTED, OFF, SIGNING, WITH_ADDON_ROLES, recorded_state
from cfngen.deploy.aws.stacks import read_template
from cfngen.deploy.messages.message import Message, Notice, Step
from cfngen.deploy.operations.deployment.deploy import deploy
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.preflight.existing.objects import ForeignObjectsError
from cfngen.deploy.preflight.immutable_settings import ImmutableSettingError
from cfngen.templates.immutable_settings import recorded_settings

pytestmark = pytest.mark.drill

OFF_FILE: dict[str, Any] = {"name": "one", "nodeGroups": groups("work", minSize=1, maxSize=1)}
ON_FILE: dict[str, Any] = {
    **OFF_FILE,
    "serviceAccountIssuer": {},
    "iam": {
        "serviceAccounts": [
            {
                "namespace": "shop",
                "name": "web",
                "policyStatements": [{"actions": ["s3:GetObject"], "resources": ["arn:aws:s3:::models/*"]}],
            }
        ]
    },
}
TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
    }
)
TITLES = {
    ACCEPTED: "API servers accept the issuer's tokens",
    SIGNING: "API servers issue the issuer's tokens",
    WITH_ADDON_ROLES: "add-ons use roles of their own",
}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def stage(operator: Operator) -> int:
    return recorded_state(recorded_settings(read_template(operator.account, "one"))).stage


def titles(plan: Plan) -> list[str]:
    return [update.title for update in plan.updates]


def role_names(operator: Operator) -> set[str]:
    roles = operator.account.client("iam").list_roles()["Roles"]
    return {role["RoleName"] for role in roles if role["RoleName"].startswith("one.us-west-2.")}


def test_on_and_off_again(operator: Operator) -> None:
    operator.deploy(OFF_FILE)
    assert titles(operator.plan(ON_FILE)) == [TITLES[ACCEPTED], TITLES[SIGNING], TITLES[WITH_ADDON_ROLES]]
    assert stage(operator) == OFF

    finished = operator.deploy(ON_FILE)
    assert (finished.status, finished.succeeded, stage(operator)) == ("UPDATE_COMPLETE", True, WITH_ADDON_ROLES)
    [question] = operator.questions
    assert question.text == "Deploy one in 3 updates?"
    assert {"one.us-west-2.shop.web", "one.us-west-2.kube-system.cloud-controller-manager"} <= role_names(operator)
    assert operator.plan(ON_FILE).is_empty

    finished = operator.deploy(OFF_FILE)
    assert (finished.succeeded, stage(operator)) == (True, OFF)
    assert len(operator.questions) == 1
    first, *_others = operator.reported(Plan)
    assert titles(first) == [
        "add-ons use the roles of instances again",
        "API servers issue tokens for Kubernetes only",
        "the issuer is removed",
    ]
    assert any(step.text.startswith("waiting until") for step in operator.reported(Step))
    assert max(operator.cloud.clock.slept) > 30 * 60
    assert not role_names(operator)
    buckets = operator.account.client("s3").list_buckets()["Buckets"]
    assert not [bucket["Name"] for bucket in buckets if "issuerbucket" in bucket["Name"]]
    assert operator.account.client("iam").list_open_id_connect_providers()["OpenIDConnectProviderList"] == []


def test_an_update_that_fails_leaves_the_state_before_it(operator: Operator) -> None:
    """The roles of add-ons come last: without them the cluster works, and a later deployment continues."""
    operator.deploy(OFF_FILE)

    def report(message: Message) -> None:
        operator.messages.append(message)
        if isinstance(message, Step) and message.text.startswith("update 3 of 3"):
            operator.cloud.engine.fail("ServiceAccountRoleKubeSystemCloudControllerManager36747b1f", "broken")

    interaction = replace(operator.waiting, report=report)
    finished = deploy(operator.account, operator.wanted(ON_FILE), interaction)
    assert (finished.status, finished.succeeded) == ("UPDATE_ROLLBACK_COMPLETE", False)
    assert stage(operator) == SIGNING
    remaining = [notice for notice in operator.reported(Notice) if "did not succeed" in notice.text]
    assert [TITLES[WITH_ADDON_ROLES] in notice.text for notice in remaining] == [True]

    assert titles(operator.plan(ON_FILE)) == []
    assert operator.deploy(ON_FILE).succeeded
    assert stage(operator) == WITH_ADDON_ROLES


def test_a_name_that_is_taken_is_said_before_the_first_update(operator: Operator) -> None:
    """Also if the role is made by the last update only."""
    operator.deploy(OFF_FILE)
    taken = "one.us-west-2.kube-system.cloud-controller-manager"
    operator.account.client("iam").create_role(RoleName=taken, AssumeRolePolicyDocument=TRUST)
    with pytest.raises(ForeignObjectsError, match=f"iam.addonRoles: account 123456789012 has a role {taken} already"):
        operator.deploy(ON_FILE)
    assert stage(operator) == OFF


def test_another_issuer_is_refused_with_the_way(operator: Operator) -> None:
    operator.deploy(ON_FILE)
    assert stage(operator) == WITH_ADDON_ROLES
    with pytest.raises(ImmutableSettingError, match="is cloudFront and cannot be changed to bucket") as refusal:
        operator.deploy({**ON_FILE, "serviceAccountIssuer": {"discovery": "bucket"}})
    assert "remove serviceAccountIssuer" in str(refusal.value.hint)
