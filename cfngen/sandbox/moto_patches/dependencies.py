"""DependencyViolation: EC2 refuses to delete a resource that another one depends on; moto 5.2 deletes it.

Sources: Amazon VPC user guide, "Delete your VPC" and "Delete a security group"; re:Post knowledge center, "Why can't I
delete my VPC?", which lists the dependencies and the error messages. The rules:

- A subnet can be deleted when no network interface and no load balancer is in it.
- A security group can be deleted when no interface uses it and no rule of another group refers to it.
- An internet gateway can be detached when no interface of the VPC has a public address.
- A VPC can be deleted when only its main route table, default network ACL and default security group are left.

A load balancer's interfaces are deleted with it (Elastic Load Balancing user guide, "Delete a load balancer"). In the
sandbox their description is `ELB <name>`, or `ELB net/<name>` for a network load balancer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from unittest import mock

from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models import EC2Backend, ec2_backends
from moto.elb.models import ELBBackend
from moto.elbv2.models import ELBv2Backend, elbv2_backends

from cfngen.sandbox.services.networks import is_true, live_interfaces
from cfngen.sandbox.untyped import MotoBackend, MotoModel, Original


@contextlib.contextmanager
def patch_dependencies() -> Iterator[None]:
    """Patch moto in this process: check dependencies, and delete load balancers' interfaces with them."""
    with refuse_dependency_violations(), delete_interfaces_of_load_balancers():
        yield


@contextlib.contextmanager
def refuse_dependency_violations() -> Iterator[None]:
    """Patch moto in this process: refuse deletions that EC2 refuses."""
    with (
        _patched(EC2Backend, "delete_security_group", _delete_security_group),
        _patched(EC2Backend, "delete_subnet", _delete_subnet),
        _patched(EC2Backend, "delete_vpc", _delete_vpc),
        _patched(EC2Backend, "detach_internet_gateway", _detach_internet_gateway),
    ):
        yield


@contextlib.contextmanager
def delete_interfaces_of_load_balancers() -> Iterator[None]:
    """Patch moto in this process: delete load balancers' interfaces with them."""
    with (
        _patched(ELBBackend, "delete_load_balancer", _delete_classic_balancer),
        _patched(ELBv2Backend, "delete_load_balancer", _delete_network_balancer),
    ):
        yield


def _patched(owner: type, name: str, patch: Callable[..., object]) -> AbstractContextManager[object]:
    """Replace a method by a function, which gets the method before the method's arguments."""
    original = getattr(owner, name)
    return mock.patch.object(
        owner, name, lambda backend, *arguments, **named: patch(original, backend, *arguments, **named)
    )


def _delete_security_group(
    original: Original, backend: MotoBackend, name: str | None = None, group_id: str | None = None
) -> None:
    is_used = any(group_id in [group.id for group in interface.group_set] for interface in live_interfaces(backend))
    if is_used or _is_source_of_rules(backend, group_id):
        raise DependencyViolationError(f"resource {group_id} has a dependent object")
    original(backend, name, group_id)


def _delete_subnet(original: Original, backend: MotoBackend, subnet_id: str) -> MotoModel:
    # Load balancers that Kubernetes did not make have no interfaces in moto.
    balancers = elbv2_backends[backend.account_id][backend.region_name].load_balancers.values()
    used_ids = {interface.subnet.id for interface in live_interfaces(backend)}
    used_ids |= {subnet.id for balancer in balancers for subnet in balancer.subnets}
    if subnet_id in used_ids:
        raise DependencyViolationError(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
    return original(backend, subnet_id)


def _delete_vpc(original: Original, backend: MotoBackend, vpc_id: str) -> MotoModel:
    if any(_dependents_of_vpc(backend, vpc_id)):
        raise DependencyViolationError(f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
    deleted = original(backend, vpc_id)
    for network_acl in list(backend.network_acls.values()):
        if network_acl.vpc_id == vpc_id:  # the default one, which moto keeps
            del backend.network_acls[network_acl.id]
    return deleted


def _detach_internet_gateway(original: Original, backend: MotoBackend, internet_gateway_id: str, vpc_id: str) -> None:
    public_ids = {address.eni.id for address in backend.addresses if address.eni}  # interfaces with Elastic IPs
    if any(interface.id in public_ids and interface.subnet.vpc_id == vpc_id for interface in live_interfaces(backend)):
        raise DependencyViolationError(
            f"Network {vpc_id} has some mapped public address(es). Please unmap those public address(es) before "
            "detaching the gateway."
        )
    original(backend, internet_gateway_id, vpc_id)


def _delete_classic_balancer(original: Original, backend: MotoBackend, load_balancer_name: str) -> None:
    original(backend, load_balancer_name)
    _delete_interfaces(backend, description=f"ELB {load_balancer_name}")


def _delete_network_balancer(original: Original, backend: MotoBackend, arn: str) -> None:
    load_balancer = backend.load_balancers.get(arn)
    original(backend, arn)
    if load_balancer:
        _delete_interfaces(backend, description=f"ELB net/{load_balancer.name}")


def _dependents_of_vpc(backend: MotoBackend, vpc_id: str) -> Iterator[object]:
    """Yield the resources that prevent a VPC's deletion; moto itself checks for subnets and VPN gateways."""
    yield from (group for group in backend.groups[vpc_id].values() if group.name != "default")
    yield from (interface for interface in live_interfaces(backend) if interface.subnet.vpc_id == vpc_id)
    yield from (
        network_acl
        for network_acl in backend.network_acls.values()
        if network_acl.vpc_id == vpc_id and not _is_default(network_acl)
    )
    yield from (gateway for gateway in backend.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id)
    yield from (gateway for gateway in backend.egress_only_internet_gateways.values() if gateway.vpc_id == vpc_id)
    yield from (
        nat_gateway
        for nat_gateway in backend.nat_gateways.values()
        if nat_gateway.vpc_id == vpc_id and nat_gateway.state == "available"
    )
    yield from (
        endpoint
        for endpoint in backend.vpc_end_points.values()
        if endpoint.vpc_id == vpc_id and endpoint.state == "available"
    )
    yield from (
        peering
        for peering in backend.vpc_pcxs.values()
        if vpc_id in (peering.vpc.id, peering.peer_vpc.id)
        and peering.status["Code"] in ("active", "pending-acceptance")
    )
    yield from (
        attachment
        for attachment in backend.transit_gateway_attachments.values()
        if attachment.resource_id == vpc_id and attachment.state == "available"
    )


def _is_default(network_acl: MotoModel) -> bool:
    # moto has the text `true` for the ACL created with a VPC, and a bool for all others.
    return is_true(network_acl.default)


def _is_source_of_rules(backend: MotoBackend, group_id: str | None) -> bool:
    """Return whether a rule of another security group names a group as its source."""
    groups = [group for vpc_groups in backend.groups.values() for group in vpc_groups.values()]
    return any(
        (rule.source_group or {}).get("GroupId") == group_id
        for group in groups
        if group.id != group_id
        for rule in (*group.ingress_rules, *group.egress_rules)
    )


def _delete_interfaces(backend: MotoBackend, *, description: str) -> None:
    """Delete the network interfaces that have a description, in the region of a backend of load balancers."""
    interfaces = ec2_backends[backend.account_id][backend.region_name].enis
    for interface in list(interfaces.values()):
        if interface.description == description:
            del interfaces[interface.id]
