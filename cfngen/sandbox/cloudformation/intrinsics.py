"""Resolves intrinsic functions and pseudo parameters with a stack's parameters and completed resources."""

from __future__ import annotations

import base64
import ipaddress
import itertools
from collections.abc import Callable

from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.function_arguments import DEFAULT_CIDR_BITS, PLACEHOLDER_PATTERN
from cfngen.sandbox.untyped import Expression, JsonObject, TemplateBody

NO_VALUE = object()  # what AWS::NoValue is resolved to: the key or item that has it is omitted
# A change set shows this for a value that is known only after execution. A string that contains such a value is
# unknown as a whole.
UNKNOWN = "{{changeSet:KNOWN_AFTER_APPLY}}"


class Scope:
    """Resolves the expressions of one template.

    Args:
        names: the values of Ref by name: of parameters, pseudo parameters and completed resources
        attribute: returns the value of GetAtt for a logical id and an attribute name
        zones: returns the names of a region's Availability Zones
        imported: returns the value of the export with a name
        output_of: returns the value of an output of another stack, by stack and output
    """

    def __init__(
        self,
        body: TemplateBody,
        names: JsonObject,
        attribute: Callable[[str, str], Expression],
        zones: Callable[[str], list[str]],
        imported: Callable[[str], str],
        output_of: Callable[[str, str], str],
    ) -> None:
        self._body = body
        self._names = dict(names)
        self._attribute = attribute
        self._zones = zones
        self._imported = imported
        self._output_of = output_of

    def set_name(self, name: str, value: Expression) -> None:
        """Set the value of Ref for the name of a parameter or the logical id of a resource."""
        self._names[name] = value

    def resolve(self, value: Expression) -> Expression:
        """Replace all intrinsic functions in a value by their results; omit keys and items that are AWS::NoValue."""
        if isinstance(value, list):
            return [item for item in map(self.resolve, value) if item is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            [(name, argument)] = value.items()
            if name == "Ref" and isinstance(argument, str):
                return self._ref(argument)
            if name == "Condition" and isinstance(argument, str):
                return self.condition(argument)
            if name.startswith("Fn::"):
                return self._call_function(name.removeprefix("Fn::"), argument)
        resolved = {key: self.resolve(item) for key, item in value.items()}
        return {key: item for key, item in resolved.items() if item is not NO_VALUE}

    def condition(self, name: str) -> bool:
        """Whether a condition of the template is true."""
        return bool(self.resolve(self._body["Conditions"][name]))

    def is_enabled(self, body: JsonObject) -> bool:
        """Whether a resource or an output has no condition, or its condition is true."""
        return "Condition" not in body or self.condition(body["Condition"])

    def chosen(self, value: Expression) -> Expression:
        """A value with the members that Fn::If chooses, and the values of Fn::FindInMap."""
        if isinstance(value, list):
            return [self.chosen(item) for item in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Fn::If"}:
            name, if_true, if_false = value["Fn::If"]
            return self.chosen(if_true if self.condition(name) else if_false)
        if set(value) == {"Fn::FindInMap"}:
            return self.resolve(value)
        return {key: self.chosen(item) for key, item in value.items()}

    def _call_function(self, name: str, argument: Expression) -> Expression:
        """Call the method for an intrinsic function, e.g. `_fn_join` for Fn::Join."""
        function = getattr(self, f"_fn_{name.lower()}", None)
        if function is None:
            raise NotModelledError(f"Fn::{name}")
        try:
            return function(argument)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # `function_arguments` has checked the arguments; what they resolve to may be of the wrong kind.
            raise ResourceError(f"Template error: Fn::{name} cannot be resolved: {error}") from error

    def _ref(self, name: str) -> Expression:
        if name == "AWS::NoValue":
            return NO_VALUE
        if name not in self._names:
            raise ResourceError(f"Template error: {name} has no value yet")
        return self._names[name]

    def _fn_getatt(self, argument: Expression) -> Expression:
        logical_id, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
        return self._attribute(logical_id, self.resolve(attribute))

    def _fn_sub(self, argument: Expression) -> str:
        text, local_values = (argument, {}) if isinstance(argument, str) else argument
        local_values = self.resolve(local_values)

        def value_of(name: str) -> str:
            if name in local_values:
                return str(local_values[name])
            return str(self._fn_getatt(name) if "." in name else self._ref(name))

        result = ""
        # The pattern has a group, so `split` returns literal texts and, between them, the names in placeholders.
        for index, piece in enumerate(PLACEHOLDER_PATTERN.split(text)):
            is_literal = index % 2 == 0
            result += piece.replace("${!", "${") if is_literal else value_of(piece)
        return _known_or_unknown(result)

    def _fn_join(self, argument: Expression) -> str:
        delimiter, items = argument
        items = self.resolve(items)
        return UNKNOWN if items == UNKNOWN else _known_or_unknown(str(delimiter).join(map(as_text, items)))

    def _fn_select(self, argument: Expression) -> Expression:
        index, items = self.resolve(argument)
        if items == [UNKNOWN] and not isinstance(argument[1], list):
            raise ResourceError("Template error: Fn::Select cannot select from a list that is not known yet")
        if not isinstance(items, list) or not 0 <= int(index) < len(items):
            raise ResourceError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")
        return items[int(index)]

    def _fn_split(self, argument: Expression) -> list[str]:
        delimiter, text = self.resolve(argument)
        if UNKNOWN in str(text):
            raise ResourceError("Template error: Fn::Split cannot split a value that is not known yet")
        return str(text).split(delimiter)

    def _fn_findinmap(self, argument: Expression) -> Expression:
        mapping_name, top_level_key, second_level_key = self.resolve(argument)
        try:
            return self._body["Mappings"][mapping_name][top_level_key][second_level_key]
        except KeyError as error:
            raise ResourceError(
                f"Template error: Unable to get mapping for {mapping_name}::{top_level_key}::{second_level_key}"
            ) from error

    def _fn_base64(self, argument: Expression) -> str:
        text = as_text(self.resolve(argument))
        return UNKNOWN if UNKNOWN in text else base64.b64encode(text.encode()).decode()

    def _fn_importvalue(self, argument: Expression) -> str:
        return self._imported(str(self.resolve(argument)))

    def _fn_getstackoutput(self, argument: Expression) -> str:
        resolved = self.resolve(argument)
        if unsupported := sorted(resolved.keys() - {"StackName", "OutputName"}):
            raise NotModelledError(f"Fn::GetStackOutput with {', '.join(unsupported)}")
        return self._output_of(str(resolved["StackName"]), str(resolved["OutputName"]))

    def _fn_getazs(self, argument: Expression) -> list[str]:
        return self._zones(self.resolve(argument) or self._names["AWS::Region"])

    def _fn_cidr(self, argument: Expression) -> list[str]:
        """Fn::Cidr: a number of ranges within an IPv4 range, each with a number of host bits."""
        ip_block, count, host_bits = [*self.resolve(argument), DEFAULT_CIDR_BITS][:3]
        if UNKNOWN in ip_block:
            raise ResourceError("Template error: Fn::Cidr needs a CIDR, and its value is not known yet")
        try:
            networks = ipaddress.IPv4Network(ip_block, strict=False).subnets(new_prefix=32 - int(host_bits))
            ranges = [str(network) for network in itertools.islice(networks, int(count))]
        except ValueError:
            # Words: eksctl-io/eksctl#4904.
            raise ResourceError(f"Template error: invalid CIDR block size {host_bits}") from None
        if len(ranges) < int(count):
            raise ResourceError(f"Template error: Fn::Cidr: {ip_block} has fewer than {count} blocks of that size")
        return ranges

    def _fn_if(self, argument: Expression) -> Expression:
        name, if_true, if_false = argument
        return self.resolve(if_true if self.condition(name) else if_false)

    def _fn_equals(self, argument: Expression) -> bool:
        first, second = self.resolve(argument)
        return as_text(first) == as_text(second)

    def _fn_and(self, argument: Expression) -> bool:
        return all(self.resolve(argument))

    def _fn_or(self, argument: Expression) -> bool:
        return any(self.resolve(argument))

    def _fn_not(self, argument: Expression) -> bool:
        return not self.resolve(argument)[0]

    def _fn_contains(self, argument: Expression) -> bool:
        items, item = self.resolve(argument)
        return item in items


def as_text(value: object) -> str:
    """A value as text; booleans as in JSON (true, false)."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _known_or_unknown(text: str) -> str:
    """The text, or the placeholder for an unknown value if the text contains it."""
    return UNKNOWN if UNKNOWN in text else text
