"""What the check of an existing network says about VPC, routes and gateways: both ways, in the emulator's EC2."""

from __future__ import annotations

from typing import Any

import pytest
from answers import DENIED, Answers
from cloud import Cloud
from existing_network import EVERYWHERE, REGION, ExistingNetwork

from cfngen.cluster.load import parse
from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.aws.network import NetworkFacts
from cfngen.deploy.preflight.findings import Finding, Severity
from cfngen.deploy.preflight.network import checks
from cfngen.deploy.preflight.network.situation import Situation


@pytest.fixture
def account(cloud: Cloud) -> Account:
    return connect(cloud.session, REGION, clock=cloud.clock, attempts=1)


@pytest.fixture
def public(account: Account) -> ExistingNetwork:
    return ExistingNetwork(account)


@pytest.fixture
def private(account: Account) -> ExistingNetwork:
    return ExistingNetwork(account, "private")


def test_a_public_network_is_in_order(public: ExistingNetwork) -> None:
    assert public.found() == []
    assert {finding.severity for finding in public.check().findings} == {Severity.OK}


def test_a_private_network_is_in_order(private: ExistingNetwork) -> None:
    assert private.found() == []


def test_a_vpc_that_is_not_there_is_the_only_finding(public: ExistingNetwork) -> None:
    public.network["vpc"]["id"] = "vpc-00000001"
    [finding] = public.check().findings
    assert (finding.key, finding.text) == ("network.vpc.id", "there is no VPC vpc-00000001 in us-west-2")


def test_without_an_existing_vpc_there_is_nothing_to_check(public: ExistingNetwork) -> None:
    public.network = {}
    assert (public.check().vpc, public.check().findings) == ("", ())


def test_another_range_of_the_vpc_is_a_problem(public: ExistingNetwork) -> None:
    public.network["vpc"]["cidr"] = "10.20.0.0/17"
    finding = public.only()
    assert finding.key == "network.vpc.cidr"
    assert finding.text == f"{public.vpc} has the range 10.20.0.0/16 and not 10.20.0.0/17"
    assert finding.remedy == "set it to 10.20.0.0/16"
    public.ec2.associate_vpc_cidr_block(VpcId=public.vpc, CidrBlock="10.21.0.0/16")
    assert public.only().text == f"{public.vpc} has the ranges 10.20.0.0/16 and 10.21.0.0/16 and not 10.20.0.0/17"


def test_a_vpc_without_dns_support_is_a_problem(public: ExistingNetwork) -> None:
    for attribute in ("EnableDnsHostnames", "EnableDnsSupport"):
        public.ec2.modify_vpc_attribute(VpcId=public.vpc, **{attribute: {"Value": False}})
    [finding] = public.check().problems
    assert "no DNS support" in finding.text
    assert finding.commands[0].endswith("--enable-dns-support")


def test_a_vpc_without_dns_host_names_is_a_warning(public: ExistingNetwork) -> None:
    public.ec2.modify_vpc_attribute(VpcId=public.vpc, EnableDnsHostnames={"Value": False})
    finding = public.only()
    assert (finding.severity, "no DNS host names" in finding.text) == (Severity.WARNING, True)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("id", "subnet-00000001", "there is no subnet subnet-00000001"),
        ("zone", f"{REGION}c", f"is in {REGION}a and not in {REGION}c"),
        ("cidr", "10.20.0.0/25", "has the range 10.20.0.0/24 and not 10.20.0.0/25"),
    ],
)
def test_a_subnet_that_is_not_what_the_file_says_is_a_problem(
    public: ExistingNetwork, key: str, value: str, says: str
) -> None:
    public.network["subnets"][0][key] = value
    [finding] = public.check().problems
    assert finding.key == "network.subnets[0].id"
    assert says in finding.text


def test_a_public_subnet_without_default_route_is_a_problem(public: ExistingNetwork) -> None:
    public.drop_default_route()
    first, second = public.found()
    assert (first.key, second.key) == ("network.subnets[0].id", "network.subnets[1].id")
    assert "has no default route" in first.text
    [command] = first.commands
    assert f"--route-table-id {public.public_table} --destination-cidr-block {EVERYWHERE}" in command
    assert command.endswith(f"--gateway-id {public.gateway}")


def test_a_gateway_that_is_not_attached_is_a_problem(public: ExistingNetwork) -> None:
    public.ec2.detach_internet_gateway(InternetGatewayId=public.gateway, VpcId=public.vpc)
    assert all(public.gateway in finding.text for finding in public.check().problems)
    assert len(public.check().problems) == 2


def test_a_route_to_a_gateway_that_was_deleted_is_a_problem(private: ExistingNetwork) -> None:
    private.ec2.delete_nat_gateway(NatGatewayId=private.nat_gateway)
    assert private.check().problems
    assert all(private.nat_gateway in finding.text for finding in private.check().problems)


