"""A cluster's templates in their bucket: what is counted, what is deleted, and what is left alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from answers import DENIED, Answer, Answers
from recorded import NOW, STACK_ID, RefusedError

from cfngen.deploy.aws import templates
from cfngen.deploy.aws.stacks import CLUSTER_TAG
from cfngen.deploy.aws.templates import ObjectsError, TemplateObjects
from cfngen.deploy.operations.deletion import template_bucket
from cfngen.deploy.operations.deletion.template_bucket import TemplatesInUseError

OWNER = "123456789012"


class Bucket(Answers):
    """A bucket with so many versions and delete markers."""

    def __init__(self, versions: int = 0, markers: int = 0, **given: Answer) -> None:
        self.versions = [{"Key": f"one/{n}", "VersionId": f"v{n}", "Size": 2**20} for n in range(versions)]
        self.markers = [{"Key": f"one/m{n}", "VersionId": f"m{n}"} for n in range(markers)]
        super().__init__(
            {
                "s3:ListObjectVersions": self._list,
                "s3:DeleteObjects": {},
                "s3:DeleteBucket": {},
                **{name.replace("__", ":"): answer for name, answer in given.items()},
            }
        )

    def _list(self, sent: dict[str, Any]) -> Mapping[str, Any]:
        assert (sent["Bucket"], sent["ExpectedBucketOwner"]) == ("b", OWNER)
        return {"Versions": self.versions, "DeleteMarkers": self.markers}


def test_versions_and_delete_markers_are_counted() -> None:
    api = Bucket(1024, 3)
    assert templates.find(api.account, "b", "one") == TemplateObjects("b", "one/", 1027, 1.0)
    assert api.named("s3:ListObjectVersions")[0]["Prefix"] == "one/"
    assert templates.find(Bucket().account, "b", "one") == TemplateObjects("b", "one/", 0, 0.0)


@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize(
    ("refusal", "found"),
    [
        (RefusedError("NoSuchBucket", status=404), (True, True)),
        (RefusedError("404", status=404), (True, True)),
        (DENIED, (True, False)),
        (RefusedError("Boom"), (False, False)),
    ],
)
def test_a_bucket_that_is_not_there_or_may_not_be_read(
    refusal: RefusedError, found: tuple[bool, bool], needed: bool
) -> None:
    api = Bucket(s3__ListObjectVersions=refusal)
    if found[needed]:
        assert templates.find(api.account, "b", "one", must_be_allowed=needed) == TemplateObjects(prefix="one/")
        return
    with pytest.raises(Exception, match=refusal.code):
        templates.find(api.account, "b", "one", must_be_allowed=needed)


def test_every_version_is_deleted_a_thousand_at_a_time() -> None:
    api = Bucket(1000, 1)
    assert template_bucket.empty(api.account, "b", "one") == 1001
    sent = api.named("s3:DeleteObjects")
    assert [len(each["Delete"]["Objects"]) for each in sent] == [1000, 1]
    assert [each["Delete"]["Quiet"] for each in sent] == [True, True]
    assert {(each["Bucket"], each["ExpectedBucketOwner"]) for each in sent} == {("b", OWNER)}
    assert sent[1]["Delete"]["Objects"] == [{"Key": "one/m0", "VersionId": "m0"}]
    assert api.named("s3:ListObjectVersions")[0]["Prefix"] == "one/"
    assert template_bucket.empty(Bucket().account, "b", "one") == 0


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (
            [{"Key": "k", "Message": "lock", "Code": "C"}],
            "1 object of s3://b/one/ was not deleted; the first is k: lock",
        ),
        ([{"Key": "k", "Code": "C"}, {"Key": "l"}], "2 objects of s3://b/one/ were not deleted; the first is k: C"),
    ],
)
def test_what_s3_does_not_delete_is_an_error(errors: list[dict[str, str]], words: str) -> None:
    with pytest.raises(ObjectsError) as raised:
        template_bucket.empty(Bucket(1, s3__DeleteObjects={"Errors": errors}).account, "b", "one")
    assert str(raised.value) == words
    assert "object lock" in raised.value.hint


@pytest.mark.parametrize(("versions", "markers", "deleted"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_only_an_empty_bucket_is_deleted(versions: int, markers: int, deleted: bool) -> None:
    api = Bucket(versions, markers)
    assert template_bucket.delete_bucket(api.account, "b") is deleted
    assert api.named("s3:DeleteBucket") == ([{"Bucket": "b", "ExpectedBucketOwner": OWNER}] if deleted else [])
    assert api.named("s3:ListObjectVersions")[0].get("Prefix", "") == ""


def stack(name: str, cluster: str = "one", **more: str) -> dict[str, Any]:
    tags = [{"Key": CLUSTER_TAG, "Value": cluster}]
    known = {"StackName": name, "StackId": f"arn:{name}", "StackStatus": "CREATE_COMPLETE", "CreationTime": NOW}
    return {**known, "Tags": tags, **more}


@pytest.mark.parametrize(
    ("stacks", "others"),
    [
        ([stack("own", StackId=STACK_ID)], ""),
        ([stack("own", StackId=STACK_ID), stack("b"), stack("a")], "a, b"),
        ([stack("a", "another"), stack("b", ParentId=STACK_ID)], ""),
    ],
)
def test_templates_of_another_root_are_not_deleted(stacks: list[dict[str, Any]], others: str) -> None:
    api = Answers({"cloudformation:DescribeStacks": {"Stacks": stacks}})
    if not others:
        template_bucket.check_unused(api.account, "one", STACK_ID)
        return
    with pytest.raises(TemplatesInUseError, match=f"are also used by the stack {others}$"):
        template_bucket.check_unused(api.account, "one", STACK_ID)
