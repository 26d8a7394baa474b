"""An update that failed and was rolled back: the instance that failed is shown, not those that came after it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from deployed import place
from deployments import Operator, groups

from cfngen.cluster.load import parse
from cfngen.deploy.watching.diagnosis import Diagnosis

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": groups("general")}
GROUP = "NodeGroupGeneralAutoScalingGroup"


def test_the_instance_that_signalled_failure_is_the_one_that_is_quoted():
    cluster = parse(dict(ONE))
    with place(cluster) as where:
        session = where.account.session
        operator = Operator(SimpleNamespace(session=session, cluster=cluster, clock=where.clock))
        operator.deploy(ONE)
        where.world.machines.inject_failure(GROUP, "downloads", "no route to dl.k8s.io", times=1)
        larger = {"name": "one", "nodeGroups": groups("general", instanceType="m5.large")}
        assert operator.deploy(larger).status == "UPDATE_ROLLBACK_COMPLETE"
        [found] = operator.reported(Diagnosis)
        assert found.cause.event.logical_id == GROUP
        [instance] = found.cause.instances
        assert instance.failed
        assert any("no route to dl.k8s.io" in line for line in instance.lines)