def test_nodes_without_public_addresses_cannot_use_an_internet_gateway(public: ExistingNetwork) -> None:
    public.file["nodeGroups"] = [{"name": "nodes", "publicIp": False, "zones": [f"{REGION}a"]}]
    finding = public.only()
    assert (finding.severity, finding.key) == (Severity.PROBLEM, "nodeGroups[0].publicIp")
    assert "have no public addresses" in finding.text


def test_masters_without_public_addresses_cannot_use_an_internet_gateway(public: ExistingNetwork) -> None:
    public.file["api"] = {"public": False}
    finding = public.only()
    assert finding.key == "api.public"
    assert finding.text.startswith("the master in it has no public address, and the default route of ")
    assert finding.text.endswith(": it has no way out")


def test_elastic_ips_of_masters_need_an_internet_gateway(private: ExistingNetwork) -> None:
    private.network["topology"] = "public"
    private.file = {"nodeGroups": [{"name": "nodes", "publicIp": False}]}
    [finding] = private.check().problems
    assert finding.key == "network.subnets[0].id"
    assert "so the master's Elastic IP in it is not reached" in finding.text


def test_the_bastions_elastic_ip_needs_an_internet_gateway(private: ExistingNetwork) -> None:
    private.network["topology"] = "public"
    private.file = {
        "api": {"public": False},
        "ssh": {"allowedCidrs": ["203.0.113.0/24"], "keyName": "operator"},
        "bastion": {"zone": f"{REGION}b", "allowedCidrs": ["203.0.113.0/24"]},
        "nodeGroups": [{"name": "nodes", "publicIp": False}],
    }
    [finding] = private.check().problems
    assert finding.key == "network.subnets[1].id"
    assert "so the bastion's Elastic IP in it is not reached" in finding.text


def test_a_public_cluster_behind_a_nat_gateway_is_in_order(private: ExistingNetwork) -> None:
    private.network["topology"] = "public"
    private.file = {"api": {"public": False}, "nodeGroups": [{"name": "nodes", "publicIp": False}]}
    assert private.check().problems == ()


def test_public_addresses_behind_a_nat_gateway_are_a_warning(private: ExistingNetwork) -> None:
    private.network["topology"] = "public"
    private.file = {"api": {"public": False}}
    assert private.check().problems == ()
    assert "nodeGroups[0].publicIp" in {finding.key for finding in private.check().warnings}


def test_private_instances_cannot_use_an_internet_gateway(private: ExistingNetwork) -> None:
    private.drop_default_route()
    private.route(private.table_of_instances, GatewayId=private.gateway)
    first, _ = private.found()
    assert f"leads to the internet gateway {private.gateway}" in first.text
    assert "--nat-gateway-id NAT_GATEWAY" in first.commands[0]


def test_a_transit_gateway_is_a_way_out(private: ExistingNetwork) -> None:
    transit = private.ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]
    private.ec2.create_transit_gateway_vpc_attachment(
        TransitGatewayId=transit, VpcId=private.vpc, SubnetIds=private.subnets
    )
    private.drop_default_route()
    private.route(private.table_of_instances, TransitGatewayId=transit)
    assert private.found() == []


def test_a_nat_gateway_without_a_way_out_is_a_problem(private: ExistingNetwork) -> None:
    private.drop_default_route(private.public_table)
    first, *_ = private.check().problems
    assert f"{private.nat_gateway} is in {private.public_subnet}, which has no route" in first.text


def test_the_route_table_of_a_subnet_to_be_created_is_judged(private: ExistingNetwork) -> None:
    private.network |= {
        "nat": "none",
        "endpoints": {"create": False},
        "subnets": [{"zone": f"{REGION}a", "cidr": "10.20.32.0/24", "routeTable": private.public_table}],
    }
    finding = private.only()
    assert finding.key == "network.subnets[0].routeTable"
    assert "which instances without public addresses cannot use" in finding.text


def test_a_public_subnet_without_a_way_out_is_a_problem_once(private: ExistingNetwork) -> None:
    closed = private.subnet("a", "10.20.201.0/26", private.table())
    subnet = {"zone": f"{REGION}a", "cidr": "10.20.32.0/24", "public": {"id": closed, "cidr": "10.20.201.0/26"}}
    private.network |= {"subnets": [{**subnet, "natGateway": private.nat_gateway}], "nat": "single"}
    [finding] = private.check().problems
    assert finding.key == "network.subnets[0].public.id"
    assert "does not lead to an internet gateway" in finding.text
    assert finding.commands


