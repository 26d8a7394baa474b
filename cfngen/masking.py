"""Leaves out of a text what is secret in it: passwords of URLs, private keys, session tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "…"
_SECRETS = re.compile(
    r"(?P<start>://[^\s/:@]*:)[^\s@]+(?P<end>@)"  # the password of a URL
    r"|(?P<begin>-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?P<rest>-----END [A-Z ]*PRIVATE KEY-----|$)"
    # AWS repeats what was signed, headers and all, where the signature is wrong (SignatureDoesNotMatch).
    r"|(?P<header>x-amz-security-token[:=]\s*)[^\s&]+",
    re.DOTALL | re.IGNORECASE,
)
_VARIABLES = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")
_MIN_LENGTH = 16  # of a value that is masked; a shorter one is none of AWS, and may be a word


def mask_secrets(text: str, environ: Mapping[str, str] | None = None) -> str:
    """Return a text in which an ellipsis stands for each secret.

    Args:
        environ: environment variables; the credentials of AWS in them are secret too.
    """
    for value in ((environ or {}).get(name, "") for name in _VARIABLES):
        if len(value) >= _MIN_LENGTH:
            text = text.replace(value, MASK)
    return _SECRETS.sub(_masked, text)


def _masked(match: re.Match[str]) -> str:
    before = match["start"] or match["begin"] or match["header"]
    return f"{before}{MASK}{match['end'] or match['rest'] or ''}"
