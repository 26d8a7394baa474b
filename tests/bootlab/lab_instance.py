"""One instance: a Debian of its own under systemd-nspawn, with systemd, cloud-init and one network interface."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lab_real
from lab_leftovers import remove_groups
from lab_network import Network, command

REBOOT = 133  # systemd-nspawn's exit code when the container wants to boot again (systemd-nspawn(1), --keep-unit)
# Before the container: control groups of its own, a /sys of its namespace (nspawn looks for the interface there; read
# only, so that it does not wait for udev's word on it).
LAUNCH = r"""
set -e
group=$1; shift
while IFS=: read -r _ controllers path; do
    case $controllers in
        "") folder=/sys/fs/cgroup/unified; [ -d $folder ] || folder=/sys/fs/cgroup ;;
        name=*) folder=/sys/fs/cgroup/${controllers#name=} ;;
        *) folder=/sys/fs/cgroup/$controllers ;;
    esac
    [ -d "$folder$path" ] || path=
    [ -e "$folder$path/cgroup.procs" ] || continue
    mkdir -p "$folder$path/$group"
    for name in cpuset.cpus cpuset.mems; do
        [ ! -e "$folder$path/$group/$name" ] || cat "$folder$path/$name" > "$folder$path/$group/$name"
    done
    echo $$ > "$folder$path/$group/cgroup.procs"
