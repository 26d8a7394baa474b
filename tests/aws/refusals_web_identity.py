"""CloudFront, OpenID Connect providers and web identities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from refusal import Creation, Refusal, Resources, ServiceCall, TestedElsewhere, Update
from refusals_identity import ACCOUNT, mistrusted, refused, role, trusting
from small_stacks import REGION
from web_identities import (
    AUDIENCE,
    BLOCKED,
    Issuer,
    access_control,
    distribution,
    from_bucket,
    private_bucket,
    public_bucket,
    through_cloudfront,
)

from cfngen.sandbox.cloudformation import CloudFormation, client

CLOUDFRONT_API = "https://docs.aws.amazon.com/cloudfront/latest/APIReference"
IAM_API = "https://docs.aws.amazon.com/IAM/latest/APIReference"
STS_API = "https://docs.aws.amazon.com/STS/latest/APIReference"
CONDITION: Any = "condition documented"
DISTRIBUTION, CONTROL = "AWS::CloudFront::Distribution", "AWS::CloudFront::OriginAccessControl"
OIDC_PROVIDER, ASSUMING = "AWS::IAM::OIDCProvider", "AssumeRoleWithWebIdentity"
FEDERATED = {"Federated": f"{ACCOUNT}:oidc-provider/issuer.example.com"}
ISSUER = "https://issuer.example.com"


def issue(repository: str, number: int) -> str:
    return f"[{repository}#{number}](https://github.com/{repository}/issues/{number})"


def api(reference: str, operation: str) -> str:
    return f"API: [{operation}]({reference}/API_{operation}.html)"


def cloudfront() -> Any:
    return client("cloudfront", "us-east-1")


def changed(name: str, resource: Callable[[], Any]) -> Creation:
    """The resources of an issuer behind CloudFront, one of which is another one, and fails."""
    return Creation(lambda: without_identity(**{name: resource()}), name)


def without_identity(**others: Any) -> Resources:
    return through_cloudfront(**{"Provider": None, "Role": None, **others})


def _origin_twice() -> Any:
    it = distribution()
    it["Properties"]["DistributionConfig"]["Origins"] *= 2
    return it


def _settings(**settings: Any) -> Any:
    it = distribution()
    it["Properties"]["DistributionConfig"].update(settings)
    return it


def named_url(**properties: Any) -> Any:
    return {"Type": OIDC_PROVIDER, "Properties": {"Url": ISSUER, "ClientIdList": [AUDIENCE], **properties}}


def _enabled(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    distribution_id = issuer.stack.resources["Distribution"].physical_id
    etag = cloudfront().get_distribution(Id=distribution_id)["ETag"]
    cloudfront().delete_distribution(Id=distribution_id, IfMatch=etag)


def _other_version(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    cloudfront().delete_distribution(Id=issuer.stack.resources["Distribution"].physical_id, IfMatch="E0")


def _used(cloud: CloudFormation) -> None:
    issuer = Issuer(cloud, through_cloudfront())
    control_id = issuer.stack.resources["AccessControl"].physical_id
    etag = cloudfront().get_origin_access_control(Id=control_id)["ETag"]
    cloudfront().delete_origin_access_control(Id=control_id, IfMatch=etag)


def _taken() -> Resources:
    """The name of an access control that is there already."""
    settings = access_control(Name="taken")["Properties"]["OriginAccessControlConfig"]
    cloudfront().create_origin_access_control(OriginAccessControlConfig=settings)
    return {"It": access_control(Name="taken")}


def _registered() -> Resources:
    client("iam", REGION).create_open_id_connect_provider(Url=ISSUER, ClientIDList=[AUDIENCE])
    return {"It": named_url()}


def _hundred() -> Resources:
    iam = client("iam", REGION)
    for number in range(100):
        iam.create_open_id_connect_provider(Url=f"{ISSUER}/{number}", ClientIDList=[AUDIENCE])
    return {"It": named_url()}


def _missing(_: CloudFormation) -> None:
    client("iam", REGION).add_client_id_to_open_id_connect_provider(
        OpenIDConnectProviderArn=FEDERATED["Federated"], ClientID="other"
    )


def _account_blocks() -> Resources:
    client("s3control", REGION).put_public_access_block(
        AccountId="123456789012", PublicAccessBlockConfiguration={**BLOCKED, "RestrictPublicBuckets": False}
    )
    return from_bucket(Provider=None, Role=None)


def trust_with(key: str) -> dict[str, Any]:
    condition = {"StringEquals": {key: AUDIENCE}}
    return trusting(FEDERATED, Action="sts:AssumeRoleWithWebIdentity", Condition=condition)


def elsewhere(condition: str, words: str, source: str, evidence: Any, test: str) -> Refusal:
    return Refusal(ASSUMING, condition, words, source, evidence, TestedElsewhere(f"aws/test_web_identity.py::{test}"))


CLAIMS = "test_a_wrong_claim_is_refused"
NO_KEY_WORDS = "Couldn't retrieve verification key from your identity provider"
ROWS = [
    *(
        Refusal(
            DISTRIBUTION, condition, words, api(CLOUDFRONT_API, source), "condition documented",
            changed("Distribution", make),
        )
        for condition, words, source, make in (
            ("a method alone", "InvalidArgument", "AllowedMethods",
             lambda: distribution(behavior={"AllowedMethods": ["GET"]})),
            ("methods to cache that cannot be", "InvalidArgument", "CachedMethods",
             lambda: distribution(behavior={"CachedMethods": ["GET", "HEAD", "POST"]})),
            ("methods to cache that are not allowed", "InvalidArgument", "CachedMethods",
             lambda: distribution(behavior={"CachedMethods": ["GET", "HEAD", "OPTIONS"]})),
            ("two origins of one id", "InvalidArgument", "Origin", _origin_twice),
            ("a path of an origin that ends with /", "InvalidArgument", "Origin",
             lambda: distribution(origin={"OriginPath": "/site/"})),
            ("a list of countries without one", "InvalidGeoRestrictionParameter", "GeoRestriction",
             lambda: _settings(Restrictions={"GeoRestriction": {"RestrictionType": "whitelist"}})),
            ("an origin access identity that does not exist", "InvalidOriginAccessIdentity", "S3OriginConfig",
             lambda: distribution(origin={"OriginAccessControlId": None, "S3OriginConfig": {
                 "OriginAccessIdentity": "origin-access-identity/cloudfront/E74FTE3AEXAMPLE"}})),
        )
    ),
    Refusal(
        DISTRIBUTION, "an origin access control that does not exist", "The origin access control is not valid",
        api(CLOUDFRONT_API, "CreateDistribution"), "documented",
        changed("Distribution", lambda: distribution(origin={"OriginAccessControlId": "E2QWRUHEXAMPLE"})),
    ),
    Refusal(
        DISTRIBUTION, "an origin access control beside an origin access identity",
        "An origin cannot contain both an origin access control (OAC) and an origin access identity (OAI)",
        api(CLOUDFRONT_API, "CreateDistribution"), "documented",
        changed("Distribution", lambda: distribution(origin={
            "S3OriginConfig": {"OriginAccessIdentity": "origin-access-identity/cloudfront/E74FTE3AEXAMPLE"}})),
    ),
    Refusal(
        DISTRIBUTION, "an origin access control of buckets for another server",
        "whose domain name is not supported", api(CLOUDFRONT_API, "CreateDistribution"), "documented",
        changed("Distribution", lambda: distribution(origin={"DomainName": "bucket.s3-website.amazonaws.com"})),
    ),
    Refusal(
        DISTRIBUTION, "an origin of no kind", "Exactly one of CustomOriginConfig and S3OriginConfig must be specified",
        api(CLOUDFRONT_API, "Origin"), CONDITION,
        changed("Distribution", lambda: distribution(origin={"S3OriginConfig": None})),
    ),
    Refusal(
        DISTRIBUTION, "a behaviour for an origin that it does not have", "origins or origin groups do not exist",
        api(CLOUDFRONT_API, "CreateDistribution"), CONDITION,
        changed("Distribution", lambda: distribution(behavior={"TargetOriginId": "other"})),
    ),
    Refusal(
        DISTRIBUTION, "neither a cache policy nor forwarded values", "The parameter ForwardedValues is required",
        api(CLOUDFRONT_API, "DefaultCacheBehavior"), CONDITION,
        changed("Distribution", lambda: distribution(behavior={"CachePolicyId": None})),
    ),
    Refusal(
        DISTRIBUTION, "a cache policy that does not exist", "The specified cache policy does not exist",
        api(CLOUDFRONT_API, "CreateDistribution"), CONDITION,
        changed("Distribution", lambda: distribution(behavior={"CachePolicyId": "4135ea2d"})),
    ),
    Refusal(
        DISTRIBUTION, "deletion while it is enabled",
        "The distribution you are trying to delete has not been disabled",
        issue("aws-controllers-k8s/community", 2168), "seen", ServiceCall(_enabled),
    ),
    Refusal(
        DISTRIBUTION, "deletion of another version", "The If-Match version is missing or not valid",
        api(CLOUDFRONT_API, "DeleteDistribution"), "documented", ServiceCall(_other_version),
    ),
    Refusal(
        CONTROL, "deletion while a distribution uses it",
        "The CloudFront origin access control is still being used",
        issue("terraform-aws-modules/terraform-aws-cloudfront", 135), "seen", ServiceCall(_used),
    ),
    Refusal(
        CONTROL, "a name that another one has", "An origin access control with the same name already exists",
        issue("winglang/wing", 3748), "seen", Creation(_taken, "It"),
    ),
    Refusal(
        CONTROL, "a name of 65 characters", "Invalid name of an origin access control",
        issue("aws-samples/amazon-cloudfront-secure-static-site", 66), "seen", refused(access_control(Name="a" * 65)),
    ),
    Refusal(
        OIDC_PROVIDER, "a URL that is registered already", f"Provider with url {ISSUER} already exists.",
        issue("unfunco/terraform-aws-oidc-github", 23), "seen", Creation(_registered, "It"),
    ),
    Refusal(
        OIDC_PROVIDER, "a URL without https://", "Invalid Open ID Connect Provider URL",
        api(IAM_API, "CreateOpenIDConnectProvider"), CONDITION, refused(named_url(Url="issuer.example.com")),
    ),
    Refusal(
        OIDC_PROVIDER, "a URL with a port", "Invalid Open ID Connect Provider URL",
        api(IAM_API, "CreateOpenIDConnectProvider"), CONDITION, refused(named_url(Url=f"{ISSUER}:8443")),
    ),
    Refusal(
        OIDC_PROVIDER, "more than 100 in an account", "Cannot exceed quota for OpenIdConnectProvidersPerAccount: 100",
        "IAM user guide: [quotas](https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html)",
        CONDITION, Creation(_hundred, "It"),
    ),
    Refusal(
        OIDC_PROVIDER, "no thumbprint, and a distribution that does not exist",
        "IAM cannot connect to the OpenID Connect identity provider URL",
        api(IAM_API, "CreateOpenIDConnectProvider"), "documented",
        refused(named_url(Url="https://d111111abcdef8.cloudfront.net")),
    ),
    Refusal(
        OIDC_PROVIDER, "an update without a thumbprint",
        "Value null at 'thumbprintList' failed to satisfy constraint: Member must not be null",
        issue("aws-cloudformation/cloudformation-coverage-roadmap", 2092), "seen",
        TestedElsewhere("aws/test_web_identity.py::test_a_provider_without_thumbprints_is_not_updated"),
    ),
    Refusal(
        OIDC_PROVIDER, "a tag without a value", "#/Tags/0/Value", "its schema", "documented",
        refused(named_url(Tags=[{"Key": "cluster", "Value": ""}])),
    ),
    Refusal(
        OIDC_PROVIDER, "a client id for one that does not exist", "OpenIDConnect Provider not found for arn",
        api(IAM_API, "AddClientIDToOpenIDConnectProvider"), CONDITION, ServiceCall(_missing),
    ),
    Refusal(
        "AWS::IAM::Role RoleName", "65 characters", "#/RoleName", api(IAM_API, "CreateRole"), CONDITION,
        refused(role(RoleName="a" * 65)),
    ),
    Refusal(
        "AWS::IAM::Role RoleName", "the name of another role", "Role with name Web already exists",
        api(IAM_API, "CreateRole"), CONDITION,
        Creation(lambda: {"Role": role(RoleName="web"), "It": {**role(RoleName="Web"), "DependsOn": "Role"}}, "It"),
    ),
    mistrusted(
        "the scheme in a condition key", "Condition can contain only one colon.",
        issue("terraform-aws-modules/terraform-aws-eks", 1084), trust_with(f"{ISSUER}:aud"),
    ),
    mistrusted(
        "a placeholder left in a condition key", "Syntax errors in policy.", "on the safe side",
        trust_with("${Issuer}:aud"), "assumed",
    ),
    mistrusted(
        "a federated principal that is neither an ARN nor a domain name",
        "Federated principals must be valid domain names or SAML metadata ARNs",
        issue("terraform-aws-modules/terraform-aws-eks", 2594), trusting({"Federated": "issuer"}),
    ),
    mistrusted(
        "a placeholder left in a federated principal",
        "Federated principals must be valid domain names or SAML metadata ARNs", "on the safe side",
        trusting({"Federated": f"{ACCOUNT}:oidc-provider/${{Issuer}}"}), "assumed",
    ),
    mistrusted(
        "text that is no JSON", "Syntax errors in policy.", api(IAM_API, "CreateRole"), "{'Version'}", CONDITION
    ),
    Refusal(
        "AWS::S3::BucketPolicy", "everybody, in an account that blocks public policies", "BlockPublicPolicy",
        "S3 user guide: [block public access](https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
        "access-control-block-public-access.html)",
        "documented", Creation(_account_blocks, "Policy"),
    ),
    Refusal(
        "AWS::S3::BucketPolicy", "everybody, later, after the bucket blocks public policies again", "BlockPublicPolicy",
        "S3 user guide: [block public access](https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
        "access-control-block-public-access.html)",
        "documented",
        Update(
            lambda: {"Bucket": private_bucket()},
            lambda first: from_bucket(Provider=None, Role=None, Bucket=public_bucket(BlockPublicPolicy=True)),
            "Policy",
        ),
    ),
    elsewhere(
        "a token of an issuer that is not registered", "No OpenIDConnect provider found in your account for",
        issue("aws-actions/configure-aws-credentials", 280), "seen", CLAIMS,
    ),
    elsewhere(
        "a token for another audience", "Incorrect token audience",
        issue("aws-actions/configure-aws-credentials", 775), "seen", CLAIMS,
    ),
    elsewhere(
        "a token without an audience", "Missing a required claim: aud", issue("aws/aws-sdk-ruby", 2698), "seen", CLAIMS,
    ),
    elsewhere(
        "a token that has expired", "Token expired: current date/time must be before the expiration date/time",
        issue("awslabs/aws-orbit-workbench", 707), "seen", CLAIMS,
    ),
    elsewhere(
        "a token that is not valid yet", "The web identity token is not valid yet", api(STS_API, ASSUMING), "assumed",
        CLAIMS,
    ),
    elsewhere(
        "a service account that the role does not trust, or a role that does not exist",
        "Not authorized to perform sts:AssumeRoleWithWebIdentity",
        issue("aws-actions/configure-aws-credentials", 1100), "seen",
        "test_a_role_that_another_provider_or_nobody_trusts_is_refused",
    ),
    elsewhere(
        "documents that cannot be read, or that lack the token's key", NO_KEY_WORDS,
        issue("aws/aws-cli", 7194), "seen", "test_a_token_of_another_key_is_refused",
    ),
    elsewhere(
        "a key without an id", NO_KEY_WORDS, issue("aws/amazon-eks-pod-identity-webhook", 12), "seen",
        "test_a_key_without_an_id_verifies_nothing",
    ),
    elsewhere(
        "a token with a forged signature", "The web identity token that was passed could not be validated",
        api(STS_API, ASSUMING), "documented", "test_a_forged_token_is_refused",
    ),
    elsewhere(
        "a text that is no token", "The ID Token provided is not a valid JWT", api(STS_API, ASSUMING), CONDITION,
        "test_a_forged_token_is_refused",
    ),
    elsewhere(
        "a session longer than the role allows", "exceeds the MaxSessionDuration set for this role",
        api(STS_API, ASSUMING), CONDITION, "test_a_session_is_no_longer_than_the_role_allows",
    ),
]  # fmt: skip
