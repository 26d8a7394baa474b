"""The add-ons: what a working cluster cannot do without, at boot; all the others by a timer, on one master at a time.

What was applied is noted in a ConfigMap, an entry for each release: version, status, time, message. A release is
touched only when its chart or values differ from the note, and removed when it is no longer configured.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from . import helm, lease, system
from .kubectl import documents, kubectl
from .machine import LOG, BootError, Machine, Pending
from .runner import remaining

NAME = "cfngen-addons"
SPACE = "kube-system"
CHANGED = "cfngen/configuration"
SINCE = "cfngen/since"
TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
# Seconds between tries of a failed release, before the timer's next turn: a hook may wait for the first node.
PAUSES = (60, 120, 240, 480)


def essentials(machine: Machine, config: dict[str, Any]) -> str:
    """Apply the manifests and the essential charts, see them at work, and leave the rest to the timer."""
    text, node, seconds = documents(*config["manifests"]), config["facts"]["instanceId"], remaining(machine, config)
    charts = [release for release in config["addons"] if release["essential"]]

    def apply() -> None:
        kubectl(machine, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def install() -> None:
        _round(machine, config, charts)

    def at_work() -> None:
        # Without it no node takes pods and no pod is routed, though each node is Ready.
        found = json.loads(kubectl(machine, "get", "node", node, "-o", "json")[1])
        if any(taint["key"] == TAINT for taint in found["spec"].get("taints", [])):
            raise Pending("the node still has its taint")
        conditions = {condition["type"]: condition for condition in found.get("status", {}).get("conditions", [])}
        ready = conditions.get("Ready", {})
        # Nor does it take them before a network plug-in that is a chart works.
        if charts and ready.get("status") != "True":
            raise Pending(f"the node is not Ready: {ready.get('message', 'no word from its kubelet')}")

    machine.wait("kubectl apply", apply, "is the API server healthy?", seconds, BootError)
    if charts:
        names = " and ".join(release["name"] for release in charts)
        machine.wait(
            names, install, f"`kubectl -n {SPACE} get configmap {NAME} -o yaml`", seconds, (BootError, Pending)
        )
    what = " and ".join(["the cloud controller manager", *(release["name"] for release in charts)])
    hint = "`kubectl get pods --all-namespaces`; `kubectl -n kube-system logs daemonset/cloud-controller-manager`"
    machine.wait(what, at_work, hint, seconds, (BootError, Pending))
    machine.run("systemctl", "enable", "--now", f"{NAME}.timer")
    # At once, too, but not as a part of the boot: they may wait for nodes, which wait for this master.
    machine.run("systemctl", "start", "--no-block", f"{NAME}.service")
    return f"{what} at work; {len(config['addons']) - len(charts)} charts follow"


def apply(machine: Machine, config: dict[str, Any]) -> str:
    """Bring all releases to what is configured; what fails is tried again for a quarter of an hour.

    Raises:
        BootError: a release could not be installed or removed; the timer tries again.
    """
    outcome, fault = _attempt(machine, config)
    for pause in PAUSES:
        if fault:
            machine.sleep(pause)
            outcome, fault = _attempt(machine, config)
    if isinstance(fault, BootError):
        raise BootError(str(fault), f"{fault.hint or f'see {LOG}'}; the next try is within the hour") from fault
    return outcome


def _attempt(machine: Machine, config: dict[str, Any]) -> tuple[str, Exception | None]:
    """Do all releases once; return what was done, and why something was not."""
    try:
        return _round(machine, config, config["addons"]), None
    except (BootError, Pending) as error:
        return str(error), error


def _round(machine: Machine, config: dict[str, Any], releases: list[dict[str, Any]]) -> str:
    """Do once what is still to do of some releases; return what was done, if anything.

    Raises:
        BootError: some failed; the others are done.
        Pending: another master is at it.
    """
    holder = config["facts"]["instanceId"]
    plan = _Plan(machine, config, releases)
    if plan.stale or plan.complete():
        return ""
    faults = {release["name"]: _fetch(machine, release) for release in plan.due()}
    lease.take(machine, NAME, holder)
    try:
        # What was read before the lock was had may be old.
        plan = _Plan(machine, config, releases)
        return "" if plan.stale else plan.carry_out(faults)
    finally:
        lease.give_back(machine, NAME, holder)


def _fetch(machine: Machine, release: dict[str, Any]) -> str:
    """Fetch a release's chart; return what went wrong."""
    try:
        system.provide(machine, release["chart"], 60)
    except BootError as error:
        return str(error)
    return ""


