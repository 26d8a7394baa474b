"""The issuer of service-account tokens: where AWS reads its two documents.

With `cloudFront`, the documents are in a private bucket that only a CloudFront distribution reads. With `bucket`,
everybody may read these two objects of a bucket, and nothing else of it. With `url`, the documents are on a web server
of the user's. The documents hold public keys and no secret: that everybody can read them is their purpose.

Deleting the stack retains the bucket: masters write into it as soon as they boot, and S3 refuses to delete a bucket
that is not empty, also when a creation that failed is rolled back. `cfngen delete` empties and removes it. The bucket
policy is deleted with the stack, so that nobody can read a bucket that was left.
"""

from __future__ import annotations

from awacs.aws import Action, Allow, Condition, PolicyDocument, SourceArn, Statement, StringEquals
from awacs.aws import Principal as AwsPrincipal
from troposphere import GetAtt, Ref, Sub, cloudfront, s3

from cfngen.cluster.iam.service_accounts import document_keys
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import ISSUER_BUCKET, ISSUER_DISTRIBUTION
from cfngen.cluster.naming.names import origin_access_control_name
from cfngen.cluster.sections.service_accounts import ServiceAccountIssuer
from cfngen.templates.backups import ENCRYPTION_BY_S3, WITHOUT_ACLS, access_log_property, deny_without_tls
from cfngen.templates.stack import ALWAYS_RETAINED, PropertyValue, Stack
from cfngen.templates.tagging import tags

ISSUER_OUTPUT = "ServiceAccountIssuer"
"""Name of the secrets stack's output, and of the parameters of other stacks, for the issuer."""
BUCKET_OUTPUT = "IssuerBucketName"
"""Name of the secrets stack's output, and of the parameters of other stacks, for the name of the issuer's bucket."""
_ISSUER_DESCRIPTION = "Issuer of service-account tokens, without https://"
_BUCKET_DESCRIPTION = "S3 bucket to which masters write the issuer's documents"
# "Use managed cache policies", Amazon CloudFront Developer Guide: CachingDisabled. With it, keys that changed and
# documents that were written only just now are read at once.
_CACHING_DISABLED = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
_ORIGIN = "documents"


def add_issuer(stack: Stack, cluster: Cluster) -> None:
    """Add what publishes the issuer's documents, and outputs with the issuer and with the name of the bucket.

    Nothing is added if the cluster file has no `serviceAccountIssuer`; no bucket if masters write no documents.
    """
    issuer = cluster.service_account_issuer
    if issuer is None:
        return
    if issuer.discovery == "url":
        host_and_path = str(issuer.url).removeprefix("https://")
        stack.output(ISSUER_OUTPUT, value=host_and_path, description=_ISSUER_DESCRIPTION, also_output_of_root=True)
        if issuer.bucket:
            stack.output(BUCKET_OUTPUT, value=issuer.bucket, description=_BUCKET_DESCRIPTION, also_output_of_root=True)
        return
    bucket = _add_bucket(stack, cluster, is_public=issuer.discovery == "bucket")
    if issuer.discovery == "bucket":
        _add_bucket_policy(stack, bucket, _everybody_reads_documents(bucket, issuer))
        host = GetAtt(bucket, "RegionalDomainName")
    else:
        distribution = _add_distribution(stack, cluster, bucket)
        _add_bucket_policy(stack, bucket, _distribution_reads_documents(bucket, issuer, distribution))
        host = GetAtt(distribution, "DomainName")
    stack.output(ISSUER_OUTPUT, value=host, description=_ISSUER_DESCRIPTION, also_output_of_root=True)
    stack.output(BUCKET_OUTPUT, value=Ref(bucket), description=_BUCKET_DESCRIPTION, also_output_of_root=True)


def issuer_without_scheme(stack: Stack) -> PropertyValue:
    """Add the parameter for the issuer to a stack other than the secrets stack; return its reference."""
    return stack.parameter_from_other_stack(ISSUER_OUTPUT, description=_ISSUER_DESCRIPTION)


def issuer_bucket_name(stack: Stack) -> PropertyValue:
    """Add the parameter for the bucket's name to a stack other than the secrets stack; return its reference."""
    return stack.parameter_from_other_stack(BUCKET_OUTPUT, description=_BUCKET_DESCRIPTION)


