"""The actions of CloudFormation's API that the emulator has, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cfngen.sandbox.api.actions import change_sets, events, resources, stacks, templates
from cfngen.sandbox.api.actions.request import ActionRequest, Result

__all__ = ["ACTIONS", "ActionRequest", "Result"]

ACTIONS: Mapping[str, Callable[[ActionRequest], Result]] = {
    "CancelUpdateStack": stacks.cancel_update_stack,
    "ContinueUpdateRollback": stacks.continue_update_rollback,
    "CreateChangeSet": change_sets.create_change_set,
    "CreateStack": stacks.create_stack,
    "DeleteChangeSet": change_sets.delete_change_set,
    "DeleteStack": stacks.delete_stack,
    "DescribeChangeSet": change_sets.describe_change_set,
    "DescribeEvents": events.describe_events,
    "DescribeStackDriftDetectionStatus": resources.describe_stack_drift_detection_status,
    "DescribeStackEvents": events.describe_stack_events,
    "DescribeStackResource": resources.describe_stack_resource,
    "DescribeStackResourceDrifts": resources.describe_stack_resource_drifts,
    "DescribeStackResources": resources.describe_stack_resources,
    "DescribeStacks": stacks.describe_stacks,
    "DetectStackDrift": resources.detect_stack_drift,
    "ExecuteChangeSet": change_sets.execute_change_set,
    "GetStackPolicy": stacks.get_stack_policy,
    "GetTemplate": templates.get_template,
    "GetTemplateSummary": templates.get_template_summary,
    "ListChangeSets": change_sets.list_change_sets,
    "ListExports": stacks.list_exports,
    "ListImports": stacks.list_imports,
    "ListStackResources": resources.list_stack_resources,
    "ListStacks": stacks.list_stacks,
    "RollbackStack": stacks.rollback_stack,
    "SetStackPolicy": stacks.set_stack_policy,
    "SignalResource": stacks.signal_resource,
    "UpdateStack": stacks.update_stack,
    "UpdateTerminationProtection": stacks.update_termination_protection,
    "ValidateTemplate": templates.validate_template,
}

# The actions that have a client request token.
ACTIONS_WITH_TOKEN = frozenset({
    "CancelUpdateStack", "ContinueUpdateRollback", "CreateChangeSet", "CreateStack", "DeleteStack",
    "ExecuteChangeSet", "RollbackStack", "UpdateStack",
})  # fmt: skip
