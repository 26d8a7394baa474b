"""The catalogue of charts and of masters' tools."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from test_userdata_addons import ALL as EVERYTHING

from cfngen.cluster.load import parse
from cfngen.releases import master_tools, patches_by_minor
from cfngen.releases.charts import PinnedChart, UnknownChartError, chart, charts
from cfngen.userdata.addons import releases


def data(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(resources.files("cfngen.releases").joinpath(name).read_text("utf-8"))
    return found


def pinned_files() -> dict[str, dict[str, Any]]:
    """What pins digests: the components, and each release of a chart."""
    found = {
        f"{name} {each['version']}": each for name, every in data("charts.json")["charts"].items() for each in every
    }
    return {**data("catalogue.json")["components"], **found}


@pytest.mark.parametrize("name", pinned_files())
def test_every_digest_says_where_it_was_found_or_that_it_was_not(name: str) -> None:
    entry, known = pinned_files()[name], data("sources.json")["sources"]
    assert set(entry["sources"]) <= set(known)
    assert bool(entry["sources"]) is not bool(entry.get("unconfirmed"))


def test_sources_of_digests_are_places_of_a_known_kind_and_used() -> None:
    known = data("sources.json")["sources"]
    assert {each["kind"] for each in known.values()} <= {"publisher", "archive", "independent"}
    assert all(" at " in each["where"] or "public repositories" in each["where"] for each in known.values())
    assert {source for each in pinned_files().values() for source in each["sources"]} == set(known)


@pytest.mark.parametrize("pinned", charts(), ids=lambda each: f"{each.name}-{each.kubernetes[0]}")
def test_every_chart_is_an_archive_with_a_digest(pinned: PinnedChart) -> None:
    assert re.fullmatch("[0-9a-f]{64}", pinned.sha256)
    assert pinned.url.startswith("https://")
    assert pinned.version in pinned.url
    assert pinned.url.endswith(".tgz")
    assert set(pinned.kubernetes) <= set(patches_by_minor())


def test_no_two_releases_of_a_chart_are_for_one_minor() -> None:
    found = Counter((each.name, minor) for each in charts() for minor in each.kubernetes)
    assert [key for key, count in found.items() if count > 1] == []


@pytest.mark.parametrize("minor", patches_by_minor())
def test_cluster_autoscaler_is_of_the_clusters_minor(minor: str) -> None:
    assert chart("cluster-autoscaler", minor).app_version.rpartition(".")[0] == minor


def test_exact_version_finds_its_minors_chart() -> None:
    assert chart("metrics-server", "1.36.3") == chart("metrics-server", "1.36")


def test_unknown_chart_is_refused_with_the_way_out() -> None:
    with pytest.raises(UnknownChartError, match="no chart weave for Kubernetes") as caught:
        chart("weave", "1.36")
    assert caught.value.hint == "list it under addons.charts with its URL and sha256"


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_masters_tools_are_of_their_architecture(architecture: str) -> None:
    found = {asset.name: asset for asset in master_tools(architecture)}
    assert set(found) == {"helm", "etcd"}
    for asset in found.values():
        assert asset.url.endswith(f"linux-{architecture}.tar.gz")
        assert re.fullmatch("[0-9a-f]{64}", asset.sha256)


def test_guide_names_the_versions_of_all_add_ons() -> None:
    guide = (Path(__file__).parents[2] / "docs/build/addons.md").read_text("utf-8")
    rows = [line for line in guide.splitlines() if line.startswith("| `")]
    used = {each["name"] for each in releases(parse({"addons": EVERYTHING}))}
    assert len(rows) == len(used)
    for name in used - {"prometheus"} | {"kube-prometheus-stack"}:
        found = [row for row in rows if f"| {name} {chart(name, '1.36').version} |" in row]
        assert found, name
        assert all(each.app_version in found[0] for each in charts() if each.name == name), name
