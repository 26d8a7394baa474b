"""The plan of one phase, from a change set of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import translate_aws_errors
from cfngen.deploy.messages import Report, Step
from cfngen.deploy.phasing import documents as templates
from cfngen.deploy.phasing.parts import Part
from cfngen.deploy.preview import change_sets
from cfngen.deploy.preview.plan import Plan, PlanRequest
from cfngen.deploy.preview.planning import CompareUserData
from cfngen.deploy.publishing import capabilities
from cfngen.deploy.publishing.publish import Published
from cfngen.deploy.stacks import existing
from cfngen.templates.document import Document

NO_WAY_BACK = "DO_NOTHING"
"""What becomes of volumes when one of them fails: taking back the others would shrink them, which EBS refuses."""


@dataclass(frozen=True)
class PartPlanning:
    """What the plan of every phase needs.

    Attributes:
        account: where.
        request: what the plan of the whole update was made from.
        upload: publishes templates.
        report: is told what is done.
        compare_user_data: says in words what differs between two user data.
        leaving: removes, at the end, what was planned and not executed.
    """

    account: Account
    request: PlanRequest
    upload: Callable[[Sequence[Document]], Published]
    report: Report
    compare_user_data: CompareUserData | None
    leaving: ExitStack

    def __call__(self, part: Part, documents: Sequence[Document], number: int) -> Plan:
        """Return the plan of a part.

        Args:
            part: the part.
            documents: the templates in it.
            number: its place among the others; its change set is named after it.

        Raises:
            CfngenError: CloudFormation cannot plan it.
        """
        published = self.upload(documents)
        volumes = part.kind == "volumes"
        entries = self.request.parameters
        request = replace(
            self.request,
            template_url=published.template_url,
            documents=tuple(documents),
            token=f"{self.request.token}-{number}",
            parameters=self._as_they_are(published.root) if volumes else entries,
            capabilities=capabilities.capabilities(documents),
            on_failure=NO_WAY_BACK if volumes else self.request.on_failure,
            foreseen=(),
        )
        self.report(Step(f"asking CloudFormation what would change: {part.title}"))
        plan = change_sets.make_plan(
            self.account, request, report=self.report, compare_user_data=self.compare_user_data
        )
        self.leaving.callback(change_sets.discard, self.account, plan, self.report)
        return plan

    def _as_they_are(self, root: Document) -> tuple[Mapping[str, Any], ...]:
        """Return the parameters of a root of which only the volumes change: all others keep their values."""
        with translate_aws_errors():
            there = existing(self.account, self.request.stack).parameters
        wanted = {parameter["ParameterKey"]: parameter for parameter in self.request.parameters}
        changing = templates.parameters_of_volumes(self.request.documents)
        return tuple(
            {"ParameterKey": name, "UsePreviousValue": True} if name in there and name not in changing else wanted[name]
            for name in root.body.get("Parameters", {})
            if name in there or name in wanted
        )
