"""What costs money, by a plan and while a cluster is paused, and what a new cluster consists of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from answers import DENIED, Answers, filtered, pairs
from aws_descriptions import instance, running, scaling_group, stack, stacked
from aws_descriptions import resource as held

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Message, Notice
from cfngen.deploy.plan.costs.costs import (
    UNUSED_CAPACITY,
    ComponentCount,
    Cost,
    CreationSummary,
    cost_differences,
    read_remaining_costs,
)
from cfngen.deploy.plan.costs.creation import summarize_creation
from cfngen.deploy.preflight.quotas.demand import Demand
from cfngen.deploy.preflight.quotas.instance_counts import InstanceCount

EC2, ASG = "AWS::EC2::", "AWS::AutoScaling::AutoScalingGroup"
BALANCER, NAT = "AWS::ElasticLoadBalancingV2::LoadBalancer", f"{EC2}NatGateway"
ENDPOINTS = "interface endpoints, counted in each zone"
UNKNOWN = {"Ref": "OfAnotherStack"}
RESERVATION = f"{EC2}CapacityReservation"
SECRET, KEY, BUCKET = "AWS::SecretsManager::Secret", "AWS::KMS::Key", "AWS::S3::Bucket"


@pytest.mark.parametrize(
    ("before", "after", "costs"),
    [
        (Demand(), Demand(), []),
        (
            Demand(instances=(InstanceCount("t3.large", 2, False), InstanceCount("m5.large", 1, False))),
            Demand(instances=(InstanceCount("t3.large", 1, False), InstanceCount("t3.large", 4, False))),
            [Cost(-1, "instance", "m5.large"), Cost(3, "instance", "t3.large")],
        ),
        (
            Demand(instances=(InstanceCount("t3.large", 2, False),)),
            Demand(instances=(InstanceCount("t3.large", 2, True),)),
            [Cost(-2, "instance", "t3.large"), Cost(2, "instance", "t3.large (spot)")],
        ),
        (
            Demand(gib_by_volume_type={"gp2": 10, "gp3": 20}),
            Demand(gib_by_volume_type={"gp3": 50, "io2": 5}),
            [Cost(-10, "GiB", "gp2 volumes"), Cost(30, "GiB", "gp3 volumes"), Cost(5, "GiB", "io2 volumes")],
        ),
        (Demand(gib_by_volume_type={"gp3": 20}), Demand(gib_by_volume_type={"gp3": 20}), []),
        (
            Demand(count_by_resource_type={f"{EC2}EIP": 1}, public_addresses=4),
            Demand(count_by_resource_type={f"{EC2}EIP": 3}, public_addresses=5),
            [Cost(3, "address", "public IPv4")],
        ),
        (Demand(), Demand(endpoint_interfaces=21), [Cost(21, "endpoint", "PrivateLink", ENDPOINTS)]),
        (Demand(endpoint_interfaces=21), Demand(), [Cost(-21, "endpoint", "PrivateLink", ENDPOINTS)]),
        (Demand(public_addresses=1), Demand(count_by_resource_type={f"{EC2}EIP": 1}), []),
        (
            Demand(count_by_resource_type={SECRET: 3, f"{EC2}VPC": 1}),
            Demand(count_by_resource_type={BALANCER: 1, NAT: 2, SECRET: 2, KEY: 1}),
            [
                Cost(1, "load balancer", "Elastic Load Balancing"),
                Cost(2, "gateway", "NAT"),
                Cost(-1, "secret", "Secrets Manager"),
                Cost(1, "key", "KMS"),
            ],
        ),
    ],
)
def test_what_an_update_adds_to_what_costs_money(before: Demand, after: Demand, costs: list[Cost]) -> None:
    assert list(cost_differences(before, after)) == costs


Resources = dict[str, dict[str, Any]]


def added(logical_id: str, type_: str, properties: Any = None) -> Resources:
    return {logical_id: {"Type": type_, "Properties": properties or {}}}


def launched(prefix: str, data: Any, sizes: Any) -> Resources:
    template = added(f"{prefix}LaunchTemplate", f"{EC2}LaunchTemplate", {"LaunchTemplateData": data})
    return {**template, **added(f"{prefix}AutoScalingGroup", ASG, sizes)}


def summarized(cluster: Cluster, *resources: Resources) -> CreationSummary:
    return summarize_creation(cluster, {name: each for some in resources for name, each in some.items()})


ONE = parse(
    {
        "controlPlane": {"instanceType": "t3.large", "rootVolume": {"size": 21}, "volume": {"size": 33}},
        "nodeGroups": [
            {"name": "small", "instanceType": "m5.large", "minSize": 2, "maxSize": 5, "rootVolume": {"size": 40}},
            {"name": "spare", "instanceType": "c5.large", "minSize": 0, "maxSize": 3},
        ],
    }
)
PRIVATE = parse(
    {
        "network": {
            "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
            "subnets": [{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/20"}],
            "routeTable": "rtb-0123456789abcdef0",
            "serviceCidr": "10.250.0.0/16",
        },
        "nodeGroups": [{"name": "small", "minSize": 2, "maxSize": 2, "publicIp": False}],
    }
)
ONLY_SPOT = {"InstancesDistribution": {"OnDemandBaseCapacity": 0, "OnDemandPercentageAboveBaseCapacity": 0}}


def test_where_a_template_has_no_values_the_cluster_file_does() -> None:
    made = summarized(ONE, added("MasterAVolume", f"{EC2}Volume"))
    assert made.items == (
        ComponentCount(1, "master", "t3.large"),
        ComponentCount(2, "node", "m5.large, group small, up to 5"),
        ComponentCount(0, "node", "c5.large, group spare, up to 3"),
    )
    # Of masters 21 GiB for the root and 33 for the data, of two nodes 40 each; each node has an address.
    assert made.costs == (
        Cost(1, "instance", "t3.large", "masters"),
        Cost(2, "instance", "m5.large", "group small"),
        Cost(21 + 33 + 80, "GiB", "gp3 volumes", "root volumes and the masters' data"),
        Cost(2, "address", "public IPv4", "the nodes'"),
    )


@pytest.mark.parametrize(
    ("data", "sizes", "item", "costs"),
    [
        (
            {"InstanceType": "m6i.large", "BlockDeviceMappings": [{"Ebs": {"VolumeSize": "10", "VolumeType": "gp2"}}]},
            {"MinSize": "3", "MaxSize": "3"},
            ComponentCount(3, "node", "m6i.large, group small"),
            {(3, "m6i.large"), (30, "gp2 volumes"), (21, "gp3 volumes")},
        ),
        (
            {"InstanceMarketOptions": {"MarketType": "spot"}, "BlockDeviceMappings": [{}]},
            {"MinSize": "1", "MaxSize": "2", "DesiredCapacity": "2"},
            ComponentCount(2, "node", "m5.large, group small, spot"),
            {(2, "m5.large (spot)"), (101, "gp3 volumes")},
        ),
        (
            {
                "InstanceType": UNKNOWN,
                "BlockDeviceMappings": [{"Ebs": {"VolumeSize": UNKNOWN, "VolumeType": UNKNOWN}}],
            },
            {"MinSize": UNKNOWN, "MaxSize": UNKNOWN, "DesiredCapacity": UNKNOWN},
            ComponentCount(2, "node", "m5.large, group small, up to 5"),
            {(2, "m5.large"), (101, "gp3 volumes")},
        ),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/sda1"}]},
            {"MinSize": "0", "MaxSize": "9"},
            ComponentCount(0, "node", "m5.large, group small, up to 9"),
            {(21, "gp3 volumes")},
        ),
        (
            {"BlockDeviceMappings": [{"DeviceName": "/dev/sda1"}]},
            {"MinSize": "0", "MaxSize": "9", "MixedInstancesPolicy": ONLY_SPOT},
            ComponentCount(0, "node", "m5.large, group small, spot, up to 9"),
            {(21, "gp3 volumes")},
        ),
    ],
)
def test_values_of_the_templates_count(
    data: Any, sizes: Any, item: ComponentCount, costs: set[tuple[int, str]]
) -> None:
    made = summarized(ONE, launched("NodeGroupSmall", data, sizes))
    assert item in made.items
    masters = (1, "t3.large")
    assert {(cost.quantity, cost.what) for cost in made.costs} - {masters} >= costs
    assert {cost.what for cost in made.costs} - {"public IPv4"} == {what for _, what in costs} | {masters[1]}


def test_groups_of_one_kind_are_counted_together_and_each_is_named() -> None:
    same = parse(
        {
            "controlPlane": {"instanceType": "t3.large"},
            "nodeGroups": [{"name": name, "instanceType": "t3.large", "minSize": 1, "maxSize": 1} for name in "ab"],
        }
    )
    [instances] = [cost for cost in summarized(same).costs if cost.unit == "instance"]
    assert instances == Cost(3, "instance", "t3.large", "masters, group a, group b")


def test_masters_that_are_alike_are_counted_together() -> None:
    zones = [{"zone": f"us-west-2{letter}"} for letter in "abc"]
    three = parse({"network": {"subnets": zones}, "controlPlane": {"count": 3, "instanceType": "t3.large"}})
    made = summarized(three, *(added(f"Master{slot}Volume", f"{EC2}Volume", {"Size": "7"}) for slot in "ABC"))
    assert made.items[0] == ComponentCount(3, "master", "t3.large")
    [masters] = [cost for cost in made.costs if cost.what == "t3.large"]
    assert masters == Cost(3, "instance", "t3.large", "masters")


@pytest.mark.parametrize(
    ("type_", "what", "detail"),
    [
        (f"{EC2}VPC", "VPC", ""),
        (f"{EC2}Subnet", "subnet", ""),
        (f"{EC2}RouteTable", "route table", ""),
        (f"{EC2}EIP", "public address of the API (Elastic IP)", ""),
        (BALANCER, "network load balancer of the API", ""),
        (f"{EC2}SecurityGroup", "security group", ""),
        ("AWS::IAM::Role", "IAM role", ""),
        (SECRET, "secret", ""),
        (KEY, "encryption key", ""),
        (f"{EC2}KeyPair", "SSH key pair", ""),
        (BUCKET, "bucket of etcd's snapshots", "stays when the cluster is deleted"),
        (RESERVATION, "capacity reservation of a master", "for its instances only"),
        (
            "AWS::CloudFront::Distribution",
            "CloudFront distribution of these documents",
            "no charge by the hour; the few requests are billed",
        ),
        ("AWS::IAM::OIDCProvider", "OIDC provider for service-account tokens", ""),
        ("AWS::ECR::Repository", "repository for images", "each GB of images is billed"),
        (f"{EC2}FlowLog", "flow log of the VPC", ""),
        ("AWS::Logs::LogGroup", "log group of the flow log", "stays when the cluster is deleted"),
        ("AWS::Route53::HostedZone", "hosted zone of the API's name", ""),
        ("AWS::Route53::RecordSet", "DNS record of the API", ""),
    ],
)
def test_what_else_it_consists_of_is_counted(type_: str, what: str, detail: str) -> None:
    made = summarized(PRIVATE, added("A", type_), added("B", type_))
    assert ComponentCount(2, what, detail) in made.items
    assert len(made.items) == 3  # with masters and nodes


def test_resources_of_one_type_are_told_apart_by_what_they_are_for() -> None:
    endpoints = (
        added(f"Endpoint{name}", f"{EC2}VPCEndpoint", {"VpcEndpointType": kind})
        for name, kind in (("S3", "Gateway"), ("Ssm", "Interface"))
    )
    made = summarized(
        PRIVATE,
        added("NatElasticIpA", f"{EC2}EIP"),
        added("BastionElasticIp", f"{EC2}EIP"),
        added("BackupBucket", BUCKET),
        added("IssuerBucket", BUCKET),
        added("OidcProvider", "AWS::IAM::OIDCProvider"),
        added("OidcProviderGithub1d7fb0a3", "AWS::IAM::OIDCProvider"),
        *endpoints,
    )
    assert made.items[2:] == (
        ComponentCount(1, "public address of a NAT gateway (Elastic IP)", "under which others see the instances"),
        ComponentCount(1, "gateway endpoint", "for S3, free of charge"),
        ComponentCount(1, "interface endpoint", "for AWS services at private addresses"),
        ComponentCount(1, "public address of the bastion (Elastic IP)"),
        ComponentCount(1, "bucket of etcd's snapshots", "stays when the cluster is deleted"),
        ComponentCount(1, "bucket of the documents by which AWS checks service-account tokens"),
        ComponentCount(1, "OIDC provider for service-account tokens"),
        ComponentCount(1, "OIDC provider of who pushes images", "stays when the cluster is deleted"),
    )
    assert Cost(2, "address", "public IPv4", "the bastion's and the NAT gateways'") in made.costs


@pytest.mark.parametrize(
    ("entries", "cluster", "cost"),
    [
        ([], PRIVATE, None),
        ([added("Eip", f"{EC2}EIP")], PRIVATE, Cost(1, "address", "public IPv4", "the API's")),
        ([added("Eip", f"{EC2}EIP")], ONE, Cost(3, "address", "public IPv4", "the API's and the nodes'")),
        (
            [added("Lb", BALANCER, {"Scheme": "internet-facing", "Subnets": ["a", "b"]}), added("Eip", f"{EC2}EIP")],
            PRIVATE,
            Cost(3, "address", "public IPv4", "the masters' and the API's"),
        ),
        (
            [added("NatElasticIpA", f"{EC2}EIP"), added("NatElasticIpB", f"{EC2}EIP")],
            PRIVATE,
            Cost(2, "address", "public IPv4", "the NAT gateways'"),
        ),
        (
            [
                added("Lb", BALANCER, {"Scheme": "internet-facing", "Subnets": ["a", "b"]}),
                added("NatElasticIpA", f"{EC2}EIP"),
            ],
            PRIVATE,
            Cost(3, "address", "public IPv4", "the API's and the NAT gateways'"),
        ),
        ([added("Lb", BALANCER, {"Scheme": "internal", "Subnets": ["a", "b"]})], PRIVATE, None),
        ([added("Lb", BALANCER, {"Scheme": "internet-facing"})], PRIVATE, None),
        ([added("Nat", NAT, {"Scheme": "internet-facing", "Subnets": ["a"]})], PRIVATE, None),
    ],
)
def test_public_addresses_cost_money(entries: list[Resources], cluster: Any, cost: Cost | None) -> None:
    costs = summarized(cluster, *entries).costs
    assert next((each for each in costs if each.unit == "address"), None) == cost


def test_of_several_masters_the_public_addresses_are_the_masters() -> None:
    made = summarized(PRIVATE, added("Lb", BALANCER), added("Eip", f"{EC2}EIP"))
    assert ComponentCount(1, "public address of a master (Elastic IP)") in made.items
    assert "public address of the API (Elastic IP)" not in {item.what for item in made.items}


SUBNETS_OF_A_PRIVATE_CLUSTER = parse({"network": {"topology": "private"}})


def test_the_parts_of_a_private_network_are_told_apart() -> None:
    interface = {"VpcEndpointType": "Interface", "SubnetIds": ["a", "b"]}
    entries = (
        *(added(name, f"{EC2}Subnet") for name in ("SubnetA", "SubnetB", "PublicSubnetA")),
        added("NatGatewayA", NAT),
        added("NatElasticIpA", f"{EC2}EIP"),
        added("EndpointS3", f"{EC2}VPCEndpoint", {"VpcEndpointType": "Gateway"}),
        *(added(f"Endpoint{name}", f"{EC2}VPCEndpoint", interface) for name in ("Ec2", "EcrApi", "Ssm")),
        added("ApiLoadBalancer", BALANCER, {"Scheme": "internet-facing", "Subnets": ["a", "b"]}),
    )
    made = summarized(SUBNETS_OF_A_PRIVATE_CLUSTER, *entries)
    assert [(item.count, item.what) for item in made.items[2:]] == [
        (2, "private subnet"),
        (1, "public subnet"),
        (1, "NAT gateway"),
        (1, "public address of a NAT gateway (Elastic IP)"),
        (1, "gateway endpoint"),
        (3, "interface endpoint"),
        (1, "network load balancer of the API"),
    ]
    assert [cost for cost in made.costs if cost.unit not in ("instance", "GiB")] == [
        Cost(3, "address", "public IPv4", "the API's and the NAT gateways'"),
        Cost(1, "load balancer", "Elastic Load Balancing"),
        Cost(1, "gateway", "NAT", "each by the hour, and by GB"),
        Cost(6, "endpoint", "PrivateLink", "3 interface endpoints, in each zone by the hour, and by GB"),
    ]


def test_services_that_cost_money() -> None:
    entries = [
        *(added("Lb", BALANCER), added("S1", SECRET), added("S2", SECRET), added("K", KEY)),
        *(added("R", RESERVATION), added("F", f"{EC2}FlowLog"), added("Z", "AWS::Route53::HostedZone")),
    ]
    costs = [cost for cost in summarized(PRIVATE, *entries).costs if cost.unit not in ("instance", "GiB")]
    assert costs == [
        Cost(1, "load balancer", "Elastic Load Balancing"),
        Cost(1, "reservation", UNUSED_CAPACITY, "as much as the instance, while none runs in it"),
        Cost(1, "flow log", "vended logs", "by GB delivered, and by GB stored"),
        Cost(2, "secret", "Secrets Manager"),
        Cost(1, "key", "KMS"),
        Cost(1, "zone", "Route 53"),
    ]


def test_data_volumes_count_with_their_own_size_and_type() -> None:
    properties = {"Size": "100", "VolumeType": "io2"}
    made = summarized(PRIVATE, added("MasterAVolume", f"{EC2}Volume", properties), added("X", f"{EC2}VPC", properties))
    assert (100, "io2 volumes") in {(cost.quantity, cost.what) for cost in made.costs}


def test_further_volumes_of_nodes_are_billed_with_the_other_storage() -> None:
    volumes = [{"size": 100}, {"size": 50, "type": "gp2"}]
    cluster = parse({"nodeGroups": [{"name": "small", "minSize": 2, "volumes": volumes}]})
    made = summarized(cluster, added("MasterAVolume", f"{EC2}Volume"))
    users = "root volumes, further volumes of nodes, and the masters' data"
    assert [cost for cost in made.costs if cost.unit == "GiB"] == [
        Cost(20 + 20 + 2 * (32 + 100), "GiB", "gp3 volumes", users),
        Cost(2 * 50, "GiB", "gp2 volumes", users),
    ]


BALANCER_ARN = "arn:aws:elasticloadbalancing:us-west-2:123456789012:loadbalancer/net/{0}/{0}"


def described(name: str, scheme: str = "internet-facing", zones: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "LoadBalancerArn": BALANCER_ARN.format(name),
        "LoadBalancerName": name,
        "VpcId": "vpc-1",
        "Scheme": scheme,
        "AvailabilityZones": [{"ZoneName": f"us-west-2{'abc'[zone]}", **more} for zone in range(zones)],
    }


@pytest.mark.parametrize(
    ("balancers", "classic", "costs"),
    [
        ([], [], []),
        ([described("others")], [], []),
        ([described("own", "internal")], [], [Cost(1, "load balancer", "Elastic Load Balancing")]),
        ([described("own", LoadBalancerAddresses=[{"AllocationId": "eipalloc-1"}])], [],
         [Cost(1, "load balancer", "Elastic Load Balancing")]),
        ([described("own", zones=3)], [],
         [Cost(3, "address", "public IPv4", "3 of load balancers"),
          Cost(1, "load balancer", "Elastic Load Balancing")]),
        ([described("own"), described("others"), described("made", zones=1)], ["made-classic"],
         [Cost(4, "address", "public IPv4", "4 of load balancers"),
          Cost(3, "load balancer", "Elastic Load Balancing", "2 made by Kubernetes")]),
    ],
)  # fmt: skip
def test_while_a_cluster_is_paused_its_load_balancers_cost_money(
    aws: Answers, balancers: list[dict[str, Any]], classic: list[str], costs: list[Cost]
) -> None:
    """Those of its stacks and those that Kubernetes made: each once, with the public addresses that are their own."""

    def tags(names: list[str], key: str) -> dict[str, Any]:
        others = [{"Key": "Name", "Value": "others"}]
        owned = [{"Key": "kubernetes.io/cluster/one", "Value": "owned"}]
        return {"TagDescriptions": [{key: name, "Tags": owned if "made" in name else others} for name in names]}

    vpc = held("vpc-1")
    own = held(BALANCER_ARN.format("own"), type_name="AWS::ElasticLoadBalancingV2::LoadBalancer")
    has_own = any(of["LoadBalancerName"] == "own" for of in balancers)
    stacked(aws, stack(), resources={"one": (vpc, own) if has_own else (vpc,)})
    aws.otherwise = None
    aws.given |= {
        "elbv2:DescribeLoadBalancers": {"LoadBalancers": balancers},
        "elbv2:DescribeTags": lambda sent: tags(sent["ResourceArns"], "ResourceArn"),
        "elb:DescribeLoadBalancers": {
            "LoadBalancerDescriptions": [
                {"LoadBalancerName": name, "VPCId": "vpc-1", "Scheme": "internet-facing",
                 "AvailabilityZones": ["us-west-2a"]} for name in classic
            ]
        },
        "elb:DescribeTags": lambda sent: tags(sent["LoadBalancerNames"], "LoadBalancerName"),
    }  # fmt: skip
    assert remaining(aws) == costs


def remaining(aws: Answers, **file: Any) -> list[Cost] | None:
    """What the stack `one` still costs; nothing is reported where that is known."""
    root = find_stack(aws.account, "one")
    assert root
    messages: list[Message] = []
    costs = read_remaining_costs(aws.account, root, parse({"name": "one", **file}), messages.append)
    assert messages == []
    return None if costs is None else [*costs]


OF_CLAIM = {"CSIVolumeName": "pvc-1", "kubernetes.io/cluster/one": "owned"}
OF_STACK = {"cfngen:cluster": "one", "KubernetesCluster": "one"}


def volume(name: str, size: int, kind: str, tags: dict[str, str], instance: str = "") -> dict[str, Any]:
    return {
        "VolumeId": name,
        "Size": size,
        "VolumeType": kind,
        "Tags": pairs(tags),
        "Attachments": [{"InstanceId": instance}] if instance else [],
    }


def filtering(key: str, *described: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """EC2's answer to a list of volumes, or of snapshots, for the filters by which those of a cluster are found."""

    def passes(item: dict[str, Any], name: str, values: list[str]) -> bool:
        tags = {tag["Key"]: tag["Value"] for tag in item["Tags"]}
        attached = [attachment["InstanceId"] for attachment in item.get("Attachments", ())]
        by_name = {"attachment.instance-id": attached, "volume-id": [item["VolumeId"]]}
        return bool({*by_name.get(name, [tags.get(name.removeprefix("tag:"))])} & {*values})

    def answer(sent: dict[str, Any]) -> dict[str, Any]:
        filters = [(condition["Name"], condition["Values"]) for condition in sent["Filters"]]
        return {key: [item for item in described if all(passes(item, *condition) for condition in filters)]}

    return answer


