"""Conditions of statements: every operator of IAM, with IfExists, and for keys with several values.

IAM User Guide:

- "IAM JSON policy elements: Condition operators": what each compares; a key that the request lacks meets a negated
  operator, and no other; with IfExists it meets any; Null asks for the key itself. Only operators of strings and of
  ARNs know variables.
- "Conditions with multiple context keys or values": keys and operators are joined by AND, values of a key by OR, those
  of a negated operator by NOR.
- "Set operators for multivalued context keys": a key without values meets ForAllValues, and not ForAnyValue; a key with
  several values needs one of both.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import ipaddress
import operator
import re
from collections.abc import Callable, Mapping

from cfngen.sandbox.services import policy_documents
from cfngen.sandbox.services.authorization.patterns import Context, Variables, not_modelled
from cfngen.sandbox.untyped import Expression, JsonObject

Comparison = Callable[[Variables, str, str], bool]  # the variables, a value of the request, a value of the policy
_EPOCH_SECONDS = re.compile(r"\d{5,}")  # fewer digits may be a year


def _number(text: str) -> decimal.Decimal:
    if not re.fullmatch(r"[-+]?\d+(\.\d+)?", text):
        raise not_modelled(f"{text} is no number")
    return decimal.Decimal(text)


def _time(text: str) -> datetime.datetime:
    """Return a date of ISO 8601, or in seconds since 1970; without a zone it is in UTC."""
    if _EPOCH_SECONDS.fullmatch(text):
        return datetime.datetime.fromtimestamp(int(text), datetime.UTC)
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise not_modelled(f"{text} is no date") from None
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise not_modelled(f"{text} is neither true nor false")
    return text.lower() == "true"


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise not_modelled(f"{text} is not encoded in base64") from None


def _is_in_network(address: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)
    except ValueError as error:
        raise not_modelled(str(error)) from None


def _by_value(parse: Callable[[str], object], compare: Callable[..., bool]) -> Comparison:
    return lambda _variables, value, expected: compare(parse(value), parse(expected))


_COMPARISONS: Mapping[str, Comparison] = {
    "StringEquals": Variables.equals,
    "StringEqualsIgnoreCase": lambda variables, value, expected: variables.equals(value.lower(), expected.lower()),
    "StringLike": Variables.matches,
    "ArnEquals": Variables.matches_arn,
    "ArnLike": Variables.matches_arn,
    "NumericEquals": _by_value(_number, operator.eq),
    "NumericLessThan": _by_value(_number, operator.lt),
    "NumericLessThanEquals": _by_value(_number, operator.le),
    "NumericGreaterThan": _by_value(_number, operator.gt),
    "NumericGreaterThanEquals": _by_value(_number, operator.ge),
    "DateEquals": _by_value(_time, operator.eq),
    "DateLessThan": _by_value(_time, operator.lt),
    "DateLessThanEquals": _by_value(_time, operator.le),
    "DateGreaterThan": _by_value(_time, operator.gt),
    "DateGreaterThanEquals": _by_value(_time, operator.ge),
    "Bool": _by_value(_boolean, operator.eq),
    "BinaryEquals": _by_value(_bytes, operator.eq),
    "IpAddress": lambda _variables, value, expected: _is_in_network(value, expected),
}
"""For each operator, the function that compares a value of the request with a value of the policy."""
_NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
    "NotIpAddress": "IpAddress",
}
_SET_OPERATORS = ("", "ForAllValues", "ForAnyValue")


def are_met(condition: JsonObject, context: Context, variables: Variables) -> bool:
    """Return whether the context of a request meets a statement's conditions.

    Raises:
        Refused: an operator, a value of the policy or one of the request is not modelled
        UnresolvedVariableError: a variable has no value
    """
    met = [
        _is_met(name, [_text(value) for value in policy_documents.as_list(values)], context.get(key.lower()), variables)
        for name, values_by_key in condition.items()
        for key, values in values_by_key.items()
    ]
    return all(met)


def _text(value: Expression) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_met(name: str, expected: list[str], values: list[str] | None, variables: Variables) -> bool:
    """Return whether the values of a context key meet an operator; `values` is None if the request lacks the key."""
    if name == "Null":
        return any(_boolean(text) is not bool(values) for text in expected)
    set_operator, _, rest = name.rpartition(":")
    base = rest.removesuffix("IfExists")
    compare = _COMPARISONS.get(_NEGATED.get(base, base))
    if compare is None or set_operator not in _SET_OPERATORS:
        raise not_modelled(f"{name} is no operator of conditions")
    if not values:
        is_met_without = set_operator == "ForAllValues" or (base in _NEGATED and not set_operator)
        return is_met_without or rest != base
    if not set_operator:
        if len(values) > 1:
            raise not_modelled(f"{name} for a key with several values: {', '.join(values)}")
    else:  # an empty text is an empty set
        values = [value for value in values if value]
    matches = [any(compare(variables, value, text) for text in expected) != (base in _NEGATED) for value in values]
    return any(matches) if set_operator == "ForAnyValue" else all(matches)
