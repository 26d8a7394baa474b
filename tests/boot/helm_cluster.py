"""A cluster that several scripted masters share: leases, notes, Helm's releases and what they leave behind.

Objects change only as they were read, an interrupted Helm operation blocks every further one, and a field that a patch
laid over an object stays: the promises of the API server and of Helm that the boot program rests on.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from boots import boot_of
from scripted_machine import START, ScriptedMachine

from cfngen.boot.machine import BootError
from cfngen.boot.state import Boot

CREATED = "2026-09-01T11:00:00Z"
CHARTS = "https://charts.example.com/"


def release(name: str, **more: Any) -> dict[str, Any]:
    """Return a release as the configuration holds it; its chart's archive is a text that holds its name."""
    archive = f"archive of {name}"
    return {
        "name": name,
        "namespace": "kube-system",
        "version": "1.0.0",
        "essential": False,
        "chart": {
            "url": f"{CHARTS}{name}.tgz",
            "sha256": hashlib.sha256(archive.encode()).hexdigest(),
            "file": f"/opt/cfngen/charts/{name}.tgz",
        },
        "values": "{}",
        "patches": [],
        **more,
    }


class Cluster:
    """What the API server keeps.

    Attributes:
        objects: leases and ConfigMaps by kind and name.
        nodes: the Nodes by name.
        helm: state of each Helm release: `status`, `values`, `revision`, `changed` (seconds).
        broken: releases that Helm fails to install, with what it says.
        staying: releases that Helm fails to uninstall, with what it says.
        definitions: resource definitions in a chart, by release.
        applied: what was applied besides, in order.
        during: called when Helm is in the midst of an installation.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.nodes: dict[str, dict[str, Any]] = {}
        self.helm: dict[str, dict[str, Any]] = {}
        self.broken: dict[str, str] = {}
        self.staying: dict[str, str] = {}
        self.definitions: dict[str, str] = {}
        self.applied: list[Any] = []
        self.during: Callable[[ScriptedMachine, str], None] = lambda machine, name: None
        self.passed = 0.0
        self.version = 0

    def master(self, instance: str, created: str = CREATED) -> Master:
        """Return a master of this cluster, its node registered."""
        self.nodes[instance] = {
            "metadata": {"name": instance, "creationTimestamp": created},
            "spec": {},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        return Master(self, instance)

    def notes(self) -> dict[str, dict[str, str]]:
        """Return what is noted of each release."""
        found = self.objects.get(("configmap", "cfngen-addons"), {}).get("data", {})
        return {name: json.loads(text) for name, text in found.items()}

    def status(self) -> dict[str, str]:
        """Return the noted status of each release."""
        return {name: note["status"] for name, note in self.notes().items()}

    def installed(self) -> list[str]:
        """Return the names of the releases that Helm holds as deployed."""
        return [name for name, each in self.helm.items() if each["status"] == "deployed"]


class Master(ScriptedMachine):
    """A master whose kubectl and helm work on the shared cluster; time passes for all at once."""

    def __init__(self, cluster: Cluster, instance: str) -> None:
        self.cluster = cluster
        super().__init__()
        self.instance = instance
        for name in ("alpha", "beta", "gamma", "network"):
            self.web[f"{CHARTS}{name}.tgz"] = f"archive of {name}"

    @property
    def passed(self) -> float:
        """Seconds since the beginning."""
        return self.cluster.passed

    @passed.setter
    def passed(self, value: float) -> None:
        self.cluster.passed = max(value, self.cluster.passed)

    def configuration(self, *addons: dict[str, Any]) -> Boot:
        """Return a run with its configuration."""
        settings = {
            "addons": list(addons),
            "manifests": [{"kind": "DaemonSet", "metadata": {"name": "cloud-controller-manager"}}],
            "facts": {"instanceId": self.instance},
            "deadline": self.clock() + 600,
        }
        return boot_of(settings)

    def run(
        self, *command: str, stdin: str = "", expect: tuple[int, ...] = (0,), timeout: int = 900
    ) -> tuple[int, str]:
        if command[0] not in ("kubectl", "helm"):
            return super().run(*command, stdin=stdin, expect=expect, timeout=timeout)
        self.commands.append(" ".join(command))
        self.judge(command, expect, timeout, stdin)
        if command[0] == "kubectl":
            code, text = self._kubectl(list(command[4:]), stdin)
        else:
            code, text = self._helm(list(command[1:]))
        if code not in expect:
            raise BootError(f"`{' '.join(command)}` exited with {code}: {text}")
        return code, text

    def _kubectl(self, arguments: list[str], stdin: str) -> tuple[int, str]:
        text = " ".join(arguments)
        if match := re.search(r"get (lease|configmap) (\S+)", text):
            found = self.cluster.objects.get((match[1], match[2]))
            return 0, json.dumps(found) if found else ""
        if match := re.search(r"get node (\S+)", text):
            node = self.cluster.nodes[match[1]]
            return 0, node["metadata"]["creationTimestamp"] if "jsonpath" in text else json.dumps(node)
        if match := re.search(r"get secrets -l owner=helm,name=([^,]+)", text):
            return 0, json.dumps({"items": self._unfinished(match[1])})
        if match := re.search(r"delete secret sh.helm.release.v1.(\S+)", text):
            del self.cluster.helm[match[1]]
            return 0, ""
        if arguments[0] in ("create", "replace"):
            return self._lease(arguments[0], json.loads(stdin))
        assert arguments[0] == "apply", text
        return self._apply(stdin)

    def _apply(self, stdin: str) -> tuple[int, str]:
        documents = [json.loads(each) for each in stdin.split("\n---\n")] if stdin.startswith("{") else [stdin]
        for each in documents:
            if isinstance(each, dict) and each["kind"] == "ConfigMap":
                self.cluster.objects["configmap", each["metadata"]["name"]] = each
            else:
                self.cluster.applied.append(each)
        return 0, ""

    def _lease(self, verb: str, lease: dict[str, Any]) -> tuple[int, str]:
        key = ("lease", lease["metadata"]["name"])
        before = self.cluster.objects.get(key)
        if (verb == "create") == bool(before):
            return 1, "AlreadyExists or NotFound"
        if before and before["metadata"]["resourceVersion"] != lease["metadata"].get("resourceVersion"):
            return 1, "the object has been modified"
        self.cluster.version += 1
        kept = copy.deepcopy(lease)
        kept["metadata"]["resourceVersion"] = str(self.cluster.version)
        self.cluster.objects[key] = kept
        return 0, ""

    def _unfinished(self, name: str) -> list[dict[str, Any]]:
        found = self.cluster.helm.get(name, {"status": ""})
        if not re.match("pending|uninstalling", found["status"]):
            return []
        began = str(int(START.timestamp() + found["changed"]))
        labels = {"name": name, "status": found["status"], "createdAt": began}
        # Helm writes the first when it makes a revision's secret, the second when it changes one.
        if "modified" in found:
            labels["modifiedAt"] = str(int(START.timestamp() + found["modified"]))
        return [{"metadata": {"name": f"sh.helm.release.v1.{name}", "labels": labels}}]

    def _helm(self, arguments: list[str]) -> tuple[int, str]:
        assert arguments[-2:] == ["--kubeconfig", "/etc/kubernetes/admin.conf"]
        if arguments[:2] == ["show", "crds"]:
            return 0, self.cluster.definitions.get(self.files[arguments[2]].rpartition(" ")[2], "")
        if arguments[0] == "uninstall":
            if arguments[1] in self.cluster.staying:
                self.cluster.helm[arguments[1]]["status"] = "uninstalling"
                return 1, self.cluster.staying[arguments[1]]
            self.cluster.helm.pop(arguments[1], None)
            return 0, ""
        name, before = arguments[2], self.cluster.helm.get(arguments[2], {"status": "", "revision": 0})
        if before["status"].startswith("pending"):
            return 1, "UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"
        state = {"revision": before["revision"] + 1, "changed": self.passed}
        self.cluster.helm[name] = {**state, "status": "pending-upgrade" if before["revision"] else "pending-install"}
        self.cluster.during(self, name)
        if name in self.cluster.broken:
            self.cluster.helm[name] = {**state, "status": "failed"}
            return 1, self.cluster.broken[name]
        values = self.files[arguments[arguments.index("--values") + 1]]
        namespace = arguments[arguments.index("--namespace") + 1]
        self.cluster.helm[name] = {**state, "status": "deployed", "values": values, "namespace": namespace}
        return 0, ""
