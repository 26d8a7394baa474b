"""A certificate authority of the user's own: taken if it is one, refused with the reason if not. openssl is real."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from boots import boot_of
from masters import CA_SECRET, Master, World
from scripted_machine import refusal
from slots import boot, master_of

from cfngen.boot.machine import BootError, Machine
from cfngen.boot.master import custom_ca
from cfngen.boot.master.certificate_authorities import PKI

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
ARN = "arn:aws:secretsmanager:us-west-2:123456789012:secret:ca-AbCdEf"


class RealCommands(Machine):
    """A machine that runs commands for real and has one secret."""

    def __init__(self, secret: str | None) -> None:
        super().__init__()
        self.secret = secret
        self.logged: list[str] = []

    def log(self, text: str) -> None:
        self.logged.append(text)

    def remove(self, *patterns: str) -> None:
        for pattern in patterns:
            Path(pattern).unlink(missing_ok=True)

    def aws(self, service: str, operation: str, *expected: str, **arguments: Any) -> dict[str, Any]:
        assert (service, operation, arguments) == ("secretsmanager", "get_secret_value", {"SecretId": ARN})
        return refusal("ResourceNotFoundException") if self.secret is None else {"SecretString": self.secret}


def openssl(*arguments: str, folder: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder with an authority (ca.crt, ca.key) and what is almost one."""
    folder = tmp_path / "given"
    folder.mkdir()
    for name in ("ca", "other"):
        openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", f"{name}.key", folder=folder)
    for name, days, constraint in (("ca", "90", "TRUE"), ("short", "10", "TRUE"), ("leaf", "90", "FALSE")):
        extension = f"basicConstraints=critical,CA:{constraint}"
        (folder / "openssl.cnf").write_text(
            f"[req]\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\n[ext]\n{extension}\n"
        )
        openssl(
            *("req", "-x509", "-new", "-config", "openssl.cnf", "-key", "ca.key", "-subj", "/CN=ours"),
            *("-days", days, "-out", f"{name}.crt"),
            folder=folder,
        )
    openssl("pkcs8", "-topk8", "-in", "ca.key", "-passout", "pass:secret", "-out", "locked.key", folder=folder)
    return folder


def fetch(given: Path, target: Path, certificate: str = "ca.crt", key: str = "ca.key") -> RealCommands:
    secret = {"ca.crt": (given / certificate).read_text(), "ca.key": (given / key).read_text()}
    machine = RealCommands(json.dumps(secret))
    assert custom_ca.write_files(machine, boot_of({"ownCa": ARN}), f"{target}/")
    return machine


def test_authority_is_taken_as_it_is(given: Path, tmp_path: Path) -> None:
    machine = fetch(given, tmp_path)
    for name in ("ca.crt", "ca.key"):
        assert (tmp_path / name).read_text() == (given / name).read_text()
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in "".join(machine.logged)


@pytest.mark.parametrize(
    ("certificate", "key", "wrong"),
    [
        ("leaf.crt", "ca.key", "not a certificate authority's"),
        ("short.crt", "ca.key", "expires within 30 days"),
        ("ca.crt", "other.key", "ca.key is not the key of ca.crt"),
        ("ca.crt", "locked.key", "ca.key is not a PEM private key, or has a passphrase"),
        ("ca.key", "ca.key", "ca.crt is not a PEM certificate"),
        ("ca.crt", "ca.crt", "ca.key is not a PEM private key"),
    ],
)
def test_what_is_of_no_use_is_refused_and_leaves_nothing(
    given: Path, tmp_path: Path, certificate: str, key: str, wrong: str
) -> None:
    with pytest.raises(BootError, match=wrong) as caught:
        fetch(given, tmp_path, certificate, key)
    assert ARN in caught.value.hint
    assert not (tmp_path / "ca.crt").exists()
    assert not (tmp_path / "ca.key").exists()


@pytest.mark.parametrize("secret", [None, "", "{}", "[]", "PEM", '{"ca.crt": "x"}', '{"ca.crt": "x", "ca.key": " "}'])
def test_secret_without_them_is_refused(secret: str | None, tmp_path: Path) -> None:
    with pytest.raises(BootError, match=r"does not contain a JSON object with ca.crt and ca.key"):
        custom_ca.write_files(RealCommands(secret), boot_of({"ownCa": ARN}), f"{tmp_path}/")


def supplied(world: World) -> None:
    world.secrets.put(ARN, json.dumps({"ca.crt": "ours", "ca.key": "our key"}))


def with_authority(world: World, slot: str = "a") -> Master:
    master = master_of(world, slot, ownCa=ARN)
    master.on("openssl x509 .* -pubkey|openssl pkey", (0, "public"))
    master.on("openssl x509 .* -ext basicConstraints", (0, "CA:TRUE"))
    master.on("openssl x509 .* -checkend 2592000$", (0, "Certificate will not expire\n"))
    return master


def test_first_master_begins_the_cluster_with_it() -> None:
    world = World()
    supplied(world)
    master = with_authority(world)
    assert boot(master)[0] == "init: used the supplied certificate authority, created the others"
    bundle = json.loads(world.secrets.text(CA_SECRET))
    assert (bundle["ca.crt"], bundle["ca.key"]) == ("ours\n", "our key\n")
    assert bundle["front-proxy-ca.key"] == master.files[PKI + "front-proxy-ca.key"]


def test_later_masters_and_boots_take_it_from_the_clusters_own_secret() -> None:
    world = World()
    supplied(world)
    first = with_authority(world)
    boot(first)
    world.secrets.put(ARN, json.dumps({"ca.crt": "another", "ca.key": "another"}))
    second = with_authority(world, "b")
    boot(second)
    first.reboot()
    boot(first)
    for each in (first, second):
        assert each.files[PKI + "ca.crt"] == "ours\n"
    assert second.ran("openssl") == []
