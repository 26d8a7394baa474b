"""Messages about an Auto Scaling group: which topics of SNS get them. moto 5.2.5 has no such calls.

Conditions: PutNotificationConfiguration, DeleteNotificationConfiguration and DescribeNotificationConfigurations, Amazon
EC2 Auto Scaling API Reference. No messages are sent.
"""

from __future__ import annotations

from moto.autoscaling.responses import AutoScalingResponse
from moto.backends import get_backend
from moto.core.responses import ActionResult, EmptyResult

from cfngen.sandbox.moto_patches.registry import replaces
from cfngen.sandbox.services.rules import PendingCall, rule, validation_error
from cfngen.sandbox.untyped import JsonDict, MotoModel, MotoResponse

_TYPES = frozenset(
    {
        *(f"autoscaling:EC2_INSTANCE_{event}" for event in ("LAUNCH", "LAUNCH_ERROR", "TERMINATE", "TERMINATE_ERROR")),
        "autoscaling:TEST_NOTIFICATION",
    }
)


@rule("autoscaling", "PutNotificationConfiguration")
def check_new_configuration(call: PendingCall) -> None:
    """Refuse a message of an unknown type, and a topic to which no test message can be sent."""
    if unknown := sorted(set(call.get("NotificationTypes") or ()) - _TYPES):
        raise validation_error(f'"{unknown[0]}" is not a valid Notification Type.')
    arn = str(call.get("TopicARN"))
    parts = arn.split(":")
    is_in_region = len(parts) == 6 and parts[2:4] == ["sns", call.region]
    if not is_in_region or arn not in get_backend("sns")[parts[4]][call.region].topics:
        raise validation_error(f"Unable to publish test message to notification target {arn}.")


@replaces(AutoScalingResponse, "put_notification_configuration")
def _put_notification_configuration(self: MotoResponse) -> ActionResult:
    params = self._get_params()
    group = self.autoscaling_backend.autoscaling_groups[params["AutoScalingGroupName"]]
    _topics_of(group)[params["TopicARN"]] = list(params["NotificationTypes"])
    return EmptyResult()


@replaces(AutoScalingResponse, "delete_notification_configuration")
def _delete_notification_configuration(self: MotoResponse) -> ActionResult:
    params = self._get_params()
    group = self.autoscaling_backend.autoscaling_groups[params["AutoScalingGroupName"]]
    _topics_of(group).pop(params["TopicARN"], None)
    return EmptyResult()


@replaces(AutoScalingResponse, "describe_notification_configurations")
def _describe_notification_configurations(self: MotoResponse) -> ActionResult:
    names = self._get_params().get("AutoScalingGroupNames")
    configurations: list[JsonDict] = [
        {"AutoScalingGroupName": name, "TopicARN": topic, "NotificationType": notification_type}
        for name, group in self.autoscaling_backend.autoscaling_groups.items()
        if not names or name in names
        for topic, types in _topics_of(group).items()
        for notification_type in types
    ]
    return ActionResult({"NotificationConfigurations": configurations})


def _topics_of(group: MotoModel) -> dict[str, list[str]]:
    """Return the types of the messages about a group by the ARN of the topic that gets them."""
    if not hasattr(group, "notification_topics"):
        group.notification_topics = {}
    topics: dict[str, list[str]] = group.notification_topics
    return topics
