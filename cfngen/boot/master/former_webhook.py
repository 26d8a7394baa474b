"""Deletes the objects of the pod identity webhook after it was turned off in the cluster file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..host.kubectl import kubectl
from ..machine import BootError, Machine

if TYPE_CHECKING:
    from ..contract import MasterBoot

# The labels of all its objects; a webhook that the user has installed has others.
SELECTOR = "app.kubernetes.io/name=pod-identity-webhook,app.kubernetes.io/managed-by=cfngen"
NAMESPACE = "kube-system"
# The registration first: without the rest, API servers would refuse pods of the service accounts in the cluster file.
REGISTRATION = "mutatingwebhookconfigurations"
OTHERS = "daemonsets,secrets,configmaps,rolebindings,roles,clusterrolebindings,clusterroles,serviceaccounts"


def remove(machine: Machine, boot: MasterBoot) -> str:
    """Delete the webhook's objects, if there are any; return what was deleted, for the log.

    Masters that are not updated yet apply its manifests only when they boot, so this is repeated by each new master.
    """

    def delete() -> str:
        _, registration = kubectl(machine, "delete", REGISTRATION, "-l", SELECTOR, "--ignore-not-found")
        _, others = kubectl(machine, "delete", OTHERS, "-n", NAMESPACE, "-l", SELECTOR, "--ignore-not-found")
        return registration + others

    deleted = machine.wait(
        "the removal of the pod identity webhook", delete, "check that the API server is healthy", retry_on=BootError
    )
    # Without objects, kubectl prints nothing or "No resources found".
    return "deleted the pod identity webhook" if " deleted" in deleted else "there is none"