MASTER_A, MASTER_B = volume("vol-a", 20, "gp3", OF_STACK), volume("vol-b", 30, "gp3", OF_STACK)
CLAIM = volume("vol-claim", 7, "gp3", OF_CLAIM)


@pytest.mark.parametrize(
    ("volumes", "costs"),
    [
        ((), []),
        ((MASTER_A,), [Cost(20, "GiB", "gp3 volumes", "20 GiB of masters' data")]),
        ((MASTER_A, MASTER_B), [Cost(50, "GiB", "gp3 volumes", "50 GiB of masters' data")]),
        ((CLAIM,), [Cost(7, "GiB", "gp3 volumes", "7 GiB of claims")]),
        ((MASTER_A, CLAIM), [Cost(27, "GiB", "gp3 volumes", "20 GiB of masters' data, and 7 GiB of claims")]),
        (
            (volume("vol-a", 20, "io2", OF_STACK), CLAIM, volume("vol-c", 100, "gp2", OF_CLAIM)),
            [
                Cost(100, "GiB", "gp2 volumes", "100 GiB of claims"),
                Cost(7, "GiB", "gp3 volumes", "7 GiB of claims"),
                Cost(20, "GiB", "io2 volumes", "20 GiB of masters' data"),
            ],
        ),
        # One that has no tag of a cluster is known by the instance that it is attached to.
        (
            (volume("vol-x", 5, "gp3", {"CSIVolumeName": "pvc-2"}, "i-member"),),
            [Cost(5, "GiB", "gp3 volumes", "5 GiB of claims")],
        ),
        ((volume("vol-x", 5, "gp3", {"CSIVolumeName": "pvc-2"}, "i-other"),), []),
        ((volume("vol-x", 5, "gp3", {**OF_CLAIM, "kubernetes.io/cluster/two": "owned"}),), []),
        # The root volume of an instance, and a volume that somebody made.
        ((volume("vol-x", 5, "gp3", {"KubernetesCluster": "one"}, "i-member"),), []),
        # It was deleted, and the stack still lists it.
        ((volume("vol-gone", 5, "gp3", OF_STACK),), []),
    ],
)
def test_volumes_of_masters_and_of_claims_cost_money_by_their_type(
    aws: Answers, volumes: tuple[dict[str, Any], ...], costs: list[Cost]
) -> None:
    members = (held("vol-a"), held("vol-b"), held("vol-gone", "DELETE_COMPLETE"), held("group-1"))
    stacked(aws, stack(), resources={"one": members})
    aws.otherwise = None
    aws.given |= {
        "ec2:DescribeVolumes": filtering("Volumes", *volumes),
        "autoscaling:DescribeAutoScalingGroups": {
            "AutoScalingGroups": [
                scaling_group(
                    "group-1",
                    (1, 1, 1),
                    Instances=[
                        {
                            "InstanceId": "i-member",
                            "AvailabilityZone": "us-west-2a",
                            "LifecycleState": "InService",
                            "HealthStatus": "Healthy",
                            "ProtectedFromScaleIn": False,
                        }
                    ],
                )
            ]
        },
    }
    assert remaining(aws) == costs


