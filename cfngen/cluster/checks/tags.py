"""Checks of tags: every service accepts them, and none is a tag that cfngen or Kubernetes sets."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.cluster.problems import Problem
from cfngen.cluster.tag_keys import key_fault
from cfngen.text_limits import STACK_TAG_VALUE, TAG_VALUE, same_but_for_case

# 50 for a resource, of which cfngen, CloudFormation and Kubernetes use some:
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html
_MAX_TAGS = 40


def _count(cluster: Cluster) -> Iterator[Problem]:
    if len(cluster.tags) > _MAX_TAGS:
        message = (
            f"{len(cluster.tags)} tags are too many; a resource has 50, and cfngen leaves {_MAX_TAGS} of them to you"
        )
        yield Problem(("tags",), message)


def _tags(cluster: Cluster) -> Iterator[Problem]:
    """Check keys and values; nested stacks have these tags too, so a value must be valid for a stack."""
    for key, value in cluster.tags.items():
        if fault := key_fault(key):
            yield Problem(("tags", key), fault)
        elif fault := STACK_TAG_VALUE.fault(value):
            yield Problem(("tags", key), f"the value {fault}")


def _same_but_for_case(cluster: Cluster) -> Iterator[Problem]:
    for earlier, key in same_but_for_case(list(cluster.tags)):
        message = f"differs from {earlier} in upper and lower case only, and IAM takes both for one; remove one of them"
        yield Problem(("tags", key), message, (("tags", earlier),))


def _name_of_vpc(cluster: Cluster) -> Iterator[Problem]:
    if not cluster.network.vpc.id and (fault := TAG_VALUE.fault(cluster.network.vpc.name)):
        yield Problem(("network", "vpc", "name"), f"the name becomes a tag: its value {fault}")


PROBLEMS = (_count, _tags, _same_but_for_case, _name_of_vpc)
