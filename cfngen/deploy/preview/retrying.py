"""Retries failed resources that were preserved, if templates and parameters have not changed since.

A change set of such a stack is empty, since templates and parameters are the current ones (aws/aws-cdk-cli#1972). The
user guide ("Choose how to handle failures when provisioning resources") has another call for this: UpdateStack with the
current template and parameters and with rollback disabled, which retries the failed resources and continues from there.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from cfngen.deploy.aws_errors import translate_aws_errors
from cfngen.deploy.stacks import NESTED_STACK, list_resource_tree

if TYPE_CHECKING:
    from cfngen.deploy.account import Account
    from cfngen.deploy.preview.plan import Plan


def find_failed(account: Account, root_id: str) -> tuple[str, ...]:
    """Return the paths of the failed resources through their nested stacks; the root's name if none has failed.

    Raises:
        AwsError: a call failed.
    """
    with translate_aws_errors():
        failed = [
            resource for resource in list_resource_tree(account, root_id) if resource.view.status.endswith("_FAILED")
        ]
    # A nested stack also counts as failed if a resource in it has failed, and then only the resource is named.
    failed_in_stacks = [resource.name for resource in failed if resource.view.type != NESTED_STACK]
    root_name = root_id.split("/")[1]
    return tuple(failed_in_stacks or [resource.name for resource in failed] or [root_name])


def retry(account: Account, plan: Plan) -> None:
    """Update the stack with its current template and parameters, which retries the failed resources.

    Args:
        account: the account and region of the plan.
        plan: a plan with `retries`.

    Raises:
        AwsError: CloudFormation refuses the call.
    """
    client = account.client("cloudformation")
    plan.mark_executed()
    with translate_aws_errors():
        [stack] = client.describe_stacks(StackName=plan.stack_id)["Stacks"]
        client.update_stack(
            StackName=plan.stack_id,
            UsePreviousTemplate=True,
            Parameters=[
                {"ParameterKey": parameter["ParameterKey"], "UsePreviousValue": True}
                for parameter in stack.get("Parameters", ())
            ],
            Capabilities=stack.get("Capabilities", []),
            DisableRollback=True,
            ClientRequestToken=f"cfngen-retry-{uuid.uuid4()}",
        )
