"""Limits of texts in AWS services: allowed characters and length of names, descriptions and tags in a template.

Three parts of cfngen use this table: the lint rule E9020, the emulated account, and the checks of the cluster file. The
lint rule may run in a cfn-lint without cfngen and loads this file by its path, so it imports only the standard library.

Where the sources differ, a comment says so. "API model" is what AWS publishes for its SDKs and botocore ships:
`botocore/data/<service>/<version>/service-2.json`. Read in November 2026.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

_LETTERS_AND_DIGITS = string.ascii_letters + string.digits
_GRAPHIC_ASCII = "".join(map(chr, range(0x21, 0x7F)))


@dataclass(frozen=True)
class Characters:
    """A set of characters.

    Attributes:
        words: description of the set; completes "it may hold".
        single: the characters of the set; if empty, any character is allowed.
        categories: Unicode general categories that belong to it too, by their first letter: L, N, Z.
    """

    words: str
    single: frozenset[str] = frozenset()
    categories: str = ""

    def not_allowed(self, text: str) -> list[str]:
        """Return the characters of a text that are not in the set, each once, in the order of the text."""
        if not self.single:
            return []
        return [
            character
            for character in dict.fromkeys(text)
            if character not in self.single and unicodedata.category(character)[0] not in self.categories
        ]


ANYTHING = Characters("any character")


@dataclass(frozen=True)
class TextLimit:
    """The limits of one kind of text.

    Attributes:
        what: what the text is.
        source: where the limit is documented.
        longest: maximum number of characters, or of UTF-8 bytes if `in_bytes`.
        characters: the allowed characters.
        shortest: minimum number of characters.
        in_bytes: whether the length counts UTF-8 bytes.
        form: a regular expression for the whole text, where there are further rules.
        form_in_words: the message for a text that does not match `form`.
        refusal: the service's error message, where it is known; `{text}` stands for the text.
    """

    what: str
    source: str
    longest: int
    characters: Characters = ANYTHING
    shortest: int = 0
    in_bytes: bool = False
    form: str = ""
    form_in_words: str = ""
    refusal: str = ""

    def refused(self, text: str) -> str:
        """Return the service's error message for a text, or an empty string if it is not known."""
        return self.refusal.replace("{text}", text)

    def fault(self, text: str) -> str:
        """Return what is wrong with a text, or an empty string: `holds ' (U+0027); it may hold letters, digits, …`."""
        return self.fault_of_parts([text])

    def fault_of_parts(self, parts: Sequence[str | None]) -> str:
        """Return what is wrong with a text of which only parts are known, or an empty string.

        Args:
            parts: the parts in order; None stands for a part that is known only at deployment, and may be empty.
        """
        known_text = "".join(part for part in parts if part is not None)
        if foreign := self.characters.not_allowed(known_text):
            return f"holds {', '.join(map(_describe_character, foreign[:5]))}; it may hold {self.characters.words}"
        length = len(known_text.encode()) if self.in_bytes else len(known_text)
        unit = "bytes" if self.in_bytes else "characters"
        if length > self.longest:
            return f"has {length} {unit}; {self.longest} fit"
        if None in parts:
            return ""
        if length < self.shortest:
            return f"has {length} {unit}; at least {self.shortest} are needed"
        return "" if not self.form or re.fullmatch(self.form, known_text) else self.form_in_words


def _describe_character(character: str) -> str:
    code = f"U+{ord(character):04X}"
    return f"{character} ({code})" if character.isprintable() and not character.isspace() else code


def _characters(words: str, single: str, categories: str = "") -> Characters:
    return Characters(words, frozenset(single), categories)


def _letters_digits_and(others: str) -> Characters:
    return _characters(f"letters, digits and {others}", _LETTERS_AND_DIGITS + others)


