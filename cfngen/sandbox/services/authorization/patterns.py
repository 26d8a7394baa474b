"""Patterns of policies: wildcards, and policy variables that the context of the request fills in.

IAM User Guide:

- "IAM policy elements: Variables and tags": only version 2012-10-17 of the language has variables; names are not
  case-sensitive; a key with several values is no variable; `${*}`, `${?}` and `${$}` stand for these characters.
- "IAM JSON policy elements: Resource": `*` stands for any characters, `?` for one, within a segment of an ARN; an
  asterisk at the end of a segment also matches beyond its colon; variables stand after the fifth colon only.
- "IAM JSON policy elements: Condition operators", ARN operators: each of the six components is compared for itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cfngen.sandbox.services.rules import NOT_MODELLED, Refused

Context = Mapping[str, list[str]]
"""Values of a request's context keys, by the key in lower case."""

_TOKENS = re.compile(r"\$\{(?P<variable>[^{}]*)\}|(?P<end>\*(?=:|$))|(?P<wildcard>[*?])|(?P<text>[^*?$]+|\$)")
_NAME_WITH_DEFAULT = re.compile(r"(?P<name>[^,]+?)(?:\s*,\s*'(?P<default>[^']*)')?\s*")
_COLON_OUTSIDE_OF_VARIABLES = re.compile(r":(?![^${}]*\})")
_COMPONENTS = 6  # of an ARN


class _Wildcards(NamedTuple):
    """Regular expressions for what wildcards stand for.

    Attributes:
        end: an asterisk at the end of a segment.
        asterisk: another one.
        question_mark: a question mark.
    """

    end: str
    asterisk: str
    question_mark: str


_EXACT = _Wildcards(r"\*", r"\*", r"\?")
_ANYWHERE = _Wildcards(".*", ".*", ".")
_WITHIN_SEGMENTS = _Wildcards(".*", "[^:]*", ".")


def not_modelled(message: str) -> Refused:
    """Return the error for what the evaluator cannot decide on."""
    return Refused(NOT_MODELLED, f"the emulator cannot decide on this: {message}")


class UnresolvedVariableError(Exception):
    """Raised for a variable without a default whose key the request does not carry."""


@dataclass(frozen=True)
class Variables:
    """What the variables in a policy stand for.

    Attributes:
        context: the request's; None if the policy's version has no variables, so that their text is like any other.
    """

    context: Context | None

    def equals(self, text: str, value: str) -> bool:
        """Return whether a text is a value of a policy, in which an asterisk is a character like any other."""
        return self._fits(text, value, _EXACT)

    def matches(self, text: str, pattern: str) -> bool:
        """Return whether a text matches a pattern, whose asterisks stand for any characters."""
        return self._fits(text, pattern, _ANYWHERE)

    def matches_arn(self, arn: str, pattern: str) -> bool:
        """Return whether the six components of an ARN each match those of a pattern.

        Raises:
            Refused: the pattern is no ARN
        """
        patterns = _COLON_OUTSIDE_OF_VARIABLES.split(pattern, _COMPONENTS - 1)
        if len(patterns) < _COMPONENTS:
            raise not_modelled(f"{pattern} has no six components")
        components = arn.split(":", _COMPONENTS - 1)
        return len(components) == _COMPONENTS and all(map(self.matches, components, patterns))

    def matches_resource(self, resource: str, pattern: str) -> bool:
        """Return whether a resource of a request is one of those that a statement names.

        Raises:
            Refused: the pattern has a variable before the fifth colon, is an incomplete ARN, or matches only if an
                asterisk within a segment goes beyond it
        """
        if pattern == "*":
            return True
        segments = _COLON_OUTSIDE_OF_VARIABLES.split(pattern, _COMPONENTS - 1)
        if pattern.startswith("arn:") and len(segments) < _COMPONENTS:
            raise not_modelled(f"{pattern} is not a whole ARN")
        if self.context is not None and any("${" in segment for segment in segments[: _COMPONENTS - 1]):
            raise not_modelled(f"{pattern} has a variable before its fifth colon")
        is_within_segments = self._fits(resource, pattern, _WITHIN_SEGMENTS)
        if not is_within_segments and self._fits(resource, pattern, _ANYWHERE):
            raise not_modelled(f"{pattern} matches {resource} only if an asterisk goes beyond a colon")
        return is_within_segments

    def _fits(self, text: str, pattern: str, wildcards: _Wildcards) -> bool:
        if self.context is None or "${" not in pattern:
            return _compiled(pattern, wildcards).fullmatch(text) is not None
        expressions = (
            _expression(token, wildcards)
            if token["variable"] is None
            else re.escape(self._value(token["variable"], has_wildcards=wildcards is not _EXACT))
            for token in _TOKENS.finditer(pattern)
        )
        return re.fullmatch("".join(expressions), text, re.DOTALL) is not None

    def _value(self, variable: str, *, has_wildcards: bool) -> str:
        if variable in ("*", "?", "$"):
            return variable
        match = _NAME_WITH_DEFAULT.fullmatch(variable)
        if match is None or self.context is None:
            raise not_modelled(f"${{{variable}}} is no variable")
        values = self.context.get(match["name"].lower()) or [match["default"]]
        if len(values) > 1:
            raise not_modelled(f"${{{variable}}} has several values")
        if values[0] is None:
            raise UnresolvedVariableError(variable)
        # Whether such a character of a value is a wildcard in a pattern, no page says.
        if has_wildcards and {"*", "?"} & set(values[0]):
            raise not_modelled(f"the value of ${{{variable}}} has wildcards: {values[0]}")
        return values[0]


@functools.lru_cache(maxsize=8192)
def _compiled(pattern: str, wildcards: _Wildcards) -> re.Pattern[str]:
    """Return the regular expression for a pattern in which variables are text like any other."""
    return re.compile("".join(_expression(token, wildcards) for token in _TOKENS.finditer(pattern)), re.DOTALL)


def _expression(token: re.Match[str], wildcards: _Wildcards) -> str:
    if token["end"]:
        return wildcards.end
    if token["wildcard"]:
        return wildcards.asterisk if token[0] == "*" else wildcards.question_mark
    return re.escape(token[0])
