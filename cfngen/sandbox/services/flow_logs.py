"""Flow logs: patches of moto's, so that they are refused and delivered as EC2 does it.

moto 5.2.5 (moto/ec2/models/flow_logs.py) takes a folder for a part of the bucket's name, looks at no bucket policy, and
refuses a second flow log to one destination also if it records other traffic.

Conditions: "Amazon S3 bucket permissions for flow logs" and "Troubleshoot VPC Flow Logs", Amazon VPC User Guide. Words:
tests/aws/refusals.md.
"""

from __future__ import annotations

import json
import re

from moto.ec2.exceptions import FlowLogAlreadyExists
from moto.ec2.models.flow_logs import FlowLogsBackend

from cfngen.sandbox.moto_patches.registry import patches
from cfngen.sandbox.services.policy_documents import as_list, parse, statements
from cfngen.sandbox.services.rules import PendingCall, Refused, rule
from cfngen.sandbox.untyped import JsonDict, MotoBackend, MotoModel, Original

_ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/.+")
_DELIVERY_SERVICE = "delivery.logs.amazonaws.com"


@rule("ec2", "CreateFlowLogs")
def check_new_flow_log(call: PendingCall) -> None:
    """Refuse a flow log that does not say which traffic goes where, and a role that it cannot have."""
    if not call.get("TrafficType"):
        raise Refused("MissingParameter", "The request must contain the parameter TrafficType")
    role = call.get("DeliverLogsPermissionArn")
    if role and call.get("LogDestinationType") == "s3":
        raise Refused("InvalidParameter", "DeliverLogsPermissionArn is not applicable for s3 delivery")
    if role and not _ROLE_ARN.fullmatch(role):
        raise Refused("InvalidParameter", f"DeliverLogsPermissionArn '{role}' is not the ARN of a role")
    destinations = [key for key in ("LogGroupName", "LogDestination") if call.get(key)]
    if not destinations:
        raise Refused("InvalidParameter", "LogDestination can't be empty if LogGroupName is not provided.")
    if len(destinations) > 1:
        raise Refused("InvalidParameter", "Please only provide LogGroupName or only provide LogDestination.")


@patches(FlowLogsBackend, "create_flow_logs")
def _create_flow_logs(
    original: Original, self: MotoBackend, **request: MotoModel
) -> tuple[list[MotoModel], list[tuple[str, str, str]]]:
    resource_ids, traffic_type = request["resource_ids"], request["traffic_type"]
    destination = request["log_destination"]
    if request["log_destination_type"] == "s3":
        bucket_arn = destination.split("/", 1)[0]
        bucket = bucket_arn.rpartition(":")[2]
        if not _may_deliver(self, bucket):
            text = f"Access Denied for LogDestination: {bucket}. Please check LogDestination permission"
            return [], [(resource_id, "400", text) for resource_id in resource_ids]
        request["log_destination"] = bucket_arn
    existing = self.flow_logs
    for flow_log in existing.values():
        is_same_traffic = flow_log.resource_id in resource_ids and flow_log.traffic_type == traffic_type
        destinations = (flow_log.log_group_name, flow_log.log_destination)
        if is_same_traffic and destinations == (request["log_group_name"], destination):
            raise FlowLogAlreadyExists
    self.flow_logs = {}
    try:
        created, unsuccessful = original(self, **request)
        for flow_log in created:
            flow_log.log_destination = destination
        return created, unsuccessful
    finally:
        self.flow_logs = {**existing, **self.flow_logs}


def _may_deliver(backend: MotoBackend, bucket_name: str) -> bool:
    """Return whether AWS may write to a bucket; if the bucket has no policy, it gets one, as the caller owns it."""
    from moto.s3.exceptions import MissingBucket
    from moto.s3.models import s3_backends

    try:
        bucket = s3_backends[backend.account_id][backend.partition].get_bucket(bucket_name)
    except MissingBucket:
        return False
    if bucket.policy:
        return any(_lets_deliver(statement) for statement in statements(parse(bucket.policy.decode())))
    statement = {
        "Sid": "AWSLogDeliveryWrite",
        "Effect": "Allow",
        "Principal": {"Service": _DELIVERY_SERVICE},
        "Action": "s3:PutObject",
        "Resource": f"arn:{backend.partition}:s3:::{bucket_name}/*",
    }
    bucket.policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}).encode()
    return True


def _lets_deliver(statement: JsonDict) -> bool:
    principal = statement.get("Principal")
    services = as_list(principal.get("Service")) if isinstance(principal, dict) else []
    actions = {str(action).lower() for action in as_list(statement.get("Action"))}
    is_for_delivery = principal == "*" or _DELIVERY_SERVICE in services
    return statement.get("Effect") == "Allow" and is_for_delivery and bool(actions & {"s3:putobject", "s3:*", "*"})
