"""Lives of clusters by chance: a file, what becomes of it, and what goes wrong on the way."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from ipaddress import IPv4Network

from drawn_capacity import KEYS as CAPACITY_KEYS
from drawn_files import (
    PODS,
    PORTS,
    SERVICES,
    Design,
    File,
    designs,
    draw_key,
    drop,
    files,
    group,
    network,
    put,
    settled,
    sizes,
    strategies_of,
)
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from cfngen.cluster.naming.id_form import pascal
from cfngen.cluster.network.network_plugins import PLUGINS


@dataclass(frozen=True)
class Chapter:
    """A change of a cluster.

    Attributes:
        what: what was changed, in words.
        file: the cluster file as it is from now on.
        fails: a number that chooses the resource that fails first; None if nothing does.
        loses: a number that chooses an instance that is lost afterwards; None if none is.
    """

    what: str
    file: File
    fails: int | None
    loses: int | None = None


@dataclass(frozen=True)
class Life:
    """A cluster from its creation to its end.

    Attributes:
        file: the first cluster file.
        fails: a number that chooses what fails at its creation; None if nothing does.
        chapters: what becomes of it.
        sticks: a number that chooses what cannot be deleted at first; None if everything can.
    """

    file: File
    fails: int | None
    chapters: tuple[Chapter, ...]
    sticks: int | None


_CHANCES = st.none() | st.integers(0, 999)


@st.composite
def lives(draw: DrawFn, *, most: int = 3, fails: bool = True) -> Life:
    """A life of up to `most` changes."""
    design = draw(designs(lived=True))
    first = file = draw(files(design))
    chance = _CHANCES if fails else st.none()
    chapters = []
    for _ in range(draw(st.integers(1, most))):
        what, design, file = draw(_changed(design, file))
        chapters.append(Chapter(what, file, draw(chance), draw(st.none() | chance)))
    return Life(first, draw(chance), tuple(chapters), draw(chance))


@st.composite
def _changed(draw: DrawFn, design: Design, before: File) -> tuple[str, Design, File]:
    file = copy.deepcopy(before)
    what = draw(st.sampled_from(("keys", "keys", "keys", "group", "sizes", "masters", "zone", "decided")))
    if what == "group":
        what, design = _other_groups(draw, design, file)
    elif what == "sizes" and file["nodeGroups"]:
        index = draw(st.integers(0, len(file["nodeGroups"]) - 1))
        changed = file["nodeGroups"][index]
        for key in ("desiredSize", *CAPACITY_KEYS):
            changed.pop(key, None)
        changed.update(draw(group(design, changed["name"])))
    elif what == "masters" and design.count < 5:
        design = replace(design, count=design.count + 2)
        file["controlPlane"]["count"] = design.count
        drop(file, "controlPlane.addresses")
    elif what == "zone" and (another := _another_zone(design)):
        design = another
        file["network"]["subnets"] = network(design)["subnets"]
    elif what == "decided":
        what, design = _decided(draw, design, file)
    else:
        what = "keys"
        strategies = strategies_of(design)
        for key in draw(st.lists(st.sampled_from(sorted(strategies)), min_size=2, max_size=5, unique=True)):
            if draw(st.integers(0, 3)) == 0:
                for section in file["nodeGroups"] if key.startswith("nodeGroups[].") else [file]:
                    drop(section, key.removeprefix("nodeGroups[]."))
            else:
                draw_key(draw, file, key, strategies[key])
            what += f" {key}"
    return what, design, settled(file, design)


def _other_groups(draw: DrawFn, design: Design, file: File) -> tuple[str, Design]:
    """Add a node group, or take one away."""
    groups = file["nodeGroups"]
    if groups and draw(st.booleans()):
        gone = groups.pop(draw(st.integers(0, len(groups) - 1)))
        return "a group less", replace(design, groups=tuple(each for each in design.groups if each != gone["name"]))
    names = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
    taken = {pascal(each) for each in design.groups}
    name = draw(names.filter(lambda each: pascal(each) not in taken))
    design = replace(design, groups=(*design.groups, name))
    for each in groups:  # all of them share what room there is
        each.update(draw(sizes(design)))
        if each.get("desiredSize", 0) > each["maxSize"]:
            del each["desiredSize"]
    groups.insert(draw(st.integers(0, len(groups))), draw(group(design, name)))
    return "a group more", design


def _another_zone(design: Design) -> Design | None:
    """The design with a subnet in a further zone, if there is one and room for it."""
    from drawn_files import ZONES

    letters = [each for each in ZONES[design.region] if each not in design.zones]
    if not letters or not design.written:
        return None
    size = IPv4Network(design.subnets[0]).prefixlen
    free = (str(each) for each in IPv4Network(design.vpc).subnets(new_prefix=size) if str(each) not in design.subnets)
    if (block := next(free, None)) is None:
        return None
    return replace(design, zones=design.zones + letters[0], subnets=(*design.subnets, block))


def _decided(draw: DrawFn, design: Design, file: File) -> tuple[str, Design]:
    """Change what is decided once: that must be refused, or nothing may come of it."""
    what = draw(st.sampled_from(("port", "services", "pods", "plugin")))
    if what == "port":
        put(file, "api.port", draw(st.sampled_from(PORTS)))
    elif what == "services":
        services = [each for each in SERVICES if not IPv4Network(each).overlaps(IPv4Network(design.pods))]
        design = replace(design, services=draw(st.sampled_from(services)))
        drop(file, "network.dnsServiceIp")
    elif what == "pods":
        pods = [each for each in PODS if not IPv4Network(each).overlaps(IPv4Network(design.services))]
        design = replace(design, pods=draw(st.sampled_from(pods)))
    else:
        plugins = sorted(each for each in PLUGINS if each != "amazon-vpc")
        design = replace(design, plugin=draw(st.sampled_from(plugins)))
    file["network"].pop("podCidr", None)
    file["network"].update(network(design))
    return what, design
