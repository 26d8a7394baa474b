"""The endpoints of the API in the templates: public, internal, or both, and who may reach each."""

from __future__ import annotations

from typing import Any

import pytest

LOAD_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
ZONES = {"subnets": [{"zone": f"us-west-2{letter}"} for letter in "abc"]}
PUBLIC: dict[str, Any] = {"network": ZONES, "controlPlane": {"count": 3}, "api": {"allowedCidrs": ["203.0.113.0/24"]}}
BOTH: dict[str, Any] = {**PUBLIC, "api": {**PUBLIC["api"], "internal": True, "internalCidrs": ["10.0.0.0/8"]}}
INTERNAL: dict[str, Any] = {
    **PUBLIC,
    "network": {**ZONES, "topology": "private", "plugin": "cilium"},
    "api": {"public": False, "allowedCidrs": ["10.0.0.0/8"]},
}
INTERNAL_AND_PUBLIC: dict[str, Any] = {**INTERNAL, "api": BOTH["api"]}
ONE_MASTER: dict[str, Any] = {"api": BOTH["api"]}


def _sources(generated: Any, group: str) -> set[str]:
    """Return the ranges from which the API is reachable through a security group."""
    rules = generated.of_type("AWS::EC2::SecurityGroupIngress").values()
    return {
        rule["CidrIp"]
        for rule in (each["Properties"] for each in rules)
        if "CidrIp" in rule and rule["GroupId"] == {"Fn::GetAtt": [group, "GroupId"]}
    }


def _host(generated: Any, output: str) -> Any:
    """Return the expression of the host in one of the API's URLs."""
    return generated["master"]["Outputs"][output]["Value"]["Fn::Sub"][1]["Host"]


def test_both_endpoints_have_a_load_balancer_a_target_group_and_a_listener_each(templates: Any) -> None:
    generated = templates(BOTH)
    balancers = generated.of_type(LOAD_BALANCER)
    assert {name: each["Properties"]["Scheme"] for name, each in balancers.items()} == {
        "ApiLoadBalancer": "internet-facing",
        "InternalApiLoadBalancer": "internal",
    }
    assert len({each["Properties"]["Name"] for each in balancers.values()}) == 2
    listeners = generated.of_type("AWS::ElasticLoadBalancingV2::Listener").values()
    forwards = {
        each["Properties"]["LoadBalancerArn"]["Ref"]: each["Properties"]["DefaultActions"][0]["TargetGroupArn"]["Ref"]
        for each in listeners
    }
    assert forwards == {"ApiLoadBalancer": "ApiTargetGroup", "InternalApiLoadBalancer": "InternalApiTargetGroup"}


def test_each_endpoint_is_reachable_from_its_own_ranges(templates: Any) -> None:
    generated = templates(BOTH)
    assert _sources(generated, "ApiLoadBalancerSecurityGroup") == {"203.0.113.0/24"}
    assert _sources(generated, "InternalApiLoadBalancerSecurityGroup") == {"10.0.0.0/8"}
    assert not _sources(generated, "MasterSecurityGroup")


def test_the_whole_vpc_may_reach_an_internal_endpoint_by_default(templates: Any) -> None:
    generated = templates({**BOTH, "api": {"internal": True}})
    assert _sources(generated, "InternalApiLoadBalancerSecurityGroup") == {"172.20.0.0/16"}
    vpc = {"cidr": "10.1.0.0/16", "additionalCidrs": ["10.2.0.0/16"]}
    generated = templates({**BOTH, "network": {**ZONES, "vpc": vpc}, "api": {"internal": True}})
    assert _sources(generated, "InternalApiLoadBalancerSecurityGroup") == {"10.1.0.0/16", "10.2.0.0/16"}


def test_the_internal_endpoint_of_one_master_is_its_fixed_address_without_a_load_balancer(templates: Any) -> None:
    generated = templates(ONE_MASTER)
    assert not generated.of_type(LOAD_BALANCER)
    assert _host(generated, "ApiInternalEndpoint") == {
        "Fn::GetAtt": ["MasterANetworkInterface", "PrimaryPrivateIpAddress"]
    }
    assert _sources(generated, "MasterSecurityGroup") == {"203.0.113.0/24", "10.0.0.0/8"}


def test_a_range_that_may_reach_both_endpoints_of_one_master_has_one_rule(templates: Any) -> None:
    api = {"internal": True, "allowedCidrs": ["198.51.100.0/24"], "internalCidrs": ["198.51.100.0/24"]}
    assert _sources(templates({"api": api}), "MasterSecurityGroup") == {"198.51.100.0/24"}


def test_one_private_master_has_a_public_load_balancer_and_is_reached_directly_inside(templates: Any) -> None:
    generated = templates({**INTERNAL_AND_PUBLIC, "controlPlane": {"count": 1}})
    assert set(generated.of_type(LOAD_BALANCER)) == {"ApiLoadBalancer"}
    assert _sources(generated, "ApiLoadBalancerSecurityGroup") == {"203.0.113.0/24"}
    assert _sources(generated, "MasterSecurityGroup") == {"10.0.0.0/8"}


