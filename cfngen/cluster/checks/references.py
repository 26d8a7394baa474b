"""Checks of references to outputs of other stacks."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.existing_parts import referenced_parts
from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import Problem
from cfngen.cluster.references import StackOutput


def _check_other_stacks(cluster: Cluster) -> Iterator[Problem]:
    """Check that no reference names the cluster's own stack, or one of its nested stacks.

    Its root stack is named after the cluster unless `--stack-name` says otherwise; a deployment looks at stacks' tags.
    """
    for part in referenced_parts(cluster):
        if isinstance(part.reference, StackOutput) and part.reference.stack == cluster.name:
            yield Problem(
                part.path,
                f"{part.reference} is an output of this cluster's own stack, which does not exist before the cluster; "
                f"name another stack, or leave the key out if cfngen creates the {part.kind.noun}",
                related_paths=(("name",),),
            )


PROBLEM_CHECKS = (_check_other_stacks,)
