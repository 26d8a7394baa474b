"""The Helm charts of the add-ons: versions for each Kubernetes minor, URLs and digests.

`charts.json` contains the releases of each chart. Their `sources` say where the digests were found; `sources.json`
describes these sources. A digest with a single source is marked `unconfirmed`. `appVersion` is the version of the
installed program, which may be newer than the chart's default.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from cfngen.errors import CfngenError
from cfngen.releases import exact_version


class UnknownChartError(CfngenError):
    """The catalogue contains no release of a chart for a Kubernetes version.

    Attributes:
        name: the chart's name.
    """

    code = "unknown-chart"

    def __init__(self, name: str, minor: str) -> None:
        super().__init__(
            f"the catalogue holds no chart {name} for Kubernetes {minor}",
            hint="list it under addons.charts with its URL and sha256",
        )
        self.name = name


@dataclass(frozen=True)
class PinnedChart:
    """One release of a Helm chart.

    Attributes:
        name: name of the chart, e.g. `metrics-server`.
        version: version of the chart, e.g. `3.13.1`.
        app_version: version of the program that the chart installs.
        url: URL of the chart's archive (.tgz).
        sha256: the archive's published digest, 64 hexadecimal digits.
        kubernetes: the minor versions of Kubernetes that the release is for, e.g. `("1.35", "1.36")`.
    """

    name: str
    version: str
    app_version: str
    url: str
    sha256: str
    kubernetes: tuple[str, ...]


@cache
def charts() -> tuple[PinnedChart, ...]:
    """Return all releases of all charts, grouped by chart."""
    text = resources.files("cfngen.releases").joinpath("charts.json").read_text(encoding="utf-8")
    entries: dict[str, list[dict[str, Any]]] = json.loads(text)["charts"]
    return tuple(
        PinnedChart(
            name,
            version=release["version"],
            app_version=release["appVersion"],
            url=release["url"],
            sha256=release["sha256"],
            kubernetes=tuple(release["kubernetes"]),
        )
        for name, releases in entries.items()
        for release in releases
    )


def chart(name: str, kubernetes_version: str) -> PinnedChart:
    """Return the release of a chart for a Kubernetes version.

    Args:
        kubernetes_version: a version that `exact_version` accepts.

    Raises:
        UnknownChartError: the catalogue contains no release of the chart for the version.
        UnknownReleaseError: the Kubernetes version is not in the catalogue.
    """
    minor = exact_version(kubernetes_version).rpartition(".")[0]
    for candidate in charts():
        if candidate.name == name and minor in candidate.kubernetes:
            return candidate
    raise UnknownChartError(name, minor)
