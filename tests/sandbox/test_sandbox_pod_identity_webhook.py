"""The pod identity webhook on masters of the sandbox: it works, is turned off again, and fails no boot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from private_network import ISOLATED, REGION, SERVICES, PrivateNetwork
from sandboxed import MASTERS, Place, place, said

from cfngen.cluster.load import parse
from cfngen.sandbox.emulated_account import open_emulated_account
from cfngen.sandbox.services import checking_rules

ACCOUNT_ID = "123456789012"
ON: dict[str, Any] = {
    "serviceAccountIssuer": {},
    "iam": {"serviceAccounts": [{"namespace": "shop", "name": "web"}]},
}
OFF: dict[str, Any] = {"serviceAccountIssuer": {"signTokens": False}}


def daemon_sets(where: Place) -> set[str]:
    """The DaemonSets of the only cluster."""
    [cluster] = where.account.machines.clusters.values()
    return {item["metadata"]["name"] for item in cluster.state.list("daemonsets")}


def webhook_pods(where: Place) -> list[str]:
    """The nodes on which the webhook's pods run."""
    [cluster] = where.account.machines.clusters.values()
    pods = cluster.state.list("pods", "kube-system")
    return [pod["spec"]["nodeName"] for pod in pods if pod["metadata"]["name"].startswith("pod-identity-webhook-")]


def outcomes(where: Place, step: str) -> list[str]:
    """What each master said at the end of a step."""
    return [
        line.partition(f"] {step}: ")[2].rpartition(" (")[0]
        for master in where.instances(MASTERS)
        for line in said(master)
        if f"] {step}: " in line
    ]


def test_it_runs_on_masters_until_it_is_turned_off() -> None:
    with place() as where:
        on = replace(where, cluster=parse(ON))
        stack = on.create()
        assert stack.status == "CREATE_COMPLETE", stack.reason
        assert outcomes(on, "pod identity webhook") == ["working"]
        assert on.instances(MASTERS)[0].boot_data.references["accountId"] == ACCOUNT_ID
        assert webhook_pods(on) == [on.instances(MASTERS)[0].id]
        stack = on.update(parse(OFF))
        assert stack.status == "UPDATE_COMPLETE", stack.reason
        assert outcomes(on, "former webhook") == ["deleted the pod identity webhook"]
        assert daemon_sets(on) == {"cloud-controller-manager"}
        assert webhook_pods(on) == []


@pytest.mark.drill
def test_of_several_masters_the_last_one_to_boot_registers_it() -> None:
    with place("pod-identity") as where, checking_rules():
        stack = where.create()
        assert stack.status == "CREATE_COMPLETE", stack.reason
        said_by_masters = [
            line.partition("] pod identity webhook: ")[2].rpartition(" (")[0]
            for master in where.account.machines.instances.values()
            for line in said(master)
            if "] pod identity webhook: " in line
        ]
        assert len(said_by_masters) == len(webhook_pods(where)) == 3
        assert "working" in said_by_masters
        assert all(outcome.startswith("working") for outcome in said_by_masters)


def test_masters_without_a_way_to_its_image_boot_and_say_so() -> None:
    with open_emulated_account(REGION) as account:
        network = PrivateNetwork.create()
        network.add_s3_endpoint()
        for service in SERVICES:
            network.add_endpoint(service)
        where = Place(account, network.cluster(*ISOLATED, "serviceAccountIssuer.discovery=bucket"))
        stack = where.create()
        assert stack.status == "CREATE_COMPLETE", stack.reason
        assert outcomes(where, "pod identity webhook") == ["not working yet; it is retried every ten minutes"]
        goal = "the boot continues without the pod identity webhook: waited 180 s for the pod identity webhook: "
        [line] = [line for line in said(where.instances(MASTERS)[0]) if line.startswith(goal)]
        assert "nothing answers at 127.0.0.1:23443 (`kubectl -n kube-system describe pods" in line
