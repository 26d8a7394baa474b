"""Pictures of cluster files, and what tests ask of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from cfngen.cluster.load import load
from cfngen.graph.cluster_templates import ClusterTemplates, read
from cfngen.graph.drawing import View, draw
from cfngen.graph.picture import Box, Picture
from cfngen.templates import generate
from cfngen.templates.document import Document

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
CASES = ROOT / "tests" / "golden" / "cases"


@cache
def documents(cluster_file: Path | None) -> tuple[Document, ...]:
    """The templates of a cluster file, or of the default cluster."""
    return generate(load(cluster_file, environ={}, overrides=()).cluster)


@cache
def templates(cluster_file: Path | None = None) -> ClusterTemplates:
    return read(documents(cluster_file))


@cache
def twenty_groups() -> ClusterTemplates:
    """The templates of a cluster with twenty node groups of two types in three zones."""
    groups = [f"nodeGroups[{index}].name=group{index:02}" for index in range(20)]
    types = [f"nodeGroups[{index}].instanceType={'m6i.large' if index % 3 else 'c6i.large'}" for index in range(20)]
    zones = [f"network.subnets[{index}].zone=us-west-2{zone}" for index, zone in enumerate("abc")]
    network = ["network.topology=private", "network.vpc.cidr=10.40.0.0/16", *zones]
    return read(generate(load(None, environ={}, overrides=(*network, *groups, *types)).cluster))


@cache
def production_with_twenty_groups() -> ClusterTemplates:
    groups = tuple(f"nodeGroups[{index}].name=group{index:02}" for index in range(20))
    return read(generate(load(EXAMPLES / "production.yaml", environ={}, overrides=groups).cluster))


@cache
def picture(cluster_file: Path | None = None, view: View = "network") -> Picture:
    return draw(templates(cluster_file), view)


def outline(drawn: Picture, parent: str | None = None, indentation: str = "") -> list[str]:
    """The boxes as a person reads them: one within another, with their lines."""
    lines = []
    for box in drawn.children(parent):
        lines += [f"{indentation}{': '.join((box.title, ', '.join(box.lines))).removesuffix(': ')}"]
        lines += outline(drawn, box.id, indentation + "  ")
    return lines


def arrows(drawn: Picture) -> set[str]:
    """The arrows as a person reads them."""
    titles = {box.id: box for box in drawn.boxes}
    return {
        f"{titles[arrow.source].title} -> {titles[arrow.target].title}: {arrow.label}".removesuffix(": ")
        for arrow in drawn.arrows
    }


def box(drawn: Picture, box_id: str) -> Box:
    return next(box for box in drawn.boxes if box.id == box_id)
