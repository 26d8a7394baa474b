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

# Unicode's categories of line and paragraph separators, control and format characters, and surrogates. Unassigned and
# private-use characters are visible, so their categories are not among them.
_INVISIBLE_CATEGORIES = ("Zl", "Zp", "Cc", "Cf", "Cs")
_ALLOWED_CONTROL_CHARACTERS = frozenset("\t\n")


def _check_no_invisible_characters(cluster: Cluster) -> Iterator[Problem]:
    """Check that no key and no text of the cluster file has an invisible character.

    A key is reported once, not for each value below it.
    """
    reported_keys: set[Path] = set()
    for path, value in leaves(cluster.model_dump(mode="json", by_alias=True)):
        for length, key in enumerate(path, start=1):
            key_path = path[:length]
            invisible_character = first_invisible(key) if isinstance(key, str) else ""
            if invisible_character and key_path not in reported_keys:
                reported_keys.add(key_path)
                yield Problem(key_path, f"the key {_describe_invisible(invisible_character)}")
        invisible_character = first_invisible(value) if isinstance(value, str) else ""
        if invisible_character:
            yield Problem(path, f"the text {_describe_invisible(invisible_character)}")


def first_invisible(text: str) -> str:
    """Return the first invisible character of a text, or an empty string; spaces, tabs and line ends are allowed."""
    text = text.replace("\r\n", "\n")
    if text.isprintable():
        return ""
    for character in text:
        is_invisible = unicodedata.category(character) in _INVISIBLE_CATEGORIES
        if is_invisible and character not in _ALLOWED_CONTROL_CHARACTERS:
            return character
    return ""


def _describe_invisible(character: str) -> str:
    """Return what is wrong with a text that contains an invisible character; completes a message."""
    name = unicodedata.name(character, "control character").lower()
    return f"contains U+{ord(character):04X} ({name}), which is invisible in a review; remove it"


PROBLEM_CHECKS = (_check_no_invisible_characters,)
