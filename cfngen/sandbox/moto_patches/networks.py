"""Patches of moto's networks: routes, addresses, DHCP options, load balancers, hosted zones; and of bucket policies."""

from __future__ import annotations

from moto.ec2.models.elastic_ip_addresses import ElasticAddressBackend
from moto.ec2.models.managed_prefixes import ManagedPrefixListBackend
from moto.ec2.models.route_tables import Route
from moto.ec2.responses.dhcp_options import DHCPOptions
from moto.elbv2.models import AvailabilityZone, ELBv2Backend
from moto.iam.access_control import IAMPolicyStatement, PermissionResult
from moto.route53.models import HostedZoneIdentifier

from cfngen.sandbox.moto_patches.registry import patches, patches_property
from cfngen.sandbox.untyped import JsonDict, MotoBackend, MotoModel, MotoResponse, Original

# Of the prefix lists of S3, by region (aws-cloudformation/cloudformation-coverage-roadmap#453, Juniper/vSRX-AWS#14).
S3_PREFIX_LISTS = {
    "ap-northeast-1": "pl-61a54008",
    "ap-northeast-2": "pl-78a54011",
    "ap-south-1": "pl-78a54011",
    "ap-southeast-1": "pl-6fa54006",
    "ap-southeast-2": "pl-6ca54005",
    "ca-central-1": "pl-7da54014",
    "eu-central-1": "pl-6ea54007",
    "eu-west-1": "pl-6da54004",
    "eu-west-2": "pl-7ca54015",
    "eu-west-3": "pl-23ad484a",
    "sa-east-1": "pl-6aa54003",
    "us-east-1": "pl-63a5400a",
    "us-east-2": "pl-7ba54012",
    "us-west-1": "pl-6ba54002",
    "us-west-2": "pl-68a54001",
}


@patches(ManagedPrefixListBackend, "create_default_pls")
def _give_the_list_of_s3_its_id(original: Original, self: MotoBackend) -> None:
    """Give the prefix list of S3 the id that it has in the region: templates name it. moto 5.2.5 draws one."""
    original(self)
    region = self.region_name
    drawn = next(
        prefix_list
        for prefix_list in self.managed_prefix_lists.values()
        if prefix_list.prefix_list_name.endswith(f"{region}.s3")
    )
    del self.managed_prefix_lists[drawn.id]
    drawn.id = S3_PREFIX_LISTS.get(region, drawn.id)
    drawn.prefix_list_arn = drawn.arn(region, drawn.owner_id)
    self.managed_prefix_lists[drawn.id] = drawn


@patches_property(Route, "state")
def _show_blackhole_routes(original: Original, self: MotoModel) -> str:
    """Show a route whose target is gone as a blackhole.

    moto 5.2.5 shows every route as active (moto/ec2/models/route_tables.py, `Route.state`). EC2 API, Route: "blackhole
    indicates that the route's target isn't available (for example, the specified gateway isn't attached to the VPC, or
    the specified NAT instance has been terminated)". A terminated instance is not shown as the target any more.
    """
    return "blackhole" if _has_lost_target(self) else "active"


def _has_lost_target(route: MotoModel) -> bool:
    instance, interface, gateway = route.instance, route.interface, route.gateway
    if instance:
        return bool(instance.state != "running")
    if interface:
        return interface.id not in interface.ec2_backend.enis
    if gateway and gateway.id.startswith("igw-"):
        return not gateway.vpc or gateway.vpc.id != route.route_table.vpc_id
    return bool(route.nat_gateway and route.nat_gateway.state != "available")


@patches_property(Route, "instance_id")
def _hide_terminated_target(original: Original, self: MotoModel) -> str | None:
    is_shown = self.instance and self.instance.state != "terminated"
    return self.instance.id if is_shown else None


@patches(ElasticAddressBackend, "associate_address")
def _reassociate_elastic_ips(original: Original, self: MotoModel, *arguments: object, **options: object) -> MotoModel:
    """Disassociate the old Elastic IP of a network interface when another one is associated.

    "If you associate an Elastic IP address with an instance that has an existing Elastic IP address, the existing
    address is disassociated" (EC2 API reference, AssociateAddress). moto 5.2.5 keeps both, and disassociating the old
    one also removes the new one (moto/ec2/models/elastic_ip_addresses.py, `associate_address`).
    """
    new_address = original(self, *arguments, **options)
    for address in self.addresses:
        if new_address.eni and address is not new_address and address.eni is new_address.eni:
            address.instance = address.eni = address.association_id = None
    return new_address


@patches(DHCPOptions, "create_dhcp_options")
def _tag_dhcp_options(original: Original, self: MotoResponse) -> MotoResponse:
    """Tag DHCP options on creation; moto 5.2.5 ignores these tags."""
    response = original(self)
    tags = self._parse_tag_specification().get("dhcp-options", {})
    response.result["DhcpOptions"].add_tags(tags)
    return response


@patches(HostedZoneIdentifier, "generate")
def _begin_ids_of_hosted_zones_with_z(
    original: Original, self: MotoModel, existing_ids: object = None, tags: object = None
) -> str:
    """Give hosted zones ids that begin with Z, such as Z1D633PJN98FT9 (API reference of Route 53, HostedZone).

    moto 5.2.5 makes them of any letters and digits (moto/route53/models.py, `create_route53_zone_id`).
    """
    return f"Z{original(self, existing_ids, tags)[1:]}"


@patches(ELBv2Backend, "set_subnets")
def _allow_single_subnet(
    original: Original, self: MotoModel, arn: str, subnets: list[str], subnet_mappings: list[JsonDict]
) -> MotoModel:
    """Allow SetSubnets to leave a network load balancer with a single subnet.

    moto 5.2.5 requires two Availability Zones for all load balancers (moto/elbv2/models.py, `set_subnets`); Elastic
    Load Balancing does so for application load balancers only (API reference, SetSubnets).
    """
    subnet_ids = [*subnets, *(subnet_mapping["SubnetId"] for subnet_mapping in subnet_mappings)]
    load_balancer = self.load_balancers.get(arn)
    if load_balancer is None or load_balancer.type != "network" or len(subnet_ids) != 1:
        return original(self, arn, subnets, subnet_mappings)
    subnet = self.ec2_backend.get_subnet(subnet_ids[0])
    load_balancer.subnets = [subnet]
    return [AvailabilityZone(subnet)]


@patches(IAMPolicyStatement, "is_action_permitted")
def _ignore_tls_only_policies(
    original: Original, self: MotoModel, *arguments: object, **options: object
) -> PermissionResult:
    """Allow requests to buckets whose policy denies connections without TLS.

    moto 5.2.5 ignores conditions in bucket policies, so the denial would apply to all requests.
    """
    if self._statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}:
        return PermissionResult.NEUTRAL
    result: PermissionResult = original(self, *arguments, **options)
    return result
