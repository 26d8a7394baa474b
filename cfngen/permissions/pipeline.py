"""Statements for who deploys the cluster by the AWS CLI, the CDK or the console, without cfngen.

CloudFormation works with its service role: the actions that have the condition key `cloudformation:RoleArn` require it
("Actions, resources, and condition keys for AWS CloudFormation", Service Authorization Reference). ExecuteChangeSet has
no such key: a change set has the role with which it was created.
"""

from __future__ import annotations

from cfngen.permissions.operators import pass_service_role_statement, service_role_arn, upload_templates_statement
from cfngen.permissions.scope import Scope
from cfngen.permissions.statements import Statement, allow


def pipeline_statements(scope: Scope, *, service_role: str) -> list[Statement]:
    """Return the statements; change sets may have any name, and are authorized by the root stack.

    Args:
        service_role: name of CloudFormation's service role.
    """
    root_stack = scope.stack_arns[:1]
    return [
        allow(
            sid="FollowStacks",
            actions="""
                cloudformation:DescribeChangeSet cloudformation:DescribeEvents cloudformation:DescribeStackEvents
                cloudformation:DescribeStackResources cloudformation:DescribeStacks cloudformation:GetTemplate
                cloudformation:ListChangeSets cloudformation:ListStackResources""",
            resources=scope.stack_arns,
        ),
        # A template that no stack has yet is no resource.
        allow(
            sid="CheckTemplates",
            actions="cloudformation:GetTemplateSummary cloudformation:ListStacks cloudformation:ValidateTemplate",
        ),
        allow(
            sid="DeployWithServiceRole",
            actions="""
                cloudformation:ContinueUpdateRollback cloudformation:CreateChangeSet cloudformation:CreateStack
                cloudformation:DeleteStack cloudformation:RollbackStack cloudformation:UpdateStack""",
            resources=root_stack,
            condition={"ArnLike": {"cloudformation:RoleArn": service_role_arn(scope, service_role)}},
        ),
        allow(
            sid="CompleteDeployment",
            actions="""
                cloudformation:CancelUpdateStack cloudformation:DeleteChangeSet cloudformation:ExecuteChangeSet
                cloudformation:TagResource cloudformation:UntagResource cloudformation:UpdateTerminationProtection""",
            resources=root_stack,
        ),
        pass_service_role_statement(scope, service_role),
        upload_templates_statement(scope),
    ]
