"""Checks of the topology: NAT gateways, public subnets, route tables, endpoints, and what works without internet."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import combinations

from cfngen.cluster.checks.addresses import (
    MAX_AWS_PREFIX,
    MIN_AWS_PREFIX,
    VPC_RANGE_PATHS,
    no_room,
    size_paths,
    why_not_in_vpc,
)
from cfngen.cluster.checks.sections import GroupCheck, KeyCheck, all_instances, subnet_path
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.zones import is_local_zone
from cfngen.cluster.network.endpoints import endpoint_zones, interface_endpoints, required_services, service_name
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.routes import has_default_route
from cfngen.cluster.network.topology import (
    availability_zones,
    created_subnets,
    is_private,
    nat_gateway_zones,
    public_subnets,
)
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.instances import Instances
from cfngen.cluster.sections.network import Endpoints
from cfngen.text import join_and

_TOPOLOGY: Path = ("network", "topology")
_NAT: Path = ("network", "nat")
_ENDPOINTS: Path = ("network", "endpoints")
_VPC_ID: Path = ("network", "vpc", "id")
_SUBNETS: Path = ("network", "subnets")
# On what it depends whether there are public subnets, and whether instances have a way out.
WHY_PUBLIC_SUBNETS: tuple[Path, ...] = (_TOPOLOGY, _NAT, ("api", "public"), ("bastion",))
_WHY_NO_WAY_OUT: tuple[Path, ...] = (_TOPOLOGY, _NAT)


def _check_private_keys(cluster: Cluster) -> Iterator[Problem]:
    if is_private(cluster):
        return
    network = cluster.network
    paths: list[Path] = []
    if network.nat:
        paths.append(_NAT)
    if network.endpoints != Endpoints():
        paths.append(_ENDPOINTS)
    for index, subnet in enumerate(network.subnets):
        if subnet.nat_gateway:
            paths.append(subnet_path(index, "natGateway"))
        if subnet.public:
            paths.append(subnet_path(index, "public"))
    for path in paths:
        message = "a public cluster has no private subnets; remove the key, or set network.topology to private"
        yield Problem(path, message, related_paths=(_TOPOLOGY,))


def _check_nat_zones(cluster: Cluster) -> Iterator[Problem]:
    if not is_private(cluster):
        return
    needs_nat = cluster.network.nat in ("perZone", "single") and created_subnets(cluster)
    if needs_nat and not availability_zones(cluster):
        message = "Local Zones have no NAT gateways; add a subnet in an Availability Zone, or set network.nat to none"
        yield Problem(_NAT, message, related_paths=(_SUBNETS,))
        return
    zones = nat_gateway_zones(cluster)
    for index, subnet in enumerate(cluster.network.subnets):
        if subnet.nat_gateway and subnet.zone not in zones:
            used_zones = f"only {', '.join(zones)} has one" if zones else "no subnet that is created uses one"
            message = f"no created subnet uses a NAT gateway in {subnet.zone} ({used_zones}); remove the key"
            yield Problem(subnet_path(index, "natGateway"), message, related_paths=(_NAT, _SUBNETS))


def _check_existing_parts_have_vpc(cluster: Cluster) -> Iterator[Problem]:
    if cluster.network.vpc.id:
        return
    for index, subnet in enumerate(cluster.network.subnets):
        parts = {
            ("natGateway",): subnet.nat_gateway,
            ("routeTable",): subnet.route_table,
            ("public", "id"): subnet.public.id if subnet.public else None,
        }
        for keys, part_id in parts.items():
            if part_id:
                message = f"{part_id} is in an existing VPC; set network.vpc.id (or VPC_ID) to the id of that VPC"
                yield Problem((*_SUBNETS, index, *keys), message, related_paths=(_VPC_ID,))


def _check_route_tables(cluster: Cluster) -> Iterator[Problem]:
    for index, subnet in enumerate(cluster.network.subnets):
        if not subnet.route_table:
            continue
        path = subnet_path(index, "routeTable")
        if subnet.id:
            message = f"{subnet.id} is an existing subnet and keeps its route table; remove the key"
            yield Problem(path, message, related_paths=(subnet_path(index, "id"),))
        elif network_plugin(cluster).uses_vpc_routes:
            message = (
                "the routes to pods of vpc-routes are in one route table, which cfngen creates; remove the key, or "
                "choose another network.plugin"
            )
            yield Problem(path, message, related_paths=(("network", "plugin"),))


def _check_public_ranges_known(cluster: Cluster) -> Iterator[Problem]:
    vpc = cluster.network.vpc
    for index, subnet in enumerate(cluster.network.subnets):
        public = public_subnets(cluster).get(subnet.zone)
        if public is None or public.id or public.cidr:
            continue
        path: Path = (*_SUBNETS, index, "public", "cidr")
        vpc_path = ("network", "vpc", "id" if vpc.id else "cidr")
        id_path = (*path[:-1], "id")
        related_paths = (*WHY_PUBLIC_SUBNETS, id_path, vpc_path, *size_paths(cluster))
        if vpc.id:
            message = (
                f"is missing; enter a free range of {vpc.id} for the public subnet in {subnet.zone}, or the id of an "
                "existing one (public.id)"
            )
        else:
            message = no_room(cluster)
        yield Problem(path, message, related_paths=related_paths)


def _public_ranges(cluster: Cluster) -> Iterator[tuple[Path, IPv4Network]]:
    for index, subnet in enumerate(cluster.network.subnets):
        if subnet.public and subnet.public.cidr:
            yield (*_SUBNETS, index, "public", "cidr"), subnet.public.cidr


def _check_public_ranges(cluster: Cluster) -> Iterator[Problem]:
    ranges = [
        (subnet_path(index), subnet.cidr)
        for index, subnet in enumerate(cluster.network.subnets)
        if "cidr" in subnet.model_fields_set
    ]
    for path, cidr in _public_ranges(cluster):
        if not MIN_AWS_PREFIX <= cidr.prefixlen <= MAX_AWS_PREFIX:
            message = f"{cidr} is a /{cidr.prefixlen}; AWS allows /{MIN_AWS_PREFIX} to /{MAX_AWS_PREFIX} for a subnet"
            yield Problem(path, message)
        reason = why_not_in_vpc(cluster, cidr)
        if reason:
            container = "one of them" if cluster.network.vpc.additional_cidrs else "it"
            message = f"{reason}; choose a range inside {container}"
            yield Problem(path, message, related_paths=VPC_RANGE_PATHS)
        ranges.append((path, cidr))
    for (first_path, first), (second_path, second) in combinations(ranges, 2):
        if first.overlaps(second) and "public" in second_path:
            message = f"{second} overlaps {dotted(first_path)} ({first}); give each subnet its own range"
            yield Problem(second_path, message, related_paths=(first_path,))


def _check_endpoints(cluster: Cluster) -> Iterator[Problem]:
    additional = cluster.network.endpoints.additional
    path: Path = (*_ENDPOINTS, "additional")
    if is_private(cluster) and additional and not interface_endpoints(cluster):
        message = (
            "interface endpoints are only created with network.nat: none; through a NAT gateway, instances reach all "
            "services; remove the key"
        )
        yield Problem(path, message, related_paths=(_NAT, (*_ENDPOINTS, "create")))
        return
    for position, service in enumerate(additional):
        if service in additional[:position]:
            yield Problem((*path, position), f"{service} appears twice; remove one")
        elif service == "s3":
            yield Problem((*path, position), "S3 has a gateway endpoint, which is free; remove it from the list")
    yield from _check_services_of_endpoints(cluster)


def _check_services_of_endpoints(cluster: Cluster) -> Iterator[Problem]:
    created = {service_name(endpoint.service, cluster.region) for endpoint in interface_endpoints(cluster)}
    required = {service_name(endpoint.service, cluster.region) for endpoint in required_services(cluster)}
    names: list[str] = []
    for index, entry in enumerate(cluster.network.endpoints.services):
        path: Path = (*_ENDPOINTS, "services", index)
        name = service_name(entry.service, cluster.region)
        if name not in created:
            message = f"no interface endpoint is created for {entry.service}; add it to additional, or remove the entry"
            yield Problem((*path, "service"), message, related_paths=((*_ENDPOINTS, "additional"), _NAT, _TOPOLOGY))
        elif name in names:
            yield Problem((*path, "service"), f"{entry.service} appears twice; remove one")
        names.append(name)
        if name in required and not entry.private_dns:
            message = (
                f"instances call {entry.service} by its usual name, which has to lead to the endpoint; remove the key"
            )
            yield Problem((*path, "privateDns"), message)
        zones = endpoint_zones(cluster, entry.service)
        for position, zone in enumerate(entry.zones):
            if zone not in zones:
                message = f"there is no subnet for endpoints in {zone}; use {join_and(availability_zones(cluster))}"
                yield Problem((*path, "zones", position), message, related_paths=(_SUBNETS,))


def _warn_of_no_way_out(cluster: Cluster) -> Iterator[Problem]:
    if not is_private(cluster) or cluster.network.nat != "none" or cluster.network.proxy:
        return
    if all(has_default_route(cluster, subnet.zone) for subnet in created_subnets(cluster)):
        return
    if not cluster.assets.mirror:
        message = (
            "with nat: none instances cannot reach dl.k8s.io and github.com; set network.proxy, or assets.mirror to a "
            "server that they reach, or use images that contain the files"
        )
        yield Problem(("assets", "mirror"), message, related_paths=_WHY_NO_WAY_OUT)
    for path, instances in all_instances(cluster):
        yield from _warn_of_packages_and_images(cluster, path, instances)
    for path, is_enabled, need in (
        (("addons", "externalDns"), cluster.addons.external_dns.enabled, "Route 53, which has no VPC endpoint here"),
        (("addons", "certManager"), cluster.addons.cert_manager.enabled, "an ACME server such as Let's Encrypt"),
    ):
        if is_enabled:
            message = f"with nat: none it does not reach {need}; set network.proxy, or disable it"
            yield Problem(path, message, related_paths=_WHY_NO_WAY_OUT)


def _warn_of_packages_and_images(cluster: Cluster, path: Path, instances: Instances) -> Iterator[Problem]:
    image = instances.image
    is_official = not image.id and not image.ssm_parameter
    # The packages of Amazon Linux 2023 are in Amazon S3, which has a gateway endpoint.
    if is_official and image.distribution != "amazon-linux-2023" and not instances.pre_boot_commands:
        message = (
            f"with nat: none instances cannot reach the packages of {image.distribution}; use amazon-linux-2023, whose "
            "packages are in Amazon S3, an image that contains them (image.id), or preBootCommands that name a mirror "
            "of packages"
        )
        yield Problem((*path, "image", "distribution"), message, related_paths=_WHY_NO_WAY_OUT)
    if not instances.containerd.registry_mirrors and "imageRepository" not in cluster.kubernetes.cluster_configuration:
        message = (
            "with nat: none instances cannot reach registry.k8s.io; name mirrors of it and of the registries of your "
            "pods' images"
        )
        yield Problem((*path, "containerd", "registryMirrors"), message, related_paths=_WHY_NO_WAY_OUT)


def _warn_of_unhelpful_local_zone(cluster: Cluster) -> Iterator[Problem]:
    if not is_private(cluster) or cluster.network.nat not in ("perZone", "single"):
        return
    for index, subnet in enumerate(cluster.network.subnets):
        if is_local_zone(subnet.zone) and not subnet.id and not subnet.route_table:
            message = f"instances in {subnet.zone} use the NAT gateway in {availability_zones(cluster)[0]}"
            yield Problem(subnet_path(index, "zone"), message, related_paths=(_TOPOLOGY, _NAT))


PROBLEM_CHECKS = (
    _check_private_keys,
    GroupCheck(
        "publicIp",
        when=lambda cluster, group: is_private(cluster) and group.public_ip,
        message="nodes of a private cluster have no public addresses; remove the key",
        related=("network.topology",),
    ),
    KeyCheck(
        "api.elasticIp",
        when=lambda cluster: is_private(cluster) and cluster.api.elastic_ip,
        message="the masters of a private cluster have no public addresses: a load balancer has the API's public "
        "name; remove the key",
        related=("network.topology",),
    ),
    KeyCheck(
        "network.nat",
        when=lambda cluster: is_private(cluster) and cluster.network.nat and not created_subnets(cluster),
        message="existing subnets have their own routes to the internet; remove the key",
        related=("network.subnets",),
    ),
    KeyCheck(
        "network.nat",
        when=lambda cluster: (
            is_private(cluster)
            and cluster.network.nat == "perZone"
            and len(nat_gateway_zones(cluster)) > 1
            and network_plugin(cluster).uses_vpc_routes
        ),
        message="a NAT gateway in each zone needs a route table in each zone, but the routes to pods of vpc-routes "
        "are in one table; set it to single, or choose another network.plugin (cilium, calico, flannel or amazon-vpc)",
        related=("network.plugin", "network.subnets"),
    ),
    _check_nat_zones,
    _check_existing_parts_have_vpc,
    _check_route_tables,
    _check_public_ranges_known,
    _check_public_ranges,
    _check_endpoints,
)
WARNING_CHECKS = (_warn_of_no_way_out, _warn_of_unhelpful_local_zone)
