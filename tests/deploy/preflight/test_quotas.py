"""Whether a new cluster fits into the account's quotas, and silence of nobody where that cannot be found out."""

from __future__ import annotations

import pytest

from cfngen.cluster.load import parse
from cfngen.deploy.aws.account import connect
from cfngen.deploy.plan.publishing.publish import assign_template_urls
from cfngen.deploy.preflight.quotas import checks
from cfngen.deploy.preflight.quotas.demand import count_demand
from cfngen.deploy.preflight.quotas.instance_counts import InstanceCount
from cfngen.deploy.preflight.quotas.vcpus import check_vcpu_quotas, family_of
from cfngen.templates import generate

STANDARD = "vCPUs of on-demand standard (A, C, D, H, I, M, R, T, Z) instances"
SPOT = "vCPUs of spot standard (A, C, D, H, I, M, R, T, Z) instances"


# "Amazon EC2 instance type quotas" of Amazon EC2's instance types: types, name and codes of the quotas of vCPUs.
VCPU_QUOTAS = [
    (
        "a1 c7g d3 h1 i4i im4gn is4gen m7i r7a t3 z1d",
        "standard (A, C, D, H, I, M, R, T, Z)",
        "L-1216C47A",
        "L-34B43A08",
    ),
    ("g5 gr6 vt1", "G and VT", "L-DB2E81BA", "L-3819A6DF"),
    ("p5", "P", "L-417A185B", "L-7212CCBC"),
    ("f2", "F", "L-74FC7D96", "L-88CF9481"),
    ("x2idn", "X", "L-7295265B", "L-E3A00192"),
    ("inf2", "Inf", "L-1945791B", "L-B5D1601B"),
    ("trn1n", "Trn", "L-2C3B7624", "L-6B0D517C"),
    ("dl1 dl2q", "DL", "L-6E869C2A", "L-85EED4F7"),
    ("hpc7a", "HPC", "L-F7808C92", ""),
    ("u-6tb1 u7i-12tb", "high memory", "L-43DA4232", ""),
]


@pytest.mark.parametrize(("types", "name", "on_demand", "spot"), VCPU_QUOTAS)
def test_a_family_of_instance_types_has_its_quotas_of_processors(types, name, on_demand, spot):
    for family in types.split():
        quotas = family_of(f"{family}.large")
        assert (quotas.name, quotas.on_demand_quota_code, quotas.spot_quota_code) == (name, on_demand, spot)


def test_of_an_unknown_family_no_quota_is_known():
    assert [family_of(f"{family}.large") for family in ("mac2", "q1", "gg1", "xm1", "")] == [None] * 5


@pytest.fixture(scope="module")
def documents():
    return generate(parse({}))


@pytest.fixture
def account(cloud):
    return connect(cloud.session, "us-west-2", clock=cloud.clock, attempts=1)


def by_name(found):
    return {each.name: each for each in found}


def of(*groups):
    return generate(parse({"nodeGroups": list(groups)}))


def test_the_default_cluster_takes_ten_processors_and_one_address(documents):
    found = count_demand(documents, {})
    assert sum(instance.count for instance in found.instances) == 5
    assert {instance.instance_type for instance in found.instances} == {"t3.medium"}
    assert found.count_by_resource_type["AWS::EC2::EIP"] == 1
    # Roots of a master and four nodes, and the data volume.
    assert found.gib_by_volume_type == {"gp3": 20 + 4 * 32 + 20}


def test_values_count_instead_of_defaults(documents):
    values = {"NodeGroupNodesMinSize": "2", "NodeGroupNodesInstanceType": "m7i.large", "MasterVolumeSize": "100"}
    found = count_demand(documents, values)
    assert InstanceCount("m7i.large", 2, is_spot=False, max_count=4) in found.instances
    assert found.gib_by_volume_type == {"gp3": 20 + 2 * 32 + 100}


def test_the_uploaded_root_tells_the_same_as_the_generated_one(account, documents):
    uploaded = [
        template.document for template in assign_template_urls(account, documents, cluster="kubernetes", bucket="b")
    ]
    assert count_demand(uploaded, {}) == count_demand(documents, {})


ZONES = [{"zone": f"us-west-2{letter}", "cidr": f"172.20.{number}.0/24"} for number, letter in enumerate("abc")]


