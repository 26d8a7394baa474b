"""Auto Scaling groups, their lifecycle hooks and policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from refusal import Creation, Refusal, Resources, ServiceCall, Update
from small_stacks import REGION, created, group

from cfngen.sandbox.cloudformation import CloudFormation, client

Evidence = Literal["documented", "condition documented", "seen", "assumed"]
GROUP = "AWS::AutoScaling::AutoScalingGroup"
API = "https://docs.aws.amazon.com/autoscaling/ec2/APIReference"
GUIDE = "https://docs.aws.amazon.com/autoscaling/ec2/userguide"
POLICIES = (
    "Template reference: [UpdatePolicy attribute]"
    "(https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html)"
)
SIGNALS = (
    "Template reference: [CreationPolicy attribute]"
    "(https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-creationpolicy.html)"
)
HOOK = {"LifecycleHookName": "drain", "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING"}
NAME = "the-group"
TOPIC = f"arn:aws:sns:{REGION}:123456789012:scaling"
TAG = {
    "ResourceId": "nowhere",
    "ResourceType": "auto-scaling-group",
    "Key": "k",
    "Value": "",
    "PropagateAtLaunch": False,
}


def api(action: str) -> str:
    return f"Auto Scaling API: [{action}]({API}/API_{action}.html)"


def issue(thread: str) -> str:
    repository, number = thread.split("#")
    return f"[{thread}](https://github.com/{repository}/issues/{number})"


def idle(**properties: Any) -> dict[str, Any]:
    """A group that waits for no signals, with these properties instead of the usual ones; None leaves one out."""
    resources = group(1)
    del resources["Group"]["CreationPolicy"], resources["Group"]["UpdatePolicy"]
    merged = resources["Group"]["Properties"] | properties
    resources["Group"]["Properties"] = {key: value for key, value in merged.items() if value is not None}
    return resources


def tagged_once_more(cloud: CloudFormation) -> None:
    """A group that has 50 tags, in two calls of 25, gets one more."""
    name = created(cloud, idle()).resources["Group"].physical_id
    keys = [f"k{number}" for number in range(51)]
    for first, last in ((0, 25), (25, 50), (50, 51)):
        client("autoscaling", REGION).create_or_update_tags(
            Tags=[{**TAG, "ResourceId": name, "Key": key} for key in keys[first:last]]
        )


def with_policy(**policies: Any) -> dict[str, Any]:
    resources = idle()
    resources["Group"]["UpdatePolicy"] = policies
    return resources


def rolling(**settings: Any) -> Callable[[], Resources]:
    return lambda: with_policy(AutoScalingRollingUpdate=settings)


def row(
    condition: str, words: str, make: Callable[[], Resources], source: str, evidence: Evidence = "condition documented"
) -> Refusal:
    """A group that cannot be created."""
    return Refusal(GROUP, condition, words, source, evidence, Creation(make, "Group"))


def called(
    operation: str,
    condition: str,
    words: str,
    arguments: Mapping[str, Any],
    evidence: Evidence = "condition documented",
    *,
    source: str = "",
) -> Refusal:
    """A call that is refused, where there is a group of one instance that waits for nobody."""

    def attempt(cloud: CloudFormation) -> None:
        stack = created(cloud, idle(LifecycleHookSpecificationList=[HOOK]))
        [instance] = cloud.launched
        known = {
            "AutoScalingGroupName": stack.resources["Group"].physical_id,
            "InstanceId": instance,
            "LaunchTemplate": {"LaunchTemplateId": stack.resources["Template"].physical_id, "Version": "1"},
        }
        given = {key: known.get(key) if value is ... else value for key, value in arguments.items()}
        getattr(client("autoscaling", REGION), operation)(**given)

    action = "".join(part.capitalize() for part in operation.split("_"))
    return Refusal(f"autoscaling:{action}", condition, words, source or api(action), evidence, ServiceCall(attempt))


def made(**arguments: Any) -> dict[str, Any]:
    """Arguments by which a group can be made; those that are given replace them, None leaves one out."""
    usual = {"AutoScalingGroupName": NAME, "MinSize": 0, "MaxSize": 1, "AvailabilityZones": ["us-west-2a"]}
    merged = {**usual, "LaunchTemplate": ..., **arguments}
    return {key: value for key, value in merged.items() if value is not None}


def subnets() -> list[str]:
    """A subnet in the first zone, and one of another VPC in the second."""
    ec2 = client("ec2", REGION)
    found = []
    for letter, block in (("a", "10.1.0.0/24"), ("b", "10.2.0.0/24")):
        vpc = ec2.create_vpc(CidrBlock=block)["Vpc"]["VpcId"]
        zone = f"{REGION}{letter}"
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone=zone)["Subnet"]
        found.append(made["SubnetId"])
    return found


def in_a_subnet_of_another_zone() -> dict[str, Any]:
    return idle(VPCZoneIdentifier=subnets()[1:])


def on_one_interface(count: int = 2) -> dict[str, Any]:
    """A group of two whose launch template names one network interface, or of one where another instance has it."""
    ec2 = client("ec2", REGION)
    identifier = ec2.create_network_interface(SubnetId=subnets()[0])["NetworkInterface"]["NetworkInterfaceId"]
    resources = idle(MinSize=count, MaxSize=count)
    data = resources["Template"]["Properties"]["LaunchTemplateData"]
    data["NetworkInterfaces"] = [{"DeviceIndex": 0, "NetworkInterfaceId": identifier}]
    if count == 1:
        [user] = ec2.run_instances(ImageId=data["ImageId"], MinCount=1, MaxCount=1)["Instances"]
        ec2.attach_network_interface(
            NetworkInterfaceId=identifier, InstanceId=user["InstanceId"], DeviceIndex=1
        )  # fmt: skip
    return resources


def no_signal_for(count: int) -> Callable[[], Resources]:
    def make() -> Resources:
        resources = group(1, timeout="PT1M")
        resources["Group"]["CreationPolicy"]["ResourceSignal"]["Count"] = count
        return resources

    return make


def grown(resources: Resources) -> Resources:
    """More instances at least than there may be."""
    changed = resources["Group"]["Properties"] | {"MinSize": 3}
    return {**resources, "Group": {**resources["Group"], "Properties": changed}}


def rolled_with_all_in_service(resources: Resources) -> Resources:
    template = group(1, size="t3.large")["Template"]
    policy = {"AutoScalingRollingUpdate": {"MinInstancesInService": 1}}
    return {"Template": template, "Group": {**resources["Group"], "UpdatePolicy": policy}}


def deleted_with_instances(cloud: CloudFormation) -> None:
    stack = created(cloud, idle())
    client("autoscaling", REGION).delete_auto_scaling_group(AutoScalingGroupName=stack.resources["Group"].physical_id)


def deleted_while_instances_go(cloud: CloudFormation) -> None:
    stack = created(cloud, idle(LifecycleHookSpecificationList=[HOOK]))
    autoscaling, name = client("autoscaling", REGION), stack.resources["Group"].physical_id
    autoscaling.update_auto_scaling_group(AutoScalingGroupName=name, MinSize=0, MaxSize=0)
    autoscaling.delete_auto_scaling_group(AutoScalingGroupName=name)


def mixed(condition: str, words: str, distribution: Mapping[str, Any], *overrides: Mapping[str, Any]) -> Refusal:
    """A group of several instance types that cannot be made."""

    def attempt(cloud: CloudFormation) -> None:
        template = created(cloud, idle()).resources["Template"].physical_id
        specification = {"LaunchTemplateId": template, "Version": "1"}
        policy = {
            "LaunchTemplate": {"LaunchTemplateSpecification": specification, "Overrides": list(overrides)},
            "InstancesDistribution": dict(distribution),
        }
        client("autoscaling", REGION).create_auto_scaling_group(
            **made(LaunchTemplate=None), MixedInstancesPolicy=policy
        )

    source = api("InstancesDistribution" if distribution else "LaunchTemplateOverrides")
    return Refusal(
        "autoscaling:CreateAutoScalingGroup", condition, words, source, "condition documented", ServiceCall(attempt)
    )


HOOKS = "LifecycleHookSpecificationList"
ROWS = [
    called(
        "put_notification_configuration",
        "a type of message that does not exist",
        "is not a valid Notification Type.",
        {"AutoScalingGroupName": ..., "TopicARN": TOPIC, "NotificationTypes": ["autoscaling:EC2_INSTANCE_BOOT"]},
    ),
    called(
        "put_notification_configuration",
        "a topic that does not exist",
        "Unable to publish test message to notification target",
        {"AutoScalingGroupName": ..., "TopicARN": TOPIC, "NotificationTypes": ["autoscaling:EC2_INSTANCE_LAUNCH"]},
    ),
    row(
        "minimum above the maximum",
        "must be greater than or equal to min bound",
        lambda: idle(MinSize=3),
        api("CreateAutoScalingGroup"),
    ),
    row(
        "desired capacity above the maximum",
        "Desired capacity:5 must be between the specified min size:1 and max size:1",
        lambda: idle(DesiredCapacity="5"),
        issue("convox/praxis#258"),
        "seen",
    ),
    row(
        "desired capacity below the minimum",
        "Desired capacity:0 must be between the specified min size:1 and max size:1",
        lambda: idle(DesiredCapacity="0"),
        issue("banzaicloud/pipeline#3017"),
        "seen",
    ),
    row(
        "negative size",
        "'-1' does not match pattern",
        lambda: idle(MinSize="-1"),
        api("CreateAutoScalingGroup"),
    ),
    row(
        "neither zones nor subnets",
        "At least one Availability Zone or VPC Subnet is required.",
        lambda: idle(AvailabilityZones=None),
        issue("chef-boneyard/chef-provisioning-aws#135"),
        "seen",
    ),
    row(
        "zone that is not there",
        "Invalid availability zones: [us-west-2q]",
        lambda: idle(AvailabilityZones=["us-west-2q"]),
        api("CreateAutoScalingGroup"),
    ),
    row(
        "subnet that is not there",
        "The subnet ID 'subnet-0123456789abcdef0' does not exist",
        lambda: idle(AvailabilityZones=None, VPCZoneIdentifier=["subnet-0123456789abcdef0"]),
        issue("brikis98/terraform-up-and-running-code#67"),
        "seen",
    ),
    row(
        "subnet in another zone than those of the group",
        "The availability zones of the specified subnets and the Auto Scaling group do not match",
        in_a_subnet_of_another_zone,
        issue("aws/amazon-ecs-cli#47"),
        "seen",
    ),
    row(
        "subnets of several VPCs",
        "are of several VPCs",
        lambda: idle(AvailabilityZones=None, VPCZoneIdentifier=subnets()),
        f"Auto Scaling user guide: [Amazon VPC]({GUIDE}/asg-in-vpc.html)",
    ),
    row(
        "launch template that is not there",
        "You must use a valid fully-formed launch template.",
        lambda: idle(LaunchTemplate={"LaunchTemplateId": "lt-0123456789abcdef0", "Version": "1"}),
        f"{issue('eksctl-io/eksctl#1293')} (the first sentence)",
        "seen",
    ),
    row(
        "version of a launch template that is not there",
        "You must use a valid fully-formed launch template.",
        lambda: idle(LaunchTemplate={"LaunchTemplateId": {"Ref": "Template"}, "Version": "7"}),
        f"{issue('eksctl-io/eksctl#1293')} (the first sentence)",
        "seen",
    ),
    row(
        "two instances and one network interface",
        "Group did not stabilize. Last scaling activity: Interface: [eni-",
        on_one_interface,
        f"{issue('terraform-aws-modules/terraform-aws-autoscaling#226')}, {issue('eksctl-io/eksctl#8383')}; "
        f"Auto Scaling user guide: [existing network interfaces]({GUIDE}/examples-launch-templates-aws-cli.html)",
        "seen",
    ),
    row(
        "network interface that another instance has",
        "in use. Launching EC2 instance failed.",
        lambda: on_one_interface(1),
        issue("terraform-aws-modules/terraform-aws-autoscaling#226"),
        "seen",
    ),
    row(
        "tag without PropagateAtLaunch",
        "required key [PropagateAtLaunch] not found",
        lambda: idle(Tags=[{"Key": "a", "Value": "b"}]),
        "Template reference: [AWS::AutoScaling::AutoScalingGroup TagProperty](https://docs.aws.amazon.com/"
        "AWSCloudFormation/latest/TemplateReference/aws-properties-autoscaling-autoscalinggroup-tagproperty.html)",
        "documented",
    ),
    row(
        "tag of AWS's own",
        "aws:",
        lambda: idle(Tags=[{"Key": "aws:x", "Value": "b", "PropagateAtLaunch": True}]),
        f"Auto Scaling user guide: [Tag Auto Scaling groups]({GUIDE}/ec2-auto-scaling-tagging.html)",
    ),
    row(
        "tag twice",
        "uplicate",
        lambda: idle(Tags=[{"Key": "a", "Value": each, "PropagateAtLaunch": True} for each in "bc"]),
        f"Auto Scaling user guide: [Tag Auto Scaling groups]({GUIDE}/ec2-auto-scaling-tagging.html)",
    ),
    row(
        "51 tags",
        "50",
        lambda: idle(Tags=[{"Key": f"k{n}", "Value": "", "PropagateAtLaunch": True} for n in range(51)]),
        f"Auto Scaling user guide: [Quotas]({GUIDE}/ec2-auto-scaling-quotas.html)",
    ),
    row(
        "heartbeat timeout of less than 30 seconds",
        "Heartbeat timeout must be between 30 and 7200 seconds",
        lambda: idle(**{HOOKS: [{**HOOK, "HeartbeatTimeout": 29}]}),
        api("PutLifecycleHook"),
    ),
    row(
        "heartbeat timeout of more than two hours",
        "Heartbeat timeout must be between 30 and 7200 seconds",
        lambda: idle(**{HOOKS: [{**HOOK, "HeartbeatTimeout": "7201"}]}),
        api("PutLifecycleHook"),
    ),
    row(
        "name of a hook with other characters",
        "[A-Za-z0-9",
        lambda: idle(**{HOOKS: [{**HOOK, "LifecycleHookName": "drain pods"}]}),
        api("PutLifecycleHook"),
        "documented",
    ),
    row(
        "two hooks of one name",
        "have names of their own",
        lambda: idle(**{HOOKS: [HOOK, HOOK]}),
        api("PutLifecycleHook"),
        "assumed",
    ),
    row(
        "PauseTime over an hour",
        "PauseTime must be in the ISO8601 time period format and must be no greater than PT3600S seconds",
        rolling(PauseTime="PT1H1S"),
        f"{POLICIES}; {issue('aws/aws-cdk#1113')}",
        "seen",
    ),
    row(
        "PauseTime that is no duration",
        "Invalid Autoscaling rolling update policy: PauseTime must be in the ISO8601 time period format",
        rolling(PauseTime="PT"),
        issue("aws/aws-cdk#1113"),
        "seen",
    ),
    row("no instance in a batch", "MaxBatchSize must be between 1 and 100", rolling(MaxBatchSize=0), POLICIES),
    row(
        "more than a hundred instances in a batch",
        "MaxBatchSize must be between 1 and 100",
        rolling(MaxBatchSize=101),
        POLICIES,
        "condition documented",
    ),
    row(
        "more than all instances must succeed",
        "MinSuccessfulInstancesPercent must be between 0 and 100",
        rolling(MinSuccessfulInstancesPercent=101),
        POLICIES,
    ),
    row(
        "process that there is not",
        "SuspendProcesses has no process named HealthChecks",
        rolling(SuspendProcesses=["HealthChecks"]),
        f"{POLICIES}; {api('SuspendProcesses')}",
    ),
    row(
        "setting of a rolling update that there is not",
        "unsupported property MaxSurge",
        rolling(MaxSurge=1),
        POLICIES,
    ),
    row(
        "update policy that there is not",
        "unsupported property RollingUpdate",
        lambda: with_policy(RollingUpdate={}),
        POLICIES,
    ),
    row(
        "truth value that is none",
        "UpdatePolicy WillReplace must be true or false",
        lambda: with_policy(AutoScalingReplacingUpdate={"WillReplace": "maybe"}),
        POLICIES,
    ),
    row(
        "more signals than instances",
        "Failed to receive 2 resource signal(s) within the specified duration",
        no_signal_for(2),
        f"{SIGNALS}; {issue('buildkite/elastic-ci-stack-for-aws#130')}",
        "seen",
    ),
    Refusal(
        GROUP,
        "minimum above the maximum, in an update",
        "must be greater than or equal to min bound",
        api("UpdateAutoScalingGroup"),
        "condition documented",
        Update(idle, grown, "Group"),
    ),
    Refusal(
        GROUP,
        "as many instances in service as the group can have",
        "MinInstancesInService must be less than the autoscaling group's MaxSize",
        issue("kubernetes-retired/kube-aws#950"),
        "seen",
        Update(idle, rolled_with_all_in_service, "Group"),
    ),
    Refusal(
        "autoscaling:DeleteAutoScalingGroup",
        "group with instances, without force",
        "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in "
        "the group.",
        issue("cloud-custodian/cloud-custodian#1686"),
        "seen",
        ServiceCall(deleted_with_instances),
    ),
    Refusal(
        "autoscaling:DeleteAutoScalingGroup",
        "group whose instances are being terminated, without force",
        "You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.",
        issue("cloud-custodian/cloud-custodian#1689"),
        "seen",
        ServiceCall(deleted_while_instances_go),
    ),
    called(
        "create_auto_scaling_group",
        "name that another group has",
        "AutoScalingGroup by this name already exists - A group with the name",
        made(AutoScalingGroupName=...),
        "seen",
        source=issue("hashicorp/terraform#17489"),
    ),
    called(
        "create_auto_scaling_group",
        "target group that is not there",
        "Provided Target Groups may not be valid. Please ensure they exist and try again.",
        made(TargetGroupARNs=[f"arn:aws:elasticloadbalancing:{REGION}:123456789012:targetgroup/x/0123456789abcdef"]),
        "assumed",
    ),
    called(
        "create_or_update_tags",
        "26 tags in a call",
        "must not exceed 25",
        {"Tags": [{**TAG, "Key": f"k{n}"} for n in range(26)]},
        source=f"Auto Scaling user guide: [Tag Auto Scaling groups]({GUIDE}/ec2-auto-scaling-tagging.html)",
    ),
    called(
        "create_or_update_tags",
        "group that is not there",
        "AutoScalingGroup name not found",
        {"Tags": [TAG]},
        "assumed",
    ),
    called("delete_tags", "group that is not there", "AutoScalingGroup name not found", {"Tags": [TAG]}, "assumed"),
    Refusal(
        "autoscaling:CreateOrUpdateTags",
        "51st tag of a group",
        "50 tags at most",
        f"Auto Scaling user guide: [Tag Auto Scaling groups]({GUIDE}/ec2-auto-scaling-tagging.html)",
        "condition documented",
        ServiceCall(tagged_once_more),
    ),
    called(
        "terminate_instance_in_auto_scaling_group",
        "fewer instances than the minimum",
        "Terminating instance without replacement will violate group's min size constraint",
        {"InstanceId": ..., "ShouldDecrementDesiredCapacity": True},
    ),
    called(
        "terminate_instance_in_auto_scaling_group",
        "instance that no group has",
        "Instance Id not found - No managed instance found for instance ID",
        {"InstanceId": "i-0123456789abcdef0", "ShouldDecrementDesiredCapacity": False},
    ),
    called(
        "complete_lifecycle_action",
        "instance that no hook holds",
        "No active Lifecycle Action found with instance ID i-",
        {
            "AutoScalingGroupName": ...,
            "LifecycleHookName": "drain",
            "InstanceId": ...,
            "LifecycleActionResult": "CONTINUE",
        },
        "seen",
        source=issue("convox/rack#2432"),
    ),
    called(
        "record_lifecycle_action_heartbeat",
        "instance that no hook holds",
        "No active Lifecycle Action found with instance ID i-",
        {"AutoScalingGroupName": ..., "LifecycleHookName": "drain", "InstanceId": ...},
        "seen",
        source=issue("convox/rack#2432"),
    ),
    mixed("allocation strategy that there is not", "SpotAllocationStrategy", {"SpotAllocationStrategy": "cheapest"}),
    row(
        "51 hooks",
        "50 lifecycle hooks at most",
        lambda: idle(**{HOOKS: [{**HOOK, "LifecycleHookName": f"h{n}"} for n in range(51)]}),
        f"Auto Scaling user guide: [Quotas]({GUIDE}/ec2-auto-scaling-quotas.html)",
    ),
    called("create_auto_scaling_group", "name with a colon", "cannot have a colon", made(AutoScalingGroupName="a:b")),
    called(
        "create_auto_scaling_group",
        "mixture without a launch template",
        "must have a launch template",
        made(LaunchTemplate=None, MixedInstancesPolicy={"InstancesDistribution": {"OnDemandBaseCapacity": 1}}),
        "seen",
        source=issue("floci-io/floci#1439"),
    ),
    called(
        "set_desired_capacity",
        "above the maximum",
        "is above max value 1 for the AutoScalingGroup.",
        {"AutoScalingGroupName": ..., "DesiredCapacity": 2},
    ),
    called(
        "set_desired_capacity",
        "below the minimum",
        "is below min value 1 for the AutoScalingGroup.",
        {"AutoScalingGroupName": ..., "DesiredCapacity": 0},
    ),
    called(
        "set_desired_capacity",
        "group that is not there",
        "AutoScalingGroup name not found",
        {"AutoScalingGroupName": "none", "DesiredCapacity": 0},
        "seen",
        source=issue("cloud-custodian/cloud-custodian#250"),
    ),
    called(
        "suspend_processes",
        "process that there is not",
        "Unknown process type: HealthChecks",
        {"AutoScalingGroupName": ..., "ScalingProcesses": ["HealthChecks"]},
    ),
]
