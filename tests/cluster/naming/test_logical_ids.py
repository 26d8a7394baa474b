"""Logical ids: whatever is made is parsed, and every id of every template is known."""

from __future__ import annotations

import string
from collections.abc import Iterable
from typing import get_args

import pytest
from golden_cases import CASES, load_case
from hypothesis import given
from hypothesis import strategies as st

from cfngen.cluster.iam.service_accounts import ServiceAccount
from cfngen.cluster.load import parse
from cfngen.cluster.naming import logical_ids
from cfngen.cluster.naming.id_form import pascal
from cfngen.cluster.naming.identity_ids import ServiceAccountRoleId
from cfngen.cluster.naming.logical_ids import (
    FORMS,
    SINGLE_IDS,
    ExistingPartId,
    ImageId,
    LogicalId,
    MasterId,
    MasterPart,
    NodeGroupId,
    NodeGroupPart,
    ProgramId,
    RecordedId,
    SingleId,
    is_auto_scaling_group,
    is_node_group_stack,
)
from cfngen.cluster.naming.network_ids import (
    SECURITY_GROUP_ROLES,
    RouteId,
    RuleId,
    SecurityGroupId,
    SubnetId,
    SubnetPart,
    VpcRangeId,
    ZoneId,
    is_subnet_parameter,
    source_id,
    zone_id,
)
from cfngen.templates import generate

ZONES = [
    *(f"us-west-2{letter}" for letter in string.ascii_lowercase),
    "us-west-2-lax-1a",
    "us-west-2-lax-1b",
    "us-west-2-phx-2a",
]


SOURCES = ["10.0.0.0/8", "203.0.113.7/32", "0.0.0.0/0", "pl-0123456789abcdef0"]

group_names = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True)
letters = st.sampled_from("abcde")
digests = st.text("0123456789abcdef", min_size=12, max_size=12)
zones = st.from_regex(r"us-west-2(-[a-z]{3}-[0-9])?[a-z]", fullmatch=True).map(zone_id)
roles = st.sampled_from(SECURITY_GROUP_ROLES)
rule_roles = st.sampled_from([*SECURITY_GROUP_ROLES, "Bastion"])
programs = st.builds(
    ProgramId,
    st.one_of(
        st.just("Master"), letters.map(logical_ids.master_prefix), group_names.map(logical_ids.node_group_prefix)
    ),
    digests,
)
networks = st.ip_addresses(v=4).flatmap(lambda address: st.integers(0, 32).map(lambda size: f"{address}/{size}"))
prefix_lists = st.text("0123456789abcdef", min_size=8, max_size=17).map(lambda digits: f"pl-{digits}")
sources = st.sampled_from(["Masters", "Nodes", "LoadBalancer", "Bastion", "AllowedCidr"]) | (
    networks | prefix_lists
).map(source_id)
made: st.SearchStrategy[LogicalId] = st.one_of(
    st.builds(SingleId, st.sampled_from(sorted(SINGLE_IDS))),
    st.builds(MasterId, letters, st.sampled_from(get_args(MasterPart))),
    st.builds(NodeGroupId, group_names.map(pascal), st.sampled_from(get_args(NodeGroupPart))),
    programs,
    st.builds(SubnetId, zones, st.sampled_from(get_args(SubnetPart))),
    st.builds(ZoneId, zones),
    st.builds(VpcRangeId, networks),
    st.builds(
        RouteId,
        networks | prefix_lists,
        st.just("RouteTable") | zones.map(lambda zone: f"PrivateRouteTable{zone}") | st.just("PrivateRouteTable"),
    ),
    st.builds(RuleId, rule_roles, st.sampled_from(["", "Api", "Ssh", "DnsTcp", "NodeExporterMetrics"]), sources),
    st.builds(SecurityGroupId, roles, st.integers(1, 60), st.sampled_from(["", "Id"])),
    st.builds(ExistingPartId.of, st.sampled_from(["SecurityGroup", "HostedZone"]), st.text()),
    st.builds(RecordedId, st.sampled_from(["VpcId", "SubnetAId", "NatGatewayBId", "ExistingHostedZoneAEE762C9"])),
    st.builds(
        ServiceAccountRoleId.of,
        group_names,
        st.from_regex(r"[a-z0-9]{1,6}([.-][a-z0-9]{1,6}){0,2}", fullmatch=True),
        st.text("0123456789abcdef", min_size=8, max_size=8),
    ),
    st.builds(ImageId, st.sampled_from(["Master", "Node", "Bastion"]), group_names.map(pascal)),
)


