"""Statements with which masters publish the documents of the issuer of service-account tokens."""

from __future__ import annotations

from cfngen.cluster.iam.service_accounts import document_keys, masters_publish_documents
from cfngen.cluster.model import Cluster
from cfngen.permissions.references import References, arn, via_service
from cfngen.permissions.statements import Condition, Statement, allow


def issuer_document_statements(cluster: Cluster, references: References) -> list[Statement]:
    """Return the permission to read and write the two documents, and nothing else, in the issuer's bucket.

    The result is empty if masters do not publish the documents. Without permission to list the bucket, S3 answers 403,
    and not 404, to whoever reads a document that does not exist ("GetObject", Amazon S3 API Reference).
    """
    issuer = cluster.service_account_issuer
    if issuer is None or not masters_publish_documents(cluster):
        return []
    documents = [
        arn(references, "s3", f"${{Bucket}}/{key}", region="", account="", Bucket=references.issuer_bucket_name)
        for key in document_keys(issuer)
    ]
    statements = [allow(sid="IssuerDocuments", actions="s3:GetObject s3:PutObject", resources=documents)]
    if issuer.bucket:
        # The user's own bucket may be encrypted with a KMS key, see `instances._backup_statements`.
        bucket = arn(references, "s3", "${Bucket}", region="", account="", Bucket=references.issuer_bucket_name)
        only_this_bucket: Condition = {
            "StringEquals": {
                **via_service(references, "s3"),
                "kms:EncryptionContext:aws:s3:arn": [bucket, *documents],
            }
        }
        statements.append(
            allow(
                sid="IssuerDocumentsKey",
                actions="kms:Decrypt kms:GenerateDataKey",
                resources=[arn(references, "kms", "key/*")],
                condition=only_this_bucket,
            )
        )
    return statements
