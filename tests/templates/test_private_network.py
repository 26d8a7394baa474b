"""Private clusters: who has a way out, through what, and who has a public address."""

from __future__ import annotations

import json
from typing import Any

import pytest

ZONES = [{"zone": f"us-west-2{letter}"} for letter in "abc"]
MASTERS = {"controlPlane": {"count": 3}}
PRIVATE: dict[str, Any] = {"network": {"topology": "private", "plugin": "cilium", "subnets": ZONES}}
SINGLE: dict[str, Any] = {"network": {**PRIVATE["network"], "nat": "single"}}
ROUTES: dict[str, Any] = {"network": {**PRIVATE["network"], "plugin": "vpc-routes"}}
ISOLATED: dict[str, Any] = {"network": {**PRIVATE["network"], "nat": "none"}, "api": {"public": False}}
SHAPES = {
    "a NAT gateway in each zone": {**PRIVATE, **MASTERS},
    "a single NAT gateway": {**SINGLE, **MASTERS},
    "VPC routes": ROUTES,
    "one master, one zone": {"network": {"topology": "private"}},
    "internal API": {**PRIVATE, "api": {"public": False}},
    "no way out": {**ISOLATED, **MASTERS},
}


def _resources(generated: Any, stack: str = "standalone") -> dict[str, Any]:
    resources: dict[str, Any] = generated[stack]["Resources"]
    return resources


def _of_type(generated: Any, type_name: str) -> dict[str, Any]:
    return {
        logical_id: resource["Properties"]
        for logical_id, resource in _resources(generated).items()
        if resource["Type"] == type_name
    }


def _table_of(generated: Any, subnet: str) -> str:
    associations = _of_type(generated, "AWS::EC2::SubnetRouteTableAssociation")
    [table] = [item["RouteTableId"]["Ref"] for item in associations.values() if item["SubnetId"] == {"Ref": subnet}]
    return str(table)


def _default_route(generated: Any, subnet: str) -> dict[str, Any] | None:
    """The route to 0.0.0.0/0 in the route table of a subnet."""
    table = _table_of(generated, subnet)
    routes = [
        item
        for item in _of_type(generated, "AWS::EC2::Route").values()
        if item["RouteTableId"]["Ref"] == table and item.get("DestinationCidrBlock") == "0.0.0.0/0"
    ]
    assert len(routes) <= 1
    return routes[0] if routes else None


@pytest.mark.parametrize("shape", SHAPES)
def test_no_instance_has_a_public_address_or_a_route_to_the_internet_gateway(templates: Any, shape: str) -> None:
    generated = templates(SHAPES[shape])
    assert not _of_type(generated, "AWS::EC2::EIPAssociation")
    for launch_template in _of_type(generated, "AWS::EC2::LaunchTemplate").values():
        [interface] = launch_template["LaunchTemplateData"]["NetworkInterfaces"]
        assert not interface.get("AssociatePublicIpAddress", False)
    for interface in _of_type(generated, "AWS::EC2::NetworkInterface").values():
        route = _default_route(generated, interface["SubnetId"]["Fn::GetAtt"][0])
        assert route is None or "NatGatewayId" in route


@pytest.mark.parametrize("shape", SHAPES)
def test_tags_tell_kubernetes_which_subnets_are_for_which_load_balancers(templates: Any, shape: str) -> None:
    for logical_id, subnet in _of_type(templates(SHAPES[shape]), "AWS::EC2::Subnet").items():
        keys = {tag["Key"] for tag in subnet["Tags"]} & {"kubernetes.io/role/elb", "kubernetes.io/role/internal-elb"}
        is_public = logical_id.startswith("Public")
        assert keys == {"kubernetes.io/role/elb" if is_public else "kubernetes.io/role/internal-elb"}


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_is_launched_before_it_has_its_way_out(templates: Any, shape: str) -> None:
    generated = templates(SHAPES[shape])
    ways_out = {*_of_type(generated, "AWS::EC2::Route"), *_of_type(generated, "AWS::EC2::VPCEndpoint")}
    for logical_id, resource in _resources(generated).items():
        if resource["Type"] == "AWS::AutoScaling::AutoScalingGroup":
            depends_on = set(resource["DependsOn"])
            zones = {"A", "B", "C"}
            own_routes = {route for route in ways_out if not (route.startswith("NatRoute") and route[8:] in zones)} | {
                f"NatRoute{zone}" for zone in _zones_of(resource) if f"NatRoute{zone}" in ways_out
            }
            assert own_routes <= depends_on, logical_id


