"""Executing a change set: the last look at what it would do, and the tags of existing subnets that come before."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import added_tags_note
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.change_sets import retry_transient_errors
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.types import AwsArguments
from cfngen.deploy.messages.message import Report, Step
from cfngen.deploy.plan.change_sets import INVALID_STATUS_CODES, NOT_FOUND_CODES
from cfngen.deploy.plan.plan import Plan
from cfngen.deploy.preflight.network.subnet_tags import read_missing
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import pluralize


def add_missing(account: Account, cluster: Cluster, values: Mapping[str, str], report: Report) -> None:
    """Add the tags that existing subnets lack now; without `network.tagExisting`, do nothing.

    Each subnet gets its tags in one call, so a deployment that is interrupted here adds the rest when it is repeated.

    Raises:
        SubnetTagsError: a subnet has got a tag with another value in the meantime, or too many tags.
    """
    incomplete = [row for row in read_missing(account, cluster, values) if row[2]]
    if incomplete:
        count = pluralize(sum(len(missing) for _, _, missing in incomplete), "tag")
        report(Step(f"adding {count} to {pluralize(len(incomplete), 'existing subnet')}"))
    note = added_tags_note(cluster.name)
    for subnet_id, tags, missing in incomplete:
        noted_keys = dict.fromkeys([*tags.get(note, "").split(), *(tag.key for tag in missing)])
        new_tags = {**{tag.key: tag.value for tag in missing}, note: " ".join(noted_keys)}
        account.client("ec2").create_tags(
            Resources=[subnet_id], Tags=[{"Key": key, "Value": value} for key, value in new_tags.items()]
        )


class ReplacementRefusedError(CfngenError):
    """The plan replaces resources, which CloudFormation refuses in express mode or with rollback disabled."""

    code = "replacement-refused"


class PlanOutdatedError(CfngenError):
    """The change set of a plan no longer exists, or can no longer be executed."""

    code = "plan-outdated"


def execute(account: Account, plan: Plan) -> str:
    """Execute the change set of a plan and return the stack's ARN.

    For some seconds, DescribeStacks may still return the previous status: REVIEW_IN_PROGRESS for a new stack.

    Raises:
        ReplacementRefusedError: the plan replaces resources while rollback is disabled or in express mode.
        PlanOutdatedError: the stack has changed since, or the change set was deleted.
    """
    if plan.refusal_reason:
        raise _replacement_refused(plan)
    if plan.retries:
        retry(account, plan)
        return plan.stack_id
    # Stack events of the operation carry this token, so that they can be matched to the plan.
    arguments: AwsArguments = {
        "ChangeSetName": plan.change_set_id,
        "ClientRequestToken": plan.change_set_id.split("/")[1],
    }
    # CloudFormation refuses this argument for a change set with OnStackFailure; in express mode it is part of the
    # change set.
    if not plan.express and (plan.operation == "update" or plan.on_failure != "DELETE"):
        arguments["DisableRollback"] = plan.on_failure == "DO_NOTHING"
    client = account.client("cloudformation")
    plan.mark_executed()
    try:
        retry_transient_errors(account.clock, lambda: client.execute_change_set(**arguments))
    except AwsError as error:
        if error.aws_code:
            plan.mark_refused()
        if error.aws_code in (*NOT_FOUND_CODES, *INVALID_STATUS_CODES):
            raise PlanOutdatedError(
                f"the plan of {plan.stack} can no longer be executed: {error}",
                hint="someone else may have changed the stack; create a new plan.",
            ) from error
        raise
    return plan.stack_id


def _replacement_refused(plan: Plan) -> ReplacementRefusedError:
    option = "--express" if plan.express else "--on-failure keep"
    hint = CommandText(
        f"repeat the command without {option}; if failed resources were preserved, first run ", suggest("rollback"), "."
    )
    return ReplacementRefusedError(plan.refusal_reason, hint=hint)


def retry(account: Account, plan: Plan) -> None:
    """Update the stack with its current template and parameters, which retries the failed resources.

    A change set of such a stack is empty (aws/aws-cdk-cli#1972). The user guide has this call instead ("Choose how to
    handle failures when provisioning resources"): UpdateStack with rollback disabled continues from there.

    Args:
        plan: a plan with `retries`.
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
