"""Every `DependsOn` of our templates is needed: with one taken out, something goes wrong for some order of resources.

What a dependency is for is watched over the life of a cluster: created with masters that take almost all of their
time, updated so that every instance is replaced, deleted.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

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
from stated_dependencies import Edge, edges, rows, without

from cfngen.cluster.load import load
from cfngen.sandbox.cloudformation import ApiError, LaunchedInstance, Stack, client
from cfngen.sandbox.durations import DURATIONS
from cfngen.sandbox.instances import user_data
from cfngen.sandbox.instances.reachability import Interface, reaches_service
from cfngen.sandbox.services import network_interfaces
from cfngen.sandbox.services.network_interfaces import free_address
from cfngen.sandbox.services.networks import used_addresses
from cfngen.sandbox.untyped import MotoBackend, MotoModel

pytestmark = pytest.mark.drill

SEEDS = range(1, 51)
SLOW = 19 * 60.0  # seconds that a master takes to boot, of the twenty minutes that its wait condition gives it


@pytest.fixture(autouse=True)
def account() -> None:
    """No account yet: each life has one of its own."""


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
        if "Value" not in attribute["UserData"]:
            return  # a bastion, which has no boot program
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
        """Return what an instance does not reach of that which it needs to boot; nothing if it reaches all."""
        response = client("autoscaling", self.region).describe_auto_scaling_groups(
            AutoScalingGroupNames=[launched.group]
        )
        unreachable = [
            f"{service} is not reached from {interface.subnet_id}"
            for group in response["AutoScalingGroups"]
            for interface, services in self._interfaces(group)
            for service in services
            if not reaches_service(interface, service)
        ]
        return ", ".join(unreachable)

    def _interfaces(self, group: dict[str, Any]) -> Iterator[tuple[Interface, tuple[str, ...]]]:
        """Yield the interfaces of a group with what they must reach: that of a master, one in each subnet of nodes."""
        for subnet in filter(None, group.get("VPCZoneIdentifier", "").split(",")):
            yield Interface(self.region, subnet, True, "", frozenset()), ("s3",)
        if not group.get("VPCZoneIdentifier"):
            version = client("ec2", self.region).describe_launch_template_versions(
                LaunchTemplateId=group["LaunchTemplate"]["LaunchTemplateId"],
                Versions=[group["LaunchTemplate"]["Version"]],
            )["LaunchTemplateVersions"][0]
            [named] = version["LaunchTemplateData"]["NetworkInterfaces"]
            backend = ec2_backends[DEFAULT_ACCOUNT_ID][self.region]
            interface = backend.get_network_interface(named["NetworkInterfaceId"])
            has_address = any(address.eni and address.eni.id == interface.id for address in backend.addresses)
            groups = frozenset(group.id for group in interface.group_set)
            address = interface.private_ip_address
            yield Interface(self.region, interface.subnet.id, has_address, address, groups), ("s3", "secretsmanager")


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
        # Usual durations keep most orders from ever coming about; those that are drawn do not.
        where = prepared(before, seed=seed, durations=None if seed % 2 else DURATIONS, draws_durations=True)
        masters = [
            str(parameter["Default"])
            for name, parameter in where.templates["master"]["Parameters"].items()
            if re.fullmatch(r"Master[A-E]Address", name)
        ]
        machines = Watched(before.region)
        machines.cloud, where.cloud.on_launch, where.cloud.on_terminating = where.cloud, machines, machines.leaving
        publish(where, without(where.templates, edge))
        changed = without({document.name: document.body for document in templates_of(after)}, edge)
        with patch.object(network_interfaces, "free_address", taken_first(masters)):
            yield from created_changed_and_deleted(where, form, machines, changed)
        yield from machines.faults


def created_changed_and_deleted(where: Account, form: str, machines: Watched, changed: dict[str, Any]) -> Iterator[str]:
    """What goes wrong from the creation of a cluster to its deletion, with an update to other templates in between."""
    others = landlord(where)
    wanted = where.templates[form]["Parameters"]
    if "ApiElasticIpAllocationId" not in wanted:
        client("ec2", where.cluster.region).release_address(AllocationId=others["ApiElasticIpAllocationId"])
    usual = {"ApiAllowedCidr": ALLOWED, "TemplateBucket": BUCKET, "TemplatePrefix": PREFIX}
    parameters = {key: value for key, value in {**usual, **others}.items() if key in wanted}
    arguments: dict[str, Any] = {"parameters": parameters, "capabilities": ["CAPABILITY_IAM"]}
    stack = where.cloud.wait(where.cloud.create_stack("k8s", url=where.url(form), **arguments))
    yield from failed(stack, "CREATE_COMPLETE")
    publish(where, changed)
    machines.updating = True
    try:
        where.cloud.wait(where.cloud.update_stack("k8s", url=where.url(form), **arguments))
        yield from failed(stack, "UPDATE_COMPLETE")
    except ApiError as error:
        yield str(error)
    machines.updating = False
    where.delete(stack)
    yield from failed(stack, "DELETE_COMPLETE")


def taken_first(addresses: list[str]) -> Callable[..., str]:
    """What gives an interface an address of these as long as one is free in its subnet: EC2 may give it any."""

    def give(backend: MotoBackend, subnet: MotoModel, **options: bool) -> str:
        block, used = ipaddress.ip_network(subnet.cidr_block), used_addresses(backend, subnet)
        free = [address for address in addresses if ipaddress.ip_address(address) in block and address not in used]
        return free[0] if free else free_address(backend, subnet, **options)

    return give


def failed(stack: Stack, status: str) -> Iterator[str]:
    if stack.status != status:
        yield f"{stack.status} instead of {status}: {stack.reason}"


@pytest.mark.parametrize("form", ["standalone", "cluster"])
@pytest.mark.parametrize("case", ["default", "three-masters"])
def test_nothing_goes_wrong_as_long_as_all_are_there(case: str, form: str) -> None:
    for seed in SEEDS[:5]:
        assert list(life(case, form, None, seed)) == []


def stated(case: str, form: str, overrides: tuple[str, ...] = ()) -> list[Edge]:
    cluster = load(CASES / case / "cluster.yaml", environ={}, overrides=overrides).cluster
    return edges({each.name: each.body for each in templates_of(cluster)}, form)


@pytest.mark.parametrize(("case", "overrides", "form", "pair"), list(rows()))
def test_each_is_needed(case: str, overrides: tuple[str, ...], form: str, pair: tuple[str, str]) -> None:
    """Those between a pair of types taken out, a life goes wrong for a seed for which it does not with them."""
    [dependency] = [edge for edge in stated(case, form, overrides) if (edge.kind, edge.needs_kind) == pair]
    seed = next((seed for seed in SEEDS if list(life(case, form, dependency, seed, overrides))), None)
    assert seed, f"{dependency} is needed for nothing"
    assert list(life(case, form, None, seed, overrides)) == []


def test_an_address_of_ones_own_needs_the_gateway_too() -> None:
    """Its association, which waits for no address that the template makes."""
    address = ("api.elasticIp.allocationId=eipalloc-0123456789abcdef0", "api.elasticIp.address=52.10.20.30")
    [own] = set(stated("default", "standalone", address)) - set(stated("default", "standalone"))
    assert (own.kind, own.needs_kind) == ("AWS::EC2::EIPAssociation", "AWS::EC2::VPCGatewayAttachment")
    assert list(life("default", "standalone", None, 1, address)) == []
    assert any(list(life("default", "standalone", own, seed, address)) for seed in SEEDS)
