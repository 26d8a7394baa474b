"""What the emulator shows of faults that our templates once had, when the mend is taken out of today's again.

Those that end in a refusal are rows of wrong/mends_taken_out.yaml; here are those that an operator meets otherwise.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from clusters import ALLOWED, BUCKET, PREFIX, Account, golden, prepared
from wrong_templates import upload

from cfngen.sandbox.cloudformation import Stack, client

pytestmark = pytest.mark.drill

MASTERS, NODES = "MasterAAutoScalingGroup", "NodeGroupNodesAutoScalingGroup"


def created(account: Account, body: dict[str, Any], **parameters: str) -> Stack:
    values = {"ApiAllowedCidr": ALLOWED, **parameters}
    url = upload(account, body)
    return account.cloud.wait(
        account.cloud.create_stack("k8s", url=url, parameters=values, capabilities=["CAPABILITY_IAM"])
    )


def updated(account: Account, body: dict[str, Any], **parameters: str) -> Stack:
    values = {"ApiAllowedCidr": ALLOWED, **parameters}
    url = upload(account, body)
    return account.cloud.wait(
        account.cloud.update_stack("k8s", url=url, parameters=values, capabilities=["CAPABILITY_IAM"])
    )


@pytest.mark.parametrize(("kind", "status"), [("String", "CREATE_COMPLETE"), ("AWS::EC2::VPC::Id", "FAILED")])
def test_a_wired_parameter_of_a_type_that_a_nested_change_set_cannot_fill(kind: str, status: str) -> None:
    account = prepared(golden("default"))
    body = copy.deepcopy(account.templates["security-groups"])
    body["Parameters"]["VpcId"]["Type"] = kind
    upload(account, body, "security-groups")
    values = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}
    change_set = account.cloud.create_change_set(
        "k8s",
        "first",
        url=account.url("cluster"),
        parameters=values,
        capabilities=["CAPABILITY_IAM"],
        nested=True,
        kind="CREATE",
    )
    account.cloud.advance(60)
    assert change_set.status == status, change_set.reason


@pytest.mark.parametrize(("policy", "left"), [("RetainExceptOnCreate", 0), ("Retain", 1)])
def test_a_bucket_that_a_failed_creation_leaves(policy: str, left: int) -> None:
    account = prepared(golden("default"), **{NODES: "FAILURE"})
    s3 = client("s3", account.cluster.region)
    before = len(s3.list_buckets()["Buckets"])
    account.cloud.fail(NODES, "no room")
    body = copy.deepcopy(account.templates["standalone"])
    body["Resources"]["BackupBucket"]["DeletionPolicy"] = policy
    assert created(account, body).status == "ROLLBACK_COMPLETE"
    assert len(s3.list_buckets()["Buckets"]) - before == left


@pytest.mark.parametrize(
    ("together", "status"), [(False, "UPDATE_ROLLBACK_COMPLETE"), (True, "UPDATE_ROLLBACK_FAILED")]
)
def test_a_volume_that_grows_together_with_what_fails(together: bool, status: str) -> None:
    account = prepared(golden("default"))
    body = account.templates["standalone"]
    created(account, body)
    size = {"MasterVolumeSize": "40"}
    if not together:
        assert updated(account, body, **size).status == "UPDATE_COMPLETE"
    account.cloud.fail(NODES, "no room", during="UPDATE")
    assert updated(account, body, **size, NodeGroupNodesInstanceType="m7i.large").status == status


@pytest.mark.parametrize("ordered", [True, False])
def test_nodes_that_are_replaced_while_their_master_is(ordered: bool) -> None:
    account = prepared(golden("default"))
    body = copy.deepcopy(account.templates["standalone"])
    if not ordered:
        body["Resources"][NODES]["DependsOn"].remove(MASTERS)
    stack = created(account, body)
    before = len(stack.events)
    sizes = {"MasterInstanceType": "m7i.large", "NodeGroupNodesInstanceType": "m7i.large"}
    assert updated(account, body, **sizes).status == "UPDATE_COMPLETE"
    events = stack.events[before:]
    master = [event.time for event in events if event.logical_id == MASTERS and "SUCCESS" in event.reason]
    nodes = [event.time for event in events if event.logical_id == NODES and "Rolling update" in event.reason]
    assert (nodes[0] >= master[-1]) == ordered
