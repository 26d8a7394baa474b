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
NAMESPACE = "kube-system"
CONFIGURATION_ANNOTATION = "cfngen/configuration"
SINCE_ANNOTATION = "cfngen/since"
UNINITIALIZED_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
# Seconds between tries of a failed release, before the timer's next turn: a hook may wait for the first node.
RETRY_DELAYS = (60, 120, 240, 480)


def essentials(machine: Machine, config: dict[str, Any]) -> str:
    """Apply the manifests and the essential charts, see them at work, and leave the rest to the timer."""
    manifests, node, seconds = (
        documents(*config["manifests"]),
        config["facts"]["instanceId"],
        remaining(machine, config),
    )
    charts = [release for release in config["addons"] if release["essential"]]

    def apply() -> None:
        kubectl(machine, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifests)

    def install() -> None:
        _apply_releases(machine, config, charts)

    def check_node() -> None:
        # Without it no node takes pods and no pod is routed, though each node is Ready.
        node_object = json.loads(kubectl(machine, "get", "node", node, "-o", "json")[1])
        if any(taint["key"] == UNINITIALIZED_TAINT for taint in node_object["spec"].get("taints", [])):
            raise Pending("the node still has its taint")
        conditions = {condition["type"]: condition for condition in node_object.get("status", {}).get("conditions", [])}
        ready_condition = conditions.get("Ready", {})
        # Nor does it take them before a network plug-in that is a chart works.
        if charts and ready_condition.get("status") != "True":
            raise Pending(f"the node is not Ready: {ready_condition.get('message', 'no word from its kubelet')}")

    machine.wait("kubectl apply", apply, "is the API server healthy?", seconds, BootError)
    if charts:
        names = " and ".join(release["name"] for release in charts)
        machine.wait(
            names,
            install,
            f"`kubectl -n {NAMESPACE} get configmap {NAME} -o yaml`",
            seconds,
            (BootError, Pending),
        )
    components = " and ".join(["the cloud controller manager", *(release["name"] for release in charts)])
    hint = "`kubectl get pods --all-namespaces`; `kubectl -n kube-system logs daemonset/cloud-controller-manager`"
    machine.wait(components, check_node, hint, seconds, (BootError, Pending))
    machine.run("systemctl", "enable", "--now", f"{NAME}.timer")
    # At once, too, but not as a part of the boot: they may wait for nodes, which wait for this master.
    machine.run("systemctl", "start", "--no-block", f"{NAME}.service")
    return f"{components} at work; {len(config['addons']) - len(charts)} charts follow"


def apply(machine: Machine, config: dict[str, Any]) -> str:
    """Bring all releases to what is configured; what fails is tried again for a quarter of an hour.

    Raises:
        BootError: a release could not be installed or removed; the timer tries again.
    """
    outcome, error = _try_releases(machine, config)
    for delay in RETRY_DELAYS:
        if error:
            machine.sleep(delay)
            outcome, error = _try_releases(machine, config)
    if isinstance(error, BootError):
        raise BootError(str(error), f"{error.hint or f'see {LOG}'}; the next try is within the hour") from error
    return outcome


def _try_releases(machine: Machine, config: dict[str, Any]) -> tuple[str, Exception | None]:
    """Do all releases once; return what was done, and why something was not."""
    try:
        return _apply_releases(machine, config, config["addons"]), None
    except (BootError, Pending) as error:
        return str(error), error


def _apply_releases(machine: Machine, config: dict[str, Any], releases: list[dict[str, Any]]) -> str:
    """Do once what is still to do of some releases; return what was done, if anything.

    Raises:
        BootError: some failed; the others are done.
        Pending: another master is at it.
    """
    holder = config["facts"]["instanceId"]
    plan = _Plan(machine, config, releases)
    if plan.stale or plan.complete():
        return ""
    fetch_errors = {release["name"]: _fetch_chart(machine, release) for release in plan.due()}
    lease.take(machine, NAME, holder)
    try:
        # What was read before the lock was had may be old.
        plan = _Plan(machine, config, releases)
        return "" if plan.stale else plan.carry_out(fetch_errors)
    finally:
        lease.give_back(machine, NAME, holder)


