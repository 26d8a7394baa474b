"""A deployment that does not fit into the account's quotas is stopped before it begins, unless somebody insists."""

from __future__ import annotations

import pytest
from cloud import Cloud
from clusters import inventory
from deployments import Operator, groups

from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.operations.deployment import preparation
from cfngen.deploy.operations.deployment.deploy import ImpossiblePlanError

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": groups("general")}
GROWN = {"name": "one", "nodeGroups": [{"name": "general", "minSize": 3, "maxSize": 9, "instanceType": "t3.large"}]}
PROCESSORS = ("ec2", "L-1216C47A")


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def test_a_new_cluster_without_room_is_not_begun(operator: Operator):
    operator.cloud.moto_extensions.set_quota(*PROCESSORS, 5)
    with pytest.raises(ImpossiblePlanError, match=r"quotas do not suffice.*vCPUs.*--ignore-quotas"):
        operator.deploy(ONE)
    assert find_stack(operator.account, "one") is None
    assert operator.plan(ONE).refusal_reason
    assert not operator.plan(ONE, ignore_quotas=True).refusal_reason
    assert operator.deploy(ONE, ignore_quotas=True).status == "ROLLBACK_COMPLETE"  # begun; EC2 then refuses launches


def test_an_update_without_room_changes_nothing(operator: Operator):
    operator.deploy(ONE)
    operator.cloud.moto_extensions.set_quota(*PROCESSORS, 7)
    before = inventory(operator.cloud.cluster.region)
    with pytest.raises(ImpossiblePlanError, match="quotas do not suffice"):
        operator.deploy(GROWN)
    assert inventory(operator.cloud.cluster.region) == before


def test_the_greatest_size_is_warned_of_and_stops_nobody(operator: Operator):
    operator.deploy(ONE)
    operator.cloud.moto_extensions.set_quota(*PROCESSORS, 10)
    plan = operator.plan(GROWN)
    [found] = [each for each in plan.quotas if each.name.startswith("vCPUs")]
    assert (found.needed, found.needed_at_maximum, found.sufficient, found.room_to_grow) == (2, 14, True, False)
    assert not plan.refusal_reason
    assert operator.deploy(GROWN).succeeded


def test_a_plan_of_an_update_says_what_it_adds_to_the_costs(operator: Operator):
    operator.deploy(ONE)
    plan = operator.plan(GROWN)
    assert [(each.quantity, each.unit, each.what) for each in plan.costs] == [
        (3, "instance", "t3.large"),
        (-2, "instance", "t3.medium"),
        (32, "GiB", "gp3 volumes"),
        (1, "address", "public IPv4"),
    ]
    assert operator.plan(ONE).costs == ()


def test_templates_that_cannot_be_read_stop_nobody(operator: Operator, monkeypatch: pytest.MonkeyPatch):
    operator.deploy(ONE)
    operator.cloud.moto_extensions.set_quota(*PROCESSORS, 7)

    def refused(*_: object) -> None:
        raise AwsError("not allowed to call GetTemplate")

    monkeypatch.setattr(preparation, "read_deployed_demand", refused)
    plan = operator.plan(GROWN)
    assert (plan.quotas, plan.costs, plan.refusal_reason) == ((), (), "")
    assert any("the update's effect on costs and quotas" in each.text for each in operator.reported(Notice))
