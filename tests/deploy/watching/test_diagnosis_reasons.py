"""AWS's reasons, explained: what they mean and what can be typed."""

from __future__ import annotations

import re

import pytest

from cfngen.deploy.watching.reasons import KNOWN_REASONS, explain_reason, is_lack_of_capacity

REASONS = {
    "Failed to receive 3 resource signal(s) within the specified duration": (
        "3 of the group's instances",
        "console output of the instance",
    ),
    "Received FAILURE signal with UniqueId i-0123456789abcdef0": (
        "boot program of an instance failed",
        "console output of the instance",
    ),
    "Received 1 FAILURE signal(s) out of 1. Unable to satisfy 100% MinSuccessfulInstancesPercent requirement": (
        "boot program of an instance failed",
        "console output of the instance",
    ),
    "The maximum number of VPCs has been reached. (Service: Ec2, Status Code: 400, Request ID: 1)": (
        "quota of VPCs",
        "--service-code vpc --quota-code L-F678F1CE",
    ),
    "The maximum number of addresses has been reached. (Service: Ec2, Error Code: AddressLimitExceeded)": (
        "quota of Elastic IP addresses",
        "--service-code ec2 --quota-code L-0263D0A3",
    ),
    "The limit has been reached. (Service: Ec2, Status Code: 400, Error Code: VpcEndpointLimitExceeded)": (
        "quota of VPC endpoints",
        "--service-code vpc --quota-code L-29B6F2EB",
    ),
    "The limit has been reached. (Service: Ec2, Status Code: 400, Error Code: RouteTableLimitExceeded)": (
        "quota of route tables of a VPC",
        "--service-code vpc --quota-code L-589F43AA",
    ),
    "The limit has been reached. (Service: Ec2, Status Code: 400, Error Code: SubnetLimitExceeded)": (
        "quota of subnets of a VPC",
        "--service-code vpc --quota-code L-407747CB",
    ),
    "You have requested more vCPU capacity than your current vCPU limit of 5 allows for the instance bucket that the "
    "specified instance type belongs to. (VcpuLimitExceeded)": ("quota of vCPUs", "L-1216C47A"),
    "We currently do not have sufficient m5.large capacity in the Availability Zone you requested (us-west-2a). Our "
    "system will be working on provisioning additional capacity.": (
        "no capacity for this instance type",
        "another instance type",
    ),
    "Your requested instance type (p5.48xlarge) is not supported in your requested Availability Zone (us-west-2d). "
    "Please retry your request by choosing us-west-2a": (
        "does not offer p5.48xlarge",
        "--filters Name=instance-type,Values=p5.48xlarge",
    ),
    "k8s-MasterRole already exists in stack arn:aws:cloudformation:us-west-2:123456789012:stack/other/1": (
        "another stack has",
        "--stack-name arn:aws:cloudformation:us-west-2:123456789012:stack/other/1",
    ),
    "Export network cannot be deleted as it is in use by shop and bank": (
        "other stacks import network",
        "remove the import from shop and bank",
    ),
    "[Tried to create resource record set [name='api.example.com.', type='A'] but it already exists]": (
        "has a record of api.example.com already",
        "another api.dns.name",
    ),
    "The specified hosted zone contains non-required resource record sets and so cannot be deleted. (Service: Route53, "
    "Status Code: 400, Request ID: 1) (HostedZoneNotEmpty)": (
        "records that the stack did not make",
        "list-resource-record-sets",
    ),
    "Role with name k8s-MasterRole already exists. (EntityAlreadyExists)": ("exists already", "another name"),
    "The vpc 'vpc-1' has dependencies and cannot be deleted. (Service: Ec2, Status Code: 400)": (
        "still uses it",
        "`cfngen delete`",
    ),
    "resource sg-1 has a dependent object (Service: Ec2, Error Code: DependencyViolation)": (
        "still uses it",
        "cfngen delete",
    ),
    "API: ec2:RunInstances You are not authorized to perform this operation. Encoded authorization failure message: "
    "abc-DEF_123": (
        "contains its name, encoded",
        "aws sts decode-authorization-message --query DecodedMessage --output text --encoded-message abc-DEF_123",
    ),
    "API: iam:CreateRole User: arn:aws:iam::123456789012:user/me is not authorized to perform: iam:CreateRole on "
    "resource: arn:aws:iam::123456789012:role/k8s": ("a permission is missing: iam:CreateRole", "allow iam:CreateRole"),
    "User: arn:aws:iam::1:user/me is not authorized to perform: iam:CreateRole on resource: r with an explicit deny in "
    "a service control policy": ("organization", "AWS organization"),
    "Rate exceeded (Service: AmazonIdentityManagement; Status Code: 400; Error Code: Throttling)": (
        "throttles the API calls",
        "repeat",
    ),
    "S3 error: Access Denied": ("cannot read a template", "s3:GetObject"),
    "S3 error: The specified key does not exist.": ("not at the URL in the root template", "uploads it again"),
    "The KMS key provided is in an incorrect state: KMSInvalidState": ("KMS key cannot be used", "describe-key"),
    "arn:aws:kms:us-west-2:1:key/a is disabled. (Service: S3, Status Code: 400) (KMS.DisabledException)": (
        "KMS key cannot be used",
        "describe-key",
    ),
    "Key 'arn:aws:kms:us-west-2:1:key/a' does not exist": ("KMS key cannot be used", "describe-key"),
    "arn:aws:kms:us-west-2:1:key/a is pending deletion.": ("KMS key cannot be used", "describe-key"),
    "The bucket you tried to delete is not empty (Service: Amazon S3; Status Code: 409; Error Code: BucketNotEmpty)": (
        "still has objects",
        "with all versions",
    ),
    "Your previous request to create the named bucket succeeded and you already own it. (BucketAlreadyOwnedByYou)": (
        "this account has a bucket",
        "another name",
    ),
    "The requested bucket name is not available. (Service: S3; Error Code: BucketAlreadyExists)": (
        "another account has a bucket",
        "choose another name",
    ),
    "Cannot delete entity, must detach all policies first. (Service: Iam, Status Code: 409; Error Code: "
    "DeleteConflict)": ("added policies to the role", "list-attached-role-policies"),
    "Role arn:aws:iam::1:role/cfn is invalid or cannot be assumed": ("service role", "--role-arn"),
    "S3 error: Domain name specified in my-bucket is not a valid S3 domain": ("not one of S3", "cfngen deploy"),
    "The security token included in the request is expired (Service: Ec2; Status Code: 403; Error Code: "
    "ExpiredToken)": ("have expired", "service role"),
    "The security token included in the request is invalid (Service: AmazonIdentityManagement; Status Code: 403; Error "
    "Code: InvalidClientTokenId)": ("only if they were made with MFA", "sign in with a role"),
    "Instance i-1 failed to launch: Client.InternalError: Client error on launch": (
        "encrypted",
        "AWSServiceRoleForAutoScaling",
    ),
    "Requires capabilities : [CAPABILITY_IAM]": ("IAM roles", "CAPABILITY_IAM"),
    "Value (k8s-node) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name": (
        "does not know the new instance profile yet",
        "repeat",
    ),
    "The image id '[ami-0123]' does not exist": ("machine image does not exist", "--image-ids ami-0123"),
    "The key pair 'ops' does not exist": ("no such EC2 key pair", "describe-key-pairs"),
    "The CIDR '10.0.0.0/24' conflicts with another subnet": ("overlaps with another subnet", "describe-subnets"),
    "Address 172.20.0.9 is in use": ("uses that private address", "describe-network-interfaces"),
    "Volume vol-1 is currently attached to i-1 (VolumeInUse)": ("still attached", "--volume-ids vol-1"),
    "Action denied by stack policy: Statement [#1] does not allow [Update:Replace]": (
        "stack policy protects",
        "cfngen deploy",
    ),
    "You can't create this secret because a secret with this name is already scheduled for deletion.": (
        "recovery window",
        "restore-secret",
    ),
    "The following hook(s) failed: [Acme::Tags::Hook]": ("hook", "--verbose"),
    "Internal Failure": ("internal error of AWS", "repeat"),
    # AWS writes the same reason in upper and in lower case, and over several lines.
    "internal failure": ("internal error of AWS", "repeat"),
    "S3 error: for the template of a stack\nAccess Denied": ("cannot read a template", "s3:GetObject"),
    "You are not subscribed to this service: OptInRequired. In order to use this AWS Marketplace product you need to "
    "accept terms and subscribe.": ("Marketplace", "subscribe"),
    "Parameter validation failed: parameter value us-west-2x for parameter name ZoneA does not exist": (
        "is not allowed",
        "correct the value",
    ),
}

