"""Handlers of AWS::EC2::FlowLog and AWS::Logs::LogGroup."""

from __future__ import annotations

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Handler,
    HandlerCall,
    Tag,
    leave_to_rollback_on_failure,
)
from cfngen.sandbox.untyped import Properties

# API reference of CloudWatch Logs, CreateLogGroup.
MAX_LOG_GROUP_NAME_LENGTH = 512


class FlowLog(Handler):
    """A flow log: only its tags can be changed, everything else replaces it."""

    supported_properties = frozenset({
        "DeliverLogsPermissionArn", "LogDestination", "LogDestinationType", "LogGroupName",
        "MaxAggregationInterval", "ResourceId", "ResourceType", "Tags", "TrafficType",
    })  # fmt: skip

    def create(self, call: HandlerCall) -> CreatedResource:
        response = call.ec2.create_flow_logs(
            ResourceIds=[call["ResourceId"]],
            **call.pick(*self.supported_properties - {"ResourceId", "Tags"}),
            **call.tag_specifications("vpc-flow-log"),
        )
        for failure in response.get("Unsuccessful", []):
            raise ResourceError(failure["Error"]["Message"])
        flow_log_id = response["FlowLogIds"][0]
        return CreatedResource(flow_log_id, {"Id": flow_log_id})

    def read_actual(self, call: HandlerCall) -> Properties | None:
        filters = [{"Name": "flow-log-id", "Values": [call.physical_id]}]
        flow_logs = call.ec2.describe_flow_logs(Filters=filters)["FlowLogs"]
        return {"Tags": flow_logs[0].get("Tags", [])} if flow_logs else None

    def delete(self, call: HandlerCall) -> None:
        call.ec2.delete_flow_logs(FlowLogIds=[call.physical_id])


class LogGroup(Handler):
    supported_properties = frozenset({"RetentionInDays", "Tags"})
    deletion = ("logs", "delete_log_group", "logGroupName")

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.generate_name(limit=MAX_LOG_GROUP_NAME_LENGTH)
        tags = {tag["Key"]: tag["Value"] for tag in call.properties.get("Tags", [])}
        call.client("logs").create_log_group(logGroupName=name, **({"tags": tags} if tags else {}))
        created = CreatedResource(name, {"Arn": self._arn(call, name)})
        with leave_to_rollback_on_failure(created):
            self._retain(call, name)
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        if "RetentionInDays" in changed:
            self._retain(call, call.physical_id)

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        arn = self._arn(call, call.physical_id).removesuffix(":*")
        call.client("logs").tag_resource(resourceArn=arn, tags={tag["Key"]: tag["Value"] for tag in tags})

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        arn = self._arn(call, call.physical_id).removesuffix(":*")
        call.client("logs").untag_resource(resourceArn=arn, tagKeys=keys)

    def read_actual(self, call: HandlerCall) -> Properties | None:
        groups = call.client("logs").describe_log_groups(logGroupNamePrefix=call.physical_id)["logGroups"]
        group = next((group for group in groups if group["logGroupName"] == call.physical_id), None)
        if group is None:
            return None
        return {"RetentionInDays": group["retentionInDays"]} if "retentionInDays" in group else {}

    def _retain(self, call: HandlerCall, name: str) -> None:
        """Set after how many days events are deleted, or that they never are."""
        if "RetentionInDays" in call.properties:
            call.client("logs").put_retention_policy(logGroupName=name, retentionInDays=int(call["RetentionInDays"]))
        else:
            call.client("logs").delete_retention_policy(logGroupName=name)

    def _arn(self, call: HandlerCall, name: str) -> str:
        """The ARN of the group and everything in it, as GetAtt returns it."""
        groups = call.client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
        arn = next(group["arn"] for group in groups if group["logGroupName"] == name)
        return arn if arn.endswith(":*") else f"{arn}:*"