def ids_of(template: object) -> Iterable[str]:
    sections = template if isinstance(template, dict) and "Resources" in template else {}
    for section in ("Parameters", "Resources", "Outputs"):
        yield from sections.get(section, {})


@pytest.fixture(scope="module")
def golden_ids() -> frozenset[str]:
    """Every id of every golden case."""
    return frozenset(
        name for case in CASES for document in generate(load_case(case).cluster) for name in ids_of(document.body)
    )


@pytest.mark.drill
def test_every_id_of_every_golden_case_is_known(golden_ids: frozenset[str]) -> None:
    """Exactly one form knows each id and makes it again, and there is an id of every form."""
    assert len(golden_ids) > 100
    for name in golden_ids:
        parsed = logical_ids.parse(name)
        assert parsed is not None, name
        assert str(parsed) == name
        assert [form for form in FORMS if form.parse(name)] == [type(parsed)], name
    # Only templates that are deployed keep a cluster file.
    assert {type(logical_ids.parse(name)) for name in golden_ids} == {*FORMS} - {logical_ids.ClusterFileId}


def test_every_id_of_what_a_cluster_has_once_is_used(golden_ids: frozenset[str]) -> None:
    subnets = [
        {"zone": f"us-west-2{letter}", "id": f"subnet-0123456789abcde{letter}", "cidr": f"10.20.{index}.0/24"}
        for index, letter in enumerate("abc")
    ]
    network = {
        "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
        "subnets": subnets,
        "routeTable": "rtb-0123456789abcdef0",
        "serviceCidr": "10.250.0.0/16",
    }
    groups = [{"name": "nodes", "publicIp": False}]
    internal = {"network": network, "controlPlane": {"count": 3}, "api": {"public": False}, "nodeGroups": groups}
    own_bucket = {"etcd": {"backups": {"bucket": "own-bucket"}}}
    documents = [*generate(parse(internal)), *generate(parse(own_bucket))]
    assert {*golden_ids, *(name for document in documents for name in ids_of(document.body))} >= SINGLE_IDS


@given(made)
def test_what_is_made_is_parsed_again(logical_id: LogicalId) -> None:
    assert logical_ids.parse(str(logical_id)) == logical_id
    assert str(logical_id).isalnum()


@given(made, made)
def test_different_parts_make_different_ids(one: LogicalId, other: LogicalId) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(st.text(string.ascii_letters + string.digits))
def test_what_is_parsed_is_made_again(name: str) -> None:
    parsed = logical_ids.parse(name)
    assert parsed is None or str(parsed) == name


@given(made, st.sampled_from([" ", "-", "\n", "x", "_"]))
def test_text_around_an_id_is_none_of_its_own(logical_id: LogicalId, more: str) -> None:
    assert logical_ids.parse(f"{more}{logical_id}") is None
    assert logical_ids.parse(f"{logical_id}\n") is None


@pytest.mark.parametrize("parts", [get_args(MasterPart), get_args(NodeGroupPart)])
def test_no_part_ends_like_another_one(parts: tuple[str, ...]) -> None:
    # Otherwise a node group could be named so that its ids are read as those of another one.
    assert not [(part, other) for part in parts for other in parts if part != other and part.endswith(other)]


@given(group_names)
def test_a_node_group_is_known_by_its_stack_and_its_group(name: str) -> None:
    stack, group = NodeGroupId(name, "Stack"), NodeGroupId(name, "AutoScalingGroup")
    assert is_node_group_stack(str(stack))
    assert not is_node_group_stack(str(group))
    assert is_auto_scaling_group(str(group))
    assert NodeGroupId.parse(str(stack)) == NodeGroupId(pascal(name), "Stack")


@pytest.mark.parametrize("letter", "abcde")
def test_a_master_is_known_by_each_of_its_parts(letter: str) -> None:
    volume = MasterId.parse(f"Master{letter.upper()}Volume")
    assert volume == MasterId(letter, "Volume")
    assert str(volume.sibling("AutoScalingGroup")) == f"Master{letter.upper()}AutoScalingGroup"
    assert is_auto_scaling_group(f"Master{letter.upper()}AutoScalingGroup")