def digest(release: dict[str, Any]) -> str:
    """Return what changes when a release is to be applied anew."""
    parts = [release["chart"]["sha256"], release["namespace"], release["values"], release["patches"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class _Plan:
    """What is noted, and what is still to do.

    Attributes:
        stale: whether a master younger than this one applied another configuration. While masters are rolled, the
            remaining old ones would undo what the new ones did.
    """

    def __init__(self, machine: Machine, config: dict[str, Any], releases: list[dict[str, Any]]) -> None:
        self.machine, self.config, self.releases = machine, config, releases
        found = kubectl(machine, "-n", SPACE, "get", "configmap", NAME, "-o", "json", "--ignore-not-found")[1]
        note = json.loads(found) if found.strip() else {}
        self.notes: dict[str, dict[str, str]] = {name: json.loads(text) for name, text in note.get("data", {}).items()}
        self.known = note.get("metadata", {}).get("annotations", {})
        node = ("get", "node", config["facts"]["instanceId"], "--ignore-not-found")
        self.since = kubectl(machine, *node, "-o", "jsonpath={.metadata.creationTimestamp}")[1].strip()
        self.wanted = {release["name"]: digest(release) for release in config["addons"]}
        self.configuration = hashlib.sha256(json.dumps(self.wanted, sort_keys=True).encode()).hexdigest()
        changed = self.known.get(CHANGED, self.configuration) != self.configuration
        self.stale = changed and self.known.get(SINCE, "") > self.since
        if not changed:
            # The youngest master with this configuration vouches for it.
            self.since = max(self.since, self.known.get(SINCE, ""))

    def due(self) -> list[dict[str, Any]]:
        """Return the releases that are not installed as configured."""
        return [
            release
            for release in self.releases
            if (self._note(release, "status"), self._note(release, "hash")) != ("deployed", digest(release))
        ]

    def gone(self) -> list[str]:
        """Return the names of releases that are noted and no longer configured; the essential ones' plan has none."""
        whole = len(self.releases) == len(self.wanted)
        return [name for name in self.notes if whole and name not in self.wanted]

    def complete(self) -> bool:
        """Return whether nothing is to do."""
        return not self.due() and not self.gone()

    def carry_out(self, faults: dict[str, str]) -> str:
        """Install and remove, one after another, noting how each ended.

        Args:
            faults: what went wrong in fetching charts, by release.

        Raises:
            BootError: some failed.
        """
        failed = []
        due, gone = self.due(), self.gone()
        for release in due:
            name, space = release["name"], release["namespace"]
            before = self.notes.get(name, {})
            note = {"version": release["version"], "namespace": space, "hash": digest(release)}
            try:
                if faults.get(name):
                    raise BootError(faults[name])
                self._write(name, {**note, "status": "applying", "message": ""})
                if before.get("namespace", space) != space:
                    helm.uninstall(self.machine, name, before["namespace"])
                helm.install(self.machine, release, before.get("status") == "applying")
            except BootError as error:
                failed.append(f"{name}: {error}")
                self._write(name, {**note, "status": "failed", "message": str(error)[:1000]})
            else:
                self._write(name, {**note, "status": "deployed", "message": ""})
        for name in gone:
            note = self.notes[name]
            try:
                helm.uninstall(self.machine, name, note["namespace"])
            except BootError as error:
                failed.append(f"{name}: {error}")
                self._write(name, {**note, "status": "failed to uninstall", "message": str(error)[:1000]})
            else:
                self._write(name, None)
        if failed:
            raise BootError("; ".join(failed), f"`kubectl -n {SPACE} get configmap {NAME} -o yaml`")
        return f"applied {len(due)}, removed {len(gone)} of {len(self.releases)} releases"

    def _note(self, release: dict[str, Any], key: str) -> str:
        return self.notes.get(release["name"], {}).get(key, "")

    def _write(self, name: str, note: dict[str, str] | None) -> None:
        """Note how it stands with a release, or forget it; say so to those who wait for the lock."""
        self.notes.pop(name, None)
        if note:
            self.notes[name] = {**note, "time": self.machine.time()}
        content = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": NAME,
                "namespace": SPACE,
                "annotations": {CHANGED: self.configuration, SINCE: self.since},
            },
            "data": {key: json.dumps(value) for key, value in self.notes.items()},
        }
        kubectl(
            self.machine,
            *("apply", "--server-side", "--force-conflicts", f"--field-manager={NAME}", "-f", "-"),
            stdin=json.dumps(content),
        )
        lease.take(self.machine, NAME, self.config["facts"]["instanceId"])
