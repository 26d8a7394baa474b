"""Instance types of similar size that a zone offers, for a master whose type is sold out."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cfngen.cluster.instances.instance_types import architecture, why_unsuitable
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.types import AwsObject

_MAX_TYPES = 3
_PROCESSOR_BY_ARCHITECTURE = {"amd64": "x86_64", "arm64": "arm64"}


def find_similar_types(account: Account, instance_type: str, zone: str) -> tuple[str, ...]:
    """Return up to three other types with as many vCPUs and at least as much memory that a zone offers.

    Those with the least memory come first; of these the ones of the same class, e.g. `m` for `m5.large`. Whether EC2
    has capacity for them, only a launch tells. Nothing is returned if EC2 does not answer.
    """
    try:
        with translate_aws_errors():
            return _read_similar_types(account, instance_type, zone)
    except AwsError:
        return ()


def _read_similar_types(account: Account, instance_type: str, zone: str) -> tuple[str, ...]:
    """Return the types of similar size; see `find_similar_types`."""
    client = account.client("ec2")
    descriptions = client.describe_instance_types(InstanceTypes=[instance_type])["InstanceTypes"]
    vcpu_count = int(descriptions[0]["VCpuInfo"]["DefaultVCpus"])
    memory = int(descriptions[0]["MemoryInfo"]["SizeInMiB"])
    filters = [
        {"Name": "current-generation", "Values": ["true"]},
        {"Name": "bare-metal", "Values": ["false"]},
        {"Name": "hypervisor", "Values": ["nitro"]},
        {"Name": "vcpu-info.default-vcpus", "Values": [str(vcpu_count)]},
        {
            "Name": "processor-info.supported-architecture",
            "Values": [_PROCESSOR_BY_ARCHITECTURE[architecture(instance_type)]],
        },
    ]
    pages = client.get_paginator("describe_instance_types").paginate(Filters=filters)
    memory_by_type = {
        description["InstanceType"]: int(description["MemoryInfo"]["SizeInMiB"])
        for page in pages
        for description in page["InstanceTypes"]
        # Types with a GPU cost far more.
        if not description.get("GpuInfo") and not description.get("InferenceAcceleratorInfo")
    }
    location = [{"Name": "location", "Values": [zone]}]
    offerings = client.get_paginator("describe_instance_type_offerings").paginate(
        LocationType="availability-zone", Filters=location
    )
    offered = {offering["InstanceType"] for page in offerings for offering in page["InstanceTypeOfferings"]}
    candidates = [
        candidate
        for candidate, candidate_memory in memory_by_type.items()
        if candidate in offered
        and candidate != instance_type
        and candidate_memory >= memory
        and not why_unsuitable(candidate, "master")
    ]
    candidates.sort(key=lambda name: (memory_by_type[name], name[0] != instance_type[0], name))
    return tuple(candidates[:_MAX_TYPES])


# "The maximum number of filter values specified in a single request is 200" (FilterLimitExceeded, "Error codes for the
# Amazon EC2 API").
_MAX_FILTER_VALUES = 200


def read_offerings(account: Account, instance_types: Collection[str]) -> dict[str, set[str]]:
    """Return the zones that offer each of some instance types; a type that no zone offers is missing."""
    zones_by_type: dict[str, set[str]] = {}
    paginator = account.client("ec2").get_paginator("describe_instance_type_offerings")
    sorted_types = sorted(instance_types)
    for start in range(0, len(sorted_types), _MAX_FILTER_VALUES):
        filters = [{"Name": "instance-type", "Values": sorted_types[start : start + _MAX_FILTER_VALUES]}]
        for page in paginator.paginate(LocationType="availability-zone", Filters=filters):
            for offering in page["InstanceTypeOfferings"]:
                zones_by_type.setdefault(offering["InstanceType"], set()).add(offering["Location"])
    return zones_by_type


MAX_TYPES_PER_CALL = 100  # instance types in one call of DescribeInstanceTypes


def describe_running_instances(account: Account) -> Iterator[AwsObject]:
    """Yield each instance of the account that is running or starting."""
    filters = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    pages = account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    for page in pages:
        for reservation in page["Reservations"]:
            yield from reservation["Instances"]


def read_vcpus_by_type(account: Account, instance_types: Collection[str]) -> dict[str, int]:
    """Return the number of vCPUs of each instance type."""
    sorted_types = sorted(instance_types)
    vcpus_by_type: dict[str, int] = {}
    for start in range(0, len(sorted_types), MAX_TYPES_PER_CALL):
        response = account.client("ec2").describe_instance_types(
            InstanceTypes=sorted_types[start : start + MAX_TYPES_PER_CALL]
        )
        for description in response["InstanceTypes"]:
            vcpus_by_type[description["InstanceType"]] = int(description["VCpuInfo"]["DefaultVCpus"])
    return vcpus_by_type
