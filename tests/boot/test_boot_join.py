"""The join information, from the master that publishes it to the node that uses it."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import pytest
from boots import boot_of
from masters import ADDRESSES, CERTIFICATE, INSTANCE, JOIN_SECRET, Master, configuration
from scripted_machine import ScriptedMachine, SecretsManager
from slots import boot

from cfngen.boot.host import kubelet
from cfngen.boot.machine import BootError
from cfngen.boot.master import join_information
from cfngen.boot.master.certificate_authorities import PKI
from cfngen.boot.node import membership
from cfngen.boot.state import Boot

# What `openssl x509 -pubkey | openssl pkey -pubin -outform der | sha256sum` says.
HASHES = {
    "authority-ec.crt": "sha256:fcf098d9dd1bf5d776c3eafd534d26d1eb3d47681c910ef909a98d22610ae7b4",
    "authority-rsa.crt": "sha256:70df7b19892515bc269ce17a6872776e5c98eeaca9be96bbe66a3926f2bc25f4",
    # Of version 1, as old tools make them: there is no field of the version in it.
    "authority-v1.crt": "sha256:f700b9703efe4260b85353101f80bd99a6a1f375469fbe4520678b139eea00ac",
}
INFORMATION: dict[str, Any] = {
    "endpoint": "172.20.0.9:443",
    "addresses": ["172.20.0.9"],
    "caHash": "sha256:00",
    "token": "abcdef.0123456789abcdef",
    "expires": "2026-09-02T12:00:00Z",
}


@pytest.mark.parametrize("name", HASHES)
def test_hash_of_a_certificate_is_what_openssl_says(name: str) -> None:
    assert join_information.ca_hash((Path(__file__).parent / name).read_text()) == HASHES[name]


def published(machine: Master) -> dict[str, str]:
    config = configuration()
    join_information.publish(machine, boot_of(config))
    found: dict[str, str] = json.loads(machine.secrets.text(JOIN_SECRET))
    return found


@pytest.fixture
def publisher() -> Master:
    machine = Master()
    boot(machine)
    assert machine.files[PKI + "ca.crt"] == CERTIFICATE
    machine.commands.clear()
    return machine


def test_published_token_is_known_to_the_cluster_for_a_day(publisher: Master) -> None:
    found = published(publisher)
    (command,) = publisher.ran("kubectl .* create")
    token = json.loads(publisher.stdin[command])
    assert token["type"] == "bootstrap.kubernetes.io/token"
    assert token["metadata"] == {"name": "bootstrap-token-" + found["token"][:6], "namespace": "kube-system"}
    assert token["stringData"] == {
        "token-id": found["token"][:6],
        "token-secret": found["token"][7:],
        "expiration": "2026-09-02T12:00:00Z",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": "system:bootstrappers:cfngen:nodes",
    }
    assert found == {
        "endpoint": "api.kubernetes.internal:443",
        "addresses": ["172.20.0.9"],
        "kubernetesVersion": "v1.36.3",
        "caHash": HASHES["authority-ec.crt"],
        "token": found["token"],
        "expires": "2026-09-02T12:00:00Z",
    }
    assert publisher.commands[-1] == "systemctl enable --now cfngen-join.timer"


def test_token_is_of_letters_and_digits_that_kubeadm_takes(publisher: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    """`[a-z0-9]{6}\\.[a-z0-9]{16}` (Kubernetes documentation, "Authenticating with Bootstrap Tokens")."""
    letters: set[str] = set()

    def choice(some: str) -> str:
        letters.update(some)
        return some[-1]

    monkeypatch.setattr("cfngen.boot.master.join_information.secrets.choice", choice)
    assert published(publisher)["token"] == "9" * 6 + "." + "9" * 16
    assert letters == {*string.ascii_lowercase, *string.digits}


def test_masters_addresses_are_published_in_the_order_of_their_slots(publisher: Master) -> None:
    config = configuration()
    config["masters"] = dict(reversed(ADDRESSES.items()))
    join_information.publish(publisher, boot_of(config))
    assert json.loads(publisher.secrets.text(JOIN_SECRET))["addresses"] == list(ADDRESSES.values())


def test_nothing_requested_with_a_token_is_approved_automatically(publisher: Master) -> None:
    """Each run of kubeadm's phase bootstrap-token makes the binding again, one of an earlier release's master, too."""
    assert publisher.world.approves
    published(publisher)
    assert not publisher.world.approves
    publisher.world.approves = True
    published(publisher)
    assert not publisher.world.approves


def test_each_renewal_publishes_a_new_token(publisher: Master) -> None:
    assert published(publisher)["token"] != published(publisher)["token"]


def test_token_appears_neither_in_arguments_nor_in_what_is_said(publisher: Master) -> None:
    config = configuration()
    publisher.say(join_information.publish(publisher, boot_of(config)))
    secret = json.loads(publisher.secrets.text(JOIN_SECRET))["token"].split(".")[1]
    assert secret not in " ".join(publisher.commands + publisher.said)


def configured(**more: Any) -> Boot:
    config = {
        **configuration(),
        "role": "node",
        "join": {"kind": "JoinConfiguration"},
        "kubernetesVersion": "v1.36.3",
        **more,
    }
    return boot_of(config)


def waiting_node(text: str = "") -> tuple[ScriptedMachine, SecretsManager]:
    machine = ScriptedMachine()
    secrets = SecretsManager(**({JOIN_SECRET: text} if text else {})).install(machine)
    machine.on("kubeadm join", lambda _: _join(machine))
    return machine, secrets


def _join(machine: ScriptedMachine) -> tuple[int, str]:
    assert kubelet.KUBELET_CONF not in machine.files, "kubeadm's preflight would refuse"
    assert PKI + "ca.crt" not in machine.files, "kubeadm's preflight would refuse"
    machine.files["used"] = machine.files[membership.JOIN_CONFIG_FILE]
    machine.files[kubelet.KUBELET_CONF] = "joined"
    return 0, ""


def test_node_joins_with_the_token_in_a_file_that_only_root_may_read() -> None:
    machine, _ = waiting_node(json.dumps(INFORMATION))
    assert membership.join(machine, configured()) == "joined 172.20.0.9:443"
    assert json.loads(machine.files["used"]) == {
        "kind": "JoinConfiguration",
        "discovery": {
            "bootstrapToken": {
                "apiServerEndpoint": "172.20.0.9:443",
                "token": "abcdef.0123456789abcdef",
                "caCertHashes": ["sha256:00"],
            }
        },
    }
    assert machine.modes[membership.JOIN_CONFIG_FILE] == 0o600
    assert membership.JOIN_CONFIG_FILE not in machine.files
    assert "0123456789abcdef" not in " ".join(command for command in machine.commands if "i-" not in command)


def test_node_that_joined_before_is_left_alone() -> None:
    machine, _ = waiting_node(json.dumps(INFORMATION))
    membership.join(machine, configured())
    machine.commands.clear()
    machine.calls.clear()
    assert membership.join(machine, configured()) == "joined before"
    assert machine.commands == ["systemctl start kubelet"]
    assert machine.calls == []


@pytest.mark.parametrize("text", ["", "{}"], ids=["no version", "empty object"])
def test_node_waits_for_the_masters_and_says_so(text: str) -> None:
    machine, secrets = waiting_node(text)
    looks = 0

    def look(SecretId: str) -> dict[str, Any]:  # noqa: N803
        nonlocal looks
        looks += 1
        if looks == 20:
            secrets.put(SecretId, json.dumps(INFORMATION))
        return secrets.get(SecretId)

    machine.cloud["secretsmanager.get_secret_value"] = look
    assert membership.join(machine, configured()) == "joined 172.20.0.9:443"
    assert machine.said[0].startswith("waiting for joining (6")
    assert machine.said[0].endswith("s): no master has published the join information yet")


def test_token_that_ended_is_not_used() -> None:
    machine, secrets = waiting_node(json.dumps({**INFORMATION, "expires": "2026-09-01T12:00:30Z"}))
    with pytest.raises(
        BootError, match=r"the published token expired at 2026-09-01T12:00:30Z and no master has renewed"
    ):
        membership.join(machine, configured())
    assert machine.ran("kubeadm") == []
    secrets.put(JOIN_SECRET, json.dumps(INFORMATION))
    assert membership.join(machine, configured()) == "joined 172.20.0.9:443"


@pytest.mark.parametrize(("expires", "used"), [("2026-09-01T12:01:00Z", False), ("2026-09-01T12:01:01Z", True)])
def test_token_must_last_for_another_minute(expires: str, used: bool) -> None:
    machine, secrets = waiting_node(json.dumps({**INFORMATION, "expires": expires}))
    looks = []

    def look(SecretId: str) -> dict[str, Any]:  # noqa: N803
        looks.append(SecretId)
        if len(looks) == 2:
            secrets.put(SecretId, json.dumps(INFORMATION))
        return secrets.get(SecretId)

    machine.cloud["secretsmanager.get_secret_value"] = look
    membership.join(machine, configured())
    assert (len(looks) == 1) is used


def test_node_gives_up_when_the_stack_would() -> None:
    machine, _ = waiting_node()
    with pytest.raises(BootError, match=r"waited 10[89]\d s for joining: no master has published") as caught:
        membership.join(machine, configured())
    assert caught.value.hint.startswith("check the masters' consoles for a failed boot")


def test_failed_attempt_is_cleared_away_and_repeated_with_what_is_published_then() -> None:
    machine, secrets = waiting_node(json.dumps(INFORMATION))
    attempts: list[str] = []

    def fail_once(command: str) -> tuple[int, str]:
        attempts.append(json.loads(machine.files[membership.JOIN_CONFIG_FILE])["discovery"]["bootstrapToken"]["token"])
        if len(attempts) > 1:
            return _join(machine)
        machine.files[kubelet.KUBELET_CONF] = "half"
        machine.files["/etc/kubernetes/bootstrap-kubelet.conf"] = "half"
        machine.files[PKI + "ca.crt"] = "half"
        secrets.put(JOIN_SECRET, json.dumps({**INFORMATION, "token": "fedcba.fedcba9876543210"}))
        return 1, "error execution phase kubelet-start: timed out"

    machine.on("kubeadm join", fail_once)
    assert membership.join(machine, configured()) == "joined 172.20.0.9:443"
    assert attempts == ["abcdef.0123456789abcdef", "fedcba.fedcba9876543210"]
    assert membership.JOIN_CONFIG_FILE not in machine.files
    assert "/etc/kubernetes/bootstrap-kubelet.conf" not in machine.files


def conditions(status: str, message: str = "") -> tuple[int, str]:
    found = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": status, "message": message}]
    return 0, json.dumps({"status": {"conditions": found}})


def test_node_is_ready_only_when_the_cluster_says_so() -> None:
    machine = ScriptedMachine()
    answers = [(1, ""), (0, '{"status": {}}'), conditions("False", "cni plugin not initialized"), conditions("True")]
    machine.on("kubectl", lambda _: answers.pop(0))
    assert membership.ready(machine, configured()) == f"node {INSTANCE} is Ready"
    assert answers == []
    assert machine.commands[0] == (
        f"kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout=30s get node {INSTANCE} -o json"
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((1, ""), "the API server has no such node"),
        (conditions("False", "container runtime network not ready"), "container runtime network not ready"),
    ],
)
def test_node_that_never_gets_ready_ends_the_step_with_the_clusters_reason(answer: Any, reason: str) -> None:
    machine = ScriptedMachine()
    machine.on("kubectl", answer)
    with pytest.raises(BootError, match=f"for node {INSTANCE} to be Ready: {reason}") as caught:
        membership.ready(machine, configured())
    assert "journalctl -u kubelet" in caught.value.hint
