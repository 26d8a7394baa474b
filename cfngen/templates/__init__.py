"""The templates of a cluster: one for each nested stack, the root template, and a standalone template with everything.

Generation is deterministic: it uses no network, clock or environment, and the same cluster gives the same bytes.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.templates import bastion, iam, master, nodes, registry, root, secrets, security_groups, standalone, vpc
from cfngen.templates.document import Document
from cfngen.templates.stack import Stack
from cfngen.templates.wiring import wire

__all__ = ["Document", "generate", "stacks"]


def stacks(cluster: Cluster) -> tuple[Stack, ...]:
    """Return the nested stacks, each after the stacks whose outputs it takes."""
    vpc_stack = vpc.build(cluster)
    iam_stack = iam.build(cluster)
    registry_stack = registry.build(cluster)
    groups_stack = security_groups.build(cluster)
    return (
        *((vpc_stack,) if vpc_stack else ()),
        # CloudFormation refuses a template without resources.
        *((groups_stack,) if groups_stack.resource_ids else ()),
        secrets.build(cluster),
        *((iam_stack,) if iam_stack else ()),
        *((registry_stack,) if registry_stack else ()),
        master.build(cluster),
        *((bastion.build(cluster, cluster.bastion),) if cluster.bastion else ()),
        *(nodes.build(cluster, group) for group in cluster.node_groups),
    )


def generate(cluster: Cluster) -> tuple[Document, ...]:
    """Return the templates: one for each nested stack, then the root `cluster`, then `standalone` with all resources.

    `standalone` is missing if a template with all resources would exceed CloudFormation's limits.

    Raises:
        cfngen.userdata.UserDataTooLargeError: an instance's user data exceeds EC2's limit.
    """
    nested_stacks = stacks(cluster)
    wiring = wire(nested_stacks)
    nested_templates = [stack.document() for stack in nested_stacks]
    standalone_template = standalone.build(cluster, nested_stacks, nested_templates, wiring)
    return (
        *nested_templates,
        root.build(cluster, nested_stacks, wiring),
        *((standalone_template,) if standalone_template else ()),
    )
