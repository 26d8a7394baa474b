"""Repairs an ext4 file system before it is mounted, as far as that is safe without an operator.

systemd runs `fsck` only for the entries of /etc/fstab at boot; the boot program mounts its volumes itself.
"""

from __future__ import annotations

from ..machine import BootError, Machine
from ..reasons import reason

# Exit codes of e2fsck(8) are sums of these: 1 and 2 (errors were corrected), 4 (errors are left) and 8 (e2fsck could
# not check the file system). After 8 the boot continues, as e2fsck may be too old for a file system that the kernel can
# mount.
CLEAN, ERRORS_LEFT, FAILED = 0, 4, 8


def check(machine: Machine, device: str, hint: str) -> None:
    """Run `e2fsck -p`, which replays the journal and corrects only errors that are safe to correct.

    Args:
        hint: what an operator should do if errors are left.

    Raises:
        BootError: e2fsck found errors that it does not correct by itself.
    """
    code, text = machine.run("e2fsck", "-p", device, expect=tuple(range(16)), timeout=6 * 3600)
    if code & ERRORS_LEFT:
        raise BootError(f"the file system of {device} has errors that are not safe to correct: {reason(text)}", hint)
    if code & FAILED:
        machine.say(f"the file system of {device} could not be checked: {reason(text)}")
    elif code != CLEAN:
        machine.say(f"the file system of {device} was repaired")
