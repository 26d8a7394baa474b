"""Checks of tags: every service accepts them, and none is a tag that cfngen or Kubernetes sets."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import Problem
from cfngen.cluster.tag_keys import why_key_refused
from cfngen.text_limits import STACK_TAG_VALUE, TAG_VALUE, same_but_for_case

# Tags that the user may choose. A resource has 50 tags at most, and cfngen, CloudFormation and Kubernetes add some of
# them: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html
_MAX_TAGS = 40


def _check_tag_count(cluster: Cluster) -> Iterator[Problem]:
    if len(cluster.tags) > _MAX_TAGS:
        message = (
            f"{len(cluster.tags)} tags are too many; a resource has 50, and cfngen leaves {_MAX_TAGS} of them to you"
        )
        yield Problem(("tags",), message)


def _check_keys_and_values(cluster: Cluster) -> Iterator[Problem]:
    """Check keys and values. Stacks get the cluster's tags too, so a value must be valid for a stack."""
    for key, value in cluster.tags.items():
        key_problem = why_key_refused(key)
        value_problem = STACK_TAG_VALUE.fault(value)
        if key_problem:
            yield Problem(("tags", key), key_problem)
        elif value_problem:
            yield Problem(("tags", key), f"the value {value_problem}")


def _check_keys_differ_in_more_than_case(cluster: Cluster) -> Iterator[Problem]:
    """Check that no two keys differ in upper and lower case only: IAM ignores the case in tags of roles."""
    for earlier, key in same_but_for_case(list(cluster.tags)):
        message = f"differs from {earlier} in upper and lower case only, and IAM takes both for one; remove one of them"
        yield Problem(("tags", key), message, related_paths=(("tags", earlier),))


def _check_vpc_name_tag(cluster: Cluster) -> Iterator[Problem]:
    reason = TAG_VALUE.fault(cluster.network.vpc.name)
    if reason and not cluster.network.vpc.id:
        yield Problem(("network", "vpc", "name"), f"the name becomes a tag: its value {reason}")


PROBLEM_CHECKS = (_check_tag_count, _check_keys_and_values, _check_keys_differ_in_more_than_case, _check_vpc_name_tag)
