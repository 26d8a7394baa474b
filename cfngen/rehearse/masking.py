"""Takes out of a text what tells whose account it comes from; the same thing gets the same name everywhere.

What is masked: account numbers, ARNs, ids of resources, addresses, URLs, keys and tokens, e-mail addresses, host names,
names that CloudFormation or S3 made up, and the names that are known beforehand, such as the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_URL = r"\bhttps?://[^\s\"'<>]+"
_ARN = r"\barn:aws[a-z-]*:(?P<service>[a-z0-9-]*):[^\s\"'<>,;)\]]*"
_MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_HOST = r"\b(?:[a-z0-9-]+\.)+(?:amazonaws\.com(?:\.cn)?|compute\.internal|ec2\.internal|amazonaws\.eu)\b"
_UUID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
_ID = r"\b(?P<kind>[a-z]{1,12}(?:-[a-z]{2,8})?)-(?:[0-9a-f]{17}|[0-9a-f]{8})\b"
_IPV6 = r"(?<![\w:])(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4})+(?![\w:])"
_IPV4 = r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)"
_ACCESS_KEY = r"\b(?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA)[A-Z0-9]{12,}\b"
_ACCOUNT = r"(?<![\w.])\d{12}(?![\w.]*\d)"
# A name of CloudFormation's making ends in twelve characters or more; so do the digests in launch templates' names.
_GENERATED = (
    r"\b[A-Za-z][\w]*(?:-[A-Za-z0-9]+)*-(?=[A-Za-z0-9]*\d)(?:[A-Z0-9]{12,13}|[A-Za-z0-9]{12}|[a-z0-9]{12,13})\b"
)
# Whatever else is long and without a sense: encoded messages of EC2, ids of requests, signatures.
_TOKEN = (
    r"(?<![\w/+=-])(?=[\w/+=-]*\d)(?=[\w/+=-]*[A-Za-z])[A-Za-z0-9/+=_-]{24,}(?![\w/+=-])|\b(?=[A-Z]*\d)[A-Z0-9]{16}\b"
)

_RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("url", re.compile(_URL)),
    ("arn", re.compile(_ARN)),
    ("mail", re.compile(_MAIL)),
    ("host", re.compile(_HOST)),
    ("uuid", re.compile(_UUID, re.IGNORECASE)),
    ("id", re.compile(_ID)),
    ("access-key", re.compile(_ACCESS_KEY)),
    ("account", re.compile(_ACCOUNT)),
    ("ip", re.compile(_IPV4)),
    ("ip", re.compile(_IPV6, re.IGNORECASE)),
    ("name", re.compile(_GENERATED)),
    ("token", re.compile(_TOKEN)),
)
_MASKED = re.compile(r"<[a-z0-9-]+>")
_NUMBERED = re.compile(r"<([a-z0-9-]+?)-\d+>")


class Masks:
    """The masks of one report.

    Args:
        names: further texts that must not appear, such as the caller's name; empty ones and those of fewer than three
            characters are passed over, since they would be found everywhere.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._known: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        texts = sorted({name for name in names if len(name) > 2}, key=len, reverse=True)
        self._names = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in texts)) if texts else None

    def __call__(self, text: str) -> str:
        """Return the text with its masks; what is masked already stays."""
        for kind, pattern in (*_RULES[:2], *([("name", self._names)] if self._names else []), *_RULES[2:]):
            parts = _MASKED.split(text)
            masks = _MASKED.findall(text)
            parts = [pattern.sub(lambda match, kind=kind: self._mask(kind, match), part) for part in parts]
            text = "".join(part + mask for part, mask in zip(parts, [*masks, ""], strict=True))
        return text

    def _mask(self, kind: str, match: re.Match[str]) -> str:
        # An id or an ARN says of what it is one: that is worth knowing, and nobody's secret.
        groups = match.groupdict()
        label = groups.get("kind") or (f"arn-{groups['service']}" if groups.get("service") else kind)
        key = (label, match[0])
        if key not in self._known:
            self._counts[label] = self._counts.get(label, 0) + 1
            self._known[key] = f"<{label}-{self._counts[label]}>"
        return self._known[key]


def shape(text: str) -> str:
    """Return a masked text without what differs from run to run: the numbers of masks, and all other numbers."""
    return re.sub(r"\d+", "#", _NUMBERED.sub(r"<\1>", text))