def test_a_program_tells_its_node_group() -> None:
    assert ProgramId("NodeGroupGpu", "0123456789ab").group == "Gpu"
    assert ProgramId("NodeGroupGpu", "0123456789ab").letter == ""
    assert ProgramId("Master", "0123456789ab").group == ""
    assert ProgramId("MasterA", "0123456789ab").letter == "a"


def test_the_role_of_a_service_account_has_an_id_that_cloudformation_takes() -> None:
    account = ServiceAccount("n" * 63, ".".join(["a" * 50] * 5)[:253])
    logical_id = ServiceAccountRoleId.of(*account, account.digest)
    assert len(str(logical_id)) <= 255
    assert ServiceAccountRoleId.parse(str(logical_id)) == logical_id


def test_accounts_that_read_alike_have_different_roles() -> None:
    accounts = [ServiceAccount("a", "b-c"), ServiceAccount("a-b", "c"), ServiceAccount("a", "b.c")]
    assert len({str(ServiceAccountRoleId.of(*account, account.digest)) for account in accounts}) == len(accounts)


@pytest.mark.parametrize("zone", ZONES)
def test_a_subnet_tells_its_zone(zone: str) -> None:
    for part in get_args(SubnetPart):
        subnet = SubnetId.parse(str(SubnetId(zone_id(zone), part)))
        assert subnet is not None
        assert subnet.zone_in("us-west-2") == zone
        assert is_subnet_parameter(str(subnet)) == (part == "Id")


def test_each_zone_has_a_subnet_of_its_own() -> None:
    assert len({zone_id(zone) for zone in ZONES}) == len(ZONES)


@pytest.mark.parametrize("name", ["SubnetAddress", "SubnetLaxA", "VpcId", "SubnetId", "MySubnetAId", "ZoneABC"])
def test_other_ids_are_no_subnets(name: str) -> None:
    assert SubnetId.parse(name) is None
    assert ZoneId.parse(name) is None
    assert not is_subnet_parameter(name)


@pytest.mark.parametrize("text", SOURCES)
def test_a_rule_tells_its_range(text: str) -> None:
    rule = RuleId.parse(str(RuleId("Master", "Api", source_id(text))))
    assert rule is not None
    assert rule.from_outside
    assert rule.origin == text


@pytest.mark.parametrize("source", ["Masters", "Nodes", "LoadBalancer", "Bastion"])
def test_a_rule_between_security_groups_has_no_range(source: str) -> None:
    rule = RuleId("Master", "Kubelet", source)
    assert not rule.from_outside
    assert rule.origin == ""


def test_what_the_templates_ask_for_is_read_again() -> None:
    vpc = {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"}
    zones = ["us-west-2a", "us-west-2-lax-1a"]
    subnets = [
        {"zone": zone, "id": f"subnet-0123456789abcdef{index}", "cidr": f"10.20.{index}.0/24"}
        for index, zone in enumerate(zones)
    ]
    network = {"vpc": vpc, "subnets": subnets, "routeTable": "rtb-0123456789abcdef0", "serviceCidr": "10.250.0.0/16"}
    groups = [{"name": "all", "zones": zones, "rootVolume": {"type": "gp2"}}]
    documents = generate(parse({"network": network, "nodeGroups": groups}))
    [root] = [document.body for document in documents if document.name == "cluster"]
    assert [name for name in root["Parameters"] if is_subnet_parameter(name)] == ["SubnetAId", "SubnetLax1AId"]


def test_the_load_balancer_of_several_masters_is_in_no_local_zone() -> None:
    subnets = [{"zone": zone} for zone in ("us-west-2a", "us-west-2b", "us-west-2c", "us-west-2-lax-1a")]
    groups = [{"name": "edge", "zones": ["us-west-2-lax-1a"]}]
    cluster = parse({"network": {"subnets": subnets}, "controlPlane": {"count": 3}, "nodeGroups": groups})
    [master] = [each.body for each in generate(cluster) if each.name == "master"]
    balancer = master["Resources"]["ApiLoadBalancer"]["Properties"]
    assert balancer["Subnets"] == [{"Ref": f"Subnet{letter}Id"} for letter in "ABC"]
