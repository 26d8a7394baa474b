"""A stack that is only under review goes if its change sets are the cluster's, and else belongs to someone else."""

from __future__ import annotations

from typing import Any

import pytest
from cloud import Cloud
from deleting import NAME, OURS, REGION, Operator
from made_by_kubernetes import pairs

from cfngen.deploy.aws.account import connect
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.operations.deletion.execution import preview_with_refusal
from cfngen.deploy.plan.deletion.plan import DeletionRequest
from cfngen.deploy.preflight.stack_checks import ForeignStackError

BODY = '{"Resources": {"Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}}}}'


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(connect(cloud.session, REGION, clock=cloud.clock))


def review(operator: Operator, name: str = NAME, **tags: Any) -> None:
    """A stack in which somebody looks at a change set."""
    client = operator.account.client("cloudformation")
    client.create_change_set(
        StackName=name, ChangeSetName="one", ChangeSetType="CREATE", TemplateBody=BODY, Tags=pairs(tags)
    )
    stack = find_stack(operator.account, name)
    assert stack
    assert stack.status.name == "REVIEW_IN_PROGRESS"


@pytest.mark.parametrize("tags", [{}, {"cfngen:cluster": "another"}, {"team": NAME}])
def test_a_stack_in_review_that_is_not_the_clusters_is_refused(operator: Operator, tags: dict[str, str]) -> None:
    review(operator, **tags)
    with pytest.raises(ForeignStackError):
        preview_with_refusal(operator.account, DeletionRequest(NAME, NAME))
    with pytest.raises(ForeignStackError):
        operator.deletes()
    assert operator.questions == []
    assert find_stack(operator.account, NAME), "its reviewer finds it as it was"


def test_a_stack_in_review_of_the_cluster_goes_with_its_change_sets(operator: Operator) -> None:
    review(operator, **OURS)
    operator.deletes()
    assert [question.text for question in operator.questions] == [
        f"Delete the empty stack {NAME} and the change sets in it? Nothing has been created from them."
    ]
    assert find_stack(operator.account, NAME) is None
