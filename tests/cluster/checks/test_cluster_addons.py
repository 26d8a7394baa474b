"""Add-ons in the cluster file: what one cannot do without is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError

CHART = {"name": "demo", "url": "https://charts.example.com/demo-1.2.3.tgz", "sha256": "0" * 64}


def refusal(addons: dict[str, Any]) -> str:
    with pytest.raises(ClusterFileError) as raised:
        parse({"addons": addons})
    return str(raised.value)


def test_external_dns_needs_its_zones() -> None:
    assert "addons.externalDns.zones: is empty" in refusal({"externalDns": {"enabled": True}})
    assert parse({"addons": {"externalDns": {"enabled": True, "zones": ["Z0123456789ABCDEFGHIJ"]}}})
    assert parse({"addons": {"externalDns": {"enabled": False}}})


@pytest.mark.parametrize("values", [{}, {"config": {}}, {"config": {"outputs": ""}}, {"config": "all"}])
def test_fluent_bit_needs_to_know_where_logs_go(values: dict[str, Any]) -> None:
    assert "addons.fluentBit.values: does not say where logs go" in refusal(
        {"fluentBit": {"enabled": True, "values": values}}
    )


def test_charts_have_names_of_their_own() -> None:
    assert "charts[1].name: demo is also the name of charts[0]" in refusal({"charts": [CHART, CHART]})
    own = {**CHART, "name": "cert-manager"}
    assert "cert-manager is the name of a Helm release that cfngen installs" in refusal({"charts": [own]})
    assert parse({"addons": {"charts": [CHART, {**CHART, "name": "other"}]}})


@pytest.mark.parametrize("sha256", ["", "0" * 63, "A" * 64])
def test_a_chart_needs_its_digest(sha256: str) -> None:
    assert "addons.charts[0].sha256" in refusal({"charts": [{**CHART, "sha256": sha256}]})


def test_kubernetes_dashboard_is_refused_with_what_to_use_instead() -> None:
    said = refusal({"kubernetesDashboard": {"enabled": True}})
    assert "addons.kubernetesDashboard: Kubernetes Dashboard has ended" in said
    assert "use addons.headlamp" in said