_DOCS = "https://docs.aws.amazon.com"
_CLOUDFORMATION = f"{_DOCS}/AWSCloudFormation/latest/UserGuide"
_QUOTAS = f"{_CLOUDFORMATION}/cloudformation-limits.html"
# Pages of API references; `%` inserts the name of an action or a data type.
_EC2 = f"{_DOCS}/AWSEC2/latest/APIReference/API_%s.html"
_IAM = f"{_DOCS}/IAM/latest/APIReference/API_%s.html"
_ELB = f"{_DOCS}/elasticloadbalancing/latest/APIReference/API_%s.html"
_AUTO_SCALING = f"{_DOCS}/autoscaling/ec2/APIReference/API_%s.html"

_ALPHANUMERIC = _characters("letters and digits", _LETTERS_AND_DIGITS)
_SECURITY_GROUP_CHARACTERS = _characters(
    "letters, digits, spaces and ._-:/()#,@[]+=&;{}!$*", _LETTERS_AND_DIGITS + " ._-:/()#,@[]+=&;{}!$*"
)
_IAM_DESCRIPTION_CHARACTERS = _characters(
    "the printable characters of Latin-1, tabs and line ends",
    "\t\n\r " + _GRAPHIC_ASCII + "".join(map(chr, range(0xA1, 0x100))),
)
_IAM_NAME_CHARACTERS = _letters_digits_and("_+=,.@-")
_TAG_CHARACTERS = _characters("letters, digits, spaces and . : / = + - @ _", "_.:/=+-@", "LNZ")
_HYPHENATED = _characters("letters, digits and hyphens", _LETTERS_AND_DIGITS + "-")
_GRAPHIC = _characters("the graphic characters of ASCII", _GRAPHIC_ASCII)
_PRINTABLE_ASCII = _characters("the printable characters of ASCII", " " + _GRAPHIC_ASCII)

