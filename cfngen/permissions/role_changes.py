"""Statements of CloudFormation's service role for the roles that it creates, and for those that it passes to services.

Who may create roles and write their policies can become an administrator of the account, unless every role that they
create has a permissions boundary ("Permissions boundaries for IAM entities", IAM User Guide). With
`iam.permissionsBoundary` the statements require it for each action that has the condition key; these are listed in
"Available keys for AWS IAM" there.
"""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.permissions.scope import Scope, unless_of_another_cluster
from cfngen.permissions.statements import Condition, Statement, allow


def role_statements(scope: Scope) -> list[Statement]:
    """Return the statements for the roles, instance profiles and managed policies that the stacks hold.

    Existing roles are only passed.
    """
    statements = []
    if scope.makes_roles:
        role_arns = [*(scope.instance_role_arns if scope.makes_instance_profiles else ()), *scope.flow_log_role_arns]
        statements += role_change_statements(scope, role_arns, sid_suffix="Roles")
    if scope.makes_instance_profiles:
        # The permissions of the handlers of AWS::IAM::InstanceProfile in the CloudFormation registry.
        statements.append(
            allow(
                sid="Profiles",
                actions="""
                    iam:AddRoleToInstanceProfile iam:CreateInstanceProfile iam:DeleteInstanceProfile
                    iam:GetInstanceProfile iam:RemoveRoleFromInstanceProfile""",
                resources=scope.instance_profile_arns,
            )
        )
        if scope.makes_roles:
            # Managed policies have no tags, and no condition key for boundaries.
            statements.append(
                allow(
                    sid="Policies",
                    actions="""
                        iam:CreatePolicy iam:CreatePolicyVersion iam:DeletePolicy iam:DeletePolicyVersion iam:GetPolicy
                        iam:GetPolicyVersion iam:ListEntitiesForPolicy iam:ListPolicyVersions""",
                    resources=scope.managed_policy_arns,
                )
            )
    return [*statements, *_keep_boundaries_statements(scope), *_pass_instance_roles_statements(scope)]


def _keep_boundaries_statements(scope: Scope) -> list[Statement]:
    """Return the statement that keeps the boundaries as an administrator made them; empty without any.

    A boundary may have a name that the statements for managed policies match. Its versions are what it allows.
    """
    if not scope.permissions_boundaries:
        return []
    return [
        {
            "Sid": "KeepBoundaries",
            "Effect": "Deny",
            "Action": [
                *("iam:CreatePolicy", "iam:CreatePolicyVersion", "iam:DeletePolicy", "iam:DeletePolicyVersion"),
                "iam:SetDefaultPolicyVersion",
            ],
            "Resource": [*scope.permissions_boundaries],
        }
    ]


def role_change_statements(scope: Scope, role_arns: Sequence[str], *, sid_suffix: str) -> list[Statement]:
    """Return the statements to create, change and delete roles, but not those of another cluster.

    The statements with `Bound` in their ids, if there is a boundary, are for actions that have its condition key.

    Args:
        sid_suffix: what the ids of the statements end in, e.g. `Roles`.
    """
    ours = unless_of_another_cluster(scope)
    with_boundary = {"ArnEquals": {"iam:PermissionsBoundary": list(scope.permissions_boundaries)}}
    bound_actions = """
        iam:AttachRolePolicy iam:CreateRole iam:DeleteRolePolicy iam:DetachRolePolicy iam:PutRolePermissionsBoundary
        iam:PutRolePolicy"""
    other_actions = """
        iam:DeleteRole iam:TagRole iam:UntagRole iam:UpdateAssumeRolePolicy iam:UpdateRole iam:UpdateRoleDescription"""
    changes = (
        [
            allow(f"Bound{sid_suffix}", bound_actions, role_arns, {**ours, **with_boundary}),
            allow(sid_suffix, other_actions, role_arns, ours),
        ]
        if scope.permissions_boundaries
        else [allow(sid_suffix, f"{bound_actions} {other_actions}", role_arns, ours)]
    )
    return [
        allow(
            sid=f"Read{sid_suffix}",
            actions="iam:GetRole iam:GetRolePolicy iam:ListAttachedRolePolicies iam:ListRolePolicies",
            resources=role_arns,
        ),
        *changes,
    ]


def pass_flow_log_role_statement(scope: Scope) -> Statement:
    """Return the statement to pass the role that delivers flow logs, as who creates the flow log must be allowed to."""
    return allow(
        sid="PassFlowLogRole",
        actions="iam:PassRole",
        resources=scope.flow_log_role_arns,
        condition=if_passed_to("vpc-flow-logs"),
    )


def if_passed_to(service: str) -> Condition:
    """Return the IAM condition that a role is passed to a service, whose principal in China may end in `.cn`."""
    return {"StringLike": {"iam:PassedToService": f"{service}.amazonaws.com*"}}


def _pass_instance_roles_statements(scope: Scope) -> list[Statement]:
    """Return the statement to pass roles to EC2; empty if there are none.

    Who adds a role to an instance profile, or launches instances with the profile, must be allowed to pass the role
    (AddRoleToInstanceProfile, IAM API Reference; "Grant permissions to attach an IAM role to an instance", Amazon EC2
    User Guide). Tags of a role do not restrict iam:PassRole.
    """
    made_roles = scope.instance_role_arns if scope.makes_roles and scope.makes_instance_profiles else []
    role_arns = [*made_roles, *scope.existing_roles]
    if not role_arns:
        return []
    return [allow(sid="PassRoles", actions="iam:PassRole", resources=role_arns, condition=if_passed_to("ec2"))]
