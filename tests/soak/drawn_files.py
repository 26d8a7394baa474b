"""Valid cluster files by chance: a network first, then any of the other keys that go with it.

A file is drawn for a design: what most cross-checks of `cfngen.cluster.checks` are about. What a single key holds comes
from its type (`drawn_values`), or from `_special` where the design, an account or another key has a say.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from itertools import islice
from typing import Any, cast

import drawn_service_accounts
from drawn_capacity import KEYS as CAPACITY_KEYS
from drawn_capacity import capacity, has_spot_instances, settle_capacity
from drawn_values import OBJECTS, VISIBLE, leaves, of, section_of
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

from cfngen.cluster.checks.access import _PORTS_IN_USE
from cfngen.cluster.checks.volumes import VOLUME_TYPES
from cfngen.cluster.instances import instance_types
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.id_form import pascal
from cfngen.cluster.naming.names import cluster_name_too_long
from cfngen.cluster.naming.tag_keys import why_key_refused
from cfngen.cluster.network.network_plugins import PLUGINS
from cfngen.releases import exact_version, patches_by_minor
from cfngen.text_limits import STACK_TAG_VALUE

File = dict[str, Any]
# Zones as moto has them; in the account of a Local Zone, or of another partition, no cluster can live there.
ZONES: Mapping[str, str] = {"us-west-2": "abc", "us-east-1": "abcdf", "eu-central-1": "abc", "ap-northeast-1": "acd"}
ELSEWHERE: Mapping[str, str] = {"us-gov-west-1": "abc", "cn-north-1": "ab", "sa-east-1": "abc"}
VPCS = ("172.20.0.0/16", "10.64.0.0/16", "192.168.16.0/20", "172.31.128.0/17", "10.77.0.0/24", "10.77.8.0/26")
PODS = ("10.244.0.0/16", "100.64.0.0/10", "10.128.0.0/12", "198.18.0.0/16")
SERVICES = ("10.0.0.0/16", "10.96.0.0/12", "172.30.0.0/20", "10.5.5.0/28")
PORTS = (443, 6443, 8443, 1, 60000, 65535)
FREE_ADDRESSES = ("52.10.20.30", "3.120.4.5")
ZONE_IDS: Mapping[str, str] = {"publicZone": "Z0123456789ABCDEFGHIJ", "privateZone": "Z0123456789ABCDEFGHIK"}


@dataclass(frozen=True)
class Design:
    """What the keys of a cluster file have to go with.

    Attributes:
        lived: whether a cluster is to be deployed: it is small then, and has only what an account of moto can have.
        region: the region.
        zones: letters of the subnets' zones.
        vpc: range of the VPC.
        subnets: range of each subnet.
        written: whether the file has the subnets' ranges; otherwise they are the default ones.
        existing: `no`, the `vpc`, or its `subnets` too.
        plugin: the network plug-in.
        pods: range of pods.
        services: range of services.
        count: how many masters.
        architectures: of the instance types.
        groups: names of the node groups.
        topology: `public` or `private`.
        nat: how private subnets reach the internet; empty for the default.
        shared: whether a private cluster in an existing VPC shares its NAT gateways and public subnets, and a cluster
            without VPC routes its route tables.
    """

    lived: bool
    region: str
    zones: str
    vpc: str
    subnets: tuple[str, ...]
    written: bool
    existing: str
    plugin: str
    pods: str
    services: str
    count: int
    architectures: tuple[str, ...]
    groups: tuple[str, ...]
    topology: str = "public"
    nat: str = ""
    shared: bool = False

    @property
    def partition(self) -> str:
        """The partition of the region."""
        return {"cn": "aws-cn"}.get(self.region[:2], "aws-us-gov" if "-gov-" in self.region else "aws")

    @property
    def room(self) -> int:
        """How many nodes each group may have: by the subnets' addresses and the pods' ranges, and while lived few."""
        # As many as ten VPC endpoints have an address in each subnet.
        endpoints = 10 if self.topology == "private" else 0
        addresses = sum(max(IPv4Network(subnet).num_addresses - 5, 0) for subnet in self.subnets[:1])
        addresses -= self.count + endpoints
        each = 14 if self.plugin == "amazon-vpc" else 1
        ranges = 2 ** (24 - IPv4Network(self.pods).prefixlen) - self.count
        most = min(addresses // each, ranges, 2 if self.lived else 5000)
        return max(most // max(len(self.groups), 1), 0)


def keys(model_path: str = "") -> Iterator[str]:
    """Every key that a file may have; of a list of sections the list, whose items are drawn as a whole."""
    for leaf in leaves(Cluster):
        parts = leaf.path.split("[].")
        whole = parts[0] if len(parts) > 1 else leaf.path
        if parts[0] == "nodeGroups":
            whole = "[].".join(parts[:2])
        if whole.startswith(model_path):
            yield whole


# Drawn with the design, since most other keys hang on them.
DESIGNED = frozenset(
    {
        "name",
        "region",
        "network.vpc.id",
        "network.vpc.cidr",
        "network.subnets",
        "network.topology",
        "network.nat",
        "network.plugin",
        "network.podCidr",
        "network.serviceCidr",
        "controlPlane.count",
        "nodeGroups[].name",
        "nodeGroups[].minSize",
        "nodeGroups[].maxSize",
        "nodeGroups[].desiredSize",
        "nodeGroups[].instanceType",
        "controlPlane.instanceType",
    }
)
# How a group finds capacity, drawn with its type: these hang on each other.
CAPACITY = tuple(f"nodeGroups[].{key}" for key in CAPACITY_KEYS)
# Sections whose keys hang on each other, drawn as a whole.
WHOLE = (
    "update", "image", "rootVolume", "volume", "elasticIp", "quotas", "proxy", "dns", "iam", "flowLogs", "autoscaler",
    "serviceAccountIssuer", "objectLock",
)  # fmt: skip


def _unit(key: str) -> str:
    parts = key.split(".")
    index = next((index for index, part in enumerate(parts) if part in WHOLE), len(parts) - 1)
    return ".".join(parts[: index + 1])


OPTIONAL = tuple(
    dict.fromkeys(_unit(each) for each in keys() if each not in DESIGNED and not each.startswith(CAPACITY))
)
"""What is drawn besides the design, key by key."""


@st.composite
def designs(draw: DrawFn, *, lived: bool = False) -> Design:
    """What the keys of a file have to go with."""
    regions = {**ZONES} if lived else {**ZONES, **ELSEWHERE}
    region = draw(st.sampled_from(sorted(regions)))
    zones = "".join(draw(st.lists(st.sampled_from(regions[region]), min_size=1, max_size=3, unique=True)))
    vpc = draw(st.sampled_from(VPCS))
    plugin = draw(st.sampled_from(sorted(PLUGINS)))
    existing = draw(st.sampled_from(("no", "no", "vpc", "subnets")))
    written = existing != "no" or draw(st.booleans())
    prefix = IPv4Network(vpc).prefixlen + (len(zones) - 1).bit_length()
    share = min(max(24, prefix), 32)
    if written:
        # A master has eleven addresses of its subnet beside it at the least, and with pods there some more.
        share = draw(st.integers(max(prefix, 16), max(min(27, 20 if plugin == "amazon-vpc" else 27), prefix)))
    blocks = list(IPv4Network(vpc).subnets(new_prefix=share))
    places = list(range(len(zones)))
    if written:
        places = draw(st.lists(st.integers(0, len(blocks) - 1), min_size=len(zones), max_size=len(zones), unique=True))
    count = draw(st.sampled_from((1, 1, 1, 3, 5)))
    if plugin == "amazon-vpc" and blocks[0].num_addresses < 128:
        plugin = "cilium"
    names = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
    groups = draw(st.lists(names, max_size=2 if lived else 4, unique_by=pascal))
    pods = draw(st.sampled_from(PODS))
    services = draw(st.sampled_from([each for each in SERVICES if not _overlap(each, pods)]))
    taken = sum(block.num_addresses for block in blocks[: len(zones)]) if written else 0
    has_room = IPv4Network(vpc).prefixlen <= 20 and taken <= IPv4Network(vpc).num_addresses // 2
    # The default ranges of public subnets are in the last /24.
    last = IPv4Network((int(IPv4Network(vpc).broadcast_address) - 255, 24)) if has_room else None
    if last and written and existing == "no":
        has_room = not any(blocks[place].overlaps(last) for place in places)
    private = has_room and existing in (("no",) if lived else ("no", "vpc", "subnets")) and draw(st.booleans())
    nats = (
        ("", "single", "none") if plugin == "vpc-routes" or existing == "subnets" else ("", "perZone", "single", "none")
    )
    nat = draw(st.sampled_from(nats)) if private and existing != "subnets" else ""
    shared = existing == "vpc" and not lived and draw(st.booleans())
    return Design(
        lived, region, zones, vpc, tuple(str(blocks[place]) for place in places), written, existing, plugin, pods,
        services, count, draw(st.sampled_from((("amd64",), ("amd64",), ("arm64",), ("amd64", "arm64")))), tuple(groups),
        "private" if private else "public", nat, shared,
    )  # fmt: skip


def _overlap(one: str, other: str) -> bool:
    return IPv4Network(one).overlaps(IPv4Network(other))


@st.composite
def files(draw: DrawFn, design: Design, *, including: Sequence[str] = (), most: int = 12) -> File:
    """A valid cluster file.

    Args:
        draw: of Hypothesis.
        design: what its keys have to go with.
        including: keys that it has in any case, if the design allows them.
        most: how many further keys it has at most.
    """
    file = draw(_frame(design))
    strategies = strategies_of(design)
    least = draw(st.integers(0, most))
    chosen = draw(st.lists(st.sampled_from(sorted(strategies)), min_size=least, max_size=most, unique=True))
    for key in dict.fromkeys((*including, *chosen)):
        if key in strategies:
            draw_key(draw, file, key, strategies[key])
    return settled(file, design)


def draw_key(draw: DrawFn, file: File, key: str, strategy: SearchStrategy[Any]) -> None:
    """Give a file a key, one of `OPTIONAL`; of node groups one of them, or none where there is none."""
    if not key.startswith("nodeGroups[]."):
        put(file, key, draw(strategy))
        return
    groups = cast("list[File]", file["nodeGroups"])
    if groups:
        put(draw(st.sampled_from(groups)), key.removeprefix("nodeGroups[]."), draw(strategy))


def put(file: File, key: str, value: Any) -> None:
    """Set a key of a file."""
    *sections, last = key.split(".")
    for section in sections:
        file = file.setdefault(section, {})
    file[last] = value


def drop(file: File, key: str) -> None:
    """Leave a key out of a file."""
    *sections, last = key.split(".")
    for section in sections:
        if section not in file:
            return
        file = file[section]
    file.pop(last, None)


def get(file: File, key: str, default: Any = None) -> Any:
    """The value of a key."""
    here: Any = file
    for part in key.split("."):
        if not isinstance(here, dict) or part not in here:
            return default
        here = here[part]
    return here


@st.composite
def _frame(draw: DrawFn, design: Design) -> File:
    """The part of a file that its design says."""
    name = draw(
        st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
        if design.lived
        else st.from_regex(r"[a-z]([a-z0-9-]{0,26}[a-z0-9])?", fullmatch=True).filter(
            lambda each: not cluster_name_too_long(each) and not each.startswith("internal-")
        )
    )
    frame: File = {
        "name": name,
        "region": design.region,
        "network": network(design),
        "controlPlane": {"count": design.count, "instanceType": draw(_instance_type(design))},
        "nodeGroups": [draw(group(design, each)) for each in design.groups],
    }
    return frame


def network(design: Design) -> File:
    """The section of a design's network."""
    found: File = {"vpc": {"cidr": design.vpc}, "plugin": design.plugin, "serviceCidr": design.services}
    if PLUGINS[cast("Any", design.plugin)].uses_pod_cidr:
        found["podCidr"] = design.pods
    if design.existing != "no":
        found["vpc"]["id"] = "vpc-0a1b2c3d4e5f60718"
    if design.topology == "private":
        found["topology"] = "private"
    if design.nat:
        found["nat"] = design.nat
    found["subnets"] = [subnet(design, index) for index in range(len(design.zones))]
    return found


