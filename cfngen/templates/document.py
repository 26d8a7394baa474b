"""A finished template, as lint, output and deploy take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TemplateBody = dict[str, Any]
"""A template as JSON-ready data; cfn-lint checks which keys it has."""


@dataclass(frozen=True)
class Document:
    """One CloudFormation template as plain data.

    Attributes:
        name: stack name within the cluster and file stem, e.g. `vpc`, `nodes-gpu`, `cluster`, `standalone`.
        body: the template as JSON-ready data.
        module: the module that made it, e.g. `cfngen.templates.vpc`; shown when a template is refused.
        children: names of the documents it nests; only the root has any.
    """

    name: str
    body: TemplateBody
    module: str
    children: tuple[str, ...] = ()
