"""Check for invisible characters: what a person reviews must be what is executed.

Texts of the cluster file appear in templates, plans and user data. A character that reverses the direction of text, has
no width or moves the cursor makes a line look different from what machines read (CVE-2021-42574, "Trojan Source").
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, leaves
from cfngen.cluster.problems import Problem

# Line and paragraph separators, control and format characters, surrogates. Unassigned and private-use characters are
# visible, so their categories are missing here.
_INVISIBLE_CATEGORIES = ("Zl", "Zp", "Cc", "Cf", "Cs")
_ALLOWED_CONTROL_CHARACTERS = frozenset("\t\n")


def _check_no_invisible_characters(cluster: Cluster) -> Iterator[Problem]:
    """Check all keys and texts of the cluster file. A key is reported once, not for each value below it."""
    reported_keys: set[Path] = set()
    for path, value in leaves(cluster.model_dump(mode="json", by_alias=True)):
        for length, part in enumerate(path, start=1):
            key_path = path[:length]
            if isinstance(part, str) and key_path not in reported_keys and (character := first_invisible(part)):
                reported_keys.add(key_path)
                yield Problem(key_path, f"the key {_invisible_character_message(character)}")
        if isinstance(value, str) and (character := first_invisible(value)):
            yield Problem(path, f"the text {_invisible_character_message(character)}")


def first_invisible(text: str) -> str:
    """Return the first invisible character of a text, or an empty string; spaces, tabs and line ends are allowed."""
    text = text.replace("\r\n", "\n")
    if text.isprintable():
        return ""
    return next(
        (
            character
            for character in text
            if character not in _ALLOWED_CONTROL_CHARACTERS and unicodedata.category(character) in _INVISIBLE_CATEGORIES
        ),
        "",
    )


def _invisible_character_message(character: str) -> str:
    name = unicodedata.name(character, "control character").lower()
    return f"contains U+{ord(character):04X} ({name}), which is invisible in a review; remove it"


PROBLEM_CHECKS = (_check_no_invisible_characters,)
