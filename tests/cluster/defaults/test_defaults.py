"""What follows from other values; and that no input, however wrongly typed, breaks the loader."""

from __future__ import annotations

import copy
import itertools
import random
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest

from cfngen.cluster.defaults.completion import complete
from cfngen.cluster.load import load, parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import leaves
from cfngen.cluster.problems import ClusterFileError, Problem


def test_nothing_gives_kube_ups_cluster() -> None:
    cluster = parse({})
    assert (cluster.name, cluster.region, cluster.kubernetes_version) == ("kubernetes", "us-west-2", "1.36.3")
    assert cluster.network.vpc.cidr == IPv4Network("172.20.0.0/16")
    assert [(subnet.zone, str(subnet.cidr)) for subnet in cluster.network.subnets] == [("us-west-2a", "172.20.0.0/24")]
    assert cluster.control_plane.addresses == (IPv4Address("172.20.0.9"),)
    assert [(group.name, group.min_size, group.max_size) for group in cluster.node_groups] == [("nodes", 4, 4)]


def test_without_a_file_the_default_cluster_is_loaded() -> None:
    assert load(None, environ={}).cluster == parse({})


def test_the_effective_configuration_is_a_cluster_file_of_the_same_cluster() -> None:
    given = {
        "name": "blue",
        "network": {"vpc": {"cidr": "10.7.0.0/16"}, "subnets": [{"zone": "eu-west-1a"}, {"zone": "eu-west-1c"}]},
        "image": {"distribution": "amazon-linux-2023"},
        "nodeGroups": [{"minSize": 2}, {"name": "arm", "instanceType": "m6g.large"}],
        "kubernetesVersion": "1.35",
    }
    cluster = parse(given)
    assert parse(cluster.model_dump(mode="json", by_alias=True)) == cluster


def test_completing_changes_nothing_that_was_given() -> None:
    given: dict[str, Any] = {"name": "blue", "network": {"subnets": [{"zone": "eu-west-1a"}]}, "nodeGroups": [{}]}
    complete(given)
    assert given == {"name": "blue", "network": {"subnets": [{"zone": "eu-west-1a"}]}, "nodeGroups": [{}]}


def test_completing_twice_adds_nothing() -> None:
    once = complete(
        {"name": "blue", "nodeGroups": [{"minSize": 0}, {"name": "b", "image": {"id": "ami-01234567"}}]}
    ).data
    assert complete(once).data == once


@pytest.mark.parametrize("prefix", range(16, 27))
@pytest.mark.parametrize("zones", [1, 2, 3, 4])
def test_derived_subnets_are_apart_and_inside_their_vpc(prefix: int, zones: int) -> None:
    network = {"vpc": {"cidr": f"10.32.0.0/{prefix}"}, "subnets": [{} for _ in range(zones)]}
    cluster = parse({"network": network, "nodeGroups": [{"minSize": 0}]})
    cidrs = [subnet.cidr for subnet in cluster.network.subnets]
    assert all(cidr.subnet_of(cluster.network.vpc.cidr) for cidr in cidrs)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(cidrs, 2))
    assert cluster.control_plane.addresses[0] == cidrs[0][9]


WRONG: tuple[Any, ...] = (
    None,
    True,
    3,
    -1,
    0.5,
    "text",
    "",
    "10.0.0.0/8",
    [],
    [None],
    [[]],
    ["x"],
    [{}],
    {},
    {"x": 1},
    {"name": []},
)


def problems_of(data: dict[str, Any]) -> tuple[Problem, ...]:
    """What is wrong with `data`; a refusal without a reason counts as one without a message."""
    try:
        parse(data)
    except ClusterFileError as error:
        return error.problems or (Problem((), ""),)
    return ()


@pytest.mark.parametrize("every", [pytest.param(3, marks=pytest.mark.drill), pytest.param(1, marks=pytest.mark.soak)])
def test_every_key_survives_every_wrong_type(every: int) -> None:
    """Whatever stands at a key, the answer is a cluster or an error that names the key."""
    whole = parse({"api": {"elasticIp": {"allocationId": "eipalloc-01234567", "address": "52.1.2.3"}}})
    data = whole.model_dump(mode="json", by_alias=True)
    prefixes = {path[:length] for path, _ in leaves(data) for length in range(1, len(path) + 1)}
    completed = complete(data).data
    for path, wrong in list(itertools.product(sorted(prefixes, key=str), WRONG))[::every]:
        tried = copy.deepcopy(completed)
        here: Any = tried
        for part in path[:-1]:
            here = here[part]
        here[path[-1]] = wrong
        problems = problems_of(tried)
        assert [problem for problem in problems if not problem.message or "\n" in problem.message] == []


def test_random_nonsense_is_refused_and_never_breaks_the_loader() -> None:
    chance = random.Random(20)
    keys = [
        *Cluster.model_json_schema()["properties"],
        "vpc",
        "subnets",
        "cidr",
        "zone",
        "id",
        "name",
        "minSize",
        "x y",
    ]

    def nonsense(depth: int) -> Any:
        kind = chance.randrange(6 if depth else 4)
        if kind == 4:
            return [nonsense(depth - 1) for _ in range(chance.randrange(3))]
        if kind == 5:
            return {chance.choice(keys): nonsense(depth - 1) for _ in range(chance.randrange(4))}
        return chance.choice(WRONG)

    refused = 0
    for _ in range(300):
        data = {chance.choice(keys): nonsense(4) for _ in range(chance.randrange(1, 5))}
        messages = [problem.message for problem in problems_of(data)]
        assert "" not in messages
        refused += bool(messages)
    # A few keys take nothing at all, or an empty list, for their default.
    assert refused > 280
