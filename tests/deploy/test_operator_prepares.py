"""The operator's policy suffices for what comes before a deployment."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError
from documented_policies import bucket_policy, operator_policy

from cfngen.deploy.aws.account import connect
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.operations import stack_protection
from cfngen.deploy.plan.publishing.bucket import ensure_bucket
from cfngen.deploy.plan.publishing.publish import publish
from cfngen.deploy.preflight.quotas import checks
from cfngen.deploy.preflight.quotas.demand import count_demand
from cfngen.permissions.scope import Scope
from cfngen.templates import generate

BUCKET = "cfngen-123456789012-us-west-2"
SCOPE = Scope("123456789012", "us-west-2", "kubernetes")


def test_an_operator_with_the_policy_can_prepare_a_deployment(cloud, said):
    """Who may make the bucket for templates does so once; afterwards operators write their clusters' templates."""
    documents = generate(cloud.cluster)
    cloud.account.create("cluster", name="kubernetes")
    with cloud.permissions.enforcing(bucket_policy(SCOPE)) as credentials:
        ensure_bucket(connect(cloud.session_of(credentials), "us-west-2", clock=cloud.clock), report=said.append)
        with pytest.raises(ClientError, match="s3:PutObject"):
            cloud.session_of(credentials).client("s3", "us-west-2").put_object(Bucket=BUCKET, Key="kubernetes/a.json")
    said.clear()
    with cloud.permissions.enforcing(operator_policy(SCOPE)) as credentials:
        account = connect(cloud.session_of(credentials), "us-west-2", clock=cloud.clock, attempts=1)
        with pytest.raises(ClientError, match="s3:PutBucketPolicy"):
            account.client("s3").put_bucket_policy(Bucket=BUCKET, Policy="{}")
        assert publish(account, documents, cluster="kubernetes", report=said.append).written == 7
        stack_protection.protect_stack(account, find_stack(account, "kubernetes"), report=said.append)
        assert find_stack(account, "kubernetes").protected
        assert {quota.sufficient for quota in checks.check_quotas(account, count_demand(documents, {}))} == {True}
        assert not [message for message in said if isinstance(message, Notice)]
