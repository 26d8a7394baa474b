"""Each quota: what is counted against it, what it is asked by, and where it begins not to suffice."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from answers import DENIED, Answer, Answers
from recorded import NOW, RefusedError

from cfngen.deploy.preflight.quotas import checks
from cfngen.deploy.preflight.quotas.demand import Demand
from cfngen.deploy.preflight.quotas.instance_counts import InstanceCount
from cfngen.deploy.preflight.quotas.quota import Quota

ARN = "arn:aws:elasticloadbalancing:us-west-2:123456789012:loadbalancer/net/"
NO_ENTRY = RefusedError("NoSuchResourceException")
SIZES = {"t3.medium": 2, "m5.xlarge": 4, "g5.xlarge": 4, "hpc6a.48xlarge": 96}


def sizes(sent: dict[str, Any]) -> Mapping[str, Any]:
    assert sent["InstanceTypes"] == sorted(sent["InstanceTypes"])
    return {"InstanceTypes": [{"InstanceType": kind, "VCpuInfo": {"DefaultVCpus": SIZES[kind]}}
                              for kind in sent["InstanceTypes"]]}  # fmt: skip


def running(*kinds: tuple[str, bool]) -> Mapping[str, Any]:
    return {"Reservations": [{"Instances": [{"InstanceType": kind, **({"InstanceLifecycle": "spot"} if spot else {})}]}
                             for kind, spot in kinds]}  # fmt: skip


def account(limits: Mapping[tuple[str, str], float] | None = None, **given: Answer) -> Answers:
    """An account with nothing in it whose quotas have entries of their own."""
    known = limits or {}

    def quota(sent: dict[str, Any]) -> Mapping[str, Any]:
        key = (sent["ServiceCode"], sent["QuotaCode"])
        if key not in known:
            raise NO_ENTRY
        return {"Quota": {"Value": known[key]}}

    return Answers(
        {
            "service-quotas:GetServiceQuota": quota,
            "ec2:DescribeInstances": running(),
            "ec2:DescribeInstanceTypes": sizes,
            **{
                name.replace("__", ":").replace("service_quotas", "service-quotas"): each
                for name, each in given.items()
            },
        }
    )


def check(api: Answers, wanted: Demand, before: Demand | None = None) -> dict[str, Quota]:
    return {quota.name: quota for quota in checks.check_quotas(api.account, wanted, before)}


def balancers(*kinds: str) -> Mapping[str, Any]:
    return {"LoadBalancers": [{"LoadBalancerArn": f"{ARN}{n}", "Type": kind} for n, kind in enumerate(kinds)]}


COUNTED = [
    ("AWS::EC2::VPC", "VPCs", "vpc", "L-F678F1CE", "ec2:DescribeVpcs", {"Vpcs": [{}, {}, {}]}),
    (
        "AWS::EC2::InternetGateway", "Internet gateways", "vpc", "L-A4707A72",
        "ec2:DescribeInternetGateways", {"InternetGateways": [{}, {}, {}]},
    ),
    ("AWS::EC2::EIP", "Elastic IPs", "ec2", "L-0263D0A3", "ec2:DescribeAddresses", {"Addresses": [{}, {}, {}]}),
    (
        "AWS::EC2::SecurityGroup", "Security groups", "vpc", "L-E79EC296",
        "ec2:DescribeSecurityGroups", {"SecurityGroups": [{}, {}, {}]},
    ),
    (
        "AWS::ElasticLoadBalancingV2::LoadBalancer", "Network load balancers", "elasticloadbalancing", "L-69A177A2",
        "elbv2:DescribeLoadBalancers", balancers("network", "application", "network", "gateway", "network"),
    ),
    (
        "AWS::AutoScaling::AutoScalingGroup", "Auto Scaling groups", "autoscaling", "L-CDE20ADC",
        "autoscaling:DescribeAutoScalingGroups",
        {"AutoScalingGroups": [{"AutoScalingGroupName": f"g{n}", "MinSize": 0, "MaxSize": 0, "DesiredCapacity": 0,
                                "DefaultCooldown": 0, "AvailabilityZones": [], "HealthCheckType": "EC2",
                                "CreatedTime": NOW} for n in range(3)]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "service", "code", "call", "three"), COUNTED)
@pytest.mark.parametrize(("limit", "enough"), [(5, True), (4, False)])
def test_resources_are_counted(
    kind: str, name: str, service: str, code: str, call: str, three: Mapping[str, Any], limit: int, enough: bool
) -> None:
    api = account({(service, code): limit})
    api.given[call] = three
    quota = check(api, Demand(count_by_resource_type={kind: 2}))[name]
    assert (quota.needed, quota.used, quota.limit, quota.sufficient, quota.needed_at_maximum) == (
        2,
        3,
        limit,
        enough,
        2,
    )
    assert quota.room_to_grow == enough
    if enough:
        assert quota.hint == ""
    else:
        assert "`aws service-quotas request-service-quota-increase --region us-west-2 " in quota.hint
        assert f"--service-code {service} --quota-code {code} --desired-value 5`" in quota.hint


def test_each_vpc_brings_a_security_group_of_its_own() -> None:
    found = check(account(), Demand(count_by_resource_type={"AWS::EC2::VPC": 1, "AWS::EC2::SecurityGroup": 2}))
    assert found["Security groups"].needed == 3
    assert "Security groups" in check(account(), Demand(count_by_resource_type={"AWS::EC2::VPC": 1}))
    assert "Elastic IPs" not in found


def test_only_what_an_update_adds_counts() -> None:
    before = Demand(count_by_resource_type={"AWS::EC2::EIP": 2, "AWS::IAM::Role": 3})
    wanted = Demand(count_by_resource_type={"AWS::EC2::EIP": 3, "AWS::IAM::Role": 3, "AWS::EC2::VPC": 0})
    assert {name: quota.needed for name, quota in check(account(), wanted, before).items()} == {"Elastic IPs": 1}
    assert check(account(), before, wanted) == {}


def test_of_nat_gateways_those_of_the_fullest_zone_count() -> None:
    gateways = [{"SubnetId": f"subnet-{zone}"} for zone in "abbcb"]

    def subnets(sent: dict[str, Any]) -> Mapping[str, Any]:
        assert sent["SubnetIds"] == ["subnet-a", "subnet-b", "subnet-c"]
        return {"Subnets": [{"SubnetId": f"subnet-{zone}", "AvailabilityZone": f"us-west-2{zone}"} for zone in "abc"]}

    api = account(
        {("vpc", "L-FE5A380F"): 5}, ec2__DescribeNatGateways={"NatGateways": gateways}, ec2__DescribeSubnets=subnets
    )
    wanted = Demand(nat_gateway_zones={"A": "", "B": "us-west-2b"})
    quota = check(api, wanted)["NAT gateways in one zone"]
    assert (quota.needed, quota.used, quota.sufficient) == (1, 3, True)
    [sent] = api.named("ec2:DescribeNatGateways")
    assert sent["Filter"] == [{"Name": "state", "Values": ["pending", "available"]}]
    # Of an update that adds one in another zone, only that zone counts.
    before = Demand(nat_gateway_zones={"B": "us-west-2b"})
    assert check(api, wanted, before)["NAT gateways in one zone"].used == 1
    assert "NAT gateways in one zone" not in check(api, wanted, wanted)
    api.given["ec2:DescribeNatGateways"] = {"NatGateways": []}
    assert check(api, wanted)["NAT gateways in one zone"].used == 0


def endpoints(*kinds: str) -> Mapping[str, Any]:
    return {"VpcEndpoints": [{"VpcEndpointId": f"vpce-{n}", "VpcEndpointType": kind} for n, kind in enumerate(kinds)]}


def test_endpoints_of_each_kind_have_a_quota() -> None:
    found = endpoints("Interface", "Gateway", "GatewayLoadBalancer", "Interface")
    api = account({("vpc", "L-29B6F2EB"): 14, ("vpc", "L-1B52E74A"): 1}, ec2__DescribeVpcEndpoints=found)
    quotas = check(api, Demand(vpc_id="vpc-1", interface_endpoints=11, gateway_endpoints=1))
    interface, gateway = quotas["Interface endpoints of one VPC"], quotas["Gateway endpoints"]
    assert (interface.needed, interface.used, interface.limit, interface.sufficient) == (11, 3, 14, True)
    assert (gateway.needed, gateway.used, gateway.limit, gateway.sufficient) == (1, 1, 1, False)
    assert "--service-code vpc --quota-code L-1B52E74A --desired-value 2`" in gateway.hint
    # Those of the whole region count for the one, those of the VPC for the other.
    assert {str(sent.get("Filters")) for sent in api.named("ec2:DescribeVpcEndpoints")} == {
        str([{"Name": "vpc-id", "Values": ["vpc-1"]}]),
        "None",
    }
    assert not check(api, Demand(vpc_id="vpc-1"), Demand(interface_endpoints=11, gateway_endpoints=1))


@pytest.mark.parametrize(("count", "told"), [(50, False), (51, True)])
def test_a_new_vpc_has_room_for_fifty_endpoints(count: int, told: bool) -> None:
    quotas = check(account({("vpc", "L-29B6F2EB"): 50}), Demand(interface_endpoints=count))
    assert ("Interface endpoints of one VPC" in quotas) == told
    if told:
        assert quotas["Interface endpoints of one VPC"].sufficient is False


@pytest.mark.parametrize(
    ("kind", "name", "code", "call", "three"),
    [
        (
            "AWS::EC2::RouteTable", "Route tables of one VPC", "L-589F43AA", "ec2:DescribeRouteTables",
            {"RouteTables": [{}, {}, {}]},
        ),
        ("AWS::EC2::Subnet", "Subnets of one VPC", "L-407747CB", "ec2:DescribeSubnets", {"Subnets": [{}, {}, {}]}),
    ],
)  # fmt: skip
def test_parts_of_a_vpc_that_exists_are_counted(
    kind: str, name: str, code: str, call: str, three: Mapping[str, Any]
) -> None:
    api = account({("vpc", code): 4})
    api.given[call] = three
    wanted = Demand(count_by_resource_type={kind: 2})
    assert name not in check(api, wanted)  # a new VPC has room
    quota = check(api, dataclasses.replace(wanted, vpc_id="vpc-1"))[name]
    assert (quota.needed, quota.used, quota.limit, quota.sufficient) == (2, 3, 4, False)
    assert f"--quota-code {code} --desired-value 5`" in quota.hint
    [sent] = api.named(call)
    assert sent["Filters"] == [{"Name": "vpc-id", "Values": ["vpc-1"]}]
    # The VPC of a cluster that has created it is known from its stack.
    assert check(api, wanted, Demand(count_by_resource_type={kind: 1}, vpc_id="vpc-1"))[name].sufficient


def test_a_quota_that_was_never_changed_is_that_of_everybody() -> None:
    api = account(ec2__DescribeAddresses={"Addresses": []})
    api.given["service-quotas:GetAWSDefaultServiceQuota"] = {"Quota": {"Value": 5.0}}
    assert check(api, Demand(count_by_resource_type={"AWS::EC2::EIP": 5}))["Elastic IPs"].sufficient
    [sent] = api.named("service-quotas:GetAWSDefaultServiceQuota")
    assert sent == {"ServiceCode": "ec2", "QuotaCode": "L-0263D0A3"}


def test_what_cannot_be_found_out_is_unknown_and_says_why() -> None:
    api = account({("ec2", "L-0263D0A3"): 5})
    quota = check(api, Demand(count_by_resource_type={"AWS::EC2::EIP": 1}))["Elastic IPs"]
    assert (quota.used, quota.limit, quota.sufficient, quota.room_to_grow, quota.needed_at_maximum) == (
        None,
        None,
        None,
        None,
        1,
    )
    assert "not allowed to call DescribeAddresses" in quota.hint
    api = account(ec2__DescribeAddresses={"Addresses": [{}]})
    quota = check(api, Demand(count_by_resource_type={"AWS::EC2::EIP": 1}))["Elastic IPs"]
    assert (quota.used, quota.limit, quota.sufficient) == (1, None, None)
    assert "not allowed to call GetAWSDefaultServiceQuota" in quota.hint


@pytest.mark.parametrize(
    ("kind", "name", "key", "code"),
    [
        ("AWS::IAM::Role", "IAM roles", "Roles", "L-FE177D64"),
        ("AWS::IAM::InstanceProfile", "Instance profiles", "InstanceProfiles", "L-6E65F664"),
    ],
)
def test_iam_counts_by_itself_and_is_asked_for_more_in_one_region(kind: str, name: str, key: str, code: str) -> None:
    api = account(iam__GetAccountSummary={"SummaryMap": {key: 999, f"{key}Quota": 1000}})
    assert check(api, Demand(count_by_resource_type={kind: 1}))[name].sufficient
    quota = check(api, Demand(count_by_resource_type={kind: 2}))[name]
    assert (quota.needed, quota.used, quota.limit, quota.sufficient) == (2, 999, 1000, False)
    assert f"--region us-east-1 --service-code iam --quota-code {code} --desired-value 1001`" in quota.hint
    assert not api.named("service-quotas:GetServiceQuota")


@pytest.mark.parametrize(("kind", "code"), [("gp2", "L-D18FCD1D"), ("gp3", "L-7A658B76")])
def test_storage_is_limited_by_the_tebibyte(kind: str, code: str) -> None:
    api = account({("ebs", code): 2}, ec2__DescribeVolumes={"Volumes": [{"Size": 1000}, {"Size": 48}]})
    quota = check(api, Demand(gib_by_volume_type={kind: 1000}, max_gib_by_volume_type={kind: 1000}))[
        f"{kind} storage (GiB)"
    ]
    assert (quota.needed, quota.used, quota.limit, quota.sufficient, quota.room_to_grow) == (
        1000,
        1048,
        2048,
        True,
        True,
    )
    [sent] = api.named("ec2:DescribeVolumes")
    assert sent["Filters"] == [{"Name": "volume-type", "Values": [kind]}]
    quota = check(api, Demand(gib_by_volume_type={kind: 900}, max_gib_by_volume_type={kind: 2048}))[
        f"{kind} storage (GiB)"
    ]
    assert (quota.sufficient, quota.room_to_grow, quota.needed_at_maximum) == (True, False, 2048)
    assert "--service-code ebs" in quota.hint
    assert "--desired-value 4`" in quota.hint


def test_storage_of_an_update_counts_from_what_there_is() -> None:
    before = Demand(gib_by_volume_type={"gp3": 100, "gp2": 10}, max_gib_by_volume_type={"gp3": 200, "gp2": 20})
    api = account({("ebs", "L-7A658B76"): 1}, ec2__DescribeVolumes={"Volumes": []})
    # Only the greatest size grows; of a kind that nothing is added to, nothing is said.
    found = check(
        api, Demand(gib_by_volume_type={"gp3": 100, "gp2": 5}, max_gib_by_volume_type={"gp3": 300, "gp2": 20}), before
    )
    assert {name: (quota.needed, quota.needed_at_maximum) for name, quota in found.items()} == {
        "gp3 storage (GiB)": (0, 200)
    }
    found = check(api, Demand(gib_by_volume_type={"gp3": 150}, max_gib_by_volume_type={"gp3": 200}), before)
    assert found["gp3 storage (GiB)"].needed == 50
    assert "io2 storage (GiB)" not in check(
        api, Demand(gib_by_volume_type={"io2": 5}, max_gib_by_volume_type={"io2": 5})
    )


@pytest.mark.parametrize(("count", "told"), [(60, False), (61, True)])
def test_rules_of_one_group_are_limited_to_sixty_for_everybody(count: int, told: bool) -> None:
    rules = {"Small": {"r": ""}, "Large": {f"rule{number}": "" for number in range(count)}}
    found = check(account({("vpc", "L-0EA8095F"): 60}), Demand(prefix_lists_by_security_group=rules))
    assert list(found) == (["Rules of one security group (Large)"] if told else [])
    for quota in found.values():
        assert (quota.needed, quota.used, quota.limit, quota.sufficient) == (61, 0, 60, False)
        assert "--service-code vpc --quota-code L-0EA8095F" in quota.hint


def test_rules_that_are_exchanged_count_twice_for_a_moment() -> None:
    before = Demand(
        prefix_lists_by_security_group={"Group": {f"old{number}": "" for number in range(40)}, "Same": {"r": ""}}
    )
    wanted = Demand(
        prefix_lists_by_security_group={"Group": {f"new{number}": "" for number in range(40)}, "Same": {"r": ""}}
    )
    assert check(account(), wanted, before)["Rules of one security group (Group)"].needed == 80
    # What does not change is not asked about.
    many = Demand(prefix_lists_by_security_group={"Group": {f"old{number}": "" for number in range(80)}})
    assert check(account(), many, many) == {}


def test_a_prefix_list_takes_as_many_rules_as_it_may_have_entries() -> None:
    wanted = Demand(
        prefix_lists_by_security_group={"Group": {"one": "pl-1", "two": "pl-2", "three": "", "four": "pl-1"}}
    )
    lists = {"PrefixLists": [{"PrefixListId": "pl-1", "MaxEntries": 30}, {"PrefixListId": "pl-2"}]}
    api = account(ec2__DescribeManagedPrefixLists=lists)
    assert check(api, wanted)["Rules of one security group (Group)"].needed == 30 + 1 + 1 + 30
    assert api.named("ec2:DescribeManagedPrefixLists")[0]["PrefixListIds"] == ["pl-1", "pl-2"]
    # Where that may not be seen, each counts as one rule.
    assert check(account(), wanted) == {}


@pytest.mark.parametrize(("before", "groups", "told"), [(0, 5, False), (0, 6, True), (6, 6, False), (6, 7, True)])
def test_security_groups_of_an_interface(before: int, groups: int, told: bool) -> None:
    found = check(
        account({("vpc", "L-2AFB9258"): 5}),
        Demand(max_groups_per_interface=groups),
        Demand(max_groups_per_interface=before),
    )
    assert list(found) == (["Security groups of one interface"] if told else [])
    for quota in found.values():
        assert (quota.needed, quota.used, quota.limit, quota.sufficient) == (groups, 0, 5, False)
        assert "--service-code vpc --quota-code L-2AFB9258" in quota.hint


@pytest.mark.parametrize(
    ("before", "policies", "told"), [(0, 10, False), (0, 11, True), (11, 11, False), (11, 12, True)]
)
def test_policies_of_a_role(before: int, policies: int, told: bool) -> None:
    api = account(iam__GetAccountSummary={"SummaryMap": {"AttachedPoliciesPerRoleQuota": 10}})
    found = check(api, Demand(max_policies_per_role=policies), Demand(max_policies_per_role=before))
    assert list(found) == (["Managed policies of one role"] if told else [])
    for quota in found.values():
        assert (quota.needed, quota.used, quota.limit, quota.sufficient) == (policies, 0, 10, False)
        assert "--service-code iam --quota-code L-0DA4ABF3" in quota.hint


STANDARD = "standard (A, C, D, H, I, M, R, T, Z) instances"
ON_DEMAND, SPOT = f"vCPUs of on-demand {STANDARD}", f"vCPUs of spot {STANDARD}"
LIMITS = {("ec2", "L-1216C47A"): 20, ("ec2", "L-34B43A08"): 10, ("ec2", "L-DB2E81BA"): 8}


def test_processors_of_each_family_and_market_count_by_themselves() -> None:
    api = account(
        LIMITS, ec2__DescribeInstances=running(("m5.xlarge", False), ("m5.xlarge", True), ("a1.unknown", True))
    )
    api.given["ec2:DescribeInstanceTypes"] = lambda sent: {
        "InstanceTypes": [
            {"InstanceType": kind, "VCpuInfo": {"DefaultVCpus": SIZES.get(kind, 1)}} for kind in sent["InstanceTypes"]
        ]
    }
    wanted = Demand(
        instances=(
            InstanceCount("t3.medium", 3, is_spot=False, max_count=8),
            InstanceCount("m5.xlarge", 1, is_spot=True, max_count=2),
            InstanceCount("g5.xlarge", 1, is_spot=False, max_count=1),
            InstanceCount("t3.medium", 0, is_spot=True),
        )
    )
    found = check(api, wanted)
    assert {
        name: (quota.needed, quota.used, quota.limit, quota.needed_at_maximum) for name, quota in found.items()
    } == {
        ON_DEMAND: (6, 4, 20, 16),
        SPOT: (4, 5, 10, 8),
        "vCPUs of on-demand G and VT instances": (4, 0, 8, 4),
    }
    assert (found[ON_DEMAND].sufficient, found[ON_DEMAND].room_to_grow) == (True, True)
    assert (found[SPOT].sufficient, found[SPOT].room_to_grow) == (True, False)
    assert "--service-code ec2 --quota-code L-34B43A08 --desired-value 13`" in found[SPOT].hint
    assert api.named("ec2:DescribeInstances")[0]["Filters"] == [
        {"Name": "instance-state-name", "Values": ["pending", "running"]}
    ]


@pytest.mark.parametrize(
    ("before", "wanted", "expected"),
    [
        # Nothing is added: nothing is said.
        ((3, 5), (3, 5), None),
        ((3, 5), (2, 4), None),
        # More at the start, at the greatest size, or both.
        ((3, 5), (4, 5), (2, 4)),
        ((3, 5), (3, 6), (0, 6)),
        ((3, 5), (1, 6), (0, 6)),
        ((3, 5), (4, 4), (2, 2)),
    ],
)
def test_processors_of_an_update(
    before: tuple[int, int], wanted: tuple[int, int], expected: tuple[int, int] | None
) -> None:
    old, new = (
        Demand(instances=(InstanceCount("t3.medium", n, is_spot=False, max_count=most),))
        for n, most in (before, wanted)
    )
    found = check(account(LIMITS, ec2__DescribeInstances=running(("t3.medium", False))), new, old)
    assert {name: (quota.needed, quota.needed_at_maximum) for name, quota in found.items()} == (
        {ON_DEMAND: expected} if expected else {}
    )


def test_processors_of_a_new_group_without_instances_are_asked_about_all_the_same() -> None:
    wanted = Demand(instances=(InstanceCount("t3.medium", 0, is_spot=False, max_count=11),))
    quota = check(account(LIMITS), wanted)[ON_DEMAND]
    assert (quota.needed, quota.needed_at_maximum, quota.sufficient, quota.room_to_grow) == (0, 22, True, False)


def test_a_market_without_quota_and_types_of_no_family_are_named() -> None:
    unknown = "it is not known which quota applies"
    wanted = Demand(
        instances=(
            InstanceCount("hpc6a.48xlarge", 1, is_spot=True, max_count=2),
            InstanceCount("mac2.metal", 1, is_spot=False),
            InstanceCount("", 1, is_spot=False),
            InstanceCount("other9.large", 0, is_spot=False),
        )
    )
    found = check(account(), wanted)
    assert {name: (quota.needed, quota.limit, quota.sufficient, quota.hint) for name, quota in found.items()} == {
        "vCPUs of spot HPC instances": (96, None, None, unknown),
        "vCPUs of ": (0, None, None, unknown),
        "vCPUs of mac2.metal": (0, None, None, unknown),
    }
    assert (found["vCPUs of spot HPC instances"].used, found["vCPUs of spot HPC instances"].needed_at_maximum) == (
        0,
        192,
    )
    # An update says it of new types only, and of what it adds.
    assert check(account(), wanted, wanted) == {}
    grown = Demand(instances=(InstanceCount("hpc6a.48xlarge", 2, is_spot=True, max_count=3),))
    [quota] = check(
        account(), grown, Demand(instances=(InstanceCount("hpc6a.48xlarge", 1, is_spot=True, max_count=2),))
    ).values()
    assert (quota.needed, quota.needed_at_maximum) == (96, 192)


def test_processors_that_cannot_be_counted_are_unknown() -> None:
    wanted = Demand(
        instances=(InstanceCount("t3.medium", 1, is_spot=False), InstanceCount("mac2.metal", 1, is_spot=False))
    )
    found = check(account(ec2__DescribeInstances=DENIED), wanted)
    assert list(found) == ["vCPUs", "vCPUs of mac2.metal"]
    assert (found["vCPUs"].needed, found["vCPUs"].used, found["vCPUs"].sufficient) == (0, None, None)
    assert "not allowed to call DescribeInstances" in found["vCPUs"].hint


def test_many_types_are_asked_for_a_hundred_at_a_time() -> None:
    kinds = [f"m{number}.large" for number in range(101)]
    api = account(ec2__DescribeInstances=running(*((kind, False) for kind in kinds)))
    SIZES.update(dict.fromkeys(kinds, 1))
    wanted = Demand(instances=(InstanceCount("t3.medium", 1, is_spot=False),))
    assert check(api, wanted)[ON_DEMAND].used == 101
    assert sorted(len(sent["InstanceTypes"]) for sent in api.named("ec2:DescribeInstanceTypes")) == [1, 1, 1, 100]


CODES = [
    ("a1.large", "L-1216C47A", "L-34B43A08"), ("c7g.large", "L-1216C47A", "L-34B43A08"),
    ("g5.xlarge", "L-DB2E81BA", "L-3819A6DF"), ("gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"),
    ("vt1.3xlarge", "L-DB2E81BA", "L-3819A6DF"), ("p4d.24xlarge", "L-417A185B", "L-7212CCBC"),
    ("f1.2xlarge", "L-74FC7D96", "L-88CF9481"), ("x2idn.16xlarge", "L-7295265B", "L-E3A00192"),
    ("inf2.xlarge", "L-1945791B", "L-B5D1601B"), ("trn1.2xlarge", "L-2C3B7624", "L-6B0D517C"),
    ("dl1.24xlarge", "L-6E869C2A", "L-85EED4F7"), ("hpc6a.48xlarge", "L-F7808C92", ""),
    ("u-6tb1.metal", "L-43DA4232", ""), ("im4gn.large", "L-1216C47A", "L-34B43A08"),
    ("is4gen.large", "L-1216C47A", "L-34B43A08"), ("z1d.large", "L-1216C47A", "L-34B43A08"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "on_demand", "spot"), CODES)
def test_the_quota_of_a_type_and_a_market(kind: str, on_demand: str, spot: str) -> None:
    """By "Amazon EC2 instance type quotas", Amazon EC2 Instance Types guide."""
    api = account()
    api.given["ec2:DescribeInstanceTypes"] = {
        "InstanceTypes": [{"InstanceType": kind, "VCpuInfo": {"DefaultVCpus": 1}}]
    }
    check(api, Demand(instances=(InstanceCount(kind, 1, is_spot=False), InstanceCount(kind, 1, is_spot=True))))
    asked = [(sent["ServiceCode"], sent["QuotaCode"]) for sent in api.named("service-quotas:GetServiceQuota")]
    assert asked == [("ec2", code) for code in (on_demand, spot) if code]


def test_clients_are_made_in_one_thread() -> None:
    """boto3's clients may be shared between threads; making them may not."""
    api, makers = account(), dict[str, str]()

    class Session:
        def client(self, service: str, **_: Any) -> Any:
            makers[service] = threading.current_thread().name
            return api.account.client(service)

    other = dataclasses.replace(api.account, session=Session(), _clients={})
    everything = dict.fromkeys((kind for kind, *_ in COUNTED), 1) | {"AWS::IAM::Role": 1}
    checks.check_quotas(
        other, Demand(count_by_resource_type=everything, instances=(InstanceCount("t3.medium", 1, is_spot=False),))
    )
    assert makers == dict.fromkeys(
        ("autoscaling", "ec2", "elbv2", "iam", "service-quotas"), threading.current_thread().name
    )
