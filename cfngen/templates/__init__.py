"""The templates of a cluster: one module for each stack, a root that nests them, and one flat template.

Generation is deterministic: it uses no network, clock or environment, and the same cluster gives the same bytes.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.templates import iam, master, nodes, root, secrets, security_groups, standalone, vpc
from cfngen.templates.document import Document
from cfngen.templates.stack import Stack
from cfngen.templates.wiring import wire

__all__ = ["Document", "generate", "stacks"]


def stacks(cluster: Cluster) -> tuple[Stack, ...]:
    """Return the cluster's stacks in the order of their dependencies, without the root."""
    network = vpc.build(cluster)
    return (
        *((network,) if network else ()),
        security_groups.build(cluster),
        secrets.build(cluster),
        iam.build(cluster),
        master.build(cluster),
        *(nodes.build(cluster, group) for group in cluster.node_groups),
    )


def generate(cluster: Cluster) -> tuple[Document, ...]:
    """Return the cluster's templates: the stacks in the order of their dependencies, `cluster` and `standalone`.

    `standalone` is missing where a cluster is too large for one template.

    Raises:
        cfngen.userdata.UserDataTooLargeError: an instance's user data exceeds EC2's limit.
    """
    built = stacks(cluster)
    wiring = wire(built)
    flat = standalone.build(cluster, built, wiring)
    return (
        *(stack.document() for stack in built),
        root.build(cluster, built, wiring),
        *((flat,) if flat else ()),
    )