def subnet(design: Design, index: int) -> File:
    """One of a design's subnets."""
    found: File = {"zone": design.region + design.zones[index]}
    if design.written:
        found["cidr"] = design.subnets[index]
    if design.existing == "subnets":
        found["id"] = f"subnet-0a1b2c3d4e5f6071{index}"
    has_routes = PLUGINS[cast("Any", design.plugin)].uses_vpc_routes
    is_private = design.topology == "private"
    if design.shared and not has_routes and index == 0 and not is_private:
        found["routeTable"] = "rtb-0a1b2c3d4e5f60718"
    if is_private and design.existing == "subnets":
        found["public"] = {"id": f"subnet-0f1b2c3d4e5f6071{index}"}
    if is_private and design.existing == "vpc":
        if design.shared:
            found["public"] = {"id": f"subnet-0f1b2c3d4e5f6071{index}"}
        else:
            found["public"] = {"cidr": str(_public_range(design, index))}
        if design.shared and design.nat != "none" and (index == 0 or (design.nat != "single" and not has_routes)):
            found["natGateway"] = f"nat-0a1b2c3d4e5f6071{index}"
    return found


def _public_range(design: Design, index: int) -> IPv4Network:
    """A range at the end of the VPC that none of the design's subnets has."""
    return next(islice(_free_ranges(IPv4Network(design.vpc), list(map(IPv4Network, design.subnets))), index, None))


