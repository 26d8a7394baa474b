"""Which of all the lines that a failed program said tell why it failed.

Programs differ: kubeadm names its causes above its advice, etcdctl and kubectl in the lines of a log, apt, dnf and helm
after a mark, and most others in a line that begins with their name. Advice, banners and warnings tell nothing.
"""

from __future__ import annotations

import re

# Lines that say nothing about a cause.
NOISE = re.compile(
    r"To see |\[preflight\]|.*occurred:$|See |.*dmesg\(|\S*2fs(ck)? \d|[WI]\d{4} |W:|(?i:warn)|"
    r"E: (Sub-|Unable to fe)|tar: .*(status|exit)"
)
# What stands before a cause in a line of a log: klog's head (kubectl), zap's other fields (etcdctl).
LOG = re.compile(r'E\d{4} .*?\] *|\{.*"error":')
CAUSE = re.compile(r"\[ERROR|E:|(?i:err|fatal|dpkg: err|unable to conn|the connection)")


def reason(program: str, *outputs: str) -> str:
    """Return the lines that say why a program failed, at most three, in one.

    Args:
        program: its name.
        outputs: what it said on standard error and on standard output; the latter counts if the former says nothing.
    """
    for output in outputs:
        lines = [LOG.sub("error: ", line.strip(), 1) for line in output.splitlines() if not NOISE.match(line.strip())]
        lines = list(dict.fromkeys(filter(None, lines)))
        marked = [at for at, line in enumerate(lines) if CAUSE.match(line) or line.startswith(program + ":")]
        if lines:
            return " / ".join(lines[(marked or [-3])[0] :][:3])[:900]
    return "it said nothing"
