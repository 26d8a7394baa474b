"""The narrow seam between the boot program and the world: commands, files, EC2's metadata, AWS, downloads and time."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import suppress
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import IO, Any, Callable, TypeVar

from .reasons import reason

HOME = "/opt/cfngen"
LOG = "/var/log/cfngen.log"
# Bytes; some tasks run each minute for as long as the instance lives. What came before is kept once, in `.1`.
LOG_SIZE = 20_000_000
METADATA = "http://169.254.169.254"
# A bootstrap token (id.secret). None is ever printed on purpose; this catches what a command may say.
TOKEN = re.compile(r"\b([a-z0-9]{6})\.[a-z0-9]{16}\b")
# Errors of AWS that pass: a new instance's role is not known everywhere for up to a minute.
PASSING = re.compile(
    "Denied|Unauthorized|AuthFailure|ClientToken|UnrecognizedClient|Throttl|Internal|Unavailable|LimitExceeded"
)

Found = TypeVar("Found")


class BootError(Exception):
    """A step cannot go on.

    Attributes:
        hint: what a person should look at or do; empty if that is the log alone.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


class Pending(Exception):  # noqa: N818 - it is no error, it says what is still missing
    """What is waited for is not there yet; the text says why."""


class Machine:
    """The instance that the program runs on.

    Attributes:
        region: AWS region of the clients; known once the instance's identity is.
        voice: what each line that is said begins with. What a task says later has a voice of its own, so that the
            console tells a boot that ended well from a task that did not.
    """

    region = ""
    voice = "cfngen"

    def __init__(self) -> None:
        self._clients: dict[str, Any] = {}

    def say(self, text: str) -> None:
        """Write one line to the journal and the console; systemd connects standard output to both."""
        print(self.voice + ": " + TOKEN.sub(r"\1.…", text), flush=True)  # noqa: T201

    def run(
        self, *command: str, stdin: str = "", expect: tuple[int, ...] = (0,), timeout: int = 900
    ) -> tuple[int, str]:
        """Run a command and keep what it said in the log file.

        Args:
            command: program and arguments; a secret never is an argument, it goes through `stdin` or a file.
            stdin: text for its standard input.
            expect: exit codes that are not a failure.
            timeout: seconds.

        Returns:
            Its exit code and standard output.

        Raises:
            BootError: another exit code, no such program, or time is up.
        """
        title = "`" + " ".join(command) + "`"
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        try:
            done = subprocess.run(
                command, input=stdin, capture_output=True, text=True, timeout=timeout, env=environment, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BootError(f"{title} could not be run: {error}") from error
        self.log(f"{self.time()} {title}\n{done.stdout}{done.stderr}")
        if done.returncode not in expect:
            why = reason(done.stderr, done.stdout)
            raise BootError(f"{title} exited with {done.returncode}: {why}")
        return done.returncode, done.stdout

    def which(self, program: str) -> bool:
        """Return whether a program is installed."""
        return shutil.which(program) is not None

    def has_boto3(self) -> bool:
        """Return whether boto3 can be imported now."""
        invalidate_caches()
        try:
            import_module("boto3")
        except ImportError:
            return False
        return True

    def exists(self, path: str) -> bool:
        """Return whether a file or folder exists."""
        return Path(path).exists()

    def mounted(self, path: str) -> bool:
        """Return whether a file system is mounted at `path`."""
        return Path(path).is_mount()

    def glob(self, pattern: str) -> list[str]:
        """Return the sorted paths of the files that match a shell pattern; `**/*` stands for all below a folder."""
        return sorted(str(path) for path in Path("/").glob(pattern[1:]) if path.is_file())

    def read(self, path: str, default: str = "") -> str:
        """Return a text file's content, or `default` if there is no such file."""
        try:
            return Path(path).read_text("utf-8")
        except FileNotFoundError:
            return default

    def write(self, path: str, text: str, mode: int = 0o644) -> bool:
        """Write a text file in one piece (readers see the old or the new one), making its folders.

        Returns:
            Whether the file changed.
        """
        if self.read(path, "\0") == text:
            return False
        # Tasks run beside each other, and some write the same file; the kubelet reads no file that begins with a dot.
        folder, _, name = path.rpartition("/")
        partial = Path(f"{folder}/.{name}.{os.getpid()}")
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.touch(mode)
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        return True

    def log(self, text: str) -> None:
        """Append to the log file, which only root may read; a long one begins anew."""
        path = Path(LOG)
        path.touch(0o600)
        with suppress(FileNotFoundError):  # another task was faster
            if path.stat().st_size > LOG_SIZE:
                path.replace(LOG + ".1")
                path.touch(0o600)
        with path.open("a", encoding="utf-8") as file:
            file.write(TOKEN.sub(r"\1.…", text) + "\n")

    def remove(self, *patterns: str) -> None:
        """Delete the files and folders that match; absent ones are fine."""
        for path in [path for pattern in patterns for path in Path("/").glob(pattern[1:])]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def sha256(self, path: str) -> str:
        """Return a file's digest, or an empty string if there is no such file."""
        if not self.exists(path):
            return ""
        digest = hashlib.sha256()
        with Path(path).open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
        return digest.hexdigest()

    def download(self, url: str, path: str, sha256: str) -> None:
        """Download an executable or an archive; it gets its name only once it is whole and has the right digest.

        Raises:
            OSError: no connection, an error answer, a full disk, …
            BootError: the digest is another one.
        """
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                self.receive(answer, path, sha256, url, 0o755)
        except http.client.HTTPException as error:
            # A connection that broke off in the midst of an answer is none of Python's errors of connections.
            raise OSError(f"{url}: {type(error).__name__} {error}") from error

    def receive(self, source: IO[bytes], path: str, sha256: str, origin: str, mode: int) -> None:
        """Copy a stream into a file, which gets its name only once it is whole and has the right digest.

        Args:
            source: what is read to its end.
            path: the file; its folders are made.
            sha256: the digest; an empty text if nobody knows it.
            origin: where it comes from, for people.
            mode: the file's mode.

        Raises:
            BootError: the digest is another one.
        """
        partial = Path(path + ".part")
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.touch(mode)
        with partial.open("wb") as file:
            shutil.copyfileobj(source, file, 1 << 20)
        digest = self.sha256(str(partial))
        if sha256 and digest != sha256:
            partial.unlink()
            raise BootError(f"{origin} has SHA-256 {digest}, not {sha256}")
        partial.chmod(mode)
        partial.replace(path)

    def open(self, path: str) -> IO[bytes]:
        """Open a file to read its bytes."""
        return Path(path).open("rb")

    def time(self, later: float = 0) -> str:
        """Return the time in some seconds from now as ISO 8601 in UTC; such texts compare like times."""
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + later))

    def clock(self) -> float:
        """Return seconds for measuring durations."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def wait(
        self,
        what: str,
        probe: Callable[[], Found],
        hint: str,
        seconds: float = 120,
        passing: type[Exception] | tuple[type[Exception], ...] = Pending,
    ) -> Found:
        """Try again and again, at growing intervals, until it works; say each minute what is missing.

        Args:
            what: what is waited for.
            probe: returns what is waited for, or raises one of `passing`.
            hint: what to look at if it never comes, unless the last error has a hint of its own.
            seconds: how long at most.
            passing: exceptions that mean "not yet"; any other one ends the wait.

        Raises:
            BootError: time is up.
        """
        start = said = self.clock()
        pause = 1.0
        while True:
            try:
                return probe()
            except passing as error:
                missing, now = error, self.clock()
            if now - start >= seconds:
                # What tried it may know better what to look at than what waits for it.
                better = getattr(missing, "hint", "") or hint
                raise BootError(f"waited {now - start:.0f} s for {what}: {missing}", better) from missing
            if now - said >= 60:
                said = now
                self.say(f"waiting for {what} ({now - start:.0f} s): {missing}")
            self.sleep(pause)
            pause = min(pause * 1.5, 10)

    def connect(self, address: str, port: int, seconds: float = 2) -> None:
        """Connect to a TCP port, and hang up.

        Raises:
            ConnectionRefusedError: nobody listens.
            OSError: nobody answers in time, or there is no way.
        """
        socket.create_connection((address, port), seconds).close()

    def metadata(self, path: str, missing: str | None = None) -> str:
        """Return a value of the instance metadata service, version 2.

        Args:
            path: after `/latest/`.
            missing: what to return if there is no such value; without it, the value is waited for.

        Raises:
            BootError: the service does not answer.
        """
        base = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", METADATA).rstrip("/") + "/latest/"

        def ask(path: str, method: str, header: str, value: str) -> str:
            request = urllib.request.Request(
                base + path, headers={"X-aws-ec2-metadata-" + header: value}, method=method
            )
            with urllib.request.urlopen(request, timeout=5) as answer:
                return str(answer.read().decode())

        def probe() -> str:
            token = ask("api/token", "PUT", "token-ttl-seconds", "60")
            try:
                return ask(path, "GET", "token", token)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code == 404 and missing is not None:
                    return missing
                raise

        passing = (OSError, http.client.HTTPException)
        return self.wait("instance metadata", probe, "is the metadata service enabled?", passing=passing)

    def aws(self, service: str, operation: str, *expected: str, **arguments: Any) -> dict[str, Any]:
        """Call AWS.

        Args:
            service: boto3's name, e.g. `ec2`.
            operation: boto3's method, e.g. `attach_volume`.
            expected: error codes that are an answer: returned as `{"Error": {"Code": …, "Message": …}}`.
            arguments: the operation's parameters.

        Raises:
            BootError: any other error; one that may pass by itself, after a minute.
        """
        errors = import_module("botocore.exceptions")

        def probe() -> dict[str, Any]:
            for argument in arguments.values():
                if hasattr(argument, "seek"):
                    argument.seek(0)  # a file that an earlier attempt has read
            try:
                return dict(getattr(self._client(service), operation)(**arguments))
            except errors.ClientError as error:
                code = error.response["Error"]["Code"]
                if code in expected:
                    return {"Error": error.response["Error"]}
                if PASSING.search(code):
                    raise Pending(str(error)) from error
                raise BootError(str(error), "is the resource there?") from error
            except errors.BotoCoreError as error:
                # A client that found no credentials when it was made never looks for them again.
                self._clients.clear()
                raise Pending(str(error)) from error

        return self.wait(operation, probe, "has the instance a way to AWS? Does its role allow it?", 60)

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            # Older boto3 does not know this variable by itself.
            endpoint = os.environ.get("AWS_ENDPOINT_URL")
            config = import_module("botocore.config").Config(connect_timeout=5, read_timeout=30)
            boto3 = import_module("boto3")
            self._clients[service] = boto3.client(
                service, region_name=self.region, endpoint_url=endpoint, config=config
            )
        return self._clients[service]


def fill(value: Any, facts: dict[str, str]) -> Any:
    """Return `value` with `${name}` replaced in every text of it; names that are no facts stay as they are."""
    if isinstance(value, dict):
        return {key: fill(item, facts) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, facts) for item in value]
    if isinstance(value, str):
        return re.sub(r"\$\{(\w+)\}", lambda match: facts.get(match[1], match[0]), value)
    return value
