"""Statements of an operator who replaces instances with `cfngen replace`, in addition to the operator's own.

Only a master that gets another instance type needs more than the permission to terminate instances. Whoever gives an
Auto Scaling group a launch template must be allowed to run instances from it, to tag them and their volumes, and to
pass their role ("Control Amazon EC2 launch template usage in Auto Scaling groups", Amazon EC2 Auto Scaling User Guide).
Resources and conditions: Service Authorization Reference, of Amazon EC2 and of Amazon EC2 Auto Scaling.
"""

from __future__ import annotations

from cfngen.permissions.scope import Scope, if_resource_has_tag
from cfngen.permissions.statements import Statement, allow


def replacement_statements(scope: Scope) -> list[Statement]:
    """Return the statements to replace instances, and to give a master another instance type."""
    made_roles = [arn for arn in scope.role_arns if ":role/" in arn] if scope.makes_roles else []
    launch_templates = scope.ec2_arns("launch-template/*")
    return [
        allow(
            sid="ReplaceInstances",
            actions="autoscaling:TerminateInstanceInAutoScalingGroup autoscaling:UpdateAutoScalingGroup",
            resources=scope.auto_scaling_group_arns,
        ),
        allow(
            sid="NewTypes",
            actions="ec2:CreateLaunchTemplateVersion",
            resources=launch_templates,
            condition=if_resource_has_tag(scope),
        ),
        allow(
            sid="LaunchNewTypes",
            actions="ec2:RunInstances",
            condition={"ArnLike": {"ec2:LaunchTemplate": launch_templates[0]}},
        ),
        allow(
            sid="TagNewInstances",
            actions="ec2:CreateTags",
            resources=scope.ec2_arns("instance/*", "network-interface/*", "volume/*"),
            condition={"StringEquals": {"ec2:CreateAction": "RunInstances"}},
        ),
        allow(
            sid="PassRoleToInstances",
            actions="iam:PassRole",
            resources=[*made_roles, *scope.existing_roles],
            condition={"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}},
        ),
    ]