def snapshot(name: str, of: str, size: int, **tags: str) -> dict[str, Any]:
    return {"SnapshotId": name, "VolumeId": of, "VolumeSize": size, "Tags": pairs(tags)}


OF_VOLUME_SNAPSHOT = {"CSIVolumeSnapshotName": "snapshot-1", "KubernetesCluster": "one"}


@pytest.mark.parametrize(
    ("snapshots", "count", "gib"),
    [
        ((), 0, 0),
        ((snapshot("snap-1", "vol-a", 20),), 1, 20),
        # A volume that the stack no longer has.
        ((snapshot("snap-1", "vol-gone", 15),), 1, 15),
        ((snapshot("snap-1", "vol-claim", 7, **OF_VOLUME_SNAPSHOT),), 1, 7),
        # It is one, by whatever it is known.
        ((snapshot("snap-1", "vol-a", 20, **OF_VOLUME_SNAPSHOT), snapshot("snap-2", "vol-a", 20)), 2, 40),
        ((snapshot("snap-1", "vol-claim", 7, KubernetesCluster="one"), snapshot("snap-2", "vol-other", 9)), 0, 0),
    ],
)
def test_snapshots_of_volumes_cost_money(
    aws: Answers, snapshots: tuple[dict[str, Any], ...], count: int, gib: int
) -> None:
    stacked(aws, stack(), resources={"one": (held("vol-a"), held("vol-gone", "DELETE_COMPLETE"))})
    aws.otherwise = None
    aws.given["ec2:DescribeSnapshots"] = filtering("Snapshots", *snapshots)
    cost = Cost(count, "snapshot", "EBS", f"of volumes of {gib} GiB; billed by the stored data")
    assert remaining(aws) == [cost] * bool(count)