def test_the_parts_of_a_private_network_count(account):
    network = {"topology": "private", "nat": "perZone", "plugin": "cilium", "subnets": ZONES}
    found = count_demand(generate(parse({"network": network})), {"ZoneB": "us-west-2d"})
    assert found.nat_gateway_zones == {"A": "us-west-2a", "B": "us-west-2d", "C": "us-west-2c"}
    # Masters have none: only NAT gateways do, and the load balancer has an address in each zone.
    assert (found.count_by_resource_type["AWS::EC2::EIP"], found.public_addresses) == (3, 3)
    assert (found.gateway_endpoints, found.interface_endpoints) == (1, 0)
    named = by_name(checks.check_quotas(account, found))
    assert named["Elastic IPs"].needed == 3
    assert (named["NAT gateways in one zone"].needed, named["NAT gateways in one zone"].limit) == (1, 5)


def test_the_endpoints_of_a_network_without_a_way_out_count(account):
    network = {"topology": "private", "nat": "none", "plugin": "cilium", "subnets": ZONES}
    found = count_demand(generate(parse({"network": network, "api": {"public": False}})), {})
    assert found.count_by_resource_type["AWS::EC2::EIP"] == found.public_addresses == 0
    assert found.interface_endpoints >= 7
    assert found.endpoint_interfaces == 3 * found.interface_endpoints
    endpoints = by_name(checks.check_quotas(account, found))["Gateway endpoints"]
    assert (endpoints.needed, endpoints.limit) == (1, 20)


def test_spot_instances_and_the_desired_size_are_seen():
    group = {
        "name": "batch",
        "instanceType": "m7g.large",
        "minSize": 1,
        "desiredSize": 3,
        "maxSize": 5,
        "spotPrice": "0.05",
    }
    assert InstanceCount("m7g.large", 3, is_spot=True, max_count=5) in count_demand(of(group), {}).instances


def test_an_empty_account_has_room_for_the_default_cluster(account, documents):
    found = checks.check_quotas(account, count_demand(documents, {}))
    assert {each.sufficient for each in found} == {True}
    named = by_name(found)
    assert (named["Elastic IPs"].needed, named["Elastic IPs"].used, named["Elastic IPs"].limit) == (1, 0, 5)
    assert named[STANDARD].needed == 10
    assert named["VPCs"].used == 1  # the default VPC
    # Of masters, of nodes and of the node group; and each VPC brings one of its own.
    assert named["Security groups"].needed == 4
    assert named["gp3 storage (GiB)"].limit == 50 * 1024


def test_nothing_can_be_seen_and_nothing_fails(cloud, documents):
    nothing = {"Effect": "Deny", "Action": "*", "Resource": "*"}
    with cloud.permissions.enforcing({"Version": "2012-10-17", "Statement": [nothing]}) as credentials:
        account = connect(cloud.session_of(credentials), "us-west-2", clock=cloud.clock, attempts=1)
        found = checks.check_quotas(account, count_demand(documents, {}))
    assert {each.sufficient for each in found} == {None}
    assert all(each.hint for each in found)


def test_a_type_that_ec2_does_not_know_is_no_failure(account, documents):
    found = by_name(checks.check_quotas(account, count_demand(documents, {"NodeGroupNodesInstanceType": "t99.medium"})))
    assert found["vCPUs"].sufficient is None
    assert found["vCPUs"].hint
    assert found["VPCs"].sufficient is True


def grown(minimum, maximum, **more):
    return {"api": {"allowedCidrs": ["203.0.113.0/24"]}, "nodeGroups": [
        {"name": "nodes", "minSize": minimum, "maxSize": maximum, **more}
    ]}  # fmt: skip


def test_groups_count_at_the_size_they_start_with_and_at_their_greatest(account):
    found = by_name(checks.check_quotas(account, count_demand(generate(parse(grown(4, 100))), {})))[STANDARD]
    assert (found.needed, found.needed_at_maximum, found.sufficient, found.room_to_grow) == (10, 2 + 200, True, False)
    assert "--desired-value 202" in found.hint
    storage = by_name(
        checks.check_quotas(account, count_demand(generate(parse(grown(4, 200, rootVolume={"size": 500}))), {}))
    )["gp3 storage (GiB)"]
    assert (storage.sufficient, storage.room_to_grow) == (True, False)