def _zones_of(group: dict[str, Any]) -> set[str]:
    """The zones of an Auto Scaling group, as letters."""
    properties = group["Properties"]
    subnets = [item["Fn::GetAtt"][0] for item in properties.get("VPCZoneIdentifier", ())]
    zones = [item["Ref"] for item in properties.get("AvailabilityZones", ())]
    return {text[-1] for text in [*subnets, *zones]}


def test_each_zone_has_its_own_nat_gateway_in_its_public_subnet(templates: Any) -> None:
    generated = templates(PRIVATE)
    for letter in "ABC":
        route = _default_route(generated, f"Subnet{letter}")
        assert route
        assert route["NatGatewayId"] == {"Ref": f"NatGateway{letter}"}
        gateway = _resources(generated)[f"NatGateway{letter}"]
        assert gateway["Properties"]["SubnetId"] == {"Ref": f"PublicSubnet{letter}"}
        address = gateway["Properties"]["AllocationId"]["Fn::GetAtt"]
        assert address == [f"NatElasticIp{letter}", "AllocationId"]
        # CloudFormation's reference of AWS::EC2::EIP asks for it.
        assert _resources(generated)[address[0]]["DependsOn"] == ["InternetGatewayAttachment"]
        # Without these, EC2 creates the gateway but it has no way to the internet while it is being created.
        assert set(gateway["DependsOn"]) == {"InternetRoute", f"PublicSubnet{letter}RouteTableAssociation"}
        public_route = _default_route(generated, f"PublicSubnet{letter}")
        assert public_route
        assert "GatewayId" in public_route


def test_a_single_nat_gateway_serves_all_zones_through_their_own_tables(templates: Any) -> None:
    generated = templates(SINGLE)
    assert set(_of_type(generated, "AWS::EC2::NatGateway")) == {"NatGatewayA"}
    routes = [_default_route(generated, f"Subnet{letter}") for letter in "ABC"]
    assert {route["NatGatewayId"]["Ref"] for route in routes if route} == {"NatGatewayA"}
    assert len({_table_of(generated, f"Subnet{letter}") for letter in "ABC"}) == 3


def test_moving_to_a_nat_gateway_in_each_zone_keeps_every_resource(templates: Any) -> None:
    single, per_zone = _resources(templates(SINGLE)), _resources(templates(PRIVATE))
    assert set(single) <= set(per_zone)
    assert set(per_zone) - set(single) == {"NatElasticIpB", "NatGatewayB", "NatElasticIpC", "NatGatewayC"}


def test_vpc_routes_have_one_table_with_the_pods_routes(templates: Any) -> None:
    generated = templates(ROUTES)
    assert {_table_of(generated, f"Subnet{letter}") for letter in "ABC"} == {"PrivateRouteTable"}
    assert generated["vpc"]["Outputs"]["RouteTableId"]["Value"] == {"Ref": "PrivateRouteTable"}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_private_route_table_reaches_s3_without_a_nat_gateway(templates: Any, shape: str) -> None:
    generated = templates(SHAPES[shape])
    endpoint = _of_type(generated, "AWS::EC2::VPCEndpoint")["EndpointS3"]
    assert endpoint["VpcEndpointType"] == "Gateway"
    assert endpoint["ServiceName"] == {"Fn::Sub": "com.amazonaws.${AWS::Region}.s3"}
    assert endpoint["VpcId"] == {"Ref": "Vpc"}
    tables = {item["Ref"] for item in endpoint["RouteTableIds"]}
    assert tables == {name for name in _of_type(generated, "AWS::EC2::RouteTable") if name.startswith("Private")}
    assert tables == {
        _table_of(generated, name) for name in _of_type(generated, "AWS::EC2::Subnet") if "Pub" not in name
    }


def test_the_public_api_of_private_masters_is_behind_a_load_balancer_in_public_subnets(templates: Any) -> None:
    generated = templates(ROUTES)
    [balancer] = _of_type(generated, "AWS::ElasticLoadBalancingV2::LoadBalancer").values()
    assert balancer["Scheme"] == "internet-facing"
    subnets = [item["Fn::GetAtt"][0] for item in balancer["Subnets"]]
    assert subnets == ["PublicSubnetA", "PublicSubnetB", "PublicSubnetC"]


def test_the_internal_api_of_one_master_is_its_private_address(templates: Any) -> None:
    generated = templates({**PRIVATE, "api": {"public": False}})
    assert not _of_type(generated, "AWS::ElasticLoadBalancingV2::LoadBalancer")
    assert generated["master"]["Outputs"]["ApiEndpoint"]["Value"]["Fn::Sub"][1] == {
        "Host": {"Fn::GetAtt": ["MasterANetworkInterface", "PrimaryPrivateIpAddress"]}
    }