def _fetch_chart(machine: Machine, release: dict[str, Any]) -> str:
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
        output = kubectl(machine, "-n", NAMESPACE, "get", "configmap", NAME, "-o", "json", "--ignore-not-found")[1]
        config_map = json.loads(output) if output.strip() else {}
        self.records: dict[str, dict[str, str]] = {
            name: json.loads(text) for name, text in config_map.get("data", {}).items()
        }
        self.annotations = config_map.get("metadata", {}).get("annotations", {})
        node = ("get", "node", config["facts"]["instanceId"], "--ignore-not-found")
        self.since = kubectl(machine, *node, "-o", "jsonpath={.metadata.creationTimestamp}")[1].strip()
        self.digests = {release["name"]: digest(release) for release in config["addons"]}
        self.configuration = hashlib.sha256(json.dumps(self.digests, sort_keys=True).encode()).hexdigest()
        is_different = self.annotations.get(CONFIGURATION_ANNOTATION, self.configuration) != self.configuration
        self.stale = is_different and self.annotations.get(SINCE_ANNOTATION, "") > self.since
        if not is_different:
            # The youngest master with this configuration vouches for it.
            self.since = max(self.since, self.annotations.get(SINCE_ANNOTATION, ""))

    def due(self) -> list[dict[str, Any]]:
        """Return the releases that are not installed as configured."""
        return [
            release
            for release in self.releases
            if (self._recorded(release, "status"), self._recorded(release, "hash")) != ("deployed", digest(release))
        ]

    def unconfigured(self) -> list[str]:
        """Return the names of releases that are noted and no longer configured; the essential ones' plan has none."""
        covers_all = len(self.releases) == len(self.digests)
        return [name for name in self.records if covers_all and name not in self.digests]

    def complete(self) -> bool:
        """Return whether nothing is to do."""
        return not self.due() and not self.unconfigured()

    def carry_out(self, fetch_errors: dict[str, str]) -> str:
        """Install and remove, one after another, noting how each ended.

        Args:
            fetch_errors: why a chart could not be downloaded, by release; empty where it was.

        Raises:
            BootError: at least one release failed.
        """
        failures = []
        releases, unconfigured = self.due(), self.unconfigured()
        for release in releases:
            name, namespace = release["name"], release["namespace"]
            previous = self.records.get(name, {})
            record = {"version": release["version"], "namespace": namespace, "hash": digest(release)}
            try:
                if fetch_errors.get(name):
                    raise BootError(fetch_errors[name])
                self._record_release(name, {**record, "status": "applying", "message": ""})
                if previous.get("namespace", namespace) != namespace:
                    helm.uninstall(self.machine, name, previous["namespace"])
                helm.install(self.machine, release, previous.get("status") == "applying")
            except BootError as error:
                failures.append(f"{name}: {error}")
                self._record_release(name, {**record, "status": "failed", "message": str(error)[:1000]})
            else:
                self._record_release(name, {**record, "status": "deployed", "message": ""})
        for name in unconfigured:
            record = self.records[name]
            try:
                helm.uninstall(self.machine, name, record["namespace"])
            except BootError as error:
                failures.append(f"{name}: {error}")
                self._record_release(name, {**record, "status": "failed to uninstall", "message": str(error)[:1000]})
            else:
                self._record_release(name, None)
        if failures:
            raise BootError("; ".join(failures), f"`kubectl -n {NAMESPACE} get configmap {NAME} -o yaml`")
        return f"applied {len(releases)}, removed {len(unconfigured)} of {len(self.releases)} releases"

    def _recorded(self, release: dict[str, Any], key: str) -> str:
        return self.records.get(release["name"], {}).get(key, "")

    def _record_release(self, name: str, record: dict[str, str] | None) -> None:
        """Note how it stands with a release, or forget it; say so to those who wait for the lock."""
        self.records.pop(name, None)
        if record:
            self.records[name] = {**record, "time": self.machine.time()}
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": NAME,
                "namespace": NAMESPACE,
                "annotations": {CONFIGURATION_ANNOTATION: self.configuration, SINCE_ANNOTATION: self.since},
            },
            "data": {key: json.dumps(value) for key, value in self.records.items()},
        }
        kubectl(
            self.machine,
            *("apply", "--server-side", "--force-conflicts", f"--field-manager={NAME}", "-f", "-"),
            stdin=json.dumps(config_map),
        )
        lease.take(self.machine, NAME, self.config["facts"]["instanceId"])
