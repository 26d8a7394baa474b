"""Images that a node pulls before pods need them: in the background, with mirrors and passwords of ECR."""

from __future__ import annotations

import json
from typing import Any

import pytest
from boots import boot_of
from scripted_machine import ScriptedMachine

from cfngen.boot.node import images
from cfngen.userdata.files import credential_providers

NGINX = "docker.io/library/nginx:1.29"
REGISTRY = "123456789012.dkr.ecr.us-west-2.amazonaws.com"
PRIVATE = f"{REGISTRY}/models/server:1"
ANSWER = "/run/cfngen-images/answer.json"
HOSTS = f"/run/cfngen-images/{REGISTRY}/hosts.toml"
PULL = r'/bin/sh -c exec "\$@"'
ASK = "/bin/sh -c umask 077"


def config(*references: str) -> dict[str, Any]:
    return {"images": {"references": list(references), "snapshotter": "overlayfs"}}


class Node(ScriptedMachine):
    """A node with containerd, and a credential provider that has a password for ECR.

    Attributes:
        stored: the images that containerd has.
        missing: images that the registry does not have.
        seen: the file with ECR's password, as it was when an image was pulled.
    """

    def __init__(self, *stored: str) -> None:
        super().__init__()
        self.stored = set(stored)
        self.missing: set[str] = set()
        self.seen = ""
        self.on("ctr -n k8s.io images ls -q", self._listed)
        self.on(PULL, self._pulled)
        self.on(ASK, self._answered)

    def _listed(self, command: str) -> tuple[int, str]:
        reference = command.partition("name==")[2]
        return 0, f"{reference}\n" if reference in self.stored else ""

    def _pulled(self, command: str) -> tuple[int, str]:
        reference = command.rpartition(" ")[2]
        self.seen = self.files.get(HOSTS, "")
        if reference in self.missing:
            return 1, f"ctr: {reference}: not found"
        self.stored.add(reference)
        return 0, ""

    def _answered(self, command: str) -> tuple[int, str]:
        self.files[ANSWER] = json.dumps({"auth": {REGISTRY: {"username": "AWS", "password": "secret"}}})
        return 0, ""


def test_the_boot_does_not_wait_for_the_service() -> None:
    machine = ScriptedMachine()
    assert images.start(machine, boot_of(config(NGINX, PRIVATE))).startswith("2 images are pulled in the background")
    assert machine.commands == ["systemctl daemon-reload", "systemctl start --no-block cfngen-images.service"]


def test_images_are_pulled_with_the_mirrors_of_their_registries() -> None:
    machine = Node()
    assert images.pull(machine, boot_of(config(NGINX))) == "1 of 1 images are there"
    [command] = machine.ran(PULL)
    assert command.endswith(f"images pull --hosts-dir /etc/containerd/certs.d --snapshotter overlayfs {NGINX}")
    assert not machine.ran(ASK)


def test_an_image_that_is_there_is_not_pulled() -> None:
    machine = Node(NGINX)
    assert images.pull(machine, boot_of(config(NGINX))) == "1 of 1 images are there"
    assert not machine.ran(PULL)


def test_an_image_that_cannot_be_pulled_is_reported_and_the_others_follow() -> None:
    machine = Node()
    machine.missing.add("quay.io/a/b:1")
    assert images.pull(machine, boot_of(config("quay.io/a/b:1", NGINX))) == "1 of 2 images are there"
    [line] = machine.said[-1:]
    assert line.startswith("quay.io/a/b:1 was not pulled: waited 3")
    assert "not found" in line
    assert "What to do: check that the registry has the image" in line
    assert machine.stored == {NGINX}


def test_ecr_gets_the_instances_password_which_no_argument_and_no_file_keeps() -> None:
    machine = Node()
    machine.files[f"/etc/containerd/certs.d/{REGISTRY}/hosts.toml"] = '[host."https://mirror.example.com"]\n'
    assert images.pull(machine, boot_of(config(PRIVATE))) == "1 of 1 images are there"
    [question] = machine.ran(ASK)
    assert json.loads(machine.stdin[question])["image"] == PRIVATE
    # "AWS:secret", as HTTP's basic authentication has it, after the mirrors.
    assert machine.seen == (
        '[host."https://mirror.example.com"]\n\n[header]\nAuthorization = "Basic QVdTOnNlY3JldA=="\n'
    )
    assert "secret" not in "".join(machine.commands)
    assert not [path for path in machine.files if path.startswith("/run/")]


def test_ecr_without_a_password_is_reported() -> None:
    machine = Node()
    machine.on(ASK, (0, ""))
    assert images.pull(machine, boot_of(config(PRIVATE))) == "0 of 1 images are there"
    assert f"ecr-credential-provider has no password for {REGISTRY}" in machine.said[-1]


@pytest.mark.parametrize("pattern", credential_providers()["providers"][0]["matchImages"])
def test_registries_with_passwords_are_those_of_the_kubelet(pattern: str) -> None:
    account, region = pattern.replace("*", "123456789012", 1), "eu-central-1"
    assert images.ECR_REGISTRY.fullmatch(account.replace("*", region))


@pytest.mark.parametrize(
    "registry", ["public.ecr.aws", "docker.io", "dkr.ecr.example.com", "a.dkr.ecr.b.amazonaws.com"]
)
def test_other_registries_get_no_password(registry: str) -> None:
    assert not images.ECR_REGISTRY.fullmatch(registry)
