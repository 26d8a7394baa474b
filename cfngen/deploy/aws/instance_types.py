"""Instance types: which a zone offers, which of them are of similar size, how many vCPUs they have, and which run."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cfngen.cluster.instances.instance_types import architecture, why_unsuitable
from cfngen.deploy.aws.account import Account, Filters, batches
from cfngen.deploy.aws.errors import AwsError, IncompleteAnswerError, translate_aws_errors
from cfngen.deploy.aws.groups import describe_instances
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
    [wanted] = account.items("ec2.describe_instance_types", "InstanceTypes", InstanceTypes=[instance_type])
    vcpu_count = int(wanted["VCpuInfo"]["DefaultVCpus"])
    memory = int(wanted["MemoryInfo"]["SizeInMiB"])
    filters = {
        "current-generation": ["true"],
        "bare-metal": ["false"],
        "hypervisor": ["nitro"],
        "vcpu-info.default-vcpus": [str(vcpu_count)],
        "processor-info.supported-architecture": [_PROCESSOR_BY_ARCHITECTURE[architecture(instance_type)]],
    }
    memory_by_type = {
        description["InstanceType"]: int(description["MemoryInfo"]["SizeInMiB"])
        for description in account.items("ec2.describe_instance_types", "InstanceTypes", filters=filters)
        # Types with a GPU cost far more.
        if not description.get("GpuInfo") and not description.get("InferenceAcceleratorInfo")
    }
    offered = {offering["InstanceType"] for offering in _offerings(account, {"location": [zone]})}
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


def read_offerings(account: Account, instance_types: Collection[str]) -> dict[str, set[str]]:
    """Return the zones that offer each of some instance types; a type that no zone offers is missing."""
    zones_by_type: dict[str, set[str]] = {}
    for offering in _offerings(account, {"instance-type": sorted(instance_types)}):
        zones_by_type.setdefault(offering["InstanceType"], set()).add(offering["Location"])
    return zones_by_type


def _offerings(account: Account, filters: Filters) -> Iterator[AwsObject]:
    return account.items(
        "ec2.describe_instance_type_offerings",
        "InstanceTypeOfferings",
        filters=filters,
        LocationType="availability-zone",
    )


MAX_TYPES_PER_CALL = 100  # instance types in one call of DescribeInstanceTypes


def describe_running_instances(account: Account) -> Iterator[AwsObject]:
    """Yield each instance of the account that is running or starting."""
    return describe_instances(account, {"instance-state-name": ["pending", "running"]})


def read_vcpus_by_type(account: Account, instance_types: Collection[str]) -> dict[str, int]:
    """Return the number of vCPUs of each instance type.

    Raises:
        IncompleteAnswerError: EC2 does not describe one of them.
    """
    vcpus = {
        description["InstanceType"]: int(description["VCpuInfo"]["DefaultVCpus"])
        for batch in batches(sorted(instance_types), MAX_TYPES_PER_CALL)
        for description in account.items("ec2.describe_instance_types", "InstanceTypes", InstanceTypes=batch)
    }
    if missing := sorted(set(instance_types) - vcpus.keys()):
        raise IncompleteAnswerError("ec2:DescribeInstanceTypes", ", ".join(missing))
    return vcpus
