"""Where CoreDNS runs in the sandbox: where kubeadm's tolerations let it."""

from __future__ import annotations

from dataclasses import replace

from sandboxed import MASTERS, place

from cfngen.cluster.load import parse
from cfngen.sandbox.kubernetes.system_objects import delete_node


def test_without_node_groups_it_runs_on_the_master() -> None:
    with place() as where:
        alone = replace(where, cluster=parse({"nodeGroups": []}))
        stack = alone.create()
        assert stack.status == "CREATE_COMPLETE", stack.reason
        [master] = alone.instances(MASTERS)
        state = alone.account.cluster("kubernetes").state
        pods = state.list("pods", "kube-system")
        assert {pod["spec"].get("nodeName") for pod in pods} == {master.id}
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        delete_node(state, master.id)
        assert [pod["status"]["phase"] for pod in state.list("pods")] == ["Pending"] * 2


def test_on_several_nodes_its_pods_are_apart() -> None:
    with place() as where:
        assert where.create().status == "CREATE_COMPLETE"
        [master] = where.instances(MASTERS)
        state = where.account.cluster("kubernetes").state
        delete_node(state, master.id)
        nodes = [
            pod["spec"]["nodeName"] for pod in state.list("pods") if pod["metadata"]["name"].startswith("coredns-")
        ]
        assert len(set(nodes)) == 2
