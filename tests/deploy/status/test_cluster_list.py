"""Which stacks of an account are clusters, and how they are listed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from answers import DENIED, Answers

from cfngen.cli.render.notices import cluster_list_lines
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.status.cluster_list import ClusterList, list_clusters

CREATED = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def stack(name: str, *, cluster: str = "", status: str = "CREATE_COMPLETE", **others: Any) -> dict[str, Any]:
    tags = [{"Key": "cfngen:cluster", "Value": cluster}] if cluster else []
    arn = f"arn:aws:cloudformation:us-west-2:123456789012:stack/{name}/1"
    described = {"StackName": name, "StackId": arn, "StackStatus": status, "CreationTime": CREATED, "Tags": tags}
    return {**described, **others}


def listed(*regions: Answers) -> ClusterList:
    return list_clusters([region.account for region in regions])


def test_root_stacks_with_the_tag_are_clusters_in_each_region() -> None:
    first = Answers(
        {
            "cloudformation:DescribeStacks": {
                "Stacks": [
                    stack("prod", cluster="prod", status="UPDATE_COMPLETE", LastUpdatedTime=CREATED.replace(day=23)),
                    stack("prod-MasterStack-1", cluster="prod", RootId="arn:prod"),
                    stack("a-b", cluster="a.b", status="ROLLBACK_COMPLETE"),
                    stack("someone-elses"),
                ]
            }
        }
    )
    second = Answers({"cloudformation:DescribeStacks": {"Stacks": []}}, region="eu-central-1")
    listing = listed(first, second)
    assert listing.regions == ("us-west-2", "eu-central-1")
    assert [(each.cluster, each.region, each.stack, each.health) for each in listing.clusters] == [
        ("a.b", "us-west-2", "a-b", "dead"),
        ("prod", "us-west-2", "prod", "healthy"),
    ]
    *rows, _, last = [line.split() for line in cluster_list_lines(listing)]
    assert rows[2] == ["prod", "us-west-2", "prod", "UPDATE_COMPLETE", "2026-11-23", "12:00", "UTC"]
    assert " ".join(last) == "2 clusters in us-west-2 and eu-central-1 of account 123456789012."
    [nothing] = cluster_list_lines(listed(second))
    assert nothing.startswith("There are no clusters in eu-central-1 of account 123456789012")


def test_a_region_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(AwsError):
        listed(Answers({"cloudformation:DescribeStacks": DENIED}))