done < /proc/self/cgroup
saved=$(mktemp -d)
mount --rbind /sys/fs/cgroup "$saved"
mount -t sysfs sysfs /sys
mount --rbind "$saved" /sys/fs/cgroup
umount -l "$saved"
rmdir "$saved"
mount -o remount,bind,ro /sys
exec "$@"
"""


class Instance:
    """An instance of EC2, from its launch to its end.

    Args:
        identifier: its id.
        folder: for its file system.
        root: the file system that it starts with, which stays as it is.
        network: where its interface is.
        number: unique in the network.
        said: told of all that it has written to its console, whenever it writes.

    Attributes:
        boots: how often it has booted.
        console: all that it has written to its console.
        address: its private one, once it has begun to boot.
        fault: what went wrong in the lab itself.
        identity: what the metadata service says of it, but for its address.
        spoke: when the boot program first said something, on the monotonic clock; 0 before.
    """

    def __init__(
        self, identifier: str, folder: Path, root: Path, network: Network, number: int, said: Callable[[str], None]
    ) -> None:
        self.id = identifier
        self.name = f"{network.name}-{number}"
        self.number = number
        self.boots = 0
        self.console = ""
        self.spoke = 0.0
        self.identity: dict[str, Any] = {}
        self.address = self.fault = ""
        self._library = Path()
        self._containers = False
        self._folder, self._root, self._network, self._said = folder / identifier, root, network, said
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._stack = contextlib.ExitStack()
        self._ended = threading.Event()

    @property
    def path(self) -> Path:
        """Its file system, as seen from outside."""
        return self._folder / "root"

    def mount(self, library: Path, *, containers: bool = False) -> None:
        """Make its file system: the common one, and what it writes above it.

        Args:
            library: a folder that it sees as /usr/lib/bootlab.
            containers: whether real containers are to run.
        """
        self._library, self._containers = library, containers
        for name in ("root", "upper", "work"):
            (self._folder / name).mkdir(parents=True)
        options = f"lowerdir={self._root},upperdir={self._folder}/upper,workdir={self._folder}/work"
        command("mount", "-t", "overlay", "overlay", "-o", options, self.path)
        if containers and lab_real.old_groups():
            for path, (text, mode) in lab_real.files().items():
                file = self.path / path.lstrip("/")
                file.write_text(text)
                file.chmod(mode)
            wants = self.path / "etc/systemd/system/sysinit.target.wants"
            wants.mkdir(exist_ok=True)
            (wants / Path(lab_real.UNIT).name).symlink_to(lab_real.UNIT)

    def start(self, address: str, known: Callable[[str], None]) -> None:
        """Boot, and again whenever it wants to.

        Args:
            address: its private one.
            known: told of the hardware address of its interface, before it boots.
        """
        rack, mac = self._stack.enter_context(self._network.wire(self.number, address))
        self.address = address
        known(mac)
        self._boot(rack)
        self._thread = threading.Thread(target=self._attend, args=(address,), daemon=True)
        self._thread.start()
        return mac

    def _boot(self, rack: str) -> None:
        self.boots += 1
        ours, theirs = pty.openpty()
        options = (
            "--quiet", "--register=no", "--keep-unit", "--settings=no", "--link-journal=no", "--resolv-conf=off",
            "--timezone=off", "--console=read-only", "--network-interface=ens5", "--capability=all",
            "--system-call-filter=@known @keyring bpf", f"--machine={self.name}", f"--directory={self.path}",
            f"--bind={self._library}:/usr/lib/bootlab", *(["--bind=/dev/kmsg"] if self._containers else []), "--boot",
        )  # fmt: skip
        launch = ("sh", "-c", LAUNCH, "launch", self.name)
        enter = ("nsenter", f"--net={rack}", "unshare", "--mount", "--propagation", "private")
        environment = {**os.environ, "SYSTEMD_LOG_LEVEL": "warning"}
        self._process = subprocess.Popen(
            [*enter, *launch, "systemd-nspawn", *options],
            stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        threading.Thread(target=self._listen, args=(ours,), daemon=True).start()

    def _listen(self, console: int) -> None:
        """Read the console until nobody can write to it any more."""
        with contextlib.suppress(OSError), os.fdopen(console, "rb", buffering=0) as file:
            while text := file.read(4096):
                self.console += text.decode(errors="replace")
                if not self.spoke and "cfngen: " in self.console:
                    self.spoke = time.monotonic()
                self._said(self.console)

    def _attend(self, address: str) -> None:
        try:
            self._follow(address)
        except (RuntimeError, OSError) as error:
            self.fault = f"{self.id}: {error}"

    def _follow(self, address: str) -> None:
        """Boot again after a reboot, until it ends for good."""
        while True:
            assert self._process
            code = self._process.wait()
            if code != REBOOT or self._ended.is_set():
                return
            # The interface went with the container's namespace.
            self._stack.close()
            rack, _ = self._stack.enter_context(self._network.wire(self.number, address))
            self._boot(rack)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def leader(self) -> int:
        """Process id of its first process; 0 before there is one."""
        if not self._process or self._process.poll() is not None:
            return 0
        # nspawn's child, whose own namespaces are the container's.
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        own = Path("/proc/self/ns/pid").readlink()
        for child in children.read_text().split() if children.exists() else ():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{child}/ns/pid").readlink() != own:
                    return int(child)
        return 0

    def run(self, *words: str, stdin: str = "", check: bool = True) -> str:
        """Run a program within the instance and return what it printed."""
        leader = self.leader
        if not leader:
            raise RuntimeError(f"{self.id} does not run")
        enter = ("nsenter", "-t", str(leader), "--mount", "--uts", "--ipc", "--net", "--pid")
        path = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
        done = subprocess.run([*enter, *words], input=stdin, capture_output=True, text=True, env=path, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{self.id}: {' '.join(words)}: exit code {done.returncode}: {done.stderr}")
        return done.stdout

    def read(self, path: str) -> str:
        """Return one of its files, or nothing."""
        file = self.path / path.lstrip("/")
        return file.read_text() if file.exists() else ""

    @property
    def lines(self) -> list[str]:
        """What the boot program has said on the console, without escapes and time stamps."""
        return self._lines("cfngen: ")

    @property
    def booted(self) -> bool:
        """Whether the boot program has come to its end, which is after its signal."""
        return any(line.startswith("done in") for line in self.lines)

    def task_lines(self, task: str) -> list[str]:
        """Return what a task of the boot program has said on the console, e.g. that of its service `drain`."""
        return self._lines(f"cfngen-{task}: ")

    def _lines(self, prefix: str) -> list[str]:
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.console)
        return [line.partition(prefix)[2].strip() for line in text.splitlines() if prefix in line]

    def reboot(self) -> None:
        """Ask it to boot again."""
        self.run("systemctl", "reboot", "--no-block")

    def destroy(self) -> None:
        """End it as EC2 ends a failed machine: at once, with no word to anybody."""
        self._ended.set()
        leader = self.leader
        if leader:
            with contextlib.suppress(ProcessLookupError):
                os.kill(leader, signal.SIGKILL)
        if self._process:
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._thread:
            self._thread.join(10)
        self._stack.close()
        remove_groups(self.name)

    def discard(self) -> None:
        """Remove its file system."""
        subprocess.run(["umount", "--lazy", self.path], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--one-file-system", self._folder], check=False)
