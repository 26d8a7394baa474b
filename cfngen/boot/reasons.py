"""Which of all the lines that a failed program said tell why it failed.

Programs differ: kubeadm names its causes above its advice, etcdctl and kubectl in the lines of a log, apt, dnf and helm
after a mark, and most others in a line that begins with their name. Advice and warnings tell nothing.
"""

from __future__ import annotations

import re

# Lines that say nothing about a cause.
NOISE = re.compile(r"To see |\[preflight\]|.*occurred:$|See |.*dmesg\(|[WI]\d{4} |W:|(?i:warn)|E: (Sub-|Unable to fe)")
# What stands before a cause in a line of a log: klog's head (kubectl), zap's other fields (etcdctl).
LOG = re.compile(r'E\d{4} .*?\] *|\{.*"error":')
CAUSE = re.compile(r"\[ERROR|\S+: |(?i:err|fatal|unable to conn|the connection)")


def reason(*outputs: str) -> str:
    """Return the lines that say why a program failed, at most three, in one.

    Args:
        outputs: what it said on standard error and on standard output; the latter counts if the former says nothing.
    """
    for output in outputs:
        candidates = [line for line in map(str.strip, output.splitlines()) if line and not NOISE.match(line)]
        lines = list(dict.fromkeys(LOG.sub("error: ", line) for line in candidates))
        causes = [number for number, line in enumerate(lines) if CAUSE.match(line)]
        if lines:
            return " / ".join(lines[(causes or [-3])[0] :][:3])[:900]
    return "it said nothing"
