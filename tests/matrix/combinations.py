"""Combinations of the dimensions' values: the cluster file of one, and which ones are chosen."""

from __future__ import annotations

import copy
import functools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice, product
from typing import Any

from conflicts import CONFLICTS, UNLIVED, Conflict
from dimension_values import REGIONS, ByIndex, Combination, Keys
from dimensions import BASE, DIMENSIONS

File = dict[str, Any]
Names = Mapping[str, Sequence[str]]
"""The names of values by the name of their dimension."""
ALL: Names = {name: tuple(values) for name, values in DIMENSIONS.items()}
LIVED: Names = {
    name: tuple(value_name for value_name, value in values.items() if value.lived)
    for name, values in DIMENSIONS.items()
}
"""The values with which a cluster can live in the emulator."""
_ATTEMPTS = 12
_DRAWN = 5000


def file_of(combination: Combination) -> File:
    """Return the cluster file of a combination."""
    partition, region, _ = REGIONS[combination["region"]]
    file: File = {}
    for keys in (BASE, *(DIMENSIONS[name][combination[name]].keys_in(combination) for name in DIMENSIONS)):
        _put_all(file, keys)
    return _filled(file, {"{partition}": partition, "{region}": region})


def _put_all(file: File, keys: Keys) -> None:
    """Set keys of a cluster file."""
    for path, value in keys.items():
        _put(file, path.split("."), value, 0)


def _put(section: File, parts: Sequence[str], value: Any, index: int) -> None:
    """Set a key below a section, which is item `index` of a list if it is in one."""
    part, *rest = parts
    name, bracket, number = part.partition("[")
    if bracket:
        items = section.get(name, [])
        for position, item in enumerate(items):
            if number == "]" or position == int(number.rstrip("]")):
                _put(item, rest, value, position)
    elif rest:
        _put(section.setdefault(name, {}), rest, value, index)
    else:
        section[name] = value.values[index] if isinstance(value, ByIndex) else copy.deepcopy(value)


def _filled(value: Any, placeholders: Mapping[str, str]) -> Any:
    """Return a copy of a part of a file with texts in place of placeholders."""
    if isinstance(value, Mapping):
        return {key: _filled(item, placeholders) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item, placeholders) for item in value]
    if isinstance(value, str):
        for placeholder, text in placeholders.items():
            value = value.replace(placeholder, text)
    return value


def conflicts_in(combination: Combination) -> list[Conflict]:
    """Return the rows of `CONFLICTS` that a combination, or a part of one, has all values of."""
    return [conflict for conflict in CONFLICTS if conflict.is_in(combination)]


Gain = Callable[[Mapping[str, str], str, str], float]
"""What a value is worth beside those that a combination has already: the part, the dimension, the value."""


class Rules:
    """Which values do not go together.

    Args:
        conflicts: the rows of `CONFLICTS`, and perhaps others.
    """

    def __init__(self, conflicts: Sequence[Conflict]) -> None:
        self._conflicts = conflicts
        self._of_value = {
            (name, value): [conflict for conflict in conflicts if value in conflict.values.get(name, ())]
            for name, values in ALL.items()
            for value in values
        }
        self._concerned = {
            value: frozenset(name for conflict in conflicts for name in conflict.values)
            for value, conflicts in self._of_value.items()
        }

    def concern(self, name: str, value: str) -> frozenset[str]:
        """Return the dimensions of which a value excludes some, perhaps together with others."""
        return self._concerned[name, value]

    def forbid(self, part: Combination) -> bool:
        """Return whether a part of a combination has a conflict."""
        return any(conflict.is_in(part) for conflict in self._conflicts)

    def allow(self, part: Combination, name: str, value: str) -> bool:
        """Return whether a part of a combination has no conflict with a further value."""
        return not any(
            all(name == other or part.get(other) in values for other, values in conflict.values.items())
            for conflict in self._of_value[name, value]
        )


CHECKED = Rules(CONFLICTS)
LIVING = Rules((*CONFLICTS, *UNLIVED))


def completed(
    part: Combination,
    names: Names,
    gain: Gain,
    chance: random.Random,
    rules: Rules = CHECKED,
) -> dict[str, str] | None:
    """Return a combination without conflicts that has the values of a part, and others of most gain; None without one.

    None means that there is no such combination: all of them are tried.
    """
    if rules.forbid(part):
        return None
    others = [name for name in names if name not in part]
    possible = {
        name: [value for value in names[name] if rules.allow(part, name, value)]
        for name in chance.sample(others, len(others))
    }
    return _search(dict(part), names, possible, gain, chance, rules)


