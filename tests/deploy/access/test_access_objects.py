"""Kubernetes' objects as its API answers them: whatever is missing is empty, and the nearest reason is told."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.deploy.access.kubernetes_objects import (
    LoadBalancer,
    Node,
    Pod,
    Readiness,
    parse_load_balancer,
    parse_node,
    parse_pod,
)
from cfngen.deploy.access.kubernetes_objects import parse_readiness as readiness_of
from cfngen.deploy.access.kubernetes_objects import parse_version as version_of

READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "posting"}
WORKING = {
    "metadata": {"name": "i-1", "labels": {"node-role.kubernetes.io/control-plane": ""}},
    "spec": {"providerID": "aws:///us-west-2a/i-1"},
    "status": {
        "conditions": [READY, {"type": "NetworkUnavailable", "status": "False"}],
        "nodeInfo": {"kubeletVersion": "v1.36.3"},
    },
}
UNHEARD = "its kubelet has not reported anything yet"


def changed(item: dict[str, Any], part: str, **values: Any) -> dict[str, Any]:
    return {**item, part: {**item.get(part, {}), **values}}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (WORKING, Node("i-1", "i-1", ready=True, version="1.36.3", master=True)),
        (changed(WORKING, "metadata", labels=None), Node("i-1", "i-1", ready=True, version="1.36.3")),
        (changed(WORKING, "metadata", labels={"x": ""}), Node("i-1", "i-1", ready=True, version="1.36.3")),
        (changed(WORKING, "spec", providerID=None), Node("i-1", ready=True, version="1.36.3", master=True)),
        (
            changed(WORKING, "spec", taints=[{"key": "node.cloudprovider.kubernetes.io/uninitialized"}]),
            Node("i-1", "i-1", ready=True, version="1.36.3", master=True, initialised=False),
        ),
        (
            changed(WORKING, "spec", taints=[{"key": "node-role.kubernetes.io/control-plane"}]),
            Node("i-1", "i-1", ready=True, version="1.36.3", master=True),
        ),
        (
            changed(WORKING, "status", conditions=[READY, {"type": "NetworkUnavailable", "status": "True"}]),
            Node("i-1", "i-1", ready=True, version="1.36.3", master=True, routed=False),
        ),
        (
            changed(WORKING, "status", conditions=[{**READY, "status": "False", "reason": "Why", "message": "that"}]),
            Node("i-1", "i-1", reason="Why: that", version="1.36.3", master=True),
        ),
        (
            changed(WORKING, "status", conditions=[{"type": "Ready", "status": "Unknown", "reason": "Silent"}]),
            Node("i-1", "i-1", reason="Silent", version="1.36.3", master=True),
        ),
        (
            changed(WORKING, "status", conditions=None, nodeInfo=None),
            Node("i-1", "i-1", reason=UNHEARD, master=True),
        ),
        ({}, Node("", reason=UNHEARD)),
        ({"metadata": None, "spec": None, "status": []}, Node("", reason=UNHEARD)),
    ],
)  # fmt: skip
def test_a_node_says_whether_it_works(item: dict[str, Any], expected: Node) -> None:
    assert parse_node(item) == expected


RUNNING = {
    "metadata": {"name": "coredns"},
    "spec": {"nodeName": "i-1"},
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def unready(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **status: Any) -> dict[str, Any]:
    """A pod that is not ready, with the states of its containers."""
    return {
        "metadata": {"name": "coredns"},
        "status": {
            "phase": "Pending",
            "initContainerStatuses": [{"state": each} for each in init],
            "containerStatuses": [{"state": container} for container in containers],
            **status,
        },
    }


DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
CRASH = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (RUNNING, Pod("coredns", "i-1", "Running", ready=True)),
        (
            changed(RUNNING, "metadata", deletionTimestamp="x"),
            Pod("coredns", "i-1", "Running", True, being_deleted=True),
        ),
        (changed(RUNNING, "status", phase="Succeeded", conditions=None), Pod("coredns", "i-1", "Succeeded", True)),
        (changed(RUNNING, "status", phase="Pending"), Pod("coredns", "i-1", "Pending")),
        (
            changed(RUNNING, "status", conditions=[{"type": "Ready", "status": "False", "reason": "NotYet"}]),
            Pod("coredns", "i-1", "Running", reason="NotYet"),
        ),
        (changed(RUNNING, "status", conditions=[]), Pod("coredns", "i-1", "Running")),
        ({}, Pod("")),
        (changed(RUNNING, "spec", nodeName=None), Pod("coredns", "", "Running", ready=True)),
    ],
)  # fmt: skip
def test_a_pod_says_whether_it_is_ready(item: dict[str, Any], expected: Pod) -> None:
    assert parse_pod(item) == expected


@pytest.mark.parametrize(
    ("item", "reason", "message"),
    [
        (unready(CRASH), "CrashLoopBackOff", "back-off"),
        (unready(DONE, CRASH), "CrashLoopBackOff", "back-off"),
        (unready(init=(DONE, CRASH)), "CrashLoopBackOff", "back-off"),
        (unready({"waiting": {"reason": "PodInitializing"}}, init=(CRASH,)), "CrashLoopBackOff", "back-off"),
        (unready({"terminated": {"exitCode": 1, "reason": "Error", "message": "no"}}), "Error", "no"),
        (unready({"terminated": {"exitCode": 1}}), "terminated", ""),
        (unready({"waiting": {"message": "soon"}}), "waiting", "soon"),
        (unready({"running": {}}, reason="Evicted", message="low on disk"), "Evicted", "low on disk"),
        (
            unready(
                conditions=[
                    {"type": "Ready", "status": "False", "reason": "later"},
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"},
                ]
            ),
            "Unschedulable",
            "0/1 nodes",
        ),
        (unready(conditions=[{"type": "PodScheduled", "status": "False"}]), "PodScheduled", ""),
        (
            unready(
                conditions=[
                    {"type": "PodScheduled", "status": "True", "reason": "scheduled"},
                    {"type": "Ready", "status": "False", "message": "not yet"},
                ]
            ),
            "Ready",
            "not yet",
        ),
        (unready(), "", ""),
    ],
)
def test_the_nearest_reason_why_a_pod_is_not_ready_is_told(item: dict[str, Any], reason: str, message: str) -> None:
    found = parse_pod(item)
    assert (found.ready, found.reason, found.message) == (False, reason, message)


WEB: dict[str, Any] = {"metadata": {"namespace": "default", "name": "web"}}


def at(*ingress: dict[str, str]) -> dict[str, Any]:
    return {**WEB, "status": {"loadBalancer": {"ingress": list(ingress)}}}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (WEB, LoadBalancer("default", "web")),
        (at({"hostname": "a.elb"}, {"hostname": "b.elb"}), LoadBalancer("default", "web", "a.elb")),
        (at({"ip": "192.0.2.1"}), LoadBalancer("default", "web", "192.0.2.1")),
        (at(), LoadBalancer("default", "web")),
        (changed(WEB, "metadata", deletionTimestamp="x"), LoadBalancer("default", "web", being_deleted=True)),
        ({}, LoadBalancer("", "")),
    ],
)
def test_a_service_says_where_its_load_balancer_is(item: dict[str, Any], expected: LoadBalancer) -> None:
    assert parse_load_balancer(item) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[+]ping ok\n[+]etcd ok\nreadyz check passed\n", Readiness(True)),
        ("[+]ping ok\n[-]etcd failed: withheld\n[-]x failed\nreadyz check failed", Readiness(False, ("etcd", "x"))),
        ("[+]ping ok\nreadyz check failed\n", Readiness(False)),
        ("ok", Readiness(True)),
        ("", Readiness(True)),
    ],
)  # fmt: skip
def test_the_server_says_which_of_its_checks_fail(text: str, expected: Readiness) -> None:
    assert readiness_of(text) == expected


@pytest.mark.parametrize(
    ("answer", "version"), [({"gitVersion": "v1.36.3"}, "1.36.3"), ({"gitVersion": "1.36.3"}, "1.36.3"), ({}, "")]
)
def test_the_version_of_the_server_is_without_its_letter(answer: dict[str, Any], version: str) -> None:
    assert version_of(answer) == version
