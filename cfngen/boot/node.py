"""The steps of a node: after the common ones it waits until a master has published how to join, and joins."""

from __future__ import annotations

import json
from typing import Any

from . import kubelet
from .machine import HOME, BootError, Machine, Pending
from .sequence import remaining

JOIN = HOME + "/join.yaml"


def join(machine: Machine, config: dict[str, Any]) -> str:
    """Join the cluster, unless this instance did before; try again with new join information while there is time."""
    if kubelet.established(machine, config):
        machine.run("systemctl", "start", "kubelet")
        return "joined before"
    kubelet.patch(machine, config)
    hint = "did a master's boot fail? Its console says why; on it: systemctl status cfngen-boot cfngen-join"
    seconds = remaining(machine, config)
    return machine.wait("joining", lambda: _attempt(machine, config), hint, seconds, (BootError, Pending))


def _attempt(machine: Machine, config: dict[str, Any]) -> str:
    arn = config["facts"]["joinSecretArn"]
    answer = machine.aws("secretsmanager", "get_secret_value", "ResourceNotFoundException", SecretId=arn)
    found = json.loads(answer.get("SecretString") or "{}")
    if "token" not in found:
        raise Pending("no master has published the join information yet")
    if found["expires"] <= machine.time(60):
        raise Pending(f"the published token ended at {found['expires']} and no master has renewed it")
    discovery = {"apiServerEndpoint": found["endpoint"], "token": found["token"], "caCertHashes": [found["caHash"]]}
    kubelet.clear(machine)
    machine.remove("/etc/kubernetes/pki/ca.crt")
    # In a file for root alone: arguments can be seen by every process.
    machine.write(JOIN, json.dumps({**config["join"], "discovery": {"bootstrapToken": discovery}}), 0o600)
    try:
        machine.run("kubeadm", "join", "--config", JOIN)
    finally:
        machine.remove(JOIN)
    kubelet.establish(machine, config)
    return f"joined {found['endpoint']}"


def ready(machine: Machine, config: dict[str, Any]) -> str:
    """Wait until the cluster sees this node as Ready."""
    name = config["facts"]["instanceId"]
    kubectl = ("kubectl", "--kubeconfig", kubelet.KUBELET_CONF, "--request-timeout=15s")

    def probe() -> None:
        code, text = machine.run(*kubectl, "get", "node", name, "-o", "json", expect=(0, 1))
        conditions = {} if code else {each["type"]: each for each in json.loads(text)["status"].get("conditions", [])}
        condition = conditions.get(
            "Ready", {"status": "", "message": "the API server does not know it, or does not answer"}
        )
        if condition["status"] != "True":
            raise Pending(condition.get("message", ""))

    hint = "journalctl -u kubelet -u containerd; without a pod CIDR look at the controller managers on the master"
    machine.wait(f"node {name} to be Ready", probe, hint, remaining(machine, config))
    return f"node {name} is Ready"
