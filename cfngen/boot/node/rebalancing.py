"""Cordons or drains a node when EC2 recommends to rebalance its Spot Instance, as the node group asks for.

A systemd service polls the instance metadata. The recommendation says that the instance is likely to be interrupted; it
can come long before the interruption notice, together with it, or never ("EC2 instance rebalance recommendations", EC2
User Guide). As soon as EC2 does interrupt the instance, or Auto Scaling terminates it, this service stops: from then on
only the drain service (`drain.py`) moves the pods, and only that one completes the lifecycle action.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..host import kubelet, lifecycle
from ..host.kubectl import kubectl
from ..machine import BootError, Machine
from . import drain

if TYPE_CHECKING:
    from ..contract import NodeBoot

REBALANCE_UNIT = "cfngen-rebalance.service"
# Path in the instance metadata; absent until EC2 recommends to rebalance the instance.
RECOMMENDATION_PATH = "meta-data/events/recommendations/rebalance"
# Pods on the node keep running and get requests, so load balancers keep it as a target.
CORDON_PATCH = {"spec": {"unschedulable": True}}
# Seconds of draining between two checks of whether the drain service has taken over. Shorter than its interval of
# heartbeats, so that this service sends none.
ROUND_SECONDS = 15.0
RECOMMENDED = "EC2 recommends to rebalance this Spot Instance"
TAKEN_OVER = "the drain service moves the pods, as this instance is about to be terminated"


def start(machine: Machine, boot: NodeBoot) -> str:
    """Enable and start the service that watches for a recommendation."""
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", "--now", REBALANCE_UNIT)
    return f"if EC2 recommends to rebalance this instance: {boot.config['rebalance']}"


def watch(machine: Machine, boot: NodeBoot) -> str:
    """Wait for a recommendation, then cordon or drain the node.

    The node stays as it is while no other node can run its pods: if all instances of a group are to be rebalanced, and
    all their nodes were cordoned, new pods could run nowhere.
    """
    has_logged = False
    while not _is_ending(machine):
        if machine.metadata(RECOMMENDATION_PATH, default=""):
            # Not public, since instances that run have a `drain.py` with this name.
            if drain._can_other_nodes_run_pods(machine, boot):  # noqa: SLF001
                outcome = _drain(machine, boot) if boot.config["rebalance"] == "drain" else _cordon(machine, boot)
                return f"{RECOMMENDED}: {outcome}"
            if not has_logged:
                has_logged = True
                machine.say(f"{RECOMMENDED}, but no other node can run pods; its node stays schedulable until one can")
        machine.sleep(lifecycle.POLL_SECONDS)
    return TAKEN_OVER


def _is_ending(machine: Machine) -> bool:
    """Return whether EC2 interrupts this instance or Auto Scaling terminates it, so that the drain service drains."""
    if machine.metadata(drain.SPOT_ACTION_PATH, default=""):
        return True
    return lifecycle.is_terminating(machine)


def _cordon(machine: Machine, boot: NodeBoot) -> str:
    """Mark the node as unschedulable; repeat the request while the API server does not answer."""
    while not _is_ending(machine):
        if _request_cordon(machine, boot):
            return "the node takes no new pods"
        machine.sleep(lifecycle.POLL_SECONDS)
    return TAKEN_OVER


def _request_cordon(machine: Machine, boot: NodeBoot) -> bool:
    """Mark the node as unschedulable; return whether the API server did so."""
    patch = ("patch", "node", boot.facts["instanceId"], "-p", json.dumps(CORDON_PATCH))
    try:
        kubectl(machine, *patch, kubeconfig=kubelet.KUBELET_CONF, timeout=drain.REQUEST_TIMEOUT_SECONDS)
    except BootError as error:
        machine.log(f"the node could not be cordoned: {error}")
        return False
    return True


def _drain(machine: Machine, boot: NodeBoot) -> str:
    """Drain the node in rounds, until it is drained, its time is over, or the drain service takes over."""
    start_time, minutes = machine.clock(), boot.config["drain"]
    while not _is_ending(machine):
        round_start = machine.clock()
        outcome = drain.drain(machine, boot, ROUND_SECONDS)
        if machine.clock() - round_start < ROUND_SECONDS:
            # It did not end by its time-out: no pods remain, or no other node can run them any more.
            return outcome
        if machine.clock() - start_time >= minutes * 60:
            return f"not drained within {minutes} min; in the last round, {outcome}"
    return TAKEN_OVER