def _free_ranges(vpc: IPv4Network, taken: list[IPv4Network]) -> Iterator[IPv4Network]:
    """The ranges of 16 addresses of a VPC that no taken range overlaps, from the last."""
    for start in range(int(vpc.broadcast_address) - 15, int(vpc.network_address) - 1, -16):
        block = IPv4Network((start, 28))
        if not any(map(block.overlaps, taken)):
            yield block


@st.composite
def group(draw: DrawFn, design: Design, name: str) -> File:
    """A node group: its name, how it finds capacity, and its sizes."""
    return {"name": name, **draw(sizes(design)), **draw(capacity(design, _instance_types(design)))}


@st.composite
def sizes(draw: DrawFn, design: Design) -> File:
    """The sizes of a node group."""
    drawn = sorted(draw(st.lists(st.integers(0, design.room), min_size=3, max_size=3)))
    found: File = {"minSize": drawn[0], "maxSize": max(drawn[2], 1)}
    if draw(st.booleans()):
        found["desiredSize"] = drawn[1]
    return found


def _instance_type(design: Design) -> SearchStrategy[str]:
    return st.sampled_from(_instance_types(design))


def _instance_types(design: Design) -> list[str]:
    """Types of the region; what is lived has small ones, for an account's quota of processors is small."""
    known = instance_types.types_in_region(design.region) or ("t3.medium", "m5.large", "t4g.medium")
    fit = sorted(each for each in known if not instance_types.why_unsuitable(each, "node"))
    small = [each for each in fit if each.partition(".")[2] in ("medium", "large") and each[0] in "tmcr"]
    types = [each for each in small if _is_offered(each, design)] if design.lived else fit
    return [each for each in types if instance_types.architecture(each) in design.architectures]


def _is_offered(instance_type: str, design: Design) -> bool:
    """Whether each of a design's zones has an instance type."""
    offerings = INSTANCE_TYPE_OFFERINGS["availability-zone"][design.region]
    zones = {each["Location"] for each in offerings if each["InstanceType"] == instance_type}
    return {design.region + zone for zone in design.zones} <= zones


def strategies_of(design: Design) -> dict[str, SearchStrategy[Any]]:
    """A strategy for each key of `OPTIONAL` that goes with a design."""
    special = _special(design)
    found: dict[str, SearchStrategy[Any]] = {}
    for key in OPTIONAL:
        if not _possible(key, design):
            continue
        general = key.replace("nodeGroups[].", "*.").replace("controlPlane.", "*.")
        if (strategy := special.get(key, special.get(general))) is not None:
            found[key] = strategy
        else:
            found[key] = of(*section_of(Cluster, key))
    return found


def _routes(target: str) -> list[File]:
    """A route through the kind of target whose ids begin with `target`."""
    keys = {"tgw": "transitGateway", "pcx": "peeringConnection", "vgw": "vpnGateway", "eni": "networkInterface"}
    return [{"destination": "203.0.113.0/24", keys[target]: f"{target}-0123456789abcdef0", "tables": "all"}]


