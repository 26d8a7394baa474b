"""Makes the pod identity webhook's certificate, and registers the webhook once it works.

The webhook runs on every master, and each API server calls the one beside it, so one certificate for the loopback
address suffices. The cluster's certificate authority signs it, whose certificate all masters have and which no renewal
changes: what the API servers trust stays the same. The front-proxy authority, the other choice, vouches for users, so
it should sign nothing else. Certificate and key are in a Secret: thus pods on masters of an earlier configuration get
them as well.
"""

from __future__ import annotations

import base64
import json
import uuid
from typing import TYPE_CHECKING

from ..host.kubectl import kubectl
from ..machine import HOME, BootError, Machine, Pending
from .certificate_authorities import PKI

if TYPE_CHECKING:
    from ..contract import JsonObject, MasterBoot

NAME = "pod-identity-webhook"
NAMESPACE = "kube-system"
# Annotation of the DaemonSet and the MutatingWebhookConfiguration: a digest of the latter.
CONFIGURATION_ANNOTATION = "cfngen/configuration"
LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "cfngen"}
TIMER = "cfngen-webhook.timer"
# File with the reason why the webhook was not registered last; it is empty if it was.
REASON_FILE = HOME + "/webhook-not-registered"
ADDRESS = "127.0.0.1"
WAIT_SECONDS = 180
FOLDER = HOME + "/webhook"
VALIDITY_DAYS = 90
RENEWAL_SECONDS = 30 * 24 * 3600
# As the certificate has only this purpose, no API server takes it for that of a user.
EXTENSIONS = f"""\
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:{ADDRESS}
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""
HINT = "`kubectl -n kube-system describe pods -l k8s-app=pod-identity-webhook`; `kubectl get events -n kube-system`"


def start(machine: Machine, boot: MasterBoot) -> str:
    """Start the timer that keeps certificate and registration up to date, and wait for this master's webhook.

    A webhook that does not work is no failure of the master: other pods do without it, and the timer tries again.
    """
    machine.run("systemctl", "enable", "--now", TIMER)

    def probe() -> None:
        _renew_certificate(machine, boot)
        try:
            machine.connect(ADDRESS, _port(boot))
        except OSError as error:
            raise Pending(f"nothing answers at {ADDRESS}:{_port(boot)}") from error

    try:
        machine.wait("the pod identity webhook", probe, HINT, seconds=WAIT_SECONDS, retry_on=(BootError, Pending))
        reason = _register(machine, boot)
    except BootError as error:
        machine.say(f"the boot continues without the pod identity webhook: {error} ({error.hint or HINT})")
        return "not working yet; it is retried every ten minutes"
    return f"working, not registered yet: {reason}" if reason else "working"


def apply(machine: Machine, boot: MasterBoot) -> str:
    """Renew the certificate if it is due, and register the webhook if it works; return what was done, for the log."""
    is_renewed = _renew_certificate(machine, boot)
    reason = _register(machine, boot)
    outcomes = [f"made a certificate for {VALIDITY_DAYS} days"] if is_renewed else []
    # The timer tries again every ten minutes; the reason is reported once.
    outcomes += [f"not registered: {reason}"] if machine.write(REASON_FILE, reason) and reason else []
    return "; ".join(outcomes)


def _is_superseded(machine: Machine, boot: MasterBoot) -> bool:
    """Return whether a master with another configuration has removed the webhook, or has changed what it is asked."""
    return _digest(_read(machine, "daemonset", "-n", NAMESPACE, NAME)) != _digest(boot.config["podIdentityWebhook"])


def _register(machine: Machine, boot: MasterBoot) -> str:
    """Register the webhook with the API servers, if it works on every master; return why not, or "".

    A registered webhook stays registered: an API server that cannot call it refuses the pods that need it.
    """
    if _is_superseded(machine, boot):
        return "a master has another configuration"
    configuration = boot.config["podIdentityWebhook"]
    name = configuration["metadata"]["name"]
    if not _read(machine, "mutatingwebhookconfiguration", name):
        reason = _why_not_everywhere(machine, boot)
        if reason:
            return reason
    authority = base64.b64encode(machine.read(PKI + "ca.crt").encode()).decode()
    webhooks = [
        {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": authority}}
        for webhook in configuration["webhooks"]
    ]
    _apply(machine, {**configuration, "webhooks": webhooks})
    return ""


def _why_not_everywhere(machine: Machine, boot: MasterBoot) -> str:
    """Return which master has no webhook, or issues tokens in another name, in which AWS STS would refuse them; or "".

    The latter is so in a rolling update that changes the issuer. A pod would keep such a token for most of a day.
    """
    api_port = boot.config["endpoint"].rpartition(":")[2]
    issuers = {}
    for slot, address in sorted(boot.config["masters"].items()):
        try:
            machine.connect(address, _port(boot))
        except OSError:
            return f"nothing answers at {address}:{_port(boot)} (master {slot})"
        server = f"--server=https://{address}:{api_port}"
        _, text = kubectl(machine, "get", server, "--raw", "/.well-known/openid-configuration")
        issuers[slot] = json.loads(text)["issuer"]
    own_issuer = issuers[boot.facts["slot"]]
    others = [f"master {slot} issues tokens as {issuer}" for slot, issuer in issuers.items() if issuer != own_issuer]
    return ", ".join(others)


def _port(boot: MasterBoot) -> int:
    url: str = boot.config["podIdentityWebhook"]["webhooks"][0]["clientConfig"]["url"]
    return int(url.rpartition(":")[2].partition("/")[0])


def _digest(item: JsonObject) -> str:
    """Return the digest of the webhook's configuration with which an object was made; "" if it has none."""
    return str(item.get("metadata", {}).get("annotations", {}).get(CONFIGURATION_ANNOTATION, ""))


