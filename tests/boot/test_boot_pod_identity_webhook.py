"""The pod identity webhook's certificate and registration, made by masters. openssl is real, the API server is not."""

from __future__ import annotations

import base64
import copy
import json
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from boots import boot_of

from cfngen.boot.machine import BootError, Machine
from cfngen.boot.master import former_webhook, pod_identity_webhook
from cfngen.cluster.iam.issuer_stages import issuer_stages, issuer_state
from cfngen.cluster.load import parse
from cfngen.userdata import pod_identity_webhook as manifests
from cfngen.userdata.steps import steps

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
CLUSTER = parse(
    {
        "serviceAccountIssuer": {},
        "iam": {
            "serviceAccounts": [{"namespace": "shop", "name": "web", "role": "arn:aws:iam::123456789012:role/web"}]
        },
    }
)
SECRET, DAEMON_SET, REGISTRATION = "secret", "daemonset", "mutatingwebhookconfiguration"
MASTERS = {"a": "172.20.0.9", "b": "172.20.1.9", "c": "172.20.2.9"}
OWN, FORMER = "https://d111111abcdef8.cloudfront.net", "https://kubernetes.default.svc.cluster.local"
DAY = 24 * 3600
SUPERSEDED = "not registered: a master has another configuration"
RENEWED = "made a certificate for 90 days"


class ApiServer:
    """The objects of a cluster, by kind; kubectl's commands read and write them."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.is_down = False
        self.issuers = dict.fromkeys(MASTERS.values(), OWN)

    def kubectl(self, arguments: list[str], stdin: str) -> str:
        if self.is_down:
            raise BootError("`kubectl` exited with 1: connection refused")
        if arguments[:1] == ["apply"]:
            item = json.loads(stdin)
            self.objects[item["kind"].lower()] = item
            return f"{item['kind'].lower()} serverside-applied\n"
        if arguments[:1] == ["delete"]:
            kinds = [kind.removesuffix("s") for kind in arguments[1].split(",")]
            name, managed_by = arguments[arguments.index("-l") + 1].split(",")
            labels = {tuple(label.split("=")) for label in (name, managed_by)}
            gone = [kind for kind in kinds if labels <= self.labels_of(kind).items()]
            return "".join(f"{kind} {self.objects.pop(kind)['metadata']['name']} deleted\n" for kind in gone)
        assert arguments[0] == "get"
        if "--raw" in arguments:
            server, _, path = arguments[1:]
            assert path == "/.well-known/openid-configuration"
            return json.dumps({"issuer": self.issuers[server.removeprefix("--server=https://").removesuffix(":443")]})
        item = self.objects.get(arguments[1], {})
        if arguments[1] == SECRET:
            # Nothing but the certificate may be printed, since what commands print is logged.
            assert arguments[arguments.index("-o") + 1] == "jsonpath={.data.tls\\.crt}"
            return str(item.get("data", {}).get("tls.crt", ""))
        return json.dumps(item) if item else ""

    def labels_of(self, kind: str) -> dict[str, str]:
        labels: dict[str, str] = self.objects.get(kind, {}).get("metadata", {}).get("labels", {})
        return labels


class Master(Machine):
    """A master whose files are in a folder, whose openssl is real, and whose kubectl asks `api`."""

    def __init__(self, folder: Path, api: ApiServer) -> None:
        super().__init__()
        self.folder, self.api = folder, api
        self.said: list[str] = []
        self.commands: list[str] = []
        self.passed = 0.0
        self.listening = {"127.0.0.1", *MASTERS.values()}
        self.config = {
            "podIdentityWebhook": manifests.configuration(CLUSTER),
            "masters": MASTERS,
            "endpoint": "api.kubernetes.internal:443",
            "facts": {"slot": "a"},
        }

    def path(self, path: str) -> str:
        is_translated = not path.startswith("/") or path.startswith(str(self.folder))
        return path if is_translated else f"{self.folder}{path}"

    def run(
        self, *command: str, stdin: str = "", expect: tuple[int, ...] = (0,), timeout: int = 900
    ) -> tuple[int, str]:
        self.commands.append(" ".join(command))
        if command[0] == "systemctl":
            return 0, ""
        if command[0] == "kubectl":
            return 0, self.api.kubectl([*command[4:]], stdin)
        if command[1] == "verify":
            # As if the time of this test had passed.
            later = subprocess.run(
                ["date", "-u", f"-d+{int(self.passed)} seconds", "+%s"], capture_output=True, text=True
            )
            command = (*command, "-attime", later.stdout.strip())
        if "-checkend" in command:
            place = command.index("-checkend") + 1
            command = (*command[:place], str(int(command[place]) + int(self.passed)), *command[place + 1 :])
        translated = [each if each.startswith("/CN=") else self.path(each) for each in command]
        return super().run(*translated, stdin=stdin, expect=expect, timeout=timeout)

    def read(self, path: str, default: str = "") -> str:
        return super().read(self.path(path), default)

    def write(self, path: str, text: str, mode: int = 0o644) -> bool:
        return super().write(self.path(path), text, mode)

    def remove(self, *patterns: str) -> None:
        super().remove(*(self.path(pattern) for pattern in patterns))

    def log(self, text: str) -> None:
        assert "PRIVATE KEY" not in text

    def say(self, text: str) -> None:
        self.said.append(text)

    def connect(self, address: str, port: int, seconds: float = 2) -> None:
        assert port == 23443
        if address not in self.listening:
            raise ConnectionRefusedError("connection refused")

    def clock(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds

    def apply(self) -> str:
        return pod_identity_webhook.apply(self, boot_of(self.config))

    def start(self) -> str:
        return pod_identity_webhook.start(self, boot_of(self.config))


def make_authority(folder: Path, name: str = "kubernetes") -> None:
    """Make the cluster's certificate authority in a master's folder."""
    pki = folder / "etc/kubernetes/pki"
    pki.mkdir(parents=True, exist_ok=True)
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -keyout ca.key -out ca.crt"
    )
    subprocess.run([*command.split(), "-subj", f"/CN={name}"], cwd=pki, check=True, capture_output=True)


def daemon_set() -> dict[str, Any]:
    """The DaemonSet, as masters apply it."""
    [item] = [each for each in manifests.manifests(CLUSTER) if each["kind"] == "DaemonSet"]
    return copy.deepcopy(item)


@pytest.fixture
def master(tmp_path: Path) -> Master:
    """A master of a cluster in which the webhook's pods run, and nothing is registered."""
    make_authority(tmp_path)
    api = ApiServer()
    api.objects[DAEMON_SET] = daemon_set()
    return Master(tmp_path, api)


