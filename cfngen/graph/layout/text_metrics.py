"""How wide a text is, without a font: widths of characters in the widest font that a picture may be shown in."""

from __future__ import annotations

import functools
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

# Thousandths of the size of the font, from space to tilde, of DejaVu Sans and DejaVu Sans Bold, the last and
# widest of FONTS in cfngen/graph/style.py. In Helvetica and Arial the same text takes about an eighth less.
_REGULAR = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636,
    636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863,
    748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635,
    615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
    337, 636, 838,
)  # fmt: skip
_BOLD = (
    348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696, 696, 696, 696, 696,
    696, 696, 696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830, 683, 683, 821, 837, 372, 372, 775, 637, 995,
    837, 850, 733, 850, 770, 720, 682, 812, 774, 1103, 771, 724, 725, 457, 365, 457, 838, 500, 500, 675, 716, 593, 716,
    678, 435, 716, 712, 343, 343, 665, 343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582, 712,
    365, 712, 838,
)  # fmt: skip
_OTHER = 1000
_WIDE = 1300  # ideographs and emoji
_BREAK_AFTER = frozenset(" /-_.:,@=")


@dataclass(frozen=True)
class Font:
    """How a text is set.

    Attributes:
        size: in pixels.
        line: height of a line in pixels.
    """

    size: float
    line: int
    bold: bool = False


class Size(NamedTuple):
    """Width and height of a text in pixels."""

    width: float
    height: float


HEADING = Font(20, 28, bold=True)
TITLE = Font(13, 17, bold=True)
LINE = Font(11, 15)
LABEL = Font(10.5, 14)


@functools.lru_cache(maxsize=4096)
def width(text: str, font: Font) -> float:
    """Return an upper bound of the width of a text in pixels."""
    return sum(_width(character, font.bold) for character in text) * font.size / 1000


@functools.lru_cache(maxsize=4096)  # sizes are asked for again and again while boxes are arranged
def wrapped(text: str, limit: float, font: Font) -> tuple[str, ...]:
    """Return a text as lines that are no wider than a limit: broken after spaces and signs, or else within a word."""
    lines = []
    rest = text.strip()
    while rest:
        line = _first_line(rest, limit, font)
        lines.append(line.rstrip())
        rest = rest[len(line) :].lstrip()
    return tuple(lines)


def _first_line(text: str, limit: float, font: Font) -> str:
    """Return as much of a text as fits on a line, with the space after which it is broken."""
    taken = 0.0
    after_space = after_sign = 0
    for index, character in enumerate(text):
        taken += _width(character, font.bold) * font.size / 1000
        if taken > limit and character != " ":
            # After a space, unless that leaves most of the line empty.
            return text[: (after_space if 2 * after_space > index else after_sign) or max(index, 1)]
        if character == " ":
            after_space = index + 1
        if character in _BREAK_AFTER:
            after_sign = index + 1
    return text


def _width(character: str, bold: bool) -> int:
    """Return an upper bound of the width of a character in thousandths of the size of the font."""
    if " " <= character <= "~":
        return (_BOLD if bold else _REGULAR)[ord(character) - 32]
    if unicodedata.combining(character):
        return 0
    base = unicodedata.normalize("NFD", character)[0]
    if " " <= base <= "~":
        return _width(base, bold)
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else int(_OTHER * (1.1 if bold else 1))
