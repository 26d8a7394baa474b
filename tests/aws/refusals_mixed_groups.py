"""Mixed instances policies, instance requirements, replacement settings and Capacity Reservations of groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from refusal import Creation, Refusal, ServiceCall
from refusals_scaling import Evidence, api, idle, issue
from small_stacks import REGION, created

from cfngen.sandbox.cloudformation import CloudFormation, client

CREATE = "autoscaling:CreateAutoScalingGroup"
EC2_API = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference"
SPOT_TEMPLATE = {"InstanceMarketOptions": {"MarketType": "spot"}}
M5, M5A = {"InstanceType": "m5.large"}, {"InstanceType": "m5a.large"}


def requiring(**requirements: Any) -> dict[str, Any]:
    basic: dict[str, Any] = {"VCpuCount": {"Min": 2}, "MemoryMiB": {"Min": 4096}}
    return {"InstanceRequirements": {**basic, **requirements}}


def attempt(
    distribution: Mapping[str, Any], overrides: tuple[Mapping[str, Any], ...], data: Mapping[str, Any], **settings: Any
) -> Callable[[CloudFormation], None]:
    """Create a mixed group of this distribution and these overrides, from a launch template with this data."""

    def create_group(cloud: CloudFormation) -> None:
        resources = idle()
        template_data = {**resources["Template"]["Properties"]["LaunchTemplateData"], **data}
        resources = {"Template": {**resources["Template"], "Properties": {"LaunchTemplateData": template_data}}}
        template = created(cloud, resources).resources["Template"].physical_id
        specification = {"LaunchTemplateId": template, "Version": "1"}
        policy = {
            "LaunchTemplate": {"LaunchTemplateSpecification": specification, "Overrides": list(overrides)},
            "InstancesDistribution": dict(distribution),
        }
        if settings.pop("also_template", False):
            settings["LaunchTemplate"] = specification
        arguments = {
            "AutoScalingGroupName": "the-group",
            "MinSize": 0,
            "MaxSize": 1,
            "AvailabilityZones": [f"{REGION}a"],
        }
        client("autoscaling", REGION).create_auto_scaling_group(**arguments, MixedInstancesPolicy=policy, **settings)

    return create_group


def refused(
    condition: str,
    words: str,
    *overrides: Mapping[str, Any],
    distribution: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    source: str = "",
    evidence: Evidence = "condition documented",
    **settings: Any,
) -> Refusal:
    """A mixed group that cannot be made."""
    by_requirements = any("InstanceRequirements" in override for override in overrides)
    page = (
        "InstancesDistribution"
        if distribution
        else "InstanceRequirements"
        if by_requirements
        else "LaunchTemplateOverrides"
    )
    tried = ServiceCall(attempt(distribution or {}, overrides, data or {}, **settings))
    return Refusal(CREATE, condition, words, source or api(page), evidence, tried)


def by_schema(condition: str, words: str, override: Mapping[str, Any]) -> Refusal:
    """A mixed group whose override its schema refuses."""
    template = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-0123456789abcdef0", "Version": "1"}}
    group = {
        "Type": "AWS::AutoScaling::AutoScalingGroup",
        "Properties": {
            "MinSize": "0",
            "MaxSize": "1",
            "AvailabilityZones": [f"{REGION}a"],
            "MixedInstancesPolicy": {"LaunchTemplate": {**template, "Overrides": [override]}},
        },
    }
    tried = Creation(lambda: {"Group": group}, "Group")
    return Refusal(CREATE, condition, words, api("InstanceRequirements"), "condition documented", tried)


def launching(condition: str, words: str, evidence: Evidence) -> Refusal:
    """An instance that cannot be launched in the Capacity Reservation that the request names."""

    def run_instance(cloud: CloudFormation) -> None:
        ec2 = client("ec2", REGION)
        image = ec2.register_image(Name="image")["ImageId"]
        ec2.run_instances(
            ImageId=image, InstanceType="m5.large", MinCount=1, MaxCount=1,
            CapacityReservationSpecification={"CapacityReservationTarget": {"CapacityReservationId": RESERVATION}},
        )  # fmt: skip

    source = f"EC2 API: [Error codes]({EC2_API}/errors-overview.html)"
    return Refusal("ec2:RunInstances", condition, words, source, evidence, ServiceCall(run_instance))


RESERVATION = "cr-0123456789abcdef0"
ROWS = [
    refused(
        "mixture whose launch template requests Spot Instances",
        "Incompatible launch template: You cannot use a launch template that is set to request Spot Instances "
        "(InstanceMarketOptions) when you configure an Auto Scaling group with a mixed instances policy.",
        M5,
        data=SPOT_TEMPLATE,
        source=f"{issue('kubernetes/kops#7066')}, {issue('kubernetes-sigs/cluster-api-provider-aws#4656')}",
        evidence="seen",
    ),
    refused(
        "launch template beside a mixture",
        "Valid requests must contain either LaunchTemplate, LaunchConfigurationName, InstanceId or "
        "MixedInstancesPolicy parameter.",
        M5,
        source=issue("floci-io/floci#1439"),
        also_template=True,
    ),
    refused(
        "requirements and a parameter of Parameter Store as image",
        'Invalid id: "resolve:ssm:/images/node" (expecting "ami-...")',
        requiring(),
        data={"ImageId": "resolve:ssm:/images/node"},
        source=issue("hashicorp/terraform-provider-aws#38767"),
        evidence="seen",
    ),
    refused(
        "base below zero",
        "OnDemandBaseCapacity must be between 0 and",
        M5,
        distribution={"OnDemandBaseCapacity": -1},
        evidence="assumed",
    ),
    refused(
        "more than all instances on demand",
        "OnDemandPercentageAboveBaseCapacity must be between 0 and 100",
        M5,
        distribution={"OnDemandPercentageAboveBaseCapacity": 101},
    ),
    refused(
        "21 pools",
        "SpotInstancePools must be between 1 and 20",
        M5,
        distribution={"SpotAllocationStrategy": "lowest-price", "SpotInstancePools": 21},
    ),
    refused(
        "pools with another strategy than lowest-price",
        "with the strategy lowest-price only",
        M5,
        distribution={"SpotAllocationStrategy": "capacity-optimized", "SpotInstancePools": 2},
    ),
    refused(
        "spot price with a currency",
        "SpotMaxPrice $0.1 is no price",
        M5,
        distribution={"SpotMaxPrice": "$0.1"},
        evidence="assumed",
    ),
    refused("spot price of nothing", "SpotMaxPrice 0 is less than 0.001", M5, distribution={"SpotMaxPrice": "0"}),
    refused("spot price below the least", "is less than 0.001", M5, distribution={"SpotMaxPrice": "0.0009"}),
    refused(
        "type that there is not, in a mixture",
        "Invalid instance type: m5.largest",
        {"InstanceType": "m5.largest"},
        evidence="assumed",
    ),
    refused(
        "instance type twice",
        "Each instance type stands once",
        M5,
        M5,
        evidence="assumed",
    ),
    refused(
        "41 instance types",
        "40 instance types at most",
        *({"InstanceType": f"t{number}.small"} for number in range(41)),
    ),
    refused(
        "types beside requirements",
        "either InstanceType or InstanceRequirements",
        M5,
        requiring(),
        evidence="assumed",
    ),
    refused(
        "minimum of vCPUs above the maximum",
        "The Min of VCpuCount, 4, is greater than its Max, 2",
        requiring(VCpuCount={"Min": 4, "Max": 2}),
    ),
    refused(
        "allowed and excluded types",
        "either AllowedInstanceTypes or ExcludedInstanceTypes, not both",
        requiring(AllowedInstanceTypes=["m5.*"], ExcludedInstanceTypes=["m5.metal"]),
    ),
    refused(
        "longest life of a day less a second",
        "must be 0 or at least 86400 seconds",
        M5,
        source=api("CreateAutoScalingGroup"),
        MaxInstanceLifetime=86_399,
    ),
    refused(
        "longest life of more than a year",
        "at most 31536000",
        M5,
        source="Terraform provider: [aws_autoscaling_group]"
        "(https://registry.terraform.io/providers/hashicorp/aws/latest/docs/resources/autoscaling_group)",
        MaxInstanceLifetime=31_536_001,
    ),
    by_schema(
        "401 excluded types",
        "ExcludedInstanceTypes: expected maximum item count: 400, found: 401",
        requiring(ExcludedInstanceTypes=[f"m5.{n}" for n in range(401)]),
    ),
    by_schema(
        "allowed type of 31 characters",
        "AllowedInstanceTypes/0: a text of 31 characters is too short or too long",
        requiring(AllowedInstanceTypes=["m" * 31]),
    ),
    by_schema("fewer than no processors", "-1 is too small or too large", requiring(VCpuCount={"Min": -1})),
    launching("reservation that is not there", "InvalidCapacityReservationId.NotFound", "condition documented"),
    refused(
        "prioritized On-Demand types and requirements",
        "prioritized cannot be used with InstanceRequirements",
        requiring(),
        distribution={"OnDemandAllocationStrategy": "prioritized"},
    ),
    refused("five sets of requirements", "4 InstanceRequirements at most", *[requiring()] * 5),
    refused(
        "target of a group that uses no reservation",
        "CapacityReservationTarget cannot be specified with",
        M5,
        source=api("CapacityReservationSpecification"),
        CapacityReservationSpecification={
            "CapacityReservationPreference": "none",
            "CapacityReservationTarget": {"CapacityReservationIds": [RESERVATION]},
        },
    ),
]
