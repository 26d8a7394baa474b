"""What add-ons may do on the masters' role: only what is on, only to what is theirs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from service_authorization import faults
from test_policies import UNBOUND, resolved

ON = {"enabled": True}
ZONE = "Z0123456789ABCDEFGHIJ"
ALL: dict[str, Any] = {
    "clusterAutoscaler": ON,
    "awsLoadBalancerController": ON,
    "externalDns": {"enabled": True, "zones": [ZONE]},
    "nodeTerminationHandler": ON,
    "certManager": ON,
    "headlamp": ON,
    "fluentBit": {"enabled": True, "values": {"config": {"outputs": "[OUTPUT]\n    Name stdout\n"}}},
    "prometheus": ON,
}
NONE = {"awsEbsCsiDriver": {"enabled": False}, "metricsServer": {"enabled": False}}
READS = ("Describe", "Get", "List")


def policy(templates: Any, addons: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = templates({"name": "prod", "addons": addons}).properties("AddonsPolicy")
    return found


def statements(templates: Any, addons: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = policy(templates, addons)["PolicyDocument"]["Statement"]
    return found


def actions(templates: Any, addons: dict[str, Any]) -> set[str]:
    return {action for statement in statements(templates, addons) for action in statement["Action"]}


def granting(templates: Any, action: str) -> list[dict[str, Any]]:
    return [statement for statement in statements(templates, ALL) if action in statement["Action"]]


def test_policy_is_the_masters_alone(templates: Any) -> None:
    assert policy(templates, {})["Roles"] == [{"Ref": "MasterRole"}]
    assert len(templates({"addons": ALL}).of_type("AWS::IAM::ManagedPolicy")) == 1


def test_there_is_no_policy_where_no_add_on_needs_one(templates: Any) -> None:
    assert templates({"addons": NONE}).of_type("AWS::IAM::ManagedPolicy") == {}
    assert templates({"addons": {**ALL, **NONE}}).of_type("AWS::IAM::ManagedPolicy") != {}


@pytest.mark.parametrize(
    ("addon", "action"),
    [
        ("awsEbsCsiDriver", "ec2:CreateVolume"),
        ("clusterAutoscaler", "autoscaling:SetDesiredCapacity"),
        ("awsLoadBalancerController", "elasticloadbalancing:CreateRule"),
        ("externalDns", "route53:ChangeResourceRecordSets"),
    ],
)
def test_permissions_come_and_go_with_their_add_on(templates: Any, addon: str, action: str) -> None:
    given = {**ALL, "awsEbsCsiDriver": ON}
    assert action in actions(templates, given)
    others = {**given, addon: {"enabled": False}}
    assert action not in actions(templates, others)
    assert actions(templates, others) < actions(templates, given)


def test_policy_is_sound(templates: Any) -> None:
    assert faults(resolved(policy(templates, ALL)["PolicyDocument"])) == []


def test_no_action_is_a_wildcard(templates: Any) -> None:
    assert not [action for action in actions(templates, ALL) if "*" in action]


def test_policy_fits_iams_limit(templates: Any) -> None:
    # 6,144 characters for a managed policy, white space not counted (IAM quotas).
    assert len(json.dumps(resolved(policy(templates, ALL)["PolicyDocument"]), separators=(",", ":"))) < 6_144


def test_writes_are_bound_to_the_clusters_tag_or_to_named_resources(templates: Any) -> None:
    for statement in statements(templates, ALL):
        writes = [action for action in statement["Action"] if not action.split(":")[1].startswith(READS)]
        if statement["Sid"] == "LoadBalancersOrderRules":
            # Its requests carry no tags; see test_condition_keys.
            assert all(":listener-rule/" in json.dumps(named) for named in statement["Resource"])
        elif set(writes) - UNBOUND and "hostedzone" not in json.dumps(statement["Resource"]):
            assert "/KubernetesCluster" in json.dumps(statement["Condition"]["StringEquals"]), statement["Sid"]
            assert "prod" in statement["Condition"]["StringEquals"].values(), statement["Sid"]


@pytest.mark.parametrize("action", ["ec2:DeleteVolume", "ec2:DetachVolume", "ec2:ModifyVolume", "ec2:AttachVolume"])
def test_csi_driver_cannot_touch_the_masters_volumes(templates: Any, action: str) -> None:
    # Those bear the cluster's tag as well, but not the driver's.
    for each in granting(templates, action):
        if "volume/" in json.dumps(each["Resource"]):
            assert each["Condition"]["StringEquals"]["aws:ResourceTag/ebs.csi.aws.com/cluster"] == "true"
        else:
            assert "instance/" in json.dumps(each["Resource"])


def test_masters_volumes_lack_the_csi_drivers_tag(templates: Any) -> None:
    volumes = templates({}).of_type("AWS::EC2::Volume").values()
    assert volumes
    tags = [tag["Key"] for volume in volumes for tag in volume["Properties"]["Tags"]]
    assert "ebs.csi.aws.com/cluster" not in tags


def test_autoscaler_cannot_touch_the_masters_groups(templates: Any) -> None:
    [scaling] = granting(templates, "autoscaling:SetDesiredCapacity")
    wanted = {
        key.removeprefix("aws:ResourceTag/"): value for key, value in scaling["Condition"]["StringEquals"].items()
    }
    groups = templates({"name": "prod"}).of_type("AWS::AutoScaling::AutoScalingGroup")
    scalable = [
        name
        for name, group in groups.items()
        if wanted.items() <= {tag["Key"]: tag["Value"] for tag in group["Properties"]["Tags"]}.items()
    ]
    assert scalable
    assert not [name for name in scalable if "Master" in name]


def test_new_volumes_must_bear_the_clusters_tag(templates: Any) -> None:
    [making] = granting(templates, "ec2:CreateVolume")
    assert making["Condition"] == {"StringEquals": {"aws:RequestTag/KubernetesCluster": "prod"}}
    tagging = [each for each in granting(templates, "ec2:CreateTags") if "volume/" in json.dumps(each["Resource"])]
    assert [each["Condition"]["StringEquals"]["ec2:CreateAction"] for each in tagging] == ["CreateVolume"]


@pytest.mark.parametrize("key", [{}, {"volume": {"kmsKey": "arn:aws:kms:us-west-2:123456789012:key/1111-2222"}}])
def test_volumes_of_claims_may_have_another_key_than_the_masters(templates: Any, key: dict[str, Any]) -> None:
    generated = templates({"name": "prod", "controlPlane": key})
    inline = generated.properties("MasterRole")["Policies"][0]["PolicyDocument"]["Statement"]
    granted = [*inline, *generated.properties("AddonsPolicy")["PolicyDocument"]["Statement"]]
    keys = [each["Resource"] for each in granted if "kms:CreateGrant" in each["Action"]]
    assert any("key/*" in json.dumps(each) for each in keys)
    assert all(
        "kms:GrantIsForAWSResource" in json.dumps(each) for each in granted if "kms:CreateGrant" in each["Action"]
    )


def test_records_are_written_in_the_given_zones_only(templates: Any) -> None:
    [records] = granting(templates, "route53:ChangeResourceRecordSets")
    assert records["Resource"] == [{"Fn::Sub": f"arn:${{AWS::Partition}}:route53:::hostedzone/{ZONE}"}]


def test_nobody_takes_the_clusters_tag_off_a_security_group(templates: Any) -> None:
    [untagging] = granting(templates, "ec2:DeleteTags")
    assert untagging["Condition"]["Null"] == {"aws:RequestTag/KubernetesCluster": "true"}
