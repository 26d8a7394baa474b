"""The request for a plan: what will be deployed, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cfngen.cluster.model import Cluster
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.messages.message import Impact
from cfngen.deploy.preview.bill_of_materials import Cost
from cfngen.deploy.prices.monthly_costs import MonthlyBill
from cfngen.deploy.quotas.quota import Quota
from cfngen.templates.document import Document


@dataclass(frozen=True)
class PlanRequest:
    """The input from which the change set and the plan of a deployment are created.

    Attributes:
        stack: name of the root stack.
        cluster: the cluster.
        template_url: URL of the root's template.
        documents: the templates of the cluster, which show what outputs and parameters refer to.
        parameters: entries of CreateChangeSet's `Parameters`.
        capabilities: capabilities to acknowledge, e.g. `CAPABILITY_IAM`.
        tags: tags of the root stack.
        token: unique to this request: letters, digits and hyphens.
        on_failure: what happens to the stack if the deployment fails: `ROLLBACK`, `DELETE` (only for a new stack) or
            `DO_NOTHING`.
        role_arn: service role for CloudFormation; if empty, the stack's own role or the caller's permissions are used.
        notification_arns: SNS topics that receive the stack's events; None leaves them unchanged.
        express: whether to deploy in express mode, in which CloudFormation does not wait until resources are stable.
        quotas: what is added to the usage of the account's quotas, from `cfngen.deploy.quotas.service_quotas`.
        quotas_ignored: whether to deploy even if the quotas are exceeded.
        costs: billed items that the update adds or removes.
        bill: the monthly bill; None without a price list.
        predicted: impacts that the change set does not show.
        note: description of the change set: who created it, and whether the stack is protected at the end.
        master_count: current number of masters; 0 if it is not known.
    """

    stack: str
    cluster: Cluster
    template_url: str
    documents: tuple[Document, ...]
    token: str
    parameters: tuple[AwsObject, ...] = ()
    capabilities: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    on_failure: str = "ROLLBACK"
    role_arn: str = ""
    notification_arns: tuple[str, ...] | None = None
    express: bool = False
    quotas: tuple[Quota, ...] = ()
    quotas_ignored: bool = False
    costs: tuple[Cost, ...] = ()
    bill: MonthlyBill | None = None
    predicted: tuple[Impact, ...] = ()
    note: str = ""
    master_count: int = 0
