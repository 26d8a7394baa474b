"""Instance types of similar size that a zone offers, for a master whose type is sold out."""

from __future__ import annotations

from cfngen.cluster.instances.instance_types import architecture, why_unsuitable
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.hints import CommandText, SuggestedCommand

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


def replace_command(slot: str, instance_type: str = "TYPE") -> SuggestedCommand:
    """Return the command that replaces a master by an instance of another type."""
    return SuggestedCommand(f"replace {slot}", (("--instance-type", instance_type),))


def sold_out_hint(account: Account, slot: str, instance_type: str, zone: str) -> CommandText:
    """Return what to do for a master whose type is sold out in its zone."""
    similar_types = find_similar_types(account, instance_type, zone) if instance_type and zone else ()
    if not similar_types:
        return CommandText(
            "wait, since the group tries again and again, or launch another type: ", replace_command(slot), "."
        )
    first, *others = similar_types
    alternatives = f" (or {', '.join(others)}, which {zone} offers, too)" if others else ""
    return CommandText(
        "wait, since the group tries again and again, or launch another type: ",
        replace_command(slot, first),
        f"{alternatives}.",
    )


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
