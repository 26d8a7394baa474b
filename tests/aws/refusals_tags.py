"""Tags beyond those that a resource has."""

from __future__ import annotations

from collections.abc import Callable

from refusal import Refusal, ServiceCall
from small_stacks import REGION

from cfngen.sandbox.cloudformation import CloudFormation, client

Tag = Callable[[dict[str, str]], object]
QUOTAS = "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html"
TRUST = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, '
TRUST += '"Action": "sts:AssumeRole"}]}'
POLICY = '{"Version": "2012-10-17", "Statement": [{"Effect": "Deny", "Action": "ec2:RunInstances", "Resource": "*"}]}'


def _listed(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _role() -> Tag:
    iam = client("iam", REGION)
    iam.create_role(RoleName="one", AssumeRolePolicyDocument=TRUST)
    return lambda tags: iam.tag_role(RoleName="one", Tags=_listed(tags))


def _policy() -> Tag:
    iam = client("iam", REGION)
    arn = iam.create_policy(PolicyName="one", PolicyDocument=POLICY)["Policy"]["Arn"]
    return lambda tags: iam.tag_policy(PolicyArn=arn, Tags=_listed(tags))


def _profile() -> Tag:
    iam = client("iam", REGION)
    iam.create_instance_profile(InstanceProfileName="one")
    return lambda tags: iam.tag_instance_profile(InstanceProfileName="one", Tags=_listed(tags))


def _provider() -> Tag:
    iam = client("iam", REGION)
    made = iam.create_open_id_connect_provider(Url="https://tokens.example.com", ClientIDList=["sts.amazonaws.com"])
    arn = made["OpenIDConnectProviderArn"]
    return lambda tags: iam.tag_open_id_connect_provider(OpenIDConnectProviderArn=arn, Tags=_listed(tags))


def _target_group() -> Tag:
    elbv2, ec2 = client("elbv2", REGION), client("ec2", REGION)
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    made = elbv2.create_target_group(Name="one", Protocol="TCP", Port=443, VpcId=vpc)
    arns = [made["TargetGroups"][0]["TargetGroupArn"]]
    return lambda tags: elbv2.add_tags(ResourceArns=arns, Tags=_listed(tags))


def _key() -> Tag:
    kms = client("kms", REGION)
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    return lambda tags: kms.tag_resource(
        KeyId=key, Tags=[{"TagKey": name, "TagValue": value} for name, value in tags.items()]
    )


def _secret() -> Tag:
    secrets = client("secretsmanager", REGION)
    secrets.create_secret(Name="one", SecretString="content")
    return lambda tags: secrets.tag_resource(SecretId="one", Tags=_listed(tags))


def _log_group() -> Tag:
    logs = client("logs", REGION)
    logs.create_log_group(logGroupName="one")
    arn = logs.describe_log_groups()["logGroups"][0]["arn"].removesuffix(":*")
    return lambda tags: logs.tag_resource(resourceArn=arn, tags=tags)


def _repository() -> Tag:
    ecr = client("ecr", REGION)
    arn = ecr.create_repository(repositoryName="one")["repository"]["repositoryArn"]
    return lambda tags: ecr.tag_resource(resourceArn=arn, tags=_listed(tags))


def _distribution() -> Tag:
    cloudfront = client("cloudfront", REGION)
    origin = {"Id": "a", "DomainName": "mine.s3.amazonaws.com", "S3OriginConfig": {"OriginAccessIdentity": ""}}
    settings = {"CallerReference": "one", "Comment": "", "Enabled": True, "Origins": {"Quantity": 1, "Items": [origin]}}
    behavior = {"TargetOriginId": "a", "ViewerProtocolPolicy": "https-only"}
    made = cloudfront.create_distribution(DistributionConfig={**settings, "DefaultCacheBehavior": behavior})
    arn = made["Distribution"]["ARN"]
    return lambda tags: cloudfront.tag_resource(Resource=arn, Tags={"Items": _listed(tags)})


def _one_more(make: Callable[[], Tag]) -> ServiceCall:
    """Give a resource fifty tags in two calls, the last of them another value, and then one more."""

    def attempt(cloud: CloudFormation) -> None:
        tag = make()
        for first, last in ((0, 30), (30, 50), (49, 50), (50, 51)):
            tag({f"k{number}": str(last) for number in range(first, last)})

    return ServiceCall(attempt)


def _api(service: str, operation: str) -> str:
    return f"[{operation}](https://docs.aws.amazon.com/{service}/API_{operation}.html)"


IAM, ELB = "IAM/latest/APIReference", "elasticloadbalancing/latest/APIReference"
ROWS = [
    Refusal(call, "51st tag", f"({code})", source, "condition documented", _one_more(make))
    for call, code, source, make in (
        ("iam:TagRole", "LimitExceeded", f"{_api(IAM, 'TagRole')}, [quotas]({QUOTAS})", _role),
        ("iam:TagPolicy", "LimitExceeded", _api(IAM, "TagPolicy"), _policy),
        ("iam:TagInstanceProfile", "LimitExceeded", _api(IAM, "TagInstanceProfile"), _profile),
        ("iam:TagOpenIDConnectProvider", "LimitExceeded", _api(IAM, "TagOpenIDConnectProvider"), _provider),
        ("elasticloadbalancing:AddTags", "TooManyTags", _api(ELB, "AddTags"), _target_group),
        ("kms:TagResource", "LimitExceededException", _api("kms/latest/APIReference", "TagResource"), _key),
        ("secretsmanager:TagResource", "InvalidParameterException",
         _api("secretsmanager/latest/apireference", "TagResource"), _secret),
        ("logs:TagResource", "TooManyTagsException",
         _api("AmazonCloudWatchLogs/latest/APIReference", "TagResource"), _log_group),
        ("ecr:TagResource", "TooManyTagsException", _api("AmazonECR/latest/APIReference", "TagResource"), _repository),
        ("cloudfront:TagResource", "InvalidTagging", _api("cloudfront/latest/APIReference", "TagResource"),
         _distribution),
    )
]  # fmt: skip
