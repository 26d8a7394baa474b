"""What single changes mean for the cluster, as one table."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import default_cluster

from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact import ImpactAssessment
from cfngen.deploy.plan.plan import Change, PropertyChange, Replacement

NONE, DISRUPTIVE, DANGEROUS = Danger.NONE, Danger.DISRUPTIVE, Danger.DANGEROUS
WILL, MIGHT = Replacement.WILL, Replacement.MIGHT

EC2, ASG = "AWS::EC2::", "AWS::AutoScaling::AutoScalingGroup"
VOLUME, ENI, EIP, VPC = f"{EC2}Volume", f"{EC2}NetworkInterface", f"{EC2}EIP", f"{EC2}VPC"
ASSOCIATION = f"{EC2}EIPAssociation"
RULE, TEMPLATE = f"{EC2}SecurityGroupIngress", f"{EC2}LaunchTemplate"


def meaning(
    logical_id: str,
    type_: str,
    *paths: tuple[str, str | None, str | None],
    action: str = "update",
    replacement: Replacement = Replacement.NO,
    policy: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    instances: int | None = None,
) -> Impact | None:
    properties = tuple(
        PropertyChange(path if path[0] == "/" else f"/Properties/{path}", old, new, known=new is not None)
        for path, old, new in paths
    )
    change = Change(logical_id, "id", type_, action, replacement, policy, properties)
    entry = ResourceChange(
        "Modify", logical_id, "id", type_, before={"Properties": before or {}}, after={"Properties": after or {}}
    )
    return ImpactAssessment(default_cluster()).of_resource(change, entry, instance_count=instances)


@pytest.mark.parametrize(
    ("change", "danger", "words"),
    [
        # The data of the cluster
        (
            ("MasterAVolume", VOLUME, {"action": "remove", "policy": "snapshot"}),
            DANGEROUS,
            "only a snapshot of the old",
        ),
        (("MasterAVolume", VOLUME, {"action": "remove", "policy": "delete"}), DANGEROUS, "deleted for good"),
        (("MasterAVolume", VOLUME, {"action": "remove", "policy": "retain"}), DANGEROUS, "is kept, unattached"),
        (("MasterAVolume", VOLUME, {"replacement": WILL}), DANGEROUS, "is replaced: its data (etcd) would be LOST"),
        (("MasterAVolume", VOLUME, {"replacement": MIGHT}), DANGEROUS, "might be replaced"),
        # Its addresses
        (("MasterANetworkInterface", ENI, {"replacement": WILL}), DANGEROUS, "API address changes"),
        (("MasterANetworkInterface", ENI, {"action": "remove"}), DANGEROUS, "is removed"),
        (("MasterAElasticIp", EIP, {"replacement": MIGHT}), DANGEROUS, "existing kubeconfigs stop working"),
        (("MasterAElasticIpAssociation", ASSOCIATION, {"action": "remove"}), DANGEROUS, "API address changes"),
        (("MasterAElasticIpAssociation", ASSOCIATION, {"replacement": WILL}), DISRUPTIVE, "moves to another"),
        # Its secrets
        (("CaSecret", "AWS::SecretsManager::Secret", {"replacement": WILL}), DANGEROUS, "certificate authorities"),
        (("JoinSecret", "AWS::SecretsManager::Secret", {"replacement": WILL}), DISRUPTIVE, "no node joins until"),
        (("SecretsKey", "AWS::KMS::Key", {"action": "remove"}), DANGEROUS, "certificate authorities would be lost"),
        (("BackupBucket", "AWS::S3::Bucket", {"action": "remove"}), DISRUPTIVE, "it is kept with all its snapshots"),
        # Its network
        (("Vpc", VPC, {"replacement": WILL}), DANGEROUS, "everything in it"),
        (("SubnetA", f"{EC2}Subnet", {"replacement": WILL}), DANGEROUS, "the subnet in us-west-2a"),
        (("RouteTable", f"{EC2}RouteTable", {"replacement": WILL}), DISRUPTIVE, "do not reach each other"),
        (("InternetGateway", f"{EC2}InternetGateway", {"action": "remove"}), DISRUPTIVE, "the route to the internet"),
        (("VpcCidrBlock100x64x0x0x16", f"{EC2}VPCCidrBlock", {"action": "remove"}), DISRUPTIVE, "range 100.64.0.0/16"),
        (
            ("RouteTo10x64x0x0x16InPrivateRouteTableA", f"{EC2}Route", {"action": "remove"}),
            DISRUPTIVE,
            "the route to 10.64.0.0/16 is removed",
        ),
        (("MasterSecurityGroup", f"{EC2}SecurityGroup", {"replacement": WILL}), DISRUPTIVE, "of the masters"),
        # Its instances
        (("MasterAAutoScalingGroup", ASG, {"action": "remove"}), DANGEROUS, "master a is removed"),
        (("NodeGroupNodesAutoScalingGroup", ASG, {"replacement": WILL}), DISRUPTIVE, "`nodes` is replaced with its"),
        (("NodeGroupGoneByNowAutoScalingGroup", ASG, {"action": "remove"}), DISRUPTIVE, "`gone-by-now` is removed"),
        (("NodeRole", "AWS::IAM::Role", {"replacement": WILL}), DISRUPTIVE, "the role of the nodes is replaced"),
        (("NodeGroupNodesRole", "AWS::IAM::Role", {"action": "remove"}), DISRUPTIVE, "of node group `nodes`"),
    ],
)
def test_what_goes_is_named_by_what_is_lost(change, danger, words):
    logical_id, type_, how = change
    impact = meaning(logical_id, type_, **how)
    assert impact.danger is danger
    assert words in impact.text


@pytest.mark.parametrize(
    ("change", "danger", "text"),
    [
        (
            ("NodeGroupNodesAutoScalingGroup", ASG, ("MinSize", "2", "4"), ("MaxSize", "4", "8")),
            NONE,
            "node group `nodes` grows from 2-4 to 4-8: no instance is replaced, and 4 run at least",
        ),
        (
            ("NodeGroupNodesAutoScalingGroup", ASG, ("MinSize", "2", "1"), ("MaxSize", "4", "8")),
            NONE,
            "node group `nodes` changes from 2-4 to 1-8: no instance is replaced",
        ),
        (
            ("NodeGroupNodesAutoScalingGroup", ASG, ("LaunchTemplate/Version", "1", None)),
            DISRUPTIVE,
            "node group `nodes`: its instances are replaced one at a time; pods are not drained first",
        ),
        (
            ("NodeGroupNodesAutoScalingGroup", ASG, ("/UpdatePolicy", None, None)),
            NONE,
            "how instances are replaced from now on; none is replaced now",
        ),
        (
            ("NodeGroupNodesAutoScalingGroup", ASG, ("Tags/0/Value", "a", "b")),
            NONE,
            "tags only; instances get them when they are next replaced",
        ),
        (("Vpc", VPC, ("Tags/0/Value", "a", "b")), NONE, "tags only"),
        (
            ("MasterAVolume", VOLUME, ("/DeletionPolicy", None, None)),
            NONE,
            "what happens to it when it is removed or replaced later; nothing happens now",
        ),
        (
            (
                "NodeGroupNodesLaunchTemplate",
                TEMPLATE,
                ("LaunchTemplateData/InstanceType", "t3.small", "t3.large"),
                ("LaunchTemplateData/ImageId", "ami-1", "ami-2"),
                ("LaunchTemplateData/BlockDeviceMappings/0/Ebs/VolumeSize", "32", "64"),
            ),
            NONE,
            "new instances have type t3.large, the image ami-2 and root volumes of 64 GiB",
        ),
        (
            ("MasterRole", "AWS::IAM::Role", ("Policies/0/PolicyDocument", "{}", "[]")),
            NONE,
            "permissions of the masters change at once",
        ),
        (
            ("MasterSecurityGroup", f"{EC2}SecurityGroup", ("SecurityGroupEgress/0/CidrIp", "a", "b")),
            DISRUPTIVE,
            "what instances may reach changes at once",
        ),
        (
            ("SecretsKey", "AWS::KMS::Key", ("KeyPolicy", "a", "b")),
            NONE,
            "who may use the key of the cluster's secrets changes",
        ),
        (
            ("BackupBucket", "AWS::S3::Bucket", ("LifecycleConfiguration/Rules/0/ExpirationInDays", "7", "3")),
            NONE,
            "backups: the retention of snapshots changes, also for existing snapshots",
        ),
        (
            ("RouteToPl0123456789InRouteTable", f"{EC2}Route", ("TransitGatewayId", "tgw-1", "tgw-2")),
            DISRUPTIVE,
            "network: the way to pl-0123456789 changes at once",
        ),
        (
            ("MasterANetworkInterface", ENI, ("GroupSet/0", "sg-1", "sg-2")),
            DISRUPTIVE,
            "other security groups apply to master a at once",
        ),
    ],
)
def test_what_changes_in_place(change, danger, text):
    impact = meaning(*change)
    assert (impact.text, impact.danger) == (text, danger)


def test_a_resize_that_tells_only_one_bound_takes_the_other_from_the_definition():
    sizes = {"MinSize": "2", "MaxSize": "4"}
    impact = meaning(
        "NodeGroupNodesAutoScalingGroup", ASG, ("MaxSize", "4", "8"), before=sizes, after={**sizes, "MaxSize": "8"}
    )
    assert impact.text == "node group `nodes` grows from 2-4 to 2-8: no instance is replaced"


def test_a_group_that_rolls_and_shrinks_says_both():
    impact = meaning(
        "NodeGroupNodesAutoScalingGroup",
        ASG,
        ("LaunchTemplate/Version", "1", None),
        ("MinSize", "4", "1"),
        ("MaxSize", "4", "2"),
    )
    assert "replaced one at a time" in impact.text
    assert "instances above 2 are terminated" in impact.text


@pytest.mark.parametrize(
    ("how", "danger", "text"),
    [
        (
            {"action": "add", "after": {"CidrIp": "10.0.0.0/8"}},
            NONE,
            "the API becomes reachable from 10.0.0.0/8 in addition",
        ),
        (
            {"action": "add", "after": {"CidrIp": "0.0.0.0/0"}},
            DISRUPTIVE,
            "the API becomes reachable from 0.0.0.0/0 in addition: from the whole internet",
        ),
        (
            {"action": "remove", "before": {"CidrIp": "10.0.0.0/8"}},
            DISRUPTIVE,
            "the API is no longer reachable from 10.0.0.0/8",
        ),
        ({"action": "remove"}, DISRUPTIVE, "the API is no longer reachable from 10.0.0.0/8"),
    ],
)
def test_who_may_reach_the_api(how, danger, text):
    impact = meaning("MasterApiFrom10x0x0x0x8", RULE, **how)
    assert (impact.text, impact.danger) == (text, danger)


def test_a_rule_between_masters_and_nodes_that_is_made_anew_hurts_nobody():
    impact = meaning("MasterApiFromNodes", RULE, ("GroupId", "sg-1", None), replacement=WILL)
    assert impact.danger is NONE


def test_an_address_that_is_still_held_is_told():
    same = {"PrivateIpAddress": "172.20.0.9"}
    impact = meaning("MasterANetworkInterface", ENI, replacement=WILL, before=same, after=same)
    assert "the update may fail" in impact.text


@pytest.mark.parametrize(
    ("type_", "action", "replacement", "danger"),
    [
        ("AWS::S3::Bucket", "remove", Replacement.NO, DANGEROUS),
        ("AWS::EC2::Volume", "update", MIGHT, DANGEROUS),
        ("AWS::S3::Bucket", "update", Replacement.NO, NONE),
        ("AWS::EC2::DHCPOptions", "remove", Replacement.NO, NONE),
    ],
)
def test_types_that_hold_something_are_dangerous_even_where_nothing_else_is_known_of_them(
    type_, action, replacement, danger
):
    change = Change("Thing", "id", type_, action, replacement)
    assert ImpactAssessment(default_cluster()).danger(change) is danger


def test_a_group_without_instances_replaces_none():
    paths = [("LaunchTemplate/Version", "1", None), ("MinSize", "0", "0"), ("MaxSize", "3", "8")]
    impact = meaning("NodeGroupNodesAutoScalingGroup", ASG, *paths, instances=0)
    assert impact.danger is NONE
    assert impact.text == (
        "node group `nodes` has no instances now; future instances get the new configuration; it grows from 0-3 to 0-8"
    )
    # Where they cannot be counted, the worse is told.
    assert meaning("NodeGroupNodesAutoScalingGroup", ASG, *paths).danger is DISRUPTIVE


def test_of_a_group_that_rolls_and_grows_only_the_rolling_hurts():
    rolls, grows = ("LaunchTemplate/Version", "1", None), [("MinSize", "3", "3"), ("MaxSize", "6", "8")]
    both = meaning("NodeGroupNodesAutoScalingGroup", ASG, rolls, *grows, instances=3)
    assert (both.danger, both.dangerous_part) == (
        DISRUPTIVE,
        "node group `nodes`: its instances are replaced one at a time; pods are not drained first",
    )
    assert both.text == f"{both.dangerous_part}; it grows from 3-6 to 3-8"
    alone = meaning("NodeGroupNodesAutoScalingGroup", ASG, *grows, instances=3)
    assert (alone.danger, alone.dangerous_part) == (NONE, "")