def _search(
    part: dict[str, str],
    names: Names,
    possible: dict[str, list[str]],
    gain: Gain,
    chance: random.Random,
    rules: Rules,
) -> dict[str, str] | None:
    """Give the dimension with the fewest possible values one of them, and go on; go back where none is left."""
    if not possible:
        return part
    if not all(possible.values()):
        return None
    name = min(possible, key=lambda name: len(possible[name]) / len(names[name]))
    ranked = sorted(possible[name], key=lambda value: (gain(part, name, value), chance.random()), reverse=True)
    for value in ranked:
        longer = {**part, name: value}
        concerned = rules.concern(name, value)
        rest = {
            other: [further for further in values if rules.allow(longer, other, further)]
            if other in concerned
            else values
            for other, values in possible.items()
            if other != name
        }
        if found := _search(longer, names, rest, gain, chance, rules):
            return found
    return None


Parts = frozenset[tuple[str, str]]
"""Values with their dimensions."""


def parts_of(combination: Combination, size: int) -> Iterator[Parts]:
    """Yield all choices of `size` values of a combination."""
    return map(frozenset, combinations(combination.items(), size))


def every_part(names: Names, size: int) -> Iterator[Parts]:
    """Yield all choices of one value each of `size` dimensions."""
    for dimensions in combinations(names, size):
        for values in product(*(names[name] for name in dimensions)):
            yield frozenset(zip(dimensions, values, strict=True))


def cover(names: Names, size: int, seed: int = 1, rules: Rules = CHECKED) -> list[dict[str, str]]:
    """Return combinations without conflicts, in some of which any `size` values occur together that can.

    Args:
        names: the values to use.
        size: 2 for every pair of values of two dimensions, 3 for every three values.
        seed: the same seed gives the same combinations.
        rules: what does not go together.
    """
    chance = random.Random(seed)
    missing = _Missing(names, size)
    chosen = []
    while first := missing.first():
        rows = [
            completed(dict(first), names, missing.gain, chance, rules) for _ in range(_ATTEMPTS if size == 2 else 1)
        ]
        made = [row for row in rows if row]
        if not made:
            missing.remove(first)
            continue
        of_rows = [[part for part in parts_of(row, size) if part in missing] for row in made]
        best = max(range(len(made)), key=lambda index: len(of_rows[index]))
        for part in of_rows[best]:
            missing.remove(part)
        chosen.append({name: made[best][name] for name in names})
    return chosen


class _Missing:
    """The choices of `size` values that no combination has yet.

    Besides the choices themselves it has, by all values of a choice but one, which values are missing there, as bits of
    a number: so many choices at once are counted, many thousand times.
    """

    def __init__(self, names: Names, size: int) -> None:
        self._size = size
        values = [(name, value) for name in names for value in names[name]]
        self._bits = {value: 1 << index for index, value in enumerate(values)}
        self._parts = dict.fromkeys(every_part(names, size))
        self._last: dict[Parts, int] = defaultdict(int)
        for part in self._parts:
            for value in part:
                self._last[part - {value}] |= self._bits[value]

    def __contains__(self, part: Parts) -> bool:
        return part in self._parts

    def first(self) -> Parts | None:
        """Return the first choice; None if none is missing."""
        return next(iter(self._parts), None)

    def remove(self, part: Parts) -> None:
        """Take a choice away."""
        del self._parts[part]
        for value in part:
            self._last[part - {value}] ^= self._bits[value]

    def gain(self, part: Mapping[str, str], name: str, value: str) -> float:
        """Return how many missing choices a value makes with those of a part."""
        of_part = sum(map(self._bits.__getitem__, part.items()))
        own = (name, value)
        # Each choice is counted once for each of its values that is in the part.
        counted = 0
        for others in combinations(part.items(), self._size - 2):
            counted += (self._last.get(frozenset((*others, own)), 0) & of_part).bit_count()
        return counted // (self._size - 1)


@functools.cache
def lived() -> list[dict[str, str]]:
    """Return the combinations that live in the emulator: any two values occur together that can."""
    return cover(LIVED, 2, rules=LIVING)


def neighbours(rows: Sequence[Combination], names: Names, seed: int) -> Iterator[dict[str, str]]:
    """Yield combinations without conflicts, each with another value of one dimension than one of these rows.

    Those templates that do not depend on this dimension are the same, and are linted once.
    """
    chance = random.Random(seed)
    while True:
        for row in rows:
            name = chance.choice(sorted(names))
            others = [value for value in names[name] if value != row[name]]
            changed = {**row, name: chance.choice(others)} if others else row
            if changed != row and not conflicts_in(changed):
                yield changed


def refused(names: Names, number: int, seed: int = 1) -> list[dict[str, str]]:
    """Return combinations by chance that have one conflict each, `number` of each conflict that these values can have.

    More than one would do, but a check keeps silent about a key whose own value another one refuses.
    """
    chance = random.Random(seed)
    found = []
    for conflict in CONFLICTS:
        possible = {name: sorted(values & set(names[name])) for name, values in conflict.values.items()}
        drawn = ({name: chance.choice(possible.get(name, names[name])) for name in names} for _ in range(_DRAWN))
        if all(possible.values()):
            found += islice((row for row in drawn if conflicts_in(row) == [conflict]), number)
    return found
