"""Checks that the buckets of flow logs and of the issuer's documents exist.

Otherwise EC2 refuses the flow log in the middle of an operation, or masters cannot write the documents and do not boot.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import error_code

# HeadBucket answers without a body, so its error code is the HTTP status.
_MISSING_CODES = frozenset({"404", "NoSuchBucket"})


def find_problems(account: Account, cluster: Cluster) -> Iterator[str]:
    """Yield a problem if there is no such bucket. A bucket that the caller may not look at exists.

    Args:
        account: the account and region.
        cluster: the cluster.
    """
    flow_logs, issuer = cluster.network.flow_logs, cluster.service_account_issuer
    if flow_logs and flow_logs.bucket and _is_missing(account, flow_logs.bucket):
        yield (
            f"network.flowLogs.bucket: there is no bucket {flow_logs.bucket}; create it with a policy that lets "
            "AWS deliver logs, or enter another one"
        )
    if issuer and issuer.bucket and _is_missing(account, issuer.bucket):
        yield (
            f"serviceAccountIssuer.bucket: there is no bucket {issuer.bucket}; enter the bucket that the web server "
            "reads, or remove the key and publish the documents yourself"
        )


def _is_missing(account: Account, bucket: str) -> bool:
    """Return whether there is no such bucket."""
    from botocore.exceptions import ClientError

    try:
        account.client("s3").head_bucket(Bucket=bucket)
    except ClientError as error:
        return error_code(error) in _MISSING_CODES
    return False
