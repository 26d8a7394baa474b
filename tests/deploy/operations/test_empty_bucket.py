"""`delete --empty-bucket` where the bucket may not be read: what cannot be seen is not said to be nothing."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from cloud import Cloud
from deleting import NAME, REGION, Operator

from cfngen.deploy.aws import templates
from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.aws.errors import DeniedError
from cfngen.deploy.operations.deletion.execution import preview_with_refusal
from cfngen.deploy.plan.deletion.plan import DeletionRequest

BUCKET = "templates"


def _refused(**_: Any) -> None:
    raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no s3:ListBucketVersions"}}, "ListObjectVersions")


@pytest.fixture
def unreadable(cloud: Cloud) -> Account:
    """An account whose bucket holds a cluster's templates, which the caller may not list."""
    account = connect(cloud.session, REGION, clock=cloud.clock)
    s3 = account.client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": account.region})
    s3.put_object(Bucket=BUCKET, Key=f"{NAME}/a/vpc.json", Body=b"{}")
    s3.meta.events.register("before-call.s3.ListObjectVersions", _refused)
    return account


@pytest.mark.parametrize("wish", ["empty_bucket", "delete_bucket"])
def test_a_bucket_that_may_not_be_read_is_not_taken_for_an_empty_one(unreadable: Account, wish: str) -> None:
    operator = Operator(unreadable)
    with pytest.raises(DeniedError, match="not allowed to call ListObjectVersions"):
        preview_with_refusal(unreadable, DeletionRequest(NAME, NAME, bucket=BUCKET, **{wish: True}))
    with pytest.raises(DeniedError, match="not allowed to call ListObjectVersions"):
        operator.deletes(bucket=BUCKET, **{wish: True})
    assert operator.questions == [], "nothing is agreed to that cannot be done"


def test_who_leaves_the_templates_alone_need_not_be_able_to_read_them(unreadable: Account) -> None:
    found = preview_with_refusal(unreadable, DeletionRequest(NAME, NAME, bucket=BUCKET))[0]
    assert (found.objects, found.retained) == (0, ())


@pytest.mark.parametrize("needed", [True, False])
def test_a_bucket_that_is_gone_holds_nothing(account: Account, needed: bool) -> None:
    assert templates.find(account, "nowhere", NAME, must_be_allowed=needed).versions == 0
