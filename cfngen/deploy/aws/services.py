"""Keys of KMS, hosted zones of Route 53, access controls of CloudFront, buckets and topics that exist already.

What may not exist is None, or the function says so in its name. Errors of boto3 are not translated.
"""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.checked_answers import read_document
from cfngen.deploy.aws.templates import BUCKET_MISSING_CODES
from cfngen.deploy.aws.types import AwsObject

_ENCRYPTION, _SYMMETRIC = "ENCRYPT_DECRYPT", "SYMMETRIC_DEFAULT"


@dataclass(frozen=True)
class KeyView:
    """A key of KMS; state, usage and spec as KMS names them, e.g. `Enabled`, `ENCRYPT_DECRYPT`, `SYMMETRIC_DEFAULT`."""

    is_managed_by_aws: bool
    state: str
    usage: str
    spec: str

    @property
    def is_symmetric_for_encryption(self) -> bool:
        """Whether it is of the only kind that Secrets Manager takes."""
        return (self.usage, self.spec) == (_ENCRYPTION, _SYMMETRIC)


def find_key(account: Account, arn: str) -> KeyView | None:
    """Return a key of KMS."""
    described = account.read("kms.describe_key", absent=("NotFoundException",), KeyId=arn)
    if described is None:
        return None
    key = described["KeyMetadata"]
    # KMS may leave out what a symmetric key for encryption has (KeyMetadata, AWS KMS API Reference: not required).
    return KeyView(
        is_managed_by_aws=key.get("KeyManager") == "AWS",
        state=key["KeyState"],
        usage=key.get("KeyUsage", _ENCRYPTION),
        spec=key.get("KeySpec", _SYMMETRIC),
    )


def read_key_policy(account: Account, arn: str) -> AwsObject:
    """Return the policy of a key of KMS, decoded."""
    # "default" is the name of every key policy (GetKeyPolicy, AWS KMS API Reference).
    response = account.client("kms").get_key_policy(KeyId=arn, PolicyName="default")
    return read_document(response.get("Policy", "{}"), "kms:GetKeyPolicy", "Policy")


@dataclass(frozen=True)
class HostedZoneView:
    """A hosted zone; its domain has no dot at the end."""

    domain: str
    is_private: bool


@dataclass(frozen=True)
class AssociatedZoneView:
    """A private hosted zone of a VPC; its owner is the number of an account, or a service such as efs.amazonaws.com."""

    id: str
    domain: str
    owner: str


def find_hosted_zone(account: Account, zone_id: str) -> HostedZoneView | None:
    """Return a hosted zone."""
    described = account.read("route53.get_hosted_zone", absent=("NoSuchHostedZone",), Id=zone_id)
    if described is None:
        return None
    zone = described["HostedZone"]
    return HostedZoneView(domain=zone["Name"].rstrip("."), is_private=zone["Config"]["PrivateZone"])


def has_record(account: Account, zone_id: str, name: str, kind: str) -> bool:
    """Return whether a hosted zone has a record of a name and a type, e.g. `A`; false if there is no such zone."""
    described = account.read(
        "route53.list_resource_record_sets",
        absent=("NoSuchHostedZone",),
        HostedZoneId=zone_id,
        StartRecordName=name,
        StartRecordType=kind,
        MaxItems="1",
    )
    records = described["ResourceRecordSets"] if described else ()
    return any((record["Name"].rstrip("."), record["Type"]) == (name, kind) for record in records)


def list_private_zones(account: Account, vpc_id: str) -> list[AssociatedZoneView]:
    """Return the private hosted zones that a VPC of the region is associated with, whoever owns them."""
    zones = account.items(
        "route53.list_hosted_zones_by_vpc", "HostedZoneSummaries", VPCId=vpc_id, VPCRegion=account.region
    )
    return [
        AssociatedZoneView(
            id=zone["HostedZoneId"].rpartition("/")[2],
            domain=zone["Name"].rstrip("."),
            owner=zone["Owner"].get("OwningAccount") or zone["Owner"].get("OwningService", ""),
        )
        for zone in zones
    ]


def find_origin_access_control(account: Account, name: str) -> str | None:
    """Return the id of CloudFront's origin access control with a name, which is unique in an account."""
    controls = account.items("cloudfront.list_origin_access_controls", "OriginAccessControlList.Items")
    return next((str(control["Id"]) for control in controls if control["Name"] == name), None)


def is_bucket_missing(account: Account, bucket: str) -> bool:
    """Return whether there is no such bucket. A bucket that the caller may not look at exists."""
    from botocore.exceptions import ClientError

    try:
        return account.read("s3.head_bucket", absent=BUCKET_MISSING_CODES, Bucket=bucket) is None
    except ClientError:
        return False


def has_repository(account: Account, name: str) -> bool:
    """Return whether the account has a repository of ECR in the region."""
    absent = ("RepositoryNotFoundException",)
    return account.read("ecr.describe_repositories", absent=absent, repositoryNames=[name]) is not None


def is_topic_missing(account: Account, arn: str) -> bool:
    """Return whether there is no such topic of SNS."""
    return account.read("sns.get_topic_attributes", absent=("NotFound",), TopicArn=arn) is None


def has_object_lock(account: Account, bucket: str) -> bool:
    """Return whether a bucket has S3 Object Lock; one that does not exist has none."""
    absent = {"ObjectLockConfigurationNotFoundError", *BUCKET_MISSING_CODES}
    answer = account.read("s3.get_object_lock_configuration", absent=absent, Bucket=bucket) or {}
    return bool(answer.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") == "Enabled")


def blocks_public_buckets(account: Account) -> bool:
    """Return whether the account's Block Public Access refuses the policy of a public bucket, or what it allows."""
    # Where nothing is blocked there is no configuration.
    absent = ("NoSuchPublicAccessBlockConfiguration",)
    settings = account.read("s3control.get_public_access_block", absent=absent, AccountId=account.id)
    configuration = settings["PublicAccessBlockConfiguration"] if settings else {}
    return bool(configuration.get("BlockPublicPolicy") or configuration.get("RestrictPublicBuckets"))
