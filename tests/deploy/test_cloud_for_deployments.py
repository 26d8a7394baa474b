"""The account that the tests of deployment share: it makes the default cluster, and time passes only there."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from cloud import Cloud, cloud_of
from clusters import ALLOWED, BUCKET, PREFIX, golden

PARAMETERS = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}


def change_set(cloud: Cloud, name: str = "k8s") -> dict[str, Any]:
    """What the creation of the cluster's root stack would do."""
    cfn = cloud.client("cloudformation")
    wanted = cloud.account.templates["cluster"]["Parameters"]
    identity = cfn.create_change_set(
        StackName=name,
        ChangeSetName="first",
        ChangeSetType="CREATE",
        TemplateURL=cloud.account.url("cluster"),
        Parameters=[
            {"ParameterKey": key, "ParameterValue": value} for key, value in PARAMETERS.items() if key in wanted
        ],
        Capabilities=["CAPABILITY_IAM"],
        IncludeNestedStacks=True,
    )["Id"]
    cfn.get_waiter("change_set_create_complete").wait(ChangeSetName=identity)
    return dict(cfn.describe_change_set(ChangeSetName=identity))


def test_the_default_cluster_comes_and_goes_in_simulated_time(cloud: Cloud) -> None:
    began, cfn = cloud.clock.now(), cloud.client("cloudformation")
    planned = change_set(cloud)
    assert {change["ResourceChange"]["Action"] for change in planned["Changes"]} == {"Add"}
    cfn.execute_change_set(ChangeSetName=planned["ChangeSetId"])
    cfn.get_waiter("stack_create_complete").wait(StackName="k8s")
    assert cloud.clock.now() > began
    [root] = cfn.describe_stacks(StackName="k8s")["Stacks"]
    assert "ApiEndpoint" in {output["OutputKey"] for output in root["Outputs"]}
    assert len(cloud.machines.references) == 5
    nested = [stack for stack in cfn.describe_stacks()["Stacks"] if stack.get("RootId") == root["StackId"]]
    assert len(nested) == sum(
        change["ResourceChange"]["ResourceType"].endswith("::Stack") for change in planned["Changes"]
    )
    cfn.delete_stack(StackName="k8s")
    cfn.get_waiter("stack_delete_complete").wait(StackName=root["StackId"])


def test_throttled_clients_wait_by_the_simulated_clock(cloud: Cloud) -> None:
    cloud.faults.throttle("DescribeStacks", seconds=30)
    config = Config(retries={"mode": "standard", "total_max_attempts": 8})
    cfn = cloud.session.client("cloudformation", config=config)
    assert cfn.describe_stacks()["Stacks"] == []
    assert sum(cloud.clock.slept) >= 30
    assert cloud.engine.clock.now >= 30


def test_waiting_for_what_never_happens_is_noticed(cloud: Cloud) -> None:
    cloud.clock.sleep(86_400)
    with pytest.raises(AssertionError, match="never happens"):
        cloud.clock.sleep(30 * 86_400)


def test_machines_that_fail_fail_the_stack() -> None:
    with cloud_of(golden("default"), MasterAAutoScalingGroup="FAILURE") as cloud:
        planned = change_set(cloud)
        cfn = cloud.client("cloudformation")
        cfn.execute_change_set(ChangeSetName=planned["ChangeSetId"])
        for _ in range(60):
            cloud.clock.sleep(60)
        assert cfn.describe_stacks(StackName="k8s")["Stacks"][0]["StackStatus"] == "ROLLBACK_COMPLETE"


def test_a_user_with_fewer_permissions(cloud: Cloud) -> None:
    policy = {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Allow", "Action": "cloudformation:Describe*", "Resource": "*"},
    }
    with cloud.permissions.enforcing(policy) as credentials:
        cfn = cloud.session_of(credentials).client("cloudformation")
        assert cfn.describe_stacks()["Stacks"] == []
        with pytest.raises(ClientError, match="not authorized to perform: cloudformation:CreateStack"):
            cfn.create_stack(StackName="k8s", TemplateBody="{}")
