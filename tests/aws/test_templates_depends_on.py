"""Every `DependsOn` of our templates is needed: with one taken out, something goes wrong for some order of resources.

What a dependency is for is watched over the life of a cluster: created with masters that take almost all of their
time, updated so that every instance is replaced, deleted.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from clusters import (
    ALLOWED,
    BUCKET,
    CASES,
    PREFIX,
    Account,
    Machines,
    in_memory,
    landlord,
    prepared,
    running_instances,
    templates_of,
)
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from cfngen.cluster.load import load
from cfngen.sandbox.cloudformation import ApiError, LaunchedInstance, Stack, client
from cfngen.sandbox.durations import DURATIONS
from cfngen.sandbox.instances import user_data

pytestmark = pytest.mark.drill

SEEDS = (1, 2, 3, 5, 7)
SLOW = 19 * 60.0  # seconds that a master takes to boot, of the twenty minutes that its wait condition gives it


@pytest.fixture(autouse=True)
def account() -> None:
    """No account yet: each life has one of its own."""


@dataclass(frozen=True, order=True)
class Edge:
    """A dependency that a template states: the types of both resources, and one pair of them."""

    kind: str
    needs_kind: str
    logical_id: str = field(compare=False)
    needs: str = field(compare=False)


class Watched(Machines):
    """Instances that look about them when they come and go, and take their time."""

    def __init__(self, region: str) -> None:
        super().__init__(region)
        self.faults: list[str] = []
        self.updating = False
        self.booting: set[str] = set()

    def __call__(self, launched: LaunchedInstance) -> None:
        attribute = client("ec2", self.region).describe_instance_attribute(
            InstanceId=launched.instance_id, Attribute="userData"
        )
        told = user_data.read(attribute["UserData"]["Value"])
        resource = told.references["resource"]
        self._look(launched, resource, "is launched")
        program = told.configuration["program"]["resource"]
        held = self.cloud.stack(told.references["stack"]).resources.get(program)
        if held is None or not held.exists or held.status.endswith(("IN_PROGRESS", "FAILED")):
            self.faults.append(f"{resource}: its program {program} is not there")
        if self.updating and self.booting:
            self.faults.append(f"{resource} is replaced while {self.booting} are")
        master = resource.startswith("Master")
        if master and self.updating:
            self.booting.add(resource)
        self.references.append(dict(told.references))
        seconds = SLOW if master and not self.updating else 90
        self.cloud.clock.schedule(seconds, lambda: self._done(launched, dict(told.references)))

    def _done(self, launched: LaunchedInstance, told: dict[str, str]) -> None:
        self.booting.discard(told["resource"])
        self._booted(launched.instance_id, told)

    def leaving(self, instance_id: str) -> None:
        """Look about when a lifecycle hook holds an instance, which moves its pods and then tells Auto Scaling."""
        instance = running_instances(self.region, instance_id)[instance_id]
        tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
        group = tags["aws:autoscaling:groupName"]
        self.cloud.clock.schedule(20, lambda: self._look(LaunchedInstance(instance_id, group), group, "moves its pods"))

    def _look(self, launched: LaunchedInstance, resource: str, when: str) -> None:
        if reason := self._cut_off(launched):
            self.faults.append(f"{resource} {when}: {reason}")

    def _cut_off(self, launched: LaunchedInstance) -> str:
        """Return why an instance does not reach the internet; nothing if it does."""
        backend = ec2_backends[DEFAULT_ACCOUNT_ID][self.region]
        response = client("autoscaling", self.region).describe_auto_scaling_groups(
            AutoScalingGroupNames=[launched.group]
        )
        if not response["AutoScalingGroups"]:
            return ""
        group = response["AutoScalingGroups"][0]
        subnets = [each for each in group.get("VPCZoneIdentifier", "").split(",") if each]
        if not subnets:  # a master, whose launch template names an interface
            version = client("ec2", self.region).describe_launch_template_versions(
                LaunchTemplateId=group["LaunchTemplate"]["LaunchTemplateId"],
                Versions=[group["LaunchTemplate"]["Version"]],
            )["LaunchTemplateVersions"][0]
            [named] = version["LaunchTemplateData"]["NetworkInterfaces"]
            interface = backend.get_network_interface(named["NetworkInterfaceId"])
            subnets = [interface.subnet.id]
            addresses = [address for address in backend.addresses if address.eni and address.eni.id == interface.id]
            if backend.addresses and not addresses:
                return "its interface has no public address"
        for subnet in subnets:
            tables = [
                route_table for route_table in backend.route_tables.values() if subnet in str(route_table.associations)
            ]
            routes = [route for table in tables for route in table.routes]
            if not any(route.destination_cidr_block == "0.0.0.0/0" for route in routes):
                return f"{subnet} has no route to the internet"
        return ""


def edges(templates: dict[str, Any], form: str) -> list[Edge]:
    """One for each pair of types, of those templates that make the cluster in this form."""
    found: dict[Edge, Edge] = {}
    for name, body in templates.items():
        if (name == "standalone") == (form == "standalone"):
            for logical_id, resource in body["Resources"].items():
                for needs in _needs(resource):
                    edge = Edge(resource["Type"], body["Resources"][needs]["Type"], logical_id, needs)
                    found.setdefault(edge, edge)
    return sorted(found)


def without(templates: dict[str, Any], edge: Edge | None) -> dict[str, Any]:
    """The templates without every dependency between two types."""
    changed = copy.deepcopy(templates)
    for body in changed.values() if edge else ():
        for resource in body["Resources"].values():
            kept = [need for need in _needs(resource) if not _is(edge, body, resource, need)]
            resource.pop("DependsOn", None)
            if kept:
                resource["DependsOn"] = kept
    return changed


def _needs(resource: dict[str, Any]) -> list[str]:
    needs = resource.get("DependsOn", [])
    return [needs] if isinstance(needs, str) else list(needs)


def _is(edge: Edge, body: dict[str, Any], resource: dict[str, Any], needs: str) -> bool:
    return (resource["Type"], body["Resources"][needs]["Type"]) == (edge.kind, edge.needs_kind)


def publish(where: Account, templates: dict[str, Any]) -> None:
    for name, body in templates.items():
        client("s3", where.cluster.region).put_object(
            Bucket=BUCKET, Key=f"{PREFIX}{name}.json", Body=json.dumps(body).encode()
        )


def life(case: str, form: str, edge: Edge | None, seed: int, overrides: tuple[str, ...] = ()) -> Iterator[str]:
    """What goes wrong in the life of a cluster, if anything does."""
    path = CASES / case / "cluster.yaml"
    before = load(path, environ={}, overrides=overrides).cluster
    after = load(path, environ={}, overrides=(*overrides, "kubernetesVersion=1.35")).cluster
    with in_memory():
        # Usual durations keep most orders from ever coming about; without them any order does.
        where = prepared(before, seed=seed, durations={} if seed % 2 else DURATIONS)
        machines = Watched(before.region)
        machines.cloud, where.cloud.on_launch, where.cloud.on_terminating = where.cloud, machines, machines.leaving
        publish(where, without(dict(where.templates), edge))
        others = landlord(where)
        wanted = where.templates[form]["Parameters"]
        if "ApiElasticIpAllocationId" not in wanted:
            client("ec2", before.region).release_address(AllocationId=others["ApiElasticIpAllocationId"])
        usual = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}
        given = {key: value for key, value in {**usual, **others}.items() if key in wanted}
        arguments: dict[str, Any] = {"parameters": given, "capabilities": ["CAPABILITY_IAM"]}
        stack = where.cloud.wait(where.cloud.create_stack("k8s", url=where.url(form), **arguments))
        yield from failed(stack, "CREATE_COMPLETE")
        publish(where, without({each.name: each.body for each in templates_of(after)}, edge))
        machines.updating = True
        try:
            where.cloud.wait(where.cloud.update_stack("k8s", url=where.url(form), **arguments))
            yield from failed(stack, "UPDATE_COMPLETE")
        except ApiError as error:
            yield str(error)
        machines.updating = False
        where.delete(stack)
        yield from failed(stack, "DELETE_COMPLETE")
        yield from machines.faults


def failed(stack: Stack, status: str) -> Iterator[str]:
    if stack.status != status:
        yield f"{stack.status} instead of {status}: {stack.reason}"


@pytest.mark.parametrize("form", ["standalone", "cluster"])
@pytest.mark.parametrize("case", ["default", "three-masters"])
def test_nothing_goes_wrong_as_long_as_all_are_there(case: str, form: str) -> None:
    for seed in SEEDS:
        assert list(life(case, form, None, seed)) == []


def stated(case: str, form: str, overrides: tuple[str, ...] = ()) -> list[Edge]:
    cluster = load(CASES / case / "cluster.yaml", environ={}, overrides=overrides).cluster
    return edges({each.name: each.body for each in templates_of(cluster)}, form)


@pytest.mark.parametrize("form", ["standalone", "cluster"])
def test_each_is_needed(form: str) -> None:
    """Each pair of types, taken out by itself, fails for a seed."""
    dependencies = stated("default", form)
    assert [
        dependency
        for dependency in dependencies
        if not any(list(life("default", form, dependency, seed)) for seed in SEEDS)
    ] == []


def test_an_address_of_ones_own_needs_the_gateway_too() -> None:
    """Its association, which waits for no address that the template makes."""
    address = ("api.elasticIp.allocationId=eipalloc-0123456789abcdef0", "api.elasticIp.address=52.10.20.30")
    [own] = set(stated("default", "standalone", address)) - set(stated("default", "standalone"))
    assert (own.kind, own.needs_kind) == ("AWS::EC2::EIPAssociation", "AWS::EC2::VPCGatewayAttachment")
    assert list(life("default", "standalone", None, 1, address)) == []
    assert any(list(life("default", "standalone", own, seed, address)) for seed in SEEDS)
