"""What an expression of a template refers to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLACEHOLDER = re.compile(r"\$\{([^!][^}]*)\}")


def references(expression: Any) -> Iterator[tuple[str, str]]:
    """Yield the resources and parameters that are referred to, each with the attribute that is asked for, or none."""
    if isinstance(expression, list):
        for each in expression:
            yield from references(each)
    elif isinstance(expression, Mapping):
        for key, value in expression.items():
            if key == "Ref":
                yield str(value), ""
            elif key == "Fn::GetAtt":
                name, attribute = value if isinstance(value, list) else str(value).split(".", 1)
                yield str(name), str(attribute)
            elif key == "Fn::Sub":
                text, more = (value[0], value[1]) if isinstance(value, list) else (value, {})
                for name in _PLACEHOLDER.findall(text):
                    if name not in more:
                        yield name.partition(".")[0], name.partition(".")[2]
                yield from references(list(more.values()))
            else:
                yield from references(value)
