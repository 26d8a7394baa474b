"""Clusters with existing roles, profiles and keys: what is said before they are created, and who may create."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cloud import Cloud, cloud_of
from clusters import bring_roles, golden
from deployments import ALLOWED, Operator

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.operations.deployment.deploy import deploy
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.preflight.existing import roles as role_permissions
from cfngen.deploy.preflight.existing import services
from cfngen.deploy.preflight.immutable_settings import ImmutableSettingError
from cfngen.permissions.grants import grants, scope_of

pytestmark = pytest.mark.drill

ROLES = "own-roles"
PROFILES = "own-instance-profiles"


def account_of(cloud: Cloud) -> Account:
    return connect(cloud.session, cloud.cluster.region, clock=cloud.clock, attempts=1)


def said_of_roles(cloud: Cloud, cluster: Cluster) -> list[str]:
    return [notice.text for notice in role_permissions.notices(account_of(cloud), cluster, "kubernetes")]


@pytest.mark.parametrize("case", [ROLES, PROFILES])
def test_roles_with_the_printed_policies_lack_nothing(case: str) -> None:
    with cloud_of(golden(case)) as cloud:
        assert said_of_roles(cloud, cloud.cluster) == []


@pytest.mark.parametrize("configuration", [{"plugin": "amazon-vpc"}, {"plugin": "vpc-routes"}])
def test_the_printed_policies_suffice_with_every_add_on(configuration: dict[str, Any]) -> None:
    file = {
        "iam": {"masters": {"role": "arn:aws:iam::123456789012:role/m"}},
        "network": configuration,
        "addons": {name: {"enabled": True} for name in ("clusterAutoscaler", "awsLoadBalancerController")},
        "etcd": {"backups": {"bucket": "snapshots-of-ours"}},
    }
    with cloud_of(parse(file)) as cloud:
        assert said_of_roles(cloud, cloud.cluster) == []


def test_actions_that_a_role_lacks_are_named() -> None:
    with cloud_of(golden(PROFILES)) as cloud:
        iam = cloud.client("iam")
        deny = {"Effect": "Deny", "Action": ["ec2:AttachVolume", "secretsmanager:*"], "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [deny]})
        iam.put_role_policy(RoleName="kubernetes-masters", PolicyName="deny", PolicyDocument=document)
        for policy in iam.list_attached_role_policies(RoleName="kubernetes-nodes")["AttachedPolicies"]:
            iam.detach_role_policy(RoleName="kubernetes-nodes", PolicyArn=policy["PolicyArn"])
        masters, nodes = said_of_roles(cloud, cloud.cluster)
    assert masters == (
        "iam.masters.role: according to IAM's policy simulator, arn:aws:iam::123456789012:role/kubernetes-masters "
        "lacks ec2:AttachVolume, secretsmanager:GetSecretValue and secretsmanager:PutSecretValue of the actions in "
        "master-1 and master-2"
    )
    assert nodes.startswith("iam.nodes.role: according to IAM's policy simulator, ")
    assert nodes.endswith(" more of the actions in nodes-nodes")


def test_who_may_not_simulate_is_told_and_may_deploy() -> None:
    cluster = golden(PROFILES)
    with cloud_of(cluster) as cloud:
        everything_else = {"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}
        with cloud.permissions.enforcing({"Version": "2012-10-17", "Statement": everything_else}) as credentials:
            account = connect(cloud.session_of(credentials), "us-west-2", clock=cloud.clock, attempts=1)
            operator = Operator(cloud)
            finished = deploy(account, operator.wanted(cluster), operator.waiting)
        assert finished.succeeded
        notices = [notice.text for notice in operator.reported(Notice)]
    assert sum("has the permissions that it needs is not known: not allowed to call" in text for text in notices) == 2


def test_the_printed_permissions_suffice_to_deploy_without_a_word_about_iam() -> None:
    cluster = golden(PROFILES)
    everybody = {grant.name: grant for grant in grants(cluster, scope_of(cluster, account="123456789012"))}
    policies = [policy.document for name in ("operator", "bucket", "execution") for policy in everybody[name].policies]
    with cloud_of(cluster) as cloud, cloud.permissions.enforcing(*policies) as credentials:
        account = connect(cloud.session_of(credentials), "us-west-2", clock=cloud.clock, attempts=1)
        operator = Operator(cloud)
        assert deploy(account, operator.wanted(cluster), operator.waiting).succeeded
        assert [notice.text for notice in operator.reported(Notice) if "iam" in notice.text] == []


def test_an_existing_role_in_place_of_a_made_one_replaces_the_instances() -> None:
    with cloud_of(parse({})) as cloud:
        operator = Operator(cloud)
        assert operator.deploy({}, flags=ALLOWED).succeeded
        masters = {"role": "arn:aws:iam::123456789012:role/m"}
        cluster = parse({"iam": {"masters": masters}})
        bring_roles(cluster)
        cloud.clock.sleep(60)
        assert operator.deploy(cluster).succeeded
        [plan] = operator.reported(Plan)
        texts = [change.impact.text for stack in plan.stacks for change in stack.changes if change.impact]
        assert "permissions: the role of the masters is removed" in texts
        assert any(text.startswith("master a is replaced; it is the only master") for text in texts)
        iam = cloud.client("iam")
        assert [profile["InstanceProfileName"] for profile in profiles_with(iam, "m")] != []
        assert all("MasterRole" not in role["RoleName"] for role in iam.list_roles()["Roles"])
        cloud.clock.sleep(60)
        assert operator.deploy(cluster).action == "none"
        # Another role is put into the same profile.
        other = parse({"iam": {"masters": {"role": "arn:aws:iam::123456789012:role/other"}}})
        bring_roles(other)
        assert operator.deploy(other).succeeded
        [plan] = operator.reported(Plan)
        [impact] = [change.impact for stack in plan.stacks for change in stack.changes if change.impact]
        assert impact.text.startswith("permissions: the instance profile of the masters holds another role; running")
        assert len(profiles_with(iam, "other")) == 1


def profiles_with(iam: Any, role: str) -> list[Any]:
    return list(iam.list_instance_profiles_for_role(RoleName=role)["InstanceProfiles"])


def test_the_key_of_the_secrets_stays() -> None:
    with cloud_of(parse({})) as cloud:
        operator = Operator(cloud)
        assert operator.deploy({}, flags=ALLOWED).succeeded
        key = str(cloud.client("kms").create_key()["KeyMetadata"]["Arn"])
        with pytest.raises(ImmutableSettingError) as raised:
            operator.plan({"secrets": {"kmsKey": key}})
    [problem] = raised.value.problems
    assert str(problem).startswith(
        f"secrets.kmsKey: was a key made with the cluster when the cluster was created and cannot be changed to {key}: "
    )


def said_of_key(cloud: Cloud, policy: dict[str, Any], **sections: Any) -> list[str]:
    """What is said of a key with a policy, which only root may change; `sections` are of the cluster file."""
    kms = cloud.client("kms")
    key = str(kms.create_key()["KeyMetadata"]["Arn"])
    kms.put_key_policy(
        KeyId=key.rpartition("/")[2],
        PolicyName="default",
        Policy=json.dumps({"Version": "2012-10-17", "Statement": policy}),
        BypassPolicyLockoutSafetyCheck=True,
    )
    cluster = parse({"secrets": {"kmsKey": key}, **sections})
    return [notice.text for notice in services.notices(account_of(cloud), cluster)]


def statement(principal: Any, *actions: str) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": principal, "Action": list(actions), "Resource": "*"}


@pytest.mark.parametrize(
    "principal", [{"AWS": "arn:aws:iam::123456789012:root"}, {"AWS": ["123456789012"]}, "*", {"AWS": "*"}]
)
def test_a_key_policy_that_leaves_access_to_iam_is_fine(cloud: Cloud, principal: Any) -> None:
    assert said_of_key(cloud, statement(principal, "kms:*")) == []


def test_a_key_policy_that_names_nobody_of_the_cluster_is_said(cloud: Cloud) -> None:
    elsewhere = statement({"AWS": "arn:aws:iam::210987654321:root"}, "kms:*")
    only_administration = statement({"AWS": "arn:aws:iam::123456789012:root"}, "kms:Describe*", "kms:Put*")
    for policy in (elsewhere, only_administration):
        [text] = said_of_key(cloud, policy)
        assert text.startswith(
            "secrets.kmsKey: the key's policy neither leaves access to the IAM policies of account 1"
        )


def test_a_key_policy_that_names_the_roles_is_fine(cloud: Cloud) -> None:
    roles = golden(PROFILES)
    bring_roles(roles)
    arns = [f"arn:aws:iam::123456789012:role/kubernetes-{kind}" for kind in ("masters", "nodes")]
    iam = roles.iam.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert said_of_key(cloud, statement({"AWS": arns}, "kms:Decrypt", "kms:GenerateDataKey"), iam=iam) == []
    [text] = said_of_key(cloud, statement({"AWS": arns[0]}, "kms:Decrypt"), iam=iam)
    assert "nor names the roles of masters and nodes" in text