def certificate_of(master: Master) -> str:
    """The certificate in the Secret, as openssl describes it."""
    pem = base64.b64decode(master.api.objects[SECRET]["data"]["tls.crt"])
    described = subprocess.run(["openssl", "x509", "-noout", "-text"], input=pem, capture_output=True, check=True)
    return described.stdout.decode()


def public_key(command: str, pem: str) -> str:
    return subprocess.run(["openssl", *command.split()], input=pem, capture_output=True, check=True, text=True).stdout


def test_certificate_is_for_the_loopback_address_and_nothing_else(master: Master) -> None:
    assert master.apply() == RENEWED
    text = certificate_of(master)
    assert "IP Address:127.0.0.1" in text
    assert "DNS:" not in text
    assert "TLS Web Server Authentication" in text
    assert "Client Authentication" not in text
    assert "CA:FALSE" in text
    assert "Subject: CN = pod-identity-webhook\n" in text


def test_secret_holds_the_certificates_own_key(master: Master) -> None:
    master.apply()
    secret = master.api.objects[SECRET]
    assert (secret["type"], secret["metadata"]["namespace"]) == ("kubernetes.io/tls", "kube-system")
    texts = {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert public_key("x509 -noout -pubkey", texts["tls.crt"]) == public_key("pkey -pubout", texts["tls.key"])


def test_no_file_is_left_behind(master: Master) -> None:
    master.apply()
    assert not (master.folder / "opt/cfngen/webhook").exists()


def test_every_webhook_trusts_the_clusters_authority(master: Master) -> None:
    master.apply()
    authority = (master.folder / "etc/kubernetes/pki/ca.crt").read_bytes()
    bundles = [each["clientConfig"]["caBundle"] for each in master.api.objects[REGISTRATION]["webhooks"]]
    assert bundles == [base64.b64encode(authority).decode()] * 2


def test_a_second_run_changes_nothing(master: Master) -> None:
    master.apply()
    before = copy.deepcopy(master.api.objects)
    assert master.apply() == ""
    assert master.api.objects == before


@pytest.mark.parametrize(("days", "renewed"), [(59, False), (61, True), (200, True)])
def test_certificate_is_renewed_before_it_expires_and_the_registration_stays(
    master: Master, days: int, renewed: bool
) -> None:
    master.apply()
    secret, registration = (copy.deepcopy(master.api.objects[kind]) for kind in (SECRET, REGISTRATION))
    master.passed = days * DAY
    assert master.apply() == (RENEWED if renewed else "")
    assert (master.api.objects[SECRET] != secret) == renewed
    assert master.api.objects[REGISTRATION] == registration


def test_another_authority_gets_a_certificate_and_is_registered(master: Master) -> None:
    master.apply()
    secret = master.api.objects[SECRET]
    make_authority(master.folder, name="restored")
    assert master.apply() == RENEWED
    assert master.api.objects[SECRET] != secret
    authority = base64.b64encode((master.folder / "etc/kubernetes/pki/ca.crt").read_bytes()).decode()
    assert master.api.objects[REGISTRATION]["webhooks"][0]["clientConfig"]["caBundle"] == authority


@pytest.mark.parametrize("text", ["", "not base64!", base64.b64encode(b"no certificate").decode()])
def test_a_spoilt_certificate_is_made_again(master: Master, text: str) -> None:
    master.apply()
    master.api.objects[SECRET]["data"]["tls.crt"] = text
    assert master.apply() == RENEWED
    assert "IP Address:127.0.0.1" in certificate_of(master)


@pytest.mark.parametrize("kind", [SECRET, REGISTRATION])
def test_what_is_deleted_comes_back(master: Master, kind: str) -> None:
    master.apply()
    del master.api.objects[kind]
    master.apply()
    assert kind in master.api.objects


def test_it_is_registered_only_once_it_runs_on_every_master(master: Master) -> None:
    master.listening.remove(MASTERS["b"])
    reason = "nothing answers at 172.20.1.9:23443 (master b)"
    assert master.start() == f"working, not registered yet: {reason}"
    assert master.apply() == f"not registered: {reason}"
    assert master.apply() == ""
    # The pods wait for the certificate, so it is there before.
    assert SECRET in master.api.objects
    assert REGISTRATION not in master.api.objects
    master.listening.add(MASTERS["b"])
    assert master.apply() == ""
    assert REGISTRATION in master.api.objects


def test_it_is_registered_only_once_every_master_issues_tokens_that_sts_accepts(master: Master) -> None:
    """Pods that got another token in a rolling update would have no role for most of a day."""
    master.api.issuers[MASTERS["c"]] = FORMER
    assert master.start() == f"working, not registered yet: master c issues tokens as {FORMER}"
    assert REGISTRATION not in master.api.objects
    master.api.issuers[MASTERS["c"]] = OWN
    assert master.start() == "working"
    assert REGISTRATION in master.api.objects


def test_a_registered_webhook_follows_the_cluster_file_while_a_master_is_down(master: Master) -> None:
    master.apply()
    master.api.objects[REGISTRATION]["webhooks"] = []
    master.listening.remove(MASTERS["b"])
    assert master.apply() == ""
    assert len(master.api.objects[REGISTRATION]["webhooks"]) == 2


def test_a_master_of_an_earlier_configuration_leaves_the_newer_one_alone(master: Master) -> None:
    master.apply()
    newer = daemon_set()
    newer["metadata"]["annotations"]["cfngen/configuration"] = "newer"
    master.api.objects[DAEMON_SET] = newer
    master.api.objects[REGISTRATION]["webhooks"] = ["newer"]
    assert master.apply() == SUPERSEDED
    assert master.api.objects[REGISTRATION]["webhooks"] == ["newer"]


def test_a_master_of_an_earlier_configuration_does_not_bring_back_what_was_turned_off(master: Master) -> None:
    master.apply()
    assert former_webhook.remove(master, boot_of({})) == "deleted the pod identity webhook"
    assert master.apply() == SUPERSEDED
    assert master.api.objects == {}


def test_turned_off_it_is_first_taken_out_of_the_way_of_pods(master: Master) -> None:
    master.apply()
    master.commands.clear()
    former_webhook.remove(master, boot_of({}))
    assert "mutatingwebhookconfigurations" in master.commands[0]
    assert "daemonsets" in master.commands[1]
    assert former_webhook.remove(master, boot_of({})) == "there is none"


def test_every_kind_of_object_is_deleted_when_it_is_turned_off() -> None:
    made = {f"{item['kind'].lower()}s" for item in (*manifests.manifests(CLUSTER), manifests.configuration(CLUSTER))}
    deleted = {former_webhook.REGISTRATION, *former_webhook.OTHERS.split(",")}
    assert made | {"secrets"} == deleted
    for item in (*manifests.manifests(CLUSTER), manifests.configuration(CLUSTER)):
        labels = ",".join(f"{key}={value}" for key, value in item["metadata"]["labels"].items())
        assert labels == former_webhook.SELECTOR


def test_the_page_deletes_what_masters_delete() -> None:
    page = (Path(__file__).parents[2] / "docs/build/pod-roles.md").read_text()
    selector = former_webhook.SELECTOR
    assert f"    kubectl delete {former_webhook.REGISTRATION} -l {selector}\n" in page
    assert f"    kubectl -n {former_webhook.NAMESPACE} delete {former_webhook.OTHERS} -l {selector}\n" in page


def test_on_the_way_to_and_from_the_issuer_and_in_rollbacks_masters_delete_what_others_installed() -> None:
    """Only masters without the issuer cannot, and no update between two states has these beside the webhook."""
    off, on = parse({}), CLUSTER
    updates = [
        *pairwise([off, *issuer_stages(issuer_state(off), on)]),
        *pairwise([on, *issuer_stages(issuer_state(on), off)]),
    ]
    turning_off = [
        (with_it, without)
        for update in updates
        for with_it, without in (update, update[::-1])
        if with_it.addons.pod_identity_webhook.enabled and not without.addons.pod_identity_webhook.enabled
    ]
    assert len(turning_off) == 2
    for _, without in turning_off:
        assert "former webhook" in steps(without, without.control_plane)
    assert "former webhook" not in steps(off, off.control_plane)


def test_a_webhook_that_the_user_has_installed_is_not_deleted(master: Master) -> None:
    own = {"kind": "MutatingWebhookConfiguration", "metadata": {"name": "pod-identity-webhook"}}
    master.api.objects = {REGISTRATION: own}
    assert former_webhook.remove(master, boot_of({})) == "there is none"
    assert master.api.objects == {REGISTRATION: own}


def test_boot_starts_the_timer_and_waits_for_the_webhook(master: Master) -> None:
    assert master.start() == "working"
    assert master.commands[0] == "systemctl enable --now cfngen-webhook.timer"
    assert REGISTRATION in master.api.objects


@pytest.mark.parametrize("broken", ["API server", "webhook"])
def test_a_broken_webhook_does_not_fail_a_boot(master: Master, broken: str) -> None:
    if broken == "API server":
        master.api.is_down = True
    else:
        master.listening.remove("127.0.0.1")
    assert master.start() == "not working yet; it is retried every ten minutes"
    assert master.said[-1].startswith("the boot continues without the pod identity webhook: waited")
    assert "kubectl -n kube-system describe pods -l k8s-app=pod-identity-webhook" in master.said[-1]
    assert master.passed < 200
    assert REGISTRATION not in master.api.objects
