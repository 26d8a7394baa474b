"""All access of the boot program to its instance and to AWS, in one class that tests replace.

Commands, files, instance metadata, AWS calls, downloads and time.
"""

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
from typing import TYPE_CHECKING

from .reasons import reason

if TYPE_CHECKING:
    from typing import IO, Any, Callable, TypeVar

    from .contract import JsonObject

    Result = TypeVar("Result")
    Client = Any  # a boto3 client, whose methods depend on the service

# The folder of the boot program, its configuration, and the files that record what it has done.
HOME = "/opt/cfngen"
LOG = "/var/log/cfngen.log"
# Size in bytes at which LOG is renamed to `cfngen.log.1`, which replaces an older one: some tasks run every minute.
LOG_SIZE = 20_000_000
METADATA = "http://169.254.169.254"
# Pattern of a bootstrap token (`id.secret`). A command's output may contain a token, so the log shows only its id.
TOKEN = re.compile(r"\b([a-z0-9]{6})\.[a-z0-9]{16}\b")
# Pattern of the AWS error codes for which a call is retried. Denied access is retried, too, as it may take a minute
# until a new instance's role is known everywhere in AWS.
TRANSIENT = re.compile(
    "Denied|Unauthorized|AuthFailure|ClientToken|UnrecognizedClient|Throttl|Internal|Unavailable|LimitExceeded|Conflict"
)