def test_a_cluster_without_a_way_out_has_no_gateway_and_all_endpoints_that_instances_call(templates: Any) -> None:
    generated = templates(ISOLATED)
    types = {resource["Type"] for resource in _resources(generated).values()}
    assert not types & {"AWS::EC2::InternetGateway", "AWS::EC2::NatGateway", "AWS::EC2::EIP"}
    endpoints = _of_type(generated, "AWS::EC2::VPCEndpoint")
    services = {
        item["ServiceName"].removeprefix("com.amazonaws.us-west-2.")
        for item in endpoints.values()
        if item["VpcEndpointType"] == "Interface"
    }
    assert services == {
        "autoscaling",
        "cloudformation",
        "ec2",
        "ec2messages",
        "ecr.api",
        "ecr.dkr",
        "elasticloadbalancing",
        "secretsmanager",
        "ssm",
        "ssmmessages",
    }
    interface = endpoints["EndpointEcrDkr"]
    assert interface["PrivateDnsEnabled"] is True
    assert [item["Fn::GetAtt"][0] for item in interface["SubnetIds"]] == ["SubnetA", "SubnetB", "SubnetC"]
    # Only masters and nodes reach the endpoints.
    group = _resources(generated)["EndpointsSecurityGroup"]["Properties"]
    sources = {rule["SourceSecurityGroupId"]["Fn::GetAtt"][0] for rule in group["SecurityGroupIngress"]}
    assert sources == {"MasterSecurityGroup", "NodeSecurityGroup"}
    assert {(rule["FromPort"], rule["ToPort"]) for rule in group["SecurityGroupIngress"]} == {(443, 443)}


@pytest.mark.parametrize(
    ("change", "added"),
    [
        ({"ssh": {"sessionManager": False}}, set()),
        (
            {
                "addons": {
                    "fluentBit": {
                        "enabled": True,
                        "values": {"config": {"outputs": "[OUTPUT]\n  Name cloudwatch_logs"}},
                    }
                }
            },
            {"EndpointLogs"},
        ),
        (
            {"network": {**ISOLATED["network"], "endpoints": {"additional": ["sts", "kms"]}}},
            {"EndpointSts", "EndpointKms"},
        ),
    ],
)
def test_endpoints_follow_from_what_is_enabled(templates: Any, change: dict[str, Any], added: set[str]) -> None:
    before = set(_of_type(templates(ISOLATED), "AWS::EC2::VPCEndpoint"))
    after = set(_of_type(templates({**ISOLATED, **change}), "AWS::EC2::VPCEndpoint"))
    removed = {"EndpointEc2messages", "EndpointSsm", "EndpointSsmmessages"} if "ssh" in change else set()
    assert (after - before, before - after) == (added, removed)


def test_endpoints_are_where_their_service_is_and_have_its_name_if_there_is_one(templates: Any) -> None:
    services = [
        {"service": "kms", "privateDns": False, "zones": ["us-west-2c", "us-west-2b"]},
        {"service": "com.amazonaws.us-west-2.ec2", "zones": ["us-west-2a"]},
    ]
    network = {**ISOLATED["network"], "endpoints": {"additional": ["kms"], "services": services}}
    endpoints = _of_type(templates({**ISOLATED, "network": network}), "AWS::EC2::VPCEndpoint")
    assert {
        name: (endpoints[name]["PrivateDnsEnabled"], [item["Fn::GetAtt"][0] for item in endpoints[name]["SubnetIds"]])
        for name in ("EndpointKms", "EndpointEc2", "EndpointEcrApi")
    } == {
        "EndpointKms": (False, ["SubnetB", "SubnetC"]),
        "EndpointEc2": (True, ["SubnetA"]),
        "EndpointEcrApi": (True, ["SubnetA", "SubnetB", "SubnetC"]),
    }


def test_endpoints_that_the_vpc_has_are_not_created(templates: Any) -> None:
    generated = templates({**ISOLATED, "network": {**ISOLATED["network"], "endpoints": {"create": False}}})
    assert not _of_type(generated, "AWS::EC2::VPCEndpoint")


# What EC2 and other services give any free address of a subnet.
TAKERS = {
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::EC2::NetworkInterface",
    "AWS::EC2::VPCEndpoint",
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
}
BASTION = {"bastion": {"allowedCidrs": ["192.0.2.0/24"]}, "ssh": {"keyName": "key"}}


