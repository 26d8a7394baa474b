"""The cluster files that `cfngen init` writes: those of `examples/`, fitted to a region, zones, a name and ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

from cfngen.cluster.file_edit import set_key
from cfngen.cluster.paths import lookup
from cfngen.cluster.problems import ClusterFileError, Problem
from cfngen.text import pluralize

if TYPE_CHECKING:
    from cfngen.cluster.model import Cluster

DEFAULT = "kube-up"
"""Name of the example that describes the default cluster."""

_DIRECTORY = resources.files("cfngen").joinpath("examples")
_SUBNETS = ("network", "subnets")


def names() -> tuple[str, ...]:
    """Return the names of the examples, in alphabetical order."""
    files = (file.name for file in _DIRECTORY.iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml")))


def text_of(name: str) -> str:
    """Return the text of an example, one of `names`."""
    return _DIRECTORY.joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def description_of(name: str) -> str:
    """Return what an example is for: its first line."""
    return text_of(name).partition("\n")[0].removeprefix("# ").removesuffix(".")


def cluster_of(text: str) -> Cluster:
    """Return the cluster that the text of a cluster file describes.

    Raises:
        ClusterFileError: with all problems of the text.
    """
    from cfngen.cluster.load import parse

    return parse(_data_of(text))


def with_region(text: str, region: str) -> str:
    """Return the text of an example for another region: with its zones and ARNs, also those in comments.

    Raises:
        ClusterFileError: there is no such region.
    """
    from cfngen.cluster.load import parse

    try:
        parse({"region": region})
    except ClusterFileError as error:
        # Other problems are those of the default cluster.
        if problems := [problem for problem in error.problems if problem.path == ("region",)]:
            raise ClusterFileError(problems) from None
    current_region = cluster_of(text).region
    partition = "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"
    text = re.sub(r"\barn:aws[a-z-]*:", f"arn:{partition}:", text)
    return re.sub(rf"\b{current_region}(?=[a-z]?\b)", lambda match: region, text)


def with_zones(text: str, zones: Sequence[str]) -> str:
    """Return the text of an example for other zones; node groups in some of its zones are in the corresponding ones.

    Args:
        text: the text; its subnets, if it lists any, keep their ranges and ids.
        zones: a zone for each subnet; any number if the text lists none.

    Raises:
        ClusterFileError: their number is not that of the subnets.
    """
    current_zones = [subnet.zone for subnet in cluster_of(text).network.subnets]
    if list(zones) == current_zones:
        return text
    if lookup(_data_of(text), _SUBNETS) is None:
        return set_key(text, _SUBNETS, [{"zone": zone} for zone in zones])
    if len(zones) != len(current_zones):
        count = pluralize(len(current_zones), "subnet")
        message = f"the example has {count}; name a zone for each, such as {', '.join(current_zones)}"
        raise ClusterFileError([Problem(_SUBNETS, message)])
    new_zones = dict(zip(current_zones, zones, strict=True))
    return re.sub(rf"\b({'|'.join(current_zones)})\b", lambda match: new_zones[match[1]], text)


def with_name(text: str, name: str) -> str:
    """Return the text of an example for a cluster of another name."""
    return text if cluster_of(text).name == name else set_key(text, ("name",), name)


def with_allowed_cidrs(text: str, cidrs: Sequence[str]) -> str:
    """Return the text of an example for other address ranges that may reach the API."""
    current_cidrs = [str(cidr) for cidr in cluster_of(text).api.allowed_cidrs]
    return text if current_cidrs == list(cidrs) else set_key(text, ("api", "allowedCidrs"), list(cidrs))


def _data_of(text: str) -> dict[str, object]:
    """Return the values of a cluster file's text."""
    from cfngen.cluster import yaml_file

    return yaml_file.parse_text(text, "the file").data
