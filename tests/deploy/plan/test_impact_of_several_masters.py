"""What changes mean where there are several masters: what stays up, and what people notice."""

from __future__ import annotations

import pytest

from cfngen.cluster.load import parse
from cfngen.deploy.aws.change_sets import ResourceChange
from cfngen.deploy.messages.message import Danger, Impact
from cfngen.deploy.plan.impact import ImpactAssessment
from cfngen.deploy.plan.plan import Change, PropertyChange, Replacement

ASG = "AWS::AutoScaling::AutoScalingGroup"
BALANCER, TARGETS = "AWS::ElasticLoadBalancingV2::LoadBalancer", "AWS::ElasticLoadBalancingV2::TargetGroup"
LISTENER, RULE = "AWS::ElasticLoadBalancingV2::Listener", "AWS::EC2::SecurityGroupIngress"
EIP, GROUP = "AWS::EC2::EIP", "AWS::EC2::SecurityGroup"
THREE = parse(
    {"network": {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]}, "controlPlane": {"count": 3}}
)


def meaning(
    logical_id: str,
    kind: str,
    *paths: str,
    action: str = "update",
    replacement: Replacement = Replacement.NO,
    masters: int = 3,
) -> Impact | None:
    properties = tuple(PropertyChange(path, "1", "2", known=True, certain=True) for path in paths)
    change = Change(logical_id, "id", kind, action, replacement, "", properties)
    return ImpactAssessment(THREE, masters).of_resource(change, ResourceChange("Modify", logical_id, "id", kind))


def test_a_rolling_update_leaves_the_api_up():
    impact = meaning("MasterBAutoScalingGroup", ASG, "/Properties/LaunchTemplate/Version")
    assert impact is not None
    assert impact.text == "master b is replaced, one master at a time; the API stays up while the others work"
    assert impact.danger is Danger.DISRUPTIVE


def test_a_single_master_that_gets_company_is_still_the_only_one():
    """Nobody else is up yet."""
    impact = meaning("MasterAAutoScalingGroup", ASG, "/Properties/LaunchTemplate/Version", masters=1)
    assert impact is not None
    assert "the API is unavailable" in impact.text


@pytest.mark.parametrize(
    ("change", "danger", "words"),
    [
        (("MasterCAutoScalingGroup", ASG, {"action": "add"}), Danger.NONE, "new master c: it joins"),
        (("ApiLoadBalancer", BALANCER, {"action": "remove"}), Danger.DANGEROUS, "API address changes"),
        (("ApiLoadBalancer", BALANCER, {"replacement": Replacement.WILL}), Danger.DANGEROUS, "kubeconfigs stop"),
        (("ApiLoadBalancer", BALANCER, {"action": "add"}), Danger.DISRUPTIVE, "fetch kubeconfigs again"),
        (("ApiTargetGroup", TARGETS, {"replacement": Replacement.MIGHT}), Danger.DISRUPTIVE, "might be replaced"),
        (("ApiListener", LISTENER, {"action": "remove"}), Danger.DISRUPTIVE, "connections are interrupted"),
        (("MasterBElasticIp", EIP, {"action": "remove"}), Danger.DISRUPTIVE, "master b reaches the internet"),
        (("ApiLoadBalancerSecurityGroup", GROUP, {"action": "remove"}), Danger.DISRUPTIVE, "API's load balancer"),
        (("ApiLoadBalancerFrom203x0x113x0x24", RULE, {"action": "remove"}), Danger.DISRUPTIVE, "203.0.113.0/24"),
        (
            ("MasterApiFrom203x0x113x0x24", RULE, {"action": "remove"}),
            Danger.NONE,
            "but through the API's load balancer",
        ),
        (("MasterApiFromLoadBalancer", RULE, {"action": "remove"}), Danger.DISRUPTIVE, "reach each other"),
    ],
)
def test_what_comes_and_goes(change, danger, words):
    logical_id, kind, how = change
    impact = meaning(logical_id, kind, **how)
    assert impact is not None
    assert (impact.danger, words in impact.text) == (danger, True), impact.text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/Properties/Targets/2", "other masters"),
        ("/Properties/HealthCheckPath", "settings of the API's load balancer's target group"),
    ],
)
def test_a_target_group_that_changes_in_place_is_harmless(path, words):
    impact = meaning("ApiTargetGroup", TARGETS, path)
    assert impact is not None
    assert impact.danger is Danger.NONE
    assert words in impact.text


BOTH = THREE.model_copy(update={"api": THREE.api.model_copy(update={"internal": True})})
RECORD, ZONE = "AWS::Route53::RecordSet", "AWS::Route53::HostedZone"


@pytest.mark.parametrize(
    ("logical_id", "kind", "action", "danger", "words"),
    [
        ("InternalApiLoadBalancer", BALANCER, "add", Danger.NONE, "an internal endpoint beside its public one"),
        ("InternalApiLoadBalancer", BALANCER, "remove", Danger.DANGEROUS, "the API's internal endpoint"),
        ("ApiLoadBalancer", BALANCER, "remove", Danger.DANGEROUS, "API address changes"),
        ("ApiPublicRecord", RECORD, "add", Danger.DISRUPTIVE, "the masters are replaced one after another"),
        ("ApiPublicRecord", RECORD, "remove", Danger.DANGEROUS, "kubeconfigs with the name stop working"),
        ("ApiPrivateRecord", RECORD, "remove", Danger.DANGEROUS, "no longer leads to its internal endpoint"),
        ("ApiPublicZone", ZONE, "add", Danger.DISRUPTIVE, "ApiNameServers"),
        ("ApiPublicZone", ZONE, "remove", Danger.DANGEROUS, "leaves the stack; the old zone is kept"),
        ("ApiPrivateZone", ZONE, "remove", Danger.DANGEROUS, "only if it has no records of others"),
    ],
)
def test_endpoints_and_names_of_the_api_that_come_and_go(
    logical_id: str, kind: str, action: str, danger: Danger, words: str
) -> None:
    change = Change(logical_id, "id", kind, action, Replacement.NO, "", ())
    impact = ImpactAssessment(BOTH, 3).of_resource(change, ResourceChange("Modify", logical_id, "id", kind))
    assert impact is not None
    assert words in impact.text
    assert impact.danger is danger


@pytest.mark.parametrize(
    ("path", "before", "after", "words"),
    [
        ("Name", "api.old.example", "api.new.example", "changes from api.old.example to api.new.example"),
        ("AliasTarget", "{}", "{}", "clients may use the old one for 60 seconds"),
    ],
)
def test_a_record_that_changes_tells_what_clients_notice(path: str, before: str, after: str, words: str) -> None:
    changed = PropertyChange(f"/Properties/{path}", before, after, known=True, certain=True)
    change = Change("ApiPublicRecord", "id", RECORD, "update", Replacement.NO, "", (changed,))
    resource_change = ResourceChange("Modify", "ApiPublicRecord", "id", RECORD)
    impact = ImpactAssessment(BOTH, 3).of_resource(change, resource_change)
    assert impact is not None
    assert words in impact.text
