"""Explain why AWS refused something, and what to do about it, from the reason in a CloudFormation event.

CloudFormation passes on the error messages of other services, which may change at any time: a reason that no pattern
below matches is shown as it is. Error codes come from the services' API references (mostly "Error codes for the Amazon
EC2 API"), texts from real error messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from cfngen.deploy.aws.errors import ENCODED_AUTHORIZATION, KNOWN_REFUSALS
from cfngen.deploy.messages.message import Event
from cfngen.hints import CommandText, Hint, suggest


@dataclass(frozen=True)
class Explanation:
    """What a reason means and what to do about it; empty texts where that is clear from AWS's own, or not known."""

    meaning: str = ""
    hint: Hint = ""


def explain_reason(reason: str, region: str, physical_id: str = "") -> Explanation:
    """Return the explanation of a reason; an empty one if no pattern matches it.

    Args:
        physical_id: the physical id of the resource that failed, for commands in hints; may be empty.
    """
    for known_reason in KNOWN_REASONS:
        if match := known_reason.pattern.search(reason):
            placeholders = {key: value or "" for key, value in match.groupdict().items()}
            placeholders |= {"region": region, "id": physical_id or "<id>"}
            fill = partial(_fill_placeholders, placeholders=placeholders)
            hint = (
                known_reason.hint.map_text(fill)
                if isinstance(known_reason.hint, CommandText)
                else fill(known_reason.hint)
            )
            return Explanation(fill(known_reason.meaning), hint)
    return Explanation()


def is_lack_of_capacity(reason: str) -> bool:
    """Return whether AWS's reason is that it has no capacity for an instance type."""
    if "reservation" in reason.lower():  # a place in a reservation is not free
        return False
    return bool(re.search(_LACK_OF_CAPACITY, reason, re.IGNORECASE | re.DOTALL))


def explain_event(event: Event, region: str) -> Explanation:
    """Return the explanation of a failed event's reason."""
    return explain_reason(event.reason, region, event.physical_id)


def _fill_placeholders(text: str, placeholders: dict[str, str]) -> str:
    """Replace each `{name}` in a text with its value; unknown names stay."""
    return re.sub(r"\{(\w+)\}", lambda match: placeholders.get(match[1], match[0]), text)


_RETRY_HINT = "nothing is wrong with the templates: repeat the command."

EXPORT_IN_USE = re.compile(r"Export (?P<export>\S+) cannot be (?:deleted|updated) as it is in use by (?P<stacks>.+)")
"""The reason if other stacks import an export: CloudFormation rolls the update back, or refuses to delete the stack
(https://github.com/aws/aws-cdk/issues/604)."""

_LACK_OF_CAPACITY = (
    r"InsufficientInstanceCapacity|(?:not have sufficient|insufficient) .*capacity|UnfulfillableCapacity"
)


@dataclass(frozen=True)
class KnownReason:
    """A reason of AWS with its explanation.

    Attributes:
        pattern: regular expression that finds it; `{name}` in the texts below stands for its group of that name.
        meaning: what it means, one sentence without a full stop; empty where AWS's own text is clear.
        hint: what to do, with commands to copy.
    """

    pattern: re.Pattern[str]
    meaning: str
    hint: Hint


def reason(pattern: str, meaning: str, hint: Hint) -> KnownReason:
    """Return a reason that a regular expression finds, in upper or lower case and over several lines."""
    return KnownReason(re.compile(pattern, re.IGNORECASE | re.DOTALL), meaning, hint)


def quota_reason(pattern: str, resources: str, service: str, code: str) -> KnownReason:
    """Return a reason for an exceeded quota of resources (a plural), with the command that requests an increase."""
    return reason(
        pattern,
        f"the account's quota of {resources} in this region is used up",
        f"delete some, or request an increase: `aws service-quotas request-service-quota-increase --region {{region}} "
        f"--service-code {service} --quota-code {code} --desired-value NUMBER`; then repeat.",
    )


