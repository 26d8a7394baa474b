"""An instance that exists only in memory: files are a dictionary, commands and AWS answer as a test says.

It keeps the boot program's promises checkable: what was run, with which standard input, what was said, and what every
file holds in the end. Time passes only by sleeping.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import io
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import IO, Any

import instance_files
import kubernetes_objects
import programs
import pytest
from aws_client import Answer, Client

from cfngen.boot.host.system import FILES_FOLDER
from cfngen.boot.machine import TOKEN, BootError, Machine
from cfngen.boot.node.first_pod import MANIFEST as FIRST_POD

START = datetime(2026, 9, 1, 12, 0, 0, tzinfo=UTC)
# The version that a secret has when a test begins.
FIRST_VERSION = "00000000-0000-4000-8000-000000000001"
IDENTITY = {"instanceId": "i-0123456789abcdef0", "availabilityZone": "us-west-2a", "privateIp": "172.20.0.9"}
OWN_MANAGERS = {f"--field-manager=cfngen-{name}" for name in ("addons", *"abcde")}
# What `ctr plugins ls` of containerd 2 says of the parts that the kubelet needs.
PLUGINS = """\
TYPE                            ID          PLATFORMS      STATUS
io.containerd.snapshotter.v1    btrfs       linux/amd64    skip
io.containerd.cri.v1            images      -              ok
io.containerd.cri.v1            runtime     linux/amd64    ok
io.containerd.grpc.v1           cri         -              ok
"""


@functools.lru_cache(maxsize=1 << 16)
def begins(text: str, pattern: str) -> bool:
    """Return whether a command begins with a pattern; thousands of boots of some tests run the same commands."""
    return re.match(pattern, text) is not None


class ScriptedMachine(Machine):
    """A `Machine` whose world is this object.

    Attributes:
        files: content by path.
        modes: mode by path of files that were written.
        programs: names that `which` finds.
        boto3: whether boto3 can be imported.
        mounts: mount points.
        web: what downloads find, by address; an exception is raised instead.
        commands: every command that was run, as one text.
        stdin: standard input of each command, by its text.
        answers: (pattern, answer) of commands, the newest first; an answer is (exit code, output), a function of the
            command that returns that, or an exception. A command that is in none of them must be one of those
            that say nothing (`programs.is_quiet`).
        cloud: functions of AWS operations, by `service.operation`; return the answer, or raise. Calls and answers must
            be such as botocore's models of the services describe; an operation that is missing here fails the test.
        calls: every AWS call: (service.operation, arguments).
        said: every line said.
        told: values of the metadata service, by path.
        silent: addresses whose packets are lost.
        refusing: addresses at which nobody listens.
        connected: every address that was connected to.
        objects: what S3 holds, by key; content is text.
        fuse: after how many calls that change or ask something the power goes; None: never.
        fault: after how many such calls one fails, as if the machine or AWS had a bad moment; None: none does.
        between: called before each of these calls and while it sleeps: other instances' turn.
    """

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, str] = {
            "/etc/fstab": "LABEL=root / ext4 defaults 0 1\n",
            "/proc/swaps": "Filename\n",
            "/proc/meminfo": "MemTotal:              0 kB\n",
        }
        self.modes: dict[str, int] = {}
        self.programs = {"apt-get", "iptables", "mkfs.ext4"}
        self.boto3 = True
        self.mounts: set[str] = set()
        self.web: dict[str, str | Exception] = {}
        self.commands: list[str] = []
        self.stdin: dict[str, str] = {}
        self.answers: list[tuple[str, Any]] = [("ctr plugins ls$", (0, PLUGINS))]
        self.silent: set[str] = set()
        self.refusing: set[str] = set()
        self.connected: list[str] = []
        self.cloud: dict[str, Answer] = {
            "s3.get_object": self._object,
            "cloudformation.signal_resource": lambda StackName, LogicalResourceId, UniqueId, Status: {},  # noqa: N803
        }
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.said: list[str] = []
        self.told: dict[str, str] = {}
        self.objects: dict[str, str] = {}
        self.fuse: int | None = None
        self.fault: int | None = None
        self.between: Callable[[], None] = lambda: None
        self.passed = 0.0

    def on(self, pattern: str, answer: Any) -> None:
        """Answer commands that begin with a pattern (regular expression)."""
        self.answers.insert(0, (pattern, answer))

    def ran(self, pattern: str) -> list[str]:
        """Return the commands that begin with a pattern."""
        return [command for command in self.commands if re.match(pattern, command)]

    def burn(self) -> None:
        """Count a call; raise PowerCut, or fail, in the place of the one that is one too many."""
        self.between()
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                raise PowerCut
        if self.fault is not None:
            self.fault -= 1
            if self.fault < 0:
                self.fault = None
                raise BootError("a bad moment")

    def say(self, text: str) -> None:
        self.said.append(TOKEN.sub(r"\1.…", text))

    def run(
        self, *command: str, stdin: str = "", expect: tuple[int, ...] = (0,), timeout: int = 900
    ) -> tuple[int, str]:
        self.burn()
        text = " ".join(command)
        self.commands.append(text)
        self.stdin[text] = stdin
        self.judge(command, expect, timeout, stdin)
        for pattern, answer in self.answers:
            if begins(text, pattern):
                result = answer(text) if callable(answer) else answer
                break
        else:
            if not programs.is_quiet(text):
                pytest.fail(f"nobody has scripted an answer to this command: {text}")
            result = (0, "")
        if isinstance(result, Exception):
            raise result
        if result[0] not in expect:
            raise BootError(f"`{text}` exited with {result[0]}: {result[1]}")
        return result

    def judge(self, command: Sequence[str], expect: tuple[int, ...], timeout: int, stdin: str) -> None:
        """Fail the test whose command an instance's programs do not take, or none of the boot program's is."""
        if unknown := programs.unknown_options(tuple(command)):
            pytest.fail(f"{command[0]} has no option {', '.join(sorted(unknown))}: {' '.join(command)}")
        if problem := programs.problem(" ".join(command), tuple(expect), timeout):
            pytest.fail(problem)
        # What else kubectl is given stands in the configuration, or comes from a chart.
        if {"create", "replace", *OWN_MANAGERS} & set(command) and (problem := kubernetes_objects.problem(stdin)):
            pytest.fail(problem)

    def which(self, program: str) -> bool:
        return program in self.programs

    def has_boto3(self) -> bool:
        return self.boto3

    def exists(self, path: str) -> bool:
        return path in self.files

    def mounted(self, path: str) -> bool:
        return path in self.mounts

    def glob(self, pattern: str) -> list[str]:
        return sorted(fnmatch.filter(self.files, pattern.replace("**/*", "*")))

    def read(self, path: str, default: str = "") -> str:
        return self.files.get(path, default)

    def write(self, path: str, text: str, mode: int = 0o644) -> bool:
        self.burn()
        # What stands in the program's folder of files is put where it says, for everybody to read.
        if (problem := instance_files.problem(path, mode, text)) and (
            f"{FILES_FOLDER}{path}" not in self.files or mode != 0o644
        ):
            pytest.fail(problem)
        if path == FIRST_POD and (problem := kubernetes_objects.problem(text)):
            pytest.fail(problem)
        changed = self.files.get(path) != text
        self.files[path] = text
        self.modes[path] = mode
        return changed

    def log(self, text: str) -> None:
        return

    def remove(self, *patterns: str) -> None:
        self.burn()
        if strange := set(patterns) - instance_files.REMOVED:
            pytest.fail(f"the boot program has no business to remove {', '.join(sorted(strange))}")
        for path in [path for path in self.files if any(self._within(path, pattern) for pattern in patterns)]:
            del self.files[path]

    @staticmethod
    def _within(path: str, pattern: str) -> bool:
        return fnmatch.fnmatch(path, pattern) or path.startswith(pattern.rstrip("/") + "/")

    def sha256(self, path: str) -> str:
        return hashlib.sha256(self.files[path].encode()).hexdigest() if path in self.files else ""

    def download(self, url: str, path: str, sha256: str) -> None:
        found = self.web.get(url, OSError("HTTP Error 404: Not Found"))
        if isinstance(found, Exception):
            raise found
        if hashlib.sha256(found.encode()).hexdigest() != sha256:
            raise BootError(f"{url} has another SHA-256")
        self.write(path, found, 0o755)

    def receive(self, source: IO[bytes], path: str, sha256: str, origin: str, mode: int) -> None:
        self.write(path, source.read().decode(), mode)

    def open(self, path: str) -> IO[bytes]:
        return io.BytesIO(self.files[path].encode())

    def _object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        if Key not in self.objects:
            return refusal("NoSuchKey", Key)
        return {"Body": io.BytesIO(self.objects[Key].encode())}

    def time(self, later: float = 0) -> str:
        return (START + timedelta(seconds=self.passed + later)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def clock(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds
        self.between()

    def connect(self, address: str, port: int, seconds: float = 2) -> None:
        self.connected.append(address)
        if address in self.silent:
            self.passed += seconds
            raise TimeoutError("timed out")
        if address in self.refusing:
            raise ConnectionRefusedError(111, "Connection refused")

    def metadata(self, path: str, default: str | None = None) -> str:
        if path == "dynamic/instance-identity/document":
            return json.dumps(IDENTITY)
        assert instance_files.METADATA.fullmatch(path), f"the metadata service has no {path}"
        assert path in self.told or default is not None, path
        return self.told.get(path, default or "")

    def _client(self, service: str) -> Client:
        def note(name: str, arguments: dict[str, Any]) -> None:
            self.burn()
            self.calls.append((name, arguments))

        return Client(service, self.cloud, note)


class PowerCut(BaseException):
    """The power goes: not even the boot program's own handling of failures sees it."""


