"""Installs, upgrades and uninstalls Helm releases, also after an interruption."""

from __future__ import annotations

import calendar
import json
import time
from typing import TYPE_CHECKING

from ..host import hosts
from ..host.kubectl import ADMIN_KUBECONFIG, kubectl, yaml_documents
from ..machine import BootError, Machine

if TYPE_CHECKING:
    from ..contract import Release

# Time-out in seconds of one Helm operation. Helm waits for a chart's hooks only, not for its pods: the cluster may have
# no node yet. A hook that is a pod itself then takes all of the time.
TIMEOUT = 240
UNFINISHED_STATUSES = "pending-install,pending-rollback,pending-upgrade,uninstalling"
# Seconds after which an unfinished Helm operation that an operator may have started counts as abandoned.
ABANDONED_AFTER = 900


def install(machine: Machine, release: Release, interrupted: bool) -> None:
    """Install or upgrade a release, and apply its patches to the chart's objects.

    A failed upgrade is not rolled back: the objects stay as they are, and the next attempt continues from there.

    Args:
        release: the release to install; its chart has been downloaded.
        interrupted: whether the boot program has been interrupted while it installed this release. An unfinished Helm
            operation is then what is left of that attempt, not another operation in progress.
    """
    name, namespace, chart = release["name"], release["namespace"], release["chart"]["file"]
    values_file = chart[: -len(".tgz")] + ".values.json"
    machine.write(values_file, release["values"], 0o600)
    _remove_unfinished_revisions(machine, name, namespace, interrupted)
    # Helm installs the CustomResourceDefinitions in a chart's crds folder only once and never upgrades them. So they
    # are applied here, and Helm skips them.
    custom_resource_definitions = _helm(machine, "show", "crds", chart)
    if custom_resource_definitions.strip():
        _apply(machine, "helm", custom_resource_definitions)
    _helm(
        machine,
        *("upgrade", "--install", name, chart, "--namespace", namespace, "--create-namespace", "--values", values_file),
        *("--skip-crds", "--force-conflicts", "--history-max", "5", "--hide-notes", "--timeout", f"{TIMEOUT}s"),
    )
    if release["patches"]:
        _apply(machine, "cfngen", yaml_documents(*release["patches"]))


def uninstall(machine: Machine, name: str, namespace: str) -> None:
    """Uninstall a release; a missing one is not an error."""
    _helm(machine, "uninstall", name, "--namespace", namespace, "--ignore-not-found", "--timeout", f"{TIMEOUT}s")


def _remove_unfinished_revisions(machine: Machine, name: str, namespace: str, interrupted: bool) -> None:
    """Delete unfinished revisions of a release, which would make Helm refuse any further operation.

    Helm stores each revision in a Secret. Once the Secret of the unfinished revision is deleted, Helm continues from
    the last finished revision; a first installation starts again and adopts the objects it has already created. An
    unfinished uninstallation is completed.

    Raises:
        BootError: another Helm operation on the release seems to be in progress.
    """
    selector = f"owner=helm,name={name},status in ({UNFINISHED_STATUSES})"
    secrets = json.loads(kubectl(machine, "-n", namespace, "get", "secrets", "-l", selector, "-o", "json")[1])
    now = calendar.timegm(time.strptime(machine.time(), "%Y-%m-%dT%H:%M:%SZ"))
    for secret in secrets["items"]:
        labels = secret["metadata"]["labels"]
        age = now - int(labels.get("modifiedAt") or labels.get("createdAt") or 0)
        if not interrupted and age < ABANDONED_AFTER:
            raise BootError(
                f"another Helm operation ({labels['status']}) on {name} started {age} s ago",
                f"`helm -n {namespace} status {name}`",
            )
        if labels["status"] == "uninstalling":
            uninstall(machine, name, namespace)
        else:
            kubectl(machine, "-n", namespace, "delete", "secret", secret["metadata"]["name"], "--ignore-not-found")


def _apply(machine: Machine, field_manager: str, text: str) -> None:
    """Apply Kubernetes objects with server-side apply.

    Args:
        text: the objects as YAML.
    """
    kubectl(
        machine,
        "apply",
        "--server-side",
        "--force-conflicts",
        f"--field-manager={field_manager}",
        "-f",
        "-",
        stdin=text,
    )


def _helm(machine: Machine, *arguments: str) -> str:
    hosts.reorder_addresses(machine, ADMIN_KUBECONFIG)
    return machine.run("helm", *arguments, "--kubeconfig", ADMIN_KUBECONFIG, timeout=TIMEOUT + 30)[1]