# The same words for groups and rules, but for one of them: aws-cloudformation/cfn-lint#173, cds-snc/
# notification-terraform#561. (The API model leaves "&" out where a rule names a group; the refusal does not.)
_REFUSED_DESCRIPTION = (
    "Invalid %s description. Valid descriptions are strings less than 256 characters from the following set: "
    " a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*"
)
GROUP_DESCRIPTION = TextLimit(
    "description of a security group",
    _EC2 % "CreateSecurityGroup",
    255,
    _SECURITY_GROUP_CHARACTERS,
    refusal=_REFUSED_DESCRIPTION % "security group",
)
RULE_DESCRIPTION = TextLimit(
    "description of a security group rule",
    _EC2 % "IpRange",
    255,
    _SECURITY_GROUP_CHARACTERS,
    refusal=_REFUSED_DESCRIPTION % "rule",
)
GROUP_NAME = TextLimit(
    "name of a security group",
    _EC2 % "CreateSecurityGroup",
    255,
    _SECURITY_GROUP_CHARACTERS,
    shortest=1,
    form=r"(?!sg-).*",
    form_in_words="begins with sg-, which is for ids",
)
INTERFACE_DESCRIPTION = TextLimit(
    # EC2 documents no limit for it; held to what it documents for its other descriptions.
    "description of a network interface",
    _EC2 % "CreateNetworkInterface",
    255,
    _SECURITY_GROUP_CHARACTERS,
)
LAUNCH_TEMPLATE_NAME = TextLimit(
    "name of a launch template", _EC2 % "LaunchTemplate", 128, _letters_digits_and("().-/_"), shortest=3
)
VERSION_DESCRIPTION = TextLimit(
    "description of a launch template's version", _EC2 % "CreateLaunchTemplate", 255, _PRINTABLE_ASCII
)
KEY_PAIR_NAME = TextLimit(
    "name of a key pair",
    f"{_DOCS}/AWSEC2/latest/UserGuide/create-key-pairs.html",
    255,
    _PRINTABLE_ASCII,
    shortest=1,
    form=r"\S(.*\S)?",
    form_in_words="begins or ends with a space",
)
VPC_ENDPOINT_SERVICE = TextLimit(
    "name of an endpoint's service",
    _EC2 % "CreateVpcEndpoint",
    255,
    _characters("letters, digits, dots and hyphens", _LETTERS_AND_DIGITS + ".-"),
    shortest=1,
)
IAM_DESCRIPTION = TextLimit(
    # The API model has the characters for roles alone; a managed policy's description is held to them as well.
    "description of an IAM role or policy",
    _IAM % "CreateRole",
    1000,
    _IAM_DESCRIPTION_CHARACTERS,
)
THUMBPRINT = TextLimit(
    "thumbprint of a certificate",
    _IAM % "CreateOpenIDConnectProvider",
    40,
    _characters("hexadecimal digits", "0123456789abcdefABCDEF"),
    shortest=40,
)
ROLE_NAME = TextLimit("name of an IAM role", _IAM % "CreateRole", 64, _IAM_NAME_CHARACTERS, shortest=1)
IAM_NAME = TextLimit(
    "name of an IAM policy or instance profile", _IAM % "CreatePolicy", 128, _IAM_NAME_CHARACTERS, shortest=1
)
IAM_PATH = TextLimit(
    "path of an IAM role, policy or instance profile",
    _IAM % "CreateRole",
    512,
    _GRAPHIC,
    shortest=1,
    form=r"/|/.+/",
    form_in_words="does not begin and end with a slash",
)
STATEMENT_ID = TextLimit(
    "Sid of a policy's statement",
    f"{_DOCS}/IAM/latest/UserGuide/reference_policies_elements_sid.html",
    6144,  # a managed policy's own limit: a Sid has none
    _ALPHANUMERIC,
)
# Keys and values that all services take, since one set of tags goes to all of them: EC2 takes any character, IAM and
# Elastic Load Balancing these. EC2's API model has 127 characters for a key, its user guide and all others 128.
_TAGGING = f"{_DOCS}/AWSEC2/latest/UserGuide/Using_Tags.html"
_HAS_AWS_PREFIX = "begins with aws:, and such tags belong to AWS; choose another"
_WITHOUT_AWS_PREFIX = r"(?!(?i:aws:))[\s\S]*"
TAG_KEY = TextLimit(
    "key of a tag", _TAGGING, 128, _TAG_CHARACTERS, shortest=1, form=_WITHOUT_AWS_PREFIX, form_in_words=_HAS_AWS_PREFIX
)
TAG_VALUE = TextLimit(
    "value of a tag", _TAGGING, 256, _TAG_CHARACTERS, form=_WITHOUT_AWS_PREFIX, form_in_words=_HAS_AWS_PREFIX
)
# CloudFormation passes a nested stack's tags to CreateStack, whose model wants a value of one character at least.
STACK_TAG_VALUE = replace(
    TAG_VALUE,
    what="value of a stack's tag",
    source=f"{_DOCS}/AWSCloudFormation/latest/APIReference/API_Tag.html",
    shortest=1,
)
# "View tags for your EC2 instances using instance metadata": what a tag's key may be where instances may read it there.
METADATA_TAG_KEY = TextLimit(
    "key of a tag that instances read from their metadata",
    f"{_DOCS}/AWSEC2/latest/UserGuide/work-with-tags-in-IMDS.html",
    255,
    _letters_digits_and("-_+=,.@:"),
    shortest=1,
    form=r"(?!(\.|\.\.|_index)$).*",
    form_in_words="is a reserved name",
    # eksctl-io/eksctl#8383
    refusal="'{text}' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\\\-_+=,.@:]{1,255}), and must "
    "not be a reserved name ('.', '..', '_index').",
)
LOAD_BALANCER_NAME = TextLimit(
    "name of a load balancer",
    _ELB % "CreateLoadBalancer",
    32,
    _HYPHENATED,
    shortest=1,
    form=r"(?!internal-)[^-](.*[^-])?",
    form_in_words="begins or ends with a hyphen, or begins with internal-",
)
TARGET_GROUP_NAME = TextLimit(
    "name of a target group",
    _ELB % "CreateTargetGroup",
    32,
    _HYPHENATED,
    shortest=1,
    form=r"[^-](.*[^-])?",
    form_in_words="begins or ends with a hyphen",
)
HEALTH_CHECK_PATH = TextLimit("path of a health check", _ELB % "CreateTargetGroup", 1024, _GRAPHIC, shortest=1)
AUTO_SCALING_GROUP_NAME = TextLimit(
    "name of an Auto Scaling group",
    _AUTO_SCALING % "CreateAutoScalingGroup",
    255,
    _characters("the graphic characters of ASCII but the colon", _GRAPHIC_ASCII.replace(":", "")),
    shortest=1,
)
LIFECYCLE_HOOK_NAME = TextLimit(
    "name of a lifecycle hook",
    _AUTO_SCALING % "LifecycleHookSpecification",
    255,
    _letters_digits_and("-_/"),
    shortest=1,
)
NOTIFICATION_METADATA = TextLimit(
    "metadata of a lifecycle hook",
    _AUTO_SCALING % "LifecycleHookSpecification",
    4000,
    _characters("the printable characters of ASCII, tabs and line ends", "\t\n\r " + _GRAPHIC_ASCII),
    shortest=1,
)
_BUCKET_NAMES = f"{_DOCS}/AmazonS3/latest/userguide/bucketnamingrules.html"
BUCKET_NAME = TextLimit(
    "name of an S3 bucket",
    _BUCKET_NAMES,
    63,
    _characters("lower-case letters, digits, dots and hyphens", string.ascii_lowercase + string.digits + ".-"),
    shortest=3,
    form=r"(?![0-9]+(\.[0-9]+){3}$)(?!xn--|sthree-|amzn-s3-demo-)(?!.*(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$)"
    r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]",
    form_in_words="breaks a rule of S3: a letter or digit at both ends, no two dots together, no IP address, no "
    "beginning xn--, sthree- or amzn-s3-demo-, no ending -s3alias, --ol-s3, .mrap, --x-s3 or --table-s3",
    refusal="The specified bucket is not valid.",
)
LIFECYCLE_RULE_ID = TextLimit(
    "id of a bucket's lifecycle rule", f"{_DOCS}/AmazonS3/latest/API/API_LifecycleRule.html", 255
)
OBJECT_KEY_PREFIX = TextLimit(
    "beginning of objects' keys", f"{_DOCS}/AmazonS3/latest/userguide/object-keys.html", 1024, in_bytes=True
)
KEY_DESCRIPTION = TextLimit("description of a KMS key", f"{_DOCS}/kms/latest/APIReference/API_CreateKey.html", 8192)
KEY_ALIAS = TextLimit(
    "alias of a KMS key",
    f"{_DOCS}/kms/latest/APIReference/API_CreateAlias.html",
    256,
    _letters_digits_and(":/_-"),
    shortest=1,
    form=r"alias/(?!aws/).+",
    form_in_words="does not begin with alias/, or is one of AWS's own (alias/aws/)",
)
_CREATE_SECRET = f"{_DOCS}/secretsmanager/latest/apireference/API_CreateSecret.html"
SECRET_NAME = TextLimit("name of a secret", _CREATE_SECRET, 512, _letters_digits_and("/_+=.@-"), shortest=1)
SECRET_DESCRIPTION = TextLimit("description of a secret", _CREATE_SECRET, 2048)
QUEUE_NAME = TextLimit(
    "name of a queue",
    f"{_DOCS}/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html",
    80,
    _characters("letters, digits, hyphens and underscores", _LETTERS_AND_DIGITS + "-_."),
    shortest=1,
)
_PUT_RULE = f"{_DOCS}/eventbridge/latest/APIReference/API_PutRule.html"
EVENT_RULE_NAME = TextLimit("name of an event rule", _PUT_RULE, 64, _letters_digits_and(".-_"), shortest=1)
EVENT_RULE_DESCRIPTION = TextLimit("description of an event rule", _PUT_RULE, 512)
HOSTED_ZONE_COMMENT = TextLimit(
    "comment of a hosted zone", f"{_DOCS}/Route53/latest/APIReference/API_HostedZoneConfig.html", 256
)
DOMAIN_NAME = TextLimit(
    "domain name",
    f"{_DOCS}/Route53/latest/DeveloperGuide/DomainNameFormat.html",
    255,
    _characters("letters, digits, hyphens, underscores, dots and asterisks", _LETTERS_AND_DIGITS + "-_.*"),
    shortest=1,
)
DISTRIBUTION_COMMENT = TextLimit(
    "comment of a CloudFront distribution", f"{_DOCS}/cloudfront/latest/APIReference/API_DistributionConfig.html", 128
)
_ORIGIN_ACCESS_CONTROL = f"{_DOCS}/cloudfront/latest/APIReference/API_OriginAccessControlConfig.html"
ORIGIN_ACCESS_NAME = TextLimit(
    "name of an origin access control", _ORIGIN_ACCESS_CONTROL, 64, _PRINTABLE_ASCII, shortest=1
)
ORIGIN_ACCESS_DESCRIPTION = TextLimit(
    # CloudFront documents no limit for it; held to that of comments.
    "description of an origin access control",
    _ORIGIN_ACCESS_CONTROL,
    128,
    _PRINTABLE_ASCII,
)
ISSUER_URL = TextLimit("URL of an OIDC provider", _IAM % "CreateOpenIDConnectProvider", 255, _GRAPHIC, shortest=1)

