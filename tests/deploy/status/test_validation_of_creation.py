"""Waiting for a cluster that is being created, from the first minute on."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from deployed import place

from cfngen.deploy.status.validation import validate, wait_until_valid

pytestmark = pytest.mark.drill


def test_waiting_begins_before_the_cluster_is_there():
    reports = []
    with place() as fresh:
        fresh.begin()
        look = partial(validate, fresh.account, fresh.name, fresh.cluster, find_url_override=fresh.override)
        validation = wait_until_valid(look, fresh.clock, timedelta(minutes=20), reports.append)
    assert validation.valid
    assert ("stack", "is CREATE_IN_PROGRESS") in [(each.area, each.text) for each in reports[0].appeared]
    # Only changes are told, each problem once.
    appeared = [problem for report in reports for problem in report.appeared]
    resolved = [problem for report in reports for problem in report.resolved]
    assert len(appeared) == len(set(appeared))
    assert set(resolved) < set(appeared)
    assert fresh.clock.sleeps > len(reports)
    assert "no output ApiEndpoint" in " ".join(each.text for each in appeared)