def test_the_target_of_a_route_is_judged(private: ExistingNetwork) -> None:
    public = {"id": private.public_subnet, "cidr": "10.20.200.0/26"}
    subnet = {"zone": f"{REGION}a", "cidr": "10.20.32.0/24", "natGateway": private.nat_gateway, "public": public}
    route = {"destination": "192.168.0.0/16", "transitGateway": "tgw-0123456789abcdef0", "tables": "private"}
    private.network |= {"subnets": [subnet], "nat": "single", "routes": [route]}
    finding = private.only()
    assert finding.key == "network.routes[0].transitGateway"
    assert "there is no transit gateway tgw-0123456789abcdef0" in finding.text


def test_a_nat_gateway_of_the_file_that_is_not_available_is_a_problem(private: ExistingNetwork) -> None:
    subnet = {
        "zone": f"{REGION}a",
        "cidr": "10.20.32.0/24",
        "natGateway": private.nat_gateway,
        "public": {"id": private.public_subnet, "cidr": "10.20.200.0/26"},
    }
    private.network |= {"subnets": [subnet], "nat": "single"}
    assert private.found() == []
    private.ec2.delete_nat_gateway(NatGatewayId=private.nat_gateway)
    assert [finding.key for finding in private.found()] == ["network.subnets[0].natGateway"]


def test_a_range_that_is_taken_is_a_problem(private: ExistingNetwork) -> None:
    subnet = {"zone": f"{REGION}a", "cidr": "10.20.0.128/25", "routeTable": private.table_of_instances}
    private.network |= {"nat": "none", "endpoints": {"create": False}, "subnets": [subnet]}
    finding = private.only()
    assert finding.key == "network.subnets[0].cidr"
    assert finding.text == f"10.20.0.128/25 is not free: {private.subnets[0]} has 10.20.0.0/24"


def test_subnets_of_vpc_routes_share_the_table_that_the_file_names(account: Account) -> None:
    network = ExistingNetwork(account, plugin="vpc-routes")
    unnamed = network.only()
    assert (unnamed.severity, unnamed.remedy) == (Severity.WARNING, f"set it to {network.public_table}")
    network.network["routeTable"] = network.public_table
    assert network.found() == []
    other = network.table()
    network.route(other, GatewayId=network.gateway)
    network.network["routeTable"] = other
    finding = network.only()
    assert (finding.severity, finding.key) == (Severity.PROBLEM, "network.routeTable")
    assert f"{network.subnets[0]} uses {network.public_table}" in finding.text


def test_all_that_may_not_be_read_is_named_and_nothing_that_depends_on_it_is_in_order(aws: Answers) -> None:
    aws.given["ec2:DescribeVpcs"] = {"Vpcs": [{"VpcId": "vpc-00000001", "CidrBlock": "10.20.0.0/16"}]}
    aws.otherwise = DENIED
    network: dict[str, Any] = {
        "vpc": {"id": "vpc-00000001", "cidr": "10.20.0.0/16"},
        "subnets": [{"cidr": "10.20.0.0/24"}],
    }
    network["plugin"], network["routes"] = "cilium", [{"destination": "192.168.0.0/16", "vpnGateway": "vgw-00000001"}]
    findings = checks.check_network(aws.account, parse({"network": network}), lambda message: None).findings
    unread = [finding.text.partition(" cannot be read")[0] for finding in findings if finding.check == "reading"]
    assert sorted(unread) == [
        "enableDnsHostnames",
        "enableDnsSupport",
        *(f"the list of {kind}" for kind in (
            "NAT gateways", "VPC endpoints", "instances", "internet gateways", "network ACLs", "network interfaces",
            "peering connections", "route tables", "security groups", "subnets",
        )),
        "what the cluster file names",
    ]  # fmt: skip
    in_order = {finding.check for finding in findings if finding.severity is Severity.OK}
    assert in_order == {"vpc", "range"}


INTERFACES, ROUTES, RULES = "L-DF5E4CA3", "L-93826ACB", "L-0EA8095F"
OF_TABLE, OF_GROUP = "Routes per route table (rtb-00000001)", "Inbound or outbound rules per security group"
ENOUGH = {INTERFACES: 26, ROUTES: 23, RULES: 80}