REPOSITORY_NAME = TextLimit(
    "name of a repository of Amazon ECR",
    f"{_DOCS}/AmazonECR/latest/APIReference/API_CreateRepository.html",
    256,
    _characters("lower-case letters, digits and . _ - /", string.ascii_lowercase + string.digits + "._-/"),
    shortest=2,
    form=r"[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*)*",
    form_in_words="has . _ - or / at an end or two together",
    refusal="Invalid parameter at 'repositoryName' failed to satisfy constraint",
)
# The schema of AWS::ECR::Repository in the CloudFormation registry, where ECR itself takes one character more.
REPOSITORY_TAG_KEY = replace(TAG_KEY, what="key of a repository's tag", longest=127)
REPOSITORY_TAG_VALUE = replace(TAG_VALUE, what="value of a repository's tag", longest=255, shortest=1)

LOGICAL_ID = TextLimit(
    "logical id", _QUOTAS, 255, _ALPHANUMERIC, shortest=1, refusal="Resource name {text} is non alphanumeric."
)
STACK_NAME = TextLimit(
    "name of a stack",
    f"{_DOCS}/AWSCloudFormation/latest/APIReference/API_CreateStack.html",
    128,
    _HYPHENATED,
    shortest=1,
    form=r"[A-Za-z].*",
    form_in_words="does not begin with a letter",
)
TEMPLATE_DESCRIPTION = TextLimit(
    "description of a template",
    f"{_CLOUDFORMATION}/template-description-structure.html",
    1024,
    in_bytes=True,
    refusal="'Description' length is greater than 1024.",
)
PARAMETER_DESCRIPTION = TextLimit(
    "description of a parameter", f"{_CLOUDFORMATION}/parameters-section-structure.html", 4000
)
PARAMETER_VALUE = TextLimit("value of a parameter", _QUOTAS, 4096, in_bytes=True)
OUTPUT_DESCRIPTION = TextLimit(
    "description of an output", f"{_CLOUDFORMATION}/outputs-section-structure.html", 1024, in_bytes=True
)
EXPORT_NAME = TextLimit(
    "name of an export",
    f"{_CLOUDFORMATION}/outputs-section-structure.html",
    255,
    _characters("letters, digits, colons and hyphens", _LETTERS_AND_DIGITS + ":-"),
    shortest=1,
)

