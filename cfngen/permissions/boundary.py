"""A permissions boundary for the roles that the stacks make, which an administrator of the account installs.

A role may do what both its policies and its boundary allow ("Permissions boundaries for IAM entities", IAM User Guide).
A boundary is one managed policy, so it is shorter than the policies of all roles together: it has their actions, and
leaves conditions and, except for services that hold data, resources to the roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cfngen.permissions.statements import Condition, Expression, Statement, allow

# Other services' ARNs would hardly narrow a boundary: their resources are told apart by tags.
_WITH_RESOURCES = ("cloudformation", "iam", "s3", "secretsmanager")
# For actions of these services that begin so, a pattern stands: they change nothing.
_ABBREVIATED = ("autoscaling:Describe", "ec2:Describe", "elasticloadbalancing:Describe")
_FROM_CLUSTER_FILE = "ClusterFile"


def boundary_statements(role_statements: Iterable[Statement]) -> list[Statement]:
    """Return the statements of a boundary under which roles with these statements fit.

    Statements of the cluster file are in it as they are. Those that deny anything are left to the roles.

    Args:
        role_statements: the statements of all roles, in any order.
    """
    actions_by_resources: dict[tuple[Expression, ...], list[str]] = {}
    own_statements: list[tuple[list[str], list[Expression], Condition | None]] = []
    for statement in role_statements:
        if statement["Effect"] != "Allow":
            continue
        if statement["Sid"].startswith(_FROM_CLUSTER_FILE):
            content = (statement["Action"], statement["Resource"], statement.get("Condition"))
            if content not in own_statements:
                own_statements.append(content)
            continue
        for action in statement["Action"]:
            has_resources = action.partition(":")[0] in _WITH_RESOURCES
            resources = tuple(statement["Resource"]) if has_resources else ("*",)
            actions_by_resources.setdefault(resources, []).append(_abbreviated(action))
    needed = {
        resources: " ".join(
            action for action in dict.fromkeys(actions) if not _is_among(action, resources, actions_by_resources)
        )
        for resources, actions in actions_by_resources.items()
    }
    statements = [
        allow(f"Bound{number}", actions, resources)
        for number, (resources, actions) in enumerate((item for item in needed.items() if item[1]), start=1)
    ]
    return [
        *statements,
        *(
            allow(f"{_FROM_CLUSTER_FILE}{number}", " ".join(actions), resources, condition)
            for number, (actions, resources, condition) in enumerate(own_statements, start=1)
        ),
    ]


def _is_among(
    action: str, resources: tuple[Expression, ...], actions_by_resources: Mapping[tuple[Expression, ...], Sequence[str]]
) -> bool:
    """Return whether an action is allowed on these resources and further ones, too."""
    return any(action in actions and set(resources) < set(others) for others, actions in actions_by_resources.items())


def _abbreviated(action: str) -> str:
    beginning = next((prefix for prefix in _ABBREVIATED if action.startswith(prefix)), "")
    return f"{beginning}*" if beginning else action