def _read(machine: Machine, kind: str, *arguments: str) -> JsonObject:
    _, text = kubectl(machine, "get", kind, *arguments, "-o", "json", "--ignore-not-found")
    return dict(json.loads(text)) if text.strip() else {}


def _apply(machine: Machine, item: JsonObject) -> None:
    kubectl(machine, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(item))


def _renew_certificate(machine: Machine, boot: MasterBoot) -> bool:
    """Make a new certificate if there is none or the present one ends soon; return whether one was made."""
    if _is_superseded(machine, boot) or _has_valid_certificate(machine):
        return False
    _replace_certificate(machine)
    return True


def _has_valid_certificate(machine: Machine) -> bool:
    """Return whether the Secret has a certificate of the present authority that stays valid for a while.

    Only the certificate is read, as the log contains what commands print.
    """
    _, encoded = kubectl(
        machine, "get", "secret", "-n", NAMESPACE, NAME, "-o", "jsonpath={.data.tls\\.crt}", "--ignore-not-found"
    )
    try:
        certificate = base64.b64decode(encoded, validate=True).decode("ascii")
    except ValueError:
        return False
    if not certificate.strip():
        return False
    # An authority of the user's own may be an intermediate one.
    verify = ("openssl", "verify", "-partial_chain", "-CAfile", PKI + "ca.crt", "-purpose", "sslserver")
    verify_code, _ = machine.run(*verify, "-verify_ip", ADDRESS, stdin=certificate, expect=(0, 1, 2))
    check_end = ("openssl", "x509", "-noout", "-checkend", str(RENEWAL_SECONDS))
    end_code, _ = machine.run(*check_end, stdin=certificate, expect=(0, 1))
    return verify_code == 0 and end_code == 0


def _replace_certificate(machine: Machine) -> None:
    """Make a key and a certificate, and store both in the Secret; of several masters that do so the last one counts."""
    key_file, request_file, certificate_file = (f"{FOLDER}/{name}.pem" for name in ("key", "request", "certificate"))
    machine.remove(FOLDER)
    machine.write(f"{FOLDER}/extensions", EXTENSIONS)
    # openssl lets nobody but the owner read the key's file.
    machine.run(
        *("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-subj", f"/CN={NAME}", "-keyout", key_file, "-out", request_file),
    )
    machine.run(
        *("openssl", "x509", "-req", "-in", request_file, "-CA", PKI + "ca.crt", "-CAkey", PKI + "ca.key"),
        *("-set_serial", f"0x{uuid.uuid4().hex}", "-days", str(VALIDITY_DAYS)),
        *("-extfile", f"{FOLDER}/extensions", "-out", certificate_file),
    )
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": LABELS},
        "type": "kubernetes.io/tls",
        "data": {
            key: base64.b64encode(machine.read(file).encode()).decode()
            for key, file in (("tls.crt", certificate_file), ("tls.key", key_file))
        },
    }
    _apply(machine, secret)
    machine.remove(FOLDER)
