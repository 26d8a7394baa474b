"""Changes that tell little, or nearly mean something else: values that are not told, one property of several, none."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import default_cluster
from test_impact import (
    ASG,
    ASSOCIATION,
    DANGEROUS,
    DISRUPTIVE,
    EC2,
    EIP,
    ENI,
    MIGHT,
    NONE,
    RULE,
    TEMPLATE,
    VOLUME,
    WILL,
)
from test_impact_of_several_masters import THREE
from test_impact_worded import BALANCER, LISTENER, TARGETS

from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.change_sets import UNKNOWN_VALUE, ResourceChange
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact import ImpactAssessment
from cfngen.deploy.plan.impact.context import owner_of
from cfngen.deploy.plan.plan import Change, PropertyChange, Replacement

GROUP = "NodeGroupNodesAutoScalingGroup"
SIZES = {"MinSize": "2", "MaxSize": "4"}
BUCKET, KMS, SECRET = "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::SecretsManager::Secret"
IAM_ROLE, KEY_PAIR, PROGRAM = "AWS::IAM::Role", f"{EC2}KeyPair", "AWS::CloudFormation::WaitConditionHandle"
PAUSE = "in place, while it is in use; after that AWS allows no further change for about six hours"
REFUSED = "the data volume of master a would change in a way that AWS refuses: the update fails"
ROLLS = "how instances are replaced from now on; none is replaced now"
KEPT = "what happens to it when it is removed or replaced later; nothing happens now"
LOST = "its data (etcd) would be LOST to the cluster"

Path = tuple[str, str | None, str | None]


def meaning(
    logical_id: str,
    type_: str,
    *paths: Path,
    cluster: Cluster | None = None,
    action: str = "update",
    replacement: Replacement = Replacement.NO,
    policy: str = "",
    certain: bool = True,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    masters: int = 0,
) -> Impact | None:
    properties = tuple(
        PropertyChange(path if path[0] == "/" else f"/Properties/{path}", old, new, certain=certain)
        for path, old, new in paths
    )
    change = Change(logical_id, "id", type_, action, replacement, policy, properties)
    entry = ResourceChange(
        "Modify", logical_id, "id", type_, before={"Properties": before or {}}, after={"Properties": after or {}}
    )
    return ImpactAssessment(cluster or default_cluster(), masters).of_resource(change, entry)


def touched(path: str) -> Path:
    return path, "a", "b"


Row = tuple[str, str, tuple[Path, ...], dict[str, Any], Danger, str]
NETWORK: list[Row] = [
    ("OtherNetworkInterface", ENI, (), {"action": "remove"}, DANGEROUS,
     ("API address changes: the private address of a master (its network interface) is removed; "
"existing nodes can no longer reach the API")),
    ("MasterANetworkInterface", ENI, (),
     {"action": "remove", "before": {"PrivateIpAddress": "10.0.0.9"}, "after": {"PrivateIpAddress": "10.0.0.9"}},
     DANGEROUS,
     ("API address changes: the private address of master a (its network interface) is removed; "
"existing nodes can no longer reach the API")),
    ("MasterANetworkInterface", ENI, (), {"replacement": WILL, "before": {"PrivateIpAddress": "10.0.0.9"}}, DANGEROUS,
     ("API address changes: the private address of master a (its network interface) is replaced; "
"existing nodes can no longer reach the API")),
    ("MasterANetworkInterface", ENI, (), {"replacement": WILL, "after": {"PrivateIpAddress": "10.0.0.9"}}, DANGEROUS,
     ("API address changes: the private address of master a (its network interface) is replaced; "
"existing nodes can no longer reach the API")),
    ("MasterANetworkInterface", ENI, (),
     {"replacement": WILL, "before": {"PrivateIpAddress": "10.0.0.9"}, "after": {"PrivateIpAddress": UNKNOWN_VALUE}},
     DANGEROUS,
     ("API address changes: the private address of master a (its network interface) is replaced; "
"existing nodes can no longer reach the API")),
    ("OtherNetworkInterface", ENI, (touched("GroupSet/0"),), {}, DISRUPTIVE,
     "other security groups apply to a master at once"),
    ("MasterBElasticIp", EIP, (), {"action": "remove", "cluster": THREE}, DISRUPTIVE,
     "the public address by which master b reaches the internet is removed"),
    ("OtherElasticIp", EIP, (), {"replacement": WILL, "cluster": THREE}, DISRUPTIVE,
     "the public address by which a master reaches the internet is replaced"),
    ("MasterBElasticIpAssociation", ASSOCIATION, (), {"action": "remove", "cluster": THREE}, DISRUPTIVE,
     "master b reaches the internet from another public address"),
    ("OtherAssociation", ASSOCIATION, (), {"action": "remove", "cluster": THREE}, DISRUPTIVE,
     "a master reaches the internet from another public address"),
    ("MasterAElasticIpAssociation", ASSOCIATION, (touched("NetworkInterfaceId"),), {"replacement": WILL}, DISRUPTIVE,
     "the API's public address moves to another network interface"),
    ("MasterAElasticIpAssociation", ASSOCIATION, (touched("AllocationId"),),
     {"replacement": MIGHT, "certain": False}, DISRUPTIVE,
     "the API's public address might move to another network interface"),
    ("ApiLoadBalancer", BALANCER, (), {"action": "remove"}, DANGEROUS,
     ("API address changes: its load balancer is removed; existing kubeconfigs stop working, and its certificate "
     "names the old address until the masters are replaced")),
    ("ApiTargetGroup", TARGETS, (), {"action": "remove"}, DISRUPTIVE,
     ("the target group of the API's load balancer is removed; the API is unavailable until the "
"masters are healthy again")),
    *(
        (name, f"{EC2}{kind}", (), {"action": "remove"}, DISRUPTIVE,
         "network: the route to the internet is removed; connections are interrupted")
        for name, kind in (("InternetGateway", "InternetGateway"), ("SubnetARouteTableAssociation",
         "SubnetRouteTableAssociation"))
    ),
    ("Vpc", f"{EC2}VPC", (), {"action": "remove"}, DANGEROUS,
     ("network: the VPC is removed, and with it everything in it: all instances, addresses and routes. Create a "
     "new cluster instead")),
    ("ApiLoadBalancerFromNodes", RULE, (), {"action": "remove"}, DISRUPTIVE,
     "masters and nodes may no longer reach each other by this rule"),
    *(
        ("MasterKubeletFromMasters", RULE, (touched(name),), {}, DISRUPTIVE,
         "masters and nodes may reach each other on other ports")
        for name in ("IpProtocol", "FromPort", "ToPort")
    ),
    ("MasterKubeletFromMasters", RULE, (touched("GroupId"),), {"replacement": WILL}, NONE,
     "a rule between masters and nodes is recreated"),
    ("NodeSshFrom10x0x0x0x8", RULE, (), {"action": "remove"}, DISRUPTIVE,
     "SSH of the nodes is no longer reachable from 10.0.0.0/8"),
    ("NodeSshFrom10x0x0x0x8", RULE, (), {"action": "remove", "before": {"SourcePrefixListId": "pl-1"}}, DISRUPTIVE,
     "SSH of the nodes is no longer reachable from pl-1"),
    ("MasterApiFrom10x0x0x0x8", RULE, (("CidrIp", "10.0.0.0/8", "10.1.0.0/16"),), {"replacement": WILL}, DISRUPTIVE,
     "the API becomes reachable from 10.1.0.0/16, and no longer from 10.0.0.0/8"),
    ("MasterApiFrom10x0x0x0x8", RULE, (("CidrIp", None, "10.1.0.0/16"),), {"replacement": WILL}, DISRUPTIVE,
     "the API becomes reachable from 10.1.0.0/16, and no longer from 10.0.0.0/8"),
    ("MasterApiFrom10x0x0x0x8", RULE, (touched("GroupId"),), {"replacement": WILL}, NONE,
     "the rule that lets 10.0.0.0/8 reach the API is recreated"),
    ("MasterApiFromAllowedCidr", RULE, (touched("GroupId"),),
     {"replacement": MIGHT, "after": {"CidrIp": "10.0.0.0/8"}}, NONE,
     "the rule that lets a range reach the API is recreated"),
    ("MasterApiFrom10x0x0x0x8", RULE, (), {"action": "add", "cluster": THREE}, NONE,
     "the API becomes reachable from 10.0.0.0/8 in addition"),
    ("MasterApiFrom10x0x0x0x8", RULE, (touched("GroupId"),), {"replacement": WILL, "cluster": THREE}, NONE,
     "the rule that lets 10.0.0.0/8 reach the API is recreated"),
    ("MasterApiFrom10x0x0x0x8", RULE, (),
     {"action": "remove", "cluster": THREE, "before": {"CidrIp": "10.2.0.0/16"}}, NONE,
     "10.2.0.0/16 no longer reaches masters directly, but through the API's load balancer"),
    ("MasterApiFrom10x0x0x0x8", RULE, (), {"action": "remove", "cluster": THREE}, NONE,
     "10.0.0.0/8 no longer reaches masters directly, but through the API's load balancer"),
    ("MasterApiFromAllowedCidr", RULE, (), {"action": "remove", "cluster": THREE}, NONE,
     "a range no longer reaches masters directly, but through the API's load balancer"),
    ("ApiLoadBalancerFrom10x0x0x0x8", RULE, (), {"action": "remove", "cluster": THREE}, DISRUPTIVE,
     "the API is no longer reachable from 10.0.0.0/8"),
]  # fmt: skip

INSTANCES: list[Row] = [
    ("MasterAAutoScalingGroup", ASG, (), {"replacement": WILL}, DANGEROUS,
     "master a is replaced: the API is lost with it"),
    ("Others", ASG, (), {"action": "remove"}, DISRUPTIVE,
     "Others is removed with its instances, all at once; their pods are not drained first"),
    ("MasterBAutoScalingGroup", ASG, (), {"action": "add"}, NONE, "new master b: it joins the existing masters"),
    *(
        (GROUP, ASG, (touched(f"{name}/0"),), {}, DISRUPTIVE,
         "node group `nodes`: its instances are replaced one at a time; pods are not drained first")
        for name in ("LaunchTemplate", "AvailabilityZones", "MixedInstancesPolicy")
    ),
    (GROUP, ASG, (touched("LaunchTemplate/Version"),), {"certain": False}, DISRUPTIVE,
     "node group `nodes`: its instances might be replaced one at a time; pods are not drained first"),
    ("MasterAAutoScalingGroup", ASG, (touched("LaunchTemplate/Version"),),
     {"certain": False, "masters": 3}, DISRUPTIVE,
     "master a might be replaced, one master at a time; the API stays up"),
    ("MasterAAutoScalingGroup", ASG, (touched("LaunchTemplate/Version"),), {"cluster": THREE}, DISRUPTIVE,
     "master a is replaced, one master at a time; the API stays up"),
    (GROUP, ASG, (("DesiredCapacity", "3", None),), {"before": SIZES, "after": SIZES}, DISRUPTIVE,
     "node group `nodes` has no desired size any more"),
    *(
        (GROUP, ASG, (("DesiredCapacity", "2", "3"),), {"before": before, "after": after}, NONE,
         "node group `nodes` is resized")
        for before, after in (({"MaxSize": "4"}, SIZES), ({"MinSize": "2"}, SIZES),
         (SIZES, {"MaxSize": "4"}), (SIZES, {"MinSize": "2"}))
    ),
    (GROUP, ASG, (("MinSize", "2", "3"), ("MaxSize", "2", "3")), {}, NONE,
     "node group `nodes` grows from 2 to 3: no instance is replaced, and 3 run at least"),
    (GROUP, ASG, (("MinSize", "2", "2"), ("MaxSize", "4", "3")), {}, DISRUPTIVE,
     ("node group `nodes` shrinks from 2-4 to 2-3: instances above 3 are terminated; their pods are not drained "
     "first")),
    (GROUP, ASG, (("MinSize", "2", "3"), ("MaxSize", "4", "4")), {}, NONE,
     "node group `nodes` grows from 2-4 to 3-4: no instance is replaced, and 3 run at least"),
    (GROUP, ASG, (("MinSize", "2", "3"), ("MaxSize", "8", "4")), {}, DISRUPTIVE,
     ("node group `nodes` changes from 2-8 to 3-4: instances above 4 are terminated; their pods are not drained "
     "first")),
    (GROUP, ASG, (touched("VPCZoneIdentifier/0"),
     ("LifecycleHookSpecificationList/0/LifecycleHookName", "a", None)), {"certain": False}, DISRUPTIVE,
     ("node group `nodes`: its instances might be replaced one at a time; pods are not drained first; node group "
     "`nodes` may launch instances in other subnets, and so in other zones; from now on pods of node group "
     "`nodes` are no longer drained before an instance is terminated")),
    *(
        ("NodeGroupNodesLaunchTemplate", TEMPLATE, (("LaunchTemplateData/" + path, "a", None),), {}, NONE,
         f"new instances have {words}")
        for path, words in (
            ("InstanceType", "another type"),
            ("ImageId", "another image"),
            ("BlockDeviceMappings/0/Ebs/VolumeSize", "other root volumes"),
            ("UserData", "another boot program or configuration"),
            ("IamInstanceProfile/Arn", "another instance profile"),
            ("NetworkInterfaces/0/Groups", "other network settings"),
            ("KeyName", "another SSH key"),
            ("MetadataOptions/HttpTokens", "other metadata settings"),
            ("TagSpecifications/0/Tags", "other tags"),
        )
    ),
    ("NodeGroupNodesLaunchTemplate", TEMPLATE,
     (touched("LaunchTemplateData/BlockDeviceMappings/0/Ebs/VolumeType"),),
     {"after": {"LaunchTemplateData": {"BlockDeviceMappings": [{"Ebs": {"VolumeSize": "32"}}]}}}, NONE,
     "new instances have other root volumes"),
    ("NodeGroupNodesLaunchTemplate", TEMPLATE, (touched("LaunchTemplateData/BlockDeviceMappings"),),
     {"after": {"LaunchTemplateData": {"BlockDeviceMappings": []}}}, NONE,
     "new instances have other root volumes"),
    ("NodeGroupNodesLaunchTemplate", TEMPLATE,
     (touched("LaunchTemplateData/BlockDeviceMappings/0/Ebs/VolumeSize"),),
     {"after": {"LaunchTemplateData": {"BlockDeviceMappings": [{"Ebs": {"VolumeSize": "64"}}]}}}, NONE,
     "new instances have root volumes of b GiB"),
    ("NodeGroupNodesLaunchTemplate", TEMPLATE, (("LaunchTemplateData/BlockDeviceMappings", "a", "b"),
     ("LaunchTemplateData/BlockDeviceMappings/1/Ebs/VolumeSize", "1", "2")),
     {"after": {"LaunchTemplateData": {"BlockDeviceMappings": [{"Ebs": {"VolumeSize": "64"}}]}}}, NONE,
     "new instances have root volumes of 64 GiB"),
    ("NodeGroupNodesLaunchTemplate", TEMPLATE, (touched("LaunchTemplateData/BlockDeviceMappings/1/Ebs/VolumeSize"),),
     {"after": {"LaunchTemplateData": {"BlockDeviceMappings": [{}, {"Ebs": {"VolumeSize": "64"}}]}}}, NONE,
     ("new instances have different further volumes (empty ones: what is on those of a replaced node is deleted with "
     "it)")),
    ("NodeGroupNodesLaunchTemplate", TEMPLATE, (touched("LaunchTemplateData/BlockDeviceMappings/0/Ebs/VolumeSize"),),
     {"before": {"LaunchTemplateData": {"BlockDeviceMappings": [{}, {}]}}}, NONE,
     "new instances have root volumes of b GiB"),
    ("NodeGroupNodesLaunchTemplate", TEMPLATE, (touched("LaunchTemplateData/BlockDeviceMappings/0/Ebs/VolumeSize"),
     touched("LaunchTemplateData/BlockDeviceMappings/1")),
     {"before": {"LaunchTemplateData": {"BlockDeviceMappings": [{}, {}]}}}, NONE,
     ("new instances have root volumes of b GiB and different further volumes (empty ones: what is on those of a "
     "replaced node is deleted with it)")),
    ("NodeGroupNodesLaunchTemplate", TEMPLATE, (touched("LaunchTemplateName"),), {}, NONE,
     "new instances are launched with other settings"),
    ("MasterAVolume", VOLUME, (), {"action": "remove"}, DANGEROUS,
     f"the data volume of master a is removed: {LOST}; CloudFormation does not say what happens to the old volume"),
    ("OtherVolume", VOLUME, (), {"action": "remove", "policy": "retain"}, DANGEROUS,
     f"the data volume of a master is removed: {LOST}; the old volume is kept, unattached"),
    ("OtherVolume", VOLUME, (), {"replacement": MIGHT, "policy": "delete"}, DANGEROUS,
     (f"the data volume of a master might be replaced: {LOST}, and the master refuses to start with an empty "
     "volume; the old volume is deleted for good")),
    ("MasterAVolume", VOLUME, (), {"replacement": WILL, "policy": "snapshot"}, DANGEROUS,
     (f"the data volume of master a is replaced: {LOST}, and the master refuses to start with an empty "
     "volume; only a snapshot of the old volume is kept")),
    *(
        ("MasterAVolume", VOLUME, (touched(name),), {}, DISRUPTIVE, REFUSED)
        for name in ("AvailabilityZone", "Encrypted", "KmsKeyId", "SnapshotId", "OutpostArn")
    ),
    ("OtherVolume", VOLUME, (touched("Throughput"),), {}, NONE, f"the data volume of a master changes {PAUSE}"),
    ("MasterAVolume", VOLUME, (touched("Throughput"),), {"after": {"VolumeType": "gp3"}}, NONE,
     f"the data volume of master a changes {PAUSE}"),
    ("MasterAVolume", VOLUME, (("VolumeType", "gp2", None),), {}, NONE, f"the data volume of master a changes {PAUSE}"),
    ("MasterAVolume", VOLUME, (("Size", "20", None), ("Iops", "1", "2")), {}, NONE,
     f"the data volume of master a changes {PAUSE}"),
    ("MasterAVolume", VOLUME, (("Size", None, "20"), ("Iops", "1", "2")), {}, NONE,
     f"the data volume of master a changes {PAUSE}"),
    ("MasterAVolume", VOLUME, (touched("Iops"),), {"before": {"Size": "20"}, "after": {"Size": "20"}}, NONE,
     f"the data volume of master a changes {PAUSE}"),
    *(
        ("NodeRole", IAM_ROLE, (touched(name),), {}, NONE, "permissions of the nodes change at once")
        for name in ("Policies", "ManagedPolicyArns", "PermissionsBoundary", "AssumeRolePolicyDocument")
    ),
    ("MasterRole", IAM_ROLE, (), {"action": "remove"}, DISRUPTIVE, "permissions: the role of the masters is removed"),
    ("NodeGroupNodesRole", IAM_ROLE, (touched("Policies/0"),), {}, NONE,
     "permissions of the nodes of node group `nodes` change at once"),
]  # fmt: skip

OTHERS: list[Row] = [
    ("EtcdBackupBucket", BUCKET, (), {"replacement": WILL}, DISRUPTIVE,
     ("backups: the bucket id no longer belongs to the cluster; it is kept with all its snapshots, "
"but `cfngen etcd` no longer finds them")),
    ("MasterAProgram0123456789ab", PROGRAM, (), {"action": "remove"}, NONE,
     "the previous boot program of master a; no instance downloads it any more"),
    ("NodeGroupNodesProgram0123456789ab", PROGRAM, (), {"action": "add"}, NONE,
     "the boot program of node group `nodes`, stored as metadata; nothing is created in AWS"),
    ("Program0123456789ab", PROGRAM, (), {"action": "add"}, NONE,
     "the boot program of the masters, stored as metadata; nothing is created in AWS"),
    ("SecretsKey", KMS, (), {"replacement": WILL}, DANGEROUS,
     ("secrets: the key that encrypts them is replaced; certificate authorities would be lost with it once its "
     "waiting period is over")),
    ("JoinSecret", SECRET, (), {"action": "remove"}, DISRUPTIVE,
     "secrets: the join information is removed; no node joins until the masters have written it again"),
    ("CaSecret", SECRET, (), {"action": "remove"}, DANGEROUS,
     ("secrets: the certificate authorities is removed and would be lost; no instance could join, and no "
     "replaced master would start")),
    *(
        (name, "AWS::EC2::VPC", tuple(touched(path) for path in paths), {}, NONE, text)
        for name, paths, text in (
            ("Vpc", ["/Tags/0/Value"], "tags only"),
            ("Vpc", ["/Properties/Tags"], "tags only"),
            ("Vpc", ["/Properties/Tags[team]"], "tags only"),
            ("Vpc", ["/CreationPolicy"], ROLLS),
            ("Vpc", ["/CreationPolicy", "/UpdatePolicy"], ROLLS),
            ("Vpc", ["/UpdateReplacePolicy"], KEPT),
            ("Vpc", ["/DeletionPolicy", "/UpdateReplacePolicy"], KEPT),
        )
    ),
]  # fmt: skip


def named(value: Any) -> str | None:
    return value if isinstance(value, str) and " " not in value else ""


@pytest.mark.parametrize(
    ("logical_id", "type_", "paths", "how", "danger", "text"), [*NETWORK, *INSTANCES, *OTHERS], ids=named
)
def test_what_a_change_means(
    logical_id: str, type_: str, paths: tuple[Path, ...], how: dict[str, Any], danger: Danger, text: str
) -> None:
    impact = meaning(logical_id, type_, *paths, **how)
    assert impact is not None
    assert (impact.text, impact.danger) == (text, danger)


@pytest.mark.parametrize(
    ("logical_id", "type_", "path", "action"),
    [
        ("MasterANetworkInterface", ENI, "Description", "update"),
        ("MasterAElasticIpAssociation", ASSOCIATION, "AllocationId", "add"),
        ("ApiLoadBalancer", BALANCER, "LoadBalancerAttributes", "update"),
        ("ApiListener", LISTENER, "DefaultActions", "update"),
        ("Vpc", f"{EC2}VPC", "EnableDnsSupport", "update"),
        ("SubnetA", f"{EC2}Subnet", "MapPublicIpOnLaunch", "update"),
        ("RouteTable", f"{EC2}RouteTable", "Routes", "update"),
        ("NodeSecurityGroup", f"{EC2}SecurityGroup", "Other", "update"),
        ("MasterKubeletFromMasters", RULE, "Description", "update"),
        ("MasterKubeletFromMasters", RULE, "Description", "add"),
        ("MasterApiFrom10x0x0x0x8", RULE, "Description", "update"),
        ("MasterAVolume", VOLUME, "AutoEnableIO", "update"),
        ("NodeRole", IAM_ROLE, "Description", "update"),
        ("SshKeyPair", KEY_PAIR, "Other", "update"),
        ("SecretsKey", KMS, "Enabled", "update"),
        ("CaSecret", SECRET, "Description", "update"),
        ("EtcdBackupBucket", BUCKET, "VersioningConfiguration", "update"),
        (GROUP, ASG, "Cooldown", "update"),
        ("Vpc", f"{EC2}VPC", "/Metadata", "update"),
        ("Something", "AWS::EC2::DHCPOptions", "Other", "update"),
    ],
)
def test_what_hurts_nobody_needs_no_words(logical_id: str, type_: str, path: str, action: str) -> None:
    assert meaning(logical_id, type_, touched(path), action=action) is None


@pytest.mark.parametrize(
    ("logical_id", "whose", "master"),
    [
        ("MasterAAutoScalingGroup", "master a", True),
        ("MasterELaunchTemplate", "master e", True),
        ("MasterFLaunchTemplate", "", False),
        ("MasterSecurityGroup", "", False),
        ("NodeGroupNodesStack", "node group `nodes`", False),
        ("NodeGroupSpotOnesLaunchTemplate", "node group `spot-ones`", False),
        ("NodeGroupSpotOnesProgram0123456789ab", "node group `spot-ones`", False),
        ("MasterProgram0123456789ab", "", False),
        # No template has these.
        ("NodeGroupSpotOnesWaitCondition", "", False),
        ("MasterAStack", "", False),
        ("MasterARole", "", False),
        ("NodeGroupNodes", "", False),
        *(
            (f"MasterA{part}", "master a", True)
            for part in (
                "Address",
                "Program0123456789ab",
                "LaunchTemplate",
                "AutoScalingGroup",
                "NetworkInterface",
                "Volume",
                "ElasticIp",
                "ElasticIpAssociation",
                "WaitCondition",
            )
        ),
    ],
)
def test_whose_a_resource_is(logical_id: str, whose: str, master: bool) -> None:
    assert owner_of(default_cluster(), logical_id) == (whose, master)


@pytest.mark.parametrize(
    "type_",
    [
        "AWS::CloudFormation::Stack",
        "AWS::DynamoDB::Table",
        EIP,
        ENI,
        f"{EC2}Subnet",
        f"{EC2}VPC",
        VOLUME,
        "AWS::EFS::FileSystem",
        BALANCER,
        KMS,
        "AWS::RDS::DBCluster",
        "AWS::RDS::DBInstance",
        BUCKET,
        SECRET,
    ],
)
def test_what_lasts_is_dangerous_to_lose_and_not_to_make_or_change(type_: str) -> None:
    def danger(action: str, replacement: Replacement = Replacement.NO) -> Danger:
        return ImpactAssessment(default_cluster()).danger(Change("Thing", "id", type_, action, replacement))

    assert {danger("remove"), danger("update", WILL), danger("update", MIGHT)} == {DANGEROUS}
    assert {danger("add"), danger("update")} == {NONE}
