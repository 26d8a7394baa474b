"""Logical ids that follow from references in the cluster file: how they are made and parsed."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import ClassVar

from cfngen.cluster.id_form import IdForm


@dataclass(frozen=True)
class ExistingPartId(IdForm):
    """The parameter for an existing part that has no parameter of its own, e.g. `ExistingSecurityGroup1A2B3C4D`.

    Attributes:
        word: what the part is, in CamelCase.
        digest: eight hexadecimal digits that tell references apart.
    """

    word: str
    digest: str

    _PATTERN: ClassVar = re.compile(r"Existing(?P<word>[A-Z][A-Za-z]*?)(?P<digest>[0-9A-F]{8})")

    def __str__(self) -> str:
        return f"Existing{self.word}{self.digest}"

    @classmethod
    def of(cls, word: str, reference: str) -> ExistingPartId:
        """Return the id for a reference; equal references have one id, whichever keys have them."""
        return cls(word, hashlib.sha256(reference.encode()).hexdigest()[:8].upper())


@dataclass(frozen=True)
class RecordedId(IdForm):
    """The root's output with the id to which a reference to another stack has led, e.g. `ReferencedVpcId`.

    Attributes:
        part: the logical id of the part; if the cluster file had an id, it would be the parameter's name.
    """

    part: str

    _PATTERN: ClassVar = re.compile(r"Referenced(?P<part>[A-Z][A-Za-z0-9]*)")

    def __str__(self) -> str:
        return f"Referenced{self.part}"

    @classmethod
    def parse(cls, logical_id: str) -> RecordedId | None:
        """Return the part of an id of this form, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(match[1]) if match else None
