"""Functions that analyse and change expressions in templates: their references, their texts and their parameters.

An expression is JSON data. A mapping whose only key is `Ref` or starts with `Fn::` calls an intrinsic function. Other
data is a literal value. Malformed calls are treated as literal values too; cfn-lint reports them.

This file imports nothing from cfngen, because the lint rules load it by its path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_PLACEHOLDER = re.compile(r"\$\{([^}]+)\}")

TextParts = list["str | None"]
"""A text as a list of parts; None stands for a part that is known only at deployment."""


class Reference(NamedTuple):
    """A reference to a parameter, pseudo parameter or resource.

    Attributes:
        name: logical id of the parameter or resource, or name of the pseudo parameter, e.g. `AWS::Region`.
        attribute: the attribute that Fn::GetAtt reads; empty for Ref.
    """

    name: str
    attribute: str = ""


def function_call(value: object) -> tuple[str, object]:
    """Return the name and the argument of the intrinsic function that a value calls, e.g. `("Ref", "VpcCidr")`.

    The result is `("", None)` if the value calls no function.
    """
    if isinstance(value, Mapping) and len(value) == 1:
        [(name, argument)] = value.items()
        if name == "Ref" or str(name).startswith("Fn::"):
            return str(name), argument
    return "", None


def is_function(value: object) -> bool:
    """Return whether a value calls an intrinsic function, so that its result is known only at deployment."""
    return function_call(value)[0] != ""


def reference(value: object) -> Reference | None:
    """Return the reference that a value makes by Ref or Fn::GetAtt, or None if the value is neither."""
    function, argument = function_call(value)
    if function == "Ref" and isinstance(argument, str):
        return Reference(argument)
    if function == "Fn::GetAtt":
        return _attribute_reference(argument)
    return None


def references(value: object) -> Iterator[Reference]:
    """Yield the references that Ref, Fn::GetAtt and Fn::Sub make, at any depth of a value."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    if not isinstance(value, Mapping):
        return
    for key, argument in value.items():
        attribute_reference = _attribute_reference(argument) if key == "Fn::GetAtt" else None
        if key == "Ref":
            yield Reference(str(argument))
        elif attribute_reference:
            yield attribute_reference
        elif key == "Fn::Sub" and (text_and_variables := _text_and_variables(argument)):
            text, variables = text_and_variables
            for placeholder in _PLACEHOLDER.findall(text):
                name = _placeholder_name(placeholder)
                if name and name not in variables:
                    yield _dotted_reference(name)
            yield from references(list(variables.values()))
        else:
            yield from references(argument)


def sub_parts(argument: object) -> list[object]:
    """Split the text of Fn::Sub into literal parts and, for each placeholder, the expression that replaces it.

    Args:
        argument: the argument of Fn::Sub: a text, or a list of a text and its variables. The result is empty if it is
            malformed.
    """
    text_and_variables = _text_and_variables(argument)
    if text_and_variables is None:
        return []
    text, variables = text_and_variables
    parts: list[object] = []
    for index, piece in enumerate(_PLACEHOLDER.split(text)):
        is_literal_text = index % 2 == 0  # re.split puts the captured placeholders at the odd positions
        if is_literal_text:
            parts.append(piece)
            continue
        name = _placeholder_name(piece)
        if name:
            parts.append(variables.get(name, _function_call_of(_dotted_reference(name))))
        else:
            # `${!Name}` is an escape: it stands for the text `${Name}`.
            parts.append(f"${{{piece[1:]}}}")
    return parts


def text_parts(value: object) -> TextParts:
    """Return the text that an expression evaluates to, as parts; None stands for a part known only at deployment.

    Fn::Sub and Fn::Join are split into their parts. Any other function call is one unknown part, and so is a list,
    which has no text.
    """
    if isinstance(value, list):
        return [None]
    if isinstance(value, bool):
        return [str(value).lower()]
    if not isinstance(value, Mapping):
        return [str(value)]
    function, argument = function_call(value)
    if function == "Fn::Sub":
        return [part for item in sub_parts(argument) for part in text_parts(item)] or [None]
    if function != "Fn::Join" or not isinstance(argument, list) or len(argument) != 2:
        return [None]
    separator, items = argument
    if not isinstance(items, list):
        return [None]
    parts: TextParts = []
    for index, item in enumerate(items):
        if index > 0:
            parts.append(str(separator))
        parts += text_parts(item)
    return parts


def known_ending(value: object) -> str:
    """Return the end of an expression's text, after the last part that is known only at deployment."""
    ending: list[str] = []
    for part in reversed(text_parts(value)):
        if part is None:
            break
        ending.insert(0, part)
    return "".join(ending)


