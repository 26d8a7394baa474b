"""The class `Document`: a complete template, as lint, output and deploy take it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

STANDALONE = "standalone"
"""Name of the template that contains everything."""
LOCATION_PARAMETERS = ("TemplateBucket", "TemplatePrefix")
"""Parameters of the root for the place of the nested templates; `cfngen deploy` puts their URLs in instead."""

TemplateBody = dict[str, Any]
"""A template as JSON-ready data, e.g. `{"Parameters": {…}, "Resources": {…}}`."""


@dataclass(frozen=True)
class Document:
    """One CloudFormation template as plain data.

    Attributes:
        name: the stack's name within the cluster, also the file name without `.json`, e.g. `vpc`, `nodes-gpu`,
            `cluster` or `standalone`.
        module: the module that built the template, e.g. `cfngen.templates.vpc`; lint errors name it.
        children: names of the templates that this template nests; only the root template nests others.
    """

    name: str
    body: TemplateBody
    module: str
    children: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, str]:
        """What the cluster file says about parameters, by name: their defaults."""
        parameters = self.body.get("Parameters", {}).items()
        return {
            name: str(parameter["Default"])
            for name, parameter in parameters
            if "Default" in parameter and name not in LOCATION_PARAMETERS
        }


def root_of(documents: Sequence[Document]) -> Document | None:
    """Return the template that is deployed: the one that nests the others, or else the only one there is."""
    root = next((document for document in documents if document.children), None)
    return documents[0] if root is None and len(documents) == 1 else root
