"""Flow logs of the VPC: records of the connections in it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from cfngen.cluster.sections import field_types
from cfngen.cluster.sections.base import Model, refuse_truth_value

FlowLogDestination = Literal["cloudWatchLogs", "s3"]
FlowLogTraffic = Literal["all", "accept", "reject"]
# RetentionInDays of AWS::Logs::LogGroup, CloudFormation Template Reference.
RetentionDays = Literal[
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653
]


class FlowLogs(Model):
    """Flow logs of the VPC: who connected with whom, on which ports, and whether that was allowed."""

    destination: FlowLogDestination = Field(
        description="Where the records go: to a log group of CloudWatch Logs (`cloudWatchLogs`), which is created and "
        "kept when the stack is deleted, or to an existing bucket (`s3`)."
    )
    bucket: field_types.BucketName | None = Field(
        None,
        description="Name of the existing bucket; the records are under the cluster's name in it. Its policy has to "
        "let AWS deliver logs (docs/build/vpc.md). Only with `s3`.",
    )
    traffic: FlowLogTraffic = Field(
        "all",
        description="Which connections are recorded: those that security groups and network ACLs let through "
        "(`accept`), those that they refuse (`reject`), or `all`.",
    )
    retention_days: Annotated[RetentionDays, BeforeValidator(refuse_truth_value)] | None = Field(
        None, description="Days after which CloudWatch Logs deletes a record. Only with `cloudWatchLogs`. Default: 90."
    )
    interval: Literal[60, 600] = Field(
        600, description="Seconds whose packets are one record, at most. 60 makes more records, which cost more."
    )
