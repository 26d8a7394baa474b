"""The tags that `cfngen deploy` has added to existing subnets: which of them a deletion removes, and which remain.

The cluster's own tag is of no use without the cluster, and is removed. A role says something about the subnet and not
about one cluster, and others may rely on it by now: it remains.
"""

from __future__ import annotations

from collections.abc import Iterable

from cfngen.cluster.naming.tag_keys import SUBNET_ROLES, added_tags_note
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.deletion.kubernetes_tags import cluster_tag, tag_map
from cfngen.deploy.deletion.retained_resources import RetainedResource
from cfngen.deploy.messages import Notice, Report, Step
from cfngen.deploy.subnet_tags import SHARED, SubnetTag
from cfngen.text import pluralize

# "Error codes for the Amazon EC2 API": a subnet, or any resource of a call that tags, does not exist.
_GONE_CODES = frozenset({"InvalidID", "InvalidSubnetID.NotFound"})


def find_added(account: Account, cluster: str) -> tuple[SubnetTag, ...]:
    """Return the tags that cfngen has added to subnets for a cluster, and that the subnets still have.

    The subnets are found by the tag in which cfngen notes what it has added, so also those that the cluster file does
    not name any more. That tag is the last one of each subnet.
    """
    note = added_tags_note(cluster)
    filters = [{"Name": "tag-key", "Values": [note]}]
    added: list[SubnetTag] = []
    for page in account.client("ec2").get_paginator("describe_subnets").paginate(Filters=filters):
        for subnet in page["Subnets"]:
            tags = tag_map(subnet.get("Tags"))
            keys = (*tags.get(note, "").split(), note)
            added += [SubnetTag(subnet["SubnetId"], key, tags[key]) for key in keys if key in tags]
    return tuple(added)


def select_removable(added: Iterable[SubnetTag], cluster: str) -> tuple[SubnetTag, ...]:
    """Return the tags that a deletion removes: the cluster's own one, unless it was changed since, and the note."""
    return tuple(
        tag
        for tag in added
        if tag.key == added_tags_note(cluster) or (tag.key == cluster_tag(cluster) and tag.value == SHARED)
    )


def describe_remaining(account: Account, added: Iterable[SubnetTag]) -> tuple[RetainedResource, ...]:
    """Return the added tags that remain: those of roles, each with the command that removes it."""
    return tuple(
        RetainedResource(
            kind="subnet tag",
            id=f"{tag.subnet} {tag.key}",
            why="a deployment has added it, and other clusters may use it",
            command=f"aws ec2 delete-tags --resources {tag.subnet} --tags Key={tag.key} --region {account.region}",
        )
        for tag in added
        if tag.key in SUBNET_ROLES
    )


def remove(account: Account, cluster: str, tags: Iterable[SubnetTag], report: Report) -> tuple[SubnetTag, ...]:
    """Remove tags of subnets; return those that were removed. Tags that are gone already are no error.

    A tag is removed only with the value that it had when it was read. What AWS refuses is reported, and stays.

    Args:
        account: the account and region.
        cluster: name of the cluster.
        tags: the tags to remove.
        report: receives the step, and a notice about each subnet whose tags cannot be removed.
    """
    tags_by_subnet: dict[str, list[SubnetTag]] = {}
    for tag in tags:
        tags_by_subnet.setdefault(tag.subnet, []).append(tag)
    if tags_by_subnet:
        report(Step(f"removing the tags of {cluster} from {pluralize(len(tags_by_subnet), 'existing subnet')}"))
    removed: list[SubnetTag] = []
    for subnet, subnet_tags in tags_by_subnet.items():
        if _remove_from_subnet(account, cluster, subnet, subnet_tags, report):
            removed += subnet_tags
    return tuple(removed)


def _remove_from_subnet(account: Account, cluster: str, subnet: str, tags: Iterable[SubnetTag], report: Report) -> bool:
    """Remove tags of one subnet; return whether they were removed, and report why if they were not."""
    try:
        with translate_aws_errors():
            account.client("ec2").delete_tags(
                Resources=[subnet], Tags=[{"Key": tag.key, "Value": tag.value} for tag in tags]
            )
    except AwsError as error:
        if error.aws_code not in _GONE_CODES:
            report(Notice(f"the tags of {cluster} could not be removed from {subnet}: {error}", error.hint))
        return False
    return True
