"""Numbers with nouns and verbs, and lists of words, as parts of English sentences."""

from __future__ import annotations

from collections.abc import Sequence

# The singular form of each verb, by its plural form.
_IRREGULAR_VERBS = {"are": "is", "were": "was", "have": "has", "do": "does", "go": "goes"}
_SIBILANTS = ("s", "x", "z", "sh", "ch")


def pluralize(number: int, noun: str, verb: str = "") -> str:
    """Return a number with its noun: `1 file`, `3,000 files`, and with a verb `1 file stays`, `3 files stay`.

    Args:
        number: how many.
        noun: in the singular; `volume of claims` becomes `volumes of claims`.
        verb: in the plural form: `stay`, `are`, `have`.
    """
    phrase = f"{number:,} {noun if number == 1 else plural_form(noun)}"
    return f"{phrase} {verb_form(number, verb)}" if verb else phrase


def plural_form(noun: str) -> str:
    """Return the plural: `files`, `volumes of claims`, `addresses`; text in brackets after the noun is kept."""
    # Only the part before " of " and before a bracket gets the plural ending.
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
    """Return the form of a verb for a number: `stays` for one, `stay` for any other.

    Args:
        number: how many things the sentence is about.
        verb: in the plural form.
    """
    if number != 1:
        return verb
    return _IRREGULAR_VERBS.get(verb) or (f"{verb}es" if verb.endswith(_SIBILANTS) else f"{verb}s")


def join_and(texts: Sequence[str]) -> str:
    """Join texts: `one`, `one and two`, `one, two and three`."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last
