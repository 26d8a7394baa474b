"""The file system that instances start with: Debian as its cloud images are, made once by mmdebstrap.

The packages come from where this machine's own come from. What differs from an image on EC2: no kernel and no boot
loader; cloud-init is told that the firmware is Amazon's, as it does not ask in a container; AWS is at another address.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from lab_network import METADATA, SERVICES, command

CACHE = "CFNGEN_BOOTLAB_CACHE"
DEFAULT = "/var/cache/cfngen-bootlab"
API_PORT = 5000
PACKAGES = [
    "systemd",
    "systemd-sysv",
    "udev",
    "dbus",
    "cloud-init",
    "isc-dhcp-client",
    "netplan.io",
    "systemd-resolved",
    "libnss-resolve",
    "iproute2",
    "iptables",
    "e2fsprogs",
    "util-linux",
    "openssl",
    "ca-certificates",
    "python3-boto3",
    "python3-cryptography",
    "procps",
    "kmod",
    "conntrack",
    "ethtool",
    "socat",
    "curl",
    "less",
    "xz-utils",
    "mdadm",
]
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Read by cloud-init instead of the firmware's tables, which a container does not have.
FIRMWARE = '''

def read_dmi_data(key):
    """What an instance of EC2 says of itself."""
    uuid = "ec2a1b2c-3d4e-5f60-7182-93a4b5c6d7e8"
    return {
        "system-uuid": uuid, "system-serial-number": uuid, "system-product-name": "t3.medium",
        "system-manufacturer": "Amazon EC2", "chassis-asset-tag": "Amazon EC2", "baseboard-asset-tag": "i-0",
    }.get(key)
'''
FILES = {
    "etc/cloud/cloud.cfg.d/90-ec2.cfg": "datasource_list: [ Ec2 ]\n"
    # Looking for the service's other names by broadcast takes five seconds.
    f"datasource: {{ Ec2: {{ metadata_urls: [ 'http://{METADATA}' ] }} }}\n",
    # Neither locales nor SSH nor users are a part of the test.
    "etc/cloud/cloud.cfg.d/91-lab.cfg": "locale: false\nssh_genkeytypes: []\nusers: []\nno_ssh_fingerprints: true\n",
    "etc/systemd/resolved.conf.d/broadcast.conf": "[Resolve]\nLLMNR=no\nMulticastDNS=no\n",
    # boto3 on an instance finds AWS at this address; a real one finds it by name.
    "etc/systemd/system.conf.d/aws.conf": f"[Manager]\nDefaultEnvironment=AWS_ENDPOINT_URL=http://{SERVICES}:{API_PORT}\n",
    # netplan knows an interface by its permanent address, which a veth interface does not have; and nobody here waits
    # for IPv6 to find out whether an address is taken.
    "etc/systemd/network/10-netplan-ens5.network.d/veth.conf": "[Match]\nPermanentMACAddress=\n"
    "[Network]\nLinkLocalAddressing=no\n",
    # What would keep instances busy and is not what is tested.
    "etc/systemd/journald.conf.d/size.conf": "[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n",
}
MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer",
          "dpkg-db-backup.timer", "getty@.service", "console-getty.service",
          "mdmonitor.service", "mdcheck_start.timer", "mdcheck_continue.timer", "mdmonitor-oneshot.timer")  # fmt: skip


def codename() -> str:
    """Return the name of this machine's Debian release."""
    found = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    return found[1] if found else ""


def sources() -> str:
    """Return this machine's own sources of Debian's packages, one a line; those of others are left out."""
    suites = {codename() + suffix for suffix in ("", "-updates", "-security")}
    found = []
    listed = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*.list")]
    for file in filter(Path.exists, listed):
        for line in file.read_text().splitlines():
            words = re.sub(r"\[.*?\]", "", line).split()
            if words[:1] == ["deb"] and words[2] in suites:
                found.append(f"deb [signed-by={KEYRING}] {words[1]} {words[2]} main")
    for file in Path("/etc/apt/sources.list.d").glob("*.sources"):
        for stanza in re.split(r"\n\s*\n", file.read_text()):
            fields = dict(re.findall(r"^([\w-]+):\s*(.*)$", stanza, re.MULTILINE))
            uris, named = fields.get("URIs", "").split(), fields.get("Suites", "").split()
            found += [
                f"deb [signed-by={KEYRING}] {uri} {each} main" for uri in uris for each in named if each in suites
            ]
    return "\n".join([*dict.fromkeys(found), ""])


def cache() -> Path:
    """Return the folder in which all that is made once is kept."""
    path = Path(os.environ.get(CACHE, DEFAULT))
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Keep others from making the same thing at the same time."""
    with (cache() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def root() -> Path:
    """Return the file system's folder; the first call makes it, which takes a minute."""
    recipe = repr((codename(), PACKAGES, FIRMWARE, FILES, MASKED))
    path = cache() / f"root-{codename()}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    with locked("root"):
        if not path.exists():
            partial = path.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            origin = cache() / "sources.list"
            origin.write_text(sources())
            include = "--include=" + ",".join(PACKAGES)
            command("mmdebstrap", "--mode=root", "--variant=minbase", include, codename(), partial, origin)
            _furnish(partial)
            for old in cache().glob("root-*"):
                if old != partial:
                    shutil.rmtree(old)
            partial.rename(path)
    return path


def _furnish(path: Path) -> None:
    for name, text in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    with (path / "usr/lib/python3/dist-packages/cloudinit/dmi.py").open("a") as file:
        file.write(FIRMWARE)
    for unit in MASKED:
        (path / "etc/systemd/system" / unit).symlink_to("/dev/null")
    (path / "etc/machine-id").write_text("")
    (path / "etc/hostname").unlink(missing_ok=True)
    # Where the instance's own systemd-resolved is asked, as on Debian's images.
    resolver = path / "etc/resolv.conf"
    resolver.unlink(missing_ok=True)
    resolver.symlink_to("../run/systemd/resolve/stub-resolv.conf")
