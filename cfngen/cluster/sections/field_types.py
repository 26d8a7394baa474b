"""The scalar types of a cluster file, such as CIDRs, instance types and AWS identifiers.

Each is an annotated type for pydantic. An invalid value raises `PydanticCustomError` with a message for the user;
`cfngen.cluster.problems` adds file, line and key.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from cfngen.cluster.sections.field_validation import (
    DestinationPattern,
    TextPattern,
    check_range,
    parse_address,
    parse_cidr,
    refuse_unreadable_issuer,
    refuse_unusable_proxy,
)
from cfngen.cluster.sections.references import ACCOUNT_VARIABLE
from cfngen.text_limits import BUCKET_NAME, IAM_PATH, KEY_PAIR_NAME, REPOSITORY_NAME

NAME_PATTERN = r"[a-z]([a-z0-9-]*[a-z0-9])?"
"""Pattern of the names of clusters and of node groups."""
_NAME_RULE = "lower-case letters, digits and hyphens, beginning with a letter and not ending in a hyphen"


def _aws_id(prefix: str, expected: str, *, takes_references: bool = False) -> TextPattern:
    pattern = rf"{prefix}-[0-9a-f]{{8,17}}"
    return TextPattern(pattern, f"{expected} such as {prefix}-0123456789abcdef0", takes_references=takes_references)


# An account number, or what stands for that of the cluster.
_ACCOUNT = rf"([0-9]{{12}}|{re.escape(ACCOUNT_VARIABLE)})"
_FOUR_NUMBERS = r"[0-9]{1,3}(\.[0-9]{1,3}){3}"
Cidr = Annotated[
    IPv4Network,
    BeforeValidator(parse_cidr),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": rf"^{_FOUR_NUMBERS}/[0-9]{{1,2}}$"}),
]
Address = Annotated[
    IPv4Address,
    BeforeValidator(parse_address),
    PlainSerializer(str),
    WithJsonSchema({"type": "string", "pattern": f"^{_FOUR_NUMBERS}$"}),
]

RouteDestination = Annotated[
    str,
    DestinationPattern(
        rf"pl-[0-9a-f]{{8,17}}|{_FOUR_NUMBERS}/[0-9]{{1,2}}", "a prefix list's id such as pl-0123456789abcdef0"
    ),
]

# A version or a price may be unquoted in YAML: the loader keeps 1.30 as text, but for an editor it is a number.
_NUMBER_LIKE = ("string", "number")
ClusterName = Annotated[str, TextPattern(NAME_PATTERN, f"a cluster name: {_NAME_RULE}")]
GroupName = Annotated[str, TextPattern(NAME_PATTERN, f"a node group name: {_NAME_RULE}")]
Region = Annotated[str, TextPattern(r"[a-z]{2}(-[a-z]+)+-[0-9]", "an AWS region such as us-west-2")]
Zone = Annotated[
    str, TextPattern(r"[a-z]{2}(-[a-z]+)+-[0-9](-[a-z]{3}-[0-9])?[a-z]", "an Availability Zone such as us-west-2a")
]
KubernetesVersion = Annotated[
    str,
    TextPattern(r"v?1\.[0-9]+(\.[0-9]+)?", 'a Kubernetes version such as "1.36" or "1.36.3"', json_type=_NUMBER_LIKE),
]
InstanceType = Annotated[str, TextPattern(r"[a-z0-9-]+\.[a-z0-9-]+", "an EC2 instance type such as t3.medium")]
# AllowedInstanceType and ExcludedInstance, Amazon EC2 Auto Scaling API Reference.
InstanceTypePattern = Annotated[
    str,
    TextPattern(r"[a-z0-9.*-]{1,30}", "an EC2 instance type, or several with asterisks such as m7* and c7i.*xlarge"),
]
CapacityReservationId = Annotated[str, _aws_id("cr", "the id of a Capacity Reservation")]
ResourceGroupArn = Annotated[
    str,
    TextPattern(
        r"arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:[0-9]{12}:group/[A-Za-z0-9_.-]{1,300}",
        "the ARN of a resource group such as arn:aws:resource-groups:us-west-2:123456789012:group/nodes",
    ),
]
Price = Annotated[
    str,
    TextPattern(r"[0-9]{1,4}(\.[0-9]{1,6})?", "a price in US dollars per hour such as 0.05", json_type=_NUMBER_LIKE),
]
PublicKey = Annotated[
    str,
    TextPattern(
        r"(ssh-rsa|ssh-ed25519) [A-Za-z0-9+/=]+( .*)?",
        "an OpenSSH public key (ssh-ed25519 or ssh-rsa, the two that EC2 imports)",
    ),
]
KeyName = Annotated[
    str, TextPattern(r"[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?", "the name of an EC2 key pair", limit=KEY_PAIR_NAME)
]
HttpUrl = Annotated[
    str, TextPattern(r"https?://[^\s/]+(/\S*)?", "an http(s) URL such as https://mirror.example.com/k8s")
]
_HOST_NAME_PATTERN = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
_LOWER_CASE_LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
HostName = Annotated[str, TextPattern(_HOST_NAME_PATTERN, "a DNS name or IPv4 address such as api.example.com")]
IssuerUrl = Annotated[
    str,
    TextPattern(
        # CreateOpenIDConnectProvider, IAM API Reference: begins with https://, has no port number and no query, and
        # corresponds to the `iss` of tokens. 255 characters at most. AWS STS compares both as texts, and reads the
        # documents from the internet; no part of the path begins with a dot, as the documents' own does.
        rf"https://(?=.{{1,247}}$)({_LOWER_CASE_LABEL}\.)+[a-z]([a-z0-9-]{{0,61}}[a-z0-9])?(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*",
        "an https URL without port, query and final slash, its host in lower case, such as "
        "https://tokens.example.com/kubernetes",
    ),
    BeforeValidator(refuse_unreadable_issuer),
]
ProxyUrl = Annotated[
    str,
    TextPattern(
        rf"http://{_HOST_NAME_PATTERN}:[0-9]{{1,5}}/?",
        "the URL of a proxy with its port, such as http://proxy.example.com:3128",
    ),
    BeforeValidator(refuse_unusable_proxy),
]
# What is reached without a proxy.
DirectHost = Annotated[
    str,
    TextPattern(
        rf"\.?{_HOST_NAME_PATTERN}|{_FOUR_NUMBERS}/[0-9]{{1,2}}",
        "a host such as registry.example.com, a domain such as .example.com, or a range such as 10.0.0.0/8",
    ),
    BeforeValidator(check_range),
]
DeviceName = Annotated[str, TextPattern(r"/dev/[a-z0-9]+", "a device name such as /dev/xvda")]
ExtraDeviceName = Annotated[
    str,
    TextPattern(
        # "Device names for volumes on Amazon EC2 instances", EC2 User Guide: the names recommended for EBS volumes.
        r"/dev/sd[f-p]",
        "a device name for an EBS volume, /dev/sdf to /dev/sdp",
    ),
]
MountPath = Annotated[str, TextPattern(r"(/[A-Za-z0-9_.@+-]+)+", "an absolute path such as /data")]
SsmParameterName = Annotated[
    str, TextPattern(r"/[A-Za-z0-9_.\-/]+", "the name of an SSM parameter such as /aws/service/…/ami-id")
]
VpcId = Annotated[str, _aws_id("vpc", "a VPC id", takes_references=True)]
SubnetId = Annotated[str, _aws_id("subnet", "a subnet id", takes_references=True)]
RouteTableId = Annotated[str, _aws_id("rtb", "a route table id", takes_references=True)]
InternetGatewayId = Annotated[str, _aws_id("igw", "an internet gateway id", takes_references=True)]
NatGatewayId = Annotated[str, _aws_id("nat", "a NAT gateway id", takes_references=True)]
EndpointService = Annotated[
    str,
    TextPattern(r"[a-z0-9-]+(\.[A-Za-z0-9_-]+)*", "a service such as sts or ecr.api, or a full endpoint service name"),
]
DhcpOptionsId = Annotated[
    str, TextPattern(r"(dopt-[0-9a-f]{8,17}|default)", 'a DHCP options id such as dopt-0123456789abcdef0, or "default"')
]
SecurityGroupId = Annotated[str, _aws_id("sg", "a security group id", takes_references=True)]
# The source of a rule, which is in the rule's logical id: no reference stands for it.
SourceGroupId = Annotated[str, _aws_id("sg", "a security group id")]
PortRange = Annotated[
    str,
    TextPattern(
        r"[0-9]{1,5}(-[0-9]{1,5})?", "a port such as 30080, or a range such as 30000-32767", json_type=_NUMBER_LIKE
    ),
]
RuleDescription = Annotated[
    str,
    TextPattern(
        r"[A-Za-z0-9 ._:/()#,@\[\]+=&;{}!$*-]{1,255}",
        "a rule's description for EC2: at most 255 letters, digits, spaces and ._-:/()#,@[]+=&;{}!$*",
    ),
]
PrefixListId = Annotated[str, _aws_id("pl", "a prefix list's id")]
TransitGatewayId = Annotated[str, _aws_id("tgw", "a transit gateway id", takes_references=True)]
PeeringConnectionId = Annotated[str, _aws_id("pcx", "a VPC peering connection id", takes_references=True)]
VpnGatewayId = Annotated[str, _aws_id("vgw", "a virtual private gateway id", takes_references=True)]
NetworkInterfaceId = Annotated[str, _aws_id("eni", "a network interface id", takes_references=True)]
ImageId = Annotated[str, _aws_id("ami", "an AMI id")]
AllocationId = Annotated[str, _aws_id("eipalloc", "an Elastic IP allocation id")]
PolicyArn = Annotated[
    str,
    TextPattern(
        rf"arn:aws[a-z-]*:iam::({_ACCOUNT}|aws):policy/[A-Za-z0-9_+=,.@/-]+",
        "the ARN of an IAM managed policy such as arn:aws:iam::123456789012:policy/team",
    ),
]
IamPath = Annotated[
    str,
    TextPattern(
        # CreateRole, IAM API Reference: one slash, or printable characters between slashes. An asterisk would be a
        # pattern in policies, and `${` a variable.
        r"/([A-Za-z0-9_+=,.@-]+/)*",
        "a path of IAM names between slashes such as /kubernetes/",
        limit=IAM_PATH,
    ),
]
IamAction = Annotated[
    str,
    TextPattern(
        # "IAM JSON policy elements: Action", IAM User Guide: the service's prefix, and a name with wildcards.
        r"[a-z0-9-]+:[A-Za-z0-9*?]+",
        "an IAM action such as s3:GetObject",
    ),
]
IamResource = Annotated[
    str,
    TextPattern(
        # "IAM JSON policy elements: Resource", IAM User Guide: an ARN with wildcards, or * for every resource.
        r"\*|arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9*?-]*:[0-9*?]*:[!-~]+",
        "an ARN such as arn:aws:s3:::bucket/*, or *",
    ),
]
RoleArn = Annotated[
    str,
    TextPattern(
        # "IAM identifiers", IAM User Guide: an optional path between slashes, then the name.
        r"arn:aws[a-z-]*:iam::[0-9]{12}:role/([A-Za-z0-9_+=,.@-]+/)*[A-Za-z0-9_+=,.@-]{1,64}",
        "the ARN of an IAM role such as arn:aws:iam::123456789012:role/masters",
    ),
]
TargetGroupArn = Annotated[
    str,
    TextPattern(
        # "Actions, resources, and condition keys for Elastic Load Balancing V2", Service Authorization Reference.
        r"arn:aws[a-z-]*:elasticloadbalancing:[a-z0-9-]+:[0-9]{12}:targetgroup/[A-Za-z0-9-]{1,32}/[0-9a-f]{16}",
        "the ARN of a target group such as "
        "arn:aws:elasticloadbalancing:us-west-2:123456789012:targetgroup/web/0123456789abcdef",
    ),
]
InstanceProfileArn = Annotated[
    str,
    TextPattern(
        r"arn:aws[a-z-]*:iam::[0-9]{12}:instance-profile/([A-Za-z0-9_+=,.@-]+/)*[A-Za-z0-9_+=,.@-]{1,128}",
        "the ARN of an instance profile such as arn:aws:iam::123456789012:instance-profile/masters",
    ),
]
KeyArn = Annotated[
    str,
    TextPattern(
        # The ids of multi-Region keys begin with `mrk-`.
        rf"arn:aws[a-z-]*:kms:[a-z0-9-]+:{_ACCOUNT}:key/(mrk-)?[0-9a-f-]+",
        "the ARN of a KMS key such as arn:aws:kms:us-west-2:123456789012:key/1234abcd-…",
    ),
]
SecretArn = Annotated[
    str,
    TextPattern(
        r"arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9_/+=.@-]+",
        "the ARN of a secret such as arn:aws:secretsmanager:us-west-2:123456789012:secret:ca-AbCdEf",
    ),
]
TopicArn = Annotated[
    str,
    TextPattern(
        # CreateTopic, Amazon SNS API Reference. EC2 Auto Scaling sends to no FIFO topics, whose names end in `.fifo`
        # ("Amazon SNS notification options for Amazon EC2 Auto Scaling", Amazon EC2 Auto Scaling User Guide).
        rf"arn:aws[a-z-]*:sns:[a-z0-9-]+:{_ACCOUNT}:[A-Za-z0-9_-]{{1,256}}",
        "the ARN of a standard topic of SNS such as arn:aws:sns:us-west-2:123456789012:scaling",
    ),
]
BucketName = Annotated[
    str, TextPattern(BUCKET_NAME.form, "the name of an S3 bucket such as example-etcd-backups", limit=BUCKET_NAME)
]
HostedZoneId = Annotated[
    str,
    TextPattern(
        r"Z[A-Z0-9]{1,31}", "the id of a Route 53 hosted zone such as Z0123456789ABCDEFGHIJ", takes_references=True
    ),
]
Sha256 = Annotated[str, TextPattern(r"[0-9a-f]{64}", "a SHA-256 digest of 64 hexadecimal digits")]
# The value of a Kubernetes label, and its key after the optional domain.
_LABEL_WORD = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
ReleaseName = Annotated[
    str, TextPattern(r"[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?", "a name of up to 53 lower-case letters, digits and hyphens")
]
NamespaceName = Annotated[
    str,
    TextPattern(
        # "Object Names and IDs", Kubernetes documentation: an RFC 1123 label.
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "a namespace: up to 63 lower-case letters, digits and hyphens",
    ),
]
ServiceAccountName = Annotated[
    str,
    TextPattern(
        # "Object Names and IDs", Kubernetes documentation: an RFC 1123 subdomain.
        r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*",
        "the name of a service account: lower-case letters, digits, hyphens and dots",
    ),
]
LabelKey = Annotated[
    str,
    TextPattern(rf"([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_LABEL_WORD}", "a label's key such as example.com/team"),
]
LabelValue = Annotated[
    str, TextPattern(rf"({_LABEL_WORD})?", "a label's value: up to 63 letters, digits, hyphens, underscores and dots")
]
# A resource quantity of Kubernetes that is not negative (apimachinery, pkg/api/resource/quantity.go), without exponent.
Quantity = Annotated[
    str,
    TextPattern(
        r"[0-9]{1,15}(\.[0-9]{1,9})?(m|k|[MGTPE]|[KMGTPE]i)?",
        "a quantity such as 3900m, 14Gi or 1",
        json_type=_NUMBER_LIKE,
    ),
]
# A duration of Go (time.ParseDuration), in the units that anybody uses here.
Duration = Annotated[str, TextPattern(r"([0-9]{1,6}[hms])+", "a duration such as 10m, 1h30m or 90s")]
Fraction = Annotated[
    str, TextPattern(r"0(\.[0-9]{1,6})?|1(\.0{1,6})?", "a share from 0 to 1 such as 0.5", json_type=_NUMBER_LIKE)
]
Priority = Annotated[str, TextPattern(r"[1-9][0-9]{0,8}", "a priority: a whole number from 1, such as 50")]
# As in distribution/reference (regexp.go), with the registry, which has a dot or a port: ctr completes nothing.
ImageReference = Annotated[
    str,
    TextPattern(
        rf"({_HOST_NAME_PATTERN}:[0-9]{{1,5}}|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+)(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)+"
        r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})",
        "an image with its registry and a tag or digest such as docker.io/library/nginx:1.29",
    ),
]
RepositoryName = Annotated[
    str,
    TextPattern(
        REPOSITORY_NAME.form,
        "the name of a repository of Amazon ECR such as shop/web: lower-case letters and digits, with single dots, "
        "hyphens, underscores or slashes between them",
        limit=REPOSITORY_NAME,
    ),
]
AccountNumber = Annotated[str, TextPattern(r"[0-9]{12}", 'an account number such as "123456789012"')]
ProjectName = Annotated[
    str,
    TextPattern(
        r"[A-Za-z0-9_.-]+(@[0-9]+)?(/[A-Za-z0-9_.-]+(@[0-9]+)?)+", "a project with its owner such as example/shop"
    ),
]
GitRef = Annotated[
    str,
    TextPattern(
        r"refs/(heads|tags)/[A-Za-z0-9_.+*/@-]+", "a branch such as refs/heads/main, or a tag such as refs/tags/v*"
    ),
]
AbsolutePath = Annotated[str, TextPattern(r"(/[A-Za-z0-9_.@+,:-]+)+", "an absolute path such as /etc/motd")]
FileMode = Annotated[str, TextPattern(r"0?[0-7]{3}", 'permissions such as "0644", in quotation marks')]
UnitName = Annotated[
    str,
    TextPattern(
        r"[A-Za-z0-9_.@:-]+\.(service|timer|socket|mount|path|target|slice)",
        "a systemd unit's name such as agent.service",
    ),
]
Command = Annotated[str, TextPattern(r"[\s\S]*\S[\s\S]*", "a shell command")]