class BootError(Exception):
    """A boot step failed.

    Attributes:
        hint: what an operator should look at or do; if empty, they are referred to the log.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


class Pending(Exception):  # noqa: N818 - not an error: `Machine.wait` retries it
    """A condition is not met yet; the message says which one."""


class Machine:
    """The instance that the program runs on.

    Attributes:
        region: AWS region of the clients; set before the first step.
        prefix: the text before each line of output. The task of a timer has another prefix than the boot, so that
            readers of the console do not mistake the task's failure for a failed boot.
    """

    region = ""
    prefix = "cfngen"

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}

    def say(self, text: str) -> None:
        """Write one line to the journal and the console: systemd connects standard output to both."""
        print(self.prefix + ": " + TOKEN.sub(r"\1.…", text), flush=True)  # noqa: T201

    def run(
        self, *command: str, stdin: str = "", expect: tuple[int, ...] = (0,), timeout: int = 900
    ) -> tuple[int, str]:
        """Run a command and append its output to the log file, unless it is JSON, which is for programs to read.

        Args:
            command: program and arguments; secrets are passed by `stdin` or a file, never as an argument.
            stdin: text for its standard input.
            expect: the exit codes that are not a failure.
            timeout: seconds after which the command is killed, which counts as a failure.

        Returns:
            Exit code and standard output.

        Raises:
            BootError: the exit code is not in `expect`, the program was not found, or it timed out.
        """
        title = "`" + " ".join(command) + "`"
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        try:
            process = subprocess.run(
                command, input=stdin, capture_output=True, text=True, timeout=timeout, env=environment, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BootError(f"{title} could not be run: {error}") from error
        output = process.stdout
        if process.returncode in expect and output[:1] == "{":
            output = ""
        self.log(f"{self.time()} {title}\n{output}{process.stderr}")
        if process.returncode not in expect:
            cause = reason(process.stderr, process.stdout)
            raise BootError(f"{title} exited with {process.returncode}: {cause}")
        return process.returncode, process.stdout

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
        """Return the sorted paths of the files that match a shell pattern, without folders.

        The pattern begins with `/`; `**/*` matches all files below a folder, at any depth.
        """
        return sorted(str(file) for file in Path("/").glob(pattern[1:]) if file.is_file())

    def read(self, path: str, default: str = "") -> str:
        """Return a text file's content, or `default` if there is no such file."""
        try:
            return Path(path).read_text("utf-8")
        except FileNotFoundError:
            return default

    def write(self, path: str, text: str, mode: int = 0o644) -> bool:
        """Write a text file, unless it has this content already; create its folders if they do not exist.

        The file is replaced atomically: other programs read either the old or the new text. `mode` is only for a file
        that is written: the mode of an unchanged file stays as it is.

        Returns:
            Whether the file was written.
        """
        # No text file contains a NUL, so this default differs from every text to write.
        if self.read(path, "\0") == text:
            return False
        # The temporary file's name contains the process id, as several tasks may write the same file at once. It begins
        # with a dot, so that the kubelet, which reads all manifests in a folder, ignores the temporary file.
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
        """Append to the log file, which only root may read; at LOG_SIZE bytes it is rotated."""
        path = Path(LOG)
        path.touch(0o600)
        with suppress(FileNotFoundError):  # another task has just rotated it
            if path.stat().st_size > LOG_SIZE:
                path.replace(LOG + ".1")
                path.touch(0o600)
        with path.open("a", encoding="utf-8") as file:
            file.write(TOKEN.sub(r"\1.…", text) + "\n")

    def remove(self, *patterns: str) -> None:
        """Delete the files and folders that match any of the shell patterns; it is not an error if none does.

        Each pattern begins with `/`.
        """
        for path in [path for pattern in patterns for path in Path("/").glob(pattern[1:])]:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def sha256(self, path: str) -> str:
        """Return a file's SHA-256, or "" if there is no such file."""
        if not self.exists(path):
            return ""
        digest = hashlib.sha256()
        with Path(path).open("rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                digest.update(block)
        return digest.hexdigest()

    def download(self, url: str, path: str, sha256: str) -> None:
        """Download an executable or an archive; `path` exists only once the file is complete and its digest is right.

        Raises:
            OSError: for example: the server cannot be reached or reports an error, or the disk is full.
            BootError: the digest is not `sha256`.
        """
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                self.receive(response, path, sha256, url, 0o755)
        except http.client.HTTPException as error:
            # http.client's exceptions, e.g. IncompleteRead if a response ends early, are no OSErrors.
            raise OSError(f"{url}: {type(error).__name__} {error}") from error

    def receive(self, source: IO[bytes], path: str, sha256: str, origin: str, mode: int) -> None:
        """Copy a stream into a file; `path` exists only once the file is complete and its digest is right.

        Args:
            path: the file; its folders are created.
            sha256: the expected digest; "" accepts every content.
            origin: where the stream comes from, e.g. a URL, for the error message.
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
        """Return the UTC time as ISO 8601, e.g. `2026-09-01T12:00:00Z`; such texts sort chronologically.

        Args:
            later: seconds to add to the present time; if negative, the result is in the past.
        """
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + later))

    def clock(self) -> float:
        """Return the monotonic clock, in seconds, for measuring durations."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Pause for a number of seconds."""
        time.sleep(seconds)

    def wait(
        self,
        description: str,
        probe: Callable[[], Result],
        hint: str,
        seconds: float = 120,
        retry_on: type[Exception] | tuple[type[Exception], ...] = Pending,
    ) -> Result:
        """Call `probe` repeatedly, at growing intervals, until it succeeds; return what it returns.

        The last failure is logged once a minute.

        Args:
            description: what is waited for, for the log and the error.
            probe: a function that returns a result, or raises one of `retry_on` if it has to be called again.
            hint: what an operator should do after a time-out, unless the last exception has a hint of its own.
            seconds: the time-out. `probe` is called at least once, and again until this time has passed.
            retry_on: the exceptions after which `probe` is called again; any other exception ends the wait.

        Raises:
            BootError: the probe did not succeed in time.
        """
        start = last_log = self.clock()
        pause = 1.0
        while True:
            try:
                return probe()
            except retry_on as error:
                failure, now = error, self.clock()
            if now - start >= seconds:
                # The hint of a BootError that `probe` raised is more specific than the caller's.
                hint = getattr(failure, "hint", "") or hint
                raise BootError(f"waited {now - start:.0f} s for {description}: {failure}", hint) from failure
            if now - last_log >= 60:
                last_log = now
                self.say(f"waiting for {description} ({now - start:.0f} s): {failure}")
            self.sleep(pause)
            pause = min(pause * 1.5, 10)

    def connect(self, address: str, port: int, seconds: float = 2) -> None:
        """Check that a TCP port accepts connections.

        Raises:
            ConnectionRefusedError: nothing listens on the port.
            OSError: the connection timed out, or there is no route.
        """
        socket.create_connection((address, port), seconds).close()

    def metadata(self, path: str, default: str | None = None) -> str:
        """Return a value of the instance metadata service, version 2.

        Args:
            path: the path after `/latest/`.
            default: the text to return if the service answers 404, i.e. has no such value; if None, the request is
                repeated until the time-out.

        Raises:
            BootError: the service does not answer.
        """
        base = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", METADATA).rstrip("/") + "/latest/"

        def request_text(path: str, method: str, header: str, value: str) -> str:
            request = urllib.request.Request(
                base + path, headers={"X-aws-ec2-metadata-" + header: value}, method=method
            )
            with urllib.request.urlopen(request, timeout=5) as response:
                return str(response.read().decode())

        def probe() -> str:
            token = request_text("api/token", "PUT", "token-ttl-seconds", "60")
            try:
                return request_text(path, "GET", "token", token)
            except urllib.error.HTTPError as error:
                error.close()
                if error.code == 404 and default is not None:
                    return default
                raise

        hint, retry_on = "check that the metadata service is enabled", (OSError, http.client.HTTPException)
        return self.wait("instance metadata", probe, hint, retry_on=retry_on)

    def aws(self, service: str, operation: str, *expected_errors: str, **arguments: Any) -> JsonObject:
        """Call an AWS API operation, retrying transient errors for a minute, and return its response.

        Args:
            service: boto3's name of the service, e.g. `ec2`.
            operation: boto3's method, e.g. `attach_volume`.
            expected_errors: error codes for which no exception is raised: the response is then
                `{"Error": {"Code": …, "Message": …}}`.
            arguments: the operation's parameters; `headers` are HTTP headers that old versions of botocore lack.

        Raises:
            BootError: AWS returns any other error, or is not reached within a minute.
        """
        # botocore is imported here, as an early step of the boot may have to install it.
        errors, headers = import_module("botocore.exceptions"), arguments.pop("headers", {})

        def add_headers(params: JsonObject, **_: Any) -> None:
            params["headers"].update(headers)

        def call(client: Client) -> JsonObject:
            client.meta.events.register("before-call", add_headers)  # this precedes the signature
            try:
                return dict(getattr(client, operation)(**arguments))
            finally:
                client.meta.events.unregister("before-call", add_headers)

        def probe() -> JsonObject:
            for argument in arguments.values():
                if hasattr(argument, "seek"):
                    argument.seek(0)  # rewind a file that an earlier attempt has read
            try:
                return call(self._client(service))
            except errors.ClientError as error:
                code = error.response["Error"]["Code"]
                if code in expected_errors:
                    return {"Error": error.response["Error"]}
                if TRANSIENT.search(code):
                    raise Pending(str(error)) from error
                raise BootError(str(error), "check that the resource exists") from error
            except errors.BotoCoreError as error:
                # A client that found no credentials when it was created never looks for them again.
                self._clients.clear()
                raise Pending(str(error)) from error

        hint = "check that the instance can reach AWS and that its role allows the call"
        return self.wait(operation, probe, hint, seconds=60)

    def _client(self, service: str) -> Client:
        if service not in self._clients:
            # The variable is set in tests only. It is passed explicitly, as older versions of boto3 do not read it.
            endpoint = os.environ.get("AWS_ENDPOINT_URL")
            config = import_module("botocore.config").Config(connect_timeout=5, read_timeout=30)
            boto3 = import_module("boto3")
            self._clients[service] = boto3.client(
                service, region_name=self.region, endpoint_url=endpoint, config=config
            )
        return self._clients[service]
