"""The clusters of the golden cases, created from their templates in an account that has what they ask for.

Each comes and goes in several orders of its resources: three in drills, as many as `CFNGEN_ORDERS` says in the matrix.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from clusters import CASES, Account, Machines, describe, golden, inventory, landlord, leftovers, prepared, resources
from stated_dependencies import NEEDED, NOT_SHOWN, edges

from cfngen.cluster.load import load
from cfngen.sandbox.cloudformation import CloudFormation, Resource, Stack, client
from cfngen.userdata.addons import releases

pytestmark = pytest.mark.drill

# They name things that only an account can name, or an instance type that moto does not know; a test for each follows.
SEPARATELY = (
    "capacity-reservation",
    "existing-elastic-ip",
    "extra-policies",
    "gpu",
    "own-permissions",
    "pod-roles",
    "references",
    "transit-gateway",
)

SEEDS = range(1, int(os.environ.get("CFNGEN_ORDERS", "3")) + 1)

RETAINED_ZONES = {"api-dns-public": 1}  # created public zones: their name servers are known to other zones


@pytest.fixture(params=SEEDS)
def seed(request: pytest.FixtureRequest) -> int:
    """What draws the order of resources: whatever the dependencies allow, so a missing one shows for some seed."""
    return int(request.param)


def form_of(seed: int) -> str:
    """One template, or a root with nested stacks: each in every other order."""
    return "standalone" if seed % 2 else "cluster"


def created(where: Account, form: str) -> tuple[Stack, dict[str, Resource]]:
    arguments = {key: value for key, value in landlord(where).items() if key in where.templates[form]["Parameters"]}
    stack = where.create(form, **arguments)
    assert stack.status == "CREATE_COMPLETE", [event for event in stack.events if event.reason]
    return stack, resources(stack)


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir() if path.name not in SEPARATELY))
def test_every_golden_cluster_comes_and_goes_in_any_order(case: str, seed: int) -> None:
    form = form_of(seed)
    where = prepared(golden(case), seed=seed, draws_durations=True)
    assert {(edge.kind, edge.needs_kind) for edge in edges(where.templates, form)} <= NEEDED.keys() | NOT_SHOWN.keys()
    others = landlord(where)
    before = inventory(where.cluster.region)
    wanted = where.templates[form]["Parameters"]
    stack = where.create(form, **{key: value for key, value in others.items() if key in wanted})
    assert stack.status == "CREATE_COMPLETE", [event for event in stack.events if event.reason]
    assert set(stack.outputs) == set(where.templates[form]["Outputs"])
    assert all(stack.outputs.values())
    where.delete(stack)
    assert stack.status == "DELETE_COMPLETE", [event for event in stack.events if event.status == "DELETE_FAILED"]
    # What flow logs have recorded outlives the cluster.
    assert set(leftovers(where, before)) <= {"snapshots", "hosted zones", "log groups"}
    assert len(leftovers(where, before).get("hosted zones", ())) == RETAINED_ZONES.get(case, 0)


@pytest.mark.parametrize(
    "case",
    [
        "existing-vpc",
        "existing-vpc-new-subnets",
        "own-masters-security-group",
        "own-security-groups",
        "private-existing-mix",
    ],
)
def test_deletion_spares_what_somebody_else_made(case: str) -> None:
    where = prepared(golden(case))
    others = landlord(where)
    before = inventory(where.cluster.region)
    wanted = where.templates["cluster"]["Parameters"]
    stack = where.create("cluster", **{key: value for key, value in others.items() if key in wanted})
    assert where.delete(stack).status == "DELETE_COMPLETE"
    after = inventory(where.cluster.region)
    assert all(before[kind] <= after[kind] for kind in before)
    assert set(leftovers(where, before)) == {"snapshots"}


def test_another_kind_of_volume_and_its_key() -> None:
    where = prepared(golden("volumes"))
    _, found = created(where, "standalone")
    volume = describe(where, "volumes", VolumeIds=[found["MasterAVolume"].physical_id])
    assert (volume["VolumeType"], volume["Size"], volume["Iops"]) == ("io2", 100, 5000)
    assert volume["KmsKeyId"] == where.cluster.control_plane.volume.kms_key


def test_groups_span_the_zones_they_are_to_span() -> None:
    where = prepared(golden("several-groups"))
    _, found = created(where, "cluster")
    autoscaling = client("autoscaling", "eu-central-1")
    subnets = {letter: found[f"Subnet{letter}"].physical_id for letter in "ABC"}
    for group, letters in (("General", "ABC"), ("Memory", "A"), ("TwoZones", "BC")):
        name = found[f"NodeGroup{group}AutoScalingGroup"].physical_id
        [answer] = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])["AutoScalingGroups"]
        assert answer["VPCZoneIdentifier"] == ",".join(subnets[letter] for letter in letters)


def test_spot_nodes_are_asked_for_at_the_given_price() -> None:
    where = prepared(golden("spot"))
    _, found = created(where, "standalone")
    version = describe(
        where, "launch_template_versions", LaunchTemplateId=found["NodeGroupSpotLaunchTemplate"].physical_id
    )
    options = version["LaunchTemplateData"]["InstanceMarketOptions"]
    assert (options["MarketType"], options["SpotOptions"]["MaxPrice"]) == ("spot", "0.04")


@pytest.mark.parametrize("form", ["standalone", "cluster"])
def test_priorities_match_the_groups_that_cloudformation_names(form: str) -> None:
    where = prepared(golden("scale-from-zero"))
    _, found = created(where, form)
    [values] = [release["values"] for release in releases(where.cluster) if release["name"] == "cluster-autoscaler"]
    for priority, group in (("50", "Spot"), ("10", "General"), ("1", "Gpu")):
        [pattern] = json.loads(values)["expanderPriorities"][priority]
        names = {each: found[f"NodeGroup{each}AutoScalingGroup"].physical_id for each in ("Spot", "General", "Gpu")}
        assert [each for each, name in names.items() if re.search(pattern, name)] == [group]


def test_a_group_that_is_left_alone_has_no_tag_by_which_it_would_be_found() -> None:
    where = prepared(golden("scale-from-zero"))
    _, found = created(where, "standalone")
    groups = client("autoscaling", "us-west-2").describe_auto_scaling_groups()["AutoScalingGroups"]
    tags = {group["AutoScalingGroupName"]: {tag["Key"]: tag["Value"] for tag in group["Tags"]} for group in groups}
    by_hand, gpu = (tags[found[f"NodeGroup{group}AutoScalingGroup"].physical_id] for group in ("ByHand", "Gpu"))
    assert not [key for key in by_hand if key.startswith("k8s.io/cluster-autoscaler")]
    assert gpu["k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu"] == "1"
    assert gpu["k8s.io/cluster-autoscaler/node-template/label/k8s.amazonaws.com/accelerator"] == "nvidia-a10g"


def test_an_imported_key_is_the_instances_key() -> None:
    where = prepared(golden("imported-key"))
    _, found = created(where, "cluster")
    version = describe(where, "launch_template_versions", LaunchTemplateId=found["MasterALaunchTemplate"].physical_id)
    assert version["LaunchTemplateData"]["KeyName"] == found["SshKeyPair"].physical_id


def test_an_existing_address_and_dhcp_options(seed: int) -> None:
    ec2 = client("ec2", "us-west-2")
    options = ec2.create_dhcp_options(DhcpConfigurations=[{"Key": "domain-name", "Values": ["example.com"]}])
    identifier = options["DhcpOptions"]["DhcpOptionsId"]
    path = CASES / "existing-elastic-ip" / "cluster.yaml"
    where = prepared(
        load(path, environ={}, overrides=[f"network.dhcpOptions={identifier}"]).cluster, seed=seed, draws_durations=True
    )
    stack, found = created(where, form_of(seed))
    address = describe(where, "addresses")
    assert address["NetworkInterfaceId"] == found["MasterANetworkInterface"].physical_id
    assert stack.outputs["ApiEndpoint"] == f"https://{address['PublicIp']}"
    assert describe(where, "vpcs", VpcIds=[stack.outputs["VpcId"]])["DhcpOptionsId"] == identifier
    where.delete(stack)
    assert not describe(where, "addresses").get("NetworkInterfaceId")


def create_policies(*names: str) -> None:
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    for name in names:
        client("iam", "us-west-2").create_policy(PolicyName=name, PolicyDocument=document)


@pytest.mark.parametrize("account", [{"iam": {"load_aws_managed_policies": True}}], indirect=True)
def test_every_pod_role_is_made_with_its_boundary(account: None, seed: int) -> None:
    create_policies("boundary", "orders")
    where = prepared(golden("pod-roles"), seed=seed, draws_durations=True)
    before = inventory(where.cluster.region)
    stack = where.create(form_of(seed))
    assert stack.status == "CREATE_COMPLETE", [event for event in stack.events if event.reason]
    found = resources(stack)
    iam = client("iam", where.cluster.region)
    boundaries = {
        key: iam.get_role(RoleName=resource.physical_id)["Role"]["PermissionsBoundary"]["PermissionsBoundaryArn"]
        for key, resource in found.items()
        if resource.definition.type == "AWS::IAM::Role"
    }
    own = {key for key, boundary in boundaries.items() if boundary.endswith(":policy/orders")}
    assert len(own) == 1
    assert {boundary for key, boundary in boundaries.items() if key not in own} == {
        "arn:aws:iam::123456789012:policy/boundary"
    }
    where.delete(stack)
    assert stack.status == "DELETE_COMPLETE"
    assert set(leftovers(where, before)) <= {"snapshots"}


def test_nodes_with_gpus_come_and_go(seed: int) -> None:
    override = "nodeGroups[3].instanceType=g5.2xlarge"
    path = CASES / "gpu" / "cluster.yaml"
    where = prepared(load(path, environ={}, overrides=[override]).cluster, seed=seed, draws_durations=True)
    stack, _ = created(where, form_of(seed))
    assert where.delete(stack).status == "DELETE_COMPLETE"


def test_nodes_are_launched_into_a_capacity_reservation(seed: int) -> None:
    ec2 = client("ec2", "us-west-2")
    reservation = ec2.create_capacity_reservation(
        AvailabilityZone="us-west-2a",
        InstanceType="m7i.large",
        InstanceCount=2,
        InstancePlatform="Linux/UNIX",
        InstanceMatchCriteria="targeted",
    )["CapacityReservation"]["CapacityReservationId"]
    override = f"nodeGroups[0].capacityReservation.id={reservation}"
    path = CASES / "capacity-reservation" / "cluster.yaml"
    where = prepared(load(path, environ={}, overrides=[override]).cluster, seed=seed, draws_durations=True)
    stack, _ = created(where, form_of(seed))
    assert describe(where, "capacity_reservations")["AvailableInstanceCount"] == 0
    assert where.delete(stack).status == "DELETE_COMPLETE"


@pytest.mark.parametrize("account", [{"iam": {"load_aws_managed_policies": True}}], indirect=True)
def test_additional_policies_and_security_groups(account: None, seed: int) -> None:
    iam, ec2 = client("iam", "us-west-2"), client("ec2", "us-west-2")
    create_policies("boundary", "masters", "batch")
    image = {"image": ec2.register_image(Name="image")["ImageId"]}
    theirs = landlord(Account(golden("default"), {}, CloudFormation("us-west-2"), Machines("us-west-2"), image))
    groups = [
        ec2.create_security_group(GroupName=name, Description=name, VpcId=theirs["VpcId"])["GroupId"]
        for name in ("one", "two", "three")
    ]
    path = CASES / "extra-policies" / "cluster.yaml"
    overrides = [
        f"controlPlane.additionalSecurityGroups[0]={groups[0]}",
        f"nodeGroups[1].additionalSecurityGroups[0]={groups[1]}",
        f"nodeGroups[1].additionalSecurityGroups[1]={groups[2]}",
        # Security groups are of the interface's VPC.
        f"network.vpc.id={theirs['VpcId']}",
        "network.vpc.cidr=10.20.0.0/16",
        "network.subnets[0].zone=us-west-2a",
        f"network.subnets[0].id={theirs['SubnetAId']}",
        "network.subnets[0].cidr=10.20.0.0/20",
        f"network.routeTable={theirs['RouteTableId']}",
    ]
    where = prepared(load(path, environ={}, overrides=overrides).cluster, seed=seed, draws_durations=True)
    stack = where.create(form_of(seed))
    assert stack.status == "CREATE_COMPLETE", [event for event in stack.events if event.reason]
    found = resources(stack)
    role = iam.get_role(RoleName=found["MasterRole"].physical_id)["Role"]
    assert role["PermissionsBoundary"]["PermissionsBoundaryArn"] == "arn:aws:iam::123456789012:policy/boundary"
    attached = iam.list_attached_role_policies(RoleName=found["MasterRole"].physical_id)["AttachedPolicies"]
    names = [each["PolicyName"] for each in attached]
    assert sorted(name for name in names if "AddonsPolicy" not in name) == ["masters"]
    identifier = found["MasterANetworkInterface"].physical_id
    interface = describe(where, "network_interfaces", NetworkInterfaceIds=[identifier])
    assert {group["GroupId"] for group in interface["Groups"]} == {found["MasterSecurityGroup"].physical_id, groups[0]}


def test_statements_and_target_groups_of_a_node_group(seed: int) -> None:
    image = {"image": client("ec2", "us-west-2").register_image(Name="image")["ImageId"]}
    network = landlord(Account(golden("default"), {}, CloudFormation("us-west-2"), Machines("us-west-2"), image))
    elbv2 = client("elbv2", "us-west-2")
    [target_group] = elbv2.create_target_group(Name="web", Protocol="TCP", Port=80, VpcId=network["VpcId"])[
        "TargetGroups"
    ]
    arn = target_group["TargetGroupArn"]
    overrides = [
        f"nodeGroups[0].targetGroups[0]={arn}",
        f"network.vpc.id={network['VpcId']}",
        "network.vpc.cidr=10.20.0.0/16",
        f"network.subnets[0].id={network['SubnetAId']}",
        "network.subnets[0].cidr=10.20.0.0/20",
        f"network.routeTable={network['RouteTableId']}",
    ]
    path = CASES / "own-permissions" / "cluster.yaml"
    where = prepared(load(path, environ={}, overrides=overrides).cluster, seed=seed, draws_durations=True)
    stack = where.create(form_of(seed))
    assert stack.status == "CREATE_COMPLETE", [event for event in stack.events if event.reason]
    registered = resources(stack)
    role = registered["NodeGroupWebRole"].physical_id
    policy = client("iam", "us-west-2").get_role_policy(RoleName=role, PolicyName="kubernetes")["PolicyDocument"]
    statements = {statement["Sid"]: statement for statement in policy["Statement"]}
    assert statements["ClusterFile1"]["Condition"] == {"StringEquals": {"s3:ExistingObjectTag/public": "true"}}
    assert statements["ClusterFile2"]["Effect"] == "Deny"
    groups = client("autoscaling", "us-west-2").describe_auto_scaling_groups(
        AutoScalingGroupNames=[registered["NodeGroupWebAutoScalingGroup"].physical_id]
    )["AutoScalingGroups"]
    instances = {instance["InstanceId"] for group in groups for instance in group["Instances"]}
    health = elbv2.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
    assert {target["Target"]["Id"] for target in health} == instances


def test_routes_lead_to_what_somebody_else_connected_with_the_vpc(tmp_path: Path, seed: int) -> None:
    ec2 = client("ec2", "us-west-2")
    vpc, peer = (ec2.create_vpc(CidrBlock=block)["Vpc"]["VpcId"] for block in ("10.20.0.0/16", "10.64.0.0/16"))
    ec2.associate_vpc_cidr_block(VpcId=vpc, CidrBlock="100.64.0.0/16")
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.20.0.0/28")["Subnet"]["SubnetId"]
    transit_gateway = ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]
    ec2.create_transit_gateway_vpc_attachment(TransitGatewayId=transit_gateway, VpcId=vpc, SubnetIds=[subnet])
    vpn_gateway = ec2.create_vpn_gateway(Type="ipsec.1")["VpnGateway"]["VpnGatewayId"]
    ec2.attach_vpn_gateway(VpnGatewayId=vpn_gateway, VpcId=vpc)
    connection = ec2.create_vpc_peering_connection(VpcId=vpc, PeerVpcId=peer)["VpcPeeringConnection"]
    interface = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    prefix_list = ec2.create_managed_prefix_list(PrefixListName="offices", MaxEntries=5, AddressFamily="IPv4")
    ids = {
        "vpc": vpc,
        "tgw": transit_gateway,
        "vgw": vpn_gateway,
        "pcx": connection["VpcPeeringConnectionId"],
        "eni": interface,
        "pl": prefix_list["PrefixList"]["PrefixListId"],
    }
    text = (CASES / "transit-gateway" / "cluster.yaml").read_text()
    for prefix, identifier in ids.items():
        text = text.replace(f"{prefix}-0123456789abcdef0", identifier)
    cluster_file = tmp_path / "cluster.yaml"
    cluster_file.write_text(text)
    where = prepared(load(cluster_file, environ={}).cluster, seed=seed, draws_durations=True)
    stack = where.create(form_of(seed))
    assert stack.status == "CREATE_COMPLETE", [event for event in stack.events if event.reason]
    table = resources(stack)["PrivateRouteTableA"].physical_id
    [described] = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    destinations = {
        route.get("DestinationCidrBlock") or route["DestinationPrefixListId"] for route in described["Routes"]
    }
    assert destinations == {
        "10.20.0.0/16", "100.64.0.0/16", "0.0.0.0/0", "10.64.0.0/12", "192.168.8.0/24", ids["pl"],
    }  # fmt: skip
    assert where.delete(stack).status == "DELETE_COMPLETE"


def test_references_lead_to_what_somebody_else_made(seed: int) -> None:
    where = prepared(golden("references"), seed=seed, draws_durations=True)
    region = where.cluster.region
    ec2, route53 = client("ec2", region), client("route53", region)
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    subnet_a, public_a, public_b = (
        ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone=f"{region}{zone}")["Subnet"]["SubnetId"]
        for zone, block in (("a", "10.20.0.0/20"), ("a", "10.20.64.0/26"), ("b", "10.20.64.64/26"))
    )
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    allocation = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat_gateway = ec2.create_nat_gateway(SubnetId=public_b, AllocationId=allocation)["NatGateway"]["NatGatewayId"]
    transit_gateway = ec2.create_transit_gateway()["TransitGateway"]["TransitGatewayId"]
    ec2.create_transit_gateway_vpc_attachment(TransitGatewayId=transit_gateway, VpcId=vpc, SubnetIds=[subnet_a])
    shared, monitoring = (
        ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc)["GroupId"] for name in ("all", "watch")
    )
    public_zone = route53.create_hosted_zone(Name="example.com", CallerReference="1")["HostedZone"]["Id"]
    private_zone = route53.create_hosted_zone(
        Name="example.com", CallerReference="2", VPC={"VPCRegion": region, "VPCId": vpc}
    )["HostedZone"]["Id"]
    parameters = {
        "/network/private/subnet-a": subnet_a,
        "/network/public/subnet-b": public_b,
        "/network/private/route-table-c": ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"],
        "/network/internet-gateway": gateway,
        "/network/transit-gateway": transit_gateway,
        "/network/groups/monitoring": monitoring,
        "/dns/public-zone": public_zone.removeprefix("/hostedzone/"),
    }
    for name, value in parameters.items():
        client("ssm", region).put_parameter(Name=name, Value=value, Type="String")
    outputs = {
        "network": {
            "VpcId": vpc,
            "PublicSubnetA": public_a,
            "NatGatewayB": nat_gateway,
            "TransitGateway": transit_gateway,
            "SharedGroup": shared,
        },
        "dns": {"PrivateZone": private_zone.removeprefix("/hostedzone/")},
    }
    for name, values in outputs.items():
        gateway_of_stack = {"Gateway": {"Type": "AWS::EC2::InternetGateway"}}
        body = {"Resources": gateway_of_stack, "Outputs": {key: {"Value": value} for key, value in values.items()}}
        where.cloud.wait(where.cloud.create_stack(name, body=json.dumps(body)))
    before = inventory(region)
    stack = where.create(form_of(seed))
    assert stack.status == "CREATE_COMPLETE", [event for event in stack.events if event.reason]
    assert stack.outputs["ReferencedVpcId"] == vpc
    assert resources(stack)["MasterSecurityGroup"].properties["VpcId"] == vpc
    assert where.delete(stack).status == "DELETE_COMPLETE"
    assert set(leftovers(where, before)) <= {"snapshots"}
