"""Where CoreDNS runs in the sandbox: where kubeadm's tolerations let it."""

from __future__ import annotations

from dataclasses import replace

from sandboxed import MASTERS, place

from cfngen.cluster.load import parse


def test_without_node_groups_it_runs_on_the_master() -> None:
    with place() as where:
        alone = replace(where, cluster=parse({"nodeGroups": []}))
        stack = alone.create()
        assert stack.status == "CREATE_COMPLETE", stack.reason
        [master] = alone.instances(MASTERS)
        cluster = alone.account.cluster("kubernetes")
        pods = cluster.state.list("pods", "kube-system")
        assert {pod["spec"].get("nodeName") for pod in pods} == {master.id}
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        cluster.controllers.remove_node(master.id)
        assert [pod["status"]["phase"] for pod in cluster.state.list("pods")] == ["Pending"] * 2


def test_on_several_nodes_its_pods_are_apart() -> None:
    with place() as where:
        assert where.create().status == "CREATE_COMPLETE"
        [master] = where.instances(MASTERS)
        cluster = where.account.cluster("kubernetes")
        cluster.controllers.remove_node(master.id)
        nodes = [
            pod["spec"]["nodeName"]
            for pod in cluster.state.list("pods")
            if pod["metadata"]["name"].startswith("coredns-")
        ]
        assert len(set(nodes)) == 2