KNOWN_REASONS: tuple[KnownReason, ...] = (
    KnownReason(
        EXPORT_IN_USE,
        "other stacks import {export} from this one",
        "remove the import from {stacks}, or delete them first; then repeat.",
    ),
    # Waiting for instances
    reason(
        r"Failed to receive (?P<missing>\d+) resource signal",
        "{missing} of the group's instances did not signal success in time",
        "the console output of the instances shows where they stopped; nodes wait for a master, so check the masters "
        "first.",
    ),
    reason(
        r"Received (?:\d+ )?FAILURE signal",
        "the boot program of an instance failed",
        "the console output of the instance shows the failed step, and what to do.",
    ),
    # What AWS also answers to calls of cfngen itself
    *(reason(refusal.pattern, refusal.meaning, refusal.hint) for refusal in KNOWN_REFUSALS),
    # Permissions
    reason(
        ENCODED_AUTHORIZATION.pattern,
        "a permission is missing; EC2's message contains its name, encoded",
        "decode it: `aws sts decode-authorization-message --query DecodedMessage --output text --encoded-message "
        "{code}`.",
    ),
    reason(
        r"explicit deny in a service control policy",
        "a service control policy of the organization denies it, whatever permissions the caller has",
        "ask the administrators of the AWS organization.",
    ),
    reason(
        r"Action denied by stack policy",
        "the stack policy protects this resource from updates",
        CommandText(
            suggest("deploy"),
            (
                " lifts the protection when you confirm the dangerous change; without cfngen, see `aws "
                "cloudformation get-stack-policy`."
            ),
        ),
    ),
    reason(
        r"S3 error: .*(?:Access ?Denied|Forbidden)|TemplateURL.*(?:Access ?Denied|Forbidden)",
        "CloudFormation cannot read a template in the bucket with the caller's permissions",
        "allow s3:GetObject on the template bucket for the caller, or for the service role if there is one.",
    ),
    reason(
        r"S3 error: .*(?:NoSuchKey|does not exist)|TemplateURL must",
        "the template of a nested stack is not at the URL in the root template",
        CommandText(suggest("deploy"), " uploads it again; never let objects of the template bucket expire."),
    ),
    reason(
        r"iam:PassRole",
        "the caller may not pass the role to the instances",
        "allow iam:PassRole on the cluster's roles.",
    ),
    reason(
        r"not authorized to (?:perform|use):? *\[?(?P<action>[\w-]+:[\w*]+)",
        "a permission is missing: {action}",
        "docs/deploy/deploy.md lists what an operator must be allowed to do; allow {action} for the caller, or for the "
        "service role of CloudFormation.",
    ),
    reason(
        # Before the code alone: Secrets Manager has AccessDeniedException for a key that it may not use.
        # S3 writes `KMS.DisabledException`, SNS and SQS `KMSDisabled`; the texts behind them are those of KMS.
        r"Access to KMS is not allowed|KMS\.?(?:KMS)?(?:InvalidState|InvalidKeyUsage|Disabled|NotFound|AccessDenied)|"
        r":kms:\S+ is (?:disabled|pending)|Key '\S+:kms:\S+' does not exist|InvalidKMSKey|"
        r"kms:(?:CreateGrant|Decrypt|GenerateDataKey)|Client\.InternalError: Client error on launch",
        "a KMS key cannot be used, so encrypted volumes cannot be created or attached",
        "allow the account in the key's policy, and for instances the role AWSServiceRoleForAutoScaling (with "
        "kms:CreateGrant); check that the key is enabled: `aws kms describe-key --region {region} --key-id KEY`.",
    ),
    reason(
        r"AccessDenied|UnauthorizedOperation|not authorized to (?:perform this operation|use launch template)",
        "a permission is missing",
        "docs/deploy/deploy.md lists what an operator must be allowed to do.",
    ),
    reason(
        r"Requires capabilities",
        "the templates create IAM roles, which must be acknowledged",
        CommandText(
            suggest("deploy"),
            " does so; in the console select the checkbox, with the AWS CLI add `--capabilities CAPABILITY_IAM`.",
        ),
    ),
    # Quotas: of what, the service, and the code of the quota
    quota_reason(r"VpcLimitExceeded|maximum number of VPCs", "VPCs", "vpc", "L-F678F1CE"),
    quota_reason(r"AddressLimitExceeded|maximum number of addresses", "Elastic IP addresses", "ec2", "L-0263D0A3"),
    quota_reason(
        r"InternetGatewayLimitExceeded|maximum number of internet gateways", "internet gateways", "vpc", "L-A4707A72"
    ),
    quota_reason(
        r"TooManyLoadBalancers|maximum number of load balancers",
        "network load balancers",
        "elasticloadbalancing",
        "L-69A177A2",
    ),
    quota_reason(r"NatGatewayLimitExceeded", "NAT gateways", "vpc", "L-FE5A380F"),
    # Codes: "Error codes for the Amazon EC2 API", EC2 API Reference.
    quota_reason(
        r"VpcEndpointLimitExceeded",
        "VPC endpoints (the code is that of interface endpoints, and L-1B52E74A that of gateway endpoints)",
        "vpc",
        "L-29B6F2EB",
    ),
    quota_reason(r"RouteTableLimitExceeded", "route tables of a VPC", "vpc", "L-589F43AA"),
    quota_reason(r"SubnetLimitExceeded", "subnets of a VPC", "vpc", "L-407747CB"),
    quota_reason(
        r"VcpuLimitExceeded|requested more vCPU capacity",
        "vCPUs of On-Demand instances (the code is that of the standard families)",
        "ec2",
        "L-1216C47A",
    ),
    quota_reason(r"MaxSpotInstanceCountExceeded", "vCPUs of Spot instances", "ec2", "L-34B43A08"),
    quota_reason(r"RolesPerAccount", "IAM roles", "iam", "L-FE177D64"),
    quota_reason(r"InstanceProfilesPerAccount", "IAM instance profiles", "iam", "L-6E65F664"),
    quota_reason(
        r"(?:Rules|Security ?Groups)PerSecurityGroupLimitExceeded", "rules in a security group", "vpc", "L-0EA8095F"
    ),
    quota_reason(r"SecurityGroupLimitExceeded", "security groups", "vpc", "L-E79EC296"),
    # Capacity and availability
    reason(
        r"ReservationCapacityExceeded|requested reservation .*sufficient compatible and available capacity",
        "another instance has the place in the capacity reservation that this one is for",
        "`aws ec2 describe-capacity-reservations --region {region}` shows the reservations and how many places are "
        "free; Auto Scaling tries again and again.",
    ),
    reason(
        r"InvalidCapacityReservation|capacity reservation \S+ does not exist",
        "the capacity reservation was cancelled outside of CloudFormation",
        "set controlPlane.capacityReservation to false and deploy; then set it to true again.",
    ),
    reason(
        _LACK_OF_CAPACITY,
        "AWS has no capacity for this instance type in the zone at the moment",
        "wait and try again; for node groups, list several types in instanceTypes, so that AWS may take another one; "
        "or choose another instance type or zone in the cluster file.",
    ),
    reason(
        r"instance type \(?(?P<type>[\w.-]+)\)? is not supported in your requested Availability Zone",
        "the zone does not offer {type}",
        "`aws ec2 describe-instance-type-offerings --region {region} --location-type availability-zone --filters "
        "Name=instance-type,Values={type} --query InstanceTypeOfferings[].Location` lists the zones that do; change "
        "the type or the zone in the cluster file.",
    ),
    reason(
        r"(?:SpotMaxPriceTooLow|price-too-low)",
        "the Spot price is above the highest price that was set",
        "raise it in the cluster file, or remove it: the On-Demand price is the limit then.",
    ),
    reason(
        r"architecture '\w+' of the specified instance type|architecture .* does not match",
        "the image is for another processor architecture than the instance type",
        "choose an instance type and an image of the same architecture in the cluster file.",
    ),
    reason(
        r"OptInRequired|accept (?:the )?terms and subscribe",
        "the image has terms in the AWS Marketplace that were not accepted",
        "subscribe to it once, with the link in AWS's message, or choose another image.",
    ),
    reason(
        r"PendingVerification|request for accessing resources in this region is being validated",
        "AWS is still verifying the account for this region",
        "wait for the email from AWS (minutes, sometimes hours), and repeat.",
    ),
    reason(r"account is currently blocked", "AWS has blocked the account", "contact AWS Support."),
    # Resources that exist already, or do not exist
    reason(
        r"already scheduled for deletion",
        "a secret of that name is still in its recovery window",
        "`aws secretsmanager restore-secret` restores it, `delete-secret --force-delete-without-recovery` deletes it.",
    ),
    reason(
        r"already exists in stack (?P<stack>\S+)",
        "another stack has a resource of that name",
        "look at it: `aws cloudformation describe-stacks --region {region} --stack-name {stack}`.",
    ),
    reason(
        r"create resource record set \[name='(?P<name>[^']+?)\.?', type='A'\] but it already exists",
        "the hosted zone has a record of {name} already, which is not the cluster's",
        "delete it if nobody uses it, or choose another api.dns.name; then repeat.",
    ),
    reason(
        r"existing Flow Log with the same configuration",
        "the VPC has a flow log that records the same traffic in the same place",
        "`aws ec2 describe-flow-logs --region {region}` lists it; if it is the cluster's, deploy without "
        "network.flowLogs first.",
    ),
    reason(
        r"Access Denied for LogDestination|LogDestination: \S+ does not exist",
        "there is no such bucket, or its policy does not let AWS deliver logs",
        "docs/build/vpc.md has the policy; add it to the bucket of network.flowLogs, and deploy again.",
    ),
    reason(
        r"AlreadyExists|already exists|\.Duplicate\b",
        "a resource of that name exists already; an earlier deletion may have retained it",
        "delete or rename it, or give the cluster another name.",
    ),
    reason(
        r"The image id '?\[?(?P<image>ami-\w+)\]?'? does not exist|InvalidAMIID",
        "the machine image does not exist in this region, or is not shared with this account",
        "check it with `aws ec2 describe-images --region {region} --image-ids {image}`, and correct the cluster file.",
    ),
    reason(
        r"key pair '?(?P<key>[^']*?)'? does not exist|InvalidKeyPair",
        "there is no such EC2 key pair in this region",
        "`aws ec2 describe-key-pairs --region {region}` lists the existing ones; correct the cluster file.",
    ),
    reason(
        r"Invalid IAM Instance Profile|iamInstanceProfile\S* is invalid|InvalidIAMInstanceProfile",
        "EC2 does not know the new instance profile yet; IAM takes a while to propagate changes",
        _RETRY_HINT,
    ),
    reason(
        r"Service-Linked Role|service linked role",
        "the service-linked role of Auto Scaling does not exist in this account and could not be created",
        "create it: `aws iam create-service-linked-role --aws-service-name autoscaling.amazonaws.com`, and repeat.",
    ),
    reason(
        r"Unable to fetch parameters \[(?P<names>[^\]]*)\] from parameter store",
        "the image's public SSM parameter does not exist in this region",
        "set the image's id in the cluster file, or choose another distribution.",
    ),
    reason(
        r"Parameter validation failed|Parameters: \[[^\]]*\] must have values",
        "the value of a parameter is not allowed",
        "correct the value (`--parameter`, the parameter file or the cluster file), and deploy again.",
    ),
    # Network
    reason(
        r"InvalidSubnet\.(?:Conflict|Range)|conflicts with another subnet|The CIDR '\S+' is invalid",
        "the subnet's address range overlaps with another subnet, or is outside the VPC",
        "choose another CIDR in the cluster file; `aws ec2 describe-subnets --region {region}` lists those in use.",
    ),
    reason(
        r"InvalidIPAddress\.InUse|Address \S+ is in use",
        "another network interface uses that private address",
        "find it with `aws ec2 describe-network-interfaces --region {region}`; free the address, or choose another.",
    ),
    reason(
        r"DependencyViolation|has dependencies and cannot be deleted|has a dependent object|mapped public address",
        "a resource outside the stack still uses it, usually a load balancer or a network interface that Kubernetes "
        "has created",
        CommandText(suggest("delete"), " deletes what Kubernetes has created; delete all other resources yourself."),
    ),
    reason(
        r"VolumeInUse|is currently attached to",
        "the volume is still attached to an instance",
        "`aws ec2 describe-volumes --region {region} --volume-ids {id}` shows which one; detach it, and repeat.",
    ),
    reason(
        r"HostedZoneNotEmpty|contains non-required resource record sets",
        "the hosted zone has records that the stack did not make, for example those of external-dns",
        "`aws route53 list-resource-record-sets --hosted-zone-id {id}` lists them; delete all but NS and SOA, and "
        "repeat.",
    ),
    # General reasons. They come last, as their patterns also match reasons above.
    reason(
        r"Hook",
        "a CloudFormation hook that is activated in this account rejects the resource",
        CommandText(
            "the events contain the hook's message (", suggest("events", "--verbose"), "); ask the hook's owner."
        ),
    ),
    reason(
        r"Rate exceeded|Throttling|RequestLimitExceeded|TooManyRequests",
        "AWS throttles the API calls of this account",
        f"other callers use the same rate limit; {_RETRY_HINT}",
    ),
    reason(
        r"(?:Limit|Quota)Exceeded|exceed(?:s|ed)? .*(?:quota|limit)|maximum number of",
        "a quota of the account is used up",
        "the Service Quotas console shows it; request an increase there.",
    ),
    reason(
        r"Internal ?(?:Failure|Error|ServerError)|ServiceUnavailable|NotStabilized|did not stabilize",
        "an internal error of AWS, or an operation that took longer than AWS waits",
        _RETRY_HINT,
    ),
    reason(
        r"security token included in the request is invalid|InvalidClientTokenId",
        "AWS does not accept the credentials that CloudFormation uses; those of GetSessionToken may call IAM only if "
        "they were made with MFA",
        "sign in with a role, or with MFA, and repeat; or use a service role (`--role-arn`).",
    ),
    reason(
        r"security token included in the request is expired|provided token has expired|ExpiredToken",
        "the credentials that CloudFormation uses have expired",
        "sign in again and repeat; long operations need a service role (`--role-arn`) or credentials that last longer.",
    ),
)
