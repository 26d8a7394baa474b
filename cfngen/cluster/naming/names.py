"""Names that are derived from the cluster's and a node group's name, with the limits of their lengths.

The names of IAM roles, launch templates and Auto Scaling groups are not among them: the templates leave these names to
CloudFormation, which shortens them to fit (a role's to 64 characters).
"""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.id_form import pascal
from cfngen.text_limits import KEY_PAIR_NAME, LOAD_BALANCER_NAME, STACK_NAME, TAG_KEY, TAG_VALUE, TextLimit

DRAIN_HOOK = "cfngen-drain"
"""Name of the lifecycle hook that delays the termination of nodes until they are drained."""
QUORUM_HOOK = "cfngen-quorum"
"""Name of the lifecycle hook that delays the termination of masters while etcd needs them for its quorum."""
CHANGE_SET_PREFIX = "cfngen-plan-"
"""Prefix of the names of cfngen's change sets."""
SNAPSHOT_PERIODS = ("hourly", "daily")
"""Folders of etcd's snapshots in the bucket, by how long they are kept."""

# CloudFormation names a nested stack `<name of the root stack>-<logical id>-<up to 13 random characters>`.
_GENERATED_SUFFIX = "-" + "X" * 13

_PARTITIONS = {
    "cn-": "aws-cn",
    "us-gov-": "aws-us-gov",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "us-isof-": "aws-iso-f",
    "eu-isoe-": "aws-iso-e",
    "eusc-": "aws-eusc",
}
"""Partition by the beginning of its regions' names; other regions are in `aws`. From botocore's partitions.json."""


@dataclass(frozen=True)
class DerivedName:
    """A name that is derived from the cluster's name, or from the cluster's and a node group's.

    Attributes:
        subject: what has the name: a kind of resource or tag, as messages call it.
        pattern: the name with the placeholders `{cluster}`, `{group}` and `{group_in_pascal_case}`.
        text_limit: the length and the characters that AWS accepts in the name.
    """

    subject: str
    pattern: str
    text_limit: TextLimit

    @property
    def max_length(self) -> int:
        """Maximum number of characters that AWS accepts."""
        return self.text_limit.longest

    def for_names(self, cluster: str, group: str = "") -> str:
        """Return the derived name, given the name of a cluster and of a node group."""
        return self.pattern.format(cluster=cluster, group=group, group_in_pascal_case=pascal(group))


CLUSTER_NAMES = (
    DerivedName(
        subject="load balancer of the API that a cluster of several masters has",
        pattern="{cluster}-api",
        text_limit=LOAD_BALANCER_NAME,
    ),
    DerivedName(
        subject="nested stack", pattern="{cluster}-SecurityGroupsStack" + _GENERATED_SUFFIX, text_limit=STACK_NAME
    ),
    DerivedName(subject="tag key of the cluster", pattern="kubernetes.io/cluster/{cluster}", text_limit=TAG_KEY),
    DerivedName(subject="Name tag of the VPC", pattern="{cluster}-vpc", text_limit=TAG_VALUE),
    DerivedName(subject="key pair", pattern="{cluster}-ssh-XXXXXXXX", text_limit=KEY_PAIR_NAME),
)
GROUP_NAMES = (
    DerivedName(
        subject="nested stack",
        pattern="{cluster}-NodeGroup{group_in_pascal_case}Stack" + _GENERATED_SUFFIX,
        text_limit=STACK_NAME,
    ),
    DerivedName(subject="Name tag of nodes", pattern="{cluster}-nodes-{group}", text_limit=TAG_VALUE),
)


def load_balancer_name(cluster: Cluster, *, is_public: bool) -> str:
    """Return the name of the API's public or internal load balancer.

    The names differ because a cluster may have both, and because a change from one to the other creates the new load
    balancer while the old one still exists.
    """
    return f"{cluster.name}-api" if is_public else f"{cluster.name}-int"


def origin_access_control_name(cluster: Cluster) -> str:
    """Return the name of the access control of the issuer's distribution, for which CloudFront knows no region."""
    return f"{cluster.name}.{cluster.region}"


def api_host(cluster: Cluster) -> str:
    """Return the host name of the Kubernetes API for instances; it is in each instance's /etc/hosts.

    It is a name, and not an address, because masters may be added and clients try all addresses of a name.
    """
    return f"api.{cluster.name}.internal"


def snapshot_prefixes(cluster: str) -> tuple[str, ...]:
    """Return the prefixes of the keys of etcd's snapshots in the bucket; masters write nothing else there."""
    return tuple(f"{cluster}/etcd/{period}/" for period in SNAPSHOT_PERIODS)


def authority_copy_prefix(cluster: str) -> str:
    """Return the prefix of the names of the secrets that hold copies of a cluster's certificate authorities."""
    return f"cfngen/{cluster}/authorities-"


def template_bucket(account: str, region: str) -> str:
    """Return the name of the bucket that cfngen creates for templates in an account and region."""
    return f"cfngen-{account}-{region}"


def aws_partition(region: str) -> str:
    """Return the partition of a region, as in ARNs."""
    return next((partition for prefix, partition in _PARTITIONS.items() if region.startswith(prefix)), "aws")


def cluster_name_too_long(cluster: str) -> tuple[DerivedName, str] | None:
    """Return the first derived name that a cluster's name makes too long, and its text; None if there is none."""
    for derived_name in CLUSTER_NAMES:
        text = derived_name.for_names(cluster)
        if len(text) > derived_name.max_length:
            return derived_name, text
    return None


def group_name_too_long(cluster: Cluster, group: str) -> tuple[DerivedName, str] | None:
    """Return the first derived name that a node group's name makes too long, and its text; None if there is none."""
    for derived_name in GROUP_NAMES:
        text = derived_name.for_names(cluster.name, group)
        if len(text) > derived_name.max_length:
            return derived_name, text
    return None
