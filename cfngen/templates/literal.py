"""Protects literal text, such as `${HOME}` in a script, that looks like a placeholder of `Fn::Sub`.

CloudFormation replaces `${AWS::Region}` inside `Fn::Sub` only. Elsewhere the text is literal, but it looks like a
forgotten `Fn::Sub`, and cfn-lint reports it as an error (E1029). So the text is split between the dollar sign and the
brace, and `Fn::Join` joins the pieces when the stack is deployed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_BETWEEN_DOLLAR_AND_BRACE = re.compile(r"(?<=\$)(?=\{)")


def protect_placeholders(value: object) -> object:
    """Return an expression with the same value, in which no text outside `Fn::Sub` contains `${`.

    For example, `"${HOME}"` becomes `{"Fn::Join": ["", ["$", "{HOME}"]]}`.

    Args:
        value: JSON-ready data from a part of the template where CloudFormation evaluates functions, e.g. `Properties`.
    """
    if isinstance(value, str):
        pieces = _BETWEEN_DOLLAR_AND_BRACE.split(value)
        return value if len(pieces) == 1 else {"Fn::Join": ["", pieces]}
    if isinstance(value, list):
        return [protect_placeholders(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"Fn::Sub"}:
        return value
    if set(value) == {"Fn::Join"} and value["Fn::Join"][0] == "":
        # This Fn::Join already joins its items with "", so it can join the pieces of an item too.
        pieces_of_all_items = [piece for item in value["Fn::Join"][1] for piece in _split_join_item(item)]
        return {"Fn::Join": ["", pieces_of_all_items]}
    return {key: protect_placeholders(item) for key, item in value.items()}


def _split_join_item(item: object) -> list[object]:
    """Split an item of an Fn::Join between `$` and `{`, so that no piece looks like a placeholder of Fn::Sub.

    An item that is an expression, not a text, remains one item.
    """
    return list(_BETWEEN_DOLLAR_AND_BRACE.split(item)) if isinstance(item, str) else [protect_placeholders(item)]
