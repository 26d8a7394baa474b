"""Which resources of a cluster still exist after its deletion, and which of them are pending deletion.

The resources are looked up in each AWS service, not in CloudFormation's records. (kube-down left key pairs, roles, DHCP
options and buckets behind without a message.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import ACCESS_DENIED_CODES, suppress_codes
from cfngen.deploy.aws.groups import describe_groups
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.aws.templates import BUCKET_MISSING_CODES
from cfngen.deploy.aws.types import AwsObject

NOT_FOUND_CODES = frozenset({"NoSuchDistribution", "NoSuchEntity", "NotFoundException", "ResourceNotFoundException"})


FindExisting = Callable[[Account, list[str]], set[str]]
"""Returns which resources of one kind still exist, of those with the given physical ids."""


class ResourceKind(NamedTuple):
    """A kind of resources that is counted."""

    name: str
    type: str
    find_existing: FindExisting


def _found(kind: str, id_key: str) -> FindExisting:
    """Return a function that finds which of the given ids EC2 still describes.

    Args:
        kind: key of the resources in EC2's response, e.g. `Volumes`, which names the operation too.
        id_key: key of the id in the description of a resource, e.g. `VolumeId`, which names the filter too.
    """

    def find_existing(account: Account, ids: list[str]) -> set[str]:
        from botocore import xform_name

        items = account.items(f"ec2.describe_{xform_name(kind)}", kind, filters={xform_name(id_key, "-"): ids})
        # The states of VPC endpoints are capitalized in the API reference, and lower-case in answers.
        return {str(item[id_key]) for item in items if str(item.get("State")).lower() not in ("deleting", "deleted")}

    return find_existing


def _listed(call: str, key: str, id_key: str) -> FindExisting:
    """Return a function that lists all resources of a kind: a call with ids fails if one no longer exists."""
    return lambda account, ids: {item[id_key] for item in account.items(call, key)}.intersection(ids)


def _described(call: str, argument: str) -> FindExisting:
    """Return a function that describes each resource by its own call; one marked as deleted does not exist."""

    def find_existing(account: Account, ids: list[str]) -> set[str]:
        return {id_ for id_ in ids if _exists(account, call, {argument: id_})}

    return find_existing


def _find_existing_providers(account: Account, ids: list[str]) -> set[str]:
    # One whose creation failed has no ARN, and botocore asks for nothing shorter than one.
    arns = [physical_id for physical_id in ids if physical_id.startswith("arn:")]
    return _described("iam.get_open_id_connect_provider", "OpenIDConnectProviderArn")(account, arns)


def _exists(account: Account, call: str, arguments: Mapping[str, str]) -> bool:
    """Return whether a resource can be described and is not scheduled for deletion."""
    response = account.read(call, absent=NOT_FOUND_CODES, **arguments)
    return response is not None and "DeletedDate" not in response


RESOURCE_KINDS = (
    ResourceKind(
        "Auto Scaling groups",
        AUTO_SCALING_GROUP,
        lambda account, names: {str(group["AutoScalingGroupName"]) for group in describe_groups(account, names)},
    ),
    ResourceKind(
        # EC2 has no filter for their ids.
        "launch templates",
        "AWS::EC2::LaunchTemplate",
        _listed("ec2.describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"),
    ),
    ResourceKind(
        "load balancers",
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        _listed("elbv2.describe_load_balancers", "LoadBalancers", "LoadBalancerArn"),
    ),
    ResourceKind(
        "target groups",
        "AWS::ElasticLoadBalancingV2::TargetGroup",
        _listed("elbv2.describe_target_groups", "TargetGroups", "TargetGroupArn"),
    ),
    ResourceKind("volumes", "AWS::EC2::Volume", _found("Volumes", "VolumeId")),
    # Ref of an Elastic IP is the address itself, not its allocation id.
    ResourceKind("Elastic IPs", "AWS::EC2::EIP", _found("Addresses", "PublicIp")),
    ResourceKind("network interfaces", "AWS::EC2::NetworkInterface", _found("NetworkInterfaces", "NetworkInterfaceId")),
    ResourceKind("security groups", "AWS::EC2::SecurityGroup", _found("SecurityGroups", "GroupId")),
    ResourceKind("VPCs", "AWS::EC2::VPC", _found("Vpcs", "VpcId")),
    ResourceKind("subnets", "AWS::EC2::Subnet", _found("Subnets", "SubnetId")),
    ResourceKind("route tables", "AWS::EC2::RouteTable", _found("RouteTables", "RouteTableId")),
    ResourceKind("internet gateways", "AWS::EC2::InternetGateway", _found("InternetGateways", "InternetGatewayId")),
    ResourceKind("NAT gateways", "AWS::EC2::NatGateway", _found("NatGateways", "NatGatewayId")),
    ResourceKind("VPC endpoints", "AWS::EC2::VPCEndpoint", _found("VpcEndpoints", "VpcEndpointId")),
    ResourceKind("DHCP options", "AWS::EC2::DHCPOptions", _found("DhcpOptions", "DhcpOptionsId")),
    ResourceKind("key pairs", "AWS::EC2::KeyPair", _found("KeyPairs", "KeyName")),
    ResourceKind("roles", "AWS::IAM::Role", _described("iam.get_role", "RoleName")),
    ResourceKind("OIDC providers", "AWS::IAM::OIDCProvider", _find_existing_providers),
    ResourceKind(
        "CloudFront distributions", "AWS::CloudFront::Distribution", _described("cloudfront.get_distribution", "Id")
    ),
    ResourceKind(
        "instance profiles", "AWS::IAM::InstanceProfile", _described("iam.get_instance_profile", "InstanceProfileName")
    ),
    ResourceKind("secrets", "AWS::SecretsManager::Secret", _described("secretsmanager.describe_secret", "SecretId")),
)


def bucket_exists(account: Account, bucket: str) -> bool:
    """Return whether a bucket exists; one that the caller may not look at counts as existing."""
    arguments = {"Bucket": bucket, "ExpectedBucketOwner": account.id}
    # "HeadBucket", Amazon S3 API Reference: 403 where the caller has no permission.
    with suppress_codes(ACCESS_DENIED_CODES):
        return account.read("s3.head_bucket", absent=BUCKET_MISSING_CODES, **arguments) is not None
    return True


def find_keys_pending_deletion(account: Account, ids: Iterable[str]) -> dict[str, str]:
    """Return the day on which KMS deletes each key that is pending deletion, by key id; empty if KMS does not say.

    A key that the caller may not describe is taken for one that is not pending deletion.
    """
    days = {}
    for key_id in sorted(ids):
        response = account.read("kms.describe_key", absent=NOT_FOUND_CODES | ACCESS_DENIED_CODES, KeyId=key_id)
        if response and response["KeyMetadata"]["KeyState"] == "PendingDeletion":
            time = response["KeyMetadata"].get("DeletionDate")
            days[key_id] = time.date().isoformat() if time else ""
    return days


def list_secrets(account: Account, prefix: str) -> Iterator[AwsObject]:
    """Yield the secrets whose names begin with a prefix, also those that are scheduled for deletion.

    Raises:
        ClientError: the caller may not list secrets.
    """
    filters = [{"Key": "name", "Values": [prefix]}]
    return account.items("secretsmanager.list_secrets", "SecretList", IncludePlannedDeletion=True, Filters=filters)


def find_secrets_pending_deletion(account: Account, arns: Iterable[str]) -> tuple[str, ...]:
    """Return which secrets are scheduled for deletion; not those that the caller may not describe."""
    absent = NOT_FOUND_CODES | ACCESS_DENIED_CODES
    return tuple(
        arn
        for arn in sorted(arns)
        if (secret := account.read("secretsmanager.describe_secret", absent=absent, SecretId=arn))
        and secret.get("DeletedDate")
    )


@dataclass(frozen=True)
class LogGroup:
    """A log group of CloudWatch Logs.

    Attributes:
        size: of its stored records, in bytes.
        retention_days: after how many days each record is deleted; None if never.
    """

    name: str
    size: int
    retention_days: int | None


def read_log_groups(account: Account, prefix: str) -> tuple[LogGroup, ...]:
    """Return the log groups whose names start with a prefix; none if the caller may not list log groups."""
    with suppress_codes(ACCESS_DENIED_CODES):
        return tuple(
            LogGroup(group["logGroupName"], group.get("storedBytes", 0), group.get("retentionInDays"))
            for group in account.items("logs.describe_log_groups", "logGroups", logGroupNamePrefix=prefix)
        )
    return ()