def _possible(key: str, design: Design) -> bool:
    """Whether a key goes with a design at all."""
    plugin = PLUGINS[cast("Any", design.plugin)]
    has_route_table = all("routeTable" in subnet(design, index) for index in range(len(design.zones)))
    rules: Mapping[str, Callable[[], bool]] = {
        "network.vpc.additionalCidrs": lambda: design.pods != "100.64.0.0/10",
        "network.subnetSizes.instances": lambda: design.existing == "no" and not plugin.gives_pods_vpc_addresses,
        "network.subnetSizes.public": lambda: design.existing == "no",
        # The account has AWS's defaults, and the check of an existing network looks.
        "network.quotas": lambda: design.existing == "no" or not design.lived,
        # In an account of its own nothing leads out of the VPC; existing subnets keep their route tables.
        "network.routes": lambda: design.existing != "subnets" and not design.lived and not has_route_table,
        "network.tagExisting": lambda: design.existing == "subnets",
        "network.routeTable": lambda: design.existing == "subnets" and plugin.uses_vpc_routes,
        "network.internetGateway": lambda: design.existing == "vpc" and not has_route_table,
        "network.dhcpOptions": lambda: design.existing == "no",
        "network.pluginValues": lambda: plugin.is_installed_by_cfngen,
        "network.nonMasqueradeCidr": lambda: plugin.uses_vpc_routes,
        # Existing groups need rules, which nobody adds in the account of a lived cluster.
        **{
            f"network.securityGroups.{name}": lambda: design.existing != "no" and not design.lived
            for name in ("masters", "nodes")
        },
        **{
            f"network.securityGroups.{name}": lambda: design.existing != "no" and not design.lived and design.count > 1
            for name in ("apiLoadBalancer", "internalApiLoadBalancer")
        },
        "network.securityGroups.endpoints": lambda: (
            design.existing == "vpc" and not design.lived and design.nat == "none"
        ),
        "api.elasticIp": lambda: design.count == 1 and design.topology == "public",
        "network.endpoints.create": lambda: design.topology == "private",
        "network.endpoints.additional": lambda: design.nat == "none",
        "network.endpoints.services": lambda: design.nat == "none",
        "nodeGroups[].publicIp": lambda: design.topology == "public",
        # It gives a group as many nodes in each zone, and other names.
        "nodeGroups[].oneGroupPerZone": lambda: len(design.zones) == 1 and len(design.groups) == 1,
        # Existing roles and keys are tried by tests of their own.
        "nodeGroups[].iam": lambda: not design.lived,
        "secrets.kmsKey": lambda: not design.lived,
        "etcd.backups.kmsKey": lambda: not design.lived,
        # Taken away, it is refused, and what a rollback does with it is not known.
        "etcd.backups.objectLock": lambda: not design.lived,
        "logging.bucket": lambda: not design.lived,
        "notifications.topic": lambda: not design.lived,
        # The way on and off takes several updates, which tests of their own live.
        "serviceAccountIssuer": lambda: not design.lived,
        # A target group is one of a VPC, and of instances that pass its health checks.
        "nodeGroups[].targetGroups": lambda: design.existing != "no" and not design.lived,
        # A security group is one of a VPC: of one that is still to be made there is none.
        "controlPlane.additionalSecurityGroups": lambda: design.existing != "no" or not design.lived,
        "nodeGroups[].additionalSecurityGroups": lambda: design.existing != "no" or not design.lived,
    }
    if key.startswith("bastion."):
        # The public subnets of an existing VPC have no ranges here; and an account has five Elastic IPs.
        return (design.topology == "public" or design.existing == "no") and not (design.lived and design.count == 5)
    return rules.get(key, lambda: True)()


def settled(file: File, design: Design) -> File:
    """A file without what does not go together, and with what something else asks for."""
    for key in OPTIONAL:
        if not _possible(key, design):
            for section in file["nodeGroups"] if key.startswith("nodeGroups[].") else [file]:
                drop(section, key.removeprefix("nodeGroups[]."))
    if get(file, "network.topology") != "private":
        drop(file, "network.subnetSizes.public")
    # Cloud controller manager refuses an interface in the table of the pods' routes.
    if PLUGINS[cast("Any", design.plugin)].uses_vpc_routes and "eni-" in str(get(file, "network.routes")):
        drop(file, "network.routes")
    if get(file, "ssh.keyName"):
        drop(file, "ssh.publicKey")
    _settle_bastion(file)
    if get(file, "network.endpoints.create") is False:
        drop(file, "network.endpoints.additional")
        drop(file, "network.endpoints.services")
    is_private = design.topology == "private"
    # Existing subnets of a lived cluster have a way out through an internet gateway.
    has_way_out = design.existing == "subnets" and not design.lived
    if get(file, "api.public") is False and not has_way_out and not is_private:
        drop(file, "api.public")
    _settle_endpoints(file)
    _settle_roles(file)
    drawn_service_accounts.settle(file, get, drop)
    _settle_autoscaler(file)
    if not (get(file, "api.internal") and get(file, "api.public", True)):
        drop(file, "network.securityGroups.internalApiLoadBalancer")
    if get(file, "network.endpoints.create") is False:
        drop(file, "network.securityGroups.endpoints")
    for section in file["nodeGroups"]:
        if section.get("publicIp") is False and not has_way_out:
            drop(section, "publicIp")
        settle_capacity(section)
        _settle_update(section)
    _settle_interruptions(file)
    if get(file, "addons.externalDns.enabled") and not get(file, "addons.externalDns.zones"):
        put(file, "addons.externalDns.zones", ["Z0123456789ABCDEFGHIJ"])
    if get(file, "addons.fluentBit.enabled"):
        put(file, "addons.fluentBit.values.config.outputs", "[OUTPUT]\n    Name stdout\n    Match *\n")
    if get(file, "etcd.backups.bucket") or get(file, "etcd.backups.enabled") is False:
        drop(file, "etcd.backups.kmsKey")
        drop(file, "logging.bucket")
    _settle_lock(file)
    _settle_registry(file, design)
    addresses = get(file, "controlPlane.addresses")
    if addresses is not None and len(addresses) != design.count:
        drop(file, "controlPlane.addresses")
    return file


def _settle_update(section: File) -> None:
    """Drop the surge and the pause of a node group's updates if its sizes or its other times leave no room for them."""
    size = section.get("desiredSize", section["minSize"])
    if size + get(section, "update.maxSurge", 0) > section["maxSize"]:
        drop(section, "update")
    if section.get("creationTimeout", 20) + section.get("drainTimeout", 5) + get(section, "update.pause", 0) > 50:
        drop(section, "update")


def _settle_roles(file: File) -> None:
    """Drop what does not go with existing roles, and a role of nodes that no group has."""
    groups = file["nodeGroups"]
    if groups and all("iam" in section for section in groups):
        drop(file, "iam.nodes")
    nodes = get(file, "iam.nodes")
    if get(file, "iam.masters"):
        drop(file, "controlPlane.additionalPolicies")
        drop(file, "controlPlane.policyStatements")
        if nodes or (groups and all("iam" in section for section in groups)):
            drop(file, "iam.permissionsBoundary")
    for section in groups:
        if nodes or "iam" in section:
            drop(section, "additionalPolicies")
            drop(section, "policyStatements")


