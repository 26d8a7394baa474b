"""Expressions of a template: what they refer to, the text that they make, and the replacement of references.

An expression is JSON data in which a mapping with one key, such as `Ref` or `Fn::Sub`, is the call of a function. Data
that is no such call is passed on; so is a malformed call, which cfn-lint reports.

This file imports nothing of cfngen: the lint rules load it by its path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_PLACEHOLDER = re.compile(r"\$\{([^}]+)\}")

TextParts = list["str | None"]
"""The parts of a text; None stands for a part that is known only at deployment."""


class Reference(NamedTuple):
    """A reference to a parameter, pseudo parameter or resource.

    Attributes:
        name: its logical id.
        attribute: the attribute that Fn::GetAtt takes; empty for Ref.
    """

    name: str
    attribute: str = ""


def function_call(value: object) -> tuple[str, object]:
    """Return the name and the argument of the function that a value calls; the name is empty if it calls none."""
    if isinstance(value, Mapping) and len(value) == 1:
        [(name, argument)] = value.items()
        if name == "Ref" or str(name).startswith("Fn::"):
            return str(name), argument
    return "", None


def is_function(value: object) -> bool:
    """Return whether a value is the call of a function, whose result is known only at deployment."""
    return function_call(value)[0] != ""


def reference(value: object) -> Reference | None:
    """Return what a value refers to by Ref or Fn::GetAtt, or None if it is anything else."""
    function, argument = function_call(value)
    if function == "Ref" and isinstance(argument, str):
        return Reference(argument)
    return _attribute_reference(argument) if function == "Fn::GetAtt" else None


def references(value: object) -> Iterator[Reference]:
    """Yield everything to which Ref, Fn::GetAtt and Fn::Sub refer, at any depth."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    if not isinstance(value, Mapping):
        return
    for key, argument in value.items():
        attribute = _attribute_reference(argument) if key == "Fn::GetAtt" else None
        if key == "Ref":
            yield Reference(str(argument))
        elif attribute:
            yield attribute
        elif key == "Fn::Sub" and (sub := _text_and_variables(argument)):
            text, variables = sub
            for name in map(_name_in, _PLACEHOLDER.findall(text)):
                if name and name not in variables:
                    yield _dotted_reference(name)
            yield from references(list(variables.values()))
        else:
            yield from references(argument)


def resolve(value: object, parameters: Mapping[str, object]) -> object:
    """Return the value of an expression that is plain data or refers to a parameter, or None if it is not known.

    Args:
        value: the expression.
        parameters: values of parameters, by name.
    """
    if not isinstance(value, Mapping):
        return value
    referenced = reference(value)
    return parameters.get(referenced.name) if referenced and not referenced.attribute else None


def sub_parts(argument: object) -> list[object]:
    """Return the parts of the text that Fn::Sub makes: literal text, and the expressions that stand for placeholders.

    Args:
        argument: of Fn::Sub: the text, or a list of the text and its variables. A malformed one has no parts.
    """
    sub = _text_and_variables(argument)
    if sub is None:
        return []
    text, variables = sub
    parts: list[object] = []
    for index, piece in enumerate(_PLACEHOLDER.split(text)):
        name = _name_in(piece) if index % 2 else ""
        if not index % 2:
            parts.append(piece)
        elif not name:
            parts.append(f"${{{piece[1:]}}}")
        else:
            parts.append(variables.get(name, _call_of(_dotted_reference(name))))
    return parts


def text_parts(value: object) -> TextParts:
    """Return the parts of the text that an expression makes, those of Fn::Sub and Fn::Join among them."""
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
        parts += [*([str(separator)] if index else []), *text_parts(item)]
    return parts


def known_ending(value: object) -> str:
    """Return the end of the text that an expression makes, from the last part on that is known only at deployment."""
    ending: list[str] = []
    for part in reversed(text_parts(value)):
        if part is None:
            break
        ending.insert(0, part)
    return "".join(ending)


def branches(value: object, path: list[str | int]) -> Iterator[tuple[list[str | int], object]]:
    """Yield each value that Fn::If can choose, with its path; AWS::NoValue is left out. Other data is its own branch.

    Args:
        value: the expression.
        path: its path in the template.
    """
    function, argument = function_call(value)
    if function == "Fn::If" and isinstance(argument, list):
        for index, branch in enumerate(argument[1:], start=1):
            yield from branches(branch, [*path, function, index])
    elif reference(value) != Reference("AWS::NoValue"):
        yield path, value


def substitute(value: object, expressions: Mapping[str, object]) -> object:
    """Return an expression in which each reference to a parameter in `expressions` is replaced.

    Args:
        value: JSON-ready data.
        expressions: the expressions that replace the references, by the name of the parameter.
    """
    if isinstance(value, list):
        return [substitute(item, expressions) for item in value]
    if not isinstance(value, dict):
        return value
    function, argument = function_call(value)
    if function == "Ref" and isinstance(argument, str) and argument in expressions:
        return expressions[argument]
    sub = _text_and_variables(argument) if function == "Fn::Sub" else None
    if sub:
        text, variables = sub
        return _substitute_sub(
            text, {name: substitute(item, expressions) for name, item in variables.items()}, expressions
        )
    return {key: substitute(item, expressions) for key, item in value.items()}


def _substitute_sub(text: str, variables: Mapping[str, object], expressions: Mapping[str, object]) -> dict[str, object]:
    """Return an Fn::Sub in which placeholders are replaced by their expressions.

    Text, Ref and Fn::GetAtt go into the text itself; any other expression becomes a variable of the Fn::Sub.
    """
    variables_left: dict[str, object] = {}

    def replace(match: re.Match[str]) -> str:
        name = _name_in(match[1])
        expression = variables.get(name, expressions.get(name))
        # Next to other text, a dollar sign or a brace could become a placeholder.
        if isinstance(expression, str) and not {"$", "{"} & set(expression):
            return expression
        if referenced := reference(expression):
            return f"${{{'.'.join(filter(None, referenced))}}}"
        if expression is not None:
            variables_left[name] = expression
        return match[0]

    text = _PLACEHOLDER.sub(replace, text)
    return {"Fn::Sub": [text, variables_left] if variables_left else text}


def _text_and_variables(argument: object) -> tuple[str, Mapping[str, object]] | None:
    """Return the text and the variables in an argument of Fn::Sub, or None if it is malformed."""
    text, variables = argument if isinstance(argument, list) and len(argument) == 2 else (argument, {})
    return (text, variables) if isinstance(text, str) and isinstance(variables, Mapping) else None


def _name_in(placeholder: str) -> str:
    """Return what a placeholder of Fn::Sub names; empty for `!Literal`, which stands for the text `${Literal}`."""
    return "" if placeholder.startswith("!") else placeholder.strip()


def _dotted_reference(text: str) -> Reference:
    """Return a reference as Fn::Sub and YAML spell it: `Resource` or `Resource.Attribute`."""
    name, _, attribute = text.partition(".")
    return Reference(name, attribute)


def _attribute_reference(argument: object) -> Reference | None:
    """Return what an argument of Fn::GetAtt refers to, or None if it is malformed."""
    if isinstance(argument, str):
        return _dotted_reference(argument)
    if isinstance(argument, list) and argument and all(isinstance(item, str) for item in argument):
        return Reference(argument[0], ".".join(argument[1:]))
    return None


def _call_of(referenced: Reference) -> dict[str, object]:
    """Return the Ref or Fn::GetAtt of a reference."""
    name, attribute = referenced
    return {"Fn::GetAtt": [name, attribute]} if attribute else {"Ref": name}
