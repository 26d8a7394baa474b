"""Plans one phase of an update: creates a change set for this phase and reads the plan from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import translate_aws_errors
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.messages.message import Report, Step
from cfngen.deploy.phasing.documents import parameters_of_volumes
from cfngen.deploy.phasing.parts import UpdatePart
from cfngen.deploy.preview import change_sets
from cfngen.deploy.preview.plan import Plan
from cfngen.deploy.preview.plan_request import PlanRequest
from cfngen.deploy.publishing import capabilities
from cfngen.deploy.publishing.publish import PublishedTemplates
from cfngen.deploy.stacks import require_stack
from cfngen.templates.document import Document

NO_ROLLBACK = "DO_NOTHING"
"""`on_failure` of a phase that grows volumes: no rollback, since it would shrink other volumes, which EBS refuses."""


@dataclass(frozen=True)
class PartPlanner:
    """Plans the phases of one update.

    Attributes:
        account: the account and region.
        request: the request for the plan of the whole update.
        upload: uploads templates to S3.
        report: receives progress messages.
        cleanup: callbacks that run when the command ends; they delete the change sets that were not executed.
    """

    account: Account
    request: PlanRequest
    upload: Callable[[Sequence[Document]], PublishedTemplates]
    report: Report
    cleanup: ExitStack

    def __call__(self, part: UpdatePart, documents: Sequence[Document], position: int) -> Plan:
        """Create a change set for a part of the update and return its plan.

        Args:
            part: the part.
            documents: the templates to deploy.
            position: position of the part in the update, which is used in the change set's name.

        Raises:
            CfngenError: CloudFormation cannot create the change set.
        """
        published = self.upload(documents)
        is_volume_phase = part.kind == "volumes"
        parameters = self.request.parameters
        if is_volume_phase:
            parameters = self._volume_update_parameters(published.root)
        request = replace(
            self.request,
            template_url=published.template_url,
            documents=tuple(documents),
            token=f"{self.request.token}-{position}",
            parameters=parameters,
            capabilities=capabilities.capabilities(documents),
            on_failure=NO_ROLLBACK if is_volume_phase else self.request.on_failure,
            predicted=(),
        )
        self.report(Step(f"creating a change set: {part.title}"))
        plan = change_sets.make_plan(self.account, request, report=self.report)
        self.cleanup.callback(change_sets.discard, self.account, plan, self.report)
        return plan

    def _volume_update_parameters(self, root: Document) -> tuple[AwsObject, ...]:
        """Return the root's parameters for the volume phase.

        Only parameters of volumes, and parameters that are not deployed yet, get their requested values. All others
        keep their deployed values.
        """
        with translate_aws_errors():
            deployed_parameters = require_stack(self.account, self.request.stack).parameters
        requested_parameters = {parameter["ParameterKey"]: parameter for parameter in self.request.parameters}
        volume_parameters = parameters_of_volumes(self.request.documents)
        parameters: list[AwsObject] = []
        for name in root.body.get("Parameters", {}):
            if name in deployed_parameters and name not in volume_parameters:
                parameters.append({"ParameterKey": name, "UsePreviousValue": True})
            elif name in deployed_parameters or name in requested_parameters:
                parameters.append(requested_parameters[name])
        return tuple(parameters)
