"""Checks that the bucket of flow logs exists; otherwise EC2 refuses the flow log in the middle of an operation."""

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
    from botocore.exceptions import ClientError

    flow_logs = cluster.network.flow_logs
    if flow_logs is None or flow_logs.bucket is None:
        return
    try:
        account.client("s3").head_bucket(Bucket=flow_logs.bucket)
    except ClientError as error:
        if error_code(error) in _MISSING_CODES:
            yield (
                f"network.flowLogs.bucket: there is no bucket {flow_logs.bucket}; create it with a policy that lets "
                "AWS deliver logs, or enter another one"
            )
