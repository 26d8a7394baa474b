"""`cfngen kubeconfig`: kubectl's configuration as its user finds it afterwards."""

from __future__ import annotations

import base64
import json
import stat
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID
from deployed_cluster import Command, Place, Shell, commanding
from json_lines import lines

from cfngen.deploy.access.api_connection import Endpoint
from cfngen.deploy.access.certificates import KeyPair
from cfngen.deploy.access.kubernetes import KubernetesClient
from cfngen.sandbox.cloudformation import client


@pytest.fixture
def run(where: Place, cfngen: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    monkeypatch.setenv("HOME", str(tmp_path))
    return commanding(where, cfngen, monkeypatch)


def only(content: dict, plural: str) -> dict:
    [entry] = content[plural]
    return entry[plural[:-1]]


def certificate(content: dict) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(only(content, "users")["client-certificate-data"]))


def names(made: x509.Certificate, kind: x509.ObjectIdentifier) -> list[str]:
    return [str(each.value) for each in made.subject.get_attributes_for_oid(kind)]


def test_kubectl_gets_in_with_it(run: Command, where: Place, tmp_path: Path) -> None:
    ran = run("kubeconfig")
    assert ran.code == 0, ran.err
    file = tmp_path / ".kube" / "config"
    assert f"Wrote the context kubernetes to {file}, and made it the current one." in ran.out
    assert "as moto@cfngen (groups: system:masters) until 2026-01-01 12:" in ran.out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    content = yaml.safe_load(file.read_text())
    assert content["current-context"] == "kubernetes"
    cluster, user = only(content, "clusters"), only(content, "users")
    authority, client_certificate, key = (
        base64.b64decode(each).decode()
        for each in (
            cluster["certificate-authority-data"],
            user["client-certificate-data"],
            user["client-key-data"],
        )
    )
    url = f"https://{cluster['tls-server-name']}"
    with KubernetesClient(Endpoint(url, cluster["server"]), authority, KeyPair(client_certificate, key)) as api:
        assert len(api.nodes()) == 5
    assert key not in ran.out + ran.err


def test_the_certificate_says_who_and_ends(run: Command, where: Place, tmp_path: Path) -> None:
    assert run("kubeconfig", "--duration", "1h30m").code == 0
    made = certificate(yaml.safe_load((tmp_path / ".kube" / "config").read_text()))
    assert names(made, NameOID.COMMON_NAME) == ["moto@cfngen"]
    assert names(made, NameOID.ORGANIZATION_NAME) == ["system:masters"]
    assert timedelta(0) <= where.clock.now() + timedelta(minutes=90) - made.not_valid_after_utc < timedelta(seconds=1)


@pytest.mark.parametrize(
    ("options", "user", "groups"),
    [
        (("--user", "alice"), "alice", []),
        (("--user", "alice", "--group", "dev", "--group", "oncall"), "alice", ["dev", "oncall"]),
        (("--group", "dev"), "moto@cfngen", ["dev"]),
    ],
)
def test_somebody_with_fewer_rights(options: tuple[str, ...], user: str, groups: list[str], run: Command) -> None:
    ran = run("kubeconfig", "--print", *options)
    assert ran.code == 0, ran.err
    made = certificate(yaml.safe_load(ran.out))
    assert names(made, NameOID.COMMON_NAME) == [user]
    assert names(made, NameOID.ORGANIZATION_NAME) == groups


def test_print_changes_no_file(run: Command, tmp_path: Path) -> None:
    ran = run("kubeconfig", "--print", "--context", "prod")
    content = yaml.safe_load(ran.out)
    assert (content["kind"], content["current-context"]) == ("Config", "prod")
    assert not (tmp_path / ".kube").exists()
    [printed] = lines(run("kubeconfig", "--print", "--user", "bob", "-o", "json").out)
    assert (printed["type"], printed["user"], printed["groups"]) == ("kubeconfigDocument", "bob", [])
    assert printed["kubeconfig"]["current-context"] == "kubernetes"
    issued = certificate(printed["kubeconfig"])
    assert names(issued, NameOID.COMMON_NAME) == ["bob"]
    assert printed["expires"].startswith(f"{issued.not_valid_after_utc:%Y-%m-%dT%H:%M:%S}")


