"""The class `Document`: a complete template, as lint, output and deploy take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
