"""ctr: the plug-ins that the kubelet needs are loaded; the containers are those that the kubelet's stand-in runs.

Of images there are names alone; those of hosts below `.invalid`, which no name server knows (RFC 6761), are not pulled.
"""

import os
import subprocess
import sys
import time

from stand_ins import calls
from stand_ins.kubelet import known_units, unit

PLUGINS = """\
TYPE                    ID         PLATFORMS      STATUS
io.containerd.cri.v1    images     -              ok
io.containerd.cri.v1    runtime    linux/amd64    ok
io.containerd.grpc.v1   cri        -              ok
"""


IMAGES = "/var/lib/containerd/bootlab-images"
# What looking for the host's address may take.
SECONDS = 1.0


def known_images():
    if not os.path.exists(IMAGES):
        return []
    with open(IMAGES) as file:
        return file.read().splitlines()


def pull(words):
    """`images pull` with a folder of mirrors and a snapshotter, as the boot program gives them."""
    *options, name = words
    if options[::2] != ["--hosts-dir", "--snapshotter"]:
        calls.refuse(f"ctr: the stand-in pulls with a folder of hosts and a snapshotter only, not with {options}")
    host, _, rest = name.partition("/")
    if host.endswith(".invalid"):
        time.sleep(SECONDS)
        url = f"https://{host}/v2/{rest.rpartition(':')[0]}/manifests/{rest.rpartition(':')[2]}"
        reason = f'failed to do request: Head "{url}": dial tcp: lookup {host}: no such host'
        calls.refuse(f'ctr: failed to resolve reference "{name}": {reason}')
    os.makedirs(os.path.dirname(IMAGES), exist_ok=True)
    with open(IMAGES, "a") as file:
        file.write(name + "\n")


def running():
    return [
        name
        for name in sorted(known_units())
        if not subprocess.run(["systemctl", "is-active", "-q", unit(name)]).returncode
    ]


def main(arguments):
    calls.record("ctr", arguments)
    if not os.path.exists("/run/containerd/containerd.sock"):
        calls.refuse("ctr: cannot access socket /run/containerd/containerd.sock: no such file or directory")
    words = arguments[2:] if arguments[:1] == ["-n"] else arguments
    if words == ["plugins", "ls"]:
        sys.stdout.write(PLUGINS)
    elif words[:3] == ["containers", "ls", "-q"]:
        # The filter names a pod by the beginning of its name.
        sys.stdout.writelines(name + "\n" for name in running() if f'"^{name}-"' in words[3])
    elif words == ["tasks", "ls"]:
        sys.stdout.write("TASK    PID    STATUS\n")
        sys.stdout.writelines(f"{name}    1    RUNNING\n" for name in running())
    elif words[:3] == ["images", "ls", "-q"]:
        sys.stdout.writelines(name + "\n" for name in known_images() if words[3] == f"name=={name}")
    elif words[:2] == ["images", "pull"]:
        pull(words[2:])
    else:
        calls.refuse(f"ctr: the stand-in knows no {' '.join(words)}")


if __name__ == "__main__":
    main(sys.argv[1:])
