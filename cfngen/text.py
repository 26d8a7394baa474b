"""Numbers and lists as a sentence holds them."""

from __future__ import annotations

from collections.abc import Sequence

_IRREGULAR = {"are": "is", "were": "was", "have": "has", "do": "does", "go": "goes"}
_SIBILANTS = ("s", "x", "z", "sh", "ch")


def pluralize(number: int, noun: str, verb: str = "") -> str:
    """`1 file`, `3 files`, and with a verb `1 file stays`, `3 files stay`; thousands are separated.

    Args:
        number: how many.
        noun: what, in the singular; `volume of claims` becomes `volumes of claims`.
        verb: what they do or are, as it follows a plural: `stay`, `are`, `have`.
    """
    phrase = f"{number:,} {noun if number == 1 else plural_form(noun)}"
    return f"{phrase} {verb_form(number, verb)}" if verb else phrase


def plural_form(noun: str) -> str:
    """`files`, `volumes of claims`, `addresses`, `policies`; what stands in brackets behind a noun stays."""
    head, bracket, rest = noun.partition(" (")
    first, *more = head.split(" of ", 1)
    if first.endswith(_SIBILANTS):
        first += "es"
    elif first.endswith("y") and first[-2:-1] not in "aeiou":
        first = f"{first[:-1]}ies"
    else:
        first += "s"
    return " of ".join([first, *more]) + bracket + rest


def verb_form(number: int, verb: str) -> str:
    """`stays` for one, `stay` for any other number.

    Args:
        number: of whatever does it.
        verb: as it follows a plural.
    """
    if number != 1:
        return verb
    return _IRREGULAR.get(verb) or (f"{verb}es" if verb.endswith(_SIBILANTS) else f"{verb}s")


def join_and(texts: Sequence[str]) -> str:
    """`one`, `one and two`, `one, two and three`."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last
