"""Outputs of Terraform in a cluster file: which values they become, and what is said if they cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import ClusterFileError

OUTPUTS: dict[str, Any] = {
    "vpc_id": "vpc-0123456789abcdef0",
    "subnet_ids": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    "zones": {"us-west-2a": {"cidr": "10.1.0.0/24", "id": "subnet-0123456789abcdef0"}},
    "joined": "vpc-0123456789abcdef1,vpc-0123456789abcdef2",
    "port": 443,
    "nothing": None,
}


class Directory:
    """A directory with a cluster file and the outputs of Terraform."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("network.json", {name: {"sensitive": False, "value": value} for name, value in OUTPUTS.items()})

    def write(self, name: str, content: object) -> None:
        (self.path / name).write_text(content if isinstance(content, str) else json.dumps(content))

    def load(self, vpc_id: str, cidr: str = "10.1.0.0/24", overrides: tuple[str, ...] = ()) -> Cluster:
        vpc = {"id": vpc_id, "cidr": "10.1.0.0/16"}
        subnet = {"zone": "us-west-2a", "id": "terraform:network.json#subnet_ids[0]", "cidr": cidr}
        self.write("cluster.yaml", {"network": {"vpc": vpc, "subnets": [subnet]}})
        return load(self.path / "cluster.yaml", environ={}, overrides=overrides).cluster

    def refusal(self, vpc_id: str) -> str:
        with pytest.raises(ClusterFileError) as refused:
            self.load(vpc_id)
        [problem] = refused.value.problems
        assert str(problem.source).endswith("cluster.yaml:1")
        return f"{'.'.join(map(str, problem.path))}: {problem.message}"


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def test_a_joined_output_has_items(directory: Directory) -> None:
    assert directory.load("terraform:network.json#joined[1]").network.vpc.id == "vpc-0123456789abcdef2"


def test_outputs_stand_for_values_of_any_key(directory: Directory) -> None:
    cidr = 'terraform:network.json#zones["us-west-2a"].cidr'
    cluster = directory.load("terraform:network.json#vpc_id", cidr, ("api.port=terraform:network.json#port",))
    assert cluster.network.vpc.id == OUTPUTS["vpc_id"]
    assert cluster.network.subnets[0].id == OUTPUTS["subnet_ids"][0]
    assert str(cluster.network.subnets[0].cidr) == "10.1.0.0/24"
    assert cluster.control_plane.addresses[0] in cluster.network.subnets[0].cidr
    assert cluster.api.port == 443


def test_a_map_by_zone_is_all_subnets(directory: Directory) -> None:
    cidr = "10.1.1.0/24"
    subnets = {"us-west-2b": {"id": "subnet-0123456789abcdef1", "cidr": cidr}, **OUTPUTS["zones"]}
    directory.write("network.json", {"subnets": {"value": subnets}, "ids": {"value": OUTPUTS["subnet_ids"]}})
    network = {"vpc": {"id": OUTPUTS["vpc_id"], "cidr": "10.1.0.0/16"}, "subnets": "terraform:network.json#subnets"}
    directory.write("cluster.yaml", {"network": network})
    found = load(directory.path / "cluster.yaml", environ={}).cluster.network.subnets
    assert [(subnet.zone, subnet.id) for subnet in found] == [
        ("us-west-2a", "subnet-0123456789abcdef0"),
        ("us-west-2b", "subnet-0123456789abcdef1"),
    ]
    directory.write("cluster.yaml", {"network": {**network, "subnets": "terraform:network.json#ids"}})
    with pytest.raises(ClusterFileError, match="it must be a map of subnets by zone"):
        load(directory.path / "cluster.yaml", environ={})
    wrong = {"us-west-2a": {"id": 7}}
    directory.write("network.json", {"subnets": {"value": wrong}})
    directory.write("cluster.yaml", {"network": network})
    with pytest.raises(ClusterFileError, match=r"cluster\.yaml:1"):
        load(directory.path / "cluster.yaml", environ={})


def test_free_form_sections_keep_their_text(directory: Directory) -> None:
    text = "terraform:network.json#vpc_id"
    override = f"kubernetes.kubeletConfiguration.contentType={text}"
    cluster = directory.load("terraform:network.json#vpc_id", overrides=(override,))
    assert cluster.kubernetes.kubelet_configuration == {"contentType": text}


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("vpc", "network.json has no output vpc; did you mean vpc_id?"),
        (
            "load_balancer",
            "network.json has no output load_balancer; it has vpc_id, subnet_ids, zones, joined, port, nothing",
        ),
        ("subnet_ids", "is a list of 2; name one item, e.g. terraform:network.json#subnet_ids[0]"),
        ("subnet_ids[2]", "subnet_ids in network.json is a list of 2, so it has no [2]"),
        ("zones", 'is a map; name one item, e.g. terraform:network.json#zones["us-west-2a"]'),
        ('zones["us-west-2b"]', "zones in network.json has no us-west-2b; did you mean us-west-2a?"),
        ("joined[2]", "is a list of 2, so it has no [2]"),
        ("zones[0]", "zones in network.json is a map and not a list"),
        ("vpc_id.name", 'vpc_id in network.json is the value "vpc-0123456789abcdef0" and not a map'),
        ("vpc_id[x]", "'[x]' after vpc_id is not an item"),
        ("nothing", "nothing in network.json has the value null; it must be a text"),
        ("subnet_ids[1]", "'subnet-0123456789abcdef1' is not a VPC id such as vpc-0123456789abcdef0"),
        ("[0]", "'[0]' is not the name of an output such as vpc_id"),
    ],
)
def test_an_output_that_is_no_vpc_is_refused(directory: Directory, output: str, says: str) -> None:
    refusal = directory.refusal(f"terraform:network.json#{output}")
    assert refusal.startswith("network.vpc.id: ")
    assert says in refusal


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("not json", "broken.json is not JSON"),
        ([], "broken.json does not hold what `terraform output -json` prints"),
        ({"vpc_id": "vpc-1"}, "broken.json does not hold what `terraform output -json` prints"),
        ({"terraform_version": "1.9.0", "outputs": {}}, "broken.json is a state file and not what"),
        ({"vpc_id": {"sensitive": True, "value": "vpc-1"}}, "the output vpc_id in broken.json is sensitive"),
        ({}, "broken.json has no output vpc_id; it has none"),
    ],
)
def test_a_file_that_has_no_such_outputs_is_refused(directory: Directory, content: object, says: str) -> None:
    directory.write("broken.json", content)
    assert says in directory.refusal("terraform:broken.json#vpc_id")


def test_a_missing_file_is_named_once_for_each_key(directory: Directory) -> None:
    (directory.path / "network.json").unlink()
    with pytest.raises(ClusterFileError) as refused:
        directory.load("terraform:network.json#vpc_id")
    assert [problem.message for problem in refused.value.problems] == [
        "there is no file network.json beside the cluster file; `terraform output -json > network.json` writes it"
    ] * 2
