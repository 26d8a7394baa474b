"""Rule against secrets in a template, which everyone who may read the stack can read."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar

from cfnlint.rules import CloudFormationLintRule, RuleMatch
from cfnlint.template import Template

if TYPE_CHECKING:
    from cfngen.templates import expressions
else:  # By its path, since cfn-lint may run in a Python without cfngen.
    expressions = SimpleNamespace(**run_path(str(Path(__file__).parents[2] / "templates" / "expressions.py")))

# Patterns of texts that are secrets wherever they occur, with the kind of secret. An access key id is the prefix AKIA
# (long-term) or ASIA (temporary) and 16 characters of base 32. Such a text in the middle of a longer Base64 text is a
# coincidence, so it does not match.
_SECRET_PATTERNS = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----")),
    ("an AWS access key", re.compile(r"(?<![A-Za-z0-9/+])A[KS]IA[A-Z2-7]{16}(?![A-Za-z0-9/+])")),
    ("a GitHub token", re.compile(r"(?<![A-Za-z0-9_])gh[pousr]_[A-Za-z0-9]{36}(?![A-Za-z0-9_])")),
)
# A text with fewer characters is not decoded as Base64.
_MIN_BASE64_LENGTH = 24
_SECRET_NAME_PATTERN = re.compile(
    r"(?i)(?:password|passphrase|secret|token|private_?key|secret_?key|api_?key|credentials)\Z"
)
_DYNAMIC_REFERENCE_PATTERN = re.compile(r"\{\{resolve:(?:secretsmanager|ssm-secure):[^}]+\}\}")


class PlainSecret(CloudFormationLintRule):  # type: ignore[misc]
    """A secret that can be read in the template.

    The rule finds a SecretString whose value is in the template, a parameter named like a secret that has a default or
    no NoEcho, and private keys, AWS access keys and GitHub tokens in any text, also inside Base64.
    """

    id = "E9014"
    shortdesc = "No secret in plain text"
    description = "Templates, parameters without NoEcho and user data can be read by everyone who may describe them"
    source_url = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/security-best-practices.html"
    tags: ClassVar = ["secrets"]

    def match(self, cfn: Template) -> Iterator[RuleMatch]:
        """Yield a match for every secret found."""
        for name, resource in cfn.get_resources("AWS::SecretsManager::Secret").items():
            value = resource.get("Properties", {}).get("SecretString")
            if value is not None and _is_readable_in_template(value):
                path = ["Resources", name, "Properties", "SecretString"]
                yield RuleMatch(path, "SecretString is written out; use GenerateSecretString or a NoEcho parameter")
        for name, parameter in cfn.template.get("Parameters", {}).items():
            if isinstance(parameter, Mapping) and _SECRET_NAME_PATTERN.search(name):
                yield from self._check_parameter(name, parameter)
        for section in ("Metadata", "Parameters", "Mappings", "Conditions", "Resources", "Outputs"):
            for path, text in _texts_with_paths(cfn.template.get(section), [section]):
                for secret_kind, pattern in _SECRET_PATTERNS:
                    if pattern.search(text) or pattern.search(_decode_base64(text)):
                        yield RuleMatch(path, f"this text holds {secret_kind}")

    def _check_parameter(self, name: str, parameter: Mapping[str, object]) -> Iterator[RuleMatch]:
        """Yield a match if a parameter for a secret has a default, and one if it lacks `NoEcho: true`."""
        path = ["Parameters", name]
        default = parameter.get("Default")
        if default not in (None, "") and not _DYNAMIC_REFERENCE_PATTERN.fullmatch(str(default)):
            yield RuleMatch([*path, "Default"], "a parameter for a secret must not have a default")
        if str(parameter.get("NoEcho", "")).lower() != "true":
            yield RuleMatch(path, "a parameter for a secret must have NoEcho: true, or everyone can read its value")


def _is_readable_in_template(value: object) -> bool:
    """Return whether the template contains the whole value as text, so that everyone can read it there."""
    parts = expressions.text_parts(value) if isinstance(value, (str, Mapping)) else [None]
    return any(parts) and not any(part is None or _DYNAMIC_REFERENCE_PATTERN.search(part) for part in parts)


def _texts_with_paths(value: object, path: list[str | int]) -> Iterator[tuple[list[str | int], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts_with_paths(item, [*path, key])
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts_with_paths(item, [*path, index])


def _decode_base64(text: str) -> str:
    """Return the decoded form of a text that is Base64; empty for any other text."""
    if len(text) < _MIN_BASE64_LENGTH or not text.isascii():
        return ""
    try:
        return base64.b64decode(text, validate=True).decode("latin-1")
    except (binascii.Error, ValueError):
        return ""
