"""Private clusters on the emulator: what an update of the network keeps, changes and takes away."""

from __future__ import annotations

import json
from typing import Any

import pytest
from clusters import ALLOWED, BUCKET, CASES, PREFIX, Account, inventory, leftovers, prepared, resources, templates_of

from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.sandbox.cloudformation import Stack, client
from cfngen.sandbox.services import quotas

pytestmark = pytest.mark.drill

REGION = "us-west-2"
FORMS = pytest.mark.parametrize("form", ["standalone", "cluster"])


def cluster(case: str, *overrides: str) -> Cluster:
    return load(CASES / case / "cluster.yaml", environ={}, overrides=list(overrides)).cluster


def updated(where: Account, stack: Stack, changed: Cluster, form: str) -> Stack:
    """Make the stack that of another cluster, and wait."""
    bodies = {each.name: each.body for each in templates_of(changed)}
    for name, body in bodies.items():
        client("s3", REGION).put_object(Bucket=BUCKET, Key=f"{PREFIX}{name}.json", Body=json.dumps(body).encode())
    usual = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}
    parameters = {key: value for key, value in usual.items() if key in bodies[form]["Parameters"]}
    capabilities = ["CAPABILITY_IAM"]
    where.cloud.update_stack(stack.name, url=where.url(form), parameters=parameters, capabilities=capabilities)
    return where.cloud.wait(stack)


def ids(stack: Stack, kind: str) -> dict[str, str]:
    """Physical ids of the resources of a type by logical id."""
    return {
        key: each.physical_id
        for key, each in resources(stack).items()
        if each.type == f"AWS::EC2::{kind}" and each.exists
    }


def nat_gateway_of_zones() -> dict[str, str]:
    """The NAT gateway that the route table of each private subnet leads to, by zone."""
    ec2 = client("ec2", REGION)
    found: dict[str, str] = {}
    zones = {subnet["SubnetId"]: subnet["AvailabilityZone"][-1] for subnet in ec2.describe_subnets()["Subnets"]}
    for table in ec2.describe_route_tables()["RouteTables"]:
        targets = [route["NatGatewayId"] for route in table["Routes"] if "NatGatewayId" in route]
        assert all(route["State"] == "active" for route in table["Routes"])
        for association in table["Associations"]:
            if targets and "SubnetId" in association:
                [found[zones[association["SubnetId"]]]] = targets
    return found


def public_addresses() -> dict[str, str]:
    """The Elastic IP address of each NAT gateway."""
    gateways: list[Any] = client("ec2", REGION).describe_nat_gateways()["NatGateways"]
    available = [gateway for gateway in gateways if gateway["State"] == "available"]
    return {item["NatGatewayId"]: item["NatGatewayAddresses"][0]["PublicIp"] for item in available}


@FORMS
def test_a_nat_gateway_in_each_zone_changes_routes_only(form: str) -> None:
    """From a single NAT gateway and back: the first one keeps its address, no subnet moves."""
    single = cluster("private-nat-per-zone", "network.nat=single", "network.plugin=cilium")
    where = prepared(single)
    before = inventory(REGION)
    stack = where.create(form)
    assert stack.status == "CREATE_COMPLETE", [event for event in stack.events if event.reason]
    kept = {kind: ids(stack, kind) for kind in ("Subnet", "SubnetRouteTableAssociation", "RouteTable", "Route")}
    first, address = ids(stack, "NatGateway"), public_addresses()
    assert set(nat_gateway_of_zones().values()) == set(first.values()) == set(address)

    assert updated(where, stack, cluster("private-nat-per-zone"), form).status == "UPDATE_COMPLETE", stack.reason
    gateways = {name[-1].lower(): identifier for name, identifier in ids(stack, "NatGateway").items()}
    assert len(gateways) == 3
    assert nat_gateway_of_zones() == gateways
    assert address.items() <= public_addresses().items()
    for kind, identifiers in kept.items():
        assert identifiers.items() <= ids(stack, kind).items()

    assert updated(where, stack, single, form).status == "UPDATE_COMPLETE", stack.reason
    assert set(nat_gateway_of_zones().values()) == set(first.values())
    assert public_addresses() == address
    assert where.delete(stack).status == "DELETE_COMPLETE"
    assert set(leftovers(where, before)) <= {"snapshots"}


@FORMS
def test_a_quota_of_nat_gateways_takes_the_update_back(form: str) -> None:
    where = prepared(cluster("private-nat-per-zone", "network.nat=single"))
    stack = where.create(form)
    before, routes = inventory(REGION), nat_gateway_of_zones()
    none_more = quotas.Quota(*quotas.NAT_GATEWAYS, "NAT gateways per Availability Zone", default=5, applied=0)
    with quotas.override_quotas({quotas.NAT_GATEWAYS: none_more}):
        updated(where, stack, cluster("private-nat-per-zone"), form)
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert nat_gateway_of_zones() == routes
    assert set(leftovers(where, before)) <= {"snapshots"}


@FORMS
def test_endpoints_come_and_go_beside_the_others(form: str) -> None:
    case = "private-no-way-out"
    where = prepared(cluster(case))
    before = inventory(REGION)
    stack = where.create(form)
    assert stack.status == "CREATE_COMPLETE", [event for event in stack.events if event.reason]
    first = ids(stack, "VPCEndpoint")
    more = cluster(case, "network.endpoints.additional[0]=kms", "network.endpoints.additional[1]=monitoring")
    assert updated(where, stack, more, form).status == "UPDATE_COMPLETE", stack.reason
    then = ids(stack, "VPCEndpoint")
    assert {key for key, value in then.items() if first.get(key) == value} == set(first) & set(then)
    services = client("ec2", REGION).describe_vpc_endpoints()["VpcEndpoints"]
    names = {item["ServiceName"].removeprefix(f"com.amazonaws.{REGION}.") for item in services}
    assert {"kms", "monitoring", "s3", "ec2"} <= names
    assert "sts" not in names
    assert where.delete(stack).status == "DELETE_COMPLETE"
    assert set(leftovers(where, before)) <= {"snapshots"}


def test_endpoints_serve_every_zone_of_the_cluster() -> None:
    where = prepared(cluster("private-no-way-out"))
    stack = where.create("cluster")
    private = {identifier for name, identifier in ids(stack, "Subnet").items() if not name.startswith("Public")}
    found = client("ec2", REGION).describe_vpc_endpoints()["VpcEndpoints"]
    interface_endpoints = [item for item in found if item["VpcEndpointType"] == "Interface"]
    assert all(set(item["SubnetIds"]) == private for item in interface_endpoints)
    [gateway] = [item for item in found if item["VpcEndpointType"] == "Gateway"]
    assert set(gateway["RouteTableIds"]) <= set(ids(stack, "RouteTable").values())
    [detection] = [where.cloud.drift_detection(where.cloud.detect_drift(child.name))
                   for child in stack.children.values() if "MasterStack" in child.name]  # fmt: skip
    assert detection.drift == "IN_SYNC"
