"""A cluster behind a proxy: its boots have a step more, and its instances no public addresses."""

from __future__ import annotations

from dataclasses import replace

from sandboxed import NODES, place, said

from cfngen.cluster.load import parse


def test_services_of_the_image_are_restarted_with_the_proxy() -> None:
    file = {
        "network": {"proxy": {"httpsProxy": "http://proxy.example.com:3128"}},
        "nodeGroups": [{"name": "nodes", "minSize": 1, "publicIp": False}],
    }
    with place() as where:
        behind = replace(where, cluster=parse(file))
        stack = behind.create()
        assert stack.status == "CREATE_COMPLETE", stack.reason
        [node] = behind.instances(NODES)
        [line] = [line for line in said(node) if "] proxy: " in line]
        services = "snapd.service, snap.amazon-ssm-agent.amazon-ssm-agent.service"
        assert f"proxy: {services} restarted if running" in line
