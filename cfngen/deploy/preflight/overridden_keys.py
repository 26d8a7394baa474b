"""Says which parameter a problem is about if a deployment's parameter overrides the key of the cluster file.

Checks before a deployment look at the values that will be deployed, and name the key that a value comes from. A value
of `--parameter`, of a parameter file or of the stack is not in the cluster file, so correcting the key would not help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import NodeGroupId
from cfngen.cluster.naming.network_ids import SubnetId, ZoneId, zone_id
from cfngen.cluster.network.existing_parts import parameter_keys
from cfngen.deploy.preflight.findings import FindingsError


def parameters_by_key(cluster: Cluster) -> dict[str, str]:
    """Return the parameter that overrides each key of the cluster file, for keys that checks name."""
    network = cluster.network
    names = {
        **parameter_keys(cluster),
        "network.vpc.cidr": "VpcCidr",
        "controlPlane.instanceType": "MasterInstanceType",
        "bastion.instanceType": "BastionInstanceType",
        "api.elasticIp.allocationId": "ApiElasticIpAllocationId",
        "api.elasticIp.address": "ApiElasticIp",
        "bastion.elasticIp.allocationId": "BastionElasticIpAllocationId",
        "bastion.elasticIp.address": "BastionElasticIpAddress",
    }
    for index, group in enumerate(cluster.node_groups):
        names[f"nodeGroups[{index}].instanceType"] = str(NodeGroupId(group.name, "InstanceType"))
    for index, subnet in enumerate(network.subnets):
        key, zone = f"network.subnets[{index}]", zone_id(subnet.zone)
        names[f"{key}.zone"] = str(ZoneId(zone))
        names[f"{key}.cidr"] = str(SubnetId(zone, "Cidr"))
        names[f"{key}.public.cidr"] = str(SubnetId(zone, "Cidr", is_public=True))
    return names


class OverriddenKeys:
    """The keys of a cluster file that a deployment's parameters override.

    Args:
        sources: by the name of each parameter whose value is not its default, where the value comes from.
    """

    def __init__(self, cluster: Cluster, sources: Mapping[str, str]) -> None:
        self._sources = {key: sources[name] for key, name in parameters_by_key(cluster).items() if name in sources}

    def source(self, key: str) -> str:
        """Return where the value of a key comes from: a parameter, or the key itself."""
        return self._sources.get(key, key)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Let errors about keys of the cluster file name the parameters instead that override them."""
        try:
            yield
        except FindingsError as error:
            problems = tuple(replace(problem, key=self.source(problem.key)) for problem in error.problems)
            if problems == error.problems:
                raise
            raise type(error)(problems, error.hint) from error
