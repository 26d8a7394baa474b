"""Roles of pods that a new cluster could not use, or S3 would refuse: said before anything is created."""

from __future__ import annotations

from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator

from cfngen.deploy.preflight.existing.objects import ForeignObjectsError

URL = "https://tokens.example.com/one"


def cluster_file(issuer: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "one", "serviceAccountIssuer": issuer, **more}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def test_masters_that_would_wait_for_documents_of_their_own_keys(operator: Operator) -> None:
    """Nobody can publish them yet, and without them the cloud controller manager gets no credentials."""
    self_published = {"discovery": "url", "url": URL}
    with pytest.raises(
        ForeignObjectsError, match=r"iam\.addonRoles: AWS has to read .*; create the cluster with false"
    ):
        operator.plan(cluster_file(self_published, iam={"addonRoles": True}))
    assert not operator.plan(cluster_file(self_published)).is_empty


def test_a_public_bucket_in_an_account_that_blocks_them(operator: Operator) -> None:
    account = operator.account
    account.client("s3control").put_public_access_block(
        AccountId=account.id, PublicAccessBlockConfiguration={"BlockPublicPolicy": True}
    )
    with pytest.raises(ForeignObjectsError, match=r"serviceAccountIssuer\.discovery: account .* blocks public buckets"):
        operator.plan(cluster_file({"discovery": "bucket"}))