Path = tuple[str, ...]
"""Keys below `Properties`, or from the top of a template; "*" is any item of a list or any key."""

_INLINE_RULES: Mapping[Path, TextLimit] = {
    ("SecurityGroupIngress", "*", "Description"): RULE_DESCRIPTION,
    ("SecurityGroupEgress", "*", "Description"): RULE_DESCRIPTION,
}
PROPERTY_LIMITS: Mapping[str, Mapping[Path, TextLimit]] = {
    "AWS::AutoScaling::AutoScalingGroup": {
        ("AutoScalingGroupName",): AUTO_SCALING_GROUP_NAME,
        ("LifecycleHookSpecificationList", "*", "LifecycleHookName"): LIFECYCLE_HOOK_NAME,
        ("LifecycleHookSpecificationList", "*", "NotificationMetadata"): NOTIFICATION_METADATA,
    },
    "AWS::AutoScaling::LifecycleHook": {
        ("LifecycleHookName",): LIFECYCLE_HOOK_NAME,
        ("NotificationMetadata",): NOTIFICATION_METADATA,
    },
    "AWS::CloudFormation::Stack": {("Parameters", "*"): PARAMETER_VALUE, ("Tags", "*", "Value"): STACK_TAG_VALUE},
    "AWS::EC2::DHCPOptions": {("DomainName",): DOMAIN_NAME},
    "AWS::EC2::KeyPair": {("KeyName",): KEY_PAIR_NAME},
    "AWS::EC2::LaunchTemplate": {
        ("LaunchTemplateName",): LAUNCH_TEMPLATE_NAME,
        ("VersionDescription",): VERSION_DESCRIPTION,
        ("LaunchTemplateData", "KeyName"): KEY_PAIR_NAME,
    },
    "AWS::EC2::NetworkInterface": {("Description",): INTERFACE_DESCRIPTION},
    "AWS::EC2::SecurityGroup": {("GroupName",): GROUP_NAME, ("GroupDescription",): GROUP_DESCRIPTION, **_INLINE_RULES},
    "AWS::EC2::SecurityGroupEgress": {("Description",): RULE_DESCRIPTION},
    "AWS::EC2::SecurityGroupIngress": {("Description",): RULE_DESCRIPTION},
    "AWS::EC2::VPCEndpoint": {("ServiceName",): VPC_ENDPOINT_SERVICE},
    "AWS::ECR::Repository": {
        ("RepositoryName",): REPOSITORY_NAME,
        ("Tags", "*", "Key"): REPOSITORY_TAG_KEY,
        ("Tags", "*", "Value"): REPOSITORY_TAG_VALUE,
    },
    "AWS::ElasticLoadBalancingV2::LoadBalancer": {("Name",): LOAD_BALANCER_NAME},
    "AWS::ElasticLoadBalancingV2::TargetGroup": {("Name",): TARGET_GROUP_NAME, ("HealthCheckPath",): HEALTH_CHECK_PATH},
    "AWS::Events::Rule": {("Name",): EVENT_RULE_NAME, ("Description",): EVENT_RULE_DESCRIPTION},
    "AWS::CloudFront::Distribution": {("DistributionConfig", "Comment"): DISTRIBUTION_COMMENT},
    "AWS::CloudFront::OriginAccessControl": {
        ("OriginAccessControlConfig", "Description"): ORIGIN_ACCESS_DESCRIPTION,
        ("OriginAccessControlConfig", "Name"): ORIGIN_ACCESS_NAME,
    },
    "AWS::IAM::InstanceProfile": {("InstanceProfileName",): IAM_NAME, ("Path",): IAM_PATH},
    "AWS::IAM::ManagedPolicy": {
        ("ManagedPolicyName",): IAM_NAME,
        ("Path",): IAM_PATH,
        ("Description",): IAM_DESCRIPTION,
        ("PolicyDocument", "Statement", "*", "Sid"): STATEMENT_ID,
    },
    "AWS::IAM::OIDCProvider": {("ThumbprintList", "*"): THUMBPRINT, ("Url",): ISSUER_URL},
    "AWS::IAM::Role": {
        ("RoleName",): ROLE_NAME,
        ("Path",): IAM_PATH,
        ("Description",): IAM_DESCRIPTION,
        ("Policies", "*", "PolicyName"): IAM_NAME,
        ("Policies", "*", "PolicyDocument", "Statement", "*", "Sid"): STATEMENT_ID,
        ("AssumeRolePolicyDocument", "Statement", "*", "Sid"): STATEMENT_ID,
    },
    "AWS::KMS::Alias": {("AliasName",): KEY_ALIAS},
    "AWS::KMS::Key": {("Description",): KEY_DESCRIPTION},
    "AWS::Route53::HostedZone": {("Name",): DOMAIN_NAME, ("HostedZoneConfig", "Comment"): HOSTED_ZONE_COMMENT},
    "AWS::Route53::RecordSet": {("Name",): DOMAIN_NAME},
    "AWS::S3::Bucket": {
        ("BucketName",): BUCKET_NAME,
        ("LoggingConfiguration", "DestinationBucketName"): BUCKET_NAME,
        ("LifecycleConfiguration", "Rules", "*", "Id"): LIFECYCLE_RULE_ID,
        ("LifecycleConfiguration", "Rules", "*", "Prefix"): OBJECT_KEY_PREFIX,
    },
    "AWS::S3::BucketPolicy": {("Bucket",): BUCKET_NAME},
    "AWS::SQS::Queue": {("QueueName",): QUEUE_NAME},
    "AWS::SecretsManager::Secret": {("Name",): SECRET_NAME, ("Description",): SECRET_DESCRIPTION},
}
"""Limits by resource type and path."""

