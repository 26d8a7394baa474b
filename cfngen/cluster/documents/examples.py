"""The cluster files that `cfngen init` writes: the examples, fitted to a region, zones, a name and ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from cfngen.cluster.instances import instance_types
from cfngen.cluster.paths import lookup
from cfngen.cluster.problems import ClusterFileError, Problem
from cfngen.text import pluralize

if TYPE_CHECKING:
    from cfngen.cluster.model import Cluster


DEFAULT = "kube-up"
"""Name of the example that describes the default cluster."""

_DIRECTORY = resources.files("cfngen").joinpath("examples")
_SUBNETS = ("network", "subnets")
_DOCUMENTATION_RANGES = tuple(map(IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")))  # RFC 5737


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
    from cfngen.cluster.naming.names import aws_partition

    try:
        parse({"region": region})
    except ClusterFileError as error:
        # Other problems belong to the default cluster.
        if problems := [problem for problem in error.problems if problem.path == ("region",)]:
            raise ClusterFileError(problems) from None
    current_region = cluster_of(text).region
    text = re.sub(r"\barn:aws[a-z-]*:", f"arn:{aws_partition(region)}:", text)
    text = re.sub(rf"\b{current_region}(?=[a-z]?\b)", lambda match: region, text)
    for instance_type, offered_type in replaced_types(text, region).items():
        text = re.sub(rf"(?<![\w.-]){re.escape(instance_type)}\b", offered_type, text)
    return text


def replaced_types(text: str, region: str) -> dict[str, str]:
    """Return the nearest type of the same kind, for each instance type of a text that a region does not offer.

    A type that the text has already does not replace another one: types of a node group are all different.
    """
    offered_types = instance_types.types_in_region(region) or ()
    words = set(re.findall(r"(?<![\w.-])[a-z][a-z0-9-]+\.[a-z0-9-]+\b", text))
    lacking_types = [word for word in sorted(words) if instance_types.regions_of(word) and word not in offered_types]
    replacements = {
        name: similar_type
        for name in lacking_types
        for similar_type in instance_types.similar(name, region)[:1]
        if similar_type[0] == name[0] and similar_type not in words
    }
    return replacements if len({*replacements.values()}) == len(replacements) else {}


def with_zones(text: str, zones: Sequence[str]) -> str:
    """Return the text of an example for other zones; node groups in some of its zones are in the corresponding ones.

    Args:
        zones: a zone for each subnet; any number if the text lists none.

    Raises:
        ClusterFileError: there are more or fewer zones than subnets.
    """
    current_zones = [subnet.zone for subnet in cluster_of(text).network.subnets]
    if list(zones) == current_zones:
        return text
    if lookup(_data_of(text), _SUBNETS) is None:
        return _set_key(text, _SUBNETS, [{"zone": zone} for zone in zones])
    if len(zones) != len(current_zones):
        count = pluralize(len(current_zones), "subnet")
        message = f"the example has {count}; name a zone for each, such as {', '.join(current_zones)}"
        raise ClusterFileError([Problem(_SUBNETS, message)])
    new_zones = dict(zip(current_zones, zones, strict=True))
    return re.sub(rf"\b({'|'.join(current_zones)})\b", lambda match: new_zones[match[1]], text)


def with_name(text: str, name: str) -> str:
    """Return the text of an example for a cluster of another name."""
    return text if cluster_of(text).name == name else _set_key(text, ("name",), name)


def with_iam_path(text: str, path: str) -> str:
    """Return the text of an example for another path of the roles, instance profiles and policies that are created."""
    return text if cluster_of(text).iam.path == path else _set_key(text, ("iam", "path"), path)


def with_allowed_cidrs(text: str, cidrs: Sequence[str]) -> str:
    """Return the text of an example for other address ranges that may reach the API."""
    current_cidrs = [str(cidr) for cidr in cluster_of(text).api.allowed_cidrs]
    return text if current_cidrs == list(cidrs) else _set_key(text, ("api", "allowedCidrs"), list(cidrs))


def without_placeholders(text: str) -> str:
    """Return the text of an example without ranges for documentation among those that may reach the API."""
    return with_allowed_cidrs(text, [str(cidr) for cidr in real_cidrs(cluster_of(text))])


def real_cidrs(cluster: Cluster) -> list[IPv4Network]:
    """Return the ranges that may reach the API and are not for documentation, which are nobody's network."""
    return [cidr for cidr in cluster.api.allowed_cidrs if not any(map(cidr.subnet_of, _DOCUMENTATION_RANGES))]


def _data_of(text: str) -> dict[str, object]:
    from cfngen.cluster.file import yaml_file

    return yaml_file.parse_text(text, "the file").data


def _set_key(text: str, path: tuple[str, ...], value: object) -> str:
    # Imported here: the command line imports this module for its help, and PyYAML is slow to import.
    from cfngen.cluster.file.edit import set_key

    return set_key(text, path, value)
