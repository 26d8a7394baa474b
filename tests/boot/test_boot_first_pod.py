"""A node says that it works only after a pod ran on it, whatever stands in the way of one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from boots import boot_of
from scripted_machine import IDENTITY, ScriptedMachine

from cfngen.boot.machine import BootError
from cfngen.boot.node import first_pod
from cfngen.boot.state import Boot

INSTANCE = IDENTITY["instanceId"]
PAUSE = "registry.k8s.io/pause:3.10.1"
# Of the kubelet's journal when containerd cannot unpack images for the snapshotter.
JOURNAL = (
    'I1122 10:00:00.000000     811 kubelet.go:2405] "SyncLoop ADD" source="file" '
    'pods=["kube-system/cfngen-first-pod-i-0123456789abcdef0"]\n'
    'E1122 10:00:01.000000     811 log.go:32] "RunPodSandbox from runtime service failed" err="rpc error: code = '
    'Unknown desc = failed to start sandbox"\n'
    'E1122 10:00:01.000000     811 pod_workers.go:1324] "Error syncing pod, skipping" err="failed to '
    '\\"CreatePodSandbox\\" for \\"cfngen-first-pod-i-0123456789abcdef0_kube-system\\": unable to initialize unpacker: '
    'no unpack platforms defined: invalid argument" pod="kube-system/cfngen-first-pod-i-0123456789abcdef0"\n'
    'E1122 10:00:02.000000     811 pod_workers.go:1324] "Error syncing pod, skipping" err="no room" pod="shop/web"\n'
    'I1122 10:00:02.000000     811 kubelet.go:2405] "SyncLoop REMOVE" source="file" '
    'pods=["kube-system/cfngen-first-pod-i-0123456789abcdef0"]\n'
)


def config(**kubelet: Any) -> Boot:
    known = {"facts": {"instanceId": INSTANCE}, "pause": PAUSE, "kubeletPatch": kubelet, "deadline": 600}
    return boot_of(known)


class Node(ScriptedMachine):
    """A node whose kubelet starts the pod of the manifest, if it can, some seconds later.

    Attributes:
        able: whether containers start; what is there is only the sandbox otherwise.
    """

    def __init__(self, able: bool = True) -> None:
        super().__init__()
        self.able = able
        self.on("ctr -n k8s.io containers ls -q", self._containers)
        self.on("ctr -n k8s.io tasks ls", self._tasks)
        self.on("journalctl -u kubelet", (0, JOURNAL))

    def _runs(self) -> bool:
        return self.able and self.passed > 3 and first_pod.MANIFEST in self.files

    def _containers(self, command: str) -> tuple[int, str]:
        assert 'labels."io.kubernetes.pod.name"~="^cfngen-first-pod-"' in command
        assert 'labels."io.cri-containerd.kind"==container' in command
        return 0, "c0ffee\n" if self._runs() else ""

    def _tasks(self, command: str) -> tuple[int, str]:
        rows = "TASK      PID     STATUS    \nabcdef    811     RUNNING\n"
        return 0, rows + ("c0ffee    812     RUNNING\n" if self._runs() else "c0ffee    0     CREATED\n")


def test_pod_of_the_pause_image_runs_and_leaves_nothing() -> None:
    node = Node()
    assert first_pod.run(node, config()) == f"a pod of {PAUSE} ran"
    assert first_pod.MANIFEST not in node.files


def test_pod_needs_neither_network_nor_room_nor_credentials() -> None:
    spec = first_pod.pod_manifest(PAUSE)["spec"]
    assert spec["hostNetwork"] is True
    assert [container["image"] for container in spec["containers"]] == [PAUSE]
    assert "resources" not in spec["containers"][0]
    json.dumps(spec)


def test_node_on_which_no_pod_runs_fails_with_the_kubelets_reason() -> None:
    node = Node(able=False)
    with pytest.raises(BootError, match="no unpack platforms defined") as caught:
        first_pod.run(node, config())
    assert "journalctl -u kubelet" in caught.value.hint
    assert "SyncLoop" not in str(caught.value)
    assert first_pod.MANIFEST not in node.files
    assert first_pod.RAN_FILE not in node.files


def test_node_that_is_full_after_a_reboot_is_not_asked_again() -> None:
    node = Node()
    first_pod.run(node, config())
    node.commands.clear()
    assert first_pod.run(node, config()) == "ran before"
    assert node.commands == []


def test_node_of_an_image_that_was_made_of_another_is_asked() -> None:
    node = Node()
    node.files[first_pod.RAN_FILE] = "i-0fedcba9876543210"
    assert first_pod.run(node, config()) == f"a pod of {PAUSE} ran"


def test_kubelet_that_reads_no_manifests_is_not_waited_for() -> None:
    node = Node(able=False)
    assert "skipped" in first_pod.run(node, config(staticPodPath=""))
    assert node.commands == []
