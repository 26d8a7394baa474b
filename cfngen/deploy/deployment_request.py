"""What the user wants to deploy, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cfngen.cluster.model import Cluster
from cfngen.deploy.parameters.parameter_file import ParameterFile
from cfngen.deploy.prices.price_list import PriceList
from cfngen.templates import Document, generate

OnFailure = Literal["rollback", "delete", "keep"]


@dataclass(frozen=True)
class DeploymentRequest:
    """What the user wants to deploy, and with which options.

    Attributes:
        cluster: the complete cluster.
        documents: the templates generated from the cluster.
        stack_name: name of the root stack.
        bucket: the operator's bucket for templates; empty means the bucket that cfngen creates.
        kms_key: KMS key that encrypts the bucket that cfngen creates; empty means S3's managed key.
        flags: parameters given on the command line.
        parameter_file: parameters given in a file; None if there is none.
        kept_parameters: names of the parameters that keep the value they have in the stack.
        tags: the operator's tags for every resource, in addition to those the stack has already.
        role_arn: service role of CloudFormation; empty means the caller's permissions.
        notification_arns: SNS topics for stack events; None keeps the stack's topics.
        on_failure: what CloudFormation does when something fails.
        protect: whether to enable termination protection.
        express: whether to use CloudFormation's express mode.
        token: unique name of this deployment: letters, digits and hyphens.
        ignore_quotas: whether to deploy even if the account's quotas are exceeded.
        skip_network_check: whether to create the cluster in an existing VPC without looking at its network first.
        parallel_groups: how many node groups whose nodes are replaced are updated at the same time.
        prices: the price list for the plan's monthly bill; None if there is none.
        generate: generates the templates of a state between the deployed and the wanted cluster; see
            `cfngen.cluster.iam.issuer_stages`.
    """

    cluster: Cluster
    documents: Sequence[Document]
    stack_name: str
    token: str
    bucket: str = ""
    kms_key: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)
    parameter_file: ParameterFile | None = None
    kept_parameters: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    role_arn: str = ""
    notification_arns: tuple[str, ...] | None = None
    on_failure: OnFailure = "rollback"
    protect: bool = True
    express: bool = False
    ignore_quotas: bool = False
    skip_network_check: bool = False
    parallel_groups: int = 1
    prices: PriceList | None = None
    generate: Callable[[Cluster], Sequence[Document]] = generate