def branches(value: object, path: list[str | int]) -> Iterator[tuple[list[str | int], object]]:
    """Yield the path and value of each branch of Fn::If but AWS::NoValue; a value without Fn::If is yielded itself."""
    function, argument = function_call(value)
    if function == "Fn::If" and isinstance(argument, list):
        for index, branch in enumerate(argument[1:], start=1):
            yield from branches(branch, [*path, function, index])
    elif reference(value) != Reference("AWS::NoValue"):
        yield path, value


def substitute(value: object, expressions: Mapping[str, object]) -> object:
    """Return a copy of JSON-ready data in which expressions replace the references to the parameters of these names."""
    if isinstance(value, list):
        return [substitute(item, expressions) for item in value]
    if not isinstance(value, dict):
        return value
    function, argument = function_call(value)
    if function == "Ref" and isinstance(argument, str) and argument in expressions:
        return expressions[argument]
    text_and_variables = _text_and_variables(argument) if function == "Fn::Sub" else None
    if text_and_variables:
        text, variables = text_and_variables
        substituted_variables = {name: substitute(item, expressions) for name, item in variables.items()}
        return _substitute_sub(text, substituted_variables, expressions)
    return {key: substitute(item, expressions) for key, item in value.items()}


def _substitute_sub(text: str, variables: Mapping[str, object], expressions: Mapping[str, object]) -> dict[str, object]:
    """Return a call of Fn::Sub in which expressions replace the placeholders of variables and of parameters.

    A literal text, Ref or Fn::GetAtt is written into the text in place of the placeholder. Any other expression becomes
    a variable of the Fn::Sub. Placeholders of other parameters stay.
    """
    remaining_variables: dict[str, object] = {}

    def replace(match: re.Match[str]) -> str:
        """Return the text that replaces a placeholder; keep the placeholder if a variable provides its value."""
        name = _placeholder_name(match[1])
        expression = variables.get(name, expressions.get(name))
        # A text that contains "$" or "{" could form a new placeholder together with the text around it.
        if isinstance(expression, str) and not {"$", "{"} & set(expression):
            return expression
        if referenced := reference(expression):
            dotted_name = f"{referenced.name}.{referenced.attribute}" if referenced.attribute else referenced.name
            return f"${{{dotted_name}}}"
        if expression is not None:
            remaining_variables[name] = expression
        return match[0]

    text = _PLACEHOLDER.sub(replace, text)
    return {"Fn::Sub": [text, remaining_variables] if remaining_variables else text}


def _text_and_variables(argument: object) -> tuple[str, Mapping[str, object]] | None:
    """Return the text and the variables in an argument of Fn::Sub, or None if the argument is malformed."""
    if isinstance(argument, str):
        return argument, {}
    if isinstance(argument, list) and len(argument) == 2:
        text, variables = argument
        if isinstance(text, str) and isinstance(variables, Mapping):
            return text, variables
    return None


def _placeholder_name(placeholder: str) -> str:
    """Return the name in a placeholder of Fn::Sub; empty if it is the escape `!Name`, which stands for `${Name}`."""
    return "" if placeholder.startswith("!") else placeholder.strip()


def _dotted_reference(text: str) -> Reference:
    """Parse a reference in the notation of Fn::Sub and of YAML: `Resource` or `Resource.Attribute`."""
    name, _, attribute = text.partition(".")
    return Reference(name, attribute)


def _attribute_reference(argument: object) -> Reference | None:
    """Return the reference in an argument of Fn::GetAtt, or None if the argument is malformed."""
    if isinstance(argument, str):
        return _dotted_reference(argument)
    if isinstance(argument, list) and argument and all(isinstance(item, str) for item in argument):
        return Reference(argument[0], ".".join(argument[1:]))
    return None


def _function_call_of(referenced: Reference) -> dict[str, object]:
    name, attribute = referenced
    return {"Fn::GetAtt": [name, attribute]} if attribute else {"Ref": name}


_BETWEEN_DOLLAR_AND_BRACE = re.compile(r"(?<=\$)(?=\{)")


def protect_placeholders(value: object) -> object:
    """Return an expression with the same value, in which no text outside `Fn::Sub` contains `${`.

    CloudFormation replaces `${AWS::Region}` inside `Fn::Sub` only. Elsewhere the text is literal, but it looks like a
    forgotten `Fn::Sub`, and cfn-lint reports it as an error (E1029). So the text is split between the dollar sign and
    the brace, and `Fn::Join` joins the pieces when the stack is deployed.

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
