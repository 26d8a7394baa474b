"""Picks the lines that explain a failure out of a program's output.

kubeadm prints the causes above its advice. etcdctl and kubectl print them in log lines; apt, dnf and helm after a
prefix; and most other programs in a line that begins with the program's name. Advice and warnings are ignored.
"""

from __future__ import annotations

import re

NOISE = re.compile(r"To see |\[preflight\]|.*occurred:$|See |.*dmesg\(|[WI]\d{4} |W:|(?i:warn)|E: (Sub-|Unable to fe)")
# Pattern of what precedes a cause in a log line: klog's header (kubectl), or other fields of zap's JSON (etcdctl).
LOG = re.compile(r'E\d{4} .*?\] *|\{.*"error":')
CAUSE = re.compile(r"\[ERROR|\S+: |(?i:err|fatal|unable to conn|the connection)")


def reason(*outputs: str) -> str:
    """Return at most three lines that explain why a program failed, joined to one line of at most 900 characters.

    The first of them is the first line that states a cause (CAUSE). If no line does, they are the last three lines.

    Args:
        outputs: the program's standard error, then its standard output, which is read only if standard error is empty
            or has only lines that match NOISE.
    """
    for output in outputs:
        candidates = [line for line in map(str.strip, output.splitlines()) if line and not NOISE.match(line)]
        lines = list(dict.fromkeys(LOG.sub("error: ", line) for line in candidates))
        causes = [number for number, line in enumerate(lines) if CAUSE.match(line)]
        if lines:
            # The slice starts at the first cause or, without a cause, at the third line from the end.
            return " / ".join(lines[(causes or [-3])[0] :][:3])[:900]
    return "no output"