def _settle_autoscaler(file: File) -> None:
    """Give priorities the expander that reads them, and groups with one to cluster-autoscaler; count pods once."""
    priorities = get(file, "addons.clusterAutoscaler.priorities") or {}
    if priorities:
        put(file, "addons.clusterAutoscaler.expander", ["priority", "least-waste"])
    named = {name for names in priorities.values() for name in names}
    for section in file["nodeGroups"]:
        if section.get("name") in named and get(section, "autoscaler.enabled") is False:
            drop(section, "autoscaler")
        if "maxPods" in section:
            drop(section, "kubeletConfiguration.maxPods")
            drop(section, "autoscaler.resources.pods")


def _settle_lock(file: File) -> None:
    """Lock snapshots only where there are some, and for no longer than one is kept."""
    lock = get(file, "etcd.backups.objectLock")
    if get(file, "etcd.backups.enabled") is False:
        drop(file, "etcd.backups.objectLock")
    elif lock:
        lock["days"] = min(lock["days"], get(file, "etcd.backups.dailyDays", 90))


def _settle_registry(file: File, design: Design) -> None:
    """Name repositories and who pushes once each, and who pushes in one way; an account has none of them yet."""
    repositories = {item["name"]: item for item in get(file, "registry.repositories") or []}
    pushing = {pascal(item["name"]): item for item in get(file, "registry.push") or []}
    for item in repositories.values():
        if item.get("existing") and not design.lived:
            for key in {*item} - {"name", "existing"}:
                del item[key]
        else:
            item.pop("existing", None)
        if item.get("keepImages"):
            item.pop("keepDays", None)
    for item in pushing.values():
        item.pop("repositories", None)
        if item.get("role") and not design.lived:
            for key in {*item} - {"name", "role"}:
                del item[key]
        else:
            item.pop("role", None)
            item.update(provider=item.get("provider") or "github", project="example/shop", createProvider=True)
    if pushing and not repositories:
        repositories = {"shop/web": {"name": "shop/web"}}
    for key, items in (("registry.repositories", repositories), ("registry.push", pushing)):
        if items:
            put(file, key, list(items.values()))
    if any(section.get("prePulledImages") for section in file["nodeGroups"]):
        drop(file, "registry.only")


