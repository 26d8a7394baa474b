"""Groups that launch from another version than their stack's, and the programs that are carried over for them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import lzma
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from answers import DENIED, Answer, Answers
from recorded import NESTED, NOW, STACK_ID, RefusedError
from recorded_stack import NAME, arn, resource

from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.launched_versions import StaleGroup, find_stale_groups
from cfngen.deploy.aws.stacks import ResourceView, StackTree, StackView
from cfngen.deploy.messages.message import Danger, Message, Notice
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.plan.publishing.carrying import TemplatesToUpload, add_old_programs
from cfngen.templates.document import Document

GROUP, TEMPLATE = "AWS::AutoScaling::AutoScalingGroup", "AWS::EC2::LaunchTemplate"
GROUP_ID = "NodeGroupNodesAutoScalingGroup"
SECOND_STAGE = "print('boot')"
SHA = hashlib.sha256(SECOND_STAGE.encode()).hexdigest()


def user_data(program: str = "OldProgram", sha256: str = SHA) -> str:
    config = json.dumps({"program": {"resource": program, "sha256": sha256}})
    packed = base64.b85encode(lzma.compress("\0".join(("config.json", config)).encode())).decode()
    return base64.b64encode(f'#!/usr/bin/python3\nREFERENCES = {{}}\nPROGRAM = "{packed}"\n'.encode()).decode()


def group(name: str, version: str | None = "1", template: str = "lt-1", **more: Any) -> dict[str, Any]:
    source = {"LaunchTemplate": {"LaunchTemplateId": template, "Version": version}} if version else {}
    return {
        "AutoScalingGroupName": name, "MinSize": 0, "MaxSize": 0, "DesiredCapacity": 0, "DefaultCooldown": 0,
        "AvailabilityZones": [], "HealthCheckType": "EC2", "CreatedTime": NOW, **source, **more,
    }  # fmt: skip


class Fleet(Answers):
    """Groups, and launch templates with their versions.

    Attributes:
        versions: what each version of a launch template holds.
        newest: number of the newest version of each; one that is missing has been deleted.
    """

    def __init__(self, *groups: dict[str, Any], newest: Mapping[str, int] | None = None, **given: Answer) -> None:
        self.groups = {group["AutoScalingGroupName"]: group for group in groups}
        self.newest = dict({"lt-1": 2} if newest is None else newest)
        self.versions: dict[tuple[str, str], dict[str, Any]] = {
            ("lt-1", "1"): {"UserData": user_data()}, ("lt-1", "2"): {"UserData": user_data("NewProgram")},
        }  # fmt: skip
        super().__init__(
            {
                "autoscaling:DescribeAutoScalingGroups": self._groups,
                "ec2:DescribeLaunchTemplates": self._templates,
                "ec2:DescribeLaunchTemplateVersions": self._versions,
                **{name.replace("__", ":"): answer for name, answer in given.items()},
            }
        )

    def _groups(self, sent: dict[str, Any]) -> Mapping[str, Any]:
        names = sent["AutoScalingGroupNames"]
        assert len(names) <= 50 < sent["MaxRecords"] <= 100
        return {"AutoScalingGroups": [self.groups[name] for name in names if name in self.groups]}

    def _templates(self, sent: dict[str, Any]) -> Mapping[str, Any]:
        ids = sent["LaunchTemplateIds"]
        if missing := [each for each in ids if each not in self.newest]:
            raise RefusedError("InvalidLaunchTemplateId.NotFound", str(missing))
        found = [{"LaunchTemplateId": each, "LatestVersionNumber": self.newest[each]} for each in ids]
        return {"LaunchTemplates": found}

    def _versions(self, sent: dict[str, Any]) -> Mapping[str, Any]:
        [version] = sent["Versions"]
        data = self.versions.get((sent["LaunchTemplateId"], version))
        if data is None:
            raise RefusedError("InvalidLaunchTemplateId.VersionNotFound")
        return {"LaunchTemplateVersions": [{"LaunchTemplateData": data}]}


def view(logical_id: str, physical_id: str, kind: str = GROUP, status: str = "CREATE_COMPLETE") -> ResourceView:
    return ResourceView(logical_id, physical_id, kind, status)


PRESENT = (
    view(GROUP_ID, "nodes"), view("NodeGroupNodesLaunchTemplate", "lt-1", TEMPLATE),
    view("NewProgram", "url", "AWS::CloudFormation::WaitConditionHandle"),
)  # fmt: skip
PROGRAM = view("OldProgram", "url", "AWS::CloudFormation::WaitConditionHandle")
BEHIND = StaleGroup(GROUP_ID, "nodes", "lt-1", "1", "2", "OldProgram", SHA, unbootable=True)


def test_a_group_on_an_older_version_whose_program_is_gone_does_not_boot() -> None:
    api = Fleet(group("nodes"))
    assert find_stale_groups(api.account, PRESENT) == (BEHIND,)
    assert BEHIND.text == (
        f"{GROUP_ID} launches from version 1 of the launch template lt-1, where the stack has version 2; the boot "
        "program of that version, OldProgram, no longer exists, and new instances cannot boot"
    )
    [there] = find_stale_groups(api.account, (*PRESENT, PROGRAM))
    assert not there.unbootable
    assert there.text.endswith("lt-1, where the stack has version 2")


def test_a_group_on_the_newest_version_is_where_it_should_be() -> None:
    api = Fleet(group("nodes", "2"))
    assert find_stale_groups(api.account, PRESENT) == ()
    # Without its program it does not boot there either.
    [found] = find_stale_groups(api.account, PRESENT[:2])
    assert (found.version, found.newest, found.program, found.unbootable) == ("2", "2", "NewProgram", True)
    assert found.text.startswith(f"{GROUP_ID} launches from version 2 of the launch template lt-1; the boot program")


def test_a_version_that_holds_the_same_as_the_newest_is_as_good() -> None:
    """A rollback makes a third version, with what the first one had; groups it need not touch keep the first."""
    api = Fleet(group("nodes"), newest={"lt-1": 3})
    api.versions["lt-1", "3"] = api.versions["lt-1", "1"]
    assert find_stale_groups(api.account, (*PRESENT, PROGRAM)) == ()
    [found] = find_stale_groups(api.account, PRESENT)
    assert (found.version, found.newest, found.unbootable) == ("1", "1", True)


def test_a_launch_template_that_is_not_the_stacks_is_told() -> None:
    api = Fleet(group("nodes", "5", "lt-9"))
    [found] = find_stale_groups(api.account, PRESENT)
    assert found == StaleGroup(GROUP_ID, "nodes", "lt-9", "5")
    assert found.text == f"{GROUP_ID} launches from version 5 of the launch template lt-9, which is not its stack's"
    # Two that hold nothing that can be read are not the same.
    api.versions["lt-9", "5"] = {"UserData": "strange"}
    [found] = find_stale_groups(api.account, PRESENT)
    assert (found.program, found.sha256, found.unbootable) == ("", "", False)


def test_of_a_mixed_group_the_launch_template_of_its_policy_counts() -> None:
    specification = {"LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "1"}}
    api = Fleet(group("nodes", None, MixedInstancesPolicy={"LaunchTemplate": specification}))
    assert find_stale_groups(api.account, PRESENT) == (BEHIND,)
    # One of a launch configuration has none that it could be behind.
    assert find_stale_groups(Fleet(group("nodes", None)).account, PRESENT) == ()


def test_a_launch_template_that_somebody_has_deleted_hides_no_other() -> None:
    api = Fleet(group("nodes"), newest={"lt-1": 2})
    other = view("OtherLaunchTemplate", "lt-gone", TEMPLATE)
    assert find_stale_groups(api.account, (*PRESENT, other)) == (BEHIND,)
    gone = Fleet(group("nodes"), newest={})
    [found] = find_stale_groups(gone.account, PRESENT)
    assert found.newest == ""


def test_what_does_not_exist_is_not_looked_at() -> None:
    api = Fleet()
    resources = (view(GROUP_ID, "nodes", status="DELETE_COMPLETE"), view("Other", ""), *PRESENT[1:])
    assert find_stale_groups(api.account, resources) == ()
    assert api.calls == []
    # A group that someone has deleted is another matter.
    assert find_stale_groups(api.account, PRESENT) == ()


def test_groups_are_told_by_name_and_asked_for_in_parts() -> None:
    names = [f"G{number:02}" for number in range(51)]
    api = Fleet(*(group(name) for name in reversed(names)))
    found = find_stale_groups(api.account, [view(name, name) for name in reversed(names)] + list(PRESENT[1:]))
    assert [each.group for each in found] == names
    assert [len(sent["AutoScalingGroupNames"]) for sent in api.named("autoscaling:DescribeAutoScalingGroups")] == [
        50,
        1,
    ]


@pytest.mark.parametrize(
    "call",
    ["ec2__DescribeLaunchTemplates", "ec2__DescribeLaunchTemplateVersions", "autoscaling__DescribeAutoScalingGroups"],
)
def test_what_may_not_be_read_is_an_error(call: str) -> None:
    with pytest.raises(AwsError, match=call.partition("__")[2]):
        find_stale_groups(Fleet(group("nodes"), **{call: DENIED}).account, PRESENT)


# What is carried over

BEARER = {"Type": "AWS::CloudFormation::WaitConditionHandle", "Metadata": {"cfngen": {"program": SECOND_STAGE}}}
STRANGER = {"Type": "AWS::CloudFormation::WaitConditionHandle", "Metadata": {"cfngen": {"program": "another"}}}
CHILD = f"{NAME}-NodesStack-1"
ROOT = Document("cluster", {"Resources": {"NodesStack": {}}}, "", ("nodes",))
NODES = Document("nodes", {"Resources": {GROUP_ID: {}}, "Outputs": {}}, "")
DOCUMENTS = (ROOT, NODES)


class Cluster(Fleet):
    """A root that nests the group, its templates, and those that were uploaded before, oldest first."""

    def __init__(self, template: Mapping[str, Any], *uploaded: tuple[str, Any], **given: Answer) -> None:
        self.uploaded = dict(uploaded)
        child = resource("NodesStack", "CREATE_COMPLETE", type_=NESTED, physical_id=arn(CHILD))
        members = [
            resource(each.logical_id, each.status, type_=each.type, physical_id=each.physical_id) for each in PRESENT
        ]

        def resources(sent: dict[str, Any]) -> Mapping[str, Any]:
            return {"StackResourceSummaries": members if CHILD in sent["StackName"] else [child]}

        def object_(sent: dict[str, Any]) -> Mapping[str, Any]:
            assert sent["ExpectedBucketOwner"] == "123456789012"
            return {"Body": io.BytesIO(self.uploaded[sent["Key"]])}

        contents = [
            {"Key": key, "LastModified": NOW + timedelta(minutes=number)} for number, (key, _) in enumerate(uploaded)
        ]
        stack = {
            "cloudformation__ListStackResources": resources,
            "cloudformation__GetTemplate": {"TemplateBody": json.dumps(template)},
            "s3__ListObjectsV2": {"Contents": contents},
            "s3__GetObject": object_,
        }
        super().__init__(group("nodes"), **{**stack, **given})  # type: ignore[arg-type]

    def carried(
        self, documents: tuple[Document, ...] = DOCUMENTS, **options: Any
    ) -> tuple[TemplatesToUpload, list[Notice]]:
        said: list[Message] = []
        deployed = StackTree(self.account, StackView(NAME, STACK_ID, StackStatus("UPDATE_COMPLETE")))
        made = add_old_programs(self.account, documents, deployed, cluster="one", report=said.append, **options)
        return made, [message for message in said if isinstance(message, Notice)]

    @property
    def fetched(self) -> list[str]:
        return [sent["Key"] for sent in self.named("s3:GetObject")]


def body(definition: Mapping[str, Any], name: str = "OldProgram") -> bytes:
    return json.dumps({"Resources": {name: definition}}).encode()


def test_a_program_of_the_stacks_own_template_is_carried_over() -> None:
    api = Cluster({"Resources": {"OldProgram": BEARER}})
    made, notices = api.carried()
    root, nodes = made.documents
    assert root == ROOT
    assert nodes.body == {"Resources": {GROUP_ID: {}, "OldProgram": BEARER}, "Outputs": {}}
    assert NODES.body["Resources"] == {GROUP_ID: {}}
    [meaning] = made.impacts
    assert meaning.danger is Danger.DISRUPTIVE
    assert meaning.text == (
        f"{BEHIND.text}. The stack contains this program until the group uses the stack's launch template version"
    )
    [notice] = notices
    assert notice.text == BEHIND.text
    assert "set the launch template of nodes yourself" in notice.hint
    [sent] = api.named("cloudformation:GetTemplate")
    assert (sent["StackName"], sent["TemplateStage"]) == (arn(CHILD), "Original")
    assert api.fetched == []


def test_else_it_comes_from_a_template_that_was_uploaded_before_the_newest_first() -> None:
    uploads = [("one/1/nodes.json", body(BEARER)), ("one/2/other.json", body(BEARER)),
               ("one/3/nodes.json", body(BEARER, "Another")), ("one/4/nodes.json", body(STRANGER))]  # fmt: skip
    api = Cluster({"Resources": {"OldProgram": STRANGER}}, *uploads)
    made, _ = api.carried()
    assert made.documents[1].body["Resources"]["OldProgram"] == BEARER
    assert api.fetched == ["one/4/nodes.json", "one/3/nodes.json", "one/1/nodes.json"]
    [sent] = api.named("s3:ListObjectsV2")
    expected = {"Bucket": "cfngen-123456789012-us-west-2", "Prefix": "one/", "ExpectedBucketOwner": "123456789012"}
    assert {key: sent[key] for key in expected} == expected
    api.carried(bucket="operators")
    assert api.named("s3:ListObjectsV2")[1]["Bucket"] == "operators"


@pytest.mark.parametrize("older", [49, 50])
def test_only_the_newest_fifty_uploads_are_searched(older: int) -> None:
    uploads = [("one/0/nodes.json", body(BEARER)), *((f"one/x{n}/nodes.json", body(STRANGER)) for n in range(older))]
    made, _ = Cluster({}, *uploads).carried()
    assert ("OldProgram" in made.documents[1].body["Resources"]) == (older == 49)


@pytest.mark.parametrize(
    "given",
    [{}, {"s3__ListObjectsV2": DENIED}, {"cloudformation__GetTemplate": DENIED}, {"s3__ListObjectsV2": {}}],
)
def test_a_program_that_is_nowhere_is_told(given: dict[str, Answer]) -> None:
    made, notices = Cluster({}, ("one/1/nodes.json", b"no JSON"), **given).carried()
    assert (made.documents, made.impacts) == (DOCUMENTS, ())
    assert [notice.text for notice in notices] == [
        BEHIND.text, "the boot program OldProgram is no longer in any uploaded template",
    ]  # fmt: skip


def test_a_program_that_is_generated_anyway_is_not_carried_over() -> None:
    api = Cluster({"Resources": {"OldProgram": BEARER}})
    there = Document("nodes", {"Resources": {GROUP_ID: {}, "OldProgram": {"new": True}}}, "")
    made, notices = api.carried((ROOT, there))
    assert (made.documents, made.impacts, len(notices)) == ((ROOT, there), (), 1)
    # Nor one of a group that is to be removed, or that names none.
    made, _ = api.carried((ROOT,))
    assert made.documents == (ROOT,)
    api.versions["lt-1", "1"] = {"UserData": "strange"}
    assert api.carried()[0].documents == DOCUMENTS


def test_where_nothing_is_known_nothing_is_carried_over() -> None:
    api = Cluster({}, cloudformation__ListStackResources=DENIED)
    made, notices = api.carried()
    assert made == TemplatesToUpload(DOCUMENTS)
    [notice] = notices
    assert notice.text.startswith("cannot find out which groups use an old launch template version: not allowed")
    assert notice.hint
    assert add_old_programs(api.account, DOCUMENTS, None, cluster="one", report=[].append) == TemplatesToUpload(
        DOCUMENTS
    )
