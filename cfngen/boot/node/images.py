"""Pulls the images of the cluster file's `prePulledImages` in the background, so that pods that need them start faster.

A service pulls them through containerd, with the mirrors of registries that the kubelet's pulls use, and with the
kubelet's credential provider for Amazon ECR. Nothing waits for it, and a pull that fails is only reported: the kubelet
tries again when a pod needs the image.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING

from ..machine import BootError, Machine

if TYPE_CHECKING:
    from ..contract import NodeBoot

IMAGES_UNIT = "cfngen-images.service"
CTR = ("ctr", "-n", "k8s.io", "images")
REGISTRIES_FOLDER = "/etc/containerd/certs.d"
# Files with passwords for ECR exist here while an image is pulled, and only in memory (/run).
CREDENTIALS_FOLDER = "/run/cfngen-images"
# Pattern of the registries' hosts for which the kubelet calls the credential provider, see `cfngen.userdata.files`.
ECR_REGISTRY = re.compile(
    r"[0-9]+\.dkr[.-]ecr(-fips)?\.[a-z0-9-]+\.(amazonaws\.com(\.cn)?|on\.aws|on\.amazonwebservices\.com\.cn)"
)
# Pulls without output: ctr would write its progress many times a second, also into the log file.
PULL_QUIETLY = 'exec "$@" > /dev/null'
# Writes the provider's answer, which has a password, into a file that only root may read.
ASK_PROVIDER = f'umask 077; exec /usr/local/bin/ecr-credential-provider > "{CREDENTIALS_FOLDER}/answer.json"'
# Seconds for which a pull that fails is tried again, and the time limit of one attempt: images may have many gigabytes.
RETRY_SECONDS = 300
PULL_TIMEOUT = 3600
HINT = "check that the registry has the image, that the node can reach it, and that its role may pull from it"


def start(machine: Machine, boot: NodeBoot) -> str:
    """Start the service that pulls the images, without waiting for it."""
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "--no-block", IMAGES_UNIT)
    return (
        f"{len(boot.config['images']['references'])} images are pulled in the background: `journalctl -u cfngen-images`"
    )


def pull(machine: Machine, boot: NodeBoot) -> str:
    """Pull the images one after another; report those that cannot be pulled."""
    references = boot.config["images"]["references"]
    outcomes = [_is_provided(machine, boot, reference) for reference in references]
    return f"{outcomes.count(True)} of {len(references)} images are there"


def _is_provided(machine: Machine, boot: NodeBoot, reference: str) -> bool:
    """Pull an image, again and again for some minutes; return whether containerd has it now, and report if not."""
    try:
        machine.wait(reference, lambda: _provide(machine, boot, reference), HINT, RETRY_SECONDS, BootError)
    except BootError as error:
        machine.say(f"{reference} was not pulled: {error}. What to do: {error.hint}")
        return False
    return True


def _provide(machine: Machine, boot: NodeBoot, reference: str) -> None:
    """Pull an image, unless containerd has it."""
    _, names = machine.run(*CTR, "ls", "-q", f"name=={reference}")
    if names.strip():
        return
    registry, folder = reference.partition("/")[0], REGISTRIES_FOLDER
    if ECR_REGISTRY.fullmatch(registry):
        folder = CREDENTIALS_FOLDER
    try:
        if folder == CREDENTIALS_FOLDER:
            _write_credentials(machine, reference, registry)
        options = ("--hosts-dir", folder, "--snapshotter", boot.config["images"]["snapshotter"])
        command = (*CTR, "pull", *options, reference)
        machine.run("/bin/sh", "-c", PULL_QUIETLY, "sh", *command, timeout=PULL_TIMEOUT)
    finally:
        machine.remove(CREDENTIALS_FOLDER)


def _write_credentials(machine: Machine, reference: str, registry: str) -> None:
    """Write the registry's `hosts.toml`: its mirrors, and the password for the registry itself.

    The password is not an argument of ctr, as every process can read arguments. ECR takes it without a token server
    ("Private registry authentication", Amazon ECR User Guide).
    """
    machine.run("mkdir", "-p", CREDENTIALS_FOLDER)
    request = {
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "kind": "CredentialProviderRequest",
        "image": reference,
    }
    machine.run("/bin/sh", "-c", ASK_PROVIDER, stdin=json.dumps(request), timeout=120)
    answer = json.loads(machine.read(CREDENTIALS_FOLDER + "/answer.json") or "{}")
    credentials = next(iter(answer.get("auth", {}).values()), None)
    if not credentials:
        raise BootError(f"ecr-credential-provider has no password for {registry}", HINT)
    token = base64.b64encode(f"{credentials['username']}:{credentials['password']}".encode()).decode()
    mirrors = machine.read(f"{REGISTRIES_FOLDER}/{registry}/hosts.toml")
    text = f'{mirrors}\n[header]\nAuthorization = "Basic {token}"\n'
    machine.write(f"{CREDENTIALS_FOLDER}/{registry}/hosts.toml", text, 0o600)
