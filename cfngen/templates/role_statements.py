"""The IAM statements of the roles in templates, as they stand there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cfngen.permissions.statements import Statement


def statements_by_role(templates: Iterable[Mapping[str, Any]]) -> dict[str, list[Statement]]:
    """Return the statements of each role, of its inline and its managed policies, by the role's logical id.

    Args:
        templates: templates of one cluster, in which a managed policy is in the same one as its roles.
    """
    statements: dict[str, list[Statement]] = {}
    for template in templates:
        resources = template.get("Resources", {})
        for logical_id, resource in resources.items():
            if resource["Type"] == "AWS::IAM::Role":
                policies = resource["Properties"].get("Policies", [])
                documents = [policy["PolicyDocument"] for policy in policies]
                statements[logical_id] = [statement for document in documents for statement in document["Statement"]]
        for resource in resources.values():
            if resource["Type"] == "AWS::IAM::ManagedPolicy":
                for role in resource["Properties"]["Roles"]:
                    statements[role["Ref"]] += resource["Properties"]["PolicyDocument"]["Statement"]
    return statements