# The words and the codes of the same situations, each on its own, by what is said of them.
OF_ONE_KIND: dict[tuple[str, str], tuple[str, ...]] = {
    ("other stacks import network", "remove the import from shop"): (
        "Export network cannot be updated as it is in use by shop",
    ),
    ("still has objects", "with all versions"): ("The bucket you tried to delete is not empty", "BucketNotEmpty"),
    ("this account has a bucket", "another name"): ("and you already own it.", "BucketAlreadyOwnedByYou"),
    ("another account has a bucket", "choose another name"): (
        "The requested bucket name is not available.",
        "BucketAlreadyExists",
    ),
    ("added policies to the role", "list-role-policies"): (
        "Cannot delete entity, must remove roles from instance profile first.",
        "DeleteConflict",
    ),
    ("cannot read a template", "s3:GetObject"): (
        "S3 error: AccessDenied",
        "S3 error: Forbidden",
        "TemplateURL: Access Denied",
        "TemplateURL: Forbidden",
    ),
    ("not at the URL in the root template", "`cfngen deploy` uploads it again"): (
        "S3 error: NoSuchKey",
        "TemplateURL must reference a valid S3 object to which you have access.",
    ),
    ("may not pass the role", "allow iam:PassRole"): (
        "User: arn:aws:iam::1:user/me is not authorized to perform: iam:PassRole on resource: arn:aws:iam::1:role/k8s",
    ),
    ("a permission is missing: ec2:RunInstances", "allow ec2:RunInstances for the caller"): (
        "You are not authorized to use [ec2:RunInstances]",
        "You are not authorized to perform: ec2:RunInstances",
    ),
    ("a permission is missing", "docs/deploy/deploy.md lists"): (
        "AccessDenied",
        "UnauthorizedOperation",
        "You are not authorized to perform this operation.",
        "You are not authorized to use launch template: lt-1",
    ),
    ("a KMS key cannot be used", "AWSServiceRoleForAutoScaling"): (
        # Secrets Manager, whose code for it is that of every denial.
        "Access to KMS is not allowed (Service: AWSSecretsManager; Error Code: AccessDeniedException)",
        "KMS.AccessDeniedException",
        "KMS.DisabledException",
        "KMSDisabled",
        "KMS.KMSInvalidStateException",
        "KMS.InvalidKeyUsageException",
        "KMS.NotFoundException",
        "InvalidKMSKey.InvalidState",
        "The key arn:aws:kms:us-west-2:1:key/a is disabled",
        "The role lacks kms:CreateGrant",
        "The role lacks kms:Decrypt",
        "The role lacks kms:GenerateDataKey",
    ),
    ("quota of VPCs", "vpc --quota-code L-F678F1CE"): ("VpcLimitExceeded",),
    ("quota of Elastic IP addresses", "ec2 --quota-code L-0263D0A3"): (
        "AddressLimitExceeded",
        "The maximum number of addresses has been reached.",
    ),
    ("quota of internet gateways", "vpc --quota-code L-A4707A72"): (
        "InternetGatewayLimitExceeded",
        "The maximum number of internet gateways has been reached.",
    ),
    ("quota of network load balancers", "elasticloadbalancing --quota-code L-69A177A2"): (
        "TooManyLoadBalancers",
        "The maximum number of load balancers has been reached.",
    ),
    ("quota of NAT gateways", "vpc --quota-code L-FE5A380F"): ("NatGatewayLimitExceeded",),
    ("quota of vCPUs of On-Demand instances", "ec2 --quota-code L-1216C47A"): (
        "VcpuLimitExceeded",
        "You have requested more vCPU capacity than your current vCPU limit",
    ),
    ("quota of vCPUs of Spot instances", "ec2 --quota-code L-34B43A08"): ("MaxSpotInstanceCountExceeded",),
    ("quota of IAM roles", "iam --quota-code L-FE177D64"): ("Cannot exceed quota for RolesPerAccount: 1000",),
    ("quota of IAM instance profiles", "iam --quota-code L-6E65F664"): (
        "Cannot exceed quota for InstanceProfilesPerAccount: 1000",
    ),
    ("quota of rules in a security group", "vpc --quota-code L-0EA8095F"): (
        "RulesPerSecurityGroupLimitExceeded",
        "SecurityGroupsPerSecurityGroupLimitExceeded",
    ),
    ("quota of security groups", "vpc --quota-code L-E79EC296"): ("SecurityGroupLimitExceeded",),
    ("another instance has the place", "describe-capacity-reservations"): (
        "ReservationCapacityExceeded",
        "The requested reservation does not have sufficient compatible and available capacity for this request.",
    ),
    ("reservation was cancelled", "controlPlane.capacityReservation to false"): (
        "InvalidCapacityReservationId.NotFound",
        "The capacity reservation cr-1 does not exist",
    ),
    ("no capacity for this instance type", "another instance type"): (
        "InsufficientInstanceCapacity",
        "There is insufficient instance capacity.",
        "UnfulfillableCapacity",
    ),
    ("above the highest price", "raise it in the cluster file"): ("SpotMaxPriceTooLow", "price-too-low"),
    ("another processor architecture", "of the same architecture"): (
        "The architecture 'x86_64' of the specified instance type does not match",
        "The architecture 'x86_64' of the specified instance type is another",
        "The architecture arm64 does not match",
    ),
    ("Marketplace", "subscribe to it once"): ("OptInRequired", "You need to accept the terms and subscribe."),
    ("still verifying the account", "wait for the email"): (
        "PendingVerification",
        "Your request for accessing resources in this region is being validated",
    ),
    ("AWS has blocked the account", "contact AWS Support"): ("This account is currently blocked",),
    ("a flow log that records the same", "network.flowLogs first"): (
        "There is an existing Flow Log with the same configuration and log destination. (FlowLogAlreadyExists)",
    ),
    ("no such bucket, or its policy", "docs/build/vpc.md"): (
        "Access Denied for LogDestination: logs. Please check LogDestination permission",
        "LogDestination: logs does not exist",
    ),
    ("a resource of that name exists already", "another name"): (
        "EntityAlreadyExists",
        "The launch template already exists",
        "InvalidGroup.Duplicate",
    ),
    ("machine image does not exist", "correct the cluster file"): ("InvalidAMIID.NotFound",),
    ("no such EC2 key pair", "describe-key-pairs"): ("InvalidKeyPair.NotFound",),
    ("does not know the new instance profile yet", "repeat the command"): (
        "Invalid IAM Instance Profile name",
        "Value (k8s) for parameter iamInstanceProfile.name is invalid.",
        "InvalidIAMInstanceProfile",
    ),
    ("service-linked role of Auto Scaling", "--aws-service-name autoscaling.amazonaws.com"): (
        "The default Service-Linked Role for Auto Scaling could not be created.",
        "The service linked role is missing",
    ),
    ("public SSM parameter does not exist", "choose another distribution"): (
        "Unable to fetch parameters [/aws/image] from parameter store for this account.",
    ),
    ("value of a parameter is not allowed", "--parameter"): ("Parameters: [Zone] must have values",),
    ("overlaps with another subnet", "describe-subnets"): (
        "InvalidSubnet.Conflict",
        "InvalidSubnet.Range",
        "The CIDR '10.9.0.0/24' is invalid.",
    ),
    ("uses that private address", "describe-network-interfaces"): ("InvalidIPAddress.InUse",),
    ("still uses it", "`cfngen delete` deletes what Kubernetes has created"): (
        "DependencyViolation",
        "resource sg-1 has a dependent object",
        "Network vpc-1 has some mapped public address(es).",
    ),
    ("still attached to an instance", "--volume-ids vol-1"): ("VolumeInUse", "Volume is currently attached to i-1"),
    ("records that the stack did not make", "--hosted-zone-id vol-1"): (
        "HostedZoneNotEmpty",
        "The zone contains non-required resource record sets",
    ),
    ("hook", "`cfngen events --verbose`"): ("Hook failed with message: no",),
    ("throttles the API calls", "other callers use the same rate limit"): (
        "Rate exceeded",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
    ),
    ("a quota of the account is used up", "Service Quotas console"): (
        "LimitExceededException",
        "ServiceQuotaExceededException",
        "It would exceed the limit",
        "The request exceeds the quota of volumes",
        "You have exceeded your maximum gp3 storage limit",
        "The maximum number of launch templates has been reached.",
    ),
    ("internal error of AWS", "repeat the command"): (
        "InternalFailure",
        "Internal Error",
        "InternalServerError",
        "ServiceUnavailable",
        "NotStabilized",
        "Resource did not stabilize",
    ),
    ("only if they were made with MFA", "`--role-arn`"): (
        "The security token included in the request is invalid",
        "InvalidClientTokenId",
    ),
    ("have expired", "`--role-arn`"): (
        "The security token included in the request is expired",
        "The provided token has expired.",
        "ExpiredTokenException",
    ),
}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [*REASONS.items(), *((reason, expected) for expected, reasons in OF_ONE_KIND.items() for reason in reasons)],
)
def test_a_known_reason(reason: str, expected: tuple[str, str]):
    meaning, hint = expected
    found = explain_reason(reason, "us-west-2", "vol-1")
    assert meaning in found.meaning
    assert hint in str(found.hint)