def test_the_root_has_the_urls_of_both_endpoints(templates: Any) -> None:
    generated = templates(BOTH)
    assert {"ApiEndpoint", "ApiInternalEndpoint"} <= set(generated["cluster"]["Outputs"])
    assert _host(generated, "ApiEndpoint") == {"Fn::GetAtt": ["ApiLoadBalancer", "DNSName"]}
    assert _host(generated, "ApiInternalEndpoint") == {"Fn::GetAtt": ["InternalApiLoadBalancer", "DNSName"]}


@pytest.mark.parametrize(("before", "after"), [(PUBLIC, BOTH), (INTERNAL, INTERNAL_AND_PUBLIC)])
def test_a_second_endpoint_leaves_load_balancer_target_group_and_listener_of_the_first(
    templates: Any, before: dict[str, Any], after: dict[str, Any]
) -> None:
    old, new = templates(before), templates(after)
    for kind in ("LoadBalancer", "TargetGroup", "Listener"):
        [(name, resource)] = old.of_type(f"AWS::ElasticLoadBalancingV2::{kind}").items()
        kept = new.of_type(f"AWS::ElasticLoadBalancingV2::{kind}")[name]
        # The security groups of a network load balancer may be exchanged without an interruption.
        changed = {key for key in kept["Properties"] if kept["Properties"][key] != resource["Properties"][key]}
        assert changed <= {"SecurityGroups"}


RECORD, ZONE = "AWS::Route53::RecordSet", "AWS::Route53::HostedZone"
NAME = "api.k8s.example.com"


def _record(generated: Any, name: str) -> dict[str, Any]:
    """Return the properties of a DNS record."""
    properties: dict[str, Any] = generated.of_type(RECORD)[name]["Properties"]
    return properties


def test_a_name_in_a_public_zone_is_an_alias_of_the_public_load_balancer(templates: Any) -> None:
    dns = {"name": NAME, "publicZone": {"id": "Z0123456789ABC"}}
    generated = templates({**PUBLIC, "api": {"dns": dns}})
    record = _record(generated, "ApiPublicRecord")
    assert (record["HostedZoneId"], record["Name"], record["Type"]) == ("Z0123456789ABC", NAME, "A")
    assert record["AliasTarget"]["DNSName"] == {"Fn::GetAtt": ["ApiLoadBalancer", "DNSName"]}
    assert not generated.of_type(ZONE)
    assert generated["master"]["Outputs"]["ApiEndpoint"]["Value"] == f"https://{NAME}"


def test_a_name_of_one_master_has_its_addresses(templates: Any) -> None:
    dns = {"name": NAME, "publicZone": {"id": "Z0123456789ABC"}, "privateZone": {"id": "Z123456789ABCD"}}
    generated = templates({"api": {"internal": True, "dns": dns}})
    assert _record(generated, "ApiPublicRecord")["ResourceRecords"] == [
        {"Fn::GetAtt": ["MasterAElasticIp", "PublicIp"]}
    ]
    assert _record(generated, "ApiPrivateRecord")["ResourceRecords"] == [
        {"Fn::GetAtt": ["MasterANetworkInterface", "PrimaryPrivateIpAddress"]}
    ]


def test_a_new_private_zone_is_for_the_clusters_vpc_and_goes_with_it(templates: Any) -> None:
    generated = templates({**INTERNAL, "api": {"public": False, "dns": {"name": NAME, "privateZone": {"name": NAME}}}})
    [zone] = generated.of_type(ZONE).values()
    assert zone["Properties"]["VPCs"] == [{"VPCId": {"Ref": "Vpc"}, "VPCRegion": {"Ref": "AWS::Region"}}]
    assert zone["DeletionPolicy"] == "Delete"
    assert "ApiNameServers" not in generated["cluster"]["Outputs"]


def test_a_new_public_zone_stays_when_the_cluster_goes_and_tells_its_name_servers(templates: Any) -> None:
    generated = templates({"api": {"dns": {"name": NAME, "publicZone": {"name": "k8s.example.com"}}}})
    [zone] = generated.of_type(ZONE).values()
    assert (zone["DeletionPolicy"], zone["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")
    assert "VPCs" not in zone["Properties"]
    assert "ApiNameServers" in generated["cluster"]["Outputs"]


def test_a_name_leads_to_the_endpoint_of_its_zone_only(templates: Any) -> None:
    api = {**BOTH["api"], "dns": {"name": NAME, "privateZone": {"id": "Z0123456789ABC"}}}
    generated = templates({**BOTH, "api": api})
    assert set(generated.of_type(RECORD)) == {"ApiPrivateRecord"}
    assert _host(generated, "ApiEndpoint") == {"Fn::GetAtt": ["ApiLoadBalancer", "DNSName"]}
    assert generated["master"]["Outputs"]["ApiInternalEndpoint"]["Value"] == f"https://{NAME}"
