"""What the instance's programs take: an option that they do not have, or a command that no test scripts, ends the test.

`kubectl get --ignore-notfound` exits with an error on an instance, and should not pass here because a test's pattern
looks at the beginning of the command alone.
"""

from __future__ import annotations

import functools
import re

# Those that the boot program may use, from the programs' references:
# https://kubernetes.io/docs/reference/kubectl/generated/, https://kubernetes.io/docs/reference/setup-tools/kubeadm/,
# https://helm.sh/docs/helm/, https://etcd.io/docs/v3.6/op-guide/, ctr(8), blkid(8), journalctl(1), openssl-x509(1),
# openssl-pkey(1).
OPTIONS = {
    "kubectl": {
        *("--kubeconfig", "--request-timeout", "--server", "--namespace", "-n", "--all-namespaces", "-l", "-o", "-f"),
        *("--raw", "--field-selector", "--ignore-not-found", "--wait", "-p"),
        *("--server-side", "--force-conflicts", "--field-manager"),
    },
    "kubeadm": {"--config", "--skip-token-print", "-o"},
    "helm": {
        *("--kubeconfig", "--namespace", "--install", "--create-namespace", "--values", "--skip-crds", "--timeout"),
        *("--force-conflicts", "--history-max", "--hide-notes", "--ignore-not-found"),
    },
    "etcdctl": {
        *("--endpoints", "--cacert", "--cert", "--key", "--dial-timeout", "--command-timeout", "--write-out"),
        *("--learner", "--peer-urls"),
    },
    "etcdutl": {
        *("--write-out", "--data-dir", "--name", "--initial-cluster", "--initial-cluster-token"),
        *("--initial-advertise-peer-urls", "--bump-revision", "--mark-compacted"),
    },
    "ctr": {"-n", "-q", "-d"},
    "blkid": {"-p", "-o", "-c", "-L"},
    "journalctl": {"-u", "-o", "--no-pager", "-n"},
    "openssl": {"-noout", "-in", "-pubkey", "-ext", "-checkend", "-pubout", "-passin"},
}

WORD, PATH = r"[\w@*.][\w@*.:=+-]*", r"/[\w/.*+@-]+"
# Commands that say nothing when they succeed: whole ones, since one with a misspelt option is another command.
QUIET = re.compile(
    "|".join(
        (
            "systemctl daemon-reload",
            rf"systemctl (start|start --no-block|stop|restart|try-restart|mask|enable|enable --now)( {WORD})+",
            rf"mkdir -p (-m [0-7]{{3}} )?{PATH}",
            rf"(cp -a|mv) {PATH} {PATH}",
            rf"chmod [0-7]{{3,4}} {PATH}",
            rf"mount (-o noatime (LABEL=[\w-]+|{PATH})|--bind {PATH}) {PATH}",
            rf"umount {PATH}",
            rf"/bin/bash {PATH}",
            "modprobe -a( [a-z_]+)+",
            rf"sysctl -e -p {PATH}",
            "swapoff -a",
            "udevadm (settle|control --reload-rules)",
            r"dd if=/dev/\w+ of=/dev/null bs=1M count=1",
            r"(e2fsck -p|resize2fs) /dev/\w+",
            r"mkfs\.ext4 -q (-F )?-m 0 (-E nodiscard )?-L [\w-]+ /dev/[\w/]+",
            r"mdadm (--assemble --scan|--stop /dev/md/\w+)",
            r"wipefs -a -q( /dev/\w+)+",
            rf"tar -xzf {PATH} -C {PATH} --no-same-owner( {WORD})*",
            "dpkg --configure -a",
            rf"apt-get -y -o {WORD} -o {WORD} --no-install-recommends (update|install( [a-z0-9.+-]+)+)",
            r"dnf -y install( [a-z0-9.+-]+)+",
        )
    )
)


@functools.lru_cache(maxsize=1 << 14)
def unknown_options(command: tuple[str, ...]) -> set[str]:
    """Return the options of a command that its program does not have."""
    known = OPTIONS.get(command[0])
    if known is None:
        return set()
    # A lone dash is standard input, and what follows -p of `kubectl patch` is no option.
    options = {word.partition("=")[0] for word in command[1:] if re.match(r"-{1,2}[a-z]", word)}
    return options - known