def _settle_bastion(file: File) -> None:
    """Give a bastion a key and somebody who may reach it, or take it away if it has nothing."""
    if not get(file, "bastion"):
        drop(file, "bastion")
        return
    if not (get(file, "ssh.keyName") or get(file, "ssh.publicKey")):
        put(file, "ssh.publicKey", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBmqaeAWN0f4SVnzVUBz0zOZyTtT6s4VKVJZ2fS8G0jM")
    if not (get(file, "bastion.allowedCidrs") or get(file, "bastion.allowedPrefixLists")):
        put(file, "bastion.allowedCidrs", ["203.0.113.0/24"])


def _settle_endpoints(file: File) -> None:
    """Leave out of a file what goes with endpoints of the API that it does not have."""
    is_public = get(file, "api.public", True)
    if not is_public:
        drop(file, "api.elasticIp")
        drop(file, "api.dns.publicZone")
        if get(file, "api.internal") is False:
            drop(file, "api.internal")
    elif get(file, "api.dns.privateZone"):
        put(file, "api.internal", True)
    if not (is_public and get(file, "api.internal")):
        drop(file, "api.internalCidrs")
    if set(get(file, "api.dns", ())) == {"name"}:
        drop(file, "api.dns")


@st.composite
def _names_of_the_api(draw: DrawFn) -> File:
    """A name in a public zone, a private zone or one of each, which exist or are created."""
    found: File = {"name": draw(st.sampled_from(("api.k8s.example.com", "k8s.example.com")))}
    kinds = draw(st.sampled_from((("publicZone",), ("privateZone",), ("publicZone", "privateZone"))))
    new = st.sampled_from(("k8s.example.com", "example.com")).map(lambda name: {"name": name})
    for kind in kinds:
        found[kind] = draw(new | st.just({"id": ZONE_IDS[kind]}))
    return found


def _settle_interruptions(file: File) -> None:
    """Let one of group and handler act on recommendations, only Spot Instances get them, and pods end in time."""
    handler = "addons.nodeTerminationHandler"
    for section in file["nodeGroups"]:
        is_told = has_spot_instances(section) and not section.get("capacityRebalance")
        if not is_told or section.get("drainTimeout") == 0:
            drop(section, "rebalanceRecommendation")
    if not get(file, f"{handler}.enabled"):
        for key in ("spotInterruptions", "scheduledEvents", "podGracePeriod", "nodeGracePeriod"):
            drop(file, f"{handler}.{key}")
        drop(file, f"{handler}.rebalanceRecommendation")
    if any(
        section.get("rebalanceRecommendation", "ignore") != "ignore" or section.get("capacityRebalance")
        for section in file["nodeGroups"]
    ):
        drop(file, f"{handler}.rebalanceRecommendation")
    if (get(file, f"{handler}.podGracePeriod") or 0) > 100:
        put(file, f"{handler}.podGracePeriod", 100)


def _flow_logs(design: Design) -> SearchStrategy[File]:
    """Flow logs in a log group or, unless the cluster lives in an account without one, in a bucket."""
    common = {"traffic": st.sampled_from(("all", "accept", "reject")), "interval": st.sampled_from((60, 600))}
    in_group = st.fixed_dictionaries(
        {"destination": st.just("cloudWatchLogs"), "retentionDays": st.sampled_from((1, 30, 3653))}, optional=common
    )
    in_bucket = st.fixed_dictionaries(
        {"destination": st.just("s3"), "bucket": st.just("example-flow-logs")}, optional=common
    )
    return in_group if design.lived else in_group | in_bucket


def _proxies() -> SearchStrategy[File]:
    """A proxy outside of the cluster, and what is reached without it."""
    urls = st.sampled_from(("http://proxy.example.com:3128", "http://192.0.2.7:8080/", "http://p:1"))
    hosts = st.sampled_from((".example.com", "registry.example.org", "192.0.2.8", "192.0.2.0/24", "localhost"))
    return st.fixed_dictionaries(
        {"httpsProxy": urls},
        optional={"httpProxy": urls, "noProxy": st.lists(hosts, max_size=4, unique=True)},
    )


def _special(design: Design) -> dict[str, SearchStrategy[Any]]:
    """Strategies for keys of which the design, an account or another key has a say; `*` is masters and nodes."""
    zones = [design.region + letter for letter in design.zones]
    host = IPv4Network(design.services).network_address + 10
    partition = design.partition
    policies = st.from_regex(rf"arn:{partition}:iam::123456789012:policy/[a-z]{{1,8}}", fullmatch=True)
    secrets = st.from_regex(
        rf"arn:{partition}:secretsmanager:{design.region}:123456789012:secret:[a-z]{{1,8}}-[A-Za-z]{{6}}",
        fullmatch=True,
    )
    sources = st.lists(_ranges(), max_size=2, unique=True) | st.lists(
        _ranges(), min_size=1, max_size=3 if design.lived else 40, unique=True
    )
    lists = st.lists(
        st.fixed_dictionaries(
            {"id": st.sampled_from(("pl-0123456789abcdef0", "pl-0123456789abcdef1")), "maxEntries": st.integers(1, 10)}
        ),
        max_size=2,
        unique_by=lambda each: str(each["id"]),
    )
    return {
        "kubernetesVersion": st.sampled_from([*patches_by_minor(), *map(exact_version, patches_by_minor())]),
        "network.vpc.name": _tag_values(),
        "network.endpoints.additional": st.lists(st.sampled_from(("kms", "sts", "monitoring")), unique=True),
        "network.endpoints.services": st.just([{"service": "ec2", "privateDns": True, "zones": zones[:1]}]),
        "network.vpc.additionalCidrs": st.sampled_from(([], ["100.80.0.0/16"], ["100.80.0.0/20", "100.81.0.0/28"])),
        # No larger than an equal share of the VPC.
        "network.subnetSizes.instances": st.just(min(28, max(24, IPv4Network(design.vpc).prefixlen + 2))),
        "network.subnetSizes.public": st.just(28),
        "nodeGroups[].update": st.fixed_dictionaries(
            {"maxUnavailable": st.integers(1, 3)}, optional={"maxSurge": st.integers(0, 2), "pause": st.integers(0, 9)}
        ),
        "network.routes": st.sampled_from(("tgw", "pcx", "vgw", "eni")).map(_routes),
        "network.flowLogs": _flow_logs(design),
        "network.dnsServiceIp": st.just(str(host)),
        # EC2 accepts no lower price than 0.001.
        "nodeGroups[].spotPrice": st.sampled_from(("0.001", "0.05", "1.5", "12")),
        "network.quotas": _quotas(),
        "network.proxy": _proxies(),
        "bastion.allowedCidrs": st.lists(_ranges(), max_size=3, unique=True),
        "bastion.allowedPrefixLists": lists,
        "bastion.elasticIp": st.fixed_dictionaries(
            {"allocationId": st.just("eipalloc-0123456789abcdef1"), "address": st.just("52.10.20.31")}
        ),
        "bastion.image": _images(design),
        "bastion.instanceType": _instance_type(design),
        "bastion.rootVolume": _volumes(design, least=8),
        "bastion.zone": st.sampled_from(zones),
        "network.nonMasqueradeCidr": st.sampled_from(("10.0.0.0/8", "172.16.0.0/12", design.vpc)),
        "network.dhcpOptions": st.sampled_from(("default", "dopt-0123456789abcdef0")),
        "api.port": st.sampled_from([each for each in PORTS if each not in _PORTS_IN_USE]),
        "api.allowedCidrs": sources,
        "api.allowedPrefixLists": lists,
        "api.dns": _names_of_the_api(),
        "api.elasticIp": st.fixed_dictionaries(
            {"allocationId": st.just("eipalloc-0123456789abcdef0"), "address": st.sampled_from(FREE_ADDRESSES)}
        ),
        "ssh.keyName": st.from_regex(r"[a-z][\x20-\x7e]{0,20}[a-z]", fullmatch=True).filter(
            lambda name: "{{resolve:" not in name
        ),
        "ssh.allowedCidrs": sources,
        "ssh.allowedPrefixLists": lists,
        "image": _images(design),
        "*.image": _images(design),
        "*.rootVolume": _volumes(design, least=8),
        "*.volume": _volumes(design, least=1),
        "*.additionalSecurityGroups": st.lists(
            st.sampled_from(("sg-0123456789abcdef0", "sg-0123456789abcdef1")), max_size=2, unique=True
        ),
        "*.ingress": _ingress(design),
        "bastion.ingress": _ingress(design),
        "*.additionalPolicies": st.lists(policies, max_size=3, unique=True),
        "iam": st.fixed_dictionaries(
            {},
            optional={"permissionsBoundary": policies}
            | (
                {}
                if design.lived
                else {
                    **{kind: _roles(partition, kind) for kind in ("masters", "nodes")},
                    "addonRoles": st.booleans(),
                    "path": st.from_regex(r"/([a-z]{1,8}/){1,2}", fullmatch=True),
                    "serviceAccounts": drawn_service_accounts.roles(partition, policies, _policy_statements(partition)),
                }
            ),
        ),
        "serviceAccountIssuer": drawn_service_accounts.issuer(partition),
        "nodeGroups[].iam": _roles(partition, "group"),
        "*.policyStatements": _policy_statements(partition),
        "nodeGroups[].targetGroups": st.lists(
            st.from_regex(
                rf"arn:{partition}:elasticloadbalancing:{design.region}:123456789012:targetgroup/[a-z]{{1,8}}/[0-9a-f]{{16}}",
                fullmatch=True,
            ),
            max_size=2,
            unique=True,
        ),
        **{
            key: st.from_regex(
                rf"arn:{partition}:kms:{design.region}:123456789012:key/(mrk-)?[0-9a-f]{{32}}", fullmatch=True
            )
            for key in ("secrets.kmsKey", "etcd.backups.kmsKey")
        },
        "notifications.topic": st.from_regex(
            rf"arn:{partition}:sns:{design.region}:123456789012:[A-Za-z0-9_-]{{1,20}}", fullmatch=True
        ),
        "certificateAuthority.secret": secrets,
        "controlPlane.addresses": _addresses(design),
        "nodeGroups[].zones": st.lists(st.sampled_from(zones), min_size=1, unique=True)
        if len(zones) == 1
        else st.just(zones[:1]) | st.lists(st.sampled_from(zones), min_size=1, unique=True),
        "nodeGroups[].volumes": _further_volumes(design),
        "nodeGroups[].labels": st.dictionaries(_labels(), _label_values(), max_size=3),
        "nodeGroups[].taints": st.lists(
            st.fixed_dictionaries(
                {"key": _labels(), "effect": st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute"))},
                optional={"value": _label_values()},
            ),
            max_size=3,
            unique_by=lambda each: (each["key"], each["effect"]),
        ),
        "*.kubeletConfiguration": _kubelet(),
        "kubernetes.kubeletConfiguration": _kubelet(),
        "kubernetes.clusterConfiguration": st.fixed_dictionaries(
            {},
            optional={
                "imageRepository": st.just("registry.example.com/k8s"),
                "featureGates": st.dictionaries(st.from_regex(r"[A-Z][a-zA-Z]{2,8}", fullmatch=True), st.booleans()),
                "apiServer": st.fixed_dictionaries(
                    {
                        "extraArgs": st.lists(
                            st.fixed_dictionaries(
                                {
                                    "name": st.sampled_from(("v", "profiling", "audit-log-maxage")),
                                    "value": st.from_regex(r"[0-9a-z]{1,4}", fullmatch=True),
                                }
                            ),
                            max_size=2,
                            unique_by=lambda each: str(each["name"]),
                        )
                    }
                ),
            },
        ),
        "addons.charts": of(*section_of(Cluster, "addons.charts")).map(_own_names),
        "*.files": st.lists(
            st.fixed_dictionaries(
                {
                    "path": st.from_regex(r"(/srv|/etc/[a-z]{1,4})/[A-Za-z0-9_.@+,:-]{3,12}", fullmatch=True),
                    "content": st.text(VISIBLE | st.sampled_from("\n\t"), max_size=60),
                },
                optional={"mode": st.from_regex(r"0?[0-7]{3}", fullmatch=True)},
            ),
            max_size=2,
            unique_by=lambda each: str(each["path"]),
        ),
        "*.units": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.from_regex(r"own-[a-z]{1,9}\.(service|timer)", fullmatch=True),
                    "content": st.text(VISIBLE | st.sampled_from("\n\t"), max_size=60),
                },
                optional={"enable": st.booleans()},
            ),
            max_size=2,
            unique_by=lambda each: str(each["name"]),
        ),
        "nodeGroups[].autoscaler": _autoscaler(),
        # The smallest types have addresses for eight pods, with the Amazon VPC plug-in.
        "nodeGroups[].maxPods": st.integers(5, 8 if design.plugin == "amazon-vpc" else 250),
        "addons.clusterAutoscaler.expander": st.sampled_from(
            (["least-waste"], ["most-pods", "least-nodes"], ["least-waste", "random"])
        ),
        "addons.clusterAutoscaler.priorities": st.just({"50": list(design.groups)} if design.groups else {}),
        "tags": st.dictionaries(_tag_keys(), _tag_values(), max_size=4),
    }


