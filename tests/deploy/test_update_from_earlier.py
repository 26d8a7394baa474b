"""Clusters from before node groups came after masters, brought to today's templates by `deploy`."""

from __future__ import annotations

import pytest
from cloud import cloud_of
from deployments import Operator
from earlier import CASES, earlier

from cfngen.cli.render.plan import lines
from cfngen.deploy.messages import Event
from cfngen.deploy.preview.plan import Plan
from cfngen.templates.document import Document


def documents(templates: dict[str, dict]) -> tuple[Document, ...]:
    children = tuple(name for name in templates if name not in ("cluster", "standalone"))
    return tuple(
        Document(name, body, "earlier", children if name == "cluster" else ()) for name, body in templates.items()
    )


@pytest.mark.parametrize("case", CASES)
def test_a_cluster_of_before_is_brought_to_today(case: str) -> None:
    before = earlier(case)
    names = [f"NodeGroup{each['name'].title()}Stack" for each in before.file["nodeGroups"]]
    with cloud_of(before.cluster) as cloud:
        operator = Operator(cloud)
        operator.deploy(before.cluster, flags={}, documents=documents(before.templates))
        finished = operator.deploy(before.cluster, flags={})
        assert finished.status == "UPDATE_COMPLETE"
        [plan] = operator.reported(Plan)
        rolled = [each.logical_id for each in operator.reported(Event) if "Rolling update initiated" in each.reason]
        assert operator.deploy(before.cluster, flags={}).action == "none"
    assert [(each.kind, each.groups, each.foreseen) for each in plan.phases] == [
        ("control-plane", (), False),
        *(("node-groups", (name,), True) for name in names),
    ]
    letters = "ABC" if case == "three-masters" else "A"
    assert rolled == [
        *(f"Master{letter}AutoScalingGroup" for letter in letters),
        *(name.replace("Stack", "AutoScalingGroup") for name in names),
    ]
    text = "\n".join(lines(plan, width=100))
    assert f"Phase 1 of {len(names) + 1}: control plane" in text
    assert "foreseen" in text


def test_an_update_of_a_cluster_of_before_is_taken_back() -> None:
    """The second master does not come back; the conditions that the new templates move stay where they were."""
    before = earlier("three-masters")
    with cloud_of(before.cluster) as cloud:
        operator = Operator(cloud)
        operator.deploy(before.cluster, flags={}, documents=documents(before.templates))
        cloud.machines.outcomes = {"MasterBAutoScalingGroup": "FAILURE"}
        operator.messages = Recovering(operator)
        finished = operator.deploy(before.cluster, flags={})
        assert finished.status == "UPDATE_ROLLBACK_COMPLETE"
        [masters] = [each for each in cloud.engine.stacks() if "MasterStack" in each.name]
        assert masters.resources["MasterAWaitCondition"].status == "CREATE_COMPLETE"
        assert operator.deploy(before.cluster, flags={}).status == "UPDATE_COMPLETE"


class Recovering(list):
    """Messages; once something has failed all instances boot again."""

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self.operator = operator

    def append(self, message) -> None:
        super().append(message)
        if isinstance(message, Event) and message.status == "UPDATE_FAILED":
            self.operator.cloud.machines.outcomes = {}