TAG_LIMITS: Mapping[Path, TextLimit] = {
    (*holder, "*", part): limit
    for holder in (
        ("Tags",),
        ("TagSpecifications", "*", "Tags"),
        ("LaunchTemplateData", "TagSpecifications", "*", "Tags"),
        ("HostedZoneTags",),
    )
    for part, limit in (("Key", TAG_KEY), ("Value", TAG_VALUE))
}
"""Limits of tags by path that hold for every service, unless `PROPERTY_LIMITS` has the path."""
# EC2 "allows for any character in its tags" (`_TAGGING`), Auto Scaling all but control characters (API model).
# CloudFormation hands a stack's tags on, and the services of its resources refuse what they do not take
# (aws/aws-sdk-go#2891: a comma, which SNS refused).
_SERVICES_WITH_ANY_TAG = ("AWS::EC2::", "AWS::AutoScaling::", "AWS::CloudFormation::")

TEMPLATE_LIMITS: Mapping[Path, TextLimit] = {
    ("Description",): TEMPLATE_DESCRIPTION,
    ("Parameters", "*", "Description"): PARAMETER_DESCRIPTION,
    ("Parameters", "*", "Default"): PARAMETER_VALUE,
    ("Outputs", "*", "Description"): OUTPUT_DESCRIPTION,
    ("Outputs", "*", "Export", "Name"): EXPORT_NAME,
}
"""Limits by path from the top of a template; logical ids are keys and are checked separately."""
SECTIONS_OF_LOGICAL_IDS = ("Parameters", "Mappings", "Conditions", "Resources", "Outputs")


