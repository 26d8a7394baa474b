"""Text that CloudFormation must leave as it is, whatever it looks like.

CloudFormation fills in `${AWS::Region}` inside `Fn::Sub` only. Outside of it the text is already literal, but nobody
who reads a template can tell it from a forgotten `Fn::Sub`, and cfn-lint (E1029) takes it for one. Such a text is
therefore written in two pieces that are joined: the dollar sign ends one, the brace begins the next.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_DOLLAR_BRACE = re.compile(r"(?<=\$)(?=\{)")


def literal(value: Any) -> Any:
    """Return an expression in which no text outside `Fn::Sub` holds `${`; it has the same value.

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
        # A text of these is taken apart where it stands.
        items = [piece for item in value["Fn::Join"][1] for piece in _pieces(item)]
        return {"Fn::Join": ["", items]}
    return {key: literal(item) for key, item in value.items()}


def _pieces(item: Any) -> list[Any]:
    return list(_DOLLAR_BRACE.split(item)) if isinstance(item, str) else [literal(item)]
