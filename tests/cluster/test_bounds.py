"""The bounds of every number of the cluster file; one beyond is refused with the bound."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError

# Key: least, greatest. An index stands for an entry of a list.
# What an item of a list has beside the number.
BESIDE: dict[str, dict[str, Any]] = {"nodeGroups": {"name": "nodes"}, "volumes": {"mountPath": "/data"}}
BOUNDS = {
    # "Subnet CIDR blocks", Amazon VPC user guide.
    "network.subnetSizes.instances": (16, 28),
    "network.subnetSizes.public": (16, 28),
    # "Amazon VPC quotas": rules times groups may not exceed 1,000; a group for each interface may be raised to 16.
    "network.quotas.rulesPerSecurityGroup": (60, 1000),
    "network.quotas.securityGroupsPerInterface": (1, 16),
    "api.port": (1, 65535),
    "api.allowedPrefixLists[0].maxEntries": (1, 1000),
    # An update pauses for an hour at most (PauseTime of UpdatePolicy, CloudFormation user guide).
    "controlPlane.creationTimeout": (10, 50),
    "nodeGroups[0].creationTimeout": (10, 50),
    # "Amazon EBS volume types", EBS user guide.
    "controlPlane.volume.size": (1, 65536),
    "controlPlane.volume.iops": (100, 256_000),
    "controlPlane.volume.throughput": (125, 2000),
    "controlPlane.rootVolume.size": (1, 65536),
    "nodeGroups[0].rootVolume.iops": (100, 256_000),
    "nodeGroups[0].volumes[0].size": (1, 65536),
    "controlPlane.auditLog.maxAge": (1, 3650),
    "controlPlane.auditLog.maxBackups": (1, 1000),
    "controlPlane.auditLog.maxSize": (1, 10_000),
    # Kubernetes is tested with 5,000 nodes: https://kubernetes.io/docs/setup/best-practices/cluster-large/
    "nodeGroups[0].minSize": (0, 5000),
    "nodeGroups[0].maxSize": (1, 5000),
    "nodeGroups[0].desiredSize": (0, 5000),
    "nodeGroups[0].drainTimeout": (0, 60),
    "nodeGroups[0].maxPods": (5, 500),
    "addons.nodeTerminationHandler.podGracePeriod": (1, 3600),
    # EC2 interrupts a Spot Instance two minutes after its notice.
    "addons.nodeTerminationHandler.nodeGracePeriod": (120, 3600),
    # Kubernetes needs 2 vCPUs and 2 GiB; the largest types have 1,024 vCPUs and 32 TiB.
    "nodeGroups[0].instanceRequirements.vcpus.min": (2, 1024),
    "nodeGroups[0].instanceRequirements.vcpus.max": (2, 1024),
    "nodeGroups[0].instanceRequirements.memory.min": (2, 32768),
    "nodeGroups[0].instanceRequirements.memory.max": (2, 32768),
    "nodeGroups[0].instanceRequirements.accelerators.count.min": (1, 64),
    "nodeGroups[0].instanceRequirements.accelerators.count.max": (1, 64),
    # 999999 turns price protection off (`InstanceRequirements`, EC2 Auto Scaling API Reference).
    "nodeGroups[0].instanceRequirements.maxSpotPricePercentage": (1, 999_999),
    "nodeGroups[0].instanceRequirements.maxOnDemandPricePercentage": (1, 999_999),
    # `InstancesDistribution`, EC2 Auto Scaling API Reference.
    "nodeGroups[0].instancesDistribution.onDemandBase": (0, 5000),
    "nodeGroups[0].instancesDistribution.onDemandPercentage": (0, 100),
    "nodeGroups[0].instancesDistribution.spotInstancePools": (1, 20),
    # From 86,400 seconds ("Replace Auto Scaling instances based on maximum instance lifetime", Auto Scaling guide).
    "nodeGroups[0].maxInstanceLifetime": (1, 365),
    # MaxBatchSize of UpdatePolicy, CloudFormation template reference.
    "nodeGroups[0].update.maxUnavailable": (0, 100),
    "nodeGroups[0].update.maxSurge": (0, 100),
    "nodeGroups[0].update.pause": (0, 40),
    "etcd.backups.interval": (5, 1440),
    "etcd.backups.hourlyDays": (1, 3650),
    "etcd.backups.dailyDays": (1, 3650),
    "etcd.backups.objectLock.days": (1, 3650),
    "registry.repositories[0].keepImages": (1, 100000),
    "registry.repositories[0].keepDays": (1, 36500),
}


def written(path: str, value: int) -> dict[str, Any]:
    """A cluster file with one key, and what has to stand beside it."""
    found: Any = value
    for part in reversed(path.split(".")):
        name, _, index = part.partition("[")
        if index:
            beside = BESIDE.get(name, {"id": "pl-0123456789abcdef0"})
            found = [{**beside, **found}]
        if name == "nodeTerminationHandler":
            found = {"enabled": True, **found}
        if name == "objectLock":
            found = {"mode": "governance", **found}
        found = {name: found}
    return dict(found)


def refusal(path: str, value: int) -> str:
    with pytest.raises(ClusterFileError) as raised:
        parse(written(path, value))
    return str(raised.value)


@pytest.mark.parametrize("path", BOUNDS)
def test_a_number_beyond_its_bounds_is_refused_with_the_bound(path: str) -> None:
    least, greatest = BOUNDS[path]
    assert f"{path}: must be at least {least}, not {least - 1}" in refusal(path, least - 1)
    assert f"{path}: must be at most {greatest}, not {greatest + 1}" in refusal(path, greatest + 1)


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, bounds in BOUNDS.items() for value in bounds])
def test_the_bounds_themselves_are_within(path: str, value: int) -> None:
    """Whatever else may be wrong with so small or so large a number, it is not that it is out of bounds."""
    try:
        parse(written(path, value))
    except ClusterFileError as error:
        assert not re.search(rf"{re.escape(path)}: must be at (least|most) ", str(error)), error  # noqa: PT017


def test_every_number_of_the_reference_with_bounds_is_here() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/configuration.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| a whole number, (\d+) to (\d+) \|", page, re.MULTILINE)
    assert rows
    known = {(path.rpartition(".")[2], str(least), str(greatest)) for path, (least, greatest) in BOUNDS.items()}
    assert set(rows) == known