def _add_bucket(stack: Stack, cluster: Cluster, *, is_public: bool) -> s3.Bucket:
    """Add the bucket of the documents; return it.

    Args:
        is_public: whether a bucket policy lets everybody read objects; "Block Public Access" would refuse the policy.
    """
    return stack.add(
        s3.Bucket(
            ISSUER_BUCKET,
            BucketEncryption=ENCRYPTION_BY_S3,
            OwnershipControls=WITHOUT_ACLS,
            PublicAccessBlockConfiguration=s3.PublicAccessBlockConfiguration(
                BlockPublicAcls=True,
                BlockPublicPolicy=not is_public,
                IgnorePublicAcls=True,
                RestrictPublicBuckets=not is_public,
            ),
            Tags=tags(cluster, f"{cluster.name}-issuer"),
            **access_log_property(cluster, "issuer"),
            **ALWAYS_RETAINED,
        )
    )


def _add_distribution(stack: Stack, cluster: Cluster, bucket: s3.Bucket) -> cloudfront.Distribution:
    """Add the distribution that serves the documents.

    The name of the distribution is one of CloudFront's, and so is its certificate. For these CloudFront accepts TLS 1.0
    and later, whatever the template says ("ViewerCertificate", Amazon CloudFront API Reference); AWS STS uses 1.2.
    """
    access_control = _add_origin_access_control(stack, cluster)
    return stack.add(
        cloudfront.Distribution(
            ISSUER_DISTRIBUTION,
            DistributionConfig=cloudfront.DistributionConfig(
                Comment=f"issuer of the Kubernetes cluster {cluster.name} in {cluster.region}",
                DefaultCacheBehavior=cloudfront.DefaultCacheBehavior(
                    AllowedMethods=["GET", "HEAD"],
                    CachePolicyId=_CACHING_DISABLED,
                    CachedMethods=["GET", "HEAD"],
                    TargetOriginId=_ORIGIN,
                    ViewerProtocolPolicy="https-only",
                ),
                Enabled=True,
                HttpVersion="http2",
                IPV6Enabled=True,
                Origins=[
                    cloudfront.Origin(
                        DomainName=GetAtt(bucket, "RegionalDomainName"),
                        Id=_ORIGIN,
                        OriginAccessControlId=GetAtt(access_control, "Id"),
                        # Required with an origin access control, and empty ("OriginAccessControlId", same reference).
                        S3OriginConfig=cloudfront.S3OriginConfig(OriginAccessIdentity=""),
                    )
                ],
            ),
            Tags=tags(cluster, f"{cluster.name}-issuer"),
        )
    )


def _add_origin_access_control(stack: Stack, cluster: Cluster) -> cloudfront.OriginAccessControl:
    """Add the control by which S3 recognizes the distribution."""
    return stack.add(
        cloudfront.OriginAccessControl(
            "IssuerOriginAccessControl",
            OriginAccessControlConfig=cloudfront.OriginAccessControlConfig(
                # Unique in the account, and up to 64 characters (OriginAccessControlConfig, CloudFront API Reference).
                Name=origin_access_control_name(cluster),
                Description=f"issuer of the Kubernetes cluster {cluster.name}",
                OriginAccessControlOriginType="s3",
                SigningBehavior="always",
                SigningProtocol="sigv4",
            ),
        )
    )


def _add_bucket_policy(stack: Stack, bucket: s3.Bucket, reading: Statement) -> None:
    """Add the bucket's policy: who may read the documents, and that requests without TLS are denied."""
    policy = PolicyDocument(Version="2012-10-17", Statement=[reading, deny_without_tls(bucket)])
    stack.add(s3.BucketPolicy("IssuerBucketPolicy", Bucket=Ref(bucket), PolicyDocument=policy))


def _everybody_reads_documents(bucket: s3.Bucket, issuer: ServiceAccountIssuer) -> Statement:
    return Statement(
        Sid="Documents",
        Effect=Allow,
        Principal=AwsPrincipal("*"),
        Action=[Action("s3", "GetObject")],
        Resource=_document_arns(bucket, issuer),
    )


def _distribution_reads_documents(
    bucket: s3.Bucket, issuer: ServiceAccountIssuer, distribution: cloudfront.Distribution
) -> Statement:
    """Return the statement that lets the distribution read the two documents.

    Source: "Restrict access to an Amazon S3 origin", Amazon CloudFront Developer Guide.
    """
    distribution_arn = Sub(
        "arn:${AWS::Partition}:cloudfront::${AWS::AccountId}:distribution/${Distribution}",
        Distribution=Ref(distribution),
    )
    return Statement(
        Sid="Documents",
        Effect=Allow,
        Principal=AwsPrincipal("Service", "cloudfront.amazonaws.com"),
        Action=[Action("s3", "GetObject")],
        Resource=_document_arns(bucket, issuer),
        Condition=Condition(StringEquals({SourceArn: distribution_arn})),
    )


def _document_arns(bucket: s3.Bucket, issuer: ServiceAccountIssuer) -> list[Sub]:
    return [Sub(f"${{Bucket}}/{key}", Bucket=GetAtt(bucket, "Arn")) for key in document_keys(issuer)]
