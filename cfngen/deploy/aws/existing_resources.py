"""Counts, after a deletion, which resources of the cluster's stacks still exist.

The resources are looked up in each AWS service, not in CloudFormation's records. (kube-down left key pairs, roles, DHCP
options and buckets behind without a message.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import error_code
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.aws.types import AwsObject

FILTER_BATCH_SIZE = 100  # values in one filter; EC2 takes 200
GROUPS_BATCH_SIZE = 50  # names in one DescribeAutoScalingGroups
NOT_FOUND_CODES = frozenset({"NoSuchDistribution", "NoSuchEntity", "NotFoundException", "ResourceNotFoundException"})


FindExisting = Callable[[Account, list[str]], set[str]]
"""Returns which resources of one kind still exist, of those with the given physical ids."""


class ResourceKind(NamedTuple):
    """A kind of resources that is counted.

    Attributes:
        name: the kind in words, in the plural.
        type: its CloudFormation type.
        find_existing: returns which of the given ids still exist.
    """

    name: str
    type: str
    find_existing: FindExisting


def _make_ec2_finder(
    operation: str, response_key: str, filter_name: str, id_key: str, filters_argument: str = "Filters"
) -> FindExisting:
    """Return a function that finds which of the given ids EC2 still describes.

    Args:
        operation: the EC2 operation, as a method of the boto3 client.
        response_key: key of the resources in its response.
        filter_name: name of the filter by id.
        id_key: key of the id in the description of a resource.
        filters_argument: the parameter of the operation that takes filters.
    """

    def find_existing(account: Account, ids: list[str]) -> set[str]:
        existing_ids: set[str] = set()
        # Filters instead of ids: EC2 rejects the whole call if one of the requested ids no longer exists.
        for start in range(0, len(ids), FILTER_BATCH_SIZE):
            filters = [{"Name": filter_name, "Values": ids[start : start + FILTER_BATCH_SIZE]}]
            items = getattr(account.client("ec2"), operation)(**{filters_argument: filters})[response_key]
            # The states of VPC endpoints are capitalized in the API reference, and lower-case in answers.
            existing_ids |= {
                str(item[id_key]) for item in items if str(item.get("State")).lower() not in ("deleting", "deleted")
            }
        return existing_ids

    return find_existing


def _find_existing_addresses(account: Account, ids: list[str]) -> set[str]:
    """Return the Elastic IPs that still exist."""
    # Ref of an Elastic IP is the address itself, not its allocation id.
    filters = [{"Name": "public-ip", "Values": ids}]
    return {
        str(address["PublicIp"]) for address in account.client("ec2").describe_addresses(Filters=filters)["Addresses"]
    }


def _find_existing_auto_scaling_groups(account: Account, ids: list[str]) -> set[str]:
    """Return the names of the Auto Scaling groups that still exist."""
    autoscaling = account.client("autoscaling")
    existing_names: set[str] = set()
    for start in range(0, len(ids), GROUPS_BATCH_SIZE):
        batch = ids[start : start + GROUPS_BATCH_SIZE]
        response = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=batch)
        existing_names |= {str(group["AutoScalingGroupName"]) for group in response["AutoScalingGroups"]}
    return existing_names


def _find_existing_launch_templates(account: Account, ids: list[str]) -> set[str]:
    """Return the ids of the launch templates that still exist."""
    # EC2 has no filter for their ids.
    pages = account.client("ec2").get_paginator("describe_launch_templates").paginate()
    return {
        launch_template["LaunchTemplateId"] for page in pages for launch_template in page["LaunchTemplates"]
    }.intersection(ids)


def _find_existing_load_balancers(account: Account, ids: list[str]) -> set[str]:
    """Return the ARNs of the load balancers that still exist."""
    # Lists all load balancers: a call with ARNs fails if one of the load balancers no longer exists.
    pages = account.client("elbv2").get_paginator("describe_load_balancers").paginate()
    return {balancer["LoadBalancerArn"] for page in pages for balancer in page["LoadBalancers"]}.intersection(ids)


def _find_existing_target_groups(account: Account, ids: list[str]) -> set[str]:
    """Return the ARNs of the target groups that still exist."""
    pages = account.client("elbv2").get_paginator("describe_target_groups").paginate()
    return {target_group["TargetGroupArn"] for page in pages for target_group in page["TargetGroups"]}.intersection(ids)


def _find_existing_roles(account: Account, ids: list[str]) -> set[str]:
    """Return the names of the roles that still exist."""
    iam = account.client("iam")
    return _filter_existing(ids, lambda name: iam.get_role(RoleName=name))


def _find_existing_providers(account: Account, ids: list[str]) -> set[str]:
    """Return the ARNs of the OpenID Connect providers that still exist."""
    iam = account.client("iam")
    # One whose creation failed has no ARN, and botocore asks for nothing shorter than one.
    arns = [physical_id for physical_id in ids if physical_id.startswith("arn:")]
    return _filter_existing(arns, lambda arn: iam.get_open_id_connect_provider(OpenIDConnectProviderArn=arn))


def _find_existing_distributions(account: Account, ids: list[str]) -> set[str]:
    """Return the ids of the CloudFront distributions that still exist."""
    cloudfront = account.client("cloudfront")
    return _filter_existing(ids, lambda distribution_id: cloudfront.get_distribution(Id=distribution_id))


def _find_existing_instance_profiles(account: Account, ids: list[str]) -> set[str]:
    """Return the names of the instance profiles that still exist."""
    iam = account.client("iam")
    return _filter_existing(ids, lambda name: iam.get_instance_profile(InstanceProfileName=name))


def _find_existing_secrets(account: Account, ids: list[str]) -> set[str]:
    """Return the ARNs of the secrets that still exist and are not scheduled for deletion."""
    secrets = account.client("secretsmanager")
    return _filter_existing(
        ids, lambda arn: secrets.describe_secret(SecretId=arn), is_deleted=lambda response: "DeletedDate" in response
    )


def _filter_existing(
    ids: Iterable[str],
    describe: Callable[[str], AwsObject],
    is_deleted: Callable[[AwsObject], bool] = lambda response: False,
) -> set[str]:
    """Return the ids of the resources that can be described and are not marked as deleted."""
    return {resource_id for resource_id in ids if _exists(resource_id, describe, is_deleted)}


def _exists(resource_id: str, describe: Callable[[str], AwsObject], is_deleted: Callable[[AwsObject], bool]) -> bool:
    """Return whether a resource can be described and is not marked as deleted."""
    from botocore.exceptions import ClientError

    try:
        return not is_deleted(describe(resource_id))
    except ClientError as error:
        if error_code(error) in NOT_FOUND_CODES:
            return False
        raise


RESOURCE_KINDS: tuple[ResourceKind, ...] = (
    ResourceKind(name="Auto Scaling groups", type=AUTO_SCALING_GROUP, find_existing=_find_existing_auto_scaling_groups),
    ResourceKind(
        name="launch templates", type="AWS::EC2::LaunchTemplate", find_existing=_find_existing_launch_templates
    ),
    ResourceKind(
        name="load balancers",
        type="AWS::ElasticLoadBalancingV2::LoadBalancer",
        find_existing=_find_existing_load_balancers,
    ),
    ResourceKind(
        name="target groups",
        type="AWS::ElasticLoadBalancingV2::TargetGroup",
        find_existing=_find_existing_target_groups,
    ),
    ResourceKind(
        name="volumes",
        type="AWS::EC2::Volume",
        find_existing=_make_ec2_finder(
            operation="describe_volumes", response_key="Volumes", filter_name="volume-id", id_key="VolumeId"
        ),
    ),
    ResourceKind(name="Elastic IPs", type="AWS::EC2::EIP", find_existing=_find_existing_addresses),
    ResourceKind(
        name="network interfaces",
        type="AWS::EC2::NetworkInterface",
        find_existing=_make_ec2_finder(
            operation="describe_network_interfaces",
            response_key="NetworkInterfaces",
            filter_name="network-interface-id",
            id_key="NetworkInterfaceId",
        ),
    ),
    ResourceKind(
        name="security groups",
        type="AWS::EC2::SecurityGroup",
        find_existing=_make_ec2_finder(
            operation="describe_security_groups",
            response_key="SecurityGroups",
            filter_name="group-id",
            id_key="GroupId",
        ),
    ),
    ResourceKind(
        name="VPCs",
        type="AWS::EC2::VPC",
        find_existing=_make_ec2_finder(
            operation="describe_vpcs", response_key="Vpcs", filter_name="vpc-id", id_key="VpcId"
        ),
    ),
    ResourceKind(
        name="subnets",
        type="AWS::EC2::Subnet",
        find_existing=_make_ec2_finder(
            operation="describe_subnets", response_key="Subnets", filter_name="subnet-id", id_key="SubnetId"
        ),
    ),
    ResourceKind(
        name="route tables",
        type="AWS::EC2::RouteTable",
        find_existing=_make_ec2_finder(
            operation="describe_route_tables",
            response_key="RouteTables",
            filter_name="route-table-id",
            id_key="RouteTableId",
        ),
    ),
    ResourceKind(
        name="internet gateways",
        type="AWS::EC2::InternetGateway",
        find_existing=_make_ec2_finder(
            operation="describe_internet_gateways",
            response_key="InternetGateways",
            filter_name="internet-gateway-id",
            id_key="InternetGatewayId",
        ),
    ),
    ResourceKind(
        name="NAT gateways",
        type="AWS::EC2::NatGateway",
        find_existing=_make_ec2_finder(
            operation="describe_nat_gateways",
            response_key="NatGateways",
            filter_name="nat-gateway-id",
            id_key="NatGatewayId",
            filters_argument="Filter",
        ),
    ),
    ResourceKind(
        name="VPC endpoints",
        type="AWS::EC2::VPCEndpoint",
        find_existing=_make_ec2_finder(
            operation="describe_vpc_endpoints",
            response_key="VpcEndpoints",
            filter_name="vpc-endpoint-id",
            id_key="VpcEndpointId",
        ),
    ),
    ResourceKind(
        name="DHCP options",
        type="AWS::EC2::DHCPOptions",
        find_existing=_make_ec2_finder(
            operation="describe_dhcp_options",
            response_key="DhcpOptions",
            filter_name="dhcp-options-id",
            id_key="DhcpOptionsId",
        ),
    ),
    ResourceKind(
        name="key pairs",
        type="AWS::EC2::KeyPair",
        find_existing=_make_ec2_finder(
            operation="describe_key_pairs", response_key="KeyPairs", filter_name="key-name", id_key="KeyName"
        ),
    ),
    ResourceKind(name="roles", type="AWS::IAM::Role", find_existing=_find_existing_roles),
    ResourceKind(name="OIDC providers", type="AWS::IAM::OIDCProvider", find_existing=_find_existing_providers),
    ResourceKind(
        name="CloudFront distributions",
        type="AWS::CloudFront::Distribution",
        find_existing=_find_existing_distributions,
    ),
    ResourceKind(
        name="instance profiles", type="AWS::IAM::InstanceProfile", find_existing=_find_existing_instance_profiles
    ),
    ResourceKind(name="secrets", type="AWS::SecretsManager::Secret", find_existing=_find_existing_secrets),
)
