"""A finished template, as the modules for lint, output and deploy use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TemplateBody = dict[str, Any]
"""A template as JSON-ready data; cfn-lint checks which keys it has."""


@dataclass(frozen=True)
class Document:
    """One CloudFormation template as plain data.

    Attributes:
        name: the stack's name within the cluster, also the file name without `.json`, e.g. `vpc`, `nodes-gpu`,
            `cluster` or `standalone`.
        body: the template as JSON-ready data.
        module: the module that built the template, e.g. `cfngen.templates.vpc`; lint errors name it.
        children: names of the templates that this one nests; only the root has any.
    """

    name: str
    body: TemplateBody
    module: str
    children: tuple[str, ...] = ()
