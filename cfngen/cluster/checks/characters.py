"""Characters that nobody sees: what a person reviews must be what is run.

Whatever a user writes comes back in templates, plans and user data, where a character that turns the direction of text,
takes no room or moves the cursor makes a line read otherwise than machines read it (CVE-2021-42574, "Trojan Source").
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, leaves
from cfngen.cluster.problems import Problem

# Line and paragraph separators, control and format characters, surrogates. Unassigned characters and those of private
# use have no meaning here either, but they show.
_INVISIBLE_CATEGORIES = ("Zl", "Zp", "Cc", "Cf", "Cs")
_ALLOWED = frozenset("\t\n")


def _invisible(cluster: Cluster) -> Iterator[Problem]:
    keys: set[Path] = set()
    for path, value in leaves(cluster.model_dump(mode="json", by_alias=True)):
        for length, part in enumerate(path, start=1):
            if isinstance(part, str) and path[:length] not in keys and (character := first_invisible(part)):
                keys.add(path[:length])
                yield Problem(path[:length], f"the key {_message(character)}")
        if isinstance(value, str) and (character := first_invisible(value)):
            yield Problem(path, f"the text {_message(character)}")


def first_invisible(text: str) -> str:
    """Return the first character of a text that cannot be seen, or nothing; spaces, tabs and line ends can."""
    text = text.replace("\r\n", "\n")
    if text.isprintable():
        return ""
    return next(
        (
            character
            for character in text
            if character not in _ALLOWED and unicodedata.category(character) in _INVISIBLE_CATEGORIES
        ),
        "",
    )


def _message(character: str) -> str:
    name = unicodedata.name(character, "control character").lower()
    return f"holds U+{ord(character):04X} ({name}), which nobody sees who reviews it; remove it"


PROBLEMS = (_invisible,)
