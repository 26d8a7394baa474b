"""Decorators that register patches of moto, which are applied together for the rest of the process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from moto.core import utils as core_utils

from cfngen.sandbox.untyped import Original

# moto 5.2.5 lists all methods of a service's class for each request (moto/core/responses.py, `call_action`); EC2 has a
# thousand. `speedups` puts this in the place of moto's function.
method_names_from_class = functools.cache(core_utils.method_names_from_class)
Patch = TypeVar("Patch", bound=Callable[..., object])


class Patches:
    """Registered patches; of several patches of one method, a later one gets the earlier one as the original."""

    def __init__(self) -> None:
        self._registered: list[Callable[[], None]] = []

    def apply(self) -> None:
        """Apply the patches that are not applied yet; the methods that they add to a class are found from now on."""
        if self._registered:
            method_names_from_class.cache_clear()
        while self._registered:
            self._registered.pop(0)()

    def patches(self, owner: object, name: str) -> Callable[[Patch], Patch]:
        """Register a function that replaces a method, and gets the replaced method before the method's arguments."""

        def register(patch: Patch) -> Patch:
            def replace() -> None:
                original = getattr(owner, name)

                def method(self: object, *arguments: object, **options: object) -> object:
                    return patch(original, self, *arguments, **options)

                setattr(owner, name, method)

            self._registered.append(replace)
            return patch

        return register

    def patches_property(self, owner: object, name: str) -> Callable[[Patch], Patch]:
        """Register a function that replaces a property, and gets the replaced getter before the object."""

        def register(patch: Patch) -> Patch:
            def replace() -> None:
                original: Original = vars(owner)[name].fget
                setattr(owner, name, property(functools.partial(patch, original)))

            self._registered.append(replace)
            return patch

        return register

    def replaces(self, owner: object, name: str) -> Callable[[Patch], Patch]:
        """Register a function as a method that moto lacks, or in place of moto's."""

        def register(patch: Patch) -> Patch:
            self.sets(owner, name, patch)
            return patch

        return register

    def sets(self, owner: object, name: str, value: object) -> None:
        """Register a value for an attribute of a class or of a module."""
        self._registered.append(lambda: setattr(owner, name, value))


_BEHAVIOUR = Patches()
apply = _BEHAVIOUR.apply
patches = _BEHAVIOUR.patches
patches_property = _BEHAVIOUR.patches_property
replaces = _BEHAVIOUR.replaces
sets = _BEHAVIOUR.sets
