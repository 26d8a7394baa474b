"""References to resources and parameters in a template expression."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_PLACEHOLDER = re.compile(r"\$\{([^!][^}]*)\}")


def references(expression: object) -> Iterator[tuple[str, str]]:
    """Yield the name of each resource or parameter that is referred to, and the attribute, which is empty for Ref."""
    if isinstance(expression, list):
        for element in expression:
            yield from references(element)
    elif isinstance(expression, Mapping):
        for key, value in expression.items():
            if key == "Ref":
                yield str(value), ""
            elif key == "Fn::GetAtt":
                name, attribute = value if isinstance(value, list) else str(value).split(".", 1)
                yield str(name), str(attribute)
            elif key == "Fn::Sub":
                text, variables = (value[0], value[1]) if isinstance(value, list) else (value, {})
                for name in _PLACEHOLDER.findall(text):
                    if name not in variables:
                        yield name.partition(".")[0], name.partition(".")[2]
                yield from references(list(variables.values()))
            else:
                yield from references(value)
