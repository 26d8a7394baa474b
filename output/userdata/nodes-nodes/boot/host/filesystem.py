"""Repairs an ext4 file system before it is mounted, as far as that is safe without an operator.

systemd runs `fsck` only for the entries of /etc/fstab at boot; the boot program mounts its volumes itself.
"""

from __future__ import annotations

from ..machine import BootError, Machine
from ..reasons import reason

# e2fsck(8): 1 and 2 are errors that were corrected, 4 is errors left, 8 is that it could not work: it may be older than
# the file system, which the kernel may mount all the same.
CLEAN, ERRORS_LEFT, FAILED = 0, 4, 8


def check(machine: Machine, device: str, hint: str) -> None:
    """Replay the journal and correct errors that are safe to correct.

    Args:
        machine: the instance.
        device: the disk, which is not mounted.
        hint: what an operator should do if errors are left.

    Raises:
        BootError: errors are left.
    """
    code, text = machine.run("e2fsck", "-p", device, expect=tuple(range(16)), timeout=6 * 3600)
    if code & ERRORS_LEFT:
        raise BootError(f"the file system of {device} has errors that are not safe to correct: {reason(text)}", hint)
    if code & FAILED:
        machine.say(f"the file system of {device} could not be checked: {reason(text)}")
    elif code != CLEAN:
        machine.say(f"the file system of {device} was repaired")
