"""Stacks and their resources as they are read."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from recorded import NESTED, NOW, STACK_ID, Recorded, RefusedError

from cfngen.deploy.aws.stacks import StackView, list_resource_tree, reread_stack
from cfngen.deploy.messages.stack_status import StackStatus

CHILD = STACK_ID.replace("kubernetes", "kubernetes-VpcStack-1")


def listing(status: str) -> Recorded:
    """A root that lists a nested stack, which CloudFormation does not know (any more)."""
    api = Recorded()
    child = {
        "LogicalResourceId": "VpcStack",
        "PhysicalResourceId": CHILD,
        "ResourceType": NESTED,
        "ResourceStatus": status,
        "LastUpdatedTimestamp": NOW,
    }

    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        if asked["StackName"] == CHILD:
            raise RefusedError("ValidationError", f"Stack with id {CHILD} does not exist")
        return {"StackResourceSummaries": [child]}

    api.answers["ListStackResources"] = answer
    return api


def test_a_nested_stack_that_was_deleted_long_ago_is_no_obstacle():
    found = list_resource_tree(listing("DELETE_COMPLETE").account, STACK_ID)
    assert [each.name for each in found] == ["VpcStack"]


def test_a_nested_stack_that_should_be_there_and_is_not_is_said():
    with pytest.raises(ClientError, match="does not exist"):
        list_resource_tree(listing("CREATE_COMPLETE").account, STACK_ID)


@pytest.mark.parametrize(("known", "status"), [(True, "CREATE_COMPLETE"), (False, "DELETE_IN_PROGRESS")])
def test_a_stack_that_cloudformation_has_forgotten_is_as_it_was(known: bool, status: str):
    before = StackView("kubernetes", STACK_ID, StackStatus("DELETE_IN_PROGRESS"))
    assert reread_stack(Recorded(exists=known).account, before).status.name == status
