"""Values laid over each other: by flags and variables, at keys that are not there yet, and from where they came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cfngen.cluster.load import Loaded, load, parse
from cfngen.cluster.problems import ClusterFileError


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(text: str, *flags: str, **environ: str) -> Loaded:
    Path("cluster.yaml").write_text(text, encoding="utf-8")
    return load(Path("cluster.yaml"), environ=environ, overrides=flags)


def refusal(text: str, *flags: str) -> str:
    with pytest.raises(ClusterFileError) as raised:
        loaded(text, *flags)
    return str(raised.value)


def test_a_list_that_holds_one_section_by_default_has_it_for_flags_too() -> None:
    """The second of them may be added at once, where the file has none."""
    flags = ["nodeGroups[1].name=b", "network.subnets[1].zone=us-west-2b"]
    cluster = loaded("name: a\n", *flags).cluster
    assert [group.name for group in cluster.node_groups] == ["nodes", "b"]
    assert [subnet.zone for subnet in cluster.network.subnets] == ["us-west-2a", "us-west-2b"]
    assert "--set api.allowedCidrs[1]=10.0.0.0/8: api.allowedCidrs has 0 items, so [1] names none" in refusal(
        "name: a\n", "api.allowedCidrs[1]=10.0.0.0/8"
    )


def test_a_list_deep_down_is_made_by_a_flag() -> None:
    cluster = loaded("name: a\n", "nodeGroups[0].taints[0].key=gpu", "nodeGroups[0].taints[0].effect=NoExecute").cluster
    assert [(taint.key, taint.effect) for taint in cluster.node_groups[0].taints] == [("gpu", "NoExecute")]


def test_a_quoted_key_may_hold_an_equals_sign_and_a_full_stop() -> None:
    assert loaded("name: a\n", 'tags."a=b"=c', 'tags."d.e/f"=g=h').cluster.tags == {"a=b": "c", "d.e/f": "g=h"}


def test_a_flag_of_kubeadm_takes_the_place_of_the_one_of_its_name() -> None:
    text = """
kubernetes:
  clusterConfiguration:
    apiServer:
      extraArgs: [{name: v, value: "2"}, {name: runtime-config, value: a=b}]
"""
    arguments = loaded(text, KUBE_RUNTIME_CONFIG="api/all=true").cluster.kubernetes.cluster_configuration
    assert arguments["apiServer"]["extraArgs"] == [
        {"name": "v", "value": "2"},
        {"name": "runtime-config", "value": "api/all=true"},
    ]


def test_empty_values_of_lists_and_free_sections_stay_and_others_count_as_left_out() -> None:
    text = """
name: a
nodeGroups: [{name: a, minSize: , kubeletConfiguration: {x: }}]
addons: {charts: [{name: a, url: 'https://a/b', sha256: %s, values: {y: null}}]}
""" % ("a" * 64)
    cluster = loaded(text).cluster
    assert cluster.node_groups[0].min_size == 4
    assert cluster.node_groups[0].kubelet_configuration == {"x": None}
    assert cluster.addons.charts[0].values == {"y": None}


def test_where_a_problem_stands_that_has_no_line_of_its_own() -> None:
    assert refusal("controlPlane: {count: 1}\nnetwork: {vpc: {cidr: 172.16.0.0/12}}\n").startswith("cluster.yaml:2: ")
    # A key that is missing is said at its section.
    assert refusal("name: a\napi:\n  elasticIp: {address: 52.1.2.3}\n").startswith(
        "cluster.yaml:3: api.elasticIp.allocationId: is missing"
    )
    # What nobody wrote is the file's as a whole.
    assert refusal("api: {port: 9808}\n") == (
        "cluster.yaml:1: api.port: 9808 is used by addons.awsEbsCsiDriver, whose pods use the masters' network; use "
        "443 or 6443"
    )


def test_where_values_come_from_is_text_whatever_they_are() -> None:
    origins = loaded("network: {vpc: {cidr: 10.7.0.0/16}}\nssh: {allowedCidrs: [203.0.113.0/24], keyName: k}\n").origins
    assert origins["network.vpc.cidr"].where == "cluster.yaml:1"
    assert origins["ssh.allowedCidrs[0]"].where == "cluster.yaml:2"
    assert origins["controlPlane.addresses[0]"].kind == "derived"


@pytest.mark.parametrize("data", [{"nodeGroups": "x"}, {"network": 3}, {"nodeGroups": [[]]}, {"x": {"y": 1}}])
def test_what_is_wrong_at_the_top_is_said_once(data: dict[str, Any]) -> None:
    with pytest.raises(ClusterFileError) as raised:
        parse(data)
    assert len(raised.value.problems) == 1


def test_only_an_error_of_the_environment_says_how_to_do_without_it() -> None:
    with pytest.raises(ClusterFileError) as of_file:
        loaded("name: Blue\n")
    with pytest.raises(ClusterFileError) as of_both:
        loaded("name: Blue\n", NODE_SIZE="t2.micro")
    assert of_file.value.hint == ""
    assert "--no-env" in of_both.value.hint
