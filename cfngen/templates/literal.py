"""Literal text that looks like a placeholder of `Fn::Sub`.

CloudFormation replaces `${AWS::Region}` inside `Fn::Sub` only. Elsewhere it is literal, but a reader cannot tell it
from a forgotten `Fn::Sub`, and cfn-lint reports it as one (E1029). Such text is therefore split between the dollar sign
and the brace, and the two parts are joined by `Fn::Join`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_DOLLAR_BRACE = re.compile(r"(?<=\$)(?=\{)")


def literal(value: object) -> object:
    """Return an expression with the same value in which no text outside `Fn::Sub` contains `${`.

    Args:
        value: JSON-ready data in which a function may stand for every text: properties, say, and not `Metadata`.
    """
    if isinstance(value, str):
        pieces = _DOLLAR_BRACE.split(value)
        return value if len(pieces) == 1 else {"Fn::Join": ["", pieces]}
    if isinstance(value, list):
        return [literal(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"Fn::Sub"}:
        return value
    if set(value) == {"Fn::Join"} and value["Fn::Join"][0] == "":
        # Text in this list is split in place.
        items = [piece for item in value["Fn::Join"][1] for piece in _pieces(item)]
        return {"Fn::Join": ["", items]}
    return {key: literal(item) for key, item in value.items()}


def _pieces(item: object) -> list[object]:
    return list(_DOLLAR_BRACE.split(item)) if isinstance(item, str) else [literal(item)]
