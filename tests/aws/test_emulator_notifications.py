"""Messages about Auto Scaling groups, and access logs of buckets, in the emulator: made, changed, taken away."""

from __future__ import annotations

from typing import Any

from refusals_scaling import idle
from small_stacks import REGION, created, updated

from cfngen.sandbox.cloudformation import CloudFormation, client
from cfngen.sandbox.existing_parts import make_log_bucket, make_topic

TOPICS = [f"arn:aws:sns:{REGION}:123456789012:{name}" for name in ("first", "second")]
LAUNCH, TERMINATE = "autoscaling:EC2_INSTANCE_LAUNCH", "autoscaling:EC2_INSTANCE_TERMINATE"


def sent() -> set[tuple[str, str]]:
    described = client("autoscaling", REGION).describe_notification_configurations()["NotificationConfigurations"]
    return {(each["TopicARN"], each["NotificationType"]) for each in described}


def notified(*topics: str, types: tuple[str, ...] = (LAUNCH,)) -> dict[str, Any]:
    return idle(
        NotificationConfigurations=[{"TopicARN": [topic], "NotificationTypes": list(types)} for topic in topics]
    )


def test_a_group_tells_its_topics_and_no_longer_those_that_are_taken_away(cloud: CloudFormation) -> None:
    for topic in TOPICS:
        make_topic(REGION, topic)
    created(cloud, notified(*TOPICS))
    assert sent() == {(topic, LAUNCH) for topic in TOPICS}
    updated(cloud, notified(TOPICS[0], types=(LAUNCH, TERMINATE)))
    assert sent() == {(TOPICS[0], LAUNCH), (TOPICS[0], TERMINATE)}
    updated(cloud, idle())
    assert sent() == set()


def test_a_bucket_has_its_access_logs_written_until_the_template_says_so_no_longer(cloud: CloudFormation) -> None:
    make_log_bucket(REGION, "example-logs")
    logged = {"Type": "AWS::S3::Bucket", "Properties": {"LoggingConfiguration": {
        "DestinationBucketName": "example-logs", "LogFilePrefix": "one/",
    }}}  # fmt: skip
    stack = created(cloud, {"Bucket": logged})
    s3, name = client("s3", REGION), stack.resources["Bucket"].physical_id
    assert s3.get_bucket_logging(Bucket=name)["LoggingEnabled"]["TargetPrefix"] == "one/"
    updated(cloud, {"Bucket": {"Type": "AWS::S3::Bucket"}})
    assert "LoggingEnabled" not in s3.get_bucket_logging(Bucket=name)
