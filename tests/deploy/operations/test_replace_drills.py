"""Lives of replaced masters: of three, with a reservation, while another one fails, and until the next deployment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deployed import place
from replaced import MASTERS, NAME, NODES, ONE, THREE, Cluster

from cfngen.cluster.load import parse
from cfngen.deploy.operations.replacing.members import QuorumError
from cfngen.deploy.operations.replacing.messages import ReplacementDetachedError, ReplacementInProgressError
from cfngen.permissions.operations import replacement_statements
from cfngen.permissions.operators import operator_statements
from cfngen.permissions.scope import Scope
from cfngen.permissions.statements import policy_document
from cfngen.sandbox.durations import DURATIONS
from cfngen.sandbox.services import capacity

pytestmark = pytest.mark.drill


@pytest.fixture(autouse=True)
def room() -> Iterator[None]:
    yield
    capacity.reset("us-west-2")


def test_the_next_deployment_that_changes_the_master_goes_back_to_the_cluster_file() -> None:
    with place(parse(dict(ONE)), DURATIONS) as where:
        one = Cluster(where, ONE)
        one.replace("a", "m5.large")
        larger = {**ONE, "controlPlane": {"rootVolume": {"size": 30}}}
        assert one.operator.deploy(larger).status == "UPDATE_COMPLETE"
        assert one.instance_type(MASTERS["a"]) == "t3.medium"
        one.replace("a", "m5.large")
        kept = {**larger, "controlPlane": {"rootVolume": {"size": 30}, "instanceType": "m5.large"}}
        assert one.operator.deploy(kept).status == "UPDATE_COMPLETE"
        assert one.instance_type(MASTERS["a"]) == "m5.large"
        assert not one.retyped()


def test_one_of_three_masters_comes_back_with_another_type_and_the_api_stays() -> None:
    with place(parse(dict(THREE)), DURATIONS) as where:
        three = Cluster(where, THREE)
        three.sell_out("t3.medium", "us-west-2b")
        before = three.instance(MASTERS["b"])
        replaced = three.replace("b", "t3a.medium")
        assert (replaced.old_instance, replaced.zone) == (before, "us-west-2b")
        assert any("etcd keeps its quorum" in sentence for sentence in three.plan.consequences)
        assert three.valid()
        assert [three.instance_type(MASTERS[letter]) for letter in "abc"] == ["t3.medium", "t3a.medium", "t3.medium"]


def test_a_master_is_kept_while_another_one_does_not_work() -> None:
    with place(parse(dict(THREE)), DURATIONS) as where:
        three = Cluster(where, THREE)
        three.sell_out("t3.medium", "us-west-2b")
        three.lose(MASTERS["b"])
        before = three.instance(MASTERS["a"])
        with pytest.raises(QuorumError, match="etcd needs 2 of 3 members, and without master a only 1 would work"):
            three.replace("a")
        assert three.instance(MASTERS["a"]) == before
        # The slot that has no instance is mended by another type.
        assert three.replace("b", "t3a.medium").old_instance == ""
        three.replace("a")
        assert three.valid()


def test_a_master_whose_boot_has_failed_is_replaced_at_once() -> None:
    with place(parse(dict(THREE)), DURATIONS) as where:
        three = Cluster(where, THREE)
        where.world.machines.inject_failure(MASTERS["b"], "downloads", "it does not answer", times=1)
        three.lose(MASTERS["b"])
        where.clock.sleep(240)
        failed = three.instance(MASTERS["b"])
        replaced = three.replace("b")
        assert (replaced.old_instance, replaced.instance == three.instance(MASTERS["b"])) == (failed, True)
        assert "its boot has failed: " in three.plan.consequences[0]
        assert "it does not answer" in three.plan.consequences[0]
        assert [question.text for question in three.operator.questions] == ["Replace master b of one?"]
        assert replaced.seconds < 15 * 60
        assert three.valid()


def test_a_master_that_is_still_booting_is_not_replaced_by_another_type() -> None:
    with place(parse(dict(ONE)), DURATIONS) as where:
        one = Cluster(where, ONE)

        def interrupt() -> None:
            raise KeyboardInterrupt

        one.where.clock.meanwhile[one.where.clock.sleeps + 12] = interrupt
        with pytest.raises(ReplacementDetachedError):
            one.replace("a")
        with pytest.raises(ReplacementInProgressError, match="is being replaced already, by i-"):
            one.replace("a", "m5.large")
        one.replace("a")


def test_a_reserved_master_gets_another_type_outside_of_its_reservation() -> None:
    content = {**ONE, "controlPlane": {"capacityReservation": True}}
    with place(parse(dict(content)), DURATIONS) as where:
        one = Cluster(where, content)
        one.sell_out("t3.medium")
        assert one.replace("a").instance_type == "t3.medium"
        replaced = one.replace("a", "m5.large")
        assert replaced.instance_type == "m5.large"
        assert any("the capacity reservation of this master is for t3.medium" in text for text in one.plan.consequences)
        assert one.replace("a", "t3.medium").instance_type == "t3.medium"


def test_the_printed_permissions_suffice() -> None:
    scope = Scope("123456789012", "us-west-2", NAME)
    permissions = policy_document([*operator_statements(scope), *replacement_statements(scope)])
    with place(parse(dict(ONE)), DURATIONS) as where:
        one = Cluster(where, ONE)
        with where.served.permissions.enforcing(permissions) as credentials:
            one.account = where.connected(where.session_of(credentials))
            assert one.replace("a", "m5.large").instance_type == "m5.large"
            assert one.replace(one.instance(NODES)).role == "node"
