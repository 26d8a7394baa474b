"""Further volumes of a node group of a living cluster: each node has them, and they go with it."""

from __future__ import annotations

from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator

from cfngen.deploy.messages.message import Danger
from cfngen.deploy.operations.deletion.execution import delete
from cfngen.deploy.plan.deletion.plan import DeletionRequest

pytestmark = pytest.mark.drill

PLAIN: dict[str, Any] = {"name": "one", "nodeGroups": [{"name": "nodes", "minSize": 1, "maxSize": 2}]}


def with_volumes(*volumes: dict[str, Any], **more: Any) -> dict[str, Any]:
    [group] = PLAIN["nodeGroups"]
    return {**PLAIN, "nodeGroups": [{**group, "volumes": list(volumes), **more}]}


CACHE = {"size": 50, "mountPath": "/cache", "fileSystem": "xfs"}
RAW = {"size": 10, "type": "gp2"}


def volumes_of_nodes(cloud: Cloud) -> dict[str, dict[str, Any]]:
    """The volumes of nodes, by device."""
    volumes = cloud.client("ec2").describe_volumes()["Volumes"]
    return {each["Attachments"][0]["Device"]: each for each in volumes if named(each) == "one-nodes-nodes"}


def named(volume: dict[str, Any]) -> str:
    return next((tag["Value"] for tag in volume.get("Tags", ()) if tag["Key"] == "Name"), "")


def test_they_come_and_go_with_the_nodes(cloud: Cloud) -> None:
    operator = Operator(cloud)
    assert operator.deploy(PLAIN).succeeded
    assert set(volumes_of_nodes(cloud)) == {"/dev/sda1"}

    wanted = with_volumes(CACHE, RAW)
    plan = operator.plan(wanted)
    assert plan.danger is Danger.DISRUPTIVE
    texts = [change.impact.text for stack in plan.stacks for change in stack.changes if change.impact]
    assert any("different further volumes (empty ones" in text for text in texts), texts
    assert operator.deploy(wanted).succeeded
    volumes = volumes_of_nodes(cloud)
    assert {device: (each["Size"], each["VolumeType"], each["Encrypted"]) for device, each in volumes.items()} == {
        "/dev/sda1": (32, "gp3", True),
        "/dev/sdf": (50, "gp3", True),
        "/dev/sdg": (10, "gp2", True),
    }
    assert len({each["Attachments"][0]["InstanceId"] for each in volumes.values()}) == 1
    assert operator.deploy(wanted).action == "none"

    larger = with_volumes({**CACHE, "size": 60}, RAW)
    texts = [change.impact.text for stack in operator.plan(larger).stacks for change in stack.changes if change.impact]
    text = "different further volumes (empty ones: what is on those of a replaced node is deleted with it)"
    assert f"new instances have {text}" in texts

    request = DeletionRequest("one", "one")
    assert delete(operator.account, request, operator.waiting).succeeded
    assert volumes_of_nodes(cloud) == {}
