"""Who deploys by the AWS CLI, the CDK or the console: the stack of one cluster, with the service role."""

from __future__ import annotations

import pytest
from policy_decisions import allows

from cfngen.cluster.load import parse
from cfngen.permissions.grants import grants, scope_of

ACCOUNT = "123456789012"
SERVICE_ROLE = f"arn:aws:iam::{ACCOUNT}:role/cfngen-cloudformation"
STACK = f"arn:aws:cloudformation:us-west-2:{ACCOUNT}:stack/kubernetes/1-2"
NESTED = f"arn:aws:cloudformation:us-west-2:{ACCOUNT}:stack/kubernetes-VpcStack-1AB/1-2"
OTHERS = f"arn:aws:cloudformation:us-west-2:{ACCOUNT}:stack/kubernetes-eu/1-2"
WITH_ROLE = ("ContinueUpdateRollback", "CreateChangeSet", "CreateStack", "DeleteStack", "RollbackStack", "UpdateStack")


def decided(action: str, resource: str, context: dict[str, str]) -> bool:
    cluster = parse({})
    [grant] = [each for each in grants(cluster, scope_of(cluster, account=ACCOUNT)) if each.name == "pipeline"]
    [policy] = grant.policies
    return allows([policy.document], action, resource, context)


@pytest.mark.parametrize("action", WITH_ROLE)
def test_the_stack_is_changed_with_the_service_role_and_with_no_other(action: str) -> None:
    with_role = {"cloudformation:RoleArn": SERVICE_ROLE}
    with_another = {"cloudformation:RoleArn": f"arn:aws:iam::{ACCOUNT}:role/admin"}
    assert decided(f"cloudformation:{action}", STACK, with_role)
    assert not decided(f"cloudformation:{action}", STACK, with_another)
    assert not decided(f"cloudformation:{action}", STACK, {})
    for other in (OTHERS, NESTED):
        assert not decided(f"cloudformation:{action}", other, with_role)


@pytest.mark.parametrize("action", ["ExecuteChangeSet", "DeleteChangeSet", "CancelUpdateStack", "TagResource"])
def test_change_sets_of_any_name_are_executed_by_their_stack(action: str) -> None:
    named = {"cloudformation:ChangeSetName": "awscli-cloudformation-package-deploy-1"}
    assert decided(f"cloudformation:{action}", STACK, named)
    assert not decided(f"cloudformation:{action}", OTHERS, named)
    by_arn = f"arn:aws:cloudformation:us-west-2:{ACCOUNT}:changeSet/others/1-2"
    assert not decided(f"cloudformation:{action}", by_arn, named)


def test_the_role_is_passed_to_cloudformation_alone() -> None:
    assert decided("iam:PassRole", SERVICE_ROLE, {"iam:PassedToService": "cloudformation.amazonaws.com"})
    assert not decided("iam:PassRole", SERVICE_ROLE, {"iam:PassedToService": "ec2.amazonaws.com"})
    assert not decided("iam:PassRole", SERVICE_ROLE, {})


def test_templates_are_uploaded_under_the_clusters_prefix() -> None:
    bucket = f"arn:aws:s3:::cfngen-{ACCOUNT}-us-west-2"
    assert decided("s3:PutObject", f"{bucket}/kubernetes/standalone.json", {})
    assert not decided("s3:PutObject", f"{bucket}/kubernetes-eu/standalone.json", {})
    assert not decided("s3:PutBucketPolicy", bucket, {})
