"""Evaluates a template's expressions as far as the values that are known before a deployment allow.

What is not known stays a call of an intrinsic function in one canonical form, so that two evaluated values are equal if
and only if they are made in the same way from the same unknown values: texts are one Fn::Join of their parts with an
empty delimiter, neighbouring known parts are one part, and a text of one part is that part.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from cfngen.templates.expressions import Reference, function_call, is_function, reference, sub_parts

Template = Mapping[str, Any]
"""A template, or a resource in one, as JSON data."""

SSM_TYPE_PREFIX = "AWS::SSM::Parameter::Value"
"""Start of the type of template parameters whose values CloudFormation reads from SSM Parameter Store."""

_NO_VALUE = object()  # what AWS::NoValue evaluates to: the key or the item is left out


class EvaluatedTemplate:
    """A template with the values of its parameters.

    Attributes:
        values: the values of parameters and pseudo parameters, by name, without those that are not known, such as the
            values of NoEcho parameters. A nested stack's may be expressions of resources in other stacks.

    Args:
        values: values of parameters and pseudo parameters; other parameters have their default.
        looked_up: what CloudFormation has found in Parameter Store, by name of the parameter: the values of parameters
            that it reads from there, for which `values` has only where it looks.
    """

    def __init__(
        self, template: Template, values: Mapping[str, object], looked_up: Mapping[str, object] | None = None
    ) -> None:
        self.template = template
        self.values: dict[str, object] = {name: value for name, value in values.items() if name.startswith("AWS::")}
        for name, parameter in template.get("Parameters", {}).items():
            if str(parameter.get("NoEcho", "")).lower() == "true":
                continue
            parameter_type = str(parameter.get("Type", ""))
            if parameter_type.startswith(SSM_TYPE_PREFIX):
                value = (looked_up or {}).get(name)
            else:
                value = values.get(name, parameter.get("Default"))
            if value is not None:
                text = self._call_with_list("Fn::Join", [",", value if isinstance(value, list) else [value]])
                is_list = parameter_type == "CommaDelimitedList" or "List<" in parameter_type
                items = self._call_with_list("Fn::Split", [",", text]) or {"Fn::Split": [",", text]}
                self.values[name] = items if is_list else text

    @cached_property
    def resources(self) -> dict[str, dict[str, Any]]:
        """The resources with evaluated attributes by logical id, without those whose condition is false."""
        return {
            logical_id: {name: self.evaluate(attribute) for name, attribute in body.items() if name != "Condition"}
            for logical_id, body in self.template.get("Resources", {}).items()
            if "Condition" not in body or self._condition({"Condition": body["Condition"]}) is not False
        }

    def nested(
        self, logical_id: str, template: Template, looked_up: Mapping[str, object] | None = None
    ) -> EvaluatedTemplate:
        """Return the template of a nested stack, with the values that this template passes to it."""
        properties = self.template.get("Resources", {}).get(logical_id, {}).get("Properties", {})
        shared = {name: value for name, value in self.values.items() if name in _SHARED_NAMES}
        return EvaluatedTemplate(template, {**shared, **self.evaluate(properties.get("Parameters", {}))}, looked_up)

    def evaluate(self, value: object) -> Any:
        """Return a value with each function call in it replaced by its result, or by its canonical form."""
        if isinstance(value, list):
            evaluated = [self.evaluate(item) for item in value]
            return [item for item in evaluated if item is not _NO_VALUE]
        if not isinstance(value, Mapping):
            return value
        function, argument = function_call(value)
        if function:
            return self._call(function, argument)
        results = {key: self.evaluate(item) for key, item in value.items()}
        return {key: item for key, item in results.items() if item is not _NO_VALUE}

    def _call(self, function: str, argument: object) -> Any:
        referenced = reference({function: argument})
        if referenced:
            return self._reference(referenced)
        if function == "Fn::Sub" and (parts := sub_parts(argument)):
            return _joined([self.evaluate(part) for part in parts])
        if function == "Fn::If" and isinstance(argument, list) and len(argument) == 3:
            name, if_true, if_false = argument
            condition = self._condition({"Condition": name})
            if condition is not None:
                return self.evaluate(if_true if condition else if_false)
        evaluated = self.evaluate(argument)
        if function == "Fn::Base64" and isinstance(evaluated, str):
            return base64.b64encode(evaluated.encode()).decode()
        known = self._call_with_list(function, evaluated) if isinstance(evaluated, list) else None
        return {function: evaluated} if known is None else known

    def _call_with_list(self, function: str, arguments: list[Any]) -> Any:
        """Return the result of a function with a list of arguments; None if it is not known."""
        if function == "Fn::Join" and len(arguments) == 2 and isinstance(arguments[1], list):
            delimiter, items = arguments
            parts = [part for item in items for part in (delimiter, item)]
            return _joined(parts[1:])
        if function == "Fn::Select" and len(arguments) == 2 and isinstance(arguments[1], list):
            index, items = str(arguments[0]), arguments[1]
            return items[int(index)] if index.isdecimal() and int(index) < len(items) else None
        if function == "Fn::Split" and all(isinstance(argument, str) for argument in arguments):
            return str(arguments[1]).split(str(arguments[0])) if len(arguments) == 2 and arguments[0] else None
        if function == "Fn::FindInMap" and all(isinstance(argument, str) for argument in arguments):
            value: Any = self.template.get("Mappings", {})
            for key in arguments:
                value = value.get(key) if isinstance(value, Mapping) else None
            return value
        return None

    def _reference(self, referenced: Reference) -> Any:
        if referenced.name == "AWS::NoValue":
            return _NO_VALUE
        if referenced.attribute:
            return {"Fn::GetAtt": [referenced.name, referenced.attribute]}
        return self.values.get(referenced.name, {"Ref": referenced.name})

    def _condition(self, value: object) -> bool | None:
        """Return whether a condition is true; None if that is not known."""
        if not isinstance(value, Mapping) or len(value) != 1:
            return None
        [(function, argument)] = value.items()
        if function == "Condition":
            return self._condition(self.template.get("Conditions", {}).get(argument))
        if not isinstance(argument, list):
            return None
        if function == "Fn::Equals":
            first, second = (self.evaluate(item) for item in argument)
            return None if contains_call([first, second]) else _text(first) == _text(second)
        results = [self._condition(item) for item in argument]
        if function == "Fn::Not":
            return None if results[0] is None else not results[0]
        if function in ("Fn::And", "Fn::Or"):
            deciding_result: bool = function == "Fn::Or"
            if deciding_result in results:
                return deciding_result
            return None if None in results else not deciding_result
        return None


class _Root(EvaluatedTemplate):
    """The template of a root stack, which passes outputs of its nested stacks to others; see `evaluate_stacks`."""

    def __init__(
        self,
        templates: Mapping[str, Template],
        values: Mapping[str, object],
        looked_up: Mapping[str, Mapping[str, object]],
    ) -> None:
        self._templates = templates
        self._looked_up = looked_up
        self._stacks: dict[str, EvaluatedTemplate | None] = {}
        super().__init__(templates[""], values, looked_up.get(""))

    def stack(self, logical_id: str) -> EvaluatedTemplate | None:
        """Return the template of a nested stack; None if it is not known."""
        if logical_id not in self._stacks and logical_id in self._templates:
            self._stacks[logical_id] = None  # CloudFormation refuses circular references; here they end
            stack = self.nested(logical_id, self._templates[logical_id], self._looked_up.get(logical_id))
            self._stacks[logical_id] = stack
        return self._stacks.get(logical_id)

    def _reference(self, referenced: Reference) -> Any:
        prefix, _, output = referenced.attribute.partition(".")
        if prefix == "Outputs" and (stack := self.stack(referenced.name)):
            value = stack.evaluate(stack.template.get("Outputs", {}).get(output, {}).get("Value"))
            if value is not None:
                return value
        return super()._reference(referenced)


def evaluate_stacks(
    templates: Mapping[str, Template],
    values: Mapping[str, object],
    looked_up: Mapping[str, Mapping[str, object]] | None = None,
) -> dict[str, EvaluatedTemplate]:
    """Return evaluated templates of a root and its nested stacks; without the root's, none.

    What a stack passes to another one by its outputs is an expression of the stack's resources there. So it refers to
    resources of any stack, whose logical ids are unique.

    Args:
        templates: by logical id of the nested stack, and `""` for the root; those that are not known are missing.
        values: values of the root's parameters and of pseudo parameters.
        looked_up: see `EvaluatedTemplate`, for each stack.
    """
    if "" not in templates:
        return {}
    root = _Root(templates, values, looked_up or {})
    stacks = {logical_id: root.stack(logical_id) if logical_id else root for logical_id in templates}
    return {logical_id: stack for logical_id, stack in stacks.items() if stack}


# Pseudo parameters that nested stacks share with the root.
_SHARED_NAMES = ("AWS::AccountId", "AWS::Partition", "AWS::Region", "AWS::URLSuffix")


class Difference(NamedTuple):
    """A difference between two evaluated values; None stands for a value that is missing.

    Attributes:
        path: e.g. `/Properties/LaunchTemplateData/InstanceType`; a call of a function is compared as a whole.
    """

    path: str
    old: Any
    new: Any


def differences(old: object, new: object, path: str = "") -> Iterator[Difference]:
    """Yield where two evaluated values differ; a number or a truth value equals its text, as in CloudFormation."""
    if isinstance(old, Mapping) and isinstance(new, Mapping) and not (is_function(old) or is_function(new)):
        for key in dict.fromkeys((*old, *new)):
            yield from differences(old.get(key), new.get(key), f"{path}/{key}")
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            yield from differences(_item(old, index), _item(new, index), f"{path}/{index}")
    elif old != new and (old is None or new is None or _text(old) != _text(new)):
        yield Difference(path, old, new)


def calls(value: object, path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path and the call of each function that was not evaluated; not those in its arguments."""
    if isinstance(value, Mapping) and is_function(value):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from calls(item, f"{path}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from calls(item, f"{path}/{index}")


def contains_call(value: object) -> bool:
    """Return whether a part of an evaluated value is not known."""
    return next(calls(value), None) is not None


def value_at(value: object, parts: Sequence[str]) -> Any:
    """Return the part of an evaluated value at a path, or the call of a function on the way to it; None if it has none.

    Args:
        parts: names of keys and positions in lists.
    """
    for part in parts:
        if is_function(value):
            return value
        if isinstance(value, list):
            value = value[int(part)] if part.isdecimal() and int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def known_value(value: object) -> Any:
    """Return an evaluated value if it is known as a whole, else None."""
    return None if contains_call(value) else value


def is_text(value: object) -> bool:
    """Return whether an evaluated value is a text, of which parts may be unknown."""
    function, argument = function_call(value)
    return isinstance(value, str) or _is_joined_text(value) or (function == "Fn::Base64" and is_text(argument))


def with_placeholders(value: object) -> Any:
    """Return an evaluated value with a text for each call in it, as people write it in Fn::Sub: `${Vpc.CidrBlock}`."""
    if isinstance(value, list):
        return [with_placeholders(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    function, argument = function_call(value)
    if not function:
        return {key: with_placeholders(item) for key, item in value.items()}
    if referenced := reference(value):
        return f"${{{'.'.join(filter(None, referenced))}}}"
    if function == "Fn::Base64":
        return with_placeholders(argument)
    if _is_joined_text(value):
        return "".join(_text(with_placeholders(part)) for part in value["Fn::Join"][1])
    return f"${{{function}}}"


def _item(items: Sequence[object], index: int) -> object:
    return items[index] if index < len(items) else None


def _joined(parts: Sequence[Any]) -> Any:
    """Return a text of evaluated parts, in the canonical form if one of them is not known."""
    joined: list[Any] = []
    for part in parts:
        for item in part["Fn::Join"][1] if _is_joined_text(part) else [part]:
            if isinstance(item, Mapping):
                joined.append(item)
            elif joined and isinstance(joined[-1], str):
                joined[-1] += _text(item)
            else:
                joined.append(_text(item))
    pieces = [piece for piece in joined if piece != ""]
    if len(pieces) < 2:
        return pieces[0] if pieces else ""
    return {"Fn::Join": ["", pieces]}


def _is_joined_text(value: Any) -> bool:
    """Return whether an evaluated value is a text in the canonical form."""
    function, argument = function_call(value)
    return function == "Fn::Join" and isinstance(argument, list) and argument[0] == "" and isinstance(argument[1], list)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
