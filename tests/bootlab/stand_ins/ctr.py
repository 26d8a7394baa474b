"""ctr: the plug-ins that the kubelet needs are loaded; the containers are those that the kubelet's stand-in runs."""

import os
import subprocess
import sys

from stand_ins import calls
from stand_ins.kubelet import known_units, unit

PLUGINS = """\
TYPE                    ID         PLATFORMS      STATUS
io.containerd.cri.v1    images     -              ok
io.containerd.cri.v1    runtime    linux/amd64    ok
io.containerd.grpc.v1   cri        -              ok
"""


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
    else:
        calls.refuse(f"ctr: the stand-in knows no {' '.join(words)}")


if __name__ == "__main__":
    main(sys.argv[1:])
