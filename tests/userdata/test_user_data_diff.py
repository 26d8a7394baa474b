"""What is said to differ between two user data."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.userdata import node
from cfngen.userdata.user_data_diff import difference


def user_data(secret: str = "arn:secret", **file: Any) -> str:
    """User data of the default node group as CloudFormation fills it in."""
    cluster = parse(file)
    references = {"stack": "k8s-nodes", "resource": "NodeGroupNodesAutoScalingGroup", "joinSecretArn": secret}
    pieces = node(cluster, cluster.node_groups[0], references).value.data["Fn::Base64"].data["Fn::Join"][1]
    return base64.b64encode("".join(pieces).encode()).decode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kubernetes": {"kubeletConfiguration": {"maxPods": 50}}}, "the kubelet's configuration"),
        ({"assets": {"mirror": "https://mirror.example.org"}}, "what it downloads"),
        ({"nodeGroups": [{"creationTimeout": 30}]}, "the time that it may take"),
        ({"secret": "arn:other"}, "ids from the stacks (joinSecretArn)"),
    ],
)
def test_the_part_that_changes_is_named(change, words):
    assert words in difference(user_data(), user_data(**change))


def test_parts_that_stay_are_not_named():
    said = difference(user_data(), user_data(secret="arn:other"))
    assert said == "what changes: ids from the stacks (joinSecretArn)"


def test_another_proxy_is_named_once_and_without_its_files():
    proxies = ("http://proxy.example.com:3128", "http://other.example.com:3128")
    old, new = (user_data(network={"proxy": {"httpsProxy": proxy}}) for proxy in proxies)
    assert difference(old, new) == "what changes: the proxy, the boot program's unit"


@pytest.mark.parametrize("cut", [100, 5000])
def test_of_what_aws_has_cut_off_nothing_is_said(cut):
    assert difference(user_data(), user_data()[:cut]) == ""


def test_of_somebody_elses_user_data_nothing_is_said():
    assert difference("#!/bin/sh\necho", user_data()) == ""


def test_text_is_as_good_as_base64():
    text = base64.b64decode(user_data()).decode()
    assert "maxPods" not in text
    assert "kubelet" in difference(text, user_data(kubernetes={"kubeletConfiguration": {"maxPods": 50}}))
