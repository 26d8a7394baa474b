"""What others have in a cluster's network: named before anything is deleted, kept by EC2, named when that happens."""

from __future__ import annotations

import made_by_kubernetes as made
import pytest
from botocore.exceptions import ClientError
from cloud import Cloud, cloud_of
from clusters import golden, inventory, landlord, resources
from deleting import NAME, REGION, Operator, created, place_of
from foreign_resources import GUESTS
from made_by_kubernetes import Place

from cfngen.deploy.aws.account import Account, connect
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.operations.deletion.execution import preview_with_refusal
from cfngen.deploy.plan.deletion.plan import DeletionRequest
from cfngen.deploy.preflight.blockers import OccupiedError

pytestmark = pytest.mark.drill


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(connect(cloud.session, REGION, clock=cloud.clock))


@pytest.fixture
def empty(cloud: Cloud) -> Place:
    """A VPC with nothing in it but a subnet that nobody has put anything into."""
    account = connect(cloud.session, REGION, clock=cloud.clock)
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.66.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.66.0.0/24")["Subnet"]["SubnetId"]
    return Place(account, vpc, subnet, "")


def test_everything_by_hand_is_named_before_anything_is_lost(cloud: Cloud, operator: Operator) -> None:
    place = place_of(created(cloud), operator.account)
    guests = {make(place): kind for kind, make in GUESTS.items()}
    before = inventory(REGION)
    with pytest.raises(OccupiedError) as refused:
        operator.deletes()
    named = {each.id: each.what for each in refused.value.blockers}
    assert guests.keys() <= named.keys()
    assert all(named[key].startswith(kind) for key, kind in guests.items())
    assert all(key in str(refused.value) for key in guests)
    assert (inventory(REGION), operator.questions) == (before, [])


@pytest.mark.parametrize("kind", sorted(set(GUESTS) - {"load balancer"}))
def test_ec2_keeps_a_vpc_that_has_something_in_it(empty: Place, kind: str) -> None:
    GUESTS[kind](empty)
    if kind not in ("network interface", "NAT gateway"):
        empty.ec2.delete_subnet(SubnetId=empty.subnet_id)
    with pytest.raises(ClientError, match=f"The vpc '?{empty.vpc_id}'? has dependencies and cannot be deleted") as kept:
        empty.ec2.delete_vpc(VpcId=empty.vpc_id)
    assert kept.value.response["Error"]["Code"] == "DependencyViolation"


def test_ec2_lets_an_empty_vpc_go(empty: Place) -> None:
    empty.ec2.delete_subnet(SubnetId=empty.subnet_id)
    empty.ec2.delete_vpc(VpcId=empty.vpc_id)
    acls = [{"Name": "vpc-id", "Values": [empty.vpc_id]}]
    assert empty.ec2.describe_network_acls(Filters=acls)["NetworkAcls"] == []


def test_ec2_keeps_a_gateway_while_addresses_are_mapped(empty: Place) -> None:
    gateway = empty.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    empty.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=empty.vpc_id)
    address = empty.ec2.allocate_address(Domain="vpc")["AllocationId"]
    interface = made.interface(empty, "by hand", made.security_group(empty, "group", {}))
    empty.ec2.associate_address(AllocationId=address, NetworkInterfaceId=interface)
    with pytest.raises(ClientError, match="mapped public address"):
        empty.ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=empty.vpc_id)


def test_what_comes_into_the_network_meanwhile_is_named_when_the_deletion_fails(
    cloud: Cloud, operator: Operator
) -> None:
    place = place_of(created(cloud), operator.account)
    operator.answers = lambda question: bool(question.name)
    group: list[str] = []
    cloud.faults.before("DeleteStack", lambda: group.append(made.security_group(place, "late", {})))
    deleted = operator.deletes()
    assert (deleted.succeeded, deleted.status) == (False, "DELETE_FAILED")
    assert [(each.id, each.what) for each in deleted.blockers] == [(group[0], "security group late")]
    [failure] = operator.failures()
    assert [each.id for each in failure.blockers] == group
    assert any(group[0] in text for text in operator.questions[-1].consequences)
    place.ec2.delete_security_group(GroupId=group[0])
    assert operator.deletes().succeeded
    assert find_stack(operator.account, NAME) is None


def test_what_lies_in_a_clusters_subnet_of_an_existing_network_is_named() -> None:
    with cloud_of(golden("existing-vpc-new-subnets")) as cloud:
        account = connect(cloud.session, cloud.cluster.region, clock=cloud.clock)
        name, vpc = cloud.cluster.name, _rented(cloud, account)
        [subnet, *_] = _subnets(cloud)
        theirs = Place(account, vpc, subnet, "")
        guest = made.interface(theirs, "by hand", made.security_group(theirs, "elsewhere", {}))
        found = preview_with_refusal(account, DeletionRequest(name, name, vpc_id=vpc))[0]
        assert [each.id for each in found.blockers] == [guest]


def test_a_gateway_and_an_endpoint_in_a_clusters_subnet_of_an_existing_network_are_named_with_their_commands() -> None:
    with cloud_of(golden("existing-vpc-new-subnets")) as cloud:
        account = connect(cloud.session, cloud.cluster.region, clock=cloud.clock)
        name, vpc = cloud.cluster.name, _rented(cloud, account)
        [subnet, *_] = _subnets(cloud)
        ec2 = account.client("ec2")
        gateway = GUESTS["NAT gateway"](Place(account, vpc, subnet, ""))
        created_endpoint = ec2.create_vpc_endpoint(
            VpcId=vpc,
            VpcEndpointType="Interface",
            ServiceName=f"com.amazonaws.{REGION}.ec2",
            SubnetIds=[subnet],
            PrivateDnsEnabled=False,
        )
        endpoint = created_endpoint["VpcEndpoint"]["VpcEndpointId"]
        # Beside the cluster's subnets, it is not in the way.
        ec2.create_vpc_endpoint(VpcId=vpc, VpcEndpointType="Gateway", ServiceName=f"com.amazonaws.{REGION}.s3")
        found = preview_with_refusal(account, DeletionRequest(name, name, vpc_id=vpc))[0]
        assert {each.id: each.command for each in found.blockers} == {
            gateway: f"aws ec2 delete-nat-gateway --nat-gateway-id {gateway} --region {cloud.cluster.region}",
            endpoint: f"aws ec2 delete-vpc-endpoints --vpc-endpoint-ids {endpoint} --region {cloud.cluster.region}",
        }


def _rented(cloud: Cloud, account: Account) -> str:
    lent, names = landlord(cloud.account), cloud.account.templates["cluster"]["Parameters"]
    given = {key: value for key, value in lent.items() if key in names}
    created(cloud, "cluster", cloud.cluster.name, {"cfngen:cluster": cloud.cluster.name}, **given)
    return lent["VpcId"]


def _subnets(cloud: Cloud) -> list[str]:
    stack = cloud.engine.stack(cloud.cluster.name)
    return [each.physical_id for each in resources(stack).values() if each.type == "AWS::EC2::Subnet"]