def test_further_volumes_of_nodes_count_towards_the_storage():
    plain, more = (
        count_demand(generate(parse(grown(4, 10, volumes=volumes))), {})
        for volumes in ([], [{"size": 100}, {"size": 50, "type": "gp2"}])
    )
    assert more.gib_by_volume_type["gp3"] == plain.gib_by_volume_type["gp3"] + 4 * 100
    assert more.gib_by_volume_type["gp2"] == 4 * 50
    assert more.max_gib_by_volume_type["gp2"] == 10 * 50


def test_of_an_update_only_what_it_adds_counts(account):
    before, after = (count_demand(generate(parse(grown(*sizes))), {}) for sizes in ((4, 4), (6, 8)))
    found = by_name(checks.check_quotas(account, after, before))
    assert set(found) == {STANDARD, "gp3 storage (GiB)"}
    assert (found[STANDARD].needed, found[STANDARD].needed_at_maximum) == (4, 8)
    assert (found["gp3 storage (GiB)"].needed, found["gp3 storage (GiB)"].needed_at_maximum) == (2 * 32, 4 * 32)
    assert checks.check_quotas(account, before, before) == ()
    assert checks.check_quotas(account, before, after) == ()


def masters(*types):
    return [InstanceCount(instance_type, 1, is_spot=False) for instance_type in types]


SMALL, LARGE = "t3.medium", "m5.xlarge"  # of 2 and 4 vCPUs


@pytest.mark.parametrize(
    ("current", "planned", "reserved", "to_reserve", "needed"),
    [
        # A new cluster, and a new master, run in what is reserved for them.
        ([], [SMALL], [], [SMALL], 2),
        ([SMALL], [SMALL, SMALL, SMALL], [SMALL], [SMALL, SMALL, SMALL], 4),
        # Masters that run stay beside what is reserved for those that replace them.
        ([SMALL], [SMALL], [], [SMALL], 2),
        ([SMALL], [SMALL], [SMALL], [SMALL], 0),
        ([SMALL], [SMALL], [SMALL], [], 0),
        ([SMALL], [LARGE], [SMALL], [LARGE], 2 + 4),
        ([SMALL], [LARGE, LARGE, LARGE], [SMALL], [LARGE, LARGE, LARGE], 10 + 4),
        ([LARGE], [SMALL], [LARGE], [SMALL], 2),
    ],
)
def test_what_is_reserved_beside_instances_that_are_to_be_replaced_counts(
    account, current, planned, reserved, to_reserve, needed
):
    quotas = check_vcpu_quotas(
        account,
        *(masters(*planned), masters(*current)),
        planned_reservations=masters(*to_reserve),
        current_reservations=masters(*reserved),
    )
    assert [(quota.name, quota.needed) for quota in quotas] == [(STANDARD, needed)] * bool(needed)


def test_quotas_that_the_cluster_file_counts_on_are_looked_at(cloud, account):
    file = {
        "api": {"allowedCidrs": [f"11.{each}.0.0/16" for each in range(100)]},
        "controlPlane": {"additionalSecurityGroups": [f"sg-0000000{each}" for each in range(5)]},
        "network": {"quotas": {"rulesPerSecurityGroup": 160, "securityGroupsPerInterface": 6}},
    }
    found = by_name(checks.check_quotas(account, count_demand(generate(parse(file)), {})))
    assert found["Rules of one security group (MasterSecurityGroup)"].sufficient is False
    assert found["Security groups of one interface"].sufficient is False
    cloud.moto_extensions.set_quota("vpc", "L-0EA8095F", 160)
    cloud.moto_extensions.set_quota("vpc", "L-2AFB9258", 6)
    found = by_name(checks.check_quotas(account, count_demand(generate(parse(file)), {})))
    assert found["Rules of one security group (MasterSecurityGroup)"].sufficient is True
    assert found["Security groups of one interface"].sufficient is True


def test_prefix_lists_count_as_ec2_says(cloud, account):
    made = cloud.client("ec2").create_managed_prefix_list(
        PrefixListName="office", MaxEntries=70, AddressFamily="IPv4", Entries=[{"Cidr": "203.0.113.0/24"}]
    )["PrefixList"]["PrefixListId"]
    # Of the file's word, five, nothing is left once EC2 is asked.
    file = {"api": {"allowedPrefixLists": [{"id": made, "maxEntries": 5}]}}
    found = by_name(checks.check_quotas(account, count_demand(generate(parse(file)), {})))
    assert found["Rules of one security group (MasterSecurityGroup)"].needed > 70
