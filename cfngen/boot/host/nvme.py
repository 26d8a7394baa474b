"""Prints the device name in EC2 of the EBS volume behind an NVMe disk: `python3 -m boot.host.nvme /dev/nvme1n1`.

On Nitro instances the kernel numbers disks as it finds them. The name from the launch template, e.g. `/dev/sdf`, is in
the answer to the NVMe command Identify ("Map EBS volumes to NVMe device names", Amazon EBS User Guide). The program
reads it as ebsnvme-id of amazon-ec2-utils does, which Debian's and Ubuntu's images lack.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import struct
import sys

# `NVME_IOCTL_ADMIN_CMD` of linux/nvme_ioctl.h: _IOWR('N', 0x41, struct nvme_admin_cmd), with the fields of that struct:
# opcode, flags, two reserved bytes, namespace, two reserved words, addresses of metadata and data, their lengths, six
# words of the command, time-out and result.
ADMIN_COMMAND = 0xC0484E41
COMMAND_FORMAT = "=BBHIIIQQII6III"
IDENTIFY = 0x06
IDENTIFY_NAMESPACE, IDENTIFY_CONTROLLER = 0, 1
DATA_LENGTH = 4096
# Where the vendor-specific part of the data begins (NVM Express Base Specification, Identify), and the length of the
# name at its beginning. Amazon documents that of the controller; like ebsnvme-id, the namespace is asked before.
NAME_OFFSETS = {IDENTIFY_NAMESPACE: 384, IDENTIFY_CONTROLLER: 3072}
NAME_LENGTH = 32
COMMAND = ("/usr/bin/python3", "-m", "boot.host.nvme")
"""The command that runs this module; the boot program's working directory is that of its package."""


def device_name(data: bytes, structure: int) -> str:
    """Return the device name in the answer to Identify as `/dev/sdf`, or "" if there is none.

    Args:
        data: the answer.
    """
    offset = NAME_OFFSETS[structure]
    name = data[offset : offset + NAME_LENGTH].decode("ascii", "replace").strip(" \0")
    # The name may be without `/dev/`.
    return "/dev/" + name.replace("/dev/", "", 1) if name else ""


def identify(disk: str, structure: int) -> bytes:
    """Return the answer of a disk to the NVMe command Identify.

    Raises:
        OSError: the disk cannot be opened, or refuses the command.
    """
    namespaces = re.findall(r"\d+", disk)  # e.g. 1 and 1 of /dev/nvme1n1
    namespace = int(namespaces[1]) if structure == IDENTIFY_NAMESPACE else 0
    data = ctypes.create_string_buffer(DATA_LENGTH)
    command = struct.pack(
        COMMAND_FORMAT,
        *(IDENTIFY, 0, 0, namespace, 0, 0),
        *(0, ctypes.addressof(data), 0, DATA_LENGTH),
        *(structure, 0, 0, 0, 0, 0, 0, 0),
    )
    descriptor = os.open(disk, os.O_RDONLY)
    try:
        status = fcntl.ioctl(descriptor, ADMIN_COMMAND, bytearray(command))
    finally:
        os.close(descriptor)
    if status:
        raise OSError(f"{disk} refused the NVMe command Identify with status {status:#x}")
    return data.raw


def main(disk: str) -> None:
    """Print the device name of a disk; an empty line if it has none."""
    names = (device_name(identify(disk, structure), structure) for structure in NAME_OFFSETS)
    sys.stdout.write(next(filter(None, names), "") + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
