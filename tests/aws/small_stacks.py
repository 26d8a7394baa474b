"""Small templates, and what the tests of the emulator ask about the stacks made from them."""

from __future__ import annotations

import base64
import json
from typing import Any

from cfngen.sandbox.cloudformation import CloudFormation, LaunchedInstance, Stack, client

REGION = "us-west-2"
GATEWAY = {"Type": "AWS::EC2::InternetGateway"}
BAD = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/4"}}
VOLUME = {"Type": "AWS::EC2::Volume", "Properties": {"AvailabilityZone": "us-west-2a", "Size": 1}}
TEMPLATES = "templates-of-a-test"
# Who may assume a role: EC2's instances.
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}
ROLLING = {"MaxBatchSize": 1, "MinInstancesInService": 0, "PauseTime": "PT10M", "WaitOnResourceSignals": True}


def text(resources: dict[str, Any], **sections: Any) -> str:
    return json.dumps({"Resources": resources, **sections})


def tagged(**tags: str) -> dict[str, Any]:
    return {**GATEWAY, "Properties": {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}}


def vpc(block: str = "10.0.0.0/16", **properties: Any) -> dict[str, Any]:
    return {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": block, **properties}}


def table(vpc_id: Any) -> dict[str, Any]:
    return {"Type": "AWS::EC2::RouteTable", "Properties": {"VpcId": vpc_id}}


def statuses(stack: Stack, *wanted: str) -> list[tuple[str, str]]:
    """What happened to what, in order; only to the named logical ids if there are any."""
    return [(event.logical_id, event.status) for event in stack.events if not wanted or event.logical_id in wanted]


def since(stack: Stack, kind: str) -> list[tuple[str, str]]:
    """What happened since the last operation of a kind began."""
    last = max(index for index, (_, each) in enumerate(stack.operations) if each == kind)
    operations = {identity for identity, _ in stack.operations[last:]}
    return [(event.logical_id, event.status) for event in stack.events if event.operation_id in operations]


def reasons(stack: Stack, logical_id: str, status: str) -> list[str]:
    return [event.reason for event in stack.events if (event.logical_id, event.status) == (logical_id, status)]


def refused_early(cloud: CloudFormation) -> dict[str, str]:
    """What early validation refused in the last operation that it failed, by logical id."""
    revision = cloud.failed_validations[-1].revision if cloud.failed_validations else None
    return {key: str(error) for key, error in revision.invalid_properties.items()} if revision else {}


def gateways() -> list[str]:
    answer = client("ec2", REGION).describe_internet_gateways()["InternetGateways"]
    return [each["InternetGatewayId"] for each in answer]


def vpcs() -> list[str]:
    answer = client("ec2", REGION).describe_vpcs(Filters=[{"Name": "is-default", "Values": ["false"]}])["Vpcs"]
    return [each["VpcId"] for each in answer]


def snapshots() -> list[dict[str, Any]]:
    return client("ec2", REGION).describe_snapshots(OwnerIds=["self"])["Snapshots"]


def nested(name: str, body: str, **properties: Any) -> dict[str, Any]:
    """A nested stack whose template is put into S3."""
    s3 = client("s3", REGION)
    if TEMPLATES not in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]:
        s3.create_bucket(Bucket=TEMPLATES, CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket=TEMPLATES, Key=f"{name}.json", Body=body.encode())
    url = f"https://{TEMPLATES}.s3.{REGION}.amazonaws.com/{name}.json"
    return {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url, **properties}}


def group(
    count: int, timeout: str = "PT10M", *, most: int | None = None, size: str = "t3.small", **rolling: Any
) -> dict[str, Any]:
    """A launch template, and a group of so many instances that waits for their signals, also in rolling updates."""
    ec2 = client("ec2", REGION)
    images = ec2.describe_images(Filters=[{"Name": "name", "Values": ["image"]}])["Images"]
    image = images[0]["ImageId"] if images else ec2.register_image(Name="image")["ImageId"]
    data = {"ImageId": image, "InstanceType": size, "UserData": base64.b64encode(b"hello").decode()}
    version = {"LaunchTemplateId": {"Ref": "Template"}, "Version": {"Fn::GetAtt": "Template.LatestVersionNumber"}}
    return {
        "Template": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}},
        "Group": {
            "Type": "AWS::AutoScaling::AutoScalingGroup",
            "Properties": {
                "MinSize": count,
                "MaxSize": str(count if most is None else most),
                "AvailabilityZones": ["us-west-2a"],
                "LaunchTemplate": version,
            },
            "CreationPolicy": {"ResourceSignal": {"Count": count, "Timeout": timeout}},
            "UpdatePolicy": {"AutoScalingRollingUpdate": {**ROLLING, **rolling}},
        },
    }


def running() -> dict[str, str]:
    """Types of the running instances, by id."""
    answer = client("ec2", REGION).describe_instances(Filters=[{"Name": "instance-state-name", "Values": ["running"]}])
    found = (instance for reservation in answer["Reservations"] for instance in reservation["Instances"])
    return {each["InstanceId"]: each["InstanceType"] for each in found}


def types() -> list[str]:
    """Types of the running instances."""
    return sorted(running().values())


def signalling(*outcomes: tuple[float, str]) -> CloudFormation:
    """CloudFormation whose instances, in the order of launch, signal so after so many seconds; then none does."""
    remaining = list(outcomes)

    def signal(instance: str, status: str) -> None:
        if instance in running():
            cloud.signal_resource("s", "Group", instance, status)

    def boot(launched: LaunchedInstance) -> None:
        if remaining:
            seconds, status = remaining.pop(0)
            cloud.clock.schedule(seconds, lambda: signal(launched.instance_id, status))

    cloud = CloudFormation(REGION, on_launch=boot)
    return cloud


def created(cloud: CloudFormation, resources: dict[str, Any], **sections: Any) -> Stack:
    stack = cloud.wait(cloud.create_stack("s", body=text(resources, **sections)))
    assert stack.status == "CREATE_COMPLETE", stack.reason
    return stack


def updated(cloud: CloudFormation, resources: dict[str, Any], **arguments: Any) -> Stack:
    sections = arguments.pop("sections", {})
    return cloud.wait(cloud.update_stack("s", body=text(resources, **sections), **arguments))


def tags_of(stack: Stack, key: str) -> dict[str, str]:
    identifier = stack.resources[key].physical_id
    tags = client("ec2", REGION).describe_tags(Filters=[{"Name": "resource-id", "Values": [identifier]}])["Tags"]
    return {tag["Key"]: tag["Value"] for tag in tags}


def family(word: str, **more: Any) -> dict[str, Any]:
    """A nested stack that says a word, and one that hears it."""
    said = text(
        {"G": {**GATEWAY, "Properties": {"Tags": [{"Key": "word", "Value": {"Ref": "Word"}}]}}, **more},
        Parameters={"Word": {"Type": "String"}},
        Outputs={"Said": {"Value": {"Fn::Sub": "${Word} ${G}"}}},
    )
    first = nested("child", said, Parameters={"Word": word})
    heard = nested("child-of-child", said, Parameters={"Word": {"Fn::GetAtt": "First.Outputs.Said"}})
    return {"First": first, "Second": heard, "Third": nested("third", text({"G": GATEWAY}))}