def test_other_contexts_stay_and_removal_takes_ours_only(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine"
    before = {"kind": "Config", "current-context": "work", "contexts": [{"name": "work", "context": {"user": "me"}}]}
    file.write_text(yaml.safe_dump(before))
    assert run("kubeconfig", "--no-switch", KUBECONFIG=f"{file}:/nowhere").code == 0
    content = yaml.safe_load(file.read_text())
    assert content["current-context"] == "work"
    assert [context["name"] for context in content["contexts"]] == ["work", "kubernetes"]
    ran = run("kubeconfig", "--remove", KUBECONFIG=str(file))
    assert ran.out == f"Removed kubernetes from {file}.\n"
    assert yaml.safe_load(file.read_text()) == {**before, "clusters": [], "users": []}
    assert run("kubeconfig", "--remove", "--file", str(file)).out == (
        f"{file} has no entries of the stack k8s in us-west-2.\n"
    )


def test_removal_asks_nobody(run: Command, where: Place, tmp_path: Path) -> None:
    run("kubeconfig")
    calls = len(where.served.faults.calls)
    ran = run("kubeconfig", "--remove", "-o", "json")
    assert len(where.served.faults.calls) == calls
    assert json.loads(ran.out) == {
        "type": "kubeconfig",
        "action": "removed",
        "stack": "k8s",
        "region": "us-west-2",
        "path": str(tmp_path / ".kube" / "config"),
        "names": ["kubernetes"],
        "server": "",
        "user": "",
        "groups": [],
        "expires": None,
        "current": False,
    }


def test_a_program_is_told_what_was_written(run: Command, tmp_path: Path) -> None:
    printed = json.loads(run("kubeconfig", "-o", "json", "--file", "here").out)
    assert (printed["type"], printed["action"], printed["names"]) == ("kubeconfig", "written", ["kubernetes"])
    assert (printed["user"], printed["groups"], printed["current"]) == ("moto@cfngen", ["system:masters"], True)
    assert printed["expires"].endswith("Z")
    assert "key" not in json.dumps(printed)


def test_another_clusters_context_is_not_overwritten(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "config"
    text = yaml.safe_dump({"clusters": [{"name": "kubernetes", "cluster": {"server": "https://kubeadm"}}]})
    file.write_text(text)
    ran = run("kubeconfig", "--file", str(file))
    assert ran.code == 1
    assert "the cluster 'kubernetes' of the kubeconfig was not written by cfngen" in ran.err
    assert "hint: choose another name with --context" in ran.err
    assert file.read_text() == text
    assert run("kubeconfig", "--file", str(file), "--context", "ours").code == 0


def test_a_broken_kubeconfig_is_left_alone(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("clusters: [\n")
    ran = run("kubeconfig", "--file", str(file))
    assert ran.code == 1
    assert "is not valid YAML in line 2" in ran.err
    assert file.read_text() == "clusters: [\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config"]


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, "a: " + "[" * 90 + "]" * 90 + "\nclusters: 1", "\x1b[2J: [", "a: &a0 [x]\n" + "- " * 9_000],
    ids=["brackets", "deep", "controls", "dashes"],
)
def test_a_hostile_kubeconfig_is_refused_politely(run: Command, tmp_path: Path, content: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    ran = run("kubeconfig", "--file", str(file))
    assert ran.code == 1, ran.err
    assert "\x1b" not in ran.err
    assert file.read_text() == content


def test_no_cluster_says_how_to_get_one(run: Command) -> None:
    ran = run("kubeconfig", stack="nothing")
    assert ran.code == 1
    assert "there is no stack nothing in us-west-2 of account 123456789012" in ran.err
    assert "cfngen deploy" in ran.err


def test_without_the_right_to_the_secret_the_permissions_are_named(run: Command, where: Place) -> None:
    where.served.faults.deny("secretsmanager:GetSecretValue")
    ran = run("kubeconfig")
    where.served.faults.clear()
    assert ran.code == 1
    assert "has no permission to read the secret arn:aws:secretsmanager:us-west-2:" in ran.err
    assert "secretsmanager:GetSecretValue on it and kms:Decrypt on its KMS key" in ran.err


def test_a_cluster_that_is_not_initialised_says_so(run: Command, where: Place) -> None:
    secrets = client("secretsmanager", where.cluster.region)
    [arn] = [each["ARN"] for each in secrets.list_secrets()["SecretList"] if "CaSecret" in each["Name"]]
    text = secrets.get_secret_value(SecretId=arn)["SecretString"]
    secrets.put_secret_value(SecretId=arn, SecretString="{}")
    ran = run("kubeconfig")
    secrets.put_secret_value(SecretId=arn, SecretString=text)
    assert ran.code == 1
    assert "has not been initialised" in ran.err
    assert "`cfngen status --defaults --stack-name k8s` shows its progress" in ran.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--duration", "4m"), "4m is too short; the minimum is 5m."),
        (("--duration", "soon"), "'soon' is not a duration, such as 45s, 10m, 12h, 1h30m or 2d."),
        (("--print", "--file", "x"), "--print changes no file"),
        (("--remove", "--user", "x"), "cannot be used with --remove"),
    ],
)
def test_options_that_make_no_sense(options: tuple[str, ...], message: str, run: Command) -> None:
    ran = run("kubeconfig", *options)
    assert ran.code == 64
    assert message in " ".join(ran.err.split())


def test_a_certificate_that_outlives_the_authority_is_refused(run: Command) -> None:
    ran = run("kubeconfig", "--print", "--duration", "9999d")
    assert ran.code == 1
    assert "certificate authority expires at" in ran.err
    assert ran.out == ""


def test_a_cluster_without_an_internal_endpoint_says_how_to_get_one(run: Command) -> None:
    ran = run("kubeconfig", "--internal")
    assert ran.code != 0
    assert "has no output ApiInternalEndpoint; it has one with api.internal: true" in ran.err
    assert "--internal" in run("kubeconfig", "--remove", "--internal").err
