"""What others have in a cluster's network: each kind, in each state, told from what is the cluster's own."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers, filtered, pairs
from aws_descriptions import OWNED, arn, instance, resource, running
from recorded import RefusedError

from cfngen.deploy.aws import vpc_contents
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.preflight import blockers
from cfngen.deploy.preflight.blockers import Blocker, OccupiedError

OWN = Inventory(
    "one",
    (resource("vpc-1"), resource("subnet-1"), resource("sg-own"), resource("rtb-1"), resource("nat-1")),
    vpc_id="vpc-1",
    own_vpc=True,
    instances={"i-1": "running"},
    security_groups=("sg-own",),
)
LENT = Inventory("one", OWN.resources[1:], vpc_id="vpc-1", instances=OWN.instances, security_groups=("sg-own",))
HERE = {"VpcId": "vpc-1"}
ATTACHED = [{"VpcId": "vpc-1", "State": "attached"}]
PEER = {"RequesterVpcInfo": HERE, "AccepterVpcInfo": {"VpcId": "vpc-2"}, "Status": {"Code": "active"}}

# Each kind: its call, the list in its answer, its id, how it is filtered, one that stays, and what of it does not.
CONTENTS: list[tuple[str, str, str, str, str, dict[str, Any], list[dict[str, Any]]]] = [
    (
        "NAT gateway",
        "DescribeNatGateways",
        "NatGateways",
        "NatGatewayId",
        "vpc-id",
        {**HERE, "State": "available"},
        [{"State": "deleted"}, {"State": "deleting"}, {"State": "failed"}, {"VpcId": "vpc-2"}],
    ),
    (
        "VPC endpoint",
        "DescribeVpcEndpoints",
        "VpcEndpoints",
        "VpcEndpointId",
        "vpc-id",
        {**HERE, "State": "available"},
        [{"State": "deleted"}, {"State": "Deleting"}, {"State": "rejected"}, {"State": "expired"}, {"VpcId": "vpc-2"}],
    ),
    (
        "transit gateway attachment",
        "DescribeTransitGatewayVpcAttachments",
        "TransitGatewayVpcAttachments",
        "TransitGatewayAttachmentId",
        "vpc-id",
        {**HERE, "State": "available"},
        [{"State": "deleted"}, {"VpcId": "vpc-2"}],
    ),
    (
        "peering connection",
        "DescribeVpcPeeringConnections",
        "VpcPeeringConnections",
        "VpcPeeringConnectionId",
        "requester-vpc-info.vpc-id",
        PEER,
        [
            {"Status": {"Code": "deleted"}},
            {"Status": {"Code": "rejected"}},
            {"Status": {"Code": "expired"}},
            {"RequesterVpcInfo": {"VpcId": "vpc-3"}},
        ],
    ),
    (
        "internet gateway",
        "DescribeInternetGateways",
        "InternetGateways",
        "InternetGatewayId",
        "attachment.vpc-id",
        {"Attachments": ATTACHED},
        [{"Attachments": []}, {"Attachments": [{"VpcId": "vpc-1", "State": "detached"}]}],
    ),
    (
        "egress-only internet gateway",
        "DescribeEgressOnlyInternetGateways",
        "EgressOnlyInternetGateways",
        "EgressOnlyInternetGatewayId",
        "",
        {"Attachments": ATTACHED},
        [
            {"Attachments": [{"VpcId": "vpc-2", "State": "attached"}]},
            {"Attachments": [{"VpcId": "vpc-1", "State": "detaching"}]},
        ],
    ),
    (
        "carrier gateway",
        "DescribeCarrierGateways",
        "CarrierGateways",
        "CarrierGatewayId",
        "vpc-id",
        {**HERE, "State": "available"},
        [{"State": "deleted"}],
    ),
    ("subnet", "DescribeSubnets", "Subnets", "SubnetId", "vpc-id", HERE, [{"VpcId": "vpc-2"}]),
    (
        "route table",
        "DescribeRouteTables",
        "RouteTables",
        "RouteTableId",
        "vpc-id",
        {**HERE, "Associations": [{"Main": False}]},
        [{"Associations": [{"Main": True}]}, {"VpcId": "vpc-2"}],
    ),
    (
        "network ACL",
        "DescribeNetworkAcls",
        "NetworkAcls",
        "NetworkAclId",
        "vpc-id",
        {**HERE, "IsDefault": False},
        [{"IsDefault": True}, {"VpcId": "vpc-2"}],
    ),
    (
        "security group",
        "DescribeSecurityGroups",
        "SecurityGroups",
        "GroupId",
        "vpc-id",
        {**HERE, "GroupName": "database"},
        [{"GroupName": "default"}, {"VpcId": "vpc-2"}],
    ),
]


@pytest.mark.parametrize("row", CONTENTS, ids=[row[0] for row in CONTENTS])
def test_a_kind_is_found_while_it_is_there_and_not_when_it_has_ended(aws: Answers, row: tuple[Any, ...]) -> None:
    kind, call, answer, key, name, item, ended = row
    items = [{**item, key: "b"}, {**item, key: "a"}]
    aws.given[f"ec2:{call}"] = {answer: items}
    contents = list(vpc_contents.find_vpc_contents(aws.account, "vpc-1"))
    assert [(each.kind, each.id) for each in contents] == [(kind, "a"), (kind, "b")]
    assert not name or filtered(aws.named(f"ec2:{call}")[0], name) == ["vpc-1"]
    for change in ended:
        aws.given[f"ec2:{call}"] = {answer: [{**item, **change, key: "a"}]}
        assert list(vpc_contents.find_vpc_contents(aws.account, "vpc-1")) == [], change


def test_a_peering_is_looked_for_from_both_sides(aws: Answers) -> None:
    theirs = {"RequesterVpcInfo": {"VpcId": "vpc-2"}, "AccepterVpcInfo": HERE, "Status": {"Code": "pending-acceptance"}}
    connection = {**theirs, "VpcPeeringConnectionId": "pcx-1"}

    def describe(sent: dict[str, Any]) -> dict[str, Any]:
        accepted = sent["Filters"] == [{"Name": "accepter-vpc-info.vpc-id", "Values": ["vpc-1"]}]
        return {"VpcPeeringConnections": [connection] if accepted else []}

    aws.given["ec2:DescribeVpcPeeringConnections"] = describe
    assert [item.id for item in vpc_contents.find_vpc_contents(aws.account, "vpc-1")] == ["pcx-1"]


@pytest.mark.parametrize("code", ["InvalidAction", "UnsupportedOperation"])
def test_what_a_region_does_not_have_is_not_in_the_way(aws: Answers, code: str) -> None:
    aws.given["ec2:DescribeCarrierGateways"] = RefusedError(code)
    assert list(vpc_contents.find_vpc_contents(aws.account, "vpc-1")) == []


def test_what_may_not_be_looked_for_is_an_error(aws: Answers) -> None:
    aws.given["ec2:DescribeCarrierGateways"] = RefusedError("UnauthorizedOperation")
    with pytest.raises(Exception, match="UnauthorizedOperation"):
        list(vpc_contents.find_vpc_contents(aws.account, "vpc-1"))


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ({"SubnetId": "subnet-9", "Tags": pairs({"Name": "apps"})}, "subnet apps"),
        ({"SubnetId": "subnet-9"}, "subnet"),
        ({"SubnetId": "subnet-1"}, None),
        ({"SubnetId": "subnet-left"}, None),
    ],
)
def test_what_lies_in_the_network_is_named_unless_it_is_the_clusters(
    aws: Answers, item: dict[str, Any], what: str | None
) -> None:
    aws.given["ec2:DescribeSubnets"] = {"Subnets": [{**HERE, **item}]}
    left = (OrphanedResource("route", "subnet-left", ""),)
    blocking = blockers.find_blockers(aws.account, OWN, left)
    assert blocking == ((Blocker(item["SubnetId"], what),) if what else ())
    assert blockers.find_blockers(aws.account, LENT, left) == ()


def test_a_group_and_an_endpoint_are_described_by_what_they_are_for(aws: Answers) -> None:
    aws.given["ec2:DescribeSecurityGroups"] = lambda sent: {
        "SecurityGroups": (
            [{**HERE, "GroupId": "sg-db", "GroupName": "database"}] if sent["Filters"][0]["Name"] == "vpc-id" else []
        )
    }
    aws.given["ec2:DescribeVpcEndpoints"] = {
        "VpcEndpoints": [{**HERE, "VpcEndpointId": "vpce-1", "State": "available", "ServiceName": "com.s3"}]
    }
    blocking = blockers.find_blockers(aws.account, OWN, ())
    delete = "aws ec2 delete-vpc-endpoints --vpc-endpoint-ids vpce-1 --region us-west-2"
    assert blocking == (
        Blocker("vpce-1", "VPC endpoint for com.s3", delete),
        Blocker("sg-db", "security group database"),
    )
    assert blocking[0].text == f"VPC endpoint for com.s3; to delete it: {delete}"
    assert blocking[0].text in str(OccupiedError("one", blocking))


def test_an_endpoint_that_a_service_manages_has_no_command(aws: Answers) -> None:
    endpoint = {**HERE, "VpcEndpointId": "vpce-1", "State": "available", "ServiceName": "com.aoss"}
    aws.given["ec2:DescribeVpcEndpoints"] = {"VpcEndpoints": [{**endpoint, "RequesterManaged": True}]}
    [found] = blockers.find_blockers(aws.account, OWN, ())
    assert found == Blocker("vpce-1", "VPC endpoint for com.aoss (managed by that service: disable it there)")


NAT_OF_OTHERS = {**HERE, "NatGatewayId": "nat-9", "State": "available"}
ENDPOINT_OF_OTHERS = {**HERE, "VpcEndpointId": "vpce-9", "State": "available", "ServiceName": "com.ec2"}


@pytest.mark.parametrize(
    ("nat_gateway", "endpoint", "named"),
    [
        ({"SubnetId": "subnet-1"}, {"SubnetIds": ["subnet-9"]}, ["nat-9"]),
        ({"SubnetId": "subnet-9"}, {"SubnetIds": ["subnet-9", "subnet-1"]}, ["vpce-9"]),
        ({"SubnetId": "subnet-9"}, {"Groups": [{"GroupId": "sg-own"}]}, ["vpce-9"]),
        # EC2 deletes a route table with the route of a gateway endpoint in it (hashicorp/terraform-provider-aws#26502).
        ({"SubnetId": "subnet-9"}, {"RouteTableIds": ["rtb-1"]}, []),
        ({"SubnetId": "subnet-1", "NatGatewayId": "nat-1"}, {"SubnetIds": ["subnet-9"]}, []),
    ],
)
def test_in_a_network_that_was_lent_gateways_and_endpoints_of_others_are_named_in_the_clusters_subnets(
    aws: Answers, nat_gateway: dict[str, Any], endpoint: dict[str, Any], named: list[str]
) -> None:
    aws.given["ec2:DescribeNatGateways"] = {"NatGateways": [{**NAT_OF_OTHERS, **nat_gateway}]}
    aws.given["ec2:DescribeVpcEndpoints"] = {"VpcEndpoints": [{**ENDPOINT_OF_OTHERS, **endpoint}]}
    interfaces(aws, {"SubnetId": "subnet-1", "Description": "Interface for NAT Gateway nat-1"})
    blocking = blockers.find_blockers(aws.account, LENT, ())
    assert [each.id for each in blocking if each.command] == [each.id for each in blocking] == named


def test_their_interfaces_are_not_named_again(aws: Answers) -> None:
    aws.given["ec2:DescribeNatGateways"] = {"NatGateways": [{**NAT_OF_OTHERS, "SubnetId": "subnet-1"}]}
    endpoint = {**ENDPOINT_OF_OTHERS, "SubnetIds": ["subnet-1"], "NetworkInterfaceIds": ["eni-1"]}
    aws.given["ec2:DescribeVpcEndpoints"] = {"VpcEndpoints": [endpoint]}
    interfaces(aws, *({"SubnetId": "subnet-1", "Description": text} for text in ("NAT Gateway nat-9", "endpoint", "x")))
    assert [each.id for each in blockers.find_blockers(aws.account, LENT, ())] == ["eni-2", "nat-9", "vpce-9"]


def test_groups_whose_rules_name_the_clusters_are_in_the_way(aws: Answers) -> None:
    """Those of the stacks, and those that Kubernetes made; other leftovers are no groups."""
    rules = [{**HERE, "GroupId": "sg-db", "GroupName": "database"}, {**HERE, "GroupId": "sg-tagged", "GroupName": "x"}]
    rules[1]["Tags"] = pairs(OWNED)
    aws.given["ec2:DescribeSecurityGroups"] = lambda sent: {
        "SecurityGroups": rules if sent["Filters"][0]["Name"] == "ip-permission.group-id" else []
    }
    left = (OrphanedResource("security group", "sg-made", "web"), OrphanedResource("network interface", "eni-1", ""))
    blocking = blockers.find_blockers(aws.account, LENT, left)
    assert blocking == (
        Blocker("sg-db", "security group database has rules that refer to the cluster's security groups"),
    )
    assert filtered(aws.named("ec2:DescribeSecurityGroups")[0], "ip-permission.group-id") == ["sg-own", "sg-made"]


def test_machines_that_no_group_has_launched_are_in_the_way(aws: Answers) -> None:
    scope = Inventory("one", vpc_id="vpc-1", unmanaged_instances=frozenset({"i-9", "i-8"}))
    blocking = blockers.find_blockers(aws.account, scope, ())
    assert [each.id for each in blocking] == ["i-8", "i-9"]
    assert all("launched by Karpenter or by hand" in each.what for each in blocking)


def test_load_balancers_of_others_are_named_with_their_name_and_their_interfaces_are_not(aws: Answers) -> None:
    names = ("theirs", "ours", "left")
    aws.given["elb:DescribeLoadBalancers"] = {
        "LoadBalancerDescriptions": [{"LoadBalancerName": each, "VPCId": "vpc-1"} for each in names]
    }
    interfaces(aws, *({"Description": f"ELB {each}"} for each in names))
    scope = Inventory("one", (*OWN.resources, resource("ours", type_name="Balancer")), vpc_id="vpc-1", own_vpc=True)
    left = (OrphanedResource("load balancer", "left", "left"),)
    assert blockers.find_blockers(aws.account, scope, left) == (Blocker("theirs", "load balancer theirs"),)


def interfaces(aws: Answers, *described: dict[str, Any]) -> None:
    aws.given["ec2:DescribeNetworkInterfaces"] = {
        "NetworkInterfaces": [{"NetworkInterfaceId": f"eni-{place}", **each} for place, each in enumerate(described)]
    }


BALANCER = "arn:aws:elasticloadbalancing:us-west-2:123456789012:loadbalancer/net/api/0123456789abcdef"
STACKS = Inventory(
    "one",
    (*OWN.resources, resource(BALANCER, type_name="AWS::ElasticLoadBalancingV2::LoadBalancer")),
    vpc_id="vpc-1",
    own_vpc=True,
    instances=OWN.instances,
    security_groups=("sg-own",),
)


@pytest.mark.parametrize(
    ("described", "what"),
    [
        ({}, "network interface, without a description"),
        ({"Description": "a database"}, "network interface, a database"),
        ({"TagSet": pairs(OWNED)}, None),
        ({"TagSet": pairs({"kubernetes.io/cluster/two": "owned"})}, "network interface, without a description"),
        # Of the cluster's instances, the VPC CNI's, and of what its stacks have.
        ({"Attachment": {"InstanceId": "i-1"}}, None),
        ({"TagSet": pairs({"node.k8s.amazonaws.com/instance_id": "i-1"})}, None),
        (
            {"TagSet": pairs({"node.k8s.amazonaws.com/instance_id": "i-2"})},
            "network interface, without a description",
        ),
        ({"Description": "Interface for NAT Gateway nat-1"}, None),
        ({"Description": "Interface for NAT Gateway nat-2"}, "network interface, Interface for NAT Gateway nat-2"),
        ({"Description": "ELB net/api/0123456789abcdef"}, None),
        ({"Description": "ELB net/web/0123456789abcdef"}, "network interface, ELB net/web/0123456789abcdef"),
        ({"Description": "ELB net/left/0123456789abcdef"}, None),
        ({"InterfaceType": "vpc_endpoint", "Groups": [{"GroupId": "sg-own"}]}, None),
        (
            {"InterfaceType": "vpc_endpoint", "Groups": [{"GroupId": "sg-2"}]},
            "network interface, without a description",
        ),
        (
            {"InterfaceType": "lambda", "Groups": [{"GroupId": "sg-own"}]},
            "network interface, without a description",
        ),
        ({"TagSet": pairs({"cfngen:cluster": "one"})}, None),
        ({"TagSet": pairs({"cfngen:cluster": "two"})}, "network interface, without a description"),
        ({"TagSet": pairs({"aws:cloudformation:stack-id": arn("one")})}, None),
        (
            {"TagSet": pairs({"aws:cloudformation:stack-id": arn("two")})},
            "network interface, without a description",
        ),
    ],
)
def test_an_interface_is_the_clusters_or_somebody_elses(
    aws: Answers, described: dict[str, Any], what: str | None
) -> None:
    interfaces(aws, described)
    blocking = blockers.find_blockers(aws.account, STACKS, (OrphanedResource("load balancer", "left-arn", "left"),))
    assert blocking == ((Blocker("eni-0", what),) if what else ())


@pytest.mark.parametrize("own", ["stack", "leftover"])
def test_an_interface_that_the_cluster_is_known_to_have_is_its_own(aws: Answers, own: str) -> None:
    interfaces(aws, {})
    has = (resource("eni-0", type_name="AWS::EC2::NetworkInterface"),) if own == "stack" else ()
    left = (OrphanedResource("network interface", "eni-0", ""),) if own == "leftover" else ()
    assert blockers.find_blockers(aws.account, Inventory("one", has, vpc_id="vpc-1", own_vpc=True), left) == ()


def test_interfaces_of_what_is_named_itself_are_not_named_again(aws: Answers) -> None:
    interfaces(aws, {}, {"Description": "Interface for NAT Gateway nat-9"}, {"Description": "by hand"})
    aws.given["ec2:DescribeVpcEndpoints"] = {
        "VpcEndpoints": [{**HERE, "VpcEndpointId": "vpce-9", "State": "available", "NetworkInterfaceIds": ["eni-0"]}]
    }
    aws.given["ec2:DescribeNatGateways"] = {"NatGateways": [{**HERE, "NatGatewayId": "nat-9", "State": "available"}]}
    blocking = blockers.find_blockers(aws.account, OWN, ())
    assert [each.id for each in blocking] == ["eni-2", "nat-9", "vpce-9"]


@pytest.mark.parametrize(
    ("machine", "what"),
    [
        (instance("i-9", Name="bastion"), "instance bastion"),
        (instance("i-9", Owner="alice"), "instance"),
        (instance("i-9", **{"kubernetes.io/cluster/two": "owned"}), "instance of the cluster two"),
        (
            instance("i-9", "stopped", **{"Name": "x", "kubernetes.io/cluster/two": "owned"}),
            "instance x of the cluster two",
        ),
        (instance("i-9", "stopping", Name="bastion"), "instance bastion"),
        (instance("i-9", "pending", Name="bastion"), "instance bastion"),
        (instance("i-9", "shutting-down", Name="bastion"), None),
        (instance("i-9", "terminated", Name="bastion"), None),
    ],
)  # fmt: skip
def test_a_machine_of_others_is_named_for_its_interface(
    aws: Answers, machine: dict[str, Any], what: str | None
) -> None:
    interfaces(aws, {"Attachment": {"InstanceId": "i-9"}}, {"Attachment": {"InstanceId": "i-1"}})
    aws.given["ec2:DescribeInstances"] = running(machine)
    assert blockers.find_blockers(aws.account, OWN, ()) == ((Blocker("i-9", what),) if what else ())
    assert filtered(aws.named("ec2:DescribeInstances")[0], "instance-id") == ["i-9"]


def test_where_only_the_clusters_machines_are_no_others_are_asked_for(aws: Answers) -> None:
    interfaces(aws, {"Attachment": {"InstanceId": "i-1"}})
    assert blockers.find_blockers(aws.account, OWN, ()) == ()
    assert aws.named("ec2:DescribeInstances") == []


@pytest.mark.parametrize(
    ("described", "named"),
    [
        ({"SubnetId": "subnet-1"}, True),
        ({"SubnetId": "subnet-2"}, False),
        ({"SubnetId": "subnet-2", "Groups": [{"GroupId": "sg-own"}]}, True),
        ({"SubnetId": "subnet-2", "Groups": [{"GroupId": "sg-2"}]}, False),
    ],
)
def test_in_a_network_that_was_lent_only_the_clusters_subnets_and_groups_count(
    aws: Answers, described: dict[str, Any], named: bool
) -> None:
    interfaces(aws, described)
    assert bool(blockers.find_blockers(aws.account, LENT, ())) is named


def test_without_a_network_no_interface_is_asked_for(aws: Answers) -> None:
    assert blockers.find_blockers(aws.account, Inventory("one"), ()) == ()
    assert aws.named("ec2:DescribeNetworkInterfaces") == []


@pytest.mark.parametrize(
    ("scope", "associations", "named"),
    [
        (LENT, [{"SubnetId": "subnet-9"}], ["subnet-9"]),
        (LENT, [{"SubnetId": "subnet-1"}], []),
        (LENT, [{"GatewayId": "igw-1"}], []),
        (OWN, [{"SubnetId": "subnet-9"}], []),
        (Inventory("one", vpc_id="vpc-1"), [{"SubnetId": "subnet-9"}], []),
    ],
)
def test_subnets_that_use_the_clusters_route_table_are_named(
    aws: Answers, scope: Inventory, associations: list[dict[str, Any]], named: list[str]
) -> None:
    aws.given["ec2:DescribeRouteTables"] = {
        "RouteTables": [{"RouteTableId": "rtb-1", "Associations": associations}, {"RouteTableId": "rtb-2"}]
    }
    blocking = blockers.find_blockers(aws.account, scope, ())
    assert blocking == tuple(Blocker(each, "subnet that uses the cluster's route table rtb-1") for each in named)
    if named:
        assert filtered(aws.named("ec2:DescribeRouteTables")[0], "route-table-id") == ["rtb-1"]


def test_what_is_in_the_way_for_two_reasons_is_named_once_with_the_first(aws: Answers) -> None:
    interfaces(aws, {"Attachment": {"InstanceId": "i-9"}})
    aws.given["ec2:DescribeInstances"] = running(instance("i-9", Name="by hand"))
    scope = Inventory("one", vpc_id="vpc-1", own_vpc=True, unmanaged_instances=frozenset({"i-9"}))
    [found] = blockers.find_blockers(aws.account, scope, ())
    assert "launched by Karpenter or by hand" in found.what


def test_the_refusal_says_what_is_in_the_way_and_how_to_go_on() -> None:
    error = OccupiedError("one", (Blocker("eni-1", "a database"), Blocker("sg-1", "rules")))
    assert str(error).splitlines()[1:] == ["  - eni-1: a database", "  - sg-1: rules"]
    assert "--even-if-occupied" in error.hint
    assert [each.id for each in error.blockers] == ["eni-1", "sg-1"]
