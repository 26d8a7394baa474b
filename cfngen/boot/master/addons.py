"""Installs the add-ons, which are Helm releases: essential ones during boot, all others by a timer.

Only one master at a time does this, the one that holds a lease. A ConfigMap records the version, status, time and error
message of each Helm release. A release is upgraded only if its chart or values differ from its record, and uninstalled
when it is no longer configured.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from ..host import system
from ..host.kubectl import kubectl, yaml_documents
from ..machine import LOG, BootError, Machine, Pending
from . import helm, lease

if TYPE_CHECKING:
    from ..contract import MasterBoot, Release

NAME = "cfngen-addons"
NAMESPACE = "kube-system"
# Annotation of the ConfigMap: a digest of the configuration of add-ons that was applied.
CONFIGURATION_ANNOTATION = "cfngen/configuration"
# Annotation of the ConfigMap: the creation time of the youngest master whose configuration of add-ons was applied. An
# older master with another configuration then applies nothing (see `_Plan.is_superseded`).
YOUNGEST_MASTER_ANNOTATION = "cfngen/since"
# Taint of a new node until the cloud controller manager removes it; before that no ordinary pods run on the node.
UNINITIALIZED_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
# Seconds before each further attempt to install failed releases; a chart's hook may be waiting for the first node.
RETRY_DELAYS = (60, 120, 240, 480)


def essentials(machine: Machine, boot: MasterBoot) -> str:
    """Apply the manifests, install the essential Helm releases, and wait until both work.

    All other releases are installed by a timer, which is started at the end.
    """
    manifests = yaml_documents(*boot.config["manifests"])
    node_name = boot.facts["instanceId"]
    seconds = boot.remaining(machine)
    essential_releases = [release for release in boot.config["addons"] if release["essential"]]

    def apply_manifests() -> None:
        kubectl(machine, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=manifests)

    def install_essential_releases() -> None:
        _apply_releases(machine, boot, essential_releases)

    def check_node() -> None:
        node_object = json.loads(kubectl(machine, "get", "node", node_name, "-o", "json")[1])
        if any(taint["key"] == UNINITIALIZED_TAINT for taint in node_object["spec"].get("taints", [])):
            raise Pending(f"the node still has the taint {UNINITIALIZED_TAINT}")
        conditions = {condition["type"]: condition for condition in node_object.get("status", {}).get("conditions", [])}
        ready_condition = conditions.get("Ready", {})
        # If the network plug-in is one of the essential releases, the node is Ready only once the plug-in works, and no
        # ordinary pods are scheduled on the node before.
        if essential_releases and ready_condition.get("status") != "True":
            raise Pending(
                f"the node is not Ready: {ready_condition.get('message', 'its kubelet has not reported yet')}"
            )

    machine.wait(
        "kubectl apply",
        apply_manifests,
        hint="check that the API server is healthy",
        seconds=seconds,
        retry_on=BootError,
    )
    if essential_releases:
        names = " and ".join(release["name"] for release in essential_releases)
        machine.wait(
            names,
            install_essential_releases,
            hint=f"`kubectl -n {NAMESPACE} get configmap {NAME} -o yaml`",
            seconds=seconds,
            retry_on=(BootError, Pending),
        )
    components = " and ".join(["the cloud controller manager", *(release["name"] for release in essential_releases)])
    hint = "`kubectl get pods --all-namespaces`; `kubectl -n kube-system logs daemonset/cloud-controller-manager`"
    machine.wait(components, check_node, hint=hint, seconds=seconds, retry_on=(BootError, Pending))
    machine.run("systemctl", "enable", "--now", f"{NAME}.timer")
    # Also start the service now, without waiting until it ends: add-ons may wait for nodes, which wait for this master.
    machine.run("systemctl", "start", "--no-block", f"{NAME}.service")
    return f"{components} running; {len(boot.config['addons']) - len(essential_releases)} charts follow"


def apply(machine: Machine, boot: MasterBoot) -> str:
    """Install, upgrade and uninstall Helm releases as configured; retry failures for a quarter of an hour.

    It is not an error if another master holds the lease: that one does the work.
    """
    outcome, error = _try_releases(machine, boot)
    for delay_seconds in RETRY_DELAYS:
        if error:
            machine.sleep(delay_seconds)
            outcome, error = _try_releases(machine, boot)
    # Pending, the other possible error, means that another master is at work.
    if isinstance(error, BootError):
        raise BootError(str(error), f"{error.hint or f'see {LOG}'}; it is retried within the hour") from error
    return outcome


def _try_releases(machine: Machine, boot: MasterBoot) -> tuple[str, Exception | None]:
    """Install, upgrade and uninstall Helm releases once.

    Returns:
        The outcome and None; or, if it failed, the error's text and the error.
    """
    try:
        return _apply_releases(machine, boot, boot.config["addons"]), None
    except (BootError, Pending) as error:
        return str(error), error


def _apply_releases(machine: Machine, boot: MasterBoot, releases: list[Release]) -> str:
    """Install, upgrade and uninstall Helm releases as configured, while this master holds the add-ons' lease.

    Returns:
        What was done, for the log; "" if there was nothing to do.

    Raises:
        BootError: some releases failed; the others were installed.
        Pending: another master holds the add-ons' lease.
    """
    holder = boot.facts["instanceId"]
    plan = _Plan(machine, boot, releases)
    if plan.is_superseded or plan.is_done():
        return ""
    fetch_errors = {release["name"]: _fetch_chart(machine, release) for release in plan.to_install()}
    lease.acquire(machine, NAME, holder)
    try:
        # Another master may have changed the records before this one got the lease.
        plan = _Plan(machine, boot, releases)
        return "" if plan.is_superseded else plan.execute(fetch_errors)
    finally:
        lease.release(machine, NAME, holder)


def _fetch_chart(machine: Machine, release: Release) -> str:
    try:
        system.provide_asset(machine, release["chart"], seconds=60)
    except BootError as error:
        return str(error)
    return ""


def digest(release: Release) -> str:
    """Return a digest of a Helm release's chart, namespace, values and patches; if it changes, masters upgrade it."""
    parts = [release["chart"]["sha256"], release["namespace"], release["values"], release["patches"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


class _Plan:
    """What has to be done to the Helm releases: their recorded state, compared with their configured state.

    Attributes:
        releases: the releases to install: all configured ones, or during boot the essential ones.
        records: by release name, the record of each installed or failed release, from the ConfigMap.
        annotations: the annotations of the ConfigMap when it was read.
        digests: by release name, the digest of each configured release, see `digest`.
        configuration: a digest of `digests`, by which masters with different configurations of add-ons are told apart.
        youngest_created: creation time of the youngest master known to have this configuration, as RFC 3339 text.
        is_superseded: whether a younger master has applied another configuration. Then this master applies nothing:
            otherwise, in a rolling update, old masters would undo the changes of new masters.
    """

    def __init__(self, machine: Machine, boot: MasterBoot, releases: list[Release]) -> None:
        self.machine, self.boot, self.releases = machine, boot, releases
        _, output = kubectl(machine, "-n", NAMESPACE, "get", "configmap", NAME, "-o", "json", "--ignore-not-found")
        config_map = json.loads(output) if output.strip() else {}
        self.records: dict[str, dict[str, str]] = {
            name: json.loads(text) for name, text in config_map.get("data", {}).items()
        }
        self.annotations = config_map.get("metadata", {}).get("annotations", {})
        node_query = ("get", "node", boot.facts["instanceId"], "--ignore-not-found")
        _, created = kubectl(machine, *node_query, "-o", "jsonpath={.metadata.creationTimestamp}")
        self.youngest_created = created.strip()
        self.digests = {release["name"]: digest(release) for release in boot.config["addons"]}
        self.configuration = hashlib.sha256(json.dumps(self.digests, sort_keys=True).encode()).hexdigest()
        is_different = self.annotations.get(CONFIGURATION_ANNOTATION, self.configuration) != self.configuration
        self.is_superseded = (
            is_different and self.annotations.get(YOUNGEST_MASTER_ANNOTATION, "") > self.youngest_created
        )
        if not is_different:
            # Another master with this configuration may be younger than this one: its creation time is kept.
            self.youngest_created = max(self.youngest_created, self.annotations.get(YOUNGEST_MASTER_ANNOTATION, ""))

    def to_install(self) -> list[Release]:
        """Return the releases that are not recorded as deployed with their present chart and settings.

        Those that have failed come last, since they may take their whole time-out again.
        """
        releases = [release for release in self.releases if not self._is_deployed(release)]
        return sorted(releases, key=lambda release: self.records.get(release["name"], {}).get("status") == "failed")

    def to_uninstall(self) -> list[str]:
        """Return the names of the recorded releases that are no longer configured.

        Releases are uninstalled only by the timer, whose plan contains all configured releases. A plan of the essential
        releases, at boot, uninstalls none.
        """
        has_all_releases = len(self.releases) == len(self.digests)
        if not has_all_releases:
            return []
        return [name for name in self.records if name not in self.digests]

    def is_done(self) -> bool:
        """Return whether no release has to be installed, upgraded or uninstalled."""
        return not self.to_install() and not self.to_uninstall()

    def execute(self, fetch_errors: dict[str, str]) -> str:
        """Install and uninstall releases one after another, and record the result of each.

        Args:
            fetch_errors: by release name, why the release's chart could not be downloaded; "" if it was downloaded.
        """
        failures = []
        releases = self.to_install()
        removed_names = self.to_uninstall()
        for release in releases:
            name, namespace = release["name"], release["namespace"]
            old_record = self.records.get(name, {})
            record = {"version": release["version"], "namespace": namespace, "hash": digest(release)}
            try:
                if fetch_errors.get(name):
                    raise BootError(fetch_errors[name])
                self._record_release(name, {**record, "status": "applying", "message": ""})
                if old_record.get("namespace", namespace) != namespace:
                    # The release was moved to another namespace: uninstall it in the old one.
                    helm.uninstall(self.machine, name, old_record["namespace"])
                helm.install(self.machine, release, interrupted=old_record.get("status") == "applying")
            except BootError as error:
                failures.append(f"{name}: {error}")
                self._record_release(name, {**record, "status": "failed", "message": str(error)[:1000]})
            else:
                self._record_release(name, {**record, "status": "deployed", "message": ""})
        for name in removed_names:
            record = self.records[name]
            try:
                helm.uninstall(self.machine, name, record["namespace"])
            except BootError as error:
                failures.append(f"{name}: {error}")
                self._record_release(name, {**record, "status": "failed to uninstall", "message": str(error)[:1000]})
            else:
                self._forget_release(name)
        if failures:
            raise BootError("; ".join(failures), f"`kubectl -n {NAMESPACE} get configmap {NAME} -o yaml`")
        return f"applied {len(releases)}, removed {len(removed_names)} of {len(self.releases)} releases"

    def _is_deployed(self, release: Release) -> bool:
        record = self.records.get(release["name"], {})
        return record.get("status") == "deployed" and record.get("hash") == digest(release)

    def _record_release(self, name: str, record: dict[str, str]) -> None:
        self.records[name] = {**record, "time": self.machine.time()}
        self._write_records()

    def _forget_release(self, name: str) -> None:
        del self.records[name]
        self._write_records()

    def _write_records(self) -> None:
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": NAME,
                "namespace": NAMESPACE,
                "annotations": {
                    CONFIGURATION_ANNOTATION: self.configuration,
                    YOUNGEST_MASTER_ANNOTATION: self.youngest_created,
                },
            },
            "data": {name: json.dumps(record) for name, record in self.records.items()},
        }
        kubectl(
            self.machine,
            *("apply", "--server-side", "--force-conflicts", f"--field-manager={NAME}", "-f", "-"),
            stdin=json.dumps(config_map),
        )
        lease.acquire(self.machine, NAME, self.boot.facts["instanceId"])
