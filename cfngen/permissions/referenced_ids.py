"""Additional statements of operators and of CloudFormation's service role for references in the cluster file.

Fn::GetStackOutput needs cloudformation:DescribeStacks on the other stack, by the executing role (template reference of
the function, "RoleArn"). A parameter of the type AWS::SSM::Parameter::Value is read with ssm:GetParameters ("Specify
existing resources at runtime with CloudFormation-supplied parameter types", CloudFormation User Guide). cfngen makes
the same two calls before a deployment; operators may call DescribeStacks already.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import referenced_parts
from cfngen.cluster.sections.references import StackOutput, StoredParameter
from cfngen.permissions.scope import Scope
from cfngen.permissions.statements import Statement, allow


def read_parameter_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statement for the parameters of Parameter Store to which the cluster file refers, if it has any."""
    references = [part.reference for part in referenced_parts(cluster)]
    names = sorted({reference.name for reference in references if isinstance(reference, StoredParameter)})
    # The ARN of a parameter has the name behind `parameter`, with its slash.
    arns = [f"arn:{scope.partition}:ssm:{scope.region}:{scope.account}:parameter{name}" for name in names]
    return [allow(sid="References", actions="ssm:GetParameters", resources=arns)] if arns else []


def read_output_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statement for the stacks whose outputs the cluster file refers to, if it has any."""
    references = [part.reference for part in referenced_parts(cluster)]
    stacks = sorted({reference.stack for reference in references if isinstance(reference, StackOutput)})
    stack_arn = f"arn:{scope.partition}:cloudformation:{scope.region}:{scope.account}:stack"
    arns = [f"{stack_arn}/{stack}/*" for stack in stacks]
    return [allow(sid="ReferencedStacks", actions="cloudformation:DescribeStacks", resources=arns)] if arns else []