@pytest.mark.parametrize(
    ("reason", "is_lack"),
    [
        ("We currently do not have sufficient m5.large capacity in the zone", True),
        ("INSUFFICIENT instance\ncapacity", True),
        ("insufficientinstancecapacity", True),
        ("UnfulfillableCapacity: no", True),
        ("The requested Reservation does not have sufficient compatible and available capacity", False),
        ("The maximum number of VPCs has been reached.", False),
    ],
)
def test_a_lack_of_capacity_is_told_from_other_reasons(reason: str, is_lack: bool):
    assert is_lack_of_capacity(reason) is is_lack


def test_an_unknown_reason_is_left_as_it_is():
    found = explain_reason("Something that no table knows", "us-west-2")
    assert (found.meaning, found.hint) == ("", "")


def test_commands_name_the_region():
    found = explain_reason("The maximum number of VPCs has been reached.", "eu-central-1")
    assert "--region eu-central-1" in str(found.hint)


@pytest.mark.parametrize("known", KNOWN_REASONS, ids=lambda known: known.pattern.pattern[:30])
def test_every_row_can_be_filled_in(known):
    given = set(known.pattern.groupindex) | {"region", "id"}
    assert set(re.findall(r"\{(\w+)\}", known.meaning + str(known.hint))) <= given
    assert str(known.hint).rstrip().endswith((".", "`"))
    assert not known.meaning.endswith(".")