def reserved(*ids: str) -> dict[str, Any]:
    """The newest version of a launch template, with the reservations that it names."""
    targets = [{"CapacityReservationTarget": {"CapacityReservationId": name}} for name in ids] or [{}]
    versions = [{"LaunchTemplateData": {"CapacityReservationSpecification": target}} for target in targets]
    return {"LaunchTemplateVersions": versions}


LAUNCH_TEMPLATE, ENDPOINT = f"{EC2}LaunchTemplate", f"{EC2}VPCEndpoint"
RESERVATION = f"{EC2}CapacityReservation"
AS_IF_USED = "charged as if they were used:"


@pytest.mark.parametrize(
    ("members", "more", "costs"),
    [
        ([("nat-1", NAT), ("nat-2", NAT)], {}, [Cost(2, "gateway", "NAT")]),
        ([("s-1", SECRET), ("s-2", SECRET), ("k-1", KEY)], {},
         [Cost(2, "secret", "Secrets Manager"), Cost(1, "key", "KMS")]),
        ([("z-1", "AWS::Route53::HostedZone")], {}, [Cost(1, "zone", "Route 53")]),
        ([("eip-1", f"{EC2}EIP"), ("eip-2", f"{EC2}EIP")], {}, [Cost(2, "address", "public IPv4", "2 Elastic IPs")]),
        # An address that the cluster file names is the user's, and is charged all the same; once.
        ([("eip-1", f"{EC2}EIP")], {"parameters": {"A": "eipalloc-1", "B": "eipalloc-1", "C": "vpc-1"}},
         [Cost(2, "address", "public IPv4", "2 Elastic IPs")]),
        ([], {"parameters": {"A": "eipalloc-1"}}, [Cost(1, "address", "public IPv4", "1 Elastic IP")]),
        ([("vpce-1", ENDPOINT), ("vpce-2", ENDPOINT)], {}, [Cost(3, "endpoint", "PrivateLink", ENDPOINTS)]),
        ([("cr-own", RESERVATION)], {}, [Cost(1, "reservation", "capacity reservation")]),
        ([("cr-own", RESERVATION), ("lt-1", LAUNCH_TEMPLATE)], {},
         [Cost(1, "reservation", "capacity reservation"),
          Cost(2, "reservation", "capacity reservation", f"{AS_IF_USED} cr-a and cr-b")]),
        ([("lt-2", LAUNCH_TEMPLATE)], {}, []),
        ([("bucket-1", BUCKET)], {"outputs": {"BackupBucketName": "ignored"}},
         [Cost(1, "bucket", "S3", "etcd's snapshots, until they expire: bucket-1")]),
        # A bucket of the user's.
        ([], {"outputs": {"BackupBucketName": "mine"}},
         [Cost(1, "bucket", "S3", "etcd's snapshots, until they expire: mine")]),
        ([("vpc-1", f"{EC2}VPC"), ("group-1", ASG)], {},
         [Cost(2, "instance", "EC2", "not of the cluster's groups: i-a and i-b")]),
    ],
)  # fmt: skip
def test_what_else_costs_money_while_a_cluster_is_paused(
    aws: Answers, members: list[tuple[str, str]], more: dict[str, Any], costs: list[Cost]
) -> None:
    deleted = tuple(
        held(f"{kind}-deleted", "DELETE_COMPLETE", type_name=kind) for kind in {kind for _, kind in members}
    )
    existing = tuple(held(name, type_name=kind) for name, kind in members)
    stacked(aws, stack(**more), resources={"one": (*deleted, *existing)})
    endpoints = {"vpce-1": ("Interface", ["subnet-1", "subnet-2", "subnet-3"]), "vpce-2": ("Gateway", [])}
    reservations = {"lt-1": reserved("cr-b", "cr-own", "cr-a"), "lt-2": reserved()}
    aws.otherwise = None
    aws.given |= {
        "ec2:DescribeVpcEndpoints": lambda sent: {
            "VpcEndpoints": [
                {"VpcEndpointId": name, "VpcEndpointType": endpoints[name][0], "SubnetIds": endpoints[name][1]}
                for name in filtered(sent, "vpc-endpoint-id")
            ]
        },
        "ec2:DescribeLaunchTemplateVersions": lambda sent: reservations[sent["LaunchTemplateId"]],
        "ec2:DescribeInstances": running(
            instance("i-b"), instance("i-a"), instance("i-x", **{"kubernetes.io/cluster/two": "owned"})
        ),
    }
    assert remaining(aws) == costs


def test_a_pause_ends_well_where_its_costs_may_not_be_read(aws: Answers) -> None:
    stacked(aws, stack(), resources={"one": (held("vol-a"),)})
    aws.given["ec2:DescribeVolumes"] = DENIED
    root = find_stack(aws.account, "one")
    assert root
    messages: list[Message] = []
    assert read_remaining_costs(aws.account, root, parse({"name": "one"}), messages.append) is None
    [notice] = messages
    assert isinstance(notice, Notice)
    assert notice.text == "what still costs money could not be counted: not allowed to call DescribeVolumes: no"
    assert "docs/deploy/deploy.md" in str(notice.hint)