@pytest.mark.parametrize(
    "file",
    [{**ISOLATED, **MASTERS}, {**MASTERS, "api": {"internal": True}, **BASTION}, {**PRIVATE, **MASTERS, **BASTION}],
    ids=["endpoints", "public", "private"],
)
def test_whatever_takes_a_free_address_comes_after_the_masters_fixed_ones(templates: Any, file: dict[str, Any]) -> None:
    resources = templates(file)["standalone"]["Resources"]
    fixed = {name for name, resource in resources.items() if "PrivateIpAddress" in resource.get("Properties", {})}
    assert len(fixed) == 3

    def before(name: str) -> set[str]:
        """All that is created before a resource."""
        needed: set[str] = set()
        names = {name}
        while names - needed:
            needed |= names
            text = json.dumps([[resources[each].get(key) for key in ("Properties", "DependsOn")] for each in names])
            names = {other for other in resources if f'"{other}"' in text or f"${{{other}" in text}
        return needed

    for name, resource in resources.items():
        in_subnets = resource.get("Properties", {}).get("VpcEndpointType") != "Gateway"
        if resource["Type"] in TAKERS and in_subnets and name not in fixed:
            assert fixed <= before(name), name


def test_existing_parts_of_the_network_are_parameters_and_nothing_of_them_is_created(templates: Any) -> None:
    generated = templates(
        {
            "network": {
                "topology": "private",
                "plugin": "cilium",
                "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
                "serviceCidr": "10.250.0.0/16",
                "subnets": [
                    {
                        "zone": "us-west-2a",
                        "id": "subnet-0123456789abcdef0",
                        "cidr": "10.20.0.0/20",
                        "public": {"id": "subnet-0123456789abcdef2"},
                    },
                    {
                        "zone": "us-west-2b",
                        "cidr": "10.20.16.0/20",
                        "natGateway": "nat-0123456789abcdef0",
                        "public": {"id": "subnet-0123456789abcdef1"},
                    },
                    {
                        "zone": "us-west-2c",
                        "cidr": "10.20.32.0/20",
                        "routeTable": "rtb-0123456789abcdef0",
                        "public": {"cidr": "10.20.48.0/26"},
                    },
                ],
            }
        }
    )
    assert set(_of_type(generated, "AWS::EC2::Subnet")) == {"SubnetB", "SubnetC", "PublicSubnetC"}
    assert set(_of_type(generated, "AWS::EC2::NatGateway")) == set()
    parameters = generated["standalone"]["Parameters"]
    assert {name: parameters[name]["Default"] for name in ("NatGatewayBId", "RouteTableCId", "PublicSubnetAId")} == {
        "NatGatewayBId": "nat-0123456789abcdef0",
        "RouteTableCId": "rtb-0123456789abcdef0",
        "PublicSubnetAId": "subnet-0123456789abcdef2",
    }
    route = _default_route(generated, "SubnetB")
    assert route
    assert route["NatGatewayId"] == {"Ref": "NatGatewayBId"}
    assert _table_of(generated, "SubnetC") == "RouteTableCId"


IN_EXISTING_VPC = {"vpc": {"id": "vpc-0123456789abcdef0", "cidr": "172.20.0.0/16"}}
BASTION = {"ssh": {"keyName": "mine"}, "bastion": {"allowedCidrs": ["203.0.113.0/24"]}}


@pytest.mark.parametrize(
    ("file", "contents"),
    [
        ({}, "VPC, internet gateway, route table and subnets"),
        (
            {"network": {**IN_EXISTING_VPC, "subnets": [{"cidr": "172.20.8.0/24"}]}},
            "route table and subnets in an existing VPC",
        ),
        (PRIVATE, "private subnets, public subnets, NAT gateways"),
        (ISOLATED, "private subnets"),
        ({**ISOLATED, **BASTION}, "private subnets, public subnets"),
    ],
)
def test_the_network_stack_says_what_it_contains(templates: Any, file: dict[str, Any], contents: str) -> None:
    assert templates(file)["vpc"]["Description"] == f"Network of the Kubernetes cluster kubernetes: {contents}"


def test_endpoint_names_in_china_have_the_prefix_that_aws_uses_there(templates: Any) -> None:
    zones = [{"zone": f"cn-north-1{letter}"} for letter in "ab"]
    generated = templates({**ISOLATED, "network": {**ISOLATED["network"], "subnets": zones}})
    names = {
        item["ServiceName"] for item in _of_type(generated, "AWS::EC2::VPCEndpoint").values() if "SubnetIds" in item
    }
    assert {"cn.com.amazonaws.cn-north-1.ec2", "com.amazonaws.cn-north-1.secretsmanager"} <= names