def _roles(partition: str, name: str) -> SearchStrategy[File]:
    """An existing role, and sometimes its instance profile."""
    arn = f"arn:{partition}:iam::123456789012"
    return st.fixed_dictionaries(
        {"role": st.just(f"{arn}:role/team/{name}")},
        optional={"instanceProfile": st.just(f"{arn}:instance-profile/{name}")},
    )


def _policy_statements(partition: str) -> SearchStrategy[list[File]]:
    """Statements for the role of a node group."""
    actions = st.sampled_from(("s3:GetObject", "s3:List*", "sqs:ReceiveMessage", "dynamodb:Get?tem"))
    resources = st.sampled_from(
        ("*", f"arn:{partition}:s3:::example-data/*", f"arn:{partition}:sqs:*:123456789012:jobs")
    )
    values = st.sampled_from(("ml", ["ml", "web"]))
    optional = {
        "effect": st.sampled_from(("Allow", "Deny")),
        "conditions": values.map(lambda value: {"StringEquals": {"aws:ResourceTag/team": value}}),
    }
    lists = {
        "actions": st.lists(actions, min_size=1, max_size=2, unique=True),
        "resources": st.lists(resources, min_size=1, max_size=2, unique=True),
    }
    return st.lists(st.fixed_dictionaries(lists, optional=optional), max_size=2)


def _autoscaler() -> SearchStrategy[File]:
    """What cluster-autoscaler is told about a group, or that it leaves the group alone."""
    times = st.sampled_from(("90s", "10m", "1h30m"))
    shares = st.sampled_from(("0", "0.5", "1"))
    settings = {
        "resources": st.dictionaries(
            st.sampled_from(("cpu", "memory", "pods", "nvidia.com/gpu")), st.sampled_from(("1", "500m", "2Gi"))
        ),
        "scaleDownUtilizationThreshold": shares,
        "scaleDownGpuUtilizationThreshold": shares,
        "scaleDownUnneededTime": times,
        "scaleDownUnreadyTime": times,
        "ignoreDaemonSetsUtilization": st.booleans(),
    }
    return st.fixed_dictionaries({}, optional=settings) | st.just({"enabled": False})


def _own_names(charts: list[File]) -> list[File]:
    """Charts with names that no other release has."""
    return [{**each, "name": f"own-{index}-{each['name']}"[:53].rstrip("-")} for index, each in enumerate(charts)]


