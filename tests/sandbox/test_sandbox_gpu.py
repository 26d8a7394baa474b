"""Nodes with GPUs: they boot from AWS's image, and one without a driver fails at once, with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sandboxed import NODES, place, said

from cfngen.cluster.load import parse

CANONICAL = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"


def gpu_group(**more: Any) -> dict[str, Any]:
    return {"name": "nodes", "instanceType": "g4dn.12xlarge", "minSize": 1, "gpu": "nvidia", **more}


def test_gpu_nodes_say_what_they_have_and_pull_images() -> None:
    group = gpu_group(prePulledImages=["docker.io/library/nginx:1.29", "quay.io/a/b:1"])
    with place() as where:
        with_gpu = replace(where, cluster=parse({"nodeGroups": [group]}))
        stack = with_gpu.create()
        assert stack.status == "CREATE_COMPLETE", stack.reason
        [node] = with_gpu.instances(NODES)
        assert node.image == "Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04)"
        lines = said(node)
        assert [line for line in lines if "] GPU: 4 x NVIDIA T4 with driver " in line]
        assert [line for line in lines if "] pre-pulled images: 2 images are pulled in the background" in line]


def test_an_image_without_driver_fails_the_group_with_the_reason() -> None:
    with place() as where:
        plain = replace(where, cluster=parse({"nodeGroups": [gpu_group(image={"ssmParameter": CANONICAL})]}))
        stack = plain.create()
        assert stack.status != "CREATE_COMPLETE"
        [node] = plain.instances(NODES)
        [line] = [line for line in said(node) if "GPU FAILED" in line]
        assert "the image has no nvidia-smi: NVIDIA's driver is not installed" in line


def test_a_root_volume_smaller_than_the_image_is_refused() -> None:
    """A size that the cluster file's checks do not judge, as the image has another name there."""
    name = "base-oss-nvidia-driver-gpu-ubuntu-22.04"
    another = {"ssmParameter": f"/aws/service/deeplearning/ami/x86_64/{name}/latest/ami-id"}
    with place() as where:
        group = gpu_group(image=another, rootVolume={"size": 40})
        stack = replace(where, cluster=parse({"nodeGroups": [group]})).create()
        assert stack.status != "CREATE_COMPLETE"
        reasons = [event.reason for each in where.account.cloud.stacks() for event in each.events]
        assert any("is smaller than snapshot" in reason and "expect size >= 75GB" in reason for reason in reasons)
