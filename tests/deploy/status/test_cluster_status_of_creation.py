"""The status of a cluster that is being created, or whose creation has failed."""

from __future__ import annotations

import click
import pytest
from deployed import Place, place

from cfngen.cli.render.status import status_lines
from cfngen.deploy.status.cluster_status import ClusterStatus, Unknown
from cfngen.deploy.status.derived_status import read_status

pytestmark = pytest.mark.drill


def read(where: Place) -> ClusterStatus:
    return read_status(where.account, where.name, where.cluster, find_url_override=where.override)


def test_a_cluster_that_is_being_created():
    with place() as where:
        where.begin()
        before = read(where)
        where.clock.sleep(40)
        early = read(where)
        text = click.unstyle("\n".join(map(str, status_lines(early))))
        while isinstance(read(where).api, Unknown):
            where.clock.advance(5)
        later = read(where)
    assert before.stack.status == early.stack.status == "CREATE_IN_PROGRESS"
    assert (early.stack.operation, early.stack.succeeded) == ("create", None)
    assert str(early.next_command) == "cfngen watch"
    # The masters' stack, which is complete before they work, has its outputs before the root has.
    assert early.endpoint == later.endpoint
    assert isinstance(early.api, Unknown)
    assert "has not been initialised" in early.api.unknown
    assert [master.ready for master in early.masters] == [None]
    assert "(the creation is in progress)" in text
    assert "Next: cfngen watch" in text
    assert later.stack.status == "CREATE_IN_PROGRESS"
    assert later.api.version == "1.36.3"


def test_a_cluster_whose_creation_has_failed():
    with place() as where:
        where.world.machines.inject_failure("NodeGroupNodesAutoScalingGroup", "downloads", "no route to dl.k8s.io")
        where.create()
        status = read(where)
    assert status.stack.status == "ROLLBACK_COMPLETE"
    assert (status.stack.operation, status.stack.succeeded) == ("create", False)
    # No deployment made this stack, so none takes its place.
    assert str(status.next_command) == "cfngen delete"
    assert (status.masters, status.api, status.certificates) == (None, None, ())
    assert "Next: cfngen delete" in click.unstyle("\n".join(map(str, status_lines(status))))