def _ranges() -> SearchStrategy[str]:
    return st.builds(
        lambda number, prefix: str(IPv4Network((number, prefix), strict=False)),
        st.integers(0x0B000000, 0xDF000000),
        st.integers(16, 32),
    ) | st.just("0.0.0.0/0")


def _labels() -> SearchStrategy[str]:
    return st.from_regex(r"([a-z]{1,8}\.example/)?[A-Za-z]([A-Za-z0-9_.-]{0,20}[A-Za-z0-9])?", fullmatch=True)


def _label_values() -> SearchStrategy[str]:
    return st.from_regex(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?", fullmatch=True)


def _tag_keys() -> SearchStrategy[str]:
    characters = string.ascii_letters + string.digits + " _.:/=+-@äß東"
    return st.text(characters, min_size=1, max_size=60).filter(lambda key: not why_key_refused(key))


def _tag_values() -> SearchStrategy[str]:
    characters = string.ascii_letters + string.digits + " _.:/=+-@äß東"
    return st.text(characters, min_size=1, max_size=80).filter(lambda value: not STACK_TAG_VALUE.fault(value))


@st.composite
def _quotas(draw: DrawFn) -> File:
    rules = draw(st.integers(60, 200))
    return {
        "rulesPerSecurityGroup": rules,
        "securityGroupsPerInterface": draw(st.integers(5, min(16, 1000 // rules))),
    }


def _ingress(design: Design) -> SearchStrategy[Any]:
    """Ports that neither the API nor SSH has; a security group is of a VPC, of one still to be made there is none."""
    sources: dict[str, SearchStrategy[Any]] = {
        "description": of(*section_of(Cluster, "nodeGroups[].ingress[].description")),
        "prefixLists": st.just([{"id": "pl-0123456789abcdef1", "maxEntries": 10}]),
    }
    if design.existing != "no" or not design.lived:
        sources["securityGroups"] = st.just(["sg-0123456789abcdef1"])
    opened = st.sampled_from(
        ({"ports": "30080"}, {"protocol": "udp", "ports": "30000-32767"}, {"protocol": "icmp"}, {"protocol": "all"})
    )
    # What lets everybody in is a danger of a plan, which lives do not agree to.
    narrow = _ranges().filter(lambda cidr: not cidr.endswith("/0"))
    cidrs = st.lists(narrow, min_size=1, max_size=2, unique=True)
    rules = st.builds(
        lambda ports, others: {**ports, **others}, opened, st.fixed_dictionaries({"cidrs": cidrs}, optional=sources)
    )
    return st.lists(rules, max_size=3, unique_by=lambda rule: str(rule.get("protocol")))


@st.composite
def _images(draw: DrawFn, design: Design) -> File:
    distributions = of(*section_of(Cluster, "image.distribution"))
    kind = draw(st.sampled_from(("distribution", "id", "ssmParameter")))
    found: File = {"distribution": draw(distributions)} if draw(st.booleans()) or kind == "distribution" else {}
    if len(design.architectures) == 1 and draw(st.booleans()):
        found["architecture"] = design.architectures[0]
    if kind == "id" and design.architectures == ("amd64",):
        found["id"] = draw(st.sampled_from(("ami-0123456789abcdef0", "ami-0123456789abcdef1")))
    if kind == "ssmParameter" and design.architectures == ("amd64",):
        found["ssmParameter"] = "/platform/images/node"
    if ("id" in found or "ssmParameter" in found) and draw(st.booleans()):
        found["rootDevice"] = draw(st.sampled_from(("/dev/xvda", "/dev/sda1")))
    return found


@st.composite
def _volumes(draw: DrawFn, design: Design, least: int) -> File:
    kind = draw(st.sampled_from(("gp3", *sorted(VOLUME_TYPES))))
    limits = VOLUME_TYPES[kind]
    smallest = max(limits.size_gib[0], least)
    size = draw(st.integers(smallest, smallest + 60) | st.sampled_from((smallest, limits.size_gib[1])))
    found: File = {"type": kind, "size": size}
    if limits.iops and (limits.needs_iops or draw(st.booleans())):
        low, high = limits.iops[0], min(limits.iops[1], max(limits.iops_per_gib * size, limits.iops[0]))
        found["iops"] = draw(st.integers(low, high))
    if kind == "gp3" and draw(st.booleans()):
        found["throughput"] = draw(st.integers(125, min(2000, found.get("iops", 3000) // 4)))
    if draw(st.integers(0, 3)) == 0:
        found["kmsKey"] = (
            f"arn:{design.partition}:kms:{design.region}:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
        )
    return found


@st.composite
def _further_volumes(draw: DrawFn, design: Design) -> list[File]:
    folders = draw(st.lists(st.sampled_from(("", "/cache", "/data/own", "/srv")), max_size=3))
    found = []
    for number, folder in enumerate(folders):
        volume = draw(_volumes(design, least=1))
        if design.lived:
            volume.pop("kmsKey", None)
        if draw(st.booleans()):
            volume["device"] = f"/dev/sd{'mnop'[number]}"
        if folder and folder not in folders[:number]:
            volume["mountPath"] = folder
            volume["fileSystem"] = draw(st.sampled_from(("ext4", "xfs")))
        found.append(volume)
    return found


@st.composite
def _addresses(draw: DrawFn, design: Design) -> list[str]:
    hosts = [
        str(block[position])
        for block in map(IPv4Network, design.subnets)
        for position in (4, 5, 9, 10, 11, block.num_addresses - 2)
        if 4 <= position <= block.num_addresses - 2
    ]
    return draw(
        st.lists(st.sampled_from(sorted(set(hosts))), min_size=design.count, max_size=design.count, unique=True)
    )


def _kubelet() -> SearchStrategy[File]:
    return st.fixed_dictionaries(
        {},
        optional={
            "maxPods": st.integers(1, 250),
            "serializeImagePulls": st.booleans(),
            "evictionHard": st.dictionaries(
                st.sampled_from(("memory.available", "nodefs.available")), st.from_regex(r"[1-9]%", fullmatch=True)
            ),
            "memoryThrottlingFactor": st.floats(0, 1),
            "own": OBJECTS,
        },
    )
