"""Numbers with nouns and verbs, and lists of words, as parts of English sentences."""

from __future__ import annotations

from collections.abc import Sequence

# The singular form of each verb, by its plural form.
_IRREGULAR_VERBS = {"are": "is", "were": "was", "have": "has", "do": "does", "go": "goes"}
# Words with these endings get "es" instead of "s".
_SIBILANTS = ("s", "x", "z", "sh", "ch")


def pluralize(number: int, noun: str, verb: str = "") -> str:
    """Return a number with its noun, as in `1 file` and `3,000 files`, and with a verb, as in `1 file stays`.

    Args:
        noun: in the singular; `volume of claims` becomes `volumes of claims`.
        verb: in the plural form: `stay`, `are`, `have`.
    """
    phrase = f"{number:,} {noun if number == 1 else plural_form(noun)}"
    return f"{phrase} {verb_form(number, verb)}" if verb else phrase


def minutes_text(seconds: float) -> str:
    """Return a time in whole minutes, as in `1 minute` and `15 minutes`."""
    return pluralize(round(seconds / 60), "minute")


def plural_form(noun: str) -> str:
    """Return the plural of a noun: `files`, `volumes of claims`, `addresses`.

    Only the part before ` of ` or a bracket gets the plural ending; the rest is kept.
    """
    phrase, bracket, text_in_brackets = noun.partition(" (")
    word, of, complement = phrase.partition(" of ")
    if word.endswith(_SIBILANTS):
        plural_word = f"{word}es"
    elif word.endswith("y") and word[-2:-1] not in "aeiou":
        plural_word = f"{word[:-1]}ies"
    else:
        plural_word = f"{word}s"
    return plural_word + of + complement + bracket + text_in_brackets


def verb_form(number: int, verb: str) -> str:
    """Return the form of a verb for a number: `stays` for one, `stay` for any other.

    Args:
        number: how many things the sentence is about.
    """
    if number != 1:
        return verb
    return _IRREGULAR_VERBS.get(verb) or (f"{verb}es" if verb.endswith(_SIBILANTS) else f"{verb}s")


def join_and(texts: Sequence[str]) -> str:
    """Join texts: `one`, `one and two`, `one, two and three`."""
    *other_texts, last_text = texts
    return f"{', '.join(other_texts)} and {last_text}" if other_texts else last_text