# The account has five interfaces, the table two routes; of one master and of three to twenty nodes each adds one.
@pytest.mark.parametrize(
    ("code", "limit", "severity", "name", "says"),
    [
        (
            INTERFACES,
            25,
            Severity.WARNING,
            "Network interfaces per Region",
            "5 are used of 25, and the cluster needs 21",
        ),
        (INTERFACES, 9, Severity.WARNING, "Network interfaces per Region", "5 are used of 9, and the cluster needs 21"),
        (INTERFACES, 8, Severity.PROBLEM, "Network interfaces per Region", "5 are used of 8, and the cluster needs 4"),
        (ROUTES, 22, Severity.WARNING, OF_TABLE, "2 are used of 22, and the cluster needs 21"),
        (ROUTES, 6, Severity.WARNING, OF_TABLE, "2 are used of 6, and the cluster needs 21"),
        (ROUTES, 5, Severity.PROBLEM, OF_TABLE, "2 are used of 5, and the cluster needs 4"),
        (RULES, 79, Severity.PROBLEM, OF_GROUP, "0 are used of 79, and the cluster needs 80"),
    ],
)
def test_quotas_of_networks_have_to_suffice(
    aws: Answers, code: str, limit: int, severity: Severity, name: str, says: str
) -> None:
    limits = dict(ENOUGH)
    aws.otherwise = None
    aws.given |= {
        "ec2:DescribeVpcs": {"Vpcs": [{"VpcId": "vpc-00000001", "CidrBlock": "10.20.0.0/16"}]},
        "ec2:DescribeRouteTables": {"RouteTables": [{"RouteTableId": "rtb-00000001", "Routes": [{}, {}]}]},
        "ec2:DescribeNetworkInterfaces": {"NetworkInterfaces": [{}] * 5},
        "service-quotas:GetServiceQuota": lambda sent: {"Quota": {"Value": limits[sent["QuotaCode"]]}},
    }
    network = {
        "plugin": "vpc-routes",
        "vpc": {"id": "vpc-00000001", "cidr": "10.20.0.0/16"},
        "subnets": [{"zone": "us-west-2a", "id": "subnet-00000001", "cidr": "10.20.0.0/24"}],
        "routeTable": "rtb-00000001",
        "serviceCidr": "10.250.0.0/16",
        "quotas": {"rulesPerSecurityGroup": 80},
    }
    cluster = parse({"network": network, "nodeGroups": [{"name": "nodes", "minSize": 3, "maxSize": 20}]})

    def of_quotas() -> list[Finding]:
        findings = checks.check_network(aws.account, cluster, lambda message: None).findings
        return [finding for finding in findings if finding.key == "network.quotas"]

    assert of_quotas() == []
    limits[code] = limit
    [finding] = of_quotas()
    assert (finding.severity, finding.check) == (severity, "quotas")
    assert finding.text.startswith(f"{name}: {says} more")
    assert f"--service-code vpc --quota-code {code} " in finding.remedy


def test_rules_of_a_security_group_are_asked_about_where_the_file_has_more_than_everybody(aws: Answers) -> None:
    aws.otherwise = None
    aws.given["ec2:DescribeVpcs"] = {"Vpcs": [{"VpcId": "vpc-00000001", "CidrBlock": "10.20.0.0/16"}]}
    network: dict[str, Any] = {
        "vpc": {"id": "vpc-00000001", "cidr": "10.20.0.0/16"},
        "subnets": [{"cidr": "10.20.0.0/24"}],
        "plugin": "cilium",
    }
    for rules, asked in ((60, False), (61, True)):
        cluster = parse({"network": {**network, "quotas": {"rulesPerSecurityGroup": rules}}})
        checks.check_network(aws.account, cluster, lambda message: None)
        codes = {sent["QuotaCode"] for sent in aws.named("service-quotas:GetServiceQuota")}
        assert codes == ({INTERFACES, RULES} if asked else {INTERFACES})


@pytest.mark.parametrize(("name", "silent"), [
    ("endpoints", {"endpoints"}),
    ("foreign", {"objects"}),
    ("has_dns_host_names", {"dns"}),
    ("has_dns_support", {"dns"}),
    ("interfaces", {"master-addresses"}),
    ("internet_gateways", {"routes"}),
    ("nat_gateways", {"routes", "nat-gateways"}),
    ("network_acls", {"network-acls"}),
    ("own_instances", set()),
    ("peerings", {"overlaps"}),
    ("route_tables", {"routes", "nat-gateways", "pod-routes", "overlaps"}),
    ("security_groups", {"endpoints", "security-groups", "security-group-tags"}),
    ("subnets", {"free-ranges", "room"}),
])  # fmt: skip
def test_a_check_without_what_it_judges_says_nothing_of_order(
    monkeypatch: pytest.MonkeyPatch, name: str, silent: set[str]
) -> None:
    all_in_order = tuple(check._replace(applies=lambda _: True, find=lambda _: ()) for check in checks.CHECKS)
    monkeypatch.setattr(checks, "CHECKS", all_in_order)
    situation = Situation(
        parse({}), REGION, "vpc-1", {}, (), NetworkFacts(vpc={"VpcId": "vpc-1"}), unread=((name, "no"),)
    )
    findings = checks.judge(situation)
    in_order = {finding.check for finding in findings if finding.severity is Severity.OK}
    assert {check.name for check in all_in_order} - in_order == silent
    assert [finding.check for finding in findings if finding.severity is Severity.WARNING] == ["reading"]