def of_property(resource_type: str, path: Sequence[str | int]) -> TextLimit | None:
    """Return the limit of a property's text, or None if it has none.

    Args:
        path: keys and list positions below its `Properties`.
    """
    generic_path = tuple("*" if isinstance(part, int) else part for part in path)
    limits = PROPERTY_LIMITS.get(resource_type, {})
    # The keys of a nested stack's parameters are arbitrary.
    any_parameter = (
        ("Parameters", "*") if generic_path[:1] == ("Parameters",) and len(generic_path) == 2 else generic_path
    )
    return limits.get(generic_path) or limits.get(any_parameter) or TAG_LIMITS.get(generic_path)


def of_service(resource_type: str, path: Sequence[str | int]) -> TextLimit | None:
    """Return the limit that a property's own service has: as `of_property`, but for tags of any character."""
    limit = of_property(resource_type, path)
    if limit in (TAG_KEY, TAG_VALUE, STACK_TAG_VALUE) and resource_type.startswith(_SERVICES_WITH_ANY_TAG):
        return replace(limit, characters=ANYTHING)
    return limit


def same_but_for_case(keys: Sequence[str]) -> list[tuple[str, str]]:
    """Return pairs of tag keys that differ in case only, the earlier one first.

    IAM treats them as the same key and refuses both ("Rules for tagging in IAM and AWS STS", IAM User Guide), with the
    message `REPEATED_TAG_KEY`.
    """
    first: dict[str, str] = {}
    pairs = ((first.setdefault(key.casefold(), key), key) for key in keys)
    return [(earlier, key) for earlier, key in pairs if earlier != key]


REPEATED_TAG_KEY = "Duplicate tag keys found. Please note that Tag keys are case insensitive."  # kubernetes/kops#11727
