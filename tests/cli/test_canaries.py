"""Recognisable secrets wherever one can come in: none is in what cfngen prints, writes or sends, but where it belongs.

What somebody gives cfngen is planted: credentials of AWS, tokens and passwords in the environment, in files beside, on
the command line. What a cluster makes itself is read from it: keys of its authorities, tokens that nodes join with.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml
from botocore.awsrequest import AWSResponse
from deployed_cluster import Place, Shell, operating, place

from cfngen.cli.input.target import Target
from cfngen.cluster.load import parse
from cfngen.sandbox.cloudformation import client
from cfngen.sandbox.durations import DURATIONS

PLANTED = {
    "AWS_SECRET_ACCESS_KEY": "canary-of-the-secret-access-key",
    "AWS_SESSION_TOKEN": "canary-of-the-session-token",
    "HTTPS_PROXY": "http://somebody:canary-of-the-proxy@proxy.example.com:3128",
    "GITHUB_TOKEN": "canary-of-the-ci-token",
    "DOCKER_AUTH_CONFIG": '{"auths": {"registry.example.com": {"auth": "canary-of-the-registry"}}}',
    "KUBE_BEARER_TOKEN": "canary-of-kube-up",
}
OTHER_CLUSTER = "canary-of-another-cluster"
HELM = "canary-of-a-chart"
FILE = {
    "name": "shop",
    "region": "us-west-2",
    "api": {"allowedCidrs": ["203.0.113.7/32"]},
    "nodeGroups": [{"name": "general", "minSize": 1, "maxSize": 2}],
    "addons": {"metricsServer": {"values": {"password": HELM}}},
}
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "users": [{"name": "other", "user": {"token": OTHER_CLUSTER}}],
    "clusters": [],
    "contexts": [],
}
STACK = ("--stack-name", "shop")
SIGNED = (
    "The request signature we calculated does not match the signature you provided.\n\nThe Canonical String for this "
    "request should have been\n'POST\n/\n\nhost:sts.us-west-2.amazonaws.com\nx-amz-security-token:"
)


class Watched:
    """What the process makes while it is watched: command lines of children, and files with the mode they begin with.

    Attributes:
        command_lines: of every program that it starts.
        modes: by inode, the mode with which `os.open` made a file.
    """

    def __init__(self) -> None:
        self.command_lines: list[str] = []
        self.modes: dict[int, int] = {}
        self._open = os.open

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.spawn"):
            self.command_lines.append(repr(arguments[:2]))

    def open(self, path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        descriptor = self._open(path, flags, mode, **options)
        if flags & os.O_CREAT and not (found := os.fstat(descriptor)).st_size:
            self.modes[found.st_ino] = stat.S_IMODE(found.st_mode)
        return descriptor


_WATCHED: list[Watched] = []


@functools.cache
def _hear() -> None:
    """Tell whoever watches; a hook stays until the process ends."""
    sys.addaudithook(lambda event, arguments: [watched.audit(event, arguments) for watched in _WATCHED] and None)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    _hear()
    made = Watched()
    _WATCHED.append(made)
    monkeypatch.setattr(os, "open", made.open)
    umask = os.umask(0)  # whatever is not made for its owner alone is everybody's
    yield made
    os.umask(umask)
    _WATCHED.remove(made)


def plain(content: bytes) -> bytes:
    """What a file has, also if it is compressed."""
    try:
        return zlib.decompress(content)
    except zlib.error:
        return content


@dataclass
class Somebody:
    """Who types commands, in a home and a folder of their own, and keeps all that they print."""

    cfngen: Shell
    folder: Path
    printed: list[str] = field(default_factory=list)

    def type(self, *words: str, code: int = 0) -> str:
        ran = self.cfngen("--debug", *words, **PLANTED)
        self.printed.append(ran.out + ran.err)
        assert ran.code == code, f"{words}: exit code {ran.code}\n{(ran.out + ran.err)[-2000:]}"
        return ran.out + ran.err

    def files(self) -> dict[Path, bytes]:
        return {path: plain(path.read_bytes()) for path in self.folder.rglob("*") if path.is_file()}

    def found(self, secret: str) -> set[str]:
        """Where a secret is: in files by their name, in what was printed by its number."""
        lines = {line.encode() for line in secret.splitlines() if len(line) > 40}  # of a key, wherever it is folded
        forms = {secret.encode(), base64.b64encode(secret.encode()).rstrip(b"="), *lines}
        in_files = {str(path.relative_to(self.folder)) for path, text in self.files().items() if has(text, forms)}
        return in_files | {f"printed {n}" for n, text in enumerate(self.printed) if has(text.encode(), forms)}


def has(text: bytes, forms: set[bytes]) -> bool:
    return any(form in text for form in forms)


@pytest.fixture
def somebody(cfngen: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watched: Watched) -> Somebody:
    (tmp_path / "tmp").mkdir()
    for name, folder in (("HOME", ""), ("XDG_CACHE_HOME", "cache"), ("XDG_STATE_HOME", "state"), ("TMPDIR", "tmp")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(f"[default]\naws_secret_access_key = {PLANTED['AWS_SESSION_TOKEN']}\n")
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube/config").write_text(yaml.safe_dump(KUBECONFIG))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(FILE))
    return Somebody(cfngen, tmp_path)


def planted() -> Iterator[str]:
    """The secret part of what is in the environment."""
    for value in PLANTED.values():
        yield "canary" + value.partition("canary")[2].partition("@")[0].partition('"')[0]


@pytest.fixture
def forgetful(somebody: Somebody, watched: Watched) -> Iterator[Somebody]:
    """Somebody whose secrets from the environment are nowhere afterwards, but in the file that they wrote."""
    yield somebody
    for secret in planted():
        assert somebody.found(secret) <= {".aws/credentials"}, secret
        assert not [line for line in watched.command_lines if secret in line]


REFUSED = {
    "a proxy": ("--set", "network.proxy.httpsProxy=http://me:canary-of-the-proxy@h:1"),
    "a mirror": ("--set", "assets.mirror=https://me:canary-of-the-proxy@h/"),
    "a registry": ("--set", "controlPlane.containerd.registryMirrors.docker\\.io=[https://me:canary-of-the-proxy@h]"),
    "a command": ("--set", "controlPlane.preBootCommands=[curl https://me:canary-of-the-proxy@h]"),
    "an issuer": ("--set", "serviceAccountIssuer.url=https://me:canary-of-the-proxy@h"),
}


@pytest.mark.parametrize("options", REFUSED.values(), ids=REFUSED)
def test_a_password_that_is_refused_is_not_repeated(forgetful: Somebody, options: tuple[str, ...]) -> None:
    assert "error: " in forgetful.type("config", "--defaults", *options, code=1)


def test_a_file_that_cannot_be_read_is_not_repeated(forgetful: Somebody) -> None:
    (forgetful.folder / "broken.yaml").write_text("name: shop\nnetwork: {proxy: 'http://me:canary-of-the-proxy@h:1'\n")
    forgetful.type("config", "-f", "broken.yaml", code=1)
    (forgetful.folder / "broken.yaml").unlink()


def test_what_needs_no_account_tells_nothing_of_the_environment(forgetful: Somebody) -> None:
    for words in (("version",), ("config",), ("permissions", "operator"), ("userdata", "master", "--unpack", "data")):
        forgetful.type(*words)
    assert forgetful.found(OTHER_CLUSTER) == {".kube/config"}


@pytest.mark.parametrize("secret", ["canary-of-the-session-token", "token-of-single-sign-on"])
def test_what_aws_repeats_of_a_signed_request_is_left_out(
    forgetful: Somebody, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    error = f"<Error><Code>SignatureDoesNotMatch</Code><Message>{SIGNED}{secret}</Message></Error>"
    body = f"<ErrorResponse>{error}</ErrorResponse>"

    def answer(request: Any, **_: Any) -> AWSResponse:
        raw = BytesIO(body.encode())
        raw.stream = lambda *_, **__: iter([raw.getvalue()])  # type: ignore[attr-defined]
        return AWSResponse(request.url, 403, {}, raw)

    session = boto3.Session("AKIAOPERATOROPERATOR", "secret", secret)
    session.events.register("before-send", answer)
    monkeypatch.setattr(Target, "_session", lambda target, region: session)
    for output in ("text", "json"):
        assert "does not match the signature" in forgetful.type("status", "--output", output, code=1)
    assert forgetful.found(secret) <= {".aws/credentials"}


@dataclass
class Life:
    """A cluster from its creation, which fails first, to its deletion.

    Attributes:
        where: the account with the cluster.
        made: what the cluster has made itself and keeps secret, by what it is.
    """

    somebody: Somebody
    where: Place
    made: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        """Create the cluster; its nodes do not boot at first."""
        type_ = self.somebody.type
        type_("lint")
        type_("templates")
        type_("plan", "--create-bucket", "-o", "json", *STACK, code=4)
        self.where.world.machines.inject_failure("general", "downloads", "no route to dl.k8s.io")
        type_("deploy", "--yes", "-o", "json", *STACK, code=1)
        type_("status", *STACK)
        type_("events", *STACK)
        self.where.world.machines.remove_faults()
        type_("deploy", "--yes", *STACK)

    def read_secrets(self) -> None:
        """Read what the cluster has made."""
        secrets = client("secretsmanager", self.where.cluster.region)
        for listed in secrets.list_secrets()["SecretList"]:
            content = json.loads(secrets.get_secret_value(SecretId=listed["ARN"])["SecretString"])
            for name, value in content.items():
                if name.endswith(".key") or name in ("token", "encryptionKey"):
                    self.made[name] = value
        assert len(self.made) > 4, self.made.keys()

    def operate(self) -> None:
        """Look at the cluster, get in, and set it back."""
        type_ = self.somebody.type
        for words in (("status",), ("validate", "cluster"), ("check", "network"), ("plan", "--create-bucket")):
            type_(*words, *STACK, *(("-o", "json") if words[0] != "plan" else ()))
        type_("kubeconfig", *STACK)
        [user] = [
            each["user"]
            for each in yaml.safe_load((self.somebody.folder / ".kube/config").read_text())["users"]
            if each["name"] != "other"
        ]
        self.made["client"] = base64.b64decode(user["client-key-data"]).decode()
        type_("etcd", "backup", *STACK)
        type_("etcd", "list", "-o", "json", *STACK)
        type_("etcd", "restore", "latest", "--yes", *STACK)

    def published(self) -> dict[str, bytes]:
        """Every object in every bucket, by its key: templates, and what masters were asked."""
        s3 = client("s3", self.where.cluster.region)
        return {
            item["Key"]: s3.get_object(Bucket=bucket["Name"], Key=item["Key"])["Body"].read()
            for bucket in s3.list_buckets()["Buckets"]
            for item in s3.list_objects_v2(Bucket=bucket["Name"]).get("Contents", ())
        }

    def end(self) -> None:
        """Delete the cluster, and keep its authorities in a file."""
        copy = ("--authorities", "file", "--authorities-file", "authorities.json")
        self.somebody.type("delete", "--yes", *copy, *STACK)


@pytest.mark.drill
def test_a_whole_life_tells_no_secret(forgetful: Somebody, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    session = boto3.Session("AKIAOPERATOROPERATOR", PLANTED["AWS_SECRET_ACCESS_KEY"], PLANTED["AWS_SESSION_TOKEN"])
    with place(parse(FILE), durations=DURATIONS) as where:
        operating(where, monkeypatch)
        monkeypatch.setattr(Target, "_session", lambda target, region: session)
        life = Life(forgetful, where)
        life.begin()
        life.read_secrets()
        life.operate()
        consoles = [line for instance in where.world.machines.instances.values() for line in instance.console]
        published = [plain(content).decode(errors="replace") for content in life.published().values()]
        life.end()
        sent = [repr(call.parameters) for call in where.served.faults.calls]
    belongs = {name: {"authorities.json"} for name in life.made} | {"client": {".kube/config"}, "token": set()}
    for name, secret in life.made.items():
        assert forgetful.found(secret) == belongs[name], name
        assert not [text for text in (*consoles, *sent, *published, *watched.command_lines) if secret in text], name
    assert forgetful.found(OTHER_CLUSTER) == {".kube/config"}
    assert [place for place in forgetful.found(HELM) if place.startswith("output/")]
    assert not [place for place in forgetful.found(HELM) if place.startswith("printed ")]
    for name in ("authorities.json", ".kube/config"):
        found = (forgetful.folder / name).stat()
        assert (watched.modes[found.st_ino], stat.S_IMODE(found.st_mode)) == (0o600, 0o600), name
