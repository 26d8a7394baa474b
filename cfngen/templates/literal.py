"""Literal text that looks like a placeholder of `Fn::Sub`.

CloudFormation replaces `${AWS::Region}` inside `Fn::Sub` only. Elsewhere the text is literal, but it looks like a
forgotten `Fn::Sub`, and cfn-lint reports it as an error (E1029). So a text with a dollar sign and a brace is split
between the two, and `Fn::Join` joins the parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_DOLLAR_BRACE = re.compile(r"(?<=\$)(?=\{)")


def literal(value: object) -> object:
    """Return an expression with the same value in which no text outside `Fn::Sub` contains `${`.

    Args:
        value: JSON-ready data from a part of the template where CloudFormation evaluates functions, e.g. `Properties`.
    """
    if isinstance(value, str):
        parts = _DOLLAR_BRACE.split(value)
        return value if len(parts) == 1 else {"Fn::Join": ["", parts]}
    if isinstance(value, list):
        return [literal(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"Fn::Sub"}:
        return value
    if set(value) == {"Fn::Join"} and value["Fn::Join"][0] == "":
        # The Fn::Join already joins with "", so its items can be split without a nested Fn::Join.
        split_items = [piece for item in value["Fn::Join"][1] for piece in _literal_parts(item)]
        return {"Fn::Join": ["", split_items]}
    return {key: literal(item) for key, item in value.items()}


def _literal_parts(item: object) -> list[object]:
    """Return items of an Fn::Join that have the value of one item, and of which no text contains `${`."""
    return list(_DOLLAR_BRACE.split(item)) if isinstance(item, str) else [literal(item)]