def refusal(code: str, message: str = "no") -> dict[str, Any]:
    """Return an error answer of AWS."""
    return {"Error": {"Code": code, "Message": message}}


def stack_resource(physical: str, logical: str = "Resource", metadata: str = "{}") -> dict[str, Any]:
    """Return CloudFormation's description of a resource."""
    detail = {"LogicalResourceId": logical, "PhysicalResourceId": physical, "Metadata": metadata}
    state = {"ResourceType": "AWS::X::Y", "ResourceStatus": "CREATE_COMPLETE", "LastUpdatedTimestamp": START}
    return {"StackResourceDetail": {**detail, **state}}


class SecretsManager:
    """Secrets as Secrets Manager keeps them: versions by request token, the newest one current.

    A token that was used before makes no new version; with another content it is refused.
    """

    def __init__(self, **current: str) -> None:
        self.versions: dict[str, list[tuple[str, str]]] = {
            arn: [(FIRST_VERSION, text)] for arn, text in current.items()
        }

    def install(self, machine: ScriptedMachine) -> SecretsManager:
        machine.cloud["secretsmanager.get_secret_value"] = self.get
        machine.cloud["secretsmanager.put_secret_value"] = self.put
        return self

    def text(self, arn: str) -> str:
        return self.versions[arn][-1][1] if self.versions.get(arn) else ""

    def get(self, SecretId: str) -> dict[str, Any]:  # noqa: N803
        if not self.versions.get(SecretId):
            return refusal("ResourceNotFoundException", "Secrets Manager can't find the specified secret value")
        token, text = self.versions[SecretId][-1]
        return {"VersionId": token, "SecretString": text}

    def put(self, SecretId: str, SecretString: str, ClientRequestToken: str = "") -> dict[str, Any]:  # noqa: N803
        versions = self.versions.setdefault(SecretId, [])
        token = ClientRequestToken or f"{len(versions):032}"
        for known, text in versions:
            if known == token:
                return {"VersionId": token} if text == SecretString else refusal("ResourceExistsException")
        versions.append((token, SecretString))
        return {"VersionId": token}
