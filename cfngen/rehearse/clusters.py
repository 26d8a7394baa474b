"""The clusters of a rehearsal, which are variations of kube-up's default cluster, and parts of them.

A part is some of a cluster's nested templates, with a root that nests only those. Outputs of templates that are left
out are replaced by a stack without real resources, which only has the outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from troposphere import Sub, cloudformation

from cfngen import userdata
from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.id_form import pascal
from cfngen.cluster.sections.base import Plugin
from cfngen.templates import Document, iam, master, root, secrets, security_groups, vpc
from cfngen.templates.backups import BUCKET_NAME_OUTPUT
from cfngen.templates.stack import Stack
from cfngen.templates.wiring import Wiring, wire

REHEARSAL_NAME = "cfngen-rehearsal"
"""Name of the cluster and of its root stack; the names of all resources of a rehearsal begin with it."""
DEFAULT_ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")


def default_cluster(zones: tuple[str, ...], **file: Any) -> Cluster:
    """Return the default cluster in the first zone."""
    return parse({"name": REHEARSAL_NAME, "network": {"subnets": [{"zone": zones[0]}]}, **file})


def with_plugin(zones: tuple[str, ...], plugin: Plugin) -> Cluster:
    """Return the default cluster with another network plug-in."""
    return parse({"name": REHEARSAL_NAME, "network": {"subnets": [{"zone": zones[0]}], "plugin": plugin}})


def with_larger_root_volume(zones: tuple[str, ...]) -> Cluster:
    """Return the default cluster with a change that replaces its master's instance, and nothing else."""
    volume = default_cluster(zones).control_plane.root_volume
    return default_cluster(zones, controlPlane={"rootVolume": {"size": volume.size + 1}})


def three_masters(zones: tuple[str, ...]) -> Cluster:
    """Return a cluster of three masters in three zones, and a node in each."""
    return parse(
        {
            "name": REHEARSAL_NAME,
            "network": {"subnets": [{"zone": zone} for zone in zones]},
            "controlPlane": {"count": 3},
            "nodeGroups": [{"name": "nodes", "minSize": 3, "maxSize": 3}],
        }
    )


_FAKE_SECRET_ARN = "arn:${AWS::Partition}:secretsmanager:${AWS::Region}:${AWS::AccountId}:secret:%s-000000"
_FAKE_KEY_ARN = "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:key/00000000-0000-0000-0000-000000000000"


def roles_and_groups(clusters: Mapping[Plugin, Cluster]) -> tuple[Document, ...]:
    """Return the IAM and security group stacks of several network plug-ins, together in one VPC.

    The clusters are equal but for the plug-in.
    """
    first = next(iter(clusters.values()))
    shared = [*_network_stacks(first), _placeholder_outputs(first)]
    stacks, root_parameters = list(shared), dict(wire(shared).root_parameters)
    for plugin, cluster in clusters.items():
        pair = (security_groups.build(cluster), *_iam_stacks(cluster))
        root_parameters.update(wire([*shared, *pair]).root_parameters)
        for stack in pair:
            # There is one such stack per plug-in, so the plug-in's name becomes part of its name.
            stack.name = f"{stack.name}-{plugin}"
            stack.logical_id = f"{pascal(plugin)}{stack.logical_id}"
        stacks += pair
    return _documents_with_root(first, stacks, replace(wire(shared), root_parameters=root_parameters))


def one_master(cluster: Cluster, turn: int) -> tuple[Document, ...]:
    """Return the stacks of one master whose instance only downloads its boot program and signals success.

    Another turn, a number in the user data, changes the launch template.
    """
    user_data = partial(userdata.master, rehearsal={"turn": turn})
    stacks = [
        *_network_stacks(cluster),
        _placeholder_outputs(cluster),
        security_groups.build(cluster),
        *_iam_stacks(cluster),
        master.build(cluster, user_data=user_data),
    ]
    return _documents_with_root(cluster, stacks, wire(stacks))


def key_and_secrets(cluster: Cluster) -> tuple[Document, ...]:
    """Return the stack of the KMS key, the secrets and the bucket, and its root."""
    stacks = [secrets.build(cluster)]
    return _documents_with_root(cluster, stacks, wire(stacks))


def _network_stacks(cluster: Cluster) -> list[Stack]:
    network = vpc.build(cluster)
    return [network] if network else []


def _iam_stacks(cluster: Cluster) -> list[Stack]:
    roles = iam.build(cluster)
    return [roles] if roles else []


def _placeholder_outputs(cluster: Cluster) -> Stack:
    """Return a stack whose outputs are made-up names of the KMS key, the secrets and the bucket."""
    stack = Stack(cluster, "names", "NamesStack", __name__, f"Names of what the rehearsal {cluster.name} leaves out")
    stack.add(cloudformation.WaitConditionHandle("Names"))
    stack.output("SecretsKeyArn", Sub(_FAKE_KEY_ARN), "KMS key that encrypts the cluster's secrets")
    stack.output("CaSecretArn", Sub(_FAKE_SECRET_ARN % "CaSecret"), "Secret that holds the certificate authorities")
    stack.output("JoinSecretArn", Sub(_FAKE_SECRET_ARN % "JoinSecret"), "Secret that holds what nodes need to join")
    stack.output(BUCKET_NAME_OUTPUT, Sub(f"{cluster.name}-none-${{AWS::AccountId}}"), "S3 bucket of etcd's snapshots")
    return stack


def _documents_with_root(cluster: Cluster, stacks: Sequence[Stack], wiring: Wiring) -> tuple[Document, ...]:
    """Return the templates of stacks, and last a root template that nests exactly these stacks."""
    return (*(stack.document() for stack in stacks), root.build(cluster, stacks, wiring))
