"""Runs a pod of the pause image, to prove that a node can run pods before it signals success to CloudFormation.

A Node is Ready as soon as the kubelet and the CRI answer, even if no image can be unpacked and no container started. So
this step gives the kubelet a static pod, which needs no scheduler and no network plug-in, and queries containerd until
it runs. A master needs no such check: its API server and etcd are static pods, too.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ..host import kubelet
from ..machine import HOME, BootError, Machine, Pending
from ..reasons import reason

if TYPE_CHECKING:
    from ..contract import JsonObject, NodeBoot

POD_NAME = "cfngen-first-pod"
MANIFEST = f"{kubelet.MANIFESTS_FOLDER}/{POD_NAME}.yaml"
RAN_FILE = HOME + "/first-pod"
CTR = ("ctr", "-n", "k8s.io")
# Filter for the pod's container but not for its sandbox, which containerd also lists as a container (containerd's
# internal/cri/labels).
CONTAINER_FILTER = 'labels."io.kubernetes.pod.namespace"==kube-system,labels."io.cri-containerd.kind"==container'
HINT = "`journalctl -u kubelet -u containerd`; check that the instance can reach the registry of the pause image"


def run(machine: Machine, boot: NodeBoot) -> str:
    """Run a pod of the pause image for a moment.

    This is done only once in the instance's life: after a reboot other pods may leave no capacity for it.
    """
    instance = boot.facts["instanceId"]
    if machine.read(RAN_FILE) == instance:
        return "ran before"
    folder = boot.config["kubeletPatch"].get("staticPodPath", kubelet.MANIFESTS_FOLDER)
    if folder != kubelet.MANIFESTS_FOLDER:
        return "skipped: the cluster file sets another staticPodPath"
    machine.write(MANIFEST, json.dumps(pod_manifest(boot.config["pause"])), 0o600)
    try:
        machine.wait("a first pod to run", lambda: _check_running(machine), HINT, boot.remaining(machine))
    except BootError as error:
        raise BootError(f"{error}{_last_kubelet_error(machine)}", error.hint) from error
    finally:
        machine.remove(MANIFEST)
    machine.write(RAN_FILE, instance)
    return f"a pod of {boot.config['pause']} ran"


def pod_manifest(image: str) -> JsonObject:
    """Return the pod's manifest: with hostNetwork, as there may be no pod network yet, and a short grace period."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD_NAME, "namespace": "kube-system"},
        "spec": {
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "pause", "image": image, "imagePullPolicy": "IfNotPresent"}],
        },
    }


def _check_running(machine: Machine) -> None:
    """Check that the pod's container runs.

    Raises:
        Pending: it does not run, or containerd does not answer.
    """
    container_filter = f'labels."io.kubernetes.pod.name"~="^{POD_NAME}-",{CONTAINER_FILTER}'
    code, containers = machine.run(*CTR, "containers", "ls", "-q", container_filter, expect=(0, 1))
    if code:
        raise Pending("containerd does not answer")
    _, tasks = machine.run(*CTR, "tasks", "ls", expect=(0, 1))
    running_ids = {line.split()[0] for line in tasks.splitlines() if line.split()[2:] == ["RUNNING"]}
    if not running_ids & set(containers.split()):
        raise Pending("its container is not running yet")


def _last_kubelet_error(machine: Machine) -> str:
    """Return the kubelet's last error about the pod, in brackets; "" if it has logged none."""
    _, text = machine.run("journalctl", "-u", "kubelet", "-o", "cat", "--no-pager", "-n", "500", expect=(0, 1))
    errors = [line for line in text.splitlines() if POD_NAME in line and re.match(r"E\d{4} ", line)]
    return f" ({reason(errors[-1])})" if errors else ""
